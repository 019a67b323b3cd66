//! Relevance by its definition: the Jacobian of each step, written out, on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod loud;

use std::collections::BTreeMap;

use core_masking::classifier::LabelledBatch;
use core_masking::loss::PairBatch;
use core_masking::{
    Attention, Classifier, ClassifierConfig, GatedModel, Gates, HeadId, HeadSet, ModelDropout, Relevance,
    Removal, Rule, Translator, TranslatorConfig, Weights,
};
use tch::{Device, Kind, Tensor, no_grad};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);
const RULES: [Rule; 2] = [Rule::Paper, Rule::AlphaBeta];
const D_HEAD: i64 = 3;

/// An encoder of 2 layers with 2 heads of 3, a feed-forward block of 5.
fn classifier() -> Classifier {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 5, "hidden_act": "gelu",
        "max_position_embeddings": 7, "type_vocab_size": 2, "initializer_range": 0.7, "layer_norm_eps": 1e-12,
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    let quiet =
        Classifier::random(config.with_labels(&["a", "b", "c"].map(str::to_owned)), 5, OPTIONS).unwrap();
    let weights = quiet.weights().iter().map(|(name, tensor)| {
        let places = Tensor::arange(tensor.numel() as i64, OPTIONS);
        let noise = (places * 12.9 + name.len() as f64).sin().view_as(tensor) * 0.3;
        (name.to_owned(), tensor + noise)
    });
    Classifier::new(quiet.config().clone(), Weights::from_tensors(weights)).unwrap()
}

fn text(model: &Classifier) -> LabelledBatch {
    let texts = model.batch(&[(&[3, 9, 4, 1], &[0, 0, 1, 1])]).unwrap();
    LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64]) }
}

fn translator() -> Translator {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 13, "d_model": 6, "encoder_layers": 2,
        "encoder_attention_heads": 2, "encoder_ffn_dim": 5, "decoder_layers": 2, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 4, "activation_function": "swish", "max_position_embeddings": 9,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    loud::translator(serde_json::from_value::<TranslatorConfig>(json).unwrap(), 3)
}

fn pair(model: &Translator) -> PairBatch {
    PairBatch::new(model, &[&[5, 9, 2, 0]], &[&[7, 3, 0]])
}

/// Each step's rule by its definition, for one target position.
struct Brute<'a> {
    weights: &'a Weights,
    rule: Rule,
}

type Step<'a> = &'a dyn Fn(&[Tensor]) -> Tensor;

/// `[outputs, inputs]`, all inputs one behind the other.
fn jacobian(step: Step<'_>, inputs: &[Tensor]) -> Tensor {
    let leaves: Vec<Tensor> = inputs.iter().map(|input| input.copy().set_requires_grad(true)).collect();
    let output = step(&leaves).flatten(0, -1);
    let row = |place: i64| {
        let gradients = Tensor::run_backward(&[output.get(place)], &leaves, true, false);
        let flat: Vec<Tensor> =
            gradients
                .iter()
                .zip(&leaves)
                .map(|(gradient, leaf)| {
                    if gradient.defined() {
                        gradient.flatten(0, -1)
                    } else {
                        leaf.zeros_like().flatten(0, -1)
                    }
                })
                .collect();
        Tensor::cat(&flat, 0)
    };
    Tensor::stack(&(0..output.numel() as i64).map(row).collect::<Vec<_>>(), 0)
}

impl Brute<'_> {
    fn weight(&self, name: &str) -> Tensor {
        self.weights.get(name).unwrap()
    }

    /// All inputs of a step as one sample; the paper's rule takes the step as linear.
    fn step(&self, step: Step<'_>, inputs: &[Tensor], relevance: &Tensor) -> Vec<Tensor> {
        let x = Tensor::cat(&inputs.iter().map(|input| input.flatten(0, -1)).collect::<Vec<_>>(), 0);
        let adds = jacobian(step, inputs) * &x;
        let relevance = relevance.flatten(0, -1);
        let sum = |z: &Tensor| z.sum_dim_intlist(1, true, None);
        let found = match self.rule {
            Rule::Paper => relevance.unsqueeze(0).matmul(&(&adds / sum(&adds))),
            Rule::AlphaBeta => {
                let zeros: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
                let z = adds + step(&zeros).flatten(0, -1).unsqueeze(1) / x.numel() as f64;
                let (up, down) = (z.clamp_min(0.0), z.clamp_max(0.0));
                let shares = &up * 0.5 / (sum(&up) + 1e-5) + &down * 0.5 / (sum(&down) - 1e-5);
                let found = relevance.unsqueeze(0).matmul(&shares);
                &found * (relevance.abs().sum(None) / found.abs().sum(None))
            }
        };
        let mut start = 0;
        inputs
            .iter()
            .map(|input| {
                let own = found.squeeze_dim(0).narrow(0, start, input.numel() as i64).view_as(input);
                start += input.numel() as i64;
                own
            })
            .collect()
    }

    /// A step of each position alone.
    fn at_each(&self, step: Step<'_>, x: &Tensor, relevance: &Tensor) -> Tensor {
        let rows =
            (0..x.size()[0]).map(|place| match relevance.get(place).abs().sum(None).double_value(&[]) {
                0.0 => x.get(place).zeros_like(), // nothing to be divided
                _ => self.step(step, &[x.get(place)], &relevance.get(place)).remove(0),
            });
        Tensor::stack(&rows.collect::<Vec<_>>(), 0)
    }

    /// Linear maps that belong together.
    fn linear(&self, names: &[String], x: &Tensor, relevance: &Tensor) -> Tensor {
        let of = |part: &str| {
            let parts: Vec<Tensor> =
                names.iter().map(|name| self.weight(&format!("{name}.{part}"))).collect();
            Tensor::cat(&parts, 0)
        };
        let (weight, bias) = (of("weight"), of("bias"));
        let bias = if self.rule == Rule::Paper { bias.zeros_like() } else { bias };
        self.at_each(&|x| weight.matmul(&x[0]) + &bias, x, relevance)
    }

    fn norm(&self, name: &str, epsilon: f64, x: &Tensor, relevance: &Tensor) -> Tensor {
        let (weight, bias) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        let centred = |x: &Tensor| x - x.mean(None);
        let deviation = |x: &Tensor| (centred(x).square().mean(None) + epsilon).sqrt();
        let rows = (0..x.size()[0]).map(|place| {
            let (x, relevance) = (x.get(place), relevance.get(place));
            if relevance.abs().sum(None).double_value(&[]) == 0.0 {
                return x.zeros_like();
            }
            let constant = deviation(&x);
            let step: Step<'_> = match self.rule {
                Rule::Paper => &|x| centred(&x[0]) / &constant * &weight,
                Rule::AlphaBeta => &|x| centred(&x[0]) / deviation(&x[0]) * &weight + &bias,
            };
            self.step(step, &[x.shallow_clone()], &relevance).remove(0)
        });
        Tensor::stack(&rows.collect::<Vec<_>>(), 0)
    }

    fn residual(&self, x: &Tensor, y: &Tensor, relevance: &Tensor) -> Vec<Tensor> {
        self.step(&|terms| &terms[0] + &terms[1], &[x.shallow_clone(), y.shallow_clone()], relevance)
    }
}

/// Intermediate values of an attention module.
struct Read {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    context: Tensor, // [query, heads * d_head]
    added: Tensor,
}

fn by_head(x: &Tensor) -> Tensor {
    x.unflatten(1, [-1, D_HEAD]).transpose(0, 1)
}

fn joined(x: &Tensor) -> Tensor {
    x.transpose(0, 1).flatten(1, 2)
}

fn attended(parts: &[Tensor], bias: &Tensor) -> Tensor {
    let scores = parts[0].matmul(&parts[1].transpose(-2, -1)) / (D_HEAD as f64).sqrt() + bias;
    scores.softmax(-1, Kind::Double).matmul(&parts[2])
}

impl Brute<'_> {
    fn map(&self, name: &str, x: &Tensor) -> Tensor {
        x.linear(&self.weight(&format!("{name}.weight")), Some(self.weight(&format!("{name}.bias"))))
    }

    fn read(&self, names: &[String; 4], x: &Tensor, memory: &Tensor, bias: &Tensor) -> Read {
        let [q, k, v] =
            [(0, x), (1, memory), (2, memory)].map(|(part, x)| by_head(&self.map(&names[part], x)));
        let context = joined(&attended(&[q.shallow_clone(), k.shallow_clone(), v.shallow_clone()], bias));
        let added = self.map(&names[3], &context);
        Read { q, k, v, bias: bias.shallow_clone(), context, added }
    }

    /// Relevance of the context, of what is attended from and, unless `is_self`, of the memory.
    fn unread(
        &self,
        names: &[String; 4],
        read: &Read,
        [x, memory]: [&Tensor; 2],
        is_self: bool,
        relevance: &Tensor,
    ) -> [Tensor; 3] {
        let of_context = self.linear(&names[3..], &read.context, relevance);
        let target = by_head(&of_context);
        let Read { q, k, v, bias, .. } = read;
        let none = x.zeros_like();
        if self.rule == Rule::Paper {
            let weights =
                (q.matmul(&k.transpose(-2, -1)) / (D_HEAD as f64).sqrt() + bias).softmax(-1, Kind::Double);
            let of_value = self.step(&|v| weights.matmul(&v[0]), &[v.shallow_clone()], &target).remove(0);
            let found = self.linear(&names[2..3], memory, &joined(&of_value));
            return if is_self { [of_context, found, none] } else { [of_context, none, found] };
        }
        let parts = [q, k, v].map(Tensor::shallow_clone);
        let found = self.step(&|parts| attended(parts, bias), &parts, &target);
        let found: Vec<Tensor> = found.iter().map(joined).collect();
        if is_self {
            let all = self.linear(&names[..3], x, &Tensor::cat(&found, 1));
            return [of_context, all, none];
        }
        let of_query = self.linear(&names[..1], x, &found[0]);
        let of_memory = self.linear(&names[1..3], memory, &Tensor::cat(&found[1..], 1));
        let size = (of_query.abs().sum(None) + of_memory.abs().sum(None)) / relevance.abs().sum(None);
        [of_context, of_query / &size, of_memory / &size]
    }
}

/// Names of a layer's tensors.
struct Names {
    own: [String; 4],
    own_norm: String,
    inner: String,
    outer: String,
    norm: String,
}

struct Layer {
    x: Tensor,
    read: Read,
    middle: Tensor,
    fed: Fed,
}

struct Fed {
    active: Tensor,
    added: Tensor,
    output: Tensor,
}

impl Brute<'_> {
    fn normed(&self, name: &str, epsilon: f64, x: &Tensor) -> Tensor {
        let (weight, bias) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        x.layer_norm(weight.size(), Some(&weight), Some(&bias), epsilon, false)
    }

    fn feed(&self, names: &Names, epsilon: f64, activate: fn(&Tensor) -> Tensor, x: &Tensor) -> Fed {
        let active = activate(&self.map(&names.inner, x));
        let added = self.map(&names.outer, &active);
        Fed { output: self.normed(&names.norm, epsilon, &(x + &added)), active, added }
    }

    fn unfeed(&self, names: &Names, epsilon: f64, x: &Tensor, fed: &Fed, relevance: &Tensor) -> Tensor {
        let sum = self.norm(&names.norm, epsilon, &(x + &fed.added), relevance);
        let both = self.residual(x, &fed.added, &sum);
        let of_active = self.linear(std::slice::from_ref(&names.outer), &fed.active, &both[1]);
        &both[0] + self.linear(std::slice::from_ref(&names.inner), x, &of_active)
    }

    fn encode(&self, names: &Names, epsilon: f64, activate: fn(&Tensor) -> Tensor, x: &Tensor) -> Layer {
        let open = Tensor::zeros([1], OPTIONS);
        let read = self.read(&names.own, x, x, &open);
        let middle = self.normed(&names.own_norm, epsilon, &(x + &read.added));
        let fed = self.feed(names, epsilon, activate, &middle);
        Layer { x: x.shallow_clone(), read, middle, fed }
    }

    /// Relevance of the context and of the input.
    fn unencode(&self, names: &Names, epsilon: f64, layer: &Layer, relevance: &Tensor) -> [Tensor; 2] {
        let Layer { x, read, middle, fed } = layer;
        let of_middle = self.unfeed(names, epsilon, middle, fed, relevance);
        let sum = self.norm(&names.own_norm, epsilon, &(x + &read.added), &of_middle);
        let both = self.residual(x, &read.added, &sum);
        let [context, input, _] = self.unread(&names.own, read, [x, x], true, &both[1]);
        [context, input + &both[0]]
    }
}

fn bert_names(layer: usize) -> Names {
    let at = |part: &str| format!("bert.encoder.layer.{layer}.{part}");
    Names {
        own: ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
            .map(at),
        own_norm: at("attention.output.LayerNorm"),
        inner: at("intermediate.dense"),
        outer: at("output.dense"),
        norm: at("output.LayerNorm"),
    }
}

fn marian_names(side: &str, layer: usize) -> Names {
    let at = |part: &str| format!("model.{side}.layers.{layer}.{part}");
    Names {
        own: ["q_proj", "k_proj", "v_proj", "out_proj"].map(|part| at(&format!("self_attn.{part}"))),
        own_norm: at("self_attn_layer_norm"),
        inner: at("fc1"),
        outer: at("fc2"),
        norm: at("final_layer_norm"),
    }
}

/// Sums of a context over positions and neurons, by head.
fn by_head_sums(context: &Tensor) -> Vec<f64> {
    let sums = by_head(context).sum_dim_intlist([1_i64, 2].as_slice(), false, None);
    Vec::try_from(sums).unwrap()
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        let gap = (found - expected).abs() / expected.abs().max(1.0);
        assert!(gap < 1e-6, "{what}: {found} instead of {expected}");
    }
}

fn heads_of(
    found: &BTreeMap<HeadId, Vec<f64>>,
    attention: Attention,
    layer: usize,
    target: usize,
) -> Vec<f64> {
    (0..2).map(|head| found[&HeadId::from_index(attention, layer, head)][target]).collect()
}

#[test]
fn relevance_in_a_classifier_is_that_of_written_out_jacobians() {
    let model = classifier();
    let batch = text(&model);
    for rule in RULES {
        let brute = Brute { weights: model.weights(), rule };
        let gelu: fn(&Tensor) -> Tensor = |x| x.gelu("none");
        let mut x = no_grad(|| model.embed(&batch.inputs, &ModelDropout::OFF).squeeze_dim(0));
        let mut layers = Vec::new();
        for layer in 0..2 {
            let found = brute.encode(&bert_names(layer), 1e-12, gelu, &x);
            x = found.fed.output.shallow_clone();
            layers.push(found);
        }
        let first = x.narrow(0, 0, 1);
        let pooled = brute.map("bert.pooler.dense", &first).tanh();
        let logits = brute.map("classifier", &pooled);
        let open = Gates::open(&model.layout(), OPTIONS);
        let expected = no_grad(|| model.forward(&batch.inputs, &open, &ModelDropout::OFF));
        assert!((&logits - expected).abs().max().double_value(&[]) < 1e-12, "the steps are the model's");

        let top = logits.argmax(1, false).int64_value(&[0]);
        let start = Tensor::zeros([1, 3], OPTIONS).index_fill(1, &Tensor::from_slice(&[top]), 1.0);
        let of_pooled = brute.linear(&["classifier".to_owned()], &pooled, &start);
        let of_first = brute.linear(&["bert.pooler.dense".to_owned()], &first, &of_pooled);
        let mut relevance = Tensor::cat(&[of_first, Tensor::zeros([3, 6], OPTIONS)], 0);
        let found = model.relevance(&batch, rule).unwrap();
        let by_head = found.by_head();
        for layer in (0..2).rev() {
            let [context, input] = brute.unencode(&bert_names(layer), 1e-12, &layers[layer], &relevance);
            let own = heads_of(&by_head, Attention::SelfAttention, layer, 0);
            assert_close(&own, &by_head_sums(&context), &format!("{rule:?}, layer {layer}"));
            relevance = input;
        }
        assert_close(&Vec::try_from(&found.left).unwrap(), &[relevance.sum(None).double_value(&[])], "left");
    }
}

struct Decoded {
    x: Tensor,
    read: Read,
    middle: Tensor,
    cross: Read,
    upper: Tensor,
    fed: Fed,
}

#[test]
fn relevance_in_a_translator_is_that_of_written_out_jacobians() {
    let model = translator();
    let batch = pair(&model);
    let silu: fn(&Tensor) -> Tensor = |x| x.silu();
    let epsilon = 1e-5;
    let cross_names = |layer: usize| {
        ["q_proj", "k_proj", "v_proj", "out_proj"]
            .map(|part| format!("model.decoder.layers.{layer}.encoder_attn.{part}"))
    };
    let cross_norm = |layer: usize| format!("model.decoder.layers.{layer}.encoder_attn_layer_norm");
    let open = Gates::open(&model.layout(), OPTIONS);
    for rule in RULES {
        let brute = Brute { weights: model.weights(), rule };
        let embed = |ids: &Tensor, length: i64| {
            let table = brute.weight("model.shared.weight");
            let words = Tensor::embedding(&table, ids, -1, false, false).squeeze_dim(0) * 6_f64.sqrt();
            words + positions(&model, length)
        };
        let mut x = embed(&batch.source.ids, 4);
        let mut encoder = Vec::new();
        for layer in 0..2 {
            let found = brute.encode(&marian_names("encoder", layer), epsilon, silu, &x);
            x = found.fed.output.shallow_clone();
            encoder.push(found);
        }
        let memory = x;
        let past = core_masking::causal_bias(3, OPTIONS).squeeze_dim(0);
        let mut y = embed(&batch.decoder_input, 3);
        let mut decoder = Vec::new();
        for layer in 0..2 {
            let names = marian_names("decoder", layer);
            let read = brute.read(&names.own, &y, &y, &past);
            let middle = brute.normed(&names.own_norm, epsilon, &(&y + &read.added));
            let cross = brute.read(&cross_names(layer), &middle, &memory, &Tensor::zeros([1], OPTIONS));
            let upper = brute.normed(&cross_norm(layer), epsilon, &(&middle + &cross.added));
            let fed = brute.feed(&names, epsilon, silu, &upper);
            let output = fed.output.shallow_clone();
            decoder.push(Decoded { x: y, read, middle, cross, upper, fed });
            y = output;
        }
        let states = no_grad(|| {
            let memory = model.encode(&batch.source, &open, &ModelDropout::OFF);
            model.decode(&batch.decoder_input, &memory, &batch.source.bias, &open, &ModelDropout::OFF)
        });
        assert!(
            (&y - states.squeeze_dim(0)).abs().max().double_value(&[]) < 1e-12,
            "the steps are the model's"
        );

        let found = model.relevance(&batch, rule).unwrap();
        let by_head = found.by_head();
        let (table, bias) =
            (brute.weight("model.shared.weight"), brute.weight("final_logits_bias").view([-1]));
        let tops: Vec<i64> = Vec::try_from(y.linear(&table, Some(&bias)).argmax(-1, false)).unwrap();
        for (target, &top) in tops.iter().enumerate() {
            let (row, own_bias) = (table.get(top), bias.get(top));
            let logit: Step<'_> = match rule {
                Rule::Paper => &|h| row.dot(&h[0]),
                Rule::AlphaBeta => &|h| row.dot(&h[0]) + &own_bias,
            };
            let one = Tensor::from_slice(&[1.0_f64]);
            let start = brute.step(logit, &[y.get(target as i64)], &one).remove(0);
            let mut relevance = Tensor::zeros([3, 6], OPTIONS);
            relevance.get(target as i64).copy_(&start);
            let mut of_memory = memory.zeros_like();
            for layer in (0..2).rev() {
                let names = marian_names("decoder", layer);
                let Decoded { x, read, middle, cross, upper, fed } = &decoder[layer];
                let of_upper = brute.unfeed(&names, epsilon, upper, fed, &relevance);
                let sum = brute.norm(&cross_norm(layer), epsilon, &(middle + &cross.added), &of_upper);
                let both = brute.residual(middle, &cross.added, &sum);
                let [context, of_query, more] =
                    brute.unread(&cross_names(layer), cross, [middle, &memory], false, &both[1]);
                of_memory += more;
                let own = heads_of(&by_head, Attention::EncDec, layer, target);
                assert_close(
                    &own,
                    &by_head_sums(&context),
                    &format!("{rule:?}, enc-dec {layer}, target {target}"),
                );
                let sum = brute.norm(&names.own_norm, epsilon, &(x + &read.added), &(&both[0] + of_query));
                let both = brute.residual(x, &read.added, &sum);
                let [context, input, _] = brute.unread(&names.own, read, [x, x], true, &both[1]);
                let own = heads_of(&by_head, Attention::DecDec, layer, target);
                assert_close(
                    &own,
                    &by_head_sums(&context),
                    &format!("{rule:?}, dec-dec {layer}, target {target}"),
                );
                relevance = input + &both[0];
            }
            let mut left = relevance.sum(None).double_value(&[]);
            let mut relevance = of_memory;
            for layer in (0..2).rev() {
                let [context, input] =
                    brute.unencode(&marian_names("encoder", layer), epsilon, &encoder[layer], &relevance);
                let own = heads_of(&by_head, Attention::EncEnc, layer, target);
                assert_close(
                    &own,
                    &by_head_sums(&context),
                    &format!("{rule:?}, enc-enc {layer}, target {target}"),
                );
                relevance = input;
            }
            left += relevance.sum(None).double_value(&[]);
            assert_close(&[found.left.double_value(&[target as i64])], &[left], "left");
        }
    }
}

/// Sines and cosines as Marian has them: those of even dimensions first.
fn positions(model: &Translator, length: i64) -> Tensor {
    let width = model.config().d_model;
    let entry = |place: i64| {
        (0..width).map(move |column| {
            let half = width / 2;
            let angle = place as f64 / 10_000_f64.powf(2.0 * (column % half) as f64 / width as f64);
            if column < half { angle.sin() } else { angle.cos() }
        })
    };
    let table: Vec<f64> = (0..length).flat_map(entry).collect();
    Tensor::from_slice(&table).view([length, width])
}

/// The paper's rule hands all of the 1 at each greatest logit down to the embeddings.
#[test]
fn the_papers_rule_conserves_relevance() {
    let (classifier, translator) = (classifier(), translator());
    let of_text = classifier.relevance(&text(&classifier), Rule::Paper).unwrap();
    let of_pair = translator.relevance(&pair(&translator), Rule::Paper).unwrap();
    for left in [&of_text.left, &of_pair.left] {
        for left in Vec::<f64>::try_from(left).unwrap() {
            assert!((left - 1.0).abs() < 1e-6, "{left}");
        }
    }
    assert_eq!(of_pair.left.size(), [3], "three target positions");
}

fn both_rules(of: impl Fn(Rule) -> Relevance) -> Vec<BTreeMap<HeadId, Vec<f64>>> {
    RULES.iter().map(|&rule| of(rule).shares()).collect()
}

/// A layer's shares have absolute values that add up to 1 at each target position.
#[test]
fn shares_are_those_of_the_layer() {
    let model = translator();
    for shares in both_rules(|rule| model.relevance(&pair(&model), rule).unwrap()) {
        for (attention, layer) in [(Attention::EncEnc, 0), (Attention::DecDec, 1), (Attention::EncDec, 1)] {
            for target in 0..3 {
                let sum: f64 =
                    heads_of(&shares, attention, layer, target).iter().map(|share| share.abs()).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{attention} {layer} {target}: {sum}");
            }
        }
    }
}

/// A head without weights in W_o adds nothing, so it has no relevance by the paper's rule, and cutting it out changes nothing
/// for the others.
#[test]
fn a_head_that_adds_nothing_has_no_relevance() {
    let model = translator();
    let head: HeadSet = "enc-enc:2:1".parse().unwrap();
    let zeroed = model.without_heads(&head, Removal::Zeros).unwrap();
    let cut = model.without_heads(&head, Removal::Cut).unwrap();
    let found = zeroed.relevance(&pair(&zeroed), Rule::Paper).unwrap().by_head();
    let of_cut = cut.relevance(&pair(&cut), Rule::Paper).unwrap().by_head();
    let id = head.iter().next().unwrap();
    assert!(found[&id].iter().all(|relevance| relevance.abs() < 1e-12), "{:?}", found[&id]);
    assert!(!of_cut.contains_key(&id) && of_cut.len() + 1 == found.len());
    for (other, expected) in &of_cut {
        assert_close(&found[other], expected, &other.to_string());
    }
}
