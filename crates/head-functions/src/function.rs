//! What heads are looked at for, and how well each does it in each sentence.
use records::rows::functions::{CONFIDENCE, POSITIONAL, POSITIONAL_ALL, RARE, SYNTACTIC};
use stats::ratio::RatioStatistics;

use crate::looks::Looks;
use crate::positional;
use crate::rare::{self, Ranks, RareTargets};
use crate::sentence::Sentence;
use crate::syntactic::{self, DIRECTIONS, Direction};

/// One thing that a head may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// Giving much of its attention to one key: Voita et al. (2019), Section 4.
    Confidence,
    /// Looking at one relative position; of all queries, or of those that have a key there.
    Positional { is_of_all: bool },
    /// Following a relation.
    Syntactic(Direction),
    /// Looking at so many of the rarest tokens.
    Rare { rarest: usize },
}

/// What functions are read from.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The sentences.
    pub sentences: &'a [Sentence],
    /// Of each head, where it looks in each sentence.
    pub looks: &'a [Vec<Looks>],
    /// How frequent tokens are, if that is known.
    pub ranks: Option<&'a Ranks>,
    /// Tokens that are not rare.
    pub frequent: usize,
    /// Whether a word is read from its first token, and not from its last.
    pub is_first: bool,
    /// Draws shuffles.
    pub seed: u64,
}

/// How well a head does one thing.
#[derive(Debug, Clone, Default)]
pub struct Candidate {
    /// What exactly, as rows have it.
    pub detail: String,
    /// Of each sentence.
    pub counts: Vec<RatioStatistics>,
    /// Hits to be expected of shuffled targets; absent where there are no targets.
    pub expected: Option<f64>,
}

/// What heads are compared with.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// The relative position, in words.
    pub position: i64,
    /// Of each sentence.
    pub counts: Vec<RatioStatistics>,
}

/// The sum over sentences.
pub fn sum(counts: &[RatioStatistics]) -> RatioStatistics {
    counts.iter().fold(RatioStatistics::default(), |sum, next| RatioStatistics {
        numerator: sum.numerator + next.numerator,
        denominator: sum.denominator + next.denominator,
    })
}

impl Function {
    /// Those that sentences give occasion to.
    pub fn all(
        sentences: &[Sentence],
        (ranks, frequent): (Option<&Ranks>, usize),
        is_first: bool,
    ) -> Vec<Self> {
        let mut all = vec![Self::Confidence];
        all.extend([false, true].map(|is_of_all| Self::Positional { is_of_all }));
        let occurs =
            |direction: &Direction| sentences.iter().any(|sentence| direction.occurs(sentence, is_first));
        all.extend(DIRECTIONS.into_iter().filter(occurs).map(Self::Syntactic));
        let has_rare = |&rarest: &usize| {
            let is_counted = |ranks| {
                sentences.iter().any(|sentence| rare::is_counted(sentence, ranks, (frequent, rarest)))
            };
            ranks.is_some_and(is_counted)
        };
        all.extend([1, 2].into_iter().filter(has_rare).map(|rarest| Self::Rare { rarest }));
        all
    }

    /// As rows call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confidence => CONFIDENCE,
            Self::Positional { is_of_all: false } => POSITIONAL,
            Self::Positional { is_of_all: true } => POSITIONAL_ALL,
            Self::Syntactic(_) => SYNTACTIC,
            Self::Rare { .. } => RARE,
        }
    }

    /// How well each head does it.
    pub fn candidates(self, view: &View<'_>) -> Vec<Candidate> {
        match self {
            Self::Confidence => view.looks.iter().map(|looks| confidence(view.sentences, looks)).collect(),
            Self::Positional { is_of_all } => {
                view.looks.iter().map(|looks| position(view.sentences, looks, is_of_all)).collect()
            }
            Self::Syntactic(direction) => {
                view.looks.iter().map(|looks| relation(view, looks, direction)).collect()
            }
            Self::Rare { rarest } => rare_tokens(view, rarest),
        }
    }

    /// What its hits are compared with, if there is something.
    pub fn baseline(self, view: &View<'_>) -> Option<Baseline> {
        let Self::Syntactic(direction) = self else { return None };
        let position = direction.usual_position(view.sentences, view.is_first);
        let counts = |sentence| direction.baseline(sentence, position, view.is_first);
        Some(Baseline { position, counts: view.sentences.iter().map(counts).collect() })
    }

    /// Whether a head that comes to this has the function, if a threshold is defined: by the first reading of "10 %", in
    /// points, and by the second, in percent of the baseline.
    pub fn holds(self, found: RatioStatistics, baseline: Option<RatioStatistics>) -> [Option<bool>; 2] {
        let is_syntactic =
            |rule: fn(RatioStatistics, RatioStatistics) -> bool| baseline.map(|own| rule(found, own));
        match self {
            Self::Confidence | Self::Rare { rarest: 1 } => [None, None],
            Self::Positional { .. } => [Some(positional::holds(found)), None],
            Self::Syntactic(_) => {
                [is_syntactic(syntactic::holds_in_points), is_syntactic(syntactic::holds_relatively)]
            }
            Self::Rare { .. } => [Some(rare::holds(found)), None],
        }
    }
}

fn confidence(sentences: &[Sentence], looks: &[Looks]) -> Candidate {
    let of_sentence = |(sentence, looks): (&Sentence, &Looks)| RatioStatistics {
        numerator: looks.sum_of_greatest,
        denominator: sentence.queries_with_choice().count() as f64,
    };
    Candidate { counts: sentences.iter().zip(looks).map(of_sentence).collect(), ..Candidate::default() }
}

fn position(sentences: &[Sentence], looks: &[Looks], is_of_all: bool) -> Candidate {
    let position = positional::most_frequent(sentences.iter().zip(looks));
    let found: Vec<_> = sentences
        .iter()
        .zip(looks)
        .map(|(sentence, looks)| positional::counts(sentence, looks, position))
        .collect();
    Candidate {
        detail: format!("{position:+}"),
        counts: found.iter().map(|found| if is_of_all { found.of_all } else { found.of_those }).collect(),
        expected: Some(found.iter().map(|found| found.expected).sum()),
    }
}

fn relation(view: &View<'_>, looks: &[Looks], direction: Direction) -> Candidate {
    let of_sentence = |(sentence, looks)| direction.counts(sentence, looks, view.is_first);
    let found: Vec<_> = view.sentences.iter().zip(looks).map(of_sentence).collect();
    Candidate {
        detail: direction.detail(),
        counts: found.iter().map(|found| found.hits).collect(),
        expected: Some(found.iter().map(|found| found.expected).sum()),
    }
}

/// Sentence by sentence, since all heads have the same targets.
fn rare_tokens(view: &View<'_>, rarest: usize) -> Vec<Candidate> {
    let detail = if rarest == 1 { "rarest" } else { "two-rarest" };
    let none = Candidate { detail: detail.to_owned(), counts: Vec::new(), expected: Some(0.0) };
    let mut candidates = vec![none; view.looks.len()];
    for (number, sentence) in view.sentences.iter().enumerate() {
        let settings = ((view.frequent, rarest), (view.seed, number as u64));
        let targets = view.ranks.and_then(|ranks| RareTargets::new(sentence, ranks, settings.0, settings.1));
        for (candidate, looks) in candidates.iter_mut().zip(view.looks) {
            let found = targets.as_ref().map(|targets| targets.counts(&looks[number])).unwrap_or_default();
            candidate.counts.push(found.hit);
            candidate.expected = candidate.expected.map(|expected| expected + found.expected);
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::tests::looking_at;
    use crate::sentence::tests::of_words;

    fn settings<'a>(sentences: &'a [Sentence], looks: &'a [Vec<Looks>], ranks: &'a Ranks) -> View<'a> {
        View { sentences, looks, ranks: Some(ranks), frequent: 2, is_first: false, seed: 1 }
    }

    /// Which heads are said to do what, by name and detail.
    fn found(view: &View<'_>) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for function in Function::all(view.sentences, (view.ranks, view.frequent), view.is_first) {
            let baseline = function.baseline(view).map(|baseline| sum(&baseline.counts));
            for (head, candidate) in function.candidates(view).iter().enumerate() {
                assert_eq!(candidate.counts.len(), view.sentences.len());
                if function.holds(sum(&candidate.counts), baseline)[0] == Some(true) {
                    found.push((head, format!("{} {}", function.name(), candidate.detail)));
                }
            }
        }
        found.sort();
        found
    }

    /// Twenty sentences of eight words whose frequency falls with their place: the subject is the first word, its verb the
    /// second in eleven of them and the fourth in nine. Planted are a head that looks back, one that does so for all but two of
    /// the eight queries, one that lets the verb look at its subject, one that does so in twelve sentences, where 55 % is what
    /// the position alone gives, one on the rarest word in eleven sentences and one in ten.
    #[test]
    fn planted_functions_are_found_and_near_misses_are_not() {
        let verb = |number: usize| if number < 11 { 1 } else { 3 };
        let sentences: Vec<Sentence> =
            (0..20).map(|number| of_words(8, &[(0, "nsubj", verb(number))], true)).collect();
        let tokens: Vec<u32> =
            (1..=8).flat_map(|token| std::iter::repeat_n(token, 9 - token as usize)).collect();
        let ranks = Ranks::count(tokens.iter());
        let back = [4, 0, 1, 2, 3, 4, 5, 6, 7];
        // what looks at the end symbol looks at no word, and at another relative position from each query
        let rest = [8; 9];
        let with = |keys: [usize; 9], query: usize, key: usize| {
            let mut keys = keys;
            keys[query] = key;
            keys
        };
        let planted: [&dyn Fn(usize) -> [usize; 9]; 6] = [
            &|_| back,
            &|_| with(with(back, 2, 4), 5, 1),
            &|number| with(rest, verb(number), 0),
            &|number| if number < 12 { with(rest, verb(number), 0) } else { with(rest, verb(number), 7) },
            &|number| if number < 11 { [7; 9] } else { [0; 9] },
            &|number| if number < 10 { [7; 9] } else { [0; 9] },
        ];
        let looks: Vec<Vec<Looks>> = planted
            .iter()
            .map(|keys| {
                let of_sentence = |(number, sentence)| looking_at(sentence, &keys(number));
                sentences.iter().enumerate().map(of_sentence).collect()
            })
            .collect();
        let view = settings(&sentences, &looks, &ranks);
        let named: Vec<(usize, String)> = found(&view);
        let of_head = |head: usize| -> Vec<&str> {
            named.iter().filter(|(own, _)| *own == head).map(|(_, name)| name.as_str()).collect()
        };
        assert_eq!(of_head(0), ["positional -1"], "8 of 9 of all queries are too few");
        assert_eq!(of_head(1), Vec::<&str>::new());
        assert_eq!(of_head(2), ["syntactic nsubj:verb->subject"]);
        assert_eq!(of_head(3), Vec::<&str>::new(), "12 of 20 are less than 55 % and 10 points");
        assert_eq!(of_head(4), ["rare two-rarest"]);
        assert_eq!(of_head(5), Vec::<&str>::new(), "10 of 20 are not more than half");
    }

    #[test]
    fn sentences_without_an_occasion_give_no_function() {
        let sentences = [of_words(3, &[], true)];
        let names = |ranks: Option<&Ranks>, frequent| {
            let all = Function::all(&sentences, (ranks, frequent), false);
            all.into_iter().map(Function::name).collect::<Vec<_>>()
        };
        let always = [CONFIDENCE, POSITIONAL, POSITIONAL_ALL];
        let ranks = Ranks::count([1, 2, 3].iter());
        assert_eq!(names(None, 2), always);
        assert_eq!(names(Some(&ranks), 3), always);
        assert_eq!(names(Some(&ranks), 2).len(), 5);
    }
}
