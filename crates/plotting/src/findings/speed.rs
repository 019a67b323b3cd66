//! Speed of the full model and of models with heads removed: the rows of `speed-bench` (Michel et al. 2019, Section 4.3).
use std::path::Path;

use records::{Signature, SpeedRow};

use crate::findings::ablation_kinds::other_kind;
use crate::findings::error::Result;
use crate::findings::results::Results;
use crate::findings::same_model::may_have_same_weights;
use crate::findings::source::{ResultFile, experiment, is_of, names};

/// Speed of the full model and of models with heads removed.
pub type Speed = Results<SpeedRow>;

impl Speed {
    /// Reads a file of `speed-bench`; drops its limit on segments if the split has no more.
    pub fn of_file(file: ResultFile) -> Result<Self> {
        let mut speed = Self::read(file)?;
        if let Some(Signature { identity, .. }) = &mut speed.file.signature {
            identity.limit =
                identity.limit.filter(|limit| speed.rows.iter().all(|row| row.segments >= *limit));
        }
        Ok(speed)
    }

    /// Returns the speed with the mean outputs of removed heads folded into biases, if it was measured.
    pub fn folded(file: &ResultFile) -> Result<Option<Self>> {
        other_kind(file, "mean", experiment::SPEED, &mut None)?.map(Self::of_file).transpose()
    }

    /// Returns all speeds of the model that were timed by scoring segments, in any order of removal.
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

    /// Returns the rows grouped by number of removed heads.
    pub fn shares(&self) -> impl Iterator<Item = &[SpeedRow]> {
        self.rows.chunk_by(|left, right| left.removed == right.removed)
    }

    /// Returns the unit that is counted, and a function for its mean number per segment.
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

    /// `true` if results can be compared with Table 4 of the paper, which covers only BERT.
    pub fn is_beside_bert(&self) -> bool {
        self.file.kind.stands_for.is_some_and(|beside| !beside.translates())
    }

    /// `true` if the metric in the signature starts with `name`.
    pub fn has_metric(&self, name: &str) -> bool {
        self.file.identity().is_some_and(|identity| identity.metric.starts_with(name))
    }
}
