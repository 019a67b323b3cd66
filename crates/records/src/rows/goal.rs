//! Goals of trained gates, which are also in the file names of models.
use std::fmt;

/// Goal of the gates of a model. A control has the goal of the gates that it is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_penalty_is_written_without_an_exponent() {
        assert_eq!(Goal::Penalty(1e-9).to_string(), "lambda-0.000000001");
    }
}
