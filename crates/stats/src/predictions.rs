//! First-order predictions of variants: their segments if the loss were linear in the gates.

use crate::counted::Counted;
use crate::{Cells, Error, Metric, Segments};

/// A variant as predicted from the base and the gradient of the loss, on all segments of a test set.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictions {
    /// Change of the nats or log-odds of each segment; the predicted nats may be negative.
    Changes(Vec<f64>),
    /// Segments with predicted classes.
    Outcomes(Segments),
}

impl Predictions {
    /// Reads predictions from the cells of the base and of predicted segments.
    pub fn from_cells(metric: Metric, base: &[Cells], predicted: &[Cells]) -> Result<Self, Error> {
        if !matches!(metric, Metric::Nats | Metric::Means(_)) {
            return Ok(Self::Outcomes(Segments::from_cells(metric, predicted)?));
        }
        let change = |(own, base): (&Cells, &Cells)| f64::from(own[0].value()) - f64::from(base[0].value());
        Ok(Self::Changes(predicted.iter().zip(base).map(change).collect()))
    }

    /// Returns the predicted change of the first number of each segment: nats, log-odds, or right answers.
    pub(crate) fn changes(&self, base: &Counted) -> Result<Vec<f64>, Error> {
        match self {
            Self::Changes(changes) => Ok(changes.clone()),
            Self::Outcomes(predicted) => Ok(base.variant(&predicted.counted()?).first_changes(base)),
        }
    }
}

/// Returns the cost of predictions in forward passes per segment. A backward pass counts as two; decisions need another forward pass.
pub fn passes(metric: Metric) -> usize {
    if matches!(metric, Metric::Nats | Metric::Means(_)) { 3 } else { 4 }
}
