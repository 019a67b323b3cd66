//! Checks of what encoding relies on; without them the library would panic or fail in the middle of the data.
use std::collections::{HashMap, HashSet};

use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    AddedToken, Model, ModelWrapper, NormalizedString, Normalizer, PreTokenizerWrapper, Tokenizer,
};

use crate::foreign::shown;
use crate::pieces::check_replacements;

/// Checks a tokeniser, and returns the ids of the special tokens that it puts around texts.
pub(super) fn check(inner: &Tokenizer) -> Result<Vec<u32>, String> {
    match inner.get_model() {
        ModelWrapper::BPE(model) => check_bpe(model, inner.get_pre_tokenizer())?,
        ModelWrapper::Unigram(model) => check_unigram(model)?,
        ModelWrapper::WordPiece(model) => check_wordpiece(model)?,
        ModelWrapper::WordLevel(_) => return Err("its model is of another type".into()),
    }
    check_ids(inner)?;
    check_added(inner)?;
    check_template(inner)
}

/// Every word must have a token, if only the unknown one.
fn check_wordpiece(model: &WordPiece) -> Result<(), String> {
    match model.token_to_id(&model.unk_token) {
        Some(_) => Ok(()),
        None => Err(format!("its vocabulary lacks `{}`", shown(&model.unk_token))),
    }
}

/// Every byte must have a token, since the library drops those that have none.
fn check_bpe(model: &BPE, pre_tokenizer: Option<&PreTokenizerWrapper>) -> Result<(), String> {
    if !pre_tokenizer.is_some_and(cuts_into_bytes) {
        return Err("its pre-tokeniser must be `ByteLevel`".into());
    }
    if let Some(unknown) = model.unk_token.as_ref().filter(|token| model.token_to_id(token).is_none()) {
        return Err(format!("its vocabulary lacks `{}`", shown(unknown)));
    }
    let mut lacking: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    lacking.retain(|byte| model.token_to_id(&byte.to_string()).is_none());
    match lacking.iter().min() {
        Some(byte) if model.unk_token.is_none() => {
            Err(format!("its vocabulary lacks {} of the 256 bytes, such as `{byte}`", lacking.len()))
        }
        _ => Ok(()),
    }
}

fn cuts_into_bytes(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    match pre_tokenizer {
        PreTokenizerWrapper::ByteLevel(_) => true,
        PreTokenizerWrapper::Sequence(parts) => parts.as_ref().iter().any(cuts_into_bytes),
        _ => false,
    }
}

/// Pieces must differ, and their scores must be logarithms of probabilities: the library adds them up.
fn check_unigram(model: &Unigram) -> Result<(), String> {
    const MOST: f64 = 1e9; // no sum over a text overflows
    let mut seen = HashSet::new();
    for (piece, score) in model.iter() {
        if !seen.insert(piece) {
            return Err(format!("its piece `{}` is repeated", shown(piece)));
        }
        if !(-MOST..=MOST).contains(score) {
            return Err(format!(
                "its piece `{}` has the score {score}, which is no logarithm of a probability",
                shown(piece)
            ));
        }
    }
    Ok(())
}

/// No two tokens may share an id. The library numbers added tokens from the number of pieces on, so if the ids of the
/// pieces have gaps, an added token can get the id of a piece.
fn check_ids(inner: &Tokenizer) -> Result<(), String> {
    let mut tokens: Vec<(u32, String)> =
        inner.get_vocab(true).into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    let shared = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0);
    shared.map_or(Ok(()), |pair| {
        let [first, second] = [&pair[0].1, &pair[1].1].map(|token| shown(token));
        Err(format!("`{first}` and `{second}` both have the id {}", pair[0].0))
    })
}

/// Refuses added tokens that the library would find where there are none: one that normalisation empties is found
/// everywhere, even inside a letter; one that begins with a space is found after a token that has taken that space.
fn check_added(inner: &Tokenizer) -> Result<(), String> {
    let tokens: Vec<AddedToken> = inner.get_added_tokens_decoder().into_values().collect();
    let taker = tokens.iter().find(|token| token.rstrip);
    for token in &tokens {
        let mut content = NormalizedString::from(token.content.as_str());
        if let Some(normalizer) = inner.get_normalizer() {
            normalizer.normalize(&mut content).map_err(|error| shown(&error.to_string()))?;
        }
        let shown = shown(&token.content);
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

/// Checks where special tokens go, and returns their ids. The library panics on a template with an unknown token.
fn check_template(inner: &Tokenizer) -> Result<Vec<u32>, String> {
    use tokenizers::PostProcessorWrapper as Processor;
    #[derive(serde::Deserialize)]
    enum Piece {
        Sequence { id: String, type_id: u32 },
        SpecialToken { id: String, type_id: u32 },
    }
    #[derive(serde::Deserialize)]
    struct Special {
        ids: Vec<u32>,
    }
    #[derive(serde::Deserialize)]
    struct Template {
        single: Vec<Piece>,
        pair: Vec<Piece>,
        special_tokens: HashMap<String, Special>,
    }
    let template = match inner.get_post_processor() {
        Some(Processor::Bert(processor)) => {
            return Ok(vec![processor.get_cls_copy().1, processor.get_sep_copy().1]);
        }
        Some(Processor::Roberta(processor)) => {
            return Ok(vec![processor.get_cls_copy().1, processor.get_sep_copy().1]);
        }
        Some(Processor::Template(template)) => template,
        _ => return Err("its post-processor does not put special tokens around texts and pairs".into()),
    };
    let template = serde_json::to_value(template).and_then(serde_json::from_value::<Template>);
    let template = template.map_err(|error| error.to_string())?;
    let begins_specially = |pieces: &[Piece]| matches!(pieces.first(), Some(Piece::SpecialToken { .. }));
    let takes_second = |piece: &Piece| matches!(piece, Piece::Sequence { id, .. } if id == "B");
    if !begins_specially(&template.single) || template.single.iter().any(takes_second) {
        return Err("its template for one text must be a special token, then `$A`".into());
    }
    if !begins_specially(&template.pair) || !template.pair.iter().any(takes_second) {
        return Err("its template for pairs must be a special token, then `$A` and `$B`".into());
    }
    let segment = |piece: &Piece| match piece {
        Piece::Sequence { type_id, .. } | Piece::SpecialToken { type_id, .. } => *type_id,
    };
    if let Some(segment) =
        template.single.iter().chain(&template.pair).map(segment).find(|&segment| segment > 1)
    {
        return Err(format!("its template has the segment {segment}: there are only 0 and 1"));
    }
    let unknown = template.single.iter().chain(&template.pair).find_map(|piece| match piece {
        Piece::SpecialToken { id, .. } if !template.special_tokens.contains_key(id) => Some(id),
        _ => None,
    });
    match unknown {
        Some(token) => Err(format!("its template names `{}`, but does not number it", shown(token))),
        None => Ok(template.special_tokens.into_values().flat_map(|special| special.ids).collect()),
    }
}

/// Checks a table of replacements as SentencePiece compiles it: the size of a trie in little-endian order, the trie,
/// then texts that each end with a zero. The trie is a double array of 32-bit units:
/// <https://github.com/s-yata/darts-clone/blob/master/include/darts.h>.
///
/// The library follows the trie wherever it points, even out of bounds.
pub(super) fn check_charsmap(map: &[u8]) -> Result<(), String> {
    let malformed = || "its table of normalisation is malformed".to_owned();
    let (size, rest) = map.split_first_chunk().ok_or_else(malformed)?;
    let size = u32::from_le_bytes(*size) as usize;
    let (trie, texts) =
        rest.split_at_checked(size).filter(|_| size.is_multiple_of(4)).ok_or_else(malformed)?;
    let texts = str::from_utf8(texts).map_err(|_| malformed())?;
    check_replacements(texts)?;
    let (units, _) = trie.as_chunks();
    let units: Vec<Unit> = units.iter().map(|unit| Unit(u32::from_le_bytes(*unit))).collect();
    check_trie(&units, texts).ok_or_else(malformed)
}

/// Follows every path through a trie; `None` if one leaves the trie or ends outside the texts.
fn check_trie(units: &[Unit], texts: &str) -> Option<()> {
    let mut seen = vec![false; units.len()];
    let mut nodes = vec![units.first()?.offset()];
    while let Some(node) = nodes.pop() {
        units.get(node | 0xff)?; // any byte can come next
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        for byte in 1..=0xff {
            let unit = units[node ^ byte];
            if unit.label() != byte {
                continue;
            }
            let next = node ^ byte ^ unit.offset();
            if unit.has_leaf() && !texts.is_char_boundary(units.get(next)?.value()) {
                return None;
            }
            nodes.push(next);
        }
    }
    Some(())
}

/// A unit of a double array.
#[derive(Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn has_leaf(self) -> bool {
        (self.0 >> 8) & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & 0x7fff_ffff) as usize
    }

    /// Larger than any byte if the unit is a leaf.
    fn label(self) -> usize {
        (self.0 & 0x8000_00ff) as usize
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 >> 6) & 8)) as usize
    }
}
