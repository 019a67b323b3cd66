//! Gates that close while a model is trained further with them, up to the epoch that counts: some epochs side by side, and each as
//! one frame of a film (no such figure is in the papers).
use crate::findings::Film;
use crate::findings::gates::expected_open;
use charts::chart::{Chart, Panel};
use records::Goal;
use words::{count, tenths};

use super::heat_map::{Values, by_attention, panel};

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
            let panel = panel(&film.file, attention, &values(film, epoch), row + 1 == attentions.len());
            let of_type = (place == 0 && attentions.len() > 1).then(|| attention.in_words().to_owned());
            let of_epoch = (row == 0).then(|| name(film, epoch));
            let names: Vec<String> = of_type.into_iter().chain(of_epoch).collect();
            panels.push(panel.named(names.join(", ")).in_row(place));
        }
    }
    let open = |epoch: usize| tenths(expected_open(&film.epochs[epoch]));
    let open = epochs.iter().map(|&epoch| format!("{}: {}", name(film, epoch), open(epoch)));
    chart(film, "")
        .note(format!("expected number of open gates {}", open.collect::<Vec<_>>().join(", ")))
        .panels(epochs.len(), panels)
}

/// One chart for each epoch, all of one size.
pub fn frames(film: &Film) -> Vec<Chart> {
    let attentions = film.attentions();
    let frame = |epoch: usize| {
        let chart = chart(film, &format!(", {}", name(film, epoch)));
        let mut panels = by_attention(&film.file, &attentions, &values(film, epoch));
        panels[0].name = format!("{} {}", name(film, epoch), panels[0].name).trim_end().to_owned();
        chart.panels(panels.len(), panels)
    };
    (0..film.epochs.len()).map(frame).collect()
}

/// `before`, or `epoch 2`.
fn name(film: &Film, place: usize) -> String {
    let epoch = film.epochs[place][0].epoch;
    if epoch == 0 { "before".to_owned() } else { format!("epoch {epoch}") }
}

fn values(film: &Film, epoch: usize) -> Values {
    Values::shares(film.epochs[epoch].iter().map(|row| (row.head_id(), row.p_open)))
}

fn chart(film: &Film, when: &str) -> Chart {
    let model = match film.goal() {
        Goal::Heads(heads) => count(heads, "head"),
        Goal::Penalty(lambda) => format!("heads at a penalty of {lambda} nats for each open gate"),
        Goal::AllHeads => "all heads".to_owned(),
    };
    let title =
        format!("Probability that the gate of each head is open, in the model that is to keep {model}{when}");
    Chart::new("Gates during training", film.file.label(STEM), film.file.titled(title))
        .bar_of_shares("probability that the gate is open")
}
