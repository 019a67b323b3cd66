//! Tables 2, 3, 5 and 6: the best head of each layer when all others of that layer are masked (Michel et al. 2019,
//! Section 3.3 and Appendix A).
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use records::{AblationRow, Signature};

use crate::Error;
use crate::attention::{Attention, FileNames};
use crate::number::{count, short, signed};
use crate::paper::{PublishedBest, best_head_cells};
use crate::significance::Criterion;
use crate::sweep::{Sweep, csv_path, head_name};
use crate::table::{Cell, Row, Table};

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-all-but-one";

/// What the files with heads chosen on another split start with; the split follows.
const SELECTED: &str = "ablate-all-but-one-selected-on-";

/// Digits after the point, as in the paper.
const DECIMALS: usize = 2;

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
}

impl BestHeads {
    /// Reads `<results>/<subject>/ablate-all-but-one.csv`.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn read(results: &Path, subject: &str) -> Result<Self, Error> {
        let path = csv_path(results, subject, EXPERIMENT, EXPERIMENT)?;
        Ok(Self { sweep: Sweep::read_file(path, subject, EXPERIMENT)?, selected_on: None })
    }

    /// Reads all `<results>/<subject>/ablate-all-but-one-selected-on-<split>.csv`, in the order of the splits.
    ///
    /// # Errors
    /// If there is none, or a file is damaged.
    pub fn read_selected(results: &Path, subject: &str) -> Result<Vec<Self>, Error> {
        let stems = selected_stems(&results.join(subject))?;
        if stems.is_empty() {
            let command = "ablate-all-but-one --select-on <split>";
            csv_path(results, subject, &format!("{SELECTED}<split>"), command)?;
        }
        let read = |stem: String| Self::read_chosen(csv_path(results, subject, &stem, EXPERIMENT)?, subject);
        stems.into_iter().map(read).collect()
    }

    /// Whether there is any such file.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn has_selected(results: &Path, subject: &str) -> Result<bool, Error> {
        Ok(!selected_stems(&results.join(subject))?.is_empty())
    }

    fn read_chosen(path: PathBuf, subject: &str) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(&path))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let named = stem.strip_prefix(SELECTED).unwrap_or(&stem).to_owned();
        let signed = signature.and_then(|signature| {
            let split = signature.identity.arguments.get("select_on")?.as_str()?.to_owned();
            Some(split)
        });
        let sweep = Sweep::read_file(path, subject, EXPERIMENT)?;
        Self::chosen(sweep, signed.unwrap_or(named))
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
        Ok(Self { sweep, selected_on: Some(split) })
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

/// Files of chosen heads in a subject's folder, without extension and sorted; none if there is no such folder.
fn selected_stems(folder: &Path) -> Result<Vec<String>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries =
        std::fs::read_dir(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let stem = |name: String| Some(name.strip_suffix(".csv")?.to_owned());
    let mut stems: Vec<_> = names.filter_map(stem).filter(|stem| stem.starts_with(SELECTED)).collect();
    stems.sort();
    Ok(stems)
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

    fn sentence(counts: &[(Attention, Self)]) -> Option<String> {
        let of = |(attention, Self { layers, tested }): &(Attention, Self)| {
            format!("{layers} of {} of {attention}", count(*tested, "layer"))
        };
        let tested: Vec<_> = counts.iter().filter(|(_, counts)| counts.tested > 0).map(of).collect();
        (!tested.is_empty())
            .then(|| format!("one head is enough (no significant loss) in {}", tested.join(", ")))
    }
}

/// One row for each layer; for each attention type ours and, where there are `published` cells, the paper's.
///
/// # Errors
/// If `best` has no rows.
pub fn best_head_table(
    best: &BestHeads,
    criterion: Criterion,
    published: &[PublishedBest],
) -> Result<Table, Error> {
    let columns = columns(best, criterion, published)?;
    let layers = columns.iter().flat_map(|column| column.cells.keys()).max().copied().unwrap_or(0);
    let row = |layer: usize| Row {
        label: layer.to_string(),
        cells: columns.iter().map(|column| column.cells.get(&layer).cloned().unwrap_or_default()).collect(),
    };
    let stem = best.file_stem();
    Ok(Table {
        name: name(stem),
        label: format!("{stem}-{}", label(best)),
        title: title(&best.sweep),
        row_heading: "Layer",
        column_heading: "Attention",
        columns: columns.iter().map(|column| column.name.clone()).collect(),
        rows: (1..=layers).map(row).collect(),
        mark: mark(best, criterion)?,
        summary: summary(best, criterion)?,
        remarks: remarks(best, published)?,
    })
}

struct Column {
    name: String,
    cells: BTreeMap<usize, Cell>,
}

/// The paper's layers beyond ours are left out: with other depths they compare nothing.
fn columns(
    best: &BestHeads,
    criterion: Criterion,
    published: &[PublishedBest],
) -> Result<Vec<Column>, Error> {
    let mut columns = Vec::new();
    for attention in best.sweep.attentions() {
        let rows = best.of(attention)?;
        let cell = |row: &AblationRow| Cell {
            text: format!("{} ({})", signed(row.score_delta, DECIMALS), row.head),
            marked: criterion.holds(row),
        };
        let ours = rows.iter().map(|(&layer, row)| (layer, cell(row))).collect();
        columns.push(Column { name: attention.name().to_owned(), cells: ours });
        let theirs: BTreeMap<_, _> = published
            .iter()
            .filter(|cell| cell.attention == attention.name() && rows.contains_key(&cell.layer))
            .map(|cell| {
                let text = signed(cell.delta, DECIMALS);
                (cell.layer, Cell { text, marked: cell.significant })
            })
            .collect();
        if !theirs.is_empty() {
            columns.push(Column { name: "paper".to_owned(), cells: theirs });
        }
    }
    Ok(columns)
}

fn name(stem: &str) -> &'static str {
    match stem {
        "table2" => "Table 2",
        "table3" => "Table 3",
        "table5" => "Table 5",
        _ => "Table 6",
    }
}

fn label(best: &BestHeads) -> String {
    let split = best.selected_on.as_ref().map_or(String::new(), |split| format!("-{split}"));
    format!("{}{split}", best.sweep.subject)
}

fn title(sweep: &Sweep) -> String {
    let metric = sweep.metric.label();
    let unit = sweep.metric.difference_unit().map_or(String::new(), |unit| format!(", in {unit}"));
    format!(
        "Best head alone in its layer (its number in brackets): {metric} minus the base {metric}{unit}; {}",
        sweep.title()
    )
}

fn mark(best: &BestHeads, criterion: Criterion) -> Result<Option<String>, Error> {
    let sweep = &best.sweep;
    let mut tested = false;
    for attention in sweep.attentions() {
        tested |= criterion.tally(&sweep.family(attention)?).tested > 0;
    }
    let test = sweep.metric.test().description(sweep.resamples);
    let adjustment = criterion.adjustment.description();
    Ok(tested.then(|| format!("p < {} ({test}; {adjustment})", short(criterion.alpha))))
}

fn summary(best: &BestHeads, criterion: Criterion) -> Result<Vec<String>, Error> {
    let sweep = &best.sweep;
    let base = sweep.metric.amount(sweep.base, DECIMALS);
    let mut counts = Vec::new();
    for attention in sweep.attentions() {
        counts.push((attention, Enough::of(&best.of(attention)?, criterion)));
    }
    let enough =
        Enough::sentence(&counts).unwrap_or_else(|| "no layer was tested for significance".to_owned());
    Ok(vec![format!("base {} {base}", sweep.metric.label()), enough, choice(best)?])
}

/// Which split the heads were chosen on, and what that does to the numbers.
fn choice(best: &BestHeads) -> Result<String, Error> {
    let reported = best.sweep.split.as_deref();
    let Some(selected_on) = &best.selected_on else {
        let split = reported.map_or(String::new(), |split| format!(", {split}"));
        return Ok(format!(
            "chosen and reported on the same split{split}: the best of {} is optimistic, and its p-value is not \
             corrected for the choice",
            count(most_heads(best)?, "head")
        ));
    };
    let reported = reported.map_or(String::new(), |split| format!(", reported on {split}"));
    Ok(format!("chosen on {selected_on}{reported}"))
}

fn most_heads(best: &BestHeads) -> Result<usize, Error> {
    let mut most = 0;
    for attention in best.sweep.attentions() {
        most = best.sweep.family(attention)?.iter().map(|row| row.head).fold(most, usize::max);
    }
    Ok(most)
}

fn remarks(best: &BestHeads, published: &[PublishedBest]) -> Result<Vec<String>, Error> {
    let mut remarks = Vec::new();
    if best.selected_on.is_none() {
        for attention in best.sweep.attentions() {
            remarks.extend(missing(attention, &best.sweep.family(attention)?));
        }
    }
    let types = best.sweep.attentions().into_iter();
    let counts: Vec<_> =
        types.map(|attention| (attention, Enough::published(published, attention))).collect();
    let stem = best.file_stem();
    remarks.extend(Enough::sentence(&counts).map(|sentence| {
        format!("paper: Michel et al. (2019), {}, {}; {sentence}", name(stem), paper_data(stem))
    }));
    if best.sweep.split.is_none() {
        remarks.push(format!("split unknown: no signature beside `{}`", file_name(best.sweep.path())));
    }
    Ok(remarks)
}

/// A layer without some of its heads may lack its best one.
fn missing(attention: Attention, family: &[&AblationRow]) -> Option<String> {
    let layers = family.iter().map(|row| row.layer).max().unwrap_or(0);
    let heads = family.iter().map(|row| row.head).max().unwrap_or(0);
    let missing = (layers * heads).saturating_sub(family.len());
    let note = "the sweep is not finished, or not all layers have as many heads";
    (missing > 0)
        .then(|| format!("{attention}: {missing} of {} are not there: {note}", count(layers * heads, "head")))
}

/// Model, test set and unit of the published table.
fn paper_data(stem: &str) -> &'static str {
    match stem {
        "table2" => "WMT model on newstest2013, BLEU, marked at p < 0.01",
        "table3" => "BERT on MNLI matched, percentage points of accuracy, marked at p < 0.01",
        "table5" => "WMT model on newstest2014, chosen on newstest2013, BLEU, marked at p < 0.01",
        _ => {
            "BERT on MNLI matched, chosen on 5,000 training examples, percentage points of accuracy, marked at p < 0.01"
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::significance::Adjustment;
    use crate::test_rows;

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    fn row(attention: &str, head: (usize, usize), delta: f64, p_value: f64) -> AblationRow {
        let untested = test_rows::row(attention, head, 30.0, 30.0 + delta);
        AblationRow { p_value: Some(p_value), ..untested }
    }

    fn best(rows: Vec<AblationRow>) -> BestHeads {
        BestHeads { sweep: test_rows::sweep(rows).unwrap(), selected_on: None }
    }

    /// Layer 1: heads 2 and 3 tie at -0.5. Layer 2: a rise, significant, which is no loss. Layer 3: a loss.
    fn rows() -> Vec<AblationRow> {
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

    fn published() -> Vec<PublishedBest> {
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

    /// enc-enc spans 3 layers of 3 heads and has 7 of 9 rows.
    #[test]
    fn the_table_shows_heads_the_paper_and_how_they_were_chosen() {
        let expected = "\
Table 2. Best head alone in its layer (its number in brackets): BLEU minus the base BLEU; demo-x (demo language)

       Attention
Layer    enc-enc       paper     enc-dec
    1  -0.50 (2)       -7.00*  -1.25 (1)
    2  +0.25 (1)*      +7.50*
    3  -1.50 (3)*

* p < 0.01 (paired bootstrap; not adjusted for the number of heads)
base BLEU 30.00
one head is enough (no significant loss) in 2 of 3 layers of enc-enc, 1 of 1 layer of enc-dec
chosen and reported on the same split: the best of 3 heads is optimistic, and its p-value is not corrected for the choice
enc-enc: 2 of 9 heads are not there: the sweep is not finished, or not all layers have as many heads
paper: Michel et al. (2019), Table 2, WMT model on newstest2013, BLEU, marked at p < 0.01; one head is enough \
(no significant loss) in 2 of 3 layers of enc-enc
split unknown: no signature beside `a.csv`
";
        let table = best_head_table(&best(rows()), CRITERION, &published()).unwrap();
        let plain = anstream::adapter::strip_str(&table.terminal()).to_string();
        assert_eq!(plain, expected, "\n{plain}");
    }

    #[test]
    fn heads_chosen_elsewhere_make_tables_5_and_6() {
        let chosen = |attention| {
            let sweep = test_rows::sweep(vec![row(attention, (1, 2), -0.5, 0.2)]).unwrap();
            BestHeads::chosen(sweep, "dev".to_owned()).unwrap()
        };
        assert_eq!((chosen("dec-dec").file_stem(), chosen("self").file_stem()), ("table5", "table6"));
        assert_eq!(best(vec![row("self", (1, 2), -0.5, 0.2)]).file_stem(), "table3");
        let table = best_head_table(&chosen("self"), CRITERION, &[]).unwrap();
        assert_eq!((table.name, table.label.as_str()), ("Table 6", "table6-demo-x-dev"));
        assert_eq!(table.summary[2], "chosen on dev");
    }

    #[test]
    fn a_file_of_chosen_heads_has_one_of_each_layer() {
        let rows = vec![row("self", (1, 2), -0.5, 0.2), row("self", (1, 3), -0.5, 0.2)];
        let error = BestHeads::chosen(test_rows::sweep(rows).unwrap(), "dev".to_owned()).unwrap_err();
        let expected =
            "`a.csv` has self:1:2 and self:1:3: it must have one head of each layer, the chosen one";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn untested_layers_are_not_said_to_be_enough() {
        let table = best_head_table(&best(vec![test_rows::row("self", (1, 1), 30.0, 20.0)]), CRITERION, &[]);
        let table = table.unwrap();
        assert_eq!((table.mark, table.summary[1].as_str()), (None, "no layer was tested for significance"));
    }
}
