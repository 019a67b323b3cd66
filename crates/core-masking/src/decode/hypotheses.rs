//! Hypotheses of one sentence: which continue, which are finished, and when the search stops.
use super::{BeamSearch, OutputRules, Stopping, Translation};

/// A possible continuation: a hypothesis of the beam and a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Log-probability of the whole hypothesis in nats; in greedy search, the logit of the token.
    pub rank: f32,
    /// Index of the hypothesis that is continued.
    pub beam: usize,
    /// The token that it is continued with.
    pub token: u32,
}

#[derive(Debug, Clone)]
struct Running {
    tokens: Vec<u32>,
    rank: f32,
}

/// Search state of one sentence.
#[derive(Debug)]
pub(super) struct Hypotheses {
    start: u32,
    limit: usize,
    running: Vec<Running>,
    origins: Vec<usize>,
    finished: Vec<Finished>, // at most `beam`, best first
    steps: usize,
    done: bool,
}

/// A hypothesis that ended with the EOS token or at the maximum length.
#[derive(Debug)]
struct Finished {
    tokens: Vec<u32>,
    score: f64,
}

impl Hypotheses {
    /// Starts with one empty hypothesis; after the first step they fill the beam.
    pub(super) fn new(limit: usize, start: u32) -> Self {
        Self {
            start,
            limit,
            running: vec![Running { tokens: Vec::new(), rank: 0.0 }],
            origins: vec![0],
            finished: Vec::new(),
            steps: 0,
            done: false,
        }
    }

    pub(super) fn last_tokens(&self) -> impl Iterator<Item = i64> + '_ {
        self.running.iter().map(|hypothesis| i64::from(*hypothesis.tokens.last().unwrap_or(&self.start)))
    }

    /// Returns the rank of each hypothesis, as in [`Candidate`].
    pub(super) fn ranks(&self) -> impl Iterator<Item = f32> + '_ {
        self.running.iter().map(|hypothesis| hypothesis.rank)
    }

    /// Returns the tokens that hypotheses must not continue with, each after the index of its hypothesis.
    pub(super) fn forbidden(&self, rules: &OutputRules, end: u32) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        if rules.shortest > self.steps {
            all.extend((0..self.running.len()).map(|place| (place, end)));
        }
        if let Some(past) = rules.ngram.checked_sub(1) {
            for (place, hypothesis) in self.running.iter().enumerate() {
                let words = [&[self.start], &hypothesis.tokens[..]].concat();
                let last = &words[words.len().saturating_sub(past)..];
                let seen = words.windows(rules.ngram).filter(|words| words[..past] == *last);
                all.extend(seen.map(|words| (place, words[past])));
            }
        }
        all
    }

    /// Returns for each hypothesis the index of the one it continues, in the previous step.
    pub(super) fn origins(&self) -> &[usize] {
        &self.origins
    }

    pub(super) fn is_finished(&self) -> bool {
        self.done
    }

    /// Returns the best finished hypothesis, without a score in greedy search.
    pub(super) fn best(self, search: &BeamSearch) -> Translation {
        let nothing = Finished { tokens: Vec::new(), score: f64::NEG_INFINITY };
        let Finished { tokens, score } = self.finished.into_iter().next().unwrap_or(nothing);
        Translation { tokens, score: (!search.is_greedy()).then_some(score), steps: self.steps }
    }

    /// Takes one step. `candidates` are sorted, best first; `length` counts tokens after this step.
    pub(super) fn advance(
        &mut self,
        search: &BeamSearch,
        candidates: &[Candidate],
        length: usize,
        end: u32,
        end_forced: bool,
    ) {
        self.steps = length;
        if length >= self.limit {
            return self.finish_all(search, candidates, length, end, end_forced);
        }
        let mut continued = Vec::with_capacity(search.beam);
        let mut origins = Vec::with_capacity(search.beam);
        for (place, candidate) in candidates.iter().enumerate() {
            if candidate.token == end {
                // As in transformers and fairseq, an end ranked below the beam width is discarded.
                if place < search.beam {
                    self.finish(search, candidate.beam, None, candidate.rank, length);
                }
            } else if continued.len() < search.beam {
                continued.push(self.continued(candidate));
                origins.push(candidate.beam);
            }
        }
        // If there are fewer candidates, impossible hypotheses fill the beam.
        continued.resize_with(search.beam, || Running { tokens: Vec::new(), rank: f32::NEG_INFINITY });
        origins.resize(search.beam, 0);
        (self.running, self.origins) = (continued, origins);
        self.done = self.may_stop(search, length);
    }

    /// Finishes every hypothesis at the maximum length: with a forced EOS token that costs nothing, or as it is.
    fn finish_all(
        &mut self,
        search: &BeamSearch,
        candidates: &[Candidate],
        length: usize,
        end: u32,
        end_forced: bool,
    ) {
        if end_forced {
            for beam in 0..self.running.len() {
                self.finish(search, beam, None, self.running[beam].rank, length);
            }
        } else {
            for candidate in candidates.iter().take(search.beam) {
                let token = (candidate.token != end).then_some(candidate.token);
                self.finish(search, candidate.beam, token, candidate.rank, length);
            }
        }
        self.done = true;
    }

    fn continued(&self, candidate: &Candidate) -> Running {
        let mut tokens = self.running[candidate.beam].tokens.clone();
        tokens.push(candidate.token);
        Running { tokens, rank: candidate.rank }
    }

    fn finish(&mut self, search: &BeamSearch, beam: usize, token: Option<u32>, rank: f32, length: usize) {
        if rank == f32::NEG_INFINITY {
            return; // it only fills the beam
        }
        let mut tokens = self.running[beam].tokens.clone();
        tokens.extend(token);
        let score = f64::from(rank) / (length as f64).powf(search.length_penalty);
        // placed after equal scores, so that the earlier hypothesis is kept
        let place = self.finished.partition_point(|other| other.score >= score);
        self.finished.insert(place, Finished { tokens, score });
        self.finished.truncate(search.beam);
    }

    fn may_stop(&self, search: &BeamSearch, length: usize) -> bool {
        let best = self.running.first().map_or(f64::NEG_INFINITY, |best| f64::from(best.rank));
        if best == f64::NEG_INFINITY {
            return true;
        }
        let Some(worst) = self.finished.get(search.beam - 1) else { return false };
        // greedy search ends with its first EOS token
        if search.stopping == Stopping::Early || search.is_greedy() {
            return true;
        }
        let longest = match search.stopping {
            Stopping::Heuristic => length,
            // The best possible continuation adds tokens at no cost, as many as the penalty rewards.
            _ if search.length_penalty > 0.0 => self.limit,
            _ => length + 1,
        };
        worst.score >= best / (longest as f64).powf(search.length_penalty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u32 = 0;

    fn search(beam: usize, stopping: Stopping) -> BeamSearch {
        BeamSearch { beam, length_penalty: 1.0, stopping, length_limit: (0.0, 4), rules: None }
    }

    fn candidate(beam: usize, token: u32, rank: f32) -> Candidate {
        Candidate { rank, beam, token }
    }

    /// Two hypotheses finish, and the worse scores -2.5 / 2 = -1.25; the best unfinished one has -2.75.
    #[test]
    fn each_stopping_rule_stops_at_a_different_point() {
        let stopped = |stopping, unfinished| {
            let search = search(2, stopping);
            let mut sentence = Hypotheses::new(4, 9);
            let first = [candidate(0, 5, -1.0), candidate(0, 6, -1.5), candidate(0, 7, -2.0)];
            sentence.advance(&search, &first, 1, END, false);
            let second = [
                candidate(0, END, -2.0),
                candidate(1, END, -2.5),
                candidate(0, 7, unfinished),
                candidate(1, 7, unfinished - 0.5),
            ];
            sentence.advance(&search, &second, 2, END, false);
            sentence.is_finished()
        };
        assert!(stopped(Stopping::Early, -2.75));
        // now -2.75 / 2 = -1.375; at the maximum length, without further cost, -2.75 / 4 = -0.6875
        assert!(stopped(Stopping::Heuristic, -2.75));
        assert!(!stopped(Stopping::Exact, -2.75));
        // now -2.25 / 2 = -1.125, which beats -1.25
        assert!(!stopped(Stopping::Heuristic, -2.25));
        // -5.5 / 4 = -1.375
        assert!(stopped(Stopping::Exact, -5.5));
    }

    /// Start 9, then 5 6 5: after 5 came 6, and after 6 5 nothing yet.
    #[test]
    fn ngrams_are_not_repeated_and_eos_respects_the_minimum_length() {
        let search = search(1, Stopping::Early);
        let mut sentence = Hypotheses::new(9, 9);
        for (length, token) in [(1, 5), (2, 6), (3, 5)] {
            sentence.advance(&search, &[candidate(0, token, -1.0)], length, END, false);
        }
        let forbidden = |ngram, shortest| {
            sentence.forbidden(&OutputRules { ngram, shortest, ..OutputRules::default() }, END)
        };
        assert_eq!(forbidden(0, 3), []);
        assert_eq!(forbidden(0, 4), [(0, END)]);
        assert_eq!(forbidden(1, 0), [(0, 9), (0, 5), (0, 6), (0, 5)]);
        assert_eq!(forbidden(2, 0), [(0, 6)]);
        assert_eq!((forbidden(3, 0), forbidden(7, 0)), (vec![], vec![]));
    }
}
