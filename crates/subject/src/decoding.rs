//! Input of decoding benchmarks: test split and beam search.
use core_masking::BeamSearch;
use corpus::parallel::ParallelText;
use training::Machine;

use crate::description::Description;
use crate::error::Error;
use crate::tasks::OfTask;
use crate::translation::search;

/// Test split and beam search of a translator.
#[derive(Debug)]
pub struct Decoding {
    /// Sentence pairs of the test split.
    pub text: ParallelText,
    /// Beam search settings.
    pub search: BeamSearch,
}

/// Returns the test split and the beam search of a translator; ignores the generation config of a checkpoint.
///
/// # Errors
/// If the split cannot be read, or the model is not a translator.
pub fn decoding(description: &Description, machine: &Machine) -> Result<Decoding, Error> {
    let OfTask::Translation(file) = &description.0 else {
        return Err(Error::Invalid(format!("setup `{}` is not for a translator", description.name())));
    };
    let text = file.read(machine, description.test_split())?;
    Ok(Decoding { text, search: search(&file.spec) })
}
