//! SentencePiece models: Kudo and Richardson (2018), <https://aclanthology.org/D18-2012>.
//!
//! Reads BPE and unigram models with their normalisers, as in opus-mt. Refuses piece types that `sentencepiece_rust` treats differently
//! from SentencePiece.
use std::path::Path;

use sentencepiece_rust::{PieceType, SentencePieceProcessor, Vocab};
use words::excerpt;

use crate::Error;
use crate::foreign::{read, wrong};
use crate::foreign_tokenizer::{guarded, not_encoded};

pub(crate) struct Pieces {
    model: SentencePieceProcessor,
}

impl Pieces {
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = read(path)?;
        let parse = || Self::parse(&bytes).map_err(|reason| wrong(path, reason));
        guarded(parse, |reason| wrong(path, reason))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let model = SentencePieceProcessor::from_bytes(bytes).map_err(|error| excerpt(&error.to_string()))?;
        check_pieces(model.vocab())?;
        Ok(Self { model })
    }

    /// Normalises `text` and splits it into pieces; text unknown to the model stays unchanged.
    pub(crate) fn cut(&self, text: &str) -> Result<Vec<String>, Error> {
        if text.is_empty() {
            return Ok(Vec::new()); // even if the model adds a prefix to texts
        }
        guarded(|| self.model.encode_pieces(text).map_err(not_encoded), not_encoded)
    }
}

/// Checks that the crate treats every piece's type as SentencePiece does.
fn check_pieces(vocabulary: &Vocab) -> Result<(), String> {
    if vocabulary.byte_fallback {
        return Err("byte fallback is not supported".into());
    }
    for (id, piece) in (0..).map_while(|id| Some((id, vocabulary.id_to_piece(id)?))) {
        let name = match vocabulary.kind(id) {
            Some(PieceType::UserDefined) => "user-defined",
            Some(PieceType::Byte) => "byte",
            Some(PieceType::Unused) => "unused",
            Some(PieceType::Normal | PieceType::Unknown | PieceType::Control) | None => continue,
        };
        return Err(format!("piece `{}`, number {id}: {name} pieces are not supported", excerpt(piece)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::fs;
    use std::io::Read;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sentencepiece");

    /// Pieces from Python's sentencepiece, written by the `make.py` of the models.
    #[derive(serde::Deserialize)]
    struct Expected {
        lines: Vec<String>,
        bpe: Vec<Vec<String>>,
        unigram: Vec<Vec<String>>,
    }

    fn read(name: &str) -> Vec<u8> {
        fs::read(Path::new(FIXTURES).join(name)).unwrap()
    }

    /// Returns the bytes of a model with its normaliser, which is a separate file.
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
            let found = expected.lines.iter().map(|line| pieces.cut(line).unwrap());
            let others: Vec<_> =
                found.zip(rows).zip(&expected.lines).filter(|((found, row), _)| found != *row).collect();
            assert!(others.is_empty(), "{name}: {} lines differ: {others:#?}", others.len());
        }
    }

    /// Appends piece 400 to a model: text, score and type.
    #[test]
    fn pieces_of_types_that_are_not_implemented_are_refused_by_name() {
        for (number, name) in [(4, "user-defined"), (5, "unused"), (6, "byte")] {
            let piece = vec![0x0a, 11, 0x0a, 2, b'q', b'\n', 0x15, 0, 0, 0x80, 0xbf, 0x18, number];
            let refusal = Pieces::parse(&[model("bpe.spm"), piece].concat()).err();
            let expected = format!("piece `q\\n`, number 400: {name} pieces are not supported");
            assert_eq!(refusal, Some(expected));
        }
    }
}
