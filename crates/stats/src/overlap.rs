//! Overlap of two sets with equal numbers of members from each group, compared with random sets.

use statrs::distribution::{Discrete, Hypergeometric};

/// Returns the expected overlap and its one-sided p-value: the probability that random sets share at least `found` members.
///
/// - `groups`: size of each group, and how many of its members are in each set
///
/// The overlap within a group is hypergeometric, and groups are independent.
///
/// # Panics
/// If a set contains more members of a group than the group has.
pub fn by_chance(groups: &[(usize, usize)], found: usize) -> (f64, f64) {
    let mut probabilities = vec![1.0]; // [overlap]
    let mut expected = 0.0;
    for &(size, held) in groups {
        expected += (held * held) as f64 / size as f64;
        let (size, held) = (size as u64, held as u64);
        let group = Hypergeometric::new(size, held, held).expect("no more than there are");
        let mut next = vec![0.0; probabilities.len() + held as usize];
        for (before, probability) in probabilities.iter().enumerate() {
            for more in 0..=held {
                next[before + more as usize] += probability * group.pmf(more);
            }
        }
        probabilities = next;
    }
    (expected, probabilities.iter().skip(found).sum::<f64>().min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;

    /// Both sets are 2 of 5: an overlap of 2 has 1 of C(5, 2) = 10 sets, at least 1 has 1 - C(3, 2) / 10. One of 2 and one of 3: both
    /// overlap with 1/2 · 1/3 = 1/6, neither with 1/2 · 2/3 = 1/3.
    #[test]
    fn groups_are_hypergeometric_and_independent() {
        for (groups, mean, found, p) in [
            (&[(5, 2)][..], 0.8, 2, 0.1),
            (&[(5, 2)], 0.8, 1, 0.7),
            (&[(5, 2)], 0.8, 3, 0.0),
            (&[(2, 1), (3, 1)], 0.5 + 1.0 / 3.0, 2, 1.0 / 6.0),
            (&[(2, 1), (3, 1)], 0.5 + 1.0 / 3.0, 1, 2.0 / 3.0),
        ] {
            let (expected, chance) = by_chance(groups, found);
            assert_close(expected, mean, 1e-12);
            assert_close(chance, p, 1e-12);
        }
    }
}
