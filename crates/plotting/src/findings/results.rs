//! The rows of one file, whatever its experiment.
use std::collections::BTreeSet;

use records::{HeadId, Row, StandsFor, TestedRow};

use crate::findings::error::Result;
use crate::findings::judge::{Criterion, Judge};
use crate::findings::metric::Metric;
use crate::findings::same_model::{self, weights_entry};
use crate::findings::source::ResultFile;

/// The rows of a result file, at least one.
#[derive(Debug, Clone)]
pub struct Results<R> {
    /// The file that was read.
    pub file: ResultFile,
    /// Rows in file order.
    pub rows: Vec<R>,
}

impl<R: Row> Results<R> {
    /// Reads and checks a file.
    pub fn read(mut file: ResultFile) -> Result<Self> {
        Ok(Self { rows: file.rows()?, file })
    }

    /// Reads a file of another experiment from the same folder; `None` if it does not exist. The weights must be equal.
    pub fn beside_model(file: &ResultFile, experiment: &str) -> Result<Option<Self>> {
        same_model::beside(file, experiment, experiment, &[weights_entry])?.map(Self::read).transpose()
    }
}

impl<R: TestedRow> Results<R> {
    /// Returns the metric of the scores.
    pub fn metric(&self) -> Metric {
        Metric::new(self.rows[0].metric())
    }

    /// Returns the score that the rows are compared with, in the unit of the metric.
    pub fn base(&self) -> f64 {
        self.rows[0].tests().base
    }

    /// Returns the base score with its metric: `BLEU 36.05`.
    pub fn described_base(&self) -> String {
        self.metric().described(self.base())
    }

    /// Returns a line such as `full model: BLEU 36.05`.
    pub fn base_line(&self) -> String {
        format!("full model: {}", self.described_base())
    }

    /// Returns the criteria for needed and dispensable heads.
    pub fn judge(&self, criterion: Criterion) -> Judge {
        Judge::new(&self.metric(), self.file.testing(), criterion)
    }

    /// Returns the model of the paper that these results can be compared with: the one that the setup stands for, if the metrics agree.
    pub fn beside(&self) -> Option<StandsFor> {
        self.file.kind.stands_for.filter(|beside| beside.metric() == self.rows[0].metric())
    }
}

/// Returns each value once, in ascending order; attention types in the order of the paper.
pub fn distinct<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the number of layers, and the maximum number of heads in a layer.
pub fn extent(heads: impl IntoIterator<Item = HeadId>) -> (usize, usize) {
    heads
        .into_iter()
        .fold((0, 0), |(layers, most), head| (layers.max(head.layer_number()), most.max(head.head_number())))
}

pub(crate) fn percent(part: usize, heads: usize) -> f64 {
    100.0 * part as f64 / heads as f64
}

/// Maximum distance of a row from a requested share of the heads, in percentage points.
const NEAR: f64 = 5.0;

/// Returns the row whose share of the heads, in percent, is closest to `percent`, if within [`NEAR`]; of ties, the first.
pub(crate) fn nearest<'a, T: 'a>(
    rows: impl IntoIterator<Item = &'a T>,
    share: fn(&T) -> f64,
    percent: f64,
) -> Option<&'a T> {
    let distance = |row: &T| (share(row) - percent).abs();
    let near = rows.into_iter().filter(|row| distance(row) <= NEAR);
    near.min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// Returns the 95% interval of a row's score; `None` if it was not tested.
pub fn interval(row: &impl TestedRow) -> Option<(f64, f64)> {
    let (base, (low, high)) = (row.tests().base, row.delta_interval()?);
    Some((base + low, base + high))
}
