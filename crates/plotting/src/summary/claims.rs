//! The claims of Michel et al. (2019), one section each.
use std::path::Path;

use records::CorrelationRow;

use super::{Section, Subject};
use crate::Error;
use crate::attention::Attention;
use crate::best_head::{BestHeads, Enough};
use crate::cross_domain::CrossDomain;
use crate::number::{count, p_value, short, signed, tenths};
use crate::paper::{self, Published, summary_value};
use crate::pruning::Pruning;
use crate::pruning::curve::{Series, percent};
use crate::pruning::order::{Order, Scope};
use crate::pruning_table::{ORACLE, published as published_shares, share};
use crate::significance::{Adjustment, Criterion, Tally};
use crate::sweep::Sweep;

/// Digits after the point of scores.
pub(super) const DECIMALS: usize = 2;
/// A score is given for this share of masked heads if a step lies no further away, in percentage points.
const NEAR: f64 = 5.0;

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
        row([model, "enc-enc", &base, heads, significant, better, "not reported"])
    });
    Section {
        title: "One head at a time: few matter (Section 3.2, Table 1)",
        note: format!(
            "Heads whose masking alone changes the score, {}; of those how many are better masked, and how many are \
             left when p is adjusted for the number of heads of the type (Holm).",
            significantly(criterion)
        ),
        columns: &[
            "model and test set",
            "attention",
            "base",
            "heads",
            "significant",
            "of those better",
            "after Holm",
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
    format!("p < {}, {}", short(criterion.alpha), criterion.adjustment.description())
}

fn counts(sweep: &Sweep, criterion: Criterion) -> Vec<Vec<String>> {
    let base = format!("{} {}", sweep.metric.label(), sweep.metric.amount(sweep.base, DECIMALS));
    let counts = |attention: Attention| {
        let family = sweep.family(attention).ok()?;
        let tally = |adjustment| Criterion { adjustment, ..criterion }.tally(&family);
        let number =
            |tally: Tally, count: usize| if tally.tested > 0 { count.to_string() } else { String::new() };
        let (main, holm) = (tally(criterion.adjustment), tally(Adjustment::Holm));
        let (significant, better) = (number(main, main.significant), number(main, main.better));
        let (heads, left) = (family.len().to_string(), number(holm, holm.significant));
        Some(row([&sweep.title(), attention.name(), &base, &heads, &significant, &better, &left]))
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
            "Layers that lose nothing significant ({}) when all their heads but the best one are masked. Chosen on the \
             same split, the best head is an optimistic choice.",
            significantly(criterion)
        ),
        columns: &[
            "model and test set",
            "attention",
            "best head chosen on",
            "one head is enough in",
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
        let Enough { layers, tested } = Enough::published(&cells, attention);
        let layers = format!("{layers} of {}", count(tested, "layer"));
        Some(row([model, attention.name(), chosen, &layers, &signed(lowest, DECIMALS)]))
    };
    Ok(Attention::ALL.into_iter().filter_map(of).collect())
}

fn layers(best: &BestHeads, criterion: Criterion) -> Result<Vec<Vec<String>>, Error> {
    let mut rows = Vec::new();
    for attention in best.sweep.attentions() {
        let of_type = best.of(attention)?;
        let lowest = of_type.values().map(|row| row.score_delta).min_by(f64::total_cmp);
        let lowest = lowest.map_or(String::new(), |delta| signed(delta, DECIMALS));
        let Enough { layers, tested } = Enough::of(&of_type, criterion);
        let layers =
            if tested > 0 { format!("{layers} of {}", count(tested, "layer")) } else { String::new() };
        let chosen = best.selected_on.as_deref().unwrap_or("the same");
        rows.push(row([&best.sweep.title(), attention.name(), chosen, &layers, &lowest]));
    }
    Ok(rows)
}

/// Section 3.4: important heads are important in another domain too.
pub(super) fn across_domains(all: &[Subject], published: Option<&Published>) -> Section {
    let paper = published.map(|Published { figure2, .. }| {
        let row = |model, attention, r| row([model, attention, "", &format!("{r:.DECIMALS$}"), "", "", ""]);
        [
            row("M19: WMT, newstest2013 and MTNT (Figure 2a)", "all reported", figure2.translation),
            row("M19: BERT, MNLI matched and mismatched (Figure 2b)", "self", figure2.bert),
        ]
    });
    let agreements = all.iter().flat_map(|subject| &subject.agreements);
    Section {
        title: "Heads matter across domains (Section 3.4, Figure 2)",
        note: "Correlation of the scores with one head masked between two test sets.".to_owned(),
        columns: &[
            "model and test sets",
            "attention",
            "heads",
            "Pearson r",
            "p of r",
            "Spearman rho",
            "most important heads shared",
        ],
        published: paper.into_iter().flatten().collect(),
        measured: agreements.flat_map(correlations).collect(),
        remarks: Vec::new(),
    }
}

/// Over all heads and, where there are several types, over those of each.
fn correlations(agreement: &CrossDomain) -> Vec<Vec<String>> {
    let types: Vec<_> =
        Attention::ALL.into_iter().filter_map(|attention| agreement.of_type(attention)).collect();
    let types = if types.len() > 1 { types } else { Vec::new() };
    let title = agreement.title();
    std::iter::once(&agreement.all).chain(types).map(|found| correlation(&title, found)).collect()
}

fn correlation(title: &str, found: &CorrelationRow) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.DECIMALS$}"));
    let [r, rho] = [number(found.pearson), number(found.spearman)];
    let significance = found.pearson_p_value.map_or(String::new(), p_value);
    let chance = tenths(found.top_overlap_by_chance);
    let overlap = format!("{} of {} ({chance} by chance)", tenths(found.top_overlap), found.top);
    row([title, &found.attention, &found.heads.to_string(), &r, &significance, &rho, &overlap])
}

/// Section 4.2: many heads can go at once.
pub(super) fn removable(
    all: &[Subject],
    paper: Option<&Path>,
    criterion: Criterion,
) -> Result<Section, Error> {
    let shares = paper.map(published_shares).transpose()?.unwrap_or_default();
    let published = shares.iter().map(|share| {
        let model = format!("M19: {} ({})", share.task, share.figure);
        row([&model, "", "", &format!("{} %", tenths(share.percent)), "", "", ""])
    });
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref());
    let measured = measured.filter(|pruning| pruning.of(Scope::All).is_ok());
    Ok(Section {
        title: "Many heads can go at once (Section 4.2, Figures 3 and 6)",
        note: format!(
            "Largest share of heads that can be masked, in the order given, before the score is significantly below the \
             base ({}); the paper judges \"without noticeable loss\" by eye. The change is that at the share by \
             importance. The oracle's order is {ORACLE}.",
            significantly(criterion).replace("number of heads", "number of steps")
        ),
        columns: &[
            "model and test set",
            "base",
            "heads",
            "by importance",
            "change",
            "by oracle",
            "at random",
        ],
        published: published.collect(),
        measured: measured.map(|pruning| shares_of(pruning, criterion)).collect(),
        remarks: Vec::new(),
    })
}

fn shares_of(pruning: &Pruning, criterion: Criterion) -> Vec<String> {
    let find = |order| pruning.find(Scope::All, order);
    let cell = |order| find(order).map_or(String::new(), |series| share_of(pruning, series, criterion));
    let change = find(Order::Importance).and_then(|series| series.removable(criterion));
    let change = change.map_or(String::new(), |removable| signed(removable.delta, DECIMALS));
    let metric = &pruning.metric;
    let base = format!("{} {}", metric.label(), metric.amount(pruning.base, DECIMALS));
    let first =
        pruning.of(Scope::All).ok().and_then(|all| Some(all.first()?.runs.first()?.steps.first()?.heads));
    let heads = first.map_or(String::new(), |heads| heads.to_string());
    let [importance, oracle, random] = [Order::Importance, Order::Oracle, Order::Random].map(cell);
    row([&pruning.title(), &base, &heads, &importance, &change, &oracle, &random])
}

/// The share in words, and whether the curve is not finished; empty if it is but has no share.
fn share_of(pruning: &Pruning, series: &Series, criterion: Criterion) -> String {
    let share = series.removable(criterion).map(|removable| share(&removable));
    in_words(share, pruning.is_finished(series))
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
        published.push(row([model, "enc-enc", "", "", "", &left]));
        published.push(row([model, "enc-dec", "", &format!("breaks down after {breaks} %"), "", ""]));
        published.push(row([model, "dec-dec", "", "", "", &left]));
    }
    let translators = all.iter().filter_map(|subject| subject.pruning.as_ref());
    let measured = translators.flat_map(|pruning| {
        let types = pruning.types().unwrap_or_default();
        types.into_iter().map(|(attention, series)| sensitivity(pruning, attention, series, criterion))
    });
    Ok(Section {
        title: "Encoder-decoder attention needs its heads most (Section 5, Figure 4)",
        note: format!(
            "Heads of one attention type masked by importance: the largest share before a significant loss ({}), and \
             the score with half and with four fifths of them masked.",
            significantly(criterion).replace("number of heads", "number of steps")
        ),
        columns: &["model and test set", "attention", "base", "removable", "score at 50 %", "score at 80 %"],
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
    let base = format!("{} {}", pruning.metric.label(), pruning.metric.amount(pruning.base, DECIMALS));
    let removable = share_of(pruning, series, criterion);
    let [half, most] = [50.0, 80.0].map(|share| score_at(pruning, series, share));
    row([&pruning.title(), attention.name(), &base, &removable, &half, &most])
}

/// The score of the step nearest to a share, with the share of that step where it is another; empty if none is near.
fn score_at(pruning: &Pruning, series: &Series, share: f64) -> String {
    let steps = series.runs.iter().flat_map(|run| &run.steps);
    let gap = |found: f64| (found - share).abs();
    let nearest = steps.map(|row| (percent(row), row.score)).min_by(|a, b| gap(a.0).total_cmp(&gap(b.0)));
    let near = nearest.filter(|(found, _)| gap(*found) <= NEAR);
    near.map_or(String::new(), |(found, score)| {
        let amount = pruning.metric.amount(score, DECIMALS);
        if gap(found) < 0.05 { amount } else { format!("{amount} (at {} %)", tenths(found)) }
    })
}
