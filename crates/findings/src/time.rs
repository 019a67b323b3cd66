//! How long the results of a subject took.
use std::collections::{BTreeMap, BTreeSet};

use records::Signature;

use crate::error::{LeftOut, Result};
use crate::source::{Source, experiment};

/// Time that runs took, as their signatures have it; that of interrupted ones is not known.
#[derive(Debug, Default)]
pub struct Time {
    /// Seconds by experiment.
    pub seconds: BTreeMap<String, f64>,
    /// Numbers of threads.
    pub threads: BTreeSet<usize>,
}

impl Time {
    /// Of all files of a subject, those over a part of the segments too.
    pub fn read(source: &Source, left_out: &mut LeftOut) -> Result<Self> {
        let mut time = Self::default();
        for path in source.every()? {
            let signature =
                left_out.keep(Signature::read(&Signature::path_beside(&path)).map_err(Into::into))?;
            let Some(signature) = signature.flatten() else { continue };
            // a film is written by the run that trains its gates
            if signature.identity.experiment == experiment::FILM {
                continue;
            }
            for run in &signature.runs {
                if let Some(seconds) = run.duration_seconds {
                    *time.seconds.entry(signature.identity.experiment.clone()).or_default() += seconds;
                    time.threads.insert(run.threads);
                }
            }
        }
        Ok(time)
    }
}
