//! The rows of one file, whatever they are of.
use std::collections::BTreeSet;

use records::{HeadId, Row, StandsFor, TestedRow};

use crate::findings::error::Result;
use crate::findings::judge::{Criterion, Judge};
use crate::findings::metric::Metric;
use crate::findings::same_model::{self, weights_entry};
use crate::findings::source::ResultFile;

/// The rows of a result file, of which there is at least one.
#[derive(Debug, Clone)]
pub struct Results<R> {
    /// The file that was read.
    pub file: ResultFile,
    /// In the order of the file.
    pub rows: Vec<R>,
}

impl<R: Row> Results<R> {
    /// Reads and checks a file.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        Ok(Self { rows: file.rows()?, file })
    }

    /// Reads the file of this name beside another one of the same weights, if it is there.
    pub fn beside_model(file: &ResultFile, name: &str, experiment: &str) -> Result<Option<Self>> {
        same_model::beside(file, name, experiment, &[weights_entry])?.map(Self::read).transpose()
    }
}

impl<R: TestedRow> Results<R> {
    /// Metric of the scores.
    pub fn metric(&self) -> Metric {
        Metric::new(self.rows[0].metric())
    }

    /// Score of the model that the rows are compared with, in the unit of the metric.
    pub fn base(&self) -> f64 {
        self.rows[0].tests().base
    }

    /// The same by its name: `BLEU 36.05`.
    pub fn described_base(&self) -> String {
        self.metric().described(self.base())
    }

    /// `full model: BLEU 36.05`.
    pub fn base_line(&self) -> String {
        format!("full model: {}", self.described_base())
    }

    /// Criteria for heads that matter and heads that can go.
    pub fn judge(&self, criterion: Criterion) -> Judge {
        Judge::new(&self.metric(), self.file.testing(), criterion)
    }

    /// Model of the paper that they stand beside: the one that their subject stands for, if they are scored alike.
    pub fn beside(&self) -> Option<StandsFor> {
        self.file.kind.stands_for.filter(|beside| beside.metric() == self.rows[0].metric())
    }
}

/// Each once, in their order: types of attention as in the paper.
pub fn distinct<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Number of layers that heads span, and of heads in a layer.
pub fn extent(heads: impl IntoIterator<Item = HeadId>) -> (usize, usize) {
    heads
        .into_iter()
        .fold((0, 0), |(layers, most), head| (layers.max(head.layer_number()), most.max(head.head_number())))
}

/// A part of some heads, in percent.
pub(crate) fn percent(part: usize, heads: usize) -> f64 {
    100.0 * part as f64 / heads as f64
}

/// A row is near a share of the heads if its own lies no further away, in percentage points.
const NEAR: f64 = 5.0;

/// The row whose share of the heads, in percent, is nearest to this one, if one is near; of equals the first.
pub(crate) fn nearest<'a, T: 'a>(
    rows: impl IntoIterator<Item = &'a T>,
    share: fn(&T) -> f64,
    percent: f64,
) -> Option<&'a T> {
    let distance = |row: &T| (share(row) - percent).abs();
    let near = rows.into_iter().filter(|row| distance(row) <= NEAR);
    near.min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// The ends of the 95 % interval of a row's score, if it was tested.
pub fn interval(row: &impl TestedRow) -> Option<(f64, f64)> {
    let (base, (low, high)) = (row.tests().base, row.delta_interval()?);
    Some((base + low, base + high))
}
