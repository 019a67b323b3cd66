//! A quick model and an exact one, which looks again at decisions that are close.
//!
//! Classes are those of the exact model as long as masking heads does not make the quick one err much more than it does
//! with all heads open, where its largest error is measured.
use std::path::Path;
use std::sync::{Arc, Mutex};

use core_masking::{
    Classifier, ClassifierConfig, GatedModel, HeadLayout, HeadSet, ModelConfig, Removal, Trunk, to_vec,
};
use tch::{Device, Kind, Tensor};
use training::Precision;

use super::texts::{Texts, classes};
use crate::error::Error;
use crate::evaluation::Request;
use crate::model::Model;
use crate::subject::Scored;

/// A decision of the quick model counts if it is further from any other than this many times the largest error that it
/// made on the intact model.
pub(super) const MARGIN: f64 = 1.5;

/// A classifier as it is, and in fewer bits.
#[derive(Debug)]
pub(crate) struct Models {
    /// In single precision.
    pub(super) exact: Classifier,
    /// In bf16, if that is asked for.
    pub(super) quick: Option<Classifier>,
    /// How close decisions of the quick model may be, by what is scored, as far as that was measured.
    pub(super) bounds: Arc<Mutex<Vec<(Scored, f64)>>>,
}

impl Model for Models {
    fn read_layout(config: &Path) -> Result<HeadLayout, core_masking::Error> {
        ClassifierConfig::read_layout(config)
    }

    fn layout(&self) -> HeadLayout {
        GatedModel::layout(&self.exact)
    }

    fn options(&self) -> (Kind, Device) {
        GatedModel::options(self.quickest())
    }

    fn parameters(&self) -> u64 {
        self.exact.weights().parameters()
    }

    fn bytes(&self) -> u64 {
        let of =
            |model: &Classifier| GatedModel::options(model).0.elt_size_in_bytes() as u64 * self.parameters();
        of(&self.exact) + self.quick.as_ref().map_or(0, of)
    }

    fn share(&self) -> Result<Self, core_masking::Error> {
        let quick = self.quick.as_ref().map(GatedModel::share).transpose()?;
        Ok(Self { exact: GatedModel::share(&self.exact)?, quick, bounds: Arc::clone(&self.bounds) })
    }

    fn without_heads(&self, heads: &HeadSet, removal: Removal) -> Result<Self, core_masking::Error> {
        let precision = if self.quick.is_some() { Precision::Bf16 } else { Precision::F32 };
        Self::new(GatedModel::without_heads(&self.exact, heads, removal)?, precision)
    }

    fn save(&self, folder: &Path) -> Result<(), core_masking::Error> {
        GatedModel::save(&self.exact, folder)
    }
}

impl Models {
    /// # Errors
    /// Never, since all tensors are there.
    pub(super) fn new(exact: Classifier, precision: Precision) -> Result<Self, core_masking::Error> {
        let quick = match precision {
            Precision::F32 => None,
            Precision::Bf16 => Some(exact.to_kind(Kind::BFloat16)?),
        };
        Ok(Self { exact, quick, bounds: Arc::default() })
    }

    /// The model that does most of the work.
    pub(super) fn quickest(&self) -> &Classifier {
        self.quick.as_ref().unwrap_or(&self.exact)
    }

    /// The class of each text of a batch under each wanted set. Also returns what is left for the next sets and this batch.
    ///
    /// - `bound`: decisions closer than this take a second look
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn classify(
        &self,
        texts: &Texts,
        (request, bound): (&Request<'_>, Option<f64>),
        left: Option<Trunk>,
    ) -> Result<(Classes, Trunk), Error> {
        let model = self.quickest();
        let variants = model.variants(request.sets, request.rescale)?.only(request.wanted);
        let batch = texts.batch(model, request.rows)?;
        let (logits, trunk) = model.sweep(&batch, &variants, request.sets_per_batch, left);
        let by_set = logits.iter().map(classes).collect::<Result<Vec<_>, _>>()?;
        let mut found = Classes { by_set, rechecked: 0 };
        if let Some(bound) = bound {
            self.recheck(texts, &logits, (request, bound), &mut found)?;
        }
        Ok((found, trunk))
    }

    /// Replaces the classes of close decisions by those of the exact model. What that says of the quick one's error raises
    /// the bound of this batch, if need be, and more decisions are close.
    ///
    /// `logits`: those of the quick model, `[batch, labels]` of each set.
    fn recheck(
        &self,
        texts: &Texts,
        logits: &[Tensor],
        (request, mut bound): (&Request<'_>, f64),
        found: &mut Classes,
    ) -> Result<(), Error> {
        let logits = Tensor::stack(logits, 0).to_kind(Kind::Float); // [sets, batch, labels]
        if logits.size()[2] < 2 {
            return Ok(()); // one class leaves nothing to decide
        }
        let (greatest, _) = logits.topk(2, -1, true, true);
        let lead = greatest.select(2, 0) - greatest.select(2, 1); // [sets, batch]
        let mut close = places(&lead.lt(bound));
        if close.is_empty() {
            return Ok(());
        }
        let rows = request.rows;
        let (batch, logits) = (texts.batch(&self.exact, rows)?, logits.flatten(0, 1));
        let wanted: Vec<HeadSet> = request.wanted.iter().map(|&set| request.sets[set].clone()).collect();
        let variants = self.exact.variants(&wanted, request.rescale)?;
        // as many rows as the batch has at a time, for which there is memory
        let at_once = rows.len() * request.sets_per_batch;
        while !close.is_empty() {
            let done = bound;
            for cells in close.chunks(at_once) {
                let exact = self.exact.sweep_cells(&batch, &variants, cells);
                for (&(set, text), class) in cells.iter().zip(classes(&exact)?) {
                    found.by_set[set][text] = class;
                }
                let cells: Vec<i64> =
                    cells.iter().map(|(set, text)| (set * rows.len() + text) as i64).collect();
                let quick = logits.index_select(0, &Tensor::from_slice(&cells).to_device(logits.device()));
                bound = bound.max(MARGIN * largest_gap(&quick, &exact));
            }
            found.rechecked += close.len();
            close = places(&lead.ge(done).logical_and(&lead.lt(bound)));
        }
        Ok(())
    }

    /// The largest error of the quick model in the difference of two logits, all heads open; 0 without one.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn largest_error(&self, texts: &Texts, rows: &[usize]) -> Result<f64, Error> {
        let Some(quick) = &self.quick else { return Ok(0.0) };
        let logits = |model: &Classifier| -> Result<Tensor, Error> {
            let intact = model.variants(&[HeadSet::none()], false)?;
            let (logits, _) = model.sweep(&texts.batch(model, rows)?, &intact, 1, None);
            Ok(logits[0].to_kind(Kind::Float))
        };
        let largest = largest_gap(&logits(quick)?, &logits(&self.exact)?);
        if largest.is_finite() { Ok(largest) } else { Err(Error::NotFinite) }
    }
}

/// What the models say of a batch.
#[derive(Debug)]
pub(super) struct Classes {
    /// The class of each text under each wanted set.
    pub(super) by_set: Vec<Vec<usize>>,
    /// How many of these the exact model has decided.
    pub(super) rechecked: usize,
}

/// The largest error in a difference of two logits of a row; both `[.., labels]`.
fn largest_gap(quick: &Tensor, exact: &Tensor) -> f64 {
    let errors = quick - exact;
    (errors.amax([-1], false) - errors.amin([-1], false)).max().double_value(&[])
}

/// Places of set and text where this is true, `[sets, batch]`.
fn places(close: &Tensor) -> Vec<(usize, usize)> {
    let places = to_vec::<i64>(&close.nonzero()); // set and text in turn
    places.chunks(2).map(|cell| (cell[0] as usize, cell[1] as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_set_and_text() {
        let close = Tensor::from_slice2(&[[false, true, false], [true, true, false]]);
        assert_eq!(places(&close), [(0, 1), (1, 0), (1, 1)]);
        assert!(places(&close.logical_and(&close.logical_not())).is_empty());
    }

    /// Errors of 0.5, -0.25 and 0: the greatest difference of two logits is off by 0.75.
    #[test]
    fn errors_of_differences_count() {
        let quick = Tensor::from_slice2(&[[1.0, 1.0, 1.0], [1.5, 2.75, 4.0]]);
        let exact = Tensor::from_slice2(&[[1.0, 1.0, 1.0], [1.0, 3.0, 4.0]]);
        assert!((largest_gap(&quick, &exact) - 0.75).abs() < 1e-12);
    }
}
