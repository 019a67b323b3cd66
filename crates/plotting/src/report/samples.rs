//! Texts of segments that a page may show: synthetic demos and, if requested, the user's own files. Downloaded data may not be shown.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::findings::{ResultFile, SubjectFile, SubjectResults};
use anyhow::{Context as _, Result, anyhow, ensure};
use charts::table::{Row, Table};
use corpus::checksum;
use corpus::labelled::{Example, Format, Input, Scheme};
use corpus::parallel::ParallelText;
use corpus::splits::language::Texts;
use corpus::splits::{BadRowRule, BadRows, classification, language, translation};
use serde::Deserialize;

/// The part of a setup file about its data.
#[derive(Debug, Deserialize)]
struct DataOf {
    #[serde(default)]
    task: Task,
    data: Data,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    #[default]
    Translation,
    Classification,
    LanguageModelling,
}

#[derive(Debug, Deserialize)]
struct Data {
    grammar: Option<toml::Value>,
    #[serde(flatten)]
    files: Files,
}

#[derive(Debug, Deserialize)]
struct Files {
    /// Source of the texts, if they are downloaded.
    fetch: Option<String>,
    format: Option<Format>,
    #[serde(default)]
    rename: BTreeMap<String, String>,
    scheme: Option<Scheme>,
    #[serde(default)]
    bad_rows: BadRowRule,
    #[serde(default)]
    splits: BTreeMap<String, toml::Value>,
}

enum Split {
    Pairs(ParallelText),
    Examples(Vec<Example>),
    Texts(Texts),
}

impl Split {
    fn sha256(&self) -> String {
        match self {
            Self::Pairs(text) => checksum::of_pairs(text),
            Self::Examples(examples) => checksum::of_examples(examples),
            Self::Texts(texts) => texts.sha256(),
        }
    }

    /// Returns each segment as displayed.
    fn texts(self) -> Vec<String> {
        let example = |own: Example| {
            let with_tags = |words: &[String]| -> Vec<String> {
                words.iter().zip(own.tags()).map(|(word, tag)| format!("{word}/{tag}")).collect()
            };
            let label = &own.label;
            match &own.input {
                Input::Text(text) => format!("{text} ({label})"),
                Input::Pair(text, pair) => format!("{text} | {pair} ({label})"),
                Input::Words(words) => with_tags(words).join(" "),
                Input::Image(image) => image.path.display().to_string(),
            }
        };
        match self {
            Self::Pairs(ParallelText { source, target, .. }) => {
                let both = source.into_iter().zip(target);
                both.map(|(source, target)| format!("{source} \u{2192} {target}")).collect()
            }
            Self::Examples(examples) => examples.into_iter().map(example).collect(),
            Self::Texts(Texts::Documents(documents)) => {
                documents.into_iter().map(|document| document.text).collect()
            }
            Self::Texts(Texts::Questions(questions)) => {
                questions.into_iter().map(|own| own.context + &own.choices.join(" | ")).collect()
            }
        }
    }
}

/// Tabulates texts of the segments that change most, if they may be shown; fails if other texts were measured. `data` is the
/// folder of the user's own files.
pub fn table(
    subject: &SubjectResults,
    described: &SubjectFile,
    data: Option<&Path>,
) -> Result<Option<Table>> {
    let is_asked_for = subject.kind.is_demo || data.is_some();
    let file = subject.sweep.as_ref().map(|sweep| &sweep.file);
    let identity = file.and_then(ResultFile::identity);
    let description = described.text.as_ref().filter(|_| is_asked_for && described.fault.is_none());
    let (Some(identity), Some(description)) = (identity, description) else { return Ok(None) };
    let split = &identity.split;
    // windows are parts of texts, and the checksum covers the whole split
    let is_of_windows = file.is_some_and(ResultFile::is_of_windows);
    ensure!(!is_of_windows, "the texts of `{split}` are not shown: segments are windows of these texts");
    ensure!(
        identity.limit.is_none(),
        "the texts of `{split}` are not shown: only a part of them was measured"
    );
    let Some(sha256) = identity.data.get(split) else { return Ok(None) };
    let texts = texts(description, data, split, sha256);
    let Some(texts) = texts.with_context(|| format!("the texts of `{split}` are not shown"))? else {
        return Ok(None);
    };
    let segments: BTreeSet<usize> =
        subject.segments.values().flatten().map(|change| change.segment).collect();
    let named = segments.into_iter().filter_map(|place| Some((place, texts.get(place.checked_sub(1)?)?)));
    let row = |(place, text): (usize, &String)| Row::new(place, [text.as_str()]);
    let whose = if subject.kind.is_demo { "a synthetic language" } else { "the setup's own files" };
    let title = format!("The segments of {split} that change most with a head masked; {whose}");
    let table = Table::new("Texts", "texts", title).columns(["Segment", ""], ["text"]);
    Ok(Some(table.rows(named.map(row))))
}

/// Returns the texts of a split whose checksum is `sha256`; `None` if they are downloaded, taken from another split, or not requested.
fn texts(description: &str, data: Option<&Path>, split: &str, sha256: &str) -> Result<Option<Vec<String>>> {
    let DataOf { task, data: described } =
        toml::from_str(description).map_err(|error| anyhow!("{}", error.message()))?;
    let found = match (described.grammar, data) {
        (Some(grammar), _) => Some(synthetic(task, grammar, split)?),
        (None, Some(folder)) => own(task, described.files, folder, split)?,
        (None, None) => None,
    };
    let Some(found) = found else { return Ok(None) };
    ensure!(found.sha256() == sha256, "they are not the texts that were measured: the checksum differs");
    Ok(Some(found.texts()))
}

fn own(task: Task, data: Files, folder: &Path, name: &str) -> Result<Option<Split>> {
    let Files { fetch, format, rename, scheme, bad_rows, mut splits } = data;
    let mut bad = BadRows::new(bad_rows);
    let own = splits.remove(name).filter(|split| fetch.is_none() && split.get("fetch").is_none());
    let Some(split) = own else { return Ok(None) };
    Ok(Some(match task {
        Task::Translation => {
            let pair: translation::FilePair = split.try_into()?;
            pair.validate().map_err(anyhow::Error::msg)?;
            Split::Pairs(pair.read(folder, &mut bad)?)
        }
        Task::Classification => {
            let file: classification::SplitFile = split.try_into()?;
            let read = file.read(folder, format.as_ref(), (false, &mut bad));
            let mut examples = read.context("the split's file has no format")??;
            examples.iter_mut().for_each(|example| example.rename(&rename));
            if scheme == Some(Scheme::Iob1) {
                let convert = |example| Scheme::Iob1.apply(example).map_err(anyhow::Error::msg);
                examples.iter_mut().try_for_each(convert)?;
            }
            Split::Examples(examples)
        }
        Task::LanguageModelling => {
            let files: language::SplitFiles = split.try_into()?;
            Split::Texts(files.read(folder, &mut bad).context("it has neither documents nor choices")??)
        }
    }))
}

fn synthetic(task: Task, grammar: toml::Value, split: &str) -> Result<Split> {
    let found = match task {
        Task::Translation => grammar.try_into::<translation::Grammar>()?.read(split).map(Split::Pairs),
        Task::Classification => {
            grammar.try_into::<classification::Grammar>()?.read(split).map(Split::Examples)
        }
        Task::LanguageModelling => grammar.try_into::<language::Grammar>()?.read(split).map(Split::Texts),
    };
    found.context("the grammar does not generate this split")
}

#[cfg(test)]
mod tests {
    use corpus::documents::Document;

    use super::*;

    const DEMO: &str = include_str!("../../../../experiments/demo-translation.toml");

    /// The checksum comes from the signature of the committed `results/demo-translation/ablate-one.json`.
    #[test]
    fn the_texts_of_a_demo_are_those_that_were_measured() {
        let sha256 = "9b3f4168085f86e3cc597c98aacec642c242b00f3d347d5bd0f560dcb10e7320";
        assert_eq!(texts(DEMO, None, "test", sha256).unwrap().unwrap().len(), 400);
        let fault = texts(DEMO, None, "shifted", sha256).unwrap_err().to_string();
        assert!(fault.contains("not the texts that were measured"), "another split has other texts: {fault}");
        let no_splits = "task = \"classification\"\n[data]\nsplits = {}";
        assert!(texts(no_splits, Some(Path::new("data")), "test", sha256).unwrap().is_none());
    }

    /// Own files may be shown, since the user has them; downloaded ones may not.
    #[test]
    fn own_files_are_shown_and_fetched_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.en", "one\ntwo\n");
        write("a.fr", "un\ndeux\n");
        write("b.tsv", "text\tlabel\nfine\t1\n");
        write("c.txt", "a text\n");
        let pairs = "[data]\n[data.splits]\ntest = { source = 'a.en', target = 'a.fr' }";
        let table = "task = 'classification'\n[data]\nrename = { '1' = 'good' }\n\
                     format = { kind = 'tsv', text = 'text', label = 'label' }\n[data.splits]\ntest = 'b.tsv'";
        let documents = "task = 'language-modelling'\n[data]\n[data.splits]\n\
                         test = { files = ['c.txt'], documents = { kind = 'lines' } }";
        let [source, target] = [["one", "two"], ["un", "deux"]].map(|side| side.map(str::to_owned).to_vec());
        let both = ParallelText { source, target, ..ParallelText::default() };
        let example = Example { input: Input::Text("fine".to_owned()), label: "good".to_owned() };
        for (toml, sha256, expected) in [
            (pairs, checksum::of_pairs(&both), "one \u{2192} un"),
            (table, checksum::of_examples(&[example]), "fine (good)"),
            (documents, checksum::of_documents(&[Document::from("a text".to_owned())]), "a text"),
        ] {
            let found = |toml: &str, sha256: &str| texts(toml, Some(folder.path()), "test", sha256);
            assert_eq!(found(toml, &sha256).unwrap().expect(toml)[0], expected);
            assert!(found(toml, "other").is_err());
            assert!(texts(toml, None, "test", &sha256).unwrap().is_none(), "nobody has asked for them");
            let fetched = toml.replacen("[data]", "[data]\nfetch = 'x'", 1);
            assert!(found(&fetched, &sha256).unwrap().is_none(), "{fetched}");
        }
        std::fs::remove_file(folder.path().join("a.fr")).unwrap();
        let fault = texts(pairs, Some(folder.path()), "test", "").unwrap_err();
        assert!(format!("{fault:#}").contains("a.fr"), "{fault:#}");
    }
}
