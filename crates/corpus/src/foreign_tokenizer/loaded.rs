//! Checks of a tokeniser that the library has read: what encoding relies on.
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Model, NormalizedString, Normalizer, PreTokenizerWrapper, Tokenizer};

use words::excerpt;

/// Every letter must have tokens, if only the unknown one or those of its bytes: the library drops what has none.
pub(crate) fn check_bpe(model: &BPE, pre_tokenizer: Option<&PreTokenizerWrapper>) -> Result<(), String> {
    if let Some(unknown) = model.unk_token.as_ref().filter(|token| model.token_to_id(token).is_none()) {
        return Err(format!("its vocabulary lacks `{}`", excerpt(unknown)));
    }
    if model.unk_token.is_some() {
        return Ok(());
    }
    let mut lacking: Vec<String> = if pre_tokenizer.is_some_and(cuts_into_bytes) {
        ByteLevel::alphabet().into_iter().map(String::from).collect()
    } else if model.byte_fallback {
        (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>")).collect()
    } else {
        return Err("it has neither `ByteLevel`, nor `byte_fallback`, nor an unknown token".into());
    };
    lacking.retain(|byte| model.token_to_id(byte).is_none());
    match lacking.iter().min() {
        Some(byte) => {
            Err(format!("its vocabulary lacks {} of the 256 bytes, such as `{byte}`", lacking.len()))
        }
        None => Ok(()),
    }
}

/// Whether words become bytes before the model sees them.
pub(crate) fn cuts_into_bytes(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    match pre_tokenizer {
        PreTokenizerWrapper::ByteLevel(_) => true,
        PreTokenizerWrapper::Sequence(parts) => parts.as_ref().iter().any(cuts_into_bytes),
        _ => false,
    }
}

/// Gives the setting `add_prefix_space` the last word, as transformers does.
pub(crate) fn set_prefix_space(inner: &mut Tokenizer, stated: bool) {
    if let Some(PreTokenizerWrapper::ByteLevel(byte_level)) = inner.get_pre_tokenizer() {
        let byte_level = byte_level.add_prefix_space(stated);
        inner.with_pre_tokenizer(Some(byte_level));
    }
}

/// No two tokens may share an id. The library numbers added tokens from the number of pieces on, so if the ids of the
/// pieces have gaps, an added token can get the id of a piece.
pub(crate) fn check_ids(inner: &Tokenizer) -> Result<(), String> {
    let mut tokens: Vec<(u32, String)> =
        inner.get_vocab(true).into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    let shared = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0);
    shared.map_or(Ok(()), |pair| {
        let [first, second] = [&pair[0].1, &pair[1].1].map(|token| excerpt(token));
        Err(format!("`{first}` and `{second}` both have the id {}", pair[0].0))
    })
}

/// Refuses added tokens that the library would find where there are none: one that normalisation empties is found
/// everywhere, even inside a letter; one that begins with a space is found after a token that has taken that space.
pub(crate) fn check_added(inner: &Tokenizer) -> Result<(), String> {
    let tokens: Vec<AddedToken> = inner.get_added_tokens_decoder().into_values().collect();
    let taker = tokens.iter().find(|token| token.rstrip);
    for token in &tokens {
        let mut content = NormalizedString::from(token.content.as_str());
        if let Some(normalizer) = inner.get_normalizer() {
            normalizer.normalize(&mut content).map_err(|error| excerpt(&error.to_string()))?;
        }
        let shown = excerpt(&token.content);
        if content.get().is_empty() {
            return Err(format!("normalisation leaves nothing of its added token `{shown}`"));
        }
        let begins_with_space =
            [content.get(), &token.content].iter().any(|text| text.starts_with(char::is_whitespace));
        if begins_with_space && taker.is_some() {
            return Err(format!(
                "its added token `{shown}` begins with a space, but another takes the spaces after it"
            ));
        }
    }
    Ok(())
}
