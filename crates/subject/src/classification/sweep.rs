//! Many head sets over one split: what they share is computed once, within a bound of memory.
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use core_masking::bert::{BertClassifier, BertConfig, Trunk, Variants};
use core_masking::{HeadId, HeadSet};
use corpus::batches::longest_first;
use stats::classification::Outcome;
use tch::{Device, Kind, no_grad};

use super::texts::{BATCH_TOKENS, Texts, outcomes};
use crate::args::Machine;
use crate::{Error, workers};

/// Head sets that are evaluated together if they mask heads of one layer alone, and so share all layers below.
const OF_ONE_LAYER: usize = 16;

/// As many of other sets. More would share more, but results are handed on, and rows written, only when all of them are
/// there.
const OF_SEVERAL: usize = 6;

/// A split, ready to be evaluated under any number of head sets.
pub(super) struct Sweep<'a> {
    model: &'a BertClassifier,
    machine: &'a Machine,
    split: Split<'a>,
}

/// What all threads look at.
struct Split<'a> {
    texts: &'a Texts,
    batches: Vec<Vec<usize>>,
    plan: Plan,
    /// What the last group left of each batch, if there is room for it.
    trunks: Vec<Mutex<Option<Trunk>>>,
}

/// How much is computed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// Bound of a batch, padding included.
    tokens: usize,
    /// Variants that are rows of one batch.
    together: usize,
    /// Whether what the intact model computes is kept between groups.
    keeps_trunks: bool,
}

/// What the plan depends on.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Bytes that may be used.
    memory: u64,
    workers: u64,
    /// Whether variants are to ride together: on a GPU, which wants many rows.
    rides: bool,
    /// Bytes of what enters a layer, for one token.
    token: u64,
    /// How many times as much a batch takes on its way through the layers.
    walk: u64,
    /// Tokens of the longest text.
    longest: u64,
    /// Tokens of all texts, each as long as the longest one of its batch.
    all: u64,
}

impl Sizes {
    fn new(model: &BertClassifier, machine: &Machine, texts: &Texts) -> Self {
        let config: &BertConfig = model.config();
        let bytes = if model.options().0 == Kind::BFloat16 { 2 } else { 4 };
        let feed_forward = (config.intermediate_size as u64).div_ceil(config.hidden_size as u64);
        let lengths: Vec<usize> = texts.lengths().collect();
        let padded =
            |batch: &Vec<usize>| batch.len() * batch.iter().map(|&row| lengths[row]).max().unwrap_or(0);
        let batches = longest_first(texts.lengths(), BATCH_TOKENS);
        Self {
            memory: machine.memory,
            workers: machine.workers() as u64,
            rides: machine.device != Device::Cpu,
            token: config.hidden_size as u64 * bytes,
            // Each layer on the way keeps its input and what its heads read; in one of them stand query, key, value, their
            // products, the residual stream and the feed-forward block before and after its nonlinearity.
            walk: 2 * config.num_hidden_layers as u64 + 8 + 2 * feed_forward,
            longest: texts.lengths().max().unwrap_or(0) as u64,
            all: batches.iter().map(padded).sum::<usize>() as u64,
        }
    }

    /// # Errors
    /// If the memory is too small for one text.
    fn plan(self) -> Result<Plan, Error> {
        let needed = self.longest * self.walk * self.token * self.workers;
        if self.memory < needed {
            return Err(Error::Memory { memory: self.memory, needed, tokens: self.longest });
        }
        let trunks = self.all * self.token;
        let keeps_trunks = trunks <= (self.memory - needed) / 2;
        let free = self.memory - if keeps_trunks { trunks } else { 0 };
        let tokens = free / self.workers / (self.walk * self.token);
        let together = if self.rides { tokens / BATCH_TOKENS as u64 } else { 1 };
        let tokens = tokens.min(BATCH_TOKENS as u64);
        Ok(Plan { tokens: tokens as usize, together: together.max(1) as usize, keeps_trunks })
    }
}

impl<'a> Sweep<'a> {
    /// # Errors
    /// If the memory is too small for one text.
    pub(super) fn new(
        model: &'a BertClassifier,
        machine: &'a Machine,
        texts: &'a Texts,
    ) -> Result<Self, Error> {
        let plan = Sizes::new(model, machine, texts).plan()?;
        let batches = longest_first(texts.lengths(), plan.tokens);
        let trunks = batches.iter().map(|_| Mutex::new(None)).collect();
        Ok(Self { model, machine, split: Split { texts, batches, plan, trunks } })
    }

    /// Number of batches.
    pub(super) fn batches(&self) -> usize {
        self.split.batches.len()
    }

    /// What the model says of each text under each of these sets; `advance` is called after each batch.
    pub(super) fn group(
        &self,
        sets: &[HeadSet],
        rescale: bool,
        mut advance: impl FnMut(),
    ) -> Result<Vec<Vec<Outcome>>, Error> {
        tch::set_num_threads(1);
        let variants = Variants::new(self.model, sets, rescale)?;
        let state = |_| Ok((self.model.share()?, variants.share()));
        let states = (0..self.machine.workers()).map(state).collect::<Result<Vec<_>, Error>>()?;
        let split = &self.split;
        let job = |(model, variants): &(BertClassifier, Variants), item: usize| {
            no_grad(|| split.classify(model, variants, item))
        };
        let nothing = vec![Outcome { gold: 0, predicted: 0 }; split.texts.len()];
        let mut segments = vec![nothing; sets.len()];
        workers::in_order(states, split.batches.len(), job, |item, outcomes| {
            for (segments, outcomes) in segments.iter_mut().zip(outcomes) {
                for (&row, outcome) in split.batches[item].iter().zip(outcomes) {
                    segments[row] = outcome;
                }
            }
            advance();
            Ok(())
        })?;
        Ok(segments)
    }
}

impl Split<'_> {
    fn classify(
        &self,
        model: &BertClassifier,
        variants: &Variants,
        item: usize,
    ) -> Result<Vec<Vec<Outcome>>, Error> {
        let (rows, slot) = (&self.batches[item], &self.trunks[item]);
        let batch = self.texts.batch(model, rows)?;
        let left = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (logits, trunk) = model.sweep(&batch, variants, self.plan.together, left);
        if self.plan.keeps_trunks {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(trunk);
        }
        logits.iter().map(|logits| outcomes(logits, self.texts, rows)).collect()
    }
}

/// Neighbours in `sets` that are evaluated together: those that first differ from the intact model in the same layer.
pub(super) fn groups(sets: &[HeadSet]) -> Vec<Range<usize>> {
    let mut groups: Vec<(Layers, Range<usize>)> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let layers = Layers::of(set);
        match groups.last_mut() {
            Some((last, range)) if *last == layers && range.len() < layers.most_together() => {
                range.end = index + 1;
            }
            _ => groups.push((layers, index..index + 1)),
        }
    }
    groups.into_iter().map(|(_, range)| range).collect()
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
            Self::One(_) => OF_ONE_LAYER,
            Self::From(_) => OF_SEVERAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_masking::bert::BertDropout;
    use corpus::classifier_tokenizer::Encoded;

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
            let sets = vec![set(names); 2 * OF_ONE_LAYER + 1];
            groups(&sets).iter().map(ExactSizeIterator::len).max().unwrap()
        };
        assert_eq!((sizes(&["self:2:1"]), sizes(&["self:2:1", "self:3:1"])), (OF_ONE_LAYER, OF_SEVERAL));
    }

    const SIZES: Sizes =
        Sizes { memory: 1_000_000, workers: 2, rides: false, token: 10, walk: 20, longest: 50, all: 40_000 };

    /// Of a million bytes the intact model's take 400,000, and each of two workers has 300,000 for 200 bytes a token.
    #[test]
    fn batches_shrink_to_the_memory_there_is() {
        let plan = SIZES.plan().unwrap();
        assert_eq!(plan, Plan { tokens: 1_500, together: 1, keeps_trunks: true });
        let plan = Sizes { all: 60_000, ..SIZES }.plan().unwrap();
        assert_eq!(plan, Plan { tokens: 2_048, together: 1, keeps_trunks: false });
        let plan = Sizes { memory: 10_000_000, rides: true, workers: 1, ..SIZES }.plan().unwrap();
        // 9,600,000 bytes are 48,000 tokens, 23 batches
        assert_eq!(plan, Plan { tokens: 2_048, together: 23, keeps_trunks: true });
    }

    #[test]
    fn too_little_memory_for_one_text_is_refused_with_what_is_needed() {
        let sizes = Sizes { memory: 10_000, ..SIZES };
        let message = sizes.plan().unwrap_err().to_string();
        assert!(message.contains("--memory 10000") && message.contains("50 tokens"), "{message}");
        let Err(Error::Memory { needed, .. }) = sizes.plan() else { panic!("{message}") };
        for all in [100, 800, 40_000] {
            assert!(Sizes { memory: needed, all, ..SIZES }.plan().is_ok());
            assert!(Sizes { memory: needed - 1, all, ..SIZES }.plan().is_err());
        }
    }

    /// Whatever the memory and the sets, each text has the outcome that it has when its set is evaluated alone.
    #[test]
    fn sharing_changes_no_outcome() {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
            "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.6,
        });
        let config: BertConfig = serde_json::from_value(json).unwrap();
        let model = BertClassifier::random(config, 3, (Kind::Double, Device::Cpu)).unwrap();
        let encoded = (0..40_u32).map(|text| {
            let ids: Vec<u32> = (0..3 + text % 9).map(|place| 1 + (text * 7 + place * 5) % 22).collect();
            let segments = vec![0; ids.len()];
            Encoded { ids, segments }
        });
        let texts = Texts::new(encoded.collect(), vec![0; 40]);
        let sets =
            [&["self:1:1"][..], &["self:2:1", "self:3:2"], &["self:2:3"], &["self:3:2"], &["self:3:4"]];
        let sets: Vec<HeadSet> = sets.into_iter().map(set).collect();
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 60_000)] {
            let machine = Machine { memory, ..crate::args::tests::machine() };
            let sweep = Sweep::new(&model, &machine, &texts).unwrap();
            let mut together = Vec::new();
            for range in [0..1, 1..3, 3..5] {
                together.extend(sweep.group(&sets[range], rescale, || ()).unwrap());
            }
            let scored = crate::Scored::first("test".to_owned(), None, rescale);
            let rows: Vec<usize> = (0..40).collect();
            for (set, found) in sets.iter().zip(&together) {
                let gates = scored.gates(&model.layout(), set, model.options()).unwrap();
                let batch = texts.batch(&model, &rows).unwrap();
                let logits = model.forward(&batch, &gates, &BertDropout::OFF);
                assert_eq!(outcomes(&logits, &texts, &rows).unwrap(), *found);
            }
            assert_ne!(together[0], together[1], "the sets must differ for the test to mean something");
        }
    }
}
