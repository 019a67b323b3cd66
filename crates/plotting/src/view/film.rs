//! How gates close while a model is trained on with them: a few epochs side by side, and every epoch as one frame of a film (no such
//! figure is in the papers).
use super::heat_map::{Values, by_attention, panel};
use crate::chart::{COLUMN, Chart, Panel, TEXT};
use crate::data::gates::Film;
use crate::words::tenths;

/// Name of the files, without extension.
pub const STEM: &str = "gate-film";

/// Most epochs that stand side by side.
const STILLS: usize = 5;

/// The gates before the first epoch, after the last, and after some between.
pub fn stills(film: &Film) -> Chart {
    let last = film.epochs.len() - 1;
    let shown = film.epochs.len().min(STILLS);
    let epochs: Vec<usize> = (0..shown).map(|place| place * last / (shown - 1).max(1)).collect();
    let attentions = film.attentions();
    let mut panels: Vec<Panel> = Vec::new();
    for (row, &attention) in attentions.iter().enumerate() {
        for (place, &epoch) in epochs.iter().enumerate() {
            let name = if row == 0 { name(epoch) } else { String::new() };
            let ends = [place == 0, row + 1 == attentions.len()];
            panels.push(panel(&film.file, (attention, name), &values(film, epoch), ends));
        }
    }
    let several = attentions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let rows = (attentions.len() > 1).then(|| format!("from top to bottom: {several}"));
    let expected =
        epochs.iter().map(|&epoch| format!("{}: {}", name(epoch), tenths(film.expected_open(epoch))));
    let expected = format!("expected number of open gates {}", expected.collect::<Vec<_>>().join(", "));
    let mut chart = chart(film, "");
    chart.notes.extend(rows.into_iter().chain([expected]));
    Chart { width: TEXT, columns: epochs.len(), panels, ..chart }
}

/// One chart for each epoch, all of one size.
pub fn frames(film: &Film) -> Vec<Chart> {
    let attentions = film.attentions();
    let frame = |epoch: usize| {
        let mut panels = by_attention(&film.file, &attentions, &values(film, epoch));
        panels[0].name = format!("{} {}", name(epoch), panels[0].name).trim_end().to_owned();
        let width = if attentions.len() > 1 { TEXT } else { COLUMN };
        Chart { width, columns: attentions.len(), panels, ..chart(film, &format!(", {}", name(epoch))) }
    };
    (0..film.epochs.len()).map(frame).collect()
}

/// `before`, or `epoch 2`.
fn name(epoch: usize) -> String {
    if epoch == 0 { "before".to_owned() } else { format!("epoch {epoch}") }
}

fn values(film: &Film, epoch: usize) -> Values {
    Values::shares(film.epochs[epoch].iter().map(|row| (row.head_id(), row.p_open)))
}

/// Without panels.
fn chart(film: &Film, when: &str) -> Chart {
    let subject = &film.file.subject;
    let model = match film.point.split_once('-') {
        Some(("heads", heads)) => format!("where {heads} heads are to stay"),
        Some(("lambda", lambda)) => format!("where an open gate costs {lambda} nats"),
        _ => film.point.clone(),
    };
    Chart {
        name: "Gates that close",
        label: format!("{STEM}-{subject}"),
        title: format!("Probability that the gate of each head is open {model}{when}; {}", film.file.title()),
        notes: vec!["the darker, the more likely open; white: closed for sure".to_owned()],
        ..Chart::default()
    }
}
