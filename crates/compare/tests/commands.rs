//! Runs whole commands on small logs.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use records::{AblationRow, Row as _, read_rows};
use serde_json::{Value, json};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("compare").unwrap().current_dir(folder).args(arguments).output().unwrap()
}

fn rows(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = run(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["rows"].as_array().unwrap().clone()
}

/// Returns the error message of a command that must fail with exactly one line, warnings aside.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.lines().filter(|line| !line.starts_with("warning: ")).collect::<Vec<_>>().join("\n");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert_eq!((said.lines().count(), output.stdout.len()), (1, 0), "{arguments:?}: {said}");
    said
}

#[track_caller]
fn assert_close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
}

fn write(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns a log of lm-evaluation-harness; `right` tells which documents are answered correctly.
fn samples(right: impl Fn(usize) -> bool, documents: usize, prompt: &str) -> String {
    let line = |id: usize| {
        json!({
            "doc_id": id, "doc": {"question": "NaN is only a text here", "subject": format!("s{}", id / 4)}, "target": "x",
            "arguments": {"gen_args_0": {"arg_0": "…"}}, "resps": [["y"]], "filtered_resps": ["y"], "filter": "none",
            "metrics": ["acc", "acc_norm"], "doc_hash": format!("d{id}"), "prompt_hash": format!("{prompt}{id}"),
            "acc": f64::from(u8::from(right(id))), "acc_norm": 0.5,
        })
    };
    (0..documents).map(|id| format!("{}\n", line(id))).collect()
}

const EASY: &str = "a/model/samples_easy_2026-01-02T03-04-05.678901.jsonl";
const HARD: &str = "b/model/samples_hard_2026-01-02T03-04-05.678901.jsonl";

/// Creates two runs of two tasks: `easy` loses 5 of 30 documents and gains 1, `hard` is unchanged.
fn two_runs() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (run, easy) in [("a", 0..20), ("b", 5..21)] {
        let file = |name: &str| format!("{run}/model/{name}_2026-01-02T03-04-05.678901");
        write(&folder, &(file("samples_easy") + ".jsonl"), &samples(|id| easy.contains(&id), 30, "p"));
        write(&folder, &(file("samples_hard") + ".jsonl"), &samples(|id| id % 2 == 0, 40, "p"));
        write(&folder, &(file("results") + ".json"), "{}");
    }
    folder
}

/// The p-value of `easy` is 2 (1 + 6) / 2^6, as in `stats::means`; Holm doubles it. The mean over tasks averages 20/30 and 1/2.
#[test]
fn two_folders_of_logs_have_a_row_for_each_task_and_their_mean() {
    let folder = two_runs();
    let found = rows(folder.path(), &["a", "b"]);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(found.iter().map(|row| text(row, "task")).collect::<Vec<_>>(), ["easy", "hard", ""]);
    assert_close(&found[0]["p_value"], 0.21875);
    assert_close(&found[0]["p_adjusted"], 0.4375);
    assert_eq!((&found[1]["p_value"], &found[1]["documents"]), (&json!(1.0), &json!(40)));
    assert_close(&found[2]["base"], 7.0 / 12.0);
    assert_close(&found[2]["p_value"], 0.21875); // the only task that changes decides

    let output = run(folder.path(), &["a", "b"]);
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(["easy ", "-0.1333", "undecided"].iter().all(|part| lines[1].contains(part)), "{table}");
    assert!(lines[3].starts_with("mean over tasks") && table.contains("(Holm)."), "{table}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "warning: comparing `acc`, the first of acc, acc_norm: --metric selects another\n");
}

#[test]
fn the_gate_tells_worse_undecided_and_no_worse_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.jsonl", &samples(|id| id % 2 == 0, 1000, "p"));
    write(&folder, "worse.jsonl", &samples(|id| id % 4 == 0, 1000, "p"));
    write(&folder, "unclear.jsonl", &samples(|id| id % 2 == 0 && id > 20, 1000, "p"));
    let code = |arguments: &[&str]| run(folder.path(), arguments).status.code();
    assert_eq!(code(&["a.jsonl", "worse.jsonl", "--gate"]), Some(3));
    assert_eq!(code(&["a.jsonl", "worse.jsonl"]), Some(0));
    assert_eq!(code(&["a.jsonl", "unclear.jsonl", "--gate"]), Some(4));
    assert_eq!(code(&["a.jsonl", "unclear.jsonl", "--gate", "--margin", "10"]), Some(0));
    assert_eq!(code(&["a.jsonl", "a.jsonl", "--gate"]), Some(0));
    assert_eq!(code(&["a.jsonl", "worse.jsonl", "--gate", "--lower-is-better"]), Some(0));
    assert_eq!(code(&["a.jsonl"]), Some(2));
    // a single document cannot be tested
    write(&folder, "one.csv", "id,score\n1,0.5\n");
    assert_eq!(code(&["one.csv", "one.csv", "--gate"]), Some(4));
}

/// The same outcomes in a log of lm-evaluation-harness, both formats of Inspect, CSV, TSV and JSON lines.
#[test]
fn all_formats_give_the_same_numbers() {
    let folder = two_runs();
    for (run, right) in [("a", 0..20), ("b", 5..21)] {
        let value = |id: usize| if right.contains(&id) { "C" } else { "I" };
        // each run gives chat messages new ids
        let input = json!([{"id": format!("message of {run}"), "role": "user", "content": "?"}]);
        let sample = |id: usize| json!({"id": id, "epoch": 1, "input": input, "scores": {"match": {"value": value(id), "answer": "x"}}});
        let header = json!({"version": 2, "eval": {"task": "easy", "model": "m"}});
        let mut log = header.clone();
        log["samples"] = (0..30).map(sample).collect();
        write(&folder, &format!("{run}.json"), &log.to_string());
        let second = |id| {
            let mut sample = sample(id);
            sample["epoch"] = 2.into();
            sample
        };
        log["samples"].as_array_mut().unwrap().extend((0..30).map(second));
        write(&folder, &format!("{run}-two-epochs.json"), &log.to_string());
        let mut zip = ZipWriter::new(fs::File::create(folder.path().join(format!("{run}.eval"))).unwrap());
        let members = (0..30).map(|id| (format!("samples/{id}_epoch_1.json"), sample(id)));
        for (name, content) in members.chain([("header.json".to_owned(), header)]) {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content.to_string().as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        let (mut csv, mut tsv, mut lines) =
            ("id,score\n".to_owned(), "name\tscore\n".to_owned(), String::new());
        for id in 0..30 {
            let score = u8::from(right.contains(&id));
            writeln!(csv, "{id},{score}").unwrap();
            // a quotation mark is text in TSV
            writeln!(tsv, "\"{id}\t{}", if score == 1 { "True" } else { "False" }).unwrap();
            writeln!(lines, "{}", json!({"id": id, "result": {"right": score == 1}})).unwrap();
        }
        write(&folder, &format!("{run}.csv"), &csv);
        write(&folder, &format!("{run}.tsv"), &tsv);
        write(&folder, &format!("{run}.jsonl"), &lines);
    }
    let numbers = |arguments: &[&str]| {
        let found = rows(folder.path(), arguments);
        ["base", "score", "p_value", "low", "high"].map(|key| found[0][key].as_f64().unwrap())
    };
    let expected = numbers(&["a", "b", "--tasks", "easy"]);
    assert_eq!(numbers(&["a.json", "b.json"]), expected);
    assert_eq!(numbers(&["a-two-epochs.json", "b.json"]), expected, "means over epochs");
    assert_eq!(numbers(&["a.eval", "b.eval"]), expected);
    assert_eq!(numbers(&["a.csv", "b.csv"]), expected);
    assert_eq!(numbers(&["a.tsv", "b.tsv", "--id", "name"]), expected);
    assert_eq!(numbers(&["a.jsonl", "b.jsonl", "--score", "result.right"]), expected);
}

/// The two rows of document 1 average to 1/2, so the scores are 1/2, 1, 0 and 1, 1, 0.
#[test]
fn samples_of_a_document_are_averaged_first() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.csv", "id,score\n1,1\n1,0\n2,1\n3,0\n");
    write(&folder, "b.csv", "id,score\n3,0\n2,1\n1,1\n");
    let found = &rows(folder.path(), &["a.csv", "b.csv"])[0];
    assert_eq!((&found["documents"], &found["base"]), (&json!(3), &json!(0.5)));
    let said = String::from_utf8(run(folder.path(), &["a.csv", "b.csv"]).stderr).unwrap();
    assert_eq!(said, "warning: `a.csv`: 1 document with several rows, which are averaged\n");
}

/// Six clusters of three documents gain together: p is 2 of 64 swaps of clusters instead of 2 of 2^18 swaps of documents.
#[test]
fn clusters_change_sides_together() {
    let folder = tempfile::tempdir().unwrap();
    let table = |score: u8| {
        (0..18).fold("id,score,page\n".to_owned(), |all, id| format!("{all}{id},{score},{}\n", id / 3))
    };
    write(&folder, "a.csv", &table(0));
    write(&folder, "b.csv", &table(1));
    let found = &rows(folder.path(), &["a.csv", "b.csv", "--cluster", "page"])[0];
    assert_eq!(
        (&found["p_value"], &found["difference"], &found["documents"]),
        (&json!(0.03125), &json!(1.0), &json!(18))
    );
    let free = &rows(folder.path(), &["a.csv", "b.csv"])[0];
    assert_close(&free["p_value"], 0.5_f64.powi(17));
}

/// Tango's interval of 14 losses and 0 gains in 1000 is -2.34 to -0.84 points for one run, which excludes the margin of 0.8. For one of two
/// runs it is -2.51 to -0.78, which does not. Four changes one way have p = 1/8, two such runs 1 - (1 - 1/8)² = 0.234, ± 0.0013.
#[test]
fn several_runs_are_compared_with_the_first_as_a_family() {
    let folder = tempfile::tempdir().unwrap();
    for (name, right) in [("a.jsonl", 500), ("b.jsonl", 486), ("c.jsonl", 504), ("d.jsonl", 496)] {
        write(&folder, name, &samples(|id| id < right, 1000, "p"));
    }
    let family = |runs: &[&str]| rows(folder.path(), &[runs, &["--margin-absolute", "0.008"]].concat());
    let (alone, both) = (family(&["a.jsonl", "b.jsonl"]), family(&["a.jsonl", "b.jsonl", "a.jsonl"]));
    assert_eq!((&alone[0]["low"], &alone[0]["high"]), (&both[0]["low"], &both[0]["high"]));
    assert_eq!((&alone[0]["verdict"], &both[0]["verdict"]), (&json!("worse"), &json!("undecided")));
    let two = family(&["a.jsonl", "c.jsonl", "d.jsonl"]);
    assert_eq!(two.iter().map(|row| &row["run"]).collect::<Vec<_>>(), ["c.jsonl", "d.jsonl"]);
    for row in &two {
        assert_close(&row["p_value"], 0.125);
        assert!((row["p_adjusted"].as_f64().unwrap() - 0.234).abs() < 0.006, "{row}");
    }
}

/// One task uses `acc`, the other `acc_norm`, which is 1/2 for each document.
#[test]
fn metrics_and_filters_can_be_chosen_for_each_task() {
    let folder = two_runs();
    let found = rows(folder.path(), &["a", "b", "--metric", "acc,hard=acc_norm", "--filter", "easy=none"]);
    let metrics: Vec<&Value> = found[..2].iter().map(|row| &row["metric"]).collect();
    assert_eq!(metrics, ["acc", "acc_norm"]);
    let said = refusal(folder.path(), &["a", "b", "--metric", "harder=acc_norm"]);
    assert!(
        said.contains("no task `harder`, which --metric or --filter names: expected one of easy, hard"),
        "{said}"
    );
}

/// Without `doc_id`, documents in a different order are matched by their hash.
#[test]
fn documents_without_an_id_are_aligned_by_their_hash() {
    let folder = two_runs();
    for run in ["a", "b"] {
        let text = fs::read_to_string(folder.path().join(EASY.replacen('a', run, 1))).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        if run == "b" {
            lines.reverse();
        }
        let text = lines.join("\n").replace("\"doc_id\"", "\"number\"");
        write(&folder, &format!("{run}.jsonl"), &(text + "\n"));
    }
    let [by_hash, by_id] = [["a.jsonl", "b.jsonl"], ["a", "b"]].map(|runs| {
        let found = rows(folder.path(), &[&runs[..], &["--metric", "acc"]].concat());
        ["documents", "base", "score", "p_value"].map(|key| found[0][key].clone())
    });
    assert_eq!(by_hash, by_id);
}

/// Options that do not apply to translations are a usage error, which clap explains.
#[test]
fn options_that_do_not_go_together_are_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.txt", "one\n");
    let options = "filter=x tasks=x id=x score=x cluster=x lower-is-better allow-missing=1 other-prompts";
    for option in options.split(' ').map(|option| format!("--{option}")) {
        let output = run(folder.path(), &["a.txt", "a.txt", "--reference", "a.txt", &option]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let name = option.split('=').next().unwrap();
        assert!(said.contains(name) && said.contains("cannot be used with"), "{said}");
    }
    assert_eq!(run(folder.path(), &["a", "b", "--score", "x", "--metric", "y"]).status.code(), Some(2));
}

/// Rows of committed results have the difference, interval and p-value that the experiment stored.
#[test]
fn rows_of_result_files_have_the_numbers_of_their_experiment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/demo-induction");
    let full = "ablate-one.csv";
    let found = &rows(&root, &[full, "ablate-one.csv#self:2:2"])[0];
    let stored: Vec<AblationRow> = read_rows(&root.join(full)).unwrap();
    let stored = stored.iter().find(|row| row.name() == "self:2:2").unwrap();
    let ends = (stored.delta_low.unwrap(), stored.delta_high.unwrap());
    for (own, expected) in
        [("base", stored.base_score), ("score", stored.score), ("low", ends.0), ("high", ends.1)]
    {
        assert_close(&found[own], expected);
    }
    assert_close(&found["margin"], 1.02_f64.ln());
    assert_eq!((&found["metric"], &found["verdict"]), (&json!("nats"), &json!("worse")));
    assert_eq!(rows(&root, &["ablate-one.csv#self:2:2", "iterative-prune.csv#all/importance/3"]).len(), 1);
    for (other, expected) in [
        ("ablate-one.csv#self:9:1", "no row `self:9:1`: expected one of base, self:1:1"),
        ("ablate-one-sample-10.csv", "`ablate-one-sample-10.csv`: its segments differ"),
        ("../demo-language/ablate-one.csv", "its segments differ from the first run's: this run has split"),
    ] {
        let said = refusal(&root, &[full, other]);
        assert!(said.contains(expected), "{other}: {said}");
    }
    for (option, values) in [
        ("--metric", &["bleu"][..]),
        ("--filter", &["none"]),
        ("--tasks", &["easy"]),
        ("--id", &["id"]),
        ("--cluster", &["layer"]),
        ("--lower-is-better", &[]),
        ("--allow-missing", &["1"]),
        ("--other-prompts", &[]),
    ] {
        let said = refusal(&root, &[&[full, full, option], values].concat());
        assert!(said.contains(&format!("takes no {option}")), "{said}");
    }
}

/// Folders may have the sign that separates file and row in their names.
#[test]
fn a_row_is_named_after_the_last_hash_sign() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/demo-induction");
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a#b");
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()) {
        if file.file_name().unwrap().to_str().unwrap().starts_with("ablate-one.") {
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }
    let found = &rows(root.path(), &["a#b/ablate-one.csv", "a#b/ablate-one.csv#self:2:2"])[0];
    assert_eq!((&found["metric"], &found["run"]), (&json!("nats"), &json!("ablate-one.csv#self:2:2")));
}

#[test]
fn the_page_has_a_forest_plot_and_shows_names_as_they_are() {
    let folder = two_runs();
    fs::rename(folder.path().join("b"), folder.path().join("<b>&")).unwrap();
    let output = run(folder.path(), &["a", "<b>&", "--html", "page.html"]);
    assert!(output.status.success());
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("<td>easy</td>") && page.contains("mean over tasks"));
    assert!(page.contains("&lt;b&gt;&amp; compared with a") && !page.contains("<b>&"));
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let folder = two_runs();
    let files = [
        ("short.jsonl", samples(|_| true, 28, "p")),
        ("other.jsonl", samples(|_| true, 30, "p").replace("\"doc_id\":", "\"doc_id\":7")),
        ("prompts.jsonl", samples(|_| true, 30, "q")),
        ("contents.jsonl", samples(|_| true, 30, "p").replace("\"d3\"", "\"d3x\"")),
        ("twice.jsonl", samples(|_| true, 30, "p") + &samples(|_| true, 1, "p")),
        ("nan.jsonl", samples(|_| true, 30, "p").replace("\"acc\":1.0", "\"acc\":NaN")),
        ("cut.jsonl", samples(|_| true, 30, "p")[..3000].to_owned()),
        ("empty.jsonl", String::new()),
        ("nan.csv", "id,score\n1,0.5\n2,nan\n".to_owned()),
        ("word.csv", "id,score\n1,0.5\n2,good\n".to_owned()),
        ("ragged.csv", "id,score\n1,0.5\n2\n".to_owned()),
        ("a.csv", "id,score\n1,0.5\n2,1\n3,1\n".to_owned()),
        ("pages.csv", "id,score,page,page\n1,0.5,p,q\n".to_owned()),
        ("no-page.csv", "id,score,page\n1,0.5,p\n2,1,\n".to_owned()),
        ("no-id.csv", "id,score\n1,0.5\n,1\n".to_owned()),
        ("a.json", "{\"eval\": {}}".to_owned()),
        ("a.eval", "not a zip".to_owned()),
        ("three.txt", "one\ntwo\nthree\n".to_owned()),
        ("two.txt", "one\ntwo\n".to_owned()),
    ];
    for (name, text) in &files {
        write(&folder, name, text);
    }
    fs::write(folder.path().join("latin.txt"), b"caf\xe9\n").unwrap();
    write(&folder, "c/samples_easy.jsonl", &files[0].1);
    write(&folder, "empty/readme.md", "");
    write(&folder, "full.jsonl", &samples(|_| true, 30, "p"));
    for (arguments, expected) in [
        (&["full.jsonl", "short.jsonl"][..], "2 documents not in all runs, such as `28`: --allow-missing 2"),
        (&["full.jsonl", "other.jsonl"], "no document is in all runs"),
        (&["full.jsonl", "prompts.jsonl"], "the prompts differ in 30 of 30 documents, such as `0`"),
        (&["full.jsonl", "contents.jsonl"], "(doc_hash differs): 1 of 30 documents, such as `3`"),
        (
            &["full.jsonl", "twice.jsonl"],
            "`twice.jsonl`: line 31: document `0` occurs twice with filter `none`",
        ),
        (&["full.jsonl", "nan.jsonl"], "`nan.jsonl`: line 1: not a JSON object: "),
        (&["full.jsonl", "cut.jsonl"], "`cut.jsonl`: line "),
        (&["empty.jsonl", "full.jsonl"], "`empty.jsonl`: no document has a score"),
        (&["full.jsonl", "full.jsonl", "--metric", "f1"], "no metric `f1`: expected one of acc, acc_norm"),
        (&["a", "b", "--filter", "hard=strict"], "no filter `strict`: expected one of none"),
        (&["full.jsonl", "full.jsonl", "--cluster", "doc.page"], "line 1: no `doc.page`"),
        (&[EASY, HARD], &format!("`{HARD}`: no task easy, which another run has")),
        (&["a", "c"], "`c`: no task hard, which another run has"),
        (&["a", "b", "--tasks", "medium"], "`a`: no log of task medium"),
        (&["a", "empty"], "`empty`: no log: expected a folder"),
        (&["a.csv", "nan.csv"], "line 3: the score of document `2` is NaN, not a finite number"),
        (&["a.csv", "word.csv"], "line 3: `score` is `good`, not a number"),
        (&["a.csv", "ragged.csv"], "`ragged.csv`: not a table: "),
        (&["a.csv", "a.csv", "--score", "f1"], "`a.csv`: no column `f1`: expected one of id, score"),
        (&["pages.csv", "pages.csv", "--cluster", "page"], "several columns are named `page`"),
        (&["no-page.csv", "no-page.csv", "--cluster", "page"], "line 3: document `2` has an empty cluster"),
        (&["no-id.csv", "no-id.csv"], "line 3: a document has an empty name"),
        (&["a.json", "a.json"], "`a.json`: not a log of Inspect: missing field `task`"),
        (&["a.eval", "a.eval"], "`a.eval`: not a complete zip archive"),
        (&["three.txt", "three.txt"], "plain translations need --reference"),
        (&["three.txt", "two.txt", "--reference", "three.txt"], "2 lines, but `three.txt` has 3 lines"),
        (&["latin.txt", "latin.txt", "--reference", "three.txt"], "cannot read `latin.txt`: "),
        (&["three.txt", "two.txt", "--reference", "three.txt", "--metric", "rouge"], "bleu, chrf or ter"),
        (&["missing.csv", "a.csv"], "cannot read `missing.csv`: "),
        (&["a.csv", "a.csv", "--html", "two.txt/page.html"], "cannot write `"),
    ] {
        let said = refusal(folder.path(), arguments);
        assert!(said.starts_with("error: ") && said.contains(expected), "{arguments:?}: {said}");
    }
    let missing = &rows(folder.path(), &["full.jsonl", "short.jsonl", "--allow-missing", "2"])[0];
    assert_eq!((&missing["documents"], &missing["missing"]), (&json!(28), &json!(2)));
    assert_eq!(rows(folder.path(), &["full.jsonl", "prompts.jsonl", "--other-prompts"]).len(), 1);
}

/// Any content under any file extension gives a one-line error and no panic (exit code 101).
#[test]
fn no_file_makes_it_panic() {
    let folder = tempfile::tempdir().unwrap();
    let line = samples(|_| true, 1, "p");
    let texts: Vec<Vec<u8>> = vec![
        b"\xff\xfe\x00".to_vec(),
        b"[1, 2]\n".to_vec(),
        b"{\"doc_id\": null, \"filter\": 3}\n".to_vec(),
        b"{\"doc_id\": 1, \"resps\": [], \"metrics\": [\"acc\"], \"acc\": [0.5, 3]}\n".to_vec(),
        "[".repeat(100_000).into_bytes(),
        line.replace("1.0", "1e999").into_bytes(),
        b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
        b"id,score\n\"1,2\n".to_vec(),
        b"\n\n".to_vec(),
    ];
    for (place, text) in texts.iter().enumerate() {
        for extension in ["jsonl", "json", "eval", "csv", "tsv", "parquet", "arrow"] {
            let name = format!("{place}.{extension}");
            fs::write(folder.path().join(&name), text).unwrap();
            refusal(folder.path(), &[&name, &name]);
        }
    }
}

/// Both files hold the same five rows, with scores 0.1, 3.8, 5, 1.25 and -2.5.
#[test]
fn columns_of_parquet_and_arrow_are_scores() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tests/fixtures/tables");
    let found = rows(&tables, &["hub.parquet", "zstd.feather", "--id", "text", "--score", "score"]);
    assert_eq!(found[0]["documents"], json!(5));
    assert!((found[0]["base"].as_f64().unwrap() - 1.53).abs() < 1e-12, "{}", found[0]);
    let refused = refusal(&tables, &["hub.parquet", "hub.parquet", "--id", "text", "--score", "blob"]);
    assert!(refused.contains("`hub.parquet`: no column `blob`: expected one of key, label"), "{refused}");
}
