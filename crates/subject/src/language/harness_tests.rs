//! Log-probabilities and accuracies compared with lm-evaluation-harness, for tasks in its package: `make.py` next to the fixture.
use std::collections::BTreeMap;
use std::path::Path;

use core_masking::{HeadSet, LanguageModel};
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::splits::BadRows;
use corpus::splits::language::{ChoiceRule, SplitFiles, Texts};
use serde::Deserialize;
use serde_json::Value;
use tch::{Device, Kind, Tensor};
use training::Precision;

use super::rows::{Choosing, Rows, Windowing};
use super::scorer::scores;
use super::spec::WindowSpec;
use crate::evaluation::{Request, Scorer};
use crate::models::Models;

#[derive(Deserialize)]
struct Expected {
    models: BTreeMap<String, Model>,
    tasks: BTreeMap<String, Task>,
}

#[derive(Deserialize)]
struct Model {
    config: Value,
    tensors: Vec<(String, Vec<i64>)>,
}

#[derive(Deserialize)]
struct Task {
    rows: Vec<Value>,
    train: Vec<Value>,
    number: usize,
    from: String,
    yaml: BTreeMap<String, String>,
    results: BTreeMap<String, Found>,
}

#[derive(Deserialize)]
struct Found {
    scores: Vec<Vec<f64>>,
    acc: Option<f64>,
    acc_norm: Option<f64>,
}

impl Model {
    /// Builds the model with the weights that `make.py` defines.
    fn load(&self, folder: &Path) -> LanguageModel {
        let tensor = |(place, (name, shape)): (usize, &(String, Vec<i64>))| {
            let added = if shape.len() == 1 && name.ends_with("weight") { 1.0 } else { 0.0 };
            let count = shape.iter().product::<i64>();
            let value = |n: i64| added + 0.4 * (12.9898 * n as f64 + 78.233 * place as f64).sin();
            let values: Vec<f32> = (0..count).map(|n| value(n) as f32).collect();
            (name.clone(), Tensor::from_slice(&values).view(shape.as_slice()))
        };
        let tensors: Vec<_> = self.tensors.iter().enumerate().map(tensor).collect();
        Tensor::write_safetensors(&tensors, folder.join("model.safetensors")).unwrap();
        std::fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        LanguageModel::load(folder, (Kind::Float, Device::Cpu)).unwrap()
    }
}

impl Task {
    /// Reads the texts of the task, using only its YAML file.
    fn read(&self, folder: &Path) -> Texts {
        let lines = |rows: &[Value]| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
        std::fs::write(folder.join("rows.jsonl"), lines(&self.rows)).unwrap();
        std::fs::write(folder.join("train.jsonl"), lines(&self.train)).unwrap();
        for (name, text) in &self.yaml {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let done = if self.yaml.values().any(|text| text.contains("process_docs:")) {
            "process_docs = 'done'"
        } else {
            ""
        };
        let number = self.number;
        let shots = if number > 0 {
            format!("fewshot = {{ number = {number}, files = ['train.jsonl'] }}")
        } else {
            String::new()
        };
        let split = format!("from = 'lm-eval:{}'\nfiles = ['rows.jsonl']\n{done}\n{shots}", self.from);
        let mut split: SplitFiles = toml::from_str(&split).unwrap();
        split.translate(folder).unwrap();
        split.validate().unwrap();
        split.read(folder, &mut BadRows::default()).unwrap().unwrap()
    }
}

/// Log-probabilities agree within 1e-4 nats and accuracies exactly, for a model whose tokenizer adds BOS and one whose does not.
#[test]
fn tasks_are_scored_as_by_the_harness() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let expected = std::fs::read(here.join("tests/fixtures/harness/expected.json")).unwrap();
    let Expected { models, tasks } = serde_json::from_slice(&expected).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, model) in &models {
        let tokenizer =
            LanguageTokenizer::load(&here.join("../corpus/tests/fixtures/language").join(name)).unwrap();
        let models = Models::new(model.load(folder.path()), Precision::F32).unwrap();
        for (task, described) in &tasks {
            let known = &described.results[name];
            let texts = described.read(folder.path());
            let rows = |rule| match &texts {
                Texts::Questions(questions) => {
                    let choosing = Choosing { rule, context_bos: tokenizer.added_bos(), positions: 512 };
                    Rows::of_choices(&tokenizer, questions, choosing, "test").unwrap()
                }
                Texts::Documents(documents) => {
                    let windowing = Windowing::of(&WindowSpec::default(), 512, tokenizer.begin()).unwrap();
                    Rows::of_documents(&tokenizer, documents, windowing, "test").unwrap()
                }
            };
            // The harness adds BOS to whole texts that already have it, and predicts the second BOS from the first.
            if matches!(texts, Texts::Documents(_)) && tokenizer.added_bos().is_some() {
                continue;
            }
            let plain = rows(ChoiceRule::Acc);
            let units: Vec<usize> = (0..plain.units()).collect();
            let found = scores(&models.exact, &plain, &units).unwrap();
            assert_eq!(found.len(), known.scores.len(), "{task}");
            for (found, known) in found.iter().flatten().zip(known.scores.iter().flatten()) {
                assert!((found - known).abs() < 1e-4, "{name}, {task}: {found}, but the harness has {known}");
            }
            for (rule, known) in [(ChoiceRule::Acc, known.acc), (ChoiceRule::AccNorm, known.acc_norm)] {
                let Some(known) = known else { continue };
                let (Texts::Questions(questions), rows) = (&texts, rows(rule)) else { unreachable!() };
                let request = Request {
                    rows: &units,
                    sets: &[HeadSet::none()],
                    rescale: false,
                    sets_per_batch: 1,
                    replacement: None,
                };
                let (found, _) = (&rows).score(&models, &request, None).unwrap();
                let pairs = found[0].iter().zip(questions);
                let right = pairs.filter(|(found, question)| found.choice() == question.answer).count();
                assert_eq!(right as f64 / units.len() as f64, known, "{name}, {task}, {}", rule.name());
            }
        }
    }
}
