//! Rankings of single heads without masking them: Michel et al. (2019), Section 4.1, and other criteria to compare with it.
//!
//! Equation 2, `I_h = E_x |∂L(x)/∂ξ_h|`, takes one forward and one backward pass: with one row of gates per example, row b of the gradient
//! belongs to example b. With one gate per query, the gradient is what the authors' code computes, the product of head output and its
//! gradient at each position. Criteria based on attention weights record them.
mod measuring;
mod scores;

use std::collections::BTreeMap;

use heads::Measure;
pub use measuring::Attended;
pub(crate) use measuring::{Measuring, Sums};
pub use scores::{HeadMeans, HeadScores, Terms};

/// Sums for each head, by criterion.
pub type Measured = BTreeMap<Measure, HeadMeans>;
