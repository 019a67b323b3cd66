//! Entities in sequences of tags, also ill-formed ones, as found by conlleval and seqeval 1.2.2 in its default mode: Tjong Kim Sang and De
//! Meulder (2003), <https://aclanthology.org/W03-0419>;
//! <https://github.com/chakki-works/seqeval/blob/v1.2.2/seqeval/metrics/sequence_labeling.py>.
use std::ops::Range;

/// Prefix of a tag: the position of a token in its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// `B-`: the first token.
    Begin,
    /// `I-`: a further token.
    Inside,
    /// `E-`, `L-` in the scheme BILOU: the last token.
    End,
    /// `S-`, `U-` in the scheme BILOU: the only token.
    Single,
}

/// An entity in a sequence of tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity<'a> {
    /// Type of the entity, such as `PER`.
    pub kind: &'a str,
    /// Indices of its tokens.
    pub tokens: Range<usize>,
}

/// Returns the position and the type in a tag such as `B-PER`; `None` for `O` and all other tags.
pub fn parse(tag: &str) -> Option<(Position, &str)> {
    let (prefix, kind) = tag.split_once('-')?;
    let position = match prefix {
        "B" => Position::Begin,
        "I" => Position::Inside,
        "E" | "L" => Position::End,
        "S" | "U" => Position::Single,
        _ => return None,
    };
    Some((position, kind))
}

/// Returns true if a tag begins an entity after the preceding tag; `None` is any tag outside of entities.
pub fn begins(before: Option<(Position, &str)>, (position, kind): (Position, &str)) -> bool {
    let Some((last, of_last)) = before else { return true };
    let has_ended = matches!(last, Position::End | Position::Single);
    has_ended || of_last != kind || matches!(position, Position::Begin | Position::Single)
}

/// Returns the entities in a sequence of tags, in order.
pub fn entities<'a>(tags: impl IntoIterator<Item = &'a str>) -> Vec<Entity<'a>> {
    let (mut found, mut before) = (Vec::<Entity<'_>>::new(), None);
    for (place, tag) in tags.into_iter().enumerate() {
        let tag = parse(tag);
        if let Some((position, kind)) = tag {
            match found.last_mut() {
                Some(entity) if !begins(before, (position, kind)) => entity.tokens.end = place + 1,
                _ => found.push(Entity { kind, tokens: place..place + 1 }),
            }
        }
        before = tag;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;
    use crate::text::TextMetric;

    /// Numbers of predicted, true and common entities, predicted tags and true tags, for random sequences: IOB2, IOBES and ill-formed ones.
    /// From `seqeval.metrics.sequence_labeling.get_entities` of seqeval 1.2.2.
    const REFERENCE: &str = include_str!("entities/reference.tsv");
    /// `f1_score` and `accuracy_score` of all these sequences.
    const CORPUS: [(TextMetric, f64); 2] =
        [(TextMetric::EntityF1, 65.619_742_007_851_94), (TextMetric::TokenAccuracy, 74.444_444_444_444_44)];

    #[test]
    fn entities_and_the_scores_of_a_corpus_equal_seqeval() {
        for (metric, expected) in CORPUS {
            let mut segments = Vec::new();
            for line in REFERENCE.lines() {
                let cells: Vec<&str> = line.split('\t').collect();
                let found = metric.segment(cells[3], cells[4]);
                if metric == TextMetric::EntityF1 {
                    assert_eq!(found.iter().map(u32::to_string).collect::<Vec<_>>(), cells[..3], "{line}");
                }
                segments.push(found);
            }
            let score = Segments::Texts(segments, metric).score().unwrap();
            assert!((score - expected).abs() < 1e-11, "{metric:?}: {score}");
        }
    }

    /// BILOU marks the last token with L and a single one with U, which seqeval does not know.
    #[test]
    fn bilou_is_iobes_under_other_names() {
        let iobes = "S-PER B-LOC I-LOC E-LOC O S-LOC S-LOC";
        let bilou = "U-PER B-LOC I-LOC L-LOC O U-LOC U-LOC";
        let [one, other] = [iobes, bilou].map(|tags| entities(tags.split(' ')));
        assert_eq!(one, other);
        assert_eq!(one.len(), 4);
        assert_eq!(one[1], Entity { kind: "LOC", tokens: 1..4 });
    }
}
