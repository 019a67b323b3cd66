//! Texts or images of a split as a classifier reads them, with their classes or values or with the classes of their words.
use core_masking::classifier::LabelledBatch;
use core_masking::loss::UNLABELLED;
use core_masking::{Classifier, GatedModel, to_vec};
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::labelled::Example;
use stats::text::TextMetric;
use stats::{Cell, Cells};
use tch::Tensor;

use super::reader::Read;
use crate::error::Error;

/// Tokens per batch, padding included: large enough for efficient matrix products, small enough that the activations of a layer stay in the
/// CPU caches.
pub(super) const BATCH_TOKENS: usize = 2_048;

/// A correct answer or a prediction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// The class (a count) or the value (a decimal).
    One(Cell),
    /// The class of each word; in a prediction, of each token.
    Tags(Vec<u32>),
}

/// A split as a classifier reads it.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(super) read: Read,
    /// The correct answer to each example.
    pub(super) answers: Vec<Answer>,
    tags: Option<Tags>,
}

/// Scoring of words with tags.
#[derive(Debug)]
struct Tags {
    metric: TextMetric,
    /// The tags, in the order of the model's outputs.
    labels: Vec<String>,
    /// The true tags of each text.
    gold: Vec<String>,
    /// For each word of each text, the index of its first token; `None` if the word is not in the model's input.
    first: Vec<Vec<Option<usize>>>,
}

/// Tag of words that are not in the model's input.
const UNSEEN: &str = "-";

impl Texts {
    /// Encodes words with tags. Words that the model's input lacks count as wrong and outside of entities, and are reported.
    pub(super) fn encode_words(
        tokenizer: &ClassifierTokenizer,
        (examples, split): (&[Example], &str),
        answers: Vec<Answer>,
        (metric, labels): (TextMetric, &[String]),
    ) -> Result<Self, Error> {
        let encode = |example: &Example| tokenizer.encode_words(example.words());
        let (encoded, first): (Vec<_>, Vec<_>) =
            examples.iter().map(encode).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let unseen = first.iter().flatten().filter(|place| place.is_none()).count();
        if unseen > 0 {
            words::say!(
                "split `{split}`: words not seen by the model: {unseen} (after the first {} tokens of a sentence, or without tokens); they \
                 count as outside entities, and as wrong for token accuracy",
                tokenizer.max_length()
            );
        }
        let gold = examples.iter().map(|example| example.label.clone()).collect();
        let tags = Tags { metric, labels: labels.to_vec(), gold, first };
        Ok(Self { tags: Some(tags), ..Self::new(Read::Texts(encoded), answers) })
    }

    pub(super) fn new(read: Read, answers: Vec<Answer>) -> Self {
        Self { read, answers, tags: None }
    }

    /// Returns the tokens of a text, or the positions of an image.
    pub(super) fn tokens(&self, row: usize) -> usize {
        self.read.positions(row)
    }

    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.read.len()).map(|row| self.tokens(row))
    }

    /// Returns the number of predictions for these texts: one each, or one for each word in the model's input.
    pub(super) fn predictions(&self, rows: &[usize]) -> usize {
        let of_words = |tags: &Tags| rows.iter().flat_map(|&row| &tags.first[row]).flatten().count();
        self.tags.as_ref().map_or(rows.len(), of_words)
    }

    /// Returns these examples as tensors with their classes or values, or with the classes of their tokens.
    pub(super) fn labelled_batch(&self, model: &Classifier, rows: &[usize]) -> Result<LabelledBatch, Error> {
        let inputs = self.read.batch(model, rows)?;
        let labels = match &self.tags {
            Some(tags) => self.token_labels(tags, rows, inputs.size()[1]),
            None => {
                let cells: Vec<Cell> = rows.iter().filter_map(|&row| self.answers[row].one()).collect();
                match cells.iter().map(|cell| cell.count().map(i64::from)).collect::<Option<Vec<i64>>>() {
                    Some(classes) => Tensor::from_slice(&classes),
                    None => Tensor::from_slice(&cells.iter().map(|cell| cell.value()).collect::<Vec<_>>()),
                }
            }
        };
        Ok(LabelledBatch { inputs, labels: labels.to_device(model.options().1) })
    }

    /// Returns the classes of the tokens of these texts, `[batch, position]`.
    fn token_labels(&self, tags: &Tags, rows: &[usize], positions: i64) -> Tensor {
        let mut labels = vec![UNLABELLED; rows.len() * positions as usize];
        for (&row, of_text) in rows.iter().zip(labels.chunks_mut(positions as usize)) {
            let Answer::Tags(classes) = &self.answers[row] else { continue };
            let first = tags.first[row].iter().zip(classes);
            first.for_each(|(&place, &class)| place.into_iter().for_each(|at| of_text[at] = class.into()));
        }
        Tensor::from_slice(&labels).view([rows.len() as i64, positions])
    }

    /// Returns what is stored for a text with this prediction.
    pub(super) fn outcome(&self, row: usize, answer: &Answer) -> Cells {
        match (answer, &self.tags) {
            (Answer::One(predicted), _) => self.answers[row].one().into_iter().chain([*predicted]).collect(),
            (Answer::Tags(classes), Some(tags)) => {
                let tag = |place: &Option<usize>| {
                    place.map_or(UNSEEN, |token| tags.labels[classes[token] as usize].as_str())
                };
                let predicted: Vec<&str> = tags.first[row].iter().map(tag).collect();
                let counts = tags.metric.segment(&predicted.join(" "), &tags.gold[row]);
                counts.into_iter().map(Cell::Count).collect()
            }
            (Answer::Tags(_), None) => unreachable!("tokens are classified only where words have tags"),
        }
    }

    /// Returns true if tags are scored by entities and no text has any.
    pub(super) fn lack_entities(&self) -> bool {
        let marks_none = |tags: &Tags| tags.gold.iter().all(|gold| tags.metric.segment("", gold)[1] == 0);
        self.tags.as_ref().is_some_and(|tags| tags.metric == TextMetric::EntityF1 && marks_none(tags))
    }
}

impl Answer {
    /// Returns the class or value of a text; `None` if its words have classes.
    pub(super) fn one(&self) -> Option<Cell> {
        match self {
            Self::One(cell) => Some(*cell),
            Self::Tags(_) => None,
        }
    }
}

/// Returns what is stored for these texts; `logits`: `[batch, labels]` or `[batch, position, labels]`.
pub(super) fn outcomes(logits: &Tensor, texts: &Texts, rows: &[usize]) -> Result<Vec<Cells>, Error> {
    let outcome = |(&row, answer): (&usize, Answer)| texts.outcome(row, &answer);
    Ok(rows.iter().zip(predictions(logits)?).map(outcome).collect())
}

/// Returns the class with the maximum logit, or the only logit, of each row; `logits`: `[batch, labels]` or `[batch, position, labels]`.
///
/// # Errors
/// If a logit is NaN or infinite.
pub(super) fn predictions(logits: &Tensor) -> Result<Vec<Answer>, Error> {
    if logits.isfinite().all().int64_value(&[]) == 0 {
        return Err(Error::not_finite());
    }
    let one = |cell: Cell| Answer::One(cell);
    let classes = || to_vec::<i64>(&logits.argmax(-1, false)).into_iter().map(|class| class as u32);
    Ok(match logits.size()[..] {
        [_, 1] => to_vec(logits).into_iter().map(Cell::Decimal).map(one).collect(),
        [_, positions, _] => {
            let classes: Vec<u32> = classes().collect();
            classes.chunks(positions as usize).map(|of_text| Answer::Tags(of_text.to_vec())).collect()
        }
        _ => classes().map(Cell::Count).map(one).collect(),
    })
}
