//! Figures 3 and 6: the score over the share of masked heads (Michel et al. 2019, Section 4.2 and Appendix B).
use plotters::style::RGBColor;

use records::Order;

use crate::Error;
use crate::figure::canvas::Figure;
use crate::figure::legend::Entry;
use crate::figure::lines::{Cut, Floor, Line, LinePlot, Point, Style};
use crate::figure::mark::Shape;
use crate::figure::palette::{BLUE, BROWN, GREEN, GREY, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION};
use crate::metric::Metric;
use crate::number::{share, short};
use crate::origin::{Model, is_demo};
use crate::pruning::Pruning;
use crate::pruning::curve::{Series, percent};
use crate::pruning::order::Scope;
use crate::significance::{Adjustment, Criterion, Which};

/// Which figure of the paper a subject belongs to, without extension: `figure3` has the translator and BERT on MNLI, for
/// which our translators, MNLI and the demos stand, and language models, which the paper does not have; and `figure6` the other classifiers.
///
/// Differs from the paper: Figure 6 also has a translator (IWSLT), which is a `figure3` here.
pub fn file_stem(pruning: &Pruning) -> &'static str {
    let subject = &pruning.file.subject;
    let is_third = pruning.is_translator()
        || pruning.model() == Model::Language
        || is_demo(subject)
        || subject.contains("mnli");
    if is_third { "figure3" } else { "figure6" }
}

/// The curves over all heads of the model, single lines for random orders, dashed ones for reversed orders; that of
/// importance says which points are a significant loss and how many heads can go by either rule.
///
/// Differs from the paper: there the oracle is dashed.
///
/// # Errors
/// If there are no such curves, or drawing fails.
pub fn figure3(pruning: &Pruning, criterion: Criterion) -> Result<Figure, Error> {
    let series = pruning.of(Scope::All)?;
    let importance = pruning.find(Scope::All, Order::Importance);
    let plot = LinePlot {
        title: pruning.title(),
        head: head(pruning),
        lines: series.iter().map(|series| line(pruning, series, criterion)).collect(),
        base: base(pruning),
        floors: pruning
            .floors()
            .get(&Scope::All)
            .map(|row| floor(pruning, row.score, "", GREY))
            .into_iter()
            .collect(),
        cuts: importance.map_or(Vec::new(), |series| cuts(pruning, series, criterion)),
        hollow: importance
            .filter(|series| series.has_loss(criterion))
            .map(|_| hollow(&pruning.metric, criterion)),
        labels: ["heads masked (%)".to_owned(), pruning.metric.axis_label()],
    };
    plot.figure()
}

/// Small print: what was scored, and how importance was estimated.
pub(crate) fn head(pruning: &Pruning) -> Vec<String> {
    std::iter::once(pruning.title()).chain(pruning.estimate()).collect()
}

/// The intact model, as a value and in words.
pub(crate) fn base(pruning: &Pruning) -> (f64, String) {
    let metric = &pruning.metric;
    (pruning.base, format!("base {}", metric.described(pruning.base)))
}

/// The line of a score without any head; `heads` are named in front of it.
pub(crate) fn floor(pruning: &Pruning, value: f64, heads: &str, color: RGBColor) -> Floor {
    let label = format!("{heads} floor").trim_start().to_owned();
    let name = format!("{label}: all masked, {}", pruning.metric.amount(value));
    Floor { value, label, name, color }
}

/// The points of all runs of a curve, in pieces between which steps are missing; `marks_loss` makes hollow what is
/// significantly worse than the base.
pub(crate) fn pieces(series: &Series, criterion: Criterion, marks_loss: bool) -> Vec<Vec<Point>> {
    let pieces =
        series.runs.iter().flat_map(|run| run.steps.chunk_by(|left, right| right.step == left.step + 1));
    let point =
        |row| Point { x: percent(row), y: row.score, is_hollow: marks_loss && criterion.is_loss(row) };
    pieces.map(|piece| piece.iter().map(point).collect()).collect()
}

/// The words for hollow marks.
pub(crate) fn worse_than_base(metric: &Metric, criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "",
        Adjustment::Family => ", adjusted",
        Adjustment::Bh => ", BH",
    };
    format!("significantly {} base (p < {}{adjustment})", metric.worse_side(), short(criterion.alpha))
}

fn hollow(metric: &Metric, criterion: Criterion) -> Entry {
    let style = style(Order::Importance).width(0.0);
    Entry { style, is_hollow: true, text: format!("importance, {}", worse_than_base(metric, criterion)) }
}

/// How many heads can go, by both rules.
fn cuts(pruning: &Pruning, series: &Series, criterion: Criterion) -> Vec<Cut> {
    let rules = pruning.rules(criterion);
    let cut = |which| {
        let removable = series.removable(rules, which)?;
        let share = format!("{} %", share(removable.percent, removable.is_open));
        let (label, name, style) = match which {
            Which::ShownSafe => ("safe", "shown safe to remove by importance", Style::line(INK).width(0.6)),
            Which::NoSignificantLoss => (
                "no significant loss",
                "the same by the paper\u{2019}s rule",
                Style::line(GREY).width(0.5).dashed(),
            ),
        };
        let (label, name) = (format!("{label} {share}"), format!("{name}: {share}"));
        Some(Cut { x: removable.percent, label, name, style })
    };
    Which::BOTH.into_iter().filter_map(cut).collect()
}

fn line(pruning: &Pruning, series: &Series, criterion: Criterion) -> Line {
    let order = series.curve.order;
    let name = match order {
        Order::Random if series.runs.len() > 1 => format!("random, {} orders", series.runs.len()),
        Order::AttentionGradient => "attention gradient".to_owned(),
        Order::ImportanceEntropy => "importance + entropy".to_owned(),
        Order::GreedyForward => "greedy search".to_owned(),
        Order::Swap => "search by swaps".to_owned(),
        order => order.name().to_owned(),
    };
    let is_complement = series.curve.is_complement;
    let mut pieces = pieces(series, criterion, order == Order::Importance && !is_complement);
    // Swaps are tried at one number of heads: the intact model is not of their making.
    pieces.iter_mut().for_each(|piece| piece.retain(|point| order != Order::Swap || point.x > 0.0));
    let (name, style) = turned(name, style(order), is_complement);
    Line { name: name + pruning.state(series), style, pieces }
}

/// Name and look of a curve or of its complement.
pub(crate) fn turned(name: String, style: Style, is_complement: bool) -> (String, Style) {
    if !is_complement {
        return (name, style);
    }
    (format!("{name}, complement"), Style::line(style.color).dashed())
}

fn style(order: Order) -> Style {
    match order {
        Order::Importance => Style::line(BLUE).width(1.1).marked(Shape::Circle, 1.7),
        Order::Oracle => Style::line(VERMILLION).width(1.0),
        Order::Random => Style::line(SILVER).width(0.4),
        Order::Entropy => Style::line(ORANGE).marked(Shape::Triangle, 1.2),
        Order::Confidence => Style::line(GREEN).marked(Shape::Square, 1.2),
        Order::AttentionGradient => Style::line(PURPLE).marked(Shape::Diamond, 1.2),
        Order::ImportanceEntropy => Style::line(SKY).marked(Shape::Wedge, 1.2),
        Order::GreedyForward => Style::line(INK).marked(Shape::Cross, 1.4),
        Order::Swap => Style::line(BROWN).width(0.0).marked(Shape::Diamond, 2.3),
    }
}

#[cfg(test)]
mod tests {
    use records::PruningRow;

    use super::*;
    use crate::result_file::ResultFile;
    use crate::test_rows::pruning_row as row;

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    fn pruning(subject: &str, rows: Vec<PruningRow>) -> Pruning {
        Pruning::from_rows(ResultFile::unsigned(subject, "a.csv"), rows).unwrap()
    }

    /// Three of ten heads by importance, the third with a loss; two random orders.
    fn rows() -> Vec<PruningRow> {
        let tested = |step, score, p_value| PruningRow {
            p_value: Some(p_value),
            p_adjusted: Some(p_value),
            delta_low: Some(score - 30.0 - 0.5),
            ..row("all", "importance", None, step, (step, 10), score)
        };
        let mut rows = vec![row("all", "importance", None, 0, (0, 10), 30.0)];
        rows.extend([tested(1, 30.1, 0.4), tested(2, 29.8, 0.2), tested(3, 20.0, 0.001)]);
        for seed in 1..=2 {
            rows.extend((0..4).map(|step| {
                row("all", "random", Some(seed), step, (step, 10), 30.0 - (step as u64 * seed) as f64)
            }));
        }
        rows.push(PruningRow { complement: true, ..row("all", "importance", None, 1, (1, 10), 25.0) });
        rows.push(row("all", "floor", None, 0, (10, 10), 0.5));
        rows
    }

    #[test]
    fn legend_and_axes_say_what_is_drawn() {
        let figure = figure3(&pruning("demo-x", rows()), CRITERION).unwrap();
        let labels = [
            "heads masked (%)",
            "random, 2 orders",
            "base BLEU 30.00",
            "importance, significantly below base (p &lt; 0.01)",
            "shown safe to remove by importance: 10 %",
            "the same by the paper\u{2019}s rule: 20 %",
            "importance, complement",
            "floor: all masked, 0.50",
        ];
        for label in labels {
            assert!(figure.svg().contains(label), "`{label}` is missing in {}", figure.svg());
        }
    }

    /// Only the third point is a loss, and only by an alpha that reaches it.
    #[test]
    fn marks_follow_the_criterion() {
        let hollow = |alpha| {
            let pruning = pruning("demo-x", rows());
            let series = pruning.find(Scope::All, Order::Importance).unwrap();
            let pieces = pieces(series, Criterion { alpha, ..CRITERION }, true);
            pieces.iter().flatten().map(|point| point.is_hollow).collect::<Vec<_>>()
        };
        assert_eq!(hollow(0.01), [false, false, false, true]);
        assert_eq!(hollow(0.0005), [false; 4]);
        let figure = figure3(&pruning("demo-x", rows()), Criterion { alpha: 0.0005, ..CRITERION }).unwrap();
        assert!(!figure.svg().contains("significantly below"));
        assert!(figure.svg().contains("no significant loss \u{2265} 30 %"));
    }

    /// Steps 0, 1 and 10 of a killed run: the last one stands alone.
    #[test]
    fn nothing_is_drawn_across_missing_steps() {
        let step = |step| row("all", "importance", None, step, (step, 10), 30.0 - step as f64);
        let killed = pruning("demo-x", [0, 1, 10].map(step).into());
        let series = killed.find(Scope::All, Order::Importance).unwrap();
        let pieces = pieces(series, CRITERION, true);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let figure = figure3(&killed, CRITERION).unwrap();
        assert!(figure.svg().contains("importance, not finished") && !figure.svg().contains("shown safe"));
        let whole = figure3(&pruning("demo-x", (0..=10).map(step).collect()), CRITERION).unwrap();
        assert!(!whole.svg().contains("not finished"));
    }

    #[test]
    fn files_are_named_after_the_figures_of_the_paper() {
        let stem = |subject: &str, heads: &str| {
            let row = row("all", "importance", None, 1, (1, 10), 30.0);
            file_stem(&pruning(subject, vec![PruningRow { masked_heads: heads.to_owned(), ..row }]))
        };
        for (subject, heads) in
            [("x", "enc-enc:1:2"), ("minilm-mnli", "self:1:1"), ("demo-inference", "self:1:1")]
        {
            assert_eq!(stem(subject, heads), "figure3", "{subject}");
        }
        assert_eq!(stem("minilm-cola", "self:1:1"), "figure6");
    }

    #[test]
    fn odd_scores_can_be_drawn() {
        for scores in [vec![30.0], vec![30.0, 30.0], vec![9e8, -9e8], vec![30.0, 1e-300]] {
            let row = |(step, &score)| row("all", "oracle", None, step, (step, 10), score);
            let rows = scores.iter().enumerate().map(row).collect();
            let figure = figure3(&pruning("x", rows), CRITERION).unwrap();
            assert!(figure.svg().ends_with("</svg>\n"), "{scores:?}");
        }
        let alone = PruningRow { base_score: 9e8, ..row("all", "oracle", None, 0, (0, 10), 9e8) };
        assert!(figure3(&pruning("x", vec![alone]), CRITERION).unwrap().svg().contains("900000000.2"));
        let types = pruning("x", vec![row("enc-enc", "importance", None, 0, (0, 10), 30.0)]);
        let message = figure3(&types, CRITERION).unwrap_err().to_string();
        assert_eq!(message, "no rows for attention type all: `a.csv` has enc-enc");
    }

    #[test]
    fn equal_rows_give_equal_files() {
        let draw = || figure3(&pruning("demo-x", rows()), CRITERION).unwrap();
        assert_eq!(draw(), draw());
        assert_eq!(draw().png().unwrap(), draw().png().unwrap());
    }
}
