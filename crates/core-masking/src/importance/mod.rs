//! What single heads are worth, without masking them: Michel et al. (2019), Section 4.1, and scores to compare with it.
//!
//! Equation 2, `I_h = E_x |∂L(x)/∂ξ_h|`, takes one forward and one backward pass: gates of one row for each example make
//! row b of the gradient that of example b. Gates of one entry for each query give what the authors' code computes, the
//! product of context and its gradient at each position. Scores of attention weights come from a record of them.
mod measuring;
mod scores;

use std::collections::BTreeMap;

pub use measuring::Attended;
pub(crate) use measuring::Measuring;
pub use scores::{HeadMeans, HeadScores};

/// What can be measured of a head. All are means over a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// `|∂L(x)/∂ξ_h|` in nats, mean over examples: Equation 2.
    Example,
    /// The same at each query position, mean over positions: |context · its gradient|, in nats.
    ///
    /// Differs from the paper: this is what its authors' code does. In the last layer of BERT, where only the first position
    /// has a gradient, that code divides by the number of examples, and so does this.
    Token,
    /// `Σ |∂L(x)/∂A_h|` over the attention weights of real queries and visible keys, in nats, mean over examples.
    AttentionGradient,
    /// Entropy of the attention weights of a query, in nats, mean over queries.
    Entropy,
    /// Entropy as a share of what it can be, the logarithm of the number of visible keys; mean over queries that see more
    /// than one.
    NormalisedEntropy,
    /// The greatest attention weight of a query, the end-of-sentence symbol left out as a key; mean over queries: Voita et
    /// al. (2019), Section 4. Of classifiers nothing is left out: `[SEP]` stands between two texts too.
    Confidence,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Example,
        Self::Token,
        Self::AttentionGradient,
        Self::Entropy,
        Self::NormalisedEntropy,
        Self::Confidence,
    ];

    /// Whether gates need one entry for each query.
    fn is_by_query(self) -> bool {
        self == Self::Token
    }

    /// Whether it is made of attention weights.
    pub fn is_of_weights(self) -> bool {
        !matches!(self, Self::Example | Self::Token)
    }

    /// Whether it is made of gradients.
    pub fn is_gradient(self) -> bool {
        matches!(self, Self::Example | Self::Token | Self::AttentionGradient)
    }
}

/// What was measured, by measure.
pub type Measured = BTreeMap<Measure, HeadMeans>;
