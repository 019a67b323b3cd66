//! What the other files of a folder change in its `tokenizer.json`, as in transformers 4.57.
use tokenizers::{NormalizerWrapper, Tokenizer};

use super::settings::Settings;
use crate::foreign_tokenizer::loaded::set_prefix_space;

/// Classes of tokenisers, with or without `Fast` at the end, whose settings decide on the normaliser:
/// <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/bert/tokenization_bert_fast.py#L94>.
const OF_BERT: [&str; 11] = [
    "BertTokenizer",
    "ConvBertTokenizer",
    "DistilBertTokenizer",
    "ElectraTokenizer",
    "FunnelTokenizer",
    "LayoutLMTokenizer",
    "LxmertTokenizer",
    "MobileBertTokenizer",
    "RealmTokenizer",
    "RetriBertTokenizer",
    "SqueezeBertTokenizer",
];

/// Gives the settings, and where they are silent the defaults of the class, the last word.
pub(super) fn apply(inner: &mut Tokenizer, settings: &Settings, class: Option<&str>) {
    set_prefix_space(inner, settings.add_prefix_space);
    let is_of_bert =
        class.is_some_and(|class| OF_BERT.contains(&class.strip_suffix("Fast").unwrap_or(class)));
    if is_of_bert && let Some(NormalizerWrapper::BertNormalizer(stated)) = inner.get_normalizer() {
        let mut normalizer = settings.bert_normalizer();
        normalizer.clean_text = stated.clean_text;
        inner.with_normalizer(Some(normalizer));
    }
}
