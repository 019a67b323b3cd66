//! Table 1: what masking one head does to the score (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use records::{AblationRow, Attention};

use super::{Context, that_hold};
use crate::data::sweep::{EXPERIMENT, Sweep, UNFINISHED};
use crate::judge::{Adjustment, Criterion, Tally};
use crate::origin::{Beside, OPEN_QUESTION};
use crate::paper::{BASE_BLEU, BETTER, FIGURE_1B, HEADS, Paper, SIGNIFICANT};
use crate::table::{Cell, Row, Table};
use crate::words::{count, short};

/// Names of its files. The paper prints no such table for BERT, so that one is named after the experiment.
pub const STEMS: [&str; 3] = ["table1", EXPERIMENT, EXPERIMENT];

/// The layer x head matrix of one attention type, with the names of key-value heads over the heads that read them.
pub fn table1(sweep: &Sweep, attention: Attention, context: Context<'_>) -> Table {
    let (criterion, family) = (context.criterion, sweep.family(attention));
    let (layers, heads) = sweep.extent(attention);
    let (metric, is_self) = (&sweep.metric, attention == Attention::SelfAttention);
    let (label, kind) = (metric.label(), sweep.file.description(attention));
    let by_head: BTreeMap<_, _> = family.iter().map(|row| ((row.layer, row.head), *row)).collect();
    let cell = |layer, head| {
        by_head.get(&(layer, head)).map_or_else(Cell::default, |row| {
            Cell::number(metric.change(row.score_delta), row.score_delta).marked(criterion.holds(*row))
        })
    };
    let key_values = sweep.file.key_value_heads(heads).unwrap_or(0);
    Table {
        name: if is_self { "One head at a time" } else { "Table 1" },
        label: format!("{}-{}-{attention}", STEMS[usize::from(is_self)], sweep.file.subject),
        title: format!(
            "{attention} ({kind}): {label} with one head masked, minus the base {label}{}; {}",
            metric.in_unit(),
            sweep.file.title(),
        ),
        headings: ["Layer", "Head"],
        columns: (1..=heads).map(|head| head.to_string()).collect(),
        column_groups: (1..=key_values).map(|number| (format!("kv {number}"), heads / key_values)).collect(),
        rows: (1..=layers)
            .map(|layer| Row::new(layer.to_string(), (1..=heads).map(|head| cell(layer, head))))
            .collect(),
        mark: (criterion.tally(family.iter().copied()).tested > 0)
            .then(|| sweep.judge(criterion).description("heads")),
        summary: summary(sweep, attention, criterion),
        remarks: adjusted_counts(sweep, criterion, &family)
            .into_iter()
            .chain(context.paper.and_then(|paper| paper_remark(sweep, attention, paper)))
            .collect(),
    }
}

/// Base and significant heads; it says so where nothing or not all was tested, or could not be significant.
fn summary(sweep: &Sweep, attention: Attention, criterion: Criterion) -> Vec<String> {
    let (family, judge) = (sweep.family(attention), sweep.judge(criterion));
    let (tally, one_sided) = (
        criterion.tally(family.iter().copied()),
        Tally::of(family.iter().copied(), criterion.alpha, |row| row.p_koehn),
    );
    let (layers, heads) = sweep.extent(attention);
    let missing = (layers * heads).saturating_sub(family.len());
    let untested = match judge.method(criterion.adjustment) {
        None => "no head was tested for significance".to_owned(),
        Some(method) => format!("no p-values adjusted by {method} yet: they come with the last head"),
    };
    let is_tested = tally.tested > 0;
    let by_chance = short(criterion.alpha * tally.tested as f64);
    let of_it = short((2.0 * criterion.alpha).min(1.0) * one_sided.tested as f64);
    let Tally { significant, better, .. } = one_sided;
    let who = if sweep.file.is_language() { OPEN_QUESTION } else { "who print none for BERT" };
    that_hold([
        (true, sweep.base_line()),
        (!is_tested, untested),
        (is_tested, tally.in_words()),
        (
            is_tested && criterion.adjustment == Adjustment::None,
            format!("false alarms expected by chance: {by_chance}"),
        ),
        (
            is_tested && one_sided.tested > 0,
            format!(
                "the paper's one-sided p would mark {significant}, {better} for the better; false alarms expected of it: \
                 {of_it}"
            ),
        ),
        (is_tested && judge.out_of_reach().is_some(), judge.out_of_reach().unwrap_or_default()),
        (
            is_tested && tally.tested < family.len(),
            format!("{} without a test", count(family.len() - tally.tested, "head")),
        ),
        (missing > 0, format!("{missing} of {} cells are empty: {UNFINISHED}", layers * heads)),
        // where the form comes from, if the paper has no such table
        (attention == Attention::SelfAttention, format!("laid out as Table 1 of Michel et al. (2019), {who}")),
    ])
    .collect()
}

/// What would be left by the other p-values, which are there once all heads are, and what other tests say.
fn adjusted_counts(sweep: &Sweep, criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let judge = sweep.judge(criterion);
    let remains = |adjustment: Adjustment| {
        let Tally { tested, significant, better } =
            Criterion { adjustment, ..criterion }.tally(family.iter().copied());
        let how = judge.method(adjustment).map(|method| format!("adjusted by {method}"));
        let how = how.unwrap_or("not adjusted".to_owned());
        // The smallest of m p-values is multiplied by m.
        let least = judge.smallest_p_value() * tested as f64;
        let is_blind = adjustment == Adjustment::Bh && least >= criterion.alpha;
        let blind = if is_blind { "; with so few resamples no head alone could be" } else { "" };
        (tested > 0).then(|| format!("{how}: {significant} significant, {better} for the better{blind}"))
    };
    let all = [Adjustment::None, Adjustment::Family, Adjustment::Bh];
    let others = all.into_iter().filter(|adjustment| *adjustment != criterion.adjustment);
    let mut remarks: Vec<_> = others.filter_map(remains).collect();
    if remarks.is_empty() && criterion.tally(family.iter().copied()).tested > 0 {
        remarks.push("no adjusted p-values yet: they come with the last head".to_owned());
    }
    let other = |(name, p_value): (&str, fn(&AblationRow) -> Option<f64>)| {
        let tally = Tally::of(family.iter().copied(), criterion.alpha, p_value);
        let counts = tally.in_words();
        (tally.tested > 0)
            .then(|| format!("{name} at p < {}, not adjusted: {counts}", short(criterion.alpha)))
    };
    let mcnemar: fn(&AblationRow) -> Option<f64> = |row| row.p_mcnemar;
    remarks.extend(
        [("McNemar's test with mid-p", mcnemar), ("unpaired t-test", |row| row.p_unpaired_t)]
            .into_iter()
            .filter_map(other),
    );
    remarks
}

/// What the paper has: the same sentence for enc-enc, and for BERT the range of its histogram of accuracies.
fn paper_remark(sweep: &Sweep, attention: Attention, paper: &Paper) -> Option<String> {
    let [heads, significant, better] = [HEADS, SIGNIFICANT, BETTER].map(|name| paper.value(name));
    let base = paper.value(BASE_BLEU);
    match attention {
        Attention::EncEnc => Some(format!(
            "Michel et al. (2019), Table 1: base BLEU {base:.2}; {significant} of {heads} heads significant, {better} for the \
             better"
        )),
        Attention::SelfAttention if sweep.beside() == Some(Beside::MNLI) => {
            let [base, lowest, highest] = FIGURE_1B.map(|name| 100.0 * paper.value(name));
            Some(format!(
                "Michel et al. (2019), Figure 1b, BERT on MNLI matched: base accuracy {base:.1} %, \
                 {lowest:.1} to {highest:.1} % with one head masked"
            ))
        }
        _ => None,
    }
}
