//! SHA-256 checksums in lower-case hexadecimal, of files and of the texts of a split. The latter do not depend on the layout or compression
//! of the files.
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Error;
use crate::choices::Choice;
use crate::compressed;
use crate::documents::Document;
use crate::labelled::{Example, Input};
use crate::parallel::ParallelText;

/// Returns the checksum of a file. For a gzip file (`.gz`) it is the checksum of the decompressed text, which can be compressed in more
/// than one way; for a truncated one, a description of the fault takes its place.
pub(crate) fn of_file(path: &Path, is_gzip: bool) -> Result<String, Error> {
    let sum = |mut content: Box<dyn Read>| {
        let mut hasher = Sha256::new();
        io::copy(&mut content, &mut hasher)?;
        Ok::<_, io::Error>(format!("{:x}", hasher.finalize()))
    };
    if is_gzip {
        let content = compressed::gzip(path).map_err(Error::reading(path))?;
        return Ok(sum(Box::new(content)).unwrap_or_else(|error| format!("a broken gzip file ({error})")));
    }
    File::open(path).and_then(|file| sum(Box::new(file))).map_err(Error::reading(path))
}

/// Returns the checksum of sentences with their references.
pub fn of_pairs(text: &ParallelText) -> String {
    let mut hasher = Sha256::new();
    for (row, source) in text.source.iter().enumerate() {
        hasher.update(source);
        for reference in text.references(row) {
            hasher.update("\t");
            hasher.update(reference);
        }
        hasher.update("\n");
    }
    format!("{:x}", hasher.finalize())
}

/// Returns the checksum of labelled examples. An image contributes the bytes of its file, not its name.
pub fn of_examples(examples: &[Example]) -> String {
    let parts = |Example { input, label }: &Example| {
        let own = match input {
            Input::Text(_) | Input::Words(_) => vec![input.first().into_owned()],
            Input::Pair(first, second) => vec![first.clone(), second.clone()],
            Input::Image(image) => vec![image.sha256.clone()],
        };
        std::iter::once(label.clone()).chain(own)
    };
    of_parts(examples.iter().flat_map(parts))
}

/// Returns the checksum of documents, and of how much of each is given rather than predicted.
pub fn of_documents(documents: &[Document]) -> String {
    let parts = |Document { text, given, .. }: &Document| {
        let given = (*given > 0).then(|| format!("{given} bytes are given"));
        [Some(text.clone()), given].into_iter().flatten()
    };
    of_parts(documents.iter().flat_map(parts))
}

/// Returns the checksum of questions with their choices, answers and groups.
pub fn of_questions(questions: &[Choice]) -> String {
    let parts = |Choice { context, contexts, choices, delimiter, answer, group }: &Choice| {
        let known = [format!("{answer} of {}", choices.len()), format!("{group:?}"), context.clone()];
        let all = known.into_iter().chain(choices.iter().cloned());
        // `contexts` and `delimiter` count only if they are given
        let own = (!contexts.is_empty()).then(|| format!("contexts {contexts:?}"));
        let delimiter = delimiter.as_ref().map(|delimiter| format!("delimiter {delimiter:?}"));
        all.chain(own).chain(delimiter).collect::<Vec<_>>()
    };
    of_parts(questions.iter().flat_map(parts))
}

/// Hashes every part after its length, since texts may contain any separator.
fn of_parts(parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_ref().len().to_le_bytes());
        hasher.update(part.as_ref());
    }
    format!("{:x}", hasher.finalize())
}
