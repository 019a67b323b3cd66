//! What the tokenisers of translators have in common.
use std::fmt::Debug;

/// Tokens of source and target sentences.
pub trait SentenceTokenizer: Debug + Send + Sync {
    /// Ids of a source sentence, the end symbol last.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// Ids of a target sentence, the end symbol last.
    fn encode_target(&self, text: &str) -> Vec<u32>;

    /// The text of target `ids`; special tokens and ids outside the vocabulary are left out.
    fn decode(&self, ids: &[u32]) -> String;

    /// What the embedding table of the source must have room for.
    fn source_vocabulary_size(&self) -> usize;

    /// What the embedding table of the target must have room for.
    fn target_vocabulary_size(&self) -> usize {
        self.source_vocabulary_size()
    }

    /// Id of the end symbol.
    fn end(&self) -> u32;

    /// Id of what fills up a batch.
    fn pad(&self) -> u32;
}
