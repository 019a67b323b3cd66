//! Information from a model's folder.
use std::path::{Path, PathBuf};

use core_masking::classifier::Classified;
use core_masking::families::{LANGUAGE_MODELS, TRANSLATORS};
use core_masking::{ClassifierConfig, refuse_adapter, weight_files};
use corpus::hub::PREFIX;
use serde_json::Value;
use training::Machine;

use super::shown;
use crate::checkpoint::CheckpointSpec;
use crate::error::Error;

/// A model that exists already.
#[derive(Debug, Clone)]
pub struct InitialModel {
    /// Its name in the setup: `hub:owner/name`, or a folder.
    pub from: String,
    /// Its folder on this machine.
    pub folder: PathBuf,
    config: Value,
}

/// The task of a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    Classification(Classes),
    Tagging(Classes),
    LanguageModelling,
    Translation,
}

/// Outputs of a classifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Classes {
    /// Names of the classes, in the order of the outputs.
    Named(Vec<String>),
    /// Numbered classes such as `LABEL_0`, which transformers uses if names are missing.
    Numbered(usize),
    /// One number.
    Value,
    /// The classes in the data, for a model that is not fine-tuned yet.
    OfData,
}

impl InitialModel {
    /// Finds a model: a folder, possibly in the data folder, or `hub:owner/name`, which is fetched.
    ///
    /// # Errors
    /// If the model cannot be found, or its folder has no configuration or no weights.
    pub fn find(model: &str, machine: &Machine) -> Result<Self, Error> {
        let (from, folder) = if model.starts_with(PREFIX) {
            (model.to_owned(), CheckpointSpec::named(model).find(machine)?.folder.clone())
        } else {
            let in_data = machine.data.join(model);
            let places = [Path::new(model), in_data.as_path()];
            let Some(folder) = places.into_iter().find(|folder| folder.is_dir()) else {
                let data = machine.data.display();
                return Err(Error::Invalid(format!(
                    "no model `{model}`: it must be a Hugging Face folder, here or in `{data}`, a GGUF file, or hub:owner/name"
                )));
            };
            (shown(folder, machine)?.to_string_lossy().into_owned(), folder.to_owned())
        };
        let path = folder.join("config.json");
        refuse_adapter(&path)?;
        let text = std::fs::read(&path).map_err(|source| Error::read(&path, source))?;
        let config = serde_json::from_slice(&text).map_err(|fault| Error::at(&path, fault))?;
        weight_files(&folder)?;
        Ok(Self { from, folder, config })
    }

    pub(super) fn entry(&self, key: &str) -> &Value {
        &self.config[key]
    }

    /// Returns the family, such as `bert`.
    pub(super) fn family(&self) -> &str {
        self.config["model_type"].as_str().unwrap_or_default()
    }

    /// Returns the class name in transformers, or the family if absent.
    pub(super) fn class(&self) -> &str {
        self.config["architectures"][0].as_str().unwrap_or_else(|| self.family())
    }

    /// Returns a short description: the class and the last part of the name.
    pub(super) fn title(&self) -> String {
        let name = self.from.rsplit('/').next().unwrap_or_default();
        format!("{} {}", self.class(), name.trim_start_matches(PREFIX))
    }

    /// Returns the source and target language codes from the tokenizer's settings or the model's name.
    pub(super) fn languages(&self) -> Option<[String; 2]> {
        let text = std::fs::read_to_string(self.folder.join("tokenizer_config.json")).unwrap_or_default();
        let settings: Value = serde_json::from_str(&text).unwrap_or_default();
        let [source, target] =
            ["source_lang", "target_lang"].map(|key| settings[key].as_str().map(str::to_owned));
        let parts: Vec<&str> = self.from.rsplit('/').next()?.split(['-', '_']).collect();
        let is_code = |part: &&str| part.len() == 2 && part.chars().all(|c| c.is_ascii_lowercase());
        let named = parts.windows(2).rfind(|pair| pair.iter().all(is_code)); // opus-mt-en-de
        match (source, target, named) {
            (Some(source), Some(target), _) => Some([source, target]),
            (.., Some(&[source, target])) => Some([source.to_owned(), target.to_owned()]),
            _ => None,
        }
    }

    /// Returns the task of the model's class, or else of its family.
    ///
    /// - `fine_tune`: whether a model without a classification head gets one
    pub(super) fn task(&self, fine_tune: bool) -> Result<Task, Error> {
        let (class, family) = (self.class(), self.family());
        let classified = [Classified::Texts, Classified::Tokens, Classified::Images]
            .into_iter()
            .find(|own| class.ends_with(own.suffix()));
        if fine_tune && (classified.is_some() || class.ends_with("ForCausalLM")) {
            let fault =
                "is used unchanged: leave out --fine-tune, which is for models without a classification head";
            return Err(Error::Invalid(format!("`{}`, a {class}, {fault}", self.folder.display())));
        }
        if let Some(classified) = classified {
            let classes = classes(&ClassifierConfig::read(&self.folder.join("config.json"))?);
            return Ok(match classified {
                Classified::Texts | Classified::Images => Task::Classification(classes),
                Classified::Tokens => Task::Tagging(classes),
            });
        }
        let is_translator = TRANSLATORS.iter().any(|known| known.model_type == family);
        if is_translator
            && (class == family || class.ends_with("ForConditionalGeneration") || class.ends_with("MTModel"))
        {
            return Ok(Task::Translation);
        }
        let is_language_model = LANGUAGE_MODELS.iter().any(|known| known.model_type == family);
        if is_language_model || class.ends_with("ForCausalLM") || class.ends_with("LMHeadModel") {
            return Ok(Task::LanguageModelling);
        }
        if fine_tune {
            return Ok(Task::Classification(Classes::OfData));
        }
        let folder = self.folder.display();
        Err(Error::Invalid(format!(
            "`{folder}` is a {class}, which has no classification head: --fine-tune trains one on the training set first"
        )))
    }
}

fn classes(config: &ClassifierConfig) -> Classes {
    let names: Vec<String> = config.id2label.values().cloned().collect();
    let is_numbered = names.iter().enumerate().all(|(id, name)| *name == format!("LABEL_{id}"));
    match names.len() {
        1 => Classes::Value,
        count if is_numbered => Classes::Numbered(count),
        _ => Classes::Named(names),
    }
}
