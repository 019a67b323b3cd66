//! Language modelling: nats a token of documents, and choices between continuations.
mod data;
mod learner;
pub(crate) mod memory;
mod model;
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
    GatedModel, Gates, HeadLayout, LanguageModel, Measure, ModelConfig, ModelDropout, to_vec,
};
use corpus::language_tokenizer::LanguageTokenizer;
use records::Identity;
use serde_json::json;
use stats::classification::{ClassificationMetric, Outcome};
use stats::nats::NatsStatistics;
use stats::{Metric, Segments};
use tch::{Kind, no_grad};
use training::{Machine, Precision};

use crate::checkpoint::{Places, check_vocabulary};
use crate::error::Error;
use crate::evaluation::{Load, Plan};
use crate::model::Model;
use crate::subject::Scored;
use crate::task::{Described, Outline, Task};
use data::Texts;
use memory::Sizes;
use model::Symbols;
use rows::{Rows, SegmentsOf, Windowing};
use scorer::{Predictions, RowNats};
use spec::{ChoiceRule, LanguageData, LanguageSpec, ScoreSpec};

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
    type Model = LanguageModel;
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
        spec.model.map(|model| model.config(1, Symbols::default()).layout())
    }

    fn read(spec: &LanguageSpec, data: &Path, split: &str) -> Result<Texts, Error> {
        data::read_split(&spec.data, data, split)
    }

    fn files(spec: &LanguageSpec, data: &Path, split: &str) -> Vec<PathBuf> {
        data::files(&spec.data, data, split)
    }

    /// Refuses choices in half precision, which would change those that are close.
    fn check(_: &Described<Self>, machine: &Machine, _: &str, texts: &Texts) -> Result<(), Error> {
        match texts {
            Texts::Questions(_) if machine.precision != Precision::F32 => Err(Error::HalfPrecision),
            _ => Ok(()),
        }
    }

    fn count(texts: &Texts) -> usize {
        texts.len()
    }

    fn select(texts: &Texts, places: &[usize]) -> Texts {
        texts.select(places)
    }

    fn sha256(texts: &Texts) -> String {
        texts.sha256()
    }

    fn train(
        described: &Described<Self>,
        machine: &Machine,
        results: &Path,
        again: bool,
    ) -> Result<PathBuf, Error> {
        crate::train::train(described, machine, results, again)
    }

    fn load(
        described: &Described<Self>,
        machine: &Machine,
        places: Places<'_>,
        _is_given: bool,
    ) -> Result<(Self, LanguageModel), Error> {
        let spec = &described.spec;
        let model = LanguageModel::load(places.model, machine.options())?;
        model.check_gates()?;
        let tokenizer = LanguageTokenizer::load(places.tokenizer)?;
        let config = model.config();
        check_vocabulary(places.tokenizer, tokenizer.vocabulary_size(), config.vocab_size)?;
        let groups = config.key_value_heads();
        let task = Self {
            tokenizer: Arc::new(tokenizer),
            data: Arc::new(spec.data.clone()),
            windowing: Windowing::of(&spec.windows, config.max_position_embeddings)?,
            score: spec.score,
            key_value_heads: (groups < config.num_attention_heads).then_some(groups),
        };
        Ok((task, model))
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
                let groups = data::groups(questions);
                if !groups.is_empty() {
                    arguments.insert("groups".to_owned(), groups.into());
                }
            }
        }
    }

    fn prepare(&self, model: &LanguageModel, texts: Texts, split: &str) -> Result<Rows, Error> {
        self.encode(model, &texts, split)
    }

    fn lengths(rows: &Rows) -> Vec<usize> {
        rows.lengths().collect()
    }

    fn load_of<'a>(&'a self, model: &'a LanguageModel, rows: &Rows) -> Load<'a> {
        memory::load(sizes(model), rows.lengths().collect())
    }

    fn load_ahead(described: &Described<Self>, _: &Machine) -> Result<Option<(Load<'static>, usize)>, Error> {
        let Some(model) = described.spec.model else { return Ok(None) };
        let vocabulary = described.spec.tokenizer.and_then(|tokenizer| tokenizer.vocabulary);
        let config = &model.config(vocabulary.unwrap_or(1), Symbols::default());
        let longest = config.max_position_embeddings as usize;
        Ok(Some((memory::load(Sizes { config, bytes: 4, model_bytes: 0 }, Vec::new()), longest)))
    }

    fn scorer<'a>(
        &'a self,
        _: &LanguageModel,
        _: &Plan,
        rows: &'a Rows,
        _: &Scored,
    ) -> Result<Predictions<'a>, Error> {
        Ok(Predictions { rows })
    }

    fn segments(&self, rows: &Rows, found: Vec<RowNats>) -> Result<Segments, Error> {
        match &rows.segments {
            SegmentsOf::Documents { words } => {
                let mut sums = vec![(0.0, 0_u32); words.len()];
                for RowNats { row, nats } in found {
                    let (sum, tokens) = &mut sums[rows.segment(row)];
                    *sum += nats;
                    *tokens += rows.predictions(row) as u32;
                }
                let document = |((nats, tokens), &words)| Ok(NatsStatistics::new(nats, tokens, words)?);
                Ok(Segments::Nats(sums.into_iter().zip(words).map(document).collect::<Result<_, Error>>()?))
            }
            SegmentsOf::Questions { answers } => {
                let mut best = vec![Best { predicted: 0, score: f64::NEG_INFINITY, seen: 0 }; answers.len()];
                for RowNats { row, nats } in found {
                    best[rows.segment(row)].meet(-nats / rows.length(row));
                }
                let outcome = |(best, &gold): (Best, &usize)| Outcome { gold, predicted: best.predicted };
                let outcomes = best.into_iter().zip(answers).map(outcome).collect();
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
                let settings = (self.rule(split), model.config().max_position_embeddings);
                Rows::of_choices(&self.tokenizer, questions, settings, split)
            }
        }
    }

    fn measuring_load<'a>(model: &'a LanguageModel, rows: &Rows, measures: &BTreeSet<Measure>) -> Load<'a> {
        let lengths = rows.units().iter().map(|unit| rows.padded(unit)).collect();
        memory::measuring_load(sizes(model), lengths, measures)
    }

    /// Those of a question stay together.
    fn rows_of(rows: &Rows, batches: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let units = rows.units();
        let of_batch = |batch: Vec<usize>| batch.into_iter().flat_map(|unit| units[unit].clone()).collect();
        batches.into_iter().map(of_batch).collect()
    }

    fn measure(
        model: &LanguageModel,
        rows: &Rows,
        batch: &[usize],
        gates: &Gates,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        Ok(model.measure(&rows.examples(model, batch)?, gates, measures))
    }

    /// Nats a prediction of each row.
    fn outputs(
        model: &LanguageModel,
        rows: &Rows,
        batch: &[usize],
        gates: &Gates,
    ) -> Result<Vec<f64>, Error> {
        let texts = rows.batch(model, batch)?;
        let nats = no_grad(|| model.prediction_nats(&texts, gates, &ModelDropout::OFF));
        let nats = to_vec::<f64>(&texts.by_row(&nats.to_kind(Kind::Double)));
        Ok(nats.into_iter().zip(batch).map(|(nats, &row)| nats / rows.predictions(row) as f64).collect())
    }

    fn batch(model: &LanguageModel, rows: &Rows, batch: &[usize]) -> Result<PredictionBatch, Error> {
        rows.batch(model, batch)
    }

    fn pass(&self, model: &LanguageModel, batch: &PredictionBatch, open: &Gates) -> Result<u64, Error> {
        let nats = no_grad(|| model.prediction_nats(batch, open, &ModelDropout::OFF));
        // waits for a GPU
        if nats.isfinite().all().int64_value(&[]) == 0 {
            return Err(Error::NotFinite);
        }
        Ok(model.multiply_adds(batch))
    }

    fn continue_by(
        &self,
        model: &LanguageModel,
        rows: &Rows,
        batch: &[usize],
        tokens: usize,
        open: &Gates,
    ) -> Result<u64, Error> {
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

    /// The text that follows by greedy search.
    fn say(&self, model: &LanguageModel, text: &str, tokens: usize, gates: &Gates) -> Result<String, Error> {
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

/// What memory depends on.
fn sizes(model: &LanguageModel) -> Sizes<'_> {
    let bytes = GatedModel::options(model).0.elt_size_in_bytes() as u64;
    Sizes { config: model.config(), bytes, model_bytes: Model::bytes(model) }
}

impl LanguageModelling {
    /// How choices of a split are made.
    fn rule(&self, split: &str) -> ChoiceRule {
        let own = self.data.splits.get(split).and_then(|split| split.rule);
        own.unwrap_or(self.score.choices)
    }
}

/// The best choice of a question so far; of equal ones the first.
#[derive(Debug, Clone, Copy)]
struct Best {
    predicted: usize,
    score: f64,
    seen: usize,
}

impl Best {
    fn meet(&mut self, score: f64) {
        if score > self.score {
            (self.predicted, self.score) = (self.seen, score);
        }
        self.seen += 1;
    }
}
