//! Compares everything drawn from synthetic results with golden files; `GOLDEN=write cargo test -p plotting` updates them.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::findings::source::subjects;
use crate::findings::{Adjustment, Criterion, Folders, LeftOut, Source, SubjectResults, tiny};
use charts::chart::Chart;
use charts::legible;
use charts::write::{Format, Sheet};
use serde_json::Value;
use test_support::golden;

use crate::artefacts::ARTEFACTS;
use crate::view::{Request, summary};

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn sheets(folders: &Folders) -> Vec<(String, Sheet)> {
    let (request, mut left_out) = (Request::everything(CRITERION, folders), LeftOut::default());
    let mut sheets = Vec::new();
    for subject in subjects(&folders.results).unwrap() {
        let source = Source::subject(folders, &subject);
        for artefact in ARTEFACTS {
            let drawn = artefact.sheets(&source, &request, &mut left_out).unwrap().unwrap_or_default();
            let drawn = drawn.into_iter().map(|(_, sheet)| (format!("{subject}/{}", sheet.stem), sheet));
            sheets.extend(drawn.filter(|(_, sheet)| !sheet.is_empty()));
        }
    }
    assert!(left_out.faults.is_empty(), "{:?}", left_out.faults);
    sheets
}

/// Formats a chart as text, with a line per field and per layer.
fn text(chart: &Chart) -> String {
    fn rounded(value: Value) -> Value {
        match value {
            Value::Number(number) => ((number.as_f64().unwrap() * 1e6).round() / 1e6).into(),
            Value::Array(values) => values.into_iter().map(rounded).collect(),
            Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, rounded(value))).collect(),
            value => value,
        }
    }
    fn push(text: &mut String, indent: usize, value: &Value) {
        for (name, value) in value.as_object().unwrap() {
            let parts =
                value.as_array().filter(|_| ["panels", "layers", "notes", "legend"].contains(&name.as_str()));
            let Some(parts) = parts else {
                *text += &format!("{:indent$}{name}: {value}\n", "");
                continue;
            };
            for part in parts {
                *text += &format!("{:indent$}{name}:", "");
                if name == "panels" {
                    *text += "\n";
                    push(text, indent + 2, part);
                } else {
                    *text += &format!(" {part}\n");
                }
            }
        }
    }
    let mut written = String::new();
    push(&mut written, 0, &rounded(serde_json::to_value(chart).unwrap()));
    written
}

#[test]
fn everything_drawn_equals_the_golden_files() {
    let sheets = sheets(&tiny());
    let mut texts = BTreeMap::from([("summary".to_owned(), without_head(&summary_page()))]);
    for (name, sheet) in &sheets {
        assert_eq!(sheet.chart.as_ref().and_then(legible::fault), None, "{name}");
        let charts: String = sheet.chart.iter().map(text).collect();
        let terminal = anstream::adapter::strip_str(&sheet.terminal()).to_string();
        let [markdown, latex] =
            ["md", "tex"].map(|extension| sheet.document(extension, &Format::ALL).unwrap());
        // pdflatex supports few other characters, and which ones depends on its packages
        let foreign = latex.lines().find(|line| !line.is_ascii());
        assert_eq!(foreign, None, "{name}: `latex` in documents.rs has no command for a character");
        texts.insert(name.clone(), [markdown, latex, terminal, charts].join("\n=====\n"));
    }
    assert!(texts.len() == sheets.len() + 1 && sheets.len() > 30, "{:?}", texts.keys());
    golden::check(&folder("tests/golden"), &texts);
}

#[test]
fn every_artefact_names_an_existing_recipe() {
    let justfile = fs::read_to_string(folder("../../justfile")).unwrap();
    for artefact in ARTEFACTS {
        let is_own = |line: &str| line.split([' ', ':']).next() == Some(artefact.recipe);
        assert!(justfile.lines().any(is_own), "{}: no recipe `{}`", artefact.name, artefact.recipe);
        let installed = artefact.recipe.trim_start_matches("reproduce-");
        assert!(headcount::find(installed).is_some(), "{}: no command `{installed}`", artefact.name);
    }
}

fn summary_page() -> String {
    let (folders, mut left_out) = (tiny(), LeftOut::default());
    let names = subjects(&folders.results).unwrap();
    let all: Vec<_> = names.iter().map(|name| SubjectResults::read(&folders, name, &mut left_out)).collect();
    assert!(left_out.faults.is_empty(), "{:?}", left_out.faults);
    summary::page(&all, CRITERION).unwrap().unwrap()
}

fn without_head(page: &str) -> String {
    page[page.find("## ").unwrap()..].to_owned()
}

/// Column names are in the template, rows are written by Rust.
#[test]
fn tables_of_the_summary_have_equal_numbers_of_cells_and_explanations_of_at_most_forty_words() {
    let page = summary_page();
    let bars = |line: &str| line.replace(r"\|", "").matches('|').count();
    for (line, next) in page.lines().zip(page.lines().skip(1)) {
        let is_table = line.starts_with('|') && next.starts_with('|');
        assert!(!is_table || bars(line) == bars(next), "{line}\n{next}");
    }
    let explained: Vec<&str> = page.lines().filter(|line| line.starts_with("How to read it: ")).collect();
    assert_eq!(explained.len(), page.lines().filter(|line| line.starts_with("## ")).count());
    let long = explained.iter().find(|line| line.split_whitespace().count() > 40);
    assert_eq!(long, None);
}

/// A results folder may have any name, which appears in the list of unchecked files.
#[test]
fn names_of_folders_are_escaped_in_the_summary() {
    let results = tempfile::tempdir().unwrap();
    let folder_of = |subject: &str| results.path().join(subject);
    let (name, escaped) = ("a_b *c* [d](e) <f>", r"a\_b \*c\* \[d](e) \<f>: split unknown");
    fs::create_dir(folder_of(name)).unwrap();
    let file = "ablate-one.csv";
    fs::copy(tiny().results.join("tiny-inference").join(file), folder_of(name).join(file)).unwrap();
    let folders = Folders { results: results.path().to_owned(), ..tiny() };
    let subject = SubjectResults::read(&folders, name, &mut LeftOut::default());
    let page = summary::page(&[subject], CRITERION).unwrap().unwrap();
    assert!(page.contains(&format!("## Files that could not be checked\n\n- {escaped}")), "{page}");
    assert!(!page.contains(name), "{page}");
}
