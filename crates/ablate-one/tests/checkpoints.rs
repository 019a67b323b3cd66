//! The whole command on a translator in the format of the hub, without training.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use records::TestedRow as _;
use tempfile::TempDir;
use test_support::{copy_files, read};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Returns a folder with SentencePiece files, `vocab.json`, `config.json`, `generation_config.json` and `model.safetensors`.
fn hub_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian"))
}

fn spec(checkpoint: &str) -> String {
    format!(
        "description = \"As it comes from a hub\"\n\
         [data.splits]\ntest = {{ source = \"a.en\", target = \"a.xx\" }}\n\
         [checkpoint]\nfrom = \"{checkpoint}\"\n"
    )
}

/// Makes a folder with the setup and three sentence pairs.
fn folder(checkpoint: &str) -> TempDir {
    let folder = test_support::folder(&spec(checkpoint));
    let english = "The dog sees the cat.\nA man sleeps.\nThe girl finds a boat.\n";
    let other = "lu pesak lu tivun zifesk\nen fotal pasosk\nlu gidul en homom gimosk\n";
    fs::create_dir_all(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/a.en"), english).unwrap();
    fs::write(folder.path().join("data/a.xx"), other).unwrap();
    folder
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "9", "--attention", "enc-dec"]);
    command
}

fn signature(folder: &Path) -> String {
    String::from_utf8(read(folder, "results/tiny/ablate-one.json")).unwrap()
}

#[test]
fn a_folder_and_two_text_files_are_a_subject() {
    let folder = folder("opus");
    let message = test_support::refusal(&mut command(folder.path()));
    assert!(message.contains("no model in `data/opus`"), "{message}");
    fs::create_dir_all(folder.path().join("data/opus")).unwrap();
    fs::write(folder.path().join("data/opus/adapter_config.json"), "{}").unwrap();
    let message = test_support::refusal(&mut command(folder.path()));
    assert!(message.contains("this is an adapter and no model"), "{message}");
    copy_files(&hub_folder(), &folder.path().join("data/opus"));
    command(folder.path()).assert().success();
    let table = String::from_utf8(read(folder.path(), "results/tiny/ablate-one.csv")).unwrap();
    assert!(table.lines().count() > 2, "{table}");
    assert!(table.lines().skip(1).all(|line| line.starts_with("enc-dec,")), "{table}");
    let signature = signature(folder.path());
    for recorded in ["\"checkpoint\": \"opus\"", "\"source.spm\"", "\"generation_config.json\"", "\"banned\""]
    {
        assert!(signature.contains(recorded), "{recorded}: {signature}");
    }
}

/// Exact match on three sentences is a multiple of 1/3. A source prefix changes the model's input, and is recorded.
#[test]
fn a_translator_is_scored_as_its_subject_says() {
    let folder = folder("opus");
    copy_files(&hub_folder(), &folder.path().join("data/opus"));
    let score = |metric: &str, prefix: &str| {
        let spec = spec("opus")
            .replace("[data.splits]", &format!("[data]\nsource_prefix = \"{prefix}\"\n[data.splits]"));
        let spec = format!("{spec}[score]\nmetric = \"{metric}\"\n");
        fs::write(folder.path().join("tiny.toml"), spec).unwrap();
        command(folder.path()).arg("--again").assert().success();
        let rows: Vec<records::AblationRow> = test_support::rows(folder.path(), "ablate-one.csv");
        let is_loss = |row: &records::AblationRow| row.gain() == row.metric.direction().gain(row.score_delta);
        assert!(rows.iter().all(is_loss));
        (rows[0].metric.name(), rows[0].base_score)
    };
    let thirds = 3.0 * score("exact-match", "").1 / 100.0;
    assert!((thirds - thirds.round()).abs() < 1e-9, "{thirds}");
    let chrf = score("chrf", "");
    let (rouge, words) = (score("rouge", ""), score("rouge1", ""));
    assert_eq!((chrf.0, rouge.0, words.0), ("chrf", "rougeL", "rouge1"));
    assert!(0.0 < rouge.1 && rouge.1 <= words.1 && words.1 <= 100.0, "{rouge:?} {words:?}");
    let ter = score("ter", ""); // may exceed 100
    assert!(ter.0 == "ter" && ter.1 > 0.0, "{ter:?}");
    assert_ne!(score("chrf", "The boat sleeps. "), chrf);
    assert!(signature(folder.path()).contains("\"source_prefix\": \"The boat sleeps. \""));
    fs::write(folder.path().join("data/a.xx"), "lu pesak\n\nlu gidul\n").unwrap();
    let message = test_support::refusal(command(folder.path()).arg("--again"));
    assert!(message.contains("`data/a.xx`, line 2: empty line"), "{message}");
}

/// A doubt about the references is printed once and stored in the signature; the BLEU tokenizer is part of the metric.
#[test]
fn references_without_spaces_and_tokenized_ones_are_warned_of_on_record() {
    let folder = folder("opus");
    copy_files(&hub_folder(), &folder.path().join("data/opus"));
    let plain = fs::read_to_string(folder.path().join("data/a.xx")).unwrap();
    let chinese = "狗看见猫。\n男人在睡觉。\n女孩找到一条船。\n";
    let tokenized = "lu pesak , lu tivun .\nen fotal .\nlu &apos;s gidul &apos;t .\n";
    for (references, score, tokenizer, warning) in [
        (plain.as_str(), "", "13a", None),
        (chinese, "", "13a", Some("most letters of the references are Han, written without spaces")),
        (chinese, "score.tokenize = \"zh\"\n", "zh", None),
        (
            tokenized,
            "",
            "13a",
            Some("the references are not plain text: a space precedes 4 of 4 full stops and commas"),
        ),
        (tokenized, "score.tokenize = \"none\"\n", "none", None),
    ] {
        fs::write(folder.path().join("data/a.xx"), references).unwrap();
        fs::write(folder.path().join("tiny.toml"), format!("{score}{}", spec("opus"))).unwrap();
        let said = command(folder.path()).arg("--again").assert().success().get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        let warnings = format!("{said}{}", signature(folder.path()));
        assert_eq!(
            warnings.matches("the references are").count(),
            2 * usize::from(warning.is_some()),
            "{warnings}"
        );
        assert!(warning.is_none_or(|warning| warnings.matches(warning).count() == 2), "{warnings}");
        assert!(warnings.contains(&format!("|tok:{tokenizer}|")), "{warnings}");
    }
}

/// The vocabulary has language codes; sources without such a prefix cause a warning unless the setup sets one, even an empty one.
#[test]
fn sources_without_the_code_of_a_language_are_warned_of() {
    let folder = folder("opus");
    copy_files(&hub_folder(), &folder.path().join("data/opus"));
    let vocabulary = folder.path().join("data/opus/vocab.json");
    let text = fs::read_to_string(&vocabulary).unwrap();
    fs::write(vocabulary, text.replace("\"?\":", "\">>fra<<\":")).unwrap();
    for (entry, warned) in
        [("", true), ("source_prefix = \"\"", false), ("source_prefix = \">>fra<< \"", false)]
    {
        let prefix = format!("[data]\n{entry}\n[data.splits]");
        fs::write(folder.path().join("tiny.toml"), spec("opus").replace("[data.splits]", &prefix)).unwrap();
        let said = command(folder.path()).arg("--again").assert().success().get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        let warning = "begins with a prefix that the model knows: its vocabulary has codes such as `>>fra<<`";
        assert_eq!(said.matches(warning).count(), usize::from(warned), "{said}");
    }
}

/// Uses the hub cache as other programs leave it, without a network.
#[test]
fn a_model_of_the_hub_is_taken_from_the_cache_and_its_commit_recorded() {
    let folder = folder("hub:someone/tiny");
    let cached = folder.path().join("hf/hub/models--someone--tiny");
    copy_files(&hub_folder(), &cached.join("snapshots").join(COMMIT));
    fs::create_dir_all(cached.join("refs")).unwrap();
    fs::write(cached.join("refs/main"), COMMIT).unwrap();
    let offline = |folder: &Path| {
        let mut command = command(folder);
        command.env("HF_HOME", folder.join("hf")).env("HF_HUB_OFFLINE", "1");
        command
    };
    offline(folder.path()).assert().success();
    let signature = signature(folder.path());
    assert!(signature.contains(&format!("hub:someone/tiny@{COMMIT}")), "{signature}");

    for (checkpoint, expected) in [("hub:someone/other", "someone/other"), ("hub:tiny", "owner/name")] {
        fs::write(folder.path().join("tiny.toml"), spec(checkpoint)).unwrap();
        let message = test_support::refusal(&mut offline(folder.path()));
        assert!(message.contains(expected), "{message}");
    }
}
