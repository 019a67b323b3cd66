//! Classification: accuracy, F1 or Matthews correlation.
mod data;
mod encoder;
pub(crate) mod memory;
mod objective;
mod scorer;
mod spec;
mod texts;
mod train;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use core_masking::importance::Measured;
use core_masking::{
    Attention, Classifier, ClassifierConfig, GatedModel, Gates, HeadLayout, Measure, ModelConfig,
    ModelDropout, Relevance, Rule, SegmentBatch, to_vec,
};
use corpus::checksum;
use corpus::classifier_tokenizer::{ClassifierTokenizer, Encoded};
use corpus::labelled::Example;
use corpus::placed::PlacedToken;
use corpus::trees::Tree;
use records::Identity;
use stats::classification::{ClassificationMetric, Outcome};
use stats::{Metric, Segments};
use tch::{Kind, no_grad};
use training::{Machine, Precision};

use crate::checkpoint::Places;
use crate::error::Error;
use crate::evaluation::{Load, Plan};
use crate::precision::{Bytes, Models};
use crate::reading::Reading;
use crate::subject::Scored;
use crate::task::{Described, Outline, Task};
use scorer::Decisions;
use spec::{ClassificationSpec, ScoredBy};
use texts::Texts;

/// How a classifier reads, and what its classes mean.
#[derive(Debug, Clone)]
pub(crate) struct Classification {
    tokenizer: ClassifierTokenizer,
    labels: Vec<String>,
    metric: ClassificationMetric,
    /// The class that F1 looks for.
    positive: Option<String>,
}

impl Task for Classification {
    type Spec = ClassificationSpec;
    type Model = Models<Classifier>;
    type Examples = Vec<Example>;
    type Prepared = Texts;
    type Encoded = Texts;
    type Batch = SegmentBatch;
    type Scorer<'a> = Decisions<'a>;

    const FILES: &'static [&'static str] = &[
        "config.json",
        "merges.txt",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
        "vocab.txt",
    ];

    fn validate(spec: &ClassificationSpec) -> Result<(), String> {
        spec.validate()
    }

    fn outline(spec: &ClassificationSpec) -> Outline<'_> {
        spec.outline()
    }

    fn layout(spec: &ClassificationSpec) -> Option<HeadLayout> {
        spec.model.as_ref().map(|model| model.config(spec.tokenizer, &spec.data.labels, 1).layout())
    }

    fn read(spec: &ClassificationSpec, data: &Path, split: &str) -> Result<Vec<Example>, Error> {
        data::read_split(&spec.data, data, split)
    }

    fn files(spec: &ClassificationSpec, data: &Path, split: &str) -> Vec<PathBuf> {
        data::files(&spec.data, data, split)
    }

    /// Refuses labels that the model does not know.
    fn check(
        described: &Described<Self>,
        machine: &Machine,
        split: &str,
        examples: &Vec<Example>,
    ) -> Result<(), Error> {
        let spec = &described.spec;
        let labels = match (&spec.checkpoint, spec.training) {
            (Some(checkpoint), None) => {
                let folder = &checkpoint.find(machine)?.folder;
                labels(spec, &ClassifierConfig::read(&folder.join("config.json"))?, folder)?
            }
            _ => spec.data.labels.clone(),
        };
        metric(spec, &labels)?;
        data::classes(examples, &labels, split).map(drop)
    }

    fn count(examples: &Vec<Example>) -> usize {
        examples.len()
    }

    fn select(examples: &Vec<Example>, places: &[usize]) -> Vec<Example> {
        places.iter().map(|&place| examples[place].clone()).collect()
    }

    fn sentences(examples: &Vec<Example>) -> Vec<String> {
        examples.iter().map(|example| example.text.clone()).collect()
    }

    /// Sentences of the premises' language, as many as the split has pairs: pairs have no trees.
    fn trees(spec: &ClassificationSpec, split: &str) -> Option<Vec<Tree>> {
        Some(spec.data.grammar?.trees(split))
    }

    fn sha256(examples: &Vec<Example>) -> String {
        checksum::of_examples(examples)
    }

    fn load(
        described: &Described<Self>,
        machine: &Machine,
        places: Places<'_>,
        _is_given: bool,
    ) -> Result<(Self, Models<Classifier>), Error> {
        let (spec, folder) = (&described.spec, places.tokenizer);
        let model = Classifier::load(places.model, (Kind::Float, machine.device))?;
        model.check_gates()?;
        let rows = model.config().vocab_size;
        let tokenizer = ClassifierTokenizer::load(folder, spec.tokenizer.max_length)?.for_rows(rows);
        check_tokenizer(folder, &tokenizer, &model)?;
        let labels = labels(spec, model.config(), folder)?;
        let (metric, positive) = (metric(spec, &labels)?, spec.score.positive.clone());
        Ok((Self { tokenizer, labels, metric, positive }, Models::new(model, machine.precision)?))
    }

    fn metric(&self, _: &str) -> Metric {
        Metric::Classes(self.metric)
    }

    fn describe(&self, identity: &mut Identity, _: &Vec<Example>) {
        identity.metric = match &self.positive {
            Some(positive) => format!("{}, positive: {positive}", self.metric.name()),
            None => self.metric.name().to_string(),
        };
        identity.arguments.extend([
            ("labels".to_owned(), self.labels.clone().into()),
            ("max_length".to_owned(), self.tokenizer.max_length().into()),
        ]);
    }

    fn prepare(
        &self,
        model: &Models<Classifier>,
        examples: Vec<Example>,
        split: &str,
    ) -> Result<Texts, Error> {
        self.encode(model, &examples, split)
    }

    fn lengths(texts: &Texts) -> Vec<usize> {
        texts.lengths().collect()
    }

    fn load_of<'a>(&'a self, models: &'a Models<Classifier>, texts: &Texts) -> Load<'a> {
        memory::load(models.exact.config(), models.sizes(), texts.lengths().collect())
    }

    fn load_ahead(
        described: &Described<Self>,
        machine: &Machine,
    ) -> Result<Option<(Load<'static>, usize)>, Error> {
        let spec = &described.spec;
        let config = match (&spec.checkpoint, &spec.model) {
            (Some(checkpoint), _) => {
                ClassifierConfig::read(&checkpoint.find(machine)?.folder.join("config.json"))?
            }
            (None, Some(model)) => model.config(spec.tokenizer, &spec.data.labels, 1),
            (None, None) => return Ok(None),
        };
        let load = memory::load(&config, Bytes::single(0), Vec::new());
        Ok(Some((load, spec.tokenizer.max_length)))
    }

    fn scorer<'a>(
        &'a self,
        models: &Models<Classifier>,
        plan: &Plan,
        texts: &'a Texts,
        scored: &Scored,
    ) -> Result<Decisions<'a>, Error> {
        Decisions::new(models, plan, texts, scored)
    }

    fn segments(&self, _: &Texts, found: Vec<Outcome>) -> Result<Segments, Error> {
        Ok(Segments::Classes(found, self.metric))
    }

    fn encode(&self, _: &Models<Classifier>, examples: &Vec<Example>, split: &str) -> Result<Texts, Error> {
        let classes = data::classes(examples, &self.labels, split)?;
        Texts::encode(&self.tokenizer, examples, classes)
    }

    fn measuring_load<'a>(
        models: &'a Models<Classifier>,
        texts: &Texts,
        measures: &BTreeSet<Measure>,
    ) -> Load<'a> {
        let lengths = texts.lengths().collect();
        memory::measuring_load(models.exact.config(), models.sizes(), lengths, measures)
    }

    fn measure(
        models: &Models<Classifier>,
        texts: &Texts,
        rows: &[usize],
        gates: &Gates,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        let model = models.quickest();
        Ok(model.measure(&texts.labelled_batch(model, rows)?, gates, measures))
    }

    fn exact(models: &Models<Classifier>) -> Result<Models<Classifier>, Error> {
        Ok(Models::new(models.exact.to_kind(Kind::Double)?, Precision::F32)?)
    }

    fn relevance_load<'a>(models: &'a Models<Classifier>, texts: &Texts) -> Result<Load<'a>, Error> {
        Ok(memory::relevance_load(models.exact.config(), models.sizes(), texts.lengths().collect()))
    }

    fn relevance(
        models: &Models<Classifier>,
        texts: &Texts,
        row: usize,
        rule: Rule,
    ) -> Result<Relevance, Error> {
        Ok(models.exact.relevance(&texts.labelled_batch(&models.exact, &[row])?, rule))
    }

    /// The logits of each text.
    fn outputs(
        models: &Models<Classifier>,
        texts: &Texts,
        rows: &[usize],
        gates: &Gates,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let batch = texts.batch(models.quickest(), rows)?;
        let logits = no_grad(|| models.quickest().forward(&batch, gates, &ModelDropout::OFF));
        let labels = logits.size()[1] as usize;
        Ok(to_vec(&logits).chunks(labels).map(<[f64]>::to_vec).collect())
    }

    fn batch(models: &Models<Classifier>, texts: &Texts, rows: &[usize]) -> Result<SegmentBatch, Error> {
        texts.batch(models.quickest(), rows)
    }

    fn pass(&self, models: &Models<Classifier>, batch: &SegmentBatch, open: &Gates) -> Result<u64, Error> {
        let model = models.quickest();
        let logits = no_grad(|| model.forward(batch, open, &ModelDropout::OFF));
        // waits for a GPU
        if logits.isfinite().all().int64_value(&[]) == 0 {
            return Err(Error::NotFinite);
        }
        let size = batch.tokens.ids.size();
        Ok(size[0] as u64 * model.multiply_adds(size[1] as u64))
    }

    fn reading(&self, models: &Models<Classifier>) -> Reading {
        let longest = models.exact.config().longest_text() as usize;
        Reading {
            attention: Attention::SelfAttention,
            sees_future: true,
            ends: self.tokenizer.end().into_iter().collect(),
            longest: longest.min(self.tokenizer.max_length()),
        }
    }

    fn place(&self, text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        Ok(Some(self.tokenizer.encode_placed(text)?))
    }

    fn reading_load<'a>(models: &'a Models<Classifier>, lengths: Vec<usize>) -> Load<'a> {
        let measures = BTreeSet::from([Measure::Confidence]);
        memory::measuring_load(models.exact.config(), models.sizes(), lengths, &measures)
    }

    fn read_texts(models: &Models<Classifier>, texts: &[&[u32]], gates: &Gates) -> Result<(), Error> {
        let model = models.quickest();
        let segments: Vec<Vec<u32>> = texts.iter().map(|text| vec![0; text.len()]).collect();
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().zip(&segments).map(|(&text, segments)| (text, segments.as_slice())).collect();
        drop(model.forward(&model.batch(&rows)?, gates, &ModelDropout::OFF));
        Ok(())
    }

    /// Its class, and how probable the model finds it.
    fn say(
        &self,
        models: &Models<Classifier>,
        text: &str,
        _tokens: usize,
        gates: &Gates,
    ) -> Result<String, Error> {
        let model = models.quickest();
        let Encoded { ids, segments } = self.tokenizer.encode(text, None)?;
        let batch = model.batch(&[(&ids, &segments)])?;
        let logits = no_grad(|| model.forward(&batch, gates, &ModelDropout::OFF));
        let class = texts::classes(&logits)?[0];
        let shares = to_vec::<f64>(&logits.softmax(-1, Kind::Double));
        Ok(format!("{} ({:.1} %)", self.labels[class], 100.0 * shares[class]))
    }
}

/// The metric over these classes.
///
/// # Errors
/// If it is for two classes and there are more, or none is the one that it looks for.
fn metric(spec: &ClassificationSpec, labels: &[String]) -> Result<ClassificationMetric, Error> {
    let name = spec.score.metric;
    if name != ScoredBy::Accuracy && labels.len() != 2 {
        return Err(Error::TwoClasses { metric: name.name(), labels: labels.to_vec() });
    }
    match (name, &spec.score.positive) {
        (ScoredBy::Accuracy, _) => Ok(ClassificationMetric::Accuracy),
        (ScoredBy::Matthews, _) => Ok(ClassificationMetric::Matthews),
        (ScoredBy::F1, positive) => {
            let place = positive.as_ref().and_then(|name| labels.iter().position(|label| label == name));
            let positive = place.ok_or_else(|| Error::NoSuchLabel {
                label: positive.clone().unwrap_or_default(),
                known: labels.to_vec(),
            })?;
            Ok(ClassificationMetric::F1 { positive })
        }
    }
}

/// The classes of the model in the order of its outputs, by their names in the data.
///
/// # Errors
/// If the model names others than the subject, or neither names any.
fn labels(spec: &ClassificationSpec, config: &ClassifierConfig, folder: &Path) -> Result<Vec<String>, Error> {
    let (named, known) = (&spec.data.labels, config.labels());
    let same = || named.len() == known.len() && named.iter().all(|label| known.contains(label));
    match (named.is_empty(), config.has_label_names()) {
        (true, true) => Ok(known),
        (true, false) => Err(Error::UnnamedLabels { folder: folder.to_owned(), classes: known.len() }),
        (false, true) if same() => Ok(known),
        (false, false) if named.len() == known.len() => Ok(named.clone()),
        (false, _) => Err(Error::OtherLabels { folder: folder.to_owned(), named: named.clone(), known }),
    }
}

/// Refuses a tokeniser of another model.
fn check_tokenizer(folder: &Path, tokenizer: &ClassifierTokenizer, model: &Classifier) -> Result<(), Error> {
    if tokenizer.pad() != model.config().pad_token_id {
        let (found, expected) = (tokenizer.pad(), model.config().pad_token_id);
        return Err(Error::Padding { folder: folder.to_owned(), found, expected });
    }
    let (length, positions) = (tokenizer.max_length(), model.config().longest_text());
    if length as i64 > positions {
        return Err(Error::MaxLength { folder: folder.to_owned(), length, positions });
    }
    Ok(())
}
