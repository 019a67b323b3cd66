//! The example `one_head`, on the random BERT of the reference numbers with a vocabulary of placeholder words.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
#[path = "../examples/one_head.rs"]
#[expect(dead_code, reason = "the test calls what `main` calls")]
mod one_head;

use std::fs;
use std::path::Path;

use core_masking::classifier::LabelledBatch;
use core_masking::{Classifier, GatedModel, Gates, HeadSet, ModelDropout, Removal};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const TEXTS: &str = "LABEL_1\tw5 w90 w17\nLABEL_0\tw44 w8\tw61 w23 w70\nLABEL_2\tw31\n";

/// Creates the model's folder with a vocabulary.
fn folder() -> tempfile::TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden/bert-random");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words = special.into_iter().chain((5..97).map(|id| format!("w{id}"))).collect::<Vec<_>>();
    fs::write(folder.path().join("vocab.txt"), words.join("\n")).unwrap();
    folder
}

/// Returns the output of the example, line by line.
fn printed(folder: &Path, texts: &str) -> anyhow::Result<Vec<String>> {
    let (path, mut out) = (folder.join("texts.tsv"), Vec::new());
    fs::write(&path, texts).unwrap();
    one_head::one_head(folder, &path, &mut out)?;
    Ok(String::from_utf8(out).unwrap().lines().map(str::to_owned).collect())
}

/// Returns the batch of these texts, tokenised by hand.
fn examples(model: &Classifier) -> LabelledBatch {
    let ids: [&[u32]; 3] = [&[2, 5, 90, 17, 3], &[2, 44, 8, 3, 61, 23, 70, 3], &[2, 31, 3]];
    let segments: [&[u32]; 3] = [&[0; 5], &[0, 0, 0, 0, 1, 1, 1, 1], &[0; 3]];
    let rows: Vec<_> = ids.into_iter().zip(segments).collect();
    LabelledBatch { inputs: model.batch(&rows).unwrap(), labels: Tensor::from_slice(&[1_i64, 0, 2]) }
}

/// Returns accuracy and nats of the full model.
fn plain(model: &Classifier) -> [f64; 2] {
    let (open, off, examples) = (Gates::open(&model.layout(), OPTIONS), ModelDropout::OFF, examples(model));
    let best = model.forward(&examples.inputs, &open, &off).argmax(-1, false);
    let right = best.eq_tensor(&examples.labels).to_kind(Kind::Double);
    [right, model.losses(&examples, &open, &off)].map(|of_texts| of_texts.mean(None).double_value(&[]))
}

/// The first number is the full model's, each further one is from a model whose weights lack the head.
#[test]
fn the_example_prints_what_each_head_is_worth() {
    let folder = folder();
    let model = Classifier::load(folder.path(), OPTIONS).unwrap();
    let lines = printed(folder.path(), TEXTS).unwrap();
    let numbers =
        |line: &str| -> Vec<f64> { line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect() };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1.1e-4, "{found} {expected}");

    let intact = plain(&model);
    let found = numbers(&lines[1]);
    assert!(lines[1].starts_with("no head") && found.len() == 2, "{}", lines[1]);
    found.into_iter().zip(intact).for_each(|(found, expected)| near(found, expected));

    let heads = model.layout().heads();
    assert_eq!(lines.len(), 2 + heads.len());
    for (head, line) in heads.into_iter().zip(&lines[2..]) {
        assert!(line.starts_with(&format!("{head} ")), "{line}");
        let without = plain(&model.without_heads(&HeadSet::from_iter([head]), Removal::Cut).unwrap());
        let expected = [without[0], without[0] - intact[0], without[1], without[1] - intact[1]];
        let found = numbers(line);
        assert_eq!(found.len(), 4, "{line}");
        found.into_iter().zip(expected).for_each(|(found, expected)| near(found, expected));
    }
}

#[test]
fn a_line_at_fault_is_named() {
    let folder = folder();
    let refusal = |texts: &str| format!("{:#}", printed(folder.path(), texts).unwrap_err());
    let unknown = refusal("LABEL_1\tw5\nyes\tw6\n");
    assert!(unknown.ends_with("texts.tsv`, line 2: the classes are LABEL_0, LABEL_1, LABEL_2"), "{unknown}");
    let untabbed = refusal("LABEL_1 w5\n");
    assert!(untabbed.ends_with("texts.tsv`, line 1: not a class, a tab and a text"), "{untabbed}");
    assert!(refusal("").ends_with("texts.tsv` holds no text"), "{}", refusal(""));
}
