//! Tables 2, 3, 5 and 6: the best head of each layer when all others of that layer are masked (Michel et al. 2019,
//! Section 3.3 and Appendix A).
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use records::{AblationRow, Signature};

use crate::Error;
use crate::attention::{Attention, FileNames};
use crate::paper::{PublishedBest, best_head_cells};
use crate::significance::Criterion;
use crate::sweep::{Sweep, csv_path, csv_paths, head_name};

pub use table::best_head_table;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-all-but-one";

/// What the files with heads chosen on another split start with; the split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Tables with heads chosen and reported on one split: Table 2 for a translator, Table 3 for BERT.
const SAME_SPLIT: FileNames = FileNames { translation: "table2", bert: "table3" };
/// Tables with heads chosen on another split: Table 5 for a translator, Table 6 for BERT.
const OTHER_SPLIT: FileNames = FileNames { translation: "table5", bert: "table6" };

/// Layers reduced to their best head.
#[derive(Debug, Clone)]
pub struct BestHeads {
    /// One row for each head that was kept; in it, `head` is the only head of its layer that is not masked.
    pub sweep: Sweep,
    /// The split on which the best heads were chosen; absent if that is the reported one.
    pub selected_on: Option<String>,
    /// How many segments of it; all, or unknown, if absent.
    pub selected_limit: Option<u64>,
}

impl BestHeads {
    /// Reads `<results>/<subject>/ablate-all-but-one.csv`.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn read(results: &Path, subject: &str) -> Result<Self, Error> {
        let path = csv_path(results, subject, EXPERIMENT, EXPERIMENT)?;
        Ok(Self {
            sweep: Sweep::read_file(path, subject, EXPERIMENT)?,
            selected_on: None,
            selected_limit: None,
        })
    }

    /// All `<results>/<subject>/ablate-all-but-one-selected-on-<split>.csv`, in the order of the splits.
    ///
    /// # Errors
    /// If there is none.
    pub fn selected_files(results: &Path, subject: &str) -> Result<Vec<PathBuf>, Error> {
        let experiment = "ablate-all-but-one --select-on <split>";
        let files = csv_paths(results, subject, SELECTED, experiment)?;
        if files.is_empty() {
            let path = results.join(subject).join(format!("{SELECTED}<split>.csv"));
            return Err(Error::NoResults { path, experiment, subject: subject.to_owned() });
        }
        Ok(files)
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn read_selected(path: PathBuf, subject: &str) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(&path))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = stem.strip_prefix(SELECTED).unwrap_or(&stem).to_owned();
        let argument = |name| signature.as_ref().and_then(|signature| signature.identity.arguments.get(name));
        let signed = argument("select_on").and_then(|split| split.as_str()).map(str::to_owned);
        let selected_limit = argument("select_limit").and_then(|limit| limit.as_u64());
        let sweep = Sweep::read_file(path, subject, EXPERIMENT)?;
        Ok(Self { selected_limit, ..Self::chosen(sweep, signed.unwrap_or(named))? })
    }

    /// Rows that hold the heads chosen on `split` and no others.
    ///
    /// # Errors
    /// If a layer has several heads.
    pub fn chosen(sweep: Sweep, split: String) -> Result<Self, Error> {
        for attention in sweep.attentions() {
            let mut layers = BTreeMap::new();
            for row in sweep.family(attention)? {
                if let Some(first) = layers.insert(row.layer, row) {
                    let (first, second) = (head_name(first), head_name(row));
                    return Err(Error::Unchosen { path: sweep.path().to_owned(), first, second });
                }
            }
        }
        Ok(Self { sweep, selected_on: Some(split), selected_limit: None })
    }

    /// The best head of each layer: the one with the highest score and, among equals, the smallest number.
    ///
    /// # Errors
    /// If there are no rows of this type.
    pub fn of(&self, attention: Attention) -> Result<BTreeMap<usize, &AblationRow>, Error> {
        let mut best: BTreeMap<usize, &AblationRow> = BTreeMap::new();
        for row in self.sweep.family(attention)? {
            let there = best.entry(row.layer).or_insert(row);
            if row.score > there.score || row.score == there.score && row.head < there.head {
                *there = row;
            }
        }
        Ok(best)
    }

    /// Sentences on heads that are not there, without which a layer may lack its best one; of chosen heads there is one
    /// for each layer.
    pub fn missing_heads(&self) -> Vec<String> {
        if self.selected_on.is_some() {
            return Vec::new();
        }
        let types = self.sweep.attentions().into_iter();
        types.filter_map(|attention| self.sweep.missing_heads(attention)).collect()
    }

    /// Name of the table in the paper, and of its files: `table2`, `table3`, `table5` or `table6`.
    pub fn file_stem(&self) -> &'static str {
        let names = if self.selected_on.is_some() { OTHER_SPLIT } else { SAME_SPLIT };
        if self.sweep.attentions() == [Attention::SelfAttention] { names.bert } else { names.translation }
    }

    /// The published cells of the same table, from the folder `paper`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn published(&self, paper: &Path) -> Result<Vec<PublishedBest>, Error> {
        best_head_cells(paper, self.file_stem())
    }
}

/// Layers that one head is enough for: those without a significant loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enough {
    /// Layers whose best head alone does not lower the score significantly.
    pub layers: usize,
    /// Layers with a test.
    pub tested: usize,
}

impl Enough {
    /// Counts our own layers.
    pub fn of(best: &BTreeMap<usize, &AblationRow>, criterion: Criterion) -> Self {
        let tested = best.values().filter(|row| criterion.adjustment.p_value(row).is_some());
        let lost = tested.clone().filter(|row| criterion.holds(row) && row.score_delta < 0.0).count();
        let tested = tested.count();
        Self { layers: tested - lost, tested }
    }

    /// Counts the published layers of one attention type.
    pub fn published(cells: &[PublishedBest], attention: Attention) -> Self {
        let layers = cells.iter().filter(|cell| cell.attention == attention.name());
        let lost = layers.clone().filter(|cell| cell.significant && cell.delta < 0.0).count();
        let tested = layers.count();
        Self { layers: tested - lost, tested }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::significance::Adjustment;
    use crate::test_rows;

    pub(crate) const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    pub(crate) fn row(attention: &str, head: (usize, usize), delta: f64, p_value: f64) -> AblationRow {
        let untested = test_rows::row(attention, head, 30.0, 30.0 + delta);
        AblationRow { p_value: Some(p_value), ..untested }
    }

    pub(crate) fn best(rows: Vec<AblationRow>) -> BestHeads {
        BestHeads { sweep: test_rows::sweep(rows).unwrap(), selected_on: None, selected_limit: None }
    }

    /// Layer 1: heads 2 and 3 tie at -0.5. Layer 2: a rise, significant, which is no loss. Layer 3: a loss.
    pub(crate) fn rows() -> Vec<AblationRow> {
        vec![
            row("enc-enc", (1, 3), -0.5, 0.3),
            row("enc-enc", (1, 1), -2.0, 0.001),
            row("enc-enc", (1, 2), -0.5, 0.2),
            row("enc-enc", (2, 1), 0.25, 0.001),
            row("enc-enc", (2, 2), -0.25, 0.4),
            row("enc-enc", (3, 1), -9.0, 0.001),
            row("enc-enc", (3, 3), -1.5, 0.009),
            row("enc-dec", (1, 1), -1.25, 0.02),
        ]
    }

    pub(crate) fn published() -> Vec<PublishedBest> {
        let cell = |attention: &str, layer, delta, significant| PublishedBest {
            attention: attention.to_owned(),
            layer,
            delta,
            significant,
        };
        vec![
            cell("enc-enc", 1, -7.0, true),
            cell("enc-enc", 2, 7.5, true),
            cell("enc-enc", 9, 1.0, false),
            cell("dec-dec", 1, 1.0, false),
        ]
    }

    #[test]
    fn among_equals_the_smallest_head_is_the_best() {
        let best = best(rows());
        let heads: Vec<_> = best.of(Attention::EncEnc).unwrap().values().map(|row| row.head).collect();
        assert_eq!(heads, [2, 1, 3]);
    }

    #[test]
    fn a_layer_that_only_rises_loses_nothing() {
        let best = best(rows());
        let of_type = best.of(Attention::EncEnc).unwrap();
        assert_eq!(Enough::of(&of_type, CRITERION), Enough { layers: 2, tested: 3 });
        let strict = Criterion { alpha: 0.005, ..CRITERION };
        assert_eq!(Enough::of(&of_type, strict), Enough { layers: 3, tested: 3 });
        let holm = Criterion { adjustment: Adjustment::Holm, ..CRITERION };
        assert_eq!(Enough::of(&of_type, holm), Enough { layers: 0, tested: 0 });
        assert_eq!(Enough::published(&published(), Attention::EncEnc), Enough { layers: 2, tested: 3 });
    }

    #[test]
    fn a_file_of_chosen_heads_has_one_of_each_layer() {
        let rows = vec![row("self", (1, 2), -0.5, 0.2), row("self", (1, 3), -0.5, 0.2)];
        let error = BestHeads::chosen(test_rows::sweep(rows).unwrap(), "dev".to_owned()).unwrap_err();
        let expected =
            "`a.csv` has self:1:2 and self:1:3: it must have one head of each layer, the chosen one";
        assert_eq!(error.to_string(), expected);
    }
}
