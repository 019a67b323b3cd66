//! Models that were trained further without some of their heads: the rows of `train-gates` (Voita et al. 2019, Section 6).
use std::collections::{BTreeMap, BTreeSet};

use records::{Attention, GateFilmRow, GateRow, Goal, Head, Method, Scope};
use words::count;

use crate::error::{Result, faulty};
use crate::results::{Results, distinct, nearest, percent};
use crate::same_model::{self, weights_entry};
use crate::source::{ResultFile, experiment};

/// What closing heads and training further does to the score of a subject; the base is the model before it was trained further.
pub type Gates = Results<GateRow>;

/// Share of the heads with gates that are kept, in percent.
pub fn share(row: &GateRow) -> f64 {
    percent(row.kept, row.heads)
}

/// Heads kept.
pub fn kept(row: &GateRow) -> Vec<Head> {
    Head::list(&row.kept_heads).unwrap_or_default()
}

/// Heads kept, by attention type and layer.
pub fn by_layer(row: &GateRow) -> BTreeMap<(Attention, usize), usize> {
    let mut layers = BTreeMap::new();
    for head in kept(row) {
        *layers.entry((head.attention, head.layer)).or_default() += 1;
    }
    layers
}

impl Gates {
    /// Sets of heads that have gates.
    pub fn scopes(&self) -> Vec<Scope> {
        distinct(self.rows.iter().map(|row| row.attention))
    }

    /// Whether a method made any of the models.
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
    /// them from this very model. Of several random ones it is that of the median score.
    pub fn counterpart<'a>(&'a self, row: &'a GateRow, method: Method) -> Option<&'a GateRow> {
        if method == row.method {
            return Some(row);
        }
        if method == Method::Ungated {
            return self.of(row.attention, method).first().copied();
        }
        let is_of = |other: &GateRow| !method.hangs_on_gates() || other.goal() == row.goal();
        let mut found = self.of(row.attention, method);
        found.retain(|other| other.kept == row.kept && is_of(other));
        found.sort_by(|one, other| one.score.total_cmp(&other.score));
        found.get(found.len().saturating_sub(1) / 2).copied()
    }

    /// What was trained, for captions: which weights, for how long.
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

/// Where the gates of one model stood before the first epoch and after each, up to the one that counts.
#[derive(Debug)]
pub struct Film {
    /// Where it was read.
    pub file: ResultFile,
    /// What the gates were trained for.
    pub goal: Goal,
    /// The gates of each epoch, from 0 on.
    pub epochs: Vec<Vec<GateFilmRow>>,
}

impl Film {
    /// Reads a file of `gate-film`: of its models the one whose gates are closed most in the end. Where `train-gates` is beside it,
    /// the end is the epoch that counts there. Epochs that lack a head are left out.
    ///
    /// # Errors
    /// If `train-gates` cannot be read, or is of other weights.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        let mut films: BTreeMap<(Scope, String), BTreeMap<usize, Vec<GateFilmRow>>> = BTreeMap::new();
        for row in file.rows::<GateFilmRow>()? {
            films
                .entry((row.gates, row.goal.to_string()))
                .or_default()
                .entry(row.epoch)
                .or_default()
                .push(row);
        }
        for row in models(&file)? {
            if let Some(epochs) = films.get_mut(&(row.attention, row.goal().to_string())) {
                epochs.retain(|&epoch, _| epoch <= row.epoch);
            }
        }
        for epochs in films.values_mut() {
            let heads =
                |rows: &Vec<GateFilmRow>| rows.iter().map(GateFilmRow::head_id).collect::<BTreeSet<_>>();
            if let Some(first) = epochs.values().next().map(heads) {
                epochs.retain(|_, rows| heads(rows) == first);
            }
        }
        films.retain(|_, epochs| !epochs.is_empty());
        let open = |epochs: &BTreeMap<usize, Vec<GateFilmRow>>| {
            epochs.values().last().into_iter().flatten().map(|row| row.p_open).sum::<f64>()
        };
        let most = films.into_iter().min_by(|(_, one), (_, other)| open(one).total_cmp(&open(other)));
        let none = || faulty(&file.path, "has no epoch before the one that `train-gates` chose");
        let (_, epochs) = most.ok_or_else(none)?;
        let epochs: Vec<Vec<GateFilmRow>> = epochs.into_values().collect();
        let goal = epochs[0][0].goal;
        Ok(Self { file, goal, epochs })
    }

    /// Attention types that have gates.
    pub fn attentions(&self) -> Vec<Attention> {
        distinct(self.epochs.iter().flatten().map(|row| row.attention))
    }

    /// How many gates are expected to be open after each epoch.
    pub fn expected_open(&self, epoch: usize) -> f64 {
        self.epochs[epoch].iter().map(|row| row.p_open).sum()
    }
}

/// The models whose gates a film shows, from the results beside it; none if these are missing.
fn models(film: &ResultFile) -> Result<Vec<GateRow>> {
    let beside = same_model::beside(film, experiment::GATES, experiment::GATES, &[weights_entry])?;
    let mut rows = beside.map_or(Ok(Vec::new()), |file| Gates::read(file).map(|gates| gates.rows))?;
    rows.retain(|row| row.method == Method::Gates);
    Ok(rows)
}
