//! Published numbers, read from `data/paper/*.csv` and never written in code.
use std::path::Path;

use crate::Error;

/// One row of `michel2019-summary.csv`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct SummaryRow {
    /// Table, figure or section of the paper.
    pub source: String,
    /// What the number is about.
    pub what: String,
    /// The number.
    pub value: f64,
    #[serde(rename = "unit")]
    _unit: String,
}

/// The published numbers on masking one head at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Of a translator.
    pub table1: PublishedTable1,
    /// Of BERT.
    pub figure1b: PublishedFigure1b,
    /// Of both, on two test sets.
    pub figure2: PublishedFigure2,
}

impl Published {
    /// Reads `michel2019-summary.csv` in the folder `paper`.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a number.
    pub fn read(paper: &Path) -> Result<Self, Error> {
        let path = paper.join(SUMMARY);
        let rows: Vec<SummaryRow> = read_csv(&path)?;
        let table1 = |what| find(&path, &rows, "Table 1", what);
        let percent = |what| find(&path, &rows, "Figure 1b", what).map(|accuracy| 100.0 * accuracy);
        Ok(Self {
            table1: PublishedTable1 {
                base_bleu: table1("base BLEU of the WMT model on newstest2013")?,
                heads: table1("heads tested")?,
                significant: table1("heads whose removal changes BLEU at p < 0.01")?,
                better: table1("of those: heads whose removal raises BLEU")?,
            },
            figure2: PublishedFigure2 {
                translation: find(
                    &path,
                    &rows,
                    "Figure 2a",
                    "Pearson r between newstest2013 and MTNT (WMT model)",
                )?,
                bert: find(
                    &path,
                    &rows,
                    "Figure 2b",
                    "Pearson r between MNLI matched and mismatched (BERT)",
                )?,
            },
            figure1b: PublishedFigure1b {
                base: percent("base accuracy of BERT on MNLI matched")?,
                lowest: percent("lower end of the histogram: accuracy with one head masked")?,
                highest: percent("upper end of the histogram: accuracy with one head masked")?,
            },
        })
    }
}

/// What Michel et al. (2019) report on Figure 1b: accuracies of BERT on MNLI matched, in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure1b {
    /// Of the intact model.
    pub base: f64,
    /// Lower end of the histogram.
    pub lowest: f64,
    /// Upper end of the histogram.
    pub highest: f64,
}

/// What Michel et al. (2019) report on Figure 2: Pearson's r between scores with one head masked.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure2 {
    /// Of the WMT model, between newstest2013 and MTNT.
    pub translation: f64,
    /// Of BERT, between MNLI matched and mismatched.
    pub bert: f64,
}

/// What Michel et al. (2019) report on Table 1.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedTable1 {
    /// BLEU of the intact model, in points.
    pub base_bleu: f64,
    /// Heads in the table.
    pub heads: f64,
    /// Heads whose removal changes BLEU at p < 0.01.
    pub significant: f64,
    /// Those of them whose removal raises BLEU.
    pub better: f64,
}

/// One cell of Table 1 as published: `michel2019-table1.csv`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedDelta {
    /// Attention type, always `enc-enc`.
    pub attention: String,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// BLEU without the head minus the base BLEU, in points.
    pub delta_bleu: f64,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// All cells of the published Table 1, from the folder `paper`.
///
/// # Errors
/// If the file cannot be read.
pub fn table1_cells(paper: &Path) -> Result<Vec<PublishedDelta>, Error> {
    read_csv(&paper.join("michel2019-table1.csv"))
}

/// One cell of Tables 2, 3, 5 and 6 as published: the best head of a layer when all others of that layer are masked.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBest {
    /// Attention type.
    pub attention: String,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Score minus the base score, in points of BLEU or of accuracy.
    #[serde(rename = "delta_bleu", alias = "delta_accuracy_points")]
    pub delta: f64,
    /// Whether the cell is underlined (p < 0.01).
    pub significant: bool,
}

/// All cells of the published `table`, such as `table2`, from the folder `paper`.
///
/// # Errors
/// If the file cannot be read.
pub fn best_head_cells(paper: &Path, table: &str) -> Result<Vec<PublishedBest>, Error> {
    read_csv(&paper.join(format!("michel2019-{table}.csv")))
}

/// The share of heads that can go "without noticeable loss", as published for one model and test set.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedShare {
    /// Figure of the paper, such as `Figure 3a`.
    pub figure: String,
    /// Model and test set, such as `BERT SST-2`.
    pub task: String,
    /// The share, in percent.
    pub percent: f64,
}

/// All published shares, from the folder `paper`.
///
/// # Errors
/// If the file cannot be read or has none.
pub fn shares(paper: &Path) -> Result<Vec<PublishedShare>, Error> {
    let what = "share of heads prunable without noticeable loss";
    let share = |row: SummaryRow| {
        let task = row.what.strip_prefix(what)?.trim().trim_matches(['(', ')']).to_owned();
        Some(PublishedShare { figure: row.source, task, percent: row.value })
    };
    let shares: Vec<_> = summary_rows(paper)?.into_iter().filter_map(share).collect();
    if shares.is_empty() {
        return Err(Error::Published { path: paper.join(SUMMARY), what });
    }
    Ok(shares)
}

/// One row of Table 4 as published: `michel2019-table4.csv`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSpeed {
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

impl PublishedSpeed {
    /// Share of heads that the model lacks, in percent; absent for the original one.
    pub fn pruned_percent(&self) -> Option<f64> {
        self.model.strip_prefix("pruned-")?.parse().ok()
    }
}

/// All rows of the published Table 4, from the folder `paper`.
///
/// # Errors
/// If the file cannot be read.
pub fn table4_rows(paper: &Path) -> Result<Vec<PublishedSpeed>, Error> {
    read_csv(&paper.join("michel2019-table4.csv"))
}

/// What Michel et al. (2019) report on Figure 5.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure5 {
    /// Share of heads that can go from epoch 10 on with 85 to 90 % of BLEU left, in percent.
    pub percent: f64,
    /// BLEU without masks after each epoch.
    pub epochs: Vec<PublishedEpoch>,
}

/// One epoch of Figure 5 as published: `michel2019-figure5.csv`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedEpoch {
    /// Counted from 1.
    pub epoch: usize,
    /// BLEU without masks, in points.
    pub unpruned_bleu: f64,
}

/// The numbers of the published Figure 5, from the folder `paper`.
///
/// # Errors
/// If a file cannot be read or lacks a number.
pub fn figure5(paper: &Path) -> Result<PublishedFigure5, Error> {
    let what = "share of heads prunable from epoch 10 on within 85-90 percent of BLEU";
    Ok(PublishedFigure5 {
        percent: summary_value(paper, "Figure 5", what)?,
        epochs: read_csv(&paper.join("michel2019-figure5.csv"))?,
    })
}

/// One number of the summary, from the folder `paper`.
///
/// # Errors
/// If the file cannot be read or lacks the number.
pub fn summary_value(paper: &Path, source: &str, what: &'static str) -> Result<f64, Error> {
    find(&paper.join(SUMMARY), &summary_rows(paper)?, source, what)
}

fn summary_rows(paper: &Path) -> Result<Vec<SummaryRow>, Error> {
    read_csv(&paper.join(SUMMARY))
}

/// The file of single numbers.
const SUMMARY: &str = "michel2019-summary.csv";

fn read_csv<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let rows: Result<Vec<T>, csv::Error> =
        csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect();
    rows.map_err(|source| Error::Row { path, source })
}

fn find(path: &Path, rows: &[SummaryRow], source: &str, what: &'static str) -> Result<f64, Error> {
    let row = rows.iter().find(|row| row.source == source && row.what == what);
    row.map(|row| row.value).ok_or_else(|| Error::Published { path: path.to_owned(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper")
    }

    /// The summary and the cells come from different places of the paper and must agree.
    #[test]
    fn the_published_summary_agrees_with_the_published_cells() {
        let table = Published::read(&folder()).unwrap().table1;
        let cells = table1_cells(&folder()).unwrap();
        let significant: Vec<_> = cells.iter().filter(|cell| cell.significant).collect();
        let better = significant.iter().filter(|cell| cell.delta_bleu > 0.0).count();
        assert_eq!(table.heads, cells.len() as f64);
        assert_eq!(table.significant, significant.len() as f64);
        assert_eq!(table.better, better as f64);
    }

    #[test]
    fn published_accuracies_are_percentages_around_their_base() {
        let PublishedFigure1b { base, lowest, highest } = Published::read(&folder()).unwrap().figure1b;
        assert_eq!(format!("{lowest:.1} {base:.1} {highest:.1}"), "82.4 83.4 83.8");
    }

    /// Abstract and Section 4.2 of the paper: 20 % of heads for WMT, 40 % for BERT; up to 60 %.
    #[test]
    fn the_published_shares_are_those_of_figures_3_and_6() {
        let shares = shares(&folder()).unwrap();
        let found: Vec<_> = shares.iter().map(|share| (share.figure.as_str(), share.percent)).collect();
        let expected = [("3a", 20.0), ("3b", 40.0), ("6a", 60.0), ("6b", 50.0), ("6c", 50.0), ("6d", 20.0)];
        assert_eq!(
            found,
            expected
                .map(|(figure, percent)| (format!("Figure {figure}"), percent))
                .each_ref()
                .map(|(figure, percent)| (figure.as_str(), *percent))
        );
        assert_eq!(shares[2].task, "BERT SST-2");
    }

    #[test]
    fn published_correlations_are_those_of_figure_2() {
        let PublishedFigure2 { translation, bert } = Published::read(&folder()).unwrap().figure2;
        assert_eq!((translation, bert), (0.56, 0.68));
    }

    /// The speedups are printed beside the speeds they come from, both rounded: 17.3 / 17.0 is 1.8 % more, not 1.9.
    #[test]
    fn published_speedups_are_those_of_the_published_speeds() {
        let rows = table4_rows(&folder()).unwrap();
        assert_eq!(rows.iter().map(|row| row.batch_size).collect::<Vec<_>>(), [1, 1, 4, 4, 16, 16, 64, 64]);
        let mut largest = 0.0_f64;
        for pair in rows.chunks(2) {
            assert_eq!((pair[0].pruned_percent(), pair[1].pruned_percent()), (None, Some(50.0)));
            let speedup = 100.0 * (pair[1].examples_per_second / pair[0].examples_per_second - 1.0);
            let printed = pair[1].speedup_percent.unwrap();
            assert!((speedup - printed).abs() < 0.15, "{speedup} is not {printed}");
            largest = largest.max(printed);
        }
        let summary = summary_value(&folder(), "Table 4", "largest speedup from pruning half of the heads");
        assert_eq!(summary.unwrap(), largest);
    }

    #[test]
    fn the_published_training_is_that_of_figure_5() {
        let PublishedFigure5 { percent, epochs } = figure5(&folder()).unwrap();
        assert_eq!(percent, 40.0);
        assert_eq!(epochs.iter().map(|row| row.epoch).collect::<Vec<_>>(), [1, 2, 3, 5, 10, 20, 30, 40]);
        assert!(epochs.windows(2).all(|pair| pair[0].unpruned_bleu < pair[1].unpruned_bleu));
    }

    #[test]
    fn a_missing_number_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("michel2019-summary.csv");
        std::fs::write(path, "source,what,value,unit\nTable 1,heads tested,96,heads\n").unwrap();
        let message = Published::read(folder.path()).unwrap_err().to_string();
        assert!(message.ends_with("has no row `base BLEU of the WMT model on newstest2013`"), "{message}");
    }
}
