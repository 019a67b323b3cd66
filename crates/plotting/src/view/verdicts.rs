//! The paper's numbers beside ours, with what the data bears out: whether both point the same way, and whether the published
//! number lies inside our interval.
use records::{Attention, Order, PruningRow, Scope, SpeedRow};

use super::speed::{Speed, paper_speedup, percent_more};
use super::{Context, best_heads};
use crate::data::best_heads::{BestHeads, enough, enough_published};
use crate::data::dynamics::Dynamics;
use crate::data::pair::Pair;
use crate::data::pruning::{Pruning, interval, percent};
use crate::data::subject::Subject;
use crate::data::sweep::Sweep;
use crate::judge::{Adjustment, Criterion, Which};
use crate::origin::Beside;
use crate::paper::{BREAKDOWN, FIGURE_2A, FIGURE_2B, FIGURE_5, HEADS, Paper, SIGNIFICANT, Share};
use crate::table::{Row, Table, names};
use crate::words::{count, signed, tenths, typeset};

/// What keeps a verdict from being given.
const NO_INTERVAL: &str = "cannot be said: ours has no interval";

/// Both numbers, and what can be said of them.
struct Verdict {
    claim: &'static str,
    published: String,
    ours: String,
    interval: String,
    direction: String,
    inside: String,
}

/// One row for each number of the paper that the results of a subject stand beside; none where there is no such number.
pub fn table(subject: &Subject, speed: Option<&Speed>, context: Context<'_>) -> Option<Table> {
    let paper = context.paper?;
    let sweep = subject.sweep.iter().filter_map(|sweep| single_heads(sweep, context.criterion, paper));
    let best = subject.best.iter().flat_map(|best| layers(best, context));
    let pairs = subject.pairs.iter().filter_map(|pair| domains(pair, paper));
    let shares = subject.pruning.iter().filter_map(|pruning| share(pruning, context.criterion, paper));
    let types = subject.pruning.iter().filter_map(|pruning| types(pruning, paper));
    let training = subject.dynamics.iter().filter_map(|dynamics| training(dynamics, paper));
    let speeds = speed.into_iter().flat_map(|speed| speed.rows.iter().filter_map(|row| faster(row, paper)));
    let all: Vec<Verdict> =
        sweep.chain(best).chain(pairs).chain(shares).chain(types).chain(training).chain(speeds).collect();
    let row = |verdict: Verdict| {
        let Verdict { claim, published, ours, interval, direction, inside } = verdict;
        Row::new(claim, [published, ours, interval, direction, inside])
    };
    (!all.is_empty()).then(|| Table {
        name: "The paper beside ours",
        label: "verdicts".to_owned(),
        title: "Numbers of Michel et al. (2019) beside ours. They are of another model and of other data, so what can agree is the \
                direction; a number inside our interval is one that our data does not speak against"
            .to_owned(),
        headings: ["Claim", ""],
        columns: names(&["paper", "ours", "our 95 % interval", "same direction?", "paper's number inside it?"]),
        rows: all.into_iter().map(row).collect(),
        ..Table::default()
    })
}

fn said(holds: bool, what: &str) -> String {
    format!("{}: {what}", if holds { "yes" } else { "no" })
}

fn inside(number: f64, (low, high): (f64, f64)) -> String {
    if (low..=high).contains(&number) { "yes" } else { "no" }.to_owned()
}

/// Section 3.2: few single heads matter.
fn single_heads(sweep: &Sweep, criterion: Criterion, paper: &Paper) -> Option<Verdict> {
    let family = sweep.family(Attention::EncEnc);
    let is_meant = sweep.beside()?.translates() && !family.is_empty();
    let tally = Criterion { adjustment: Adjustment::None, ..criterion }.tally(family.iter().copied());
    let [heads, significant] = [HEADS, SIGNIFICANT].map(|name| paper.value(name));
    let (few, whole) = (2 * tally.significant < tally.tested, family.len());
    (is_meant && tally.tested > 0).then(|| Verdict {
        claim: "encoder heads whose masking changes the score",
        published: format!("{significant} of {heads}"),
        ours: format!("{} of {}", tally.significant, tally.tested),
        interval: String::new(),
        direction: said(
            few == (2.0 * significant < heads),
            "fewer than half of the heads matter alone in the paper",
        ),
        inside: format!(
            "cannot be said: all {} were tested, so that the number has no interval",
            count(whole, "head")
        ),
    })
}

/// Section 3.3: one head of a layer is often enough.
fn layers(best: &BestHeads, context: Context<'_>) -> Vec<Verdict> {
    let judge = best.sweep.judge(context.criterion);
    let of = |attention: Attention| {
        let theirs = enough_published(best_heads::published(best, context), attention)?;
        let ours = enough(&best.of(attention), judge, Which::NoSignificantLoss)?;
        let [most, many] = [theirs, ours].map(|layers| 2 * layers.enough > layers.tested);
        let half = if most { "more than half" } else { "at most half" };
        let table = best_heads::paper_table(best.stem())[0];
        Some(Verdict {
            claim: "layers in which one head is enough, by the paper's rule",
            published: format!("{theirs} of {attention} ({table})"),
            ours: ours.to_string(),
            interval: String::new(),
            direction: said(most == many, &format!("{half} of the layers in the paper")),
            inside: NO_INTERVAL.to_owned(),
        })
    };
    best.sweep.attentions().into_iter().filter_map(of).collect()
}

/// Section 3.4: heads matter alike across domains.
fn domains(pair: &Pair, paper: &Paper) -> Option<Verdict> {
    let named = match pair.sweeps[0].beside()? {
        Beside::MNLI => FIGURE_2B,
        beside if beside.translates() => FIGURE_2A,
        _ => return None,
    };
    let (row, theirs) = (&pair.rows[0], paper.value(named));
    let (r, ends) = (row.pearson?, row.pearson_low.zip(row.pearson_high));
    let direction = match ends {
        Some((low, _)) if low > 0.0 => said(true, "r is shown to be above 0"),
        Some((_, high)) if high < 0.0 => said(false, "r is shown to be below 0"),
        Some(_) => "cannot be said: our interval holds 0".to_owned(),
        None => NO_INTERVAL.to_owned(),
    };
    Some(Verdict {
        claim: "correlation of heads across domains",
        published: format!("r = {} ({})", typeset(theirs, 2), named.0),
        ours: format!("r = {}", typeset(r, 2)),
        interval: ends
            .map_or(String::new(), |(low, high)| format!("{} to {}", typeset(low, 2), typeset(high, 2))),
        direction,
        inside: ends.map_or(NO_INTERVAL.to_owned(), |ends| inside(theirs, ends)),
    })
}

/// Section 4.2: many heads can go at once.
fn share(pruning: &Pruning, criterion: Criterion, paper: &Paper) -> Option<Verdict> {
    let shares = paper.shares();
    let Share { figure, task, percent: theirs } = pruning.published(&shares)?;
    let found = pruning.tolerable(criterion)?;
    let direction = match (found.low > 0.0, found.high > 0.0) {
        (true, _) => said(true, "some heads are shown to be safe to remove"),
        (false, true) => "cannot be said: our interval begins at 0".to_owned(),
        (false, false) => said(false, "the first step is shown to cost more than the margin"),
    };
    Some(Verdict {
        claim: "share of heads that can go by importance",
        published: format!("{} %, judged by eye ({task}, {figure})", tenths(*theirs)),
        ours: format!("{} % with a loss within the margin", tenths(found.percent)),
        interval: format!("{} to {} %", tenths(found.low), tenths(found.high)),
        direction,
        inside: inside(*theirs, (found.low, found.high)),
    })
}

/// Section 5: the decoder's attention to the encoder needs its heads most.
fn types(pruning: &Pruning, paper: &Paper) -> Option<Verdict> {
    const SHARE: f64 = 80.0;
    pruning.beside().filter(|beside| beside.translates())?;
    let near = |row: &&PruningRow| (percent(row) - SHARE).abs() <= 5.0;
    let of = |attention: Attention| {
        let series = pruning.find(Scope::One(attention), Order::Importance)?;
        let distance = |row: &&PruningRow| (percent(row) - SHARE).abs();
        let rows = series.runs.iter().flatten().filter(near);
        let row = rows.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
        Some((pruning.metric.amount(row.score), interval(row)?))
    };
    let [own, between, decoder] = [Attention::EncEnc, Attention::EncDec, Attention::DecDec].map(of);
    let (own, between, decoder) = (own?, between?, decoder?);
    let least = own.1.0.min(decoder.1.0);
    let direction = if between.1.1 < least {
        said(true, "its interval lies below both others")
    } else if between.1.0 > own.1.1.min(decoder.1.1) {
        said(false, "another type is shown to lose more")
    } else {
        "cannot be said: the intervals overlap".to_owned()
    };
    Some(Verdict {
        claim: "the attention of the decoder to the encoder loses most",
        published: format!(
            "breaks down once {} % of its heads are masked (Figure 4)",
            tenths(paper.value(BREAKDOWN))
        ),
        ours: format!(
            "with {SHARE} % of a type masked: enc-dec {}, dec-dec {}, enc-enc {}",
            between.0, decoder.0, own.0
        ),
        interval: format!("{} to {}", pruning.metric.amount(between.1.0), pruning.metric.amount(between.1.1)),
        direction,
        inside: "cannot be said: the paper prints no score there".to_owned(),
    })
}

/// Section 6: heads become dispensable while a model is trained.
fn training(dynamics: &Dynamics, paper: &Paper) -> Option<Verdict> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let is_meant = dynamics.metric.name() == "bleu" && comparable.len() > 1;
    let ((before, _), (after, _)) = (first.removable(90.0)?, last.removable(90.0)?);
    is_meant.then(|| Verdict {
        claim: "heads become dispensable during training",
        published: format!(
            "{} % from epoch 10 on, 85 to 90 % of BLEU kept (Figure 5)",
            tenths(paper.value(FIGURE_5))
        ),
        ours: format!(
            "90 % kept: {} % after {}, {} % after {}",
            tenths(before),
            dynamics.name(first),
            tenths(after),
            dynamics.name(last)
        ),
        interval: String::new(),
        direction: said(
            after > before,
            "the share after the last checkpoint beside that after the first; not tested",
        ),
        inside: NO_INTERVAL.to_owned(),
    })
}

/// Section 4.3: a model without half of its heads is faster.
fn faster(row: &SpeedRow, paper: &Paper) -> Option<Verdict> {
    let theirs = paper_speedup(row, Some(paper))?;
    let ends = [row.ratio_low, row.ratio_high].map(|ratio| 100.0 * (ratio - 1.0));
    let direction = match ends {
        [low, _] if low > 0.0 => said(true, "it is shown to be faster"),
        [_, high] if high < 0.0 => said(false, "it is shown to be slower"),
        _ => "cannot be said: our interval holds 0".to_owned(),
    };
    Some(Verdict {
        claim: "faster without half of the heads",
        published: format!("{} % in batches of {} (Table 4)", signed(theirs, 1), row.batch_size),
        ours: format!("{} %", percent_more(row.ratio)),
        interval: format!("{} to {} %", percent_more(row.ratio_low), percent_more(row.ratio_high)),
        direction,
        inside: inside(theirs, (ends[0], ends[1])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_an_interval_lie_inside_it() {
        assert_eq!([0.1, 0.5, 0.51].map(|number| inside(number, (0.1, 0.5))), ["yes", "yes", "no"]);
        assert_eq!(said(false, "slower"), "no: slower");
    }
}
