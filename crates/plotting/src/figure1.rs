//! Figure 1: histogram of the scores with one head masked (Michel et al. 2019, Section 3.2).
use plotters::element::Rectangle;
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use crate::Error;
use crate::attention::{Attention, FileNames, Selection};
use crate::figure::axes::{Axes, Place, Scale, draw_dashes, draw_y_label};
use crate::figure::bins::Bins;
use crate::figure::canvas::{Area, COLUMN_INCHES, Figure, points, to_error};
use crate::figure::palette::{GREY, INK, SKY, VERMILLION};
use crate::figure::text::{SMALL, TextStyle, fitted};
use crate::paper::{Published, PublishedFigure1b};
use crate::sweep::Sweep;

/// Names of its files: the paper has one histogram for translation and one for BERT.
pub const FILE_NAMES: FileNames =
    FileNames { translation: "figure1", bert: "figure1b", language_model: "figure1-self" };

/// Margins around the plots, in points: for the numbers, labels, title and legend.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 9.0;
const TOP: f64 = 31.0;
const BOTTOM: f64 = 29.0;
/// Height of a line of the title or legend, in points.
const LINE: f64 = 11.0;

/// Height of a plot that stands alone, in points.
const ALONE: f64 = 106.0;
/// Height of one of several plots, in points.
const STACKED: f64 = 62.0;
/// Room above each of several plots for its name, in points.
const NAME: f64 = 17.0;

/// The scores axis is at least this many bins long.
const FEWEST: f64 = 12.0;

const BAR: RGBColor = SKY;
const BASE: RGBColor = VERMILLION;

/// One plot for each selected attention type, one above the other over the same scores; for accuracies of BERT with
/// the `published` ones in words.
///
/// # Errors
/// If `sweep` has no rows of a selected type, or drawing fails.
pub fn figure1(sweep: &Sweep, selection: Selection, published: Option<&Published>) -> Result<Figure, Error> {
    let attentions = selection.of(&sweep.attentions());
    let groups =
        attentions.iter().map(|&attention| scores(sweep, attention)).collect::<Result<Vec<_>, _>>()?;
    let paper = published.and_then(|published| paper_line(sweep, &attentions, published));
    let top = TOP + paper.as_ref().map_or(0.0, |_| LINE);
    let panels: Vec<Panel> = attentions
        .iter()
        .zip(Bins::of_groups(&groups, sweep.base))
        .zip(places(attentions.len(), top))
        .map(|((&attention, bins), place)| Panel { attention, bins, place })
        .collect();
    let bottom = panels.last().map_or(top + ALONE, |panel| panel.place.bottom);
    let size = (COLUMN_INCHES, ((bottom + BOTTOM) / 72.0 * 100.0).round() / 100.0);
    Figure::draw(size, &title(sweep, &attentions), |page| {
        draw(page, sweep, &panels)?;
        paper.map_or(Ok(()), |paper| draw_line(page, 2, &paper))
    })
}

/// What one plot shows and where.
struct Panel {
    attention: Attention,
    bins: Bins,
    place: Place,
}

fn scores(sweep: &Sweep, attention: Attention) -> Result<Vec<f64>, Error> {
    Ok(sweep.family(attention)?.iter().map(|row| row.score).collect())
}

/// What the paper has, where it is comparable at all.
fn paper_line(sweep: &Sweep, attentions: &[Attention], published: &Published) -> Option<String> {
    let PublishedFigure1b { base, lowest, highest } = published.figure1b;
    (attentions == [Attention::SelfAttention] && sweep.is_like_figure1b()).then(|| {
        format!("Figure 1b of the paper (MNLI): {base:.1} %, masked {lowest:.1}\u{2013}{highest:.1} %")
    })
}

fn places(panels: usize, margin: f64) -> Vec<Place> {
    let (height, name) = if panels == 1 { (ALONE, 0.0) } else { (STACKED, NAME) };
    let right = COLUMN_INCHES * 72.0 - RIGHT;
    let place = |index: usize| {
        let top = margin - name / 4.0 + name + index as f64 * (height + name);
        Place { left: LEFT, right, top, bottom: top + height }
    };
    (0..panels).map(place).collect()
}

fn title(sweep: &Sweep, attentions: &[Attention]) -> String {
    match attentions {
        [one] => format!("{}; {one}", sweep.title()),
        _ => sweep.title(),
    }
}

fn draw(page: &Area<'_>, sweep: &Sweep, panels: &[Panel]) -> Result<(), Error> {
    let (Some(first), Some(last)) = (panels.first(), panels.last()) else { return Ok(()) };
    let attentions: Vec<_> = panels.iter().map(|panel| panel.attention).collect();
    draw_line(page, 0, &title(sweep, &attentions))?;
    draw_legend(page, &format!("base {}", sweep.metric.described(sweep.base)))?;
    let x = x_scale(sweep, &first.bins);
    // One scale for all, so that bars can be compared between panels.
    let highest = panels.iter().map(|panel| panel.bins.highest()).max().unwrap_or(0);
    let y = Scale::counts(highest, first.place.most_ticks());
    for panel in panels {
        let is_last = panel.attention == last.attention;
        let axes = draw_panel(page, panel, [x, y], sweep.base, is_last)?;
        if is_last {
            axes.draw_x_label(&format!("{} with one head masked", sweep.metric.axis_label()))?;
        }
        if panels.len() > 1 {
            draw_name(page, sweep, panel)?;
        }
    }
    draw_y_label(page, "number of heads", first.place.top, last.place.bottom)
}

/// Holds all bins and the base score; never so short that one bin fills it.
fn x_scale(sweep: &Sweep, bins: &Bins) -> Scale {
    let (low, high) = bins.range();
    let (low, high) = (low.min(sweep.base), high.max(sweep.base));
    let missing = (FEWEST * bins.width() - (high - low)).max(0.0);
    Scale::around(low - missing / 2.0, high + missing / 2.0)
}

fn draw_panel<'page, 'svg>(
    page: &'page Area<'svg>,
    panel: &Panel,
    [x, y]: [Scale; 2],
    base: f64,
    numbered: bool,
) -> Result<Axes<'page, 'svg>, Error> {
    let axes = Axes::new(page, panel.place, x, y);
    axes.draw_grid()?;
    for (low, high, count) in panel.bins.iter().filter(|(_, _, count)| *count > 0) {
        let mut bar = Rectangle::new([(low, 0.0), (high, count as f64)], BAR.filled());
        bar.set_margin(0, 0, 1, 2); // a white gap between neighbours
        axes.data.draw(&bar).map_err(to_error)?;
    }
    axes.draw_reference(base, BASE)?;
    axes.draw_x_axis(numbered)?;
    axes.draw_y_axis()?;
    Ok(axes)
}

/// What a caption would say, in line 0 or 2; the legend is in line 1.
fn draw_line(page: &Area<'_>, line: usize, text: &str) -> Result<(), Error> {
    let (text, size) = fitted(text, SMALL, COLUMN_INCHES * 72.0 - LEFT - RIGHT);
    let baseline = LINE * (line + 1) as f64;
    TextStyle::new(size, GREY, HPos::Left).write(page, &text, (points(LEFT), points(baseline)))
}

fn draw_legend(page: &Area<'_>, text: &str) -> Result<(), Error> {
    let (left, baseline) = (points(LEFT), points(2.0 * LINE));
    let middle = baseline - points(SMALL * 0.355);
    draw_dashes(page, [(left, middle), (left + points(18.0), middle)], BASE)?;
    TextStyle::new(SMALL, INK, HPos::Left).write(page, text, (left + points(22.0), baseline))
}

fn draw_name(page: &Area<'_>, sweep: &Sweep, panel: &Panel) -> Result<(), Error> {
    let text = format!("{} ({})", panel.attention, sweep.model().description(panel.attention));
    let at = (points(LEFT), points(panel.place.top - 5.0));
    TextStyle::new(SMALL, INK, HPos::Left).write(page, &text, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use crate::test_rows;

    fn sweep(attentions: &[&str], scores: &[f64]) -> Sweep {
        let family = |attention| {
            let heads = (1..).zip(scores);
            heads.map(move |(head, &score)| test_rows::row(attention, (1, head), 30.0, score))
        };
        test_rows::sweep(attentions.iter().flat_map(|attention| family(attention)).collect()).unwrap()
    }

    fn drawn(sweep: &Sweep, selection: Selection) -> Figure {
        figure1(sweep, selection, Some(&test_rows::published())).unwrap()
    }

    #[test]
    fn the_labels_are_text_in_the_svg() {
        let figure = drawn(&sweep(&["enc-enc"], &[29.0, 29.9, 30.1]), Selection::Paper);
        for label in ["BLEU with one head masked", "number of heads", "base BLEU 30.00", "demo language"] {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
    }

    #[test]
    fn only_accuracies_of_bert_are_compared_with_those_of_the_paper() {
        let paper = "Figure 1b of the paper (MNLI): 7.0 %, masked 6.0\u{2013}9.0 %";
        let scored = |attention, metric| {
            let mut sweep = sweep(&[attention], &[29.0, 29.9, 30.1]);
            sweep.metric = Metric::new(metric);
            drawn(&sweep, Selection::Paper)
        };
        let figure = scored("self", "accuracy");
        for label in ["accuracy (%) with one head masked", "base accuracy 30.00 %", paper] {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
        assert!(!scored("self", "f1").svg().contains(paper));
        assert!(!scored("enc-enc", "accuracy").svg().contains(paper));
    }

    #[test]
    fn odd_scores_can_be_drawn() {
        let cases: [&[f64]; 7] =
            [&[30.0], &[0.0], &[0.0, 0.0], &[30.0; 5], &[-12.0, 1e9], &[29.9999, 29.9998], &[30.0, 1e-300]];
        for scores in cases {
            let figure = drawn(&sweep(&["self"], scores), Selection::Paper);
            assert!(figure.svg().ends_with("</svg>\n"), "{scores:?}");
        }
    }

    #[test]
    fn each_type_has_its_panel() {
        let sweep = sweep(&["enc-enc", "enc-dec", "dec-dec"], &[29.0, 30.0]);
        let all = drawn(&sweep, Selection::All);
        for name in ["encoder self-attention", "encoder-decoder attention", "decoder self-attention"] {
            assert!(all.svg().contains(name), "`{name}` is missing");
        }
        let one = drawn(&sweep, Selection::One(Attention::DecDec));
        assert!(!one.svg().contains("enc-enc"));
        assert!(figure1(&sweep, Selection::One(Attention::SelfAttention), None).is_err());
    }

    #[test]
    fn equal_rows_give_equal_files() {
        let draw = || drawn(&sweep(&["enc-enc"], &[29.0, 29.9, 30.1]), Selection::Paper);
        assert_eq!(draw(), draw());
        assert_eq!(draw().png().unwrap(), draw().png().unwrap());
    }
}
