//! A classifier as a subject: sweeps over head sets, accuracy, F1 or Matthews correlation.
mod data;
mod learner;
mod pass;
mod precision;
mod sweep;
mod texts;
mod train;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use core_masking::bert::{BertClassifier, BertConfig, BertDropout};
use core_masking::importance::measure_classifier;
use core_masking::{HeadLayout, HeadScores, HeadSet, Measure, Removal, to_vec};
use corpus::batches::longest_first;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::labelled::Example;
use records::Identity;
use stats::classification::ClassificationMetric;
use stats::{Metric, Segments};
use tch::{Kind, no_grad};

use crate::checkpoint::{Origin, Places};
use crate::spec::{ClassificationSpec, MetricName};
use crate::subject::{Evaluation, Pass, Scored, Subject};
use crate::{Error, Naming, measuring};
use pass::ClassificationPass;
use precision::Models;
use sweep::Sweep;
use texts::{BATCH_TOKENS, Texts};
pub(crate) use train::train;
use training::{Machine, Progress};

/// Files of a classifier's folder that its scores depend on, as far as they are there.
const FILES: [&str; 4] = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"];

/// A classifier with its data.
#[derive(Debug)]
pub(crate) struct ClassificationSubject {
    name: String,
    spec: ClassificationSpec,
    machine: Machine,
    models: Models,
    tokenizer: ClassifierTokenizer,
    labels: Vec<String>,
    metric: ClassificationMetric,
    origin: Origin,
    /// What sweeps in bf16 were calibrated to, by what is scored.
    bounds: RefCell<Vec<(Scored, f64)>>,
}

/// The heads of the model, as far as they are known before it is there.
///
/// # Errors
/// If the model is a checkpoint that cannot be found.
pub(crate) fn layout(name: &str, spec: &ClassificationSpec, machine: &Machine) -> Result<HeadLayout, Error> {
    let trained = machine.model_folder(name).join("config.json");
    match (spec.model, &spec.checkpoint) {
        (Some(model), _) => Ok(model.config(spec.tokenizer, &spec.data.labels, 1).layout()),
        // what was fine-tuned needs its base no longer
        (None, _) if spec.training.is_some() && trained.exists() => Ok(BertConfig::read(&trained)?.layout()),
        (None, Some(checkpoint)) => {
            let folder = &checkpoint.find(machine)?.folder;
            Ok(BertConfig::read_pretrained(&folder.join("config.json"))?.layout())
        }
        (None, None) => Ok(HeadLayout::new([])), // refused by validation
    }
}

/// Whether there is a split of that name.
pub(crate) fn has_split(spec: &ClassificationSpec, split: &str) -> bool {
    data::check_split(&spec.data, split).is_ok()
}

/// Refuses a split that could not be scored: before hours of training, not after.
///
/// # Errors
/// If there is no such split, it cannot be read, or it has a label that the model does not know.
pub(crate) fn check_split(spec: &ClassificationSpec, machine: &Machine, split: &str) -> Result<(), Error> {
    let examples = data::read_split(&spec.data, &machine.data, split)?;
    let labels = match (&spec.checkpoint, spec.training) {
        (Some(checkpoint), None) => {
            let folder = &checkpoint.find(machine)?.folder;
            labels(spec, &BertConfig::read(&folder.join("config.json"))?, folder)?
        }
        _ => spec.data.labels.clone(),
    };
    metric(spec, &labels)?;
    data::classes(&examples, &labels, split).map(|_| ())
}

/// Makes the subject ready, training its model on first use.
///
/// # Errors
/// As for [`train`], or if the model's folder is at fault.
pub(crate) fn open(
    naming: Naming<'_>,
    spec: &ClassificationSpec,
    machine: &Machine,
    results: &Path,
) -> Result<ClassificationSubject, Error> {
    match (&spec.training, &spec.checkpoint) {
        (None, Some(checkpoint)) => {
            let found = checkpoint.find(machine)?;
            let places = Places::one(&found.folder);
            ClassificationSubject::load(naming.name, spec, machine, places, Some(found.name.clone()))
        }
        _ => {
            let folder = train(naming, spec, machine, results, false)?;
            ClassificationSubject::load(naming.name, spec, machine, Places::one(&folder), None)
        }
    }
}

/// The metric over these classes.
///
/// # Errors
/// If it is for two classes and there are more, or none is the one that it looks for.
fn metric(spec: &ClassificationSpec, labels: &[String]) -> Result<ClassificationMetric, Error> {
    let name = spec.score.metric;
    if name != MetricName::Accuracy && labels.len() != 2 {
        return Err(Error::TwoClasses { metric: name.name(), labels: labels.to_vec() });
    }
    match (name, &spec.score.positive) {
        (MetricName::Accuracy, _) => Ok(ClassificationMetric::Accuracy),
        (MetricName::Matthews, _) => Ok(ClassificationMetric::Matthews),
        (MetricName::F1, positive) => {
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
fn labels(spec: &ClassificationSpec, config: &BertConfig, folder: &Path) -> Result<Vec<String>, Error> {
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

/// Refuses a tokeniser with tokens that the model has no embedding for.
fn check_vocabulary(
    folder: &Path,
    tokenizer: &ClassifierTokenizer,
    model: &BertClassifier,
) -> Result<(), Error> {
    let (tokens, embeddings) = (tokenizer.vocabulary_size(), model.config().vocab_size);
    if tokens as i64 > embeddings {
        return Err(Error::Vocabulary { folder: folder.to_owned(), tokens, embeddings });
    }
    if tokenizer.pad() != model.config().pad_token_id {
        let (found, expected) = (tokenizer.pad(), model.config().pad_token_id);
        return Err(Error::Padding { folder: folder.to_owned(), found, expected });
    }
    let (length, positions) = (tokenizer.max_length(), model.config().max_position_embeddings);
    if length as i64 > positions {
        return Err(Error::MaxLength { folder: folder.to_owned(), length, positions });
    }
    Ok(())
}

impl ClassificationSubject {
    pub(crate) fn load(
        name: &str,
        spec: &ClassificationSpec,
        machine: &Machine,
        places: Places<'_>,
        checkpoint: Option<String>,
    ) -> Result<Self, Error> {
        let model = BertClassifier::load(places.model, (Kind::Float, machine.device))?;
        let folder = places.tokenizer;
        let tokenizer = ClassifierTokenizer::load(folder, spec.tokenizer.max_length)?;
        check_vocabulary(folder, &tokenizer, &model)?;
        let labels = labels(spec, model.config(), folder)?;
        Ok(Self {
            name: name.to_owned(),
            metric: metric(spec, &labels)?,
            spec: spec.clone(),
            machine: machine.clone(),
            models: Models::new(model, machine)?,
            tokenizer,
            labels,
            origin: Origin::of(places, &FILES, checkpoint)?,
            bounds: RefCell::default(),
        })
    }

    fn read(&self, scored: &Scored) -> Result<Vec<Example>, Error> {
        let examples = data::read_split(&self.spec.data, &self.machine.data, &scored.split)?;
        Ok(scored.places(examples.len()).into_iter().map(|place| examples[place].clone()).collect())
    }

    fn texts(&self, scored: &Scored) -> Result<Texts, Error> {
        let examples = self.read(scored)?;
        let classes = data::classes(&examples, &self.labels, &scored.split)?;
        Ok(Texts::encode(&self.tokenizer, &examples, classes))
    }

    /// A model for each thread.
    fn models(&self) -> Result<Vec<BertClassifier>, Error> {
        tch::set_num_threads(1);
        Ok((0..self.machine.workers()).map(|_| self.models.quickest().share()).collect::<Result<_, _>>()?)
    }
}

impl Subject for ClassificationSubject {
    fn layout(&self) -> HeadLayout {
        self.models.exact.layout()
    }

    fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        let mut identity = scored.identity(experiment, &self.name, &self.machine);
        identity.metric = match &self.spec.score.positive {
            Some(positive) => format!("{}, positive: {positive}", self.metric.name()),
            None => self.metric.name().to_owned(),
        };
        self.origin.describe(&mut identity);
        identity.data.insert(scored.split.clone(), data::sha256(&self.read(scored)?));
        identity.arguments.extend([
            ("labels".to_owned(), self.labels.clone().into()),
            ("max_length".to_owned(), self.spec.tokenizer.max_length.into()),
        ]);
        Ok(identity)
    }

    fn metric(&self) -> Metric {
        Metric::Classes(self.metric)
    }

    fn evaluate(
        &self,
        scored: &Scored,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for id in sets.iter().flat_map(HeadSet::iter) {
            self.layout().check(id)?;
        }
        let texts = self.texts(scored)?;
        let known = self.bounds.borrow().iter().find(|(known, _)| known == scored).map(|&(_, bound)| bound);
        let sweep = Sweep::new(&self.models, &self.machine, &texts, known)?;
        if let (None, Some(bound)) = (known, sweep.bound()) {
            self.bounds.borrow_mut().push((scored.clone(), bound));
        }
        let mut progress = Progress::new(sets.len() * sweep.batches(), self.machine.quiet);
        sweep.run(sets, scored.rescale, &mut progress, |progress, index, outcomes| {
            let evaluation = Evaluation::new(Segments::Classes(outcomes, self.metric))?;
            let (set, metric, score) = (sets[index].brief(), self.metric.name(), evaluation.score);
            progress.message(format!("masked {set}: {metric} {score:.2}"));
            each(index, evaluation)
        })?;
        if let Some(report) = sweep.report() {
            progress.line(&report);
        }
        Ok(())
    }

    fn measure(
        &self,
        on: &Scored,
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<BTreeMap<Measure, HeadScores>, Error> {
        let texts = self.texts(on)?;
        let batches = longest_first(texts.lengths(), BATCH_TOKENS);
        let layout = self.layout();
        let job = |model: &BertClassifier, item: usize| {
            let (batch, labels) = texts.labelled_batch(model, &batches[item])?;
            let gates = on.gates(&layout, masked, model.options())?;
            Ok(measure_classifier(model, &batch, &labels, &gates, measures))
        };
        measuring::over_batches(self.models()?, batches.len(), self.machine.quiet, job)
    }

    fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        let texts = self.texts(scored)?;
        let model = self.models.quickest();
        let gates = scored.gates(&self.layout(), masked, model.options())?;
        let mut outputs = Vec::new();
        for rows in longest_first(texts.lengths(), BATCH_TOKENS) {
            let batch = texts.batch(model, &rows)?;
            let logits = no_grad(|| model.forward(&batch, &gates, &BertDropout::OFF));
            outputs.extend(to_vec::<f64>(&logits));
        }
        Ok(outputs)
    }

    fn without_heads(&self, heads: &HeadSet) -> Result<Box<dyn Subject>, Error> {
        Ok(Box::new(Self {
            name: self.name.clone(),
            spec: self.spec.clone(),
            machine: self.machine.clone(),
            models: Models::new(self.models.exact.without_heads(heads, Removal::Cut)?, &self.machine)?,
            tokenizer: self.tokenizer.clone(),
            labels: self.labels.clone(),
            metric: self.metric,
            origin: self.origin.without_heads(heads),
            bounds: RefCell::default(),
        }))
    }

    fn folder(&self) -> &Path {
        &self.origin.folder
    }

    fn save_without_heads(&self, heads: &HeadSet, removal: Removal, folder: &Path) -> Result<(), Error> {
        self.origin.check_removal(removal, &self.layout())?;
        Ok(self.models.exact.without_heads(heads, removal)?.save(folder)?)
    }

    fn parameters(&self) -> u64 {
        self.models.exact.weights().parameters()
    }

    fn pass<'a>(&'a self, scored: &Scored, batch_size: usize) -> Result<Box<dyn Pass + 'a>, Error> {
        Ok(Box::new(ClassificationPass::new(self, &self.texts(scored)?, batch_size)?))
    }
}
