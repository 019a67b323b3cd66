//! Texts whose tokens are predicted, as batches.
use tch::{Device, Kind, Tensor};

use super::Contrast;
use crate::loss::cross_entropy;

/// A window of a text.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// Tokens, at least two.
    pub tokens: &'a [u32],
    /// Number of tokens at the start that are context and not predicted, at least one; the previous window may have predicted them.
    pub context: usize,
}

/// A batch of windows, padded to the longest.
#[derive(Debug)]
pub struct PredictionBatch {
    /// Model input: all tokens of a window except the last, `[batch, position]`.
    pub(super) ids: Tensor,
    /// True at tokens, false at padding, `[batch, position]`.
    pub(super) real: Tensor,
    /// Tokens to be predicted, row after row, `[predictions]`.
    pub(super) labels: Tensor,
    /// Position that predicts each label, an index into `[batch * position]`.
    places: Tensor,
    /// Row of each prediction.
    rows: Tensor,
    /// Multiple-choice questions that the rows belong to.
    pub choices: Option<ChoiceRows>,
    /// Tokens in which the two choices of a question differ.
    pub contrasts: Vec<Contrast>,
    /// True if [`LanguageModel::sweep`](super::LanguageModel::sweep) returns, instead of nats, the gap between each token's logit and the
    /// largest: 0 if greedy decoding chooses the token.
    pub shortfalls: bool,
}

/// Multiple-choice questions, whose choices are consecutive rows.
#[derive(Debug)]
pub struct ChoiceRows {
    /// Question of each row, counted from 0, `[batch]`.
    pub(super) example_of_row: Tensor,
    /// Row of each choice, `[questions, most choices]`; any row where a question has fewer choices.
    rows: Tensor,
    /// 0 at choices, `-inf` where a question has fewer choices, `[questions, most choices]`.
    missing: Tensor,
    /// Divisor of the nats of each row, `[batch]`.
    lengths: Tensor,
    /// Index of the correct choice of each question, `[questions]`.
    answers: Tensor,
}

impl PredictionBatch {
    pub(super) fn new(windows: &[Window<'_>], device: Device) -> Self {
        let longest = windows.iter().map(|window| window.tokens.len() - 1).max().unwrap_or(0);
        let (mut ids, mut labels, mut places, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (row, Window { tokens, context }) in windows.iter().enumerate() {
            assert!((1..tokens.len()).contains(context), "a window predicts at least one token");
            let read = &tokens[..tokens.len() - 1];
            ids.extend(read.iter().map(|&id| i64::from(id)));
            ids.extend(std::iter::repeat_n(0, longest - read.len()));
            labels.extend(tokens[*context..].iter().map(|&id| i64::from(id)));
            places.extend((context - 1..read.len()).map(|place| (row * longest + place) as i64));
            rows.extend(std::iter::repeat_n(row as i64, tokens.len() - context));
        }
        let lengths: Vec<i64> = windows.iter().map(|window| window.tokens.len() as i64 - 1).collect();
        let tensor = |values: &[i64]| Tensor::from_slice(values).to_device(device);
        let place = Tensor::arange(longest as i64, (Kind::Int64, device)); // [position]
        Self {
            ids: tensor(&ids).view([windows.len() as i64, longest as i64]),
            real: place.lt_tensor(&tensor(&lengths).unsqueeze(1)), // [batch, position]
            labels: tensor(&labels),
            places: tensor(&places),
            rows: tensor(&rows),
            choices: None,
            contrasts: Vec::new(),
            shortfalls: false,
        }
    }

    /// Returns the number of predictions.
    pub fn predictions(&self) -> usize {
        self.labels.numel()
    }

    /// Returns the number of windows and of positions, padding included.
    pub fn size(&self) -> [i64; 2] {
        let size = self.ids.size();
        [size[0], size[1]]
    }

    /// Selects the hidden states that predictions are made from: `[predictions, d_model]` of `[batch, position, d_model]`.
    pub(super) fn predicting(&self, hidden: &Tensor) -> Tensor {
        hidden.flatten(0, 1).index_select(0, &self.places)
    }

    /// Sums over the predictions of each window: `[predictions]` to `[batch]`.
    pub fn by_row(&self, nats: &Tensor) -> Tensor {
        Tensor::zeros([self.ids.size()[0]], (nats.kind(), nats.device())).index_add(0, &self.rows, nats)
    }
}

impl ChoiceRows {
    /// - `counts`: the number of choices of each question, in the order of rows
    /// - `answers`: the index of the correct choice
    /// - `lengths`: divisor of the nats of each row: 1, or the length of the choice in characters
    ///
    /// # Panics
    /// If the counts do not add up to the number of lengths, or the numbers of questions and answers differ.
    pub fn new(counts: &[usize], answers: &[usize], lengths: &[f64], (kind, device): (Kind, Device)) -> Self {
        assert_eq!(counts.iter().sum::<usize>(), lengths.len(), "rows of all questions");
        assert_eq!(counts.len(), answers.len(), "an answer to each question");
        let most = counts.iter().copied().max().unwrap_or(0);
        let (mut rows, mut missing, mut example_of_row, mut first) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (question, &count) in counts.iter().enumerate() {
            rows.extend((0..most).map(|choice| (first + choice.min(count - 1)) as i64));
            missing.extend((0..most).map(|choice| if choice < count { 0.0 } else { f64::NEG_INFINITY }));
            example_of_row.extend(std::iter::repeat_n(question as i64, count));
            first += count;
        }
        let shape = [counts.len() as i64, most as i64];
        let wide = if kind == Kind::Double { kind } else { Kind::Float };
        let answers: Vec<i64> = answers.iter().map(|&answer| answer as i64).collect();
        Self {
            example_of_row: Tensor::from_slice(&example_of_row).to_device(device),
            rows: Tensor::from_slice(&rows).view(shape).to_device(device),
            missing: Tensor::from_slice(&missing).view(shape).to_kind(wide).to_device(device),
            lengths: Tensor::from_slice(lengths).to_kind(wide).to_device(device),
            answers: Tensor::from_slice(&answers).to_device(device),
        }
    }

    /// Returns the log-probability of each choice, divided by its length, `[questions, most choices]`, from the nats of each row,
    /// `[batch]`.
    pub fn scores(&self, nats: &Tensor) -> Tensor {
        let scores = -(nats / &self.lengths);
        scores.index_select(0, &self.rows.flatten(0, 1)).view_as(&self.rows) + &self.missing
    }

    /// Returns the cross-entropy of the correct choice in nats, `[questions]`.
    pub(super) fn cross_entropy(&self, nats: &Tensor) -> Tensor {
        cross_entropy(&self.scores(nats), &self.answers)
    }
}
