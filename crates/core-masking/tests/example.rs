//! The example `one_head`, on the random BERT of the reference numbers with a vocabulary of placeholder words.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
#[path = "../examples/one_head.rs"]
#[expect(dead_code, reason = "the test calls what `main` calls")]
mod one_head;

use std::fs;
use std::path::Path;

use core_masking::classifier::LabelledBatch;
use core_masking::{Classifier, GatedModel, HeadSet, ModelDropout, Removal};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const TEXTS: &str = "LABEL_1\tw5 w90 w17\nLABEL_0\tw44 w8\tw61 w23 w70\nLABEL_2\tw31\n";

/// Creates the model's folder with a vocabulary.
fn folder() -> tempfile::TempDir {
    let golden = test_support::golden("bert-random").unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words = special.into_iter().chain((5..97).map(|id| format!("w{id}"))).collect::<Vec<_>>();
    fs::write(folder.path().join("vocab.txt"), words.join("\n")).unwrap();
    folder
}

/// Returns the output of the example.
fn printed(folder: &Path, texts: &str) -> anyhow::Result<String> {
    let (path, mut out) = (folder.join("texts.tsv"), Vec::new());
    fs::write(&path, texts)?;
    one_head::one_head(folder, &path, &mut out)?;
    Ok(String::from_utf8(out)?)
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
    let (open, off, examples) = (model.open(), ModelDropout::OFF, examples(model));
    let best = model.forward(&examples.inputs, &open, &off).argmax(-1, false);
    let right = best.eq_tensor(&examples.labels).to_kind(Kind::Double);
    [right, model.losses(&examples, &open, &off)].map(|of_texts| of_texts.mean(None).double_value(&[]))
}

/// The first numbers are the full model's; each further line has those of a model without the head.
#[test]
fn the_example_prints_the_effect_of_masking_each_head() {
    let folder = folder();
    let model = Classifier::load(folder.path(), OPTIONS).unwrap();
    let full = plain(&model);
    let mut expected = vec![("no head".to_owned(), full.to_vec())];
    for head in model.layout().heads() {
        let [accuracy, nats] =
            plain(&model.without_heads(&HeadSet::from_iter([head]), Removal::Cut).unwrap());
        expected.push((head.to_string(), vec![accuracy, accuracy - full[0], nats, nats - full[1]]));
    }
    let printed = printed(folder.path(), TEXTS).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 1 + expected.len());
    for (line, (name, expected)) in lines[1..].iter().zip(expected) {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        let is_near = numbers.iter().zip(&expected).all(|(found, own)| (found - own).abs() < 1.1e-4);
        let is_whole = line.starts_with(&name) && numbers.len() == expected.len();
        assert!(is_near && is_whole, "{line}: {expected:?}");
    }
}

#[test]
fn a_faulty_line_is_named() {
    let folder = folder();
    for (texts, expected) in [
        ("LABEL_1\tw5\nyes\tw6\n", "texts.tsv`, line 2: the classes are LABEL_0, LABEL_1, LABEL_2"),
        ("LABEL_1 w5\n", "texts.tsv`, line 1: not a class, a tab and a text"),
        ("", "texts.tsv` contains no text"),
    ] {
        let refusal = printed(folder.path(), texts).unwrap_err().to_string();
        assert!(refusal.ends_with(expected), "{refusal}");
    }
}
