//! Translation of sentences under many head sets.
use std::ops::Range;

use core_masking::{Attention, GatedModel, HeadId, HeadSet, PrefixCache, Translation, Translator};
use stats::bleu::Bleu;
use stats::{Cell, Cells, Metric, Segments};

use super::Prepared;
use super::cut::Cuts;
use crate::error::Error;
use crate::evaluation::{BySet, Request, Scorer, neighbours};
use crate::models::Models;

pub(crate) struct Sentences<'a> {
    pub(super) task: &'a super::Translation,
    pub(super) prepared: &'a Prepared,
    pub(super) cuts: Cuts,
}

impl Scorer for Sentences<'_> {
    type Model = Translator;
    type Segment = Cells;

    /// Decoding takes most of the time, and head sets share none of it.
    const SHARES_LOWER_LAYERS: bool = false;

    /// Rows of one batch share the encoder up to the lowest masked layer; the full model is evaluated separately.
    fn groups(sets: &[HeadSet], most: usize) -> Vec<Range<usize>> {
        let of_encoder = |id: &HeadId| id.attention() == Attention::EncEnc;
        let lowest = |set: &HeadSet| set.iter().filter(of_encoder).map(HeadId::layer_index).min();
        let key = |set: &HeadSet| (set.is_empty(), lowest(set));
        neighbours(sets, key, |(is_full_model, _)| if is_full_model { 1 } else { most })
    }

    /// Translates a batch under each head set and returns the statistics that the metric needs for each sentence.
    fn score(
        &self,
        models: &Models<Translator>,
        request: &Request<'_>,
        left: Option<PrefixCache>,
    ) -> Result<(BySet<Cells>, PrefixCache), Error> {
        let (model, task) = (models.quickest(), self.task);
        let variants = model.variants(request.sets, request.rescale)?.replaced_by(request.replacement);
        let sources = self.prepared.sources(request.rows);
        let (found, prefix) = task.search.sweep(model, &sources, &variants, request.sets_per_batch, left)?;
        for (translations, _) in found.iter().zip(request.sets).filter(|(_, set)| set.is_empty()) {
            for ((translation, &row), source) in translations.iter().zip(request.rows).zip(&sources) {
                self.cuts.count((row, source.len()), translation, (&task.search, model.config()));
            }
        }
        let bleu = Bleu::of(task.tokenize);
        let counted = |(translation, &row): (&Translation, &usize)| {
            let (text, references) =
                (task.tokenizer.decode(&translation.tokens), self.prepared.text.references(row));
            match task.metric {
                Metric::Texts(metric) => {
                    metric.segment_of(&text, &references).into_iter().map(Cell::Count).collect()
                }
                _ => Segments::Bleu(vec![bleu.segment_of(&text, &references)]).cells(0),
            }
        };
        let of_set = |found: &Vec<Translation>| found.iter().zip(request.rows).map(counted).collect();
        Ok((found.iter().map(of_set).collect(), prefix))
    }

    fn doubt(&self) -> Option<String> {
        self.cuts.doubt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_share_the_encoder_up_to_a_layer_are_neighbours() {
        let set = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<HeadSet>();
        let sets = [
            set(&[]),
            set(&["enc-dec:1:1"]),
            set(&["dec-dec:1:1"]),
            set(&["dec-dec:2:1", "enc-dec:2:1"]),
            set(&["enc-enc:2:1"]),
            set(&["enc-enc:2:2", "enc-enc:5:1", "dec-dec:1:1"]),
            set(&["enc-enc:1:1", "enc-enc:2:1"]),
        ];
        assert_eq!(Sentences::groups(&sets, 3), [0..1, 1..4, 4..6, 6..7]);
        assert_eq!(Sentences::groups(&sets, 2), [0..1, 1..3, 3..4, 4..6, 6..7]);
        assert_eq!(Sentences::groups(&[set(&[]), set(&[])], 3), [0..1, 1..2]);
        assert_eq!(Sentences::groups(&sets, 1).len(), sets.len());
        assert!(Sentences::groups(&[], 3).is_empty());
    }
}
