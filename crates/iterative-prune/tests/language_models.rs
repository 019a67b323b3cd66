//! Language models from training to every experiment.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use predicates::str::{contains, starts_with};
use records::{AblationRow, CurveRow, HeadId, HeadSet, Measure, Row, ScoreRow, Signature, SpeedRow};
use serde_json::Value;
use test_support::{LANGUAGE_MODEL, command, refuses, rows, with_model};

fn signature(folder: &Path, file: &str) -> Signature {
    Signature::read(&folder.join("results/tiny").join(file)).unwrap().unwrap()
}

/// Minimal settings for speed-bench.
const TIMED: [&str; 10] =
    ["--batch-size", "2", "--repeats", "2", "--minutes", "0", "--estimate-limit", "20", "--limit", "first:6"];

/// The oracle starts by masking the heads that cost the fewest nats.
#[test]
fn every_experiment_runs_on_a_language_model() {
    let folder = with_model(LANGUAGE_MODEL);
    let oracle = ["--order", "oracle", "--step-percent", "13", "--resamples", "99"];
    for (program, arguments) in [
        ("ablate-all-but-one", &["--resamples", "99"][..]),
        ("cross-domain", &["--resamples", "99"]),
        ("cross-domain", &["--resamples", "99", "--split", "agreement", "--against", "agreement-shifted"]),
        ("importance", &["--estimate-limit", "20"]),
        ("speed-bench", &TIMED),
        ("iterative-prune", &oracle),
    ] {
        command(program, folder.path()).args(arguments).assert().success();
    }
    let mut by_nats: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let by_choices: Vec<AblationRow> = rows(folder.path(), "ablate-one-agreement.csv");
    assert_eq!((by_nats.len(), by_choices.len()), (8, 8));
    assert!(by_nats.iter().all(|row| row.metric.name() == "nats" && row.attention == "self"));
    // a uniform prediction over 320 tokens costs ln 320 = 5.77 nats per token
    assert!((1.0..5.5).contains(&by_nats[0].base_score), "{}", by_nats[0].base_score);
    assert!(by_nats.iter().any(|row| row.score > row.base_score), "masking some head costs nats");
    assert!(by_choices.iter().all(|row| row.metric.name() == "accuracy"));
    let arguments = signature(folder.path(), "ablate-one.json").identity.arguments;
    assert_eq!(arguments["task"], "language-modelling");
    assert_eq!(arguments["key_value_heads"], 2);
    assert_eq!(arguments["windows"]["length"], 96);
    let groups = signature(folder.path(), "ablate-one-agreement.json").identity.arguments["groups"].clone();
    let groups: Vec<Value> = serde_json::from_value(groups).unwrap();
    assert_eq!(groups.iter().map(|group| group["segments"].as_u64().unwrap()).sum::<u64>(), 40);

    let curve: Vec<CurveRow> = rows(folder.path(), "iterative-prune.csv");
    let first = curve.iter().find(|row| row.order == "oracle" && row.masked == 2 && !row.complement).unwrap();
    by_nats.sort_by(|one, other| one.score.total_cmp(&other.score));
    assert!(by_nats[..2].iter().all(|row| first.masked_heads.contains(&row.name())), "{first:?}");
    let mut mixed = command("cross-domain", folder.path());
    refuses(mixed.args(["--against", "agreement"]), "`test` is scored by nats and `agreement` by accuracy");
}

/// Each head has an interval around its mean, and the lowest heads are masked first. Plain texts have no choices to attribute.
#[test]
fn logit_differences_of_two_choices_are_attributed_to_heads() {
    let folder = with_model(LANGUAGE_MODEL);
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
    refuses(command("iterative-prune", folder.path()).args(order), "but split `train` has none");
}

#[test]
fn texts_are_continued_with_and_without_heads() {
    let folder = with_model(LANGUAGE_MODEL);
    let mut say = command("say", folder.path());
    let said = say.args(["The", "--tokens", "5", "--mask", "self:1:1+self:2:2"]).assert().success();
    said.stdout(starts_with("all heads: ")).stdout(contains("\nwithout self:1:1+self:2:2: "));
    let mut beyond = command("speed-bench", folder.path());
    refuses(beyond.args(TIMED).args(["--continue-by", "96"]), "cannot be continued by 96 tokens");
    command("speed-bench", folder.path()).args(TIMED).args(["--continue-by", "8"]).assert().success();
    let speeds: Vec<SpeedRow> = rows(folder.path(), "speed-bench-decoding-first-6.csv");
    assert!(speeds[0].predicted_ratio > 1.0, "{}", speeds[0].predicted_ratio);
    assert_eq!(speeds[0].tokens, 8 * speeds[0].segments as u64);
}

/// Scores the trained model with a setup that has this split and these entries; returns the score and the signature's arguments.
fn scored(folder: &Path, split: &str, entries: &str) -> (AblationRow, BTreeMap<String, Value>) {
    let spec = format!(
        "task = \"language-modelling\"\ndescription = \"\"\ncheckpoint.from = \"models/tiny\"\ndata.splits.test = {split}\n\
         {entries}\n"
    );
    fs::write(folder.join("tiny.toml"), spec).unwrap();
    command("ablate-one", folder).args(["--resamples", "0", "--again"]).assert().success();
    let row = rows(folder, "ablate-one.csv").remove(0);
    (row, signature(folder, "ablate-one.json").identity.arguments)
}

/// In windows of one token with `begin`, every token is predicted from BOS alone: "QQQQ" costs as many nats per token as "Q".
#[test]
fn windows_that_begin_with_bos_ignore_earlier_tokens() {
    let folder = with_model(LANGUAGE_MODEL);
    let nats = |text: &str, windows: &str| {
        fs::write(folder.path().join("data/text.txt"), text).unwrap();
        let split = "{ files = [\"text.txt\"], documents = { kind = \"lines\" } }";
        scored(folder.path(), split, &format!("windows = {{ {windows} }}")).0.base_score
    };
    let alone = nats("Q\n", "");
    assert!((nats("QQQQ\n", "length = 1") - alone).abs() > 1e-3);
    assert!((nats("QQQQ\n", "length = 1, begin = true") - alone).abs() < 1e-6);
    assert_eq!(signature(folder.path(), "ablate-one.json").identity.arguments["windows"]["begin"], true);
}

/// The rule is part of a result's identity only if BOS precedes a context, so that older results keep their identity.
#[test]
fn bos_precedes_contexts_if_the_tokenizer_adds_it() {
    let folder = with_model(LANGUAGE_MODEL);
    let settings = folder.path().join("data/models/tiny/tokenizer_config.json");
    let plain = fs::read_to_string(&settings).unwrap();
    let row = r#"{"q": "The dog", "a": "sleeps.", "b": "sleep.", "right": 0}"#;
    fs::write(folder.path().join("data/q.jsonl"), format!("{row}\n")).unwrap();
    let asked = |tokenizer: &str, context: &str, score: &str| {
        fs::write(&settings, tokenizer).unwrap();
        scored(folder.path(), &questions(context), score).1.get("context_bos").cloned()
    };
    let adds = plain.replacen('{', "{\"add_bos_token\": true,", 1);
    let context = "context = \"{q}\", ";
    assert_eq!(asked(&adds, context, ""), Some(true.into()));
    assert_eq!(asked(&adds, context, "score.context_bos = false"), None);
    assert_eq!(asked(&adds, "", ""), None);
    assert_eq!(asked(&plain, context, ""), None);
}

/// Returns a split of the questions in `q.jsonl`.
fn questions(context: &str) -> String {
    let choices = "choices = [\"a\", \"b\"], answer = { field = \"right\", first = 0 }";
    format!("{{ files = [\"q.jsonl\"], choices = {{ kind = \"jsonl\", {context}{choices} }} }}")
}

/// Asks questions from a user's file; an invalid question, window or training entry is refused.
#[test]
fn questions_from_a_file_are_asked_as_configured() {
    let folder = with_model(LANGUAGE_MODEL);
    let right = r#"{"q": "The dog", "a": "sleeps.", "b": "zzzz qqqq.", "right": 0}"#;
    let file = folder.path().join("data/q.jsonl");
    fs::write(&file, format!("{right}\n{right}\n")).unwrap();
    let (row, _) = scored(folder.path(), &questions("context = \"{q}\", "), "score.choices = \"acc_norm\"");
    assert_eq!((row.metric.name(), row.base_score), ("accuracy", 100.0));
    let long = format!(r#"{{"q": "{}", "a": "x", "b": "y", "right": 1}}"#, "word ".repeat(200));
    for (question, fault) in [
        (r#"{"q": "The dog", "a": "sleeps.", "b": "x"}"#, "`right`"),
        (&long, "is longer than the 96 positions of the model"),
    ] {
        fs::write(&file, question).unwrap();
        refuses(command("ablate-one", folder.path()).arg("--again"), fault);
    }
    for (old, new, fault) in [
        ("end = true", "length = 200", "a window of 200 tokens is longer than the 96 positions"),
        ("end = true", "length = 20\nstride = 21", "windows.stride must be at most windows.length"),
        ("batch_tokens = 1200\n", "", "[training] needs either batch_tokens or blocks"),
    ] {
        let folder = test_support::folder(&LANGUAGE_MODEL.replacen(old, new, 1));
        refuses(&mut command("ablate-one", folder.path()), fault);
    }
}

/// Heads that share keys and values are masked together, even by a random ranking.
#[test]
fn random_rankings_mask_whole_groups() {
    let folder = with_model(LANGUAGE_MODEL);
    let random = ["--order", "random", "--random-orders", "3", "--unit", "group", "--step-percent", "25"];
    command("iterative-prune", folder.path()).args(random).args(["--resamples", "0"]).assert().success();
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
