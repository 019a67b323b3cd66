//! Entries and checks that the files of all tasks, `experiments/<subject>.toml`, have in common.
use std::num::NonZeroUsize;
use std::path::PathBuf;

use corpus::splits::check;
use serde::de::DeserializeOwned;

use crate::error::{Error, quoted};

/// The sections that the files of all tasks have: a struct with the entries that are the same for every task, and the `own` ones.
macro_rules! section {
    ($(#[$about:meta])* setup $name:ident: $data:ty, $model:ty, $training:ty { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Known by now.
            #[serde(default, rename = "task")]
            _task: serde::de::IgnoredAny,
            /// One sentence for people.
            #[serde(rename = "description")]
            _description: String,
            /// Source of the segments.
            pub data: $data,
            /// A model that is there already, to be used or to be fine-tuned.
            pub checkpoint: Option<crate::checkpoint::CheckpointSpec>,
            /// Size of a model that is trained from scratch.
            pub model: Option<$model>,
            /// Recipe of its training or fine-tuning; a checkpoint without is taken as it is.
            pub training: Option<$training>,
            /// Checkpoints of the training that stay; those of all epochs if absent.
            dynamics: Option<crate::dynamics::DynamicsSpec>,
            /// Sentences with trees, for `head-functions`.
            functions: Option<crate::functions::FunctionsSpec>,
            $($own)*
        }

        impl $name {
            /// Checks the entries that are the same for every task; `is_made`: the data are made up.
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

            /// The outline, with the name of the grammar's split of another domain.
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
            /// Name for `just fetch`, if the files can be fetched.
            pub fetch: Option<String>,
            /// The split that the model is trained on.
            #[serde(default = "crate::spec::train")]
            pub train: String,
            /// The split that the best epoch is chosen on.
            #[serde(default = "crate::spec::dev")]
            pub dev: String,
            /// The split that experiments score unless told otherwise.
            #[serde(default = "crate::spec::test")]
            pub test: String,
            /// The split of another domain, which experiments compare the test split with.
            shifted: Option<String>,
            /// Treatment of rows at fault.
            #[serde(default)]
            bad_rows: corpus::splits::BadRowRule,
            /// The split that importance is measured on; the training split if absent.
            estimate: Option<String>,
            $($own)*
        }
    };
    ($(#[$about:meta])* training $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Seed of new weights, batches and dropout.
            pub seed: u64,
            /// Number of models that are trained, each from a seed of its own; no weight depends on it.
            #[serde(default = "crate::spec::one", skip_serializing)]
            pub replicates: std::num::NonZeroUsize,
            /// Passes over the training split; with `blocks`, a pass is `blocks.steps` updates.
            pub epochs: usize,
            $($own)*
        }

        impl $name {
            /// The recipe with these settings; `betas`, `epsilon`: those of Adam.
            pub(super) fn recipe(
                &self,
                (settings, curve): (serde_json::Value, String),
                (betas, epsilon): ([f64; 2], f64),
                keep: training::Keep,
            ) -> training::Recipe {
                let Self { seed, epochs, clip_norm, weight_decay, .. } = *self;
                let adam = training::AdamSettings { betas, epsilon, weight_decay };
                training::Recipe { settings, curve, seed, epochs, clip_norm, adam, keep }
            }
        }
    };
    ($(#[$about:meta])* model $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Layers, of a translator those of the encoder and of the decoder.
            pub layers: usize,
            /// Heads in each attention module.
            pub heads: usize,
            /// The heads that the model has, of those that its layers have room for; all if absent.
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

/// The entries of a TOML file.
///
/// # Errors
/// If it is no TOML, or has unknown or missing entries: what, and in which line.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| one_line(text, &error))
}

/// Refuses a file that is missing and can be fetched; reading others says what is wrong with them.
pub(crate) fn check_fetched(paths: &[PathBuf], fetch: Option<&String>) -> Result<(), Error> {
    match (paths.iter().find(|path| !path.exists()), fetch) {
        (Some(path), Some(fetch)) => {
            let front = durable::front();
            Err(Error::Invalid(format!("`{}` is missing: run `{front} fetch {fetch}`", path.display())))
        }
        _ => Ok(()),
    }
}

/// Why made-up data have the split that is read.
pub(crate) const KNOWN: &str = "splits are looked up before they are read";

/// A split whose file nobody has described.
pub(crate) fn no_format(split: &str) -> Error {
    Error::Invalid(format!("split `{split}` has no format: [data.format] says how its file is to be read"))
}

/// Names of splits, unless a subject says otherwise.
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

/// Refuses sizes of a demo grammar's splits that would not end.
pub(crate) fn check_sizes(sizes: &[usize]) -> Result<(), String> {
    check(&[("sizes in data.grammar must be at most 10000000", sizes.iter().all(|&size| size <= 10_000_000))])
}

/// Refuses settings that make no sense, of those that all trainings have: the fault, in words.
///
/// - `rate`: name and value of the greatest learning rate
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

/// Names of splits become parts of the names of result files.
pub(crate) fn check_split_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    match names.into_iter().find(|name| !corpus::names::is_file_name(name)) {
        Some(name) => Err(format!("a split cannot be called {name:?}: its name becomes part of file names")),
        None => Ok(()),
    }
}

/// What a training from scratch needs, or nothing where a checkpoint is taken as it is; others than that are refused.
///
/// - `models`, `model`: what the fault calls them
pub(crate) fn from_scratch<M, T, R>(
    settings: (Option<M>, Option<T>, Option<R>),
    [models, model]: [&str; 2],
) -> Result<Option<(M, T, R)>, String> {
    match settings {
        (Some(model), Some(tokenizer), Some(training)) => Ok(Some((model, tokenizer, training))),
        (None, None, None) => Ok(None),
        (None, ..) => {
            Err(format!("[checkpoint] takes neither [tokenizer] nor [training]: {models} are not fine-tuned"))
        }
        (Some(_), ..) => {
            Err(format!("[model] needs [tokenizer] and [training]: {model} is trained from scratch"))
        }
    }
}

/// Refuses a training without one of its splits, train and dev; `more`: what else there is to do.
pub(crate) fn check_roles(known: &[String], splits: [&String; 2], more: &str) -> Result<(), String> {
    match ["train", "dev"].into_iter().zip(splits).find(|(_, split)| !known.contains(split)) {
        Some((role, split)) => Err(format!(
            "[training] needs a {role} split, but `{split}` is none of {}: data.{role} names one{more}",
            quoted(known)
        )),
        None => Ok(()),
    }
}

/// A TOML error on one line: what, and in which line of the file.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => in_line(text, span.start, &message),
        None => message,
    }
}

/// A message with the line of what stands at this byte.
pub(crate) fn in_line(text: &str, start: usize, message: &str) -> String {
    let line = text[..start.min(text.len())].matches('\n').count() + 1;
    format!("line {line}: {message}")
}

/// Data comes from files or from the demo grammar, and a model is there already or is made.
pub(crate) fn check_sources(
    [grammar, splits]: [bool; 2],
    [checkpoint, model]: [bool; 2],
) -> Result<(), String> {
    check(&[
        ("[data] has both a grammar and splits: choose one", !(grammar && splits)),
        ("[data] needs a grammar or splits", grammar || splits),
        (
            "both [checkpoint] and [model] are given: a model is there already, or it is made",
            !(checkpoint && model),
        ),
        ("[checkpoint] or [model] is missing: a model is there already, or it is made", checkpoint || model),
    ])
}
