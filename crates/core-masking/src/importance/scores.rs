//! Rankings: one number per head.
use std::collections::BTreeMap;

use heads::Measure;

use crate::{Attention, HeadId};

/// A ranking: one number per head of a model, or of part of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeadScores(BTreeMap<HeadId, f64>);

impl HeadScores {
    /// Returns the number of a head.
    pub fn get(&self, head: HeadId) -> Option<f64> {
        self.0.get(&head).copied()
    }

    /// Returns heads and numbers, in the order of heads.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (HeadId, f64)> + '_ {
        self.0.iter().map(|(&head, &score)| (head, score))
    }

    /// Changes the numbers.
    pub fn map(&self, change: impl Fn(HeadId, f64) -> f64) -> Self {
        self.iter().map(|(head, score)| (head, change(head, score))).collect()
    }

    /// Replaces the number of each head by the sum over its attention module.
    pub fn summed_by_module(&self) -> Self {
        let mut sums: BTreeMap<(Attention, usize), f64> = BTreeMap::new();
        self.iter().for_each(|(head, score)| *sums.entry(head.module()).or_default() += score);
        self.map(|head, _| sums[&head.module()])
    }

    /// Divides by the l2 norm of each layer, separately for each attention type and layer (Molchanov et al. 2017, as used by Michel et al.
    /// 2019, Section 4.1). A layer of zeros is left unchanged.
    pub fn normalised_by_layer(&self) -> Self {
        let mut squares: BTreeMap<(Attention, usize), f64> = BTreeMap::new();
        for (head, score) in self.iter() {
            *squares.entry(head.module()).or_default() += score * score;
        }
        self.map(|head, score| match squares[&head.module()].sqrt() {
            0.0 => 0.0,
            norm => score / norm,
        })
    }

    /// Returns the heads in ascending order, so that those to be masked come first; ties keep the order of heads.
    pub fn ascending(&self) -> Vec<HeadId> {
        let mut heads: Vec<(HeadId, f64)> = self.iter().collect();
        heads.sort_by(|(_, left), (_, right)| left.total_cmp(right)); // stable
        heads.into_iter().map(|(head, _)| head).collect()
    }
}

impl FromIterator<(HeadId, f64)> for HeadScores {
    fn from_iter<I: IntoIterator<Item = (HeadId, f64)>>(scores: I) -> Self {
        // 0.0 and -0.0 tie, although `total_cmp` distinguishes them.
        Self(scores.into_iter().map(|(head, score)| (head, score + 0.0)).collect())
    }
}

/// Summed terms of a head.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares; `None` unless the terms come from independent segments.
    pub squares: Option<f64>,
    /// Their number.
    pub count: f64,
    /// Derivatives that the terms are computed from, if needed one by one: of examples, finally of batches.
    pub derivatives: Vec<f64>,
}

/// Terms of each head, which add up over parts of a split.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeadMeans(BTreeMap<HeadId, Terms>);

impl HeadMeans {
    /// Adds terms of a head.
    pub fn add(&mut self, head: HeadId, Terms { sum, squares, count, derivatives }: Terms) {
        let none = Terms { squares: Some(0.0), ..Terms::default() };
        let total = self.0.entry(head).or_insert(none);
        total.sum += sum;
        total.squares = total.squares.zip(squares).map(|(total, squares)| total + squares);
        total.count += count;
        total.derivatives.extend(derivatives);
    }

    /// Adds the terms of another part of the split.
    pub fn merge(&mut self, other: &Self) {
        for (&head, terms) in &other.0 {
            self.add(head, terms.clone());
        }
    }

    /// Returns the terms of a head.
    pub fn terms(&self, head: HeadId) -> Option<&Terms> {
        self.0.get(&head)
    }

    /// Completes rankings that are not means over a split but a single term: [`Measure::FisherBatches`], [`Measure::ActivationNorm`].
    ///
    /// `order`: the position of each example in the split, in the order in which examples were added
    #[must_use]
    pub fn of_split(self, measure: Measure, order: &[usize]) -> Self {
        let whole = |sum, derivatives| Terms { sum, squares: None, count: 1.0, derivatives };
        let finish = |terms: Terms| match measure {
            Measure::FisherBatches => {
                let by_batch = mean_by_batch(&terms.derivatives, order);
                whole(by_batch.iter().map(|derivative| derivative * derivative).sum(), by_batch)
            }
            Measure::FirstOrder => Terms { derivatives: placed(&terms.derivatives, order), ..terms },
            Measure::ActivationNorm => whole(terms.sum.sqrt(), Vec::new()),
            _ => terms,
        };
        Self(self.0.into_iter().map(|(head, terms)| (head, finish(terms))).collect())
    }

    /// Returns sum / number of terms; 0 for a head without terms.
    pub fn means(&self) -> HeadScores {
        let mean = |terms: &Terms| if terms.count > 0.0 { terms.sum / terms.count } else { 0.0 };
        self.0.iter().map(|(&head, terms)| (head, mean(terms))).collect()
    }
}

/// Batch size of Kwon et al. (2022), Section 6.1.
const BATCH: usize = 32;

/// Returns derivatives in the order of the split; `order` is the position of each example in it.
fn placed(derivatives: &[f64], order: &[usize]) -> Vec<f64> {
    assert_eq!(derivatives.len(), order.len(), "one derivative for each example");
    let mut placed: Vec<(usize, f64)> = order.iter().copied().zip(derivatives.iter().copied()).collect();
    placed.sort_by_key(|&(place, _)| place);
    placed.into_iter().map(|(_, derivative)| derivative).collect()
}

/// Returns means over batches of consecutive examples, whose positions in the split are `order`.
fn mean_by_batch(derivatives: &[f64], order: &[usize]) -> Vec<f64> {
    let mean = |batch: &[f64]| batch.iter().sum::<f64>() / batch.len() as f64;
    placed(derivatives, order).chunks(BATCH).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(entries: &[(&str, f64)]) -> HeadScores {
        entries.iter().map(|&(name, score)| (name.parse().unwrap(), score)).collect()
    }

    fn names(heads: &[HeadId]) -> Vec<String> {
        heads.iter().map(ToString::to_string).collect()
    }

    /// (3, 4) has norm 5; (5, 12) has norm 13; zeros are unchanged.
    #[test]
    fn each_layer_of_each_type_is_divided_by_its_own_norm() {
        let all = scores(&[
            ("enc-enc:1:1", 3.0),
            ("enc-enc:1:2", 4.0),
            ("enc-enc:2:1", 0.0),
            ("dec-dec:1:1", -5.0),
            ("dec-dec:1:2", 12.0),
        ]);
        let expected = scores(&[
            ("enc-enc:1:1", 3.0 / 5.0),
            ("enc-enc:1:2", 4.0 / 5.0),
            ("enc-enc:2:1", 0.0),
            ("dec-dec:1:1", -5.0 / 13.0),
            ("dec-dec:1:2", 12.0 / 13.0),
        ]);
        assert_eq!(all.normalised_by_layer(), expected);
    }

    #[test]
    fn heads_of_a_module_are_masked_together() {
        let of = [("self:1:1", 3.0), ("self:1:2", 4.0), ("self:2:1", 5.0), ("self:2:2", 1.0)];
        let sums = scores(&of).summed_by_module();
        assert_eq!(sums.iter().map(|(_, sum)| sum).collect::<Vec<_>>(), [7.0, 7.0, 6.0, 6.0]);
        assert_eq!(names(&sums.ascending()), ["self:2:1", "self:2:2", "self:1:1", "self:1:2"]);
    }

    #[test]
    fn tied_heads_keep_the_order_of_heads() {
        let all = scores(&[
            ("dec-dec:1:1", 0.5),
            ("enc-enc:2:1", 0.0),
            ("enc-enc:1:2", -0.0),
            ("enc-enc:1:10", 0.0),
            ("enc-enc:1:1", 0.5),
            ("enc-enc:3:1", -1.0),
        ]);
        let expected =
            ["enc-enc:3:1", "enc-enc:1:2", "enc-enc:1:10", "enc-enc:2:1", "enc-enc:1:1", "dec-dec:1:1"];
        assert_eq!(names(&all.ascending()), expected);
    }

    /// Sums of (1 + 2) over 2 terms and 4 over 1 term: the mean is 7/3, not the mean of means.
    #[test]
    fn parts_are_weighted_by_their_terms() {
        let head: HeadId = "self:1:1".parse().unwrap();
        let (mut whole, mut part) = (HeadMeans::default(), HeadMeans::default());
        whole.add(head, Terms { sum: 3.0, squares: Some(5.0), count: 2.0, ..Terms::default() });
        part.add(head, Terms { sum: 4.0, squares: Some(16.0), count: 1.0, ..Terms::default() });
        whole.merge(&part);
        assert_eq!(whole.terms(head).unwrap().squares, Some(21.0));
        assert_eq!(whole.means().get(head), Some(7.0 / 3.0));
    }
}
