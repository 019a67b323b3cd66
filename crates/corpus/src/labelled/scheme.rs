//! Tagging schemes: which tag begins an entity.
use serde::{Deserialize, Serialize};
use stats::entities::{Position, begins, parse};
use words::excerpt;

use super::Example;

/// Tagging scheme of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Every entity begins with `B-` (in IOBES and BILOU also with `S-` or `U-`); other beginnings are refused.
    #[default]
    Iob2,
    /// Entities begin with `I-`, or with `B-` directly after an entity of equal type; converted to IOB2.
    Iob1,
    /// Any tags, kept unchanged.
    Raw,
}

impl Scheme {
    /// Checks that the tags of a sentence mark entities by this scheme, and converts IOB1 to IOB2. The error is a message.
    pub fn apply(self, example: &mut Example) -> Result<(), String> {
        if self == Self::Raw {
            return Ok(());
        }
        let (mut tags, mut before) = (Vec::new(), None);
        for (tag, word) in example.tags().zip(example.words()) {
            let found = parse(tag);
            let of_word = || format!("tag `{}` of word `{}`", excerpt(tag), excerpt(word));
            if found.is_none() && tag != "O" {
                return Err(format!(
                    "{} marks no entity: entity-f1 needs O, and B-, I-, E-, S-, L- or U- before a type; score.metric = \
                     \"token-accuracy\" accepts any tags",
                    of_word()
                ));
            }
            let is_late = found.filter(|&found| {
                matches!(found.0, Position::Inside | Position::End) && begins(before, found)
            });
            tags.push(match (is_late, self) {
                (None, _) => tag.to_owned(),
                (Some((_, kind)), Self::Iob1) => format!("B-{kind}"),
                (Some((_, kind)), _) => {
                    return Err(format!(
                        "{} begins an entity, but in IOB2 `B-{}` does: data.scheme = \"iob1\" converts such tags, \"raw\" keeps them",
                        of_word(),
                        excerpt(kind)
                    ));
                }
            });
            before = found;
        }
        example.label = tags.join(" ");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(scheme: Scheme, tags: &str) -> Result<String, String> {
        let words = (1..=tags.split(' ').count()).map(|word| format!("w{word}")).collect();
        let tags: Vec<String> = tags.split(' ').map(str::to_owned).collect();
        let mut example = Example::tagged(words, &tags).unwrap();
        scheme.apply(&mut example).map(|()| example.label)
    }

    /// In IOB1, `B-` separates two adjacent entities of one type. The conversion changes no entity.
    #[test]
    fn iob1_is_converted_and_refused_where_iob2_is_expected() {
        let iob1 = "I-PER I-PER B-PER O I-LOC I-PER O I-LOC";
        let iob2 = "B-PER I-PER B-PER O B-LOC B-PER O B-LOC";
        assert_eq!(applied(Scheme::Iob1, iob1).unwrap(), iob2);
        let [one, other] = [iob1, iob2].map(|tags| stats::entities::entities(tags.split(' ')));
        assert_eq!(one, other);
        assert_eq!(applied(Scheme::Iob2, iob2).unwrap(), iob2);
        assert_eq!(applied(Scheme::Raw, iob1).unwrap(), iob1);
        let fault = applied(Scheme::Iob2, iob1).unwrap_err();
        assert!(
            fault.starts_with("tag `I-PER` of word `w1` begins an entity, but in IOB2 `B-PER` does"),
            "{fault}"
        );
        for fine in ["S-PER B-LOC I-LOC E-LOC S-LOC", "U-PER B-LOC L-LOC O"] {
            assert_eq!(applied(Scheme::Iob2, fine).unwrap(), fine);
        }
        assert!(applied(Scheme::Iob2, "O E-PER").unwrap_err().contains("`E-PER` of word `w2` begins"));
        let fault = applied(Scheme::Iob2, "O NOUN").unwrap_err();
        assert!(fault.starts_with("tag `NOUN` of word `w2` marks no entity"), "{fault}");
    }
}
