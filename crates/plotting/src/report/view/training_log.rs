//! The training log. The paper has no such table.
use crate::findings::Results;
use charts::chart::{Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use charts::palette::{BLUE, VERMILLION};
use charts::scale::{Step, extent};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::TrainingRow;
use words::{fixed, scientific};

/// Tabulates the losses at each validation, and draws their curves if there are several.
pub fn sheet(log: &Results<TrainingRow>) -> Sheet {
    Sheet::new("training", (log.rows.len() > 1).then(|| figure(log)), [table(log)])
}

fn table(log: &Results<TrainingRow>) -> Table {
    let best = log.rows.iter().rposition(|row| row.best);
    let row = |(place, row): (usize, &TrainingRow)| {
        let loss = |loss: f64| Cell::printed(loss, |loss| fixed(loss, 3));
        let rate = Cell::printed(row.learning_rate, |rate| scientific(rate, 1));
        let score = row.dev_score.map(|score| Cell::printed(score, |score| fixed(score, 2)));
        let cells = [row.step.into(), loss(row.train_loss), loss(row.dev_loss), score.into(), rate];
        Row::new(row.epoch, cells.map(|cell: Cell| cell.marked(Some(place) == best)))
    };
    let subject = log.file.shown_subject();
    let title =
        format!("Losses while {subject} was trained, in {}, and the score on the development set", unit(log));
    Table::new("Training", log.file.label("training"), title)
        .columns(["Epoch", "Log"], ["updates", "training loss", "dev loss", "dev score", "learning rate"])
        .rows(log.rows.iter().enumerate().map(row))
        .mark("best by the score or, without one, by the loss on the development set".to_owned())
        .note(measured(log))
        .remark(log.file.remark())
}

fn figure(log: &Results<TrainingRow>) -> Chart {
    let points = |loss: fn(&TrainingRow) -> f64| -> Vec<(f64, f64)> {
        log.rows.iter().map(|row| (row.epoch as f64, loss(row))).collect()
    };
    let lines = [
        ("training loss", Mark::new(Shape::Circle, 1.6, BLUE), points(|row| row.train_loss)),
        ("dev loss", Mark::new(Shape::Square, 1.6, VERMILLION), points(|row| row.dev_loss)),
    ];
    let layers = lines.iter().flat_map(|(_, mark, points)| {
        [Layer::Line(points.clone(), Style::line(mark.color, 1.0)), Layer::Points(points.clone(), *mark)]
    });
    let layers = layers.collect();
    let x = extent(log.rows.iter().map(|row| row.epoch as f64));
    let ticks = Ticks::Round(Step::covering_whole(x.1 - x.0, 6), true);
    let epochs = Axis { ticks, ..Axis::of_at_least("epoch", x, 1.0) };
    let y = extent(log.rows.iter().flat_map(|row| [row.train_loss, row.dev_loss]).chain([0.0]));
    let axes = [epochs, Axis::around(format!("loss ({})", unit(log)), y.0, y.1)];
    let title = format!("Losses while {} was trained", log.file.shown_subject());
    Chart::new("Training", log.file.label("training-losses"), title)
        .note(measured(log))
        .note(log.file.remark())
        .entries(lines.map(|(name, mark, _)| Entry::mark(name, mark)))
        .panels(1, vec![Panel::new(axes, 90.0, layers)])
}

fn unit(log: &Results<TrainingRow>) -> &'static str {
    let is_of_squares = log.file.identity().is_some_and(|identity| identity.metric.starts_with("squared"));
    if is_of_squares { "squared errors" } else { "nats" }
}

/// Describes the measured losses and the seed, if the signature has them.
fn measured(log: &Results<TrainingRow>) -> Option<String> {
    let identity = log.file.identity()?;
    let seed = identity.seed.map_or(String::new(), |seed| format!("; seed {seed}"));
    Some(format!("{}{seed}", identity.metric))
}
