//! The interface that all tokenisers of translators share.
use std::fmt::Debug;

use crate::placed::PlacedToken;

/// Turns source and target sentences into ids, and ids of the target back into text.
pub trait SentenceTokenizer: Debug + Send + Sync {
    /// Ids of a source sentence, the end symbol last.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// The same tokens with their places in the text; `None` if the tokeniser does not know these.
    fn encode_placed(&self, _text: &str) -> Option<Vec<PlacedToken>> {
        None
    }

    /// Ids of a target sentence, the end symbol last.
    fn encode_target(&self, text: &str) -> Vec<u32>;

    /// The text of target `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String;

    /// The number of rows that the source's embedding table needs.
    fn source_vocabulary_size(&self) -> usize;

    /// The number of rows that the target's embedding table needs.
    fn target_vocabulary_size(&self) -> usize {
        self.source_vocabulary_size()
    }

    /// Id of the end symbol.
    fn end(&self) -> u32;

    /// Id of the padding symbol.
    fn pad(&self) -> u32;
}
