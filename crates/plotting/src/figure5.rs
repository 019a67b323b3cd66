//! Figure 5: what masking heads does to the score while a model is trained (Michel et al. 2019, Section 6).
use crate::Error;
use crate::dynamics::{Checkpoint, Dynamics};
use crate::figure::axes::Scale;
use crate::figure::canvas::Figure;
use crate::figure::lines::{Line, Point, Style};
use crate::figure::log::LogAxis;
use crate::figure::mark::Shape;
use crate::figure::palette::{BLUE, GREEN, PURPLE, SKY, ramp};
use crate::figure::panels::{Panel, Panels, Ticks};
use crate::number::tenths;
use crate::pruning::curve::percent;

/// Name of its files, without extension.
pub const FILE_STEM: &str = "figure5";

/// Shares of the width that the panels have: checkpoints have long names.
const WIDTHS: [f64; 2] = [0.56, 0.44];

/// Left one line for each share of masked heads over the training, right one for each of the first two and the last two
/// checkpoints over shares; scores in percent of the checkpoint's own.
///
/// # Errors
/// If no checkpoint has a score above 0, or drawing fails.
pub fn figure5(dynamics: &Dynamics) -> Result<Figure, Error> {
    let comparable = dynamics.comparable()?;
    let (metric, proportional) = (dynamics.metric.label(), dynamics.metric.proportional());
    let mut head = vec![dynamics.title()];
    head.extend(dynamics.file.origin.estimate().of_orders());
    head.extend(dynamics.notes());
    let plot = Panels {
        title: format!("{}; {metric} during training", dynamics.title()),
        head,
        panels: vec![over_training(dynamics, &comparable), over_shares(dynamics, &comparable)],
        base: (100.0, "0 %".to_owned()),
        label: format!("{proportional} (% of unpruned)"),
    };
    plot.figure()
}

fn over_training(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Panel {
    let numbers = comparable.iter().map(|checkpoint| dynamics.number(checkpoint));
    let axis = LogAxis::of(numbers);
    let shares = dynamics.shares();
    let line = |(index, &(masked, percent)): (usize, &(usize, f64))| Line {
        name: format!("{} %", tenths(percent)),
        style: share_style(index, shares.len()),
        pieces: over_checkpoints(dynamics, &axis, masked),
    };
    let name = |checkpoint: &&Checkpoint| {
        let number = dynamics.number(checkpoint);
        (axis.place(number), vec![number.to_string(), format!("[{}]", dynamics.unpruned(checkpoint))])
    };
    Panel {
        heading: "heads masked".to_owned(),
        lines: shares.iter().enumerate().map(line).collect(),
        x: axis.scale(),
        ticks: Ticks::Names(comparable.iter().map(name).collect()),
        gap: axis.gap(),
        label: format!("{}, log scale [unpruned {}]", dynamics.unit(), dynamics.metric.label()),
        share: WIDTHS[0],
    }
}

/// Points where `masked` heads are masked, in pieces between which a checkpoint lacks one.
fn over_checkpoints(dynamics: &Dynamics, axis: &LogAxis, masked: usize) -> Vec<Vec<Point>> {
    let at = |checkpoint: &Checkpoint| {
        let kept = checkpoint.kept(checkpoint.step(masked)?.score)?;
        Some(point(axis.place(dynamics.number(checkpoint)), kept))
    };
    let points: Vec<_> = dynamics.checkpoints().iter().map(at).collect();
    let pieces = points.split(Option::is_none).filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.iter().flatten().copied().collect()).collect()
}

fn over_shares(dynamics: &Dynamics, comparable: &[&Checkpoint]) -> Panel {
    let chosen = first_and_last_two(comparable);
    let line = |(checkpoint, style): (&&Checkpoint, Style)| Line {
        name: format!("{} [{}]", dynamics.name(checkpoint), dynamics.unpruned(checkpoint)),
        style,
        pieces: over_steps(checkpoint),
    };
    Panel {
        heading: format!("checkpoint [unpruned {}]", dynamics.metric.label()),
        lines: chosen.iter().zip(STYLES).map(line).collect(),
        x: Scale::around(0.0, 100.0),
        ticks: Ticks::Numbers,
        gap: None,
        label: "heads masked (%)".to_owned(),
        share: WIDTHS[1],
    }
}

/// The steps of a checkpoint, in pieces between which some are missing.
fn over_steps(checkpoint: &Checkpoint) -> Vec<Vec<Point>> {
    let pieces = checkpoint.steps().chunk_by(|left, right| right.step == left.step + 1);
    let at = |row| Some(point(percent(row), checkpoint.kept(row.score)?));
    pieces.map(|piece| piece.iter().filter_map(at).collect()).collect()
}

fn point(x: f64, y: f64) -> Point {
    Point { x, y, is_hollow: false }
}

/// The first two and the last two, each once.
fn first_and_last_two<'a>(all: &[&'a Checkpoint]) -> Vec<&'a Checkpoint> {
    let is_chosen = |index: usize| index < 2 || index + 2 >= all.len();
    all.iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, checkpoint)| *checkpoint).collect()
}

/// The looks of the checkpoints on the right.
const STYLES: [Style; 4] = [
    Style::line(SKY).width(1.0).marked(Shape::Circle, 1.6),
    Style::line(GREEN).width(1.0).marked(Shape::Square, 1.6),
    Style::line(PURPLE).width(1.0).marked(Shape::Triangle, 1.6),
    Style::line(BLUE).width(1.0).marked(Shape::Diamond, 1.6),
];

/// The looks of a share on the left: the more heads are masked, the darker; neighbours differ in shape.
fn share_style(index: usize, shares: usize) -> Style {
    let shapes = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Wedge, Shape::Diamond];
    let darkness = index as f64 / shares.saturating_sub(1).max(1) as f64;
    Style::line(ramp(darkness)).width(0.9).marked(shapes[index % shapes.len()], 1.4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use records::DynamicsRow;

    use super::*;
    use crate::dynamics::tests::dynamics;
    use crate::figure::layout::clash;
    use crate::test_rows::{checkpoint, dynamics_row};

    fn drawn(rows: Vec<DynamicsRow>) -> Figure {
        figure5(&dynamics(rows)).unwrap()
    }

    /// Six epochs of which the first has no score.
    fn rows() -> Vec<DynamicsRow> {
        let untrained = (0..3).map(|step| dynamics_row((Some(1), 100), step, 0.0, 0.5)).collect();
        let trained = (2..=6).map(|epoch| checkpoint(epoch, 5.0 * epoch as f64, &[90.0, 50.0]));
        std::iter::once(untrained).chain(trained).flatten().collect()
    }

    #[test]
    fn legends_and_axes_say_what_is_drawn() {
        let figure = drawn(rows());
        for label in [
            "BLEU (% of unpruned)",
            "epoch, log scale [unpruned BLEU]",
            "heads masked (%)",
            "\n0 %\n",
            "\n20 %\n",
            "\n[20.0]\n",
            "no percentages of a score of 0.0 or below: epoch 1",
        ] {
            assert!(figure.svg().contains(label), "`{label}` is missing in {}", figure.svg());
        }
        assert!(figure.svg().starts_with("<svg width=\"5.5in\""));
    }

    /// Epoch 1 has nothing to be a percentage of, so 2 and 3 are the first.
    #[test]
    fn the_right_has_the_first_two_and_the_last_two() {
        let figure = drawn(rows());
        let named = |epoch: usize| figure.svg().contains(&format!("epoch {epoch} ["));
        assert_eq!([1, 2, 3, 4, 5, 6].map(named), [false, true, true, false, true, true]);
        let of = |count: usize| {
            let dynamics = dynamics((1..=count).flat_map(|epoch| checkpoint(epoch, 5.0, &[])).collect());
            let chosen = first_and_last_two(&dynamics.comparable().unwrap());
            chosen.iter().filter_map(|checkpoint| checkpoint.epoch).collect::<Vec<_>>()
        };
        assert_eq!((of(1), of(2), of(3)), (vec![1], vec![1, 2], vec![1, 2, 3]));
        assert_eq!((of(4), of(7)), (vec![1, 2, 3, 4], vec![1, 2, 6, 7]));
    }

    /// Epochs 1, 10 and 100 at 10 % of the heads: 90, 80 and 85 % of the score, at logarithms 0, 1 and 2.
    #[test]
    fn a_share_is_followed_over_the_training() {
        let rows = [(1, 90.0), (10, 80.0), (100, 85.0)];
        let rows: Vec<_> = rows.iter().flat_map(|&(epoch, kept)| checkpoint(epoch, 30.0, &[kept])).collect();
        let followed = |rows: Vec<DynamicsRow>| {
            let dynamics = dynamics(rows);
            let panel = over_training(&dynamics, &dynamics.comparable().unwrap());
            let pieces = panel.lines[0].pieces.iter();
            pieces
                .map(|piece| piece.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(followed(rows.clone()), [vec![(0.0, 90.0), (1.0, 80.0), (2.0, 85.0)]]);
        let without_one = [&rows[..3], &rows[4..]].concat();
        assert_eq!(followed(without_one), [vec![(0.0, 90.0)], vec![(2.0, 85.0)]]);
    }

    #[test]
    fn nothing_is_drawn_across_missing_steps() {
        let mut rows = checkpoint(1, 10.0, &[95.0, 90.0, 70.0]);
        rows.remove(1);
        let dynamics = dynamics(rows);
        let pieces = over_steps(&dynamics.checkpoints()[0]);
        let places: Vec<Vec<_>> =
            pieces.iter().map(|piece| piece.iter().map(|point| (point.x, point.y)).collect()).collect();
        assert_eq!(places, [vec![(0.0, 100.0)], vec![(20.0, 90.0), (30.0, 70.0)]]);
        let unfinished = "not finished, steps or their tests are missing: epoch 1";
        assert!(figure5(&dynamics).unwrap().svg().contains(unfinished));
    }

    #[test]
    fn checkpoints_within_epochs_are_numbered_by_updates() {
        let row = |updates: usize, step| dynamics_row((None, updates), step, 30.0, 30.0 - step as f64);
        let figure = drawn(
            [0, 50, 100].iter().flat_map(|&updates| (0..3).map(move |step| row(updates, step))).collect(),
        );
        for label in ["updates, log scale [unpruned BLEU]", "\n0\n", "50 updates [30.0]"] {
            assert!(figure.svg().contains(label), "`{label}` is missing");
        }
        assert_eq!(clash(figure.svg()), None);
    }

    #[test]
    fn odd_scores_can_be_drawn() {
        for base in [0.05, 30.0, 5e8] {
            for score in [-5e8, 0.0, 9e8] {
                let figure = drawn(vec![
                    dynamics_row((Some(1), 1), 0, base, base),
                    dynamics_row((Some(1), 1), 1, base, score),
                ]);
                assert!(figure.svg().ends_with("</svg>\n"), "{base} {score}");
            }
        }
        let alone = drawn(vec![dynamics_row((None, 0), 0, 30.0, 30.0)]);
        assert_eq!(clash(alone.svg()), None);
        let message = figure5(&dynamics(vec![dynamics_row((None, 0), 0, 0.0, 0.0)])).unwrap_err().to_string();
        assert!(message.contains("has no checkpoint with a score above 0"), "{message}");
    }

    #[test]
    fn equal_rows_give_equal_files() {
        assert_eq!(drawn(rows()), drawn(rows()));
        assert_eq!(drawn(rows()).png().unwrap(), drawn(rows()).png().unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_text_overlaps_another(
            updates in prop::collection::btree_set(0_usize..100_000, 1..24),
            bases in prop::collection::vec(1.0_f64..100.0, 24),
            kept in prop::collection::vec(-30.0_f64..300.0, 1..10),
            metric in prop::sample::select(vec!["bleu", "accuracy", "matthews"]),
        ) {
            let rows: Vec<_> = updates.iter().zip(bases).flat_map(|(&updates, base)| {
                let rows = checkpoint(1, base, &kept).into_iter();
                let metric = metric.to_owned();
                rows.map(move |row| DynamicsRow { epoch: None, updates, metric: metric.clone(), ..row })
            }).collect();
            let figure = drawn(rows);
            prop_assert_eq!(clash(figure.svg()), None);
        }
    }
}
