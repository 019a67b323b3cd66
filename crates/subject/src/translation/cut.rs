//! Translations of the full model that end at the maximum length.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use core_masking::{BeamSearch, Translation, TranslatorConfig};

/// Share of cut translations that triggers a warning.
const MANY: f64 = 0.1;

/// For each segment, the maximum length if its translation was cut there, by segment index.
#[derive(Debug, Default)]
pub(super) struct Cuts(Mutex<BTreeMap<usize, Option<usize>>>);

impl Cuts {
    pub(super) fn count(
        &self,
        (row, source): (usize, usize),
        translation: &Translation,
        (search, config): (&BeamSearch, &TranslatorConfig),
    ) {
        let limit = search.limit(config, source);
        let is_cut = search.is_cut(config, translation.tokens.len(), limit);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(row, is_cut.then_some(limit));
    }

    /// Returns a warning if at least 10% of the translations were cut.
    pub(super) fn doubt(&self) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let limits: Vec<usize> = all.values().copied().flatten().collect();
        let (shortest, longest) = (limits.iter().min()?, limits.iter().max()?);
        if (limits.len() as f64) < MANY * all.len() as f64 {
            return None;
        }
        let (cut, all) = (limits.len(), words::count(all.len(), "translation"));
        let limit = if shortest == longest {
            format!("the limit of {longest} tokens")
        } else {
            format!("limits of {shortest} to {longest} tokens")
        };
        Some(format!(
            "{cut} of {all} of the full model end at {limit} instead of at an end token: decoding.length_ratio raises it, up to \
             the model's positions"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(limits: &[Option<usize>]) -> Option<String> {
        Cuts(Mutex::new(limits.iter().copied().enumerate().collect())).doubt()
    }

    #[test]
    fn a_tenth_of_cut_translations_causes_a_warning() {
        let end = "instead of at an end token: decoding.length_ratio raises it, up to the model's positions";
        let ten = |cut: usize| [vec![Some(20); cut], vec![None; 10 - cut]].concat();
        let expected = format!("10 of 10 translations of the full model end at the limit of 20 tokens {end}");
        assert_eq!(doubt(&ten(10)), Some(expected));
        assert!(doubt(&ten(1)).unwrap().starts_with("1 of 10 translations of"));
        assert_eq!(doubt(&ten(0)), None);
        assert_eq!(doubt(&[vec![Some(20)], vec![None; 10]].concat()), None, "one of eleven");
        assert!(
            doubt(&[Some(7), None, Some(31)]).unwrap().contains("end at limits of 7 to 31 tokens instead")
        );
        assert_eq!(doubt(&[]), None);
    }
}
