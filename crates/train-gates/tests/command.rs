//! The whole command on setups that train in a second.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use core_masking::{HardConcrete, HeadId, HeadSet};
use records::{AblationRow, Attention, CurveRow, GateRow, Method, Row, Signature};
use test_support::{
    CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, fine_tuning, kill_when, read, refuses, rows, score_of_export,
    text, with_model, write_reviews,
};

const TABLE: &str = "results/tiny/train-gates.csv";

/// Fixes the number of threads, on which the weights depend.
const ARGUMENTS: [&str; 4] = ["--resamples", "99", "--threads", "2"];

fn command(folder: &Path, arguments: &[&str]) -> Command {
    test_support::command_with("train-gates", folder, &[&ARGUMENTS[..], arguments].concat())
}

fn found(folder: &Path, method: Method) -> Vec<GateRow> {
    let all: Vec<GateRow> = rows(folder, "train-gates.csv");
    all.into_iter().filter(|row| row.method == method).collect()
}

fn heads(row: &GateRow) -> BTreeSet<&str> {
    row.kept_heads.split('+').filter(|name| !name.is_empty()).collect()
}

/// Returns the gates of a model with 2 layers before the first epoch and after each.
fn trained_gates(folder: &Path, row: &GateRow, attention: Attention) -> Vec<HardConcrete> {
    let head = |index: usize| HeadId::from_index(attention, index / (row.heads / 2), index % (row.heads / 2));
    let heads: Vec<HeadId> = (0..row.heads).map(head).collect();
    let name = format!("{}-", row.short_name());
    let mut models = fs::read_dir(folder.join("data/models/tiny.tuned")).unwrap().flatten();
    let is_own = |model: &fs::DirEntry| {
        model.path().is_dir() && model.file_name().to_string_lossy().starts_with(&name)
    };
    let own = models.find(is_own).unwrap();
    training::gate_history(&own.path(), &heads).unwrap()
}

/// Exactly the given number of heads is kept, those with the largest `log_alpha`. Controls keep equal numbers; the complement keeps only
/// other heads if enough exist.
#[test]
fn a_number_of_heads_is_kept_and_controls_keep_as_many() {
    let folder = with_model(TRANSLATOR);
    let controls =
        ["--control", "ungated,importance,oracle,random,complement,chosen,scratch", "--estimate-limit", "40"];
    let arguments = ["--heads", "3,1", "--epochs", "2", "--random-orders", "2"];
    let arguments = [&arguments[..], &controls].concat();
    command(folder.path(), &arguments).assert().success().stdout(format!("{TABLE}\n"));
    let gates = found(folder.path(), Method::Gates);
    // 2 layers of 3 encoder heads; the decoder keeps its 6 and 6 heads
    assert_eq!(gates.iter().map(|row| (row.kept, row.heads)).collect::<Vec<_>>(), [(1, 6), (3, 6)]);
    for row in &gates {
        let by_type = (row.kept_enc_enc, row.kept_enc_dec, row.kept_dec_dec);
        assert_eq!(by_type, (Some(row.kept), Some(6), Some(6)));
        assert_eq!((heads(row).len(), row.kept_self, row.lambda), (row.kept, None, None));
        assert!(row.gap.is_some() && row.epoch == 2 && row.steps > row.epoch, "the last epoch counts");
        assert!(heads(row).iter().all(|head| head.starts_with("enc-enc:")));
    }
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Gates) {
        let numbers: &[usize] = match method {
            Method::Ungated => &[6],
            Method::Random => &[1, 3, 1, 3],
            _ => &[1, 3],
        };
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

    for row in &gates {
        let trained = trained_gates(folder.path(), row, Attention::EncEnc);
        let [start, _, end] = &trained[..] else { panic!("the start and two epochs: {trained:?}") };
        assert!(start.scores().iter().all(|(_, log_alpha)| log_alpha == 2.0));
        let kept: HeadSet = end.scores().ascending().into_iter().rev().take(row.kept).collect();
        assert_eq!(kept.names(), row.kept_heads);
        let expected = end.expected_open().double_value(&[]);
        assert!((expected - row.kept as f64 - row.gap.unwrap()).abs() < 1e-5);
    }
}

/// All heads close if the penalty exceeds the worth of any head; with no penalty most stay open.
#[test]
fn a_penalty_closes_heads_and_is_not_in_the_loss() {
    let folder = with_model(TRANSLATOR);
    let arguments =
        ["--lambda", "0,10", "--gate-learning-rate", "0.2", "--attention", "all", "--epochs", "2"];
    command(folder.path(), &arguments).assert().success();
    let gates: Vec<GateRow> = rows(folder.path(), "train-gates-all.csv");
    let [free, dear] = &gates[..] else { panic!("{gates:?}") };
    assert_eq!((free.lambda, dear.lambda, dear.target), (Some(0.0), Some(10.0), None));
    assert_eq!((free.heads, dear.kept, dear.kept_heads.as_str()), (18, 0, ""));
    assert!(free.kept > 9, "{}", free.kept);
    // 18 heads whose gates hardly move cost 180 nats per prediction, which must not be in the loss on the development split
    let folder = with_model(TRANSLATOR);
    let arguments = ["--lambda", "10", "--gate-learning-rate", "1e-9", "--attention", "all", "--epochs", "1"];
    command(folder.path(), &arguments).assert().success();
    let gates: Vec<GateRow> = rows(folder.path(), "train-gates-all.csv");
    assert!(gates[0].kept == 18 && (1.0..20.0).contains(&gates[0].dev_loss), "{gates:?}");
}

/// With two penalties that leave all heads open, each has its own rows of controls, which stay while the gates keep these heads.
#[test]
fn controls_depend_on_their_gates() {
    let folder = with_model(TRANSLATOR);
    let arguments = ["--lambda", "0,1e-9", "--epochs", "1", "--control", "chosen"];
    command(folder.path(), &arguments).assert().success();
    let chosen = found(folder.path(), Method::Chosen);
    let kept: Vec<_> = chosen.iter().map(|row| (row.kept, row.lambda)).collect();
    assert_eq!(kept, [(6, Some(0.0)), (6, Some(1e-9))]);
    let before = read(folder.path(), TABLE);
    command(folder.path(), &["--lambda", "0", "--epochs", "1", "--again"]).assert().success();
    assert_eq!(read(folder.path(), TABLE), before);
}

/// Stored controls whose heads differ from the gates' heads are removed, as after training gates on another machine.
#[test]
fn controls_are_removed_if_the_heads_of_their_gates_have_changed() {
    let folder = with_model(TRANSLATOR);
    let arguments = ["--heads", "3", "--epochs", "1"];
    let controls = ["--control", "chosen,complement"];
    command(folder.path(), &[&arguments[..], &controls].concat()).assert().success();
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
        let folder = with_model(TRANSLATOR);
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
fn a_killed_run_resumes_and_ends_with_the_gates_of_an_unbroken_one() {
    let arguments = ["--heads", "2", "--epochs", "4"];
    let unbroken = with_model(TRANSLATOR);
    command(unbroken.path(), &arguments).assert().success();
    let killed = loop {
        let folder = with_model(TRANSLATOR);
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
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
    // existing rows are used, so nothing is trained again, and new rows are added to them
    let tuned = killed.path().join("data/models/tiny.tuned");
    fs::remove_dir_all(&tuned).unwrap();
    command(killed.path(), &arguments).assert().success();
    assert!(read(killed.path(), TABLE) == read(unbroken.path(), TABLE) && !tuned.exists());
    command(killed.path(), &["--heads", "4", "--epochs", "4"]).assert().success();
    assert_eq!(found(killed.path(), Method::Gates).iter().map(|row| row.kept).collect::<Vec<_>>(), [2, 4]);
}

/// The export has the heads and the score of its row, without gates.
#[test]
fn an_export_is_the_model_without_its_closed_heads() {
    let folder = with_model(CLASSIFIER);
    command(folder.path(), &["--heads", "2", "--epochs", "2", "--export", "small"]).assert().success();
    let row = found(folder.path(), Method::Gates).remove(0);
    assert_eq!((row.kept, row.heads, row.kept_self), (2, 6, Some(2)));
    assert!(text(folder.path(), "small/config.json").contains("pruned_heads"));
    for file in ["small/model.safetensors", "small/pruning.json", "small/tokenizer.json"] {
        read(folder.path(), file);
    }
    assert_eq!(score_of_export(folder.path(), "small", CLASSIFIER), row.score);
    for (heads, export, fault) in [("2", "small", "exists already"), ("1,2", "other", "writes one model")] {
        let arguments = ["--heads", heads, "--epochs", "2", "--export", export];
        refuses(&mut command(folder.path(), &arguments), fault);
    }
}

#[test]
fn language_models_have_gates_too() {
    let folder = with_model(LANGUAGE_MODEL);
    command(folder.path(), &["--heads", "3", "--epochs", "1", "--start", "authors"]).assert().success();
    let row = found(folder.path(), Method::Gates).remove(0);
    assert_eq!((row.kept, row.heads, row.metric.name()), (3, 8, "nats"));
    let trained = trained_gates(folder.path(), &row, Attention::SelfAttention);
    let start: Vec<f64> = trained[0].scores().iter().map(|(_, log_alpha)| log_alpha).collect();
    assert!(start.iter().all(|at| at.abs() <= 0.75_f64.sqrt()), "modules of 4 heads: ±sqrt(3/4)");
    assert!(start.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn invalid_requests_are_refused_before_anything_is_trained() {
    let folder = with_model(TRANSLATOR);
    for (arguments, expected) in [
        (&["--heads", "0"][..], "--heads 0: expected 1 to 6"),
        (&["--heads", "7"], "--heads 7: expected 1 to 6"),
        (&["--heads", "2,2"], "given twice in --heads"),
        (&["--attention", "self"], "no `self` attention"),
        (&["--attention", "all", "--train", "encoder"], "--train encoder needs gates on encoder heads only"),
        (&["--shard", "1/2"], "--shard 1/2"),
    ] {
        refuses(&mut command(folder.path(), arguments), expected);
    }
    assert!(!folder.path().join(TABLE).exists());
    for arguments in [&["--lambda=-0.5"][..], &["--lambda", "0.1", "--heads", "2"], &["--epochs", "0"]] {
        command(folder.path(), arguments).assert().code(2);
    }
    fs::write(folder.path().join("tiny.toml"), fine_tuning("models/tiny")).unwrap();
    refuses(&mut command(folder.path(), &["--control", "scratch"]), "is fine-tuned from a checkpoint");
}

fn with_heads(spec: &str, heads: &str) -> String {
    spec.replacen("[model]\n", &format!("[model]\nopen_heads = {heads}\n"), 1)
}

/// Experiments on a model that is trained from scratch with only some of its heads see only these heads and may mask all of them. The
/// signature of the training names them.
#[test]
fn a_model_has_the_heads_that_are_named_and_no_others() {
    let heads = "[\"enc-enc:1:2+enc-enc:2:3\", \"enc-dec\", \"dec-dec:2:1\"]";
    let folder = test_support::folder(&with_heads(TRANSLATOR, heads));
    test_support::command("train-subject", folder.path()).assert().success();
    let signature = Signature::read(&folder.path().join("results/tiny/training.json")).unwrap().unwrap();
    let open = &signature.identity.arguments["model"]["open_heads"];
    assert_eq!(open, &serde_json::json!(["enc-enc:1:2+enc-enc:2:3", "enc-dec", "dec-dec:2:1"]));
    let mut sweep = test_support::command("ablate-one", folder.path());
    sweep.args(["--attention", "all", "--resamples", "0", "--limit", "first:4"]).assert().success();
    let heads: Vec<AblationRow> = rows(folder.path(), "ablate-one-first-4.csv");
    let names: BTreeSet<String> = heads.iter().map(Row::name).collect();
    let cross = (1..=2).flat_map(|layer| (1..=3).map(move |head| format!("enc-dec:{layer}:{head}")));
    let others = ["enc-enc:1:2", "enc-enc:2:3", "dec-dec:2:1"].map(str::to_owned);
    assert_eq!((heads.len(), names), (9, cross.chain(others).collect()));
    // training again gives equal weights; other heads need another training
    let weights = |folder: &Path| read(folder, "data/models/tiny/model.safetensors");
    let before = weights(folder.path());
    test_support::command("train-subject", folder.path()).arg("--again").assert().success();
    assert_eq!(weights(folder.path()), before);
    fs::write(folder.path().join("tiny.toml"), with_heads(TRANSLATOR, "[\"enc-enc\"]")).unwrap();
    refuses(&mut test_support::command("ablate-one", folder.path()), "was trained from settings other than");
}

#[test]
fn classifiers_and_language_models_have_the_heads_that_are_named_too() {
    for (spec, heads, count) in [
        (CLASSIFIER, "[\"self:1:1\", \"self:2:3\"]", 2),
        (LANGUAGE_MODEL, "[\"self:1:1+self:1:2\", \"self:2:4\"]", 3),
    ] {
        let folder = test_support::folder(&with_heads(spec, heads));
        write_reviews(folder.path());
        let arguments =
            ["--resamples", "0", "--limit", "first:4", "--order", "random", "--random-orders", "1"];
        test_support::command("iterative-prune", folder.path()).args(arguments).assert().success();
        let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune-first-4.csv");
        assert!(rows.iter().all(|row| row.heads == count), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.masked).max(), Some(count));
    }
}

#[test]
fn open_heads_that_do_not_exist_are_refused() {
    for (heads, expected) in [
        ("[\"enc-enc:1:4\"]", "model.open_heads: no head 4 in a layer of `enc-enc`"),
        ("[]", "model.open_heads: it names no head"),
        ("[\"one\"]", "model.open_heads: `one` is not a head"),
        ("[\"dec-dec:1:1\"]", ""),
    ] {
        let folder = test_support::folder(&with_heads(TRANSLATOR, heads));
        if expected.is_empty() {
            test_support::command("train-subject", folder.path()).assert().success();
        } else {
            refuses(&mut test_support::command("train-subject", folder.path()), expected);
        }
    }
}
