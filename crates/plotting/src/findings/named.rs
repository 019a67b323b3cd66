//! Named scores of the heads of a language model, beside what masking each of them costs.
use records::HeadFunctionRow;
use records::rows::functions::FunctionName;

use crate::findings::ablations::Ablations;
use crate::findings::error::{LeftOut, Result};
use crate::findings::kinds::{Kind, Kinds};
use crate::findings::results::Results;
use crate::findings::source::{ResultFile, experiment};

/// Rows of `named-heads`, and sweeps of the same model.
#[derive(Debug)]
pub struct Named {
    /// A row for each head and score.
    pub scores: Results<HeadFunctionRow>,
    /// What masking each head costs, under each kind of ablation that was measured; none without a sweep.
    pub kinds: Vec<Kind>,
}

impl Named {
    /// Reads the scores, and the sweeps beside them.
    ///
    /// # Errors
    /// If the scores cannot be read; sweeps that cannot, or are of other weights, are left out.
    pub fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let scores: Results<HeadFunctionRow> = Results::read(file)?;
        let zero = Ablations::beside_model(&scores.file, experiment::SWEEP, experiment::SWEEP);
        let kinds = left_out.keep(zero).flatten().map_or_else(Vec::new, |zero| {
            let found = left_out.keep(Kinds::read(zero.file.clone())).flatten();
            // those of a replicate are of another model
            let own = found.filter(|found| found.zero().file.path == zero.file.path);
            own.map_or_else(|| vec![Kind { name: "zero", draws: vec![zero] }], |own| own.all)
        });
        Ok(Self { scores, kinds })
    }

    /// The rows of a score, the greatest first; of equal ones the first.
    pub fn of(&self, score: FunctionName) -> Vec<&HeadFunctionRow> {
        let mut rows: Vec<_> = self.scores.rows.iter().filter(|row| row.function == score).collect();
        rows.sort_by(|one, other| other.share.total_cmp(&one.share));
        rows
    }
}
