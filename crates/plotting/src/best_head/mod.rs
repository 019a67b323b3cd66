//! Tables 2, 3, 5 and 6: the best head of each layer when all others of that layer are masked (Michel et al. 2019,
//! Section 3.3 and Appendix A).
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use records::{AblationRow, TestedRow};

use crate::Error;
use crate::attention::{Attention, FileNames};
use crate::number::count;
use crate::origin::Model;
use crate::paper::{PublishedBest, best_head_cells};
use crate::result_file::{ResultFile, Source};
use crate::significance::{Rules, Which};
use crate::sweep::{Sweep, head_name};

pub use table::best_head_table;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-all-but-one";

/// What the files with heads chosen on another split start with; the split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Tables with heads chosen and reported on one split: Table 2 for a translator, Table 3 for BERT.
const SAME_SPLIT: FileNames =
    FileNames { translation: "table2", bert: "table3", language_model: "table2-self" };
/// Tables with heads chosen on another split: Table 5 for a translator, Table 6 for BERT.
const OTHER_SPLIT: FileNames =
    FileNames { translation: "table5", bert: "table6", language_model: "table5-self" };

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
    /// Reads a file of `ablate-all-but-one`; its signature or its name tells on which split the heads were chosen.
    ///
    /// # Errors
    /// If the file is missing or damaged.
    pub fn read(file: ResultFile) -> Result<Self, Error> {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let argument = |name| file.origin.identity().and_then(|identity| identity.arguments.get(name));
        let signed = argument("select_on").and_then(|split| split.as_str()).map(str::to_owned);
        let selected_limit = argument("select_limit").and_then(|limit| limit.as_u64());
        let named = stem.strip_prefix(SELECTED);
        // The signature knows where the split ends in the name.
        let of_split = |split: &String| named.is_some_and(|named| named.starts_with(split.as_str()));
        let standard =
            signed.as_ref().filter(|split| of_split(split)).map(|split| format!("{SELECTED}{split}"));
        let standard = standard.unwrap_or(if named.is_some() { stem.clone() } else { EXPERIMENT.to_owned() });
        let Some(split) = signed.or(named.map(str::to_owned)) else {
            return Ok(Self {
                sweep: Sweep::read(file, EXPERIMENT)?,
                selected_on: None,
                selected_limit: None,
            });
        };
        let sweep = Sweep::read(file.with_standard(&standard), EXPERIMENT)?;
        Ok(Self { selected_limit, ..Self::chosen(sweep, split)? })
    }

    /// The files with heads that were chosen on the split that is reported.
    ///
    /// # Errors
    /// If the folder or a signature cannot be read.
    pub fn files(source: &Source) -> Result<Vec<ResultFile>, Error> {
        let all = source.all(EXPERIMENT, EXPERIMENT)?;
        let is_selected = |file: &ResultFile| file.stem("").starts_with(&SELECTED[EXPERIMENT.len()..]);
        Ok(all.into_iter().filter(|file| !is_selected(file)).collect())
    }

    /// The files with heads that were chosen on another split; there may be none.
    ///
    /// # Errors
    /// As for [`BestHeads::files`].
    pub fn selected_files(source: &Source) -> Result<Vec<ResultFile>, Error> {
        source.all(EXPERIMENT, SELECTED.trim_end_matches('-'))
    }

    /// The heads of a subject that were chosen on another split, over most segments for each; or those of the one file.
    ///
    /// # Errors
    /// If there are none or a file is damaged.
    pub fn read_selected(source: &Source) -> Result<Vec<Self>, Error> {
        let Source::Subject { subject, results, .. } = source else {
            return Ok(vec![Self::read(source.one(EXPERIMENT)?)?]);
        };
        let files = Self::selected_files(source)?;
        if files.is_empty() {
            let path = results.join(subject).join(format!("{SELECTED}<split>.csv"));
            let experiment = "ablate-all-but-one --select-on <split>";
            return Err(Error::NoResults { path, experiment, subject: subject.clone() });
        }
        let all = files.into_iter().map(Self::read).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::largest(&all).into_iter().cloned().collect())
    }

    /// Of several choices on the same split, that over most segments.
    pub fn largest(all: &[Self]) -> Vec<&Self> {
        let segments = |best: &Self| best.sweep.file.origin.limit().unwrap_or(usize::MAX);
        let is_largest = |best: &&Self| {
            let mut same = all.iter().filter(|other| other.selected_on == best.selected_on);
            same.all(|other| segments(other) <= segments(best))
        };
        all.iter().filter(is_largest).collect()
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

    /// The best head of each layer: the one with the best score and, among equals, the smallest number.
    ///
    /// # Errors
    /// If there are no rows of this type.
    pub fn of(&self, attention: Attention) -> Result<BTreeMap<usize, &AblationRow>, Error> {
        let mut best: BTreeMap<usize, &AblationRow> = BTreeMap::new();
        for row in self.sweep.family(attention)? {
            let there = best.entry(row.layer).or_insert(row);
            let is_better = row.direction().is_better(row.score, there.score);
            if is_better || row.score == there.score && row.head < there.head {
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

    /// Name of the table in the paper, and of its files: `table2`, `table3`, `table5` or `table6`; of language models, that
    /// of the table whose layout it has, `table2-self` or `table5-self`.
    pub fn file_stem(&self) -> &'static str {
        let names = if self.selected_on.is_some() { OTHER_SPLIT } else { SAME_SPLIT };
        match self.sweep.attentions()[..] {
            [only] => names.of(only, self.sweep.model()),
            _ => names.translation,
        }
    }

    /// The published cells of the same table, from the folder `paper`; none where other metrics or tasks would make them
    /// misleading.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn published(&self, paper: &Path) -> Result<Vec<PublishedBest>, Error> {
        let is_translator = self.sweep.model() == Model::Other && self.sweep.metric.name() == "bleu";
        let is_comparable = is_translator || self.sweep.is_like_figure1b();
        if is_comparable { best_head_cells(paper, self.file_stem()) } else { Ok(Vec::new()) }
    }
}

/// Layers that one head is enough for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enough {
    /// Layers that a rule accepts with their best head alone.
    pub layers: usize,
    /// Layers that it could tell about.
    pub tested: usize,
}

impl Enough {
    /// Counts our own layers by one rule.
    pub fn of(best: &BTreeMap<usize, &AblationRow>, rules: Rules, which: Which) -> Self {
        let tested = || best.values().filter(|row| rules.can_tell(which, **row));
        Self { layers: tested().filter(|row| rules.accepts(which, **row)).count(), tested: tested().count() }
    }

    /// Counts the published layers of one attention type, by the paper's rule.
    pub fn published(cells: &[PublishedBest], attention: Attention) -> Self {
        let layers = cells.iter().filter(|cell| cell.attention == attention.name());
        let lost = layers.clone().filter(|cell| cell.significant && cell.delta < 0.0).count();
        let tested = layers.count();
        Self { layers: tested - lost, tested }
    }

    /// `3 of 6 layers`, or nothing where nothing was tested.
    pub fn in_words(self) -> Option<String> {
        (self.tested > 0).then(|| format!("{} of {}", self.layers, count(self.tested, "layer")))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::significance::{Adjustment, Criterion};
    use crate::test_rows;

    pub(crate) const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    pub(crate) fn row(attention: &str, head: (usize, usize), delta: f64, p_value: f64) -> AblationRow {
        let untested = test_rows::row(attention, head, 30.0, 30.0 + delta);
        // An interval of half a point around each change: of 30 points, 2 % are 0.6.
        let [delta_low, delta_high] = [-0.25, 0.25].map(|half| Some(delta + half));
        AblationRow { p_value: Some(p_value), delta_low, delta_high, ..untested }
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

    /// The best of layer 1 loses 0.5 points, which is not significant, but it may be 0.75: more than 0.6.
    #[test]
    fn one_head_is_enough_by_two_rules() {
        let best = best(rows());
        let of_type = best.of(Attention::EncEnc).unwrap();
        let enough = |which, criterion| {
            let Enough { layers, tested } = Enough::of(&of_type, best.sweep.rules(criterion), which);
            (layers, tested)
        };
        assert_eq!(enough(Which::ShownSafe, CRITERION), (1, 3));
        assert_eq!(enough(Which::NoSignificantLoss, CRITERION), (2, 3));
        assert_eq!(enough(Which::NoSignificantLoss, Criterion { alpha: 0.005, ..CRITERION }), (3, 3));
        let adjusted = Criterion { adjustment: Adjustment::Family, ..CRITERION };
        assert_eq!(enough(Which::NoSignificantLoss, adjusted), (0, 0));
        let published = Enough::published(&published(), Attention::EncEnc);
        assert_eq!(published, Enough { layers: 2, tested: 3 });
    }

    #[test]
    fn other_tasks_do_not_stand_beside_the_papers_accuracies() {
        let paper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/paper");
        let cells = |metric: &str| {
            let row = AblationRow { metric: metric.to_owned(), ..row("self", (1, 1), -0.5, 0.2) };
            best(vec![row]).published(&paper).unwrap().len()
        };
        assert_eq!((cells("accuracy"), cells("f1")), (12, 0));
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
