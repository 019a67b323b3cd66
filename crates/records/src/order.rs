//! What heads can be ordered by, and how sets of them are searched for, by their names in result files.
use clap::ValueEnum;
use heads::names::named;

/// What the order of the row is called in which all heads are masked.
pub const FLOOR: &str = "floor";

/// What heads are ordered by, the least first, or how they were searched for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Order {
    /// Mean absolute gradient of the loss with respect to the head's gate (Michel et al. 2019, Equation 2)
    #[default]
    Importance,
    /// Loss of score with the head masked, as `ablate-one` measured it
    Oracle,
    /// Random order, one curve for each seed
    Random,
    /// Negative entropy of attention: heads with spread-out attention go first
    Entropy,
    /// Greatest attention weight, averaged over queries
    Confidence,
    /// Mean absolute gradient of the loss with respect to the attention weights
    AttentionGradient,
    /// Importance and entropy together: heads that matter and whose attention is spread stay
    ImportanceEntropy,
    /// Joint search, one more head at each step.
    #[value(skip)]
    GreedyForward,
    /// Joint search that exchanges heads, at one number of heads.
    #[value(skip)]
    Swap,
    /// No order: all heads are masked.
    #[value(skip)]
    Floor,
}

impl Order {
    /// All orders, in the order in which legends and tables list them.
    pub const ALL: [Self; 9] = [
        Self::Importance,
        Self::Oracle,
        Self::Random,
        Self::Entropy,
        Self::Confidence,
        Self::AttentionGradient,
        Self::ImportanceEntropy,
        Self::GreedyForward,
        Self::Swap,
    ];

    /// The name in result files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Importance => "importance",
            Self::Oracle => "oracle",
            Self::Random => "random",
            Self::Entropy => "entropy",
            Self::Confidence => "confidence",
            Self::AttentionGradient => "attention-gradient",
            Self::ImportanceEntropy => "importance-entropy",
            Self::GreedyForward => "greedy-forward",
            Self::Swap => "swap",
            Self::Floor => FLOOR,
        }
    }

    /// Whether heads are scored on the model, so that they can be scored again with some of them masked.
    pub fn is_measured(self) -> bool {
        !matches!(self, Self::Oracle | Self::Random | Self::GreedyForward | Self::Swap | Self::Floor)
    }

    /// Whether it is made on the split that is `scored`, so that its curve is optimistic: the oracle's always is, and those of
    /// scores that were estimated on that split.
    pub fn is_made_on(self, scored: Option<&str>, estimated_on: Option<&str>) -> bool {
        self == Self::Oracle || self.is_measured() && scored.is_some() && estimated_on == scored
    }
}

/// All values, with the one that is no order.
const NAMED: [Order; 10] = {
    let [a, b, c, d, e, f, g, h, i] = Order::ALL;
    [a, b, c, d, e, f, g, h, i, Order::Floor]
};

named!(Order, "order", NAMED);

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
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        assert_eq!(FLOOR.parse(), Ok(Order::Floor));
        assert!("Swap".parse::<Order>().is_err());
        for order in Order::value_variants() {
            let value = order.to_possible_value().map(|value| value.get_name().to_owned());
            assert!(value.is_none_or(|value| value == order.name()));
        }
    }
}
