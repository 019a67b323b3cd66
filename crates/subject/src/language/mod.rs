//! Language modelling: nats per token of documents, and choices between continuations.
mod data;
pub(crate) mod memory;
mod model;
mod objective;
mod rows;
mod scorer;
mod spec;
mod train;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_masking::importance::Measured;
use core_masking::language_model::{PredictionBatch, Stop};
use core_masking::{
    Attention, GatedModel, Gates, HeadLayout, LanguageModel, Measure, ModelConfig, ModelDropout, TokenBatch,
    to_vec,
};
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::placed::PlacedToken;
use corpus::splits::language::{ChoiceRule, Texts, groups};
use corpus::trees::Tree;
use records::Identity;
use serde_json::json;
use stats::classification::{ClassificationMetric, Outcome};
use stats::nats::NatsStatistics;
use stats::{Metric, Segments};
use tch::{Kind, no_grad};
use training::Machine;

use crate::checkpoint::{Places, check_vocabulary};
use crate::error::Error;
use crate::evaluation::{Load, Plan};
use crate::precision::{Bytes, Models};
use crate::reading::Reading;
use crate::subject::Scored;
use crate::task::{Described, Outline, Task};
use model::Symbols;
use rows::{Rows, SegmentsOf, Windowing};
use scorer::{Found, Predictions};
use spec::{LanguageData, LanguageSpec, ScoreSpec};

/// How a language model reads, and how it is asked.
#[derive(Debug, Clone)]
pub(crate) struct LanguageModelling {
    tokenizer: Arc<LanguageTokenizer>,
    data: Arc<LanguageData>,
    windowing: Windowing,
    score: ScoreSpec,
    /// Keys and values in a layer, if heads share them.
    key_value_heads: Option<usize>,
}

impl Task for LanguageModelling {
    type Spec = LanguageSpec;
    type Model = Models<LanguageModel>;
    type Examples = Texts;
    type Prepared = Rows;
    type Encoded = Rows;
    type Batch = PredictionBatch;
    type Scorer<'a> = Predictions<'a>;

    const FILES: &'static [&'static str] = &[
        "config.json",
        "merges.txt",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
    ];

    fn validate(spec: &LanguageSpec) -> Result<(), String> {
        spec.validate()
    }

    fn outline(spec: &LanguageSpec) -> Outline<'_> {
        spec.outline()
    }

    fn layout(spec: &LanguageSpec) -> Option<HeadLayout> {
        // the size of the vocabulary does not matter
        spec.model.as_ref().map(|model| model.config(1, Symbols::default()).layout())
    }

    fn read(spec: &LanguageSpec, data: &Path, split: &str) -> Result<Texts, Error> {
        data::read_split(&spec.data, data, split)
    }

    fn files(spec: &LanguageSpec, data: &Path, split: &str) -> Vec<PathBuf> {
        data::files(&spec.data, data, split)
    }

    fn count(texts: &Texts) -> usize {
        texts.count()
    }

    fn groups(texts: &Texts) -> Vec<usize> {
        texts.group_sizes()
    }

    fn select(texts: &Texts, places: &[usize]) -> Texts {
        texts.select(places)
    }

    fn sentences(texts: &Texts) -> Vec<String> {
        texts.sentences()
    }

    fn trees(spec: &LanguageSpec, split: &str) -> Option<Vec<Tree>> {
        spec.data.grammar?.trees(split)
    }

    fn sha256(texts: &Texts) -> String {
        texts.sha256()
    }

    fn load(
        described: &Described<Self>,
        machine: &Machine,
        places: Places<'_>,
        _is_given: bool,
    ) -> Result<(Self, Models<LanguageModel>), Error> {
        let spec = &described.spec;
        let tokenizer = LanguageTokenizer::load(places.tokenizer)?; // before the weights, which take longer
        let model = LanguageModel::load(places.model, (Kind::Float, machine.device))?;
        model.check_gates()?;
        let config = model.config();
        let tokenizer = tokenizer.for_rows(config.vocab_size);
        for symbol in [tokenizer.begin(), tokenizer.end()].into_iter().flatten() {
            check_vocabulary(places.tokenizer, symbol as usize + 1, config.vocab_size)?;
        }
        let groups = config.key_value_heads();
        let task = Self {
            tokenizer: Arc::new(tokenizer),
            data: Arc::new(spec.data.clone()),
            windowing: Windowing::of(&spec.windows, config.max_position_embeddings)?,
            score: spec.score,
            key_value_heads: (groups < config.num_attention_heads).then_some(groups),
        };
        Ok((task, Models::new(model, machine.precision)?))
    }

    fn metric(&self, split: &str) -> Metric {
        if self.data.is_of_questions(split) {
            Metric::Classes(ClassificationMetric::Accuracy)
        } else {
            Metric::Nats
        }
    }

    fn describe(&self, identity: &mut Identity, texts: &Texts) {
        let arguments = &mut identity.arguments;
        arguments.insert("task".to_owned(), "language-modelling".into());
        if let Some(groups) = self.key_value_heads {
            arguments.insert("key_value_heads".to_owned(), groups.into());
        }
        match texts {
            Texts::Documents(_) => {
                identity.metric = "nats".to_owned();
                let Windowing { length, stride, end, segments } = self.windowing;
                let protocol =
                    json!({ "length": length, "stride": stride, "end": end, "segments": segments });
                arguments.insert("windows".to_owned(), protocol);
            }
            Texts::Questions(questions) => {
                identity.metric = "accuracy".to_owned();
                arguments.insert("choices".to_owned(), self.rule(&identity.split).name().into());
                let groups = groups(questions);
                if !groups.is_empty() {
                    arguments.insert("groups".to_owned(), json!(groups));
                }
            }
        }
    }

    fn prepare(&self, model: &Models<LanguageModel>, texts: Texts, split: &str) -> Result<Rows, Error> {
        self.encode(model, &texts, split)
    }

    fn lengths(rows: &Rows) -> Vec<usize> {
        let lengths: Vec<usize> = rows.lengths().collect();
        (0..rows.units()).map(|unit| lengths[rows.unit(unit)].iter().sum()).collect()
    }

    fn texts(rows: &Rows) -> usize {
        rows.len()
    }

    fn load_of<'a>(&'a self, models: &'a Models<LanguageModel>, rows: &Rows) -> Load<'a> {
        memory::load(models.exact.config(), sizes(models, rows), rows.padded().collect())
    }

    fn load_ahead(described: &Described<Self>, _: &Machine) -> Result<Option<(Load<'static>, usize)>, Error> {
        let Some(model) = &described.spec.model else { return Ok(None) };
        let vocabulary = described.spec.tokenizer.and_then(|tokenizer| tokenizer.vocabulary);
        let config = &model.config(vocabulary.unwrap_or(1), Symbols::default());
        let longest = config.max_position_embeddings as usize;
        Ok(Some((memory::load(config, Bytes::single(0), Vec::new()), longest)))
    }

    fn scorer<'a>(
        &'a self,
        models: &Models<LanguageModel>,
        plan: &Plan,
        rows: &'a Rows,
        scored: &Scored,
    ) -> Result<Predictions<'a>, Error> {
        Predictions::new(models, plan, rows, scored)
    }

    fn segments(&self, rows: &Rows, found: Vec<Found>) -> Result<Segments, Error> {
        match &rows.segments {
            SegmentsOf::Documents { words } => {
                let mut sums = vec![(0.0, 0_u32); words.len()];
                for (row, found) in found.into_iter().enumerate() {
                    let (sum, tokens) = &mut sums[rows.segment(row)];
                    *sum += found.nats();
                    *tokens += rows.predictions(row) as u32;
                }
                let document = |((nats, tokens), &words)| Ok(NatsStatistics::new(nats, tokens, words)?);
                Ok(Segments::Nats(sums.into_iter().zip(words).map(document).collect::<Result<_, Error>>()?))
            }
            SegmentsOf::Questions { answers, .. } => {
                let outcome = |(found, &gold): (Found, _)| Outcome { gold, predicted: found.choice() };
                let outcomes = found.into_iter().zip(answers).map(outcome).collect();
                Ok(Segments::Classes(outcomes, ClassificationMetric::Accuracy))
            }
        }
    }

    fn encode(&self, model: &Models<LanguageModel>, texts: &Texts, split: &str) -> Result<Rows, Error> {
        match texts {
            Texts::Documents(documents) => {
                Rows::of_documents(&self.tokenizer, documents, self.windowing, split)
            }
            Texts::Questions(questions) => {
                let settings = (self.rule(split), model.exact.config().max_position_embeddings);
                Rows::of_choices(&self.tokenizer, questions, settings, split)
            }
        }
    }

    fn measuring_load<'a>(
        models: &'a Models<LanguageModel>,
        rows: &Rows,
        measures: &BTreeSet<Measure>,
    ) -> Load<'a> {
        let lengths = rows.padded().collect();
        memory::measuring_load(models.exact.config(), models.sizes(), lengths, measures)
    }

    fn measure(
        models: &Models<LanguageModel>,
        rows: &Rows,
        batch: &[usize],
        gates: &Gates,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        let model = models.quickest();
        Ok(model.measure(&rows.examples(model, batch)?, gates, measures))
    }

    /// Nats a prediction of each row.
    fn outputs(
        models: &Models<LanguageModel>,
        rows: &Rows,
        units: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let model = models.quickest();
        let texts = rows.batch(model, &rows.of_units(units))?;
        let nats = no_grad(|| model.prediction_nats(&texts, gates, &ModelDropout::OFF));
        let mut nats = to_vec::<f64>(&texts.by_row(&nats.to_kind(Kind::Double))).into_iter();
        let of_unit = |&unit: &usize| {
            let of_rows = rows.unit(unit).zip(&mut nats);
            of_rows.map(|(row, nats)| nats / rows.predictions(row) as f64).collect()
        };
        Ok(units.iter().map(of_unit).collect())
    }

    fn batch(models: &Models<LanguageModel>, rows: &Rows, batch: &[usize]) -> Result<PredictionBatch, Error> {
        rows.batch(models.quickest(), &rows.of_units(batch))
    }

    fn pass(
        &self,
        models: &Models<LanguageModel>,
        batch: &PredictionBatch,
        open: &Gates,
    ) -> Result<u64, Error> {
        let model = models.quickest();
        let nats = no_grad(|| model.prediction_nats(batch, open, &ModelDropout::OFF));
        // waits for a GPU
        if nats.isfinite().all().int64_value(&[]) == 0 {
            return Err(Error::NotFinite);
        }
        Ok(model.multiply_adds(batch))
    }

    fn continue_by(
        &self,
        models: &Models<LanguageModel>,
        rows: &Rows,
        batch: &[usize],
        tokens: usize,
        open: &Gates,
    ) -> Result<u64, Error> {
        let (model, batch) = (models.quickest(), rows.of_units(batch));
        // Without the last token, which is there to be predicted, and with room for those that are made.
        let shortest = batch.iter().map(|&row| rows.tokens(row).len() - 1).min().unwrap_or(0);
        let positions = model.config().max_position_embeddings as usize;
        let shortest = shortest.min(positions.saturating_sub(tokens));
        if shortest == 0 {
            return Err(Error::NoRoom { tokens, positions });
        }
        let prompts: Vec<&[u32]> = batch.iter().map(|&row| &rows.tokens(row)[..shortest]).collect();
        model.continue_greedily(&prompts, tokens, Stop::Never, open)?;
        Ok(batch.len() as u64 * model.continuation_multiply_adds(shortest as u64, tokens as u64))
    }

    fn reading(&self, models: &Models<LanguageModel>) -> Reading {
        let config = models.exact.config();
        Reading {
            attention: Attention::SelfAttention,
            sees_future: false,
            ends: config.ends().to_vec(),
            longest: config.max_position_embeddings as usize,
        }
    }

    /// Behind the symbol that texts begin with, if there is one.
    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        let begin = self.tokenizer.begin().map(PlacedToken::symbol);
        Ok(Some(begin.into_iter().chain(self.tokenizer.encode_placed(text)?).collect()))
    }

    fn reading_load<'a>(models: &'a Models<LanguageModel>, lengths: Vec<usize>) -> Load<'a> {
        let measures = BTreeSet::from([Measure::Confidence]);
        memory::measuring_load(models.exact.config(), models.sizes(), lengths, &measures)
    }

    /// Padding stands on the right, so no token sees it.
    fn read_texts(models: &Models<LanguageModel>, texts: &[&[u32]], gates: &Gates) -> Result<(), Error> {
        let model = models.quickest();
        let ids = TokenBatch::new(texts, 0, GatedModel::options(model)).ids;
        drop(model.hidden(&ids, gates, &ModelDropout::OFF));
        Ok(())
    }

    /// The text that follows by greedy search.
    fn say(
        &self,
        models: &Models<LanguageModel>,
        text: &str,
        tokens: usize,
        gates: &Gates,
    ) -> Result<String, Error> {
        let model = models.quickest();
        let mut prompt: Vec<u32> = self.tokenizer.begin().into_iter().collect();
        prompt.extend(self.tokenizer.encode(text)?);
        if prompt.is_empty() {
            return Err(Error::NoPrompt);
        }
        let made = model.continue_greedily(&[&prompt], tokens, Stop::AtEnd, gates)?;
        // Models may have more embeddings than their tokeniser has tokens.
        let known = made.concat().into_iter().filter(|&id| self.tokenizer.decode(&[id]).is_ok());
        Ok(self.tokenizer.decode(&known.collect::<Vec<_>>())?)
    }
}

/// What memory depends on: the exact model may look again at questions, but not at documents.
fn sizes(models: &Models<LanguageModel>, rows: &Rows) -> Bytes {
    let bytes = models.sizes();
    match rows.segments {
        SegmentsOf::Documents { .. } => Bytes { exact: bytes.quickest, ..bytes },
        SegmentsOf::Questions { .. } => bytes,
    }
}

impl LanguageModelling {
    /// How choices of a split are made.
    fn rule(&self, split: &str) -> ChoiceRule {
        let own = self.data.splits.get(split).and_then(|split| split.rule);
        own.unwrap_or(self.score.choices)
    }
}
