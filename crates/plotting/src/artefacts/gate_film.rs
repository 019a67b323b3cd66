//! Gates that close during training: some epochs side by side, and an animation of all. The papers have no such figure.
use std::collections::{BTreeMap, BTreeSet};

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::faulty;
use crate::findings::results::distinct;
use crate::findings::{Gates, Result, ResultFile, experiment};
use charts::chart::{Chart, Panel};
use charts::write::Sheet;
use records::{Attention, GateFilmRow, Goal, Method, Scope};
use words::{count, tenths};

use super::heat_map::{Values, by_attention, panel};
use crate::view::sheet;

const STEM: &str = "gate-film";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "gates", chapter::GATES],
    "Gates that close, epoch by epoch, of the model that keeps about a quarter of its heads",
    Reads::Each(experiment::FILM),
    |file, _, _| {
        let found = Film::read(file)?;
        let sheet = sheet(&found.file, STEM, stills(&found), []);
        Ok(vec![Sheet { frames: frames(&found), ..sheet }])
    },
)
.detail("with a film");

/// Share of open gates in the model to show: with far fewer or far more, nearly all gates look alike.
const SHOWN: f64 = 0.25;

/// Gates of one model before the first epoch and after each epoch up to the one that counts.
struct Film {
    file: ResultFile,
    /// Gates at each epoch, from 0 on.
    epochs: Vec<Vec<GateFilmRow>>,
}

impl Film {
    /// Reads the model that ends with about a quarter of its gates open, at the epoch that counts in `train-gates` if that file exists.
    /// Leaves out epochs that lack a head.
    fn read(mut file: ResultFile) -> Result<Self> {
        let mut films: BTreeMap<(Scope, String), BTreeMap<usize, Vec<GateFilmRow>>> = BTreeMap::new();
        for row in file.rows::<GateFilmRow>()? {
            let film = films.entry((row.gates, row.goal.to_string())).or_default();
            film.entry(row.epoch).or_default().push(row);
        }
        let gates = Gates::beside_model(&file, &file.stem(experiment::GATES), experiment::GATES)?;
        let models = gates.iter().flat_map(|gates| &gates.rows);
        for row in models.filter(|row| row.method == Method::Gates) {
            if let Some(epochs) = films.get_mut(&(row.attention, row.goal().to_string())) {
                epochs.retain(|&epoch, _| epoch <= row.epoch);
            }
        }
        for epochs in films.values_mut() {
            let heads = |rows: &[GateFilmRow]| rows.iter().map(GateFilmRow::head_id).collect::<BTreeSet<_>>();
            let all = epochs.values().flat_map(|rows| heads(rows)).collect::<BTreeSet<_>>();
            epochs.retain(|_, rows| heads(rows) == all);
        }
        films.retain(|_, epochs| !epochs.is_empty());
        let distance = |epochs: &BTreeMap<_, Vec<GateFilmRow>>| {
            epochs
                .values()
                .last()
                .map_or(f64::INFINITY, |gates| (expected_open(gates) / gates.len() as f64 - SHOWN).abs())
        };
        let shown = films.into_values().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        let none = || faulty(&file.path, "has no epoch with all heads up to the one that counts");
        let epochs = shown.ok_or_else(none)?.into_values().collect();
        Ok(Self { file, epochs })
    }

    /// Returns the goal of training the gates.
    fn goal(&self) -> Goal {
        self.epochs[0][0].goal
    }

    fn attentions(&self) -> Vec<Attention> {
        distinct(self.epochs.iter().flatten().map(|row| row.attention))
    }
}

fn expected_open(gates: &[GateFilmRow]) -> f64 {
    gates.iter().map(|row| row.p_open).sum()
}

/// Maximum number of epochs side by side.
const STILLS: usize = 5;

/// Draws the gates before the first epoch, after the last, and after some in between.
fn stills(film: &Film) -> Chart {
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

/// Draws one chart per epoch, equal in size.
fn frames(film: &Film) -> Vec<Chart> {
    let attentions = film.attentions();
    let frame = |epoch: usize| {
        let chart = chart(film, &format!(", {}", name(film, epoch)));
        let mut panels = by_attention(&film.file, &attentions, &values(film, epoch));
        panels[0].name = format!("{} {}", name(film, epoch), panels[0].name).trim_end().to_owned();
        chart.panels(panels.len(), panels)
    };
    (0..film.epochs.len()).map(frame).collect()
}

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
