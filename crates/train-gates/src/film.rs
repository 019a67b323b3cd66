//! The film of the gates: every gate before the first epoch and after each.
use std::path::Path;

use core_masking::{HardConcrete, to_vec};
use experiment::{OpenRows, SharedArgs};
use heads::experiment::{GATE_FILM, TRAIN_GATES};
use records::{GateFilmRow, GateRow, Identity, RowWriter, Signature};
use training::Machine;

/// Name of the results.
const NAME: &str = GATE_FILM.name;

/// The rows of `gate-film`.
pub struct Film(RowWriter<GateFilmRow>);

impl Film {
    /// Opens the film that belongs to the results at `path`.
    pub fn open(
        path: &Path,
        identity: &Identity,
        shared: &SharedArgs,
        machine: &Machine,
    ) -> anyhow::Result<Self> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = match stem.strip_prefix(TRAIN_GATES.name) {
            Some(rest) => format!("{NAME}{rest}.csv"),
            None => format!("{stem}-{NAME}.csv"),
        };
        let path = path.with_file_name(name);
        let identity = Identity { experiment: NAME.to_owned(), ..identity.clone() };
        let signature = Signature::new(identity, machine.provenance());
        let OpenRows { writer, .. } = shared.open_rows::<GateFilmRow>(&path, &signature)?;
        Ok(Self(writer))
    }

    /// Returns true if all epochs of this row's model are stored.
    pub fn has(&self, row: &GateRow, epochs: usize, heads: usize) -> bool {
        let own = self.0.rows().filter(|own| own.gates == row.attention && own.goal == row.goal());
        own.count() == (epochs + 1) * heads
    }

    /// Adds the missing rows of a model.
    pub fn add(&mut self, row: &GateRow, history: &[HardConcrete]) -> anyhow::Result<()> {
        for (epoch, gates) in history.iter().enumerate() {
            let p_open = to_vec::<f64>(&gates.p_open());
            for ((id, log_alpha), p_open) in gates.scores().iter().zip(p_open) {
                let (attention, layer, head) = id.numbers();
                let (gates, goal) = (row.attention, row.goal());
                let row = GateFilmRow { gates, goal, epoch, attention, layer, head, log_alpha, p_open };
                self.0.append(row, None)?;
            }
        }
        Ok(())
    }

    /// Completes the file.
    pub fn finish(self) -> anyhow::Result<()> {
        self.0.finish()?;
        Ok(())
    }
}
