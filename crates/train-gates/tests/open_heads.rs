//! Models that are trained from scratch with only some of their heads.
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, CurveRow, Row, Signature};
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, folder, read, rows, write_reviews};

fn with_heads(spec: &str, heads: &str) -> String {
    spec.replacen("[model]\n", &format!("[model]\nopen_heads = {heads}\n"), 1)
}

fn command(program: &str, folder: &Path) -> Command {
    let mut command = test_support::command(program, folder);
    command.args(["--threads", "2"]);
    command
}

/// Experiments see only these heads and may mask all of them. The signature of the training names them.
#[test]
fn a_model_has_the_heads_that_are_named_and_no_others() {
    let folder =
        folder(&with_heads(TRANSLATOR, "[\"enc-enc:1:2+enc-enc:2:3\", \"enc-dec\", \"dec-dec:2:1\"]"));
    command("train-subject", folder.path()).assert().success();
    let signature = Signature::read(&folder.path().join("results/tiny/training.json")).unwrap().unwrap();
    let model = &signature.identity.arguments["model"];
    assert_eq!(
        model["open_heads"],
        serde_json::json!(["enc-enc:1:2+enc-enc:2:3", "enc-dec", "dec-dec:2:1"]),
        "{model}"
    );
    command("ablate-one", folder.path())
        .args(["--attention", "all", "--resamples", "0", "--limit", "first:4"])
        .assert()
        .success();
    let heads: Vec<AblationRow> = rows(folder.path(), "ablate-one-first-4.csv");
    let mut names: Vec<String> = heads.iter().map(Row::name).collect();
    names.sort();
    let cross = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)];
    let mut expected: Vec<String> = cross.map(|(layer, head)| format!("enc-dec:{layer}:{head}")).to_vec();
    expected.extend(["enc-enc:1:2", "enc-enc:2:3", "dec-dec:2:1"].map(str::to_owned));
    expected.sort();
    assert_eq!(names, expected);
    // training again gives equal weights; other heads need another training
    let weights = |folder: &Path| read(folder, "data/models/tiny/model.safetensors");
    let before = weights(folder.path());
    command("train-subject", folder.path()).arg("--again").assert().success();
    assert_eq!(weights(folder.path()), before);
    fs::write(folder.path().join("tiny.toml"), with_heads(TRANSLATOR, "[\"enc-enc\"]")).unwrap();
    let message = test_support::refusal(&mut command("ablate-one", folder.path()));
    assert!(message.contains("was trained from other settings"), "{message}");
}

#[test]
fn classifiers_and_language_models_too() {
    for (spec, heads, count) in [
        (CLASSIFIER, "[\"self:1:1\", \"self:2:3\"]", 2),
        (LANGUAGE_MODEL, "[\"self:1:1+self:1:2\", \"self:2:4\"]", 3),
    ] {
        let folder = folder(&with_heads(spec, heads));
        write_reviews(folder.path());
        let arguments =
            ["--resamples", "0", "--limit", "first:4", "--order", "random", "--random-orders", "1"];
        command("iterative-prune", folder.path()).args(arguments).assert().success();
        let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune-first-4.csv");
        assert!(rows.iter().all(|row| row.heads == count), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.masked).max(), Some(count));
    }
}

#[test]
fn heads_that_there_are_not_are_refused() {
    for (heads, expected) in [
        (
            "[\"enc-enc:1:4\"]",
            "model.open_heads: no head 4 in a layer of `enc-enc`: heads are numbered 1 to 3",
        ),
        ("[\"enc-enc:9:1\"]", "model.open_heads: no layer 9 of `enc-enc`"),
        ("[\"self\"]", "model.open_heads: no `self` attention in this model"),
        ("[]", "model.open_heads: it names no head"),
        ("[\"one\"]", "model.open_heads: `one` is not a head"),
        ("[\"dec-dec:1:1\"]", ""),
    ] {
        let folder = folder(&with_heads(TRANSLATOR, heads));
        if expected.is_empty() {
            command("train-subject", folder.path()).assert().success();
        } else {
            let message = test_support::refusal(&mut command("train-subject", folder.path()));
            assert!(message.contains("tiny.toml") && message.contains(expected), "{message}");
        }
    }
}
