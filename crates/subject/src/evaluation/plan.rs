//! Batches of a split, and the threads that compute them, within a budget of memory.
//!
//! Batches have their full size unless the memory is too small, and then only those shrink that do not fit; before they get
//! too small for quick matrix products there are fewer threads. The least is one segment on one thread. Numbers depend on
//! batches in their last digits, and so on the threads where the memory is too small for full batches on all of them.
use corpus::batches::shortest_first;
use tch::Device;
use training::Machine;

use super::memory::Need;

/// Head sets that are evaluated together at the most. More would share more, but results are handed on, and rows written,
/// only when all of them are there.
pub(crate) const MOST_TOGETHER: usize = 16;

/// Batches are not cut into smaller ones than this, in tokens with padding, as long as there are threads to do without.
const LEAST_TOKENS: usize = 512;

/// Segments of a batch for which there is memory when they take more than is likely.
const LEAST_GROWING: u64 = 4;

/// Batches and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Places of the segments of each batch.
    pub batches: Vec<Vec<usize>>,
    /// Threads with a model of their own.
    pub workers: usize,
    /// Head sets that are rows of one batch.
    pub sets_per_batch: usize,
    /// True if results of the intact model are kept of each batch for later head sets.
    pub keeps_prefixes: bool,
    /// Rows of each batch that go on at once where they take more memory than is likely, the others after them.
    pub rows_at_once: Vec<usize>,
    /// Tokens of each batch, padding included.
    pub tokens: Vec<usize>,
}

impl Plan {
    /// A plan for segments of these lengths, in tokens.
    pub(crate) fn new(machine: &Machine, need: &Need<'_>, lengths: &[usize]) -> Self {
        let memory = machine.memory.beside(need.model_bytes);
        let mut whole = shortest_first(lengths.iter().copied(), need.batch_tokens);
        if need.longest_first {
            whole.reverse();
        }
        let padded = whole.iter().map(|batch| batch.len() * longest(lengths, batch));
        let cache = need.cache_bytes * padded.sum::<usize>() as u64;
        let kept = if cache <= memory / 2 { cache } else { 0 };
        for workers in (1..=machine.evaluators()).rev() {
            for most_pieces in [1, need.batch_tokens / LEAST_TOKENS] {
                for kept in [kept, 0] {
                    let room = need.room((memory - kept) / workers as u64);
                    let fits = |batch: &[usize]| need.bytes(batch.len(), longest(lengths, batch)) <= room;
                    if let Some(batches) = cut(&whole, most_pieces, fits) {
                        return Self::of(machine.device, need, lengths, (batches, workers, kept > 0), room);
                    }
                }
            }
        }
        let room = need.room(memory);
        let fits =
            |batch: &[usize]| batch.len() == 1 || need.bytes(batch.len(), longest(lengths, batch)) <= room;
        let batches = cut(&whole, usize::MAX, fits).unwrap_or_default();
        Self::of(machine.device, need, lengths, (batches, 1, false), room)
    }

    fn of(
        device: Device,
        need: &Need<'_>,
        lengths: &[usize],
        (batches, workers, keeps_prefixes): (Vec<Vec<usize>>, usize, bool),
        room: u64,
    ) -> Self {
        let bytes = |batch: &Vec<usize>| need.bytes(batch.len(), longest(lengths, batch));
        let sets_per_batch = match device {
            Device::Cpu => 1, // whose caches one set fills
            // A power of two, so that a little more or less memory changes nothing.
            _ => {
                let most = room / batches.iter().map(bytes).max().unwrap_or(0).max(1);
                1 << most.clamp(1, MOST_TOGETHER as u64).ilog2()
            }
        };
        let at_once = |batch: &Vec<usize>| {
            need.rows_at_once(batch.len() * sets_per_batch, longest(lengths, batch), room)
        };
        let rows_at_once = batches.iter().map(at_once).collect();
        let tokens = batches.iter().map(|batch| batch.len() * longest(lengths, batch)).collect();
        Self { batches, workers, sets_per_batch, keeps_prefixes, rows_at_once, tokens }
    }
}

impl Need<'_> {
    /// Memory of a thread for its batch, of `bytes` in all.
    fn room(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.thread_bytes)
    }

    /// Bytes of a batch: all of its rows as is likely, and a few of them in the worst case.
    fn bytes(&self, rows: usize, tokens: usize) -> u64 {
        let (segment, rows) = ((self.segment)(tokens), rows as u64);
        rows * segment.likely + (LEAST_GROWING * segment.most).min(rows * (segment.most - segment.likely))
    }

    /// Rows of a batch that can take the worst case at once. What the others have stays until the last are done.
    fn rows_at_once(&self, rows: usize, tokens: usize, room: u64) -> usize {
        let (segment, all) = ((self.segment)(tokens), rows as u64);
        if all * segment.most <= room {
            return rows;
        }
        let left = room.saturating_sub(all * segment.likely);
        (left / segment.most.max(1)).clamp(1, all) as usize
    }
}

/// Tokens of the longest segment of a batch.
fn longest(lengths: &[usize], batch: &[usize]) -> usize {
    batch.iter().map(|&row| lengths[row]).max().unwrap_or(0)
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
    use super::super::memory::SegmentBytes;
    use super::*;
    use crate::test_machine::machine;
    use proptest::prelude::*;
    use training::Memory;

    /// 200 bytes a token, twice that at the most, and 1,000 for each of two threads.
    fn need() -> Need<'static> {
        Need {
            batch_tokens: 2_000,
            longest_first: true,
            segment: Box::new(|tokens| SegmentBytes {
                likely: 200 * tokens as u64,
                most: 400 * tokens as u64,
            }),
            thread_bytes: 1_000,
            cache_bytes: 1,
            model_bytes: 50_000,
        }
    }

    fn plan(memory: u64, device: Device) -> Plan {
        let machine = Machine { memory: Memory::BesideModel(memory), device, ..machine() };
        Plan::new(&machine, &need(), &[20; 1000])
    }

    /// Batches of 100 segments likely take 400,000 bytes, four segments that grow 32,000, and the prefix cache 20,000. Two
    /// threads need 2 * 433,000. With less than that batches are cut: into halves of 1,000 tokens, which take 2 * 233,000, or
    /// thirds of 680, 2 * (34 * 4,000 + 33,000) = 338,000. Quarters would have less than 512 tokens, so one thread is left,
    /// with halves; and in the end with single segments, whatever the memory.
    #[test]
    fn batches_shrink_before_threads_go_and_nothing_is_refused() {
        for (memory, expected) in [
            (886_000, (100, 2, true)),
            (885_999, (100, 2, false)),
            (865_999, (50, 2, true)),
            (465_999, (34, 2, true)),
            (338_000, (34, 2, false)),
            (337_999, (50, 1, true)),
            (9_000, (1, 1, false)),
            (10, (1, 1, false)),
        ] {
            let plan = plan(memory, Device::Cpu);
            assert_eq!((plan.batches[0].len(), plan.workers, plan.keeps_prefixes), expected, "{memory}");
        }
    }

    /// Of a batch of 2,000 tokens and one of 400 only the former is cut.
    #[test]
    fn only_batches_that_do_not_fit_are_cut_and_either_end_comes_first() {
        let lengths: Vec<usize> = [vec![200; 10], vec![4; 100]].concat();
        let machine = Machine { memory: Memory::BesideModel(1_200_000), ..machine() };
        for (longest_first, expected) in [(true, [5, 5, 100]), (false, [100, 5, 5])] {
            let plan = Plan::new(&machine, &Need { longest_first, ..need() }, &lengths);
            assert!(plan.batches.iter().map(Vec::len).eq(expected), "{:?}", plan.batches);
        }
    }

    /// A thread needs 432,000 bytes beside its own 1,000 for each set.
    #[test]
    fn a_gpu_computes_several_sets_at_once() {
        let sets = |memory| plan(memory, Device::Cuda(0)).sets_per_batch;
        assert_eq!((sets(886_000), sets(1_749_999), sets(1_750_000)), (1, 1, 2));
        assert_eq!(sets(100_000_000), MOST_TOGETHER);
    }

    proptest! {
        /// Whatever the lengths and the memory: each segment is in one batch; where there is memory for the longest segment, all
        /// threads can compute any batch at once, and rows that take the worst case find room.
        #[test]
        fn memory_stays_within_the_budget(
            lengths in prop::collection::vec(1_usize..300, 1..80), threads in 1_usize..20, memory in 1_000_u64..8_000_000,
        ) {
            let machine = Machine { memory: Memory::BesideModel(memory), threads, ..machine() };
            let (need, longest_of_all) = (need(), *lengths.iter().max().unwrap() as u64);
            let plan = Plan::new(&machine, &need, &lengths);
            let mut rows = plan.batches.concat();
            rows.sort_unstable();
            prop_assert!(rows.into_iter().eq(0..lengths.len()));
            prop_assert!(plan.rows_at_once.iter().all(|&rows| rows > 0));
            if memory < 1_000 + 400 * longest_of_all {
                prop_assert_eq!(plan.workers, 1);
                return Ok(());
            }
            let cached = |batch: &Vec<usize>| (batch.len() * longest(&lengths, batch)) as u64;
            let cache: u64 = if plan.keeps_prefixes { plan.batches.iter().map(cached).sum() } else { 0 };
            for (batch, &at_once) in plan.batches.iter().zip(&plan.rows_at_once) {
                let (rows, tokens) = (batch.len() as u64, longest(&lengths, batch) as u64);
                let worst = 200 * tokens * rows + if at_once == batch.len() {
                    200 * tokens * rows
                } else {
                    400 * tokens * at_once as u64
                };
                prop_assert!(plan.workers as u64 * (1_000 + worst) + cache <= memory);
            }
        }
    }
}
