//! Batches of a split and the threads that compute them, within the machine's memory.
//!
//! If memory is short, batches are split down to [`MIN_TOKENS`] first; then the number of threads is reduced. The minimum is one segment
//! on one thread. The last digits of results depend on the batches.
use corpus::batches::shortest_first;
use tch::Device;
use training::Machine;

use super::memory::Need;

/// Maximum number of head sets that are evaluated together. More sets would share more work, but results are written only when all sets of
/// a group are finished.
pub(crate) const MAX_TOGETHER: usize = 16;

/// Memory per thread allows batches of at least this many tokens, padding included, or of [`MIN_ROWS`] segments if these have fewer
/// tokens: matrix products of smaller batches are slow.
const MIN_TOKENS: usize = 512;
const MIN_ROWS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Indices of the segments of each batch.
    pub batches: Vec<Vec<usize>>,
    /// Number of threads, each with its own model.
    pub workers: usize,
    /// Head sets whose rows form one batch.
    pub sets_per_batch: usize,
    /// True if results of the full model are cached for each batch and reused for later head sets.
    pub keeps_prefixes: bool,
    /// Tokens of each batch, padding included.
    pub tokens: Vec<usize>,
}

impl Plan {
    /// Plans batches for segments of these lengths, in tokens.
    pub(crate) fn new(machine: &Machine, need: &Need<'_>, lengths: &[usize]) -> Self {
        // The allocator keeps up to a quarter more than tensors take at one time, so the process grows by more than the tensors do.
        let memory = machine.memory.beside(need.model_bytes) / 5 * 4;
        let longest = |batch: &[usize]| batch.iter().map(|&row| lengths[row]).max().unwrap_or(0);
        let padded = |batch: &Vec<usize>| batch.len() * longest(batch);
        let mut whole = shortest_first(lengths.iter().copied(), need.batch_tokens);
        if need.longest_first {
            whole.reverse();
        }
        need.warn(memory, lengths.iter().copied().max().unwrap_or(0));
        let least = whole.iter().map(|batch| need.least(batch.len(), longest(batch))).max().unwrap_or(0);
        let threads = |memory: u64| (memory / least.max(1)).min(machine.evaluators() as u64);
        let workers = threads(memory).max(1);
        let cache = need.cache_bytes * whole.iter().map(padded).sum::<usize>() as u64;
        let keeps_prefixes = (1..=memory / 2).contains(&cache) && threads(memory - cache) == workers;
        let room = (memory - if keeps_prefixes { cache } else { 0 }) / workers;
        let pieces = |batch: &Vec<usize>| {
            let pieces = batch.len().div_ceil(need.rows(longest(batch), room));
            batch.chunks(batch.len().div_ceil(pieces)).map(<[usize]>::to_vec).collect::<Vec<_>>()
        };
        let batches: Vec<Vec<usize>> = whole.iter().flat_map(pieces).collect();
        let sets = |batch: &Vec<usize>| need.rows(longest(batch), room) / batch.len();
        let sets_per_batch = match machine.device {
            Device::Cpu => 1, // one head set fills the CPU caches
            // A power of two, so that small changes in memory do not change the plan.
            _ => 1 << batches.iter().map(sets).min().unwrap_or(1).clamp(1, MAX_TOGETHER).ilog2(),
        };
        let tokens = batches.iter().map(padded).collect();
        Self { batches, workers: workers as usize, sets_per_batch, keeps_prefixes, tokens }
    }
}

impl Need<'_> {
    /// Returns the number of segments of this many tokens that fit into the memory of a thread, in bytes; at least 1.
    fn rows(&self, tokens: usize, memory: u64) -> usize {
        let rows = memory.saturating_sub(self.thread_bytes) / (self.segment)(tokens).max(1);
        usize::try_from(rows.max(1)).unwrap_or(usize::MAX)
    }

    /// Returns the bytes of the smallest batch that `rows` segments are split into before the number of threads is reduced.
    fn least(&self, rows: usize, tokens: usize) -> u64 {
        let rows = rows.min(MIN_ROWS).min(MIN_TOKENS / tokens.max(1)).max(1);
        self.thread_bytes + rows as u64 * (self.segment)(tokens)
    }

    /// Warns if not even one segment of this many tokens fits into the memory.
    fn warn(&self, memory: u64, tokens: usize) {
        let bytes = self.thread_bytes + (self.segment)(tokens);
        if bytes > memory {
            let [bytes, memory] = [bytes, memory].map(|bytes| bytes as f64 / 1e6);
            words::warn(&format!(
                "a segment of {tokens} tokens may take {bytes:.1} MB in addition to the model, but {memory:.1} MB are free or \
                 allowed by --memory: segments are computed one at a time"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::machine;
    use proptest::prelude::*;
    use training::Memory;

    /// 400 bytes per token, and 1,000 for each of two threads.
    fn need() -> Need<'static> {
        Need {
            batch_tokens: 2_000,
            longest_first: true,
            segment: Box::new(|tokens| 400 * tokens as u64),
            thread_bytes: 1_000,
            cache_bytes: 1,
            model_bytes: 50_000,
        }
    }

    /// `memory`: for tensors, which may take four fifths of the machine's memory.
    fn plan(memory: u64, device: Device) -> Plan {
        let machine = Machine { memory: Memory::ExcludingModel(memory / 4 * 5), device, ..machine() };
        Plan::new(&machine, &need(), &[20; 1000])
    }

    /// A batch of 100 segments takes 801,000 bytes on its thread, the smallest batch (16 segments) 129,000, the prefix cache 20,000. If two
    /// full batches and the cache do not fit, batches are split into equal parts; then the cache is dropped, then a thread. The minimum is
    /// single segments.
    #[test]
    fn batches_shrink_before_threads_go_and_nothing_is_refused() {
        for (memory, expected) in [
            (1_622_000, (100, 2, true)),
            (1_621_999, (50, 2, true)),
            (278_000, (15, 2, true)),
            (277_999, (17, 2, false)),
            (258_000, (15, 2, false)),
            (257_999, (25, 1, true)),
            (149_000, (15, 1, true)),
            (148_999, (17, 1, false)),
            (9_000, (1, 1, false)),
            (10, (1, 1, false)),
        ] {
            let plan = plan(memory, Device::Cpu);
            assert_eq!((plan.batches[0].len(), plan.workers, plan.keeps_prefixes), expected, "{memory}");
        }
    }

    /// Of batches with 2,000 and 400 tokens only the first is split.
    #[test]
    fn only_batches_that_do_not_fit_are_cut_and_either_end_comes_first() {
        let lengths: Vec<usize> = [vec![200; 10], vec![4; 100]].concat();
        let machine = Machine { memory: Memory::ExcludingModel(1_200_000), ..machine() };
        for (longest_first, expected) in [(true, [5, 5, 100]), (false, [100, 5, 5])] {
            let plan = Plan::new(&machine, &Need { longest_first, ..need() }, &lengths);
            assert!(plan.batches.iter().map(Vec::len).eq(expected), "{:?}", plan.batches);
        }
    }

    /// Each of two threads needs 1,000 bytes plus 800,000 per head set; the prefix cache takes 20,000.
    #[test]
    fn a_gpu_computes_several_sets_at_once() {
        let sets = |memory| plan(memory, Device::Cuda(0)).sets_per_batch;
        assert_eq!((sets(1_622_000), sets(3_221_999), sets(3_222_000)), (1, 1, 2));
        assert_eq!(sets(100_000_000), MAX_TOGETHER);
    }

    proptest! {
        /// Each segment is in one batch. If the longest segment fits into memory, all threads can compute any batches at once. With ample
        /// memory, batches do not depend on the number of threads.
        #[test]
        fn memory_stays_within_the_budget(
            lengths in prop::collection::vec(1_usize..300, 1..80), threads in 1_usize..20, memory in 1_000_u64..8_000_000,
        ) {
            let plan = |threads, memory| {
                let machine = Machine { memory: Memory::ExcludingModel(memory), threads, ..machine() };
                Plan::new(&machine, &need(), &lengths)
            };
            prop_assert_eq!(plan(threads, 1 << 40).batches, plan(1, 1 << 40).batches);
            let plan = plan(threads, memory);
            let mut rows = plan.batches.concat();
            rows.sort_unstable();
            prop_assert!(rows.into_iter().eq(0..lengths.len()));
            let memory = memory / 5 * 4;
            if memory < 1_000 + 400 * *lengths.iter().max().unwrap() as u64 {
                prop_assert_eq!(plan.workers, 1);
                return Ok(());
            }
            let cache = if plan.keeps_prefixes { lengths.iter().sum::<usize>() as u64 } else { 0 };
            for tokens in plan.tokens {
                prop_assert!(plan.workers as u64 * (1_000 + 400 * tokens as u64) + cache <= memory);
            }
        }
    }
}
