//! Mean and resample ablation, and attention weights on repeated random tokens: agreement with hooks on PyTorch models
//! (`golden/more/ablation.json`, outside the repository), where heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::path::PathBuf;

use core_masking::classifier::LabelledBatch;
use core_masking::language_model::Window;
use core_masking::loss::PairBatch;
use core_masking::{
    AttentionRecord, Classifier, GatedModel, Gates, HeadSet, LanguageModel, ModelDropout, Removal,
    Replacement, TokenBatch, Translator, Variants,
};
use golden::{OPTIONS, head, masking, real, rows, slices, tensor};
use serde_json::Value;
use tch::{Kind, Tensor, no_grad};

/// Returns a model's folder and its numbers in `ablation.json`.
fn load(name: &str) -> Option<(PathBuf, Value)> {
    let file = test_support::golden("more/ablation.json")?;
    let text = std::fs::read_to_string(&file).unwrap();
    let numbers: Value = serde_json::from_str(&text).unwrap();
    Some((file.with_file_name(name), numbers[name].clone()))
}

/// Asserts that losses agree, relative to expected numbers above 1.
fn assert_near(found: &Tensor, expected: &Value, what: &str) {
    let gap = golden::gap_of_each(found, &tensor(expected));
    assert!(gap < 1e-5, "{what}: {gap:e}");
}

fn permuted(mut inputs: Value, order: &Value) -> Value {
    let order: Vec<usize> = serde_json::from_value(order.clone()).unwrap();
    for rows in inputs.as_object_mut().unwrap().values_mut() {
        *rows = order.iter().map(|&row| rows[row].clone()).collect();
    }
    inputs
}

/// A model with mean outputs folded into its biases has the losses of mean ablation.
fn compare_folded<M: GatedModel>(model: &M, numbers: &Value, means: &Replacement, own: &M::Examples) {
    let folding = &numbers["folding"];
    let alone = folding["loss_by_head"].as_object().unwrap().iter();
    let mut cases: Vec<(HeadSet, &Value)> =
        alone.map(|(key, loss)| (HeadSet::from_iter([head(key)]), loss)).collect();
    let several: Vec<String> = serde_json::from_value(folding["several"]["heads"].clone()).unwrap();
    cases.push((several.iter().map(|key| head(key)).collect(), &folding["several"]["loss"]));
    for (set, expected) in cases {
        for removal in [Removal::Cut, Removal::Zeros] {
            let folded = model.folded(&set, means, removal).unwrap();
            let found = no_grad(|| folded.losses(own, &folded.open(), &ModelDropout::OFF));
            assert_near(&found, expected, &format!("folded {set}"));
        }
    }
}

/// Compares the losses under each kind of ablation with `numbers`; `sweep` computes the losses of a batch under variants.
fn compare<M: GatedModel>(
    model: &M,
    numbers: &Value,
    examples: impl Fn(&Value) -> M::Examples,
    variants: impl Fn(&[HeadSet]) -> Variants,
    sweep: impl Fn(&M::Examples, &Variants, usize) -> Option<Vec<Tensor>>,
) {
    let means = no_grad(|| model.context_sums(&examples(&numbers["reference"]))).means();
    compare_folded(model, numbers, &means, &examples(&numbers["batch"]["inputs"]));
    for batch in ["batch", "equal_batch"] {
        let part = &numbers[batch];
        let own = examples(&part["inputs"]);
        for kind in ["zero", "mean", "resample"] {
            let Some(cases) = part[kind].as_object() else { continue };
            let replacement = match kind {
                "zero" => None,
                "mean" => Some(means.to(OPTIONS)),
                _ => {
                    let partners = permuted(part["inputs"].clone(), &part["permutation"]);
                    Some(model.replacement(&examples(&partners)))
                }
            };
            let sets: Vec<HeadSet> = cases.keys().map(|key| HeadSet::from_iter([head(key)])).collect();
            let gates = |set| masking(model, set).replaced_by(replacement.as_ref().map(Replacement::share));
            let alone = |set| no_grad(|| model.losses(&own, &gates(set), &ModelDropout::OFF));
            let alone: Vec<Tensor> = sets.iter().map(alone).collect();
            let of_sets = variants(&sets).replaced_by(replacement.as_ref());
            let together = [1, 3].map(|together| no_grad(|| sweep(&own, &of_sets, together)));
            for found in [Some(alone)].into_iter().chain(together).flatten() {
                for ((key, expected), found) in cases.iter().zip(&found) {
                    assert_near(found, expected, &format!("{batch} {kind} {key}"));
                }
            }
        }
    }
}

#[test]
fn an_ablated_classifier_equals_the_hooked_one() {
    let Some((folder, numbers)) = load("bert") else { return };
    let model = Classifier::load(&folder, OPTIONS).unwrap();
    let examples = |inputs: &Value| {
        let texts = real(inputs, "input_ids", "attention_mask");
        let segments: Vec<Vec<u32>> = texts.iter().map(|text| vec![0; text.len()]).collect();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().zip(&segments).map(|(ids, segments)| (&ids[..], &segments[..])).collect();
        let labels = tensor(&inputs["labels"]).to_kind(Kind::Int64);
        LabelledBatch { inputs: model.batch(&rows).unwrap(), labels }
    };
    let sweep = |batch: &LabelledBatch, variants: &Variants, together| {
        let (logits, _) = model.sweep(&batch.inputs, variants, together, None);
        let loss = |logits: &Tensor| core_masking::loss::cross_entropy(logits, &batch.labels);
        Some(logits.iter().map(loss).collect())
    };
    compare(&model, &numbers, examples, |sets| model.variants(sets, false).unwrap(), sweep);
}

#[test]
fn ablated_language_models_equal_the_hooked_ones() {
    for name in ["gpt2", "llama-bias"] {
        let Some((folder, numbers)) = load(name) else { return };
        let model = LanguageModel::load(&folder, OPTIONS).unwrap();
        let examples = |inputs: &Value| {
            let mut texts = real(inputs, "input_ids", "attention_mask");
            if *inputs == numbers["reference"] {
                // the last token is not an input, but the means of the reference include it
                texts.iter_mut().for_each(|text| text.push(0));
            }
            let windows: Vec<Window<'_>> = texts.iter().map(|tokens| Window { tokens, context: 1 }).collect();
            model.batch(&windows).unwrap()
        };
        let sweep = |batch: &core_masking::language_model::PredictionBatch, variants: &Variants, together| {
            let (nats, _) = model.sweep(batch, variants, together, None);
            Some(nats.iter().map(|nats| batch.by_row(nats)).collect())
        };
        compare(&model, &numbers, examples, |sets| model.variants(sets, false).unwrap(), sweep);
    }
}

#[test]
fn an_ablated_translator_equals_the_hooked_one() {
    let Some((folder, numbers)) = load("marian") else { return };
    let model = Translator::load(&folder, OPTIONS).unwrap();
    let examples = |inputs: &Value| {
        let [sources, targets] = [("source", "source_mask"), ("target", "target_mask")]
            .map(|(name, mask)| real(inputs, name, mask));
        PairBatch::new(&model, &slices(&sources), &slices(&targets))
    };
    compare(&model, &numbers, examples, |sets| model.variants(sets, false).unwrap(), |_, _, _| None);
}

/// Compares the mean attention weights from the queries to the key of each score.
fn compare_named_heads<M: GatedModel>(model: &M, numbers: &Value, read: impl Fn(&[&[u32]], &Gates)) {
    let own = &numbers["named_heads"];
    let ids = rows(&own["ids"]);
    let record = AttentionRecord::default();
    let gates = model.open().recorded_in(&record);
    no_grad(|| read(&slices(&ids), &gates));
    let places = |positions: &Value| tensor(positions).to_kind(Kind::Int64);
    let queries = places(&own["query_positions"]);
    let recorded = record.take();
    assert!(!recorded.is_empty());
    for ((attention, layer), weights) in recorded {
        let weights = weights.index_select(2, &queries).to_kind(Kind::Double); // [batch, heads, query, key]
        let scores = own["scores"].get(attention.name()).unwrap_or(&own["scores"]);
        for (score, keys) in own["key_positions"].as_object().unwrap() {
            let keys =
                places(keys).view([1, 1, -1, 1]).expand([weights.size()[0], weights.size()[1], -1, 1], false);
            let found = weights.gather(3, &keys, false).mean_dim([0, 2, 3].as_slice(), false, Kind::Double);
            let gap = golden::gap(&found, &tensor(&scores[score][layer]));
            assert!(gap < 1e-5, "{attention} layer {layer} {score}: {gap:e}");
        }
    }
}

#[test]
fn attention_on_repeated_random_tokens_equals_the_hooked_one() {
    for name in ["gpt2", "llama-bias"] {
        let Some((folder, numbers)) = load(name) else { return };
        let model = LanguageModel::load(&folder, OPTIONS).unwrap();
        compare_named_heads(&model, &numbers, |ids, gates| {
            drop(model.hidden(&TokenBatch::new(ids, 0, OPTIONS).ids, gates, &ModelDropout::OFF));
        });
    }
    let Some((folder, numbers)) = load("bert") else { return };
    let model = Classifier::load(&folder, OPTIONS).unwrap();
    compare_named_heads(&model, &numbers, |ids, gates| {
        let segments = vec![0; ids[0].len()];
        let rows: Vec<_> = ids.iter().map(|&ids| (ids, &segments[..])).collect();
        drop(model.forward(&model.batch(&rows).unwrap(), gates, &ModelDropout::OFF));
    });
    let Some((folder, numbers)) = load("marian") else { return };
    let model = Translator::load(&folder, OPTIONS).unwrap();
    compare_named_heads(&model, &numbers, |ids, gates| {
        let batch = TokenBatch::new(ids, model.config().pad_token_id, OPTIONS);
        let memory = model.encode(&batch, gates, &ModelDropout::OFF);
        drop(model.decode(&batch.ids, &memory, &batch.bias, gates, &ModelDropout::OFF));
    });
}
