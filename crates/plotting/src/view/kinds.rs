//! Kinds of ablation side by side: whether a head is needed whatever takes its place.
use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREY, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::kinds::{Kind, KindAgreement, Kinds};
use findings::{Criterion, Judge, Result};
use records::{Attention, HeadId, Verdict};
use words::{count, fixed};

use super::judged;

pub(crate) const STEM: &str = "ablation-kinds";

/// Heads that the second table names.
const MOST: usize = 20;

pub(crate) fn sheet(found: &Kinds, criterion: Criterion) -> Result<Sheet> {
    let judge = found.zero().judge(criterion);
    let tables = [Some(agreement(found, &found.agreements()?, judge)), heads(found, judge)];
    Ok(super::sheet(&found.zero().file, STEM, figure(found, judge), tables.into_iter().flatten()))
}

/// A verdict of each head of a type under a kind; with several draws one only where most of them agree on it.
fn verdicts(kind: &Kind, attention: Attention, judge: Judge) -> Vec<Option<Verdict>> {
    let draws: Vec<Vec<Option<Verdict>>> = kind
        .draws
        .iter()
        .map(|sweep| sweep.family(attention).into_iter().map(|row| judge.verdict(row)).collect())
        .collect();
    let of_head = |place: usize| {
        let known = [Verdict::Needed, Verdict::Dispensable];
        let most = |verdict: &Verdict| {
            2 * draws.iter().filter(|draw| draw[place] == Some(*verdict)).count() > draws.len()
        };
        let any = draws.iter().all(|draw| draw[place].is_some()).then_some(Verdict::Undecided);
        known.into_iter().find(most).or(any)
    };
    (0..draws[0].len()).map(of_head).collect()
}

/// A row for each two kinds and attention type.
fn agreement(found: &Kinds, agreements: &[KindAgreement], judge: Judge) -> Table {
    let own = found.zero();
    let row = |one: &KindAgreement| {
        let [first, second] = one.kinds.map(|kind| &found.all[kind]);
        let [of_first, of_second] = [first, second].map(|kind| verdicts(kind, one.attention, judge));
        let pairs = || of_first.iter().zip(&of_second);
        let number =
            |value: Option<f64>| Cell::from(value.map(|value| Cell::printed(value, |r| fixed(r, 2))));
        let needed = |is: &dyn Fn(bool, bool) -> bool| {
            let is_needed = |verdict: &Option<Verdict>| *verdict == Some(Verdict::Needed);
            Cell::from(pairs().filter(|(one, other)| is(is_needed(one), is_needed(other))).count())
        };
        Row::new(
            format!("{}: {}, {}", one.attention.name(), first.name, second.name),
            [
                of_first.len().into(),
                number(one.spearman),
                number(one.ceiling),
                pairs().filter(|(one, other)| one == other).count().into(),
                needed(&|one, other| one && other),
                needed(&|one, other| one && !other),
                needed(&|one, other| !one && other),
            ],
        )
    };
    let title = own.file.titled("Agreement of kinds of ablation on what masking one head costs");
    Table::new("Kinds of ablation", own.file.label(STEM), title)
        .columns(
            ["Attention: kinds", "Heads"],
            ["heads", "rho", "ceiling", "same verdict", "both need", "first alone needs", "second alone needs"],
        )
        .rows(agreements.iter().map(row))
        .note(KINDS)
        .note(draws(found))
        .note(
            "rho: Spearman's, of the changes; ceiling: the greatest correlation that noise allows if it is independent, while here all \
             kinds are measured on the same segments, so that rho can be above it",
        )
        .note(judge.of_verdicts())
}

const KINDS: &str = "in the place of the masked head: zero: nothing, as in the paper; mean: what it reads on average over other texts; \
     resample: what it reads at the same position of another text";

fn draws(found: &Kinds) -> Option<String> {
    let draws = found.all.iter().map(|kind| kind.draws.len()).max().filter(|&draws| draws > 1)?;
    Some(format!("resample: mean of {draws} draws of other texts; a verdict where most draws agree on it"))
}

/// The change by masking a head, and its verdict.
type Judged = (f64, Option<Verdict>);

/// The heads that some kind needs, those with the greatest loss first, if there are any.
fn heads(found: &Kinds, judge: Judge) -> Option<Table> {
    let own = found.zero();
    let (metric, direction) = (own.metric(), own.metric().direction());
    let mut rows: Vec<(HeadId, Vec<Judged>)> = Vec::new();
    for attention in own.attentions() {
        let kinds: Vec<Vec<Judged>> = found
            .all
            .iter()
            .map(|kind| kind.changes(attention).into_iter().zip(verdicts(kind, attention, judge)).collect())
            .collect();
        let ids = own.family(attention).into_iter().map(|row| row.head_id());
        rows.extend(ids.enumerate().map(|(place, id)| (id, kinds.iter().map(|kind| kind[place]).collect())));
    }
    rows.retain(|(_, kinds)| kinds.iter().any(|(_, verdict)| *verdict == Some(Verdict::Needed)));
    let greatest = |kinds: &[Judged]| {
        kinds.iter().map(|&(change, _)| -direction.gain(change)).fold(f64::NEG_INFINITY, f64::max)
    };
    rows.sort_by(|(_, one), (_, other)| greatest(other).total_cmp(&greatest(one)));
    let row = |(id, kinds): &(HeadId, Vec<Judged>)| {
        let cell = |&(change, verdict): &Judged| {
            judged(Cell::printed(change, |change| metric.change(change)), verdict)
        };
        Row::new(id.to_string(), kinds.iter().map(cell))
    };
    let what = format!("Heads that are needed under some kind of ablation: change of {}", metric.label());
    let more = rows.len().saturating_sub(MOST);
    let table = Table::new("Heads by kind", own.file.label("heads-by-kind"), own.file.titled(what))
        .columns(["Head", "Change"], found.all.iter().map(|kind| kind.name.to_owned()))
        .rows(rows.iter().take(MOST).map(row))
        .note(super::SIGNS)
        .note(KINDS)
        .note(draws(found))
        .remark((more > 0).then(|| format!("{} more are needed under some kind", count(more, "head"))))
        .note(judge.of_verdicts());
    (!rows.is_empty()).then_some(table)
}

const EQUAL: Style = Style::dashed(GREY, 0.7);

fn mark(place: usize) -> Mark {
    match place {
        1 => Mark::new(Shape::Circle, 1.7, BLUE).faint(0.35),
        _ => Mark::new(Shape::Square, 1.7, VERMILLION).hollow(),
    }
}

/// A point for each head and each other kind, over its change with zeros.
fn figure(found: &Kinds, judge: Judge) -> Chart {
    let own = found.zero();
    let metric = own.metric();
    let attentions = own.attentions();
    let all = |attention: &Attention| {
        found.all.iter().flat_map(|kind| kind.changes(*attention)).collect::<Vec<_>>()
    };
    let ends = extent(attentions.iter().flat_map(all).chain([0.0]));
    let margin = -metric.direction().gain(judge.margin(own.base()));
    let panel = |attention: &Attention| {
        let zero = found.all[0].changes(*attention);
        let points = found.all.iter().enumerate().skip(1).map(|(place, kind)| {
            let changes = zero.iter().copied().zip(kind.changes(*attention)).collect();
            Layer::Points(changes, mark(place))
        });
        let lines = [
            Layer::Line(vec![(ends.0, ends.0), (ends.1, ends.1)], EQUAL),
            Layer::Rule(At::X(margin), Style::line(GREY, 0.4)),
            Layer::Rule(At::Y(margin), Style::line(GREY, 0.4)),
        ];
        let axes = [
            Axis::around("change with zeros", ends.0, ends.1),
            Axis::around(format!("change of {}", metric.label()), ends.0, ends.1),
        ];
        Panel::new(axes, 120.0, lines.into_iter().chain(points).collect())
    };
    let entries =
        found.all.iter().enumerate().skip(1).map(|(place, kind)| Entry::mark(kind.name, mark(place)));
    let what = "Change of the score by masking each head, by what takes its place";
    Chart::new("Kinds of ablation", own.file.label(STEM), own.file.titled(what))
        .note(KINDS)
        .note(draws(found))
        .entries(entries)
        .entries([Entry::line("equal", EQUAL), Entry::line("margin", Style::line(GREY, 0.4))])
        .beside(&attentions, panel)
}
