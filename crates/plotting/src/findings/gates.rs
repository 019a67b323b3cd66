//! Models that were trained further without some of their heads: the rows of `train-gates` (Voita et al. 2019, Section 6).
use records::{GateRow, HeadSet, Method, Scope};
use words::count;

use crate::findings::contrasts::against_control;
use crate::findings::error::LeftOut;
use crate::findings::results::{Results, distinct, nearest, percent};

/// Scores of a subject after pruning heads and training further; the base is the model before it was trained further.
pub type Gates = Results<GateRow>;

/// Share of the heads with gates that are kept, in percent.
pub fn share(row: &GateRow) -> f64 {
    percent(row.kept, row.heads)
}

/// Heads kept.
pub fn kept(row: &GateRow) -> HeadSet {
    row.kept_heads.parse::<HeadSet>().unwrap_or_default()
}

impl Gates {
    /// Sets of heads that have gates.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.rows.iter().map(|row| row.attention))
    }

    /// `true` if a method made any of the models.
    pub fn has(&self, method: Method) -> bool {
        self.rows.iter().any(|row| row.method == method)
    }

    /// The rows of a method, those with most heads first; of a random one those of each seed in turn.
    pub fn of(&self, scope: Scope, method: Method) -> Vec<&GateRow> {
        let is_own = |row: &&GateRow| row.attention == scope && row.method == method;
        let mut rows: Vec<&GateRow> = self.rows.iter().filter(is_own).collect();
        rows.sort_by_key(|row| (row.method_seed, std::cmp::Reverse(row.kept)));
        rows
    }

    /// The models that gates made of a set of heads, those with most heads first, one for each number of heads.
    pub fn sparser(&self, scope: Scope) -> Vec<&GateRow> {
        let mut rows = self.of(scope, Method::Gates);
        rows.dedup_by_key(|row| row.kept);
        rows
    }

    /// Of the models that gates made of a set of heads the one that keeps the share nearest to this one, in percent, if one is near.
    pub fn nearest(&self, scope: Scope, percent: f64) -> Option<&GateRow> {
        nearest(self.sparser(scope), share, percent)
    }

    /// The model of a method that stands beside another one: itself if that is its method, the one that keeps all heads for
    /// [`Method::Ungated`], else one with as many heads. Where the method takes its heads from gates, it is the one that took
    /// them from this very model.
    pub fn counterpart<'a>(&'a self, row: &'a GateRow, method: Method) -> Option<&'a GateRow> {
        if method == row.method {
            return Some(row);
        }
        let is_of = |other: &GateRow| {
            let is_one = !method.hangs_on_gates() || other.goal() == row.goal();
            method == Method::Ungated || other.kept == row.kept && is_one
        };
        self.of(row.attention, method).into_iter().find(|other| is_of(other))
    }

    /// The random draws of as many heads as another model keeps.
    pub fn draws<'a>(&'a self, row: &GateRow) -> impl Iterator<Item = &'a GateRow> {
        let kept = row.kept;
        self.of(row.attention, Method::Random).into_iter().filter(move |other| other.kept == kept)
    }

    /// Each model beside the one that was trained further for as long with all heads, in place of the one before. Not tested are
    /// those without such a control, and all if no segments are stored.
    pub fn against_control(self, left_out: &mut LeftOut) -> Self {
        let is_control = |one: &GateRow, other: &GateRow| {
            one.method == Method::Ungated && one.attention == other.attention
        };
        against_control(self, is_control, left_out)
    }

    /// Words for captions on what was trained: which weights, for how long.
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
