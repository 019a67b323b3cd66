//! A quick model and an exact one: classes are those of the exact model, which looks only at close decisions.
use core_masking::bert::{BertClassifier, BertDropout, Variants};
use core_masking::{Gates, HeadSet, SegmentBatch, Trunk};
use tch::{Kind, Tensor};

use super::texts::{Texts, classes};
use crate::args::{Machine, Precision};
use crate::plan::Plan;
use crate::{Error, to_vec};

/// A decision of the quick model counts if it is further from any other than this many times the largest error that it
/// made on the intact model.
pub(super) const MARGIN: f64 = 1.5;

/// A classifier as it is, and in fewer bits.
#[derive(Debug)]
pub(super) struct Models {
    /// In single precision.
    pub(super) exact: BertClassifier,
    /// In bf16, if that is asked for.
    pub(super) quick: Option<BertClassifier>,
}

impl Models {
    /// # Errors
    /// Never, since all tensors are there.
    pub(super) fn new(exact: BertClassifier, machine: &Machine) -> Result<Self, Error> {
        let quick = match machine.precision {
            Precision::F32 => None,
            Precision::Bf16 => Some(exact.to_kind(Kind::BFloat16)?),
        };
        Ok(Self { exact, quick })
    }

    /// The same models on the same tensors, for another thread.
    pub(super) fn share(&self) -> Result<Self, Error> {
        let quick = self.quick.as_ref().map(BertClassifier::share).transpose()?;
        Ok(Self { exact: self.exact.share()?, quick })
    }

    /// The model that does most of the work.
    pub(super) fn quickest(&self) -> &BertClassifier {
        self.quick.as_ref().unwrap_or(&self.exact)
    }

    /// The class of each text of a batch under each set. Also returns what is left for the next sets and this batch.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn classify(
        &self,
        texts: &Texts,
        rows: &[usize],
        sets: &Together<'_>,
        left: Option<Trunk>,
    ) -> Result<(Classes, Trunk), Error> {
        let model = self.quickest();
        let variants = Variants::new(model, sets.sets, sets.rescale)?;
        let (logits, trunk) = model.sweep(&texts.batch(model, rows)?, &variants, sets.plan.together, left);
        let by_set = logits.iter().map(classes).collect::<Result<Vec<_>, _>>()?;
        let mut found = Classes { by_set, looked_at_again: 0 };
        if let Some(bound) = sets.bound {
            let batch = texts.batch(&self.exact, rows)?;
            self.look_again(&batch, &closer_than(bound, &logits), sets, &mut found)?;
        }
        Ok((found, trunk))
    }

    /// Replaces the classes of some cells, places of set and text, by those of the exact model.
    fn look_again(
        &self,
        batch: &SegmentBatch,
        cells: &[(usize, usize)],
        sets: &Together<'_>,
        found: &mut Classes,
    ) -> Result<(), Error> {
        let variants = Variants::new(&self.exact, sets.sets, sets.rescale)?;
        let (plan, positions) = (sets.plan, batch.tokens.ids.size()[1] as usize);
        for cells in cells.chunks((plan.tokens * plan.together / positions).max(1)) {
            let logits = self.exact.sweep_cells(batch, &variants, cells);
            for (&(set, text), class) in cells.iter().zip(classes(&logits)?) {
                found.by_set[set][text] = class;
            }
        }
        found.looked_at_again += cells.len();
        Ok(())
    }

    /// The largest error of the quick model in the difference of two logits, all heads open; 0 without one.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn largest_error(&self, texts: &Texts, rows: &[usize]) -> Result<f64, Error> {
        let Some(quick) = &self.quick else { return Ok(0.0) };
        let logits = |model: &BertClassifier| -> Result<Tensor, Error> {
            let open = Gates::open(&model.layout(), model.options());
            Ok(model.forward(&texts.batch(model, rows)?, &open, &BertDropout::OFF).to_kind(Kind::Float))
        };
        let errors = logits(quick)? - logits(&self.exact)?; // [batch, labels]
        let largest = (errors.amax([1], false) - errors.amin([1], false)).max().double_value(&[]);
        if largest.is_finite() { Ok(largest) } else { Err(Error::NotFinite) }
    }
}

/// Head sets that are evaluated together, and how.
pub(super) struct Together<'a> {
    pub(super) sets: &'a [HeadSet],
    /// Whether the kept heads of a layer are multiplied by heads / kept.
    pub(super) rescale: bool,
    pub(super) plan: &'a Plan,
    /// Decisions closer than this take a second look.
    pub(super) bound: Option<f64>,
}

/// What the models say of a batch.
#[derive(Debug)]
pub(super) struct Classes {
    /// The class of each text under each set.
    pub(super) by_set: Vec<Vec<usize>>,
    /// How many of these took a second look.
    pub(super) looked_at_again: usize,
}

/// Places of set and text where the two greatest logits are closer than `bound`; `logits`: `[batch, labels]` of each set.
fn closer_than(bound: f64, logits: &[Tensor]) -> Vec<(usize, usize)> {
    let logits = Tensor::stack(logits, 0).to_kind(Kind::Float); // [sets, batch, labels]
    let (greatest, _) = logits.topk(2, -1, true, true);
    let lead = greatest.select(2, 0) - greatest.select(2, 1); // [sets, batch]
    let places = to_vec(&lead.lt(bound).nonzero()); // set and text in turn
    places.chunks(2).map(|cell| (cell[0] as usize, cell[1] as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_close_if_the_two_greatest_logits_are() {
        let logits = [
            Tensor::from_slice2(&[[1.0_f32, 3.0, 2.9], [1.0, 1.5, 3.0]]),
            Tensor::from_slice2(&[[0.0_f32, 0.0, -9.0], [0.0, 0.26, -9.0]]),
        ];
        assert_eq!(closer_than(0.25, &logits), [(0, 0), (1, 0)]);
        assert_eq!(closer_than(0.0, &logits), []);
    }
}
