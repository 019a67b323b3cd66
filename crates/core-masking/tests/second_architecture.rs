//! A second architecture of encoder-decoder models, of parts as in T5: normalisation by the root mean square before each
//! sublayer, no biases, scores that are not divided, and a bias of each head on them by distance. All that is done to heads of
//! translators works on it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod loud;

use std::collections::{BTreeMap, BTreeSet};

use core_masking::attention::{DistanceBias, MultiHeadAttention};
use core_masking::families::ConfigKeys;
use core_masking::layers::{Activation, FeedForward, RmsNorm};
use core_masking::loss::PairBatch;
use core_masking::translator::{
    Architecture, DecoderAttention, EmbeddingNames, EncoderDecoder, Norms, Positions, TranslatorFamily,
};
use core_masking::{
    Attention, BeamSearch, Error, Gate, GatedModel, Gates, HeadSet, Measure, ModelConfig, ModelDropout,
    Projections, Removal, Rule, Stopping, Translator, TranslatorConfig, Weights,
};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);
const REACH: i64 = 3;

static TOY: TranslatorFamily = TranslatorFamily {
    model_type: "toy",
    architecture: "Toy",
    keys: ConfigKeys { entries: &[], defaults: "{}" },
    layers: &Architecture { projections, check: |_| Ok(()), inventory, build },
    embeddings: EmbeddingNames { source: "words", target: "words", output: None, bias: None, copies: &[] },
    separate: None,
    generation: "{}",
    positions: Positions::Nowhere,
    norms: Norms { before: true, of_embeddings: false },
    supported: &[],
    unused: &[],
};

#[derive(Debug)]
struct Toy {
    words: Tensor,
    no_bias: Tensor,
    blocks: BTreeMap<Attention, Vec<Block>>,
    last: BTreeMap<Attention, RmsNorm>,
}

/// An attention module and a feed-forward block.
#[derive(Debug)]
struct Block {
    norms: [RmsNorm; 2],
    attention: MultiHeadAttention,
    feed_forward: FeedForward,
}

fn projections(attention: Attention, layer: usize) -> Projections {
    Projections::new(["q", "k", "v", "o"].map(|map| format!("{attention}.{layer}.{map}")))
}

fn inventory(config: &TranslatorConfig) -> Vec<(String, Vec<i64>)> {
    let (mut all, width) = (Vec::new(), config.d_model);
    let mut add = |name: String, shape: &[i64]| all.push((name, shape.to_vec()));
    for (attention, shape) in config.layout().types() {
        add(format!("{attention}.norm.weight"), &[width]);
        add(format!("{attention}.distances"), &[2 * REACH + 1, shape.heads as i64]);
        for layer in 0..shape.layers {
            let kept = config.layout().module(attention, layer).width();
            let Projections { query, key, value, output } = projections(attention, layer);
            [query, key, value].into_iter().for_each(|name| add(name + ".weight", &[kept, width]));
            add(output + ".weight", &[width, kept]);
            add(format!("{attention}.{layer}.up.weight"), &[10, width]);
            add(format!("{attention}.{layer}.down.weight"), &[width, 10]);
            (0..2).for_each(|norm| add(format!("{attention}.{layer}.{norm}norm.weight"), &[width]));
        }
    }
    all
}

fn build(config: &TranslatorConfig, weights: &Weights) -> Result<Box<dyn EncoderDecoder>, Error> {
    let buckets = Tensor::arange(2 * REACH + 1, (Kind::Int64, Device::Cpu));
    let norm = |name: String| RmsNorm::new(weights, &name, 1e-6);
    let block = |attention: Attention, layer: usize| {
        let (heads, name) = (config.layout().module(attention, layer), format!("{attention}.{layer}"));
        let by_bucket = weights.get(&format!("{attention}.distances"))?;
        let bias = DistanceBias { by_bucket, buckets: buckets.shallow_clone() };
        let module = MultiHeadAttention::new(weights, &projections(attention, layer), &heads)?;
        let maps = [&*format!("{name}.up"), &format!("{name}.down")];
        Ok(Block {
            norms: [norm(format!("{name}.0norm"))?, norm(format!("{name}.1norm"))?],
            attention: module.with_scores(1.0, (attention != Attention::EncDec).then_some(bias)),
            feed_forward: FeedForward::new(weights, &maps, Activation::Relu)?,
        })
    };
    let layout = config.layout();
    let blocks = |(attention, shape): (Attention, core_masking::LayerShape)| {
        Ok((attention, (0..shape.layers).map(|layer| block(attention, layer)).collect::<Result<_, Error>>()?))
    };
    let last = |(attention, _)| Ok::<_, Error>((attention, norm(format!("{attention}.norm"))?));
    let words = weights.get("words")?;
    Ok(Box::new(Toy {
        no_bias: words.new_zeros([words.size()[0]], (words.kind(), words.device())),
        blocks: layout.types().map(blocks).collect::<Result<_, Error>>()?,
        last: layout.types().map(last).collect::<Result<_, Error>>()?,
        words,
    }))
}

impl Block {
    /// Attention to what enters, normalised.
    fn attended(&self, x: &Tensor, attend: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        x + attend(&self.norms[0].forward(x))
    }

    /// The feed-forward block.
    fn fed(&self, x: &Tensor) -> Tensor {
        x + self.feed_forward.forward(&self.norms[1].forward(x))
    }
}

impl EncoderDecoder for Toy {
    fn embed_source(&self, ids: &Tensor) -> Tensor {
        Tensor::embedding(&self.words, ids, -1, false, false)
    }

    fn embed_target(&self, ids: &Tensor, _: i64) -> Tensor {
        self.embed_source(ids)
    }

    fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let block = &self.blocks[&Attention::EncEnc][layer];
        let attention = &block.attention;
        let attended = block.attended(x, |x| {
            attention.forward(x, x, &attention.with_distances(bias), gate, &dropout.attention)
        });
        block.fed(&gate.passing(x, attended))
    }

    fn encoder_states(&self, x: Tensor) -> Tensor {
        self.last[&Attention::EncEnc].forward(&x)
    }

    fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attend: &mut DecoderAttention<'_>,
        _: &ModelDropout,
    ) -> Tensor {
        let [target, source] = [Attention::DecDec, Attention::EncDec].map(|kind| &self.blocks[&kind][layer]);
        let attended = target.attended(x, |x| attend.to_target(layer, &target.attention, x));
        let x = target.fed(&attend.passing((Attention::DecDec, layer), x, attended));
        let attended = source.attended(&x, |x| attend.to_source(layer, &source.attention, x));
        source.fed(&attend.passing((Attention::EncDec, layer), &x, attended))
    }

    fn decoder_states(&self, x: Tensor) -> Tensor {
        self.last[&Attention::DecDec].forward(&x)
    }

    fn module(&self, attention: Attention, layer: usize) -> &MultiHeadAttention {
        &self.blocks[&attention][layer].attention
    }

    fn feed_forward_multiply_adds(&self) -> [u64; 2] {
        let of = |attention| self.blocks[&attention][0].feed_forward.multiply_adds();
        [of(Attention::EncEnc), of(Attention::EncDec) + of(Attention::DecDec)]
    }

    fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.words, &self.no_bias)
    }
}

fn toy() -> Translator {
    let config: TranslatorConfig = serde_json::from_value(serde_json::json!({
        "model_type": "toy", "vocab_size": 23, "d_model": 12, "encoder_layers": 2, "encoder_attention_heads": 3,
        "encoder_ffn_dim": 10, "decoder_layers": 3, "decoder_attention_heads": 2, "decoder_ffn_dim": 10,
        "activation_function": "relu", "max_position_embeddings": 20, "pad_token_id": 1, "eos_token_id": 0,
        "decoder_start_token_id": 1,
    }))
    .unwrap();
    loud::translator(TranslatorConfig { family: &TOY, ..config }, 4)
}

const SOURCES: [&[u32]; 3] = [&[5, 9, 22, 7, 13, 0], &[4, 0], &[8, 3, 17, 0]];

fn losses(model: &Translator, gates: &Gates) -> Tensor {
    let batch = PairBatch::new(model, &SOURCES, &[&[4, 6, 3, 11, 9, 0], &[9, 0], &[2, 21, 0]]);
    tch::no_grad(|| model.losses(&batch, gates, &ModelDropout::OFF))
}

fn masking(model: &Translator, heads: &str) -> Gates {
    Gates::masking(&model.layout(), &[heads.parse().unwrap()], model.options()).unwrap()
}

fn gap(one: &Tensor, other: &Tensor) -> f64 {
    (one - other).abs().max().double_value(&[])
}

const SETS: [&str; 4] =
    ["", "enc-enc:1:2+dec-dec:2:1", "enc-dec:3:1+dec-dec:1:1+dec-dec:1:2", "enc-enc:2:1+enc-dec:1:2"];

#[test]
fn masked_and_removed_heads_are_the_same() {
    let model = toy();
    model.check_gates().unwrap();
    for set in &SETS[1..] {
        let masked = losses(&model, &masking(&model, set));
        let cut = model.without_heads(&set.parse().unwrap(), Removal::Cut).unwrap();
        let open = Gates::open(&cut.layout(), OPTIONS);
        assert!(gap(&masked, &losses(&cut, &open)) < 1e-12, "{set}");
        assert!(gap(&masked, &losses(&model, &Gates::open(&model.layout(), OPTIONS))) > 1e-3, "{set}");
    }
}

#[test]
fn a_half_open_gate_is_the_midpoint() {
    let model = toy();
    let layers = build(model.config(), model.weights()).unwrap();
    let (module, x) = (layers.module(Attention::DecDec, 1), Tensor::randn([2, 5, 12], OPTIONS));
    let bias = module.with_distances(&core_masking::causal_bias(5, OPTIONS));
    let run = |gate: f64| {
        module.forward(
            &x,
            &x,
            &bias,
            &Tensor::from_slice(&[gate, 1.0]).unsqueeze(0),
            &core_masking::Dropout::OFF,
        )
    };
    assert!(gap(&(run(0.5) * 2.0), &(run(0.0) + run(1.0))) < 1e-12);
}

/// Central differences of the loss of each example.
#[test]
fn importance_is_the_derivative_of_the_loss() {
    let model = toy();
    let batch = PairBatch::new(&model, &SOURCES, &[&[4, 6, 3, 11, 9, 0], &[9, 0], &[2, 21, 0]]);
    let open = Gates::open(&model.layout(), OPTIONS);
    let measures = BTreeSet::from([Measure::Example, Measure::Entropy]);
    let found = model.measure(&batch, &open, &measures)[&Measure::Example].means();
    assert_eq!(found.iter().len(), 2 * 3 + 2 * 3 * 2);
    for (id, found) in found.iter() {
        let at = |gate: f64| {
            losses(&model, &Gates::of_heads(&model.layout(), &[id], &Tensor::from_slice(&[gate])).unwrap())
        };
        let slopes = (at(1.0 + 1e-5) - at(1.0 - 1e-5)) / 2e-5;
        let expected = slopes.abs().mean(Kind::Double).double_value(&[]);
        assert!((found - expected).abs() < 1e-7, "{id}: {found} and {expected}");
    }
}

/// A module that writes zeros leaves the residual stream as it was, and the others do not.
#[test]
fn a_silent_module_is_like_none() {
    let loud = toy();
    let silent = [Attention::EncEnc, Attention::EncDec, Attention::DecDec].map(|kind| (kind, 1));
    let names = silent.map(|(kind, layer)| projections(kind, layer).output + ".weight");
    let weights = loud.weights().iter().map(|(name, tensor)| {
        let is_silent = names.iter().any(|silent| silent == name);
        (name.to_owned(), if is_silent { tensor.zeros_like() } else { tensor.shallow_clone() })
    });
    let model = Translator::new(loud.config().clone(), Weights::from_tensors(weights)).unwrap();
    let batch = PairBatch::new(&model, &SOURCES, &[&[4, 6, 3, 11, 9, 0], &[9, 0], &[2, 21, 0]]);
    let open = Gates::open(&model.layout(), OPTIONS);
    let found = model.measure(&batch, &open, &BTreeSet::from([Measure::ModuleSimilarity]));
    for (id, similarity) in found[&Measure::ModuleSimilarity].means().iter() {
        assert_eq!((similarity - 1.0).abs() < 1e-12, silent.contains(&id.module()), "{id}: {similarity}");
    }
}

/// In double precision and in single precision, which keep keys and values otherwise: the score of a translation is that of the
/// forward pass, a greedy one takes the likeliest token, and head sets together translate as alone.
#[test]
fn search_agrees_with_the_forward_pass_and_sweeps_with_single_sets() {
    let wide = toy();
    for model in [wide.to_kind(Kind::Float).unwrap(), wide] {
        for beam in [1, 4] {
            let search = BeamSearch {
                beam,
                length_penalty: 1.0,
                stopping: Stopping::Exact,
                length_limit: (0.0, 9),
                rules: None,
            };
            let sets: Vec<HeadSet> = SETS.iter().map(|set| set.parse().unwrap()).collect();
            let variants = model.variants(&sets, false).unwrap();
            let (swept, _) = search.sweep(&model, &SOURCES, &variants, 3, None, &|| 2).unwrap();
            for (set, swept) in SETS.iter().zip(swept) {
                let gates = masking(&model, set);
                let alone = search.translate(&model, &SOURCES, &gates).unwrap();
                for ((source, found), swept) in SOURCES.iter().zip(&alone).zip(&swept) {
                    assert_eq!(found.tokens, swept.tokens, "{set}, beam {beam}");
                    let end: &[u32] = if found.tokens.len() == 9 { &[] } else { &[0] };
                    let target = [&found.tokens, end].concat();
                    let batch = PairBatch::new(&model, &[source], &[&target]);
                    let memory = model.encode(&batch.source, &gates, &ModelDropout::OFF);
                    let (start, bias) = (&batch.decoder_input, &batch.source.bias);
                    let hidden = model.decode(start, &memory, bias, &gates, &ModelDropout::OFF);
                    let logits = model.logits(&hidden).squeeze_dim(0).log_softmax(-1, Kind::Double);
                    let labels = batch.labels.view([-1, 1]);
                    match found.score {
                        Some(score) => {
                            let expected =
                                logits.gather(1, &labels, false).mean(Kind::Double).double_value(&[]);
                            assert!((score - expected).abs() < 1e-5, "{set}: {score} and {expected}");
                        }
                        None => {
                            let padding = Tensor::from_slice(&[1_i64]);
                            let likeliest = logits.index_fill(1, &padding, f64::NEG_INFINITY).argmax(1, true);
                            assert_eq!(likeliest, labels, "{set}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn relevance_is_refused() {
    let model = toy();
    let batch = PairBatch::new(&model, &[&[5, 0]], &[&[4, 0]]);
    let refusal = model.relevance(&batch, Rule::Paper).unwrap_err().to_string();
    assert!(refusal.ends_with("and `toy` has others"), "{refusal}");
}
