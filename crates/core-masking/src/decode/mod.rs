//! Batched beam search with a key-value cache.
//!
//! A sentence's hypotheses lie beside each other as the queries of one batch row, `[sentence, beam, d_model]`, and
//! attend to a cache that is appended to until sentences leave: which of its slots belong to which hypothesis is a bias,
//! so that reordering the beam moves a few numbers and not the keys. Encoder states and their keys are computed once for
//! a sentence, not for each hypothesis. Finished sentences leave the batch.
mod cache;
mod generation_config;
mod hypotheses;

use tch::{Device, Kind, Tensor};

use crate::translator::{DecoderMemory, Translator, TranslatorConfig};
use crate::{Attention, Error, GatedModel, Gates, ModelDropout, TokenBatch, to_vec};
use cache::Cache;
use hypotheses::{Candidate, Hypotheses};

/// When the search of a sentence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopping {
    /// As soon as `beam` hypotheses are finished (fairseq's default, `early_stopping=True` in transformers).
    Early,
    /// When `beam` finished hypotheses are at least as good as any that can still come: the best unfinished
    /// log-probability, divided by the greatest length, is no better (`early_stopping="never"`).
    Exact,
    /// When `beam` hypotheses are finished and the best unfinished one would score no better if it ended as it stands,
    /// although a positive length penalty lets it improve (`early_stopping=False`, the default of transformers 5:
    /// <https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/generation/utils.py#L3374>; version 4
    /// takes hypotheses into account that ended in the same step, and so may go on for a while).
    Heuristic,
}

/// Which tokens may be generated, and what they cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRules {
    /// Tokens that are never generated.
    pub banned: Vec<u32>,
    /// Whether the probabilities of all other tokens are scaled to sum to 1 again.
    pub renormalised: bool,
    /// Whether a translation of the greatest length must end with the end symbol, which then costs nothing.
    pub end_forced: bool,
}

impl OutputRules {
    /// Those of a model of ours: no padding, and a forced end if the configuration names one.
    pub fn of(config: &TranslatorConfig) -> Self {
        Self {
            banned: vec![config.pad_token_id],
            renormalised: false,
            end_forced: config.forced_eos_token_id.is_some(),
        }
    }
}

/// How translations are searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct BeamSearch {
    /// Hypotheses kept for a sentence; 1 is greedy search.
    pub beam: usize,
    /// The exponent α of the length in score = log-probability / lengthᵅ; the end symbol counts.
    pub length_penalty: f64,
    /// When the search of a sentence ends.
    pub stopping: Stopping,
    /// The longest translation, as `ratio * source tokens + offset`; the end symbol counts on both sides.
    pub length_limit: (f64, usize),
    /// Which tokens may be generated; `None` is [`OutputRules::of`] the model.
    pub rules: Option<OutputRules>,
}

/// The best hypothesis of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Translation {
    /// Target tokens, without start and end symbol.
    pub tokens: Vec<u32>,
    /// Log-probability divided by the length penalty.
    pub score: f64,
    /// Steps that the search took for this sentence.
    pub steps: usize,
}

/// Bytes that the search of a sentence takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentenceBytes {
    /// Unless its translation is longer than nearly all are.
    pub likely: u64,
    /// With a translation of the greatest length.
    pub most: u64,
}

/// What is done about a batch that takes more steps than is likely.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    /// Steps that are likely.
    pub(crate) likely: usize,
    /// How many sentences go on at once after these, the others after them.
    pub(crate) outgrown: &'a dyn Fn() -> usize,
}

impl Watch<'_> {
    /// Nothing.
    const NONE: Self = Self { likely: usize::MAX, outgrown: &|| usize::MAX };
}

impl BeamSearch {
    /// Translates a batch.
    ///
    /// - `sources`: token ids of each sentence, the end symbol last
    /// - `gates`: one row, or one for each sentence
    ///
    /// # Errors
    /// If a sentence is longer than the model's positions, or the model computes NaN.
    ///
    /// # Panics
    /// If `gates` has another number of rows, or a banned token is not in the vocabulary.
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
            self.search(model, (&memory, &batch.bias), gates, &limits, Watch::NONE)
        })
    }

    /// The sentences as tensors.
    ///
    /// # Errors
    /// If one is longer than the model's positions.
    pub(crate) fn batch(&self, model: &Translator, sources: &[&[u32]]) -> Result<TokenBatch, Error> {
        for source in sources {
            model.check_length("source", source.len())?;
        }
        Ok(TokenBatch::new(sources, model.config().pad_token_id, model.options()))
    }

    /// The greatest number of target tokens for a source of so many, end symbol included on both sides.
    pub fn limit(&self, config: &TranslatorConfig, source: usize) -> usize {
        let (ratio, offset) = self.length_limit;
        let wanted = ((ratio * source as f64) as usize).saturating_add(offset);
        wanted.clamp(1, config.max_position_embeddings as usize)
    }

    /// Target tokens that few translations of a source of so many have more of, end symbol included on both sides.
    pub(crate) fn likely_length(&self, config: &TranslatorConfig, source: usize) -> usize {
        (2 * source + 16).min(self.limit(config, source))
    }

    /// What a sentence of `source` tokens takes on its way through encoder and decoder; `bytes`: of a number.
    pub fn sentence_bytes(&self, config: &TranslatorConfig, bytes: u64, source: usize) -> SentenceBytes {
        let width = config.d_model as u64;
        // Query, key, value, their products, the residual stream and the feed-forward block before and after its
        // nonlinearity.
        let encoder = source as u64 * (8 * width + 2 * config.encoder_ffn_dim as u64);
        let (beam, step) = (self.beam as u64, cache::LANES as u64);
        // Logits and log-probabilities, in single precision at least; of lesser precision also as they are.
        let wide = bytes.max(4);
        let of_token = 2 * wide + if bytes < wide { bytes } else { 0 };
        let logits = beam * config.target_vocabulary() as u64 * of_token;
        let of_length = |length: usize| {
            // Keys and values of source and target, in whole steps, and the one tensor of them that grows; biases.
            let [source, target] = [source, length].map(|tokens| (tokens as u64).next_multiple_of(step));
            let layers = 2 * config.decoder_layers as u64;
            let keys_values = layers * (source + beam * target) + beam * (target + step);
            let biases = 2 * (source + beam * beam * (target + step));
            (encoder + keys_values * width + biases) * bytes + logits
        };
        SentenceBytes {
            likely: of_length(self.likely_length(config, source)),
            most: of_length(self.limit(config, source)),
        }
    }

    /// Translations of sentences by their encoder states.
    ///
    /// - `memory`: `[sentence, source, d_model]`; `source_bias`: `[sentence, 1, 1, source]`
    /// - `limits`: the greatest number of target tokens of each sentence
    ///
    /// # Errors
    /// If the model computes NaN.
    pub(crate) fn search(
        &self,
        model: &Translator,
        (memory, source_bias): (&Tensor, &Tensor),
        gates: &Gates,
        limits: &[usize],
        watch: Watch<'_>,
    ) -> Result<Vec<Translation>, Error> {
        let rules = self.rules.clone().unwrap_or_else(|| OutputRules::of(model.config()));
        let mut step = Step::new(model, self.beam, &rules, memory, source_bias, gates);
        let mut sentences: Vec<Hypotheses> = limits
            .iter()
            .map(|&limit| Hypotheses::new(self, limit, model.config().decoder_start_token_id))
            .collect();
        let mut active: Vec<usize> = (0..sentences.len()).collect();
        let all = |length| length < watch.likely;
        self.advance(&mut step, &mut active, &mut sentences, all)?;
        let at_once = if active.is_empty() { 1 } else { (watch.outgrown)().clamp(1, active.len()) };
        let rest = active.len();
        for first in (0..rest).step_by(at_once) {
            let mut part = active[first..rest.min(first + at_once)].to_vec();
            if part.len() == rest {
                self.advance(&mut step, &mut part, &mut sentences, |_| true)?;
            } else {
                let mut step = step.part(first as i64, part.len() as i64);
                self.advance(&mut step, &mut part, &mut sentences, |_| true)?;
            }
        }
        Ok(sentences.into_iter().map(Hypotheses::best).collect())
    }

    /// Takes step after step with the sentences that are `active`, as long as there are any and their lengths allow it.
    fn advance(
        &self,
        step: &mut Step<'_>,
        active: &mut Vec<usize>,
        sentences: &mut [Hypotheses],
        goes_on: impl Fn(usize) -> bool,
    ) -> Result<(), Error> {
        let config = step.model.config();
        let end_forced =
            self.rules.as_ref().map_or_else(|| OutputRules::of(config).end_forced, |rules| rules.end_forced);
        while !active.is_empty() && goes_on(step.position as usize) {
            let running: Vec<&Hypotheses> = active.iter().map(|&index| &sentences[index]).collect();
            let candidates = step.candidates(&running)?;
            let length = step.position as usize;
            for (&index, candidates) in active.iter().zip(candidates) {
                sentences[index].advance(self, &candidates, length, config.eos_token_id, end_forced);
            }
            let origins: Vec<&[usize]> = active.iter().map(|&index| sentences[index].origins()).collect();
            step.reorder(&origins);
            let kept = without(active.len(), |row| sentences[active[row]].is_finished());
            if kept.len() < active.len() {
                step.keep(&kept);
                *active = kept.iter().map(|&row| active[row]).collect();
            }
        }
        Ok(())
    }
}

/// The rows that stay when some leave, in their new order: the last ones take the places of those that leave, so that all
/// others need not move.
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

/// All tensors that one step of decoding needs; the first axis of each is the sentences still in the batch.
struct Step<'a> {
    model: &'a Translator,
    beam: i64,
    cache: Cache,
    gates: Gates,
    banned: Tensor, // [banned]
    renormalised: bool,
    position: i64, // steps so far
}

/// Tokens whose maximum is taken at once before the search for the best ones.
const BLOCK: i64 = 64;

impl<'a> Step<'a> {
    fn new(
        model: &'a Translator,
        beam: usize,
        rules: &OutputRules,
        memory: &Tensor,
        source_bias: &Tensor,
        gates: &Gates,
    ) -> Self {
        let banned: Vec<i64> = rules.banned.iter().map(|&token| i64::from(token)).collect();
        Self {
            model,
            beam: beam as i64,
            cache: Cache::new(model, beam as i64, memory, source_bias),
            gates: gates.share(),
            banned: Tensor::from_slice(&banned).to_device(model.options().1),
            renormalised: rules.renormalised,
            position: 0,
        }
    }

    /// Some of the sentences, at the same step, which go on alone.
    fn part(&self, first: i64, count: i64) -> Step<'a> {
        let rows = Tensor::arange_start(first, first + count, (Kind::Int64, self.device()));
        Step {
            model: self.model,
            beam: self.beam,
            cache: self.cache.part(first, count),
            gates: self.gates.select(&rows),
            banned: self.banned.shallow_clone(),
            renormalised: self.renormalised,
            position: self.position,
        }
    }

    /// The `2 * beam` best continuations of each sentence, best first: enough for `beam` that do not end.
    fn candidates(&mut self, running: &[&Hypotheses]) -> Result<Vec<Vec<Candidate>>, Error> {
        let tokens: Vec<i64> = running.iter().flat_map(|sentence| sentence.last_tokens()).collect();
        let scores: Vec<f32> = running.iter().flat_map(|sentence| sentence.log_probabilities()).collect();
        let (kind, device) = self.model.options();
        // Sums of log-probabilities need more precision than a bf16 model computes with.
        let kind = if kind == Kind::Double { kind } else { Kind::Float };
        let tokens = Tensor::from_slice(&tokens).view([-1, self.beam]).to_device(device); // [sentence, beam]
        let scores = Tensor::from_slice(&scores).view([-1, self.beam, 1]).to_kind(kind).to_device(device);

        let hidden = self.hidden(&tokens); // [sentence, beam, d_model]
        let (weight, bias) = self.model.output_layer();
        let logits = hidden.linear(weight, Some(bias));
        let log_probabilities = self.log_probabilities(logits.to_kind(kind)); // [sentence, beam, vocab]
        self.best(&log_probabilities, &scores)
    }

    /// Log-probabilities of the tokens that may be generated, `-inf` for all others; of the shape of `logits`, whose last
    /// axis is the vocabulary.
    fn log_probabilities(&self, mut logits: Tensor) -> Tensor {
        let ban = |all: &mut Tensor| all.index_fill_(-1, &self.banned, f64::NEG_INFINITY);
        if self.renormalised {
            return ban(&mut logits).log_softmax(-1, logits.kind());
        }
        ban(&mut logits.log_softmax(-1, logits.kind()))
    }

    /// Decoder states of the newest tokens. `tokens`: `[sentence, beam]`; returns `[sentence, beam, d_model]`.
    fn hidden(&mut self, tokens: &Tensor) -> Tensor {
        // One token for each hypothesis, all at the same position: the beam takes the place of the queries.
        let mut x =
            self.model.embed_target(&tokens.view([-1, 1]), self.position).view([-1, self.beam, self.width()]);
        self.cache.extend();
        let target_bias = &self.cache.target_bias();
        for (index, layer) in self.model.decoder_layers().iter().enumerate() {
            let target = self.cache.append(index, &layer.self_attention.keys_values(&x));
            let memory = DecoderMemory {
                target: &target,
                target_bias,
                source: self.cache.source(index),
                source_bias: self.cache.source_bias(),
            };
            let gates = [self.gates.of(Attention::DecDec, index), self.gates.of(Attention::EncDec, index)];
            x = layer.forward(&x, &memory, gates, &ModelDropout::OFF);
        }
        self.position += 1;
        x
    }

    /// The best of `log_probabilities + scores` in each sentence: first the blocks with the greatest maxima, then the
    /// tokens in them. Exact, since a token among the best `n` lies in a block among the best `n`.
    ///
    /// `log_probabilities`: `[sentence, beam, vocab]`, `scores`: `[sentence, beam, 1]`.
    fn best(&self, log_probabilities: &Tensor, scores: &Tensor) -> Result<Vec<Vec<Candidate>>, Error> {
        let [sentences, beam, vocabulary] = log_probabilities.size()[..] else { return Ok(Vec::new()) };
        let maxima = block_maxima(log_probabilities) + scores; // [sentence, beam, block]
        let (blocks, wanted) = (maxima.size()[2], 2 * beam);
        let (_, best_blocks) = maxima.view([sentences, -1]).topk(wanted.min(beam * blocks), 1, true, true); // [sentence, chosen]
        let beams = best_blocks.divide_scalar_mode(blocks, "floor"); // [sentence, chosen]
        let within = Tensor::arange(BLOCK, (Kind::Int64, self.device()));
        let tokens = best_blocks.remainder(blocks).unsqueeze(-1) * BLOCK + within; // [sentence, chosen, token]
        // the last block may not be full
        let places = tokens.clamp_max(vocabulary - 1) + beams.unsqueeze(-1) * vocabulary;
        let places = places.view([sentences, -1]); // [sentence, candidate], into beam * vocab
        let found = log_probabilities.view([sentences, -1]).gather(1, &places, false).view_as(&tokens);
        let found = found.masked_fill(&tokens.ge(vocabulary), f64::NEG_INFINITY);
        let scored = found + scores.view([sentences, -1]).gather(1, &beams, false).unsqueeze(-1);
        let (scores, best) = scored.view([sentences, -1]).topk(wanted, 1, true, true); // [sentence, wanted]
        self.unpack(&scores, &places.gather(1, &best, false), wanted as usize, vocabulary as usize)
    }

    /// Splits scores and places in `[beam * vocab]` into candidates.
    fn unpack(
        &self,
        scores: &Tensor,
        places: &Tensor,
        wanted: usize,
        vocabulary: usize,
    ) -> Result<Vec<Vec<Candidate>>, Error> {
        let scores = to_vec::<f32>(scores);
        // which counts as the greatest of all scores, so that it is among the best wherever it is
        if scores.iter().any(|score| score.is_nan()) {
            return Err(Error::NotANumber);
        }
        let places = to_vec::<i64>(places);
        // Where fewer words are possible than wanted, the rest are impossible, and perhaps beyond the vocabulary.
        let impossible = self.model.config().pad_token_id;
        let candidate = |(&score, &place): (&f32, &i64)| {
            let token =
                if score == f32::NEG_INFINITY { impossible } else { (place as usize % vocabulary) as u32 };
            Candidate { log_probability: score, beam: place as usize / vocabulary, token }
        };
        let sentences = scores.chunks(wanted).zip(places.chunks(wanted));
        Ok(sentences.map(|(scores, places)| scores.iter().zip(places).map(candidate).collect()).collect())
    }

    /// Hypothesis `i` of a sentence continues `origins[i]` of the step before.
    fn reorder(&mut self, origins: &[&[usize]]) {
        self.cache.reorder(origins);
    }

    /// Sentence `rows[i]` is the `i`-th from now on; those that are not named leave.
    fn keep(&mut self, rows: &[usize]) {
        self.cache.keep(rows);
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        self.gates = self.gates.select(&Tensor::from_slice(&rows).to_device(self.device()));
    }

    fn width(&self) -> i64 {
        self.model.config().d_model
    }

    fn device(&self) -> Device {
        self.model.options().1
    }
}

/// The greatest number of each block of the last axis, of which the last may be shorter: `[.., vocab]` to `[.., block]`.
fn block_maxima(numbers: &Tensor) -> Tensor {
    let vocabulary = numbers.size().last().copied().unwrap_or(0);
    let rest = vocabulary % BLOCK;
    let mut maxima = Vec::new();
    if vocabulary >= BLOCK {
        maxima.push(numbers.narrow(-1, 0, vocabulary - rest).unfold(-1, BLOCK, BLOCK).amax([-1], false));
    }
    if rest > 0 {
        maxima.push(numbers.narrow(-1, vocabulary - rest, rest).amax([-1], true));
    }
    Tensor::cat(&maxima, -1)
}

#[cfg(test)]
mod tests {
    use super::{block_maxima, without};
    use crate::to_vec;
    use tch::{Kind, Tensor};

    /// 130 numbers are two whole blocks and one of two; 64 are one block, and 5 less than one.
    #[test]
    fn the_last_block_may_be_shorter() {
        let rising = |count: i64| Tensor::arange(count, (Kind::Float, tch::Device::Cpu)).view([1, 1, -1]);
        let maxima = |count| to_vec::<f32>(&block_maxima(&rising(count)));
        assert_eq!(maxima(130), [63.0, 127.0, 129.0]);
        assert_eq!((maxima(64), maxima(5)), (vec![63.0], vec![4.0]));
    }

    #[test]
    fn only_rows_from_the_end_move_when_others_leave() {
        let left = |leaving: &[usize]| without(5, |row| leaving.contains(&row));
        assert_eq!(left(&[]), [0, 1, 2, 3, 4]);
        assert_eq!(left(&[1]), [0, 4, 2, 3]);
        assert_eq!(left(&[0, 4]), [3, 1, 2]);
        assert_eq!(left(&[3, 4]), [0, 1, 2]);
        assert!(left(&[0, 1, 2, 3, 4]).is_empty());
    }
}
