//! Outputs of a classifier: their names and the metric.
use std::path::Path;

use core_masking::ClassifierConfig;
use core_masking::classifier::Classified;
use stats::{Metric, MetricName};

use super::spec::ClassificationSpec;
use crate::error::{Error, quoted};

pub(super) fn metric(spec: &ClassificationSpec, labels: &[String]) -> Result<Metric, Error> {
    let (score, name) = (&spec.score, spec.score.metric);
    match (score.is_of_values(), labels.len()) {
        (true, 1) => {}
        (true, outputs) => {
            let what = format!("score.metric {name} is for models with one output");
            return Err(Error::Invalid(format!("{what}, but this one has {outputs} classes: use accuracy")));
        }
        (false, 1) => {
            return Err(Error::Invalid(format!(
                "the model has one output, as for regression or ranking, but {name} is for classes: set score.metric = \
                 \"pearson\" or \"spearman\""
            )));
        }
        (false, count) if score.is_of_two() && count != 2 => {
            let what = format!("score.metric {name} is for two classes");
            return Err(Error::Invalid(format!("{what}, but the model has {count}: {}", quoted(labels))));
        }
        (false, _) => {}
    }
    let positive = score.positive.as_deref().unwrap_or_default(); // validated to be there for F1
    let place = labels.iter().position(|label| label == positive).filter(|_| name == MetricName::F1);
    let fault = || Error::Invalid(format!("no class `{positive}`: expected one of {}", quoted(labels)));
    Metric::of(name, place).ok_or_else(fault)
}

/// Returns the model's outputs in order: the classes as the data name them, or one output.
///
/// # Errors
/// If model and setup name different classes or neither names any, or if only one of model and data has a class per word.
pub(super) fn labels(
    spec: &ClassificationSpec,
    config: &ClassifierConfig,
    folder: &Path,
) -> Result<Vec<String>, Error> {
    let tags = |classified| classified == Classified::Tokens;
    if tags(config.classified()) != tags(spec.classified()) {
        let class = config.architectures.first().map_or(config.model_type.as_str(), String::as_str);
        let (folder, metric) = (folder.display(), spec.score.metric);
        let wanted = match config.classified() {
            Classified::Tokens => "tags words: score.metric must be entity-f1 or token-accuracy",
            _ => "does not tag words: score.metric must be one for texts, such as accuracy",
        };
        return Err(Error::Invalid(format!("the model in `{folder}`, a {class}, {wanted}, not {metric}")));
    }
    let (named, known) = (&spec.data.labels, config.labels());
    let is_no_tag = |label: &&String| label.is_empty() || label.contains(char::is_whitespace);
    if tags(spec.classified())
        && let Some(label) = named.iter().chain(&known).find(is_no_tag)
    {
        return Err(Error::Invalid(format!(
            "label `{label}` is empty or contains white space, so it cannot be a tag"
        )));
    }
    let same = || named.len() == known.len() && named.iter().all(|label| known.contains(label));
    let are_numbers = known.iter().enumerate().all(|(class, label)| *label == class.to_string());
    match (named.is_empty(), config.has_label_names()) {
        _ if config.has_one_output() => Ok(known),
        (true, true) => Ok(known),
        (true, false) => Err(Error::Invalid(format!(
            "the {} classes of the model in `{}` have no names: data.labels must give them, in the order of its outputs",
            known.len(),
            folder.display()
        ))),
        (false, true) if same() => Ok(known),
        (false, has_names) if (!has_names || are_numbers) && named.len() == known.len() => Ok(named.clone()),
        (false, _) => {
            let renamed = named.iter().zip(&known).map(|(label, name)| format!("\"{label}\" = \"{name}\""));
            Err(Error::Invalid(format!(
                "data.labels are {}, but the classes of the model in `{}` are {}: data.labels must list the model's classes, and data.rename can map \
                 names in the data to them, such as {{ {} }}",
                quoted(named),
                folder.display(),
                quoted(&known),
                renamed.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}
