//! Figure 2: scores with one head masked on two test sets, and how far noise lets them agree (Michel et al. 2019, Section 3.4).
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::{Ablations, PAPER, Pair, experiment};
use charts::chart::{At, Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{GREY, INK};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use records::{CorrelationRow, HeadId};
use stats::regression::Line;
use words::{brackets, count, fixed, p_value, tenths, typeset};

use crate::view::{mark, sheet};

const STEM: &str = "figure2";

/// Figure and table, named after both splits.
pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "domains", chapter::OTHER_DATA],
    "Scores with one head masked on two splits, and how closely they can agree given the noise",
    Reads::Files(|source, request| {
        if request.is_all { source.all(experiment::PAIR) } else { Pair::files(source, request.against) }
    }),
    |file, request, _| {
        let pair = Pair::read(file, &request.folders.results)?;
        let stem = format!("{STEM}-{}", pair.splits.join("-"));
        Ok(vec![sheet(&pair.file, &stem, figure2(&pair), [table(&pair)])])
    },
)
.detail("after `cross-domain`")
.options(&["against"]);

/// Below this reliability, heads explain less than half of the variation on an axis.
const RELIABLE: f64 = 0.5;

/// How to read r, its interval and its ceiling.
pub const HOW_TO_READ: &str = "reliability: the share of the variation between heads that is expected to recur on another test set of the same \
     kind (split halves); ceiling: the maximum r that the noise of both axes allows, absent if one axis is only noise; an r \
     near its ceiling is full agreement, an r near 0 is informative only if the ceiling is high; one head: the most influential one, \
     which changes r most if it is left out";

/// The columns of [`cells`].
pub const COLUMNS: [&str; 10] = [
    "heads",
    "r",
    "95% interval",
    "p of r",
    "reliability",
    "ceiling of r",
    "rho",
    "r, rho without one head",
    "top heads shared",
    "reading",
];

fn table(pair: &Pair) -> Table {
    let [first, second] = &pair.sweeps;
    let metric = first.metric();
    let base =
        |sweep: &Ablations, split: &str| format!("full model: {} on {split}", metric.amount(sweep.base()));
    let title = format!(
        "Pearson's r and Spearman's \u{3c1} between the scores with one head masked, {}; {}",
        metric.label(),
        pair.title()
    );
    Table::new("Figure 2", label(pair), title)
        .columns(["Attention", "Agreement"], COLUMNS)
        .rows(pair.rows.iter().map(|row| Row::new(row.attention.name(), cells(row))))
        .note(format!("{}, {}", base(first, &pair.splits[0]), base(second, &pair.splits[1])))
        .note("intervals of r and of its ceiling: jackknife over the segments of both splits")
        .note(HOW_TO_READ)
}

/// Returns the numbers of a row and their reading; empty if undefined or not measured.
pub fn cells(row: &CorrelationRow) -> [Cell; 10] {
    let plain = |value: f64| fixed(value, 2);
    let number = |value: Option<f64>| value.map(|value| Cell::printed(value, plain)).into();
    let interval = row.pearson_low.zip(row.pearson_high).map(|ends| Cell::interval(ends, plain));
    let reliability = [row.first_reliability, row.second_reliability];
    let both = reliability.map(|value| value.map_or("?".to_owned(), plain)).join(", ");
    let both = Cell::number(both, row.first_reliability.unwrap_or(f64::NAN));
    let (shared, chance) = (tenths(row.top_overlap), tenths(row.top_overlap_by_chance));
    let ceiling = row.pearson_ceiling.map(|value| Cell::number(ceiling(row, value, plain), value));
    [
        row.heads.into(),
        number(row.pearson),
        interval.into(),
        row.pearson_p_value.map(|p| Cell::printed(p, p_value)).into(),
        Some(both).filter(|_| reliability != [None; 2]).into(),
        ceiling.into(),
        number(row.spearman),
        row.influential_head.as_ref().map(|head| without(row, head, plain)).into(),
        Cell::number(format!("{shared} of {} ({chance} by chance)", row.top), row.top_overlap),
        reading(row).into(),
    ]
}

/// Formats the noise ceiling with its interval: `0.54 [0.32, 0.68]`.
fn ceiling(row: &CorrelationRow, value: f64, number: fn(f64) -> String) -> String {
    let ends = row.pearson_ceiling_low.zip(row.pearson_ceiling_high);
    number(value) + &brackets(ends, ", ", number)
}

/// Formats r and rho without the most influential head: `0.36, 0.41 (enc-enc:1:3)`.
fn without(row: &CorrelationRow, head: &str, number: fn(f64) -> String) -> Cell {
    let [r, rho] =
        [row.pearson_without, row.spearman_without].map(|value| value.map_or("undefined".to_owned(), number));
    Cell::number(format!("{r}, {rho} ({head})"), row.pearson_without.unwrap_or(f64::NAN))
}

/// Interprets r in view of the noise.
fn reading(row: &CorrelationRow) -> String {
    let Some(r) = row.pearson else { return "undefined: all heads are equal on one split".to_owned() };
    let reliability = [row.first_reliability, row.second_reliability];
    let Some(ceiling) = row.pearson_ceiling else {
        let is_measured = reliability != [None; 2];
        return if is_measured { "noise: one axis is only noise" } else { "noise was not measured" }
            .to_owned();
    };
    let Some((low, high)) = row.pearson_low.zip(row.pearson_high) else {
        return "the interval of r was not computed".to_owned();
    };
    let least = reliability.into_iter().flatten().fold(1.0, f64::min);
    match (low, high) {
        (low, _) if low > 0.0 && r < ceiling => {
            format!("agreement; r without noise: about {}", fixed(r / ceiling, 2))
        }
        (low, _) if low > 0.0 => "agreement, at its ceiling".to_owned(),
        (_, high) if high < 0.0 => "disagreement".to_owned(),
        _ if least < RELIABLE => "noise: more than half of the variation on an axis".to_owned(),
        (_, high) if high >= ceiling => "unclear: the interval contains both 0 and the ceiling".to_owned(),
        _ => "no agreement can be shown".to_owned(),
    }
}

/// Number of steps along the band.
const STEPS: usize = 60;

/// The full model: an outline in front of the heads, which remain visible.
const STAR: Mark = Mark::new(Shape::Star, 4.2, INK).faint(0.0);
const EQUAL: Style = Style::dashed(GREY, 0.7);
const REGRESSION: Style = Style::line(INK, 0.8);

fn label(pair: &Pair) -> String {
    format!("{}-{}", pair.file.label(STEM), pair.splits.join("-"))
}

/// Plots a point per head, a star for the full model, the line of equal change on both splits, and the regression with its band. A second
/// panel leaves out the most influential head, which can squeeze all others into a corner.
fn figure2(pair: &Pair) -> Chart {
    let attentions = pair.sweeps[0].attentions();
    let types = attentions.iter().filter(|_| attentions.len() > 1);
    let types = types.map(|&attention| Entry::mark(attention.in_words(), mark(attention, 2.0).faint(0.35)));
    let (row, others) = (&pair.rows[0], &pair.rows[1..]);
    let of_type = |row: &CorrelationRow| format!("{}: {}", row.attention.in_words(), correlation(row));
    let (shared, chance) = (tenths(row.top_overlap), typeset(row.top_overlap_by_chance, 1));
    let influential = row.influential_head.as_ref().and_then(|head| head.parse::<HeadId>().ok());
    let all = scatter(pair, &pair.points.iter().collect(), influential).named(correlation(row));
    let without = influential.map(|influential| {
        let others = pair.points.iter().filter(|(head, _)| *head != influential);
        let r = row.pearson_without.map_or("r undefined".to_owned(), |r| format!("r = {}", typeset(r, 2)));
        scatter(pair, &others.collect(), None).named(format!("{r} without {}", influential.in_words()))
    });
    let without: Vec<Panel> = without.into_iter().collect();
    let published = pair.beside().and_then(|beside| beside.of_both("figure2a", "figure2b"));
    let title = "Scores with one head masked on two test sets";
    Chart::new("Figure 2", label(pair), format!("{title}; {}; {}", pair.title(), count(row.heads, "head")))
        .note(format!("Pearson {}", correlation(row)))
        .note(influential.map(|head| {
            format!("{}: the most influential head, the one that changes r most if it is left out", head.in_words())
        }))
        .note(reading(row))
        .note(others.iter().map(of_type).collect::<Vec<_>>())
        .note(format!("{} most important heads: {shared} in common ({chance} by chance)", row.top))
        .note(
            "star: the full model; dashed: equal change on both splits, a slope of 1 through the star; grey: least-squares line \
             over the heads of the panel with the pointwise 95% band of its mean",
        )
        .note(published.map(|sentence| PAPER.sentence(sentence)))
        .entries(types)
        .entries([Entry::mark("full model", Mark { radius: 2.2, ..STAR }), Entry::line("equal change", EQUAL)])
        .entries([Entry::line("regression", REGRESSION)])
        .panels(1 + without.len(), std::iter::once(all).chain(without).collect())
}

type Points<'a> = Vec<&'a (HeadId, [f64; 2])>;

fn scores(points: &Points<'_>, side: usize) -> Vec<f64> {
    points.iter().map(|(_, at)| at[side]).collect()
}

/// Returns the axis of a split, which covers these heads and the full model.
fn axis(pair: &Pair, points: &Points<'_>, side: usize) -> Axis {
    let (low, high) = extent(scores(points, side).into_iter().chain([pair.sweeps[side].base()]));
    let least = (low.abs().max(high.abs()) * 1e-3).max(1e-3);
    let metric = pair.sweeps[0].metric().label_in_unit();
    let split = pair.splits[side].replace('_', " ");
    Axis::of_at_least(format!("{metric} on {split}"), (low, high), least)
}

/// Plots these heads in a panel and names one of them.
fn scatter(pair: &Pair, points: &Points<'_>, named: Option<HeadId>) -> Panel {
    let axes = [axis(pair, points, 0), axis(pair, points, 1)];
    let line = Line::fit(&scores(points, 0), &scores(points, 1)).ok();
    let [first, second] = pair.sweeps.each_ref().map(|sweep| sweep.base());
    let ends = extent(scores(points, 0).into_iter());
    let mut layers: Vec<_> = line.iter().flat_map(|line| regression(line, ends, &axes[1])).collect();
    layers.push(Layer::Rule(At::Diagonal(first, second), EQUAL));
    let radius = if points.len() > 100 { 1.3 } else { 1.7 };
    layers.extend(pair.sweeps[0].attentions().into_iter().map(|attention| {
        let of_type = points.iter().filter(|(head, _)| head.attention() == attention);
        Layer::Points(of_type.map(|(_, [x, y])| (*x, *y)).collect(), mark(attention, radius).faint(0.35))
    }));
    layers.push(Layer::Points(vec![(first, second)], STAR));
    let label = points.iter().filter(|(head, _)| Some(*head) == named);
    layers.extend(label.map(|(head, [x, y])| Layer::Label((*x, *y), head.in_words())));
    Panel::new(axes, 165.0, layers)
}

/// Returns the regression line and its band between the minimum and maximum score, clipped to the y axis.
fn regression(line: &Line, (low, high): (f64, f64), y: &Axis) -> [Layer; 2] {
    let places = || (0..=STEPS).map(|step| low + (high - low) * step as f64 / STEPS as f64);
    let band =
        places().map(|x| (x, line.band(x).0.clamp(y.low, y.high), line.band(x).1.clamp(y.low, y.high)));
    let inside = |(_, at): &(f64, f64)| (y.low..=y.high).contains(at);
    let along = places().map(|x| (x, line.at(x))).filter(inside);
    [Layer::Band(band.collect(), GREY), Layer::Line(along.collect(), REGRESSION)]
}

fn correlation(row: &CorrelationRow) -> String {
    let Some(r) = row.pearson else { return "r undefined".to_owned() };
    let interval = brackets(row.pearson_low.zip(row.pearson_high), ", ", |r| typeset(r, 2));
    let is_measured = row.first_reliability.or(row.second_reliability).is_some();
    let ceiling = match row.pearson_ceiling {
        Some(value) => format!(", noise ceiling {}", ceiling(row, value, |value| typeset(value, 2))),
        None if is_measured => ", but one axis is only noise".to_owned(),
        None => String::new(),
    };
    format!("r = {}{interval}{ceiling}", typeset(r, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r = 0.4 with a ceiling of sqrt(0.25 · 1) = 0.5 would be 0.8 without noise.
    #[test]
    fn noise_and_disagreement_are_distinguished() {
        let wide = "unclear: the interval contains both 0 and the ceiling";
        for (r, ends, [first, second], expected) in [
            (0.0, Some((-0.2, 0.2)), [0.05, 0.1], "noise: more than half of the variation on an axis"),
            (0.0, Some((-0.2, 0.2)), [0.9, 0.8], "no agreement can be shown"),
            (0.4, Some((-0.3, 0.9)), [0.9, 0.8], wide),
            (0.6, Some((0.1, 0.8)), [0.25, 1.0], "agreement, at its ceiling"),
            (0.0, Some((-0.2, 0.2)), [-0.1, 0.8], "noise: one axis is only noise"),
            (0.4, Some((0.1, 0.6)), [0.25, 1.0], "agreement; r without noise: about 0.80"),
            (-0.5, Some((-0.7, -0.1)), [0.9, 0.8], "disagreement"),
            (0.4, None, [0.9, 0.8], "the interval of r was not computed"),
        ] {
            let row = CorrelationRow {
                pearson: Some(r),
                pearson_low: ends.map(|(low, _): (f64, f64)| low),
                pearson_high: ends.map(|(_, high)| high),
                first_reliability: Some(first),
                second_reliability: Some(second),
                pearson_ceiling: Some(first * second).filter(|product| *product > 0.0).map(f64::sqrt),
                ..CorrelationRow::default()
            };
            assert_eq!(reading(&row), expected);
        }
        let unmeasured = CorrelationRow { pearson: Some(0.0), ..CorrelationRow::default() };
        assert_eq!(reading(&unmeasured), "noise was not measured");
    }
}
