//! Texts that are predicted under many head sets.
use std::ops::Range;

use core_masking::{HeadSet, LanguageModel, Trunk, to_vec};
use tch::{Kind, no_grad};

use super::rows::Rows;
use crate::error::Error;
use crate::evaluation::{BySet, Request, Scorer, by_lowest_layer};

/// A split that is predicted.
pub(crate) struct Predictions<'a> {
    pub(super) rows: &'a Rows,
}

/// What is known of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowNats {
    /// Its place.
    pub row: usize,
    /// Summed over its predictions.
    pub nats: f64,
}

impl Scorer for Predictions<'_> {
    type Model = LanguageModel;
    type Segment = RowNats;

    fn groups(sets: &[HeadSet], _: usize) -> Vec<Range<usize>> {
        by_lowest_layer(sets)
    }

    /// The nats of the rows of a batch under each wanted set.
    fn score(
        &self,
        model: &LanguageModel,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<RowNats>, Trunk), Error> {
        let variants = model.variants(request.sets, request.rescale)?.only(request.wanted);
        let batch = self.rows.batch(model, request.rows)?;
        let (found, trunk) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let of_set = |nats: &tch::Tensor| {
            let nats = to_vec::<f64>(&batch.by_row(&nats.to_kind(Kind::Double)));
            if nats.iter().any(|nats| !nats.is_finite()) {
                return Err(Error::NotFinite);
            }
            Ok(request.rows.iter().zip(nats).map(|(&row, nats)| RowNats { row, nats }).collect())
        };
        Ok((found.iter().map(of_set).collect::<Result<_, _>>()?, trunk))
    }
}
