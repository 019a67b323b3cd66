//! The interface that all tokenisers of translators share.
use std::fmt::Debug;

use words::excerpt;

use crate::Error;
use crate::placed::PlacedToken;

/// Turns source and target sentences into ids, and ids of the target back into text.
pub trait SentenceTokenizer: Debug + Send + Sync {
    /// Ids of a source sentence, the end symbol last.
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error>;

    /// The same tokens with their places in the text; `None` if the tokeniser does not know these.
    fn encode_placed(&self, _text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        Ok(None)
    }

    /// Symbols of the vocabulary one of which a source begins with, such as `>>fra<<` where a model has several targets.
    fn openings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ids of a target sentence, the end symbol last.
    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error>;

    /// The text of target `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String;

    /// The text of a token of the source or of the target, of special ones too.
    fn token(&self, id: u32, is_source: bool) -> String;

    /// Id of the end symbol.
    fn end(&self) -> u32;

    /// Id of the padding symbol.
    fn pad(&self) -> u32;
}

/// Refuses tokens beyond the `rows` of a model's embeddings, if their number is known; `token` gives the text of one.
///
/// # Errors
/// If there is one; the message names it.
pub fn check_rows(
    ids: &[u32],
    rows: Option<i64>,
    token: impl FnOnce(u32) -> Option<String>,
) -> Result<(), Error> {
    let Some((rows, &id)) =
        rows.and_then(|rows| Some((rows, ids.iter().find(|&&id| i64::from(id) >= rows)?)))
    else {
        return Ok(());
    };
    let name = token(id).map(|token| format!(" `{}`", excerpt(&token))).unwrap_or_default();
    Err(Error::Invalid(format!(
        "the token{name} has the id {id}, but the model has only {rows} embeddings: this text is not for it"
    )))
}
