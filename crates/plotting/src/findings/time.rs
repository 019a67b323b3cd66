//! Time that the results of a subject took.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use records::Signature;

use crate::findings::error::{LeftOut, Result};
use crate::findings::source::{experiment, folder, names};

/// Time that runs took, as their signatures have it; that of interrupted ones is not known.
#[derive(Debug, Default)]
pub struct Time {
    /// Seconds by experiment.
    pub seconds: BTreeMap<String, f64>,
    /// Numbers of threads of those on the CPU.
    pub threads: BTreeSet<usize>,
    /// `true` if some ran on a GPU.
    pub has_gpu: bool,
}

impl Time {
    /// Of all files of a subject, those over a part of the segments too.
    pub fn read(results: &Path, subject: &str, left_out: &mut LeftOut) -> Result<Self> {
        let (folder, mut time) = (folder(results, subject, experiment::SWEEP)?, Self::default());
        let mut paths: Vec<PathBuf> = names(&folder)?.into_iter().map(|name| folder.join(name)).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
        paths.sort();
        for path in paths {
            let signature =
                left_out.keep(Signature::read(&Signature::path_beside(&path)).map_err(Into::into));
            let Some(signature) = signature.flatten() else { continue };
            // a film is written by the run that trains its gates
            if signature.identity.experiment == experiment::FILM {
                continue;
            }
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
