//! Several runs of one recipe: the effect of masking each head in every run, and how far runs agree.
use std::collections::BTreeSet;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::no_replicates;
use crate::findings::replicates::{Comparison, HeadAcrossRuns, Needed, Shares};
use crate::findings::{Ablations, Criterion, Judge, Metric, Replicates, Result, experiment};
use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{INK, LIGHT, SILVER, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::{Attention, Verdict};
use stats::replicates::Agreement;
use words::{count, fixed, p_value};

use crate::view::{MARGIN, by_name, changes, limits, sheet};

const STEM: &str = "replicates";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "heads", chapter::SINGLE_HEADS],
    "Effect of masking each head in several runs with different seeds, and how far the runs agree",
    Reads::Each(experiment::SWEEP),
    |file, request, left_out| {
        let found = Replicates::read(file.clone(), left_out)?;
        let sheet = found.map(|found| sheet_of(&found, request.criterion));
        request.sheet_or(sheet, || no_replicates(&file))
    },
)
.detail("after `--replicate all`");

/// Number of heads in the second table.
const MOST: usize = 10;

fn sheet_of(found: &Replicates, criterion: Criterion) -> Result<Sheet> {
    let own = &found.sweeps[0];
    let judge = own.judge(criterion);
    let types = Type::all(found, judge)?;
    let tables = [common(found, &types, judge), costly(found, &types, judge)];
    Ok(sheet(&own.file, STEM, figure(found, &types, judge), tables))
}

struct Type {
    attention: Attention,
    heads: Vec<HeadAcrossRuns>,
    comparison: Option<Comparison>,
}

impl Type {
    /// Returns all attention types of a model.
    fn all(found: &Replicates, judge: Judge) -> Result<Vec<Self>> {
        let mut comparisons = found.comparisons()?;
        let of = |attention| {
            let comparison = comparisons.remove(&attention);
            Self { attention, heads: found.heads(attention, judge), comparison }
        };
        Ok(found.sweeps[0].attentions().into_iter().map(of).collect())
    }

    /// Returns counts of needed heads, heads whose effect differs between runs, and the correlation; for runs from one checkpoint.
    fn cells(&self, all: usize) -> [(&'static str, Cell); 7] {
        let needed = Needed::of(&self.heads, all);
        let differing = self.comparison.as_ref().map(|found| {
            Cell::from(found.heterogeneity.iter().filter(|head| head.p_adjusted < LEVEL).count())
        });
        let agreement = self.comparison.as_ref().and_then(|found| found.agreement.as_ref());
        [
            ("heads", self.heads.len().into()),
            ("needed in some run", needed.in_some.into()),
            ("of these in all", needed.in_all.into()),
            ("undecided in a run", needed.undecided_in_some.into()),
            ("dispensable in a run", needed.dispensable_in_some.into()),
            ("cost differs between runs", differing.into()),
            ("correlation of runs", agreement.map(correlation).into()),
        ]
    }

    /// Returns counts for runs trained from scratch, and the largest effect per run.
    fn cells_per_run(&self, all: usize, metric: Metric) -> [(&'static str, Cell); 5] {
        let per_run = |verdict| Cell::from(counts_per_run(&self.heads, all, verdict));
        let largest: Vec<f64> = sorted_by_run(&self.heads, all, metric).iter().map(|run| run[0]).collect();
        [
            ("heads", self.heads.len().into()),
            ("needed per run", per_run(Verdict::Needed)),
            ("undecided per run", per_run(Verdict::Undecided)),
            ("dispensable per run", per_run(Verdict::Dispensable)),
            ("largest cost of a head per run", range(&largest, |change| metric.change(change)).into()),
        ]
    }
}

fn correlation(agreement: &Agreement) -> Cell {
    let Agreement::Found { correlation, interval, pairs } = agreement else { return Cell::from("no signal") };
    let ends = match interval.filter(|_| pairs.len() >= PAIRS_FOR_INTERVAL) {
        Some(ends) => format!(" [{}, {}]", fixed(ends.low, 2), fixed(ends.high, 2)),
        None => format!(" ({})", range(pairs, |r| fixed(r, 2))),
    };
    Cell::number(fixed(*correlation, 2) + &ends, *correlation)
}

/// Number of pairs among four runs. For three runs the interval covers nearly everything, so the range over pairs is shown instead.
const PAIRS_FOR_INTERVAL: usize = 6;

/// Summarises heads of these types, `3 runs: 5 heads needed in some, 4 of them in all, …`; counts per run if heads cannot be compared.
pub fn in_words(found: &Replicates, attentions: &[Attention], criterion: Criterion) -> String {
    let (heads, all) = (heads(found, attentions, criterion), found.sweeps.len());
    if !found.have_same_heads() {
        let number = |verdict| counts_per_run(&heads, all, verdict);
        return format!(
            "{}: {} heads needed per run, {} dispensable",
            runs(found),
            number(Verdict::Needed),
            number(Verdict::Dispensable)
        );
    }
    let Needed { in_some, in_all, undecided_in_some, dispensable_in_some } = Needed::of(&heads, all);
    format!(
        "{}: {} needed in some, {in_all} of them in all, {undecided_in_some} undecided in another run, {dispensable_in_some} \
         dispensable in another run",
        runs(found),
        count(in_some, "head"),
    )
}

/// Formats the smallest and largest number of heads with a verdict in one run.
fn counts_per_run(heads: &[HeadAcrossRuns], runs: usize, verdict: Verdict) -> String {
    let of_run = |run: usize| heads.iter().filter(|head| head.verdicts[run] == Some(verdict)).count() as f64;
    let (least, most) = extent((0..runs).map(of_run));
    if least == most { fixed(least, 0) } else { format!("{} to {}", fixed(least, 0), fixed(most, 0)) }
}

/// Returns the heads of these types in all runs.
fn heads(found: &Replicates, attentions: &[Attention], criterion: Criterion) -> Vec<HeadAcrossRuns> {
    let judge = found.sweeps[0].judge(criterion);
    attentions.iter().flat_map(|&attention| found.heads(attention, judge)).collect()
}

/// Names the heads that all runs need, for the caption of a heat map; `None` if heads cannot be compared.
pub(crate) fn needed_in_all(found: &Replicates, criterion: Criterion) -> Option<String> {
    let (all, attentions) = (found.sweeps.len(), found.sweeps[0].attentions());
    let heads = heads(found, &attentions, criterion);
    let needed = heads.iter().filter(|head| head.count(Verdict::Needed) == all);
    let names: Vec<String> = needed.map(|head| head.head.to_string()).collect();
    let more = names.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = names[..names.len().min(MOST)].join(", ");
    let named = if named.is_empty() { "none".to_owned() } else { named + &more };
    found.have_same_heads().then(|| format!("heads needed in all {}: {named}", runs(found)))
}

fn title(found: &Replicates, what: &str) -> String {
    let own = &found.sweeps[0];
    own.file.titled(format!("{what}, in {} with different seeds", runs(found)))
}

fn runs(found: &Replicates) -> String {
    count(found.sweeps.len(), "run")
}

/// Tabulates a row per attention type.
fn common(found: &Replicates, types: &[Type], judge: Judge) -> Table {
    let (own, all, same) = (&found.sweeps[0], found.sweeps.len(), found.have_same_heads());
    let metric = own.metric();
    let row = |one: &Type| {
        let cells = if same { one.cells(all).to_vec() } else { one.cells_per_run(all, metric).to_vec() };
        (one.attention.name().into(), cells)
    };
    let bases: Vec<f64> = found.sweeps.iter().map(Ablations::base).collect();
    let table = Table::new("Runs", own.file.label(STEM), title(found, "Cost of masking one head"));
    by_name(table, ["Attention", "Heads"], types.iter().map(row))
        .note(format!("{} of the full model: {}", metric.label(), range(&bases, |base| metric.amount(base))))
        .note(shares(&found.shares(judge.criterion)))
        .note(judge.of_verdicts())
        .note(if same { CORRELATION } else { FROM_SCRATCH })
        .note(devices(found))
}

/// Returns the effects in each run, most expensive head first.
fn sorted_by_run(heads: &[HeadAcrossRuns], runs: usize, metric: Metric) -> Vec<Vec<f64>> {
    let gain = |change: &f64| metric.direction().gain(*change);
    let of_run = |run: usize| {
        let mut all: Vec<f64> = heads.iter().map(|head| head.changes[run]).collect();
        all.sort_by(|one, other| gain(one).total_cmp(&gain(other)));
        all
    };
    (0..runs).map(of_run).collect()
}

/// Warns if runs were measured on different devices.
fn devices(found: &Replicates) -> Option<String> {
    let device = |sweep: &Ablations| Some(sweep.file.signature.as_ref()?.runs.last()?.device.clone());
    let devices: BTreeSet<String> = found.sweeps.iter().filter_map(device).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    (devices.len() > 1)
        .then(|| format!("trained and measured on {}, which round differently", devices.join(" and ")))
}

/// Returns a row of the summary per attention type, for runs that start from one checkpoint.
pub(crate) fn rows(found: &Replicates, criterion: Criterion) -> Result<Vec<Row>> {
    let (own, all) = (&found.sweeps[0], found.sweeps.len());
    if !found.have_same_heads() {
        return Ok(Vec::new());
    }
    let judge = own.judge(criterion);
    let all_shares = found.shares(criterion);
    let ends = |share: fn(&Shares) -> f64| {
        let all: Vec<f64> = all_shares.iter().map(share).collect();
        let text = range(&all, |share| fixed(share, 0)) + "%";
        (all.len() > 1).then(|| Cell::number(text, all.iter().copied().fold(f64::INFINITY, f64::min)))
    };
    let row = |one: &Type| {
        let cells =
            [one.attention.name().into(), all.into()].into_iter().chain(one.cells(all).map(|(_, cell)| cell));
        Row::new(own.file.title(), cells.chain([ends(|shares| shares.dispensable).into()]))
    };
    Ok(Type::all(found, judge)?.iter().map(row).collect())
}

/// Describes the shares of the heads that can be masked by importance, with their range over runs.
pub(crate) fn shares(shares: &[Shares]) -> Option<String> {
    let of = |share: fn(&Shares) -> f64| {
        let all: Vec<f64> = shares.iter().map(share).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        format!("{}% ({})", fixed(mean, 0), range(&all, |share| fixed(share, 0)))
    };
    (shares.len() > 1).then(|| {
        format!(
            "heads that can be masked by importance in {}, mean (smallest to largest): dispensable {}, without a significant loss {}",
            count(shares.len(), "run"),
            of(|shares| shares.dispensable),
            of(|shares| shares.without_loss)
        )
    })
}

fn range(values: &[f64], print: impl Fn(f64) -> String) -> String {
    let (low, high) = extent(values.iter().copied());
    format!("{} to {}", print(low), print(high))
}

/// Tabulates the most expensive heads, with verdicts and a test for differences between runs; by rank if heads cannot be compared.
fn costly(found: &Replicates, types: &[Type], judge: Judge) -> Table {
    let own = &found.sweeps[0];
    let (metric, all) = (own.metric(), found.sweeps.len());
    let what = format!("Heads whose masking costs most: effect on {}", metric.label());
    let table = Table::new("Costly heads", own.file.label("costly-heads"), title(found, &what));
    let change = |change| metric.change(change);
    if found.have_same_heads() {
        let row = |(head, differs): (&HeadAcrossRuns, Option<f64>)| {
            let times = |verdict| Cell::from(format!("{} of {all}", head.count(verdict)));
            let cells = vec![
                ("mean", Cell::printed(head.mean(), change)),
                ("range over runs", range(&head.changes, change).into()),
                ("needed in", times(Verdict::Needed)),
                ("undecided in", times(Verdict::Undecided)),
                ("dispensable in", times(Verdict::Dispensable)),
                ("p that runs differ", differs.map(|p| Cell::printed(p, p_value)).into()),
            ];
            (head.head.to_string().into(), cells)
        };
        let heads = types.iter().flat_map(|one| {
            let tests = one.comparison.iter().flat_map(|found| &found.heterogeneity);
            one.heads.iter().zip(tests.map(|test| Some(test.p_adjusted)).chain(std::iter::repeat(None)))
        });
        let mut heads: Vec<(&HeadAcrossRuns, Option<f64>)> = heads.collect();
        let gain = |head: &HeadAcrossRuns| metric.direction().gain(head.mean());
        heads.sort_by(|(one, _), (other, _)| gain(one).total_cmp(&gain(other)));
        return by_name(table, ["Head", "Run"], heads.into_iter().take(MOST).map(row))
            .note(judge.of_verdicts())
            .note("p that runs differ: Wald test that masking the head costs the same in all runs, adjusted by Holm over the heads");
    }
    let heads: Vec<HeadAcrossRuns> = types.iter().flat_map(|one| one.heads.clone()).collect();
    let sorted = sorted_by_run(&heads, all, metric);
    let row = |rank: usize| {
        let of_runs: Vec<f64> = sorted.iter().map(|run| run[rank]).collect();
        let mean = of_runs.iter().sum::<f64>() / all as f64;
        Row::new((rank + 1).to_string(), [Cell::printed(mean, change), range(&of_runs, change).into()])
    };
    table
        .columns(["Rank in its run", "Effect"], ["mean", "range over runs"])
        .rows((0..MOST.min(heads.len())).map(row))
        .note(FROM_SCRATCH)
}

/// An adjusted p-value below this shows that a head's effect differs between runs.
const LEVEL: f64 = 0.05;

const CORRELATION: &str = "needed in some run: the next three columns count how many of these heads are needed in all runs, undecided in \
     another, or dispensable in another; cost differs between runs: Wald tests on resamples that all runs share, p < 0.05 after Holm; \
     correlation of runs: correlation of the heads' costs, corrected for the noise that runs share because they are scored on the same segments, \
     with its 95% interval over runs and segments in brackets or, for fewer than four runs, the range over pairs of runs; no signal: the test set does not show that heads differ";

/// Explains what cannot be compared between models trained from scratch.
const FROM_SCRATCH: &str = "runs are trained from scratch: a head has no identity across runs, so only counts and sorted effects are compared";

const RUN: Style = Style::line(INK, 0.6);

fn mark(needed: usize, all: usize) -> Mark {
    match needed {
        0 => Mark::new(Shape::Circle, 1.3, SILVER),
        _ if needed == all => Mark::new(Shape::Square, 1.9, VERMILLION),
        _ => Mark::new(Shape::Circle, 1.8, INK).hollow(),
    }
}

/// Draws runs from one checkpoint as mean and range for each head, sorted by mean effect; other runs as a line of sorted effects each.
fn figure(found: &Replicates, types: &[Type], judge: Judge) -> Chart {
    let (own, all, same) = (&found.sweeps[0], found.sweeps.len(), found.have_same_heads());
    let metric = own.metric();
    let range = |head: &HeadAcrossRuns| <[f64; 2]>::from(head.range());
    let ends = extent(types.iter().flat_map(|one| &one.heads).flat_map(range).chain([0.0]));
    let what = if same { "mean effect" } else { "effect in their run" };
    let panel = |one: &&Type| {
        let x = Axis::around(format!("heads, sorted by {what}"), 1.0, one.heads.len().max(2) as f64);
        let layers = if same { by_head(&one.heads, all) } else { by_run(&one.heads, all, metric) };
        let layers = limits(own, judge, At::Y).into_iter().chain(layers).collect();
        Panel::new([x, changes(metric, ends)], 120.0, layers)
    };
    let entry = |text: &str, level| Entry::mark(text, mark(level, all));
    let over_runs = Entry::fill(format!("range over {}", runs(found)), LIGHT);
    let entries = if same {
        vec![entry("needed in all runs", all), entry("in some", 1), entry("in none", 0), over_runs]
    } else {
        vec![Entry::line("each run", RUN)]
    };
    let marks = "mark: mean over the runs; grey area: range of the effect over the runs, not an interval";
    Chart::new("Runs", own.file.label(STEM), title(found, "Effect of masking each head"))
        .note(if same { marks } else { FROM_SCRATCH })
        .note(judge.of_verdicts())
        .entries(entries)
        .entries([Entry::line("margin", MARGIN)])
        .beside(&types.iter().collect::<Vec<_>>(), |one| one.attention.in_words(), panel)
        .wide()
}

fn place(rank: usize) -> f64 {
    rank as f64 + 1.0
}

fn by_head(heads: &[HeadAcrossRuns], all: usize) -> Vec<Layer> {
    let mut heads: Vec<&HeadAcrossRuns> = heads.iter().collect();
    heads.sort_by(|one, other| one.mean().total_cmp(&other.mean()));
    let area = |(rank, head): (usize, &&HeadAcrossRuns)| {
        let (low, high) = head.range();
        Layer::Band([-0.4, 0.4].map(|side| (place(rank) + side, low, high)).to_vec(), INK)
    };
    let marks = |level: usize| {
        let is_level = |head: &HeadAcrossRuns| match head.count(Verdict::Needed) {
            times if times == 0 || times == all => level == times,
            _ => level == 1,
        };
        let marked = heads.iter().enumerate().filter(|(_, head)| is_level(head));
        Layer::Points(marked.map(|(rank, head)| (place(rank), head.mean())).collect(), mark(level, all))
    };
    heads.iter().enumerate().map(area).chain([0, 1, all].map(marks)).collect()
}

fn by_run(heads: &[HeadAcrossRuns], all: usize, metric: Metric) -> Vec<Layer> {
    let at = |(rank, change)| (place(rank), change);
    let line = |run: Vec<f64>| Layer::Line(run.into_iter().enumerate().map(at).collect(), RUN);
    sorted_by_run(heads, all, metric).into_iter().map(line).collect()
}
