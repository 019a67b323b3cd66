//! Heads of a layer in a GGUF file after some were removed.
//!
//! In llama.cpp query head i uses key-value head i / (heads / key-value heads), so all key-value heads have the same number of query heads.
//! The remaining heads of a pruned layer must be padded to that.

/// The heads of a layer in a GGUF file, as indices of the heads in the weights; `None` is a head of zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaddedHeads {
    pub(crate) queries: Vec<Option<usize>>,
    pub(crate) key_values: Vec<Option<usize>>,
}

impl PaddedHeads {
    /// Returns one head of zeros, for a layer that must not be empty.
    pub(crate) fn zero() -> Self {
        Self { queries: vec![None], key_values: vec![None] }
    }

    /// Returns the smallest layer with the query heads `kept`, sorted head numbers of the full model, which has `key_values` groups of
    /// `group` heads. Key-value heads are repeated, or their queries are padded with zeros, until all serve the same number of query heads.
    ///
    /// The layer never has more key-value heads than in the full model, so that its cache does not grow.
    pub(crate) fn of(kept: &[usize], group: usize, key_values: usize) -> Self {
        let ways = (1..=group).map(|share| Self::sharing(kept, group, share));
        let fitting = ways.filter(|way| way.key_values.len() <= key_values);
        let size = |way: &Self| (way.queries.len() + way.key_values.len(), way.key_values.len());
        fitting.min_by_key(size).unwrap_or(Self { queries: Vec::new(), key_values: Vec::new() })
    }

    /// Returns a layer with `share` query heads per key-value head.
    fn sharing(kept: &[usize], group: usize, share: usize) -> Self {
        let mut slots = Self { queries: Vec::new(), key_values: Vec::new() };
        let mut position = 0;
        for (key_value, heads) in kept.chunk_by(|left, right| left / group == right / group).enumerate() {
            let count = heads.len().div_ceil(share);
            slots.key_values.extend(vec![Some(key_value); count]);
            slots
                .queries
                .extend((0..count * share).map(|slot| (slot < heads.len()).then_some(position + slot)));
            position += heads.len();
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kept heads per group, group size, and the counts that llama.cpp needs: whole groups and equal shares need no padding. Otherwise it
    /// is arithmetic: 3 1 2 of 3 take 9 queries for 3 keys and values, as 8 for 4 would enlarge the cache; 4 1 of 4 take 6 for 3, fewer
    /// than 8 for 2.
    #[test]
    fn every_kept_head_reads_its_own_keys_in_the_smallest_way() {
        let cases: [(usize, &[usize], (usize, usize)); 8] = [
            (3, &[0, 1, 2, 3, 4, 5, 6, 7, 8], (9, 3)),
            (3, &[3, 4, 5], (3, 1)),
            (3, &[0, 2, 3, 5, 6, 7], (6, 3)),
            (3, &[0, 1, 2, 4, 6, 8], (9, 3)),
            (3, &[0, 1, 2, 5], (6, 2)),
            (4, &[0, 1, 2, 3, 6], (6, 3)),
            (3, &[4], (1, 1)),
            (3, &[], (0, 0)),
        ];
        for (group, kept, size) in cases {
            let slots = PaddedHeads::of(kept, group, 3);
            assert_eq!((slots.queries.len(), slots.key_values.len()), size, "{kept:?}");
            let mut groups: Vec<usize> = kept.iter().map(|head| head / group).collect();
            groups.dedup();
            let mut found = Vec::new();
            for (slot, position) in slots.queries.iter().enumerate() {
                let Some(position) = *position else { continue };
                let read = slots.key_values[slot / (slots.queries.len() / slots.key_values.len())];
                assert_eq!(groups[read.unwrap()], kept[position] / group, "{kept:?}: {slots:?}");
                found.push(position);
            }
            assert_eq!(found, (0..kept.len()).collect::<Vec<_>>(), "each head once");
        }
    }
}
