//! What gates are trained for, by which files name a model.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the gates of a model were trained for. A control has the goal of the gates that it stands beside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Goal {
    /// That so many heads stay.
    Heads(usize),
    /// That an open gate costs so many nats per prediction: λ of Voita et al. (2019), Equation 6.
    Price(f64),
    /// That all heads stay: no gate was trained.
    AllHeads,
}

/// `heads-24`, `lambda-0.01` or `all-heads`.
impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heads(heads) => write!(formatter, "heads-{heads}"),
            Self::Price(lambda) => write!(formatter, "lambda-{lambda}"),
            Self::AllHeads => formatter.write_str("all-heads"),
        }
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let fault =
            || format!("`{}` is no goal of gates such as heads-24 or lambda-0.01", words::excerpt(name));
        let price =
            |text: &str| text.parse().ok().filter(|lambda: &f64| lambda.is_finite() && *lambda >= 0.0);
        let goal = match name.split_once('-') {
            Some(("heads", heads)) => heads.parse().ok().map(Self::Heads),
            Some(("lambda", lambda)) => price(lambda).map(Self::Price),
            Some(("all", "heads")) => Some(Self::AllHeads),
            _ => None,
        };
        goal.ok_or_else(fault)
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        let goals = [Goal::Heads(24), Goal::Price(0.0), Goal::Price(1e-9), Goal::AllHeads];
        assert_eq!(goals.map(|goal| goal.to_string().parse()), goals.map(Ok));
        assert_eq!(Goal::Price(1e-9).to_string(), "lambda-0.000000001");
    }

    #[test]
    fn other_names_are_refused() {
        for name in
            ["", "heads", "heads-", "heads--1", "heads-1.5", "lambda-NaN", "lambda--1", "all", "Heads-3"]
        {
            let message = format!("`{name}` is no goal of gates such as heads-24 or lambda-0.01");
            assert_eq!(name.parse::<Goal>(), Err(message));
        }
    }
}
