//! Table 1 and Figure 1: effect of masking one head on the score (Michel et al. 2019, Section 3.2).
use std::collections::BTreeMap;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablations::{Model, UNFINISHED, looks_of};
use crate::findings::error::no_attention;
use crate::findings::judge::Tally;
use crate::findings::origin::OPEN_QUESTION;
use crate::findings::{
    Ablations, Adjustment, Criterion, Judge, PAPER, Replicates, Result, Results, Verdicts, experiment,
};
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use charts::palette::{INK, LIGHT, ORANGE, PALE, VERMILLION, WHITE};
use charts::scale::{Bins, Step, extent};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use heads::Selection;
use records::{AblationRow, Attention, StandsFor, Verdict};
use words::{count, short};

use super::replicates;
use crate::view::{Request, SIGNS, judged, sheet};

pub(super) const TABLE: Artefact = Artefact::new(
    ["table1", "heads", chapter::SINGLE_HEADS],
    "Score change for each masked head, layer x head, with verdicts: needed, dispensable, undecided",
    Reads::Each(experiment::SWEEP),
    |file, request, left_out| {
        let sweep = Results::read(file)?;
        tables(&sweep, Replicates::of_sweep(&sweep, left_out).as_ref(), request)
    },
)
.detail("for BERT in the same layout")
.options(&["attention", "with_figure"]);

pub(super) const HISTOGRAM: Artefact = Artefact::new(
    ["figure1", "heads", chapter::SINGLE_HEADS],
    "Histogram of the scores with one head masked, and the score of the full model",
    Reads::Each(experiment::SWEEP),
    |file, request, left_out| {
        let sweep = Results::read(file)?;
        figures(&sweep, Replicates::of_sweep(&sweep, left_out).as_ref(), request)
    },
)
.detail("for BERT, Figure 1b")
.options(&["attention"]);

/// File names for a translator, a classifier and a language model.
type Names = [&'static str; 3];

/// The paper prints no such table for BERT, so it is named after the experiment.
const TABLES: Names = ["table1", experiment::SWEEP, experiment::SWEEP];

/// The paper has a histogram for translation and one for BERT.
const HISTOGRAMS: Names = ["figure1", "figure1b", "figure1-self"];

fn name_of(sweep: &Ablations, [translator, classifier, language]: Names) -> &'static str {
    match sweep.model() {
        Model::Translator => translator,
        Model::Classifier => classifier,
        Model::Language => language,
    }
}

/// Draws Table 1 for each selection, and Figure 1 if it was requested.
fn tables(sweep: &Ablations, others: Option<&Replicates>, request: &Request<'_>) -> Result<Vec<Sheet>> {
    let draw = |stem: &str, types: &[Attention]| {
        let tables = types.iter().map(|&attention| table1(sweep, others, attention, request.criterion));
        sheet(&sweep.file, stem, None, tables)
    };
    let mut sheets = by_selection(sweep, request, TABLES, draw)?;
    // the last table contains the first
    let last = sheets.iter().rposition(|sheet| !sheet.tables.is_empty());
    sheets.iter_mut().enumerate().for_each(|(place, sheet)| sheet.is_printed = Some(place) == last);
    sheets.extend(if request.with_figure { figures(sweep, others, request)? } else { Vec::new() });
    Ok(sheets)
}

fn figures(sweep: &Ablations, others: Option<&Replicates>, request: &Request<'_>) -> Result<Vec<Sheet>> {
    by_selection(sweep, request, HISTOGRAMS, |stem, types| {
        sheet(&sweep.file, stem, figure1(sweep, others, types, request.criterion), [])
    })
}

/// Draws a sweep for the requested attention types, by default those of the paper. When everything is drawn, draws all types as well; if
/// the paper covers all of them, removes a drawing of all types from an earlier run.
fn by_selection(
    sweep: &Ablations,
    request: &Request<'_>,
    names: Names,
    draw: impl Fn(&str, &[Attention]) -> Sheet,
) -> Result<Vec<Sheet>> {
    let (present, [several, ..]) = (sweep.attentions(), names);
    let is_paper_all = Selection::Paper.of(&present) == present;
    let chosen = match (request.is_all, is_paper_all) {
        (false, _) => vec![request.attention],
        (true, true) => vec![Selection::Paper],
        (true, false) => vec![Selection::Paper, Selection::All],
    };
    let every = format!("{several}-all");
    let mut sheets = Vec::new();
    for selection in chosen {
        let types = selection.of(&present);
        if let Some(missing) = types.iter().find(|attention| !present.contains(attention)) {
            let present: Vec<_> = present.iter().map(|attention| attention.name()).collect();
            return Err(no_attention(&sweep.file, missing.name(), &present));
        }
        let stem = match selection {
            _ if types == [Attention::SelfAttention] => name_of(sweep, names).to_owned(),
            Selection::Paper => several.to_owned(),
            Selection::One(attention) => format!("{several}-{attention}"),
            Selection::All => every.clone(),
        };
        sheets.push(draw(&stem, &types));
    }
    let outdated = (request.is_all && is_paper_all).then(|| sheet(&sweep.file, &every, None, []));
    Ok(sheets.into_iter().chain(outdated).collect())
}

/// Returns the layer x head matrix of one attention type, with key-value heads as column groups. Below it come the base score, verdicts and
/// significant heads, and which tests are missing or could not be significant.
fn table1(
    sweep: &Ablations,
    others: Option<&Replicates>,
    attention: Attention,
    criterion: Criterion,
) -> Table {
    let (family, metric, judge) = (sweep.family(attention), sweep.metric(), sweep.judge(criterion));
    let (layers, heads) = sweep.extent(attention);
    let is_self = attention == Attention::SelfAttention;
    let by_head: BTreeMap<_, _> = family.iter().map(|row| ((row.layer, row.head), *row)).collect();
    let cell = |row: &&AblationRow| {
        let change = Cell::printed(row.score_delta, |delta| metric.change(delta));
        judged(change, judge.verdict(*row)).marked(criterion.holds(*row))
    };
    let row = |layer: usize| {
        Row::new(layer, (1..=heads).map(|head| Cell::from(by_head.get(&(layer, head)).map(cell))))
    };
    let title = format!(
        "{attention} ({}): {1} with one head masked minus {1} of the full model{2}",
        sweep.file.description(attention),
        metric.label(),
        metric.in_unit(", in"),
    );
    let stem = if is_self { name_of(sweep, TABLES) } else { TABLES[0] };
    let label = format!("{}-{attention}", sweep.file.label(stem));
    let name = if is_self { "One head at a time" } else { "Table 1" };
    let who = if sweep.file.is_language() { OPEN_QUESTION } else { "who have no such table for BERT" };
    let (missing, all) = sweep.missing(attention);
    let table = Table::new(name, label, sweep.file.titled(title))
        .columns(["Layer", "Head"], (1..=heads).map(|head| head.to_string()))
        .rows((1..=layers).map(row))
        .note(sweep.base_line());
    let table = with_counts(table, sweep, &family, criterion)
        .note(others.map(|found| replicates::in_words(found, &[attention], criterion)))
        .note((missing > 0).then_some(format!("{missing} of {all} cells are empty: {UNFINISHED}")))
        // names the paper as the source of the layout if it has no such table
        .note(is_self.then_some(format!("laid out as Table 1 of Michel et al. (2019), {who}")))
        .remark(adjusted_counts(sweep, criterion, &family))
        .remark(paper_remark(sweep, attention));
    let key_values = sweep.file.key_value_heads(heads).unwrap_or(0);
    let key_value = |number: usize| (format!("kv {number}"), heads / key_values);
    Table { column_groups: (1..=key_values).map(key_value).collect(), ..table }
}

/// Adds the verdicts, then the paper's reading: how many heads are significant, how many would be by chance, and how many could not be.
fn with_counts(table: Table, sweep: &Ablations, family: &[&AblationRow], criterion: Criterion) -> Table {
    let judge = sweep.judge(criterion);
    let table = table.note(verdicts_of(judge, family));
    let tally = criterion.tally(family.iter().copied());
    let looks = looks_of(family.iter().copied());
    if tally.tested == 0 && looks.is_some() {
        return table.note(looks).mark(judge.description("heads"));
    }
    let table = table.note(looks);
    if tally.tested == 0 {
        return table.note(match judge.method(criterion.adjustment) {
            None => "no head was tested for significance".to_owned(),
            Some(method) => format!("no p-values adjusted by {method} yet: they require all heads"),
        });
    }
    let one_sided = Tally::of(family.iter().copied(), criterion.alpha, |row| row.p_koehn);
    let by_chance = short(criterion.alpha * tally.tested as f64);
    let by_chance = format!("false alarms expected by chance: {by_chance}");
    let of_it = short((2.0 * criterion.alpha).min(1.0) * one_sided.tested as f64);
    let one_sided_counts = format!(
        "the paper's one-sided test would mark {}, {} for the better; false alarms expected from it: {of_it}",
        one_sided.significant, one_sided.better
    );
    let without = format!("{} without a test", count(family.len() - tally.tested, "head"));
    table
        .mark(judge.description("heads"))
        .note(format!("the paper's reading: {}", tally.in_words()))
        .note((criterion.adjustment == Adjustment::None).then_some(by_chance))
        .note((one_sided.tested > 0).then_some(one_sided_counts))
        .note(judge.out_of_reach())
        .note((tally.tested < family.len()).then_some(without))
}

/// Describes the verdicts on these heads; empty if none was tested.
fn verdicts_of(judge: Judge, family: &[&AblationRow]) -> Vec<String> {
    let Some(counts) = judge.verdicts(family.iter().copied()) else { return Vec::new() };
    let sentence = |how: &str, counts: Option<Verdicts>| Some(format!("{how}: {}", counts?.in_words()));
    let stricter = [
        ("at a false discovery rate of 5%", judge.verdicts_at_fdr(family.iter().copied())),
        (
            "simultaneously, by intervals that hold for all heads at once",
            judge.verdicts_at_once(family.iter().copied()),
        ),
    ];
    let stricter = stricter.into_iter().filter_map(|(how, counts)| sentence(how, counts));
    let first = format!("{} of {}", counts.in_words(), count(counts.all(), "head"));
    [first].into_iter().chain(stricter).chain([judge.of_verdicts(), SIGNS.to_owned()]).collect()
}

/// Counts significant heads by the other p-values, which exist once all heads are measured, and by other tests.
fn adjusted_counts(sweep: &Ablations, criterion: Criterion, family: &[&AblationRow]) -> Vec<String> {
    let judge = sweep.judge(criterion);
    let remains = |adjustment: Adjustment| {
        let Tally { tested, significant, better } =
            Criterion { adjustment, ..criterion }.tally(family.iter().copied());
        let how = judge.method(adjustment).map(|method| format!("adjusted by {method}"));
        let how = how.unwrap_or("not adjusted".to_owned());
        // the smallest of m p-values is multiplied by m
        let least = judge.smallest_p_value() * tested as f64;
        let is_blind = adjustment == Adjustment::Bh && least >= criterion.alpha;
        let blind = if is_blind { "; with so few resamples no single head could be significant" } else { "" };
        (tested > 0).then(|| format!("{how}: {significant} significant, {better} for the better{blind}"))
    };
    let all = [Adjustment::None, Adjustment::Family, Adjustment::Bh];
    let others = all.into_iter().filter(|adjustment| *adjustment != criterion.adjustment);
    let mut remarks: Vec<_> = others.filter_map(remains).collect();
    if remarks.is_empty() && criterion.tally(family.iter().copied()).tested > 0 {
        remarks.push("no adjusted p-values yet: they require all heads".to_owned());
    }
    let by = |p_value: fn(&AblationRow) -> Option<f64>| {
        Tally::of(family.iter().copied(), criterion.alpha, p_value)
    };
    let (mcnemar, unpaired) = (by(|row| row.p_mcnemar), by(|row| row.p_unpaired_t));
    for (name, tally) in [("McNemar's test with mid-p", mcnemar), ("unpaired t-test", unpaired)] {
        let (alpha, counts) = (criterion.alpha, tally.in_words());
        remarks.extend((tally.tested > 0).then(|| format!("{name} at p < {alpha}, not adjusted: {counts}")));
    }
    remarks
}

/// Returns the paper's counts for enc-enc, or its range of accuracies for BERT.
fn paper_remark(sweep: &Ablations, attention: Attention) -> Option<String> {
    if attention == Attention::EncEnc {
        return Some(PAPER.sentence("table1"));
    }
    figure1b(sweep, &[attention], "figure1b-range")
}

/// Returns a sentence on the paper's accuracies with one head masked; `None` for other tasks or attention types.
fn figure1b(sweep: &Ablations, shown: &[Attention], sentence: &str) -> Option<String> {
    let is_inference = sweep.beside().is_some_and(StandsFor::is_inference);
    let is_comparable = is_inference && *shown == [Attention::SelfAttention];
    is_comparable.then(|| PAPER.sentence(sentence))
}

/// Minimum length of the score axis, in bins.
const FEWEST: f64 = 12.0;

/// Height of the strip with a stroke per head below the bars, as a share of the height of the bars.
const STRIP: f64 = 0.14;

const BASE: Style = Style::dashed(INK, 0.9);

/// Number of stripes on a bar as high as the plot.
const STRIPES: f64 = 24.0;

/// Verdicts from the bottom of a bar to its top, with colours; heads without a verdict are drawn as dispensable.
const KINDS: [(Verdict, Color); 3] =
    [(Verdict::Needed, VERMILLION), (Verdict::Undecided, ORANGE), (Verdict::Dispensable, PALE)];

/// Lines across the bars of undecided heads, visible in black and white.
const STRIPE: Style = Style::line(WHITE, 0.7);

/// Bars for each verdict: left, right, low and high end.
type Bars = [Vec<[f64; 4]>; 3];

/// Draws a histogram per attention type, with a legend of the verdicts.
fn figure1(
    sweep: &Ablations,
    others: Option<&Replicates>,
    attentions: &[Attention],
    criterion: Criterion,
) -> Chart {
    let (metric, judge) = (sweep.metric(), sweep.judge(criterion));
    let label = format!("{} with one head masked", metric.label_in_unit());
    let all = || attentions.iter().flat_map(|&attention| sweep.family(attention));
    let kinds = judge.verdicts(all()).map(|Verdicts { needed, dispensable, undecided }| {
        let fill = |name: &str, number: usize, place: usize| {
            Entry::fill(format!("{name}: {number}"), KINDS[place].1)
        };
        let undecided = Entry { line: Some(STRIPE), ..fill("undecided", undecided, 1) };
        [fill("needed", needed, 0), undecided, fill("dispensable", dispensable, 2)]
    });
    let tally = criterion.tally(all());
    let significant = (tally.tested > 0)
        .then(|| format!("the paper's reading: {} with {}", tally.in_words(), judge.description("heads")));
    let name = if sweep.model() == Model::Classifier { "Figure 1b" } else { "Figure 1" };
    Chart::new(name, sweep.file.label(name_of(sweep, HISTOGRAMS)), sweep.file.titled(&label))
        .note(format!("{} (dashed), which is an edge of the bins", sweep.base_line()))
        .note(kinds.is_some().then(|| judge.of_verdicts()))
        .note(significant)
        .note("strokes below the bars: one for each head")
        .note(others.map(|found| format!(
            "grey areas: range of the number of heads in a bin over {} with different seeds, by the effect in each run; not an interval",
            count(found.sweeps.len(), "run")
        )))
        .note(others.map(|found| replicates::in_words(found, attentions, criterion)))
        .note(figure1b(sweep, attentions, "figure1b"))
        .note(sweep.missing_heads())
        .entries([
            Entry::line(format!("full model {}", metric.amount(sweep.base())), BASE),
            Entry::mark("each head", Mark::new(Shape::Tick, 2.4, INK)),
        ])
        .entries(kinds.into_iter().flatten())
        .entries(
            others
                .map(|found| Entry::fill(format!("range over {}", count(found.sweeps.len(), "run")), LIGHT)),
        )
        .panels(1, histograms(sweep, others, attentions, judge, &label))
}

/// Draws panels with a shared score axis, whose bins meet at the base score. In each bin, needed heads are at the bottom, undecided heads
/// above them; each head has a stroke below.
fn histograms(
    sweep: &Ablations,
    others: Option<&Replicates>,
    attentions: &[Attention],
    judge: Judge,
    label: &str,
) -> Vec<Panel> {
    let base = sweep.base();
    let families: Vec<_> = attentions.iter().map(|&attention| sweep.family(attention)).collect();
    let all_runs: Vec<Vec<Vec<f64>>> =
        attentions.iter().map(|&attention| scores_of(others, attention, base)).collect();
    let own = families.iter().flatten().map(|row| row.score);
    let bins = Bins::around(base, own.chain(all_runs.iter().flatten().flatten().copied()));
    let ranges: Vec<Vec<[f64; 4]>> = all_runs.iter().map(|all| ranges(all, bins)).collect();
    let bars: Vec<Bars> = families.iter().map(|family| bars(family, bins, judge)).collect();
    let areas = bars.iter().flatten().flatten().chain(ranges.iter().flatten());
    let edges = areas.flat_map(|area| [area[0], area[1]]).chain([base]);
    let x = Axis::of_at_least(label, extent(edges), FEWEST * bins.width);
    let y = numbers_of_heads(&bars, &ranges);
    let last = attentions.len().saturating_sub(1);
    let panel = |(index, &attention): (usize, &Attention)| {
        let x = if index == last { x.clone() } else { x.clone().silent() };
        let label = if index == attentions.len() / 2 { "number of heads" } else { "" };
        let y = Axis { label: label.to_owned(), ..y.clone() };
        let mut layers = histogram(&families[index], &bars[index], &y, base, judge);
        // an area without a line, which would look like an error bar
        let area = |&[left, right, low, high]: &[f64; 4]| {
            Layer::Band(vec![(left, low, high), (right, low, high)], INK)
        };
        layers.extend(ranges[index].iter().map(area));
        let name = if last == 0 { "" } else { sweep.file.description(attention) };
        Panel::new([x, y], if last == 0 { 100.0 } else { 58.0 }, layers).named(name)
    };
    attentions.iter().enumerate().map(panel).collect()
}

/// Returns a shared axis for all panels, so that bars can be compared, with room for the strokes below 0.
fn numbers_of_heads(bars: &[Bars], ranges: &[Vec<[f64; 4]>]) -> Axis {
    let heights = bars.iter().flatten().flatten().map(|bar| bar[3]);
    let most = heights.chain(ranges.iter().flatten().map(|range| range[3])).fold(1.0, f64::max);
    let step = Step::covering_whole(most, 4);
    let high = step.multiple(step.index_below(most * 1.02) + 1);
    Axis { label: String::new(), low: -STRIP * high, high, ticks: Ticks::Round(step, true), gap: None }
}

fn histogram(family: &[&AblationRow], bars: &Bars, y: &Axis, base: f64, judge: Judge) -> Vec<Layer> {
    let strokes = |is_needed: bool, color| {
        let meant = family.iter().filter(|row| (judge.verdict(**row) == Some(Verdict::Needed)) == is_needed);
        Layer::Points(meant.map(|row| (row.score, y.low / 2.0)).collect(), Mark::new(Shape::Tick, 2.4, color))
    };
    let solid = bars.iter().zip(KINDS).map(|(bars, (_, color))| Layer::Bars(bars.clone(), color));
    let [_, undecided, _] = bars;
    let stripes = undecided.iter().flat_map(|&[left, right, low, high]| {
        // evenly spaced, at least one per bar
        let stripes = ((high - low) / y.high * STRIPES).ceil();
        let height = move |stripe: u32| low + (high - low) * (f64::from(stripe) + 0.5) / stripes;
        let line = move |stripe| Layer::Line(vec![(left, height(stripe)), (right, height(stripe))], STRIPE);
        (0..stripes as u32).map(line)
    });
    solid
        .chain(stripes)
        .chain([strokes(false, INK), strokes(true, VERMILLION), Layer::Rule(At::X(base), BASE)])
        .collect()
}

/// Returns scores with one head masked for each run, shifted to the base score of the setup's own run.
fn scores_of(others: Option<&Replicates>, attention: Attention, base: f64) -> Vec<Vec<f64>> {
    let of = |sweep: &Ablations| {
        sweep.family(attention).iter().map(|row| base + row.score_delta).collect::<Vec<f64>>()
    };
    others.map(|found| found.sweeps.iter().map(of).collect()).unwrap_or_default()
}

/// Returns bins whose number of heads differs between runs, with the minimum and maximum number.
fn ranges(runs: &[Vec<f64>], bins: Bins) -> Vec<[f64; 4]> {
    let mut ends: Vec<(f64, f64)> = runs.iter().flatten().map(|&score| bins.of(score)).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    ends.dedup();
    let range = |(left, right): (f64, f64)| {
        let number =
            |scores: &Vec<f64>| scores.iter().filter(|score| bins.of(**score).0 == left).count() as f64;
        let (low, high) = extent(runs.iter().map(number));
        [left, right, low, high]
    };
    ends.into_iter().map(range).filter(|[.., low, high]| low < high).collect()
}

/// Returns the stacked bars of all bins.
fn bars(family: &[&AblationRow], bins: Bins, judge: Judge) -> Bars {
    let mut bars = Bars::default();
    let kind = |row: &AblationRow| judge.verdict(row).unwrap_or(Verdict::Dispensable);
    let mut rows: Vec<_> = family.iter().map(|row| (bins.of(row.score), kind(row))).collect();
    rows.sort_by(|(one, _), (other, _)| one.0.total_cmp(&other.0));
    for bin in rows.chunk_by(|(one, _), (next, _)| one == next) {
        let ((left, right), mut low) = (bin[0].0, 0.0);
        for (bars, (kind, _)) in bars.iter_mut().zip(KINDS) {
            let high = low + bin.iter().filter(|(_, own)| *own == kind).count() as f64;
            bars.extend((high > low).then_some([left, right, low, high]));
            low = high;
        }
    }
    bars
}
