//! Heat maps of heads for the effect of masking, every ranking criterion, and relevance (Figures 1a and 2a of Voita et al. 2019).
use std::collections::BTreeMap;
use std::fmt::Display;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablations::looks_of;
use crate::findings::results::{distinct, extent};
use crate::findings::{
    Ablations, Criterion, HeadScore, Importance, Relevance, Replicates, ResultFile, Results, Verdicts,
    experiment,
};
use charts::chart::{BAR_COLORS, Cell, Chart, Entry, Layer, Panel, Sign};
use records::{AblationRow, Attention, HeadId, TestedRow as _, Verdict};
use words::{decimals, typeset, with_minus};

use super::replicates::needed_in_all;
use crate::view::{figure, sheet};

const BY_EFFECT: &str = "heads";
const BY_SCORE: &str = "heads-by-score";
const BY_RELEVANCE: &str = "v19-figure1a";

pub(super) const EFFECTS: Artefact = Artefact::new(
    [BY_EFFECT, "heads", chapter::SINGLE_HEADS],
    "Heat map of the effect of masking each head, layer x head",
    Reads::Each(experiment::SWEEP),
    |file, request, left_out| {
        let sweep = Results::read(file)?;
        let others = Replicates::of_sweep(&sweep, left_out);
        let others = others.and_then(|found| needed_in_all(&found, request.criterion));
        Ok(vec![sheet(&sweep.file, BY_EFFECT, effects(&sweep, request.criterion).note(others), [])])
    },
);

pub(super) const SCORES: Artefact = Artefact::new(
    ["scores", "importance", chapter::SINGLE_HEADS],
    "Heat maps of the rankings of heads, layer x head",
    Reads::Each(experiment::IMPORTANCE),
    |file, request, left_out| {
        let found = Importance::read(file)?;
        let sweep = Ablations::beside_model(&found.file, experiment::SWEEP);
        let sweep = left_out.keep(sweep).flatten();
        let chart = scores(&found, sweep.as_ref(), request.criterion);
        Ok(vec![sheet(&found.file, BY_SCORE, chart, [])])
    },
);

pub(super) const RELEVANCE: Artefact = Artefact::new(
    [BY_RELEVANCE, "relevance", chapter::FUNCTIONS],
    "Heat map of the relevance of each head, layer x head (Voita et al. 2019)",
    Reads::Each(experiment::RELEVANCE),
    |file, _, _| figure(file, BY_RELEVANCE, relevance),
)
.also("v19-figure2a");

/// If the maximum exceeds this multiple of the median, colours use the square root: on a linear scale all other heads would look white.
const OUTLIER: f64 = 10.0;

/// Values of heads, with verdicts.
pub struct Values {
    numbers: BTreeMap<HeadId, (f64, Option<Verdict>)>,
    /// Values up to this distance from 0 are white.
    white: f64,
    /// Value at which the colours end: the maximum distance from 0, but at least twice `white`; 1 if both are 0.
    pub end: f64,
    is_root: bool,
}

impl Values {
    fn new(white: f64, numbers: impl Iterator<Item = (HeadId, (f64, Option<Verdict>))>) -> Self {
        let numbers: BTreeMap<_, _> = numbers.collect();
        let colored = numbers.values().map(|(number, _)| number.abs() - white).filter(|size| *size > 0.0);
        let mut sizes: Vec<f64> = colored.collect();
        sizes.sort_by(f64::total_cmp);
        let most = sizes.last().copied();
        let is_root = most.is_some_and(|most| most > OUTLIER * sizes[sizes.len() / 2]);
        // colours cover at least twice the margin, so that an effect just above it stays light
        let range = if white > 0.0 { most.unwrap_or(0.0).max(white) } else { most.unwrap_or(1.0) };
        Self { numbers, white, end: white + range, is_root }
    }

    /// Returns the colour of a head, -1 to 1, and its verdict; `None` if it was not measured.
    pub fn of(&self, head: HeadId) -> Option<(f64, Option<Verdict>)> {
        let (number, verdict) = self.numbers.get(&head)?;
        let share = ((number.abs() - self.white).max(0.0) / (self.end - self.white)).copysign(*number);
        Some((if self.is_root { share.abs().sqrt().copysign(share) } else { share }, *verdict))
    }

    /// Returns the value of a colour.
    fn number(&self, color: f64) -> f64 {
        let share = if self.is_root { color * color } else { color.abs() };
        (self.white + share * (self.end - self.white)).copysign(color)
    }

    fn scale(&self) -> &'static str {
        if self.is_root { ", square-root colour scale" } else { "" }
    }
}

/// Returns the cost of masking each head: positive if the score gets worse, whatever the metric's direction.
pub fn effects_of(sweep: &Ablations, criterion: Criterion) -> Values {
    let judge = sweep.judge(criterion);
    let cost = |row: &AblationRow| -row.gain();
    let margin = judge.margin(sweep.base()).abs();
    Values::new(margin, sweep.rows.iter().map(|row| (row.head_id(), (cost(row), judge.verdict(row)))))
}

/// Returns the label and numbers of the colour bar for effects.
pub fn effects_bar(sweep: &Ablations, values: &Values) -> (String, [String; 5]) {
    let metric = sweep.metric();
    let worse = metric.direction().gain(-1.0);
    let number = |color: f64| match with_minus(&metric.change(values.number(color) * worse)) {
        margin if color == 0.0 => format!("within \u{b1}{}", margin.trim_start_matches(['+', '\u{2212}'])),
        number => number,
    };
    let label = format!("change in {} with the head masked{}", metric.label_in_unit(), values.scale());
    (label, BAR_COLORS.map(number))
}

/// Returns each criterion that is known for all heads, with verdicts.
pub fn scores_of(
    importance: &Importance,
    verdicts: &BTreeMap<HeadId, Verdict>,
) -> impl Iterator<Item = (HeadScore, Values)> {
    importance.known().into_iter().map(|mut score| {
        if score.values.iter().all(|value| *value <= 0.0) {
            // a negated criterion such as entropy would make the whole map striped
            score.values.iter_mut().for_each(|value| *value = -*value);
            score.label = score.label.trim_start_matches('\u{2212}').to_owned();
        }
        let heads = importance.heads().into_iter().zip(&score.values);
        let values =
            Values::new(0.0, heads.map(|(head, &number)| (head, (number, verdicts.get(&head).copied()))));
        (score, values)
    })
}

/// Returns the sign of a verdict; dispensable heads have none.
pub(super) fn sign(verdict: Verdict) -> Option<Sign> {
    match verdict {
        Verdict::Needed => Some(Sign::Dot),
        Verdict::Undecided => Some(Sign::Ring),
        Verdict::Dispensable => None,
    }
}

/// Returns legend entries of the signs, with the number of each verdict.
fn legend(sweep: &Ablations, criterion: Criterion) -> Vec<Entry> {
    let Some(Verdicts { needed, dispensable, undecided }) = sweep.judge(criterion).verdicts(&sweep.rows)
    else {
        return Vec::new();
    };
    vec![
        Entry::sign(format!("needed: {needed}"), Sign::Dot),
        Entry::sign(format!("undecided: {undecided}"), Sign::Ring),
        Entry::text(format!("unmarked, dispensable: {dispensable}")),
    ]
}

/// Draws the effect of masking each head: orange for a loss, with verdicts as signs.
fn effects(sweep: &Ablations, criterion: Criterion) -> Chart {
    let values = effects_of(sweep, criterion);
    let (label, numbers) = effects_bar(sweep, &values);
    let title = format!("Effect of masking one head on {}", sweep.metric().label());
    let attentions = sweep.attentions();
    Chart::new("Heads", sweep.file.label(BY_EFFECT), sweep.file.titled(title))
        .note(sweep.base_line())
        .note(format!(
            "white: masking the head changes the score by at most the margin ({}); orange: the score gets worse by more; blue, \
             striped: it gets better by more",
            sweep.judge(criterion).margin_in_words()
        ))
        .note(sweep.judge(criterion).of_verdicts())
        .note(looks_of(&sweep.rows))
        .note("crossed out: not measured")
        .entries(legend(sweep, criterion))
        .beside(&attentions, Attention::in_words, |&attention| panel(&sweep.file, attention, &values, true))
        .bar(label, numbers)
}

/// Draws a row of panels per criterion that is known for all heads, with colours up to its maximum. Signs are verdicts on single heads.
fn scores(importance: &Importance, sweep: Option<&Ablations>, criterion: Criterion) -> Chart {
    let judged = sweep.into_iter().flat_map(|sweep| {
        let judge = sweep.judge(criterion);
        sweep.rows.iter().filter_map(move |row| Some((row.head_id(), judge.verdict(row)?)))
    });
    let verdicts: BTreeMap<HeadId, Verdict> = judged.collect();
    let what_signs_are = sweep.map(|sweep| {
        let on = sweep.file.scored().map(|scored| format!(" on {scored}")).unwrap_or_default();
        format!("signs: masking the head alone{on}; {}", sweep.judge(criterion).of_verdicts())
    });
    let attentions = distinct(importance.rows.iter().map(|row| row.attention));
    let columns = if attentions.len() == 1 { 2 } else { attentions.len() };
    let (known, mut panels): (Vec<_>, _) = (scores_of(importance, &verdicts).collect(), Vec::new());
    for (place, (score, values)) in known.iter().enumerate() {
        let end = typeset(values.end, decimals(values.end));
        let unit = if score.unit.is_empty() { String::new() } else { format!(" {}", score.unit) };
        let row = format!("{}, up to {end}{unit}{}", score.label, values.scale());
        let is_last = (known.len() - place) * attentions.len() <= columns;
        for (index, &attention) in attentions.iter().enumerate() {
            let name = match (index, place) {
                (0, 0) if attentions.len() > 1 => format!("{}: {row}", attention.in_words()),
                (0, _) => row.clone(),
                (_, 0) => attention.in_words().to_owned(),
                _ => String::new(),
            };
            panels.push(panel(&importance.file, attention, values, is_last).named(name).in_row(index));
        }
    }
    let label = importance.file.label(BY_SCORE);
    Chart::new("Heads by score", label, format!("Rankings of heads; {}", importance.title()))
        .note(
            "orange: above 0; blue, striped: below 0; the colours of each score end at its maximum, which is in its title; entropy \
             orders heads the other way round, highest first",
        )
        .note(what_signs_are)
        .note(importance.notes())
        .note(importance.unknown())
        .entries(sweep.map(|sweep| legend(sweep, criterion)).unwrap_or_default())
        .panels(columns, panels)
        .bar(
            "score of a head, relative to the maximum of that score",
            BAR_COLORS.map(|color| typeset(color, 1)),
        )
}

fn relevance(relevance: &Relevance) -> Chart {
    let (file, rows) = (&relevance.file, &relevance.rows);
    let attentions = distinct(rows.iter().map(|row| row.attention));
    let values = Values::new(0.0, rows.iter().map(|row| (row.head_id(), (row.relevance, None))));
    let title = "Relevance of each head for the largest logit (Voita et al. 2019)";
    Chart::new("Figures 1a and 2a", file.label(BY_RELEVANCE), file.titled(title))
        .note(
            "mean over target positions of the share of the layer's absolute relevance; orange: in favour of the largest logit; blue, \
             striped: against it",
        )
        .note(relevance.doubt())
        .beside(&attentions, Attention::in_words, |&attention| panel(file, attention, &values, true))
        .bar(
            format!("relevance{}", values.scale()),
            BAR_COLORS.map(|color| typeset(values.number(color), decimals(values.end))),
        )
}

/// Returns the panel of one attention type, with brackets over heads that share keys and values. The last panel labels the x axis.
fn panel(file: &ResultFile, attention: Attention, values: &Values, is_last: bool) -> Panel {
    let of_type = values.numbers.keys().filter(|head| head.attention() == attention);
    let (layers, heads) = extent(of_type.copied());
    let cell = |layer: usize, head: usize| {
        let (value, verdict) = values.of(HeadId::from_index(attention, layer, head)).unzip();
        Cell { value, sign: verdict.flatten().and_then(sign), ..Cell::default() }
    };
    // if there are many numbers, every other one is enough
    let number = |most: usize, number: usize| {
        if most > 12 && number.is_multiple_of(2) { String::new() } else { number.to_string() }
    };
    let numbers = |most: usize| (1..=most).map(move |each| number(most, each));
    let columns = (if is_last { "head" } else { "" }, numbers(heads));
    let mut panel = Panel::matrix(columns, ("layer", numbers(layers)), 9.0, cell);
    panel.layers.extend(file.key_value_heads(heads).map(|key_values| {
        let size = (heads / key_values) as f64;
        let left = |number: usize| size * number as f64;
        let bracket = |number: usize| (left(number), left(number + 1), format!("kv {}", number + 1));
        Layer::Brackets((0..key_values).map(bracket).collect())
    }));
    panel
}

/// Returns a matrix of head counts, darker for larger shares of their totals.
pub(super) fn counts<X: Display, Y: Display>(
    columns: (&str, impl IntoIterator<Item = X>),
    rows: (&str, impl IntoIterator<Item = Y>),
    count: impl Fn(usize, usize) -> (usize, usize),
) -> Panel {
    Panel::matrix(columns, rows, 14.0, |row, column| {
        let (count, of) = count(row, column);
        Cell { value: Some(count as f64 / of.max(1) as f64), text: count.to_string(), ..Cell::default() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1, -1 and 100, the small numbers have the colours 1/10 and -1/10, since 1/10 is the square root of 1/100.
    #[test]
    fn one_large_number_leaves_the_others_visible() {
        let head = |head| HeadId::numbered(Attention::EncEnc, 1, head);
        let numbers = [1.0, -1.0, 100.0].into_iter().zip(1..);
        let values = Values::new(0.0, numbers.map(|(number, at)| (head(at), (number, None))));
        assert_eq!([1, 2, 3].map(|at| values.of(head(at)).unwrap().0), [0.1, -0.1, 1.0]);
        assert!((values.number(-0.1) + 1.0).abs() < 1e-12);
    }
}
