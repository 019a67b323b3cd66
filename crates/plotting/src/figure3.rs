//! Figures 3 and 6: the score over the share of masked heads (Michel et al. 2019, Section 4.2 and Appendix B).
use crate::Error;
use crate::figure::canvas::Figure;
use crate::figure::legend::Entry;
use crate::figure::lines::{Line, LinePlot, Point, Style};
use crate::figure::mark::Shape;
use crate::figure::palette::{BLUE, BROWN, GREEN, INK, ORANGE, PURPLE, SILVER, SKY, VERMILLION};
use crate::number::{share, short};
use crate::pruning::Pruning;
use crate::pruning::curve::{self, Removable, Series};
use crate::pruning::order::{Order, Scope};
use crate::significance::{Adjustment, Criterion};
use crate::sweep::is_demo;

/// Which figure of the paper a subject belongs to, without extension: `figure3` has the translator and BERT on MNLI, for
/// which our translators, MNLI and the demos stand, and `figure6` the other classifiers.
///
/// Differs from the paper: Figure 6 also has a translator (IWSLT), which is a `figure3` here.
pub fn file_stem(pruning: &Pruning) -> &'static str {
    let is_third = pruning.is_translator() || is_demo(&pruning.subject) || pruning.subject.contains("mnli");
    if is_third { "figure3" } else { "figure6" }
}

/// The curves over all heads of the model; that of importance says which points are a significant loss.
///
/// # Errors
/// If there are no such curves, or drawing fails.
pub fn figure3(pruning: &Pruning, criterion: Criterion) -> Result<Figure, Error> {
    let series = pruning.of(Scope::All)?;
    let importance = pruning.find(Scope::All, Order::Importance);
    let removable = importance.and_then(|series| series.removable(criterion));
    let plot = LinePlot {
        title: pruning.title(),
        head: head(pruning),
        lines: series.iter().map(|series| line(pruning, series, criterion)).collect(),
        base: base(pruning),
        cut: removable.as_ref().map(cut),
        hollow: importance.filter(|series| has_loss(series, criterion)).map(|_| hollow(criterion)),
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
    (pruning.base, format!("base {} {}", metric.label(), metric.amount(pruning.base, 2)))
}

/// Whether a curve has a mark that needs explaining.
pub(crate) fn has_loss(series: &Series, criterion: Criterion) -> bool {
    series.points(criterion).iter().any(|point| point.is_loss)
}

/// The points of a curve, in pieces between which steps are missing; `marks_loss` makes hollow what is significantly below
/// the base.
pub(crate) fn pieces(series: &Series, criterion: Criterion, marks_loss: bool) -> Vec<Vec<Point>> {
    let points = series.points(criterion);
    let point = |point: &curve::Point| Point {
        x: point.percent,
        y: point.score,
        spread: point.deviation,
        is_hollow: marks_loss && point.is_loss,
    };
    let pieces = points.chunk_by(|left, right| right.step == left.step + 1);
    pieces.map(|piece| piece.iter().map(point).collect()).collect()
}

/// The words for hollow marks.
pub(crate) fn below_base(criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "",
        Adjustment::Holm => ", Holm",
        Adjustment::Bh => ", BH",
    };
    format!("significantly below base (p < {}{adjustment})", short(criterion.alpha))
}

fn hollow(criterion: Criterion) -> Entry {
    let style = style(Order::Importance).width(0.0);
    Entry { style, is_hollow: true, text: format!("importance, {}", below_base(criterion)) }
}

fn cut(removable: &Removable) -> (f64, String, String) {
    let share = format!("{} %", share(removable.percent, removable.is_open));
    let name = format!("removable by importance without significant loss: {share}");
    (removable.percent, share, name)
}

fn line(pruning: &Pruning, series: &Series, criterion: Criterion) -> Line {
    let seeds = series.runs.len();
    let name = match series.order {
        Order::Random if seeds > 1 => format!("random, \u{b1}1 SD of {seeds}"),
        Order::AttentionGradient => "attention gradient".to_owned(),
        Order::ImportanceEntropy => "importance + entropy".to_owned(),
        Order::GreedyForward => "greedy search".to_owned(),
        Order::Swap => "search by swaps".to_owned(),
        order => order.name().to_owned(),
    };
    let style = if seeds > 1 { style(series.order).banded() } else { style(series.order) };
    let mut pieces = pieces(series, criterion, series.order == Order::Importance);
    // Swaps are tried at one number of heads: the intact model is not of their making.
    pieces.iter_mut().for_each(|piece| piece.retain(|point| series.order != Order::Swap || point.x > 0.0));
    Line { name: name + pruning.state(series), style, pieces }
}

fn style(order: Order) -> Style {
    match order {
        Order::Importance => Style::line(BLUE).width(1.1).marked(Shape::Circle, 1.7),
        Order::Oracle => Style::line(VERMILLION).width(1.0).dashed(),
        Order::Random => Style::line(SILVER).width(0.9),
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
    use std::path::PathBuf;

    use records::PruningRow;

    use super::*;
    use crate::test_rows::pruning_row as row;

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    fn pruning(subject: &str, rows: Vec<PruningRow>) -> Pruning {
        Pruning::from_rows(subject, PathBuf::from("a.csv"), rows).unwrap()
    }

    /// Three of ten heads by importance, the third with a loss; two random orders.
    fn rows() -> Vec<PruningRow> {
        let tested = |step, score, p_value| PruningRow {
            p_value: Some(p_value),
            p_holm: Some(p_value),
            ..row("all", "importance", None, step, (step, 10), score)
        };
        let mut rows = vec![row("all", "importance", None, 0, (0, 10), 30.0)];
        rows.extend([tested(1, 30.1, 0.4), tested(2, 29.8, 0.2), tested(3, 20.0, 0.001)]);
        for seed in 1..=2 {
            rows.extend((0..4).map(|step| {
                row("all", "random", Some(seed), step, (step, 10), 30.0 - (step as u64 * seed) as f64)
            }));
        }
        rows
    }

    #[test]
    fn legend_and_axes_say_what_is_drawn() {
        let figure = figure3(&pruning("demo-x", rows()), CRITERION).unwrap();
        let labels = [
            "heads masked (%)",
            "random, \u{b1}1 SD of 2",
            "base BLEU 30.00",
            "importance, significantly below base (p &lt; 0.01)",
            "removable by importance without significant loss: 20 %",
        ];
        for label in labels {
            assert!(figure.svg().contains(label), "`{label}` is missing in {}", figure.svg());
        }
        assert!(figure.svg().contains("polygon"), "no band was drawn");
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
        assert!(figure.svg().contains("\u{2265} 30 %"));
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
        assert!(figure.svg().contains("importance, not finished") && !figure.svg().contains("removable by"));
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
