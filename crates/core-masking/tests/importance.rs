//! Properties that rankings of heads must have in any model, tested on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use std::collections::BTreeMap;

use core_masking::classifier::LabelledBatch;
use core_masking::importance::Measured;
use core_masking::loss::PairBatch;
use core_masking::{
    Attention, Classifier, GatedModel, Gates, HeadId, HeadLayout, HeadMeans, HeadScores, HeadSet, Measure,
    ModelDropout, Translator, Weights,
};
use random::{DOUBLE, END};
use tch::Tensor;

/// A model with examples of different lengths, which can be batched in any combination.
struct Fixture<M: GatedModel> {
    model: M,
    examples: usize,
    batch: fn(&M, &[usize]) -> M::Examples,
}

/// A fixture, whatever its type of model.
trait Measurable {
    fn layout(&self) -> HeadLayout;
    fn all_rows(&self) -> Vec<usize>;
    /// Returns the loss of each of these examples, `[batch]`.
    fn losses(&self, rows: &[usize], gates: &Gates) -> Tensor;
    fn measure_at(&self, rows: &[usize], gates: &Gates, measures: &[Measure]) -> Measured;

    fn measure(&self, rows: &[usize], measures: &[Measure]) -> Measured {
        self.measure_at(rows, &Gates::open(&self.layout(), DOUBLE), measures)
    }
}

impl<M: GatedModel> Measurable for Fixture<M> {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn all_rows(&self) -> Vec<usize> {
        (0..self.examples).collect()
    }

    fn losses(&self, rows: &[usize], gates: &Gates) -> Tensor {
        self.model.losses(&(self.batch)(&self.model, rows), gates, &ModelDropout::OFF)
    }

    fn measure_at(&self, rows: &[usize], gates: &Gates, measures: &[Measure]) -> Measured {
        self.model.measure(&(self.batch)(&self.model, rows), gates, &measures.iter().copied().collect())
    }
}

/// Returns a classifier with one to three outputs.
fn classifier(outputs: usize) -> Fixture<Classifier> {
    let labels = ["a", "b", "c"].map(str::to_owned);
    let model = Classifier::random(random::bert(0.4).with_labels(&labels[..outputs]), 3, DOUBLE).unwrap();
    Fixture { model, examples: 5, batch: labelled }
}

fn labelled(model: &Classifier, rows: &[usize]) -> LabelledBatch {
    let lengths: Vec<u32> = rows.iter().map(|&row| [5, 13, 1, 8, 11][row]).collect();
    let labels: Vec<i64> = rows.iter().map(|&row| row as i64 % 3).collect();
    LabelledBatch { inputs: random::texts(model, &lengths), labels: Tensor::from_slice(&labels) }
}

fn translator() -> Fixture<Translator> {
    Fixture { model: random::loud(random::marian(23), 3), examples: 4, batch: pairs }
}

/// Each sentence ends with the EOS token.
fn pairs(model: &Translator, rows: &[usize]) -> PairBatch {
    let sentence = |length: u32, step: u32| -> Vec<u32> {
        (0..length).map(|place| 2 + (length * 3 + place * step) % 21).chain([END]).collect()
    };
    let side = |lengths: [u32; 4], step| -> Vec<Vec<u32>> {
        rows.iter().map(|&row| sentence(lengths[row], step)).collect()
    };
    let (sources, targets) = (side([4, 9, 0, 7], 5), side([6, 5, 3, 0], 4));
    let [sources, targets] =
        [&sources, &targets].map(|side| side.iter().map(Vec::as_slice).collect::<Vec<_>>());
    PairBatch::new(model, &sources, &targets)
}

fn fixtures() -> [Box<dyn Measurable>; 3] {
    [Box::new(classifier(3)), Box::new(classifier(1)), Box::new(translator())]
}

/// Sets some tensors to zero, by name.
fn silenced<M: GatedModel>(fixture: Fixture<M>, is_silent: fn(&str) -> bool) -> Fixture<M> {
    let weights = fixture.model.weights().iter().map(|(name, tensor)| {
        (name.to_owned(), if is_silent(name) { tensor.zeros_like() } else { tensor.shallow_clone() })
    });
    let model = M::new(fixture.model.config().clone(), Weights::from_tensors(weights)).unwrap();
    Fixture { model, ..fixture }
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
    let mut stacked = Gates::open(layout, DOUBLE).stacked();
    let layer = stacked.get_mut(&id.attention()).unwrap().get(id.layer_index() as i64); // [1, heads]
    let _ = layer.narrow(1, id.head_index() as i64, 1).fill_(value);
    Gates::from_stacked(&stacked)
}

/// (L(ξ_h = 1 - ε) - L(ξ_h = 1 + ε)) / 2ε for each example, with its sign; importance is the mean of absolute values, and Fisher
/// information the mean of squares.
#[test]
fn importance_fisher_and_the_first_order_effect_are_finite_differences_of_the_loss() {
    for fixture in fixtures() {
        let (layout, rows) = (fixture.layout(), fixture.all_rows());
        let measured = fixture.measure(&rows, &[Measure::FirstOrder, Measure::Example, Measure::Fisher]);
        let signed = &measured[&Measure::FirstOrder];
        let [means, absolute, fisher] = [Measure::FirstOrder, Measure::Example, Measure::Fisher]
            .map(|measure| measured[&measure].means());
        let step = 1e-5;
        for id in layout.heads() {
            let at = |value| fixture.losses(&rows, &gates_with(&layout, id, value));
            let expected = Vec::<f64>::try_from((at(1.0 - step) - at(1.0 + step)) / (2.0 * step)).unwrap();
            let derivatives = &signed.terms(id).unwrap().derivatives;
            assert_eq!(derivatives.len(), expected.len());
            for (derivative, expected) in derivatives.iter().zip(&expected) {
                assert!((derivative + expected).abs() < 1e-6, "{id}: {derivative} and {expected}");
            }
            let mean = |of: fn(&f64) -> f64| expected.iter().map(of).sum::<f64>() / expected.len() as f64;
            assert!((means.get(id).unwrap() - mean(|effect| *effect)).abs() < 1e-6, "{id}");
            assert!((absolute.get(id).unwrap() - mean(|effect| effect.abs())).abs() < 1e-6, "{id}");
            let squares: f64 = derivatives.iter().map(|derivative| derivative * derivative).sum();
            assert!((fisher.get(id).unwrap() - squares / rows.len() as f64).abs() < 1e-12, "{id}");
        }
    }
}

/// Kwon et al. (2022), Section 4.1, by hand: one gate for all examples of a batch, whose loss is the mean; batches of 32 and 8 examples,
/// measured in another order and in other batches.
#[test]
fn fisher_by_batches_is_the_square_of_the_derivative_of_their_mean_losses() {
    for fixture in fixtures() {
        let (layout, examples) = (fixture.layout(), fixture.all_rows().len());
        let rows: Vec<usize> = (0..40).map(|place| place * place % examples).collect();
        let mut expected = layout.heads().into_iter().map(|id| (id, 0.0)).collect::<HeadScores>();
        for batch in rows.chunks(32) {
            let leaf = |gates: Tensor| gates.copy().set_requires_grad(true);
            let open = Gates::open(&layout, DOUBLE).stacked();
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
fn the_activation_norm_is_the_norm_of_the_head_output() {
    let fixture = classifier(3);
    let rows = fixture.all_rows();
    let contexts =
        |&row: &usize| fixture.model.contexts(&labelled(&fixture.model, &[row]), fixture.model.open());
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
    let is_fed = |name: &str| name.contains(".output.dense") && !name.contains("attention");
    let fixture = silenced(classifier(3), is_fed);
    let (open, rows) = (fixture.model.open(), fixture.all_rows());
    let (mut sums, mut positions) = ([0.0; 3], 0);
    for &row in &rows {
        let batch = labelled(&fixture.model, &[row]).inputs;
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
        let rows = fixture.all_rows();
        // translators and classifiers have no choices of two
        let has_terms = |measure: &Measure| *measure != Measure::LogitAttribution;
        let measures: Vec<Measure> = Measure::of_passes().filter(has_terms).collect();
        let together = fixture.measure(&rows, &measures);
        let mut apart: Measured = BTreeMap::new();
        for &row in rows.iter().rev() {
            for (measure, means) in fixture.measure(&[row], &measures) {
                apart.entry(measure).or_default().merge(&means);
            }
        }
        for measure in measures {
            let (found, expected) = (apart[&measure].means(), together[&measure].means());
            let is_signed = measure == Measure::FirstOrder;
            let is_fine = |score: f64| score.is_finite() && (score > 0.0 || is_signed);
            assert!(expected.iter().all(|(_, score)| is_fine(score)), "{measure:?}");
            let largest = expected.iter().map(|(_, score)| score.abs()).fold(0.0, f64::max);
            assert_close(&found, &expected, 1e-11 * largest, &format!("{measure:?}"));
        }
    }
}

#[test]
fn importance_of_a_masked_model_is_measured_at_its_gates() {
    for fixture in fixtures() {
        let (layout, rows) = (fixture.layout(), fixture.all_rows());
        let heads = layout.heads();
        let masked: HeadSet = [heads[1], heads[6]].into_iter().collect();
        let leaf = |(attention, gates): (Attention, Tensor)| {
            let size = gates.size();
            let wide = gates.expand([size[0], rows.len() as i64, size[2]], false);
            (attention, wide.copy().set_requires_grad(true))
        };
        let gates = Gates::masking(&layout, &[masked], DOUBLE).unwrap();
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

/// Zero queries attend uniformly: n keys have entropy ln n and a maximum weight of 1/n.
#[test]
fn attention_without_preference_is_spread_evenly() {
    let fixture = silenced(translator(), |name| name.contains("q_proj"));
    // 5 source tokens, including the EOS token, and 7 target positions, of which the i-th sees i
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

/// The third source is the EOS token alone, so no key counts.
#[test]
fn the_eos_token_gives_no_confidence() {
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
