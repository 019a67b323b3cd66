//! Speed of a model with all its heads and without some: the rows of `speed-bench` (Michel et al. 2019, Section 4.3).
use std::path::Path;

use records::{Signature, SpeedRow};

use crate::findings::error::Result;
use crate::findings::kinds::other_kind;
use crate::findings::results::Results;
use crate::findings::same_model::may_have_same_weights;
use crate::findings::source::{ResultFile, experiment, is_of, names};

/// Speed of a model with all its heads and without some.
pub type Speed = Results<SpeedRow>;

impl Speed {
    /// Reads a file of `speed-bench`. Its limit counts only where the split has more segments.
    pub fn of_file(file: ResultFile) -> Result<Self> {
        let mut speed = Self::read(file)?;
        if let Some(Signature { identity, .. }) = &mut speed.file.signature {
            identity.limit =
                identity.limit.filter(|limit| speed.rows.iter().all(|row| row.segments >= *limit));
        }
        Ok(speed)
    }

    /// The speed beside that of a file, with the mean contexts of the removed heads folded into biases, where that was timed too.
    pub fn folded(file: &ResultFile) -> Result<Option<Self>> {
        other_kind(file, "mean", experiment::SPEED, &mut None)?.map(Self::of_file).transpose()
    }

    /// All speeds of the model behind a file that were timed by scoring segments, in whatever order heads were removed.
    pub fn all_of_model(file: &ResultFile) -> Result<Vec<Self>> {
        let folder = file.path.parent().unwrap_or(Path::new("."));
        let mut names = names(folder)?;
        names.retain(|name| is_of(experiment::SPEED, name));
        names.sort();
        let files = names.into_iter().map(|name| file.other(folder.join(name), experiment::SPEED));
        let files = files.collect::<Result<Vec<_>>>()?.into_iter().filter(|own| {
            let is_scoring = own.argument("continue_by").is_none() && own.ablation().is_empty();
            is_scoring && may_have_same_weights(file, own)
        });
        files.map(Self::of_file).collect()
    }

    /// The rows by number of removed heads, each by batch size.
    pub fn shares(&self) -> impl Iterator<Item = &[SpeedRow]> {
        self.rows.chunk_by(|left, right| left.removed == right.removed)
    }

    /// Unit that is counted, and the mean number of them in a segment.
    pub fn unit(&self) -> (&'static str, fn(&SpeedRow) -> f64) {
        let tokens = |row: &SpeedRow| row.tokens as f64 / row.segments as f64;
        if self.file.argument("continue_by").is_some() {
            ("Tokens produced", tokens)
        } else if self.has_metric("nats") {
            ("Tokens read", tokens)
        } else {
            ("Segments", |_| 1.0)
        }
    }

    /// `true` if this stands beside Table 4 of the paper, which is of BERT alone.
    pub fn is_beside_bert(&self) -> bool {
        self.file.kind.stands_for.is_some_and(|beside| !beside.translates())
    }

    /// `true` if the metric of the signature begins so.
    pub fn has_metric(&self, name: &str) -> bool {
        self.file.identity().is_some_and(|identity| identity.metric.starts_with(name))
    }
}
