//! Which heads a layer of a GGUF file has when some were cut out of it.
//!
//! In llama.cpp query head i reads key-value head i / (heads / key-value heads), so that every key-value head has as many
//! query heads. What is left of a pruned layer must be filled up to that.

/// The heads of a layer in a GGUF file, as positions among the heads that the weights still have; `None` is a head of zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) queries: Vec<Option<usize>>,
    pub(crate) key_values: Vec<Option<usize>>,
}

impl Slots {
    /// One head of zeros, for a layer that has none but must have one.
    pub(crate) fn zero() -> Self {
        Self { queries: vec![None], key_values: vec![None] }
    }

    /// The smallest way to keep the query heads `kept`, numbers of the intact model in order, which has `key_values` groups
    /// of `group` heads: each key-value head serves so many query heads, and is repeated, or zeros fill up its queries.
    ///
    /// The layer never has more key-value heads than the intact one, so that its cache does not grow.
    pub(crate) fn of(kept: &[usize], group: usize, key_values: usize) -> Self {
        let ways = (1..=group).map(|share| Self::sharing(kept, group, share));
        let fitting = ways.filter(|way| way.key_values.len() <= key_values);
        let size = |way: &Self| (way.queries.len() + way.key_values.len(), way.key_values.len());
        fitting.min_by_key(size).unwrap_or(Self { queries: Vec::new(), key_values: Vec::new() })
    }

    /// The same with `share` query heads for each key-value head.
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

    /// Kept heads in groups of a size, and the sizes that llama.cpp needs: whole groups and equal shares go as they are. What
    /// remains is arithmetic: 3 1 2 of 3 takes 9 queries for 3 keys and values, as 8 for 4 would let the cache grow; 4 1 of 4
    /// takes 6 for 3, which is less than 8 for 2.
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
            let slots = Slots::of(kept, group, 3);
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
