//! Texts of a split as token ids, with their classes or values.
use core_masking::classifier::LabelledBatch;
use core_masking::{Classifier, GatedModel, SegmentBatch, to_vec};
use corpus::classifier_tokenizer::{ClassifierTokenizer, Encoded};
use corpus::labelled::Example;
use stats::{Cell, Cells};
use tch::Tensor;

use crate::error::Error;

/// Tokens that are classified together, padding included: enough for whole matrix products, few enough that what a
/// layer computes stays in the caches.
pub(super) const BATCH_TOKENS: usize = 2_048;

/// A split as a classifier reads it.
#[derive(Debug)]
pub(crate) struct Texts {
    encoded: Vec<Encoded>,
    /// The right class of each text, a count, or its value, a decimal.
    pub(super) answers: Vec<Cell>,
}

impl Texts {
    /// # Errors
    /// If a text has a token that the model has no row for.
    pub(super) fn encode(
        tokenizer: &ClassifierTokenizer,
        examples: &[Example],
        answers: Vec<Cell>,
    ) -> Result<Self, Error> {
        let encode = |example: &Example| tokenizer.encode(&example.text, example.pair.as_deref());
        Ok(Self::new(examples.iter().map(encode).collect::<Result<_, _>>()?, answers))
    }

    /// One answer for each text.
    pub(super) fn new(encoded: Vec<Encoded>, answers: Vec<Cell>) -> Self {
        Self { encoded, answers }
    }

    /// Returns true if the tokeniser knows a word of some text.
    pub(super) fn are_known_to(&self, tokenizer: &ClassifierTokenizer) -> bool {
        self.encoded.iter().any(|text| tokenizer.knows_word_of(text))
    }

    /// Tokens of a text.
    pub(super) fn tokens(&self, row: usize) -> usize {
        self.encoded[row].ids.len()
    }

    /// Tokens of each text.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.encoded.iter().map(|text| text.ids.len())
    }

    /// These texts as tensors.
    pub(super) fn batch(&self, model: &Classifier, rows: &[usize]) -> Result<SegmentBatch, Error> {
        let row = |&row: &usize| {
            let Encoded { ids, segments } = &self.encoded[row];
            (ids.as_slice(), segments.as_slice())
        };
        Ok(model.batch(&rows.iter().map(row).collect::<Vec<_>>())?)
    }

    /// These texts with their classes or values.
    pub(super) fn labelled_batch(&self, model: &Classifier, rows: &[usize]) -> Result<LabelledBatch, Error> {
        let classes = rows.iter().map(|&row| self.answers[row].count().map(i64::from));
        let labels = match classes.collect::<Option<Vec<i64>>>() {
            Some(classes) => Tensor::from_slice(&classes),
            None => {
                Tensor::from_slice(&rows.iter().map(|&row| self.answers[row].value()).collect::<Vec<_>>())
            }
        };
        Ok(LabelledBatch { texts: self.batch(model, rows)?, labels: labels.to_device(model.options().1) })
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
