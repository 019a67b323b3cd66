//! Table 1: what masking one head does to the score (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use records::{AblationRow, Attention};

use super::Context;
use crate::data::sweep::{EXPERIMENT, Sweep, UNFINISHED};
use crate::judge::{Adjustment, Criterion, Tally};
use crate::origin::{Beside, Model, OPEN_QUESTION};
use crate::paper::{BASE_BLEU, BETTER, FIGURE_1B, HEADS, Paper, SIGNIFICANT};
use crate::table::{Cell, ColumnGroup, Row, Table};
use crate::words::{count, short};

/// Names of its files. The paper prints no such table for BERT, so that one is named after the experiment.
pub const STEMS: [&str; 3] = ["table1", EXPERIMENT, EXPERIMENT];

/// The layer x head matrix of one attention type.
pub fn table1(sweep: &Sweep, attention: Attention, context: Context<'_>) -> Table {
    let (criterion, judge) = (context.criterion, sweep.judge(context.criterion));
    let family = sweep.family(attention);
    let tally = criterion.tally(&family);
    let (layers, heads) = sweep.extent(attention);
    let missing = (layers * heads).saturating_sub(family.len());
    let mut summary = vec![sweep.base_line()];
    summary.extend(counts(sweep, criterion, &family, tally));
    summary
        .extend((missing > 0).then(|| format!("{missing} of {} cells are empty: {UNFINISHED}", layers * heads)));
    summary.extend(layout(sweep, attention));
    let mut remarks = adjusted_counts(sweep, criterion, &family);
    remarks.extend(other_tests(criterion, &family));
    remarks.extend(context.paper.and_then(|paper| paper_remark(sweep, attention, paper)));
    remarks.extend(sweep.file.remark());
    let (metric, is_self) = (&sweep.metric, attention == Attention::SelfAttention);
    Table {
        name: if is_self { "One head at a time" } else { "Table 1" },
        label: format!("{}-{}-{attention}", STEMS[usize::from(is_self)], sweep.file.subject),
        title: format!(
            "{attention} ({}): {label} with one head masked, minus the base {label}{}; {}",
            sweep.model().description(attention),
            metric.in_unit(),
            sweep.title(),
            label = metric.label(),
        ),
        row_heading: "Layer",
        column_heading: "Head",
        columns: (1..=heads).map(|head| head.to_string()).collect(),
        column_groups: key_value_groups(sweep, heads),
        rows: matrix(sweep, &family, (layers, heads), criterion),
        mark: (tally.tested > 0).then(|| judge.description("heads")),
        summary,
        remarks,
    }
}

/// The names of the key-value heads of a layer, each over the heads that read it; none where each head has its own.
fn key_value_groups(sweep: &Sweep, heads: usize) -> Vec<ColumnGroup> {
    let key_values = sweep.file.key_value_heads(heads).unwrap_or(0);
    let group = |number| ColumnGroup { name: format!("kv {number}"), columns: heads / key_values };
    (1..=key_values).map(group).collect()
}

fn matrix(
    sweep: &Sweep,
    family: &[&AblationRow],
    (layers, heads): (usize, usize),
    criterion: Criterion,
) -> Vec<Row> {
    let by_head: BTreeMap<_, _> = family.iter().map(|row| ((row.layer, row.head), *row)).collect();
    let cell = |layer, head| {
        by_head.get(&(layer, head)).map_or_else(Cell::default, |row| {
            Cell::number(sweep.metric.change(row.score_delta), row.score_delta).marked(criterion.holds(*row))
        })
    };
    let row = |layer: usize| Row::new(layer.to_string(), (1..=heads).map(|head| cell(layer, head)));
    (1..=layers).map(row).collect()
}

/// Where the form comes from, if the paper has no such table.
fn layout(sweep: &Sweep, attention: Attention) -> Option<String> {
    let who = match sweep.model() {
        Model::Language => OPEN_QUESTION,
        Model::Other => "who print none for BERT",
    };
    (attention == Attention::SelfAttention)
        .then(|| format!("laid out as Table 1 of Michel et al. (2019), {who}"))
}

/// The sentences on significant heads; they say so where nothing or not all was tested, or could not be significant.
fn counts(sweep: &Sweep, criterion: Criterion, family: &[&AblationRow], tally: Tally) -> Vec<String> {
    let judge = sweep.judge(criterion);
    if tally.tested == 0 {
        return vec![match judge.method(criterion.adjustment) {
            None => "no head was tested for significance".to_owned(),
            Some(method) => format!("no p-values adjusted by {method} yet: they come with the last head"),
        }];
    }
    let mut sentences = vec![significant_heads(tally)];
    if criterion.adjustment == Adjustment::None {
        let expected = short(criterion.alpha * tally.tested as f64);
        sentences.push(format!("false alarms expected by chance: {expected}"));
    }
    sentences.extend(one_sided(criterion, family));
    sentences.extend(judge.out_of_reach());
    if tally.tested < family.len() {
        sentences.push(format!("{} without a test", count(family.len() - tally.tested, "head")));
    }
    sentences
}

/// What the p-value of the paper would mark, where it was computed.
fn one_sided(criterion: Criterion, family: &[&AblationRow]) -> Option<String> {
    let tally = Tally::of(family, criterion.alpha, |row| row.p_koehn);
    let expected = short((2.0 * criterion.alpha).min(1.0) * tally.tested as f64);
    (tally.tested > 0).then(|| {
        format!(
            "the paper's one-sided p would mark {}, {} for the better; false alarms expected of it: {expected}",
            tally.significant, tally.better
        )
    })
}

fn significant_heads(Tally { tested, significant, better }: Tally) -> String {
    format!("{significant} of {} significant, {better} for the better", count(tested, "head"))
}

/// What would be left by the other p-values, which are there once all heads are.
fn adjusted_counts(sweep: &Sweep, criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let remains = |adjustment: Adjustment| {
        let Tally { tested, significant, better } = Criterion { adjustment, ..criterion }.tally(family);
        let how = sweep.judge(criterion).method(adjustment).map(|method| format!("adjusted by {method}"));
        let how = how.unwrap_or("not adjusted".to_owned());
        (tested > 0).then(|| format!("{how}: {significant} significant, {better} for the better"))
    };
    let all = [Adjustment::None, Adjustment::Family, Adjustment::Bh];
    let others = all.into_iter().filter(|adjustment| *adjustment != criterion.adjustment);
    let remarks: Vec<_> = others.filter_map(remains).collect();
    if remarks.is_empty() && criterion.tally(family).tested > 0 {
        return vec!["no adjusted p-values yet: they come with the last head".to_owned()];
    }
    remarks
}

/// What the tests beside the deciding one say, where they were made.
fn other_tests(criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let remark = |name, p_value: fn(&AblationRow) -> Option<f64>| {
        let tally = Tally::of(family, criterion.alpha, p_value);
        let counts = significant_heads(tally);
        (tally.tested > 0)
            .then(|| format!("{name} at p < {}, not adjusted: {counts}", short(criterion.alpha)))
    };
    let mcnemar = remark("McNemar's test with mid-p", |row| row.p_mcnemar);
    let unpaired = remark("unpaired t-test", |row| row.p_unpaired_t);
    mcnemar.into_iter().chain(unpaired).collect()
}

/// What the paper has: the same sentence for enc-enc, and for BERT the range of its histogram of accuracies.
fn paper_remark(sweep: &Sweep, attention: Attention, paper: &Paper) -> Option<String> {
    match attention {
        Attention::EncEnc => Some(format!(
            "Michel et al. (2019), Table 1: base BLEU {:.2}; {} of {} heads significant, {} for the better",
            paper.value(BASE_BLEU),
            paper.value(SIGNIFICANT),
            paper.value(HEADS),
            paper.value(BETTER),
        )),
        Attention::SelfAttention if sweep.beside() == Some(Beside::Mnli) => {
            let [base, lowest, highest] = FIGURE_1B.map(|name| 100.0 * paper.value(name));
            Some(format!(
                "Michel et al. (2019), Figure 1b, BERT on MNLI matched: base accuracy {base:.1} %, \
                 {lowest:.1} to {highest:.1} % with one head masked"
            ))
        }
        _ => None,
    }
}
