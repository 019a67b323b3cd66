//! Batches of sentences of similar length, with a limit on their padded size in tokens.
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Number of source tokens and of target tokens of a sentence pair.
pub type Lengths = (usize, usize);

/// Maximum number of batches that [`length_grouped`] sorts by length together.
const POOL: usize = 50;

/// Returns batches of indices into `lengths`, shortest sentences first; sentences of equal length keep their order.
///
/// The padded size of a batch, its rows times its longest source or target, is at most `max_tokens`. A longer sentence forms a batch alone.
pub fn length_sorted(lengths: &[Lengths], max_tokens: usize) -> Vec<Vec<usize>> {
    group((0..lengths.len()).collect(), lengths, max_tokens)
}

/// Returns the batches of [`length_sorted`] for texts without translations.
pub fn shortest_first(lengths: impl Iterator<Item = usize>, max_tokens: usize) -> Vec<Vec<usize>> {
    let lengths: Vec<Lengths> = lengths.map(|length| (length, 0)).collect();
    length_sorted(&lengths, max_tokens)
}

/// Returns batches of `rows` texts, longest texts first; the last batch may be smaller.
///
/// # Panics
/// If `rows` is 0.
pub fn longest_first_rows(lengths: impl Iterator<Item = usize>, rows: usize) -> Vec<Vec<usize>> {
    let lengths: Vec<usize> = lengths.collect();
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(lengths[index]));
    order.chunks(rows).map(<[usize]>::to_vec).collect()
}

/// Returns the batches of one epoch. Unlike in [`length_sorted`], sentences of equal length are grouped at random and the batches come in
/// random order. Every epoch needs another seed.
pub fn shuffled(lengths: &[Lengths], max_tokens: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.shuffle(&mut rng);
    let mut batches = group(order, lengths, max_tokens);
    batches.shuffle(&mut rng);
    batches
}

/// Returns the batches of one epoch in random order, each of `rows` texts; the last one may be smaller. Texts are shuffled, then sorted by
/// length within pools of at most [`POOL`] batches, which saves half of the padding. The pools are those of `group_by_length` in
/// transformers' `Trainer`, where batches are not shuffled.
///
/// # Panics
/// If `rows` is 0.
pub fn length_grouped(lengths: &[usize], rows: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.shuffle(&mut rng);
    let pool = rows * (lengths.len() / rows / 4).clamp(1, POOL); // one pool of all texts would give equal batches in every epoch
    order.chunks_mut(pool).for_each(|pool| pool.sort_by_key(|&index| lengths[index]));
    let mut batches: Vec<Vec<usize>> = order.chunks(rows).map(<[usize]>::to_vec).collect();
    batches.shuffle(&mut rng);
    batches
}

/// Sorts `order` by length, keeping the order of ties, and cuts it into batches.
fn group(mut order: Vec<usize>, lengths: &[Lengths], max_tokens: usize) -> Vec<Vec<usize>> {
    // The longer side comes first because it decides the padded size of a batch.
    order.sort_by_key(|&index| (longest_side(lengths[index]), lengths[index]));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for index in order {
        let side = longest_side(lengths[index]); // the longest of the batch so far, since `order` is sorted
        match batches.last_mut() {
            Some(batch) if (batch.len() + 1) * side <= max_tokens => batch.push(index),
            _ => batches.push(vec![index]),
        }
    }
    batches
}

fn longest_side((source, target): Lengths) -> usize {
    source.max(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lengths() -> impl Strategy<Value = Vec<Lengths>> {
        prop::collection::vec((0_usize..40, 0_usize..40), 0..120)
    }

    fn hold_every_index_once(batches: &[Vec<usize>], count: usize) -> bool {
        let mut indices: Vec<usize> = batches.concat();
        indices.sort_unstable();
        indices.into_iter().eq(0..count)
    }

    proptest! {
        #[test]
        fn grouped_batches_hold_every_index_once(
            lengths in prop::collection::vec(1_usize..40, 0..200),
            rows in 1_usize..9,
            seed in 0_u64..4,
        ) {
            let batches = length_grouped(&lengths, rows, seed);
            prop_assert!(hold_every_index_once(&batches, lengths.len()));
            let full = batches.iter().filter(|batch| batch.len() == rows).count();
            prop_assert_eq!(full, lengths.len() / rows);
            prop_assert_eq!(length_grouped(&lengths, rows, seed), batches);
        }

        #[test]
        fn batches_cover_all_sentences_within_the_bound(lengths in lengths(), max in 0_usize..200, seed: u64) {
            for batches in [length_sorted(&lengths, max), shuffled(&lengths, max, seed)] {
                prop_assert!(hold_every_index_once(&batches, lengths.len()));
                for batch in batches {
                    let longest = batch.iter().map(|&i| lengths[i].0.max(lengths[i].1)).max().unwrap();
                    prop_assert!(batch.len() == 1 || batch.len() * longest <= max, "{batch:?}");
                }
            }
            prop_assert_eq!(shuffled(&lengths, max, seed), shuffled(&lengths, max, seed));
        }
    }

    #[test]
    fn texts_of_similar_length_share_a_batch_longest_first() {
        let batches = longest_first_rows([3, 9, 3, 5, 9].into_iter(), 2);
        assert_eq!(batches, [vec![1, 4], vec![3, 0], vec![2]]);
    }

    /// 4,000 texts of 1 to 100 tokens. The longest of 8 random texts has 89 tokens on average, 76% more than the mean of 50.5; grouped
    /// batches must have less than 10% padding.
    #[test]
    fn grouping_by_length_saves_padding() {
        let lengths: Vec<usize> = (0..4_000).map(|index| index % 100 + 1).collect();
        let padded: usize = length_grouped(&lengths, 8, 1)
            .iter()
            .map(|batch| batch.len() * batch.iter().map(|&index| lengths[index]).max().unwrap())
            .sum();
        let real: usize = lengths.iter().sum();
        assert!(padded * 10 < real * 11, "{padded} of {real}");
        assert_ne!(length_grouped(&lengths, 8, 1), length_grouped(&lengths, 8, 2));
    }

    #[test]
    fn sorting_is_by_the_longer_side_and_ties_keep_their_order() {
        let lengths = [(5, 2), (1, 1), (2, 5), (1, 1), (9, 9)];
        // Longer sides 5, 1, 5, 1, 9 give two rows of 1, two rows of 5 (10 tokens) and one row of 9.
        assert_eq!(length_sorted(&lengths, 10), [vec![1, 3], vec![2, 0], vec![4]]);
        assert_ne!(shuffled(&[(3, 3); 60], 12, 1), shuffled(&[(3, 3); 60], 12, 2), "epochs differ");
    }
}
