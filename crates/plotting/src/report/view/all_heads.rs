//! Everything known about each head: one table, and colours for maps of heads by each criterion. The paper has no such table.
use std::collections::{BTreeMap, BTreeSet};

use crate::artefacts::heat_map::{self, Values};
use crate::findings::pruning::share;
use crate::findings::replicates::HeadAcrossRuns;
use crate::findings::results::{distinct, extent};
use crate::findings::same_model::may_have_same_weights;
use crate::findings::{
    Ablations, Criterion, Gates, Importance, Kinds, Pruning, Relevance, Replicates, ResultFile,
    SegmentChange, SubjectResults, gates,
};
use crate::view::ranked;
use charts::chart::Color;
use charts::palette::{SILVER, diverging, text_on};
use charts::table::{Cell, Row, Table};
use records::rows::functions::FunctionName;
use records::{AblationRow, Attention, HeadFunctionRow, HeadId, HeadSet, Order, Scope, TestedRow, Verdict};
use words::{bare_p, brackets, fixed, signed, tenths, typeset, with_minus};

/// Heading of the segments of a card, which is followed by their texts if these may be shown.
pub const SEGMENTS: &str = "segments that change most";

/// A column: its name, and cells by head.
type Column = (String, BTreeMap<HeadId, Cell>);

/// Returns all heads in the order of attention types.
fn heads(subject: &SubjectResults) -> BTreeSet<HeadId> {
    let masked = subject.sweep.iter().flat_map(|sweep| sweep.rows.iter().map(AblationRow::head_id));
    let scored = subject.importance.iter().flat_map(Importance::heads);
    masked.chain(scored).collect()
}

fn columns(subject: &SubjectResults, criterion: Criterion) -> Vec<Column> {
    let mut columns = Vec::new();
    columns.extend(subject.sweep.iter().flat_map(|sweep| tested(sweep, criterion)));
    columns.extend(subject.kinds.iter().flat_map(|kinds| under(kinds, criterion)));
    let comparable = subject.replicates.iter().filter(|found| found.have_same_heads());
    columns.extend(comparable.map(|found| runs(found, criterion)));
    columns.extend(subject.others.iter().map(elsewhere));
    columns.extend(subject.importance.iter().flat_map(scores));
    columns.extend(subject.relevance.iter().map(relevance));
    let is_same =
        |other: &ResultFile| subject.heads_file().is_none_or(|own| may_have_same_weights(own, other));
    let own = subject.functions.iter().filter(|found| is_same(&found.file));
    columns.extend(own.map(|found| functions(&found.rows)));
    let own = subject.pruning.iter().filter(|pruning| is_same(&pruning.results.file));
    columns.extend(own.filter_map(masked_from));
    let own = subject.gates.iter().filter(|gates| is_same(&gates.file));
    columns.extend(own.flat_map(|gates| kept_with(gates, &heads(subject))));
    columns.extend((!subject.segments.is_empty()).then(|| segments(&subject.segments)));
    columns
}

/// The heads of a setup, as a table of everything known and as maps.
#[derive(Debug)]
pub struct Heads {
    pub table: Table,
    pub measures: Vec<ColorScale>,
    pub maps: Vec<HeadMap>,
}

impl Heads {
    /// Collects everything; `None` if neither single heads nor criteria were measured.
    pub fn of(subject: &SubjectResults, criterion: Criterion) -> Option<Self> {
        let columns = columns(subject, criterion);
        let table = table(subject, &columns, criterion)?;
        let (measures, maps) = maps(subject, columns.first(), criterion);
        Some(Self { table, measures, maps })
    }
}

fn table(subject: &SubjectResults, columns: &[Column], criterion: Criterion) -> Option<Table> {
    let row = |head: &HeadId| {
        Row::new(head.to_string(), columns.iter().map(|(_, cells)| Cell::from(cells.get(head).cloned())))
    };
    let file = subject.heads_file()?;
    let judge = subject.sweep.as_ref().map(|sweep| sweep.judge(criterion.adjusted()));
    let title = "All results on each head, named by attention type, layer and number";
    let table = Table::new("All heads", file.label("all-heads"), file.titled(title))
        .columns(["Head", "Measured"], columns.iter().map(|(name, _)| name))
        .rows(heads(subject).iter().map(row))
        .note(judge.map(|judge| judge.of_verdicts()))
        .mark(judge.map(|judge| judge.description("heads")))
        .note("numbers in brackets are ranks among all heads, 1 for the highest score")
        .note(
            "segments are numbered from 1 in the order of the split, the largest change first; BLEU is computed on the \
             segment alone",
        )
        .remark(file.remark());
    Some(table)
}

/// Returns columns with the change, its interval, verdict and p-values.
fn tested(sweep: &Ablations, criterion: Criterion) -> [Column; 5] {
    let (metric, judge) = (sweep.metric(), sweep.judge(criterion));
    let column = |name: &str, cell: &dyn Fn(&AblationRow) -> Option<Cell>| {
        let cells = sweep.rows.iter().filter_map(|row| Some((row.head_id(), cell(row)?)));
        (name.to_owned(), cells.collect())
    };
    let p = |p: Option<f64>| p.map(|p| Cell::printed(p, bare_p));
    let change = |row: &AblationRow| {
        let is_marked = criterion.adjusted().holds(row);
        Some(Cell::printed(row.score_delta, |delta| metric.change(delta)).marked(is_marked))
    };
    let interval = |row: &AblationRow| {
        let ends = row.delta_interval()?;
        Some(Cell::interval(ends, |delta| metric.change(delta)))
    };
    [
        column(&format!("change in {}", metric.label()), &change),
        column("95% interval", &interval),
        column("verdict", &|row| Some(judge.verdict(row)?.to_string().into())),
        column("p", &|row| p(row.p_value)),
        column("adjusted p", &|row| p(row.p_adjusted)),
    ]
}

/// Returns columns with change, interval and verdict under each other kind of ablation, one per draw of other texts.
fn under(kinds: &Kinds, criterion: Criterion) -> Vec<Column> {
    let column = |name: String, sweep: &Ablations| {
        let (metric, judge) = (sweep.metric(), sweep.judge(criterion));
        let cell = |row: &AblationRow| {
            let interval = brackets(row.delta_interval(), ", ", |delta| metric.change(delta));
            let verdict = judge.verdict(row).map(|verdict| format!(", {verdict}")).unwrap_or_default();
            let text = format!("{}{interval}{verdict}", metric.change(row.score_delta));
            (row.head_id(), Cell::number(text, row.score_delta))
        };
        (name, sweep.rows.iter().map(cell).collect())
    };
    let mut columns = Vec::new();
    for kind in &kinds.all[1..] {
        for (draw, sweep) in kind.draws.iter().enumerate() {
            let number = if kind.draws.len() > 1 { format!(" {}", draw + 1) } else { String::new() };
            columns.push(column(format!("change under {}{number}", kind.name), sweep));
        }
    }
    columns
}

/// Returns a column with the number of runs that need each head.
fn runs(found: &Replicates, criterion: Criterion) -> Column {
    let (own, all) = (&found.sweeps[0], found.sweeps.len());
    let judge = own.judge(criterion);
    let heads = own.attentions().into_iter().flat_map(|attention| found.heads(attention, judge));
    let cell = |head: &HeadAcrossRuns| Cell::from(format!("{} of {all} runs", head.count(Verdict::Needed)));
    ("needed in".to_owned(), heads.map(|head| (head.head, cell(&head))).collect())
}

fn elsewhere(sweep: &Ablations) -> Column {
    let metric = sweep.metric();
    let cell = |row: &AblationRow| Cell::printed(row.score_delta, |delta| metric.change(delta));
    let name = format!("change in {} on {}", metric.label(), sweep.file.scored().unwrap_or_default());
    (name, sweep.rows.iter().map(|row| (row.head_id(), cell(row))).collect())
}

fn scores(importance: &Importance) -> Vec<Column> {
    let known = importance.known().into_iter();
    known.map(|score| (score.label, ranked(importance.heads().into_iter().zip(score.values)))).collect()
}

fn relevance(relevance: &Relevance) -> Column {
    ("relevance".to_owned(), ranked(relevance.rows.iter().map(|row| (row.head_id(), row.relevance))))
}

/// Returns a column with the share of masked heads at which importance first masks each head.
fn masked_from(pruning: &Pruning) -> Option<Column> {
    let steps = pruning.find(Scope::All, Order::Importance)?.runs.first()?;
    let mut cells = BTreeMap::new();
    for step in steps {
        for head in step.masked_heads.parse::<HeadSet>().unwrap_or_default().iter() {
            cells.entry(head).or_insert_with(|| Cell::printed(share(step), tenths));
        }
    }
    Some(("masked by importance from (%)".to_owned(), cells))
}

/// Returns columns with the smallest number of heads at which gates keep each head, one per set of gated heads.
fn kept_with(gates: &Gates, heads: &BTreeSet<HeadId>) -> Vec<Column> {
    let of = |scope: Scope| {
        let models = gates.sparser(scope);
        let most = models.first()?;
        let gated = heads.iter().filter(|head| scope.holds(head.attention()));
        let gone = Cell::number(format!("masked at {}", most.kept), most.heads as f64);
        let mut cells: BTreeMap<HeadId, Cell> = gated.map(|&head| (head, gone.clone())).collect();
        for model in &models {
            cells.extend(gates::kept(model).iter().map(|head| (head, Cell::from(model.kept))));
        }
        Some((format!("fewest heads that gates keep with it ({scope}, of {})", most.heads), cells))
    };
    gates.scopes().into_iter().filter_map(of).collect()
}

/// Returns a column with the functions of each head that reach their threshold.
fn functions(rows: &[HeadFunctionRow]) -> Column {
    let mut words: BTreeMap<HeadId, Vec<String>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.is_function()) {
        let found = words.entry(row.head_id()).or_default();
        if row.holds != Some(true) {
            continue;
        }
        let above = row.margin_points.filter(|_| row.function == FunctionName::Syntactic);
        let above = above.map(|points| format!(", {} points above position", signed(points, 1)));
        let (share, above) = (tenths(100.0 * row.share), above.unwrap_or_default());
        found.push(format!("{} {} ({share}%{above})", row.function, row.detail));
    }
    let text = |words: Vec<String>| {
        if words.is_empty() { "none of those examined".to_owned() } else { words.join("; ") }
    };
    let cells = words.into_iter().map(|(head, words)| (head, Cell::from(text(words))));
    ("what it does".to_owned(), cells.collect())
}

fn segments(segments: &BTreeMap<HeadId, Vec<SegmentChange>>) -> Column {
    let text = |changes: &[SegmentChange]| {
        let each = changes.iter().map(|change| format!("{}: {}", change.segment, change.words));
        each.collect::<Vec<_>>().join("; ")
    };
    let cells = segments.iter().map(|(head, changes)| (*head, Cell::from(text(changes))));
    (SEGMENTS.to_owned(), cells.collect())
}

/// A map of the heads of one attention type, with colours for every measure.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HeadMap {
    attention: String,
    /// What it attends from and to.
    description: String,
    /// Cells layer by layer, from the first; `None` for missing heads.
    layers: Vec<Vec<Option<MapCell>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
struct MapCell {
    /// `enc-enc:1:2`
    head: String,
    /// The head with its value in the first column, for screen readers.
    label: String,
    /// Number in its layer.
    number: usize,
    /// `needed`, `dispensable` or `undecided`; empty if not tested.
    verdict: String,
    /// Cell and text colour for each measure, as `#rrggbb`, separated by spaces.
    colors: String,
}

/// Measure shown by the colours of maps.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ColorScale {
    name: String,
    /// Values at the ends of the colours, blue first.
    ends: [String; 2],
}

/// Returns maps of all attention types with the colours of the figures, for the effect of masking and then each criterion.
fn maps(
    subject: &SubjectResults,
    first: Option<&Column>,
    criterion: Criterion,
) -> (Vec<ColorScale>, Vec<HeadMap>) {
    let heads = heads(subject);
    let (mut measures, mut painted, unjudged) = (Vec::new(), Vec::new(), BTreeMap::new());
    if let Some(sweep) = &subject.sweep {
        let values = heat_map::effects_of(sweep, criterion);
        let (name, [low, .., high]) = heat_map::effects_bar(sweep, &values);
        measures.push(ColorScale { name, ends: [low, high] });
        painted.push(values);
    }
    for (score, values) in subject.importance.iter().flat_map(|found| heat_map::scores_of(found, &unjudged)) {
        let ends = [typeset(-values.end, 3), fixed(values.end, 3)];
        measures.push(ColorScale { name: score.label, ends });
        painted.push(values);
    }
    let map = |attention: Attention| {
        let of_type = heads.iter().filter(|head| head.attention() == attention);
        let (deepest, most) = extent(of_type.copied());
        let cell = |layer: usize, number: usize| {
            let head = HeadId::numbered(attention, layer, number);
            heads.contains(&head).then(|| map_cell(head, first, &painted))
        };
        let layer = |layer: usize| (1..=most).map(|number| cell(layer, number)).collect();
        HeadMap {
            attention: attention.to_string(),
            description: subject.heads_file().map_or("", |file| file.description(attention)).to_owned(),
            layers: (1..=deepest).map(layer).collect(),
        }
    };
    let maps = distinct(heads.iter().map(|head| head.attention())).into_iter().map(map).collect();
    (measures, maps)
}

fn map_cell(head: HeadId, first: Option<&Column>, painted: &[Values]) -> MapCell {
    let hex = |Color(red, green, blue): Color| format!("#{red:02x}{green:02x}{blue:02x}");
    let color = |values: &Values| {
        let paper = values.of(head).map_or(SILVER, |(share, _)| diverging(share));
        format!("{} {}", hex(paper), hex(text_on(paper)))
    };
    let verdict = painted.first().and_then(|values| values.of(head)?.1);
    let known =
        first.and_then(|(name, cells)| Some(format!(": {name} {}", with_minus(&cells.get(&head)?.text))));
    MapCell {
        head: head.to_string(),
        label: format!("{head}{}", known.unwrap_or_default()),
        number: head.head_number(),
        verdict: verdict.map(|verdict| verdict.to_string()).unwrap_or_default(),
        colors: painted.iter().map(color).collect::<Vec<_>>().join(" "),
    }
}
