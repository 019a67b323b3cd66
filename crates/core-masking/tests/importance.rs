//! Properties that rankings of heads must have in any model, tested on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod loud;

use std::collections::BTreeMap;

use core_masking::classifier::LabelledBatch;
use core_masking::importance::Measured;
use core_masking::loss::PairBatch;
use core_masking::{
    Attention, Classifier, ClassifierConfig, GatedModel, Gates, HeadId, HeadLayout, HeadMeans, HeadScores,
    HeadSet, Measure, ModelDropout, Translator, TranslatorConfig, Weights,
};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);
const END: u32 = 0;
const PAD: u32 = 1;

/// A model with examples of different lengths, which can be batched in any combination.
trait Fixture {
    fn layout(&self) -> HeadLayout;
    fn examples(&self) -> usize;
    /// Returns the loss of each of these examples, `[batch]`.
    fn losses(&self, rows: &[usize], gates: &Gates) -> Tensor;
    fn measure_at(&self, rows: &[usize], gates: &Gates, measures: &[Measure]) -> Measured;

    fn measure(&self, rows: &[usize], measures: &[Measure]) -> Measured {
        self.measure_at(rows, &Gates::open(&self.layout(), OPTIONS), measures)
    }
}

struct Texts {
    model: Classifier,
    texts: Vec<(Vec<u32>, Vec<u32>)>,
}

/// 3 layers of 4 heads of width 5, 23 words, 13 positions, one or more outputs; weights are large enough for heads to matter.
fn classifier(outputs: usize) -> Texts {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
        "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.4,
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    let labels = ["a", "b", "c"].map(str::to_owned);
    let model = Classifier::random(config.with_labels(&labels[..outputs]), 3, OPTIONS).unwrap();
    let text = |length: u32| (0..length).map(|place| (1 + (length * 7 + place * 5) % 22, place % 2)).unzip();
    Texts { model, texts: [5, 13, 1, 8, 11].map(text).to_vec() }
}

impl Texts {
    fn batch(&self, rows: &[usize]) -> LabelledBatch {
        let texts: Vec<(&[u32], &[u32])> =
            rows.iter().map(|&row| (&self.texts[row].0[..], &self.texts[row].1[..])).collect();
        let labels: Vec<i64> = rows.iter().map(|&row| row as i64 % 3).collect();
        LabelledBatch { inputs: self.model.batch(&texts).unwrap(), labels: Tensor::from_slice(&labels) }
    }
}

impl Fixture for Texts {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn examples(&self) -> usize {
        self.texts.len()
    }

    fn losses(&self, rows: &[usize], gates: &Gates) -> Tensor {
        self.model.losses(&self.batch(rows), gates, &ModelDropout::OFF)
    }

    fn measure_at(&self, rows: &[usize], gates: &Gates, measures: &[Measure]) -> Measured {
        self.model.measure(&self.batch(rows), gates, &measures.iter().copied().collect())
    }
}

struct Sentences {
    model: Translator,
    sources: Vec<Vec<u32>>,
    targets: Vec<Vec<u32>>,
}

/// An encoder of 2 layers with 3 heads, a decoder of 3 layers with 2 heads; each sentence ends with the end token.
fn translator() -> Sentences {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 23, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 3, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 10, "activation_function": "swish", "max_position_embeddings": 20,
        "scale_embedding": true, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD,
    });
    let config: TranslatorConfig = serde_json::from_value(json).unwrap();
    let sentence = |length: u32, step: u32| {
        (0..length).map(|place| 2 + (length * 3 + place * step) % 21).chain([END]).collect()
    };
    Sentences {
        model: loud::translator(config, 3),
        sources: [4, 9, 0, 7].map(|length| sentence(length, 5)).to_vec(),
        targets: [6, 5, 3, 0].map(|length| sentence(length, 4)).to_vec(),
    }
}

impl Sentences {
    fn batch(&self, rows: &[usize]) -> PairBatch {
        fn side<'a>(all: &'a [Vec<u32>], rows: &[usize]) -> Vec<&'a [u32]> {
            rows.iter().map(|&row| all[row].as_slice()).collect()
        }
        let (sources, targets) = (side(&self.sources, rows), side(&self.targets, rows));
        PairBatch::new(&self.model, &sources, &targets)
    }
}

impl Fixture for Sentences {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn examples(&self) -> usize {
        self.sources.len()
    }

    fn losses(&self, rows: &[usize], gates: &Gates) -> Tensor {
        self.model.losses(&self.batch(rows), gates, &ModelDropout::OFF)
    }

    fn measure_at(&self, rows: &[usize], gates: &Gates, measures: &[Measure]) -> Measured {
        self.model.measure(&self.batch(rows), gates, &measures.iter().copied().collect())
    }
}

fn fixtures() -> [Box<dyn Fixture>; 3] {
    [Box::new(classifier(3)), Box::new(classifier(1)), Box::new(translator())]
}

fn all_rows(fixture: &dyn Fixture) -> Vec<usize> {
    (0..fixture.examples()).collect()
}

fn assert_close(found: &HeadScores, expected: &HeadScores, tolerance: f64, what: &str) {
    assert_eq!(found.iter().len(), expected.iter().len(), "{what}");
    for ((head, found), (_, expected)) in found.iter().zip(expected.iter()) {
        let gap = (found - expected).abs();
        assert!(gap < tolerance, "{what} of {head} is {found}, not {expected}: {gap:e}");
    }
}

/// Returns gates of one head at `value` in all rows, all others open.
fn gates_with(layout: &HeadLayout, id: HeadId, value: f64) -> Gates {
    let mut stacked = Gates::open(layout, OPTIONS).stacked();
    let layer = stacked.get_mut(&id.attention()).unwrap().get(id.layer_index() as i64); // [1, heads]
    let _ = layer.narrow(1, id.head_index() as i64, 1).fill_(value);
    Gates::from_stacked(&stacked)
}

fn all_measures() -> Vec<Measure> {
    // translators and classifiers have no choices of two
    Measure::of_passes().filter(|&measure| measure != Measure::LogitAttribution).collect()
}

/// Mean over examples of |L(ξ_h = 1 + ε) - L(ξ_h = 1 - ε)| / 2ε.
#[test]
fn importance_is_the_finite_difference_of_the_loss() {
    for fixture in fixtures() {
        let (layout, rows) = (fixture.layout(), all_rows(fixture.as_ref()));
        let step = 1e-5;
        let difference = |id: HeadId| {
            let at = |value| fixture.losses(&rows, &gates_with(&layout, id, value));
            ((at(1.0 + step) - at(1.0 - step)) / (2.0 * step)).abs().mean(None).double_value(&[])
        };
        let expected: HeadScores = layout.heads().into_iter().map(|id| (id, difference(id))).collect();
        let found = fixture.measure(&rows, &[Measure::Example]);
        assert_close(&found[&Measure::Example].means(), &expected, 1e-6, "importance");
    }
}

/// (L(ξ_h = 1 - ε) - L(ξ_h = 1 + ε)) / 2ε for each example, with its sign.
#[test]
fn the_first_order_effect_is_the_signed_derivative_of_each_example() {
    for fixture in fixtures() {
        let (layout, rows) = (fixture.layout(), all_rows(fixture.as_ref()));
        let measured = fixture.measure(&rows, &[Measure::FirstOrder]);
        let found = &measured[&Measure::FirstOrder];
        let step = 1e-5;
        for id in layout.heads() {
            let at = |value| fixture.losses(&rows, &gates_with(&layout, id, value));
            let expected = Vec::<f64>::try_from((at(1.0 - step) - at(1.0 + step)) / (2.0 * step)).unwrap();
            let terms = found.terms(id).unwrap();
            for (derivative, expected) in terms.derivatives.iter().zip(&expected) {
                assert!((derivative + expected).abs() < 1e-6, "{id}: {derivative} and {expected}");
            }
            let mean = expected.iter().sum::<f64>() / expected.len() as f64;
            assert!((found.means().get(id).unwrap() - mean).abs() < 1e-6, "{id}");
        }
    }
}

/// For derivatives g by example, importance is the mean of |g| and Fisher information the mean of g²; for a single example it is the square
/// of its importance.
#[test]
fn fisher_is_the_mean_square_of_the_derivatives_of_examples() {
    for fixture in fixtures() {
        let rows = all_rows(fixture.as_ref());
        let squares = |row: &usize| {
            let alone = fixture.measure(&[*row], &[Measure::Example])[&Measure::Example].means();
            alone.map(|_, derivative| derivative * derivative)
        };
        let squares: Vec<HeadScores> = rows.iter().map(squares).collect();
        let expected = squares[0]
            .map(|id, _| squares.iter().filter_map(|of_row| of_row.get(id)).sum::<f64>() / rows.len() as f64);
        let found = fixture.measure(&rows, &[Measure::Fisher])[&Measure::Fisher].means();
        assert_close(&found, &expected, 1e-12, "fisher");
        let example = fixture.measure(&rows, &[Measure::Example])[&Measure::Example].means();
        assert!(found.iter().all(|(id, square)| square > example.get(id).unwrap().powi(2)));
    }
}

/// Kwon et al. (2022), Section 4.1, by hand: one gate for all examples of a batch, whose loss is the mean; batches of 32 and 8 examples,
/// measured in another order and in other batches.
#[test]
fn fisher_by_batches_is_the_square_of_the_derivative_of_their_mean_losses() {
    for fixture in fixtures() {
        let (layout, examples) = (fixture.layout(), fixture.examples());
        let rows: Vec<usize> = (0..40).map(|place| place * place % examples).collect();
        let mut expected = layout.heads().into_iter().map(|id| (id, 0.0)).collect::<HeadScores>();
        for batch in rows.chunks(32) {
            let leaf = |gates: Tensor| gates.copy().set_requires_grad(true);
            let open = Gates::open(&layout, OPTIONS).stacked();
            let leaves: BTreeMap<_, _> = open.into_iter().map(|(kind, gates)| (kind, leaf(gates))).collect();
            fixture.losses(batch, &Gates::from_stacked(&leaves)).mean(None).backward();
            let square = |id: HeadId| {
                let at = [id.layer_index() as i64, 0, id.head_index() as i64];
                leaves[&id.attention()].grad().double_value(&at).powi(2)
            };
            expected = expected.map(|id, sum| sum + square(id));
        }
        let (mut order, mut found) = ((0..40).rev().collect::<Vec<usize>>(), HeadMeans::default());
        order.rotate_left(7);
        for places in order.chunks(11) {
            let rows: Vec<usize> = places.iter().map(|&place| rows[place]).collect();
            found.merge(&fixture.measure(&rows, &[Measure::FisherBatches])[&Measure::FisherBatches]);
        }
        let found = found.of_split(Measure::FisherBatches, &order).means();
        let largest = expected.iter().map(|(_, score)| score).fold(0.0, f64::max);
        assert_close(&found, &expected, 1e-12 * largest, "fisher by batches");
    }
}

/// Norm over channels of the root of the sum over examples of squared means over positions, computed from single examples, without padding.
#[test]
fn the_activation_norm_is_that_of_what_is_read_of_a_head() {
    let fixture = classifier(3);
    let rows = all_rows(&fixture);
    let contexts = |&row: &usize| {
        fixture.model.contexts(&fixture.batch(&[row]), Gates::open(&fixture.layout(), OPTIONS))
    };
    let contexts: Vec<_> = rows.iter().map(contexts).collect();
    let norm = |id: HeadId| {
        let of_channels = contexts.iter().map(|of_row| {
            let own = of_row[&id.module()].get(0).get(id.head_index() as i64); // [query, d_head]
            own.abs().mean_dim([0_i64].as_slice(), false, None).square()
        });
        of_channels.sum::<Tensor>().sqrt().norm().double_value(&[])
    };
    let expected = fixture.layout().heads().into_iter().map(|id| (id, norm(id))).collect();
    let found = fixture.measure(&rows, &[Measure::ActivationNorm])[&Measure::ActivationNorm].clone();
    let found = found.of_split(Measure::ActivationNorm, &rows).means();
    assert_close(&found, &expected, 1e-12, "activation norm");
}

/// With zero feed-forward layers, a layer's output is its attention sublayer's output, up to the epsilon of one more norm.
#[test]
fn similarity_is_the_cosine_around_a_module() {
    let Texts { model, texts } = classifier(3);
    let silent = |(name, tensor): (&str, &Tensor)| {
        let is_fed = name.contains(".output.dense") && !name.contains("attention");
        (name.to_owned(), if is_fed { tensor.zeros_like() } else { tensor.shallow_clone() })
    };
    let weights = Weights::from_tensors(model.weights().iter().map(silent));
    let fixture = Texts { model: Classifier::new(model.config().clone(), weights).unwrap(), texts };
    let (open, rows) = (Gates::open(&fixture.layout(), OPTIONS), all_rows(&fixture));
    let (mut sums, mut positions) = ([0.0; 3], 0);
    for &row in &rows {
        let batch = fixture.batch(&[row]).inputs;
        let mut x = fixture.model.embed(&batch, &ModelDropout::OFF); // [1, position, d_model]
        positions += x.size()[1];
        for (layer, sum) in sums.iter_mut().enumerate() {
            let behind = fixture.model.layer(layer, &x, &batch, &open, &ModelDropout::OFF);
            *sum += Tensor::cosine_similarity(&x, &behind, 2, 1e-300).sum(None).double_value(&[]);
            x = behind;
        }
    }
    let found = fixture.measure(&rows, &[Measure::ModuleSimilarity])[&Measure::ModuleSimilarity].means();
    let expected = found.map(|id, _| sums[id.layer_index()] / positions as f64);
    assert_close(&found, &expected, 1e-9, "similarity");
    let of_first = found.get(fixture.layout().heads()[0]).unwrap();
    assert!(found.iter().any(|(_, other)| (other - of_first).abs() > 1e-3), "{found:?}");
}

/// Batches of one example have no padding; batches of all examples have.
#[test]
fn neither_batches_nor_their_order_nor_padding_change_a_mean() {
    for fixture in fixtures() {
        let rows = all_rows(fixture.as_ref());
        let together = fixture.measure(&rows, &all_measures());
        let mut apart: Measured = BTreeMap::new();
        for &row in rows.iter().rev() {
            for (measure, means) in fixture.measure(&[row], &all_measures()) {
                apart.entry(measure).or_default().merge(&means);
            }
        }
        for measure in all_measures() {
            let (found, expected) = (apart[&measure].means(), together[&measure].means());
            let is_signed = measure == Measure::FirstOrder;
            let is_fine = |score: f64| score.is_finite() && (score > 0.0 || is_signed);
            assert!(expected.iter().all(|(_, score)| is_fine(score)), "{measure:?}");
            let largest = expected.iter().map(|(_, score)| score.abs()).fold(0.0, f64::max);
            assert_close(&found, &expected, 1e-11 * largest, &format!("{measure:?}"));
        }
    }
}

/// With heads masked, derivatives are taken at those gates, with the masked heads' gates at 0.
#[test]
fn importance_of_a_masked_model_is_that_at_its_gates() {
    for fixture in fixtures() {
        let (layout, rows) = (fixture.layout(), all_rows(fixture.as_ref()));
        let heads = layout.heads();
        let masked: HeadSet = [heads[1], heads[6]].into_iter().collect();
        let leaf = |(attention, gates): (Attention, Tensor)| {
            let size = gates.size();
            let wide = gates.expand([size[0], rows.len() as i64, size[2]], false);
            (attention, wide.copy().set_requires_grad(true))
        };
        let gates = Gates::masking(&layout, std::slice::from_ref(&masked), OPTIONS).unwrap();
        let leaves: BTreeMap<_, _> = gates.stacked().into_iter().map(leaf).collect();
        fixture.losses(&rows, &Gates::from_stacked(&leaves)).sum(None).backward();
        let derivative = |id: HeadId| {
            let of_layer = leaves[&id.attention()].grad().get(id.layer_index() as i64); // [rows, heads]
            of_layer.select(1, id.head_index() as i64).abs().mean(None).double_value(&[])
        };
        let expected: HeadScores = heads.iter().map(|&id| (id, derivative(id))).collect();
        let found = fixture.measure_at(&rows, &gates, &[Measure::Example])[&Measure::Example].means();
        assert_close(&found, &expected, 1e-12, "importance");
        let open = fixture.measure(&rows, &[Measure::Example])[&Measure::Example].means();
        assert_ne!(found, open, "masking must change the others for the test to mean something");
    }
}

/// By the triangle inequality over positions; in the last layer only one position counts, so both are equal.
#[test]
fn absolute_values_of_positions_add_up_to_at_least_that_of_their_sum() {
    let fixture = classifier(3);
    let rows = all_rows(&fixture);
    let found = fixture.measure(&rows, &[Measure::Example, Measure::Token]);
    let tokens: usize = fixture.texts.iter().map(|(ids, _)| ids.len()).sum();
    let (example, token) = (found[&Measure::Example].means(), found[&Measure::Token].means());
    for ((head, example), (_, token)) in example.iter().zip(token.iter()) {
        match head.layer_number() {
            3 => assert!((token - example).abs() < 1e-12, "{head}"),
            _ => assert!(token * tokens as f64 > example * rows.len() as f64, "{head}"),
        }
    }
}

/// Zero queries attend uniformly: n keys have entropy ln n and a maximum weight of 1/n.
#[test]
fn attention_without_preference_is_spread_evenly() {
    let Sentences { model, sources, targets } = translator();
    let silent = |(name, tensor): (&str, &Tensor)| {
        let is_query = name.contains("q_proj");
        (name.to_owned(), if is_query { tensor.zeros_like() } else { tensor.shallow_clone() })
    };
    let weights = Weights::from_tensors(model.weights().iter().map(silent));
    let fixture =
        Sentences { model: Translator::new(model.config().clone(), weights).unwrap(), sources, targets };
    // 5 source tokens, including the end token, and 7 target positions, of which the i-th sees i
    let measures = [Measure::Entropy, Measure::NormalisedEntropy, Measure::Confidence];
    let found = fixture.measure(&[0], &measures);
    let logarithms: f64 = (1..=7).map(|seen| f64::from(seen).ln()).sum();
    let inverses: f64 = (1..=7).map(|seen| 1.0 / f64::from(seen)).sum();
    let expected = |attention| match attention {
        Attention::DecDec => [logarithms / 7.0, 1.0, inverses / 7.0],
        _ => [5.0_f64.ln(), 1.0, 1.0 / 5.0],
    };
    for (index, measure) in measures.into_iter().enumerate() {
        let scores = found[&measure].means();
        let right = scores.map(|head, _| expected(head.attention())[index]);
        assert_close(&scores, &right, 1e-12, &format!("{measure:?}"));
    }
}

/// The third source is the end token alone, so no key counts.
#[test]
fn the_end_symbol_gives_no_confidence() {
    let fixture = translator();
    let found = fixture.measure(&[2], &[Measure::Confidence, Measure::NormalisedEntropy]);
    for (head, confidence) in found[&Measure::Confidence].means().iter() {
        match head.attention() {
            Attention::DecDec => assert!(confidence > 0.25, "{head}: {confidence}"),
            _ => assert_eq!(confidence, 0.0, "{head}"),
        }
    }
    for (head, share) in found[&Measure::NormalisedEntropy].means().iter() {
        assert!((share == 0.0) != (head.attention() == Attention::DecDec), "{head}: {share}");
    }
}
