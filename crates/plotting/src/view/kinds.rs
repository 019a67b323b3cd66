//! Kinds of ablation side by side: whether a head is needed whatever takes its place.
use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREY, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::kinds::{Kind, KindAgreement, KindContrast, Kinds};
use findings::{Criterion, Judge, Result};
use records::{Attention, HeadId, Verdict};
use words::{count, fixed};

use super::judged;

pub(crate) const STEM: &str = "ablation-kinds";

/// Heads that the second table names.
const MOST: usize = 20;

pub(crate) fn sheet(found: &Kinds, criterion: Criterion) -> Result<Sheet> {
    let judge = found.zero().judge(criterion);
    let contrasts = found.contrasts_with_zero()?;
    let agreement =
        agreement(found, &found.agreements()?, judge).note(differences(found, &contrasts, criterion));
    let tables = [Some(agreement), heads(found, judge)];
    Ok(super::sheet(&found.zero().file, STEM, figure(found, judge), tables.into_iter().flatten()))
}

/// Sentences on the heads for which masking costs more with zeros than with another kind, and the reverse.
fn differences(found: &Kinds, contrasts: &[KindContrast], criterion: Criterion) -> Vec<String> {
    let metric = found.zero().metric();
    let sentence = |own: &KindContrast| {
        let kind = found.all[own.kind].name;
        let [more, less] = own.counts(metric, criterion.alpha, |test| test.p_value);
        let [adjusted_more, adjusted_less] = own.counts(metric, criterion.alpha, |test| test.p_adjusted);
        format!(
            "tested as a difference (p < {}), masking costs more with zeros than with {kind} for {}, less for {less}; adjusted by Holm over \
             the heads, {adjusted_more} and {adjusted_less}",
            criterion.alpha,
            count(more, "head")
        )
    };
    contrasts.iter().map(sentence).collect()
}

/// A verdict of each head of a type under a kind; with several draws that on which all of them agree, or else undecided.
fn verdicts(kind: &Kind, attention: Attention, judge: Judge) -> Vec<Option<Verdict>> {
    let draws = kind.draws.iter().map(|sweep| sweep.family(attention));
    let draws: Vec<Vec<_>> =
        draws.map(|family| family.into_iter().map(|row| judge.verdict(row)).collect()).collect();
    let of_head = |place: usize| {
        let first = draws[0][place]?;
        let is_same = draws.iter().all(|draw| draw[place] == Some(first));
        Some(if is_same { first } else { Verdict::Undecided })
    };
    (0..draws[0].len()).map(of_head).collect()
}

/// A row for each attention type: how far mean and resample ablation agree with zeros, and heads by the kinds that need them.
pub(crate) fn rows(found: &Kinds, criterion: Criterion) -> Result<Vec<Row>> {
    let (agreements, judge) = (found.agreements()?, found.zero().judge(criterion));
    let row = |attention: Attention| {
        let with_zero = |name: &str| {
            let is_meant = |one: &&KindAgreement| {
                one.attention == attention && one.kinds[0] == 0 && found.all[one.kinds[1]].name == name
            };
            let one = agreements.iter().find(is_meant);
            one.map_or([None; 3], |one| [one.spearman, one.across_halves, one.ceiling]).map(rho)
        };
        let verdicts: Vec<_> = found.all.iter().map(|kind| verdicts(kind, attention, judge)).collect();
        let [zero, others @ ..] = &verdicts[..] else { return None };
        let is_needed = |all: &Vec<Option<Verdict>>, head: usize| all[head] == Some(Verdict::Needed);
        let needed = |by_zero: bool, by_others: bool| {
            let is_so = |&head: &usize| {
                (is_needed(zero, head), others.iter().any(|other| is_needed(other, head)))
                    == (by_zero, by_others)
            };
            Cell::from((0..zero.len()).filter(is_so).count())
        };
        let cells = [attention.name().into(), zero.len().into()].into_iter().chain(with_zero("mean"));
        let counts = [needed(true, true), needed(true, false), needed(false, true)];
        Some(Row::new(found.zero().file.title(), cells.chain(with_zero("resample")).chain(counts)))
    };
    Ok(found.zero().attentions().into_iter().filter_map(row).collect())
}

fn rho(value: Option<f64>) -> Cell {
    value.map(|value| Cell::printed(value, |value| fixed(value, 2))).into()
}

/// A row for each two kinds and attention type.
fn agreement(found: &Kinds, agreements: &[KindAgreement], judge: Judge) -> Table {
    let own = found.zero();
    let row = |one: &KindAgreement| {
        let [first, second] = one.kinds.map(|kind| &found.all[kind]);
        let [of_first, of_second] = [first, second].map(|kind| verdicts(kind, one.attention, judge));
        let heads = of_first.len();
        let pairs = of_first.into_iter().zip(of_second).filter_map(|(one, other)| one.zip(other));
        let pairs: Vec<(Verdict, Verdict)> = pairs.collect();
        let both = |verdicts: [Verdict; 2]| {
            let is_so = |&&(one, other): &&(Verdict, Verdict)| [one, other] == verdicts;
            Cell::from(pairs.iter().filter(is_so).count())
        };
        let (needed, dispensable) = (Verdict::Needed, Verdict::Dispensable);
        let cells = [
            heads.into(),
            rho(one.spearman),
            rho(one.across_halves),
            rho(one.ceiling),
            both([needed, needed]),
            both([needed, dispensable]),
            both([dispensable, needed]),
            both([dispensable, dispensable]),
        ];
        Row::new(format!("{}: {}, {}", one.attention.name(), first.name, second.name), cells)
    };
    let title = own.file.titled("Agreement of kinds of ablation on what masking one head costs");
    Table::new("Kinds of ablation", own.file.label(STEM), title)
        .columns(
            ["Attention: kinds", "Heads"],
            [
                "heads",
                "rho",
                "rho across halves",
                "ceiling across halves",
                "needed under both",
                "needed, dispensable",
                "dispensable, needed",
                "dispensable under both",
            ],
        )
        .rows(agreements.iter().map(row))
        .note(KINDS)
        .note(draws(&found.all))
        .note(
            "rho: Spearman's, of the changes, on the same segments; across halves: one kind on a random half of the segments, the other \
             on the rest, 50 times, so that they share no noise; ceiling: the greatest rho that the noise of halves allows",
        )
        .note("the other heads are undecided under one of the two kinds")
        .note(judge.of_verdicts())
}

pub(super) const KINDS: &str = "in the place of the masked head's context: zero: nothing, as in the paper; mean: its mean over other texts; resample: \
     its context at the same position of another text";

pub(super) fn draws(kinds: &[Kind]) -> Option<String> {
    let draws = kinds.iter().map(|kind| kind.draws.len()).max().filter(|&draws| draws > 1)?;
    Some(format!(
        "resample: mean of {draws} draws of other texts; a verdict where all draws agree on it, else undecided"
    ))
}

/// The change by masking a head, the smallest and the greatest of its draws, and its verdict.
#[derive(Clone, Copy)]
pub(super) struct Judged {
    pub change: f64,
    ends: (f64, f64),
    pub verdict: Option<Verdict>,
}

impl Judged {
    /// All heads of a type under a kind.
    pub fn all(kind: &Kind, attention: Attention, judge: Judge) -> Vec<Self> {
        let families: Vec<_> = kind.draws.iter().map(|sweep| sweep.family(attention)).collect();
        let heads = kind.changes(attention).into_iter().zip(verdicts(kind, attention, judge)).enumerate();
        heads
            .map(|(place, (change, verdict))| {
                let ends = extent(families.iter().map(|family| family[place].score_delta));
                Self { change, ends, verdict }
            })
            .collect()
    }
}

/// The heads that some kind needs, those with the greatest loss first, if there are any.
fn heads(found: &Kinds, judge: Judge) -> Option<Table> {
    let own = found.zero();
    let (metric, direction) = (own.metric(), own.metric().direction());
    let mut rows: Vec<(HeadId, Vec<Judged>)> = Vec::new();
    for attention in own.attentions() {
        let kinds: Vec<Vec<Judged>> =
            found.all.iter().map(|kind| Judged::all(kind, attention, judge)).collect();
        let ids = own.family(attention).into_iter().map(|row| row.head_id());
        rows.extend(ids.enumerate().map(|(place, id)| (id, kinds.iter().map(|kind| kind[place]).collect())));
    }
    rows.retain(|(_, kinds)| kinds.iter().any(|kind| kind.verdict == Some(Verdict::Needed)));
    let greatest = |kinds: &[Judged]| {
        kinds.iter().map(|kind| -direction.gain(kind.change)).fold(f64::NEG_INFINITY, f64::max)
    };
    rows.sort_by(|(_, one), (_, other)| greatest(other).total_cmp(&greatest(one)));
    let row = |(id, kinds): &(HeadId, Vec<Judged>)| {
        let cell = |&Judged { change, ends: (low, high), verdict }: &Judged| {
            let range = format!(" ({} to {})", metric.change(low), metric.change(high));
            let text = metric.change(change) + if low < high { &range } else { "" };
            judged(Cell::number(text, change), verdict)
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
        .note(draws(&found.all))
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
        .note(draws(&found.all))
        .entries(entries)
        .entries([Entry::line("equal", EQUAL), Entry::line("margin", Style::line(GREY, 0.4))])
        .beside(&attentions, Attention::in_words, panel)
}
