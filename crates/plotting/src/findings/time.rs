//! Computing time of the results of a setup.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use records::Signature;

use crate::findings::error::{LeftOut, Result};
use crate::findings::source::{experiment, folder, names};

/// Duration of runs from their signatures; unknown for interrupted runs.
#[derive(Debug, Default)]
pub struct Time {
    /// Seconds per experiment.
    pub seconds: BTreeMap<String, f64>,
    /// Numbers of threads of the CPU runs.
    pub threads: BTreeSet<usize>,
    /// `true` if a run used a GPU.
    pub has_gpu: bool,
}

impl Time {
    /// Adds up all files of a setup, including those over a part of the segments.
    pub fn read(results: &Path, subject: &str, left_out: &mut LeftOut) -> Result<Self> {
        let (folder, mut time) = (folder(results, subject, experiment::SWEEP)?, Self::default());
        let mut paths: Vec<PathBuf> = names(&folder)?.into_iter().map(|name| folder.join(name)).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
        paths.sort();
        for path in paths {
            let signature =
                left_out.keep(Signature::read(&Signature::path_beside(&path)).map_err(Into::into));
            let Some(signature) = signature.flatten() else { continue };
            for run in &signature.runs {
                if let Some(seconds) = run.duration_seconds {
                    *time.seconds.entry(signature.identity.experiment.clone()).or_default() += seconds;
                    if run.device == "cpu" {
                        time.threads.insert(run.threads);
                    } else {
                        time.has_gpu = true;
                    }
                }
            }
        }
        Ok(time)
    }
}
