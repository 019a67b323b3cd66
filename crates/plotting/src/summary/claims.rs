//! The claims of Michel et al. (2019), one section each.
use std::path::Path;

use records::{AblationRow, Order, TestedRow};

use super::{Section, Subject};
use crate::Error;
use crate::attention::Attention;
use crate::best_head::{BestHeads, Enough};
use crate::cross_domain::table::{COLUMNS, HOW_TO_READ, cells, reading};
use crate::number::{short, signed, tenths};
use crate::paper::{self, Published, summary_value};
use crate::pruning::Pruning;
use crate::pruning::curve::Series;
use crate::pruning::order::Scope;
use crate::pruning_table::{COMPLEMENT, ORACLE, published as published_shares, score_at, share};
use crate::significance::{Adjustment, CAUTION, Criterion, Tally, Which};
use crate::sweep::Sweep;

/// Digits after the point of the paper's scores.
const DECIMALS: usize = 2;

pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Section 3.2: most single heads can go.
pub(super) fn single_heads(all: &[Subject], published: Option<&Published>, criterion: Criterion) -> Section {
    let sweeps = || all.iter().filter_map(|subject| subject.sweep.as_ref());
    let paper = published.map(|Published { table1, .. }| {
        let base = format!("BLEU {:.DECIMALS$}", table1.base_bleu);
        let counts = [table1.heads, table1.significant, table1.better].map(|count| count.to_string());
        let [heads, significant, better] = counts.each_ref().map(String::as_str);
        let model = "M19: WMT, newstest2013 (Table 1)";
        row([model, "enc-enc", &base, heads, "", "", significant, better, ""])
    });
    Section {
        title: "One head at a time: few matter (Section 3.2, Table 1)",
        note: format!(
            "How to read it: heads whose masking alone changes the score significantly, by the two-sided p-value ({}), by \
             the one-sided one that the paper used for BLEU, which marks too many, and by the p-value adjusted for a single false \
             alarm among the heads of the type; better are those of them without which the score rises.",
            significantly(criterion)
        ),
        columns: &[
            "model and test set",
            "attention",
            "base",
            "heads",
            "significant",
            "better",
            "by the paper's p",
            "better",
            "adjusted",
        ],
        published: paper.into_iter().collect(),
        measured: sweeps().flat_map(|sweep| counts(sweep, criterion)).collect(),
        remarks: sweeps().flat_map(missing_heads).collect(),
    }
}

/// Sentences on the heads of a sweep that are not there.
fn missing_heads(sweep: &Sweep) -> Vec<String> {
    let types = sweep.attentions().into_iter();
    types
        .filter_map(|attention| Some(format!("{}, {}", sweep.title(), sweep.missing_heads(attention)?)))
        .collect()
}

fn significantly(criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "not adjusted",
        Adjustment::Family => "adjusted for the family",
        Adjustment::Bh => "adjusted by Benjamini and Hochberg (1995)",
    };
    format!("p < {}, {adjustment}", short(criterion.alpha))
}

fn counts(sweep: &Sweep, criterion: Criterion) -> Vec<Vec<String>> {
    let base = sweep.metric.described(sweep.base);
    let counts = |attention: Attention| {
        let family = sweep.family(attention).ok()?;
        let number =
            |tally: Tally, count: usize| if tally.tested > 0 { count.to_string() } else { String::new() };
        let ours = criterion.tally(&family);
        let papers = Tally::of(&family, criterion.alpha, |row| row.p_koehn.or(row.p_value));
        let adjusted = Criterion { adjustment: Adjustment::Family, ..criterion }.tally(&family);
        let [significant, better] = [ours.significant, ours.better].map(|count| number(ours, count));
        let [marked, marked_better] = [papers.significant, papers.better].map(|count| number(papers, count));
        let (heads, left) = (family.len().to_string(), number(adjusted, adjusted.significant));
        let title = sweep.title();
        let name = attention.name();
        Some(row([&title, name, &base, &heads, &significant, &better, &marked, &marked_better, &left]))
    };
    sweep.attentions().into_iter().filter_map(counts).collect()
}

/// Section 3.3: one head of a layer is often enough.
pub(super) fn best_heads(
    all: &[Subject],
    paper: Option<&Path>,
    criterion: Criterion,
) -> Result<Section, Error> {
    let mut published = Vec::new();
    for (table, model) in [
        ("table2", "M19: WMT, newstest2013 (Table 2)"),
        ("table3", "M19: BERT, MNLI matched (Table 3)"),
        ("table5", "M19: WMT, newstest2014 (Table 5)"),
        ("table6", "M19: BERT, MNLI matched (Table 6)"),
    ] {
        let Some(paper) = paper else { break };
        published.extend(published_layers(paper, table, model)?);
    }
    let (mut measured, mut remarks) = (Vec::new(), Vec::new());
    for best in all.iter().flat_map(|subject| &subject.best) {
        measured.extend(layers(best, criterion)?);
        remarks
            .extend(best.missing_heads().iter().map(|missing| format!("{}, {missing}", best.sweep.title())));
    }
    Ok(Section {
        title: "One head of a layer is often enough (Section 3.3, Tables 2, 3, 5 and 6)",
        note: format!(
            "How to read it: layers in which one head is enough, when all their heads but the best one are masked. {} \
             Chosen on the same split, the best head is an optimistic choice.",
            both_rules(criterion)
        ),
        columns: &[
            "model and test set",
            "attention",
            "best head chosen on",
            "shown safe in",
            "no significant loss in",
            "largest loss",
        ],
        published,
        measured,
        remarks,
    })
}

fn published_layers(paper: &Path, table: &str, model: &str) -> Result<Vec<Vec<String>>, Error> {
    let cells = paper::best_head_cells(paper, table)?;
    let chosen = match table {
        "table5" => "newstest2013",
        "table6" => "5,000 training examples",
        _ => "the same",
    };
    let of = |attention: Attention| {
        let lowest = cells.iter().filter(|cell| cell.attention == attention.name()).map(|cell| cell.delta);
        let lowest = lowest.min_by(f64::total_cmp)?;
        let layers = Enough::published(&cells, attention).in_words().unwrap_or_default();
        Some(row([model, attention.name(), chosen, "", &layers, &signed(lowest, DECIMALS)]))
    };
    Ok(Attention::ALL.into_iter().filter_map(of).collect())
}

fn layers(best: &BestHeads, criterion: Criterion) -> Result<Vec<Vec<String>>, Error> {
    let mut rows = Vec::new();
    for attention in best.sweep.attentions() {
        let of_type = best.of(attention)?;
        let gain = |row: &AblationRow| row.difference(None).gain;
        let worst = of_type.values().min_by(|one, other| gain(one).total_cmp(&gain(other)));
        let worst = worst.map_or(String::new(), |row| best.sweep.metric.change(row.score_delta));
        let rules = best.sweep.rules(criterion);
        let enough = |which| Enough::of(&of_type, rules, which).in_words().unwrap_or_default();
        let [safe, no_loss] = Which::BOTH.map(enough);
        let chosen = best.selected_on.as_deref().unwrap_or("the same");
        rows.push(row([&best.sweep.title(), attention.name(), chosen, &safe, &no_loss, &worst]));
    }
    Ok(rows)
}

/// Both rules in a sentence or two.
fn both_rules(criterion: Criterion) -> String {
    format!(
        "Shown safe: at the worse end of the 95 % interval the loss is small (at most 2 % of the base, unless the files name \
         another margin). No significant loss ({}): the paper's rule; {CAUTION}.",
        significantly(criterion)
    )
}

/// Section 3.4: important heads are important in another domain too.
pub(super) fn across_domains(all: &[Subject], published: Option<&Published>) -> Section {
    let paper = published.map(|Published { figure2, .. }| {
        let row = |model, attention, r| {
            let mut cells = row([model, attention, "", &format!("{r:.DECIMALS$}")]);
            cells.resize(ACROSS.len(), String::new());
            cells
        };
        [
            row("M19: WMT, newstest2013 and MTNT (Figure 2a)", "all reported", figure2.translation),
            row("M19: BERT, MNLI matched and mismatched (Figure 2b)", "self", figure2.bert),
        ]
    });
    let agreements = all.iter().flat_map(|subject| &subject.agreements);
    let measured = agreements.flat_map(|agreement| {
        let title = agreement.title();
        agreement.rows().map(move |found| {
            let texts = [title.clone(), found.attention.clone()].into_iter().chain(cells(found));
            texts.chain([reading(found)]).collect()
        })
    });
    Section {
        title: "Heads matter across domains (Section 3.4, Figure 2)",
        note: format!(
            "How to read it: Pearson's r between the scores with one head masked on two test sets, with what noise \
             allows; {HOW_TO_READ}."
        ),
        columns: &ACROSS,
        published: paper.into_iter().flatten().collect(),
        measured: measured.collect(),
        remarks: Vec::new(),
    }
}

const ACROSS: [&str; 11] = {
    let [heads, r, interval, p, reliability, ceiling, rho, top] = COLUMNS;
    ["model and test sets", "attention", heads, r, interval, p, reliability, ceiling, rho, top, "reading"]
};

/// Section 4.2: many heads can go at once.
pub(super) fn removable(
    all: &[Subject],
    paper: Option<&Path>,
    criterion: Criterion,
) -> Result<Section, Error> {
    let shares = paper.map(published_shares).transpose()?.unwrap_or_default();
    let published = shares.iter().map(|share| {
        let model = format!("M19: {} ({})", share.task, share.figure);
        row([&model, "importance", "", "", "", "", &format!("{} %", tenths(share.percent)), "", "", "", ""])
    });
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref());
    Ok(Section {
        title: "Many heads can go at once (Section 4.2, Figures 3 and 6)",
        note: format!(
            "How to read it: the largest share of heads that can be masked in an order, by two rules, and the change of \
             the score there. {} The paper's own shares are judged by eye. The oracle's order is {ORACLE}; of random orders \
             the median stands with the least and the greatest share. Complement: {COMPLEMENT}; floor: all heads masked.",
            both_rules(criterion)
        ),
        columns: &[
            "model and test set",
            "order",
            "base",
            "heads",
            "shown safe",
            "change",
            "no significant loss",
            "change",
            "score at 50 %",
            "complement at 50 %",
            "floor",
        ],
        published: published.collect(),
        measured: measured.flat_map(|pruning| shares_of(pruning, criterion)).collect(),
        remarks: Vec::new(),
    })
}

/// A row for each of the orders that the paper compares.
fn shares_of(pruning: &Pruning, criterion: Criterion) -> Vec<Vec<String>> {
    let base = base(pruning);
    let floor = floor(pruning, Scope::All);
    let of = |order| {
        let series = pruning.find(Scope::All, order)?;
        let heads = series.runs.first()?.steps.first()?.heads.to_string();
        let [safe, no_loss] = Which::BOTH.map(|which| share_of(pruning, series, criterion, which));
        let half = score_at(pruning, series, 50.0);
        let complement = pruning.complement(series);
        let complement = complement.map_or(String::new(), |series| score_at(pruning, series, 50.0));
        let (title, name) = (pruning.title(), order.name());
        Some(row([
            &title,
            name,
            &base,
            &heads,
            &safe[0],
            &safe[1],
            &no_loss[0],
            &no_loss[1],
            &half,
            &complement,
            &floor,
        ]))
    };
    [Order::Importance, Order::Oracle, Order::Random].into_iter().filter_map(of).collect()
}

/// The score with all heads masked; empty where it was not measured.
pub(super) fn floor(pruning: &Pruning, scope: Scope) -> String {
    let floor = pruning.floors().get(&scope);
    floor.map_or(String::new(), |row| pruning.metric.amount(row.score))
}

pub(super) fn base(pruning: &Pruning) -> String {
    pruning.metric.described(pruning.base)
}

/// The share by one rule and the change there, and whether the curve is not finished; empty if it is but has no share.
pub(super) fn share_of(
    pruning: &Pruning,
    series: &Series,
    criterion: Criterion,
    which: Which,
) -> [String; 2] {
    let removable = series.removable(pruning.rules(criterion), which);
    let change = removable.as_ref().and_then(|removable| removable.step);
    let change = change.map_or(String::new(), |step| pruning.metric.change(step.delta));
    [in_words(removable.map(|removable| share(&removable)), pruning.is_finished(series)), change]
}

/// The same for any share.
pub(super) fn in_words(share: Option<String>, is_finished: bool) -> String {
    match (share.map(|share| format!("{share} %")), is_finished) {
        (share, true) => share.unwrap_or_default(),
        (Some(share), false) => format!("{share} (not finished)"),
        (None, false) => "not finished".to_owned(),
    }
}

/// Section 5: attention from decoder to encoder needs its heads most.
pub(super) fn by_type(all: &[Subject], paper: Option<&Path>, criterion: Criterion) -> Result<Section, Error> {
    let mut published = Vec::new();
    if let Some(paper) = paper {
        let value = |what| summary_value(paper, "Figure 4", what).map(tenths);
        let breaks = value("share of Enc-Dec heads after which pruning is catastrophic")?;
        let left = value("BLEU left with 20 percent of the Enc-Enc or of the Dec-Dec heads")?;
        let model = "M19: WMT, newstest2013 (Figure 4)";
        published.push(row([model, "enc-enc", "", "", "", "", &left, ""]));
        let breaks = format!("breaks down after {breaks} %");
        published.push(row([model, "enc-dec", "", "", &breaks, "", "", ""]));
        published.push(row([model, "dec-dec", "", "", "", "", &left, ""]));
    }
    let translators = all.iter().filter_map(|subject| subject.pruning.as_ref());
    let measured = translators.flat_map(|pruning| {
        let types = pruning.types().unwrap_or_default();
        let types = types.into_iter().filter(|(_, series)| !series.curve.is_complement);
        types.map(|(attention, series)| sensitivity(pruning, attention, series, criterion))
    });
    Ok(Section {
        title: "Encoder-decoder attention needs its heads most (Section 5, Figure 4)",
        note: "How to read it: heads of one attention type masked by importance; the largest share that can go by the two \
               rules above, and the score with half, with four fifths and with all of them masked."
            .to_owned(),
        columns: &[
            "model and test set",
            "attention",
            "base",
            "shown safe",
            "no significant loss",
            "score at 50 %",
            "score at 80 %",
            "floor",
        ],
        published,
        measured: measured.collect(),
        remarks: Vec::new(),
    })
}

fn sensitivity(
    pruning: &Pruning,
    attention: Attention,
    series: &Series,
    criterion: Criterion,
) -> Vec<String> {
    let [safe, no_loss] = Which::BOTH.map(|which| share_of(pruning, series, criterion, which)[0].clone());
    let [half, most] = [50.0, 80.0].map(|share| score_at(pruning, series, share));
    let floor = floor(pruning, Scope::One(attention));
    let base = base(pruning);
    row([&pruning.title(), attention.name(), &base, &safe, &no_loss, &half, &most, &floor])
}
