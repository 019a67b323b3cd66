//! The whole command on a token classifier that trains in seconds, and on files with words and tags.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, BASE, Blocks, Signature};
use tempfile::TempDir;
use test_support::{TAGGER, trained};

const DATA: &str = "scheme = \"raw\"\nformat = { kind = \"conll\", text = 1, label = 2 }\nsplits = { test = \"test.conll\" }";

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "99"]);
    command
}

fn rows(folder: &Path) -> Vec<AblationRow> {
    test_support::rows(folder, "ablate-one.csv")
}

/// Makes a setup that uses the trained model as a ready-made checkpoint on the file `test.conll` with this text.
fn on_file(text: &str, data: &str, metric: &str) -> TempDir {
    let folder = trained(TAGGER, "ablate-one", &["--limit", "first:1"]);
    let spec = format!(
        "task = \"classification\"\ndescription = \"Tags\"\n[data]\n{data}\n[score]\nmetric = \"{metric}\"\n[checkpoint]\n\
         from = \"models/tiny\"\n"
    );
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    fs::write(folder.path().join("data/test.conll"), text).unwrap();
    folder
}

fn refusal(text: &str, data: &str, metric: &str) -> String {
    test_support::refusal(&mut command(on_file(text, data, metric).path()))
}

/// Returns the full model's stored counts of predicted, true and correct entities for each sentence.
fn counts(folder: &Path) -> Vec<[f64; 3]> {
    let path = folder.join("results/tiny/ablate-one.csv");
    let signature = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap();
    let blocks = Blocks::beside(&path, &signature).unwrap().unwrap();
    let cells = blocks.get(BASE).unwrap().cells(None).unwrap();
    cells.iter().map(|cells| std::array::from_fn(|place| f64::from(cells[place].value()))).collect()
}

#[test]
fn the_f1_of_entities_is_tested_by_swaps_of_sentences() {
    let folder = trained(TAGGER, "ablate-one", &["--limit", "first:1"]);
    command(folder.path()).assert().success();
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 2 * 3);
    for row in &rows {
        assert_eq!((row.attention.name(), row.metric.name()), ("self", "entity-f1"));
        assert!((0.0..=1.0).contains(&row.p_value.unwrap()) && row.delta_low <= row.delta_high, "{row:?}");
        assert_eq!((row.p_unpaired_t, row.p_mcnemar), (None, None));
    }
    let counts = counts(folder.path());
    assert_eq!(counts.len(), 60);
    let [own, gold, right] = [0, 1, 2].map(|column| counts.iter().map(|counts| counts[column]).sum::<f64>());
    let score = 200.0 * right / (own + gold);
    assert!((rows[0].score - rows[0].score_delta - score).abs() < 1e-9, "{score}");
    assert!(score > 40.0, "it has learned something: {score}");
    assert!(rows.iter().any(|row| row.score_delta < -1.0), "masking must change something");
}

/// On the model's own tags both metrics are 100. Words beyond 64 tokens are reported.
#[test]
fn tags_that_say_prints_are_those_that_are_scored() {
    let folder = trained(TAGGER, "ablate-one", &["--limit", "first:1"]);
    let sentences =
        ["The old dog that the cat sees sleeps near the house .", "Does the girl with the hat see a bird ?"];
    let mut text = String::new();
    for sentence in sentences {
        let mut say = Command::cargo_bin("say").unwrap();
        say.current_dir(folder.path()).args(["tiny.toml", sentence]);
        let said = String::from_utf8(say.assert().success().get_output().stdout.clone()).unwrap();
        let tagged = said.trim().strip_prefix("all heads: ").unwrap();
        assert_eq!(tagged.split(' ').count(), sentence.split(' ').count(), "{tagged}");
        text += &(tagged.replace(' ', "\n").replace('/', "\t") + "\n\n");
    }
    for metric in ["entity-f1", "token-accuracy"] {
        let data =
            if metric == "entity-f1" { DATA.to_owned() } else { DATA.replace("scheme = \"raw\"\n", "") };
        let folder = on_file(&text, &data, metric);
        command(folder.path()).assert().success();
        let row = &rows(folder.path())[0];
        assert_eq!((row.metric.name(), row.score - row.score_delta), (metric, 100.0));
    }
    let long = format!("{text}{}", "the\tO\n".repeat(80));
    let folder = on_file(&long, DATA, "entity-f1");
    let said = command(folder.path()).assert().success().get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("split `test`: words not seen by the model: 18, beyond 64 tokens of a sentence"),
        "{said}"
    );
}

#[test]
fn words_and_tags_at_fault_are_refused_in_one_line() {
    let iob2 = DATA.replace("scheme = \"raw\"\n", "");
    for (text, data, metric, fault) in [
        (
            "the\tB-PER\n",
            DATA,
            "entity-f1",
            "split `test`, example 1: tag `B-PER` of word `the` is not one of `O`, `B-SUBJ`",
        ),
        (
            "a\tO\n\nthe\tB-SUBJ\nred\tI-OBJ\n",
            &iob2,
            "entity-f1",
            "split `test`, sentence 2: tag `I-OBJ` of word `red` begins an entity, but in IOB2 `B-OBJ` does",
        ),
        ("the\tO\n", DATA, "entity-f1", "split `test`: no tag marks an entity"),
        ("the\tO\nred\n", DATA, "entity-f1", "test.conll`, line 2: 1 column, but column 2 is needed"),
        ("\n\n", DATA, "entity-f1", "test.conll` holds no examples"),
        (
            "the\tO\n",
            &iob2,
            "accuracy",
            "a BertForTokenClassification, tags words: score.metric must be entity-f1",
        ),
        ("the\tO\n", DATA, "token-accuracy", "data.scheme is for score.metric entity-f1"),
    ] {
        let message = refusal(text, data, metric);
        assert!(message.contains(fault), "{message}");
    }
}
