//! The whole command on setups that train in a second.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use core_masking::HeadSet;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use records::{AblationRow, GateFilmRow, GateRow, Method};
use subject::{Description, Evaluation, Scored};
use tch::Device;
use tempfile::TempDir;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, kill_when, read, rows, trained};
use training::{Machine, Memory, Precision};

const TABLE: &str = "results/tiny/train-gates.csv";
const FILM: &str = "results/tiny/gate-film.csv";

/// Fixes the number of threads, on which the weights depend.
const ARGUMENTS: [&str; 4] = ["--resamples", "99", "--threads", "2"];

fn folder(spec: &'static str) -> TempDir {
    trained(spec, "train-gates", &["--heads", "2", "--epochs", "1", "--limit", "first:1", "--resamples", "0"])
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("train-gates", folder);
    command.args(ARGUMENTS).args(arguments);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(&mut command(folder, arguments))
}

fn found(folder: &Path, method: Method) -> Vec<GateRow> {
    let all: Vec<GateRow> = rows(folder, "train-gates.csv");
    all.into_iter().filter(|row| row.method == method).collect()
}

fn heads(row: &GateRow) -> BTreeSet<&str> {
    row.kept_heads.split('+').filter(|name| !name.is_empty()).collect()
}

/// Exactly the given number of heads is kept, and each model has its film. Controls keep equal numbers; the complement keeps only other
/// heads if enough exist.
#[test]
fn a_number_of_heads_is_kept_and_controls_keep_as_many() {
    let folder = folder(TRANSLATOR);
    let controls =
        ["--control", "ungated,importance,oracle,random,complement,chosen,scratch", "--estimate-limit", "40"];
    let arguments = ["--heads", "3,1", "--epochs", "2", "--random-orders", "2"];
    command(folder.path(), &[&arguments[..], &controls].concat())
        .assert()
        .success()
        .stdout(format!("{TABLE}\n"));
    let gates = found(folder.path(), Method::Gates);
    // 2 layers of 3 encoder heads; the decoder keeps its 6 and 6 heads
    assert_eq!(gates.iter().map(|row| (row.kept, row.heads)).collect::<Vec<_>>(), [(1, 6), (3, 6)]);
    for row in &gates {
        assert_eq!(
            (row.kept_enc_enc, row.kept_enc_dec, row.kept_dec_dec),
            (Some(row.kept), Some(6), Some(6))
        );
        assert_eq!((heads(row).len(), row.kept_self, row.lambda), (row.kept, None, None));
        assert!(row.gap.is_some() && row.epoch == 2 && row.steps > row.epoch, "the last epoch counts");
        assert!(heads(row).iter().all(|head| head.starts_with("enc-enc:")));
    }
    for (method, numbers) in [
        (Method::Ungated, vec![6]),
        (Method::Importance, vec![1, 3]),
        (Method::Oracle, vec![1, 3]),
        (Method::Random, vec![1, 3, 1, 3]),
        (Method::Complement, vec![1, 3]),
        (Method::Chosen, vec![1, 3]),
        (Method::Scratch, vec![1, 3]),
    ] {
        let rows = found(folder.path(), method);
        assert_eq!(rows.iter().map(|row| row.kept).collect::<Vec<_>>(), numbers, "{method}");
        // the setup's model is trained for 4 epochs, and here for 2 more
        let steps = if method == Method::Scratch { 3 * gates[0].steps } else { gates[0].steps };
        assert!(rows.iter().all(|row| row.steps == steps && row.gap.is_none() && row.score >= 0.0));
    }
    for method in [Method::Chosen, Method::Scratch] {
        let same = found(folder.path(), method);
        assert!(gates.iter().zip(&same).all(|(row, other)| heads(row) == heads(other)), "{method}");
    }
    // the oracle keeps the heads that cost most when masked alone
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let mut encoder: Vec<_> = single.iter().filter(|row| row.attention == "enc-enc").collect();
    encoder.sort_by(|one, other| one.score_delta.total_cmp(&other.score_delta));
    let oracle = found(folder.path(), Method::Oracle).remove(0);
    let lost = |name: &str| encoder.iter().find(|row| row.head_id().to_string() == name).unwrap().score_delta;
    assert_eq!(lost(&oracle.kept_heads), encoder[0].score_delta, "{}", oracle.kept_heads);
    let complement = found(folder.path(), Method::Complement);
    assert!(gates.iter().zip(&complement).all(|(row, other)| heads(row).is_disjoint(&heads(other))));

    let film: Vec<GateFilmRow> = rows(folder.path(), "gate-film.csv");
    assert_eq!(film.len(), 2 * 3 * 6, "two models, the start and two epochs, six heads");
    assert!(film.iter().filter(|row| row.epoch == 0).all(|row| row.log_alpha == 2.0));
    let of_row = |row: &GateRow| {
        let own = film.iter().filter(|own| own.goal == row.goal() && own.epoch == row.epoch);
        let mut own: Vec<_> = own.collect();
        own.sort_by(|one, other| other.log_alpha.total_cmp(&one.log_alpha));
        let names = own.iter().take(row.kept);
        names.map(|own| format!("{}:{}:{}", own.attention, own.layer, own.head)).collect::<BTreeSet<_>>()
    };
    for row in &gates {
        let kept: BTreeSet<String> = heads(row).into_iter().map(str::to_owned).collect();
        assert_eq!(of_row(row), kept, "those whose log_alpha is greatest stay");
        let own = film.iter().filter(|own| own.goal == row.goal() && own.epoch == row.epoch);
        let expected: f64 = own.map(|own| own.p_open).sum();
        assert!((expected - row.kept as f64 - row.gap.unwrap()).abs() < 1e-5);
    }
}

/// All heads close if the penalty exceeds the worth of any head; with no penalty they stay as they started.
#[test]
fn a_penalty_closes_heads() {
    let folder = folder(TRANSLATOR);
    let arguments =
        ["--lambda", "0,10", "--gate-learning-rate", "0.2", "--attention", "all", "--epochs", "2"];
    command(folder.path(), &arguments).assert().success();
    let gates: Vec<GateRow> = rows(folder.path(), "train-gates-all.csv");
    let [free, dear] = &gates[..] else { panic!("{gates:?}") };
    assert_eq!((free.lambda, dear.lambda, dear.target), (Some(0.0), Some(10.0), None));
    assert_eq!((free.heads, dear.kept, dear.kept_heads.as_str()), (18, 0, ""));
    assert!(free.kept > 9, "{}", free.kept);
}

/// 18 heads whose gates hardly move cost 180 nats per prediction, which must not be in the loss on the development split.
#[test]
fn what_heads_cost_is_not_in_the_loss() {
    let folder = folder(TRANSLATOR);
    let arguments = ["--lambda", "10", "--gate-learning-rate", "1e-9", "--attention", "all", "--epochs", "1"];
    command(folder.path(), &arguments).assert().success();
    let gates: Vec<GateRow> = rows(folder.path(), "train-gates-all.csv");
    assert!(gates[0].kept == 18 && (1.0..20.0).contains(&gates[0].dev_loss), "{gates:?}");
}

/// With two penalties that leave all heads open, each has its own rows of controls, which stay while the gates keep these heads.
#[test]
fn controls_hang_on_the_gates_that_they_are_of() {
    let folder = folder(TRANSLATOR);
    let arguments = ["--lambda", "0,1e-9", "--epochs", "1", "--control", "chosen"];
    command(folder.path(), &arguments).assert().success();
    let chosen = found(folder.path(), Method::Chosen);
    assert_eq!(
        chosen.iter().map(|row| (row.kept, row.lambda)).collect::<Vec<_>>(),
        [(6, Some(0.0)), (6, Some(1e-9))]
    );
    let before = read(folder.path(), TABLE);
    command(folder.path(), &["--lambda", "0", "--epochs", "1", "--again"]).assert().success();
    assert_eq!(read(folder.path(), TABLE), before);
}

/// Stored controls whose heads differ from the gates' heads are removed, as after training gates on another machine.
#[test]
fn controls_of_other_gates_go() {
    let folder = folder(TRANSLATOR);
    let arguments = ["--heads", "3", "--epochs", "1"];
    command(folder.path(), &[&arguments[..], &["--control", "chosen,complement"]].concat())
        .assert()
        .success();
    let kept = |method| found(folder.path(), method).remove(0).kept_heads;
    let (chosen, complement) = (kept(Method::Chosen), kept(Method::Complement));
    let (table, signature) = (folder.path().join(TABLE), folder.path().join(TABLE).with_extension("json"));
    let before = records::sha256_file(&table).unwrap();
    let lines = fs::read_to_string(&table).unwrap();
    let changed = |line: &str| {
        let is_chosen = line.contains(",chosen,");
        if is_chosen { line.replace(&chosen, &complement) + "\n" } else { format!("{line}\n") }
    };
    fs::write(&table, lines.lines().map(changed).collect::<String>()).unwrap();
    let signed = fs::read_to_string(&signature).unwrap();
    fs::write(&signature, signed.replace(&before, &records::sha256_file(&table).unwrap())).unwrap();
    assert_eq!(kept(Method::Chosen), complement);
    command(folder.path(), &arguments).assert().success();
    assert!(found(folder.path(), Method::Chosen).is_empty());
    command(folder.path(), &[&arguments[..], &["--again"]].concat()).assert().success();
    assert_eq!(kept(Method::Complement), complement);
}

/// Only the encoder's weights change.
#[test]
fn the_decoder_is_frozen_unless_all_is_trained() {
    for (arguments, is_frozen) in
        [(&["--heads", "2"][..], true), (&["--heads", "3", "--train", "all"][..], false)]
    {
        let folder = folder(TRANSLATOR);
        command(folder.path(), &[arguments, &["--epochs", "1"]].concat()).assert().success();
        let tuned = fs::read_dir(folder.path().join("data/models/tiny.tuned")).unwrap().flatten();
        let tuned =
            tuned.map(|entry| entry.path()).find(|path| path.join("gates.safetensors").exists()).unwrap();
        let weights = |path: &Path| {
            let options = (tch::Kind::Float, tch::Device::Cpu);
            core_masking::Weights::read(&path.join("model.safetensors"), options).unwrap()
        };
        let (before, after) = (weights(&folder.path().join("data/models/tiny")), weights(&tuned));
        for (name, tensor) in before.iter() {
            let is_same = after.get(name).unwrap() == *tensor;
            // softmax does not depend on the biases of keys
            if !name.ends_with("k_proj.bias") && name != "final_logits_bias" && !name.contains("position") {
                assert_eq!(is_same, is_frozen && !name.contains(".encoder."), "{name}");
            }
        }
    }
}

/// Equal seeds give equal bytes, even if a run is killed between its first and last epoch.
#[test]
fn a_killed_run_goes_on_with_the_gates_of_an_unbroken_one() {
    let arguments = ["--heads", "2", "--epochs", "4"];
    let unbroken = folder(TRANSLATOR);
    command(unbroken.path(), &arguments).assert().success();
    let killed = loop {
        let folder = folder(TRANSLATOR);
        let tuned = folder.path().join("data/models/tiny.tuned");
        let epoch = |number: usize| {
            let entries = fs::read_dir(&tuned).into_iter().flatten().flatten();
            entries.into_iter().any(|entry| entry.path().join(format!("epochs/{number}/state.json")).exists())
        };
        kill_when("train-gates", &[&ARGUMENTS[..], &arguments].concat(), folder.path(), || epoch(1));
        if !epoch(4) {
            break folder; // otherwise it finished before it could be killed
        }
    };
    command(killed.path(), &arguments).assert().success();
    for file in [TABLE, FILM] {
        assert_eq!(read(killed.path(), file), read(unbroken.path(), file), "{file}");
    }
}

/// Existing rows are used, so nothing is trained again, and new rows are added to them.
#[test]
fn rows_that_are_there_are_used() {
    let folder = folder(TRANSLATOR);
    command(folder.path(), &["--heads", "2", "--epochs", "1"]).assert().success();
    let first = read(folder.path(), TABLE);
    fs::remove_dir_all(folder.path().join("data/models/tiny.tuned")).unwrap();
    command(folder.path(), &["--heads", "2", "--epochs", "1"]).assert().success();
    assert_eq!(read(folder.path(), TABLE), first);
    assert!(!folder.path().join("data/models/tiny.tuned").exists());
    command(folder.path(), &["--heads", "4", "--epochs", "1"]).assert().success();
    assert_eq!(found(folder.path(), Method::Gates).iter().map(|row| row.kept).collect::<Vec<_>>(), [2, 4]);
}

/// Scores an exported folder by a setup without a recipe.
fn score_of(folder: &Path, export: &str, spec: &str) -> f64 {
    let (data, rest) = spec.split_once("[tokenizer]\nvocabulary = 60\n").unwrap();
    let (tokenizer, _) = rest.split_once("[model]").unwrap();
    let checkpoint = format!("[checkpoint]\nfrom = \"{}\"\n", folder.join(export).display());
    let path = folder.join("exported.toml");
    fs::write(&path, format!("{data}[tokenizer]\n{tokenizer}{checkpoint}")).unwrap();
    let machine = Machine {
        data: folder.join("data"),
        threads: 2,
        device: Device::Cpu,
        precision: Precision::F32,
        memory: Memory::BesideModel(1 << 30),
        quiet: true,
    };
    let subject = Description::read(&path).unwrap().open(&machine, &folder.join("results")).unwrap();
    let mut score = None;
    let scored = Scored::first("test".to_owned(), None, false);
    let mut keep = |_, found: Evaluation| {
        score = Some(found.score);
        Ok(())
    };
    subject.evaluate(&scored, &[HeadSet::none()], &mut keep).unwrap();
    score.unwrap()
}

/// The export has the heads and the score of its row, without gates.
#[test]
fn an_export_is_the_model_without_its_closed_heads() {
    let folder = folder(CLASSIFIER);
    command(folder.path(), &["--heads", "2", "--epochs", "2", "--export", "small"]).assert().success();
    let row = found(folder.path(), Method::Gates).remove(0);
    assert_eq!((row.kept, row.heads, row.kept_self), (2, 6, Some(2)));
    let config = String::from_utf8(read(folder.path(), "small/config.json")).unwrap();
    assert!(config.contains("pruned_heads"), "{config}");
    for file in ["small/model.safetensors", "small/pruning.json", "small/tokenizer.json"] {
        read(folder.path(), file);
    }
    assert_eq!(score_of(folder.path(), "small", CLASSIFIER), row.score);
    let message = refusal(folder.path(), &["--heads", "2", "--epochs", "2", "--export", "small"]);
    assert!(message.contains("is there already"), "{message}");
    assert!(refusal(folder.path(), &["--heads", "1,2", "--export", "other"]).contains("writes one model"));
}

#[test]
fn language_models_have_gates_too() {
    let folder = folder(LANGUAGE_MODEL);
    command(folder.path(), &["--heads", "3", "--epochs", "1", "--start", "authors"]).assert().success();
    let row = found(folder.path(), Method::Gates).remove(0);
    assert_eq!((row.kept, row.heads, row.metric.name()), (3, 8, "nats"));
    let film: Vec<GateFilmRow> = rows(folder.path(), "gate-film.csv");
    let start: Vec<f64> = film.iter().filter(|row| row.epoch == 0).map(|row| row.log_alpha).collect();
    // modules of 4 heads: ±sqrt(3/4)
    assert!(
        start.iter().all(|at| at.abs() <= 0.75_f64.sqrt()) && start.windows(2).any(|pair| pair[0] != pair[1])
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_trained() {
    let folder = folder(TRANSLATOR);
    for (arguments, expected) in [
        (&["--heads", "0"][..], "--heads 0: from 1 to 6 heads"),
        (&["--heads", "7"], "--heads 7: from 1 to 6 heads"),
        (&["--heads", "2,2"], "given twice in --heads"),
        (&["--attention", "self"], "no `self` attention"),
        (&["--attention", "all", "--train", "encoder"], "--train encoder needs gates on its heads alone"),
        (&["--shard", "1/2"], "--shard 1/2"),
    ] {
        let message = refusal(folder.path(), arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    assert!(!folder.path().join("results/tiny/train-gates.csv").exists());
    for arguments in [
        &["--lambda", "-1"][..],
        &["--lambda=-0.5"],
        &["--lambda", "0.1", "--heads", "2"],
        &["--epochs", "0"],
    ] {
        command(folder.path(), arguments).assert().code(2);
    }
    let on_top = CLASSIFIER.replace("vocabulary = 60\n", "");
    let (before, after) = on_top.split_once("[model]").unwrap();
    let training = &after[after.find("[training]").unwrap()..];
    let on_top = format!("{before}[checkpoint]\nfrom = \"models/tiny\"\n{training}");
    fs::write(folder.path().join("tiny.toml"), on_top).unwrap();
    let message = refusal(folder.path(), &["--control", "scratch"]);
    assert!(message.contains("is fine-tuned on top of a checkpoint"), "{message}");
    let mut help = Command::cargo_bin("train-gates").unwrap();
    help.arg("--help")
        .assert()
        .success()
        .stdout(contains("divides by the number of").and(contains("ungated")));
}
