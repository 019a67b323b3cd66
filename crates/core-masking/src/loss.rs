//! Cross-entropy of translators and classifiers: for training, and per example for importance.
use tch::{Kind, Tensor, no_grad};

use crate::language_model::LOGITS_AT_ONCE;
use crate::{GatedModel, Gates, ModelDropout, TokenBatch, Translator, product};

/// Maximum number of a translator's logits held at once: 128 MiB in single precision. For larger batches logits and gradients are computed
/// for part of the tokens at a time.
pub const MAX_LOGITS: i64 = 1 << 25;

/// One batch of sentence pairs, teacher forced.
#[derive(Debug)]
pub struct PairBatch {
    /// Source sentences.
    pub source: TokenBatch,
    /// Decoder input: the start token, then the target without its EOS token; `[batch, target]`.
    pub decoder_input: Tensor,
    /// Tokens to be predicted: the target with its EOS token, padded; `[batch, target]`.
    pub labels: Tensor,
    /// 1 at real labels, 0 at padding; `[batch, target]`.
    pub real: Tensor,
    /// Number of real labels.
    pub tokens: usize,
}

impl PairBatch {
    /// Pads the pairs; each row of `sources` and `targets` ends with the EOS token. Panics if a row is empty. The model panics
    /// on rows that are too long and on unknown tokens.
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

/// Returns the label-smoothed cross-entropy in nats, summed over real tokens; training minimises it per token.
///
/// `smoothing` is the ε of Szegedy et al. (2016), spread over the whole vocabulary as in PyTorch. Returns a scalar.
pub fn training_loss(
    model: &Translator,
    batch: &PairBatch,
    gates: &Gates,
    smoothing: f64,
    dropout: &ModelDropout,
) -> Tensor {
    let TokenLosses { losses, of_output } = token_losses(model, batch, gates, smoothing, dropout);
    let loss = (losses * &batch.real).sum(None);
    match of_output {
        Some(of_output) => loss + gradient_only(&(model.layers.output_layer().0 * of_output).sum(None)),
        None => loss,
    }
}

pub(crate) struct TokenLosses {
    /// Cross-entropy in nats of each token, teacher forced, `[batch, target]`; losses of padding must be multiplied by 0.
    pub(crate) losses: Tensor,
    /// Gradient of their sum over real tokens with respect to the output layer, `[vocab, d_model]`, if autograd does not compute it.
    of_output: Option<Tensor>,
}

/// Returns the losses of all tokens.
pub(crate) fn token_losses(
    model: &Translator,
    batch: &PairBatch,
    gates: &Gates,
    smoothing: f64,
    dropout: &ModelDropout,
) -> TokenLosses {
    let memory = model.encode(&batch.source, gates, dropout);
    let hidden = model.decode(&batch.decoder_input, &memory, &batch.source.bias, gates, dropout);
    let (embedding, bias) = model.layers.output_layer();
    let logits = batch.labels.numel() as i64 * embedding.size()[0];
    let most = if logits > MAX_LOGITS { LOGITS_AT_ONCE } else { logits };
    let (normaliser, of_output) = normaliser((embedding, bias), &hidden, &batch.real, most);

    // The logit of the label and the mean logit are computed from the embedding: another pass over [batch, target, vocab] and its gradient
    // would cost more than the rest of a small model.
    let label_embedding = Tensor::embedding(embedding, &batch.labels, -1, false, false); // [batch, target, d_model]
    let label_logit = (&hidden * label_embedding).sum_dim_intlist(-1, false, None)
        + bias.index_select(0, &batch.labels.view([-1])).view_as(&batch.labels);
    let losses = if smoothing == 0.0 {
        normaliser - label_logit
    } else {
        let mean_embedding = embedding.mean_dim(0, false, None); // [d_model]
        let mean_logit = hidden.matmul(&mean_embedding) + bias.mean(None); // [batch, target]
        normaliser - label_logit * (1.0 - smoothing) - mean_logit * smoothing
    };
    TokenLosses { losses, of_output }
}

/// Returns the log-sum-exp of each token's logits, `[batch, target]`, and the derivative of its sum over real tokens with respect to the
/// output layer, if autograd does not compute it and the layer is trained.
///
/// - `hidden`: `[batch, target, d_model]`; `real`: `[batch, target]`
/// - `most`: maximum number of logits held at once
fn normaliser(
    (embedding, bias): (&Tensor, &Tensor),
    hidden: &Tensor,
    real: &Tensor,
    most: i64,
) -> (Tensor, Option<Tensor>) {
    let rows = real.numel() as i64;
    let at_once = (most / embedding.size()[0]).max(1);
    if at_once >= rows {
        return (product::linear(hidden, embedding, Some(bias)).logsumexp(-1, false), None);
    }
    let (flat, real_rows) = (hidden.flatten(0, 1), real.flatten(0, 1).unsqueeze(1));
    let mut of_output = embedding.requires_grad().then(|| no_grad(|| embedding.zeros_like()));
    let parts = (0..rows).step_by(at_once as usize).map(|first| {
        let count = at_once.min(rows - first);
        let part = flat.narrow(0, first, count); // [part, d_model]
        let (values, of_hidden) = no_grad(|| {
            let logits = product::linear(&part.detach(), embedding, Some(bias)); // [part, vocab]
            let values = logits.logsumexp(-1, true); // [part, 1]
            let probabilities = (logits - &values).exp();
            if let Some(of_output) = &mut of_output {
                *of_output += probabilities.tr().matmul(&(part.detach() * real_rows.narrow(0, first, count)));
            }
            (values.squeeze_dim(1), probabilities.matmul(embedding))
        });
        values + gradient_only(&(part * of_hidden).sum_dim_intlist(-1, false, None))
    });
    let values = Tensor::cat(&parts.collect::<Vec<_>>(), 0).view_as(real);
    (values, of_output)
}

/// Returns 0 with the gradient of `x`.
pub(crate) fn gradient_only(x: &Tensor) -> Tensor {
    x - x.detach()
}

/// Returns the cross-entropy in nats of each row, `[batch]`. `logits`: `[batch, labels]`; `labels`: `[batch]`, integers.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Tensor {
    let log_probabilities = logits.log_softmax(-1, logits.kind());
    -log_probabilities.gather(1, &labels.unsqueeze(1), false).squeeze_dim(1)
}

/// Label of ignored tokens, as in transformers: padding, special tokens, and all pieces of a word except the first.
pub const UNLABELLED: i64 = -100;

/// Returns the loss of each row, `[batch]`: the [`cross_entropy`] of its class, summed over labelled tokens for token classification; with
/// one output, the squared error.
///
/// - `outputs`: `[batch, outputs]`, or `[batch, position, outputs]` for tokens
/// - `labels`: classes as integers or values, `[batch]`; for tokens, classes or [`UNLABELLED`], `[batch, position]`
pub fn of_labels(outputs: &Tensor, labels: &Tensor) -> Tensor {
    match outputs.size()[..] {
        [_, 1] => (outputs.squeeze_dim(1) - labels).square(),
        [batch, positions, _] => {
            let losses = cross_entropy(&outputs.flatten(0, 1), &labels.clamp_min(0).flatten(0, 1));
            let counts = labels.not_equal(UNLABELLED).to_kind(losses.kind()); // [batch, position]
            (losses.view([batch, positions]) * counts).sum_dim_intlist(1, false, None)
        }
        _ => cross_entropy(outputs, labels),
    }
}

/// Returns ln Σ exp over the last axis: the maximum minus its log-softmax. For many numbers this takes a sixth of the time of libtorch's
/// `logsumexp`.
pub(crate) fn log_sum_exp(numbers: &Tensor) -> Tensor {
    let greatest = numbers.amax([-1], false);
    let sum = &greatest - numbers.log_softmax(-1, numbers.kind()).amax([-1], false);
    // without any finite number, log-softmax is NaN
    sum.where_self(&greatest.ne(f64::NEG_INFINITY), &greatest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weights;
    use tch::Device;

    /// 3 * 5 tokens of a vocabulary of 11, computed all at once and 4 at a time: the sum over real tokens, and its derivatives with respect
    /// to the input and the weights of the output layer, which autograd gives for the whole.
    #[test]
    fn parts_of_a_vocabulary_give_what_the_whole_gives() {
        let options = (Kind::Double, Device::Cpu);
        let shapes = [("hidden", vec![3, 5, 7]), ("output", vec![11, 7]), ("bias", vec![11])];
        let shapes = shapes.map(|(name, shape)| (name.to_owned(), shape)).to_vec();
        let drawn = Weights::drawn(shapes, 3, |_, shape| Tensor::randn(shape, options));
        let real =
            Tensor::from_slice(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
        let real = real.view([3, 5]);
        let found = |most| {
            let [hidden, output] = ["hidden", "output"]
                .map(|name| drawn.get(name).unwrap().detach().copy().set_requires_grad(true));
            let (values, of_output) =
                normaliser((&output, &drawn.get("bias").unwrap()), &hidden, &real, most);
            let sum = (&values * &real).sum(None);
            match &of_output {
                Some(of_output) => (sum + gradient_only(&(&output * of_output).sum(None))).backward(),
                None => sum.backward(),
            }
            (of_output.is_some(), [values.detach(), hidden.grad(), output.grad()])
        };
        let ((in_parts, parts), (not_in_parts, whole)) = (found(4 * 11), found(15 * 11));
        assert!(in_parts && !not_in_parts);
        for (part, whole) in parts.iter().zip(&whole) {
            let gap = (part - whole).abs().max().double_value(&[]);
            assert!(gap < 1e-12, "{gap:e}");
        }
    }
}
