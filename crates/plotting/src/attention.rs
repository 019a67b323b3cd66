//! Attention types, and which of them a table or figure covers.
use std::fmt;
use std::str::FromStr;

use crate::origin::Model;

/// Where an attention module stands in the model (Michel et al. 2019, Section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Encoder self-attention.
    EncEnc,
    /// Decoder to encoder.
    EncDec,
    /// Decoder self-attention.
    DecDec,
    /// Self-attention of a model like BERT, or of a language model.
    SelfAttention,
}

impl Attention {
    /// All types, in the order in which tables list them.
    pub const ALL: [Self; 4] = [Self::EncEnc, Self::EncDec, Self::DecDec, Self::SelfAttention];

    /// The name used in CSV files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::EncEnc => "enc-enc",
            Self::EncDec => "enc-dec",
            Self::DecDec => "dec-dec",
            Self::SelfAttention => "self",
        }
    }

    /// What the type attends from and to, for captions.
    pub fn description(self) -> &'static str {
        match self {
            Self::EncEnc => "encoder self-attention",
            Self::EncDec => "encoder-decoder attention",
            Self::DecDec => "decoder self-attention",
            Self::SelfAttention => "self-attention",
        }
    }
}

impl fmt::Display for Attention {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that is no attention type.
#[derive(Debug, thiserror::Error)]
#[error("unknown attention type `{0}`: it is one of enc-enc, enc-dec, dec-dec, self")]
pub struct UnknownAttention(pub String);

impl FromStr for Attention {
    type Err = UnknownAttention;

    fn from_str(name: &str) -> Result<Self, UnknownAttention> {
        let found = Self::ALL.into_iter().find(|attention| attention.name() == name);
        found.ok_or_else(|| UnknownAttention(name.to_owned()))
    }
}

/// What the files of one table or figure are called, without extension: the paper has other numbers for a translator
/// and for BERT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileNames {
    /// For a translator; attention types other than `enc-enc` are appended.
    pub translation: &'static str,
    /// For a model like BERT, whose only attention type is `self`.
    pub bert: &'static str,
    /// For a language model, whose only attention type is `self` too, and of which the paper has no numbers.
    pub language_model: &'static str,
}

impl FileNames {
    /// The name for one attention type.
    pub fn of(self, attention: Attention, model: Model) -> &'static str {
        match (attention, model) {
            (Attention::SelfAttention, Model::Other) => self.bert,
            (Attention::SelfAttention, Model::Language) => self.language_model,
            _ => self.translation,
        }
    }
}

/// Which attention types a table or figure shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// `enc-enc` as in the paper if it is present, else all types.
    #[default]
    Paper,
    /// This type alone.
    One(Attention),
    /// Every type present.
    All,
}

impl Selection {
    /// The types to show of those `present`.
    pub fn of(self, present: &[Attention]) -> Vec<Attention> {
        match self {
            Self::Paper if present.contains(&Attention::EncEnc) => vec![Attention::EncEnc],
            Self::One(attention) => vec![attention],
            Self::Paper | Self::All => present.to_vec(),
        }
    }

    /// File name without extension: `table1`, `table1-enc-dec`, `table1-all`, or the name for BERT.
    pub fn file_stem(self, names: FileNames, present: &[Attention], model: Model) -> String {
        let name = names.translation;
        match self {
            _ if self.of(present) == [Attention::SelfAttention] => {
                names.of(Attention::SelfAttention, model).to_owned()
            }
            Self::Paper => name.to_owned(),
            Self::One(attention) => format!("{name}-{attention}"),
            Self::All => format!("{name}-all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for attention in Attention::ALL {
            assert_eq!(attention.name().parse::<Attention>().unwrap(), attention);
        }
        let message = "encoder".parse::<Attention>().unwrap_err().to_string();
        assert!(message.contains("`encoder`") && message.contains("enc-dec"), "{message}");
    }

    #[test]
    fn the_default_is_enc_enc_or_else_everything() {
        let bert = [Attention::SelfAttention];
        assert_eq!(Selection::Paper.of(&Attention::ALL), [Attention::EncEnc]);
        assert_eq!(Selection::Paper.of(&bert), bert);
        assert_eq!(Selection::All.of(&Attention::ALL), Attention::ALL);
    }

    #[test]
    fn files_are_named_after_the_paper_and_the_attention_type() {
        let names = FileNames { translation: "figure1", bert: "figure1b", language_model: "figure1-self" };
        let of = |selection: Selection| selection.file_stem(names, &Attention::ALL, Model::Other);
        assert_eq!(of(Selection::Paper), "figure1");
        assert_eq!(of(Selection::One(Attention::DecDec)), "figure1-dec-dec");
        assert_eq!(of(Selection::All), "figure1-all");
        for selection in [Selection::Paper, Selection::One(Attention::SelfAttention), Selection::All] {
            let stem = |model| selection.file_stem(names, &[Attention::SelfAttention], model);
            assert_eq!(
                (stem(Model::Other).as_str(), stem(Model::Language).as_str()),
                ("figure1b", "figure1-self")
            );
        }
    }
}
