//! Figures 7 to 10 and Table 2 of Voita et al. (2019): what is lost with the heads that gates leave, and which these are.
use std::collections::BTreeSet;

use records::rows::functions::{POSITIONAL, RARE, SYNTACTIC};
use records::{Attention, GateRow, Head, Method, Scope};

use super::curve::{Curve, Point};
use super::{Context, scored, that_hold};
use crate::chart::{At, Axis, COLUMN, Cell, Chart, Entry, Layer, Mark, Panel, Shape, Style, TEXT, cells};
use crate::data::functions::Functions;
use crate::data::gates::{Gates, by_layer, kept, percent};
use crate::data::pruning::interval;
use crate::palette::{BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION};
use crate::paper::{ENCODER_HEADS, Paper};
use crate::scale::extent;
use crate::table::{self, Row, Table};
use crate::words::short;

/// Names of the files, without extension.
pub const CURVES: &str = "v19-figure7";
pub const FUNCTIONS: &str = "v19-figure8";
pub const LAYERS: &str = "v19-figure9";
pub const TABLE: &str = "v19-table2";

/// The y axis spans at least this many points, or nats, so that noise does not look like a curve.
const FLAT: f64 = 0.5;
const FLAT_NATS: f64 = 0.05;

const BASE: Style = Style::dashed(GREY, 0.6);

/// `12 of 96, λ 0.02`: the heads that stay, and what an open gate cost, where that decided.
pub(super) fn label(row: &GateRow) -> String {
    let price = row.lambda.map_or(String::new(), |lambda| format!(", \u{3bb} {lambda}"));
    format!("{} of {}{price}", row.kept, row.heads)
}

/// How a method is drawn.
fn look(method: Method) -> (Style, Mark) {
    let (color, width, shape) = match method {
        Method::Gates => (BLUE, 1.1, Shape::Circle),
        Method::Importance => (VERMILLION, 0.9, Shape::Square),
        Method::Random => (SILVER, 0.6, Shape::Triangle),
        Method::Complement => (ORANGE, 0.7, Shape::Wedge),
        Method::Chosen => (SKY, 0.9, Shape::Tick),
        Method::Scratch => (PURPLE, 0.9, Shape::Cross),
        Method::Ungated => (GREEN, 0.9, Shape::Diamond),
    };
    (Style::line(color, width), Mark::new(shape, 1.5, color))
}

/// What a method is called.
pub(super) fn name(method: Method) -> String {
    match method {
        Method::Ungated => "no gates".to_owned(),
        Method::Chosen => "chosen by gates".to_owned(),
        Method::Scratch => "from scratch".to_owned(),
        method => method.to_string(),
    }
}

/// The score over the share of heads that stay, a panel for each set of heads with gates.
pub fn figure7(gates: &Gates, context: Context<'_>) -> Chart {
    let scopes: Vec<Scope> = gates.scopes().into_iter().collect();
    let published: Vec<(f64, f64)> = context.paper.map(|paper| published(gates, paper)).unwrap_or_default();
    let ends = gates.rows.iter().flat_map(|row| {
        let (low, high) = interval(row).unwrap_or((row.score, row.score));
        [low, row.score, high]
    });
    let y = extent(ends.chain([gates.base]).chain(published.iter().map(|point| point.1)));
    let least = if gates.metric.is_nats() { FLAT_NATS } else { FLAT };
    let y = Axis::of_at_least(gates.metric.axis_label(), y, least);
    let panel = |(place, &scope): (usize, &Scope)| {
        let mut layers = vec![Layer::Rule(At::Y(gates.base), BASE)];
        layers.extend(Method::ALL.into_iter().rev().flat_map(|method| bars(gates, scope, method)));
        layers.extend(
            Method::ALL.into_iter().rev().flat_map(|method| curve(gates, scope, method, context).lines()),
        );
        if scope == Scope::One(Attention::EncEnc) && !published.is_empty() {
            layers.push(Layer::Points(published.clone(), PUBLISHED));
        }
        let title = if scopes.len() > 1 { scope.to_string() } else { String::new() };
        let x = Axis::around(format!("{}heads that stay (%)", of(scope)), 0.0, 100.0);
        let y = if place == 0 { y.clone() } else { y.clone().silent() };
        Panel::new(title, [x, y], 160.0, layers)
    };
    let is_there = |method: &Method| gates.rows.iter().any(|row| row.method == *method);
    let entry = |method: Method| {
        let (style, mark) = look(method);
        let line = (method != Method::Ungated).then_some(style);
        Entry { line, mark: Some(mark), ..Entry::text(name(method)) }
    };
    let base = Entry::line(format!("before, {}", gates.metric.amount(gates.base)), BASE);
    let paper = (!published.is_empty()).then(|| Entry::mark("paper, WMT", PUBLISHED));
    Chart {
        name: "Figure 7",
        label: format!("{CURVES}-{}", gates.file.subject),
        title: format!(
            "{} of models trained on without some heads, over the share of these that stay (Voita et al. 2019); {}",
            gates.metric.label(),
            gates.file.title()
        ),
        notes: notes(gates, context),
        width: if scopes.len() > 1 { TEXT } else { COLUMN },
        columns: scopes.len(),
        legend: Method::ALL.into_iter().filter(is_there).map(entry).chain([base]).chain(paper).collect(),
        panels: scopes.iter().enumerate().map(panel).collect(),
        ..Chart::default()
    }
}

const PUBLISHED: Mark = Mark::new(Shape::Star, 2.0, INK).hollow();

/// `encoder `, where it is these that can be closed.
fn of(scope: Scope) -> String {
    match scope {
        Scope::One(Attention::EncEnc) => "encoder ".to_owned(),
        Scope::One(Attention::SelfAttention) | Scope::All => String::new(),
        Scope::One(attention) => format!("{attention} "),
    }
}

/// Where the subject stands for the paper's translator: its losses of BLEU, taken from the base of this subject.
fn published(gates: &Gates, paper: &Paper) -> Vec<(f64, f64)> {
    let stands = gates.file.beside(gates.metric.name(), &[Attention::EncEnc]);
    let is_meant = stands.is_some_and(crate::origin::Beside::translates);
    let own = paper.encoder_heads().into_iter().filter(|own| is_meant && own.data == "WMT");
    own.map(|own| (100.0 * own.kept / own.heads, gates.base - own.lost)).collect()
}

/// Upright lines from end to end of the 95 % intervals of the scores.
fn bars(gates: &Gates, scope: Scope, method: Method) -> Vec<Layer> {
    let style = Style::line(look(method).0.color, 0.5);
    let bar = |row: &&GateRow| {
        let (low, high) = interval(*row)?;
        Some(Layer::Line(vec![(percent(row), low), (percent(row), high)], style))
    };
    gates.of(scope, method).iter().filter_map(bar).collect()
}

/// A line through the points of a method, for each seed one; hollow where the score is significantly worse than before.
fn curve(gates: &Gates, scope: Scope, method: Method, context: Context<'_>) -> Curve {
    let (line, mark) = look(method);
    let point = |row: &&GateRow| {
        let is_worse = context.criterion.is_loss(*row);
        Point { x: percent(row), y: row.score, ends: interval(*row), is_worse }
    };
    let rows = gates.of(scope, method);
    let runs = rows.chunk_by(|one, next| one.method_seed == next.method_seed);
    let pieces = runs.map(|run| run.iter().map(point).collect()).collect();
    Curve { name: name(method), line: Some(line), mark: Some(mark), pieces }
}

fn notes(gates: &Gates, context: Context<'_>) -> Vec<String> {
    let has = |method| gates.rows.iter().any(|row| row.method == method);
    let sentences = [
        (true, "upright lines: 95 % intervals of the difference from before".to_owned()),
        (
            gates.rows.iter().any(|row| context.criterion.is_loss(row)),
            format!(
                "hollow: significantly {} before (p < {})",
                gates.metric.worse_side(),
                short(context.criterion.alpha)
            ),
        ),
        (
            has(Method::Chosen),
            "chosen by gates: the heads that gates leave, the others closed from the first update on"
                .to_owned(),
        ),
        (
            has(Method::Importance),
            "importance: as many heads, the most important before, and as many updates".to_owned(),
        ),
        (has(Method::Random), "random: as many heads, drawn at random, and as many updates".to_owned()),
        (has(Method::Complement), "complement: those stay that gates would close first".to_owned()),
        (
            has(Method::Scratch),
            "from scratch: the heads that gates leave, in a new model that never had the others".to_owned(),
        ),
        (has(Method::Ungated), "no gates: as many updates with all heads".to_owned()),
    ];
    let remark = context.paper.into_iter().flat_map(paper_remark);
    gates.recipe().into_iter().chain(that_hold(sentences)).chain(remark).collect()
}

/// What the paper says of its encoders.
fn paper_remark(paper: &Paper) -> Option<String> {
    let one = |own: crate::paper::EncoderHeads| {
        format!("{} of {} heads lose {} BLEU on {}", own.kept, own.heads, short(own.lost), own.data)
    };
    let found: Vec<String> = paper.encoder_heads().into_iter().map(one).collect();
    (!found.is_empty()).then(|| format!("paper, {}: {}", ENCODER_HEADS.0, found.join("; ")))
}

/// What the heads that gates leave did in the model before: a row for each function, a column for each number of heads; none if
/// gates were not trained on heads whose functions are known.
pub fn figure8(gates: &Gates, functions: &Functions) -> Option<Chart> {
    let known = functions.heads();
    let with = [("positional", POSITIONAL), ("syntactic", SYNTACTIC), ("rare tokens", RARE)]
        .map(|(name, function)| functions.heads_with(function).map(|heads| (name, heads)));
    let with: Vec<_> = with.into_iter().flatten().collect();
    let does_nothing = |head: &Head| !with.iter().any(|(_, heads)| heads.contains(head));
    let rest = ("other", known.iter().copied().filter(does_nothing).collect());
    let rows: Vec<(&str, BTreeSet<Head>)> = with.iter().cloned().chain([rest]).collect();
    let panel = |scope: Scope| {
        let all: Vec<Head> = known
            .iter()
            .copied()
            .filter(|head| scope == Scope::All || scope == Scope::One(head.attention))
            .collect();
        let models = gates.sparser(scope);
        let left = models
            .iter()
            .map(|row| kept(row))
            .map(|kept| all.iter().copied().filter(|head| kept.contains(head)).collect::<Vec<_>>());
        let columns: Vec<Vec<Head>> = [all.clone()].into_iter().chain(left).collect();
        let layer = cells(rows.len(), columns.len(), |row, column| {
            let count = columns[column].iter().filter(|head| rows[row].1.contains(head)).count();
            let value = Some(count as f64 / columns[column].len().max(1) as f64);
            Cell { value, text: count.to_string(), ..Cell::default() }
        });
        let x = columns.iter().map(|heads| vec![heads.len().to_string()]).collect();
        let y = Axis::named("", rows.iter().map(|(name, _)| vec![(*name).to_owned()]).collect()).downwards();
        let types: BTreeSet<Attention> = all.iter().map(|head| head.attention).collect();
        let scope = types.first().filter(|_| types.len() == 1).map_or(scope, |&one| Scope::One(one));
        let x = Axis::named(format!("{}heads that stay", of(scope)), x);
        (columns.len() > 1 && !all.is_empty())
            .then(|| Panel::new("", [x, y], 14.0 * rows.len() as f64, vec![layer]))
    };
    let panels: Vec<Panel> = gates.scopes().into_iter().filter_map(panel).collect();
    let notes = [
        "numbers: heads, by what they did in the model before; the darker, the greater their share of those that stay".to_owned(),
        "the first column is the model before; a head may have several functions".to_owned(),
    ];
    (!panels.is_empty()).then(|| Chart {
        name: "Figure 8",
        label: format!("{FUNCTIONS}-{}", gates.file.subject),
        title: format!("What the heads do that gates leave (Voita et al. 2019); {}", gates.file.title()),
        notes: notes.into_iter().chain(gates.recipe()).collect(),
        panels,
        ..Chart::default()
    })
}

/// How many heads gates leave in each layer, a row for each number that they leave: Figures 9 and 10.
pub fn figure9(gates: &Gates) -> Option<Chart> {
    let panels: Vec<Panel> = gates.scopes().into_iter().flat_map(|scope| layers(gates, scope)).collect();
    let meaning =
        "numbers: heads that stay in a layer; the darker, the more of those in the panel".to_owned();
    let title = "Heads that gates leave, by attention type and layer (Voita et al. 2019)";
    let notes = std::iter::once(meaning).chain(gates.recipe());
    (!panels.is_empty()).then(|| Chart {
        name: "Figures 9 and 10",
        label: format!("{LAYERS}-{}", gates.file.subject),
        title: format!("{title}; {}", gates.file.title()),
        notes: notes.collect(),
        width: if panels.len() > 1 { TEXT } else { COLUMN },
        columns: panels.len().min(3),
        panels,
        ..Chart::default()
    })
}

/// A panel for each attention type that has gates: a row for each number of heads that stay, a column for each layer.
fn layers(gates: &Gates, scope: Scope) -> Vec<Panel> {
    let rows = gates.sparser(scope);
    let found: Vec<_> = rows.iter().map(|row| by_layer(row)).collect();
    let places = || found.iter().flat_map(|layers| layers.keys());
    let types: BTreeSet<Attention> = places().map(|(attention, _)| *attention).collect();
    let deepest = places().map(|(_, layer)| *layer).max().unwrap_or(1);
    let panel = |(place, attention): (usize, Attention)| {
        let count = |row: usize, layer: usize| found[row].get(&(attention, layer + 1)).copied().unwrap_or(0);
        let all = (0..rows.len()).flat_map(|row| (0..deepest).map(move |layer| (row, layer)));
        let most = all.map(|(row, layer)| count(row, layer)).max().unwrap_or(0).max(1);
        let layer = cells(rows.len(), deepest, |row, layer| {
            let count = count(row, layer);
            Cell { value: Some(count as f64 / most as f64), text: count.to_string(), ..Cell::default() }
        });
        let names = rows.iter().map(|row| vec![row.kept.to_string()]).collect();
        let y = Axis::named("in all", names).downwards();
        let x = Axis::named("layer", (1..=deepest).map(|layer| vec![layer.to_string()]).collect());
        Panel::new(
            attention.to_string(),
            [x, if place == 0 { y } else { y.silent() }],
            14.0 * rows.len() as f64,
            vec![layer],
        )
    };
    types.into_iter().enumerate().map(panel).collect()
}

/// One row for each number of heads that gates leave, beside the controls with as many: Table 2.
pub fn table(gates: &Gates, context: Context<'_>) -> Table {
    let has_type = |&attention: &Attention| gates.rows.iter().any(|row| row.kept_of(attention).is_some());
    let types: Vec<Attention> = Attention::ALL.into_iter().filter(has_type).collect();
    let is_there = |method: &Method| gates.rows.iter().any(|row| row.method == *method);
    let methods: Vec<Method> = Method::ALL.into_iter().filter(is_there).collect();
    let of_methods = |leader: &GateRow| {
        let cell = |&method: &Method| {
            let own = if method == leader.method { Some(leader) } else { gates.beside(leader, method) };
            own.map(|row| scored(&gates.metric, row, context)).unwrap_or_default()
        };
        methods.iter().map(cell).collect::<Vec<_>>()
    };
    let row = |leader: &GateRow| {
        let number = |kept: usize| table::Cell::from(kept.to_string());
        let kept = types.iter().map(|&attention| leader.kept_of(attention).map(number).unwrap_or_default());
        Row { label: label(leader), cells: kept.chain(of_methods(leader)).collect() }
    };
    let leaders = gates.scopes().into_iter().flat_map(|scope| {
        [Method::Ungated, Method::Gates].into_iter().flat_map(move |method| gates.of(scope, method))
    });
    let (worse, alpha) = (gates.metric.worse_side(), short(context.criterion.alpha));
    let before = format!("before: {}", gates.metric.described(gates.base));
    let columns = types.iter().map(Attention::to_string);
    Table {
        name: "Table 2",
        label: format!("{TABLE}-{}", gates.file.subject),
        title: format!(
            "Heads that stay, and {} of models trained on without the others, with the 95 % interval of the change in \
             brackets (Voita et al. 2019); {}",
            gates.metric.label(),
            gates.file.title()
        ),
        headings: ["Heads with gates that stay", "Heads by type, and score by method"],
        columns: columns.chain(methods.iter().copied().map(name)).collect(),
        rows: leaders.map(row).collect(),
        mark: Some(format!("significantly {worse} before (p < {alpha})")),
        summary: std::iter::once(before).chain(gates.recipe()).collect(),
        remarks: context.paper.and_then(paper_remark).into_iter().collect(),
        ..Table::default()
    }
}
