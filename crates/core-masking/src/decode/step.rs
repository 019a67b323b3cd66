//! One decoding step: from the newest token of each hypothesis to the best continuations.
use tch::{Device, Kind, Tensor};

use super::hypotheses::{Candidate, Hypotheses};
use super::memory::{Memory, memory};
use super::output::{BLOCK, Logits, OutputLayer};
use super::{BeamSearch, OutputRules};
use crate::translator::Translator;
use crate::{Error, GatedModel, Gates, ModelDropout, to_vec};

/// State of decoding; the first axis of each tensor is the sentences still in the batch.
pub(super) struct Step<'a> {
    pub(super) model: &'a Translator,
    beam: i64,
    memory: Box<dyn Memory>,
    gates: Gates,
    output: OutputLayer,
    rules: &'a OutputRules,
    pub(super) position: i64, // steps so far
}

impl<'a> Step<'a> {
    pub(super) fn new(
        model: &'a Translator,
        search: &BeamSearch,
        rules: &'a OutputRules,
        states: &Tensor,
        source_bias: &Tensor,
        gates: &Gates,
    ) -> Self {
        let (weight, bias) = model.layers.output_layer();
        Self {
            model,
            beam: search.beam as i64,
            memory: memory(model, search.beam, states, source_bias, gates),
            gates: gates.share(),
            // the best token of a single hypothesis has the largest logit, so no normalisation is needed
            output: OutputLayer::new(weight, bias, rules, !search.is_greedy()),
            rules,
            position: 0,
        }
    }

    /// Returns the `2 * beam` best continuations of each sentence, best first, or all possible ones: enough for `beam` that do not end.
    pub(super) fn candidates(&mut self, running: &[&Hypotheses]) -> Result<Vec<Vec<Candidate>>, Error> {
        let tokens: Vec<i64> = running.iter().flat_map(|sentence| sentence.last_tokens()).collect();
        let scores: Vec<f32> = running.iter().flat_map(|sentence| sentence.ranks()).collect();
        let tokens = Tensor::from_slice(&tokens).view([running.len() as i64, -1]).to_device(self.device()); // [sentence, hypothesis]
        let begin = self.rules.begin.filter(|_| self.position == 0);
        let hidden = self.hidden(&tokens).flatten(0, 1); // [row, d_model]
        if let Some(token) = begin {
            return Ok(vec![vec![Candidate { rank: 0.0, beam: 0, token }]; running.len()]);
        }
        let (hypotheses, end) = (self.memory.hypotheses(), self.model.config().eos_token_id);
        let sentences = (0..).step_by(hypotheses as usize).zip(running);
        let forbidden = sentences.flat_map(|(first, sentence)| {
            let all = sentence.forbidden(self.rules, end).into_iter();
            all.map(move |(place, token)| (first + place as i64, i64::from(token)))
        });
        let logits = self.output.logits(&hidden, &forbidden.collect::<Vec<_>>());
        let (kind, device) = (logits.tiles.kind(), logits.tiles.device());
        self.best(&logits, &Tensor::from_slice(&scores).to_kind(kind).to_device(device))
    }

    /// Computes decoder states of the newest tokens, `[sentence, hypothesis]`; returns `[sentence, hypothesis, d_model]`.
    fn hidden(&mut self, tokens: &Tensor) -> Tensor {
        // One token per hypothesis, all at one position: hypotheses take the place of queries.
        let embedded = self.model.layers.embed_target(&tokens.view([-1, 1]), self.position);
        let x = embedded.view([-1, self.memory.hypotheses(), self.width()]);
        self.memory.extend();
        let here = self.gates.at(self.position);
        let gates = here.as_ref().unwrap_or(&self.gates);
        let x = self.model.decode_with(&mut *self.memory, x, gates, &ModelDropout::OFF);
        self.position += 1;
        x
    }

    /// Returns the best continuations of each sentence by log-probability of the whole hypothesis, or by logit if there is no normaliser.
    /// First the blocks with the largest maxima are selected, then the tokens in them: exact, since one of the best `n` tokens is in one of
    /// the best `n` blocks.
    ///
    /// `scores`: of the hypotheses so far, `[row]`
    fn best(&self, logits: &Logits, scores: &Tensor) -> Result<Vec<Vec<Candidate>>, Error> {
        let Logits { tiles, normaliser } = logits;
        let (rows, width) = (tiles.size()[1], tiles.size()[2]);
        let maxima = tiles.unflatten(2, [-1, BLOCK]).amax([-1], false); // [tile, row, block]
        let maxima = maxima.transpose(0, 1).flatten(1, 2); // [row, block]
        let score = |logits: Tensor, of_row: &dyn Fn(&Tensor) -> Tensor| match normaliser {
            Some(normaliser) => logits - of_row(normaliser) + of_row(scores),
            None => logits,
        };
        let maxima = score(maxima, &|all| all.unsqueeze(1));
        let (blocks, hypotheses) = (maxima.size()[1], self.memory.hypotheses());
        let all = hypotheses * blocks;
        let wanted = (2 * self.beam).min(all * BLOCK);
        let (_, chosen) = maxima.view([-1, all]).topk(wanted.min(all), 1, true, true); // [sentence, chosen]
        let block = chosen.remainder(blocks);
        let options = (Kind::Int64, self.device());
        let first = Tensor::arange_start_step(0, rows, hypotheses, options).unsqueeze(1); // [sentence, 1]
        let row = first + chosen.divide_scalar_mode(blocks, "floor");
        let tile = block.divide_scalar_mode(width / BLOCK, "floor");
        let start = (tile * rows + &row) * width + block.remainder(width / BLOCK) * BLOCK; // in all tiles
        let within = Tensor::arange(BLOCK, options);
        let found = tiles.take(&(start.unsqueeze(-1) + &within)); // [sentence, chosen, token]
        let scored = score(found, &|all| all.take(&row).unsqueeze(-1));
        let (scores, best) = scored.flatten(1, 2).topk(wanted, 1, true, true); // [sentence, wanted]
        let tokens = (block.unsqueeze(-1) * BLOCK + within).flatten(1, 2).gather(1, &best, false);
        let rows = row.gather(1, &best.divide_scalar_mode(BLOCK, "floor"), false);
        self.unpack(&scores, &tokens, &rows)
    }

    /// Returns the possible candidates of each sentence; all arguments are `[sentence, wanted]`.
    fn unpack(&self, scores: &Tensor, tokens: &Tensor, rows: &Tensor) -> Result<Vec<Vec<Candidate>>, Error> {
        let wanted = scores.size()[1] as usize;
        let scores = to_vec::<f32>(scores);
        // `topk` ranks NaN first, then infinity, so either is among the best.
        if scores.iter().any(|score| score.is_nan() || *score == f32::INFINITY) {
            return Err(Error::NotANumber);
        }
        let places = to_vec::<i64>(rows).into_iter().zip(to_vec::<i64>(tokens));
        let hypotheses = self.memory.hypotheses();
        let candidate = |(score, (row, token)): (f32, (i64, i64))| Candidate {
            rank: score,
            beam: (row % hypotheses) as usize,
            token: token as u32,
        };
        let candidates: Vec<Candidate> = scores.into_iter().zip(places).map(candidate).collect();
        let is_possible = |candidate: &&Candidate| candidate.rank > f32::NEG_INFINITY;
        let of_sentence = |all: &[Candidate]| all.iter().filter(is_possible).copied().collect();
        Ok(candidates.chunks(wanted).map(of_sentence).collect())
    }

    /// Makes hypothesis `i` of a sentence continue `origins[i]` of the previous step.
    pub(super) fn reorder(&mut self, origins: &[&[usize]]) {
        self.memory.reorder(origins);
    }

    /// Keeps the sentences `rows` only, in this order.
    pub(super) fn keep(&mut self, rows: &[usize]) {
        self.memory.keep(rows);
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
