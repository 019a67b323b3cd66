//! The table of best heads.
use std::collections::BTreeMap;

use records::AblationRow;

use super::{BestHeads, Enough};
use crate::Error;
use crate::attention::Attention;
use crate::number::{count, signed};
use crate::origin::{Model, OPEN_QUESTION};
use crate::paper::PublishedBest;
use crate::significance::{Criterion, Which};
use crate::sweep::Sweep;
use crate::table::{Cell, Row, Table};

/// Digits after the point of the paper's changes.
const DECIMALS: usize = 2;

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
        column_groups: Vec::new(),
        mark: mark(best, criterion)?,
        summary: summary(best, criterion)?,
        remarks: remarks(best, published),
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
            text: format!("{} ({})", best.sweep.metric.change(row.score_delta), row.head),
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
        "table2-self" | "table5-self" => "Best head of each layer",
        _ => "Table 6",
    }
}

fn label(best: &BestHeads) -> String {
    let split = best.selected_on.as_ref().map_or(String::new(), |split| format!("-{split}"));
    format!("{}{split}", best.sweep.file.subject)
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
    Ok(tested.then(|| criterion.description(sweep.test(), "heads")))
}

fn summary(best: &BestHeads, criterion: Criterion) -> Result<Vec<String>, Error> {
    let sweep = &best.sweep;
    let mut summary = vec![format!("base {}", sweep.metric.described(sweep.base))];
    let rules = sweep.rules(criterion);
    for (which, name) in Which::BOTH.into_iter().zip(["shown safe", NO_LOSS]) {
        let mut counts = Vec::new();
        for attention in sweep.attentions() {
            counts.push((attention, Enough::of(&best.of(attention)?, rules, which)));
        }
        summary.extend(enough(&counts, name));
    }
    if summary.len() == 1 {
        summary.push("no layer was tested for significance".to_owned());
    }
    summary.extend(rules.descriptions("heads"));
    summary.push(choice(best)?);
    if sweep.model() == Model::Language {
        summary.push(format!("laid out as a table of Michel et al. (2019), {OPEN_QUESTION}"));
    }
    Ok(summary)
}

/// What the paper's rule is called.
const NO_LOSS: &str = "no significant loss";

/// How many layers one head is enough for, by attention type and the rule of this name.
fn enough(counts: &[(Attention, Enough)], rule: &str) -> Option<String> {
    let of =
        |(attention, enough): &(Attention, Enough)| Some(format!("{} of {attention}", enough.in_words()?));
    let tested: Vec<_> = counts.iter().filter_map(of).collect();
    (!tested.is_empty()).then(|| format!("one head is enough ({rule}) in {}", tested.join(", ")))
}

/// Which split the heads were chosen on, and what that does to the numbers.
fn choice(best: &BestHeads) -> Result<String, Error> {
    let reported = best.sweep.file.origin.split();
    let Some(selected_on) = &best.selected_on else {
        let split = reported.map_or(String::new(), |split| format!(", {split}"));
        return Ok(format!(
            "chosen and reported on the same split{split}: the best of {} is optimistic, and its p-value is not \
             corrected for the choice",
            count(most_heads(best)?, "head")
        ));
    };
    let reported = reported.map_or(String::new(), |split| format!(", reported on {split}"));
    let segments = best.selected_limit.map_or(String::new(), |limit| format!("{limit} segments of "));
    Ok(format!("chosen on {segments}{selected_on}{reported}"))
}

fn most_heads(best: &BestHeads) -> Result<usize, Error> {
    let mut most = 0;
    for attention in best.sweep.attentions() {
        most = best.sweep.family(attention)?.iter().map(|row| row.head).fold(most, usize::max);
    }
    Ok(most)
}

fn remarks(best: &BestHeads, published: &[PublishedBest]) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(best.missing_heads());
    let types = best.sweep.attentions().into_iter();
    let counts: Vec<_> =
        types.map(|attention| (attention, Enough::published(published, attention))).collect();
    let stem = best.file_stem();
    remarks.extend(enough(&counts, NO_LOSS).map(|sentence| {
        format!("paper: Michel et al. (2019), {}, {}; {sentence}", name(stem), paper_data(stem))
    }));
    remarks.extend(best.sweep.file.remark());
    remarks
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best_head::tests::{CRITERION, best, published, row, rows};
    use crate::test_rows;

    #[test]
    fn the_table_shows_heads_the_paper_and_how_they_were_chosen() {
        let expected = "\
Table 2. Best head alone in its layer (its number in brackets): BLEU minus the base BLEU; demo-x (demo language)

       Attention
Layer    enc-enc       paper     enc-dec
    1  -0.50 (2)       -7.00*  -1.25 (1)
    2  +0.25 (1)*      +7.50*
    3  -1.50 (3)*

* p < 0.01 (two-sided paired bootstrap; not adjusted for the number of heads)
base BLEU 30.00
one head is enough (shown safe) in 1 of 3 layers of enc-enc, 0 of 1 layer of enc-dec
one head is enough (no significant loss) in 2 of 3 layers of enc-enc, 1 of 1 layer of enc-dec
shown safe, the default: at the worse end of the 95 % interval the loss is at most 2 % of the base
no significant loss, the paper's rule: not worse than the base at p < 0.01 (two-sided paired bootstrap; not adjusted for the \
number of heads); it grows as the test set shrinks, since a test that cannot see a loss calls it none
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
        assert_eq!(table.summary.last().unwrap(), "chosen on dev");
    }

    #[test]
    fn untested_layers_are_not_said_to_be_enough() {
        let table = best_head_table(&best(vec![test_rows::row("self", (1, 1), 30.0, 20.0)]), CRITERION, &[]);
        let table = table.unwrap();
        assert_eq!((table.mark, table.summary[1].as_str()), (None, "no layer was tested for significance"));
    }
}
