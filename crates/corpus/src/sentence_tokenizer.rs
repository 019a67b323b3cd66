//! Interface of all translators' tokenizers.
use std::fmt::Debug;

use words::excerpt;

use crate::Error;
use crate::placed::PlacedToken;

/// Encodes source and target sentences, and decodes target sentences.
pub trait SentenceTokenizer: Debug + Send + Sync {
    /// Returns the ids of a source sentence, including the final EOS token.
    fn encode(&self, text: &str) -> Result<Vec<u32>, Error>;

    /// Like [`encode`](Self::encode), with positions in the text; `None` if the tokenizer does not track positions.
    fn encode_placed(&self, _text: &str) -> Result<Option<Vec<PlacedToken>>, Error> {
        Ok(None)
    }

    /// Returns the language codes that a source may start with, such as `>>fra<<`, for models with several target languages.
    fn openings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the ids of a target sentence, including the final EOS token.
    fn encode_target(&self, text: &str) -> Result<Vec<u32>, Error>;

    /// Decodes target `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String;

    /// Returns the text of a source or target token, which may be a special token.
    fn token(&self, id: u32, is_source: bool) -> String;

    /// Returns the id of the EOS token.
    fn end(&self) -> u32;

    /// Returns the id of the padding token.
    fn pad(&self) -> u32;
}

/// Checks that the model's embedding table, of `rows` rows if known, has one for each token; `token` returns a token's text for messages.
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
        "the token{name} has the id {id}, but the model has only {rows} embeddings: the text does not fit it"
    )))
}
