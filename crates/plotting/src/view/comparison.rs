//! All subjects beside each other: how many heads can go, which heads matter across tasks of one pretrained model, and how much
//! single heads do (no such page is in the paper).
use records::CorrelationRow;

use super::Context;
use super::cross_domain::{COLUMNS, HOW_TO_READ, cells};
use super::summary::Subject;
use crate::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, TEXT};
use crate::data::pruning::{Pruning, Tolerable};
use crate::data::sweep::Sweep;
use crate::origin;
use crate::palette::{BLUE, GREY, VERMILLION};
use crate::paper::Paper;
use crate::scale::extent;
use crate::table::{Cell, Row, Table, names};
use crate::words::tenths;
use records::{Order, Scope};

/// Heights of a row and of an interval's ends, in points.
const ROW: f64 = 15.0;

/// The share of heads that can go in one subject.
struct Share<'a> {
    pruning: &'a Pruning,
    found: Tolerable,
    /// Figure and percent of the paper.
    published: Option<(String, f64)>,
}

fn shares_of<'a>(all: &'a [Subject], context: Context<'_>) -> Vec<Share<'a>> {
    let published = context.paper.map_or(Vec::new(), Paper::shares);
    let of = |pruning: &'a Pruning| {
        let found =
            pruning.find(Scope::All, Order::Importance)?.tolerable(pruning.judge(context.criterion))?;
        let figure = pruning.beside().map(|beside| beside.1);
        let beside = published.iter().find(|(name, ..)| Some(name.as_str()) == figure);
        Some(Share { pruning, found, published: beside.map(|(name, _, percent)| (name.clone(), *percent)) })
    };
    all.iter().filter_map(|subject| of(subject.pruning.as_ref()?)).collect()
}

const OF_SHARES: &str = "masked by importance; as measured the loss is within the margin up to this share, 2 % of the score unless the \
                         files say otherwise. At the lower end of the interval it is shown to be, beyond the upper end it is shown \
                         not to be; the interval is that of the score at each step by itself";

/// The shares of all subjects with intervals, and the paper's.
pub fn shares(all: &[Subject], context: Context<'_>) -> Option<(Table, Chart)> {
    let found = shares_of(all, context);
    if found.is_empty() {
        return None;
    }
    let row = |share: &Share<'_>| {
        let Tolerable { percent, low, high } = share.found;
        let published = share.published.as_ref();
        let published = published.map_or(Cell::default(), |(figure, percent)| {
            Cell::number(format!("{} ({figure})", tenths(*percent)), *percent)
        });
        let number = |value: f64| Cell::number(tenths(value), value);
        let base = share.pruning.metric.described(share.pruning.base);
        Row {
            label: share.pruning.file.title(),
            cells: vec![base.into(), number(percent), number(low), number(high), published],
        }
    };
    let title = "Share of the heads that can go, in percent";
    let table = Table {
        name: "Heads that can go",
        label: "comparison-shares".to_owned(),
        title: title.to_owned(),
        headings: ["Subject", "Share"],
        columns: names(&["base", "share (%)", "from (%)", "to (%)", "paper (%)"]),
        rows: found.iter().map(row).collect(),
        summary: vec![OF_SHARES.to_owned(), "the paper's shares are judged by eye".to_owned()],
        ..Table::default()
    };
    Some((table, share_chart(&found, title)))
}

fn share_chart(found: &[Share<'_>], title: &str) -> Chart {
    let height = |place: usize| place as f64 + 0.5;
    let (point, hollow) =
        (Mark::new(Shape::Circle, 2.4, BLUE), Mark::new(Shape::Diamond, 2.8, VERMILLION).hollow());
    let mut layers: Vec<_> =
        found.iter().enumerate().map(|(place, share)| range(share.found, height(place))).collect();
    layers.push(Layer::Points(
        found.iter().enumerate().map(|(place, share)| (share.found.percent, height(place))).collect(),
        point,
    ));
    let theirs = found
        .iter()
        .enumerate()
        .filter_map(|(place, share)| Some((share.published.as_ref()?.1, height(place))));
    layers.push(Layer::Points(theirs.collect(), hollow));
    let names = found.iter().map(|share| vec![share.pruning.file.subject.clone()]).collect();
    Chart {
        name: "Heads that can go",
        label: "comparison-shares-chart".to_owned(),
        title: title.to_owned(),
        notes: vec![OF_SHARES.to_owned()],
        width: TEXT,
        columns: 1,
        legend: vec![
            Entry::mark("ours, with 95 % interval", point),
            Entry::mark("paper, same kind of task, judged by eye", hollow),
        ],
        panels: vec![Panel::new(
            "",
            [Axis::around("share of heads (%)", 0.0, 100.0), Axis::named("", names).downwards()],
            ROW * found.len() as f64,
            layers,
        )],
        color_bar: None,
    }
}

fn range(found: Tolerable, height: f64) -> Layer {
    Layer::Line(vec![(found.low, height), (found.high, height)], Style::line(BLUE, 1.0))
}

/// How much single heads do: for each family of tests the range of changes, as shares of the score.
pub fn effects(all: &[Subject], context: Context<'_>) -> Option<(Table, Chart)> {
    let sweeps: Vec<_> = all.iter().filter_map(|subject| subject.sweep.as_ref()).collect();
    let families: Vec<_> = sweeps
        .iter()
        .flat_map(|sweep| sweep.attentions().into_iter().map(move |one| (*sweep, one)))
        .collect();
    if families.is_empty() {
        return None;
    }
    let family = super::all_heads::family(context).criterion;
    let row = |&(sweep, attention): &(&Sweep, records::Attention)| {
        let mut losses = losses(sweep, attention);
        losses.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let at = |share: f64| {
            losses
                .get((share * (losses.len() - 1) as f64).round() as usize)
                .map_or(f64::NAN, |(loss, _)| *loss)
        };
        let number = |value: f64| Cell::number(format!("{value:.2}").replace('-', "\u{2212}"), value);
        let tally = family.tally(&sweep.family(attention));
        let cells = vec![
            Cell::number(losses.len().to_string(), losses.len() as f64),
            number(at(0.0)),
            number(at(0.5)),
            number(at(1.0)),
            Cell::number(tally.significant.to_string(), tally.significant as f64),
        ];
        Row { label: format!("{}, {attention}", sweep.file.title()), cells }
    };
    let title = "What masking one head costs, in percent of the score; of nats, their rise in percent";
    let table = Table {
        name: "Effect sizes",
        label: "comparison-effects".to_owned(),
        title: title.to_owned(),
        headings: ["Subject and attention", "Loss"],
        columns: names(&["heads", "least (%)", "median (%)", "greatest (%)", "significant, adjusted"]),
        rows: families.iter().map(row).collect(),
        summary: vec![
            "below 0 the score gets better without the head; adjusted for the heads of the attention type"
                .to_owned(),
        ],
        ..Table::default()
    };
    let points = |is_meant: bool| -> Vec<(f64, f64)> {
        let each = families.iter().enumerate().flat_map(|(place, (sweep, attention))| {
            let rows = sweep.family(*attention).into_iter().filter(|row| family.holds(*row) == is_meant);
            rows.map(|row| loss(sweep, row)).map(move |loss| (loss, place as f64 + 0.5)).collect::<Vec<_>>()
        });
        each.collect()
    };
    let (others, significant) = (points(false), points(true));
    let x = extent(others.iter().chain(&significant).map(|(loss, _)| *loss).chain([0.0]));
    let marks = [Mark::new(Shape::Tick, 4.0, BLUE), Mark::new(Shape::Circle, 1.8, VERMILLION).faint(0.4)];
    let names = families.iter().map(|(sweep, one)| vec![format!("{}, {one}", sweep.file.subject)]).collect();
    let chart = Chart {
        name: "Effect sizes",
        label: "comparison-effects-chart".to_owned(),
        title: title.to_owned(),
        notes: vec!["a mark for each head; one on the right of 0 is useful".to_owned()],
        width: TEXT,
        columns: 1,
        legend: vec![
            Entry::mark("not significant", marks[0]),
            Entry::mark("significant, adjusted", marks[1]),
        ],
        panels: vec![Panel::new(
            "",
            [Axis::of_at_least("loss with the head masked (%)", x, 1.0), Axis::named("", names).downwards()],
            ROW * families.len() as f64,
            vec![
                Layer::Rule(At::X(0.0), Style::dashed(GREY, 0.6)),
                Layer::Points(others, marks[0]),
                Layer::Points(significant, marks[1]),
            ],
        )],
        color_bar: None,
    };
    Some((table, chart))
}

/// What is lost without a head, in percent of the score.
fn loss(sweep: &Sweep, row: &records::AblationRow) -> f64 {
    -100.0 * sweep.metric.direction().gain(row.score_delta) / sweep.base.abs().max(f64::MIN_POSITIVE)
}

fn losses(sweep: &Sweep, attention: records::Attention) -> Vec<(f64, bool)> {
    sweep.family(attention).into_iter().map(|row| (loss(sweep, row), true)).collect()
}

/// How the heads of one pretrained model agree between two tasks.
pub struct Pairing {
    /// The pretrained model.
    pub pretrained: String,
    pub subjects: [String; 2],
    pub row: CorrelationRow,
}

/// One row for each two tasks of one pretrained model.
pub fn tasks(pairings: &[Pairing]) -> Option<Table> {
    let row = |pairing: &Pairing| {
        let [first, second] = pairing.subjects.each_ref().map(|subject| origin::name(subject));
        let label = format!("{}: {first} and {second}", pairing.pretrained);
        let scope = pairing.row.attention.to_string();
        Row::new(label, std::iter::once(scope).chain(cells(&pairing.row)))
    };
    (!pairings.is_empty()).then(|| Table {
        name: "One pretrained model, several tasks",
        label: "comparison-tasks".to_owned(),
        title: "Correlation of the scores with one head masked, between tasks that one pretrained model was fine-tuned on".to_owned(),
        headings: ["Model and tasks", "Agreement"],
        columns: std::iter::once("attention".to_owned()).chain(names(&COLUMNS)).collect(),
        rows: pairings.iter().map(row).collect(),
        summary: vec!["interval of r: jackknife over the segments of both tasks".to_owned(), HOW_TO_READ.to_owned()],
        ..Table::default()
    })
}
