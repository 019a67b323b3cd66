//! Which heads a curve masks, and in which order.
use std::fmt;

use records::{FLOOR, Order};

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
    /// Whether the order is reversed: what it masks first is kept.
    pub is_complement: bool,
}

/// The names of all orders, for messages.
pub fn allowed_orders() -> String {
    format!("{}, {FLOOR}", Order::ALL.map(Order::name).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for scope in [Scope::All, Scope::One(Attention::EncDec), Scope::One(Attention::SelfAttention)] {
            assert_eq!(Scope::parse(scope.name()), Some(scope));
        }
        assert_eq!(Scope::parse(""), None);
    }
}
