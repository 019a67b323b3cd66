//! Checks the tables of `experiments/REFERENCE.md` against the code: keys and values of a setup's file, families, rankings, controls,
//! attention types, kinds of ablation and recipes. The first cell of a row holds its names in backticks.
#![expect(clippy::unwrap_used, reason = "a page or a file that cannot be read should fail the test")]
use std::collections::BTreeSet;
use std::fs;

use clap::{Arg, Args, Command, ValueEnum};
use core_masking::families::{CLASSIFIERS, LANGUAGE_MODELS, TRANSLATORS};
use experiment::{AblationKind, SharedArgs};
use records::{Attention, Method, Order};
use subject::Description;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Tasks, with the letter that marks each in the second cell of a row.
const TASKS: [(char, &str); 3] = [('T', "translation"), ('C', "classification"), ('L', "language-modelling")];

/// Heading on the page, tasks, and table in a setup's file. In a table for several tasks, the second cells name the tasks with the key.
const SECTIONS: [(&str, &str, &str); 24] = [
    ("The whole file", "TCL", ""),
    ("`[data]`", "TCL", "data"),
    ("`grammar`", "TCL", "data.grammar"),
    ("`repeats`", "L", "data.repeats"),
    ("`[data.splits]`", "TCL", "data.splits.x"),
    ("`[data.format]`", "C", "data.format"),
    ("`[data.format]`", "C", "data.splits.x.format"),
    ("`holdout`", "C", "data.holdout"),
    ("`documents`", "L", "data.splits.x.documents"),
    ("`sample`", "L", "data.splits.x.documents.sample"),
    ("`choices`", "L", "data.splits.x.choices"),
    ("`answer`", "L", "data.splits.x.choices.answer"),
    ("`fewshot`", "L", "data.splits.x.fewshot"),
    ("`[windows]`", "L", "windows"),
    ("`[score]`", "TCL", "score"),
    ("`[checkpoint]`", "TCL", "checkpoint"),
    ("`[model]`", "TCL", "model"),
    ("`image`", "C", "model.image"),
    ("`[tokenizer]`", "TCL", "tokenizer"),
    ("`[training]`", "TCL", "training"),
    ("`blocks`", "L", "training.blocks"),
    ("`[dynamics]`", "TCL", "dynamics"),
    ("`[functions]`", "TCL", "functions"),
    ("`[decoding]`", "T", "decoding"),
];

type Names = BTreeSet<String>;

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(ToOwned::to_owned).collect()
}

/// Returns the code spans of a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the cells of the rows under a heading whose first cell has a name; with `mark`, only of rows that have it in their second cell.
fn rows(heading: &str, mark: Option<&str>) -> Vec<Vec<String>> {
    let page = fs::read_to_string(format!("{ROOT}/experiments/REFERENCE.md")).unwrap();
    let is_heading = |line: &&str| line.starts_with('#') && line.trim_start_matches('#').trim() == heading;
    let below = page.lines().skip_while(|line| !is_heading(line)).skip(1);
    let table = below.take_while(|line| !line.starts_with("## ") && !line.starts_with("### "));
    let lines = table.filter_map(|line| line.strip_prefix("| "));
    let cells = lines.map(|line| line.split(" | ").map(ToOwned::to_owned).collect::<Vec<_>>());
    let is_meant = |row: &Vec<String>| row[0].contains('`') && mark.is_none_or(|mark| row[1].contains(mark));
    let rows: Vec<_> = cells.filter(is_meant).collect();
    assert!(!rows.is_empty(), "no table under {heading} {}", mark.unwrap_or_default());
    rows
}

fn names_on_page(heading: &str, mark: Option<&str>) -> Names {
    names(rows(heading, mark).iter().flat_map(|row| code(&row[0])))
}

/// Returns the error message for a setup's file with `line` in `table`.
fn refusal(task: &str, table: &str, line: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe.toml");
    let head = if line.starts_with("task ") { String::new() } else { format!("task = \"{task}\"\n") };
    let table = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
    fs::write(&path, format!("{head}{table}{line}\n")).unwrap();
    Description::read(&path).unwrap_err().to_string()
}

/// Returns the allowed keys or values, as listed in the error message for an unknown one.
fn allowed(refusal: &str) -> Names {
    match refusal.split_once("unknown").and_then(|(_, said)| said.split_once("expected")) {
        Some((_, expected)) => names(code(expected)),
        // if keys depend on each other, the message shows each form: `{ always = 1 }`
        None => {
            let mut before: Vec<&str> = refusal.split(" = ").collect();
            before.pop();
            names(before.into_iter().filter_map(|before| before.rsplit([' ', '{']).next()))
        }
    }
}

#[test]
fn the_keys_and_values_of_each_table_are_those_that_the_code_accepts() {
    for (heading, tasks, table) in SECTIONS {
        for (letter, task) in TASKS.into_iter().filter(|(letter, _)| tasks.contains(*letter)) {
            let letter = letter.to_string();
            let mark = (tasks.len() > 1).then_some(letter.as_str());
            let keys = allowed(&refusal(task, table, "zz = 1"));
            assert_eq!(
                names_on_page(heading, mark),
                keys,
                "{heading}, {task}: left the page, right the code"
            );
            for row in rows(heading, mark) {
                let quoted = row[1..].iter().flat_map(|cell| code(cell)).filter(|code| code.starts_with('"'));
                let on_page = names(quoted.map(|code| code.trim_matches('"')));
                for key in code(&row[0]) {
                    let refusal = refusal(task, table, &format!("{key} = \"?\""));
                    let values =
                        if refusal.contains("unknown variant") { allowed(&refusal) } else { Names::new() };
                    assert_eq!(on_page, values, "values of {heading} {key}: left the page, right the code");
                    let nested = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
                    let is_table = refusal.contains("expected struct");
                    assert!(!is_table || SECTIONS.iter().any(|(.., known)| *known == nested), "{nested}");
                }
            }
        }
    }
}

#[test]
fn the_families_are_those_of_each_task() {
    let known = [
        names(TRANSLATORS.iter().map(|family| family.model_type)),
        names(CLASSIFIERS.iter().map(|family| family.model_type)),
        names(LANGUAGE_MODELS.iter().map(|family| family.model_type)),
    ];
    for ((letter, _), known) in TASKS.into_iter().zip(known) {
        assert_eq!(names_on_page("Families", Some(&letter.to_string())), known);
    }
}

/// `-cola` after `minilm-sst2` is `minilm-cola`.
#[test]
fn the_setups_are_the_files_of_experiments() {
    let mut on_page = Names::new();
    for row in rows("Setups", None) {
        let mut stem = "";
        for name in code(&row[0]) {
            if !name.starts_with('-') {
                stem = name.rsplit_once('-').map_or(name, |(stem, _)| stem);
            }
            on_page.insert(if name.starts_with('-') { format!("{stem}{name}") } else { name.to_owned() });
        }
    }
    let files = fs::read_dir(format!("{ROOT}/experiments")).unwrap().map(|file| file.unwrap().file_name());
    let files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(on_page, names(files.iter().filter_map(|name| name.strip_suffix(".toml"))));
}

#[test]
fn orders_searches_controls_attention_types_and_kinds_of_ablation_are_those_of_the_command_line() {
    let orders = Order::all().iter().map(|order| order.name());
    assert_eq!(names_on_page("Rankings and searches", None), names(orders));
    let controls = Method::ALL.into_iter().filter(|method| *method != Method::Gates);
    assert_eq!(names_on_page("Controls", None), names(controls.map(Method::name)));
    assert_eq!(names_on_page("Names of heads", None), names(Attention::ALL.map(Attention::name)));
    let kinds: Vec<_> =
        AblationKind::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
    assert_eq!(names_on_page("Kinds of ablation", None), names(kinds.iter().map(|kind| kind.get_name())));
}

/// Returns a row of the table of options: the option, its default, and its help without the default.
fn option_row(option: &Arg) -> Option<String> {
    let long = option.get_long()?;
    let help = option.get_help()?.to_string();
    let (help, told) = match help.split_once(" [default: ") {
        Some((help, told)) => (help, told.trim_end_matches(']').to_owned()),
        None => (help.as_str(), String::new()),
    };
    let set = option.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = match (told, set.collect::<Vec<_>>().join(",")) {
        (told, set) if told.is_empty() && (set.is_empty() || set == "false") => "off".to_owned(),
        (told, set) if told.is_empty() => set,
        (told, _) => told,
    };
    Some(format!("| `--{long}` | {default} | {help} |\n"))
}

/// `GOLDEN=write cargo test -p experiment --test reference` writes the table.
#[test]
fn the_table_of_options_is_what_help_prints() {
    const MARKS: [&str; 2] = ["<!-- options: begin -->\n", "<!-- options: end -->"];
    let path = format!("{ROOT}/experiments/REFERENCE.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let after = rest.split_once(MARKS[1]).unwrap().1;
    let command = SharedArgs::augment_args(Command::new("any"));
    let rows: String = command.get_arguments().filter_map(option_row).collect();
    let table = format!("| option | default | meaning |\n|---|---|---|\n{rows}");
    let expected = format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1]);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), expected, "GOLDEN=write writes the table");
}

#[test]
fn every_command_has_a_row() {
    let justfile = fs::read_to_string(format!("{ROOT}/justfile")).unwrap();
    let groups = justfile.split("[group('").skip(1).filter(|group| !group.starts_with('9'));
    let recipes = groups.filter_map(|group| group.split_once("\n")?.1.split([' ', ':']).next());
    let rows = rows("What to run", None);
    let on_page = rows.iter().flat_map(|row| code(&row[0])).filter_map(|code| code.split(' ').nth(1));
    // benches and the set-up of libtorch are for developers
    let (on_page, recipes) =
        (on_page.filter(|name| *name != "bench"), recipes.filter(|name| !name.starts_with("setup")));
    assert_eq!(names(on_page), names(recipes));
}
