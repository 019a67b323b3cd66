//! Rows of pruned models that were repaired.
use heads::Scope;
use serde::{Deserialize, Serialize};

use super::{BASE, PruningRow, Row, TestedRow};
use crate::Order;
use crate::check::{Limit, finite, step_limits, test_limits};
use clap::ValueEnum;
use heads::names::named;
use stats::MetricName;

/// What is done to a model without some of its heads, so that it does better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Repair {
    /// Nothing
    None,
    /// The mean context of each masked head is folded into the bias of the output projection
    Mean,
    /// The kept heads are multiplied, module by module, so that each module writes what is closest to what it wrote (Kwon et al. 2022)
    LeastSquares,
    /// The weights are trained further (the encoder's alone if its heads are), each model for as many updates, the one with all heads
    /// too, which is the control
    #[default]
    Training,
}

impl Repair {
    /// All kinds, in the order of legends and tables.
    pub const ALL: [Self; 4] = [Self::None, Self::Mean, Self::LeastSquares, Self::Training];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mean => "mean",
            Self::LeastSquares => "least-squares",
            Self::Training => "training",
        }
    }
}

named!(Repair, "repair", Repair::ALL);

/// One row of `prune-and-retrain` or `compare-methods`: a step of a [pruning curve](PruningRow) after a repair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairedRow {
    /// Repair of the model; empty in older files, where every model was retrained.
    #[serde(default)]
    pub repair: Repair,
    /// Attention type of the heads that can be masked, or `all`.
    pub attention: Scope,
    /// Ranking or search; `floor` is the one row with all heads masked.
    pub order: Order,
    /// Seed of a random order; empty for other orders.
    pub order_seed: Option<u64>,
    /// `true` if the order is reversed: the heads that it masks first are kept (Prasanna et al. 2020).
    pub complement: bool,
    /// Step of the curve; at step 0 no head is masked (with retraining, the fine-tuned baseline).
    pub step: usize,
    /// Number of masked heads.
    pub masked: usize,
    /// Number of heads that can be masked.
    pub heads: usize,
    /// Metric of the scores, such as `bleu` or `nats`.
    pub metric: MetricName,
    /// Score of the full model before the repair, in the unit of the metric.
    pub base_score: f64,
    /// Score after masking and repair, in the unit of the metric.
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
    /// Loss on the development split, in nats per prediction; empty without retraining.
    pub dev_loss: Option<f64>,
    /// Epoch whose weights are used, chosen on the development split; empty without retraining.
    pub epoch: Option<usize>,
    /// Updates of retraining, over all epochs.
    pub updates: usize,
    /// Segments that the model read to choose the heads.
    #[serde(default)]
    pub forward: usize,
    /// Segments among these with a backward pass.
    #[serde(default)]
    pub backward: usize,
    /// Updates of a selector that was trained to choose the heads.
    #[serde(default)]
    pub selection_updates: usize,
    /// Masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
    pub masked_heads: String,
}

impl From<PruningRow> for RepairedRow {
    /// The row of this step, without scores and costs.
    fn from(step: PruningRow) -> Self {
        Self {
            attention: step.attention,
            order: step.order,
            order_seed: step.order_seed,
            complement: step.complement,
            step: step.step,
            masked: step.masked,
            heads: step.heads,
            metric: step.metric,
            masked_heads: step.masked_heads,
            ..Self::default()
        }
    }
}

impl From<&RepairedRow> for PruningRow {
    /// The same step of a pruning curve, with the scores after training.
    fn from(row: &RepairedRow) -> Self {
        Self {
            attention: row.attention,
            order: row.order,
            order_seed: row.order_seed,
            complement: row.complement,
            step: row.step,
            masked: row.masked,
            heads: row.heads,
            metric: row.metric,
            base_score: row.base_score,
            score: row.score,
            score_delta: row.score_delta,
            delta_low: row.delta_low,
            delta_high: row.delta_high,
            simultaneous_low: row.simultaneous_low,
            simultaneous_high: row.simultaneous_high,
            p_value: row.p_value,
            p_bootstrap: row.p_bootstrap,
            p_koehn: row.p_koehn,
            p_adjusted: row.p_adjusted,
            p_benjamini_hochberg: row.p_benjamini_hochberg,
            p_unpaired_t: row.p_unpaired_t,
            p_mcnemar: row.p_mcnemar,
            power: row.power,
            segments_for_power: row.segments_for_power,
            masked_heads: row.masked_heads.clone(),
            ..Self::default()
        }
    }
}

/// Cost of choosing heads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Segments that the model reads forward.
    pub forward: usize,
    /// Of these, segments whose loss is followed backward.
    pub backward: usize,
    /// Updates of what chooses them, where that is trained.
    pub updates: usize,
}

impl Cost {
    /// The cheapest first: by passes, then by updates.
    pub fn key(self) -> [usize; 2] {
        [self.forward + self.backward, self.updates]
    }
}

impl RepairedRow {
    /// Cost of choosing the masked heads.
    pub fn cost(&self) -> Cost {
        Cost { forward: self.forward, backward: self.backward, updates: self.selection_updates }
    }

    fn suffix(&self) -> String {
        if self.repair == Repair::Training { String::new() } else { format!("/{}", self.repair) }
    }
}

impl Row for RepairedRow {
    type Key = (Repair, <PruningRow as Row>::Key);

    fn key(&self) -> Self::Key {
        (self.repair, PruningRow::from(self).key())
    }

    /// As that of the step of the curve, such as `all/importance/3`; behind it, unless it was trained further, its repair.
    fn name(&self) -> String {
        PruningRow::from(self).name() + &self.suffix()
    }

    fn title(&self) -> String {
        let repair = if self.repair == Repair::None { "not repaired" } else { self.repair.name() };
        format!("{}, {repair}", PruningRow::from(self).title())
    }

    fn limits(&self) -> Vec<Limit> {
        let steps = step_limits(self.masked, self.heads).into_iter();
        steps
            .chain(finite(&[("dev_loss", self.dev_loss)]))
            .chain(test_limits(self, self.score_delta))
            .collect()
    }

    fn fault(&self) -> Option<String> {
        PruningRow::from(self).fault()
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }

    fn group(&self) -> Option<String> {
        PruningRow::from(self).group()
    }

    fn of_group(&self) -> Vec<(&'static str, String)> {
        PruningRow::from(self).of_group()
    }

    fn against(&self, before: &Self) -> Option<(&'static str, f64, &'static str)> {
        PruningRow::from(self).against(&PruningRow::from(before))
    }
}

impl TestedRow for RepairedRow {
    fn family(&self) -> String {
        PruningRow::from(self).family() + &self.suffix()
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    super::tested_columns!();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step keeps its place in the curve. Where no head is masked the model is another one all the same, so that it is tested.
    #[test]
    fn a_row_stands_where_its_step_does() {
        let step = PruningRow {
            order: Order::Random,
            order_seed: Some(7),
            complement: true,
            step: 3,
            masked: 1,
            heads: 6,
            masked_heads: "self:1:2".to_owned(),
            ..PruningRow::default()
        };
        let row = RepairedRow::from(step.clone());
        assert_eq!((row.key().1, row.name(), row.family()), (step.key(), step.name(), step.family()));
        let folded = RepairedRow { repair: Repair::Mean, ..row.clone() };
        assert_eq!(folded.name(), format!("{}/mean", step.name()));
        assert!(row.fault().is_none() && RepairedRow { masked: 2, ..row }.fault().is_some());
        let intact = PruningRow::default();
        assert!(intact.is_intact() && !RepairedRow::from(intact).is_intact());
    }
}
