//! Removing heads gives the results of masking them, on small random models, for any pattern.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;

use core_masking::classifier::{Inputs, LabelledBatch};
use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Classifier, ClassifierConfig, GatedModel, Gates, HeadLayout, HeadSet, Measure, ModelDropout,
    Removal, Stopping, Translation, Translator, TranslatorConfig, Weights,
};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

const DOUBLE: (Kind, Device) = (Kind::Double, Device::Cpu);
const SINGLE: (Kind, Device) = (Kind::Float, Device::Cpu);

/// 3 layers of 4 heads of width 5.
///
/// `N(0, 1/hidden_size)` preserves the scale of inputs. Twice as large weights would amplify rounding errors in each layer: an f32 model
/// would differ by up to 1.4e-5 from its f64 copy, with or without heads removed.
fn classifier(options: (Kind, Device)) -> Classifier {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
        "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 1.0 / 20_f64.sqrt(),
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    Classifier::random(config, 3, options).unwrap()
}

/// 2 encoder layers of 3 heads of width 4, and 3 decoder layers of 2 heads of width 6.
fn translator(options: (Kind, Device)) -> Translator {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 19, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 3, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 10, "activation_function": "swish", "max_position_embeddings": 20,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    let config: TranslatorConfig = serde_json::from_value(json).unwrap();
    Translator::random(config, 5, options).unwrap()
}

fn texts(model: &Classifier) -> Inputs {
    let text = |length: u32| (0..length).map(|place| (1 + (length * 7 + place * 5) % 22, place % 2)).unzip();
    let texts: Vec<(Vec<u32>, Vec<u32>)> = [5, 13, 1, 8].map(text).to_vec();
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, segments)| (&ids[..], &segments[..])).collect();
    model.batch(&rows).unwrap()
}

fn logits(model: &Classifier, gates: &Gates) -> Tensor {
    tch::no_grad(|| model.forward(&texts(model), gates, &ModelDropout::OFF))
}

const SOURCES: [&[u32]; 3] = [&[5, 9, 14, 2, 0], &[7, 0], &[3, 3, 18, 11, 6, 4, 12, 0]];

fn losses(model: &Translator, gates: &Gates) -> Tensor {
    let targets: [&[u32]; 3] = [&[8, 2, 0], &[4, 4, 16, 10, 0], &[9, 0]];
    let batch = PairBatch::new(model, &SOURCES, &targets);
    tch::no_grad(|| model.losses(&batch, gates, &ModelDropout::OFF))
}

fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

fn masking(layout: &HeadLayout, heads: &HeadSet, options: (Kind, Device)) -> Gates {
    Gates::masking(layout, std::slice::from_ref(heads), options).unwrap()
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
fn closed_heads_get_no_gradient_and_all_else_that_of_a_model_without_them() {
    let model = translator(DOUBLE);
    let heads: HeadSet = "enc-enc:1:2+enc-enc:2:1+enc-dec:2:1+dec-dec:3:1+dec-dec:3:2".parse().unwrap();
    let of_masked = gradients(&model, &masking(&model.layout(), &heads, DOUBLE));
    let cut = model.without_heads(&heads, Removal::Cut).unwrap();
    let of_cut = gradients(&cut, &Gates::open(&cut.layout(), DOUBLE));
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
    fn a_classifier_without_heads_is_one_with_heads_masked(heads in some_of(classifier(DOUBLE).layout())) {
        for (options, tolerance) in [(DOUBLE, 1e-10), (SINGLE, 1e-5)] {
            let model = classifier(options);
            let masked = logits(&model, &masking(&model.layout(), &heads, options));
            for removal in [Removal::Cut, Removal::Zeros] {
                let pruned = model.without_heads(&heads, removal).unwrap();
                let found = logits(&pruned, &Gates::open(&pruned.layout(), options));
                let gap = gap(&found, &masked);
                prop_assert!(gap < tolerance, "{removal:?} of {heads}: {gap:e}");
            }
        }
    }

    #[test]
    fn a_translator_without_heads_is_one_with_heads_masked(heads in some_of(translator(DOUBLE).layout())) {
        for (options, tolerance) in [(DOUBLE, 1e-10), (SINGLE, 1e-5)] {
            let model = translator(options);
            let masked = losses(&model, &masking(&model.layout(), &heads, options));
            for removal in [Removal::Cut, Removal::Zeros] {
                let pruned = model.without_heads(&heads, removal).unwrap();
                let found = losses(&pruned, &Gates::open(&pruned.layout(), options));
                // losses are sums over tokens
                let gap = gap(&found, &masked) / masked.abs().max().double_value(&[]);
                prop_assert!(gap < tolerance, "{removal:?} of {heads}: {gap:e}");
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
            let expected = logits(&model, &masking(&model.layout(), &both, DOUBLE));
            let masked = logits(&pruned, &masking(&pruned.layout(), &HeadSet::from_iter([id]), DOUBLE));
            prop_assert!(gap(&masked, &expected) < 1e-10, "{id} after {heads}");
            if let Ok(further) = pruned.without_heads(&HeadSet::from_iter([id]), Removal::Cut) {
                let found = logits(&further, &Gates::open(&further.layout(), DOUBLE));
                prop_assert!(gap(&found, &expected) < 1e-10, "{id} cut after {heads}");
                prop_assert_eq!(further.layout().removed().to_string(), both.to_string());
            }
        }
    }
}

#[test]
fn a_layer_without_heads_leaves_the_bias_of_its_output() {
    let model = classifier(DOUBLE);
    let heads = whole_layer(&model.layout());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    let size =
        |name: &str| pruned.weights().get(&format!("bert.encoder.layer.1.attention.{name}")).unwrap().size();
    assert_eq!((size("self.query.weight"), size("self.value.bias")), (vec![0, 20], vec![0]));
    assert_eq!((size("output.dense.weight"), size("output.dense.bias")), (vec![20, 0], vec![20]));
    let masked = logits(&model, &masking(&model.layout(), &heads, DOUBLE));
    assert!(gap(&logits(&pruned, &Gates::open(&pruned.layout(), DOUBLE)), &masked) < 1e-10);
}

/// Beam search caches keys and values of the decoder, which a layer without heads lacks.
#[test]
fn a_pruned_translator_translates_as_the_masked_one() {
    let some: HeadSet = "enc-enc:1:2+enc-dec:1:1+dec-dec:3:2".parse().unwrap();
    let search = BeamSearch {
        beam: 3,
        length_penalty: 1.0,
        stopping: Stopping::Exact,
        length_limit: (1.0, 4),
        rules: None,
    };
    for options in [DOUBLE, SINGLE] {
        let model = translator(options);
        let open = search.translate(&model, &SOURCES, &Gates::open(&model.layout(), options)).unwrap();
        for heads in [&some, &whole_layer(&model.layout())] {
            let gates = masking(&model.layout(), heads, options);
            let masked = search.translate(&model, &SOURCES, &gates).unwrap();
            assert_ne!(masked, open, "the heads must matter for the test to mean something");
            let pruned = model.without_heads(heads, Removal::Cut).unwrap();
            let gates = Gates::open(&pruned.layout(), options);
            let found = search.translate(&pruned, &SOURCES, &gates).unwrap();
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
    let (stopping, length_limit, length_penalty) = (Stopping::Exact, (1.0, 4), 1.0);
    let search = BeamSearch { beam: 3, length_penalty, stopping, length_limit, rules: None };
    for options in [DOUBLE, SINGLE] {
        let model = translator(options);
        let all = HeadSet::from_iter(model.layout().heads());
        let others: [&[u32]; 3] = [&[2, 7, 13, 0], &[18, 1, 6, 9, 4, 0], &[11, 0]];
        let targets: [&[u32]; 3] = [&[8, 2, 0], &[4, 4, 16, 10, 0], &[9, 0]];
        let replacement = model.replacement(&PairBatch::new(&model, &others, &targets));
        let variants = model.variants(&[all.clone(), all.clone()], false).unwrap();
        let variants = variants.replaced_by(Some(&replacement));
        let (found, _) = search.sweep(&model, &SOURCES, &variants, 2, None).unwrap();
        let plain = search.translate(&model, &SOURCES, &Gates::open(&model.layout(), options)).unwrap();
        for found in found {
            let read: Vec<Vec<u32>> = found.iter().map(|found| read(&model, found)).collect();
            let read: Vec<&[u32]> = read.iter().map(Vec::as_slice).collect();
            let gates = masking(&model.layout(), &all, options).replaced_by(Some(replacement.share()));
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

/// Returns the tokens of a translation, with the end token if the search reached it.
fn read(model: &Translator, found: &Translation) -> Vec<u32> {
    let end = (found.tokens.len() < found.steps).then_some(model.config().eos_token_id);
    found.tokens.iter().copied().chain(end).collect()
}

/// Based on gradients and on attention weights, on the explicit path, including a layer without heads.
#[test]
fn heads_that_are_left_have_the_scores_that_they_have_with_the_others_masked() {
    let model = classifier(DOUBLE);
    let heads = whole_layer(&model.layout()).with("self:1:3".parse().unwrap());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    let measures = [
        Measure::Example,
        Measure::Token,
        Measure::AttentionGradient,
        Measure::Entropy,
        Measure::NormalisedEntropy,
        Measure::Confidence,
    ];
    let measures = BTreeSet::from(measures);
    let examples = |model: &Classifier| {
        let labels = Tensor::from_slice(&[0_i64, 1, 1, 0]);
        LabelledBatch { inputs: texts(model), labels }
    };
    let masked = masking(&model.layout(), &heads, DOUBLE);
    let expected = model.measure(&examples(&model), &masked, &measures);
    let open = Gates::open(&pruned.layout(), DOUBLE);
    let found = pruned.measure(&examples(&pruned), &open, &measures);
    for (measure, expected) in &expected {
        let (expected, found) = (expected.means(), found[measure].means());
        assert_eq!(found.iter().map(|(id, _)| id).collect::<Vec<_>>(), pruned.layout().heads());
        for id in pruned.layout().heads() {
            let (expected, found) = (expected.get(id).unwrap(), found.get(id).unwrap());
            assert!((expected - found).abs() < 1e-12, "{measure:?} of {id}: {found} for {expected}");
        }
    }
}

#[test]
fn a_pruned_model_comes_back_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let saved = |name: &str| folder.path().join(name);
    let model = classifier(SINGLE);
    let heads = whole_layer(&model.layout()).with("self:1:3".parse().unwrap());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    pruned.save(&saved("classifier")).unwrap();
    let back = Classifier::load(&saved("classifier"), SINGLE).unwrap();
    assert_eq!(back.layout().removed(), &heads);
    assert_eq!(
        gap(
            &logits(&back, &Gates::open(&back.layout(), SINGLE)),
            &logits(&pruned, &Gates::open(&pruned.layout(), SINGLE))
        ),
        0.0
    );
    // as transformers 4 writes it
    let config = std::fs::read_to_string(saved("classifier").join("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["pruned_heads"], serde_json::json!({ "0": [2], "1": [0, 1, 2, 3] }));

    let model = translator(SINGLE);
    let heads = whole_layer(&model.layout()).with("dec-dec:3:2".parse().unwrap());
    let pruned = model.without_heads(&heads, Removal::Cut).unwrap();
    pruned.save(&saved("translator")).unwrap();
    let back = Translator::load(&saved("translator"), SINGLE).unwrap();
    assert_eq!(back.layout().removed(), &heads);
    assert_eq!(
        gap(
            &losses(&back, &Gates::open(&back.layout(), SINGLE)),
            &losses(&pruned, &Gates::open(&pruned.layout(), SINGLE))
        ),
        0.0
    );
}
