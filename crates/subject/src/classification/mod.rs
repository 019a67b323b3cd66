//! A classifier as a subject: one forward pass for each head set, accuracy, F1 or Matthews correlation.
mod data;
mod learner;
mod pass;
mod texts;
mod training;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use core_masking::bert::{BertClassifier, BertConfig, BertDropout};
use core_masking::importance::measure_classifier;
use core_masking::{Gates, HeadId, HeadLayout, HeadScores, HeadSet, Measure, Removal};
use corpus::batches::longest_first;
use corpus::classifier_tokenizer::ClassifierTokenizer;
use corpus::labelled::Example;
use records::Identity;
use stats::classification::{ClassificationMetric, Outcome};
use tch::no_grad;

use crate::args::Machine;
use crate::checkpoint::{Origin, Places};
use crate::progress::Progress;
use crate::spec::{ClassificationSpec, MetricName};
use crate::subject::{Evaluation, Pass, Scored, Segments, Subject};
use crate::{Error, Export, Naming, measuring, to_vec, workers};
use pass::ClassificationPass;
use texts::{BATCH_TOKENS, Texts, outcomes};
pub(crate) use training::train;

/// Head sets that first differ in one layer and are evaluated together, sharing the layers below. More would share
/// more, but results are handed on, and rows written, only when all of them are there.
const SETS_TOGETHER: usize = 6;

/// Files of a classifier's folder that its scores depend on, as far as they are there.
const FILES: [&str; 4] = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"];

/// A classifier with its data.
#[derive(Debug)]
pub(crate) struct ClassificationSubject {
    name: String,
    spec: ClassificationSpec,
    machine: Machine,
    model: BertClassifier,
    tokenizer: ClassifierTokenizer,
    labels: Vec<String>,
    metric: ClassificationMetric,
    origin: Origin,
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
        let model = BertClassifier::load(places.model, machine.options())?;
        let folder = places.tokenizer;
        let tokenizer = ClassifierTokenizer::load(folder, spec.tokenizer.max_length)?;
        check_vocabulary(folder, &tokenizer, &model)?;
        let labels = labels(spec, model.config(), folder)?;
        Ok(Self {
            name: name.to_owned(),
            metric: metric(spec, &labels)?,
            spec: spec.clone(),
            machine: machine.clone(),
            model,
            tokenizer,
            labels,
            origin: Origin::of(places, &FILES, checkpoint)?,
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
        Ok((0..self.machine.workers()).map(|_| self.model.share()).collect::<Result<_, _>>()?)
    }
}

/// What the model says of a batch without each of these head sets, all of which leave layers below `layer` intact.
fn classify(
    model: &BertClassifier,
    (layer, sets): (usize, &[HeadSet]),
    scored: &Scored,
    texts: &Texts,
    rows: &[usize],
) -> Result<Vec<Vec<Outcome>>, Error> {
    let batch = texts.batch(model, rows)?;
    let (layout, options) = (model.layout(), model.options());
    let open = Gates::open(&layout, options);
    no_grad(|| {
        let mut x = model.embed(&batch, &BertDropout::OFF); // [batch, position, d_model]
        for below in 0..layer {
            x = model.layer(below, &x, &batch, &open, &BertDropout::OFF);
        }
        let classify = |set: &HeadSet| {
            let gates = scored.gates(&layout, set, options)?;
            let logits = model.forward_from(layer, &x, &batch, &gates, &BertDropout::OFF);
            outcomes(&logits, texts, rows)
        };
        sets.iter().map(classify).collect()
    })
}

impl Subject for ClassificationSubject {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
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
        let batches = longest_first(texts.lengths(), BATCH_TOKENS);
        let mut progress = Progress::new(sets.len() * batches.len(), self.machine.quiet);
        for (layer, range) in groups(sets) {
            let group = &sets[range.clone()];
            let job = |model: &BertClassifier, item: usize| {
                classify(model, (layer, group), scored, &texts, &batches[item])
            };
            let mut segments = vec![vec![Outcome { gold: 0, predicted: 0 }; texts.len()]; group.len()];
            workers::in_order(self.models()?, batches.len(), job, |item, outcomes| {
                for (segments, outcomes) in segments.iter_mut().zip(outcomes) {
                    for (&row, outcome) in batches[item].iter().zip(outcomes) {
                        segments[row] = outcome;
                    }
                }
                progress.advance(group.len());
                Ok(())
            })?;
            for (index, outcomes) in range.zip(segments) {
                let evaluation = Evaluation::new(Segments::Classes(outcomes, self.metric))?;
                let (set, metric, score) = (sets[index].brief(), self.metric.name(), evaluation.score);
                progress.message(format!("masked {set}: {metric} {score:.2}"));
                each(index, evaluation)?;
            }
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
        let gates = scored.gates(&self.layout(), masked, self.model.options())?;
        let mut outputs = Vec::new();
        for rows in longest_first(texts.lengths(), BATCH_TOKENS) {
            let batch = texts.batch(&self.model, &rows)?;
            let logits = no_grad(|| self.model.forward(&batch, &gates, &BertDropout::OFF));
            outputs.extend(to_vec(&logits));
        }
        Ok(outputs)
    }

    fn without_heads(&self, heads: &HeadSet) -> Result<Box<dyn Subject>, Error> {
        Ok(Box::new(Self {
            name: self.name.clone(),
            spec: self.spec.clone(),
            machine: self.machine.clone(),
            model: self.model.without_heads(heads, Removal::Cut)?,
            tokenizer: self.tokenizer.clone(),
            labels: self.labels.clone(),
            metric: self.metric,
            origin: self.origin.without_heads(heads),
        }))
    }

    fn export(&self, heads: &HeadSet, removal: Removal, export: &Export) -> Result<(), Error> {
        self.origin.check_removal(removal, &self.layout())?;
        let model = self.model.without_heads(heads, removal)?;
        export.write(&self.origin.folder, |folder| model.save(folder))
    }

    fn parameters(&self) -> u64 {
        self.model.weights().parameters()
    }

    fn pass<'a>(&'a self, scored: &Scored, batch_size: usize) -> Result<Box<dyn Pass + 'a>, Error> {
        Ok(Box::new(ClassificationPass::new(self, &self.texts(scored)?, batch_size)?))
    }
}

/// Neighbours in `sets` that first differ from the intact model in the same layer, counted from 0, at most
/// [`SETS_TOGETHER`] of them; the intact model itself is alone.
fn groups(sets: &[HeadSet]) -> Vec<(usize, Range<usize>)> {
    let lowest = |set: &HeadSet| set.iter().map(HeadId::layer_index).min();
    let mut groups: Vec<(Option<usize>, Range<usize>)> = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let layer = lowest(set);
        match groups.last_mut() {
            Some((last, range)) if *last == layer && layer.is_some() && range.len() < SETS_TOGETHER => {
                range.end = index + 1;
            }
            _ => groups.push((layer, index..index + 1)),
        }
    }
    groups.into_iter().map(|(layer, range)| (layer.unwrap_or(0), range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_with_the_same_lowest_layer_are_evaluated_together() {
        let set = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<HeadSet>();
        let sets = [
            HeadSet::none(),
            set(&["self:1:1"]),
            set(&["self:1:2"]),
            set(&["self:3:1", "self:2:2"]),
            set(&["self:2:1"]),
            set(&["self:1:1"]),
        ];
        assert_eq!(groups(&sets), [(0, 0..1), (0, 1..3), (1, 3..5), (0, 5..6)]);
    }

    /// Sets that share a lowest layer, evaluated together from that layer on, against each alone from the first layer
    /// on; with rescaling too, which leaves intact layers as they are.
    #[test]
    fn sharing_the_layers_below_changes_no_outcome() {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
            "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.6,
        });
        let config: BertConfig = serde_json::from_value(json).unwrap();
        let model = BertClassifier::random(config, 3, (tch::Kind::Double, tch::Device::Cpu)).unwrap();
        let encoded = (0..40_u32).map(|text| {
            let ids: Vec<u32> = (0..3 + text % 9).map(|place| 1 + (text * 7 + place * 5) % 22).collect();
            let segments = vec![0; ids.len()];
            corpus::classifier_tokenizer::Encoded { ids, segments }
        });
        let texts = Texts::new(encoded.collect(), vec![0; 40]);
        let rows: Vec<usize> = (0..40).collect();
        let sets = [["self:2:1", "self:3:2"], ["self:2:3", "self:2:4"], ["self:2:2", "self:3:4"]]
            .map(|names| names.iter().map(|name| name.parse().unwrap()).collect::<HeadSet>());
        for rescale in [false, true] {
            let scored = &Scored::first("test".to_owned(), None, rescale);
            let together = classify(&model, (1, &sets), scored, &texts, &rows).unwrap();
            for (set, outcomes) in sets.iter().zip(&together) {
                let set = std::slice::from_ref(set);
                assert_eq!(classify(&model, (0, set), scored, &texts, &rows).unwrap()[0], *outcomes);
            }
            assert_ne!(together[0], together[1], "the sets must differ for the test to mean something");
        }
    }

    #[test]
    fn a_group_is_bounded_so_that_rows_come_soon() {
        let sets = vec![HeadSet::from_iter(["self:2:1".parse().unwrap()]); 2 * SETS_TOGETHER + 1];
        let sizes: Vec<usize> = groups(&sets).into_iter().map(|(_, range)| range.len()).collect();
        assert_eq!(sizes, [SETS_TOGETHER, SETS_TOGETHER, 1]);
    }
}
