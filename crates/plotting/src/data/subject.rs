//! All that was measured on one subject.
use std::path::Path;

use anyhow::Result;
use records::{BASE, Blocks};

use super::best_heads::{self as chosen, BestHeads};
use super::dynamics::{self, Dynamics};
use super::functions::{self, Functions};
use super::gates::{self, Gates};
use super::pair::{self, Pair};
use super::pruning::{self, Pruning};
use super::sweep::{self, Sweep};
use crate::error::LeftOut;
use crate::source::{ResultFile, Source};

/// All that was measured on one subject; of best heads those that were chosen on each split.
#[derive(Debug, Default)]
pub struct Subject {
    pub sweep: Option<Sweep>,
    pub best: Vec<BestHeads>,
    pub pairs: Vec<Pair>,
    pub pruning: Option<Pruning>,
    pub dynamics: Option<Dynamics>,
    pub functions: Option<Functions>,
    /// A file for each set of heads with gates.
    pub gates: Vec<Gates>,
    /// Nats of the intact model for each word of the text, where words were counted.
    pub nats_a_word: Option<f64>,
}

impl Subject {
    /// Reads the standard files or, where there is none, those of the run over most segments.
    pub fn read(results: &Path, name: &str, left_out: &mut LeftOut) -> Result<Self> {
        let source = Source::subject(results, name);
        let sweep = source.one(sweep::EXPERIMENT).and_then(|file| Sweep::read(file, sweep::EXPERIMENT));
        let sweep = left_out.keep_if_there(sweep)?;
        let mut best =
            Vec::from_iter(left_out.keep_if_there(source.one(chosen::EXPERIMENT).and_then(BestHeads::read))?);
        for file in left_out.keep_if_there(BestHeads::largest_files(&source))?.unwrap_or_default() {
            best.extend(left_out.keep(BestHeads::read(file))?);
        }
        let mut pairs = Vec::new();
        let compared = left_out.keep(source.all(pair::EXPERIMENT))?.unwrap_or_default();
        for file in ResultFile::largest(&compared, pair::splits) {
            pairs.extend(left_out.keep(Pair::read(file, results))?);
        }
        let curves = source.one(pruning::EXPERIMENT).and_then(|file| Pruning::read(file, left_out));
        let pruning = left_out.keep_if_there(curves)?;
        let dynamics = left_out.keep_if_there(source.one(dynamics::EXPERIMENT).and_then(Dynamics::read))?;
        let measured =
            pruning.as_ref().map(|pruning| &pruning.file).or(sweep.as_ref().map(|sweep| &sweep.file));
        let words = measured.filter(|file| file.is_language()).map(nats_a_word);
        let nats_a_word = words.map_or(Ok(None), |words| left_out.keep(words))?.flatten();
        let functions = left_out.keep_if_there(source.one(functions::FUNCTIONS).and_then(Functions::read))?;
        let mut gated = Vec::new();
        for file in left_out.keep(source.all(gates::EXPERIMENT))?.unwrap_or_default() {
            gated.extend(left_out.keep(Gates::read(file))?);
        }
        Ok(Self { sweep, best, pairs, pruning, dynamics, functions, gates: gated, nats_a_word })
    }

    /// Whether its scores are nats a token, and no points.
    pub fn has_nats(&self) -> bool {
        let sweeps = self.sweep.iter().map(|sweep| &sweep.metric);
        sweeps.chain(self.pruning.iter().map(|pruning| &pruning.metric)).any(|metric| metric.is_nats())
    }

    /// The files that were read.
    pub fn files(&self) -> impl Iterator<Item = &ResultFile> {
        let sweeps =
            self.sweep.iter().chain(self.best.iter().map(|best| &best.sweep)).map(|sweep| &sweep.file);
        let pairs = self.pairs.iter().map(|pair| &pair.file);
        let curves = self.pruning.iter().map(|pruning| &pruning.file);
        let dynamics = self.dynamics.iter().map(|dynamics| &dynamics.file);
        let functions = self.functions.iter().map(|functions| &functions.file);
        let gates = self.gates.iter().map(|gates| &gates.file);
        sweeps.chain(pairs).chain(curves).chain(dynamics).chain(functions).chain(gates)
    }
}

/// The nats of the intact model for each word of the text; none where words were not counted.
fn nats_a_word(file: &ResultFile) -> Result<Option<f64>> {
    let Some(blocks) = Blocks::read(&Blocks::path_beside(&file.path))? else { return Ok(None) };
    let sum = |column: &str| {
        let place = blocks.columns.iter().position(|name| name == column)?;
        Some(blocks.get(BASE)?.sums.get(place)?.value())
    };
    Ok(sum("nats").zip(sum("words")).filter(|(_, words)| *words > 0.0).map(|(nats, words)| nats / words))
}
