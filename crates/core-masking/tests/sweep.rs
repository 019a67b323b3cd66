//! Head sets evaluated together give the results of separate evaluation, on small random models in double precision.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use core_masking::classifier::Inputs;
use core_masking::{Classifier, GatedModel, HeadLayout, HeadSet, ModelDropout, Removal, Variants};
use proptest::prelude::*;
use random::{DOUBLE, gap, masking, texts};
use tch::Tensor;

fn model() -> Classifier {
    Classifier::random(random::bert(0.5), 7, DOUBLE).unwrap()
}

fn variants(model: &Classifier, sets: &[HeadSet], rescale: bool) -> Variants {
    model.variants(sets, rescale).unwrap()
}

/// Asserts that logits of a sweep are those of each set alone.
fn assert_as_alone(model: &Classifier, batch: &Inputs, sets: &[HeadSet], rescale: bool, found: &[Tensor]) {
    assert_eq!(found.len(), sets.len());
    for (set, found) in sets.iter().zip(found) {
        let gates = masking(model, set);
        let gates = if rescale { gates.rescaled(&model.layout()) } else { gates };
        let gap = gap(found, &model.forward(batch, &gates, &ModelDropout::OFF));
        assert!(gap < 1e-12, "{set}: {gap:e}");
    }
}

/// Draws any sets, possibly repeated, including no heads and all heads of a layer.
fn sets(layout: &HeadLayout) -> impl Strategy<Value = Vec<HeadSet>> {
    let heads = layout.heads();
    let set = proptest::sample::subsequence(heads.clone(), 0..heads.len()).prop_map(HeadSet::from_iter);
    proptest::collection::vec(set, 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A later call may start where an earlier one stopped; for an earlier layer it starts from the embeddings.
    #[test]
    fn head_sets_in_one_batch_give_the_outputs_of_each_alone(
        first in sets(&model().layout()), second in sets(&model().layout()), together in 1_usize..6, rescale: bool
    ) {
        let model = model();
        let batch = texts(&model, &[5, 13, 1]);
        let mut prefix = None;
        for sets in [&first, &second] {
            let (found, left) = model.sweep(&batch, &variants(&model, sets, rescale), together, prefix.take());
            prefix = Some(left);
            assert_as_alone(&model, &batch, sets, rescale, &found);
        }
    }

    /// No set contains removed heads, among them the first of a layer and all of another.
    #[test]
    fn a_pruned_model_is_swept_too(heads in proptest::sample::subsequence((1..=4).collect::<Vec<_>>(), 0..4), together in 1_usize..4) {
        let removed: HeadSet = ["self:1:1", "self:2:1", "self:2:2", "self:2:3", "self:2:4"]
            .map(str::to_owned)
            .into_iter()
            .chain(heads.iter().map(|head| format!("self:3:{head}")))
            .map(|name| name.parse().unwrap())
            .collect();
        let model = model().without_heads(&removed, Removal::Cut).unwrap();
        let batch = texts(&model, &[5, 13, 1]);
        let sets: Vec<HeadSet> = model.layout().heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        for rescale in [false, true] {
            let (found, _) = model.sweep(&batch, &variants(&model, &sets, rescale), together, None);
            assert_as_alone(&model, &batch, &sets, rescale, &found);
        }
    }
}

#[test]
fn a_trunk_of_a_batch_of_another_size_is_not_used() {
    let (model, sets): (_, [HeadSet; 1]) = (model(), ["self:3:1".parse().unwrap()]);
    let variants = variants(&model, &sets, false);
    let (_, prefix) = model.sweep(&texts(&model, &[4, 9]), &variants, 1, None);
    let other = texts(&model, &[4, 9, 2]);
    let (found, _) = model.sweep(&other, &variants, 1, Some(prefix));
    assert_as_alone(&model, &other, &sets, false, &found);
}

#[test]
fn a_head_that_is_not_there_is_refused() {
    assert!(model().variants(&["self:1:5".parse().unwrap()], false).is_err());
}
