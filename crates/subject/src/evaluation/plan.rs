//! How much of a split is computed at once, and by how many threads, within a bound of memory.
//!
//! Batches have their full size unless the memory is too small, and then only those shrink that do not fit; before they get
//! too small for quick matrix products there are fewer threads. Numbers depend on batches in their last digits, and so on the
//! threads where the memory is too small for full batches on all of them.
use corpus::batches::shortest_first;
use tch::Device;
use training::Machine;

use crate::error::Error;

/// Head sets that are evaluated together at the most. More would share more, but results are handed on, and rows written,
/// only when all of them are there.
pub(crate) const MOST_TOGETHER: usize = 16;

/// Batches are not cut into smaller ones than this, in tokens with padding, as long as there are threads to do without.
const LEAST_TOKENS: usize = 512;

/// Segments of a batch that can take the worst case at once, at the least.
const LEAST_GROWING: u64 = 4;

/// How much is computed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Places of the segments of each batch.
    pub batches: Vec<Vec<usize>>,
    /// Threads with a model of their own.
    pub workers: usize,
    /// Head sets that are rows of one batch.
    pub sets_per_batch: usize,
    /// Whether what the intact model computes of each batch is kept for later head sets.
    pub keeps_trunks: bool,
    /// Bytes for batches that take more than is likely.
    pub growth: u64,
    /// How each batch takes of these.
    pub growing: Vec<Growing>,
}

/// How a batch goes on that takes more memory than is likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growing {
    /// Rows that go on at once, the others after them.
    pub rows: usize,
    /// Bytes that these take besides what the batch has.
    pub bytes: u64,
}

/// What a split asks of the memory.
pub(crate) struct Load<'a> {
    /// Tokens of each segment.
    pub lengths: Vec<usize>,
    /// Tokens of a batch, padding included, where there is memory for them.
    pub batch_tokens: usize,
    /// Whether batches of long segments come before those of many, since they take longer. The last ones should take least, so
    /// that no thread waits long for another.
    pub longest_first: bool,
    /// What a segment of this many tokens takes on its way through the model; more for longer ones.
    pub segment: Box<dyn Fn(usize) -> SegmentBytes + 'a>,
    /// Bytes that each thread needs whatever the batch.
    pub thread_bytes: u64,
    /// Bytes of what enters a layer, for one token; 0 if nothing is kept of a batch.
    pub trunk_bytes: u64,
    /// Bytes of the model.
    pub model_bytes: u64,
}

/// Bytes that a segment, or a batch, takes on its way through the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentBytes {
    /// Nearly always.
    pub likely: u64,
    /// In the worst case.
    pub most: u64,
}

impl SegmentBytes {
    /// Of a segment whose way is known.
    pub(crate) fn exactly(bytes: u64) -> Self {
        Self { likely: bytes, most: bytes }
    }

    fn growth(self) -> u64 {
        self.most.saturating_sub(self.likely)
    }

    fn times(self, rows: u64) -> Self {
        Self { likely: rows * self.likely, most: rows * self.most }
    }
}

/// Batches that fit.
struct Fitting {
    batches: Vec<Vec<usize>>,
    growth: u64,
}

impl Plan {
    /// # Errors
    /// If the memory is too small for one segment.
    pub(crate) fn new(machine: &Machine, load: &Load<'_>) -> Result<Self, Error> {
        let memory = machine.memory.beside(load.model_bytes);
        let mut whole = shortest_first(load.lengths.iter().copied(), load.batch_tokens);
        if load.longest_first {
            whole.reverse();
        }
        let trunks = load.trunk_bytes * whole.iter().map(|batch| load.padded(batch) as u64).sum::<u64>();
        let may_keep = trunks > 0 && trunks <= memory / 2;
        for workers in (1..=machine.evaluators()).rev() {
            for most_pieces in [1, load.batch_tokens / LEAST_TOKENS] {
                for kept in may_keep.then_some(trunks).into_iter().chain([0]) {
                    if let Some(fitting) = load.fitting(&whole, memory - kept, workers, most_pieces) {
                        return Ok(Self::of(machine.device, load, fitting, (workers, kept > 0)));
                    }
                }
            }
        }
        let smallest = load.fitting(&whole, memory, 1, usize::MAX);
        let fitting = smallest.ok_or_else(|| load.too_large(memory))?;
        Ok(Self::of(machine.device, load, fitting, (1, false)))
    }

    fn of(
        device: Device,
        load: &Load<'_>,
        Fitting { batches, growth }: Fitting,
        (workers, keeps_trunks): (usize, bool),
    ) -> Self {
        let most = |of: &dyn Fn(&[usize]) -> u64| batches.iter().map(|batch| of(batch)).max().unwrap_or(0);
        let of_set = workers as u64 * most(&|batch| load.bytes(batch).likely);
        let sets_per_batch = match device {
            Device::Cpu => 1, // whose caches one set fills
            // A power of two, so that a little more or less memory changes nothing.
            _ => {
                let more = growth.saturating_sub(most(&|batch| load.least_growth(batch))) / of_set.max(1);
                1 << (1 + more).min(MOST_TOGETHER as u64).ilog2()
            }
        };
        let growth = growth - (sets_per_batch as u64 - 1) * of_set;
        let growing = batches.iter().map(|batch| load.growing(batch, sets_per_batch, growth)).collect();
        Self { batches, workers, sets_per_batch, keeps_trunks, growth, growing }
    }
}

impl Load<'_> {
    /// Refuses a memory that is too small for one segment of this many tokens.
    ///
    /// # Errors
    /// Names the memory that would do.
    pub(crate) fn check(&self, machine: &Machine, tokens: usize) -> Result<(), Error> {
        let memory = machine.memory.beside(self.model_bytes);
        if memory < self.needed(tokens) { Err(self.too_large_of(memory, tokens)) } else { Ok(()) }
    }

    /// Bytes that one thread needs for a segment of this many tokens.
    fn needed(&self, tokens: usize) -> u64 {
        self.thread_bytes + (self.segment)(tokens).most
    }

    fn too_large(&self, memory: u64) -> Error {
        self.too_large_of(memory, self.lengths.iter().copied().max().unwrap_or(0))
    }

    fn too_large_of(&self, memory: u64, tokens: usize) -> Error {
        Error::Memory { memory, needed: self.needed(tokens), tokens: tokens as u64 }
    }

    /// The batches of `whole`, some of them cut, so that all `workers` can compute any of them, and some segments of one at least
    /// can take the worst case; none if a batch would have to be cut into more pieces than allowed.
    fn fitting(
        &self,
        whole: &[Vec<usize>],
        memory: u64,
        workers: usize,
        most_pieces: usize,
    ) -> Option<Fitting> {
        let workers = workers as u64;
        let left = memory.checked_sub(workers * self.thread_bytes)?;
        let fits = |batch: &[usize]| workers * self.bytes(batch).likely + self.least_growth(batch) <= left;
        let batches = cut(whole, most_pieces, fits)?;
        let growth = |batches: &[Vec<usize>]| {
            left - workers * batches.iter().map(|batch| self.bytes(batch).likely).max().unwrap_or(0)
        };
        // The batch that takes most is not always the one that may grow most.
        let room = growth(&batches);
        let batches = cut(whole, most_pieces, |batch| fits(batch) && self.least_growth(batch) <= room)?;
        Some(Fitting { growth: growth(&batches), batches })
    }

    /// Bytes that a batch must be able to grow by: with all its segments, or with a few of them at once.
    fn least_growth(&self, batch: &[usize]) -> u64 {
        let few = LEAST_GROWING * (self.segment)(self.longest(batch)).most;
        few.min(self.bytes(batch).growth())
    }

    /// How a batch grows that is computed under this many sets at once, of `growth` bytes in all.
    fn growing(&self, batch: &[usize], sets: usize, growth: u64) -> Growing {
        let segment = (self.segment)(self.longest(batch));
        let rows = batch.len() * sets;
        let all = segment.times(rows as u64).growth();
        if all <= growth {
            return Growing { rows, bytes: all };
        }
        // What the batch has stays until its last rows are done.
        let at_once = (growth / segment.most).clamp(1, rows as u64);
        Growing { rows: at_once as usize, bytes: (at_once * segment.most).min(growth) }
    }

    fn longest(&self, batch: &[usize]) -> usize {
        batch.iter().map(|&row| self.lengths[row]).max().unwrap_or(0)
    }

    /// Tokens of a batch, padding included.
    fn padded(&self, batch: &[usize]) -> usize {
        batch.len() * self.longest(batch)
    }

    fn bytes(&self, batch: &[usize]) -> SegmentBytes {
        (self.segment)(self.longest(batch)).times(batch.len() as u64)
    }
}

/// Batches that all fit, cut one by one into as few equal ones as do; none if these are more than allowed.
fn cut(
    batches: &[Vec<usize>],
    most_pieces: usize,
    fits: impl Fn(&[usize]) -> bool,
) -> Option<Vec<Vec<usize>>> {
    let mut all = Vec::with_capacity(batches.len());
    for batch in batches {
        let in_pieces = |pieces| batch.chunks(batch.len().div_ceil(pieces));
        let enough = |&pieces: &usize| in_pieces(pieces).all(&fits);
        let pieces = (1..=batch.len().min(most_pieces)).find(enough)?;
        all.extend(in_pieces(pieces).map(<[usize]>::to_vec));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::machine;
    use proptest::prelude::*;
    use training::Memory;

    /// 200 bytes a token, twice that at the most, and 1,000 for each of two threads.
    fn load(lengths: Vec<usize>) -> Load<'static> {
        let segment = |tokens| SegmentBytes { likely: 200 * tokens as u64, most: 400 * tokens as u64 };
        Load {
            lengths,
            batch_tokens: 2_000,
            longest_first: true,
            segment: Box::new(segment),
            thread_bytes: 1_000,
            trunk_bytes: 1,
            model_bytes: 50_000,
        }
    }

    fn plan(memory: u64, device: Device) -> Result<Plan, Error> {
        let machine = Machine { memory: Memory::BesideModel(memory), device, ..machine() };
        Plan::new(&machine, &load(vec![20; 1000]))
    }

    fn sizes(plan: &Plan) -> (usize, usize, bool) {
        (plan.batches[0].len(), plan.workers, plan.keeps_trunks)
    }

    /// Batches of 100 segments likely take 400,000 bytes, all trunks 20,000, and four segments that grow 32,000. Two threads need
    /// 2,000 + 2 * 400,000 + 32,000. With less than that batches are cut: into halves of 1,000 tokens, which take 434,000, or
    /// thirds of 680, 2,000 + 2 * 34 * 4,000 + 32,000 = 306,000. Quarters would have less than 512 tokens, so one thread is
    /// left, with halves of 1,000 + 200,000 + 32,000; and in the end with batches of two, of which both may grow.
    #[test]
    fn batches_shrink_before_threads_go_and_shrink_on_when_one_is_left() {
        assert_eq!(sizes(&plan(854_000, Device::Cpu).unwrap()), (100, 2, true));
        assert_eq!(sizes(&plan(853_999, Device::Cpu).unwrap()), (100, 2, false));
        assert_eq!(sizes(&plan(833_999, Device::Cpu).unwrap()), (50, 2, true));
        assert_eq!(sizes(&plan(454_000, Device::Cpu).unwrap()), (50, 2, true));
        assert_eq!(sizes(&plan(453_999, Device::Cpu).unwrap()), (34, 2, true));
        assert_eq!(sizes(&plan(306_000, Device::Cpu).unwrap()), (34, 2, false));
        assert_eq!(sizes(&plan(305_999, Device::Cpu).unwrap()), (50, 1, true));
        assert_eq!(sizes(&plan(20_000, Device::Cpu).unwrap()), (2, 1, false));
    }

    /// 853,999 bytes, less 2,000 and two batches: what is left is for segments that grow, six at once at 8,000 each; or for all
    /// of a batch, which then only takes what it has not.
    #[test]
    fn what_is_left_beside_likely_batches_is_for_those_that_grow() {
        let tight = plan(853_999, Device::Cpu).unwrap();
        assert_eq!((tight.growth, tight.growing[0]), (51_999, Growing { rows: 6, bytes: 48_000 }));
        let ample = plan(10_000_000, Device::Cpu).unwrap();
        assert_eq!(ample.growing[0], Growing { rows: 100, bytes: 400_000 });
    }

    /// Of a batch of 2,000 tokens and one of 400 only the former is cut.
    #[test]
    fn only_batches_that_do_not_fit_are_cut_and_either_end_comes_first() {
        let lengths: Vec<usize> = [vec![200; 10], vec![4; 100]].concat();
        let machine = Machine { memory: Memory::BesideModel(800_000), ..machine() };
        let plan = Plan::new(&machine, &load(lengths.clone())).unwrap();
        let sizes: Vec<usize> = plan.batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [5, 5, 100]);
        let plan = Plan::new(&machine, &Load { longest_first: false, ..load(lengths) }).unwrap();
        let sizes: Vec<usize> = plan.batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [100, 5, 5]);
    }

    /// Two threads take 2,000 bytes, batches of 400,000 for each set, 20,000 for trunks and 32,000 for segments that grow:
    /// 854,000 bytes for one set, and 800,000 for each more.
    #[test]
    fn a_gpu_computes_several_sets_at_once() {
        let sets = |memory| plan(memory, Device::Cuda(0)).unwrap().sets_per_batch;
        assert_eq!((sets(854_000), sets(1_653_999), sets(1_654_000)), (1, 1, 2));
        assert_eq!((sets(6_453_999), sets(6_454_000)), (4, 8));
        assert_eq!(sets(100_000_000), MOST_TOGETHER);
    }

    #[test]
    fn too_little_memory_for_one_segment_is_refused_with_what_would_do() {
        let message = plan(5_000, Device::Cpu).unwrap_err().to_string();
        assert!(message.contains("5000 bytes") && message.contains("20 tokens"), "{message}");
        assert!(message.ends_with("--memory 9K"), "{message}");
        let Err(Error::Memory { needed, .. }) = plan(5_000, Device::Cpu) else { panic!("{message}") };
        assert_eq!(needed, 1_000 + 20 * 400);
        assert!(plan(needed - 1, Device::Cpu).is_err());
        assert_eq!(sizes(&plan(needed, Device::Cpu).unwrap()), (1, 1, false));
        let free = Machine { memory: Memory::WithModel(needed + 50_000), ..machine() };
        assert!(Plan::new(&free, &load(vec![20])).is_ok());
        assert!(load(Vec::new()).check(&free, 20).is_ok() && load(Vec::new()).check(&free, 21).is_err());
    }

    proptest! {
        /// Whatever the lengths and the memory: each segment is in one batch; all threads can compute any batch at once;
        /// one that grows finds room.
        #[test]
        fn memory_stays_under_the_bound(
            lengths in prop::collection::vec(1_usize..300, 1..80), threads in 1_usize..20, memory in 121_000_u64..8_000_000,
        ) {
            let machine = Machine { memory: Memory::BesideModel(memory), threads, ..machine() };
            let load = load(lengths);
            let plan = Plan::new(&machine, &load).unwrap();
            let mut rows = plan.batches.concat();
            rows.sort_unstable();
            prop_assert!(rows.into_iter().eq(0..load.lengths.len()));
            let largest = plan.batches.iter().map(|batch| load.bytes(batch).likely).max().unwrap();
            let trunks: usize = if plan.keeps_trunks { plan.batches.iter().map(|batch| load.padded(batch)).sum() } else { 0 };
            let threads = plan.workers as u64 * (1_000 + largest);
            prop_assert!(threads + plan.growth + trunks as u64 <= memory);
            prop_assert!(plan.growing.iter().all(|growing| growing.bytes <= plan.growth && growing.rows > 0));
            for (batch, growing) in plan.batches.iter().zip(&plan.growing) {
                let segment = (load.segment)(load.longest(batch));
                let is_whole = growing.rows == batch.len();
                let least = if is_whole { load.bytes(batch).growth() } else { segment.most };
                prop_assert!(growing.bytes >= least);
            }
        }
    }
}
