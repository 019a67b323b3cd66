//! Texts or images of a split as a classifier reads them, with their classes or values.
use core_masking::classifier::{Inputs, LabelledBatch};
use core_masking::{Classifier, GatedModel, to_vec};
use corpus::labelled::Example;
use stats::{Cell, Cells};
use tch::Tensor;

use super::reader::{Read, Reader};
use crate::error::Error;

/// Tokens that are classified together, padding included: enough for whole matrix products, few enough that what a
/// layer computes stays in the caches.
pub(super) const BATCH_TOKENS: usize = 2_048;

/// A split as a classifier reads it.
#[derive(Debug)]
pub(crate) struct Texts {
    read: Read,
    /// The right class of each example, a count, or its value, a decimal.
    pub(super) answers: Vec<Cell>,
}

impl Texts {
    /// # Errors
    /// If a text cannot be encoded, or an image cannot be read.
    pub(super) fn encode(reader: &Reader, examples: &[Example], answers: Vec<Cell>) -> Result<Self, Error> {
        Ok(Self::new(reader.read(examples)?, answers))
    }

    /// One answer for each example.
    pub(super) fn new(read: Read, answers: Vec<Cell>) -> Self {
        Self { read, answers }
    }

    pub(super) fn len(&self) -> usize {
        self.read.len()
    }

    /// Returns true if the tokeniser knows a word of some text, and for images.
    pub(super) fn are_known_to(&self, reader: &Reader) -> bool {
        self.read.is_known_to(reader)
    }

    /// Tokens of a text, or positions of an image.
    pub(super) fn tokens(&self, row: usize) -> usize {
        self.read.positions(row)
    }

    /// Tokens of each text, or positions of each image.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|row| self.tokens(row))
    }

    /// These examples as tensors.
    pub(super) fn batch(&self, model: &Classifier, rows: &[usize]) -> Result<Inputs, Error> {
        self.read.batch(model, rows)
    }

    /// These examples with their classes or values.
    pub(super) fn labelled_batch(&self, model: &Classifier, rows: &[usize]) -> Result<LabelledBatch, Error> {
        let classes = rows.iter().map(|&row| self.answers[row].count().map(i64::from));
        let labels = match classes.collect::<Option<Vec<i64>>>() {
            Some(classes) => Tensor::from_slice(&classes),
            None => {
                Tensor::from_slice(&rows.iter().map(|&row| self.answers[row].value()).collect::<Vec<_>>())
            }
        };
        Ok(LabelledBatch { inputs: self.batch(model, rows)?, labels: labels.to_device(model.options().1) })
    }
}

/// The right answers of these texts, and the model's; `logits`: `[batch, labels]`.
///
/// # Errors
/// If a logit is NaN or infinite.
pub(super) fn outcomes(logits: &Tensor, texts: &Texts, rows: &[usize]) -> Result<Vec<Cells>, Error> {
    let outcome = |(&row, predicted): (&usize, Cell)| vec![texts.answers[row], predicted];
    Ok(rows.iter().zip(predictions(logits)?).map(outcome).collect())
}

/// The class of the greatest logit in each row, or the one logit; `logits`: `[batch, labels]`.
///
/// # Errors
/// If a logit is NaN or infinite.
pub(super) fn predictions(logits: &Tensor) -> Result<Vec<Cell>, Error> {
    if logits.isfinite().all().int64_value(&[]) == 0 {
        return Err(Error::not_finite());
    }
    if logits.size()[1] == 1 {
        return Ok(to_vec(logits).into_iter().map(Cell::Decimal).collect());
    }
    let classes = to_vec::<i64>(&logits.argmax(1, false));
    Ok(classes.into_iter().map(|class| Cell::Count(class as u32)).collect())
}
