//! Rankings of heads and searches for head sets, with their names in result files.
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use heads::Measure;
use heads::names::named;

/// Name of the row in which all heads are masked.
pub const FLOOR: &str = "floor";

/// A ranking of heads, starting with those to be masked first, or a search that chooses a set for each number of heads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Importance, averaged and normalised as requested (Michel et al. 2019, Equation 2).
    #[default]
    Importance,
    /// Loss of score with a single head masked.
    Oracle,
    /// Random, one curve for each seed.
    Random,
    /// A criterion that defines an order in the table of criteria.
    By(Measure),
    /// Importance, measured again after each step on the model with heads masked.
    Recomputed,
    /// Loss of score with the head's output replaced by its mean (mean ablation).
    OracleMean,
    /// As many heads per module as batch-wise Fisher information masks, with heads exchanged to keep their joint loss low (Kwon et
    /// al. 2022, Section 4.2).
    FisherRearranged,
    /// Head's share of its layer's relevance for the prediction (Voita et al. 2019, Section 4).
    Relevance,
    /// Search that masks one more head at each step.
    GreedyForward,
    /// Search that exchanges heads at a fixed number of heads.
    Swap,
    /// Hard Concrete gates, trained to leave this number open (Voita et al. 2019, Section 6).
    Gates,
    /// Gates sampled so that their sum is this number (Li et al. 2021).
    Subset,
    /// Gates of [`Self::Subset`] without noise, with a hard choice in the forward pass (Li et al. 2021).
    SubsetStraight,
    /// All heads masked.
    Floor,
}

/// All values, in the order of legends and tables.
static ORDERS: LazyLock<Vec<Order>> = LazyLock::new(|| {
    use Order::{
        By, FisherRearranged, Floor, Gates, GreedyForward, Importance, Oracle, OracleMean, Random,
        Recomputed, Relevance, Subset, SubsetStraight, Swap,
    };
    let measures = Measure::ALL.into_iter().filter(|measure| measure.entry().order.is_some()).map(By);
    let others = [Recomputed, OracleMean, FisherRearranged, Relevance, GreedyForward, Swap];
    let trained = [Gates, Subset, SubsetStraight, Floor];
    [Importance, Oracle, Random].into_iter().chain(measures).chain(others).chain(trained).collect()
});

impl ValueEnum for Order {
    fn value_variants<'a>() -> &'a [Self] {
        Self::all()
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Importance => {
                "Mean absolute gradient of the loss with respect to the head's gate (Michel et al. 2019, Equation 2)"
            }
            Self::Oracle => "Loss with the head masked alone, as `ablate-one` measures it",
            Self::Random => "Random order, one curve for each seed",
            Self::By(measure) => measure.entry().order?.1,
            Self::Recomputed => "Importance, measured again after each step",
            Self::OracleMean => "Loss with the head's output replaced by its mean",
            Self::FisherRearranged => "fisher-batches, then exchanges within modules (Kwon et al. 2022)",
            Self::Relevance => {
                "Share of the layer's relevance (Voita et al. 2019); translators and classifiers"
            }
            Self::GreedyForward => {
                "Search: mask the head that costs least in addition to the masked ones, one by one"
            }
            Self::Swap => "Search: exchange heads as long as that helps, starting from importance",
            Self::Gates => "Train Hard Concrete gates that close all but some heads (Voita et al. 2019)",
            Self::Subset => "Train the subset of heads to keep, with Gumbel noise (Li et al. 2021)",
            Self::SubsetStraight => {
                "Train the subset of heads to keep with the straight-through estimator (Li et al. 2021)"
            }
            Self::Floor => return None,
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

impl Order {
    /// Returns all rankings and searches, in the order of legends and tables.
    pub fn all() -> &'static [Self] {
        &ORDERS[..ORDERS.len() - 1]
    }

    /// Returns the name in result files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::Oracle => "oracle",
            Self::Random => "random",
            Self::By(measure) => measure.entry().order.map_or(measure.name(), |(name, _)| name),
            Self::Recomputed => "importance-recomputed",
            Self::OracleMean => "oracle-mean",
            Self::FisherRearranged => "fisher-rearranged",
            Self::Relevance => "relevance",
            Self::GreedyForward => "greedy-forward",
            Self::Swap => "swap",
            Self::Gates => "gates",
            Self::Subset => "subset-pruning",
            Self::SubsetStraight => "subset-straight-through",
            Self::Floor => FLOOR,
        }
    }

    /// Returns true if gates are trained to choose the heads.
    pub fn is_trained(self) -> bool {
        matches!(self, Self::Gates | Self::Subset | Self::SubsetStraight)
    }

    /// Returns true if heads are chosen for each number by training or by scoring head sets, which is expensive.
    pub fn is_search(self) -> bool {
        self.is_trained() || matches!(self, Self::GreedyForward | Self::Swap)
    }

    /// Returns true if heads are ranked, so that the ranking can be reversed.
    pub fn is_ranking(self) -> bool {
        !self.is_search() && !matches!(self, Self::Random | Self::FisherRearranged | Self::Floor)
    }

    /// Returns true if heads are scored on the model, so that they can be scored again with some of them masked.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Importance | Self::By(_))
    }

    /// Returns true if heads are chosen on the `scored` split, which makes the curve optimistic: always for the oracle, and for scores
    /// estimated on that split.
    pub fn is_made_on(self, scored: Option<&str>, estimated_on: Option<&str>) -> bool {
        self == Self::Oracle || self.is_measured() && scored.is_some() && estimated_on == scored
    }
}

named!(Order, "order", ORDERS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimistic_and_measured_orders_are_told_apart_and_names_survive_a_round_trip() {
        let made_on = |order: Order, estimated_on| order.is_made_on(Some("test"), estimated_on);
        assert!(made_on(Order::Oracle, None) && made_on(Order::Oracle, Some("train")));
        assert!(made_on(Order::Importance, Some("test")) && !made_on(Order::Importance, Some("train")));
        assert!(!made_on(Order::Random, Some("test")) && !Order::Importance.is_made_on(None, None));
        let is_measured = |name: &str| name.parse::<Order>().unwrap().is_measured();
        assert!(["entropy", "fisher-batches", "modules"].into_iter().all(is_measured));
        // these cannot score heads again with some of them masked
        assert!(!["oracle", "relevance", "greedy-forward", "swap"].into_iter().any(is_measured));
        // names survive a round trip and are those of the command line
        for order in Order::value_variants() {
            assert_eq!(order.name().parse(), Ok(*order));
            assert_eq!(order.to_possible_value().unwrap().get_name(), order.name());
        }
        assert_eq!(FLOOR.parse(), Ok(Order::Floor));
    }
}
