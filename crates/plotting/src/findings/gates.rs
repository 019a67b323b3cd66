//! Models that were trained further without some of their heads: the rows of `train-gates` (Voita et al. 2019, Section 6).
use std::collections::{BTreeMap, BTreeSet};

use records::{Attention, GateFilmRow, GateRow, Goal, HeadSet, Method, Scope};
use words::count;

use crate::findings::contrasts::against_control;
use crate::findings::error::{LeftOut, Result, faulty};
use crate::findings::results::{Results, distinct, nearest, percent};
use crate::findings::source::{ResultFile, experiment};

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

/// The share of gates that the model of a film leaves open: with far fewer or far more, nearly all of them look the same.
const SHOWN: f64 = 0.25;

/// States of the gates of one model before the first epoch and after each, up to the one that counts.
#[derive(Debug)]
pub struct Film {
    /// The file that was read.
    pub file: ResultFile,
    /// The gates of each epoch, from 0 on.
    pub epochs: Vec<Vec<GateFilmRow>>,
}

impl Film {
    /// Reads a file of `gate-film`: of its models the one with about a quarter of its gates open in the end. Where `train-gates` is
    /// beside it, the end is the epoch that counts there. Epochs that lack a head are left out.
    ///
    /// # Errors
    /// If `train-gates` cannot be read, or is of other weights.
    pub fn read(mut file: ResultFile) -> Result<Self> {
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

    /// Goal of the training of the gates.
    pub fn goal(&self) -> Goal {
        self.epochs[0][0].goal
    }

    /// Attention types that have gates.
    pub fn attentions(&self) -> Vec<Attention> {
        distinct(self.epochs.iter().flatten().map(|row| row.attention))
    }
}

/// Expected number of open gates.
pub fn expected_open(gates: &[GateFilmRow]) -> f64 {
    gates.iter().map(|row| row.p_open).sum()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::findings::subject_file::SubjectKind;

    #[test]
    fn a_film_shows_the_model_that_keeps_about_a_quarter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gate-film.csv");
        let mut text = "gates,point,epoch,attention,layer,head,log_alpha,p_open\n".to_owned();
        for (heads, last) in [(1, 0.05), (3, 0.27), (6, 0.6)] {
            for (epoch, open) in [(0, 0.94), (1, last)] {
                for head in 1..=8 {
                    writeln!(text, "enc-enc,heads-{heads},{epoch},enc-enc,1,{head},0.5,{open}").unwrap();
                }
            }
        }
        std::fs::write(&path, text).unwrap();
        let file = ResultFile::of(path, "x", experiment::FILM, SubjectKind::default()).unwrap();
        assert_eq!(Film::read(file).unwrap().goal(), Goal::Heads(3));
    }
}
