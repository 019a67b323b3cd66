//! Models trained further without some of their heads: the rows of `train-gates` (Voita et al. 2019, Section 6).
use records::{GateRow, HeadSet, Method, Scope};
use words::count;

use crate::findings::contrasts::against_control;
use crate::findings::error::LeftOut;
use crate::findings::results::{Results, distinct, nearest, percent};

/// Scores of a setup after pruning heads and further training; the base is the model before further training.
pub type Gates = Results<GateRow>;

/// Returns the share of gated heads that are kept, in percent.
pub fn share(row: &GateRow) -> f64 {
    percent(row.kept, row.heads)
}

/// Returns the kept heads.
pub fn kept(row: &GateRow) -> HeadSet {
    row.kept_heads.parse::<HeadSet>().unwrap_or_default()
}

impl Gates {
    /// Returns the sets of heads that have gates.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.rows.iter().map(|row| row.attention))
    }

    /// `true` if there are models by this method.
    pub fn has(&self, method: Method) -> bool {
        self.rows.iter().any(|row| row.method == method)
    }

    /// Returns the rows of a method, most heads first; random draws come seed by seed.
    pub fn of(&self, scope: Scope, method: Method) -> Vec<&GateRow> {
        let is_own = |row: &&GateRow| row.attention == scope && row.method == method;
        let mut rows: Vec<&GateRow> = self.rows.iter().filter(is_own).collect();
        rows.sort_by_key(|row| (row.method_seed, std::cmp::Reverse(row.kept)));
        rows
    }

    /// Returns the models with trained gates on a set of heads, most heads first, one for each number of heads.
    pub fn sparser(&self, scope: Scope) -> Vec<&GateRow> {
        let mut rows = self.of(scope, Method::Gates);
        rows.dedup_by_key(|row| row.kept);
        rows
    }

    /// Returns the gated model whose share of kept heads is closest to `percent`, if it is near.
    pub fn nearest(&self, scope: Scope, percent: f64) -> Option<&GateRow> {
        nearest(self.sparser(scope), share, percent)
    }

    /// Returns the model of a method to compare with `row`: `row` itself for its own method, the fine-tuned baseline for
    /// [`Method::Ungated`], otherwise one with equally many heads, taken from this model if the method takes its heads from gates.
    pub fn counterpart<'a>(&'a self, row: &'a GateRow, method: Method) -> Option<&'a GateRow> {
        if method == row.method {
            return Some(row);
        }
        let is_of = |other: &GateRow| {
            let is_one = !method.depends_on_gates() || other.goal() == row.goal();
            method == Method::Ungated || other.kept == row.kept && is_one
        };
        self.of(row.attention, method).into_iter().find(|other| is_of(other))
    }

    /// Returns the random draws that keep as many heads as `row`.
    pub fn draws<'a>(&'a self, row: &GateRow) -> impl Iterator<Item = &'a GateRow> {
        let kept = row.kept;
        self.of(row.attention, Method::Random).into_iter().filter(move |other| other.kept == kept)
    }

    /// Compares each model with the fine-tuned baseline instead of the original model; untested without a baseline or stored segments.
    pub fn against_control(self, left_out: &mut LeftOut) -> Self {
        let is_control = |one: &GateRow, other: &GateRow| {
            one.method == Method::Ungated && one.attention == other.attention
        };
        against_control(self, is_control, left_out)
    }

    /// Describes in captions what was trained: which weights, for how long.
    pub fn recipe(&self) -> Option<String> {
        let part = match self.file.text("train")? {
            "encoder" => "the encoder is trained further, the decoder is frozen",
            _ => "all weights are trained further",
        };
        let epochs = self.file.number("epochs").map(|epochs| count(epochs as usize, "epoch"));
        let epochs = epochs.map(|epochs| format!(", for {epochs}, each model once"));
        Some(part.to_owned() + &epochs.unwrap_or_default())
    }
}
