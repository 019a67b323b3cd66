//! The splits of a classifier.
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use corpus::images;
use corpus::labelled::{Example, Input, Scheme};
use corpus::splits::BadRows;
use corpus::splits::classification::SplitFile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use stats::{Cell, MetricName};
use words::excerpt;

use super::inputs::Answer;
use super::spec::{ClassificationData, Holdout, ScoreSpec};
use crate::error::{Error, quoted};
use crate::spec::{check_fetched, no_format, no_split};

/// Reads one of the splits from the data folder `folder`.
///
/// # Errors
/// If the file is missing or damaged, a label is not a number or a tag of the scheme where one is needed, or a holdout leaves no example.
pub(super) fn read_split(
    spec: &ClassificationData,
    folder: &Path,
    split: &str,
    (score, bad): (&ScoreSpec, &mut BadRows),
) -> Result<Vec<Example>, Error> {
    let mut read_whole = |split: &str| {
        let mut examples = read_whole(spec, folder, split, (score.is_of_values(), bad))?;
        examples.iter_mut().for_each(|example| example.rename(&spec.rename));
        if score.metric == MetricName::EntityF1 {
            convert(&mut examples, spec.scheme.unwrap_or_default(), split)?;
        }
        Ok::<_, Error>(examples)
    };
    Ok(match &spec.holdout {
        Some(holdout) if holdout.name == split => held_out(holdout, read_whole(&holdout.from)?).0,
        Some(holdout) if holdout.from == split => {
            let whole = read_whole(split)?;
            let found = whole.len();
            let left = held_out(holdout, whole).1;
            if left.is_empty() {
                let asked =
                    format!("data.holdout takes {} examples out of split `{split}`", holdout.examples);
                return Err(Error::Invalid(format!("{asked}, which has {found}: none would be left")));
            }
            left
        }
        _ => read_whole(split)?,
    })
}

/// Checks tags that mark entities and converts them to IOB2.
fn convert(examples: &mut [Example], scheme: Scheme, split: &str) -> Result<(), Error> {
    (1..).zip(examples).try_for_each(|(number, example)| {
        let at = |fault| Error::Invalid(format!("split `{split}`, sentence {number}: {fault}"));
        scheme.apply(example).map_err(at)
    })
}

/// Returns the answer of each example: its class as an index into `labels`, the classes of its words, or its value if there is one output.
///
/// - `are_tagged`: true if each word has a class
pub(super) fn answers(
    examples: &[Example],
    (labels, are_tagged): (&[String], bool),
    split: &str,
) -> Result<Vec<Answer>, Error> {
    let place = |name: &str| labels.iter().position(|label| label == name).map(|class| class as u32);
    let of_words = |example: &Example, words: &[String]| {
        let classes = example.tags().zip(words).map(|(tag, word)| {
            let fault = || {
                format!("tag `{}` of word `{}` is not one of {}", excerpt(tag), excerpt(word), quoted(labels))
            };
            place(tag).ok_or_else(fault)
        });
        Ok(Answer::Tags(classes.collect::<Result<_, _>>()?))
    };
    let of_text = |example: &Example| {
        let found = match labels {
            [_] => example.value().map(Cell::Decimal),
            _ => place(&example.label).map(Cell::Count),
        };
        let fault = || format!("label `{}` is not one of {}", example.label, quoted(labels));
        found.map(Answer::One).ok_or_else(fault)
    };
    let answer = |(example, number): (&Example, usize)| {
        let found = match (are_tagged, &example.input) {
            (true, Input::Words(words)) => of_words(example, words),
            (false, Input::Text(_) | Input::Pair(..) | Input::Image(_)) => of_text(example),
            (true, _) => Err(
                "found a text, but score.metric entity-f1 and token-accuracy are for words with tags: data.format \
                 needs kind = \"conll\", or lists of words and tags in \"jsonl\""
                    .to_owned(),
            ),
            (false, Input::Words(_)) => {
                Err("found words with tags, but score.metric is for texts: expected \"entity-f1\" or \
                 \"token-accuracy\""
                    .to_owned())
            }
        };
        found.map_err(|fault| {
            let place = match &example.input {
                Input::Image(image) => format!("`{}`", image.path.display()),
                _ => format!("example {number}"),
            };
            Error::Invalid(format!("split `{split}`, {place}: {fault}"))
        })
    };
    examples.iter().zip(1..).map(answer).collect()
}

/// Returns the file or the images of a split; empty if the split is generated or does not exist.
pub(super) fn files(spec: &ClassificationData, folder: &Path, split: &str) -> Vec<PathBuf> {
    let split =
        spec.holdout.as_ref().filter(|holdout| holdout.name == split).map_or(split, |holdout| &holdout.from);
    let file = spec.splits.get(split).filter(|_| spec.grammar.is_none());
    let Some(file) = file else { return Vec::new() };
    let path = file.path(folder);
    match file {
        SplitFile::Images(_) => images::list(&path).unwrap_or_else(|_| vec![path]),
        SplitFile::Plain(_) | SplitFile::Formatted(_) => vec![path],
    }
}

/// Reads a split before a holdout is taken from it.
fn read_whole(
    spec: &ClassificationData,
    folder: &Path,
    split: &str,
    (of_values, bad): (bool, &mut BadRows),
) -> Result<Vec<Example>, Error> {
    let no_split = || no_split(split, spec.split_names());
    if let Some(grammar) = spec.grammar {
        return grammar.read(split).ok_or_else(no_split);
    }
    let file = spec.splits.get(split).ok_or_else(no_split)?;
    let path = file.path(folder);
    check_fetched(std::slice::from_ref(&path), file.fetch().or(spec.fetch.as_ref()))?;
    let read = file.read(folder, spec.format.as_ref(), (of_values, bad));
    Ok(read.ok_or_else(|| no_format(split))??)
}

/// Returns what examples that must stay in one split share: the first text, or the checksum of the image.
fn key(example: &Example) -> Cow<'_, str> {
    match &example.input {
        Input::Image(image) => Cow::Borrowed(&image.sha256),
        other => other.first(),
    }
}

/// Returns the held-out examples and the remaining ones, both in their original order. Examples with equal first texts stay together, so
/// that no held-out premise occurs in training.
fn held_out(holdout: &Holdout, examples: Vec<Example>) -> (Vec<Example>, Vec<Example>) {
    let mut seen = HashSet::new();
    let firsts: Vec<Cow<'_, str>> = examples.iter().map(key).collect();
    let mut texts: Vec<&str> = firsts.iter().map(AsRef::as_ref).filter(|text| seen.insert(*text)).collect();
    texts.shuffle(&mut ChaCha8Rng::seed_from_u64(holdout.seed));
    let mut counts = HashMap::new();
    for first in &firsts {
        *counts.entry(first.as_ref()).or_insert(0) += 1;
    }
    let mut taken = 0;
    let chosen: HashSet<String> = texts
        .into_iter()
        .take_while(|text| {
            let enough = taken >= holdout.examples;
            taken += counts[text];
            !enough
        })
        .map(str::to_owned)
        .collect();
    examples.into_iter().partition(|example| chosen.contains(key(example).as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(texts: &[&str]) -> Vec<Example> {
        let example = |text: &&str| Example { input: Input::Text((*text).to_owned()), label: "a".to_owned() };
        texts.iter().map(example).collect()
    }

    #[test]
    fn examples_of_one_premise_are_held_out_together() {
        let all = examples(&["p", "q", "p", "r", "q", "s", "p", "t"]);
        for seed in 0..8 {
            let holdout = Holdout { name: "dev".to_owned(), from: "train".to_owned(), examples: 3, seed };
            let (out, left) = held_out(&holdout, all.clone());
            assert_eq!(out.len() + left.len(), 8);
            assert!((3..=5).contains(&out.len()), "{out:?}");
            assert!(out.iter().all(|example| !left.contains(example)), "{out:?}");
            assert_eq!(held_out(&holdout, all.clone()).0, out);
        }
    }
}
