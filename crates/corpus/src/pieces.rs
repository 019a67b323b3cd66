//! SentencePiece models: Kudo and Richardson (2018), <https://aclanthology.org/D18-2012>.
//!
//! Reads models like those of opus-mt: BPE or unigrams, each with its own normaliser. Models that `sentencepiece_rust`
//! would treat differently from SentencePiece are refused.
use std::collections::HashSet;
use std::path::Path;

use sentencepiece_rust::{ModelType, PieceType, SentencePieceProcessor, Vocab};
use words::excerpt;

use crate::Error;
use crate::foreign::{MOST_BYTES, read};

/// Cuts text into the pieces of a model.
pub(crate) struct Pieces {
    model: SentencePieceProcessor,
}

impl Pieces {
    /// Reads a `.spm` file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read(path, MOST_BYTES)?)
            .map_err(|reason| Error::SentencePiece { path: path.to_owned(), reason })
    }

    /// The error says what is wrong with the bytes.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let model = SentencePieceProcessor::from_bytes(bytes).map_err(|error| excerpt(&error.to_string()))?;
        // A file cut off between two pieces still reads as a model; it only lacks what follows the pieces.
        let field = |number| last_field(bytes, number);
        let (Some(_), Some(normalizer)) = (field(TRAINER_SPEC), field(NORMALIZER_SPEC)) else {
            return Err("it ends before its settings".into());
        };
        check_charsmap(normalizer)?;
        check_pieces(model.vocab())?;
        if model.model_type() == ModelType::Bpe {
            check_merges(model.vocab())?;
        }
        model.encode_pieces("a").map_err(|error| excerpt(&error.to_string()))?;
        Ok(Self { model })
    }

    /// The pieces of `text`, normalised first; text unknown to the model stays as it is.
    pub(crate) fn cut(&self, text: &str) -> Vec<String> {
        if text.is_empty() {
            return Vec::new(); // even if the model puts something before texts
        }
        self.model.encode_pieces(text).expect("`parse` has tried the model")
    }
}

/// A unigram model taken apart.
pub(crate) struct ScoredPieces {
    /// The pieces and their scores, in the order of the model.
    pub(crate) pieces: Vec<(String, f64)>,
    /// The table of the normaliser; empty if there is none.
    pub(crate) charsmap: Vec<u8>,
}

impl ScoredPieces {
    /// Reads a unigram model.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read(path, MOST_BYTES)?)
            .map_err(|reason| Error::SentencePiece { path: path.to_owned(), reason })
    }

    /// The error says what is wrong with the bytes.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let model = Pieces::parse(bytes)?.model;
        if model.model_type() != ModelType::Unigram {
            return Err("it is no unigram model".into());
        }
        let vocabulary = model.vocab();
        let score = |id| f64::from(vocabulary.score(id));
        let pieces = pieces(vocabulary).map(|(id, piece)| (piece.to_owned(), score(id))).collect();
        let charsmap =
            last_field(bytes, NORMALIZER_SPEC).and_then(|normalizer| last_field(normalizer, CHARSMAP));
        Ok(Self { pieces, charsmap: charsmap.unwrap_or_default().to_owned() })
    }
}

/// Every piece must be of a type that the crate treats as SentencePiece does, and the unknown piece must have the id
/// that the model states.
fn check_pieces(vocabulary: &Vocab) -> Result<(), String> {
    if vocabulary.byte_fallback {
        return Err("byte fallback is not supported".into());
    }
    let mut unknown = Vec::new();
    let mut seen = HashSet::new();
    for (id, piece) in pieces(vocabulary) {
        let kind = match vocabulary.kind(id) {
            Some(PieceType::UserDefined) => "user-defined pieces",
            Some(PieceType::Byte) => "byte pieces",
            Some(PieceType::Unused) => "unused pieces",
            Some(PieceType::Normal | PieceType::Unknown | PieceType::Control) | None => "",
        };
        let fault = if !kind.is_empty() {
            format!("{kind} are not supported")
        } else if piece.is_empty() || !seen.insert(piece) {
            "a piece must not be empty or repeated".to_owned()
        } else if !vocabulary.score(id).is_finite() {
            "its score is no finite number".to_owned()
        } else {
            unknown.extend((vocabulary.kind(id) == Some(PieceType::Unknown)).then_some(id));
            continue;
        };
        return Err(format!("piece `{}`, number {id}: {fault}", excerpt(piece)));
    }
    match unknown[..] {
        [id] if id == vocabulary.unk_id => Ok(()),
        _ => Err(format!("piece {} must be its only unknown piece", vocabulary.unk_id)),
    }
}

/// No merge may make a control piece: SentencePiece never makes one, but the crate would.
fn check_merges(vocabulary: &Vocab) -> Result<(), String> {
    let kind = |piece: &str| vocabulary.piece_to_id(piece.as_bytes()).and_then(|id| vocabulary.kind(id));
    let occurs = |piece: &str| piece.chars().count() == 1 || kind(piece) == Some(PieceType::Normal);
    for (_, control) in pieces(vocabulary).filter(|(_, piece)| kind(piece) == Some(PieceType::Control)) {
        let splits = control.char_indices().skip(1).map(|(place, _)| control.split_at(place));
        if let Some((left, right)) = splits.into_iter().find(|(left, right)| occurs(left) && occurs(right)) {
            let [left, right, control] = [left, right, control].map(excerpt);
            return Err(format!(
                "`{left}` and `{right}` make the control piece `{control}`, which is not supported"
            ));
        }
    }
    Ok(())
}

/// All pieces with their ids.
fn pieces(vocabulary: &Vocab) -> impl Iterator<Item = (i32, &str)> {
    (0..).map_while(|id| Some((id, vocabulary.id_to_piece(id)?)))
}

/// Refuses a table of replacements that the crate would silently ignore because it cannot read it. A table is the size
/// of a trie in little-endian order, the trie, then texts that each end with a zero.
fn check_charsmap(normalizer: &[u8]) -> Result<(), String> {
    let Some(map) = last_field(normalizer, CHARSMAP) else { return Ok(()) };
    let Some((size, rest)) = map.split_first_chunk() else {
        return if map.is_empty() { Ok(()) } else { Err(torn()) };
    };
    let size = u32::from_le_bytes(*size) as usize;
    let texts =
        rest.get(size..).filter(|texts| size.is_multiple_of(4) && !texts.is_empty()).ok_or_else(torn)?;
    check_replacements(str::from_utf8(texts).map_err(|_| torn())?)
}

/// The longest text, in letters, that a table may put in. The longest in Unicode has 18 and stands for U+FDFA.
pub(crate) const LONGEST_REPLACEMENT: usize = 32;

/// Refuses a table that could turn a short text into an endless one. `texts` are those that it puts in, each ending with
/// a zero.
pub(crate) fn check_replacements(texts: &str) -> Result<(), String> {
    let longest = texts.split('\0').map(|text| text.chars().count()).max().unwrap_or(0);
    if longest <= LONGEST_REPLACEMENT {
        return Ok(());
    }
    Err(format!(
        "its table of normalisation puts in {longest} letters at once: {LONGEST_REPLACEMENT} are the most"
    ))
}

fn torn() -> String {
    "its table of normalisation is malformed".to_owned()
}

/// Field numbers of a `ModelProto` and of a `NormalizerSpec`:
/// <https://github.com/google/sentencepiece/blob/v0.2.0/src/sentencepiece_model.proto#L300>.
const TRAINER_SPEC: u64 = 2;
const NORMALIZER_SPEC: u64 = 3;
const CHARSMAP: u64 = 2;

/// A length-delimited field of a protocol buffer.
struct Field<'a> {
    number: u64,
    content: &'a [u8],
}

/// The content of the last field with this number.
fn last_field(bytes: &[u8], number: u64) -> Option<&[u8]> {
    fields(bytes).into_iter().rev().find(|field| field.number == number).map(|field| field.content)
}

/// The length-delimited fields of a protocol buffer, up to the first that is not whole.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    const NUMBER: u64 = 0;
    const WITH_LENGTH: u64 = 2;
    let mut fields = Vec::new();
    while let Some(key) = take_varint(&mut bytes)
        && let Some(value) = take_varint(&mut bytes)
    {
        match key & 7 {
            NUMBER => continue,
            WITH_LENGTH => {}
            _ => break,
        }
        let Some((content, rest)) = usize::try_from(value).ok().and_then(|at| bytes.split_at_checked(at))
        else {
            break;
        };
        fields.push(Field { number: key >> 3, content });
        bytes = rest;
    }
    fields
}

/// <https://protobuf.dev/programming-guides/encoding/#varints>
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::fs;
    use std::io::Read;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sentencepiece");
    const TINY: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian/source.spm");

    /// What Python's sentencepiece makes of some lines: `make.py` beside the models.
    #[derive(serde::Deserialize)]
    struct Expected {
        lines: Vec<String>,
        bpe: Vec<Vec<String>>,
        unigram: Vec<Vec<String>>,
    }

    fn read(name: &str) -> Vec<u8> {
        fs::read(Path::new(FIXTURES).join(name)).unwrap()
    }

    /// The bytes of a model, with the normaliser that lies apart.
    fn model(name: &str) -> Vec<u8> {
        let mut bytes = read(name);
        GzDecoder::new(&read("nmt_nfkc.gz")[..]).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn pieces_are_those_of_sentencepiece() {
        let expected: Expected = serde_json::from_slice(&read("expected.json")).unwrap();
        for (name, rows) in [("bpe.spm", &expected.bpe), ("unigram.spm", &expected.unigram)] {
            let pieces = Pieces::parse(&model(name)).unwrap();
            assert_eq!(rows.len(), expected.lines.len());
            let found = expected.lines.iter().map(|line| pieces.cut(line));
            let others: Vec<_> =
                found.zip(rows).zip(&expected.lines).filter(|((found, row), _)| found != *row).collect();
            assert!(others.is_empty(), "{name}: {} lines differ: {others:#?}", others.len());
        }
    }

    #[test]
    fn no_part_of_a_model_is_taken_for_the_whole() {
        let bytes = fs::read(TINY).unwrap();
        for length in 0..bytes.len() {
            assert!(Pieces::parse(&bytes[..length]).is_err(), "the first {length} bytes");
        }
    }

    #[test]
    fn no_altered_byte_of_a_model_does_harm() {
        let bytes = fs::read(TINY).unwrap();
        for (place, change) in
            (0..bytes.len()).flat_map(|place| [(place, 0x01), (place, 0x80), (place, 0xff)])
        {
            let mut altered = bytes.clone();
            altered[place] ^= change;
            if let Ok(pieces) = Pieces::parse(&altered) {
                for text in ["Ｔｈｅ ﬁsh\u{200b} sleeps…", " 犬 e\u{301} \u{1}", "....", "The dogs sleep."]
                {
                    pieces.cut(text);
                }
            }
        }
    }

    /// A piece as a field of a model.
    fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
        let mut content = vec![0x0a, text.len() as u8];
        content.extend(text.as_bytes());
        content.push(0x15);
        content.extend(score.to_le_bytes());
        content.extend([0x18, kind]);
        [&[0x0a, content.len() as u8], &content[..]].concat()
    }

    fn refusal(addition: &[u8]) -> String {
        Pieces::parse(&[model("bpe.spm"), addition.to_owned()].concat()).err().unwrap()
    }

    #[test]
    fn pieces_of_types_that_are_not_implemented_are_refused_by_name() {
        for (kind, name) in [(4, "user-defined"), (5, "unused"), (6, "byte")] {
            let expected = format!("piece `q\\n`, number 400: {name} pieces are not supported");
            assert_eq!(refusal(&piece("q\n", -1.0, kind)), expected);
        }
    }

    #[test]
    fn pieces_that_sentencepiece_refuses_are_refused() {
        assert_eq!(
            refusal(&piece("", -1.0, 1)),
            "piece ``, number 400: a piece must not be empty or repeated"
        );
        assert_eq!(
            refusal(&piece("a", -1.0, 1)),
            "piece `a`, number 400: a piece must not be empty or repeated"
        );
        assert_eq!(
            refusal(&piece("qq", f32::NAN, 1)),
            "piece `qq`, number 400: its score is no finite number"
        );
        assert_eq!(refusal(&piece("<u>", 0.0, 2)), "piece 0 must be its only unknown piece");
        let control = "`q` and `q` make the control piece `qq`, which is not supported";
        assert_eq!(refusal(&piece("qq", 0.0, 3)), control);
    }

    #[test]
    fn a_normaliser_that_cannot_be_read_is_refused() {
        for map in [&[9, 9][..], &[8, 0, 0, 0, 1, 2, 3, 4], &[4, 0, 0, 0, 1, 2, 3, 4, 0xff]] {
            let mut bytes = read("bpe.spm");
            bytes.extend([0x1a, map.len() as u8 + 2, 0x12, map.len() as u8]);
            bytes.extend(map);
            assert_eq!(Pieces::parse(&bytes).err().unwrap(), "its table of normalisation is malformed");
        }
    }

    #[test]
    fn nothing_has_no_pieces() {
        assert_eq!(Pieces::parse(&model("unigram.spm")).unwrap().cut(""), Vec::<String>::new());
    }
}
