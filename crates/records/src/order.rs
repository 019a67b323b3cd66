//! Orders that heads are masked in, and methods that choose sets of them, by their names in result files.
use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use heads::Measure;
use heads::names::named;

/// Name of the order of the row in which all heads are masked.
pub const FLOOR: &str = "floor";

/// Order of heads, those to be masked first in front, or a method that chooses a set of them for each number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Importance, averaged and normalised as asked (Michel et al. 2019, Equation 2).
    #[default]
    Importance,
    /// Loss of score with the head masked.
    Oracle,
    /// Chance, one curve for each seed.
    Random,
    /// A measure that the table of measures gives an order for.
    By(Measure),
    /// Importance, scored again after each step on the model without the heads that are masked by then.
    Recomputed,
    /// Loss of score with the head's mean context in its place.
    OracleMean,
    /// The number of heads in each layer is that of Fisher by batches; which of them stay follows from what they lose together (Kwon
    /// et al. 2022, Section 4.2).
    FisherRearranged,
    /// Share of a head of its layer in what the model says (Voita et al. 2019, Section 4).
    Relevance,
    /// Joint search, one more head at each step.
    GreedyForward,
    /// Joint search that exchanges heads, at one number of heads.
    Swap,
    /// Hard Concrete gates, trained to leave this number open (Voita et al. 2019, Section 6).
    Gates,
    /// Gates that are drawn so that their sum is this number (Li et al. 2021).
    Subset,
    /// The same without noise, the hard choice going forward (Li et al. 2021).
    SubsetStraight,
    /// No order: all heads are masked.
    Floor,
}

/// Methods of `compare-methods` alone.
const METHODS: [Order; 9] = [
    Order::Recomputed,
    Order::OracleMean,
    Order::FisherRearranged,
    Order::Relevance,
    Order::GreedyForward,
    Order::Swap,
    Order::Gates,
    Order::Subset,
    Order::SubsetStraight,
];

/// All values, in the order of legends and tables. At the end are the methods that are no orders, and the floor.
static ORDERS: LazyLock<Vec<Order>> = LazyLock::new(|| {
    let measures = Measure::ALL.into_iter().filter(|measure| measure.entry().order.is_some()).map(Order::By);
    let orders = [Order::Importance, Order::Oracle, Order::Random].into_iter().chain(measures);
    orders.chain(METHODS).chain([Order::Floor]).collect()
});

impl ValueEnum for Order {
    // clap wants those alone that can be asked for of every experiment
    fn value_variants<'a>() -> &'a [Self] {
        &ORDERS[..ORDERS.len() - METHODS.len() - 1]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Importance => {
                "Mean absolute gradient of the loss with respect to the head's gate (Michel et al. 2019, Equation 2)"
            }
            Self::Oracle => "Loss with the head masked alone, as `ablate-one` measures it",
            Self::Random => "Random order, one curve for each seed",
            Self::By(measure) => measure.entry().order?.1,
            _ => return None,
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

impl Order {
    /// All orders and methods, in the order of legends and tables.
    pub fn all() -> &'static [Self] {
        &ORDERS[..ORDERS.len() - 1]
    }

    /// The name in result files and on the command line.
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

    /// Returns true if it is made on the split that is `scored`, so that its curve is optimistic: the oracle's always is, and those of
    /// scores that were estimated on that split.
    pub fn is_made_on(self, scored: Option<&str>, estimated_on: Option<&str>) -> bool {
        self == Self::Oracle || self.is_measured() && scored.is_some() && estimated_on == scored
    }
}

named!(Order, "order", ORDERS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_the_scored_split_are_optimistic() {
        let made_on = |order: Order, estimated_on| order.is_made_on(Some("test"), estimated_on);
        assert!(made_on(Order::Oracle, None) && made_on(Order::Oracle, Some("train")));
        assert!(made_on(Order::Importance, Some("test")) && !made_on(Order::Importance, Some("train")));
        assert!(!made_on(Order::Random, Some("test")) && !Order::Importance.is_made_on(None, None));
    }

    #[test]
    fn names_survive_a_round_trip_and_are_those_of_the_command_line() {
        for order in Order::all() {
            assert_eq!(order.name().parse(), Ok(*order));
        }
        assert_eq!(FLOOR.parse(), Ok(Order::Floor));
        assert!("Swap".parse::<Order>().is_err());
        for order in Order::value_variants() {
            assert_eq!(order.to_possible_value().unwrap().get_name(), order.name());
        }
    }
}
