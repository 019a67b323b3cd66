//! Tables 2, 3, 5 and 6: the best head of each layer (Michel et al. 2019, Section 3.3 and Appendix A).
use std::collections::BTreeMap;

use records::{AblationRow, Attention};

use super::{Context, that_hold};
use crate::data::best_heads::{BestHeads, Layers, enough, enough_published};
use crate::judge::Which;
use crate::origin::{Beside, OPEN_QUESTION};
use crate::paper::Published;
use crate::table::{Cell, Row, Table};
use crate::words::{count, signed};

/// What the paper's rule is called.
const NO_LOSS: &str = "no significant loss";

/// One row for each layer; for each attention type ours and, where there are comparable cells, the paper's.
pub fn table(best: &BestHeads, context: Context<'_>) -> Table {
    let (sweep, stem) = (&best.sweep, best.stem());
    let columns = columns(best, context);
    let layers = columns.iter().flat_map(|(_, cells)| cells.keys()).max().copied().unwrap_or(0);
    let row = |layer: usize| {
        Row::new(
            layer.to_string(),
            columns.iter().map(|(_, cells)| cells.get(&layer).cloned().unwrap_or_default()),
        )
    };
    let is_tested = context.criterion.tally(&sweep.rows).tested > 0;
    let split = best.selected_on.as_ref().map_or(String::new(), |split| format!("-{split}"));
    let (metric, unit) = (sweep.metric.label(), sweep.metric.in_unit());
    let [name, data] = paper_table(stem);
    let of_paper = |attention| enough_published(published(best, context), attention);
    let paper = in_words(best, of_paper, NO_LOSS)
        .map(|sentence| format!("paper: Michel et al. (2019), {name}, {data}; {sentence}"));
    Table {
        name,
        label: format!("{stem}-{}{split}", sweep.file.subject),
        title: format!(
            "Best head alone in its layer (its number in brackets): {metric} minus the base {metric}{unit}; {}",
            sweep.file.title()
        ),
        headings: ["Layer", "Attention"],
        columns: columns.iter().map(|(name, _)| name.clone()).collect(),
        rows: (1..=layers).map(row).collect(),
        mark: is_tested.then(|| sweep.judge(context.criterion).description("heads")),
        summary: summary(best, context),
        remarks: best.missing_heads().into_iter().chain(paper).collect(),
        ..Table::default()
    }
}

/// The published cells of the same table; none where other metrics or tasks would make them misleading.
pub fn published<'a>(best: &BestHeads, context: Context<'a>) -> &'a [Published] {
    let is_comparable =
        best.sweep.beside().is_some_and(|beside| beside.translates() || beside == Beside::MNLI);
    context.paper.filter(|_| is_comparable).map_or(&[], |paper| paper.rows(best.stem()))
}

/// The paper's layers beyond ours are left out: with other depths they compare nothing.
fn columns(best: &BestHeads, context: Context<'_>) -> Vec<(String, BTreeMap<usize, Cell>)> {
    let mut columns = Vec::new();
    for attention in best.sweep.attentions() {
        let rows = best.of(attention);
        let cell = |row: &AblationRow| {
            let text = format!("{} ({})", best.sweep.metric.change(row.score_delta), row.head);
            Cell::number(text, row.score_delta).marked(context.criterion.holds(row))
        };
        columns.push((attention.to_string(), rows.iter().map(|(&layer, row)| (layer, cell(row))).collect()));
        let theirs = |cell: &Published| {
            let layer =
                cell.layer.filter(|layer| cell.attention == Some(attention) && rows.contains_key(layer))?;
            Some((layer, Cell::number(signed(cell.delta?, 2), cell.delta?).marked(cell.significant?)))
        };
        let theirs: BTreeMap<_, _> = published(best, context).iter().filter_map(theirs).collect();
        columns.extend((!theirs.is_empty()).then(|| ("paper".to_owned(), theirs)));
    }
    columns
}

/// What a table is called, and model, test set and unit of the published one.
pub fn paper_table(stem: &str) -> [&'static str; 2] {
    match stem {
        "table2" => ["Table 2", "WMT model on newstest2013, BLEU, marked at p < 0.01"],
        "table3" => ["Table 3", "BERT on MNLI matched, percentage points of accuracy, marked at p < 0.01"],
        "table5" => {
            ["Table 5", "WMT model on newstest2014, chosen on newstest2013, BLEU, marked at p < 0.01"]
        }
        "table6" => [
            "Table 6",
            "BERT on MNLI matched, chosen on 5,000 training examples, percentage points of accuracy, marked at p < 0.01",
        ],
        _ => ["Best head of each layer", ""],
    }
}

fn summary(best: &BestHeads, context: Context<'_>) -> Vec<String> {
    let (sweep, judge) = (&best.sweep, best.sweep.judge(context.criterion));
    let rules = Which::BOTH.into_iter().zip(["shown safe", NO_LOSS]);
    let counts: Vec<_> = rules
        .filter_map(|(which, rule)| {
            in_words(best, |attention| enough(&best.of(attention), judge, which), rule)
        })
        .collect();
    let untested = (counts.is_empty(), "no layer was tested for significance".to_owned());
    let layout = format!("laid out as a table of Michel et al. (2019), {OPEN_QUESTION}");
    let mut summary = vec![sweep.base_line()];
    summary.extend(counts.into_iter().chain(that_hold([untested])).chain(judge.rules("heads")));
    summary.push(choice(best));
    summary.extend(that_hold([(sweep.file.is_language(), layout)]));
    summary
}

/// How many layers one head is enough for, by attention type and the rule of this name.
fn in_words(best: &BestHeads, enough: impl Fn(Attention) -> Option<Layers>, rule: &str) -> Option<String> {
    let of = |attention: Attention| Some(format!("{} of {attention}", enough(attention)?));
    let tested: Vec<_> = best.sweep.attentions().into_iter().filter_map(of).collect();
    (!tested.is_empty()).then(|| format!("one head is enough ({rule}) in {}", tested.join(", ")))
}

/// Which split the heads were chosen on, and what that does to the numbers.
fn choice(best: &BestHeads) -> String {
    let file = &best.sweep.file;
    let split = |before: &str| file.split().map_or(String::new(), |split| format!(", {before}{split}"));
    let segments = file.number("select_limit").map_or(String::new(), |limit| format!("{limit} segments of "));
    match &best.selected_on {
        Some(selected_on) => format!("chosen on {segments}{selected_on}{}", split("reported on ")),
        None => format!(
            "chosen and reported on the same split{}: the best of {} is optimistic, and its p-value is not corrected for \
             the choice",
            split(""),
            count(best.sweep.heads(), "head")
        ),
    }
}
