//! Published numbers, read from `data/paper/michel2019-*.csv` in one place and never written in code.
use std::collections::BTreeMap;
use std::path::Path;

use records::Attention;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Everything that Michel et al. (2019) print and results can stand beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    values: Vec<Value>,
    /// All cells of Table 1.
    pub table1: Vec<Delta>,
    /// The cells of Tables 2, 3, 5 and 6: the best head of a layer when all others of that layer are masked; by names such
    /// as `table2`.
    pub best_heads: BTreeMap<&'static str, Vec<Best>>,
    /// The rows of Table 4.
    pub speeds: Vec<Speed>,
    /// The epochs of Figure 5.
    pub epochs: Vec<Epoch>,
}

/// One number of the text or of a figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Value {
    source: String,
    what: String,
    value: f64,
}

/// One cell of Table 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delta {
    /// Attention type, always `enc-enc`.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// BLEU without the head minus the base BLEU, in points.
    pub delta_bleu: f64,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// One cell of Tables 2, 3, 5 and 6.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Score minus the base score, in points of BLEU or of accuracy.
    #[serde(rename = "delta_bleu", alias = "delta_accuracy_points")]
    pub delta: f64,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// One row of Table 4.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Examples that are computed together.
    pub batch_size: usize,
    /// `original`, or `pruned-50` without 50 % of the heads.
    pub model: String,
    /// Mean.
    pub examples_per_second: f64,
    /// Of `examples_per_second`.
    pub standard_deviation: f64,
    /// Of a pruned model over the original one, in percent.
    pub speedup_percent: Option<f64>,
}

impl Speed {
    /// Share of heads that the model lacks, in percent; absent for the original one.
    pub fn pruned_percent(&self) -> Option<f64> {
        self.model.strip_prefix("pruned-")?.parse().ok()
    }
}

/// One epoch of Figure 5.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Counted from 1.
    pub epoch: usize,
    /// BLEU without masks, in points.
    pub unpruned_bleu: f64,
}

/// The share of heads that can go "without noticeable loss", for one model and test set.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Figure of the paper, such as `Figure 3a`.
    pub figure: String,
    /// Model and test set, such as `BERT SST-2`.
    pub task: String,
    /// The share, in percent.
    pub percent: f64,
}

/// Numbers that views ask for: source and words of the file.
pub type Named = (&'static str, &'static str);

/// BLEU of the intact translator.
pub const BASE_BLEU: Named = ("Table 1", "base BLEU of the WMT model on newstest2013");
/// Heads in Table 1.
pub const HEADS: Named = ("Table 1", "heads tested");
/// Heads whose removal changes BLEU.
pub const SIGNIFICANT: Named = ("Table 1", "heads whose removal changes BLEU at p < 0.01");
/// Those of them whose removal raises BLEU.
pub const BETTER: Named = ("Table 1", "of those: heads whose removal raises BLEU");
/// Accuracy of the intact BERT, 0 to 1, and the ends of the histogram.
pub const FIGURE_1B: [Named; 3] = [
    ("Figure 1b", "base accuracy of BERT on MNLI matched"),
    ("Figure 1b", "lower end of the histogram: accuracy with one head masked"),
    ("Figure 1b", "upper end of the histogram: accuracy with one head masked"),
];
/// Pearson's r of the translator.
pub const FIGURE_2A: Named = ("Figure 2a", "Pearson r between newstest2013 and MTNT (WMT model)");
/// Pearson's r of BERT.
pub const FIGURE_2B: Named = ("Figure 2b", "Pearson r between MNLI matched and mismatched (BERT)");
/// Share of encoder-decoder heads after which BLEU breaks down, in percent.
pub const BREAKDOWN: Named = ("Figure 4", "share of Enc-Dec heads after which pruning is catastrophic");
/// BLEU that is left with a fifth of the other heads.
pub const BLEU_LEFT: Named =
    ("Figure 4", "BLEU left with 20 percent of the Enc-Enc or of the Dec-Dec heads");
/// Share of heads that can go from epoch 10 on with 85 to 90 % of BLEU left, in percent.
pub const FIGURE_5: Named =
    ("Figure 5", "share of heads prunable from epoch 10 on within 85-90 percent of BLEU");
/// The largest speedup of Table 4, in percent.
pub const SPEEDUP: Named = ("Table 4", "largest speedup from pruning half of the heads");

/// What the rows on shares of heads start with.
const SHARE: &str = "share of heads prunable without noticeable loss";

impl Paper {
    /// Reads all files in the folder `paper`.
    ///
    /// # Errors
    /// If one cannot be read, or lacks a number that views ask for.
    pub fn read(paper: &Path) -> Result<Self, Error> {
        let path = |name: &str| paper.join(format!("michel2019-{name}.csv"));
        let summary = path("summary");
        let tables = ["table2", "table3", "table5", "table6"].map(|name| Ok((name, read_csv(&path(name))?)));
        let found = Self {
            values: read_csv(&summary)?,
            table1: read_csv(&path("table1"))?,
            best_heads: tables.into_iter().collect::<Result<_, Error>>()?,
            speeds: read_csv(&path("table4"))?,
            epochs: read_csv(&path("figure5"))?,
        };
        let single =
            [BASE_BLEU, HEADS, SIGNIFICANT, BETTER, FIGURE_2A, FIGURE_2B, BREAKDOWN, BLEU_LEFT, FIGURE_5];
        let missing = single.into_iter().chain(FIGURE_1B).find(|&name| found.find(name).is_none());
        match missing {
            Some((_, what)) => Err(Error::fault(&summary, format!("has no row `{what}`"))),
            None if found.shares().is_empty() => {
                Err(Error::fault(&summary, format!("has no row `{SHARE}`")))
            }
            None => Ok(found),
        }
    }

    fn find(&self, (source, what): Named) -> Option<f64> {
        let row = self.values.iter().find(|row| row.source == source && row.what == what);
        row.map(|row| row.value)
    }

    /// One number, which has been read.
    pub fn value(&self, name: Named) -> f64 {
        self.find(name).unwrap_or(f64::NAN)
    }

    /// All published shares of heads.
    pub fn shares(&self) -> Vec<Share> {
        let share = |row: &Value| {
            let task = row.what.strip_prefix(SHARE)?.trim().trim_matches(['(', ')']).to_owned();
            Some(Share { figure: row.source.clone(), task, percent: row.value })
        };
        self.values.iter().filter_map(share).collect()
    }
}

fn read_csv<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let rows: Result<Vec<T>, csv::Error> =
        csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect();
    rows.map_err(|source| Error::Published { path, source })
}
