//! Everything that is drawn of a small folder of made-up results, beside golden files. `GOLDEN=write cargo test -p plotting`
//! writes these anew.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use records::visible::one_line;
use serde_json::Value;

use crate::chart::Chart;
use crate::data::subject::Subject;
use crate::error::LeftOut;
use crate::judge::{Adjustment, Criterion};
use crate::paint;
use crate::paper::Paper;
use crate::registry::{ARTEFACTS, Asked, Selection};
use crate::source::{Source, subjects};
use crate::table::Table;
use crate::view::{Context, summary};
use crate::write::Sheet;
use crate::write::documents::{of_table, render};

const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub fn paper() -> Paper {
    Paper::read(&folder("../../data/paper")).unwrap()
}

/// Each sheet with the name of its golden file.
fn sheets(results: &Path) -> Vec<(String, Sheet)> {
    let (paper, mut left_out) = (paper(), LeftOut::default());
    let context = Context { criterion: CRITERION, paper: &paper };
    let asked = Asked { context, results, attention: Selection::Paper, against: None, is_all: true };
    let mut sheets = Vec::new();
    for subject in subjects(results).unwrap() {
        let source = Source::subject(results, &subject);
        for artefact in ARTEFACTS {
            let drawn = artefact.sheets(&source, &asked, &mut left_out).unwrap().unwrap_or_default();
            let drawn = drawn.into_iter().map(|(_, sheet)| (format!("{subject}/{}", sheet.stem), sheet));
            sheets.extend(drawn.filter(|(_, sheet)| sheet.chart.is_some() || !sheet.tables.is_empty()));
        }
    }
    sheets
}

/// A chart as text: a line for each of its fields, and for each layer.
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

/// Compares with a golden file, or writes it.
fn check(name: &str, found: &str) {
    let path = folder("tests/golden").join(name);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let differs = || expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    let (path, differs) = (path.display(), differs());
    assert!(expected == found, "{path} is not what is drawn: {differs:?}; GOLDEN=write writes it anew");
}

#[test]
fn what_is_drawn_is_what_the_golden_files_say() {
    let sheets = sheets(&folder("tests/results"));
    let names: BTreeSet<&String> = sheets.iter().map(|(name, _)| name).collect();
    assert!(names.len() == sheets.len() && names.len() > 30, "{names:?}");
    for (name, sheet) in &sheets {
        let charts: String = sheet.chart.iter().chain(&sheet.frames).map(text).collect();
        let terminal = anstream::adapter::strip_str(&sheet.terminal()).to_string();
        let [markdown, latex] = ["md", "tex"].map(|extension| sheet.document(extension).unwrap());
        // pdflatex knows few other characters, and which depends on its packages
        let foreign = latex.lines().find(|line| !line.is_ascii());
        assert_eq!(foreign, None, "{name}: `latex` in documents.rs has no command for a character");
        let parts = [markdown, latex, terminal, charts];
        check(&format!("{name}.golden"), &parts.join("\n=====\n"));
    }
}

#[test]
fn every_artefact_names_a_recipe_that_is_there() {
    let justfile = fs::read_to_string(folder("../../justfile")).unwrap();
    for artefact in ARTEFACTS {
        let is_own = |line: &str| line.split([' ', ':']).next() == Some(artefact.recipe);
        assert!(justfile.lines().any(is_own), "{}: no recipe `{}`", artefact.name, artefact.recipe);
    }
}

#[test]
fn the_summary_is_what_the_golden_file_says() {
    let (paper, results, mut left_out) = (paper(), folder("tests/results"), LeftOut::default());
    let names = subjects(&results).unwrap();
    let all: Vec<_> =
        names.iter().map(|name| Subject::read(&results, name, &mut left_out).unwrap()).collect();
    let page = summary::page(&all, Context { criterion: CRITERION, paper: &paper }).unwrap().unwrap();
    check("summary.golden", &page[page.find("## ").unwrap()..]);
    // the template has the heads of its tables, Rust their rows
    let bars = |line: &str| line.replace(r"\|", "").matches('|').count();
    for (line, next) in page.lines().zip(page.lines().skip(1)) {
        let is_table = line.starts_with('|') && next.starts_with('|');
        assert!(!is_table || bars(line) == bars(next), "{line}\n{next}");
    }
    assert!(left_out.faults.is_empty(), "{:?}", left_out.faults);
}

/// A text of a drawing and the box around it, left, right, top and bottom, in units of the drawing.
fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
    let attribute = |element: &str, name: &str| {
        let rest = element.split_once(&format!("{name}=\"")).map_or("", |(_, rest)| rest);
        rest.split('"').next().unwrap().to_owned()
    };
    let parse = |element: &str| {
        let number = |name| attribute(element, name).parse::<f64>().unwrap();
        let (x, y, size) = (number("x"), number("y"), number("font-size"));
        let text = element.split_once('>').unwrap().1.split('<').next().unwrap().trim().replace("&lt;", "<");
        let length = paint::canvas::width(&text, size * 72.0 / 600.0) * 600.0 / 72.0;
        let before = match attribute(element, "text-anchor").as_str() {
            "middle" => length / 2.0,
            "end" => length,
            _ => 0.0,
        };
        // Digits are 0.711 em high; the top of a text that is written upwards points to the left.
        let sides = if element.contains("rotate(270") {
            [x + 0.05 * size, x + 0.76 * size, y - length + before, y + before]
        } else {
            [x - before, x - before + length, y + 0.05 * size, y + 0.76 * size]
        };
        (text, sides)
    };
    svg.split("<text ").skip(1).map(parse).collect()
}

#[test]
fn no_text_overlaps_another_or_leaves_the_page_and_the_legend_takes_a_fifth_at_most() {
    let mut charts = 0;
    for (name, sheet) in sheets(&folder("tests/results")) {
        let Some(chart) = &sheet.chart else { continue };
        let svg = paint::svg(chart);
        let size = svg.split_once("viewBox=\"0 0 ").unwrap().1.split('"').next().unwrap().to_owned();
        let (width, height) = size
            .split_once(' ')
            .map(|(x, y)| (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap()))
            .unwrap();
        let texts = boxes(&svg);
        for (index, (text, [left, right, top, bottom])) in texts.iter().enumerate() {
            let is_inside = *left >= 0.0 && *right <= width && *top >= 0.0 && *bottom <= height;
            assert!(is_inside, "{name}: `{text}` leaves the page");
            let meets = |[start, end, above, below]: &[f64; 4]| {
                left < end && start < right && top < below && above < bottom
            };
            let other = texts[..index].iter().find(|(_, sides)| meets(sides));
            assert!(other.is_none(), "{name}: `{text}` overlaps {other:?}");
        }
        assert!(paint::header(chart) <= 0.2, "{name}: the legend takes {}", paint::header(chart));
        charts += 1;
    }
    assert!(charts > 15, "{charts}");
}

#[test]
fn texts_show_as_themselves_in_every_form() {
    let evil = "<b>&amp; 5 % of a_b {x} $y$ [z](u) \u{1b}[2J\nnext";
    let table = Table {
        title: evil.to_owned(),
        columns: vec![evil.to_owned()],
        column_groups: vec![(evil.to_owned(), 1)],
        rows: vec![crate::table::Row::new(evil, [evil])],
        ..Table::default()
    };
    let table = table.mark(evil.to_owned()).note(evil).remark(evil);
    let chart = Chart::new("", "", evil).entries([crate::chart::Entry::text("<&>\u{1b}")]).note(evil);
    let claim = render("claim.md", of_table(&table)).unwrap();
    let sheet = Sheet {
        frames: Vec::new(),
        chart: Some(chart),
        stem: "x".to_owned(),
        tables: vec![table],
        is_printed: true,
    };
    let svg = paint::svg(sheet.chart.as_ref().unwrap());
    assert!(svg.contains("<title>. &lt;b&gt;&amp;amp; 5 %") && svg.contains("&lt;&amp;&gt;\\u{1b}"), "{svg}");
    let [markdown, latex] = ["md", "tex"].map(|extension| sheet.document(extension).unwrap());
    let escaped = r"\<b>&amp;amp; 5 % of a\_b {x} \$y\$ \[z](u) \\u{1b}\[2J next";
    assert_eq!(markdown.matches(escaped).count(), 10, "{markdown}");
    assert_eq!(claim.matches(escaped).count(), 5, "{claim}");
    let escaped = r"$<$b$>$\&amp; 5 \% of a\_b \{x\} \$y\$ [z](u) \textbackslash{}u\{1b\}[2J next";
    assert_eq!(latex.matches(escaped).count(), 9, "{latex}");
    // a comment shows nothing, so it need not be escaped, but it must end with its line
    assert!(latex.contains(&format!("% {}\n", one_line(evil))), "{latex}");
    assert!([markdown, claim, latex, sheet.terminal(), svg].iter().all(|text| !text.contains('\u{1b}')));
}

/// A folder of results may have any name; it stands in front of what could not be checked.
#[test]
fn names_of_folders_show_as_themselves_in_the_summary() {
    let results = tempfile::tempdir().unwrap();
    let folder_of = |subject: &str| results.path().join(subject);
    let (name, escaped) = ("a_b *c* [d](e) <f>", r"a\_b \*c\* \[d](e) \<f>: split unknown");
    fs::create_dir(folder_of(name)).unwrap();
    let file = "ablate-one.csv";
    fs::copy(folder("tests/results/tiny-inference").join(file), folder_of(name).join(file)).unwrap();
    let paper = paper();
    let subject = Subject::read(results.path(), name, &mut LeftOut::default()).unwrap();
    let page = summary::page(&[subject], Context { criterion: CRITERION, paper: &paper }).unwrap().unwrap();
    assert!(page.contains(&format!("## Files that could not be checked\n\n- {escaped}")), "{page}");
    assert!(!page.contains(name), "{page}");
}
