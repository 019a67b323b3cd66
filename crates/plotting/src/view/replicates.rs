//! Several trainings of one subject: what masking each head does in all of them, and how far they agree.
use std::collections::BTreeSet;

use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{GREY, INK, SILVER, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::replicates::{HeadInAll, Shares};
use findings::{Ablations, Criterion, Judge, Replicates, Result};
use records::{Attention, Verdict};
use stats::replicates::Agreement;
use words::{count, fixed};

pub(crate) const STEM: &str = "replicates";

/// Heads that the second table names.
const MOST: usize = 10;

pub(crate) fn sheet(found: &Replicates, criterion: Criterion) -> Result<Sheet> {
    let own = &found.sweeps[0];
    let judge = own.judge(criterion);
    let types = Type::all(found, judge)?;
    let tables = [common(found, &types, judge), costly(found, &types, judge)];
    Ok(super::sheet(&own.file, STEM, figure(found, &types, judge), tables))
}

/// Heads of one attention type in all replicates.
struct Type {
    attention: Attention,
    heads: Vec<HeadInAll>,
    agreement: Option<Agreement>,
}

impl Type {
    /// All types of a subject.
    fn all(found: &Replicates, judge: Judge) -> Result<Vec<Self>> {
        let mut agreements = found.agreements()?;
        let of = |attention| {
            let agreement = agreements.remove(&attention);
            Self { attention, heads: found.heads(attention, judge), agreement }
        };
        Ok(found.sweeps[0].attentions().into_iter().map(of).collect())
    }

    /// Heads, those that all trainings need, that some need, that all can spare, and the agreement of `all` trainings.
    fn cells(&self, all: usize) -> [Cell; 5] {
        let needed = |is_meant: &dyn Fn(usize) -> bool| Cell::from(self.count(Verdict::Needed, is_meant));
        let shared = self.agreement.as_ref().map(|found| {
            let ends =
                found.interval.map(|ends| format!(" [{}, {}]", fixed(ends.low, 2), fixed(ends.high, 2)));
            Cell::number(fixed(found.intraclass, 2) + &ends.unwrap_or_default(), found.intraclass)
        });
        [
            self.heads.len().into(),
            needed(&|times| times == all),
            needed(&|times| times > 0 && times < all),
            self.count(Verdict::Dispensable, |times| times == all).into(),
            shared.into(),
        ]
    }

    /// Number of heads with a verdict in as many replicates.
    fn count(&self, verdict: Verdict, is_meant: impl Fn(usize) -> bool) -> usize {
        self.heads.iter().filter(|head| is_meant(head.count(verdict))).count()
    }
}

/// `5 trainings: 1 head needed in all, 2 in some; 50 dispensable in all`, of the heads of these types.
pub fn in_words(found: &Replicates, attentions: &[Attention], criterion: Criterion) -> String {
    let (heads, all) = (heads(found, attentions, criterion), found.sweeps.len());
    let number = |verdict, is_meant: &dyn Fn(usize) -> bool| {
        heads.iter().filter(|head| is_meant(head.count(verdict))).count()
    };
    format!(
        "{}: {} needed in all, {} in some; {} dispensable in all",
        trainings(found),
        count(number(Verdict::Needed, &|times| times == all), "head"),
        number(Verdict::Needed, &|times| times > 0 && times < all),
        number(Verdict::Dispensable, &|times| times == all)
    )
}

/// Heads of these types in all replicates.
fn heads(found: &Replicates, attentions: &[Attention], criterion: Criterion) -> Vec<HeadInAll> {
    let judge = found.sweeps[0].judge(criterion);
    attentions.iter().flat_map(|&attention| found.heads(attention, judge)).collect()
}

/// Names of the heads that all trainings need, below a map of heads.
pub(crate) fn needed_in_all(found: &Replicates, criterion: Criterion) -> [String; 2] {
    let (all, attentions) = (found.sweeps.len(), found.sweeps[0].attentions());
    let heads = heads(found, &attentions, criterion);
    let needed = heads.iter().filter(|head| head.count(Verdict::Needed) == all);
    let names: Vec<String> = needed.map(|head| head.head.to_string()).collect();
    let more = names.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = names[..names.len().min(MOST)].join(", ");
    let named = if named.is_empty() { "none".to_owned() } else { named + &more };
    [format!("heads needed in all {}: {named}", trainings(found)), NUMBERS.to_owned()]
}

fn title(found: &Replicates, what: &str) -> String {
    let own = &found.sweeps[0];
    own.file.titled(format!("{what}, in {} with other seeds", trainings(found)))
}

fn trainings(found: &Replicates) -> String {
    count(found.sweeps.len(), "training")
}

/// A row for each attention type: heads by the number of trainings that need them, and how far trainings agree.
fn common(found: &Replicates, types: &[Type], judge: Judge) -> Table {
    let (own, all) = (&found.sweeps[0], found.sweeps.len());
    let row = |one: &Type| {
        let pairs = one.agreement.as_ref().filter(|found| !found.pairs.is_empty()).map(|found| {
            let mean = found.pairs.iter().sum::<f64>() / found.pairs.len() as f64;
            Cell::number(format!("{} ({})", fixed(mean, 2), range(&found.pairs, |r| fixed(r, 2))), mean)
        });
        let cells = one.cells(all).into_iter().chain([pairs.into()]);
        Row::new(one.attention.name(), cells)
    };
    let bases: Vec<f64> = found.sweeps.iter().map(Ablations::base).collect();
    let metric = own.metric();
    Table::new("Replicates", own.file.label(STEM), title(found, "What masking one head costs"))
        .columns(
            ["Attention", "Heads"],
            [
                "heads",
                "needed in all",
                "needed in some",
                "dispensable in all",
                "common share of variance",
                "r of two trainings",
            ],
        )
        .rows(types.iter().map(row))
        .note(format!("base {} of the trainings: {}", metric.label(), range(&bases, |base| metric.amount(base))))
        .note(shares(&found.shares(judge.criterion)))
        .note(judge.of_verdicts())
        .note(
            "common share of variance: intraclass correlation of the changes, with its 95 % interval over segments and trainings, which \
             is too narrow for three trainings and absent for two; noise can make it negative; r: mean (smallest to greatest)",
        )
        .note(NUMBERS)
        .note(devices(found))
}

/// A sentence where trainings were measured on unlike devices.
fn devices(found: &Replicates) -> Option<String> {
    let device = |sweep: &Ablations| Some(sweep.file.signature.as_ref()?.runs.last()?.device.clone());
    let devices: BTreeSet<String> = found.sweeps.iter().filter_map(device).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    (devices.len() > 1)
        .then(|| format!("trained and measured on {}, which round differently", devices.join(" and ")))
}

/// A row for each attention type of a subject in the summary.
pub(crate) fn rows(found: &Replicates, criterion: Criterion) -> Result<Vec<Row>> {
    let (own, all) = (&found.sweeps[0], found.sweeps.len());
    let judge = own.judge(criterion);
    let all_shares = found.shares(criterion);
    let ends = |share: fn(&Shares) -> f64| {
        let all: Vec<f64> = all_shares.iter().map(share).collect();
        let text = range(&all, |share| fixed(share, 0)) + " %";
        (all.len() > 1).then(|| Cell::number(text, all.iter().copied().fold(f64::INFINITY, f64::min)))
    };
    let row = |one: &Type| {
        let cells = [one.attention.name().into(), all.into()].into_iter().chain(one.cells(all));
        let shares = [ends(|shares| shares.dispensable), ends(|shares| shares.without_loss)];
        Row::new(own.file.title(), cells.chain(shares.map(Cell::from)))
    };
    Ok(Type::all(found, judge)?.iter().map(row).collect())
}

/// Shares of the heads that can go by importance, each with its range over the trainings.
pub(crate) fn shares(shares: &[Shares]) -> Option<String> {
    let of = |share: fn(&Shares) -> f64| {
        let all: Vec<f64> = shares.iter().map(share).collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        format!("{} % ({})", fixed(mean, 0), range(&all, |share| fixed(share, 0)))
    };
    (shares.len() > 1).then(|| {
        format!(
            "heads that can go by importance in {}, mean (smallest to greatest): dispensable {}, without a significant loss {}",
            count(shares.len(), "training"),
            of(|shares| shares.dispensable),
            of(|shares| shares.without_loss)
        )
    })
}

/// `0.31 to 0.64`
fn range(values: &[f64], print: impl Fn(f64) -> String) -> String {
    let (low, high) = extent(values.iter().copied());
    format!("{} to {}", print(low), print(high))
}

/// The heads that cost most on average, with the range over the trainings and the number of trainings that need them.
fn costly(found: &Replicates, types: &[Type], judge: Judge) -> Table {
    let own = &found.sweeps[0];
    let (metric, all) = (own.metric(), found.sweeps.len());
    let mut heads: Vec<&HeadInAll> = types.iter().flat_map(|one| &one.heads).collect();
    heads.sort_by(|one, other| {
        metric.direction().gain(one.mean()).total_cmp(&metric.direction().gain(other.mean()))
    });
    let row = |head: &&HeadInAll| {
        let times = |verdict| format!("{} of {all}", head.count(verdict));
        let cells = [
            Cell::printed(head.mean(), |change| metric.change(change)),
            range(&head.changes, |change| metric.change(change)).into(),
            times(Verdict::Needed).into(),
            times(Verdict::Dispensable).into(),
        ];
        Row::new(head.head.to_string(), cells)
    };
    let what = format!("Heads whose masking costs most on average: change of {}", metric.label());
    Table::new("Costly heads", own.file.label("costly-heads"), title(found, &what))
        .columns(["Head", "Training"], ["mean", "range", "needed in", "dispensable in"])
        .rows(heads.iter().take(MOST).map(row))
        .note(judge.of_verdicts())
        .note(NUMBERS)
}

/// Limit of what replicates of a model that is trained from scratch can agree on.
const NUMBERS: &str = "fine-tuned models share the heads of their checkpoint; in models that are trained from scratch two heads have the \
     same number by chance, and only their layer is the same";

const RANGE: Style = Style::line(SILVER, 0.8);
const MARGIN: Style = Style::dashed(GREY, 0.7);

fn mark(needed: usize, all: usize) -> Mark {
    match needed {
        0 => Mark::new(Shape::Circle, 1.3, SILVER),
        _ if needed == all => Mark::new(Shape::Square, 1.9, VERMILLION),
        _ => Mark::new(Shape::Circle, 1.8, INK).hollow(),
    }
}

/// For each head, in the order of the means, its mean change and a line from the smallest to the greatest.
fn figure(found: &Replicates, types: &[Type], judge: Judge) -> Chart {
    let own = &found.sweeps[0];
    let (metric, all) = (own.metric(), found.sweeps.len());
    let ends = extent(types.iter().flat_map(|one| &one.heads).flat_map(|head| {
        let (low, high) = head.range();
        [low, high, 0.0]
    }));
    let margin = -metric.direction().gain(judge.margin(own.base()));
    let panel = |attention: &Attention| {
        let of_type = |one: &&Type| one.attention == *attention;
        let mut heads: Vec<&HeadInAll> = types.iter().filter(of_type).flat_map(|one| &one.heads).collect();
        heads.sort_by(|one, other| one.mean().total_cmp(&other.mean()));
        let place = |rank: usize| rank as f64 + 1.0;
        let lines = heads.iter().enumerate().map(|(rank, head)| {
            let (low, high) = head.range();
            Layer::Line(vec![(place(rank), low), (place(rank), high)], RANGE)
        });
        let means = [0, 1, all].map(|level| {
            let is_level = |head: &HeadInAll| match head.count(Verdict::Needed) {
                0 => level == 0,
                times if times == all => level == all,
                _ => level == 1,
            };
            let marked = heads.iter().enumerate().filter(|(_, head)| is_level(head));
            Layer::Points(marked.map(|(rank, head)| (place(rank), head.mean())).collect(), mark(level, all))
        });
        let rules = [Layer::Rule(At::Y(0.0), Style::line(GREY, 0.5)), Layer::Rule(At::Y(margin), MARGIN)];
        let axes = [
            Axis::around("heads by their mean", 1.0, heads.len().max(2) as f64),
            Axis::around(format!("change of {}", metric.label()), ends.0, ends.1),
        ];
        Panel::new(axes, 120.0, rules.into_iter().chain(lines).chain(means).collect())
    };
    let attentions: Vec<Attention> = types.iter().map(|one| one.attention).collect();
    let entry = |text: &str, level| Entry::mark(text, mark(level, all));
    Chart::new("Replicates", own.file.label(STEM), title(found, "Change of the score by masking each head"))
        .note("mark: mean of the trainings; line: from the smallest to the greatest change")
        .note(NUMBERS)
        .note(judge.of_verdicts())
        .entries([entry("needed in all", all), entry("in some", 1), entry("in none", 0)])
        .entries([Entry::line("margin", MARGIN)])
        .beside(&attentions, panel)
        .wide()
}
