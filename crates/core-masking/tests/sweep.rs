//! Head sets evaluated together give the results of separate evaluation, on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use core_masking::classifier::Inputs;
use core_masking::{Classifier, ClassifierConfig, GatedModel, Gates, HeadLayout, HeadSet, ModelDropout};
use proptest::prelude::*;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);

/// 4 layers of 4 heads of width 3.
fn model() -> Classifier {
    let json = serde_json::json!({
        "model_type": "bert", "vocab_size": 23, "hidden_size": 12, "num_hidden_layers": 4,
        "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
        "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.5,
    });
    let config: ClassifierConfig = serde_json::from_value(json).unwrap();
    Classifier::random(config, 7, OPTIONS).unwrap()
}

fn batch(model: &Classifier, lengths: &[u32]) -> Inputs {
    let text =
        |&length: &u32| (0..length).map(|place| (1 + (length * 7 + place * 5) % 22, place % 2)).unzip();
    let texts: Vec<(Vec<u32>, Vec<u32>)> = lengths.iter().map(text).collect();
    let rows: Vec<(&[u32], &[u32])> = texts.iter().map(|(ids, segments)| (&ids[..], &segments[..])).collect();
    model.batch(&rows).unwrap()
}

fn alone(model: &Classifier, batch: &Inputs, set: &HeadSet, rescale: bool) -> Tensor {
    let gates = Gates::masking(&model.layout(), std::slice::from_ref(set), OPTIONS).unwrap();
    let gates = if rescale { gates.rescaled(&model.layout()) } else { gates };
    model.forward(batch, &gates, &ModelDropout::OFF)
}

fn gap(left: &Tensor, right: &Tensor) -> f64 {
    (left - right).abs().max().double_value(&[])
}

/// Draws any sets, possibly repeated, including no heads and all heads of a layer.
fn sets(layout: &HeadLayout) -> impl Strategy<Value = Vec<HeadSet>> {
    let heads = layout.heads();
    let set = proptest::sample::subsequence(heads.clone(), 0..heads.len()).prop_map(HeadSet::from_iter);
    proptest::collection::vec(set, 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn together_is_as_alone(sets in sets(&model().layout()), together in 1_usize..6, rescale: bool) {
        let model = model();
        let batch = batch(&model, &[5, 13, 1]);
        let variants = model.variants(&sets, rescale).unwrap();
        let (found, _) = model.sweep(&batch, &variants, together, None);
        prop_assert_eq!(found.len(), sets.len());
        for (set, found) in sets.iter().zip(&found) {
            let gap = gap(found, &alone(&model, &batch, set, rescale));
            prop_assert!(gap < 1e-12, "{set}: {gap:e}");
        }
    }

    /// No set contains removed heads, among them the first of a layer and all of another.
    #[test]
    fn a_pruned_model_is_swept_too(heads in proptest::sample::subsequence((1..=4).collect::<Vec<_>>(), 0..4), together in 1_usize..4) {
        let removed: HeadSet = ["self:1:1", "self:2:1", "self:2:2", "self:2:3", "self:2:4"]
            .map(str::to_owned)
            .into_iter()
            .chain(heads.iter().map(|head| format!("self:4:{head}")))
            .map(|name| name.parse().unwrap())
            .collect();
        let model = model().without_heads(&removed, core_masking::Removal::Cut).unwrap();
        let batch = batch(&model, &[5, 13, 1]);
        let sets: Vec<HeadSet> = model.layout().heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        for rescale in [false, true] {
            let variants = model.variants(&sets, rescale).unwrap();
            let (found, _) = model.sweep(&batch, &variants, together, None);
            for (set, found) in sets.iter().zip(&found) {
                let expected = alone(&model, &batch, set, rescale);
                prop_assert!(gap(found, &expected) < 1e-12, "{set}");
            }
        }
    }

    /// A later call may start where an earlier one stopped; for an earlier layer it starts from the embeddings.
    #[test]
    fn what_is_left_serves_the_next_call(first in sets(&model().layout()), second in sets(&model().layout())) {
        let model = model();
        let batch = batch(&model, &[4, 9]);
        let mut trunk = None;
        for sets in [&first, &second] {
            let variants = model.variants(sets, false).unwrap();
            let (found, left) = model.sweep(&batch, &variants, 2, trunk.take());
            trunk = Some(left);
            for (set, found) in sets.iter().zip(&found) {
                prop_assert!(gap(found, &alone(&model, &batch, set, false)) < 1e-12, "{set}");
            }
        }
    }
}

/// For example after a split was batched differently.
#[test]
fn a_trunk_of_a_batch_of_another_size_is_not_used() {
    let model = model();
    let variants = model.variants(&[HeadSet::from_iter(["self:3:1".parse().unwrap()])], false).unwrap();
    let (_, trunk) = model.sweep(&batch(&model, &[4, 9]), &variants, 1, None);
    let other = batch(&model, &[4, 9, 2]);
    let (found, _) = model.sweep(&other, &variants, 1, Some(trunk));
    let expected = alone(&model, &other, &HeadSet::from_iter(["self:3:1".parse().unwrap()]), false);
    let gap = gap(&found[0], &expected);
    assert!(gap < 1e-12, "{gap:e}");
}

#[test]
fn a_head_that_is_not_there_is_refused() {
    let set = HeadSet::from_iter(["self:5:1".parse().unwrap()]);
    let message = model().variants(&[set], false).unwrap_err().to_string();
    assert_eq!(message, "no layer 5 of `self`: layers are numbered 1 to 4");
}
