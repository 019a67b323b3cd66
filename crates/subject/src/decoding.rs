//! Text and search of a translator, for benchmarks of decoding.
use core_masking::BeamSearch;
use corpus::parallel::ParallelText;
use training::Machine;

use crate::description::Description;
use crate::error::Error;
use crate::tasks::OfTask;
use crate::translation::search;

/// Text to translate and search for translations; for benchmarks.
#[derive(Debug)]
pub struct Decoding {
    /// The test split.
    pub text: ParallelText,
    /// The search for translations.
    pub search: BeamSearch,
}

/// The test split of a translator that is trained here, and how it is searched.
///
/// # Errors
/// If the split is at fault, or the subject is no translator.
pub fn decoding(description: &Description, machine: &Machine) -> Result<Decoding, Error> {
    let OfTask::Translation(file) = &description.0 else {
        return Err(Error::Invalid(format!("subject `{}` is not a translator", description.name())));
    };
    let text = file.read(machine, description.test_split())?;
    Ok(Decoding { text, search: search(&file.spec) })
}
