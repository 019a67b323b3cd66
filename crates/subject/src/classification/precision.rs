//! A quick model and an exact one: classes are those of the exact model, which looks only at close decisions.
use core_masking::bert::{BertClassifier, Variants};
use core_masking::{HeadSet, SegmentBatch, Trunk};
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

    /// The model that does most of the work.
    pub(super) fn quickest(&self) -> &BertClassifier {
        self.quick.as_ref().unwrap_or(&self.exact)
    }
}

/// What the models say of a batch.
#[derive(Debug)]
pub(super) struct Classes {
    /// The class of each text under each variant.
    pub(super) by_variant: Vec<Vec<usize>>,
    /// How many of these took a second look.
    pub(super) looked_at_again: usize,
}

/// The models of one thread, with head sets to be evaluated together.
pub(super) struct Shared {
    exact: (BertClassifier, Variants),
    quick: Option<(BertClassifier, Variants)>,
}

impl Shared {
    /// # Errors
    /// If a set names a head that the model does not have.
    pub(super) fn new(models: &Models, sets: &[HeadSet], rescale: bool) -> Result<Self, Error> {
        let ready = |model: &BertClassifier| -> Result<_, Error> {
            Ok((model.share()?, Variants::new(model, sets, rescale)?))
        };
        Ok(Self { exact: ready(&models.exact)?, quick: models.quick.as_ref().map(ready).transpose()? })
    }

    /// The class of each text under each variant; those closer than `bound` take a second look. Also returns what is left
    /// for the next head sets and this batch.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn classify(
        &self,
        texts: &Texts,
        rows: &[usize],
        (plan, bound): (&Plan, Option<f64>),
        left: Option<Trunk>,
    ) -> Result<(Classes, Trunk), Error> {
        let (exact, _) = &self.exact;
        let (model, variants) = self.quick.as_ref().unwrap_or(&self.exact);
        let (logits, trunk) = model.sweep(&texts.batch(model, rows)?, variants, plan.together, left);
        let by_variant = logits.iter().map(classes).collect::<Result<Vec<_>, _>>()?;
        let mut found = Classes { by_variant, looked_at_again: 0 };
        if let Some(bound) = bound {
            self.look_again(&texts.batch(exact, rows)?, closer_than(bound, &logits), plan, &mut found)?;
        }
        Ok((found, trunk))
    }

    /// Replaces the classes of some cells, places of variant and text, by those of the exact model.
    fn look_again(
        &self,
        batch: &SegmentBatch,
        cells: Vec<(usize, usize)>,
        plan: &Plan,
        found: &mut Classes,
    ) -> Result<(), Error> {
        let (model, variants) = &self.exact;
        let at_once = (plan.tokens * plan.together / batch.tokens.ids.size()[1] as usize).max(1);
        for cells in cells.chunks(at_once) {
            let logits = model.sweep_cells(batch, variants, cells);
            for (&(variant, text), class) in cells.iter().zip(classes(&logits)?) {
                found.by_variant[variant][text] = class;
            }
        }
        found.looked_at_again += cells.len();
        Ok(())
    }

    /// The largest error of the quick model in the difference of two logits.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn largest_error(&self, texts: &Texts, rows: &[usize]) -> Result<f64, Error> {
        let Some((quick, quick_variants)) = &self.quick else { return Ok(0.0) };
        let (model, variants) = &self.exact;
        let (exact, _) = model.sweep(&texts.batch(model, rows)?, variants, 1, None);
        let (found, _) = quick.sweep(&texts.batch(quick, rows)?, quick_variants, 1, None);
        let errors = found[0].to_kind(Kind::Float) - &exact[0]; // [batch, labels]
        let largest = (errors.amax([1], false) - errors.amin([1], false)).max().double_value(&[]);
        if largest.is_finite() { Ok(largest) } else { Err(Error::NotFinite) }
    }
}

/// Places of variant and text where the two greatest logits are closer than `bound`; `logits`: `[batch, labels]` of each
/// variant.
fn closer_than(bound: f64, logits: &[Tensor]) -> Vec<(usize, usize)> {
    let logits = Tensor::stack(logits, 0).to_kind(Kind::Float); // [variants, batch, labels]
    let (greatest, _) = logits.topk(2, -1, true, true);
    let lead = greatest.select(2, 0) - greatest.select(2, 1); // [variants, batch]
    let places = to_vec(&lead.lt(bound).nonzero()); // variant and text in turn
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
