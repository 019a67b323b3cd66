//! Rows of pruning curves.
use heads::Scope;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BASE, Row, TestedRow, falls, heads_fault};
use crate::Order;
use crate::check::{Limit, step_limits, test_limits};
use stats::MetricName;
use stats::spread::Reached;

/// One row of `iterative-prune` or `joint-search`: a step of a pruning curve (Michel et al. 2019, Figures 3, 4 and 6).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruningRow {
    /// Attention type of the heads that can be masked, or `all`.
    pub attention: Scope,
    /// Ranking or search; `floor` is the one row with all heads masked.
    pub order: Order,
    /// Seed of a random order; empty for other orders.
    pub order_seed: Option<u64>,
    /// `true` if the order is reversed: the heads that it masks first are kept (Prasanna et al. 2020).
    pub complement: bool,
    /// Step of the curve; no head is masked at step 0.
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads that can be masked.
    pub heads: usize,
    /// Metric of the scores, such as `bleu` or `nats`.
    pub metric: MetricName,
    /// Score of the full model, in the unit of the metric.
    pub base_score: f64,
    /// Score with heads masked, in the unit of the metric.
    pub score: f64,
    /// `score` minus `base_score`: the effect of masking.
    pub score_delta: f64,
    /// Lower end of the 95% interval of `score_delta`; empty if it was not tested.
    pub delta_low: Option<f64>,
    /// Upper end of the 95% interval of `score_delta`.
    pub delta_high: Option<f64>,
    /// Lower end of the 95% interval that holds for all rows of the family at once; empty until the family is complete.
    pub simultaneous_low: Option<f64>,
    /// Upper end of the simultaneous interval.
    pub simultaneous_high: Option<f64>,
    /// Two-sided p-value: paired t-test for `accuracy`, otherwise swaps of segments (approximate randomisation, Noreen 1989).
    pub p_value: Option<f64>,
    /// Two-sided p-value of the paired bootstrap, for comparison only; empty for `accuracy`.
    pub p_bootstrap: Option<f64>,
    /// The paper's p-value: one-sided paired bootstrap in the observed direction (Koehn 2004); empty for `accuracy`.
    pub p_koehn: Option<f64>,
    /// `p_value` adjusted for the family-wise error rate: step-down max-T (Westfall and Young 1993), for `accuracy` Holm
    /// (1979).
    pub p_adjusted: Option<f64>,
    /// `p_value` adjusted for the false discovery rate (Benjamini and Hochberg 1995).
    pub p_benjamini_hochberg: Option<f64>,
    /// Two-sided p-value of the unpaired t-test; `accuracy` only.
    pub p_unpaired_t: Option<f64>,
    /// Two-sided mid-p of McNemar's test; `accuracy` only.
    pub p_mcnemar: Option<f64>,
    /// Probability of showing that heads are dispensable if they cost nothing but changed equally many segments; empty in older
    /// files.
    pub power: Option<f64>,
    /// Number of segments at which `power` would be 80%; empty if fewer than 20 segments change.
    pub segments_for_power: Option<f64>,
    /// Share of 1,000 resamples of the test set in which every step up to this one is dispensable; empty for searches.
    pub reached_dispensable: Option<f64>,
    /// Share of these resamples in which no step up to this one is a significant loss.
    pub reached_without_loss: Option<f64>,
    /// Score on the split of the search, in the unit of the metric; empty for rankings.
    pub search_score: Option<f64>,
    /// Masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

/// Which curve a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CurveId {
    /// The heads that can be masked.
    pub attention: Scope,
    /// Order of the heads, or search for them.
    pub order: Order,
    /// Seed of a random order.
    pub order_seed: Option<u64>,
    /// `true` if the order is reversed.
    pub complement: bool,
}

impl CurveId {
    /// Name of the row of one of its steps, such as `all/importance/3`.
    pub fn step(self, step: usize) -> String {
        format!("{self}/{step}")
    }
}

/// Such as `all/importance`, `enc-dec/random-3` or `all/importance/complement`.
impl fmt::Display for CurveId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.order_seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        let side = if self.complement { "/complement" } else { "" };
        write!(formatter, "{}/{}{seed}{side}", self.attention, self.order)
    }
}

impl PruningRow {
    /// Its curve.
    pub fn curve(&self) -> CurveId {
        let Self { attention, order, order_seed, complement, .. } = *self;
        CurveId { attention, order, order_seed, complement }
    }
}

impl Row for PruningRow {
    /// Attention type, order, seed of a random order, whether it is reversed, and step.
    type Key = (&'static str, &'static str, Option<u64>, bool, usize);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.order.name(), self.order_seed, self.complement, self.step)
    }

    /// Its curve and step, such as `all/importance/3`.
    fn name(&self) -> String {
        self.curve().step(self.step)
    }

    /// `all by random, seed 3, step 2`; `all by importance, complement, step 2`.
    fn title(&self) -> String {
        let seed = self.order_seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        let complement = if self.complement { ", complement" } else { "" };
        format!("{} by {}{seed}{complement}, step {}", self.attention, self.order, self.step)
    }

    fn limits(&self) -> Vec<Limit> {
        let reached = [
            ("reached_dispensable", self.reached_dispensable),
            ("reached_without_loss", self.reached_without_loss),
        ];
        let reached = reached.map(|(column, share)| Limit::share(column, share));
        let own = step_limits(self.masked, self.heads).into_iter().chain(reached);
        own.chain(test_limits(self, self.score_delta)).collect()
    }

    fn fault(&self) -> Option<String> {
        heads_fault(&self.masked_heads, self.masked)
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }

    /// Percentages of different wholes cannot share an axis.
    fn group(&self) -> Option<String> {
        Some(self.attention.to_string())
    }

    fn of_group(&self) -> Vec<(&'static str, String)> {
        vec![("heads", self.heads.to_string())]
    }

    fn against(&self, before: &Self) -> Option<(&'static str, f64, &'static str)> {
        falls(before.masked, self.masked).filter(|_| self.family() == before.family())
    }
}

impl TestedRow for PruningRow {
    /// Its curve, such as `all/importance`, `enc-dec/random-3` or `all/importance/complement`.
    fn family(&self) -> String {
        self.curve().to_string()
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn is_intact(&self) -> bool {
        self.masked == 0
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    fn step(&self) -> Option<usize> {
        (!matches!(self.order, Order::Floor | Order::Swap)).then_some(self.step)
    }

    fn record_reached(&mut self, reached: Reached) {
        self.reached_dispensable = Some(reached.dispensable);
        self.reached_without_loss = Some(reached.without_loss);
    }

    super::tested_columns!();
}
