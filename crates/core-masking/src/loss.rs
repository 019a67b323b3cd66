//! Cross-entropy of translators and classifiers: for training, and of each example for importance.
use tch::{Kind, Tensor};

use crate::{GatedModel, Gates, ModelDropout, TokenBatch, Translator};

/// One batch of sentence pairs, teacher forced.
#[derive(Debug)]
pub struct PairBatch {
    /// Source sentences.
    pub source: TokenBatch,
    /// Decoder input: the start symbol, then the target without its end; `[batch, target]`.
    pub decoder_input: Tensor,
    /// What is to be predicted: the target with its end, padded; `[batch, target]`.
    pub labels: Tensor,
    /// 1 at real labels, 0 at padding; `[batch, target]`.
    pub real: Tensor,
    /// Number of real labels.
    pub tokens: usize,
}

impl PairBatch {
    /// Pads the pairs; each row of `sources` and `targets` ends with the end symbol.
    ///
    /// # Panics
    /// If a row is empty. Rows that are too long for the model, or hold tokens that it does not have, panic in the model.
    pub fn new(model: &Translator, sources: &[&[u32]], targets: &[&[u32]]) -> Self {
        let (config, options) = (model.config(), model.options());
        let labels = TokenBatch::new(targets, config.pad_token_id, options);
        let start = Tensor::full(
            [targets.len() as i64, 1],
            i64::from(config.decoder_start_token_id),
            (Kind::Int64, options.1),
        );
        let length = labels.ids.size()[1];
        Self {
            source: TokenBatch::new(sources, config.pad_token_id, options),
            decoder_input: Tensor::cat(&[start, labels.ids.narrow(1, 0, length - 1)], 1),
            real: labels.bias.view([-1, length]).isfinite().to_kind(options.0),
            labels: labels.ids,
            tokens: targets.iter().map(|row| row.len()).sum(),
        }
    }
}

/// Label-smoothed cross-entropy in nats, summed over real tokens; training minimises it per token.
///
/// `smoothing` is the ε of Szegedy et al. (2016), spread over the whole vocabulary as in PyTorch. Returns a scalar.
pub fn training_loss(
    model: &Translator,
    batch: &PairBatch,
    gates: &Gates,
    smoothing: f64,
    dropout: &ModelDropout,
) -> Tensor {
    let losses = token_losses(model, batch, gates, smoothing, dropout);
    (losses * &batch.real).sum(None)
}

/// Cross-entropy in nats of each token, teacher forced, `[batch, target]`; padding has a value too, to be multiplied by 0.
pub(crate) fn token_losses(
    model: &Translator,
    batch: &PairBatch,
    gates: &Gates,
    smoothing: f64,
    dropout: &ModelDropout,
) -> Tensor {
    let memory = model.encode(&batch.source, gates, dropout);
    let hidden = model.decode(&batch.decoder_input, &memory, &batch.source.bias, gates, dropout);
    let (embedding, bias) = model.output_layer();
    let normaliser = model.logits(&hidden).logsumexp(-1, false); // [batch, target]

    // The logits of the label and their mean come from the embedding directly: a pass over [batch, target, vocab]
    // and its gradient cost more than the rest of a small model.
    let label_embedding = Tensor::embedding(embedding, &batch.labels, -1, false, false); // [batch, target, d_model]
    let label_logit = (&hidden * label_embedding).sum_dim_intlist(-1, false, None)
        + bias.index_select(0, &batch.labels.view([-1])).view_as(&batch.labels);
    if smoothing == 0.0 {
        return normaliser - label_logit;
    }
    let mean_embedding = embedding.mean_dim(0, false, None); // [d_model]
    let mean_logit = hidden.matmul(&mean_embedding) + bias.mean(None); // [batch, target]
    normaliser - label_logit * (1.0 - smoothing) - mean_logit * smoothing
}

/// Cross-entropy in nats of each row: `logits` `[batch, labels]`, `labels` `[batch]`, integers. Returns `[batch]`.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    let log_probabilities = logits.log_softmax(-1, logits.kind());
    -log_probabilities.gather(1, &labels.unsqueeze(1), false).squeeze_dim(1)
}
