//! Answered examples before a question, drawn as lm-evaluation-harness draws them.
use std::path::PathBuf;

use rand_mt::Mt;
use serde::{Deserialize, Serialize};

use super::Choice;

/// Examples that precede each question; part of a subject's TOML.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fewshot {
    /// Examples before each question; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// The files that they are drawn from, relative to the data folder, in the layout of the questions.
    pub files: Vec<PathBuf>,
    /// Seed of the draw; 1234 if not given, as in the harness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// True if the first rows are the examples of all questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<bool>,
    /// The text after each example; a blank line if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// True if the question itself may be among the rows, and is left out of its examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<bool>,
}

/// A supply of examples.
#[derive(Debug)]
pub struct Shots {
    number: usize,
    examples: Vec<Choice>,
    /// `None` if the first are taken.
    draws: Option<Mt>,
    delimiter: String,
    own: bool,
}

impl Shots {
    /// No examples.
    pub fn none() -> Self {
        Self::new(&Fewshot::default(), Vec::new())
    }

    /// Examples to draw from.
    pub fn new(rule: &Fewshot, examples: Vec<Choice>) -> Self {
        let draws = (rule.first != Some(true)).then(|| seeded(rule.seed.unwrap_or(1234)));
        Self {
            number: rule.number.unwrap_or(0),
            examples,
            draws,
            delimiter: rule.delimiter.clone().unwrap_or_else(|| "\n\n".to_owned()),
            own: rule.own == Some(true),
        }
    }

    /// The examples before the next question: those of `ContextSampler` and `FirstNSampler` of `lm_eval/api/samplers.py`, version
    /// 0.4.13. They depend on the questions before.
    ///
    /// Differs from it: two rows are the same if their questions are, whatever their other fields.
    ///
    /// # Errors
    /// If there are too few.
    pub(super) fn before(&mut self, question: &Choice) -> Result<String, String> {
        let (number, all) = (self.number, &self.examples);
        if number == 0 {
            return Ok(String::new());
        }
        let is_other = |place: &usize| !self.own || all[*place] != *question;
        let others: Vec<usize> = (0..all.len()).filter(is_other).collect();
        // one is drawn in excess, since it may be the question
        let drawn = number + usize::from(self.own);
        if others.len() < number || self.draws.is_some() && all.len() < drawn {
            return Err(format!(
                "it needs {number} examples from `fewshot.files`, which have {}",
                others.len()
            ));
        }
        let mut chosen: Vec<usize> = match &mut self.draws {
            None => others,
            Some(draws) => {
                let found = sample(draws, all.len(), drawn);
                let mut found: Vec<usize> = found.into_iter().filter(is_other).collect();
                if found.len() < number {
                    found =
                        sample(draws, others.len(), number).into_iter().map(|place| others[place]).collect();
                }
                found
            }
        };
        chosen.truncate(number);
        Ok(chosen.into_iter().map(|place| all[place].answered() + &self.delimiter).collect())
    }
}

/// Python's `random.Random(seed)`.
fn seeded(seed: u64) -> Mt {
    let [low, high] = [seed as u32, (seed >> 32) as u32];
    Mt::new_with_key(std::iter::once(low).chain((high > 0).then_some(high)))
}

/// Python's `random.sample(range(length), count)`:
/// <https://github.com/python/cpython/blob/v3.11.7/Lib/random.py#L363-L470>.
fn sample(draws: &mut Mt, length: usize, count: usize) -> Vec<usize> {
    let mut most = 21;
    if count > 5 {
        most += 4_usize.pow((count as f64 * 3.0).log(4.0).ceil() as u32);
    }
    if length <= most {
        let mut pool: Vec<usize> = (0..length).collect();
        return (0..count).map(|_| pool.swap_remove(below(draws, pool.len()))).collect();
    }
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let place = below(draws, length);
        if !chosen.contains(&place) {
            chosen.push(place);
        }
    }
    chosen
}

/// Python's `_randbelow`, of fewer than 2³² values.
fn below(draws: &mut Mt, count: usize) -> usize {
    let bits = usize::BITS - count.leading_zeros();
    loop {
        let drawn = (draws.next_u32() >> (32 - bits)) as usize;
        if drawn < count {
            return drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.Random(1234)` of Python 3.11: `[r.sample(range(9), 3), r.sample(range(1000), 4), r.sample(range(90), 7)]`, and the first of
    /// `random.Random(2**40 + 5)`.
    #[test]
    fn samples_are_those_of_python() {
        let mut draws = seeded(1234);
        assert_eq!(sample(&mut draws, 9, 3), [7, 1, 0]);
        assert_eq!(sample(&mut draws, 1000, 4), [92, 932, 965, 961]);
        assert_eq!(sample(&mut draws, 90, 7), [74, 4, 85, 88, 10, 12, 45]);
        assert_eq!(sample(&mut seeded((1 << 40) + 5), 9, 3), [8, 4, 5]);
    }
}
