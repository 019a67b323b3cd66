//! The whole chain on language models: training from scratch, every experiment, removal by head and by group, and what is
//! exported read back.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use core_masking::{Attention, GatedModel, LanguageModel, ModelConfig};
use records::{AblationRow, PruningRow, Signature};
use serde_json::Value;
use tempfile::TempDir;
use test_support::{LANGUAGE_MODEL, command, refusal, rows, trained};

const OPTIONS: (tch::Kind, tch::Device) = (tch::Kind::Float, tch::Device::Cpu);

fn language_model() -> TempDir {
    trained(LANGUAGE_MODEL, "ablate-one", &["--resamples", "0"])
}

fn signature(folder: &Path, file: &str) -> Signature {
    Signature::read(&folder.join("results/tiny").join(file)).unwrap().unwrap()
}

/// What `ablate-one` says of the intact model in the folder `export`.
fn score_of(folder: &Path, export: &str, spec: &str) -> f64 {
    let data = &spec[..spec.find("[model]").unwrap()];
    let from = folder.join(export);
    fs::write(folder.join("export.toml"), format!("{data}[checkpoint]\nfrom = \"{}\"\n", from.display()))
        .unwrap();
    let mut command = assert_cmd::Command::cargo_bin("ablate-one").unwrap();
    command
        .current_dir(folder)
        .args(["export.toml", "--quiet", "--resamples", "0", "--again"])
        .assert()
        .success();
    let mut reader = csv::Reader::from_path(folder.join("results/export/ablate-one.csv")).unwrap();
    let row: AblationRow = reader.deserialize().next().unwrap().unwrap();
    row.base_score
}

/// As little as speed-bench can time.
const TIMED: [&str; 10] =
    ["--batch-size", "2", "--repeats", "2", "--minutes", "0", "--estimate-limit", "20", "--limit", "6"];

#[test]
fn heads_of_a_language_model_are_scored_by_nats_and_by_choices() {
    let folder = language_model();
    let sweep = |arguments: &[&str]| {
        command("ablate-one", folder.path()).args(["--resamples", "199"]).args(arguments).assert().success();
    };
    sweep(&[]);
    sweep(&["--split", "agreement"]);
    let by_nats: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let by_choices: Vec<AblationRow> = rows(folder.path(), "ablate-one-agreement.csv");
    assert_eq!((by_nats.len(), by_choices.len()), (8, 8));
    assert!(by_nats.iter().all(|row| row.metric.name() == "nats" && row.attention == "self"));
    // 320 tokens at random cost ln 320 = 5.77 nats each
    assert!(by_nats[0].base_score > 1.0 && by_nats[0].base_score < 5.5, "{}", by_nats[0].base_score);
    assert!(
        by_choices.iter().all(|row| row.metric.name() == "accuracy" && (0.0..=100.0).contains(&row.score))
    );

    let arguments = signature(folder.path(), "ablate-one.json").identity.arguments;
    assert_eq!(arguments["task"], "language-modelling");
    assert_eq!(arguments["key_value_heads"], 2);
    assert_eq!(arguments["windows"]["length"], 96);
    let groups = signature(folder.path(), "ablate-one-agreement.json").identity.arguments["groups"].clone();
    let groups: Vec<Value> = serde_json::from_value(groups).unwrap();
    assert_eq!(groups.iter().map(|group| group["segments"].as_u64().unwrap()).sum::<u64>(), 40);
}

#[test]
fn every_experiment_takes_a_language_model() {
    let folder = language_model();
    for (program, arguments) in [
        ("ablate-all-but-one", &["--resamples", "99"][..]),
        ("cross-domain", &["--resamples", "99"]),
        ("cross-domain", &["--resamples", "99", "--split", "agreement", "--against", "agreement-shifted"]),
        ("importance", &["--estimate-limit", "20"]),
        ("speed-bench", &TIMED),
        (
            "iterative-prune",
            &["--search", "greedy-forward", "--limit", "10", "--step-percent", "50", "--resamples", "99"],
        ),
    ] {
        command(program, folder.path()).args(arguments).assert().success();
    }
    let rows: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert!(rows.iter().any(|row| row.score > row.base_score), "a model without a head has more nats");
}

/// A search maximises or minimises what its own split is scored by, which must be what is reported.
#[test]
fn splits_of_different_metrics_are_not_mixed() {
    let folder = language_model();
    let search = ["--search", "greedy-forward", "--step-percent", "50", "--resamples", "99"];
    let mut mixed = command("iterative-prune", folder.path());
    let message = refusal(mixed.args(search).args(["--split", "agreement"]));
    assert!(
        message.contains("`dev`, which is scored by nats, but `agreement` is scored by accuracy"),
        "{message}"
    );
    let mut alike = command("iterative-prune", folder.path());
    let arguments = ["--split", "agreement", "--search-on", "agreement-shifted"];
    alike.args(search).args(arguments).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "joint-search-agreement.csv");
    assert!(rows.iter().all(|row| row.metric.name() == "accuracy"));
    let mut compared = command("cross-domain", folder.path());
    let message = refusal(compared.args(["--against", "agreement"]));
    assert!(message.contains("`test` is scored by nats, `agreement` by accuracy"), "{message}");
}

#[test]
fn texts_are_continued_with_and_without_heads() {
    let folder = language_model();
    let mut say = assert_cmd::Command::cargo_bin("say").unwrap();
    say.current_dir(folder.path()).args([
        "tiny.toml",
        "The",
        "--quiet",
        "--tokens",
        "5",
        "--mask",
        "self:1:1+self:2:2",
    ]);
    let output = String::from_utf8(say.assert().success().get_output().stdout.clone()).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert!(
        lines[0].starts_with("all heads: ") && lines[1].starts_with("without self:1:1+self:2:2: "),
        "{output}"
    );
    command("speed-bench", folder.path()).args(TIMED).args(["--continue-by", "8"]).assert().success();
    let speeds: Vec<records::SpeedRow> =
        test_support::rows(folder.path(), "speed-bench-decoding-first-6.csv");
    assert!(speeds[0].predicted_ratio > 1.0, "{}", speeds[0].predicted_ratio);
    assert_eq!(speeds[0].tokens, 8 * speeds[0].segments as u64);
    let other = language_model();
    let mut beyond = command("speed-bench", other.path());
    let message = refusal(beyond.args(TIMED).args(["--continue-by", "96"]));
    assert!(message.contains("cannot be continued by 96 tokens: the model has 96 positions"), "{message}");
}

/// Without heads, the model has more nats, and orders mask what costs the fewest of them first.
#[test]
fn the_oracle_masks_first_what_costs_the_fewest_nats() {
    let folder = language_model();
    let arguments = ["--order", "oracle", "--step-percent", "13", "--resamples", "99"];
    command("iterative-prune", folder.path()).args(arguments).assert().success();
    let sweep: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let curve: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let first = curve.iter().find(|row| row.order == "oracle" && row.masked == 2 && !row.complement).unwrap();
    let mut by_cost: Vec<&AblationRow> = sweep.iter().collect();
    by_cost.sort_by(|one, other| one.score.total_cmp(&other.score));
    for row in &by_cost[..2] {
        let name = format!("self:{}:{}", row.layer, row.head);
        assert!(first.masked_heads.contains(&name), "{name} is not in {}", first.masked_heads);
    }
}

#[test]
fn whole_groups_go_and_every_export_is_the_masked_model() {
    let folder = language_model();
    let arguments = [
        "--unit",
        "group",
        "--uniform",
        "--step-percent",
        "50",
        "--resamples",
        "99",
        "--estimate-limit",
        "20",
        "--random-orders",
        "1",
        "--export",
        "cut",
        "--export-dense",
        "dense",
        "--export-uniform",
        "uniform",
        "--export-percent",
        "50",
    ];
    command("iterative-prune", folder.path()).args(arguments).assert().success();
    let curve: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let row =
        curve.iter().find(|row| row.order == "importance" && row.masked == 4 && !row.complement).unwrap();
    for export in ["cut", "dense", "uniform"] {
        let gap = (score_of(folder.path(), export, LANGUAGE_MODEL) / row.score - 1.0).abs();
        assert!(gap < 1e-5, "{export}: {gap:e}");
    }
    let load = |export: &str| LanguageModel::load(&folder.path().join(export), OPTIONS).unwrap();
    let (cut, uniform) = (load("cut"), load("uniform"));
    let config = uniform.config();
    assert_eq!((config.num_attention_heads, config.key_value_heads(), config.head_dim), (2, 1, Some(4)));
    assert_eq!(cut.weights().parameters(), uniform.weights().parameters());
    for layer in 0..2 {
        let module = cut.config().layout().module(Attention::SelfAttention, layer);
        assert_eq!((module.kept.len(), module.kept_key_values().len()), (2, 1), "layer {layer}");
    }
}

#[test]
fn gpt2_is_trained_and_what_is_cut_out_of_it_is_called_as_transformers_calls_it() {
    let spec = LANGUAGE_MODEL.replace("\"llama\"", "\"gpt2\"").replace("key_value_heads = 2\n", "");
    let folder = test_support::folder(&spec);
    let arguments =
        ["--step-percent", "25", "--resamples", "99", "--estimate-limit", "20", "--random-orders", "1"];
    let exports = ["--export", "cut", "--export-percent", "25"];
    command("iterative-prune", folder.path()).args(arguments).args(exports).assert().success();
    let curve: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let row =
        curve.iter().find(|row| row.order == "importance" && row.masked == 2 && !row.complement).unwrap();
    let gap = (score_of(folder.path(), "cut", &spec) / row.score - 1.0).abs();
    assert!(gap < 1e-5, "{gap:e}");
    let config = fs::read_to_string(folder.path().join("cut/config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let pruned: usize = config["pruned_heads"]
        .as_object()
        .unwrap()
        .values()
        .map(|heads| heads.as_array().unwrap().len())
        .sum();
    assert_eq!(pruned, 2);
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let refused = |old: &str, new: &str| {
        assert!(LANGUAGE_MODEL.contains(old), "{old}");
        let folder = test_support::folder(&LANGUAGE_MODEL.replacen(old, new, 1));
        refusal(&mut command("ablate-one", folder.path()))
    };
    let groups = refused("key_value_heads = 2", "key_value_heads = 3");
    assert!(groups.contains("num_key_value_heads (3) does not divide num_attention_heads (4)"), "{groups}");
    let width = refused("end = true", "length = 200");
    assert!(width.contains("a window of 200 tokens is longer than the 96 positions of the model"), "{width}");
    let stride = refused("end = true", "length = 20\nstride = 21");
    assert!(stride.contains("windows.stride must be at most windows.length"), "{stride}");
    let steps = refused("batch_tokens = 1200\n", "");
    assert!(steps.contains("[training] needs either batch_tokens or blocks"), "{steps}");

    let folder = language_model();
    let unequal =
        ["--step-percent", "25", "--resamples", "99", "--export-uniform", "cut", "--export-percent", "25"];
    let message = String::from_utf8(
        command("iterative-prune", folder.path())
            .args(unequal)
            .assert()
            .failure()
            .code(2)
            .get_output()
            .stderr
            .clone(),
    )
    .unwrap();
    assert!(message.contains("--uniform"), "{message}");
}

/// Questions of a file of one's own, and what is wrong with some.
#[test]
fn questions_of_a_file_are_asked_as_described() {
    let folder = language_model();
    let split = "[data.splits.asked]\nfiles = [\"q.jsonl\"]\n\
                 choices = { kind = \"jsonl\", context = \"{q}\", choices = [\"a\", \"b\"], answer = { field = \"right\", first = 0 } }\n";
    let spec = format!(
        "task = \"language-modelling\"\ndescription = \"\"\n[data]\ntest = \"asked\"\n{split}[score]\nchoices = \"acc_norm\"\n\
         [checkpoint]\nfrom = \"models/tiny\"\n"
    );
    fs::write(folder.path().join("asked.toml"), spec).unwrap();
    let ask = |questions: &str| {
        fs::write(folder.path().join("data/q.jsonl"), questions).unwrap();
        let mut command = assert_cmd::Command::cargo_bin("ablate-one").unwrap();
        command.current_dir(folder.path()).args(["asked.toml", "--quiet", "--resamples", "0", "--again"]);
        command
    };
    let right = r#"{"q": "The dog", "a": "sleeps.", "b": "zzzz qqqq.", "right": 0}"#;
    ask(&format!("{right}\n{right}\n")).assert().success();
    let rows: Vec<AblationRow> = {
        let mut reader = csv::Reader::from_path(folder.path().join("results/asked/ablate-one.csv")).unwrap();
        reader.deserialize().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!((rows[0].metric.name(), rows[0].base_score), ("accuracy", 100.0));
    let missing = refusal(&mut ask(r#"{"q": "The dog", "a": "sleeps.", "b": "x"}"#));
    assert!(missing.contains("q.jsonl") && missing.contains("right"), "{missing}");
    let beyond = refusal(&mut ask(r#"{"q": "The dog", "a": "sleeps.", "b": "x", "right": 2}"#));
    assert!(beyond.contains("q.jsonl"), "{beyond}");
    let long = "word ".repeat(200);
    let too_long = refusal(&mut ask(&format!(r#"{{"q": "{long}", "a": "x", "b": "y", "right": 1}}"#)));
    assert!(too_long.contains("is longer than the 96 positions of the model"), "{too_long}");
}
