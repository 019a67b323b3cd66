//! Tables, curves and re-read exports of all families.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use core_masking::classifier::ClassifierFamily;
use core_masking::families::{CLASSIFIERS, LANGUAGE_MODELS, TRANSLATORS};
use core_masking::{
    Classifier, ClassifierConfig, GatedModel, LanguageConfig, LanguageModel, Translator, TranslatorConfig,
};
use flate2::Compression;
use flate2::read::GzEncoder;
use records::CurveRow;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::copy_files;

const OPTIONS: (tch::Kind, tch::Device) = (tch::Kind::Float, tch::Device::Cpu);

/// Returns the folder of a tokenizer made by transformers.
fn tokenizer(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/tests/fixtures")).join(name)
}

/// Removes the normalisation table, which the fixture leaves empty to save space.
fn without_charsmap(folder: &Path) {
    let path = folder.join("tokenizer.json");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let mut json: Value = serde_json::from_str(&text).unwrap();
    if let Some(Value::Array(parts)) = json.pointer_mut("/normalizer/normalizers") {
        parts.retain(|part| part["type"] != "Precompiled");
    }
    fs::write(path, json.to_string()).unwrap();
}

/// A tiny model of a family, based on its configuration in `golden/`, in place of a hub model: random weights and a matching tokenizer.
struct Tiny {
    config: Value,
    /// Setup in `experiments/` for models of this kind.
    subject: &'static str,
    /// Folder with the files of a tokenizer.
    tokenizer: PathBuf,
    vocabulary: u32,
}

/// Finds a configuration of this family in the golden folders of the tests or the workspace.
fn config_of(model_type: &str) -> Option<Value> {
    let golden =
        ["", "/families", "/more", "/tokens-images"].map(|place| format!("../test-support/golden{place}"));
    let places = golden.into_iter().chain(["../../../shared/golden/more".to_owned()]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = places.filter_map(|place| fs::read_dir(root.join(place)).ok()).flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
    folders.sort();
    let texts = folders.iter().filter_map(|folder| fs::read_to_string(folder.join("config.json")).ok());
    let mut configs = texts.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    configs.find(|config| config["model_type"] == model_type)
}

impl Tiny {
    fn of(model_type: &str) -> Option<Self> {
        let mut config = config_of(model_type)?;
        let is = |names: &[&str]| names.contains(&model_type);
        let translator = TRANSLATORS.iter().any(|family| is(&[family.model_type]));
        let language = LANGUAGE_MODELS.iter().any(|family| is(&[family.model_type]));
        let (fixture, vocabulary) = match model_type {
            "marian" => ("../../../core-masking/tests/fixtures/tiny-marian", 0), // a complete model
            "fsmt" => ("fsmt", 155),
            "gemma" | "gemma2" | "gemma3_text" | "llama" | "mistral" => ("language/llama2", 359),
            _ if language => ("language/gpt2", 310),
            _ if translator || config["pad_token_id"] == 1 => ("classifiers/xlm-roberta-json", 404),
            _ => ("classifiers/bert-fast", 200),
        };
        let subject = match model_type {
            "marian" => "opus-mt-en-fr",
            "fsmt" => "wmt19-en-de",
            "bart" => "bart-large-cnn",
            "mbart" | "m2m_100" => "nllb-600m",
            "gpt_neox" => "pythia-160m",
            "gemma3_text" => "gemma-3-270m",
            "olmo2" => "olmo-2-1b",
            "modernbert" => "modernbert-mnli",
            _ if translator => "flan-t5-small",
            _ if language => "qwen3-0.6b",
            _ => "deberta-v3-mnli",
        };
        let changes = json!({
            "vocab_size": vocabulary, "src_vocab_size": vocabulary, "tgt_vocab_size": 152, "initializer_range": 0.3,
            "max_position_embeddings": 2048, "n_positions": 2048, "id2label": {"0": "entailment", "1": "neutral", "2": "contradiction"},
            "label2id": {"entailment": 0, "neutral": 1, "contradiction": 2}
        });
        let entries = config.as_object_mut().unwrap();
        entries.extend(changes.as_object().unwrap().clone());
        if fixture == "classifiers/bert-fast" {
            entries.insert("pad_token_id".to_owned(), json!(0));
        }
        if translator && model_type != "fsmt" {
            let start = match model_type {
                "mbart" => vocabulary - 1,
                "t5" | "mt5" | "pegasus" => 1,
                _ => 2,
            };
            let symbols = json!({
                "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": start
            });
            entries.extend(symbols.as_object().unwrap().clone());
        }
        Some(Self { config, subject, tokenizer: tokenizer(fixture), vocabulary })
    }

    fn write(&self, folder: &Path) {
        copy_files(&self.tokenizer, folder);
        if self.vocabulary == 0 {
            return;
        }
        let path = folder.join("config.json");
        fs::write(&path, self.config.to_string()).unwrap();
        without_charsmap(folder);
        if let Ok(config) = TranslatorConfig::read(&path) {
            let mut search = json!({ "num_beams": 2, "max_length": 12 });
            for name in ["eos_token_id", "pad_token_id", "decoder_start_token_id"] {
                search[name] = self.config[name].clone();
            }
            fs::write(folder.join("generation_config.json"), search.to_string()).unwrap();
            add_codes(folder, ["eng_Latn", "fra_Latn"]);
            Translator::random(config, 5, OPTIONS).unwrap().save(folder).unwrap();
        } else if let Ok(config) = LanguageConfig::read(&path) {
            LanguageModel::random(config, 5, OPTIONS).unwrap().save(folder).unwrap();
        } else {
            let config = ClassifierConfig::read(&path).unwrap();
            Classifier::random(config, 5, OPTIONS).unwrap().save(folder).unwrap();
        }
    }
}

/// Appends language codes to the tokenizer's vocabulary.
fn add_codes(folder: &Path, codes: [&str; 2]) {
    let path = folder.join("tokenizer.json");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let mut json: Value = serde_json::from_str(&text).unwrap();
    let added = json["added_tokens"].as_array_mut().unwrap();
    for code in codes {
        let mut token = added.last().unwrap().clone();
        token["id"] = (token["id"].as_u64().unwrap() + 1).into();
        token["content"] = code.into();
        added.push(token);
    }
    fs::write(path, json.to_string()).unwrap();
}

/// Writes the data files of these setups, with a few lines each.
fn write_data(data: &Path) {
    let english = "The dogs is sleeping.\nNobody eats here!\nA man sees the cat.\n";
    let pairs = "sentence1\tsentence2\tgold_label\nA dog sleeps.\tIt sleeps.\tentailment\nA man eats.\tHe \
                 sleeps.\tcontradiction\nA dog runs.\tIt is old.\tneutral\n";
    let articles = " \n = One = \n \n The dogs sleep here . \n \n = Two = \n \n A man sees the cat and the dogs . \n \n = \
                    Three = \n \n Nobody eats . \n";
    for (file, text) in [
        ("ntrex/newstest2019-src.eng.txt", english),
        ("ntrex/newstest2019-ref.fra.txt", "Les chiens dorment.\nPersonne ici !\nUn homme voit le chat.\n"),
        ("ntrex/newstest2019-ref.deu.txt", "Die Hunde schlafen.\nNiemand hier!\nEin Mann sieht die Katze.\n"),
        ("newstest/newstest2013.en", english),
        ("newstest/newstest2013.fr", "Le chat dort.\nPersonne ne mange.\nUn chat.\n"),
        ("multi30k/val.en.gz", english),
        ("multi30k/val.de.gz", "Ein Hund.\nNiemand schläft.\nEin Mann isst.\n"),
        ("cnn-dailymail/val.source", english),
        ("cnn-dailymail/val.target", english),
        ("cnn-dailymail/test.source", english),
        ("cnn-dailymail/test.target", english),
        ("glue/MNLI/train.tsv", pairs),
        ("glue/MNLI/dev_matched.tsv", pairs),
        ("wikitext2/wiki.valid.raw", articles),
        ("wikitext2/wiki.test.raw", articles),
    ] {
        let mut bytes = text.as_bytes().to_owned();
        if file.ends_with(".gz") {
            bytes.clear();
            GzEncoder::new(text.as_bytes(), Compression::fast()).read_to_end(&mut bytes).unwrap();
        }
        durable::write(&data.join(file), bytes).unwrap();
    }
}

/// Runs the commands of `just reproduce-table1` and `just reproduce-figure3` on the setups in `experiments/`, with a tiny model of each
/// family. Then exports the middle step of the curve and checks that it has the score of its row.
fn check_subjects<'a>(families: impl Iterator<Item = &'a str>) {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let folder = TempDir::new().unwrap();
    write_data(&folder.path().join("data"));
    let run = |program: &str, arguments: &[&str]| {
        let mut command = test_support::program(program, folder.path());
        command.args(arguments).env("HF_HOME", folder.path().join("hf")).env("HF_HUB_OFFLINE", "1");
        let output = command.assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap().lines().last().unwrap_or_default().to_owned()
    };
    let rows = |file: &str| csv::Reader::from_path(folder.path().join(file)).unwrap();
    for family in families {
        let Some(tiny) = Tiny::of(family) else {
            test_support::skipped(&format!("there is no folder of `{family}`"));
            continue;
        };
        let subject = experiments.join(format!("{}.toml", tiny.subject));
        let spec = fs::read_to_string(&subject).unwrap();
        let model = spec.split("\nfrom = \"hub:").nth(1).unwrap().split('"').next().unwrap();
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let cached = folder.path().join("hf/hub").join(format!("models--{}", model.replace('/', "--")));
        durable::write(&cached.join("refs/main"), commit).unwrap();
        let snapshot = cached.join("snapshots").join(commit);
        tiny.write(&snapshot);

        let (subject, results) = (subject.display().to_string(), format!("results-{family}"));
        let common = [&subject, "--quiet", "--limit", "first:3", "--results", &results];
        let table = run("ablate-one", &[&common[..], &["--attention", "paper"]].concat());
        let steps = ["--order", "importance,oracle,random", "--random-orders", "1", "--step-percent", "50"];
        let unit = ["--unit", if family == "albert" { "group" } else { "head" }]; // its layers share weights
        let curve = run("iterative-prune", &[&common[..], &steps, &unit].concat());
        run("plotting", &["table1", &table]);
        run("plotting", &["figure3", &curve]);

        let rows_of_curve: Vec<CurveRow> = rows(&curve).deserialize().collect::<Result<_, _>>().unwrap();
        let is_middle = |row: &&CurveRow| row.order == "importance" && row.step == 1 && !row.complement;
        let row = rows_of_curve.iter().find(is_middle).unwrap();
        let cut = format!("cut-{family}");
        let step = ["--percent", "50", "--from", &curve, "--curve", "all/importance", "--quiet"];
        run("export-model", &[&[&subject, &cut, "--results", &results][..], &step].concat());
        let exported = folder.path().join(&cut).display().to_string();
        fs::write(folder.path().join("own.toml"), spec.replace(&format!("hub:{model}"), &exported)).unwrap();
        let table = run("ablate-one", &["own.toml", "--quiet", "--limit", "first:3", "--results", &cut]);
        let first: BTreeMap<String, String> = rows(&table).deserialize().next().unwrap().unwrap();
        let again: f64 = first["base_score"].parse().unwrap();
        assert!((again - row.score).abs() < 1e-5, "{family}: {again}, but {} when masked", row.score);
        fs::remove_dir_all(snapshot).unwrap();
    }
}

#[test]
fn the_translators_of_the_hub_run_on_a_folder_of_each_family() {
    check_subjects(TRANSLATORS.iter().map(|family| family.model_type));
}

#[test]
fn the_classifiers_of_the_hub_run_on_a_folder_of_each_family() {
    // image classifiers have no hub setup; `images.rs` prunes and exports one
    let reads_texts = |family: &&&ClassifierFamily| family.names.patches.is_none();
    check_subjects(CLASSIFIERS.iter().filter(reads_texts).map(|family| family.model_type));
}

#[test]
fn the_language_models_of_the_hub_run_on_a_folder_of_each_family() {
    check_subjects(LANGUAGE_MODELS.iter().map(|family| family.model_type));
}
