//! Cross-entropy over a large vocabulary. Logits and their gradients are computed for part of the predictions at a time, which bounds the
//! memory.
use tch::{Kind, Tensor, no_grad};

use super::{LanguageModel, PredictionBatch};
use crate::attention::capped;
use crate::loss::{gradient_only, log_sum_exp};
use crate::{GatedModel, Gates, ModelDropout, product};

/// Maximum number of logits held at once, unless a single prediction has more: 32 MB in single precision.
pub const LOGITS_AT_ONCE: i64 = 1 << 23;

/// Tokens per tile of a large vocabulary: few enough that the logits of a tile are summed while they are cached.
const TILE: i64 = 1_024;

/// Number of tiles from which a vocabulary counts as large.
const MIN_TILES: i64 = 16;

/// The output layer.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) table: Tensor, // [vocab, d_model]
    pub(super) cap: Option<f64>,
}

impl Output {
    /// Computes the logits, `[.., vocab]`, of `hidden`, `[.., d_model]`.
    pub(super) fn logits(&self, hidden: &Tensor) -> Tensor {
        capped(product::linear(hidden, &self.table, None), self.cap)
    }
}

/// Returns the nats of each prediction, `[predictions]`, at least in single precision.
///
/// - `hidden`: `[predictions, d_model]`; gradients flow to it if it requires them, and then also to `output` if that requires them
/// - `labels`: `[predictions]`
pub(super) fn token_nats(hidden: &Tensor, output: &Output, labels: &Tensor) -> Tensor {
    if hidden.requires_grad() && output.table.requires_grad() {
        return nats_of(&wide(&output.logits(hidden)), labels);
    }
    if !hidden.requires_grad() && output.table.size()[0] >= MIN_TILES * TILE {
        return no_grad(|| tiled_nats(hidden, output, labels));
    }
    let nats = parts(hidden, output, labels).map(|(hidden, labels)| {
        if !hidden.requires_grad() {
            return no_grad(|| nats_of(&wide(&output.logits(&hidden)), &labels));
        }
        let Slopes { nats, of_hidden, .. } = no_grad(|| slopes(&hidden.detach(), output, &labels));
        nats + gradient_only(&(hidden * of_hidden).sum_dim_intlist(-1, false, None))
    });
    Tensor::cat(&nats.collect::<Vec<_>>(), 0)
}

/// [`token_nats`] without gradients: the logits of a large vocabulary are summed tile by tile while they are cached.
fn tiled_nats(hidden: &Tensor, Output { table, cap }: &Output, labels: &Tensor) -> Tensor {
    let rows = LOGITS_AT_ONCE / TILE;
    let of_part = |(hidden, labels): (Tensor, Tensor)| {
        let tiles = table.split(TILE, 0);
        let logits = |tile: &Tensor| capped(wide(&product::linear(&hidden, tile, None)), *cap);
        let sums = tiles.iter().map(|tile| log_sum_exp(&logits(tile)));
        let sums = Tensor::stack(&sums.collect::<Vec<_>>(), -1); // [part, tile]
        let of_label = wide(&hidden) * wide(&table.index_select(0, &labels)); // [part, d_model]
        let of_label = capped(of_label.sum_dim_intlist(-1, false, None), *cap);
        // The label's logit is rounded differently, so a token of probability 1 could have a negative loss.
        (log_sum_exp(&sums) - of_label).clamp_min(0.0)
    };
    let parts = hidden.split(rows, 0).into_iter().zip(labels.split(rows, 0));
    Tensor::cat(&parts.map(of_part).collect::<Vec<_>>(), 0)
}

/// Returns the gap between each label's logit and the largest logit, `[predictions]`. `hidden`: `[predictions, d_model]`; `labels`:
/// `[predictions]`.
pub(super) fn shortfalls(hidden: &Tensor, output: &Output, labels: &Tensor) -> Tensor {
    let of_part = |(hidden, labels): (Tensor, Tensor)| {
        let logits = wide(&output.logits(&hidden)); // [part, vocab]
        logits.amax([-1].as_slice(), false) - logit_of(&logits, &labels)
    };
    no_grad(|| Tensor::cat(&parts(hidden, output, labels).map(of_part).collect::<Vec<_>>(), 0))
}

/// Returns the cross-entropy in nats, summed over the predictions of a batch, a scalar: the training loss.
pub fn training_loss(
    model: &LanguageModel,
    batch: &PredictionBatch,
    gates: &Gates,
    dropout: &ModelDropout,
) -> Tensor {
    let hidden = batch.predicting(&model.hidden(&batch.ids, gates, dropout)); // [predictions, d_model]
    let output = &model.output;
    let mut of_output = no_grad(|| output.table.zeros_like());
    let mut nats = Tensor::zeros([], (Kind::Float, model.options().1));
    for (hidden, labels) in parts(&hidden, output, &batch.labels) {
        let found = no_grad(|| {
            let read = hidden.detach();
            let found = slopes(&read, output, &labels);
            of_output += found.of_logits.tr().matmul(&read);
            found
        });
        nats = nats + found.nats.sum(None) + gradient_only(&(hidden * found.of_hidden).sum(None));
    }
    nats + gradient_only(&(&output.table * of_output).sum(None))
}

struct Slopes {
    nats: Tensor,      // [part]
    of_logits: Tensor, // d nats / d logits before their cap, [part, vocab]
    of_hidden: Tensor, // d nats / d hidden, [part, d_model]
}

fn slopes(hidden: &Tensor, output: &Output, labels: &Tensor) -> Slopes {
    let logits = wide(&output.logits(hidden));
    let normaliser = logits.logsumexp(-1, true); // [part, 1]
    let nats = normaliser.squeeze_dim(1) - logit_of(&logits, labels);
    let mut of_logits = (&logits - normaliser).exp();
    let labels = labels.unsqueeze(1);
    let _ = of_logits.scatter_add_(1, &labels, &labels.zeros_like().to_kind(logits.kind()).fill_(-1.0));
    if let Some(cap) = output.cap {
        of_logits *= (logits / cap).square().neg() + 1.0; // 1 - tanh²
    }
    let of_logits = of_logits.to_kind(hidden.kind());
    let of_hidden = of_logits.matmul(&output.table);
    Slopes { nats, of_logits, of_hidden }
}

/// Returns the nats, `[part]`, from logits `[part, vocab]`.
fn nats_of(logits: &Tensor, labels: &Tensor) -> Tensor {
    logits.logsumexp(-1, false) - logit_of(logits, labels)
}

fn logit_of(logits: &Tensor, labels: &Tensor) -> Tensor {
    logits.gather(1, &labels.unsqueeze(1), false).squeeze_dim(1)
}

/// Converts half precision to single, since sums over a vocabulary need it.
fn wide(logits: &Tensor) -> Tensor {
    match logits.kind() {
        Kind::Half | Kind::BFloat16 => logits.to_kind(Kind::Float),
        _ => logits.shallow_clone(),
    }
}

/// Splits `hidden` and labels into parts whose logits fit into [`LOGITS_AT_ONCE`].
fn parts<'a>(
    hidden: &'a Tensor,
    output: &Output,
    labels: &'a Tensor,
) -> impl Iterator<Item = (Tensor, Tensor)> + 'a {
    let rows = hidden.size()[0];
    let most = (LOGITS_AT_ONCE / output.table.size()[0]).max(1);
    let part = move |first: i64| {
        let count = most.min(rows - first);
        (hidden.narrow(0, first, count), labels.narrow(0, first, count))
    };
    (0..rows).step_by(most as usize).map(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language_model::{ChoiceRows, LanguageConfig, Window};
    use crate::{DropoutRates, Weights};
    use tch::Device;

    /// Three parts of at most 2^23 / 3,000,017 = 2 predictions, and tiles of 1,024 tokens, the last one smaller, compared with plain
    /// autograd.
    #[test]
    fn parts_give_the_results_of_the_whole() {
        let options = (Kind::Double, Device::Cpu);
        let shapes = [("hidden", vec![5, 3]), ("output", vec![3_000_017, 3])];
        let shapes = shapes.map(|(name, shape)| (name.to_owned(), shape)).to_vec();
        let drawn = Weights::drawn(shapes, 3, |_, shape| Tensor::randn(shape, options));
        let [hidden, table] = ["hidden", "output"].map(|name| drawn.get(name).unwrap());
        let labels = Tensor::from_slice(&[7_i64, 0, 3_000_016, 7, 2]);
        let weights = Tensor::from_slice(&[1.0, -0.5, 0.0, 2.0, 3.0]); // of the predictions
        let of = |output: &Output| {
            let hidden = hidden.detach().copy().set_requires_grad(true);
            let nats = token_nats(&hidden, output, &labels);
            (&nats * &weights).sum(None).backward();
            (nats.detach(), hidden.grad())
        };
        for cap in [None, Some(0.7)] {
            let output = |table: &Tensor| Output { table: table.shallow_clone(), cap };
            let (parts, slopes) = of(&output(&table));
            let (whole, expected) = of(&output(&table.detach().copy().set_requires_grad(true)));
            assert!(parts.allclose(&whole, 1e-10, 1e-10, false));
            let tiled = token_nats(&hidden, &output(&table), &labels);
            assert!(tiled.allclose(&whole, 1e-10, 1e-10, false));
            assert!(slopes.allclose(&expected, 1e-10, 1e-10, false));
        }
    }

    /// Gradients of all tensors equal those of autograd on the whole logits, also with dropout, with tied embeddings, and if a token occurs
    /// twice.
    #[test]
    fn training_gradients_equal_those_of_autograd() {
        for is_tied in [true, false] {
            let json = serde_json::json!({
                "model_type": "llama", "vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2,
                "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 6,
                "max_position_embeddings": 16, "initializer_range": 0.5, "tie_word_embeddings": is_tied,
                "hidden_act": "silu",
            });
            let config: LanguageConfig = serde_json::from_value(json).unwrap();
            let model = LanguageModel::random(config, 5, (Kind::Double, Device::Cpu)).unwrap();
            let windows = [[7_u32, 2, 7, 7, 3].as_slice(), &[1, 7, 9]];
            let gradients = |is_ours: bool| {
                let leaves = model
                    .weights()
                    .iter()
                    .map(|(name, tensor)| (name.to_owned(), tensor.detach().copy().set_requires_grad(true)));
                let weights = Weights::from_tensors(leaves);
                let model = LanguageModel::new(model.config().clone(), weights.share()).unwrap();
                let windows = windows.map(|tokens| Window { tokens, context: 1 });
                let batch = model.batch(&windows).unwrap();
                let open = Gates::open(&model.layout(), model.options());
                let rates = DropoutRates { hidden: 0.2, attention: 0.1, classifier: 0.2 };
                let dropout = ModelDropout::new(rates, 3);
                let loss = if is_ours {
                    training_loss(&model, &batch, &open, &dropout)
                } else {
                    let hidden = batch.predicting(&model.hidden(&batch.ids, &open, &dropout));
                    nats_of(&model.logits(&hidden), &batch.labels).sum(None)
                };
                loss.backward();
                let of = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.grad());
                (loss.double_value(&[]), weights.iter().map(of).collect::<Vec<_>>())
            };
            let ((loss, ours), (expected, theirs)) = (gradients(true), gradients(false));
            assert!((loss - expected).abs() < 1e-5, "{loss} {expected}");
            for ((name, ours), (_, theirs)) in ours.iter().zip(&theirs) {
                let gap = (ours - theirs).abs().max().double_value(&[]);
                assert!(gap < 1e-9, "{name}, tied: {is_tied}: {gap:e}");
            }
        }
    }

    /// A question with three choices and one with two, of different lengths: the cross-entropy equals a softmax computed by hand.
    #[test]
    fn the_loss_of_a_choice_is_the_cross_entropy_of_its_log_probabilities() {
        let options = (Kind::Double, Device::Cpu);
        let choices = ChoiceRows::new(&[3, 2], &[2, 0], &[1.0, 2.0, 4.0, 1.0, 1.0], options);
        let nats = Tensor::from_slice(&[3.0, 4.0, 4.0, 1.0, 2.0]); // scores -3, -2, -1; -1, -2
        let found = Vec::<f64>::try_from(choices.cross_entropy(&nats)).unwrap();
        let by_hand = |right: f64, all: &[f64]| all.iter().map(|score| score.exp()).sum::<f64>().ln() - right;
        let expected = [by_hand(-1.0, &[-3.0, -2.0, -1.0]), by_hand(-1.0, &[-1.0, -2.0])];
        assert!(
            found.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-12),
            "{found:?}"
        );
    }
}
