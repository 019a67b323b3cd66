//! Rows of pruning curves: more and more heads are masked, in the order of a ranking or as chosen by a search, optionally with a repair.
use std::fmt;

use clap::ValueEnum;
use heads::Scope;
use heads::names::named;
use stats::spread::Reached;

use super::{BASE, Row, TestedRow, falls, heads_fault, tested_columns, tested_row};
use crate::Order;
use crate::check::{Limit, finite, step_limits, test_limits};

/// Repair of a model after some of its heads are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Repair {
    /// No repair
    None,
    /// Add the mean output of each masked head to the bias of the output projection
    Mean,
    /// Rescale the kept heads, module by module, so that each module's output is closest to the full model's in least squares (Kwon et
    /// al. 2022)
    LeastSquares,
    /// Train the weights further (only the encoder's if only its heads are masked), with equally many updates for each model and for the
    /// fine-tuned baseline, which keeps all heads
    Training,
}

impl Repair {
    /// All repairs, in the order of legends and tables.
    pub const ALL: [Self; 4] = [Self::None, Self::Mean, Self::LeastSquares, Self::Training];

    /// Returns the name in files.
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

tested_row! {
    /// One row of `iterative-prune`: a step of a pruning curve (Michel et al. 2019, Figures 3, 4 and 6), perhaps after a repair.
    pub struct CurveRow {
        /// Repair after masking; empty for curves that compare no repairs.
        pub repair: Option<Repair>,
        /// Attention type of the heads that can be masked, or `all`.
        pub attention: Scope,
        /// Ranking or search; `floor` is the one row with all heads masked.
        pub order: Order,
        /// Seed of a random order; empty for other orders.
        pub order_seed: Option<u64>,
        /// `true` if the order is reversed: the heads that it masks first are kept (Prasanna et al. 2020).
        pub complement: bool,
        /// Step of the curve; no head is masked at step 0 (with retraining, the fine-tuned baseline).
        pub step: usize,
        /// Number of masked heads.
        pub masked: usize,
        /// Number of heads that can be masked.
        pub heads: usize,
        [tests]
        /// Share of 1,000 resamples of the test set in which every step up to this one is dispensable; empty for searches and repairs.
        pub reached_dispensable: Option<f64>,
        /// Share of these resamples in which no step up to this one is a significant loss.
        pub reached_without_loss: Option<f64>,
        /// Score on the split of the search, in the unit of the metric; searches only.
        pub search_score: Option<f64>,
        /// Loss on the development split, in nats per prediction; retraining only.
        pub dev_loss: Option<f64>,
        /// Epoch whose weights are used, chosen on the development split; retraining only.
        pub epoch: Option<usize>,
        /// Updates of retraining, over all epochs; empty for curves that compare no repairs.
        pub updates: Option<usize>,
        /// Segments that the model read to choose the heads; `compare-methods` only.
        pub forward: Option<usize>,
        /// Segments among these with a backward pass.
        pub backward: Option<usize>,
        /// Updates of a selector that was trained to choose the heads.
        pub selection_updates: Option<usize>,
        /// Masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
        pub masked_heads: String,
    }
}

/// Name of a pruning curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CurveId {
    /// Heads that can be masked.
    pub attention: Scope,
    /// Ranking of the heads, or search for them.
    pub order: Order,
    /// Seed of a random order.
    pub order_seed: Option<u64>,
    /// `true` if the order is reversed.
    pub complement: bool,
}

/// For example `all/importance`, `enc-dec/random-3` or `all/importance/complement`.
impl fmt::Display for CurveId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.order_seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        let side = if self.complement { "/complement" } else { "" };
        write!(formatter, "{}/{}{seed}{side}", self.attention, self.order)
    }
}

/// Cost of choosing heads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Segments that the model reads.
    pub forward: usize,
    /// Segments among these with a backward pass.
    pub backward: usize,
    /// Updates of a selector that is trained to choose the heads.
    pub updates: usize,
}

impl Cost {
    /// Returns the sort key, cheapest first: by passes, then by updates.
    pub fn key(self) -> [usize; 2] {
        [self.forward + self.backward, self.updates]
    }
}

impl CurveRow {
    /// Returns the name of its curve.
    pub fn curve(&self) -> CurveId {
        let Self { attention, order, order_seed, complement, .. } = *self;
        CurveId { attention, order, order_seed, complement }
    }

    /// Returns the cost of choosing the masked heads.
    pub fn cost(&self) -> Cost {
        let [forward, backward, updates] =
            [self.forward, self.backward, self.selection_updates].map(Option::unwrap_or_default);
        Cost { forward, backward, updates }
    }

    /// Returns the repair of the model. Files of earlier versions do not state it for models that were retrained.
    pub fn repair(&self) -> Repair {
        let unnamed = if self.updates.is_some() { Repair::Training } else { Repair::None };
        self.repair.unwrap_or(unnamed)
    }

    /// Returns true for rows of files that compare repairs; their step 0 is compared with the full model too.
    pub fn is_repaired(&self) -> bool {
        self.repair.is_some() || self.updates.is_some()
    }

    /// Returns the suffix of the name; retrained models have none because they existed before other repairs.
    fn suffix(&self) -> String {
        let named = self.repair.filter(|&repair| repair != Repair::Training);
        named.map_or_else(String::new, |repair| format!("/{repair}"))
    }
}

impl Row for CurveRow {
    /// Repair, attention type, order, seed of a random order, whether it is reversed, and step.
    type Key = (Option<Repair>, &'static str, &'static str, Option<u64>, bool, usize);

    /// Curves with and without repairs used to have separate row types.
    const LATER: &'static [&'static str] = &[
        "repair",
        "reached_dispensable",
        "reached_without_loss",
        "search_score",
        "dev_loss",
        "epoch",
        "updates",
        "forward",
        "backward",
        "selection_updates",
    ];

    fn key(&self) -> Self::Key {
        (
            self.is_repaired().then(|| self.repair()),
            self.attention.name(),
            self.order.name(),
            self.order_seed,
            self.complement,
            self.step,
        )
    }

    /// Returns its curve, step and repair, such as `all/importance/3` or `all/importance/3/mean`.
    fn name(&self) -> String {
        format!("{}/{}{}", self.curve(), self.step, self.suffix())
    }

    /// For example `all by random, seed 3, step 2` or `all by importance, complement, step 2, least-squares`.
    fn title(&self) -> String {
        let seed = self.order_seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        let complement = if self.complement { ", complement" } else { "" };
        let repair = match self.repair {
            None => String::new(),
            Some(Repair::None) => ", not repaired".to_owned(),
            Some(repair) => format!(", {repair}"),
        };
        format!("{} by {}{seed}{complement}, step {}{repair}", self.attention, self.order, self.step)
    }

    fn limits(&self) -> Vec<Limit> {
        let reached = [
            ("reached_dispensable", self.reached_dispensable),
            ("reached_without_loss", self.reached_without_loss),
        ];
        let reached = reached.map(|(column, share)| Limit::share(column, share));
        let own = step_limits(self.masked, self.heads).into_iter().chain(reached);
        own.chain(finite(&[("dev_loss", self.dev_loss)])).chain(test_limits(self, self.score_delta)).collect()
    }

    fn fault(&self) -> Option<String> {
        heads_fault(&self.masked_heads, self.masked)
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }

    /// Percentages of different totals cannot share an axis.
    fn series(&self) -> String {
        self.family()
    }

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

impl TestedRow for CurveRow {
    /// Returns its curve and repair, such as `all/importance`, `enc-dec/random-3` or `all/importance/complement/mean`.
    fn family(&self) -> String {
        format!("{}{}", self.curve(), self.suffix())
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn is_full_model(&self) -> bool {
        self.masked == 0 && !self.is_repaired()
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    fn step(&self) -> Option<usize> {
        let is_walk = !matches!(self.order, Order::Floor | Order::Swap) && !self.is_repaired();
        is_walk.then_some(self.step)
    }

    fn record_reached(&mut self, reached: Reached) {
        self.reached_dispensable = Some(reached.dispensable);
        self.reached_without_loss = Some(reached.without_loss);
    }

    tested_columns!();
}
