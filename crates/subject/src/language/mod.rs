//! Language modelling: nats per token of documents, and multiple-choice questions.
#[cfg(test)]
mod harness_tests;
pub(crate) mod memory;
mod model;
mod objective;
mod rows;
mod scorer;
mod spec;
mod train;

use std::sync::Arc;

use core_masking::language_model::{PredictionBatch, Stop};
use core_masking::{
    Attention, AttentionMaps, GatedModel, Gates, LanguageModel, ModelDropout, TokenBatch, to_vec,
};
use corpus::choices::Choice;
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::placed::PlacedToken;
use corpus::splits::language::{ChoiceRule, Texts, groups};
use records::CLUSTERS;
use records::Identity;
use serde_json::json;
use stats::classification::{ClassificationMetric, Outcome};
use stats::means::MeanMetric;
use stats::nats::NatsStatistics;
use stats::{Metric, Segments};
use tch::{Kind, no_grad};
use training::Machine;

use crate::checkpoint::{Places, check_vocabulary};
use crate::error::Error;
use crate::evaluation::{Need, Purpose};
use crate::models::Models;
use crate::subject_file::SubjectFile;
use crate::task::{PredictedBy, Sizes, Task, Timed};
use crate::text_input::{Input, TextInput, Vocabulary, check_length};
use rows::{Choosing, Rows, SegmentsOf, Windowing};
use scorer::UnitResult;
use spec::{LanguageData, LanguageSpec, ScoreSpec};

/// Tokeniser, windows and scoring rule of a language model.
#[derive(Debug, Clone)]
pub(crate) struct LanguageModelling {
    tokenizer: Arc<LanguageTokenizer>,
    data: Arc<LanguageData>,
    windowing: Windowing,
    score: ScoreSpec,
    /// Key-value heads per layer, if query heads share them.
    key_value_heads: Option<usize>,
}

impl Task for LanguageModelling {
    type Spec = LanguageSpec;
    type Model = LanguageModel;
    type Prepared = Rows;
    type Encoded = Rows;
    type Scorer<'a> = &'a Rows;

    const FILES: &'static [&'static str] = &[
        "config.json",
        "merges.txt",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
    ];

    fn load(
        file: &SubjectFile<Self>,
        machine: &Machine,
        places: Places<'_>,
        _is_given: bool,
    ) -> Result<(Self, Models<LanguageModel>), Error> {
        let spec = &file.spec;
        let tokenizer = LanguageTokenizer::load(places.tokenizer)?; // before the weights, which take longer
        let model = LanguageModel::load(places.model, (Kind::Float, machine.device))?;
        model.check_gates()?;
        let config = model.config();
        let tokenizer = tokenizer.for_rows(config.vocab_size);
        for symbol in [tokenizer.begin(), tokenizer.end()].into_iter().flatten() {
            check_vocabulary(places.tokenizer, symbol as usize + 1, config.vocab_size)?;
        }
        let groups = config.key_value_heads();
        let begin = tokenizer.begin();
        let task = Self {
            tokenizer: Arc::new(tokenizer),
            data: Arc::new(spec.data.clone()),
            windowing: Windowing::of(&spec.windows, config.max_position_embeddings, begin)?,
            score: spec.score,
            key_value_heads: (groups < config.num_attention_heads).then_some(groups),
        };
        Ok((task, Models::new(model, machine.precision)?))
    }

    fn metric(&self, split: &str) -> Metric {
        match self.rule(split) {
            _ if !self.data.is_of_questions(split) => Metric::Nats,
            ChoiceRule::LogOdds => Metric::Means(MeanMetric::LogOdds),
            ChoiceRule::Acc | ChoiceRule::AccNorm => Metric::Classes(ClassificationMetric::Accuracy),
        }
    }

    fn describe(&self, identity: &mut Identity, texts: &Texts) {
        let arguments = &mut identity.arguments;
        arguments.insert("task".to_owned(), "language-modelling".into());
        if let Some(groups) = self.key_value_heads {
            arguments.insert("key_value_heads".to_owned(), groups.into());
        }
        match texts {
            Texts::Documents(documents) => {
                identity.metric = "nats".to_owned();
                let Windowing { length, stride, end, begin, segments } = self.windowing;
                let mut protocol =
                    json!({ "length": length, "stride": stride, "end": end, "segments": segments });
                if begin.is_some() {
                    protocol["begin"] = true.into();
                }
                arguments.insert("windows".to_owned(), protocol);
                let sources =
                    documents.chunk_by(|one, next| one.source.is_some() && one.source == next.source);
                let blocks: Vec<usize> = sources.map(<[_]>::len).collect();
                if documents.iter().any(|document| document.source.is_some()) {
                    arguments.insert(CLUSTERS.to_owned(), json!(blocks));
                }
            }
            Texts::Questions(questions) => {
                identity.metric = self.metric(&identity.split).name().to_string();
                arguments.insert("choices".to_owned(), self.rule(&identity.split).name().into());
                // absent if no BOS precedes a context, as in minimal pairs
                if self.context_bos().is_some() && questions.iter().any(Choice::has_context) {
                    arguments.insert("context_bos".to_owned(), true.into());
                }
                let groups = groups(questions);
                if !groups.is_empty() {
                    arguments.insert("groups".to_owned(), json!(groups));
                }
            }
        }
    }

    fn prepare(&self, model: &LanguageModel, texts: Texts, split: &str) -> Result<Rows, Error> {
        self.encode(model, &texts, split)
    }

    fn sizes(rows: &Rows) -> Sizes {
        let lengths: Vec<usize> = rows.lengths().collect();
        let units = || (0..rows.units()).map(|unit| &lengths[rows.unit(unit)]);
        Sizes {
            count: match &rows.segments {
                SegmentsOf::Documents { words } => words.len(),
                SegmentsOf::Questions { answers, .. } => answers.len(),
            },
            texts: rows.len(),
            tokens: units().map(|rows| rows.iter().sum()).collect(),
            in_memory: rows.padded().collect(),
            of_text: units().map(|rows| rows.iter().copied().max().unwrap_or(0)).collect(),
        }
    }

    fn need<'a>(&'a self, models: &'a Models<LanguageModel>, purpose: Purpose<'a>) -> Need<'a> {
        memory::need(models.exact.config(), models.sizes(), purpose)
    }

    fn scorer<'a>(&'a self, rows: &'a Rows) -> &'a Rows {
        rows
    }

    fn segments(&self, rows: &Rows, found: Vec<UnitResult>) -> Result<Segments, Error> {
        match &rows.segments {
            SegmentsOf::Documents { words } => {
                let mut sums = vec![(0.0, 0_u32); words.len()];
                for (row, found) in found.into_iter().enumerate() {
                    let (sum, tokens) = &mut sums[rows.segment(row)];
                    *sum += found.value();
                    *tokens += rows.predictions(row) as u32;
                }
                let document = |((nats, tokens), &words)| Ok(NatsStatistics::new(nats, tokens, words)?);
                Ok(Segments::Nats(sums.into_iter().zip(words).map(document).collect::<Result<_, Error>>()?))
            }
            SegmentsOf::Questions { rule: ChoiceRule::LogOdds, .. } => {
                Ok(Segments::log_odds(found.into_iter().map(|found| found.value() as f32)))
            }
            SegmentsOf::Questions { answers, .. } => {
                let outcome = |(found, &gold): (UnitResult, _)| Outcome { gold, predicted: found.choice() };
                let outcomes = found.into_iter().zip(answers).map(outcome).collect();
                Ok(Segments::Classes(outcomes, ClassificationMetric::Accuracy))
            }
        }
    }

    fn encode(&self, model: &LanguageModel, texts: &Texts, split: &str) -> Result<Rows, Error> {
        match texts {
            Texts::Documents(documents) => {
                Rows::of_documents(&self.tokenizer, documents, self.windowing, split)
            }
            Texts::Questions(questions) => {
                let positions = model.config().max_position_embeddings;
                let choosing =
                    Choosing { rule: self.rule(split), context_bos: self.context_bos(), positions };
                Rows::of_choices(&self.tokenizer, questions, choosing, split)
            }
        }
    }

    fn encoded_lengths(rows: &Rows) -> Vec<usize> {
        rows.padded().collect()
    }

    /// Uses the first choice of a question: replacements come from its contexts.
    fn encoded_text_lengths(rows: &Rows) -> Vec<usize> {
        let lengths: Vec<usize> = rows.lengths().collect();
        (0..rows.units()).map(|unit| lengths[rows.unit(unit).start]).collect()
    }

    fn has_contrasts(rows: &Rows) -> bool {
        rows.has_contrasts()
    }

    fn predicts(&self, rows: &Rows) -> Option<PredictedBy<Self>> {
        if rows.has_targets() {
            return None; // losses are nats, but a target is right or wrong
        }
        Some(match &rows.segments {
            SegmentsOf::Documents { .. } => {
                PredictedBy::Losses((0..rows.len()).map(|row| rows.segment(row)).collect())
            }
            SegmentsOf::Questions { rule: ChoiceRule::LogOdds, .. } => PredictedBy::LogOdds,
            SegmentsOf::Questions { .. } => PredictedBy::Decisions(scorer::scores),
        })
    }

    fn examples(model: &LanguageModel, rows: &Rows, batch: &[usize]) -> Result<PredictionBatch, Error> {
        rows.examples(model, batch)
    }

    /// Returns nats per prediction of each row.
    fn outputs(
        model: &LanguageModel,
        rows: &Rows,
        units: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let texts = rows.batch(model, &rows.of_units(units))?;
        let nats = no_grad(|| model.prediction_nats(&texts, gates, &ModelDropout::OFF));
        let mut nats = to_vec::<f64>(&texts.by_row(&nats.to_kind(Kind::Double))).into_iter();
        let of_unit = |&unit: &usize| {
            let of_rows = rows.unit(unit).zip(&mut nats);
            of_rows.map(|(row, nats)| nats / rows.predictions(row) as f64).collect()
        };
        Ok(units.iter().map(of_unit).collect())
    }

    fn pass<'a>(
        &'a self,
        model: &'a LanguageModel,
        rows: &Rows,
        units: &[usize],
    ) -> Result<Timed<'a>, Error> {
        let batch = rows.batch(model, &rows.of_units(units))?;
        Ok(Box::new(move |open| {
            let nats = no_grad(|| model.prediction_nats(&batch, open, &ModelDropout::OFF));
            // waits for a GPU
            if nats.isfinite().all().int64_value(&[]) == 0 {
                return Err(Error::not_finite());
            }
            Ok(model.multiply_adds(&batch))
        }))
    }

    fn continue_by(
        &self,
        model: &LanguageModel,
        rows: &Rows,
        batch: &[usize],
        tokens: usize,
        open: &Gates,
    ) -> Result<u64, Error> {
        let batch = rows.of_units(batch);
        // Without the last token, which is only predicted, and with room for the new tokens.
        let shortest = batch.iter().map(|&row| rows.tokens(row).len() - 1).min().unwrap_or(0);
        let positions = model.config().max_position_embeddings as usize;
        let shortest = shortest.min(positions.saturating_sub(tokens));
        if shortest == 0 {
            let fault = format!("a text cannot be continued by {tokens} tokens");
            return Err(Error::Invalid(format!("{fault}: the model has {positions} positions")));
        }
        let prompts: Vec<&[u32]> = batch.iter().map(|&row| &rows.tokens(row)[..shortest]).collect();
        model.continue_greedily(&prompts, tokens, Stop::Never, open)?;
        Ok(batch.len() as u64 * model.continuation_multiply_adds(shortest as u64, tokens as u64))
    }

    fn text_input(&self, model: &LanguageModel) -> TextInput {
        let config = model.config();
        TextInput {
            attention: Attention::SelfAttention,
            sees_future: false,
            ends: config.ends().to_vec(),
            longest: config.max_position_embeddings as usize,
        }
    }

    fn vocabulary(&self) -> Option<Vocabulary> {
        Some(Vocabulary { begin: self.tokenizer.begin(), of_text: self.tokenizer.of_text() })
    }

    /// Puts the BOS token, if the tokeniser has one, before the text.
    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        let begin = self.tokenizer.begin().map(PlacedToken::symbol);
        Ok(Some(begin.into_iter().chain(self.tokenizer.encode_placed(text)?).collect()))
    }

    /// Padding is on the right, so causal attention hides it.
    fn read_texts(model: &LanguageModel, texts: &[&[u32]], gates: &Gates) -> Result<(), Error> {
        let ids = TokenBatch::new(texts, 0, GatedModel::options(model)).ids;
        drop(model.hidden(&ids, gates, &ModelDropout::OFF));
        Ok(())
    }

    /// The answer is the generated continuation.
    fn read(
        &self,
        model: &LanguageModel,
        Input { text, second }: &Input<'_>,
        [plain, recorded]: [&Gates; 2],
    ) -> Result<(String, Vec<AttentionMaps>), Error> {
        const FOLLOWING: usize = 12;
        if second.is_some() {
            return Err(Error::one_text());
        }
        let ids: Vec<u32> = self.tokenizer.begin().into_iter().chain(self.tokenizer.encode(text)?).collect();
        let longest = model.config().max_position_embeddings as usize;
        check_length("the text", ids.len(), longest)?;
        Self::read_texts(model, &[&ids], recorded)?;
        let answer = self.say(model, text, FOLLOWING.min(longest - ids.len()), plain)?;
        let tokens: Vec<String> = ids.iter().map(|&id| self.tokenizer.token(id)).collect();
        let (attention, keys) = (Attention::SelfAttention, tokens.clone());
        let maps = AttentionMaps { attention, queries: tokens, keys, is_causal: true, layers: Vec::new() };
        Ok((answer, vec![maps]))
    }

    /// Returns the greedy continuation.
    fn say(&self, model: &LanguageModel, text: &str, tokens: usize, gates: &Gates) -> Result<String, Error> {
        let mut prompt: Vec<u32> = self.tokenizer.begin().into_iter().collect();
        prompt.extend(self.tokenizer.encode(text)?);
        if prompt.is_empty() {
            let fault = "an empty text cannot be continued: this model has no BOS token";
            return Err(Error::Invalid(fault.to_owned()));
        }
        let made = model.continue_greedily(&[&prompt], tokens, Stop::AtEnd, gates)?;
        // The model may have more embeddings than its tokeniser has tokens.
        let known = made.concat().into_iter().filter(|&id| self.tokenizer.decode(&[id]).is_ok());
        Ok(self.tokenizer.decode(&known.collect::<Vec<_>>())?)
    }
}

impl LanguageModelling {
    /// Returns the scoring rule of a split.
    fn rule(&self, split: &str) -> ChoiceRule {
        match self.data.splits.get(split) {
            Some(split) if split.has_targets() => ChoiceRule::Acc,
            own => own.and_then(|split| split.rule).unwrap_or(self.score.choices),
        }
    }

    /// Returns the BOS token that precedes contexts; `None` if contexts have none.
    fn context_bos(&self) -> Option<u32> {
        self.tokenizer.added_bos().filter(|_| self.score.context_bos)
    }
}
