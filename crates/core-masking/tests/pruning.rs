//! Removing heads gives the results of masking them, on small random models, for any pattern.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use std::collections::BTreeSet;

use core_masking::classifier::LabelledBatch;
use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Classifier, GatedModel, Gates, HeadLayout, HeadSet, Measure, ModelDropout, Removal, Stopping,
    Translation, Translator, Weights,
};
use proptest::prelude::*;
use random::{DOUBLE, SINGLE, gap, masking};
use tch::{Device, Kind, Tensor};

/// `N(0, 1/hidden_size)` preserves the scale of inputs. Weights twice as large would amplify rounding errors in each layer: an f32 model
/// would differ by up to 1.4e-5 from its f64 copy, with or without heads removed.
fn classifier(options: (Kind, Device)) -> Classifier {
    Classifier::random(random::bert(1.0 / 20_f64.sqrt()), 3, options).unwrap()
}

fn translator(options: (Kind, Device)) -> Translator {
    Translator::random(random::marian(19), 5, options).unwrap()
}

const LENGTHS: [u32; 4] = [5, 13, 1, 8];

fn logits(model: &Classifier, gates: &Gates) -> Tensor {
    tch::no_grad(|| model.forward(&random::texts(model, &LENGTHS), gates, &ModelDropout::OFF))
}

const SOURCES: [&[u32]; 3] = [&[5, 9, 14, 2, 0], &[7, 0], &[3, 3, 18, 11, 6, 4, 12, 0]];

fn losses(model: &Translator, gates: &Gates) -> Tensor {
    let targets: [&[u32]; 3] = [&[8, 2, 0], &[4, 4, 16, 10, 0], &[9, 0]];
    let batch = PairBatch::new(model, &SOURCES, &targets);
    tch::no_grad(|| model.losses(&batch, gates, &ModelDropout::OFF))
}

fn search() -> BeamSearch {
    let (stopping, length_limit) = (Stopping::Exact, (1.0, 4));
    BeamSearch { beam: 3, length_penalty: 1.0, stopping, length_limit, rules: None }
}

/// Returns the gradients of the losses as the weights of a model.
fn gradients(model: &Translator, gates: &Gates) -> Translator {
    let leaves = model.weights().iter();
    let leaves: Vec<(String, Tensor)> = leaves
        .map(|(name, tensor)| (name.to_owned(), tensor.detach().copy().set_requires_grad(true)))
        .collect();
    let shared = leaves.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
    let trained = Translator::new(model.config().clone(), Weights::from_tensors(shared)).unwrap();
    let batch = PairBatch::new(&trained, &SOURCES, &SOURCES);
    trained.losses(&batch, gates, &ModelDropout::OFF).sum(None).backward();
    let gradient =
        |tensor: &Tensor| if tensor.grad().defined() { tensor.grad() } else { tensor.zeros_like() };
    let found = leaves.iter().map(|(name, tensor)| (name.clone(), gradient(tensor).detach()));
    Translator::new(model.config().clone(), Weights::from_tensors(found)).unwrap()
}

/// Training with heads closed from the first step equals training without them: closed heads have no gradient, and all other gradients are
/// those of the smaller model.
#[test]
fn closed_heads_get_no_gradient_and_other_gradients_equal_those_without_them() {
    let model = translator(DOUBLE);
    let heads: HeadSet = "enc-enc:1:2+enc-enc:2:1+enc-dec:2:1+dec-dec:3:1+dec-dec:3:2".parse().unwrap();
    let of_masked = gradients(&model, &masking(&model, &heads));
    let cut = model.without_heads(&heads, Removal::Cut).unwrap();
    let of_cut = gradients(&cut, &cut.open());
    for (removal, expected) in [(Removal::Zeros, &of_masked), (Removal::Cut, &of_cut)] {
        let found = of_masked.without_heads(&heads, removal).unwrap();
        // a layer without heads has empty tensors, which have no maximum
        for (name, tensor) in expected.weights().iter().filter(|(_, tensor)| tensor.numel() > 0) {
            let gap = gap(&found.weights().get(name).unwrap(), tensor);
            assert!(gap < 1e-10, "{removal:?}: {name}: {gap:e}");
        }
    }
    let open = of_masked.weights().get("model.encoder.layers.0.self_attn.out_proj.weight").unwrap();
    assert!(open.abs().max().double_value(&[]) > 1e-6, "the others do learn");
}

/// Draws any heads of a model but not all.
fn some_of(layout: HeadLayout) -> impl Strategy<Value = HeadSet> {
    let heads = layout.heads();
    proptest::sample::subsequence(heads.clone(), 0..heads.len()).prop_map(HeadSet::from_iter)
}

/// Returns all heads of one layer.
fn whole_layer(layout: &HeadLayout) -> HeadSet {
    layout.heads().into_iter().filter(|id| id.layer_index() == 1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn removing_heads_equals_masking_them(
        of_classifier in some_of(classifier(DOUBLE).layout()), of_translator in some_of(translator(DOUBLE).layout()),
    ) {
        for (options, tolerance) in [(DOUBLE, 1e-10), (SINGLE, 1e-5)] {
            let (classifier, translator) = (classifier(options), translator(options));
            let masked = logits(&classifier, &masking(&classifier, &of_classifier));
            let nats = losses(&translator, &masking(&translator, &of_translator));
            for removal in [Removal::Cut, Removal::Zeros] {
                let pruned = classifier.without_heads(&of_classifier, removal).unwrap();
                let gap_of_logits = gap(&logits(&pruned, &pruned.open()), &masked);
                prop_assert!(gap_of_logits < tolerance, "{removal:?} of {of_classifier}: {gap_of_logits:e}");
                let pruned = translator.without_heads(&of_translator, removal).unwrap();
                // losses are sums over tokens
                let gap = gap(&losses(&pruned, &pruned.open()), &nats) / nats.abs().max().double_value(&[]);
                prop_assert!(gap < tolerance, "{removal:?} of {of_translator}: {gap:e}");
            }
        }
    }

    /// The remaining heads are also masked one by one.
    #[test]
    fn a_pruned_model_can_be_masked_and_pruned_further(heads in some_of(classifier(DOUBLE).layout())) {
        let model = classifier(DOUBLE);
        let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
        for id in pruned.layout().heads() {
            let both = heads.with(id);
            let expected = logits(&model, &masking(&model, &both));
            let masked = logits(&pruned, &masking(&pruned, &HeadSet::from_iter([id])));
            prop_assert!(gap(&masked, &expected) < 1e-10, "{id} after {heads}");
            if let Ok(further) = pruned.without_heads(&HeadSet::from_iter([id]), Removal::Cut) {
                let found = logits(&further, &further.open());
                prop_assert!(gap(&found, &expected) < 1e-10, "{id} cut after {heads}");
                prop_assert_eq!(further.layout().removed().to_string(), both.to_string());
            }
        }
    }
}

#[test]
fn a_layer_without_heads_leaves_the_bias_of_its_output() {
    let (model, folder) = (classifier(SINGLE), tempfile::tempdir().unwrap());
    let heads = whole_layer(&model.layout()).with("self:1:3".parse().unwrap());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    let size =
        |name: &str| pruned.weights().get(&format!("bert.encoder.layer.1.attention.{name}")).unwrap().size();
    assert_eq!((size("self.query.weight"), size("self.value.bias")), (vec![0, 20], vec![0]));
    assert_eq!((size("output.dense.weight"), size("output.dense.bias")), (vec![20, 0], vec![20]));
    pruned.save(folder.path()).unwrap();
    let back = Classifier::load(folder.path(), SINGLE).unwrap();
    assert_eq!(back.layout().removed(), &heads);
    assert_eq!(logits(&back, &back.open()), logits(&pruned, &pruned.open()));
}

/// Beam search caches keys and values of the decoder, which a layer without heads lacks.
#[test]
fn a_pruned_translator_translates_like_the_masked_one() {
    let some: HeadSet = "enc-enc:1:2+enc-dec:1:1+dec-dec:3:2".parse().unwrap();
    for options in [DOUBLE, SINGLE] {
        let model = translator(options);
        let open = search().translate(&model, &SOURCES, &model.open()).unwrap();
        for heads in [&some, &whole_layer(&model.layout())] {
            let gates = masking(&model, heads);
            let masked = search().translate(&model, &SOURCES, &gates).unwrap();
            assert_ne!(masked, open, "the heads must matter for the test to mean something");
            let pruned = model.without_heads(heads, Removal::Cut).unwrap();
            let found = search().translate(&pruned, &SOURCES, &pruned.open()).unwrap();
            for (found, masked) in found.iter().zip(&masked) {
                assert_eq!(found.tokens, masked.tokens);
                assert!((found.score.unwrap() - masked.score.unwrap()).abs() < 1e-5);
            }
        }
    }
}

/// If all head outputs are replaced by those on other, possibly shorter texts, a translation's score equals its teacher-forced score.
#[test]
fn a_translation_under_resampling_has_the_score_of_its_loss() {
    for options in [DOUBLE, SINGLE] {
        let model = translator(options);
        let all = HeadSet::from_iter(model.layout().heads());
        let others: [&[u32]; 3] = [&[2, 7, 13, 0], &[18, 1, 6, 9, 4, 0], &[11, 0]];
        let targets: [&[u32]; 3] = [&[8, 2, 0], &[4, 4, 16, 10, 0], &[9, 0]];
        let replacement = model.replacement(&PairBatch::new(&model, &others, &targets));
        let variants = model.variants(&[all.clone(), all.clone()], false).unwrap();
        let variants = variants.replaced_by(Some(&replacement));
        let (found, _) = search().sweep(&model, &SOURCES, &variants, 2, None).unwrap();
        let plain = search().translate(&model, &SOURCES, &model.open()).unwrap();
        for found in found {
            let read: Vec<Vec<u32>> = found.iter().map(|found| read(&model, found)).collect();
            let read: Vec<&[u32]> = read.iter().map(Vec::as_slice).collect();
            let gates = masking(&model, &all).replaced_by(Some(replacement.share()));
            let batch = PairBatch::new(&model, &SOURCES, &read);
            let losses = tch::no_grad(|| model.losses(&batch, &gates, &ModelDropout::OFF));
            for (row, (found, plain)) in found.iter().zip(&plain).enumerate() {
                let expected = -losses.double_value(&[row as i64]) / read[row].len() as f64;
                assert!((found.score.unwrap() - expected).abs() < 2e-6, "{found:?}: {expected}");
                assert!((found.score.unwrap() - plain.score.unwrap()).abs() > 1e-4, "replacements matter");
            }
        }
    }
}

/// Returns the tokens of a translation, with EOS if the search reached it.
fn read(model: &Translator, found: &Translation) -> Vec<u32> {
    let end = (found.tokens.len() < found.steps).then_some(model.config().eos_token_id);
    found.tokens.iter().copied().chain(end).collect()
}

/// Scores from gradients and from attention weights, on the explicit path, including a layer without heads.
#[test]
fn remaining_heads_have_the_scores_that_they_have_with_the_others_masked() {
    use Measure::{AttentionGradient, Confidence, Entropy, Example, NormalisedEntropy, Token};
    let model = classifier(DOUBLE);
    let heads = whole_layer(&model.layout()).with("self:1:3".parse().unwrap());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    let measures =
        BTreeSet::from([Example, Token, AttentionGradient, Entropy, NormalisedEntropy, Confidence]);
    let measure = |model: &Classifier, gates: &Gates| {
        let labels = Tensor::from_slice(&[0_i64, 1, 1, 0]);
        model.measure(&LabelledBatch { inputs: random::texts(model, &LENGTHS), labels }, gates, &measures)
    };
    let (expected, found) = (measure(&model, &masking(&model, &heads)), measure(&pruned, &pruned.open()));
    for (measure, expected) in &expected {
        let (expected, found) = (expected.means(), found[measure].means());
        assert_eq!(found.iter().map(|(id, _)| id).collect::<Vec<_>>(), pruned.layout().heads());
        for id in pruned.layout().heads() {
            let (expected, found) = (expected.get(id).unwrap(), found.get(id).unwrap());
            assert!((expected - found).abs() < 1e-12, "{measure:?} of {id}: {found} for {expected}");
        }
    }
}
