//! Masks each attention head of a classifier separately and prints the effect: Michel et al. (2019), Section 3.2,
//! <https://arxiv.org/abs/1905.10650>, from the checkpoint to the table.
//!
//! `cargo run --release -p core-masking --example one_head -- FOLDER TEXTS`
//!
//! FOLDER contains a BERT classifier as saved by Hugging Face transformers. Each line of TEXTS has a class, a tab and a text; for text
//! pairs, another tab and the second text. `ablate-one` evaluates whole test sets and tests which effects are significant.
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use core_masking::classifier::Inputs;
use core_masking::loss::cross_entropy;
use core_masking::{Classifier, GatedModel, Gates, HeadSet, ModelDropout};
use corpus::classifier_tokenizer::ClassifierTokenizer;
use tch::{Device, Kind, Tensor, no_grad};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, texts] = &arguments[..] else {
        bail!("two arguments are needed: the folder of a classifier, and a file of labelled texts");
    };
    one_head(Path::new(folder), Path::new(texts), &mut io::stdout())
}

/// Writes a line for the full model, and one for each masked head.
pub fn one_head(folder: &Path, texts: &Path, out: &mut impl Write) -> Result<()> {
    let model = Classifier::load(folder, OPTIONS)?;
    let layout = model.layout();
    let (batch, classes) = read(texts, folder, &model)?;

    // Equation 1 of the paper gives each head h of an attention module a gate: MHAtt(x, q) = sum over h of ξ_h Att_h(x, q).
    // With all gates at 1 it is the full model.
    let full = score(&model, &batch, &classes, &Gates::open(&layout, OPTIONS));
    writeln!(out, "{:<12}{:>9}{:>9}{:>9}{:>9}", "masked", "accuracy", "change", "nats", "change")?;
    writeln!(out, "{:<12}{:>9.4}{:>9}{:>9.4}", "no head", full[0], "", full[1])?;

    // One gate at a time is 0. Gates are an argument of the model, so nothing has to be reset before the next head.
    for head in layout.heads() {
        let gates = Gates::masking(&layout, &[HeadSet::from_iter([head])], OPTIONS)?;
        let [accuracy, nats] = score(&model, &batch, &classes, &gates);
        let changes = [accuracy - full[0], nats - full[1]];
        write!(out, "{:<12}{accuracy:>9.4}{:>+9.4}", head.to_string(), changes[0])?;
        writeln!(out, "{nats:>9.4}{:>+9.4}", changes[1])?;
    }
    Ok(())
}

/// Returns the accuracy, and the mean cross-entropy per text in nats, which can change even if accuracy does not. `classes`: `[batch]`.
fn score(model: &Classifier, batch: &Inputs, classes: &Tensor, gates: &Gates) -> [f64; 2] {
    let logits = no_grad(|| model.forward(batch, gates, &ModelDropout::OFF)); // [batch, classes]
    let is_right = logits.argmax(-1, false).eq_tensor(classes);
    [is_right, cross_entropy(&logits, classes)]
        .map(|of_texts| of_texts.to_kind(Kind::Double).mean(None).double_value(&[]))
}

/// Reads labelled texts as model inputs, padded to the longest, and their classes, `[batch]`.
fn read(path: &Path, folder: &Path, model: &Classifier) -> Result<(Inputs, Tensor)> {
    let tokenizer = ClassifierTokenizer::load(folder, model.config().longest_text() as usize)?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let labels = model.config().labels();
    let (mut texts, mut classes) = (Vec::new(), Vec::new());
    for (line, row) in text.lines().enumerate() {
        let (label, text, pair) = match row.split('\t').collect::<Vec<_>>()[..] {
            [label, text] => (label, text, None),
            [label, text, pair] => (label, text, Some(pair)),
            _ => bail!("`{}`, line {}: not a class, a tab and a text", path.display(), line + 1),
        };
        let Some(class) = labels.iter().position(|name| name == label) else {
            bail!("`{}`, line {}: the classes are {}", path.display(), line + 1, labels.join(", "));
        };
        classes.push(class as i64);
        texts.push(tokenizer.encode(text, pair)?);
    }
    if texts.is_empty() {
        bail!("`{}` contains no text", path.display());
    }
    let rows: Vec<_> = texts.iter().map(|text| (&text.ids[..], &text.segments[..])).collect();
    Ok((model.batch(&rows)?, Tensor::from_slice(&classes)))
}
