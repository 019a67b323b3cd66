//! Many head sets over one split: what they share is computed once, within a bound of memory.
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_masking::bert::{BertClassifier, BertConfig};
use core_masking::{HeadId, HeadSet};
use stats::classification::Outcome;
use tch::no_grad;
use training::{Machine, Progress, workers};

use super::precision::{MARGIN, Models, Request};
use super::texts::{BATCH_TOKENS, Texts};
use crate::groups::{evaluate, neighbours};
use crate::plan::{Load, MOST_TOGETHER, Plan, Trunks};

use crate::Error;

/// Head sets of several layers that are evaluated together: each of them is nearly a whole pass, which rows wait for.
const OF_SEVERAL: usize = 6;

/// Texts, of all lengths, on which the error of the quick model is measured, if there are as many.
const CALIBRATED: usize = 512;

/// A split, ready to be evaluated under any number of head sets.
pub(super) struct Sweep<'a> {
    models: &'a Models,
    machine: &'a Machine,
    split: Split<'a>,
    /// Decisions closer than this in the quick model are the exact model's, if there are two.
    bound: Option<f64>,
}

/// What all threads look at.
struct Split<'a> {
    texts: &'a Texts,
    plan: Plan,
    trunks: Trunks,
    decisions: AtomicUsize,
    /// Those that the exact model has made again.
    rechecked: AtomicUsize,
}

impl<'a> Sweep<'a> {
    /// `bound`: what an earlier sweep over these texts was [calibrated](Self::bound) to.
    ///
    /// # Errors
    /// If the memory is too small for one text, or a logit is NaN or infinite.
    pub(super) fn new(
        models: &'a Models,
        machine: &'a Machine,
        texts: &'a Texts,
        bound: Option<f64>,
    ) -> Result<Self, Error> {
        let plan = plan(models, machine, texts)?;
        let (decisions, rechecked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let split = Split { texts, trunks: Trunks::new(&plan), plan, decisions, rechecked };
        let mut sweep = Self { models, machine, split, bound };
        if models.quick.is_some() && bound.is_none() {
            sweep.bound = Some(sweep.calibrated()?);
        }
        Ok(sweep)
    }

    /// How far apart the two greatest logits of the quick model must be for a decision to be that of the exact one.
    pub(super) fn bound(&self) -> Option<f64> {
        self.bound
    }

    /// Number of batches.
    pub(super) fn batches(&self) -> usize {
        self.split.plan.batches.len()
    }

    /// What the second look did, if there is one.
    pub(super) fn report(&self) -> Option<String> {
        let [again, decisions] =
            [&self.split.rechecked, &self.split.decisions].map(|count| count.load(Ordering::Relaxed));
        self.bound.map(|bound| {
            format!(
                "{again} of {decisions} decisions were made again in f32: closer than {bound:.3}, {MARGIN} times the largest \
                 error of bf16 on the intact model, or on those looked at"
            )
        })
    }

    /// What the models say of each text under each of these sets, handed to `each` with the set's place, in order.
    pub(super) fn run(
        &self,
        sets: &[HeadSet],
        rescale: bool,
        progress: &mut Progress,
        each: impl FnMut(&mut Progress, usize, Vec<Outcome>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let split = &self.split;
        let (bound, sets_per_batch) = (self.bound, split.plan.sets_per_batch);
        let job = |models: &Models, group: Range<usize>, batch: usize| {
            let request = Request { sets: &sets[group], rescale, sets_per_batch, bound };
            no_grad(|| split.classify(models, &request, batch))
        };
        evaluate(self.lanes()?, &groups(sets), &split.plan.batches, job, progress, each)
    }

    /// Models for each thread.
    fn lanes(&self) -> Result<Vec<Models>, Error> {
        tch::set_num_threads(1);
        (0..self.machine.workers()).map(|_| self.models.share()).collect()
    }

    fn calibrated(&self) -> Result<f64, Error> {
        let split = &self.split;
        let every = split.texts.len().div_ceil(CALIBRATED);
        let job = |models: &Models, item: usize| {
            let rows: Vec<usize> = split.plan.batches[item].iter().copied().step_by(every).collect();
            no_grad(|| models.largest_error(split.texts, &rows))
        };
        let mut largest = 0.0_f64;
        workers::in_order(self.lanes()?, self.batches(), job, |_, error| {
            largest = largest.max(error);
            Ok(())
        })?;
        Ok(MARGIN * largest)
    }
}

/// How much of the split is computed at once.
fn plan(models: &Models, machine: &Machine, texts: &Texts) -> Result<Plan, Error> {
    let config: &BertConfig = models.exact.config();
    let bytes = |model: &BertClassifier| model.options().0.elt_size_in_bytes() as u64;
    let feed_forward = (config.intermediate_size as u64).div_ceil(config.hidden_size as u64);
    // Each layer on the way keeps its input, what its heads read and what they add together; in one of them stand query,
    // key, value, their products, the residual stream and the feed-forward block before and after its nonlinearity.
    let tensors = 3 * config.num_hidden_layers as u64 + 8 + 2 * feed_forward;
    let width = config.hidden_size as u64;
    let load = Load {
        lengths: &texts.lengths().collect::<Vec<_>>(),
        batch_tokens: BATCH_TOKENS,
        segment_bytes: &|tokens| tokens as u64 * width * tensors * bytes(&models.exact),
        thread_bytes: 0,
        trunk_bytes: width * bytes(models.quickest()),
    };
    Plan::new(machine, &load)
}

impl Split<'_> {
    /// What the models say of the texts of a batch under each set.
    fn classify(
        &self,
        models: &Models,
        request: &Request<'_>,
        batch: usize,
    ) -> Result<Vec<Vec<Outcome>>, Error> {
        let rows = &self.plan.batches[batch];
        let found = self.trunks.with(batch, |left| models.classify(self.texts, rows, request, left))?;
        self.decisions.fetch_add(request.sets.len() * rows.len(), Ordering::Relaxed);
        self.rechecked.fetch_add(found.rechecked, Ordering::Relaxed);
        let outcome =
            |(&row, predicted): (&usize, usize)| Outcome { gold: self.texts.classes[row], predicted };
        let of_set = |predicted: Vec<usize>| rows.iter().zip(predicted).map(outcome).collect();
        Ok(found.by_set.into_iter().map(of_set).collect())
    }
}

/// Neighbours in `sets` that are evaluated together: those that first differ from the intact model in the same layer.
fn groups(sets: &[HeadSet]) -> Vec<Range<usize>> {
    neighbours(sets, Layers::of, Layers::most_together)
}

/// Where a set has heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layers {
    /// Nowhere: the intact model.
    None,
    /// In this layer alone.
    One(usize),
    /// In this one and some above.
    From(usize),
}

impl Layers {
    fn of(set: &HeadSet) -> Self {
        let layers = || set.iter().map(HeadId::layer_index);
        match (layers().min(), layers().max()) {
            (Some(lowest), Some(highest)) if lowest == highest => Self::One(lowest),
            (Some(lowest), _) => Self::From(lowest),
            (None, _) => Self::None,
        }
    }

    fn most_together(self) -> usize {
        match self {
            Self::None => 1,
            Self::One(_) => MOST_TOGETHER,
            Self::From(_) => OF_SEVERAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::outcomes;
    use super::*;
    use core_masking::bert::BertDropout;
    use corpus::classifier_tokenizer::Encoded;
    use tch::{Device, Kind};

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn neighbours_with_the_same_lowest_layer_are_evaluated_together() {
        let sets = [
            HeadSet::none(),
            set(&["self:1:1"]),
            set(&["self:1:2", "self:1:3"]),
            set(&["self:3:1", "self:2:2"]),
            set(&["self:2:1", "self:4:1"]),
            set(&["self:2:1"]),
            set(&["self:1:1"]),
        ];
        assert_eq!(groups(&sets), [0..1, 1..3, 3..5, 5..6, 6..7]);
    }

    #[test]
    fn a_group_is_bounded_so_that_rows_come_soon() {
        let sizes = |names: &[&str]| {
            let sets = vec![set(names); 2 * MOST_TOGETHER + 1];
            groups(&sets).iter().map(ExactSizeIterator::len).max().unwrap()
        };
        assert_eq!((sizes(&["self:2:1"]), sizes(&["self:2:1", "self:3:1"])), (MOST_TOGETHER, OF_SEVERAL));
    }

    /// 3 layers of 4 heads.
    fn model(initializer_range: f64, kind: Kind) -> BertClassifier {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
            "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": initializer_range,
        });
        let config: BertConfig = serde_json::from_value(json).unwrap();
        BertClassifier::random(config, 3, (kind, Device::Cpu)).unwrap()
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
    fn alone(model: &BertClassifier, texts: &Texts, set: &HeadSet, rescale: bool) -> Vec<Outcome> {
        let scored = crate::Scored::first("test".to_owned(), None, rescale);
        let gates = scored.gates(&model.layout(), set, model.options()).unwrap();
        let rows: Vec<usize> = (0..texts.len()).collect();
        let logits = model.forward(&texts.batch(model, &rows).unwrap(), &gates, &BertDropout::OFF);
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
        let sweep = Sweep::new(models, machine, texts, None).unwrap();
        let (sets, mut progress, mut found) = (some_sets(), Progress::new(0, true), Vec::new());
        let each = |_: &mut Progress, index: usize, outcomes| {
            assert_eq!(index, found.len(), "in order");
            found.push(outcomes);
            Ok(())
        };
        sweep.run(&sets, rescale, &mut progress, each).unwrap();
        (found, sweep.split.rechecked.into_inner())
    }

    /// Whatever the memory and the sets, each text has the outcome that it has when its set is evaluated alone.
    #[test]
    fn sharing_changes_no_outcome() {
        let texts = texts(40);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 70_000)] {
            let machine = Machine { memory, ..crate::test_machine::machine() };
            let models = Models::new(model(0.6, Kind::Double), &machine).unwrap();
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
            let machine = Machine { memory, precision, ..crate::test_machine::machine() };
            let models = Models::new(model(0.3, Kind::Float), &machine).unwrap();
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
