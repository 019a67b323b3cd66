//! SHA-256 of the texts of a split, in lower-case hexadecimal; how the files are laid out or compressed does not matter.
use sha2::{Digest, Sha256};

use crate::choices::Choice;
use crate::documents::Document;
use crate::labelled::Example;
use crate::parallel::ParallelText;

/// Of sentences with their translations.
pub fn of_pairs(text: &ParallelText) -> String {
    let mut hasher = Sha256::new();
    for (source, target) in text.source.iter().zip(&text.target) {
        for part in [source, "\t", target, "\n"] {
            hasher.update(part);
        }
    }
    format!("{:x}", hasher.finalize())
}

/// Of texts with their labels.
pub fn of_examples<'a>(examples: &'a [Example]) -> String {
    let parts =
        |own: &'a Example| [Some(&own.label), Some(&own.text), own.pair.as_ref()].into_iter().flatten();
    of_parts(examples.iter().flat_map(parts))
}

/// Of documents.
pub fn of_documents(documents: &[Document]) -> String {
    of_parts(documents.iter().map(|document| &document.text))
}

/// Of questions with their choices, answers and groups.
pub fn of_questions(questions: &[Choice]) -> String {
    let parts = |Choice { context, choices, answer, group }: &Choice| {
        let known = [format!("{answer} of {}", choices.len()), format!("{group:?}"), context.clone()];
        known.into_iter().chain(choices.iter().cloned()).collect::<Vec<_>>()
    };
    of_parts(questions.iter().flat_map(parts))
}

/// Of parts with their lengths, since texts may hold any character.
fn of_parts(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_ref().len().to_le_bytes());
        hasher.update(part.as_ref());
    }
    format!("{:x}", hasher.finalize())
}
