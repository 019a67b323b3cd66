//! How a model was trained: the log of its training (no such table is in the paper).
use records::TrainingRow;

use crate::chart::{Axis, Chart, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use crate::origin;
use crate::palette::{BLUE, VERMILLION};
use crate::scale::{Step, extent};
use crate::source::ResultFile;
use crate::table::{Cell, Row, Table, names};
use crate::words::short;

/// Names of its files and of the experiment in their signatures.
pub const STEM: &str = "training";
pub const EXPERIMENT: &str = "train-subject";

/// One row for each validation.
pub fn table(file: &ResultFile, rows: &[TrainingRow]) -> Table {
    let best = rows.iter().rposition(|row| row.best);
    let row = |(place, row): (usize, &TrainingRow)| {
        let loss = |loss: f64| Cell::number(format!("{loss:.3}"), loss);
        let score = row.dev_score.map_or(Cell::default(), |score| Cell::number(format!("{score:.2}"), score));
        let rate = Cell::number(format!("{:.1e}", row.learning_rate), row.learning_rate);
        let updates = Cell::number(row.step.to_string(), row.step as f64);
        let cells = [updates, loss(row.train_loss), loss(row.dev_loss), score, rate];
        Row {
            label: row.epoch.to_string(),
            cells: cells.map(|cell| cell.marked(Some(place) == best)).to_vec(),
        }
    };
    Table {
        name: "Training",
        label: format!("training-{}", file.subject),
        title: format!(
            "Losses while {} was trained, in nats, and the score on the development set",
            title(file)
        ),
        headings: ["Epoch", "Log"],
        columns: names(&["updates", "training loss", "dev loss", "dev score", "learning rate"]),
        rows: rows.iter().enumerate().map(row).collect(),
        mark: Some("best by the score or, without one, by the loss on the development set".to_owned()),
        summary: measured(file).into_iter().collect(),
        remarks: file.remark().into_iter().collect(),
        ..Table::default()
    }
}

/// Both losses over the epochs.
pub fn figure(file: &ResultFile, rows: &[TrainingRow]) -> Chart {
    let line = |loss: fn(&TrainingRow) -> f64, color, shape| {
        let points: Vec<_> = rows.iter().map(|row| (row.epoch as f64, loss(row))).collect();
        [
            Layer::Line(points.clone(), Style::line(color, 1.0)),
            Layer::Points(points, Mark::new(shape, 1.6, color)),
        ]
    };
    let x = extent(rows.iter().map(|row| row.epoch as f64));
    let ticks = Ticks::Round(Step::covering_whole(x.1 - x.0, 6), true);
    let epochs = Axis { ticks, ..Axis::of_at_least("epoch", x, 1.0) };
    let y = extent(rows.iter().flat_map(|row| [row.train_loss, row.dev_loss]).chain([0.0]));
    let layers = [
        line(|row| row.train_loss, BLUE, Shape::Circle),
        line(|row| row.dev_loss, VERMILLION, Shape::Square),
    ];
    Chart {
        name: "Training",
        label: format!("training-losses-{}", file.subject),
        title: format!("Losses while {} was trained", title(file)),
        notes: measured(file).into_iter().chain(file.remark()).collect(),
        legend: vec![
            Entry::mark("training loss", Mark::new(Shape::Circle, 1.6, BLUE)),
            Entry::mark("dev loss", Mark::new(Shape::Square, 1.6, VERMILLION)),
        ],
        panels: vec![Panel::new(
            "",
            [epochs, Axis::around("loss (nats)", y.0, y.1)],
            90.0,
            layers.into_iter().flatten().collect(),
        )],
        ..Chart::default()
    }
}

fn title(file: &ResultFile) -> String {
    origin::name(&file.subject)
}

/// What was measured, where the signature says it, and the seed.
fn measured(file: &ResultFile) -> Option<String> {
    let identity = file.identity()?;
    let seed = identity.seed.map_or(String::new(), |seed| format!("; seed {}", short(seed as f64)));
    Some(format!("{}{seed}", identity.metric))
}
