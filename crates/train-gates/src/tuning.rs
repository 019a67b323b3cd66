//! Choice of heads, and the further training that gates and controls share.
use core_masking::{HeadId, HeadLayout, HeadSet};
use records::{GateRow, Method, Scope};
use subject::{Description, FineTuned, FineTuning, InitialWeights, TrainedWeights};
use training::{Closing, GateTraining, Gating, MULTIPLIER_RATE, Machine, Penalty};

use crate::args::Args;

/// How the heads of a model are chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// By training gates.
    Gates(Penalty),
    /// All heads stay.
    All,
    /// These heads are masked.
    Closed { control: MaskedControl, closed: HeadSet },
}

/// A control with masked heads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaskedControl {
    pub method: Method,
    /// Seed of a random choice.
    pub seed: Option<u64>,
    /// Number of heads kept.
    pub kept: usize,
    /// Penalty of the gates whose heads it keeps, or masks.
    pub of: Option<Penalty>,
}

impl Choice {
    /// Returns the heads that are closed in a model trained for this choice.
    pub fn closed(&self, tuned: &FineTuned) -> HeadSet {
        match (self, &tuned.gates) {
            (Self::Gates(penalty), Some(gates)) => penalty.closed(gates),
            (Self::Closed { closed, .. }, _) => closed.clone(),
            _ => HeadSet::none(),
        }
    }
}

/// Settings for training models further.
pub struct Tuner<'a> {
    pub args: &'a Args,
    pub description: &'a Description,
    pub machine: &'a Machine,
    /// Heads that can be closed.
    pub heads: &'a [HeadId],
    /// Name of these heads.
    pub scope: Scope,
    pub trained: TrainedWeights,
    pub epochs: usize,
}

impl Tuner<'_> {
    /// Returns the arguments, by name, that all rows depend on.
    pub fn arguments(&self) -> Vec<(String, serde_json::Value)> {
        let arguments = [
            ("train", serde_json::json!(self.trained)),
            ("epochs", self.epochs.into()),
            ("gate_learning_rate", self.args.gate_learning_rate.into()),
            ("start", serde_json::json!(self.args.start)),
        ];
        arguments.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Returns the row of a choice with only its key filled in.
    pub fn row_of(&self, choice: &Choice) -> GateRow {
        match choice {
            Choice::Gates(penalty) => self.row_of_penalty(*penalty),
            Choice::All => GateRow { method: Method::Ungated, ..self.empty_row() },
            Choice::Closed { control, .. } => self.row_of_control(control),
        }
    }

    /// Returns the row of a control with only its key filled in.
    pub fn row_of_control(&self, control: &MaskedControl) -> GateRow {
        let MaskedControl { method, seed: method_seed, kept, of } = *control;
        let row = match of {
            Some(penalty) => self.row_of_penalty(penalty),
            None => GateRow { target: Some(kept), ..self.empty_row() },
        };
        GateRow { method, method_seed, ..row }
    }

    fn row_of_penalty(&self, penalty: Penalty) -> GateRow {
        match penalty {
            Penalty::Lambda(lambda) => GateRow { lambda: Some(lambda), ..self.empty_row() },
            Penalty::Heads(open) => GateRow { target: Some(open), ..self.empty_row() },
        }
    }

    fn empty_row(&self) -> GateRow {
        GateRow { attention: self.scope, ..GateRow::default() }
    }

    /// Returns the row of a choice with everything but scores.
    pub fn row(&self, choice: &Choice, layout: &HeadLayout, tuned: &FineTuned) -> GateRow {
        let closed = choice.closed(tuned);
        let kept: HeadSet = self.heads.iter().copied().filter(|&id| !closed.contains(id)).collect();
        let of_type = |attention| {
            let heads = layout.heads_of(attention).ok()?;
            Some(heads.into_iter().filter(|&id| !closed.contains(id)).count())
        };
        let row = self.row_of(choice);
        let penalty = match choice {
            Choice::Gates(Penalty::Lambda(lambda)) => lambda * kept.len() as f64,
            _ => 0.0,
        };
        let expected = tuned.gates.as_ref().map(|gates| gates.expected_open().double_value(&[]));
        GateRow {
            kept: kept.len(),
            heads: self.heads.len(),
            kept_enc_enc: of_type(core_masking::Attention::EncEnc),
            kept_enc_dec: of_type(core_masking::Attention::EncDec),
            kept_dec_dec: of_type(core_masking::Attention::DecDec),
            kept_self: of_type(core_masking::Attention::SelfAttention),
            dev_loss: tuned.row.dev_loss - penalty,
            epoch: tuned.row.epoch,
            steps: tuned.steps,
            gap: expected.map(|expected| expected - kept.len() as f64),
            kept_heads: kept.names(),
            ..row
        }
    }

    /// Trains the model further, unless a stored training exists.
    pub fn fine_tune(&self, choice: &Choice) -> anyhow::Result<FineTuned> {
        let row = self.row_of(choice);
        let seed = self.args.shared.seed();
        let gating = match choice {
            Choice::Gates(penalty) => Gating::Trained(GateTraining {
                heads: self.heads.to_vec(),
                closing: Closing::Concrete {
                    start: self.args.start,
                    multiplier_rate: MULTIPLIER_RATE,
                    penalty: *penalty,
                },
                learning_rate: self.args.gate_learning_rate,
                seed,
            }),
            Choice::All => Gating::Fixed(HeadSet::none()),
            Choice::Closed { closed, .. } => Gating::Fixed(closed.clone()),
        };
        let tuning = FineTuning {
            name: row.short_name(),
            initial: InitialWeights::Trained,
            gating,
            trained: self.trained,
            epochs: self.epochs,
            seed,
        };
        let tuning = if row.method == Method::Scratch {
            // the number of epochs that all others have in total
            let epochs = self.description.epochs().unwrap_or_default() + self.epochs;
            FineTuning { initial: InitialWeights::New, trained: TrainedWeights::All, epochs, ..tuning }
        } else {
            tuning
        };
        Ok(self.description.fine_tune(self.machine, &tuning)?)
    }

    /// Returns the heads in the reverse of the order in which gates would close them.
    pub fn last_to_close(&self, penalty: Penalty) -> anyhow::Result<Vec<HeadId>> {
        let tuned = self.fine_tune(&Choice::Gates(penalty))?;
        let order = tuned.gates.map(|gates| gates.scores().ascending());
        Ok(order.unwrap_or_default().into_iter().rev().collect())
    }
}
