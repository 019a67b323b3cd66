//! Texts classified under many head sets.
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_masking::{HeadSet, Trunk};
use stats::classification::Outcome;
use tch::no_grad;
use training::workers;

use super::precision::{MARGIN, Models};
use super::texts::Texts;
use crate::error::Error;
use crate::evaluation::{BySet, Plan, Request, Scorer, by_lowest_layer};
use crate::model::of_threads;
use crate::subject::Scored;

/// Texts, of all lengths, on which the error of the quick model is measured, if there are as many.
const CALIBRATED: usize = 512;

/// A split that is classified.
pub(crate) struct Decisions<'a> {
    texts: &'a Texts,
    /// Decisions closer than this in the quick model are the exact model's, if there are two.
    bound: Option<f64>,
    decided: AtomicUsize,
    /// Those that the exact model has made again.
    rechecked: AtomicUsize,
}

impl<'a> Decisions<'a> {
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn new(
        models: &Models,
        plan: &Plan,
        texts: &'a Texts,
        scored: &Scored,
    ) -> Result<Self, Error> {
        let bound = match &models.quick {
            Some(_) => Some(bound(models, plan, texts, scored)?),
            None => None,
        };
        Ok(Self { texts, bound, decided: AtomicUsize::new(0), rechecked: AtomicUsize::new(0) })
    }
}

/// How far apart the two greatest logits of the quick model must be for a decision to be that of the exact one. Measured
/// once for what is scored.
fn bound(models: &Models, plan: &Plan, texts: &Texts, scored: &Scored) -> Result<f64, Error> {
    let bounds = || models.bounds.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, bound)) = bounds().iter().find(|(known, _)| known == scored) {
        return Ok(*bound);
    }
    let every = texts.len().div_ceil(CALIBRATED);
    let job = |models: &Models, item: usize| {
        // Which texts are looked at must not depend on how they are batched.
        let rows: Vec<usize> = plan.batches[item].iter().copied().filter(|row| row % every == 0).collect();
        if rows.is_empty() {
            return Ok(0.0);
        }
        no_grad(|| models.largest_error(texts, &rows))
    };
    let mut largest = 0.0_f64;
    workers::in_order(&mut of_threads(models, plan.workers)?, plan.batches.len(), job, |_, error| {
        largest = largest.max(error);
        Ok::<_, Error>(())
    })?;
    bounds().push((scored.clone(), MARGIN * largest));
    Ok(MARGIN * largest)
}

impl Scorer for Decisions<'_> {
    type Model = Models;
    type Segment = Outcome;

    fn groups(sets: &[HeadSet], _: usize) -> Vec<Range<usize>> {
        by_lowest_layer(sets)
    }

    /// What the models say of the texts of a batch under each set.
    fn score(
        &self,
        models: &Models,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Outcome>, Trunk), Error> {
        let (found, trunk) = no_grad(|| models.classify(self.texts, (request, self.bound), left))?;
        self.decided.fetch_add(request.wanted.len() * request.rows.len(), Ordering::Relaxed);
        self.rechecked.fetch_add(found.rechecked, Ordering::Relaxed);
        let outcome =
            |(&row, predicted): (&usize, usize)| Outcome { gold: self.texts.classes[row], predicted };
        let of_set = |predicted: Vec<usize>| request.rows.iter().zip(predicted).map(outcome).collect();
        Ok((found.by_set.into_iter().map(of_set).collect(), trunk))
    }

    /// What the second look did, if there is one.
    fn report(&self) -> Option<String> {
        let [again, decided] = [&self.rechecked, &self.decided].map(|count| count.load(Ordering::Relaxed));
        self.bound.map(|bound| {
            format!(
                "{again} of {decided} decisions were made again in f32: closer than {bound:.3}, {MARGIN} times the largest \
                 error of bf16 on the intact model, or on those looked at"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{self, Bytes};
    use super::super::texts::outcomes;
    use super::*;
    use crate::evaluation::{Sets, Sweep};
    use core_masking::{Classifier, ClassifierConfig, GatedModel, ModelDropout};
    use corpus::classifier_tokenizer::Encoded;
    use tch::{Device, Kind};
    use training::{Machine, Memory, Progress};

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// 3 layers of 4 heads.
    fn model(initializer_range: f64, kind: Kind) -> Classifier {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
            "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": initializer_range,
        });
        let config: ClassifierConfig = serde_json::from_value(json).unwrap();
        Classifier::random(config, 3, (kind, Device::Cpu)).unwrap()
    }

    fn texts(count: u32) -> Texts {
        let encoded = (0..count).map(|text| {
            let ids =
                (0..3 + text % 9).map(|place| 1 + (text * 7 + place * place * (text % 31) + place) % 22);
            let ids: Vec<u32> = ids.collect();
            let segments = vec![0; ids.len()];
            Encoded { ids, segments }
        });
        Texts::new(encoded.collect(), vec![0; count as usize])
    }

    /// What the model says under a set alone.
    fn alone(model: &Classifier, texts: &Texts, set: &HeadSet, rescale: bool) -> Vec<Outcome> {
        let scored = Scored::first("test".to_owned(), None, rescale);
        let gates = scored.gates(&GatedModel::layout(model), set, GatedModel::options(model)).unwrap();
        let rows: Vec<usize> = (0..texts.len()).collect();
        let logits = model.forward(&texts.batch(model, &rows).unwrap(), &gates, &ModelDropout::OFF);
        outcomes(&logits, texts, &rows).unwrap()
    }

    fn some_sets() -> Vec<HeadSet> {
        [&["self:1:1"][..], &["self:2:1", "self:3:2"], &["self:2:3"], &["self:3:2"], &["self:3:4"]]
            .into_iter()
            .map(set)
            .collect()
    }

    fn together(
        models: &Models,
        machine: &Machine,
        texts: &Texts,
        rescale: bool,
    ) -> (Vec<Vec<Outcome>>, usize) {
        let load = memory::load(models.exact.config(), Bytes::of(models), texts.lengths().collect());
        let plan = Plan::new(machine, &load).unwrap();
        let scored = Scored::first("test".to_owned(), None, rescale);
        let scorer = Decisions::new(models, &plan, texts, &scored).unwrap();
        let (sets, mut progress, mut found) = (some_sets(), Progress::new(0, true), Vec::new());
        let each = |_: &mut Progress, index: usize, outcomes| {
            assert_eq!(index, found.len(), "in order");
            found.push(outcomes);
            Ok(())
        };
        let mut models = of_threads(models, plan.workers).unwrap();
        let all = Sets { all: &sets, wanted: &[true; 5], rescale };
        Sweep::new(plan).run(&scorer, &mut models, all, &mut progress, each).unwrap();
        (found, scorer.rechecked.into_inner())
    }

    /// Whatever the memory and the sets, each text has the outcome that it has when its set is evaluated alone.
    #[test]
    fn sharing_changes_no_outcome() {
        let texts = texts(40);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 70_000)] {
            let memory = Memory::BesideModel(memory);
            let machine = Machine { memory, ..crate::test_machine::machine() };
            let models = Models::new(model(0.6, Kind::Double), machine.precision).unwrap();
            let (found, again) = together(&models, &machine, &texts, rescale);
            for (set, found) in some_sets().iter().zip(&found) {
                assert_eq!(alone(&models.exact, &texts, set, rescale), *found);
            }
            assert_ne!(found[0], found[1], "the sets must differ for the test to mean something");
            assert_eq!(again, 0);
        }
    }

    /// Classes that bf16 alone would change are those of single precision, since only these few are computed twice.
    #[test]
    fn a_second_look_gives_the_outcomes_of_single_precision() {
        let texts = texts(900);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 100_000)] {
            let precision = training::Precision::Bf16;
            let memory = Memory::BesideModel(memory);
            let machine = Machine { memory, precision, ..crate::test_machine::machine() };
            let models = Models::new(model(0.3, Kind::Float), machine.precision).unwrap();
            let quick = models.quick.as_ref().unwrap();
            let (found, again) = together(&models, &machine, &texts, rescale);
            let mut changed = 0;
            for (set, found) in some_sets().iter().zip(&found) {
                let expected = alone(&models.exact, &texts, set, rescale);
                let differs = |(left, right): &(&Outcome, &Outcome)| left != right;
                changed += alone(quick, &texts, set, rescale).iter().zip(&expected).filter(differs).count();
                let wrong = found.iter().zip(&expected).filter(differs).count();
                assert_eq!(wrong, 0, "{set}, rescaled: {rescale}");
            }
            assert!(changed > 0, "bf16 must err for the test to mean something");
            assert!(again >= changed && again < 5 * 900 / 2, "{again} looked at again, {changed} changed");
        }
    }
}
