//! The whole command on setups that train in a second: exports read back as checkpoints, and refusals.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use core_masking::{Attention, GatedModel, LanguageModel, ModelConfig};
use records::{CurveRow, Signature};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{
    CLASSIFIER, LANGUAGE_MODEL, TAGGER, TRANSLATOR, program, rows, score_of_export, with_model,
};

const CURVE: [&str; 6] = ["--resamples", "99", "--estimate-limit", "40", "--step-percent", "10"];

/// Makes a folder with a trained model and its curve.
fn folder(spec: &'static str, arguments: &[&str]) -> TempDir {
    let folder = with_model(spec);
    prune(folder.path(), arguments);
    folder
}

fn prune(folder: &Path, arguments: &[&str]) {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(CURVE).args(arguments).assert().success();
}

fn command(folder: &Path, export: &str, arguments: &[&str]) -> Command {
    let mut command = test_support::command("export-model", folder);
    command.arg(export).args(arguments);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(&mut command(folder, "refused", arguments))
}

fn steps(folder: &Path) -> Vec<CurveRow> {
    let rows: Vec<CurveRow> = rows(folder, "iterative-prune.csv");
    rows.into_iter().filter(|row| row.curve().to_string() == "all/importance").collect()
}

fn config(folder: &Path, export: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(export).join("config.json")).unwrap()).unwrap()
}

/// Checks that the folder contains the code that `config.json` names.
fn has_code(folder: &Path, export: &str, class: &str) {
    assert!(folder.join(export).join("modeling_headcount.py").exists(), "{export}");
    let (auto, name) = class.split_once(' ').unwrap();
    assert_eq!(config(folder, export)["auto_map"], json!({ auto: format!("modeling_headcount.{name}") }));
}

fn removed(config: &Value) -> usize {
    config["pruned_heads"].as_object().unwrap().values().map(|heads| heads.as_array().unwrap().len()).sum()
}

/// In both forms, the exported model has the score of its row. Zeros are refused if weights have been removed already.
#[test]
fn an_exported_model_has_the_score_of_its_row() {
    for (spec, kind) in [(CLASSIFIER, "ForSequenceClassification"), (TAGGER, "ForTokenClassification")] {
        let folder = folder(spec, &["--step-percent", "25", "--order", "importance,random"]);
        let row = steps(folder.path()).into_iter().find(|row| row.masked == 3).unwrap();
        for form in ["cut", "zeros"] {
            let mut export = command(folder.path(), form, &["--form", form, "--percent", "50"]);
            export.assert().success().stdout(format!("{form}\n"));
            assert_eq!(score_of_export(folder.path(), form, spec), row.score, "{form}");
            let about = Signature::read(&folder.path().join(form).join("pruning.json")).unwrap().unwrap();
            assert_eq!(about.identity.arguments["removed_heads"], row.masked_heads);
        }
        has_code(folder.path(), "cut", &format!("AutoModel{kind} Bert{kind}"));
        assert!(!folder.path().join("zeros/modeling_headcount.py").exists());
        let kept = fs::read_to_string(folder.path().join("results/cut/ablate-one.csv")).unwrap();
        assert_eq!(kept.lines().count(), 1 + 3, "removed heads have no row: {kept}");

        let arguments = ["cut.toml", "--quiet", "--step-percent", "50", "--resamples", "0"];
        program("iterative-prune", folder.path()).args(arguments).assert().success();
        let mut again = program("export-model", folder.path());
        again.args(["cut.toml", "dense", "--form", "zeros", "--percent", "50"]);
        let message = test_support::refusal(&mut again);
        assert!(message.contains("has 3 heads removed from its weights"), "{message}");
    }
}

#[test]
fn an_export_without_removed_heads_has_the_score_of_the_full_model() {
    let folder = folder(CLASSIFIER, &["--step-percent", "25", "--order", "importance,random"]);
    let base = steps(folder.path())[0].base_score;
    for form in ["cut", "zeros", "uniform"] {
        command(folder.path(), form, &["--form", form, "--percent", "0"]).assert().success();
        assert_eq!(score_of_export(folder.path(), form, CLASSIFIER), base, "{form}");
        assert!(!folder.path().join(form).join("modeling_headcount.py").exists());
    }

    // the model has 16 positions
    let setup = fs::read_to_string(folder.path().join("cut.toml")).unwrap();
    fs::write(folder.path().join("tiny.toml"), setup.replace("max_length = 16", "max_length = 17")).unwrap();
    let message = test_support::refusal(&mut test_support::command("ablate-one", folder.path()));
    assert!(message.contains("tokenizer.max_length is 17, but"), "{message}");
    fs::write(folder.path().join("tiny.toml"), CLASSIFIER).unwrap();
    let message = refusal(folder.path(), &["--percent", "50", "--export-gguf", "model.gguf"]);
    assert!(message.contains("model_type `bert` cannot be written as GGUF"), "{message}");
}

/// If Python cannot write the ONNX file, the folder is complete and one line explains the failure. An outdated file is removed.
#[test]
fn an_onnx_file_is_written_next_to_the_weights_or_one_line_explains_the_failure() {
    let folder = folder(CLASSIFIER, &["--step-percent", "50", "--order", "importance"]);
    let arguments = ["--form", "onnx", "--percent", "50"];
    let message = test_support::refusal(command(folder.path(), "cut", &arguments).env("PYTHON", "no-python"));
    assert!(message.contains("`no-python` (set PYTHON to use another Python)"), "{message}");
    has_code(folder.path(), "cut", "AutoModelForSequenceClassification BertForSequenceClassification");
    let file = folder.path().join("cut/model.onnx");
    fs::write(&file, "of other heads").unwrap();
    command(folder.path(), "cut", &["--percent", "50", "--replace"]).assert().success();
    assert!(!file.exists());

    let mut export = command(folder.path(), "cut", &[&arguments[..], &["--replace"]].concat());
    let output = export.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() && message.contains("there is no package") {
        return test_support::skipped(&message);
    }
    assert!(output.status.success() && file.exists(), "{message}");
}

#[test]
fn a_gguf_file_has_the_score_of_its_row() {
    let folder = folder(LANGUAGE_MODEL, &["--step-percent", "25"]);
    let row = steps(folder.path()).into_iter().find(|row| 2 * row.masked == row.heads).unwrap();
    let arguments = ["--percent", "50", "--export-gguf", "model.gguf", "--type", "f32"];
    let zeros = [&arguments[..], &["--form", "zeros"]].concat();
    command(folder.path(), "zeros", &zeros).assert().success().stdout("zeros\nmodel.gguf\n");
    let file = folder.path().join("model.gguf");
    gguf::import(&file, &folder.path().join("back"), false).unwrap();
    assert_eq!(score_of_export(folder.path(), "back", LANGUAGE_MODEL), row.score);

    let size = fs::metadata(&file).unwrap().len();
    assert!(refusal(folder.path(), &arguments).contains("`model.gguf` exists already"));
    assert_eq!(fs::metadata(&file).unwrap().len(), size);
    command(folder.path(), "cut", &[&arguments[..], &["--replace"]].concat()).assert().success();
    assert!(fs::metadata(&file).unwrap().len() < size, "heads are cut out of the file too");
}

/// A curve with mean ablation scores models with folded means, which only `--fold` writes.
#[test]
fn a_folded_model_has_the_score_of_its_row_under_mean_ablation() {
    for spec in [CLASSIFIER, TRANSLATOR, LANGUAGE_MODEL] {
        let folder = folder(spec, &["--step-percent", "25", "--ablation", "mean", "--reference-limit", "30"]);
        let rows: Vec<CurveRow> = rows(folder.path(), "iterative-prune-mean.csv");
        let step =
            |row: &CurveRow| row.curve().to_string() == "all/importance" && 2 * row.masked == row.heads;
        let row = rows.iter().find(|row| step(row)).unwrap();
        command(folder.path(), "folded", &["--fold", "--percent", "50"]).assert().success();
        let gap = score_of_export(folder.path(), "folded", spec) - row.score;
        assert!(gap.abs() < 1e-5, "{gap:e}");
        assert!(spec != LANGUAGE_MODEL || row.score != row.base_score, "nats show any change");
        let mean = ["--from", "results/tiny/iterative-prune-mean.csv", "--percent", "50"];
        assert!(refusal(folder.path(), &mean).contains("--fold writes that model"));
    }
}

#[test]
fn the_largest_dispensable_share_is_exported() {
    let folder = folder(CLASSIFIER, &[]);
    let steps = steps(folder.path());
    let mut exported = 0;
    for margin in ["0.01", "2", "10", "30"] {
        let mut export = command(folder.path(), "best", &["--margin", margin, "--replace"]);
        let percent: f64 = margin.parse().unwrap();
        let is_dispensable = |row: &&CurveRow| {
            row.masked == 0 || row.masked < 6 && row.delta_low.unwrap() > -percent / 100.0 * row.base_score
        };
        let expected = steps.iter().take_while(is_dispensable).last().unwrap();
        if expected.masked == 0 {
            let message = test_support::refusal(&mut export);
            assert!(message.contains("no heads are shown to be dispensable"), "{message}");
            continue;
        }
        export.assert().success();
        exported += 1;
        assert_eq!(removed(&config(folder.path(), "best")), expected.masked, "margin {margin}");
        let about = Signature::read(&folder.path().join("best/pruning.json")).unwrap().unwrap();
        assert_eq!(about.testing.unwrap().margin_percent, percent);
    }
    assert!(exported > 0, "at some margin, a head can be removed");

    // the margin of the results is the default
    prune(folder.path(), &["--margin", "30"]);
    command(folder.path(), "as-before", &[]).assert().success();
    assert_eq!(config(folder.path(), "as-before"), config(folder.path(), "best"));
}

#[test]
fn translators_and_the_sets_of_a_search_are_exported_and_read_back() {
    let folder = folder(TRANSLATOR, &["--step-percent", "50"]);
    let mut search = test_support::command("iterative-prune", folder.path());
    search.args(["--preset", "joint-search", "--order", "swap", "--search-limit", "5", "--evaluations", "3"]);
    search.args(["--estimate-limit", "40", "--resamples", "9"]).assert().success();
    let searched: Vec<CurveRow> = rows(folder.path(), "joint-search.csv");
    let from = ["--from", "results/tiny/joint-search.csv", "--percent", "50"];
    for (export, arguments, row) in
        [("ordered", &["--percent", "50"][..], &steps(folder.path())[1]), ("searched", &from, &searched[1])]
    {
        command(folder.path(), export, arguments).assert().success();
        has_code(folder.path(), export, "AutoModelForSeq2SeqLM MarianMTModel");
        assert_eq!(score_of_export(folder.path(), export, TRANSLATOR), row.score, "{export}");
    }
}

#[test]
fn whole_groups_are_removed_and_every_export_equals_the_masked_model() {
    let folder = folder(LANGUAGE_MODEL, &["--unit", "group", "--uniform", "--step-percent", "50"]);
    let row = steps(folder.path()).into_iter().find(|row| row.masked == 4).unwrap();
    for form in ["cut", "zeros", "uniform"] {
        command(folder.path(), form, &["--form", form, "--percent", "50"]).assert().success();
        let gap = (score_of_export(folder.path(), form, LANGUAGE_MODEL) / row.score - 1.0).abs();
        assert!(gap < 1e-5, "{form}: {gap:e}");
    }
    has_code(folder.path(), "cut", "AutoModelForCausalLM LlamaForCausalLM");
    let options = (tch::Kind::Float, tch::Device::Cpu);
    let load = |export: &str| LanguageModel::load(&folder.path().join(export), options).unwrap();
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
fn gpt2_is_trained_and_exported() {
    let spec = LANGUAGE_MODEL.replace("\"llama\"", "\"gpt2\"").replace("key_value_heads = 2\n", "");
    let folder = test_support::folder(&spec);
    prune(folder.path(), &["--step-percent", "25"]);
    command(folder.path(), "cut", &["--percent", "25"]).assert().success();
    let row = steps(folder.path()).into_iter().find(|row| row.masked == 2).unwrap();
    let gap = (score_of_export(folder.path(), "cut", &spec) / row.score - 1.0).abs();
    assert!(gap < 1e-5, "{gap:e}");
}

#[test]
fn invalid_exports_are_refused() {
    let folder = with_model(CLASSIFIER);
    let refused = |arguments: &[&str], expected: &str| {
        let message = refusal(folder.path(), arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    };
    refused(&[], "`results/tiny/iterative-prune.csv` does not exist: measure a curve");
    prune(folder.path(), &["--step-percent", "50", "--limit", "first:1", "--resamples", "0"]);
    prune(
        folder.path(),
        &["--ablation", "mean", "--step-percent", "50", "--output", "results/tiny/iterative-prune-a.csv"],
    );
    refused(&[], "such as results/tiny/iterative-prune-first-1.csv");
    prune(folder.path(), &["--step-percent", "50", "--order", "fisher,entropy"]);
    refused(&[], "has no curve `all/importance`: --curve must be one of all/entropy, all/fisher");
    refused(&["--curve", "all/entropy", "--percent", "20"], "--percent can be 50");
    for (name, arguments, expected) in [
        ("bf16", &["--precision", "bf16"][..], "models are written in f32"),
        ("rescaled", &["--rescale"], "was measured with --rescale"),
        ("untested", &["--resamples", "0"], "has an interval"),
        ("oracle", &["--order", "oracle"], "the heads were ranked on the scored split"),
    ] {
        let file = format!("{name}.csv");
        prune(folder.path(), &[&["--step-percent", "50", "--output", &file], arguments].concat());
        refused(&["--from", &file], expected);
    }
    refused(&["--from", "results/tiny/ablate-one.csv"], "expected results of iterative-prune");
    let weights = Path::new("results/tiny/iterative-prune.json");
    let mut other: Value = serde_json::from_slice(&fs::read(folder.path().join(weights)).unwrap()).unwrap();
    other["identity"]["weights"] = "0123".into();
    fs::write(folder.path().join(weights), other.to_string()).unwrap();
    refused(&["--curve", "all/entropy", "--percent", "50"], "was measured with a model other than");
    assert!(!folder.path().join("refused").exists());
}
