//! Converts YAML tasks of lm-evaluation-harness 0.4.13 to the entries of a split.
//!
//! <https://github.com/EleutherAI/lm-evaluation-harness/blob/main/docs/task_guide.md>
use std::fmt;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use words::excerpt;

use super::language::{ChoiceRule, SplitFiles};
use crate::Error;
use crate::choices::{Answer, ChoiceFormat, Choices, Context, Fewshot, Text};
use crate::documents::DocumentFormat;
use crate::rows::{self, Column, RowKind};
use crate::tables::kind_of;

const PREFIX: &str = "lm-eval:";

/// Maximum depth of nested includes.
const MAX_INCLUDES: usize = 9;

/// Unsupported keys that change what is asked or scored.
const UNREAD: [&str; 8] = [
    "class",
    "custom_dataset",
    "doc_to_audio",
    "doc_to_image",
    "gen_prefix",
    "process_docs",
    "process_results",
    "use_prompt",
];

/// Supported keys of `fewshot_config`.
const READ_OF_FEWSHOT: [&str; 2] = ["sampler", "split"];

/// Declares that the files already contain the output of `process_docs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessDocs {
    /// The files contain the output.
    Done,
}

/// Replaces `from` in a split by the entries that the task defines; paths of YAML files are relative to `folder`.
///
/// # Errors
/// If the YAML cannot be read, or needs Python or anything else that is not supported.
pub fn translate(split: &mut SplitFiles, folder: &Path) -> Result<(), Error> {
    let Some(from) = split.from.take() else { return Ok(()) };
    let Some(path) = from.strip_prefix(PREFIX) else {
        let reason =
            format!("`from` is `{}`, but must be `{PREFIX}` and the path of a YAML file", excerpt(&from));
        return Err(Error::Invalid(reason));
    };
    let path = folder.join(path);
    let task = Task { keys: load(&path, MAX_INCLUDES)?, path };
    task.entries(split).map_err(|reason| Error::of(&task.path, reason))
}

/// A YAML file merged with the files that it includes.
struct Task {
    path: PathBuf,
    keys: Map<String, Value>,
}

impl Task {
    fn entries(&self, split: &mut SplitFiles) -> Result<(), String> {
        if split.choices.is_some() || split.documents.is_some() {
            return Err("a split with `from` must have neither `choices` nor `documents`".to_owned());
        }
        if self.given("group").is_some() || matches!(self.given("task"), Some(Value::Array(_))) {
            return Err("this is a group of tasks: `from` must name one of them".to_owned());
        }
        let is_done = split.process_docs.take().is_some();
        let unread = UNREAD.into_iter().filter(|key| !(is_done && *key == "process_docs"));
        for key in unread {
            self.given(key).map_or(Ok(()), |value| Err(self.unread(key, value)))?;
        }
        // The data folder is unknown here: a name without extension must be a folder written by `save_to_disk`.
        let of_name = |file: &PathBuf| kind_of(file).or(file.extension().is_none().then_some(RowKind::Arrow));
        let Some(kind) = split.files.first().and_then(of_name) else {
            let endings = ".jsonl, .csv, .tsv, .parquet or .arrow";
            return Err(format!("`files` must contain the rows: names that end in {endings}, or folders"));
        };
        let output = self.text("output_type")?.unwrap_or_else(|| "generate_until".to_owned());
        match output.as_str() {
            "loglikelihood_rolling" => {
                split.documents = Some(self.documents(kind)?);
                return Ok(());
            }
            "loglikelihood" => {
                let target = self.needed("doc_to_target")?;
                split.choices = Some(ChoiceFormat {
                    delimiter: Some(String::new()),
                    ..self.format(kind, Choices::Target { target })?
                });
            }
            "multiple_choice" => {
                let answer = Some(Answer::Jinja { jinja: self.needed("doc_to_target")? });
                split.choices = Some(ChoiceFormat { answer, ..self.format(kind, self.choices()?)? });
            }
            other => {
                let read = "expected multiple_choice, loglikelihood or loglikelihood_rolling";
                return Err(format!("`output_type` is `{}`: {read}", excerpt(other)));
            }
        }
        split.rule = self.rule(split.rule)?;
        split.fewshot = self.fewshot(split.fewshot.take())?;
        Ok(())
    }

    /// Returns the value of a key; `None` if it is missing or null.
    fn given(&self, key: &str) -> Option<&Value> {
        self.keys.get(key).filter(|value| !value.is_null())
    }

    /// Returns the reason why a key is refused, and the remedy.
    fn unread(&self, key: &str, value: &Value) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let what = match function(value) {
            Some(name) => format!("`{key}` is the Python function `{}`, which is not run", excerpt(name)),
            None => format!("`{key}` is not supported"),
        };
        let own = |line: &str| {
            format!("write a YAML file next to it with the lines `include: {name}` and `{line}`")
        };
        let remedy = match key {
            "process_docs" => {
                "if the rows of `files` are what it returns, set `process_docs = \"done\"` in the split"
                    .to_owned()
            }
            "doc_to_text" | "doc_to_target" | "doc_to_choice" | "description" => {
                own(&format!("{key}: \"...\"")) + ", a template of the rows' fields"
            }
            _ => own(&format!("{key}: null")) + ", if it is not needed",
        };
        format!("{what}: {remedy}")
    }

    /// Returns the text or number of a key as text; `None` if it is missing.
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.given(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(value) if function(value).is_some() => Err(self.unread(key, value)),
            Some(_) => Err(format!("`{key}` must be a template, a field or a number")),
        }
    }

    fn needed(&self, key: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| format!("`{key}` is missing"))
    }

    fn format(&self, kind: RowKind, choices: Choices) -> Result<ChoiceFormat, String> {
        let context = |jinja: String| Context::Jinja { jinja };
        Ok(ChoiceFormat {
            kind,
            header: None,
            quoting: None,
            context: Some(context(self.needed("doc_to_text")?)),
            contexts: None,
            choices,
            answer: None,
            delimiter: Some(self.text("target_delimiter")?.unwrap_or_else(|| " ".to_owned())),
            description: self.text("description")?.map(context),
            group: None,
            first: None,
            wikihow: None,
        })
    }

    fn choices(&self) -> Result<Choices, String> {
        let literal = |value: &Value| match value {
            Value::String(text) => Ok(Text::Literal { text: text.clone() }),
            _ => Err("`doc_to_choice` must list texts".to_owned()),
        };
        match self.given("doc_to_choice") {
            Some(Value::Array(members)) => {
                members.iter().map(literal).collect::<Result<_, _>>().map(Choices::Each)
            }
            _ => Ok(Choices::Jinja { jinja: self.needed("doc_to_choice")? }),
        }
    }

    /// Returns a format in which each row has its document in one field.
    fn documents(&self, kind: RowKind) -> Result<DocumentFormat, String> {
        let template = self.needed("doc_to_target")?;
        let field = template.trim_start_matches("{{").trim_end_matches("}}").trim();
        if field.is_empty() || !field.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
            let template = excerpt(&template);
            return Err(format!(
                "`doc_to_target` is `{template}`, but must be a field, such as \"{{{{text}}}}\""
            ));
        }
        let text = Some(Column::Name(field.to_owned()));
        Ok(DocumentFormat { text, ..DocumentFormat::of(kind.into()) })
    }

    /// Returns the split's rule; by default the rule for the task's metrics.
    fn rule(&self, own: Option<ChoiceRule>) -> Result<Option<ChoiceRule>, String> {
        let metrics = self.given("metric_list").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let names: Vec<&str> = metrics.iter().filter_map(|metric| metric["metric"].as_str()).collect();
        match own {
            Some(rule) => Ok(Some(rule)),
            None if metrics.is_empty() || names.contains(&"acc") => Ok(None),
            None if names.contains(&"acc_norm") => Ok(Some(ChoiceRule::AccNorm)),
            None => {
                let names: Vec<String> = names.iter().map(|name| format!("`{}`", excerpt(name))).collect();
                let remedy = "set `rule = \"acc\"` in the split to score by accuracy";
                Err(format!(
                    "its metrics are {}, but only `acc` and `acc_norm` are known: {remedy}",
                    names.join(", ")
                ))
            }
        }
    }

    /// Merges the few-shot entries of the split and the task; the split's entries override the task's.
    fn fewshot(&self, own: Option<Fewshot>) -> Result<Option<Fewshot>, String> {
        let asked = self.text("num_fewshot")?.map(|number| number.parse::<usize>());
        let asked = asked.transpose().map_err(|_| "`num_fewshot` must be a number".to_owned())?;
        let number = own.as_ref().and_then(|own| own.number).or(asked).unwrap_or(0);
        if number == 0 {
            return match own {
                Some(own) if own.number.is_none() => {
                    Err("`fewshot.number` must be the number of examples".to_owned())
                }
                _ => Ok(None),
            };
        }
        let none = Map::new();
        let config = self.given("fewshot_config").and_then(Value::as_object).unwrap_or(&none);
        let unread =
            |(key, value): &(&String, &Value)| !value.is_null() && !READ_OF_FEWSHOT.contains(&key.as_str());
        if let Some((key, _)) = config.iter().find(unread) {
            return Err(format!(
                "`fewshot_config.{key}` is not supported: `fewshot.number = 0` uses no examples"
            ));
        }
        let of_config = |key: &str| config.get(key).and_then(Value::as_str);
        let first = match of_config("sampler") {
            None | Some("default") => false,
            Some("first_n") => true,
            Some(other) => {
                return Err(format!("`fewshot_config.sampler` is `{}`, which is unknown", excerpt(other)));
            }
        };
        let text = |key: &str| self.given(key).and_then(Value::as_str);
        let source = of_config("split").or(text("fewshot_split"));
        let own = own.unwrap_or_default();
        if own.files.is_empty() {
            let source = source
                .or(text("training_split"))
                .map_or(String::new(), |name| format!(" of its split `{name}`"));
            return Err(format!(
                "each question follows {number} examples: `fewshot.files` must name the files{source}"
            ));
        }
        Ok(Some(Fewshot {
            number: Some(number),
            first: own.first.or(Some(first)),
            delimiter: own.delimiter.or(self.text("fewshot_delimiter")?),
            own: own.own.or(Some(source == text("test_split"))),
            ..own
        }))
    }
}

/// Returns the name of the Python function that computes a value; `None` for other values.
fn function(value: &Value) -> Option<&str> {
    value.get("!function")?.as_str()
}

/// Returns the keys of a file and its includes, up to `left` levels deep; the file's own keys override included ones.
fn load(path: &Path, left: usize) -> Result<Map<String, Value>, Error> {
    let text = rows::read_text(path)?;
    let fault = |reason: &dyn fmt::Display| Error::of(path, format!("not valid YAML ({reason})"));
    let documents = Yaml::load_from_str(&text).map_err(|reason| fault(&reason))?;
    let keys = documents.first().map(value).transpose().map_err(|reason| Error::of(path, reason))?;
    let Some(Value::Object(mut keys)) = keys else { return Err(fault(&"it must have keys")) };
    let included = match keys.remove("include") {
        None => Vec::new(),
        Some(Value::Array(names)) => names,
        Some(name) => vec![name],
    };
    let mut all = Map::new();
    for name in included {
        let name = name.as_str().filter(|_| left > 0);
        let name =
            name.ok_or_else(|| Error::of(path, "`include` must name a file that does not include this one"))?;
        all.append(&mut load(&path.parent().unwrap_or(Path::new("")).join(name), left - 1)?);
    }
    all.append(&mut keys);
    Ok(all)
}

/// Converts a node to JSON; a Python function becomes an object with the key `!function`.
fn value(node: &Yaml<'_>) -> Result<Value, String> {
    Ok(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::Bool(*value),
        Yaml::Value(Scalar::Integer(number)) => Value::from(*number),
        Yaml::Value(Scalar::FloatingPoint(number)) => Value::from(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => Value::from(text.as_ref()),
        Yaml::Sequence(members) => members.iter().map(value).collect::<Result<_, _>>()?,
        Yaml::Mapping(members) => {
            let member = |(key, member): (&Yaml<'_>, &Yaml<'_>)| {
                let key = match value(key)? {
                    Value::String(key) if key == "<<" => {
                        return Err(
                            "`<<`, which merges keys, is not supported: write out the keys".to_owned()
                        );
                    }
                    Value::String(key) => key,
                    other => other.to_string(),
                };
                let member = match (key.as_str(), member) {
                    // the harness takes a mapping's values, in the order of the file
                    ("doc_to_choice", Yaml::Mapping(choices)) => {
                        choices.values().map(value).collect::<Result<_, _>>()?
                    }
                    _ => value(member)?,
                };
                Ok((key, member))
            };
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
        Yaml::Tagged(tag, inner) if tag.suffix == "function" => {
            serde_json::json!({ "!function": value(inner)? })
        }
        Yaml::Tagged(tag, _) => return Err(format!("the tag `{}` is unknown", excerpt(&tag.to_string()))),
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => {
            return Err("it has a value that cannot be read".to_owned());
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::splits::BadRows;
    use crate::splits::language::Texts;
    use crate::test_files::shown;

    /// Reads `rows` with the task in the first of `files`; `more` is added to the split.
    fn read(files: &[(&str, &str)], rows: &str, more: &str) -> Result<Texts, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files.iter().chain(&[("rows.jsonl", rows)]) {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let text = format!("from = 'lm-eval:{}'\nfiles = ['rows.jsonl']\n{more}", files[0].0);
        let mut split: SplitFiles = toml::from_str(&text).unwrap();
        split.translate(folder.path()).map_err(|fault| shown(&fault, folder.path()))?;
        split.validate()?;
        split
            .read(folder.path(), &mut BadRows::default())
            .unwrap()
            .map_err(|fault| shown(&fault, folder.path()))
    }

    const TASK: &str = "task: t\noutput_type: multiple_choice\ndoc_to_text: \"{{q}}\"\ndoc_to_target: label\n\
                        doc_to_choice: [\"no\", \"yes\"]\nmetric_list: [{metric: acc}]\n";
    const ROW: &str = "{\"q\": \"Is it?\", \"label\": true}\n";

    #[test]
    fn included_files_are_followed_and_own_keys_come_first() {
        let own = "include: middle.yaml\ntarget_delimiter: \"\"\n";
        let files = [
            ("own.yaml", own),
            ("middle.yaml", "include: [_base]\ndoc_to_text: \"Q: {{q}}\"\n"),
            ("_base", &TASK.replace("[\"no\", \"yes\"]", "{z: \"no\", a: \"yes\"}")), // choices in the order of the file
        ];
        let Texts::Questions(questions) = read(&files, ROW, "").unwrap() else { panic!("questions") };
        let parts = questions[0].parts();
        assert_eq!((parts[1].context.as_str(), parts[1].continuation.as_str()), ("Q: Is it?", "yes"));
        assert_eq!(questions[0].answer, 1);
        let circle = [("own.yaml", "include: own.yaml\n")];
        assert!(read(&circle, ROW, "").unwrap_err().contains("`include` must name a file"));
    }

    /// Each message names the refused key and the remedy.
    #[test]
    fn what_is_not_done_here_is_refused_by_name() {
        for (line, more, expected) in [
            (
                "doc_to_text: !function utils.doc_to_text",
                "",
                "`t.yaml`: `doc_to_text` is the Python function `utils.doc_to_text`, which is not run: write a YAML file next to it with the lines `include: t.yaml` and `doc_to_text: \"...\"`, a template of the rows' fields",
            ),
            (
                "doc_to_choice: !function utils.choices",
                "",
                "`doc_to_choice` is the Python function `utils.choices`",
            ),
            ("process_docs: !function utils.process_docs", "", "set `process_docs = \"done\"` in the split"),
            (
                "process_results: !function utils.results",
                "",
                "and `process_results: null`, if it is not needed",
            ),
            (
                "output_type: generate_until",
                "",
                "`output_type` is `generate_until`: expected multiple_choice, loglikelihood or loglikelihood_rolling",
            ),
            ("group: g", "", "this is a group of tasks"),
            (
                "metric_list: [{metric: mcc}]",
                "",
                "its metrics are `mcc`, but only `acc` and `acc_norm` are known: set `rule = \"acc\"`",
            ),
            (
                "num_fewshot: 2\nfewshot_split: dev",
                "",
                "each question follows 2 examples: `fewshot.files` must name the files of its split `dev`",
            ),
            ("", "fewshot = { files = ['rows.jsonl'] }", "`fewshot.number` must be the number of examples"),
            (
                "",
                "fewshot = { number = 2, files = ['rows.jsonl'] }",
                "`rows.jsonl`, line 1: it needs 2 examples from `fewshot.files`, which have 0",
            ),
            (
                "",
                "choices = { kind = 'jsonl', choices = 'q', answer = { always = 1 } }",
                "neither `choices` nor `documents`",
            ),
            (
                "doc_to_text: \"{{x}}\"",
                "",
                "`rows.jsonl`, line 1: template `{{x}}` uses `x`, which the row lacks: it has `label`, `q`",
            ),
            ("doc_to_target: q", "", "its answer is `Is it?`, expected one of `no`, `yes`"),
            ("doc_to_target: 2", "", "its answer is `2`, expected a number from 0 to 1"),
            ("doc_to_text: !other x", "", "the tag `!other` is unknown"),
            ("<<: {target_delimiter: \"\"}", "", "`t.yaml`: `<<`, which merges keys, is not supported"),
            ("a: [", "", "not valid YAML"),
        ] {
            let key = format!("{}:", line.split(':').next().unwrap());
            let kept = TASK.lines().filter(|own| line.is_empty() || !own.starts_with(&key));
            let text = kept.map(|own| format!("{own}\n")).collect::<String>() + line + "\n";
            let found = read(&[("t.yaml", &text)], ROW, more).unwrap_err();
            assert!(found.contains(expected), "{line}{more}: {found}");
        }
        let done = TASK.to_owned() + "process_docs: !function utils.process_docs\n";
        assert!(read(&[("t.yaml", &done)], ROW, "process_docs = 'done'").is_ok());
    }
}
