//! Published numbers, read from `data/paper/*.csv` and never written in code.
use std::path::Path;

use crate::Error;

/// One row of `michel2019-summary.csv`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
struct SummaryRow {
    source: String,
    what: String,
    value: f64,
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
        let path = paper.join("michel2019-summary.csv");
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

    #[test]
    fn published_correlations_are_those_of_figure_2() {
        let PublishedFigure2 { translation, bert } = Published::read(&folder()).unwrap().figure2;
        assert_eq!((translation, bert), (0.56, 0.68));
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
