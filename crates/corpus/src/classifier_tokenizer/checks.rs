//! Checks of what encoding relies on; without them the library would panic or fail in the middle of the data.
use std::collections::{HashMap, HashSet};

use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::{Model, ModelWrapper, Tokenizer};
use words::excerpt;

use crate::foreign_tokenizer::loaded::{check_added, check_bpe, check_ids, cuts_into_bytes};

/// Checks a tokeniser, and returns the ids of the special tokens that it puts around texts.
pub(super) fn check(inner: &Tokenizer) -> Result<Vec<u32>, String> {
    match inner.get_model() {
        ModelWrapper::BPE(_) if !inner.get_pre_tokenizer().is_some_and(cuts_into_bytes) => {
            return Err("its pre-tokeniser must be `ByteLevel`".into());
        }
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
        None => Err(format!("its vocabulary lacks `{}`", excerpt(&model.unk_token))),
    }
}

/// Pieces must differ, and their scores must be logarithms of probabilities: the library adds them up.
fn check_unigram(model: &Unigram) -> Result<(), String> {
    const MOST: f64 = 1e9; // no sum over a text overflows
    let mut seen = HashSet::new();
    for (piece, score) in model.iter() {
        if !seen.insert(piece) {
            return Err(format!("its piece `{}` is repeated", excerpt(piece)));
        }
        if !(-MOST..=MOST).contains(score) {
            return Err(format!(
                "its piece `{}` has the score {score}, which is no logarithm of a probability",
                excerpt(piece)
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
        Some(token) => Err(format!("its template names `{}`, but does not number it", excerpt(token))),
        None => Ok(template.special_tokens.into_values().flat_map(|special| special.ids).collect()),
    }
}
