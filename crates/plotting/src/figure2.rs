//! Figure 2: scores with one head masked on two test sets (Michel et al. 2019, Section 3.4).
use plotters::element::{PathElement, Polygon};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use records::CorrelationRow;
use stats::regression::Line;

use crate::Error;
use crate::attention::Attention;
use crate::cross_domain::table::reading;
use crate::cross_domain::{CrossDomain, Pair};
use crate::figure::axes::{Axes, Place, Scale, stroke};
use crate::figure::canvas::{Area, COLUMN_INCHES, Figure, points, to_error};
use crate::figure::mark::{Mark, Shape};
use crate::figure::palette::{GREY, INK, YELLOW};
use crate::figure::step::Step;
use crate::figure::text::{SIZE, SMALL, TextStyle, fitted};
use crate::number::{count, p_value, tenths, typeset};
use crate::paper::{Published, PublishedFigure2};

/// Left end of the text above the plot, and margins around the plot, in points.
const TEXT_LEFT: f64 = 9.5;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 29.0;
/// Height of the plot, in points.
const HEIGHT: f64 = 172.0;
/// Height of a line of text above the plot, and the room below the last, in points.
const LINE: f64 = 11.0;
const GAP: f64 = 9.0;
/// Room for a point in the legend, in points.
const KEY: f64 = 14.0;

/// Points along the band.
const STEPS: usize = 60;
/// Width of the regression line, in points.
const LINE_WIDTH: f64 = 0.9;
/// Opacity of the band.
const BAND: f64 = 0.2;

/// A point for each head with its regression line and 95 % band, the intact model as a star, and the agreement of both
/// splits in words; beside it the `published` one where it is comparable.
///
/// # Errors
/// If drawing fails.
pub fn figure2(comparison: &CrossDomain, published: Option<&Published>) -> Result<Figure, Error> {
    let title = title(comparison);
    let mut lines = vec![title.clone(), correlations(&comparison.all)];
    lines.extend(noise(comparison));
    lines.push(overlap(comparison));
    lines.extend(published.and_then(|published| paper_line(comparison, &published.figure2)));
    let keys = keys(comparison);
    let top = LINE * (lines.len() + keys.len().div_ceil(2)) as f64 + GAP;
    let size = (COLUMN_INCHES, ((top + HEIGHT + BOTTOM) / 72.0 * 100.0).round() / 100.0);
    Figure::draw(size, &title, |page| {
        for (index, line) in lines.iter().enumerate() {
            draw_text(page, line, (TEXT_LEFT, LINE * (index + 1) as f64), index == 0)?;
        }
        draw_legend(page, &keys, LINE * (lines.len() + 1) as f64)?;
        draw_plot(page, comparison, top)
    })
}

/// Both coefficients over all heads, as the file has them; r has been checked against the points.
fn correlations(row: &CorrelationRow) -> String {
    let part = |name, coefficient: Option<f64>, interval: &str, p: Option<f64>| match coefficient {
        Some(coefficient) => {
            let p = p.map_or(String::new(), |p| format!(" ({})", p_value(p)));
            format!("{name} = {}{interval}{p}", typeset(coefficient, 2))
        }
        None => format!("{name} undefined"),
    };
    let interval = row.pearson_low.zip(row.pearson_high);
    let interval = interval.map(|(low, high)| format!(" [{}, {}]", typeset(low, 2), typeset(high, 2)));
    let pearson = part("Pearson r", row.pearson, &interval.unwrap_or_default(), row.pearson_p_value);
    format!("{pearson}, {}", part("Spearman \u{3c1}", row.spearman, "", row.spearman_p_value))
}

/// How far noise lets the splits agree, and what r says then.
fn noise(comparison: &CrossDomain) -> Vec<String> {
    let row = &comparison.all;
    let number = |value: Option<f64>| value.map_or("undefined".to_owned(), |value| typeset(value, 2));
    let [first, second, ceiling] =
        [row.first_reliability, row.second_reliability, row.pearson_ceiling].map(number);
    let Pair { first: one, second: other, .. } = &comparison.pair;
    let is_measured = row.first_reliability.or(row.second_reliability).is_some();
    let ceiling = format!("ceiling of r {ceiling}: reliability {first} ({one}) and {second} ({other})");
    is_measured.then_some(ceiling).into_iter().chain([reading(row)]).collect()
}

fn overlap(comparison: &CrossDomain) -> String {
    let row = &comparison.all;
    let chance = typeset(row.top_overlap_by_chance, 1);
    let shared = tenths(row.top_overlap);
    format!("{} most important heads: {shared} in common ({chance} by chance)", row.top)
}

fn title(comparison: &CrossDomain) -> String {
    format!("{}; {}", comparison.title(), count(comparison.all.heads, "head"))
}

/// What the paper has, where it is comparable at all.
fn paper_line(comparison: &CrossDomain, published: &PublishedFigure2) -> Option<String> {
    let PublishedFigure2 { translation, bert } = published;
    if comparison.first.metric.name() == "bleu" {
        let r = typeset(*translation, 2);
        return Some(format!("Figure 2a of the paper (newstest2013, MTNT): r = {r}"));
    }
    let is_bert = comparison.points.iter().all(|(attention, _)| *attention == Attention::SelfAttention);
    let r = typeset(*bert, 2);
    (is_bert && comparison.first.is_like_figure1b())
        .then(|| format!("Figure 2b of the paper (MNLI matched, mismatched): r = {r}"))
}

/// One entry of the legend.
enum Key {
    Heads(Attention, String),
    Base(String),
    Regression,
}

fn keys(comparison: &CrossDomain) -> Vec<Key> {
    let attentions = comparison.first.attentions();
    let heads = |&attention: &Attention| {
        let r = comparison.of_type(attention).and_then(|row| row.pearson);
        let text = match r {
            _ if attentions.len() == 1 => comparison.first.model().description(attention).to_owned(),
            Some(r) => format!("{attention}, r = {}{}", typeset(r, 2), limit(comparison, attention)),
            None => attention.to_string(),
        };
        Key::Heads(attention, text)
    };
    let base = Key::Base("intact model".to_owned());
    let regression = regression(comparison).map(|_| Key::Regression);
    attentions.iter().map(heads).chain([base]).chain(regression).collect()
}

/// What noise leaves of r for one type; nothing where it was not measured.
fn limit(comparison: &CrossDomain, attention: Attention) -> String {
    let Some(row) = comparison.of_type(attention) else { return String::new() };
    match row.pearson_ceiling {
        Some(ceiling) => format!(" of at most {}", typeset(ceiling, 2)),
        None if row.first_reliability.or(row.second_reliability).is_some() => " (noise only)".to_owned(),
        None => String::new(),
    }
}

/// The line over all heads; none where there are too few, or all are equal on the first split.
fn regression(comparison: &CrossDomain) -> Option<Line> {
    let side = |side: usize| -> Vec<f64> { comparison.points.iter().map(|(_, at)| at[side]).collect() };
    Line::fit(&side(0), &side(1)).ok()
}

/// A head, which shows what it overlaps.
fn dot(attention: Attention, radius: f64) -> Mark {
    Mark { opacity: 0.45, ..Mark::of(attention, radius) }
}

/// The intact model.
fn star(radius: f64) -> Mark {
    Mark { fill: YELLOW, ..Mark::new(Shape::Star, radius, INK) }
}

fn draw_text(page: &Area<'_>, text: &str, (left, baseline): (f64, f64), is_title: bool) -> Result<(), Error> {
    let (text, size) = fitted(text, SMALL, COLUMN_INCHES * 72.0 - left - RIGHT);
    let color = if is_title { GREY } else { INK };
    TextStyle::new(size, color, HPos::Left).write(page, &text, (points(left), points(baseline)))
}

/// Two columns of entries, filled line by line.
fn draw_legend(page: &Area<'_>, keys: &[Key], top: f64) -> Result<(), Error> {
    let column = (COLUMN_INCHES * 72.0 - TEXT_LEFT - RIGHT) / 2.0;
    for (index, key) in keys.iter().enumerate() {
        let left = TEXT_LEFT + column * (index % 2) as f64;
        let baseline = top + LINE * (index / 2) as f64;
        let middle = (points(left + KEY / 2.0 - 2.0), points(baseline - SMALL * 0.355));
        let text = match key {
            Key::Heads(attention, text) => {
                dot(*attention, 2.4).draw(page, middle)?;
                text
            }
            Key::Base(text) => {
                star(2.6).draw(page, middle)?;
                text
            }
            Key::Regression => {
                draw_regression_key(page, middle)?;
                "regression, 95 % band"
            }
        };
        let at = (points(left + KEY), points(baseline));
        let (text, size) = fitted(text, SMALL, column - KEY - 2.0);
        TextStyle::new(size, INK, HPos::Left).write(page, &text, at)?;
    }
    Ok(())
}

fn draw_regression_key(page: &Area<'_>, (x, y): (i32, i32)) -> Result<(), Error> {
    let (across, down) = (points(5.0), points(3.0));
    let corners =
        vec![(x - across, y - down), (x + across, y - down), (x + across, y + down), (x - across, y + down)];
    page.draw(&Polygon::new(corners, GREY.mix(BAND).filled())).map_err(to_error)?;
    page.draw(&PathElement::new(vec![(x - across, y), (x + across, y)], stroke(INK, LINE_WIDTH)))
        .map_err(to_error)
}

fn draw_plot(page: &Area<'_>, comparison: &CrossDomain, top: f64) -> Result<(), Error> {
    let (first, second) = (&comparison.first, &comparison.second);
    let scale = |side: usize, base: f64| scale(comparison.points.iter().map(|(_, at)| at[side]), base);
    let (x, y) = (scale(0, first.base), scale(1, second.base));
    let place = Place {
        left: TEXT_LEFT + 10.0 + y.widest_number(),
        right: COLUMN_INCHES * 72.0 - RIGHT,
        top,
        bottom: top + HEIGHT,
    };
    let axes = Axes::new(page, place, x, y);
    axes.draw_grid()?;
    let line = regression(comparison).map(|line| sampled(comparison, &line));
    line.as_ref().map_or(Ok(()), |line| draw_band(&axes, line, y))?;
    let radius = if comparison.points.len() > 100 { 1.7 } else { 2.1 };
    for (attention, [first, second]) in &comparison.points {
        dot(*attention, radius).draw(page, axes.at(*first, *second))?;
    }
    line.as_ref().map_or(Ok(()), |line| draw_line(&axes, line, y))?;
    star(3.4).draw(page, axes.at(first.base, second.base))?;
    axes.draw_x_axis(true)?;
    axes.draw_y_axis()?;
    draw_labels(page, comparison, place)
}

/// What both axes show, in smaller type where the names of splits are long.
fn draw_labels(page: &Area<'_>, comparison: &CrossDomain, place: Place) -> Result<(), Error> {
    let scores = comparison.first.metric.axis_label();
    let label = |split: &str| format!("{scores} with one head masked, {split}");
    let label = |split: &str, room: f64| fitted(&label(split), SIZE, room);
    let (text, size) = label(&comparison.pair.first, place.right - place.left);
    let middle = points((place.left + place.right) / 2.0);
    let below = (middle, points(place.bottom + 22.5));
    TextStyle::new(size, INK, HPos::Center).write(page, &text, below)?;
    let (text, size) = label(&comparison.pair.second, HEIGHT);
    let beside = (points(TEXT_LEFT), points(place.top + HEIGHT / 2.0));
    TextStyle::new(size, INK, HPos::Center).write_upwards(page, &text, beside)
}

/// Holds all scores and the base score; never so short that rounding errors fill it.
fn scale(scores: impl Iterator<Item = f64>, base: f64) -> Scale {
    let (low, high) =
        scores.fold((base, base), |(low, high): (f64, f64), score| (low.min(score), high.max(score)));
    let least = (low.abs().max(high.abs()) * 1e-3).max(1e-3);
    let missing = (least - (high - low)).max(0.0);
    let (low, high) = (low - missing / 2.0, high + missing / 2.0);
    let air = (high - low) * 0.05;
    Scale { low: low - air, high: high + air, step: Step::covering(high - low, 5) }
}

/// A place on the line: x, y, and the ends of its band.
type Sample = (f64, f64, (f64, f64));

/// The line between the least and the greatest score.
fn sampled(comparison: &CrossDomain, line: &Line) -> Vec<Sample> {
    let scores = || comparison.points.iter().map(|(_, at)| at[0]);
    let (low, high) = (scores().fold(f64::INFINITY, f64::min), scores().fold(f64::NEG_INFINITY, f64::max));
    let places = (0..=STEPS).map(|step| low + (high - low) * step as f64 / STEPS as f64);
    places.map(|x| (x, line.at(x), line.band(x))).collect()
}

/// The band, cut off at the ends of the y axis.
fn draw_band(axes: &Axes<'_, '_>, line: &[Sample], y: Scale) -> Result<(), Error> {
    let lower = line.iter().map(|(x, _, (low, _))| (*x, low.clamp(y.low, y.high)));
    let upper = line.iter().rev().map(|(x, _, (_, high))| (*x, high.clamp(y.low, y.high)));
    let band = Polygon::new(lower.chain(upper).collect::<Vec<_>>(), GREY.mix(BAND).filled());
    axes.data.draw(&band).map_err(to_error)
}

/// The part of the line that is within the y axis, from end to end.
fn draw_line(axes: &Axes<'_, '_>, line: &[Sample], y: Scale) -> Result<(), Error> {
    let mut inside =
        line.iter().filter(|(_, at, _)| (y.low..=y.high).contains(at)).map(|(x, at, _)| (*x, *at));
    let (Some(first), Some(last)) = (inside.next(), inside.next_back()) else { return Ok(()) };
    axes.data.draw(&PathElement::new(vec![first, last], stroke(INK, LINE_WIDTH))).map_err(to_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross_domain::tests::{correlation, cross_domain};
    use crate::metric::Metric;
    use crate::test_rows;

    /// x = 2, 1, 0, -1, -2 around its mean and y = 1, 0.5, -0.5, 0, -1, so r = 4.5 / sqrt(10 * 2.5) = 0.9; over enc-enc
    /// x = 1, 0, -1 and y = 1, -1, 0, so r = 1 / 2.
    const POINTS: [(&str, [f64; 2]); 5] = [
        ("enc-dec", [30.0, 20.0]),
        ("enc-enc", [29.0, 19.5]),
        ("enc-enc", [28.0, 18.5]),
        ("enc-enc", [27.0, 19.0]),
        ("dec-dec", [26.0, 18.0]),
    ];

    fn of_points(points: &[(&str, [f64; 2])]) -> CrossDomain {
        cross_domain(points, vec![correlation("all", points)])
    }

    fn drawn(comparison: &CrossDomain) -> Figure {
        figure2(comparison, Some(&test_rows::published())).unwrap()
    }

    #[test]
    fn the_labels_are_text_in_the_svg() {
        let rows = vec![correlation("all", &POINTS), correlation("enc-enc", &POINTS)];
        let figure = drawn(&cross_domain(&POINTS, rows));
        for label in [
            "demo-x (demo language), test and shifted",
            "BLEU with one head masked, test",
            "BLEU with one head masked, shifted",
            "Pearson r = 0.90 [0.25, 0.95] (p &lt; 0.001), Spearman \u{3c1} = \u{2212}0.25 (p = 0.125)",
            "agreement, without noise about 1.00",
            "ceiling of r 0.60: reliability 0.90 (test) and 0.40 (shifted)",
            "; 5 heads",
            "5 most important heads: 1 in common (0.3 by chance)",
            "Figure 2a of the paper (newstest2013, MTNT): r = 0.25",
            "enc-enc, r = 0.50 of at most 0.60",
            "dec-dec",
            "intact model",
            "regression, 95 % band",
        ] {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
    }

    #[test]
    fn only_what_is_comparable_stands_beside_the_paper() {
        let with_metric = |attention, metric| {
            let mut comparison = of_points(&[(attention, [29.0, 19.0]), (attention, [28.0, 18.5])]);
            comparison.first.metric = Metric::new(metric);
            drawn(&comparison)
        };
        let bert = "Figure 2b of the paper (MNLI matched, mismatched): r = 0.75";
        assert!(with_metric("self", "accuracy").svg().contains(bert));
        assert!(!with_metric("self", "f1").svg().contains("of the paper"));
        assert!(!with_metric("enc-enc", "accuracy").svg().contains("of the paper"));
    }

    #[test]
    fn odd_scores_can_be_drawn() {
        let cases: [&[[f64; 2]]; 6] = [
            &[[30.0, 20.0]],
            &[[30.0, 20.0]; 5],
            &[[30.0, 19.0], [30.0, 18.0], [30.0, 17.0]],
            &[[29.0, 20.0], [28.0, 20.0], [27.0, 20.0]],
            &[[-9e8, 9e8], [9e8, -9e8], [0.0, 1e-300]],
            &[[0.0, 0.0], [1.0, 50.0], [2.0, 0.0]],
        ];
        for case in cases {
            let points: Vec<_> = case.iter().map(|&at| ("self", at)).collect();
            let figure = drawn(&of_points(&points));
            assert!(figure.svg().ends_with("</svg>\n"), "{case:?}");
            assert!(!figure.svg().contains("NaN"), "{case:?}");
        }
    }

    #[test]
    fn what_does_not_vary_is_undefined_and_has_no_line() {
        let mut comparison = of_points(&[("self", [30.0, 20.0]); 1]);
        (comparison.all.pearson, comparison.all.spearman) = (None, None);
        let svg = drawn(&comparison).svg().to_owned();
        assert!(svg.contains("Pearson r undefined, Spearman \u{3c1} undefined"));
        assert!(!svg.contains("regression"));
    }

    #[test]
    fn equal_rows_give_equal_files() {
        let draw = || drawn(&of_points(&POINTS));
        assert_eq!(draw(), draw());
        assert_eq!(draw().png().unwrap(), draw().png().unwrap());
    }
}
