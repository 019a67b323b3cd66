//! Entries and checks shared by the setup files of all tasks, `experiments/<subject>.toml`.
use std::num::NonZeroUsize;
use std::path::PathBuf;

use corpus::splits::check;
use serde::de::DeserializeOwned;

use crate::error::{Error, quoted};

/// Defines a section of a setup file: a struct with the entries that all tasks share, and a task's `own` entries.
macro_rules! section {
    ($(#[$about:meta])* setup $name:ident: $data:ty, $model:ty, $training:ty { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Already read.
            #[serde(default, rename = "task")]
            _task: serde::de::IgnoredAny,
            /// One sentence for readers.
            #[serde(rename = "description")]
            _description: String,
            /// Source of the segments.
            pub data: $data,
            /// A model that exists already, to be used unchanged or fine-tuned.
            pub checkpoint: Option<crate::checkpoint::CheckpointSpec>,
            /// Size of a model that is trained from scratch.
            pub model: Option<$model>,
            /// Recipe for training or fine-tuning; without it, a checkpoint is used unchanged.
            pub training: Option<$training>,
            /// Training checkpoints to keep; by default one per epoch.
            dynamics: Option<crate::dynamics::DynamicsSpec>,
            /// Sentences with trees, for `head-functions`.
            functions: Option<crate::functions::FunctionsSpec>,
            $($own)*
        }

        impl $name {
            /// Checks the entries that all tasks share; `is_made`: the data are synthetic.
            fn validate_common(&self, is_made: bool) -> Result<(), String> {
                crate::spec::check_sources(
                    [is_made, !self.data.splits.is_empty()],
                    [self.checkpoint.is_some(), self.model.is_some()],
                )?;
                crate::spec::check_split_names(self.data.splits.keys())?;
                if let Some(dynamics) = &self.dynamics {
                    dynamics.validate(self.training.map(|training| training.epochs))?;
                }
                self.functions.as_ref().map_or(Ok(()), crate::functions::FunctionsSpec::validate)
            }

            /// Returns the outline; `shifted`: default split of another domain for synthetic data.
            fn common_outline<'a>(&'a self, shifted: &'a str, splits: Vec<String>) -> crate::task::Outline<'a> {
                let data = &self.data;
                crate::task::Outline {
                    checkpoint: self.checkpoint.as_ref(),
                    epochs: self.training.map(|training| training.epochs),
                    replicates: self.training.map_or(1, |training| training.replicates.get()),
                    dynamics: self.dynamics.as_ref(),
                    follows_relevance: true,
                    functions: self.functions.as_ref(),
                    train: &data.train,
                    dev: &data.dev,
                    test: &data.test,
                    shifted: data.shifted.as_deref().or(data.grammar.map(|_| shifted)),
                    bad_rows: data.bad_rows,
                    estimate: data.estimate.as_ref().unwrap_or(&data.train),
                    splits,
                }
            }
        }
    };
    ($(#[$about:meta])* data $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Name for `just fetch`; absent if the files cannot be fetched.
            pub fetch: Option<String>,
            #[serde(default = "crate::spec::train")]
            pub train: String,
            /// Split for choosing the best epoch.
            #[serde(default = "crate::spec::dev")]
            pub dev: String,
            /// Split that experiments score by default.
            #[serde(default = "crate::spec::test")]
            pub test: String,
            /// Split from another domain, which experiments compare with the test split.
            shifted: Option<String>,
            /// Treatment of invalid rows.
            #[serde(default)]
            bad_rows: corpus::splits::BadRowRule,
            /// Split on which importance is measured; defaults to the training split.
            estimate: Option<String>,
            $($own)*
        }
    };
    ($(#[$about:meta])* training $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Seed of initial weights, batches and dropout.
            pub seed: u64,
            /// Number of runs, each with its own seed; does not influence the weights of a run.
            #[serde(default = "crate::spec::one", skip_serializing)]
            pub replicates: std::num::NonZeroUsize,
            /// Training epochs.
            pub epochs: usize,
            $($own)*
        }

        impl $name {
            pub(super) fn recipe(
                &self,
                (settings, curve): (serde_json::Value, String),
                (adam, clip_norm): (training::AdamSettings, f64),
                keep: training::Keep,
            ) -> training::Recipe {
                let Self { seed, epochs, .. } = *self;
                training::Recipe { settings, curve, seed, epochs, clip_norm, adam, keep }
            }
        }
    };
    ($(#[$about:meta])* model $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Number of layers; in a translator, of the encoder and of the decoder each.
            pub layers: usize,
            /// Heads in each attention module.
            pub heads: usize,
            /// Heads to keep in the model; all by default.
            #[serde(default, skip_serializing_if = "crate::open_heads::OpenHeads::is_all")]
            pub open_heads: crate::open_heads::OpenHeads,
            /// Width of the residual stream.
            pub d_model: i64,
            /// Width of the feed-forward blocks.
            pub d_ff: i64,
            $($own)*
        }
    };
}
pub(crate) use section;

/// Parses a TOML file.
///
/// # Errors
/// A message with the line of the fault.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| one_line(text, &error))
}

/// Refuses a missing file that can be fetched. Other missing files are reported when they are read.
pub(crate) fn check_fetched(paths: &[PathBuf], fetch: Option<&String>) -> Result<(), Error> {
    match (paths.iter().find(|path| !path.exists()), fetch) {
        (Some(path), Some(fetch)) => {
            let front = durable::front();
            Err(Error::Invalid(format!("`{}` is missing: run `{front} fetch {fetch}`", path.display())))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a split that does not exist.
pub(crate) fn no_split(split: &str, known: Vec<String>) -> Error {
    Error::NoSuchSplit { split: split.to_owned(), known }
}

/// Returns the error for a split whose file format is not given.
pub(crate) fn no_format(split: &str) -> Error {
    Error::Invalid(format!("split `{split}` has no format: [data.format] sets how its file is read"))
}

/// Default names of splits.
pub(crate) fn train() -> String {
    "train".to_owned()
}

pub(crate) fn dev() -> String {
    "dev".to_owned()
}

pub(crate) fn test() -> String {
    "test".to_owned()
}

pub(crate) fn initializer_range() -> f64 {
    0.02
}

pub(crate) fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

pub(crate) fn clip_norm() -> f64 {
    1.0
}

/// Refuses synthetic splits so large that generating them would not end.
pub(crate) fn check_sizes(sizes: &[usize]) -> Result<(), String> {
    check(&[("sizes in data.grammar must be at most 10000000", sizes.iter().all(|&size| size <= 10_000_000))])
}

/// Refuses invalid values of the settings that all kinds of training share.
///
/// - `rate`: name and value of the maximum learning rate
pub(crate) fn check_training(
    epochs: usize,
    (name, rate): (&str, f64),
    clip_norm: f64,
    weight_decay: f64,
    adam_betas: [f64; 2],
) -> Result<(), String> {
    if rate <= 0.0 || !rate.is_finite() {
        return Err(format!("training.{name} must be above 0 and finite"));
    }
    let is_rate = |beta: &f64| (0.0..1.0).contains(beta);
    check(&[
        ("training.epochs must be from 1 to 10000", (1..=10_000).contains(&epochs)),
        ("training.clip_norm must be above 0", clip_norm > 0.0),
        ("training.weight_decay must be from 0 to 1", (0.0..=1.0).contains(&weight_decay)),
        ("training.adam_betas must be at least 0 and below 1", adam_betas.iter().all(is_rate)),
    ])
}

/// Refuses split names that cannot be part of result file names.
pub(crate) fn check_split_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    match names.into_iter().find(|name| !corpus::names::is_file_name(name)) {
        Some(name) => Err(format!("a split cannot be called {name:?}: its name becomes part of file names")),
        None => Ok(()),
    }
}

/// Returns what training from scratch needs; `None` if all are absent (a checkpoint is used). Other combinations are refused.
///
/// - `models`, `model`: the kind of model, for messages
pub(crate) fn from_scratch<M, T, R>(
    settings: (Option<M>, Option<T>, Option<R>),
    [models, model]: [&str; 2],
) -> Result<Option<(M, T, R)>, String> {
    match settings {
        (Some(model), Some(tokenizer), Some(training)) => Ok(Some((model, tokenizer, training))),
        (None, None, None) => Ok(None),
        (None, ..) => {
            Err(format!("[checkpoint] excludes [tokenizer] and [training]: {models} are not fine-tuned"))
        }
        (Some(_), ..) => {
            Err(format!("[model] needs [tokenizer] and [training]: {model} is trained from scratch"))
        }
    }
}

/// Refuses training without a train or dev split; `more`: further advice for the message.
pub(crate) fn check_roles(known: &[String], splits: [&String; 2], more: &str) -> Result<(), String> {
    match ["train", "dev"].into_iter().zip(splits).find(|(_, split)| !known.contains(split)) {
        Some((role, split)) => Err(format!(
            "[training] needs a {role} split, but `{split}` is none of {}: data.{role} must name one{more}",
            quoted(known)
        )),
        None => Ok(()),
    }
}

/// Returns a TOML error on one line, with its line number in the file.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => in_line(text, span.start, &message),
        None => message,
    }
}

/// Adds the line number of the byte at `start` to a message.
pub(crate) fn in_line(text: &str, start: usize, message: &str) -> String {
    let line = text[..start.min(text.len())].matches('\n').count() + 1;
    format!("line {line}: {message}")
}

/// Checks that data come from files or a grammar, and that the model is a checkpoint or a new model.
pub(crate) fn check_sources(
    [grammar, splits]: [bool; 2],
    [checkpoint, model]: [bool; 2],
) -> Result<(), String> {
    check(&[
        ("[data] has both a grammar and splits: choose one", !(grammar && splits)),
        ("[data] needs a grammar or splits", grammar || splits),
        ("both [checkpoint] and [model] are given: an existing model and a new one", !(checkpoint && model)),
        ("[checkpoint] or [model] is missing: an existing model or a new one", checkpoint || model),
    ])
}
