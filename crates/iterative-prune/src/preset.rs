//! Presets: sets of defaults, each with its own name in result files.
use clap::ValueEnum;
use experiment::Steps;
use heads::experiment::{COMPARE_METHODS, ITERATIVE_PRUNE, JOINT_SEARCH, PRUNE_AND_RETRAIN};
use records::{Order, Repair};

/// Defaults of an experiment, and the name of its result file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Pruning curves (Michel et al. 2019, Figures 3, 4 and 6)
    #[value(name = ITERATIVE_PRUNE.name)]
    Prune,
    /// Pruning curves with the model of each step trained further
    #[value(name = PRUNE_AND_RETRAIN.name)]
    Retrain,
    /// All rankings and searches at equal numbers of heads, each with repairs, and the cost of choosing. Heads are chosen on the split of
    /// --estimate-on, also by the oracle
    #[value(name = COMPARE_METHODS.name)]
    Methods,
    /// A search for heads that can best be masked together, on a split other than the one that is scored
    #[value(name = JOINT_SEARCH.name)]
    Search,
}

/// Defaults of a preset.
pub struct Defaults {
    /// Rankings and searches; empty for all possible ones.
    pub orders: &'static [Order],
    /// Repairs; empty if models are scored without repair.
    pub repairs: &'static [Repair],
    /// Share of heads that a step masks, in percent; `None` for the paper's share.
    pub step_percent: Option<u64>,
    /// Maximum share of masked heads, in percent.
    pub percent: Option<u64>,
    /// Adds a row with all heads masked.
    pub floor: bool,
}

const PRUNE: Defaults =
    Defaults { orders: &[Order::Importance], repairs: &[], step_percent: None, percent: None, floor: true };

impl Preset {
    /// Returns the name of the experiment in result files.
    pub fn experiment(self) -> &'static str {
        match self {
            Self::Prune => ITERATIVE_PRUNE.name,
            Self::Retrain => PRUNE_AND_RETRAIN.name,
            Self::Methods => COMPARE_METHODS.name,
            Self::Search => JOINT_SEARCH.name,
        }
    }

    /// Returns its defaults.
    pub fn entry(self) -> Defaults {
        match self {
            Self::Prune => PRUNE,
            Self::Retrain => Defaults { repairs: &[Repair::Training], ..PRUNE },
            Self::Methods => Defaults {
                orders: &[],
                repairs: &[Repair::None, Repair::Mean, Repair::LeastSquares],
                step_percent: Some(25),
                floor: false,
                ..PRUNE
            },
            Self::Search => {
                Defaults { orders: &[Order::GreedyForward], percent: Some(50), floor: false, ..PRUNE }
            }
        }
    }

    /// Returns the steps that have a row, up to this percentage of the heads.
    pub fn steps(self, percent: Option<u64>) -> Steps {
        match (self, percent) {
            (Self::Methods, _) => Steps::Inner,
            (_, Some(percent)) => Steps::UpTo(percent),
            (_, None) => Steps::All,
        }
    }

    /// Returns true if the reversed ranking is measured too; importance has a complement in all presets but the search.
    pub fn has_complement(self, order: Order) -> bool {
        match self {
            Self::Prune | Self::Retrain => true,
            Self::Methods => order == Order::Importance,
            Self::Search => false,
        }
    }
}
