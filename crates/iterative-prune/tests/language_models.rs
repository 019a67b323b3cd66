//! Language models from training to every experiment.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use records::{AblationRow, CurveRow, HeadId, HeadSet, Measure, ScoreRow, Signature};
use serde_json::Value;
use tempfile::TempDir;
use test_support::{LANGUAGE_MODEL, command, refusal, rows, trained};

fn language_model() -> TempDir {
    trained(LANGUAGE_MODEL, "ablate-one", &["--resamples", "0"])
}

fn signature(folder: &Path, file: &str) -> Signature {
    Signature::read(&folder.join("results/tiny").join(file)).unwrap().unwrap()
}

/// Minimal settings for speed-bench.
const TIMED: [&str; 10] =
    ["--batch-size", "2", "--repeats", "2", "--minutes", "0", "--estimate-limit", "20", "--limit", "first:6"];

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
    // 320 random tokens cost ln 320 = 5.77 nats each
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
    ] {
        command(program, folder.path()).args(arguments).assert().success();
    }
    let rows: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert!(rows.iter().any(|row| row.score > row.base_score), "a model without a head has more nats");
    let message = refusal(command("cross-domain", folder.path()).args(["--against", "agreement"]));
    assert!(message.contains("`test` is scored by nats, `agreement` by accuracy"), "{message}");
}

/// Each head has an interval around its mean, and the lowest heads are masked first. Plain texts have no choices to attribute.
#[test]
fn logits_of_choices_of_two_are_attributed_to_heads() {
    let folder = language_model();
    let on_choices = ["--split", "agreement", "--estimate-on", "agreement"];
    command("importance", folder.path()).args(on_choices).assert().success();
    let mut own: Vec<ScoreRow> = rows(folder.path(), "importance-agreement.csv");
    own.retain(|row| row.measure == Measure::LogitAttribution);
    assert_eq!(own.len(), 8);
    for row in &own {
        let (low, high) = (row.value_low.unwrap(), row.value_high.unwrap());
        assert!(low < row.value && row.value < high, "{row:?}");
    }
    let order = ["--order", "logit-attribution", "--step-percent", "13", "--resamples", "99"];
    command("iterative-prune", folder.path()).args(on_choices).args(order).assert().success();
    let curve: Vec<CurveRow> = rows(folder.path(), "iterative-prune-agreement.csv");
    let first =
        curve.iter().find(|row| row.order == "logit-attribution" && row.masked == 2 && !row.complement);
    own.sort_by(|one, other| one.value.total_cmp(&other.value));
    let first = &first.unwrap().masked_heads;
    assert!(own[..2].iter().all(|row| first.contains(&row.head_id().to_string())), "{first}");
    let message = refusal(command("iterative-prune", folder.path()).args(order));
    assert!(message.contains("two choices that differ in a token, and split `train` has none"), "{message}");
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

/// Masking costs nats, and the oracle masks first the heads that cost the fewest.
#[test]
fn the_oracle_masks_first_what_costs_the_fewest_nats() {
    let folder = language_model();
    let arguments = ["--order", "oracle", "--step-percent", "13", "--resamples", "99"];
    command("iterative-prune", folder.path()).args(arguments).assert().success();
    let sweep: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let curve: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let first = curve.iter().find(|row| row.order == "oracle" && row.masked == 2 && !row.complement).unwrap();
    let mut by_cost: Vec<&AblationRow> = sweep.iter().collect();
    by_cost.sort_by(|one, other| one.score.total_cmp(&other.score));
    for row in &by_cost[..2] {
        let name = format!("self:{}:{}", row.layer, row.head);
        assert!(first.masked_heads.contains(&name), "{name} is not in {}", first.masked_heads);
    }
}

/// In windows of one token with `begin`, every token is predicted from BOS alone: "QQQQ" costs as many nats per token as "Q".
#[test]
fn windows_that_begin_anew_forget_what_stood_before() {
    let folder = language_model();
    let nats = |text: &str, windows: &str| {
        fs::write(folder.path().join("data/text.txt"), text).unwrap();
        let split = "{ files = [\"text.txt\"], documents = { kind = \"lines\" } }";
        let spec = format!(
            "task = \"language-modelling\"\ndescription = \"\"\ndata.splits.test = {split}\nwindows = {{ {windows} }}\n\
             checkpoint.from = \"models/tiny\"\n"
        );
        fs::write(folder.path().join("tiny.toml"), spec).unwrap();
        command("ablate-one", folder.path()).args(["--resamples", "0", "--again"]).assert().success();
        rows::<AblationRow>(folder.path(), "ablate-one.csv")[0].base_score
    };
    let alone = nats("Q\n", "");
    assert!((nats("QQQQ\n", "length = 1") - alone).abs() > 1e-3);
    assert!((nats("QQQQ\n", "length = 1, begin = true") - alone).abs() < 1e-6);
    assert_eq!(signature(folder.path(), "ablate-one.json").identity.arguments["windows"]["begin"], true);
}

/// The rule is part of a result's identity only if BOS precedes a context, so that older results keep their identity.
#[test]
fn bos_precedes_contexts_if_the_tokenizer_adds_it() {
    let folder = language_model();
    let settings = folder.path().join("data/models/tiny/tokenizer_config.json");
    let plain = fs::read_to_string(&settings).unwrap();
    let row = r#"{"q": "The dog", "a": "sleeps.", "b": "sleep.", "right": 0}"#;
    fs::write(folder.path().join("data/q.jsonl"), format!("{row}\n")).unwrap();
    let asked = |tokenizer: &str, context: &str, score: &str| {
        fs::write(&settings, tokenizer).unwrap();
        let choices = "choices = [\"a\", \"b\"], answer = { field = \"right\", first = 0 }";
        let spec = format!(
            "task = \"language-modelling\"\ndescription = \"\"\ncheckpoint.from = \"models/tiny\"\n{score}\n\
             data.splits.test = {{ files = [\"q.jsonl\"], choices = {{ kind = \"jsonl\", {context}{choices} }} }}\n"
        );
        fs::write(folder.path().join("tiny.toml"), spec).unwrap();
        command("ablate-one", folder.path()).args(["--resamples", "0", "--again"]).assert().success();
        signature(folder.path(), "ablate-one.json").identity.arguments.get("context_bos").cloned()
    };
    let adds = plain.replacen('{', "{\"add_bos_token\": true,", 1);
    let context = "context = \"{q}\", ";
    assert_eq!(asked(&adds, context, ""), Some(true.into()));
    assert_eq!(asked(&adds, context, "score.context_bos = false"), None);
    assert_eq!(asked(&adds, "", ""), None);
    assert_eq!(asked(&plain, context, ""), None);
}

/// Asks questions from a user's file; an invalid description, window or question is refused.
#[test]
fn questions_of_a_file_are_asked_as_described() {
    let folder = language_model();
    let split = "[data.splits.asked]\nfiles = [\"q.jsonl\"]\n\
                 choices = { kind = \"jsonl\", context = \"{q}\", choices = [\"a\", \"b\"], answer = { field = \"right\", first = 0 } }\n";
    let spec = format!(
        "task = \"language-modelling\"\ndescription = \"\"\n[data]\ntest = \"asked\"\n{split}[score]\nchoices = \"acc_norm\"\n\
         [checkpoint]\nfrom = \"models/tiny\"\n"
    );
    let ask = |questions: &str| {
        fs::write(folder.path().join("tiny.toml"), &spec).unwrap();
        fs::write(folder.path().join("data/q.jsonl"), questions).unwrap();
        let mut command = command("ablate-one", folder.path());
        command.args(["--resamples", "0", "--again"]);
        command
    };
    let right = r#"{"q": "The dog", "a": "sleeps.", "b": "zzzz qqqq.", "right": 0}"#;
    ask(&format!("{right}\n{right}\n")).assert().success();
    let rows: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert_eq!((rows[0].metric.name(), rows[0].base_score), ("accuracy", 100.0));
    let missing = refusal(&mut ask(r#"{"q": "The dog", "a": "sleeps.", "b": "x"}"#));
    assert!(missing.contains("q.jsonl") && missing.contains("right"), "{missing}");
    let long = "word ".repeat(200);
    let too_long = refusal(&mut ask(&format!(r#"{{"q": "{long}", "a": "x", "b": "y", "right": 1}}"#)));
    assert!(too_long.contains("is longer than the 96 positions of the model"), "{too_long}");
    for (old, new, expected) in [
        ("end = true", "length = 200", "a window of 200 tokens is longer than the 96 positions of the model"),
        ("end = true", "length = 20\nstride = 21", "windows.stride must be at most windows.length"),
        ("batch_tokens = 1200\n", "", "[training] needs either batch_tokens or blocks"),
    ] {
        let folder = test_support::folder(&LANGUAGE_MODEL.replacen(old, new, 1));
        let message = refusal(&mut command("ablate-one", folder.path()));
        assert!(message.contains(expected), "{message}");
    }
}

/// Heads that share keys and values are masked together, even by a random order.
#[test]
fn random_orders_mask_whole_groups() {
    let folder = trained(LANGUAGE_MODEL, "ablate-one", &["--limit", "first:1", "--resamples", "0"]);
    let mut prune = command("iterative-prune", folder.path());
    prune.args(["--order", "random", "--random-orders", "3", "--unit", "group", "--step-percent", "25"]);
    prune.args(["--resamples", "0"]).assert().success();
    let found: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    assert!(found.len() > 12);
    for row in found {
        let masked: HeadSet = row.masked_heads.parse().unwrap();
        for id in masked.iter() {
            let other = HeadId::from_index(id.attention(), id.layer_index(), id.head_index() ^ 1);
            assert!(masked.contains(other), "{}", row.masked_heads);
        }
    }
}
