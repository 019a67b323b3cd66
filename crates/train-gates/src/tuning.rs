//! How heads are chosen, and the training that follows: the same for gates and for controls.
use core_masking::{HardConcrete, HeadId, HeadLayout, HeadSet};
use records::{GateRow, Method, Scope};
use subject::{Description, FineTuned, FineTuning, InitialWeights, TrainedPart};
use training::{GateTraining, Gating, Machine, Pull};

use crate::args::{Args, Start};

/// Learning rate of the multipliers by which a number of heads is reached. In the hundred steps that a small model has to
/// spare they come to the size of a loss per prediction.
const MULTIPLIER_RATE: f64 = 0.02;

/// How the heads of a model were chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Gates are trained.
    Gates(Pull),
    /// All stay.
    All,
    /// These are closed.
    Closed { method: Method, seed: Option<u64>, closed: HeadSet },
}

/// Gates of the epoch that counts.
pub fn gates(tuned: &FineTuned) -> Option<&HardConcrete> {
    tuned.history.get(tuned.row.epoch)
}

impl Choice {
    /// The heads that are closed in a model that was trained on so.
    pub fn closed(&self, tuned: &FineTuned) -> HeadSet {
        match (self, gates(tuned)) {
            (Self::Gates(pull), Some(gates)) => pull.closed(gates),
            (Self::Closed { closed, .. }, _) => closed.clone(),
            _ => HeadSet::none(),
        }
    }
}

/// Trains models on.
pub struct Tuner<'a> {
    pub args: &'a Args,
    pub description: &'a Description,
    pub machine: &'a Machine,
    /// The heads that can be closed.
    pub heads: &'a [HeadId],
    /// What they are called.
    pub scope: Scope,
    pub part: TrainedPart,
    pub epochs: usize,
}

impl Tuner<'_> {
    /// What all rows depend on, by name.
    pub fn arguments(&self) -> Vec<(String, serde_json::Value)> {
        let start = match self.args.start {
            Start::Open => "open",
            Start::Authors => "authors",
        };
        let part = match self.part {
            TrainedPart::Encoder => "encoder",
            TrainedPart::All => "all",
        };
        let arguments = [
            ("train", part.into()),
            ("epochs", self.epochs.into()),
            ("gate_learning_rate", self.args.gate_learning_rate.into()),
            ("start", start.into()),
        ];
        arguments.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// The row of a choice, by its key alone.
    pub fn row_of(&self, choice: &Choice) -> GateRow {
        let row = GateRow { attention: self.scope, ..GateRow::default() };
        match choice {
            Choice::Gates(Pull::Lambda(lambda)) => GateRow { lambda: Some(*lambda), ..row },
            Choice::Gates(Pull::Heads(open)) => GateRow { target: Some(*open), ..row },
            Choice::All => GateRow { method: Method::Ungated, ..row },
            Choice::Closed { method, seed, closed } => {
                let target = Some(self.heads.len() - closed.len());
                GateRow { method: *method, method_seed: *seed, target, ..row }
            }
        }
    }

    /// The row of a choice with all but scores.
    pub fn row(&self, choice: &Choice, layout: &HeadLayout, tuned: &FineTuned) -> GateRow {
        let closed = choice.closed(tuned);
        let kept: HeadSet = self.heads.iter().copied().filter(|&id| !closed.contains(id)).collect();
        let of_type = |attention| {
            let heads = layout.heads_of(attention).ok()?;
            Some(heads.into_iter().filter(|&id| !closed.contains(id)).count())
        };
        let row = self.row_of(choice);
        let expected = gates(tuned).map(|gates| gates.expected_open().double_value(&[]));
        GateRow {
            kept: kept.len(),
            heads: self.heads.len(),
            kept_enc_enc: of_type(core_masking::Attention::EncEnc),
            kept_enc_dec: of_type(core_masking::Attention::EncDec),
            kept_dec_dec: of_type(core_masking::Attention::DecDec),
            kept_self: of_type(core_masking::Attention::SelfAttention),
            dev_loss: tuned.row.dev_loss - row.lambda.unwrap_or_default() * kept.len() as f64,
            epoch: tuned.row.epoch,
            steps: tuned.steps,
            gap: expected.map(|expected| expected - kept.len() as f64),
            kept_heads: kept.names(),
            ..row
        }
    }

    /// Trains the model on, unless that was done already.
    pub fn tune(&self, choice: &Choice) -> anyhow::Result<FineTuned> {
        let row = self.row_of(choice);
        let seed = self.args.shared.seed();
        let gating = match choice {
            Choice::Gates(pull) => Gating::Trained(GateTraining {
                heads: self.heads.to_vec(),
                start: self.args.gate_start(),
                learning_rate: self.args.gate_learning_rate,
                multiplier_rate: MULTIPLIER_RATE,
                pull: *pull,
                seed,
            }),
            Choice::All => Gating::Fixed(HeadSet::none()),
            Choice::Closed { closed, .. } => Gating::Fixed(closed.clone()),
        };
        let tuning = FineTuning {
            name: row.short_name(),
            initial: InitialWeights::Trained,
            gating,
            part: self.part,
            epochs: self.epochs,
            seed,
        };
        let tuning = if row.method == Method::Scratch {
            // as many epochs as all others have had when they end
            let epochs = self.description.epochs().unwrap_or_default() + self.epochs;
            FineTuning { initial: InitialWeights::New, part: TrainedPart::All, epochs, ..tuning }
        } else {
            tuning
        };
        Ok(self.description.fine_tune(self.machine, &tuning)?)
    }

    /// The heads by how late gates would close them, the last first.
    pub fn last_to_close(&self, pull: Pull) -> anyhow::Result<Vec<HeadId>> {
        let tuned = self.tune(&Choice::Gates(pull))?;
        let order = gates(&tuned).map(|gates| gates.scores().ascending());
        Ok(order.unwrap_or_default().into_iter().rev().collect())
    }
}
