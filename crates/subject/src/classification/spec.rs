//! Setup file of a classifier.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use core_masking::classifier::Classified;
use core_masking::{ClassifierConfig, HeadLayout, ModelConfig};
use corpus::checksum;
use corpus::labelled::{Example, Format, Scheme};
use corpus::splits::BadRows;
use corpus::splits::check;
use corpus::splits::classification::{Grammar, SplitFile};
use corpus::trees::Tree;
use records::StandsFor;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use stats::text::TextMetric;
use stats::{Metric, MetricName};

use super::data::{files, read_split};
use super::encoder::{EncoderSpec, FineTuningSpec, ImageSpec, TextTokenizerSpec};
use crate::error::{Error, quoted};
use crate::spec::{check_roles, check_sizes, check_split_names, section};
use crate::task::{Outline, Spec};

section! {
    /// A classifier as its TOML file describes it.
    setup ClassificationSpec: ClassificationData, EncoderSpec, FineTuningSpec {
        /// Results of the paper to compare with. Not used here, but parsed so that mistakes are found at once.
        #[serde(default, rename = "stands_for")]
        _stands_for: Option<StandsFor>,
        pub score: ScoreSpec,
        /// Tokeniser of the texts.
        #[serde(default)]
        pub tokenizer: TextTokenizerSpec,
    }
}

section! {
    /// Source of the texts or images: files, folders, or the demo grammar.
    data ClassificationData {
        /// Classes as the data name them, in the order of the model's outputs; defaults to the classes of the checkpoint.
        #[serde(default, deserialize_with = "names")]
        pub labels: Vec<String>,
        /// Other names for labels in the data, such as those that the checkpoint uses.
        #[serde(default, deserialize_with = "renamed")]
        pub rename: BTreeMap<String, String>,
        /// Tagging scheme of entities; defaults to IOB2.
        pub scheme: Option<Scheme>,
        /// Synthetic premise-hypothesis pairs or tagged sentences; the splits are train, dev, matched and mismatched.
        pub grammar: Option<Grammar>,
        pub format: Option<Format>,
        /// Files or image folders by split, relative to the data folder.
        #[serde(default)]
        pub splits: BTreeMap<String, SplitFile>,
        pub holdout: Option<Holdout>,
    }
}

/// A split that is taken from another split. Examples with equal first texts stay together.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holdout {
    pub name: String,
    /// The split that the examples are taken from.
    pub from: String,
    /// Number of examples to take; may be exceeded slightly, since examples with equal first texts stay together.
    pub examples: usize,
    pub seed: u64,
}

/// Metric to report.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoreSpec {
    /// `accuracy`, `f1` or `matthews`; `pearson` or `spearman` for a model with one output; `entity-f1` or `token-accuracy` for words.
    #[serde(deserialize_with = "metric")]
    pub metric: MetricName,
    /// The positive class of F1.
    #[serde(default, deserialize_with = "name")]
    pub positive: Option<String>,
}

impl ScoreSpec {
    /// Returns the metric if it is computed from tags of words.
    pub(super) fn of_tags(&self) -> Option<TextMetric> {
        if let Some(Metric::Texts(metric)) = Metric::of(self.metric, None) { Some(metric) } else { None }
    }

    /// Returns true if the metric is a correlation of numbers.
    pub(super) fn is_of_values(&self) -> bool {
        matches!(self.metric, MetricName::Pearson | MetricName::Spearman)
    }

    /// Returns true if the metric is for two classes.
    pub(super) fn is_of_two(&self) -> bool {
        matches!(self.metric, MetricName::F1 | MetricName::Matthews)
    }
}

/// Returns true for metrics of classes, numbers and tags.
fn is_of_labels(name: MetricName) -> bool {
    match Metric::of(name, None).or(Metric::of(name, Some(0))) {
        Some(Metric::Classes(_) | Metric::Estimates(_)) => true,
        Some(Metric::Texts(metric)) => metric.is_of_tags(),
        _ => false,
    }
}

fn metric<'de, D: Deserializer<'de>>(from: D) -> Result<MetricName, D::Error> {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        MetricName::ALL.into_iter().filter(|&name| is_of_labels(name)).map(MetricName::name).collect()
    });
    let name = String::deserialize(from)?;
    let metric = MetricName::try_from(name.clone()).ok().filter(|&name| is_of_labels(name));
    metric.ok_or_else(|| D::Error::unknown_variant(&name, &NAMES))
}

/// The name of a class, which may be a whole number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the name of a class: text in quotes, or a whole number")]
enum ClassName {
    Text(String),
    Number(i64),
}

impl From<ClassName> for String {
    fn from(name: ClassName) -> Self {
        match name {
            ClassName::Text(name) => name,
            ClassName::Number(number) => number.to_string(),
        }
    }
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<ClassName>::deserialize(from)?.map(String::from))
}

fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<ClassName>::deserialize(from)?.into_iter().map(String::from).collect())
}

fn renamed<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let named = BTreeMap::<String, ClassName>::deserialize(from)?;
    Ok(named.into_iter().map(|(old, new)| (old, new.into())).collect())
}

impl Spec for ClassificationSpec {
    type Examples = Vec<Example>;

    fn seed(&mut self) -> Option<&mut u64> {
        self.training.as_mut().map(|training| &mut training.seed)
    }

    fn outline(&self) -> Outline<'_> {
        let follows_relevance = self.score.of_tags().is_none();
        Outline { follows_relevance, ..self.common_outline("mismatched", self.data.split_names()) }
    }

    fn validate(&self) -> Result<(), String> {
        let data = &self.data;
        self.validate_common(data.grammar.is_some())?;
        data.validate()?;
        self.validate_score()?;
        let (trained, of_images) = (self.training.is_some(), data.reads_images());
        check(&[
            ("[model] needs [training]: it is trained from scratch", self.model.is_none() || trained),
            (
                "[model] needs tokenizer.vocabulary: a tokenizer is trained with it",
                self.model.is_none() || of_images || self.tokenizer.vocabulary.is_some(),
            ),
            ("[tokenizer] is for texts, but the splits are images", !of_images || self.tokenizer.is_empty()),
            (
                "[model] needs model.image, { size = .., patch = .., channels = .. }: the splits are images",
                !of_images || self.model.as_ref().is_none_or(|model| model.image.is_some()),
            ),
            (
                "model.image is for splits of images",
                of_images || self.model.as_ref().is_none_or(|model| model.image.is_none()),
            ),
            (
                "tokenizer.vocabulary is for [model]: a checkpoint has its own tokenizer",
                self.model.is_some() || self.tokenizer.vocabulary.is_none(),
            ),
            (
                "tokenizer.max_length must be from 3 to 65536",
                self.tokenizer.max_length.is_none_or(|length| (3..=1 << 16).contains(&length)),
            ),
            (
                "[training] needs data.labels: the classes, in the order of the model's outputs",
                !trained || !self.outputs().is_empty(),
            ),
        ])?;
        if let Some(training) = &self.training {
            training.validate()?;
            let roles = [&data.train, &data.dev];
            check_roles(&data.split_names(), roles, ", or data.holdout takes it from another split")?;
        }
        match &self.model {
            Some(model) => {
                model.image.map_or(Ok(()), ImageSpec::validate)?;
                let vocabulary = self.tokenizer.vocabulary.unwrap_or(0);
                let config = model.config(self.tokenizer, (&self.outputs(), self.classified()), vocabulary);
                config.validate()?;
                model.open_heads.validate(&config.layout())
            }
            None => Ok(()),
        }
    }

    fn layout(&self) -> Option<HeadLayout> {
        let config = |model: &EncoderSpec| {
            let outputs = (&self.outputs()[..], self.classified());
            model.open_heads.of_config(model.config(self.tokenizer, outputs, 1))
        };
        self.model.as_ref().map(|model| config(model).layout())
    }

    fn read(&self, data: &Path, split: &str, bad: &mut BadRows) -> Result<Vec<Example>, Error> {
        read_split(&self.data, data, split, (&self.score, bad))
    }

    fn files(&self, data: &Path, split: &str) -> Vec<PathBuf> {
        files(&self.data, data, split)
    }

    /// Sentences of the premises' grammar, one for each pair of the split, since pairs have no trees.
    fn trees(&self, split: &str) -> Option<Vec<Tree>> {
        Some(self.data.grammar?.trees(split))
    }

    fn groups(examples: &Vec<Example>) -> Vec<usize> {
        vec![examples.len()]
    }

    fn select(examples: &Vec<Example>, places: &[usize]) -> Vec<Example> {
        places.iter().map(|&place| examples[place].clone()).collect()
    }

    fn sentences(examples: &Vec<Example>) -> Vec<String> {
        examples.iter().map(|example| example.input.first().into_owned()).collect()
    }

    fn sha256(examples: &Vec<Example>) -> String {
        checksum::of_examples(examples)
    }
}

impl ClassificationSpec {
    /// Returns the classes in the setup, in the order of the model's outputs, or the single output.
    pub(super) fn outputs(&self) -> Vec<String> {
        if self.score.is_of_values() {
            vec![ClassifierConfig::one_output()]
        } else {
            self.data.labels.clone()
        }
    }

    pub(super) fn classified(&self) -> Classified {
        match self.score.of_tags() {
            Some(_) => Classified::Tokens,
            None if self.data.reads_images() => Classified::Images,
            None => Classified::Texts,
        }
    }

    fn validate_score(&self) -> Result<(), String> {
        let ScoreSpec { metric, positive } = &self.score;
        let labels = &self.data.labels;
        let known = |label: &String| labels.is_empty() || labels.contains(label);
        if let Some(label) = positive.as_ref().filter(|label| !known(label)) {
            return Err(format!("score.positive is `{label}`, but data.labels are {}", quoted(labels)));
        }
        let is_of_values = self.score.is_of_values();
        if self.score.is_of_two() && !labels.is_empty() && labels.len() != 2 {
            let classes = labels.len();
            return Err(format!(
                "score.metric {} is for two classes, but data.labels are {classes}: use accuracy",
                metric.name()
            ));
        }
        check(&[
            (
                "data.labels and data.rename are for classes: the labels of score.metric pearson and spearman are numbers",
                !is_of_values || (labels.is_empty() && self.data.rename.is_empty()),
            ),
            (
                "data.scheme is for score.metric entity-f1",
                self.data.scheme.is_none() || *metric == MetricName::EntityF1,
            ),
            (
                "score.metric entity-f1 and token-accuracy are for data.grammar with phrases = true, which needs one of them",
                self.data.grammar.is_none_or(|grammar| grammar.phrases == self.score.of_tags().is_some()),
            ),
            (
                "data.grammar has classes: score.metric must be accuracy",
                !is_of_values || self.data.grammar.is_none(),
            ),
            (
                "score.metric f1 needs score.positive, the positive class",
                *metric != MetricName::F1 || positive.is_some(),
            ),
            ("score.positive is for score.metric f1", *metric == MetricName::F1 || positive.is_none()),
        ])
    }
}

impl ClassificationData {
    fn validate(&self) -> Result<(), String> {
        let sizes = self.grammar.map_or([0; 4], |g| [g.train, g.dev, g.matched, g.mismatched]);
        check_split_names(self.holdout.iter().map(|holdout| &holdout.name))?;
        check_sizes(&sizes)?;
        let distinct: BTreeSet<&String> = self.labels.iter().collect();
        let plain = self.splits.values().any(|file| matches!(file, SplitFile::Plain(_)));
        let is_images = |file: &SplitFile| matches!(file, SplitFile::Images(_));
        let of_images = self.splits.values().filter(|file| is_images(file)).count();
        check(&[
            ("data.labels names a class twice", distinct.len() == self.labels.len()),
            ("data.labels must name at least two classes", self.labels.len() != 1),
            (
                "data.splits are texts and images: all must be of one kind",
                of_images == 0 || of_images == self.splits.len(),
            ),
            ("data.labels contains an empty name", !self.labels.iter().any(String::is_empty)),
            ("[data.format] is missing: it sets how the files are read", !plain || self.format.is_some()),
        ])?;
        let own = self.splits.iter().filter_map(|(name, file)| match file {
            SplitFile::Plain(_) | SplitFile::Images(_) => None,
            SplitFile::Formatted(file) => Some((format!("data.splits.{name}"), &file.format)),
        });
        for (name, format) in self.format.iter().map(|format| ("data".to_owned(), format)).chain(own) {
            format.validate().map_err(|fault| format!("{name}.format: {fault}"))?;
        }
        let Some(holdout) = &self.holdout else { return Ok(()) };
        let splits = self.file_splits();
        let Holdout { name, from, examples, .. } = holdout;
        if splits.contains(name) {
            return Err(format!("data.holdout.name is `{name}`, which is a split already"));
        }
        if !splits.contains(from) {
            return Err(format!("data.holdout.from is `{from}`, but the splits are {}", splits.join(", ")));
        }
        check(&[("data.holdout.examples must be at least 1", *examples >= 1)])
    }

    pub(super) fn reads_images(&self) -> bool {
        self.splits.values().any(|file| matches!(file, SplitFile::Images(_)))
    }

    /// Returns the splits that are files or generated by the grammar.
    fn file_splits(&self) -> Vec<String> {
        match self.grammar {
            Some(_) => Grammar::SPLITS.map(str::to_owned).to_vec(),
            None => self.splits.keys().cloned().collect(),
        }
    }

    pub(crate) fn split_names(&self) -> Vec<String> {
        let mut names = self.file_splits();
        names.extend(self.holdout.as_ref().map(|holdout| holdout.name.clone()));
        names
    }
}
