//! Goals of trained gates, which are also in the file names of models.
use std::fmt;

use serde::{Deserialize, Serialize};

/// Goal of the gates of a model. A control has the goal of the gates that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Goal {
    /// Keep this many heads.
    Heads(usize),
    /// A penalty for an open gate, in nats per prediction: λ of Voita et al. (2019), Equation 6.
    Penalty(f64),
    /// All heads are kept: no gate was trained.
    AllHeads,
}

/// `heads-24`, `lambda-0.01` or `all-heads`.
impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heads(heads) => write!(formatter, "heads-{heads}"),
            Self::Penalty(lambda) => write!(formatter, "lambda-{lambda}"),
            Self::AllHeads => formatter.write_str("all-heads"),
        }
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
        let goal = match name.split_once('-') {
            Some(("heads", heads)) => heads.parse().ok().map(Self::Heads),
            Some(("lambda", lambda)) => lambda.parse().ok().map(Self::Penalty),
            Some(("all", "heads")) => Some(Self::AllHeads),
            _ => None,
        };
        let is_penalty = |lambda: f64| lambda.is_finite() && lambda.is_sign_positive();
        // only one spelling per goal
        goal.filter(|goal| {
            goal.to_string() == name && !matches!(goal, Self::Penalty(lambda) if !is_penalty(*lambda))
        })
        .ok_or_else(|| {
            format!("`{}` is no goal of gates such as heads-24 or lambda-0.01", words::excerpt(&name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip_and_others_are_refused() {
        let goals = [Goal::Heads(24), Goal::Penalty(0.0), Goal::Penalty(1e-9), Goal::AllHeads];
        assert_eq!(goals.map(|goal| Goal::try_from(goal.to_string())), goals.map(Ok));
        assert_eq!(Goal::Penalty(1e-9).to_string(), "lambda-0.000000001");
        for name in ["", "heads", "heads-+3", "all", "lambda-NaN", "lambda-inf", "lambda--0", "lambda-1e-9"] {
            assert!(Goal::try_from(name.to_owned()).unwrap_err().contains("is no goal of gates"), "{name}");
        }
    }
}
