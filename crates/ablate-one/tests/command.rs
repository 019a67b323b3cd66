//! The whole command on a setup that trains in a second.
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::str::contains;
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, kill_when, trained};

fn folder() -> TempDir {
    trained(TRANSLATOR, "ablate-one", &["--limit", "first:1", "--attention", "enc-enc"])
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "99"]);
    command
}

fn table(folder: &Path) -> PathBuf {
    folder.join("results/tiny/ablate-one.csv")
}

fn growing(folder: &Path) -> PathBuf {
    folder.join("results/tiny/ablate-one.partial.csv")
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

#[test]
fn every_head_has_one_row_with_its_test() {
    let folder = folder();
    command(folder.path()).assert().success().stdout("results/tiny/ablate-one.csv\n");
    let rows: Vec<records::AblationRow> = test_support::rows(folder.path(), "ablate-one.csv");
    assert_eq!(rows.len(), 3 * 2 * 3);
    for row in &rows {
        assert_eq!(row.score_delta, row.score - row.base_score);
        assert_eq!(row.base_score, rows[0].base_score);
        // 2 (1 + count) / (99 + 1) is a multiple of 1/50
        let p = row.p_bootstrap.unwrap();
        assert!((0.02..=1.0).contains(&p) && ((p * 50.0).round() - p * 50.0).abs() < 1e-9, "{p}");
        assert!(row.p_koehn.unwrap() <= p);
        let p = row.p_value.unwrap();
        assert!(row.p_adjusted.unwrap() >= p && row.p_benjamini_hochberg.unwrap() >= p);
        assert!(row.delta_low.unwrap() <= row.delta_high.unwrap());
    }
    assert!(rows.iter().any(|row| row.score_delta != 0.0), "masking must change something");
    assert!(folder.path().join("results/tiny/ablate-one.json").exists());
}

/// The small limit leaves one sentence per batch, on one thread.
#[test]
fn too_little_memory_means_small_batches() {
    let (ample, scarce) = (folder(), folder());
    command(ample.path()).args(["--limit", "first:5"]).assert().success();
    command(scarce.path()).args(["--limit", "first:5", "--memory", "1K"]).assert().success();
    let table = |folder: &TempDir| fs::read(folder.path().join("results/tiny/ablate-one-first-5.csv"));
    assert_eq!(table(&ample).unwrap(), table(&scarce).unwrap());
}

#[test]
fn one_type_after_another_and_any_number_of_threads_give_the_same_file() {
    let (together, apart) = (folder(), folder());
    command(together.path()).args(["--threads", "2"]).assert().success();
    for attention in ["dec-dec", "enc-enc", "all"] {
        command(apart.path()).args(["--threads", "1", "--attention", attention]).assert().success();
    }
    assert_eq!(fs::read(table(together.path())).unwrap(), fs::read(table(apart.path())).unwrap());
}

#[test]
fn a_killed_sweep_goes_on_to_the_file_of_an_unbroken_one() {
    let (unbroken, killed) = (folder(), folder());
    command(unbroken.path()).assert().success();
    for rows in [1, 5] {
        let lines = || fs::read_to_string(growing(killed.path())).map_or(0, |text| text.lines().count());
        kill_when("ablate-one", &["--resamples", "99"], killed.path(), || lines() > rows);
    }
    command(killed.path()).assert().success();
    assert_eq!(fs::read(table(killed.path())).unwrap(), fs::read(table(unbroken.path())).unwrap());
}

/// A run with other settings writes to a new name; with --output it is refused.
#[test]
fn runs_of_other_numbers_leave_results_as_they_are() {
    let folder = folder();
    let enc_enc = ["--attention", "enc-enc"];
    command(folder.path()).args(enc_enc).assert().success();
    let before = fs::read(table(folder.path())).unwrap();
    command(folder.path())
        .args(["--attention", "dec-dec", "--limit", "first:3", "--split", "shifted", "--resamples", "0"])
        .assert()
        .success()
        .stdout("results/tiny/ablate-one-shifted-first-3.csv\n");
    let rescaled = command(folder.path()).args(enc_enc).arg("--rescale").output().unwrap();
    let own = String::from_utf8(rescaled.stdout).unwrap();
    assert!(
        own.starts_with("results/tiny/ablate-one-") && own != "results/tiny/ablate-one-shifted-first-3.csv\n"
    );
    let said = String::from_utf8(rescaled.stderr).unwrap();
    assert!(said.contains("arguments.rescale: false in the file, true now"), "{said}");
    let message = refusal(
        folder.path(),
        &["--attention", "enc-enc", "--rescale", "--output", "results/tiny/ablate-one.csv"],
    );
    assert!(message.contains("belongs to another run"), "{message}");
    assert_eq!(fs::read(table(folder.path())).unwrap(), before);
    command(folder.path()).args(enc_enc).args(["--rescale", "--again"]).assert().success();
    assert_ne!(fs::read(table(folder.path())).unwrap(), before);
}

/// The run is killed once before its first row and once after it.
#[test]
fn an_interrupted_run_that_computes_anew_leaves_the_old_results() {
    let folder = folder();
    command(folder.path()).assert().success();
    let files = ["csv", "json", "segments.csv.gz"].map(|end| table(folder.path()).with_extension(end));
    let read = || files.each_ref().map(|file| fs::read(file).unwrap());
    let before = read();
    for rows in [0, 2] {
        let lines = || fs::read_to_string(growing(folder.path())).map_or(0, |text| text.lines().count());
        kill_when("ablate-one", &["--resamples", "99", "--again"], folder.path(), || lines() > rows);
        assert_eq!(read(), before, "killed after {rows} lines");
    }
    command(folder.path()).arg("--again").assert().success();
    assert_eq!(read()[0], before[0], "equal runs give equal bytes");
    assert!(!growing(folder.path()).exists());
}

#[test]
fn results_are_tested_again_without_the_model() {
    let folder = folder();
    command(folder.path()).assert().success();
    let fresh = fs::read(table(folder.path())).unwrap();
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    let retest = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("retest").unwrap();
        command.current_dir(folder.path()).arg("tiny").args(arguments).assert().success();
        fs::read(table(folder.path())).unwrap()
    };
    assert_ne!(retest(&["--resamples", "199", "--seed", "3"]), fresh);
    assert_eq!(retest(&["--resamples", "99", "--seed", "1"]), fresh);
    let untested = String::from_utf8(retest(&["--resamples", "0"])).unwrap();
    assert!(untested.lines().nth(1).unwrap().ends_with(",,,,,,,,"), "{untested}");
}

#[test]
fn faults_are_named_in_one_line() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    for (arguments, expected) in [
        (["--split", "newstest"], "no split `newstest`: this setup has train, dev, test, shifted"),
        (["--attention", "self"], "no `self` attention in this model: it has enc-enc, enc-dec, dec-dec"),
        (["--output", "file/ablate-one.csv"], "error: cannot write `file`"),
        (["--output", "ablate-one.txt"], "whose name ends in `.csv`"),
    ] {
        let message = refusal(folder.path(), &arguments);
        assert!(message.contains(expected), "{message}");
    }
    for (usage, expected) in
        [(["--attention", "enc"], "it is one of enc-enc"), (["--limit", "0"], "a whole number of at least 1")]
    {
        command(folder.path()).args(usage).assert().code(2).stderr(contains(expected));
    }
    let replace = |file: &str, from: &str, to: &str| {
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}: {text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    replace("tiny.toml", "positions = 160", "positions = 8");
    replace("data/models/tiny/settings.json", "\"positions\": 160", "\"positions\": 8");
    let config = "data/models/tiny/config.json";
    replace(config, "\"max_position_embeddings\": 160", "\"max_position_embeddings\": 8");
    let message = refusal(folder.path(), &[]);
    assert!(message.contains("split `test`, sentence 1") && message.contains("8 positions"), "{message}");
    for (file, content, expected) in [
        ("model.safetensors", "torn", "model.safetensors`"),
        ("tokenizer.json", "{", "tokenizer.json"),
        ("config.json", r#"{"model_type": "bert"}"#, "model_type is `bert`"),
    ] {
        let folder = self::folder();
        fs::write(folder.path().join("data/models/tiny").join(file), content).unwrap();
        let message = refusal(folder.path(), &[]);
        assert!(message.contains(expected), "{file}: {message}");
    }
}

/// The replacement of each text and its head outputs do not depend on batch size and threads; another draw gives other results.
#[test]
fn other_texts_are_the_same_however_they_are_read() {
    const RESAMPLE: [&str; 4] = ["--ablation", "resample", "--reference-limit", "30"];
    for spec in [CLASSIFIER, TRANSLATOR, LANGUAGE_MODEL] {
        let folder = trained(spec, "ablate-one", &["--limit", "first:1"]);
        let scores = |arguments: &[&str], file: &str| {
            command(folder.path()).args(RESAMPLE).args(arguments).assert().success();
            let rows: Vec<records::AblationRow> = test_support::rows(folder.path(), file);
            rows.into_iter().map(|row| row.score).collect::<Vec<_>>()
        };
        let found = scores(&[], "ablate-one-resample-1.csv");
        let small = ["--memory", "6M", "--threads", "1", "--output", "results/tiny/small.csv"];
        for (found, small) in found.iter().zip(scores(&small, "small.csv")) {
            assert!((found - small).abs() < 1e-5, "{found} {small}");
        }
        assert_ne!(found, scores(&["--draw", "2"], "ablate-one-resample-2.csv"));
        let own = [&RESAMPLE[..], &["--reference-on", "test"]].concat();
        assert!(refusal(folder.path(), &own).contains("where a text may stand for itself"));
        assert!(refusal(folder.path(), &["--draw", "2"]).contains("--draw is for --ablation resample"));
    }
}

#[test]
fn a_sweep_says_what_it_will_do_and_how_it_is_resumed() {
    let folder = folder();
    let mut command = Command::cargo_bin("ablate-one").unwrap();
    let arguments = ["tiny.toml", "--limit", "2", "--attention", "enc-enc", "--resamples", "0"];
    command.current_dir(folder.path()).args(arguments).assert().success().stderr(contains(
        "masking 6 head sets on a random sample of 2 segments of split `test`: 7 evaluations of the split; if stopped, resume \
         with `ablate-one tiny.toml --limit 2 --attention enc-enc --resamples 0`",
    ));
    command
        .arg("--limit")
        .arg("500")
        .assert()
        .success()
        .stderr(contains("warning: --limit 500: split `test` has only 24 segments, and all are scored"));
}
