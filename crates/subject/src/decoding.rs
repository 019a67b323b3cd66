//! What benchmarks of decoding ask of a translator besides what they ask of any subject.
use core_masking::BeamSearch;
use corpus::parallel::ParallelText;
use training::Machine;

use crate::description::Description;
use crate::error::Error;
use crate::translation::{Translation, search};

/// What there is to translate, and how; for benchmarks.
#[derive(Debug)]
pub struct Decoding {
    /// The test split.
    pub text: ParallelText,
    /// How it is searched.
    pub search: BeamSearch,
}

/// The test split of a translator that is trained here, and how it is searched.
///
/// # Errors
/// If the split is at fault, or the subject is no translator.
pub fn decoding(description: &Description, machine: &Machine) -> Result<Decoding, Error> {
    let described = description.of_task::<Translation>();
    let described = described.ok_or_else(|| Error::NoTranslator { name: description.name().to_owned() })?;
    let text = described.read(machine, description.test_split())?;
    Ok(Decoding { text, search: search(&described.spec) })
}
