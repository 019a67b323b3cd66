//! Checks relevance against its definition, with the Jacobian of each step from autograd, on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use core_masking::classifier::LabelledBatch;
use core_masking::loss::PairBatch;
use core_masking::{
    Attention, Classifier, ClassifierConfig, GatedModel, HeadId, HeadSet, ModelDropout, Relevance, Removal,
    Translator, TranslatorConfig, Weights,
};
use random::DOUBLE;
use serde_json::json;
use tch::{Device, Kind, Tensor, no_grad};

const D_HEAD: i64 = 3;
const EPSILON: f64 = 1e-5;

/// A DeBERTa of 2 layers with 2 heads of width 3 and a feed-forward width of 5.
fn classifier() -> Classifier {
    let folder = test_support::golden("more/deberta-v2").unwrap();
    let config = ClassifierConfig {
        hidden_size: 6,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        intermediate_size: 5,
        layer_norm_eps: EPSILON,
        ..ClassifierConfig::read(&folder.join("config.json")).unwrap()
    };
    let quiet = Classifier::random(config, 5, DOUBLE).unwrap();
    let weights = quiet.weights().iter().map(|(name, tensor)| {
        let places = Tensor::arange(tensor.numel() as i64, DOUBLE);
        let noise = (places * 12.9 + name.len() as f64).sin().view_as(tensor) * 0.7;
        (name.to_owned(), tensor + noise)
    });
    Classifier::new(quiet.config().clone(), Weights::from_tensors(weights)).unwrap()
}

fn translator() -> Translator {
    let json = json!({
        "model_type": "marian", "vocab_size": 13, "d_model": 6, "encoder_layers": 2,
        "encoder_attention_heads": 2, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 4, "activation_function": "swish", "max_position_embeddings": 9,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    random::loud(serde_json::from_value::<TranslatorConfig>(json).unwrap(), 3)
}

fn pair(model: &Translator) -> PairBatch {
    PairBatch::new(model, &[&[5, 9, 2, 0]], &[&[7, 3, 0]])
}

type Step<'a> = &'a dyn Fn(&[Tensor]) -> Tensor;

/// Returns `[outputs, inputs]`, all inputs concatenated.
fn jacobian(step: Step<'_>, inputs: &[Tensor]) -> Tensor {
    let leaves: Vec<Tensor> = inputs.iter().map(|input| input.copy().set_requires_grad(true)).collect();
    let output = step(&leaves).flatten(0, -1);
    let row = |place: i64| {
        let gradients = Tensor::run_backward(&[output.get(place)], &leaves, true, false);
        let flat = gradients.iter().zip(&leaves).map(|(gradient, leaf)| {
            if gradient.defined() { gradient.flatten(0, -1) } else { leaf.zeros_like().flatten(0, -1) }
        });
        Tensor::cat(&flat.collect::<Vec<_>>(), 0)
    };
    Tensor::stack(&(0..output.numel() as i64).map(row).collect::<Vec<_>>(), 0)
}

/// Applies the rule for one step of one sample: returns the relevance of each input.
fn divide(step: Step<'_>, inputs: &[Tensor], relevance: &Tensor) -> Vec<Tensor> {
    if relevance.abs().sum(None).double_value(&[]) == 0.0 {
        return inputs.iter().map(Tensor::zeros_like).collect();
    }
    let x = Tensor::cat(&inputs.iter().map(|input| input.flatten(0, -1)).collect::<Vec<_>>(), 0);
    let zeros: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
    let z = jacobian(step, inputs) * &x + step(&zeros).flatten(0, -1).unsqueeze(1) / x.numel() as f64;
    let (up, down) = (z.clamp_min(0.0), z.clamp_max(0.0));
    let sum = |z: &Tensor| z.sum_dim_intlist(1, true, None);
    let shares = &up * 0.5 / (sum(&up) + 1e-5) + &down * 0.5 / (sum(&down) - 1e-5);
    let found = relevance.flatten(0, -1).unsqueeze(0).matmul(&shares).squeeze_dim(0);
    let found = &found * (relevance.abs().sum(None) / found.abs().sum(None));
    let sizes: Vec<i64> = inputs.iter().map(|input| input.numel() as i64).collect();
    found.split_with_sizes(sizes, 0).iter().zip(inputs).map(|(own, input)| own.view_as(input)).collect()
}

/// Applies a step at each position separately.
fn at_each(step: Step<'_>, x: &Tensor, relevance: &Tensor) -> Tensor {
    let at = |place| divide(step, &[x.get(place)], &relevance.get(place)).remove(0);
    Tensor::stack(&(0..x.size()[0]).map(at).collect::<Vec<_>>(), 0)
}

/// Forward steps with the weights of a model.
struct Steps<'a> {
    weights: &'a Weights,
    activate: fn(&Tensor) -> Tensor,
    /// Prefix of the relative-position embeddings and their norm.
    distances: Option<&'a str>,
}

enum Reads {
    /// The bias of self-attention.
    Own(Tensor),
    /// The encoder states.
    Memory(Tensor),
    Nothing,
}

/// A sublayer. `maps` starts with the maps of attention, if the sublayer has any.
struct Sublayer {
    reads: Reads,
    maps: Vec<String>,
    norm: String,
    x: Tensor,
    parts: Vec<Tensor>, // queries, keys and values, [heads, position, D_HEAD]
    inner: Tensor,      // input of the last map
    added: Tensor,
}

fn by_head(x: &Tensor) -> Tensor {
    x.unflatten(1, [-1, D_HEAD]).transpose(0, 1)
}

fn joined(x: &Tensor) -> Tensor {
    x.transpose(0, 1).flatten(1, 2)
}

impl Steps<'_> {
    fn weight(&self, name: &str) -> Tensor {
        self.weights.get(name).unwrap()
    }

    /// Returns the concatenated weights and biases of linear maps that are treated as one.
    fn parts(&self, names: &[String]) -> [Tensor; 2] {
        ["weight", "bias"].map(|part| {
            let parts = names.iter().map(|name| self.weight(&format!("{name}.{part}")));
            Tensor::cat(&parts.collect::<Vec<_>>(), 0)
        })
    }

    fn map(&self, name: &str, x: &Tensor) -> Tensor {
        let [weight, bias] = self.parts(&[name.to_owned()]);
        x.linear(&weight, Some(bias))
    }

    fn linear(&self, names: &[String], x: &Tensor, relevance: &Tensor) -> Tensor {
        let [weight, bias] = self.parts(names);
        at_each(&|x| weight.matmul(&x[0]) + &bias, x, relevance)
    }

    fn norm(&self, name: &str, x: &Tensor) -> Tensor {
        let [weight, bias] = self.parts(&[name.to_owned()]);
        x.layer_norm(weight.size(), Some(&weight), Some(&bias), EPSILON, false)
    }

    /// Returns attention scores with position terms: He et al. (2021), Equation 4.
    fn scores(&self, maps: &[String], query: &Tensor, key: &Tensor) -> Tensor {
        let content = query.matmul(&key.transpose(-2, -1));
        let Some(prefix) = self.distances else { return content / (D_HEAD as f64).sqrt() };
        let table = self
            .norm(&format!("{prefix}.LayerNorm"), &self.weight(&format!("{prefix}.rel_embeddings.weight")));
        let places = Tensor::arange(query.size()[1], (Kind::Int64, Device::Cpu));
        let rows = (places.unsqueeze(1) - &places + 8).flatten(0, 1); // distances below 4 have a bucket each
        let at = |map: &str| {
            by_head(&self.map(map, &table)).index_select(1, &rows).unflatten(1, [places.size()[0], -1])
        };
        let to_position = (query.unsqueeze(2) * at(&maps[1])).sum_dim_intlist(-1, false, None);
        let to_content = (key.unsqueeze(1) * at(&maps[0])).sum_dim_intlist(-1, false, None);
        (content + to_position + to_content) / (3.0 * D_HEAD as f64).sqrt()
    }

    fn attended(&self, sublayer: (&Reads, &[String]), parts: &[Tensor]) -> Tensor {
        let scores = self.scores(sublayer.1, &parts[0], &parts[1]);
        let scores = if let Reads::Own(bias) = sublayer.0 { scores + bias } else { scores };
        scores.softmax(-1, Kind::Double).matmul(&parts[2])
    }

    fn up(&self, reads: Reads, maps: Vec<String>, norm: String, x: &Tensor) -> Sublayer {
        let (parts, inner) = if let Reads::Nothing = reads {
            (vec![], (self.activate)(&self.map(&maps[0], x)))
        } else {
            let memory = if let Reads::Memory(memory) = &reads { memory } else { x };
            let parts =
                [x, memory, memory].into_iter().zip(&maps).map(|(x, name)| by_head(&self.map(name, x)));
            let parts: Vec<Tensor> = parts.collect();
            let context = joined(&self.attended((&reads, &maps), &parts));
            (parts, context)
        };
        let added = self.map(maps.last().unwrap(), &inner);
        Sublayer { reads, maps, norm, x: x.shallow_clone(), parts, inner, added }
    }

    fn output(&self, sublayer: &Sublayer) -> Tensor {
        self.norm(&sublayer.norm, &(&sublayer.x + &sublayer.added))
    }

    /// Returns the relevance of the input of the last map, of `x` and, for cross-attention, of the memory.
    fn down(&self, sublayer: &Sublayer, relevance: &Tensor) -> [Tensor; 3] {
        let Sublayer { reads, maps, norm, x, parts, inner, added } = sublayer;
        let of_sum = at_each(&|x| self.norm(norm, &x[0]), &(x + added), relevance);
        let terms =
            divide(&|terms| &terms[0] + &terms[1], &[x.shallow_clone(), added.shallow_clone()], &of_sum);
        let (first, last) = maps.split_at(maps.len() - 1);
        let of_inner = self.linear(last, inner, &terms[1]);
        let of_parts = || {
            let found = divide(&|parts| self.attended((reads, maps), parts), parts, &by_head(&of_inner));
            found.iter().map(joined).collect::<Vec<_>>()
        };
        match reads {
            Reads::Nothing => {
                let of_x = self.linear(first, x, &of_inner);
                [of_inner, &terms[0] + of_x, Tensor::new()]
            }
            Reads::Own(_) => {
                let of_x = self.linear(first, x, &Tensor::cat(&of_parts(), 1));
                [of_inner, &terms[0] + of_x, Tensor::new()]
            }
            Reads::Memory(memory) => {
                let parts = of_parts();
                let of_x = self.linear(&first[..1], x, &parts[0]);
                let of_memory = self.linear(&first[1..], memory, &Tensor::cat(&parts[1..], 1));
                let factor = terms[1].abs().sum(None) / (of_x.abs().sum(None) + of_memory.abs().sum(None));
                [of_inner, &terms[0] + of_x * &factor, of_memory * factor]
            }
        }
    }
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let gap = (found - expected).abs() / expected.abs().max(1.0);
        assert!(gap < 1e-9, "{what}: {found} instead of {expected}");
    }
}

/// Compares a module's heads with the relevance of its head outputs, for one target position.
fn assert_heads(found: &Relevance, (attention, layer, target): (Attention, usize, usize), context: &Tensor) {
    let sums = by_head(context).sum_dim_intlist([1_i64, 2].as_slice(), false, None);
    let expected = Vec::<f64>::try_from(sums).unwrap();
    let size: f64 = expected.iter().map(|own| own.abs()).sum();
    for (head, expected) in expected.into_iter().enumerate() {
        let id = HeadId::from_index(attention, layer, head);
        let what = format!("{id}, target {target}");
        let found = [found.heads[&id][target], found.shares[&id][target]];
        assert_close(&found, &[expected, expected / size], &what);
    }
}

fn names(prefix: &str, parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| format!("{prefix}.{part}")).collect()
}

/// Relevance also reaches queries and keys through products with relative-position embeddings.
#[test]
fn relevance_in_a_classifier_matches_explicit_jacobians() {
    let model = classifier();
    let steps =
        Steps { weights: model.weights(), activate: |x| x.gelu("none"), distances: Some("deberta.encoder") };
    let texts = model.batch(&[(&[3, 9, 4, 1], &[0; 4])]).unwrap();
    let mut x = no_grad(|| model.embed(&texts, &ModelDropout::OFF).squeeze_dim(0));
    let mut sublayers = Vec::new();
    for layer in 0..2 {
        let at = format!("deberta.encoder.layer.{layer}");
        let maps = ["self.query_proj", "self.key_proj", "self.value_proj", "output.dense"];
        let attention = names(&format!("{at}.attention"), &maps);
        let open = Tensor::zeros([1], DOUBLE);
        sublayers.push(steps.up(Reads::Own(open), attention, format!("{at}.attention.output.LayerNorm"), &x));
        x = steps.output(&sublayers[2 * layer]);
        let fed = names(&at, &["intermediate.dense", "output.dense"]);
        sublayers.push(steps.up(Reads::Nothing, fed, format!("{at}.output.LayerNorm"), &x));
        x = steps.output(&sublayers[2 * layer + 1]);
    }
    let first = x.narrow(0, 0, 1);
    let pooled = steps.map("pooler.dense", &first).gelu("none");
    let logits = steps.map("classifier", &pooled);
    let expected = no_grad(|| model.forward(&texts, &model.open(), &ModelDropout::OFF));
    assert!((&logits - expected).abs().max().double_value(&[]) < 1e-12, "steps match the model");

    let batch = LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64]) };
    let found = model.relevance(&batch).unwrap();
    let start = Tensor::zeros([1, 3], DOUBLE).index_fill(1, &logits.argmax(1, false), 1.0);
    let of_pooled = steps.linear(&["classifier".to_owned()], &pooled, &start);
    let of_first = steps.linear(&["pooler.dense".to_owned()], &first, &of_pooled);
    let mut relevance = Tensor::cat(&[of_first, Tensor::zeros([3, 6], DOUBLE)], 0);
    for (place, sublayer) in sublayers.iter().enumerate().rev() {
        let [context, of_x, _] = steps.down(sublayer, &relevance);
        if let Reads::Own(_) = sublayer.reads {
            assert_heads(&found, (Attention::SelfAttention, place / 2, 0), &context);
        }
        relevance = of_x;
    }
    assert_close(&found.left, &[relevance.sum(None).double_value(&[])], "left");
    assert_close(&found.left, &[1.0], "conserved");
}

/// Returns the sublayers of a Marian layer.
fn marian_layer(
    steps: &Steps<'_>,
    (side, layer): (&str, usize),
    bias: &Tensor,
    memory: Option<&Tensor>,
    x: &Tensor,
) -> Vec<Sublayer> {
    let at = format!("model.{side}.layers.{layer}");
    let projections =
        |name: &str| names(&format!("{at}.{name}"), &["q_proj", "k_proj", "v_proj", "out_proj"]);
    let own = Reads::Own(bias.shallow_clone());
    let mut all = vec![steps.up(own, projections("self_attn"), format!("{at}.self_attn_layer_norm"), x)];
    if let Some(memory) = memory {
        let (maps, norm) = (projections("encoder_attn"), format!("{at}.encoder_attn_layer_norm"));
        all.push(steps.up(Reads::Memory(memory.shallow_clone()), maps, norm, &steps.output(&all[0])));
    }
    let x = steps.output(all.last().unwrap());
    all.push(steps.up(Reads::Nothing, names(&at, &["fc1", "fc2"]), format!("{at}.final_layer_norm"), &x));
    all
}

#[test]
fn relevance_in_a_translator_matches_explicit_jacobians() {
    let model = translator();
    let batch = pair(&model);
    let steps = Steps { weights: model.weights(), activate: Tensor::silu, distances: None };
    let table = steps.weight("model.shared.weight");
    let embed = |ids: &Tensor, length: i64| {
        let words = Tensor::embedding(&table, ids, -1, false, false).squeeze_dim(0) * 6_f64.sqrt();
        words + positions(length)
    };
    let stack = |side: &str, mut x: Tensor, bias: &Tensor, memory: Option<&Tensor>| {
        let mut layers = Vec::new();
        for layer in 0..2 {
            layers.push(marian_layer(&steps, (side, layer), bias, memory, &x));
            x = steps.output(layers[layer].last().unwrap());
        }
        (layers, x)
    };
    let open = Tensor::zeros([1], DOUBLE);
    let (encoder, memory) = stack("encoder", embed(&batch.source.ids, 4), &open, None);
    let past = core_masking::causal_bias(3, DOUBLE).squeeze_dim(0);
    let (decoder, y) = stack("decoder", embed(&batch.decoder_input, 3), &past, Some(&memory));
    let gates = model.open();
    let states = no_grad(|| {
        let memory = model.encode(&batch.source, &gates, &ModelDropout::OFF);
        model.decode(&batch.decoder_input, &memory, &batch.source.bias, &gates, &ModelDropout::OFF)
    });
    let gap = (&y - states.squeeze_dim(0)).abs().max().double_value(&[]);
    assert!(gap < 1e-12, "steps match the model");

    let found = model.relevance(&batch).unwrap();
    let bias = steps.weight("final_logits_bias").view([-1]);
    let tops: Vec<i64> = Vec::try_from(y.linear(&table, Some(&bias)).argmax(-1, false)).unwrap();
    for (target, &top) in tops.iter().enumerate() {
        let (row, own_bias, one) = (table.get(top), bias.get(top), Tensor::ones([1], DOUBLE));
        let start = divide(&|h| row.dot(&h[0]) + &own_bias, &[y.get(target as i64)], &one).remove(0);
        let at = Tensor::zeros([3, 6], DOUBLE);
        at.get(target as i64).copy_(&start);
        let of_memory = memory.zeros_like();
        let follow = |layers: &[Vec<Sublayer>], own: Attention, mut relevance: Tensor| {
            for (layer, sublayers) in layers.iter().enumerate().rev() {
                for sublayer in sublayers.iter().rev() {
                    let [context, of_x, more] = steps.down(sublayer, &relevance);
                    relevance = of_x;
                    match sublayer.reads {
                        Reads::Nothing => {}
                        Reads::Own(_) => assert_heads(&found, (own, layer, target), &context),
                        Reads::Memory(_) => {
                            let _ = of_memory.shallow_clone().g_add_(&more);
                            assert_heads(&found, (Attention::EncDec, layer, target), &context);
                        }
                    }
                }
            }
            relevance.sum(None).double_value(&[])
        };
        let of_target = follow(&decoder, Attention::DecDec, at);
        let left = of_target + follow(&encoder, Attention::EncEnc, of_memory.copy());
        assert_close(&[found.left[target], left], &[left, 1.0], "left");
    }
    assert_eq!(found.left.len(), 3, "three target positions");
}

/// Marian's sinusoids: all sines first, then all cosines.
fn positions(length: i64) -> Tensor {
    let angle = |at: i64| (at / 3) as f64 / 10_000_f64.powf((at % 3) as f64 / 3.0);
    let angles = Tensor::from_slice(&(0..length * 3).map(angle).collect::<Vec<f64>>()).view([length, 3]);
    Tensor::cat(&[angles.sin(), angles.cos()], 1)
}

/// A module without heads receives no relevance; all of it stays in the residual stream.
#[test]
fn relevance_passes_through_a_layer_without_heads() {
    let model = translator();
    let heads: HeadSet = "enc-enc:2:1+enc-enc:2:2".parse().unwrap();
    let cut = model.without_heads(&heads, Removal::Cut).unwrap();
    let found = cut.relevance(&pair(&cut)).unwrap();
    assert_eq!(found.heads.len(), 10);
    assert!(found.left.iter().all(|left| (0.0..=1.0 + 1e-9).contains(left)), "{:?}", found.left);
    assert!(found.heads.values().flatten().all(|relevance| relevance.is_finite()));
}
