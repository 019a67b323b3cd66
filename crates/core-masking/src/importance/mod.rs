//! Worth of single heads, without masking them: Michel et al. (2019), Section 4.1, and scores to compare with it.
//!
//! Equation 2, `I_h = E_x |∂L(x)/∂ξ_h|`, takes one forward and one backward pass: gates of one row for each example make
//! row b of the gradient that of example b. Gates of one entry for each query give what the authors' code computes, the
//! product of context and its gradient at each position. Scores of attention weights come from a record of them.
mod measuring;
mod scores;

use std::collections::BTreeMap;

use heads::Measure;
pub use measuring::Attended;
pub(crate) use measuring::{Measuring, Sums};
pub use scores::{HeadMeans, HeadScores, Terms};

/// Sums of heads, by measure.
pub type Measured = BTreeMap<Measure, HeadMeans>;
