//! Tables 2, 3, 5 and 6: the best head of each layer (Michel et al. 2019, Section 3.3 and Appendix A).
use std::collections::BTreeMap;

use records::{AblationRow, Attention};

use super::Context;
use crate::data::best_heads::{BestHeads, Enough};
use crate::judge::{Criterion, Which};
use crate::origin::{Beside, Model, OPEN_QUESTION};
use crate::paper::Best;
use crate::table::{Cell, Row, Table};
use crate::words::{count, signed};

/// What the paper's rule is called.
const NO_LOSS: &str = "no significant loss";

/// One row for each layer; for each attention type ours and, where there are comparable cells, the paper's.
pub fn table(best: &BestHeads, context: Context<'_>) -> Table {
    let (sweep, stem) = (&best.sweep, best.stem());
    let published = published(best, context);
    let columns = columns(best, context.criterion, published);
    let layers = columns.iter().flat_map(|(_, cells)| cells.keys()).max().copied().unwrap_or(0);
    let row = |layer: usize| {
        let cells = columns.iter().map(|(_, cells)| cells.get(&layer).cloned().unwrap_or_default());
        Row::new(layer.to_string(), cells)
    };
    let attentions = sweep.attentions();
    let is_tested = attentions.iter().any(|&one| context.criterion.tally(&sweep.family(one)).tested > 0);
    let split = best.selected_on.as_ref().map_or(String::new(), |split| format!("-{split}"));
    let (metric, unit) = (sweep.metric.label(), sweep.metric.in_unit());
    Table {
        name: name(stem),
        label: format!("{stem}-{}{split}", sweep.file.subject),
        title: format!(
            "Best head alone in its layer (its number in brackets): {metric} minus the base {metric}{unit}; {}",
            sweep.title()
        ),
        row_heading: "Layer",
        column_heading: "Attention",
        columns: columns.iter().map(|(name, _)| name.clone()).collect(),
        rows: (1..=layers).map(row).collect(),
        mark: is_tested.then(|| sweep.judge(context.criterion).description("heads")),
        summary: summary(best, context.criterion),
        remarks: remarks(best, published),
        ..Table::default()
    }
}

/// The published cells of the same table; none where other metrics or tasks would make them misleading.
fn published<'a>(best: &BestHeads, context: Context<'a>) -> &'a [Best] {
    let is_comparable = matches!(best.sweep.beside(), Some(Beside::Wmt | Beside::Iwslt | Beside::Mnli));
    let cells = context.paper.filter(|_| is_comparable).and_then(|paper| paper.best_heads.get(best.stem()));
    cells.map_or(&[], Vec::as_slice)
}

/// The paper's layers beyond ours are left out: with other depths they compare nothing.
fn columns(
    best: &BestHeads,
    criterion: Criterion,
    published: &[Best],
) -> Vec<(String, BTreeMap<usize, Cell>)> {
    let mut columns = Vec::new();
    for attention in best.sweep.attentions() {
        let rows = best.of(attention);
        let cell = |row: &AblationRow| {
            let text = format!("{} ({})", best.sweep.metric.change(row.score_delta), row.head);
            Cell::number(text, row.score_delta).marked(criterion.holds(row))
        };
        columns.push((attention.to_string(), rows.iter().map(|(&layer, row)| (layer, cell(row))).collect()));
        let is_ours = |cell: &&Best| cell.attention == attention && rows.contains_key(&cell.layer);
        let theirs = |cell: &Best| {
            (cell.layer, Cell::number(signed(cell.delta, 2), cell.delta).marked(cell.significant))
        };
        let theirs: BTreeMap<_, _> = published.iter().filter(is_ours).map(theirs).collect();
        if !theirs.is_empty() {
            columns.push(("paper".to_owned(), theirs));
        }
    }
    columns
}

fn name(stem: &str) -> &'static str {
    match stem {
        "table2" => "Table 2",
        "table3" => "Table 3",
        "table5" => "Table 5",
        "table6" => "Table 6",
        _ => "Best head of each layer",
    }
}

fn summary(best: &BestHeads, criterion: Criterion) -> Vec<String> {
    let (sweep, judge) = (&best.sweep, best.sweep.judge(criterion));
    let mut summary = vec![sweep.base_line()];
    for (which, name) in Which::BOTH.into_iter().zip(["shown safe", NO_LOSS]) {
        let of = |attention| (attention, Enough::of(&best.of(attention), judge, which));
        summary.extend(enough(sweep.attentions().into_iter().map(of), name));
    }
    if summary.len() == 1 {
        summary.push("no layer was tested for significance".to_owned());
    }
    summary.extend(judge.rules("heads"));
    summary.push(choice(best));
    if sweep.model() == Model::Language {
        summary.push(format!("laid out as a table of Michel et al. (2019), {OPEN_QUESTION}"));
    }
    summary
}

/// How many layers one head is enough for, by attention type and the rule of this name.
fn enough(counts: impl Iterator<Item = (Attention, Enough)>, rule: &str) -> Option<String> {
    let of = |(attention, enough): (Attention, Enough)| Some(format!("{} of {attention}", enough.in_words()?));
    let tested: Vec<_> = counts.filter_map(of).collect();
    (!tested.is_empty()).then(|| format!("one head is enough ({rule}) in {}", tested.join(", ")))
}

/// Which split the heads were chosen on, and what that does to the numbers.
fn choice(best: &BestHeads) -> String {
    let reported = best.sweep.file.split();
    let Some(selected_on) = &best.selected_on else {
        let split = reported.map_or(String::new(), |split| format!(", {split}"));
        return format!(
            "chosen and reported on the same split{split}: the best of {} is optimistic, and its p-value is not \
             corrected for the choice",
            count(best.sweep.heads(), "head")
        );
    };
    let reported = reported.map_or(String::new(), |split| format!(", reported on {split}"));
    let segments = best.selected_limit.map_or(String::new(), |limit| format!("{limit} segments of "));
    format!("chosen on {segments}{selected_on}{reported}")
}

fn remarks(best: &BestHeads, published: &[Best]) -> Vec<String> {
    let mut remarks = best.missing_heads();
    let types = best.sweep.attentions().into_iter();
    let counts = types.map(|attention| (attention, Enough::published(published, attention)));
    let stem = best.stem();
    remarks.extend(enough(counts, NO_LOSS).map(|sentence| {
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
