//! The whole command on a translator in the format of the hub, without training.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::TestedRow as _;
use tempfile::TempDir;
use test_support::{copy_files, refuses, said, text};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A folder with SentencePiece files, `vocab.json`, `config.json`, `generation_config.json` and `model.safetensors`.
const HUB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");

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

fn opus() -> TempDir {
    let folder = folder("opus");
    copy_files(Path::new(HUB), &folder.path().join("data/opus"));
    folder
}

fn command(folder: &Path) -> Command {
    test_support::command_with("ablate-one", folder, &["--resamples", "9", "--attention", "enc-dec"])
}

/// Measures again with this setup and returns what is printed.
fn measured(folder: &Path, spec: &str) -> String {
    fs::write(folder.join("tiny.toml"), spec).unwrap();
    said(command(folder).arg("--again"))
}

const SIGNATURE: &str = "results/tiny/ablate-one.json";

#[test]
fn a_folder_and_two_text_files_make_a_setup() {
    let folder = folder("opus");
    refuses(&mut command(folder.path()), "no model in `data/opus`");
    fs::create_dir_all(folder.path().join("data/opus")).unwrap();
    fs::write(folder.path().join("data/opus/adapter_config.json"), "{}").unwrap();
    refuses(&mut command(folder.path()), "this is an adapter, not a model");
    copy_files(Path::new(HUB), &folder.path().join("data/opus"));
    command(folder.path()).assert().success();
    let signature = text(folder.path(), SIGNATURE);
    for recorded in ["\"checkpoint\": \"opus\"", "\"source.spm\"", "\"generation_config.json\"", "\"banned\""]
    {
        assert!(signature.contains(recorded), "{recorded}: {signature}");
    }
}

/// Exact match on three sentences is a multiple of 1/3. A source prefix changes the model's input, and is recorded.
#[test]
fn a_translator_is_scored_as_its_setup_says() {
    let folder = opus();
    let score = |metric: &str, prefix: &str| {
        let spec = spec("opus")
            .replace("[data.splits]", &format!("[data]\nsource_prefix = \"{prefix}\"\n[data.splits]"));
        measured(folder.path(), &format!("{spec}[score]\nmetric = \"{metric}\"\n"));
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
    assert!(text(folder.path(), SIGNATURE).contains("\"source_prefix\": \"The boat sleeps. \""));
    let long = format!("{}\nA man sleeps.\nThe girl finds a boat.\n", "dog ".repeat(80));
    fs::write(folder.path().join("data/a.en"), long).unwrap();
    let message = test_support::refusal(command(folder.path()).arg("--again"));
    assert!(message.contains("split `test`, sentence 1") && message.contains("64 positions"), "{message}");
    fs::write(folder.path().join("data/a.xx"), "lu pesak\nen fotal\n").unwrap();
    refuses(command(folder.path()).arg("--again"), "has 3 lines, but `data/a.xx` has 2");
}

/// A doubt about the references is printed once and stored in the signature; the BLEU tokenizer is part of the metric.
#[test]
fn doubts_about_references_are_printed_and_recorded() {
    let folder = opus();
    let plain = fs::read_to_string(folder.path().join("data/a.xx")).unwrap();
    let chinese = "狗看见猫。\n男人在睡觉。\n女孩找到一条船。\n";
    let tokenized = "lu pesak , lu tivun .\nen fotal .\nlu &apos;s gidul &apos;t .\n";
    for (references, score, tokenizer, warning) in [
        (plain.as_str(), "", "13a", None),
        (chinese, "", "13a", Some("the references are Han, written without spaces")),
        (chinese, "score.tokenize = \"zh\"\n", "zh", None),
        (tokenized, "", "13a", Some("the references are not plain text: a space precedes 4 of 4")),
        (tokenized, "score.tokenize = \"none\"\n", "none", None),
    ] {
        fs::write(folder.path().join("data/a.xx"), references).unwrap();
        let said = measured(folder.path(), &format!("{score}{}", spec("opus")));
        let warnings = format!("{said}{}", text(folder.path(), SIGNATURE));
        for text in ["the references are", warning.unwrap_or("the references are")] {
            assert_eq!(warnings.matches(text).count(), 2 * usize::from(warning.is_some()), "{warnings}");
        }
        assert!(warnings.contains(&format!("|tok:{tokenizer}|")), "{warnings}");
    }
}

/// The vocabulary has language codes; sources without such a prefix cause a warning unless the setup sets one, even an empty one.
#[test]
fn sources_without_a_language_code_give_a_warning() {
    let folder = opus();
    let vocabulary = folder.path().join("data/opus/vocab.json");
    let text = fs::read_to_string(&vocabulary).unwrap();
    fs::write(vocabulary, text.replace("\"?\":", "\">>fra<<\":")).unwrap();
    for (entry, warned) in
        [("", true), ("source_prefix = \"\"", false), ("source_prefix = \">>fra<< \"", false)]
    {
        let prefix = format!("[data]\n{entry}\n[data.splits]");
        let said = measured(folder.path(), &spec("opus").replace("[data.splits]", &prefix));
        let warning = "its vocabulary has codes such as `>>fra<<`";
        assert_eq!(said.matches(warning).count(), usize::from(warned), "{said}");
    }
}

/// Uses the hub cache as other programs leave it, without a network.
#[test]
fn a_hub_model_is_read_from_the_cache_and_its_commit_is_recorded() {
    let folder = folder("hub:someone/tiny");
    let cached = folder.path().join("hf/hub/models--someone--tiny");
    copy_files(Path::new(HUB), &cached.join("snapshots").join(COMMIT));
    fs::create_dir_all(cached.join("refs")).unwrap();
    fs::write(cached.join("refs/main"), COMMIT).unwrap();
    let mut command = command(folder.path());
    command.env("HF_HOME", folder.path().join("hf")).env("HF_HUB_OFFLINE", "1").assert().success();
    let signature = text(folder.path(), SIGNATURE);
    assert!(signature.contains(&format!("hub:someone/tiny@{COMMIT}")), "{signature}");
}
