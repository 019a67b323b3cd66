//! Models that were trained on without some of their heads: the rows of `train-gates` (Voita et al. 2019, Section 6).
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use records::{Attention, GateFilmRow, GateRow, Head, Method, Scope};

use crate::source::ResultFile;
use crate::words::Metric;

/// The experiments whose results these are: scores, and where the gates stood in each epoch.
pub const EXPERIMENT: &str = "train-gates";
pub const FILM: &str = "gate-film";

/// What closing heads and training on does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Gates {
    pub file: ResultFile,
    pub metric: Metric,
    /// Score of the model before it was trained on, in the unit of the metric.
    pub base: f64,
    pub rows: Vec<GateRow>,
}

/// Share of the heads with gates that stay, in percent.
pub fn percent(row: &GateRow) -> f64 {
    100.0 * row.kept as f64 / row.heads as f64
}

/// Heads that stay.
pub fn kept(row: &GateRow) -> Vec<Head> {
    Head::list(&row.kept_heads).unwrap_or_default()
}

/// Heads that stay, by attention type and layer.
pub fn by_layer(row: &GateRow) -> BTreeMap<(Attention, usize), usize> {
    let mut layers = BTreeMap::new();
    for head in kept(row) {
        *layers.entry((head.attention, head.layer)).or_default() += 1;
    }
    layers
}

impl Gates {
    /// Reads a file of `train-gates`.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        let rows: Vec<GateRow> = file.rows(EXPERIMENT)?;
        Ok(Self { metric: Metric::new(&rows[0].metric), base: rows[0].base_score, file, rows })
    }

    /// Sets of heads that have gates.
    pub fn scopes(&self) -> BTreeSet<Scope> {
        self.rows.iter().map(|row| row.attention).collect()
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

    /// The model that a method made beside one of gates: with as many heads, and where these hang on the gates, of the same. Of
    /// several random ones that of the median score.
    pub fn beside(&self, row: &GateRow, method: Method) -> Option<&GateRow> {
        let is_of = |other: &GateRow| {
            !method.hangs_on_gates() || (other.lambda, other.target) == (row.lambda, row.target)
        };
        let mut found = self.of(row.attention, method);
        found.retain(|other| other.kept == row.kept && is_of(other));
        found.sort_by(|one, other| one.score.total_cmp(&other.score));
        found.get(found.len().saturating_sub(1) / 2).copied()
    }

    /// What was trained, for captions: which weights, for how long.
    pub fn recipe(&self) -> Vec<String> {
        let part = self.file.text("train").map(|part| match part {
            "encoder" => "the encoder is trained on, the decoder is frozen".to_owned(),
            _ => "all weights are trained on".to_owned(),
        });
        let epochs = self.file.number("epochs").map(|epochs| format!("for {epochs} epochs, each model once"));
        part.into_iter()
            .map(|part| epochs.iter().fold(part, |part, epochs| format!("{part}, {epochs}")))
            .collect()
    }
}

/// Where the gates of one model stood before the first epoch and after each.
#[derive(Debug)]
pub struct Film {
    pub file: ResultFile,
    /// The row of `train-gates`: `heads-24` or `lambda-0.01`.
    pub point: String,
    /// The gates of each epoch, from 0 on.
    pub epochs: Vec<Vec<GateFilmRow>>,
}

impl Film {
    /// Reads a file of `gate-film`: of its models the one whose gates are closed most in the end.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        let mut films: BTreeMap<(Scope, String), BTreeMap<usize, Vec<GateFilmRow>>> = BTreeMap::new();
        for row in file.rows::<GateFilmRow>(FILM)? {
            films.entry((row.gates, row.point.clone())).or_default().entry(row.epoch).or_default().push(row);
        }
        let open = |epochs: &BTreeMap<usize, Vec<GateFilmRow>>| {
            epochs.values().last().into_iter().flatten().map(|row| row.p_open).sum::<f64>()
        };
        let most = films.into_iter().min_by(|(_, one), (_, other)| open(one).total_cmp(&open(other)));
        let ((_, point), epochs) = most.with_context(|| format!("`{}` has no rows", file.path.display()))?;
        Ok(Self { file, point, epochs: epochs.into_values().collect() })
    }

    /// Attention types that have gates.
    pub fn attentions(&self) -> Vec<Attention> {
        let has = |attention: &Attention| self.epochs.iter().flatten().any(|row| row.attention == *attention);
        Attention::ALL.into_iter().filter(has).collect()
    }

    /// How many gates are expected to be open after each epoch.
    pub fn expected_open(&self, epoch: usize) -> f64 {
        self.epochs[epoch].iter().map(|row| row.p_open).sum()
    }
}
