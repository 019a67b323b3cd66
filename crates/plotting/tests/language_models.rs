//! Language models through the binary: results made by hand, tested as real ones are, and what tables and figures say of them.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use predicates::str::contains;
use records::{
    AblationRow, DynamicsRow, Existing, Identity, Provenance, PruningRow, RowWriter, Signature, TestedRow,
    Testing,
};
use serde_json::json;
use stats::Segments;
use stats::classification::{ClassificationMetric, Outcome};
use stats::nats::NatsStatistics;
use tempfile::TempDir;

const TESTING: Testing = Testing { resamples: 999, seed: 1, margin_percent: 2.0 };
const DOCUMENTS: u32 = 60;
const HEADS: usize = 4;

/// Documents of 100 and more tokens at about 3 nats each; `cost` more of them, with some noise.
fn documents(cost: f64) -> Segments {
    let document = |n: u32| {
        let (tokens, noise) = (100 + 7 * (n % 11), f64::from(n * 37 % 19) / 19.0 - 0.5);
        let nats = f64::from(tokens) * (3.0 + 0.2 * noise + cost * (1.0 + noise));
        NatsStatistics::new(nats, tokens, tokens * 3 / 4).unwrap()
    };
    Segments::Nats((0..DOCUMENTS).map(document).collect())
}

/// Pairs of sentences in groups of 50, of which `wrong` are wrong in each.
fn choices(wrong: [u32; 3]) -> Segments {
    let choice = |n: u32| Outcome { gold: 0, predicted: usize::from(n % 50 < wrong[(n / 50) as usize]) };
    Segments::Classes((0..150).map(choice).collect(), ClassificationMetric::Accuracy)
}

fn identity(experiment: &str, split: &str) -> Identity {
    let arguments = [("task", "language-modelling".into()), ("key_value_heads", 2.into())];
    Identity {
        split: split.to_owned(),
        arguments: arguments.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Identity::new(experiment, "tiny-lm")
    }
}

/// Writes rows with the segments that they were measured on, tested.
fn write<R: TestedRow>(path: &Path, identity: Identity, base: &Segments, rows: Vec<(R, Segments)>) {
    let families: BTreeMap<String, usize> = rows.iter().map(|(row, _)| (row.family(), 0)).collect();
    let measured = significance::measured(base.metric(), families);
    let run = Provenance { duration_seconds: Some(1.0), ..Provenance::collect("cpu", 1, BTreeMap::new()) };
    let signature = Signature::new(identity, run).tested(measured.clone(), TESTING);
    let mut writer = RowWriter::open(path, &signature, Existing::Use).unwrap();
    let columns = base.metric().columns();
    let mut bases: Vec<String> = rows.iter().map(|(row, _)| row.base()).collect();
    bases.sort();
    bases.dedup();
    for name in &bases {
        writer.add_base(columns, significance::block(name.clone(), base, None)).unwrap();
    }
    for (row, segments) in rows {
        let block = significance::block(row.name(), &segments, Some(base));
        writer.push_measured(row, columns, block).unwrap();
    }
    writer.finish(|rows, blocks| significance::test_rows(rows, blocks, &measured, TESTING)).unwrap();
}

fn ablation(base: &Segments, variant: Segments, layer: usize, head: usize) -> (AblationRow, Segments) {
    let [before, after] = [base, &variant].map(|segments| segments.score().unwrap());
    (AblationRow::untested("self", (layer, head), base.metric().name(), before, after), variant)
}

/// Head 1:3 is worth 0.3 nats a token, 2:1 a tenth of that; without 2:4 the model is better.
fn cost(layer: usize, head: usize) -> f64 {
    match (layer, head) {
        (1, 3) => 0.3,
        (2, 1) => 0.03,
        (2, 4) => -0.02,
        _ => 0.0001 * head as f64,
    }
}

/// Head 1:3 spoils the first two groups, 2:2 the third.
fn wrong(layer: usize, head: usize) -> [u32; 3] {
    match (layer, head) {
        (1, 3) => [40, 35, 6],
        (2, 2) => [3, 6, 45],
        (2, 4) => [2, 3, 5],
        _ => [2, 5, 5],
    }
}

fn sweep_of(base: &Segments, variant: impl Fn(usize, usize) -> Segments) -> Vec<(AblationRow, Segments)> {
    let heads = (1..=2).flat_map(|layer| (1..=HEADS).map(move |head| (layer, head)));
    heads.map(|(layer, head)| ablation(base, variant(layer, head), layer, head)).collect()
}

fn curve(base: &Segments) -> Vec<(PruningRow, Segments)> {
    let costs = [0.0, -0.002, 0.001, 0.04, 0.2, 0.9, 1.5, 2.5, 4.0];
    let step = |(step, &cost): (usize, &f64)| {
        let variant = documents(cost);
        let row = PruningRow {
            attention: "all".to_owned(),
            order: "importance".to_owned(),
            step,
            masked: step,
            heads: 8,
            metric: "nats".to_owned(),
            base_score: base.score().unwrap(),
            score: variant.score().unwrap(),
            score_delta: variant.score().unwrap() - base.score().unwrap(),
            masked_heads: if step == 0 { String::new() } else { "self:1:1".to_owned() },
            ..PruningRow::default()
        };
        (row, variant)
    };
    costs.iter().enumerate().map(step).collect()
}

/// Two checkpoints, the first of which loses 0.1 nats a token with each head; exp(-0.1) = 90.5 % are kept of 1/perplexity.
fn training(base: &Segments) -> Vec<(DynamicsRow, Segments)> {
    let row = |epoch: usize, step: usize| {
        let variant = documents(step as f64 * if epoch == 1 { 0.1 } else { 0.02 });
        let row = DynamicsRow {
            epoch: Some(epoch),
            updates: 100 * epoch,
            step,
            masked: step,
            heads: 8,
            metric: "nats".to_owned(),
            base_score: base.score().unwrap(),
            score: variant.score().unwrap(),
            score_delta: variant.score().unwrap() - base.score().unwrap(),
            delta_low: None,
            delta_high: None,
            p_value: None,
            p_koehn: None,
            p_adjusted: None,
            p_benjamini_hochberg: None,
            p_unpaired_t: None,
            p_mcnemar: None,
            masked_heads: String::new(),
        };
        (row, variant)
    };
    (1..=2).flat_map(|epoch| (0..4).map(move |step| row(epoch, step))).collect()
}

fn results() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join("results/tiny-lm").join(name);
    let base = documents(0.0);
    let rows = sweep_of(&base, |layer, head| documents(cost(layer, head)));
    write(&path("ablate-one.csv"), identity("ablate-one", "test"), &base, rows);
    let rows = sweep_of(&base, |layer, head| documents(0.3 + cost(layer, head)));
    write(&path("ablate-all-but-one.csv"), identity("ablate-all-but-one", "test"), &base, rows);
    write(&path("iterative-prune.csv"), identity("iterative-prune", "test"), &base, curve(&base));
    write(&path("training-dynamics.csv"), identity("training-dynamics", "test"), &base, training(&base));
    let mut blimp = identity("ablate-one", "blimp");
    let group = |name: &str| json!({ "name": name, "segments": 50 });
    let groups = ["agreement", "agreement over a distractor", "islands"].map(group);
    blimp.arguments.insert("groups".to_owned(), json!(groups));
    let base = choices([2, 5, 5]);
    let rows = sweep_of(&base, |layer, head| choices(wrong(layer, head)));
    write(&path("ablate-one-blimp.csv"), blimp, &base, rows);
    folder
}

fn plotting(folder: &Path, arguments: &[&str]) -> Command {
    let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder).args(arguments).arg("--paper").arg(paper);
    command
}

fn read(folder: &Path, name: &str) -> String {
    let path: PathBuf = folder.join("results/tiny-lm/figures").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All that is drawn of a language model, in one run, since its results take a while to make.
#[test]
fn language_models_have_their_own_words_and_no_numbers_of_bert() {
    let folder = results();
    plotting(folder.path(), &["all", "tiny-lm"]).assert().success();
    let table = read(folder.path(), "ablate-one.md");
    for words in [
        "causal self-attention",
        "base 2.997 nats a token, perplexity 20.02",
        "who name language models as an open question",
        "|  | *kv 1* |  | *kv 2* |  |",
        "**+0.2952**",
    ] {
        assert!(table.contains(words), "`{words}` is missing in {table}");
    }
    let latex = read(folder.path(), "ablate-one.tex");
    assert!(latex.contains(r"\multicolumn{2}{c}{kv 2}") && latex.contains(r"\cmidrule(lr){4-5}"), "{latex}");
    assert!(read(folder.path(), "figure1-self.svg").contains("nats a token with one head masked"));
    let best = read(folder.path(), "table2-self.md");
    assert!(best.contains("**Best head of each layer.**") && best.contains("open question"), "{best}");
    // The best head of layer 1 is the one without which fewest nats are needed, not most: 0.3 + 0.0001.
    assert!(best.contains("(1)") && !best.contains("(3)"), "{best}");
    let figure = read(folder.path(), "figure3.svg");
    assert!(figure.contains("significantly above base"), "{figure}");
    let curve = read(folder.path(), "pruning.md");
    assert!(
        curve.contains("| importance | 37.5 |") && curve.contains("predicted from the one before"),
        "{curve}"
    );
    let training = read(folder.path(), "figure5.md");
    assert!(
        training.contains("percent of the unpruned 1/perplexity") && training.contains("whose nats a token")
    );
    for name in
        ["ablate-one.md", "table2-self.md", "pruning.md", "figure5.md", "groups-blimp.md", "figure3.svg"]
    {
        let text = read(folder.path(), name);
        assert!(
            !text.contains("BERT") && !text.contains("MNLI") && !text.contains("IWSLT"),
            "{name}: {text}"
        );
    }
}

#[test]
fn each_group_of_pairs_names_the_heads_it_needs() {
    let folder = results();
    let file = "results/tiny-lm/ablate-one-blimp.csv";
    let mut command = Command::cargo_bin("plotting").unwrap();
    command.current_dir(folder.path()).args(["groups", file]).assert().success();
    let text = read(folder.path(), "groups-blimp.md");
    assert!(text.contains("| agreement | 50 | 96.0 | 86.5 to 98.9 | self:1:3 -76.0 |  |"), "{text}");
    assert!(text.contains("| islands | 50 | 90.0 | 78.6 to 95.7 | self:2:2 -80.0 |  |"), "{text}");
    assert!(read(folder.path(), "groups-blimp.svg").contains("agreement over a distractor"));
    let mut command = Command::cargo_bin("plotting").unwrap();
    let message = "`results/tiny-lm/ablate-one.csv` has no groups of choices";
    command.current_dir(folder.path()).args(["groups", "tiny-lm"]).assert().code(1).stderr(contains(message));
}

#[test]
fn the_summary_answers_the_question_of_the_paper() {
    let folder = results();
    plotting(folder.path(), &["summary"]).assert().success();
    let text = fs::read_to_string(folder.path().join("results/summary.md")).unwrap();
    assert!(
        text.contains("## M19's question: a language model") && text.contains("Nats a token are no points")
    );
    let row = text.lines().rfind(|line| line.starts_with("| tiny-lm")).unwrap();
    let cells: Vec<&str> = row.split(" | ").collect();
    assert!(cells[1].starts_with("2.997 nats a token, perplexity 20.02"), "{row}");
    assert!(cells[2].starts_with("4."), "four thirds of the nats a token: {row}");
    assert_eq!((cells[3], cells[4]), ("8 of 8 heads", "37.5 %"), "{row}");
    assert!(cells[5].starts_with("+0.039") && cells[5].contains(" to +0.0"), "{row}");
}

/// Results of nats are tested again from what is stored, to the last bit.
#[test]
fn results_of_nats_are_tested_again_without_a_change() {
    let folder = results();
    let path = folder.path().join("results/tiny-lm/ablate-one.csv");
    let before = fs::read(&path).unwrap();
    significance::retest(&path, |testing| Testing { seed: 2, ..testing }).unwrap();
    assert_ne!(fs::read(&path).unwrap(), before);
    significance::retest(&path, |testing| Testing { seed: 1, ..testing }).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}
