//! Which heads a curve masks, and in which order.
use std::fmt;

use crate::attention::Attention;

/// The heads that a curve can mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All heads of the model.
    All,
    /// Those of one attention type.
    One(Attention),
}

impl Scope {
    /// The scope that a CSV file calls `name`.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "all" { Some(Self::All) } else { name.parse().ok().map(Self::One) }
    }

    /// The name used in CSV files.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::One(attention) => attention.name(),
        }
    }

    /// All names, for messages.
    pub fn allowed() -> String {
        let types = Attention::ALL.map(Attention::name);
        format!("all, {}", types.join(", "))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Which curve of a scope and an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Curve {
    /// Which heads are masked.
    pub scope: Scope,
    /// In which order.
    pub order: Order,
    /// Whether the order is turned round: what it masks first is kept.
    pub is_complement: bool,
}

/// What the order of the row is called in which all heads of a scope are masked.
pub const FLOOR: &str = "floor";

/// What the heads of a curve are ordered by, or how they were searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// The estimate I_h of Michel et al. (2019), Equation 2.
    Importance,
    /// What masking the head alone costs.
    Oracle,
    /// Chance.
    Random,
    /// Entropy of the attention weights.
    Entropy,
    /// Mean of the greatest attention weight.
    Confidence,
    /// Gradient of the attention weights.
    AttentionGradient,
    /// Importance and entropy together.
    ImportanceEntropy,
    /// Joint search, one more head at each step.
    GreedyForward,
    /// Joint search that exchanges heads, at one number of heads.
    Swap,
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

    /// The order that a CSV file calls `name`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    /// The name used in CSV files.
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
        }
    }

    /// All names, for messages.
    pub fn allowed() -> String {
        format!("{}, {FLOOR}", Self::ALL.map(Self::name).join(", "))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for order in Order::ALL {
            assert_eq!(Order::parse(order.name()), Some(order));
        }
        for scope in [Scope::All, Scope::One(Attention::EncDec), Scope::One(Attention::SelfAttention)] {
            assert_eq!(Scope::parse(scope.name()), Some(scope));
        }
        assert_eq!((Order::parse("Swap"), Scope::parse("")), (None, None));
    }
}
