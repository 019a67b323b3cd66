//! All subjects beside each other: how many heads can go, which heads matter across tasks of one pretrained model, and how much
//! single heads do (no such page is in the paper).
use records::{Attention, CorrelationRow};

use super::Context;
use super::cross_domain::{COLUMNS, HOW_TO_READ, cells};
use crate::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, TEXT};
use crate::data::pruning::{Pruning, Tolerable};
use crate::data::subject::Subject;
use crate::data::sweep::Sweep;
use crate::judge::Criterion;
use crate::origin;
use crate::palette::{BLUE, GREY, VERMILLION};
use crate::paper::{Paper, Share};
use crate::scale::extent;
use crate::table::{Cell, Row, Table, names};
use crate::words::{tenths, typeset};

/// Heights of a row and of an interval's ends, in points.
const ROW: f64 = 15.0;

/// The share of heads that can go: in a subject of ours, in one of the paper's, or in both where they are alike.
struct Compared<'a> {
    ours: Option<(&'a Pruning, Tolerable)>,
    published: Option<&'a Share>,
}

/// Ours with the paper's beside them, then those of the paper that none stands beside.
fn shares_of<'a>(all: &'a [Subject], published: &'a [Share], context: Context<'_>) -> Vec<Compared<'a>> {
    let of = |pruning: &'a Pruning| {
        let found = pruning.tolerable(context.criterion)?;
        Some(Compared { ours: Some((pruning, found)), published: pruning.published(published) })
    };
    let mut shares: Vec<_> = all.iter().filter_map(|subject| of(subject.pruning.as_ref()?)).collect();
    let alone = published.iter().filter(|one| shares.iter().all(|share| share.published != Some(one)));
    let alone: Vec<_> = alone.map(|one| Compared { ours: None, published: Some(one) }).collect();
    shares.extend(alone);
    shares
}

impl Compared<'_> {
    fn name(&self) -> String {
        let theirs = || self.published.map_or(String::new(), |share| format!("paper: {}", share.task));
        self.ours.map_or_else(theirs, |(pruning, _)| pruning.file.subject.clone())
    }

    fn row(&self) -> Row {
        let number = |value: f64| Cell::number(tenths(value), value);
        let published = self.published.map_or(Cell::default(), |Share { figure, percent, .. }| {
            Cell::number(format!("{} ({figure})", tenths(*percent)), *percent)
        });
        let Some((pruning, Tolerable { percent, low, high })) = self.ours else {
            let none = Cell::default;
            return Row { label: self.name(), cells: vec![none(), none(), none(), none(), published] };
        };
        let base = pruning.metric.described(pruning.base);
        let cells = vec![base.into(), number(percent), number(low), number(high), published];
        Row { label: pruning.file.title(), cells }
    }
}

const OF_SHARES: &str = "masked by importance; as measured the loss is within the margin up to this share, 2 % of the score unless the \
                         files say otherwise. At the lower end of the interval it is shown to be, beyond the upper end it is shown \
                         not to be; the interval is that of the score at each step by itself, and as fine as the steps. The \
                         paper's shares are judged by eye; they are of other models and other data";

/// The shares of all subjects with intervals, and the paper's.
pub fn shares(all: &[Subject], context: Context<'_>) -> Option<(Table, Chart)> {
    let published = context.paper.map_or(Vec::new(), Paper::shares);
    let found = shares_of(all, &published, context);
    if found.iter().all(|share| share.ours.is_none()) {
        return None;
    }
    let title = "Share of the heads that can go, in percent";
    let table = Table {
        name: "Heads that can go",
        label: "comparison-shares".to_owned(),
        title: title.to_owned(),
        headings: ["Subject", "Share"],
        columns: names(&["base", "share (%)", "from (%)", "to (%)", "paper (%)"]),
        rows: found.iter().map(Compared::row).collect(),
        summary: vec![OF_SHARES.to_owned()],
        ..Table::default()
    };
    Some((table, share_chart(&found, title)))
}

fn share_chart(found: &[Compared<'_>], title: &str) -> Chart {
    let ours = Mark::new(Shape::Circle, 2.4, BLUE);
    let theirs = Mark::new(Shape::Diamond, 2.8, VERMILLION).hollow();
    let rows = || found.iter().enumerate().map(|(place, share)| (place as f64 + 0.5, share));
    let measured = || rows().filter_map(|(height, share)| Some((height, share.ours?.1)));
    let range = |(height, found): (f64, Tolerable)| {
        Layer::Line(vec![(found.low, height), (found.high, height)], Style::line(BLUE, 1.0))
    };
    let mut layers: Vec<_> = measured().map(range).collect();
    layers.push(Layer::Points(measured().map(|(height, found)| (found.percent, height)).collect(), ours));
    let published = rows().filter_map(|(height, share)| Some((share.published?.percent, height)));
    layers.push(Layer::Points(published.collect(), theirs));
    let names = found.iter().map(|share| vec![share.name()]).collect();
    Chart {
        name: "Heads that can go",
        label: "comparison-shares-chart".to_owned(),
        title: title.to_owned(),
        notes: vec![OF_SHARES.to_owned()],
        width: TEXT,
        legend: vec![
            Entry::mark("ours, with 95 % interval", ours),
            Entry::mark("paper, same kind of task, judged by eye", theirs),
        ],
        panels: vec![Panel::new(
            "",
            [Axis::around("share of heads (%)", 0.0, 100.0), Axis::named("", names).downwards()],
            ROW * found.len() as f64,
            layers,
        )],
        ..Chart::default()
    }
}

/// The heads of one attention type of a subject.
type Family<'a> = (&'a Sweep, Attention);

/// How much single heads do: for each family of tests the range of changes, as shares of the score.
pub fn effects(all: &[Subject], context: Context<'_>) -> Option<(Table, Chart)> {
    let sweeps: Vec<_> = all.iter().filter_map(|subject| subject.sweep.as_ref()).collect();
    let families: Vec<Family<'_>> = sweeps
        .iter()
        .flat_map(|sweep| sweep.attentions().into_iter().map(move |one| (*sweep, one)))
        .collect();
    if families.is_empty() {
        return None;
    }
    let criterion = context.criterion.adjusted();
    let row = |&(sweep, attention): &Family<'_>| {
        let mut losses: Vec<_> = sweep.family(attention).into_iter().map(|row| loss(sweep, row)).collect();
        losses.sort_by(f64::total_cmp);
        let at = |share: f64| losses[(share * (losses.len() - 1) as f64).round() as usize];
        let number = |value: f64| Cell::number(typeset(value, 2), value);
        let tally = criterion.tally(sweep.family(attention));
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
    Some((table, effect_chart(&families, criterion, title)))
}

fn effect_chart(families: &[Family<'_>], criterion: Criterion, title: &str) -> Chart {
    let points = |is_meant: bool| -> Vec<(f64, f64)> {
        let each = families.iter().enumerate().flat_map(|(place, (sweep, attention))| {
            let rows = sweep.family(*attention).into_iter().filter(|row| criterion.holds(*row) == is_meant);
            rows.map(|row| loss(sweep, row)).map(move |loss| (loss, place as f64 + 0.5)).collect::<Vec<_>>()
        });
        each.collect()
    };
    let (others, significant) = (points(false), points(true));
    let x = extent(others.iter().chain(&significant).map(|(loss, _)| *loss).chain([0.0]));
    let marks = [Mark::new(Shape::Tick, 4.0, BLUE), Mark::new(Shape::Circle, 1.8, VERMILLION).faint(0.4)];
    let names = families.iter().map(|(sweep, one)| vec![format!("{}, {one}", sweep.file.subject)]).collect();
    Chart {
        name: "Effect sizes",
        label: "comparison-effects-chart".to_owned(),
        title: title.to_owned(),
        notes: vec!["a mark for each head; one on the right of 0 is useful".to_owned()],
        width: TEXT,
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
        ..Chart::default()
    }
}

/// What is lost without a head, in percent of the score.
fn loss(sweep: &Sweep, row: &records::AblationRow) -> f64 {
    -100.0 * sweep.metric.direction().gain(row.score_delta) / sweep.base.abs().max(f64::MIN_POSITIVE)
}

/// How the heads of one pretrained model agree between two tasks.
pub struct Pairing {
    /// The pretrained model.
    pub pretrained: String,
    pub subjects: [String; 2],
    /// Of the scores with one head masked.
    pub row: CorrelationRow,
    /// Pearson's r and Spearman's rho of the importance, where both have it.
    pub importance: Option<[f64; 2]>,
}

/// One row for each two tasks of one pretrained model.
pub fn tasks(pairings: &[Pairing]) -> Option<Table> {
    let row = |pairing: &Pairing| {
        let [first, second] = pairing.subjects.each_ref().map(|subject| origin::name(subject));
        let label = format!("{}: {first} and {second}", pairing.pretrained);
        let scope = pairing.row.attention.to_string();
        let importance =
            pairing.importance.map(|both| both.map(|value| Cell::number(typeset(value, 2), value)));
        let tested = std::iter::once(scope).chain(cells(&pairing.row)).map(Cell::from);
        Row::new(label, tested.chain(importance.unwrap_or_default()))
    };
    (!pairings.is_empty()).then(|| Table {
        name: "One pretrained model, several tasks",
        label: "comparison-tasks".to_owned(),
        title: "Correlation of the scores with one head masked, between tasks that one pretrained model was fine-tuned on".to_owned(),
        headings: ["Model and tasks", "Agreement"],
        columns: [names(&["attention"]), names(&COLUMNS), names(&["r of importance", "rho of importance"])].concat(),
        rows: pairings.iter().map(row).collect(),
        summary: vec!["interval of r: jackknife over the segments of both tasks".to_owned(), HOW_TO_READ.to_owned()],
        ..Table::default()
    })
}
