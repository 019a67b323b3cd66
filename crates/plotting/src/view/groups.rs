//! Accuracy by group of segments, which heads each group needs, and which groups need the same heads.
use records::{Attention, Head};
use stats::bootstrap::Interval;

use crate::chart::{self, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, TEXT};
use crate::data::groups::{Change, Group, Groups};
use crate::palette::INK;
use crate::table::{Cell, Row, Table, names};
use crate::words::{count, short, signed};

/// Name of its files, without extension.
pub const STEM: &str = "groups";

/// Heads that are named in each direction.
const MOST_NAMED: usize = 3;

/// Up to so many groups, all pairs fit into one table.
const MOST_PAIRS: usize = 12;

/// Heads that are shown at most: those with the smallest p-value in any group.
const MOST_SHOWN: usize = 24;

/// The accuracy of each group with the heads that change it, and how far pairs of groups need the same heads.
pub fn tables(groups: &Groups, alpha: f64) -> Vec<Table> {
    vec![heads_of_groups(groups, alpha), likeness(groups)]
}

fn heads_of_groups(groups: &Groups, alpha: f64) -> Table {
    let row = |group: &Group| {
        let Interval { low, high } = group.interval();
        let texts = [
            group.segments.to_string(),
            format!("{:.1}", group.accuracy()),
            format!("{low:.1} to {high:.1}"),
            named(groups, group, alpha, |delta| -delta),
            named(groups, group, alpha, |delta| delta),
        ];
        Row::new(group.name.clone(), texts)
    };
    let (heads, number) = (count(groups.heads.len(), "head"), count(groups.groups.len(), "group"));
    let (missing, file) = (groups.sweep.missing_heads(), &groups.sweep.file);
    Table {
        name: "Heads by group of segments",
        label: format!("{STEM}-{}", groups.sweep.file.subject),
        title: format!(
            "Accuracy by group of segments, in percent, and the heads whose masking changes it significantly, with the change \
             in percentage points; {}",
            groups.sweep.file.title()
        ),
        headings: ["Group", "Accuracy"],
        columns: names(&["segments", "base", "95 % interval", "worse without", "better without"]),
        rows: groups.groups.iter().map(row).collect(),
        summary: vec![
            format!(
                "significant: p < {} (McNemar's test with mid-p on the segments of the group; adjusted by Holm (1979) for \
                 {heads} in {number})",
                short(alpha)
            ),
            format!("of more than {MOST_NAMED} such heads the {MOST_NAMED} with the largest changes"),
            "interval: Wilson (1927)".to_owned(),
        ],
        remarks: file.open_question().into_iter().chain(missing).collect(),
        ..Table::default()
    }
}

/// The heads that change a group significantly, those first for which `size` is greatest; only where it is above 0.
fn named(groups: &Groups, group: &Group, alpha: f64, size: fn(f64) -> f64) -> String {
    let is_meant = |(_, change): &(&Head, &Change)| change.p_adjusted < alpha && size(change.delta) > 0.0;
    let mut meant: Vec<_> = groups.heads.iter().zip(&group.changes).filter(is_meant).collect();
    meant.sort_by(|(_, one), (_, other)| size(other.delta).total_cmp(&size(one.delta)));
    let names = meant.iter().take(MOST_NAMED);
    let mut texts: Vec<_> =
        names.map(|(head, change)| format!("{head} {}", signed(change.delta, 1))).collect();
    if meant.len() > MOST_NAMED {
        texts.push(format!("{} more", meant.len() - MOST_NAMED));
    }
    texts.join(", ")
}

fn likeness(groups: &Groups) -> Table {
    let is_small = groups.groups.len() <= MOST_PAIRS;
    let columns = if is_small {
        (1..=groups.groups.len()).map(|number| number.to_string()).collect()
    } else {
        names(&["most alike", "rho", "least alike", "rho"])
    };
    let row = |(place, group): (usize, &Group)| Row {
        label: format!("{} {}", place + 1, group.name),
        cells: if is_small { pairs(groups, place) } else { extremes(groups, place) },
    };
    Table {
        name: "Groups that need the same heads",
        label: format!("{STEM}-likeness-{}", groups.sweep.file.subject),
        title: format!(
            "Spearman's \u{3c1} between groups of segments, of the changes that each head makes to their accuracies; {}",
            groups.sweep.file.title()
        ),
        headings: ["Group", "Group"],
        columns,
        rows: groups.groups.iter().enumerate().map(row).collect(),
        summary: names(&[
            "1: heads matter in the same order; 0: those that one group needs say nothing of the other",
            "noise draws \u{3c1} towards 0, the more so the fewer segments a group has",
            "n/a: no head changes one of the groups, or there are fewer than three",
        ]),
        ..Table::default()
    }
}

/// Each group beside all others; its own column is empty.
fn pairs(groups: &Groups, place: usize) -> Vec<Cell> {
    let group = &groups.groups[place];
    let cell = |(column, other): (usize, &Group)| match group.likeness(other) {
        _ if column == place => Cell::default(),
        Some(rho) => Cell::number(signed(rho, 2), rho),
        None => "n/a".into(),
    };
    groups.groups.iter().enumerate().map(cell).collect()
}

/// The groups that are most and least like this one; empty where none can be compared.
fn extremes(groups: &Groups, place: usize) -> Vec<Cell> {
    let others = groups.groups.iter().enumerate().filter(|(other, _)| *other != place);
    let known = others.filter_map(|(_, other)| Some((other, groups.groups[place].likeness(other)?)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let ends = known.first().into_iter().chain(known.last());
    ends.flat_map(|(other, rho)| [Cell::from(other.name.clone()), Cell::number(signed(*rho, 2), *rho)])
        .collect()
}

/// Places of the heads with the smallest p-values in any group, the greater change first among equals, in their order.
fn shown(groups: &Groups) -> Vec<usize> {
    let changes = |head: usize| groups.groups.iter().map(move |group| group.changes[head]);
    let least_p = |head| changes(head).map(|change| change.p_adjusted).fold(1.0, f64::min);
    let most = |head| changes(head).map(|change| change.delta.abs()).fold(0.0, f64::max);
    let mut heads: Vec<usize> = (0..groups.heads.len()).collect();
    heads.sort_by(|&one, &other| {
        least_p(one).total_cmp(&least_p(other)).then(most(other).total_cmp(&most(one)))
    });
    heads.truncate(MOST_SHOWN);
    heads.sort_unstable();
    heads
}

/// Changes of accuracy as colours, red where it falls, significant ones with a dot; lines between layers and between the heads
/// that share keys and values.
pub fn figure(groups: &Groups, alpha: f64) -> Chart {
    let (heads, all) = (shown(groups), groups.heads.len());
    let changes = groups.groups.iter().flat_map(|group| heads.iter().map(|&head| group.changes[head].delta));
    let most = changes.fold(f64::MIN_POSITIVE, |most, delta| most.max(delta.abs()));
    let mut layers = vec![chart::cells(groups.groups.len(), heads.len(), |row, column| {
        let Change { delta, p_adjusted } = groups.groups[row].changes[heads[column]];
        chart::Cell { value: Some(-delta / most), is_marked: p_adjusted < alpha, ..chart::Cell::default() }
    })];
    layers.extend(borders(groups, &heads));
    let which = format!("the {} of {all} heads with the smallest p", heads.len());
    let which = if heads.len() == all { count(all, "head") } else { which };
    let dot = format!("p < {} (McNemar, adjusted by Holm for all heads and groups)", short(alpha));
    let notes = [
        "orange: accuracy falls without the head; blue, striped: it rises".to_owned(),
        format!("dot: {dot}"),
        "below the map: number of the head, and of its layer at the first head of that; lines between layers and between \
         heads that share no keys and values"
            .to_owned(),
    ];
    let is_single = groups.heads.iter().all(|head| head.attention == Attention::SelfAttention);
    let label = if is_single { "head, layer" } else { "head, type and layer" };
    let rows = groups.groups.iter().map(|group| vec![group.name.clone()]).collect();
    let axes = [Axis::named(label, head_names(groups, &heads)), Axis::named("", rows).downwards()];
    Chart {
        name: "Heads by group of segments",
        label: format!("{STEM}-map-{}", groups.sweep.file.subject),
        title: format!("What masking one head does to each group; {}; {which}", groups.sweep.file.title()),
        notes: notes.into(),
        width: TEXT,
        legend: vec![Entry::mark(dot, Mark::new(Shape::Circle, 1.2, INK))],
        panels: vec![Panel::new("", axes, 9.0 * groups.groups.len() as f64, layers)],
        color_bar: Some((
            "change of accuracy with the head masked (percentage points)".to_owned(),
            [1.0, 0.5, 0.0, -0.5, -1.0].map(|share| signed(share * most, 1).replace('-', "\u{2212}")),
        )),
        ..Chart::default()
    }
}

/// The number of each head, with its layer below where that begins.
fn head_names(groups: &Groups, heads: &[usize]) -> Vec<Vec<String>> {
    let mut before = None;
    let name = |&place: &usize| {
        let Head { attention, layer, head } = groups.heads[place];
        let is_new = before.replace((attention, layer)) != Some((attention, layer));
        let kind =
            if attention == Attention::SelfAttention { String::new() } else { format!("{attention} ") };
        let layer = if is_new { format!("{kind}L{layer}") } else { String::new() };
        vec![head.to_string(), layer]
    };
    heads.iter().map(name).collect()
}

/// A line before each head that shares no keys and values with the one to its left, a stronger one between layers.
fn borders(groups: &Groups, heads: &[usize]) -> Vec<Layer> {
    let of_layer = groups.sweep.heads();
    let size = of_layer / groups.sweep.file.key_value_heads(of_layer).unwrap_or(1);
    let block = |place: usize| {
        let Head { attention, layer, head } = groups.heads[place];
        ((attention, layer), (head - 1) / size)
    };
    let height = groups.groups.len() as f64;
    let border = |(place, pair): (usize, &[usize])| {
        let ((left, _), (right, _)) = (block(pair[0]), block(pair[1]));
        let width = if left != right { 0.9 } else { 0.4 };
        let x = (place + 1) as f64;
        (block(pair[0]) != block(pair[1]))
            .then(|| Layer::Line(vec![(x, 0.0), (x, height)], Style::line(INK, width)))
    };
    heads.windows(2).enumerate().filter_map(border).collect()
}
