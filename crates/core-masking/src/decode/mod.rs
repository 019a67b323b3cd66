//! Batched beam search with a key-value cache.
//!
//! Hypotheses are a second axis, `[sentence, hypothesis, d_model]`: one per sentence before the first step, then `beam`. The beam is
//! reordered without moving keys and values: which of them belong to a hypothesis is stored separately ([`memory`]). Encoder states and
//! their keys are computed once per sentence, not per hypothesis. Finished sentences leave the batch.
mod generation_config;
mod hypotheses;
mod lane_memory;
mod lanes;
mod memory;
mod output;
mod step;
mod tensor_memory;

use tch::Tensor;

use crate::attention::KEYS_AT_ONCE;
use crate::translator::{Translator, TranslatorConfig};
use crate::{Attention, Error, GatedModel, Gates, LayerShape, ModelConfig, ModelDropout, TokenBatch};
use hypotheses::Hypotheses;
use lanes::SimdLayout;
use step::Step;

/// When the search of a sentence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopping {
    /// As soon as `beam` hypotheses are finished (fairseq's default, `early_stopping=True` in transformers).
    Early,
    /// When the best unfinished log-probability, divided by the maximum length, is no better than the worst of `beam` finished hypotheses,
    /// so that no hypothesis can improve on them (`early_stopping="never"`).
    Exact,
    /// When `beam` hypotheses are finished and the best unfinished one would score no better if it ended now, although a positive length
    /// penalty lets it improve (`early_stopping=False`, the default of transformers 5:
    /// <https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/generation/utils.py#L3374>; version 4 also considers
    /// hypotheses that ended in this step, and so may continue for a while).
    Heuristic,
}

/// Which tokens may be generated, and what they cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputRules {
    /// Tokens that are never generated.
    pub banned: Vec<u32>,
    /// True if the probabilities of all other tokens are scaled to sum to 1 again.
    pub renormalised: bool,
    /// True if a translation of maximum length must end with the EOS token, which then costs nothing.
    pub end_forced: bool,
    /// Optional first token of each translation, at no cost.
    pub begin: Option<u32>,
    /// Size of n-grams, counting the start token, that must not repeat in a translation; 0 allows repetition.
    pub ngram: usize,
    /// Minimum number of tokens before the EOS token.
    pub shortest: usize,
}

impl OutputRules {
    /// Returns the rules for models trained here: no padding, and a forced EOS if the configuration names one.
    pub fn of(config: &TranslatorConfig) -> Self {
        Self {
            banned: vec![config.pad_token_id],
            renormalised: false,
            end_forced: config.forced_eos_token_id.is_some(),
            ..Self::default()
        }
    }
}

/// Beam search settings.
#[derive(Debug, Clone, PartialEq)]
pub struct BeamSearch {
    /// Beam width; 1 is greedy search.
    pub beam: usize,
    /// The exponent α of the length in score = log-probability / lengthᵅ; the EOS token counts.
    pub length_penalty: f64,
    /// When the search of a sentence ends.
    pub stopping: Stopping,
    /// Maximum length, as `ratio * source tokens + offset`; the EOS token counts on both sides.
    pub length_limit: (f64, usize),
    /// Which tokens may be generated; `None` means [`OutputRules::of`] the model.
    pub rules: Option<OutputRules>,
}

/// The best hypothesis of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Translation {
    /// Target tokens, without start and EOS token.
    pub tokens: Vec<u32>,
    /// Log-probability divided by the length penalty; absent in greedy search, which compares logits and needs no normalisation.
    pub score: Option<f64>,
    /// Number of steps that the search took for this sentence.
    pub steps: usize,
}

impl BeamSearch {
    /// Translates a batch.
    ///
    /// - `sources`: token ids of each sentence, the EOS token last
    /// - `gates`: one row, or one for each sentence
    ///
    /// # Errors
    /// If a sentence is longer than the model's positions, or the model computes NaN.
    ///
    /// # Panics
    /// If `gates` has another number of rows.
    pub fn translate(
        &self,
        model: &Translator,
        sources: &[&[u32]],
        gates: &Gates,
    ) -> Result<Vec<Translation>, Error> {
        assert!(
            [1, sources.len()].contains(&(gates.rows() as usize)),
            "one row of gates, or one for each sentence"
        );
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.batch(model, sources)?;
        let limits: Vec<usize> =
            sources.iter().map(|source| self.limit(model.config(), source.len())).collect();
        tch::no_grad(|| {
            let memory = model.encode(&batch, gates, &ModelDropout::OFF); // [sentence, source, d_model]
            self.search(model, (&memory, &batch.bias), gates, &limits)
        })
    }

    pub(crate) fn batch(&self, model: &Translator, sources: &[&[u32]]) -> Result<TokenBatch, Error> {
        for source in sources {
            model.check_length("source", source.len())?;
        }
        Ok(TokenBatch::new(sources, model.config().pad_token_id, model.options()))
    }

    fn is_greedy(&self) -> bool {
        self.beam == 1
    }

    /// Returns the maximum number of target tokens for `source` tokens; the EOS token counts on both sides.
    pub fn limit(&self, config: &TranslatorConfig, source: usize) -> usize {
        let (ratio, offset) = self.length_limit;
        let wanted = ((ratio * source as f64) as usize).saturating_add(offset);
        wanted.clamp(1, config.max_position_embeddings as usize)
    }

    /// Returns true if a translation that reaches the maximum length ends with an EOS token that costs nothing.
    fn is_end_forced(&self, config: &TranslatorConfig) -> bool {
        self.rules.as_ref().map_or_else(|| OutputRules::of(config).end_forced, |rules| rules.end_forced)
    }

    /// Returns true if a translation of `tokens` target tokens ended because it reached `limit`: without the EOS token, or with a forced
    /// one. The limit counts the EOS token, `tokens` does not.
    pub fn is_cut(&self, config: &TranslatorConfig, tokens: usize, limit: usize) -> bool {
        tokens + usize::from(self.is_end_forced(config)) >= limit
    }

    /// Returns the maximum bytes that a sentence of `source` tokens needs in encoder and decoder, with `bytes` bytes per number.
    pub fn sentence_bytes(&self, config: &TranslatorConfig, bytes: u64, source: usize) -> u64 {
        let width = config.d_model as u64;
        // Query, key, value, their products, the residual stream and the feed-forward layer before and after its activation.
        let encoder = source as u64 * (8 * width + 2 * config.encoder_ffn_dim as u64);
        let (beam, step) = (self.beam as u64, KEYS_AT_ONCE as u64);
        // Logits and log-probabilities, at least in single precision.
        let logits = beam * config.target_vocabulary() as u64 * 2 * bytes.max(4);
        // Keys and values of a position: as tensors or in lanes.
        let LayerShape { heads, d_head, .. } = config.layout().module(Attention::DecDec, 0).shape;
        let layout = SimdLayout { heads, d_head: d_head as usize };
        let position = (width * bytes).max(layout.bytes());
        // Keys and values of source and target, in whole steps, and the one tensor that is being extended; biases.
        let [source, target] =
            [source, self.limit(config, source)].map(|tokens| (tokens as u64).next_multiple_of(step));
        let layers = 2 * config.decoder_layers as u64;
        let positions = layers * (source + beam * target) + beam * (target + step);
        let biases = 2 * (source + beam * beam * (target + step));
        (encoder + biases) * bytes + positions * position + logits
    }

    /// Translates sentences from their encoder states.
    ///
    /// - `memory`: `[sentence, source, d_model]`; `source_bias`: `[sentence, 1, 1, source]`
    /// - `limits`: the maximum number of target tokens of each sentence
    pub(crate) fn search(
        &self,
        model: &Translator,
        (memory, source_bias): (&Tensor, &Tensor),
        gates: &Gates,
        limits: &[usize],
    ) -> Result<Vec<Translation>, Error> {
        let rules = self.rules.clone().unwrap_or_else(|| OutputRules::of(model.config()));
        let mut step = Step::new(model, self, &rules, memory, source_bias, gates);
        let mut sentences: Vec<Hypotheses> = limits
            .iter()
            .map(|&limit| Hypotheses::new(limit, model.config().decoder_start_token_id))
            .collect();
        let mut active: Vec<usize> = (0..sentences.len()).collect();
        let end_forced = self.is_end_forced(model.config());
        while !active.is_empty() {
            let running: Vec<&Hypotheses> = active.iter().map(|&index| &sentences[index]).collect();
            let candidates = step.candidates(&running)?;
            let (length, end) = (step.position as usize, model.config().eos_token_id);
            for (&index, candidates) in active.iter().zip(candidates) {
                sentences[index].advance(self, &candidates, length, end, end_forced);
            }
            // first, since a sentence that ends with its first token never had a full beam
            let kept = without(active.len(), |row| sentences[active[row]].is_finished());
            if kept.len() < active.len() {
                step.keep(&kept);
                active = kept.iter().map(|&row| active[row]).collect();
            }
            let origins: Vec<&[usize]> = active.iter().map(|&index| sentences[index].origins()).collect();
            step.reorder(&origins);
        }
        Ok(sentences.into_iter().map(|sentence| sentence.best(self)).collect())
    }
}

/// Returns the rows that stay, in their new order: rows from the end fill the gaps, so that all others need not move.
fn without(rows: usize, leaves: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..rows).collect();
    let mut place = 0;
    while let Some(&row) = kept.get(place) {
        if leaves(row) {
            kept.swap_remove(place);
        } else {
            place += 1;
        }
    }
    kept
}
