//! A split as a language model reads it: rows of tokens, some of which are predicted.
use std::ops::Range;

use core_masking::language_model::{ChoiceRows, Contrast, PredictionBatch, Window};
use core_masking::{GatedModel, LanguageModel};
use corpus::choices::Choice;
use corpus::documents::{Document, words};
use corpus::language_tokenizer::LanguageTokenizer;
use corpus::splits::language::ChoiceRule;

use super::spec::{SegmentKind, WindowSpec};
use crate::error::Error;

/// Tokens per batch, padding included: large enough for efficient matrix products, small enough that the activations of a layer stay in the
/// CPU caches.
pub(super) const BATCH_TOKENS: usize = 1_024;

/// The rows of a split, and the segments that they belong to.
#[derive(Debug)]
pub(crate) struct Rows {
    tokens: Vec<u32>,
    rows: Vec<Row>,
    pub(super) segments: SegmentsOf,
}

/// Consecutive tokens that the model reads together.
#[derive(Debug, Clone)]
struct Row {
    tokens: Range<usize>,
    /// Number of tokens at the beginning that are not predicted.
    context: usize,
    /// Index of the document or question that it belongs to.
    segment: usize,
    /// Divisor of the row's nats.
    length: f64,
}

#[derive(Debug)]
pub(crate) enum SegmentsOf {
    /// Documents, scored by nats per token, with the number of words of each.
    Documents { words: Vec<u32> },
    /// Questions: for each, the index of the right choice and the index of its first row. The rows of a question follow each other.
    Questions { answers: Vec<usize>, starts: Vec<usize>, rule: ChoiceRule },
}

/// Windows that cut documents into rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windowing {
    /// Tokens per window.
    pub length: usize,
    /// Tokens that each window after the first adds to those predicted so far.
    pub stride: usize,
    /// True if the end of a document is predicted too.
    pub end: bool,
    /// Token that replaces the first one in all windows but the first of a document.
    pub begin: Option<u32>,
    pub segments: SegmentKind,
}

/// Rules that turn choices into rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choosing {
    pub rule: ChoiceRule,
    /// The BOS token that precedes contexts; `None` if contexts have none.
    pub context_bos: Option<u32>,
    /// Maximum number of tokens that the model reads.
    pub positions: i64,
}

impl Windowing {
    /// Returns the windows in the setup; by default as long as the model allows and without overlap.
    ///
    /// - `begin`: the BOS token
    pub(super) fn of(spec: &WindowSpec, positions: i64, begin: Option<u32>) -> Result<Self, Error> {
        let positions = usize::try_from(positions).unwrap_or(usize::MAX);
        let length = spec.length.unwrap_or(positions);
        if length > positions {
            return Err(core_masking::Error::too_long("window", length, positions).into());
        }
        let stride = spec.stride.unwrap_or(length);
        if stride > length {
            let allowed = "the stride must be at most the length";
            let fault = format!("windows.stride is {stride}, but windows have {length} tokens");
            return Err(Error::Invalid(format!("{fault}: {allowed}")));
        }
        if spec.begin && begin.is_none() {
            words::warn("windows.begin has no effect: the tokenizer has no BOS token");
        }
        let begin = begin.filter(|_| spec.begin);
        Ok(Self { length, stride, end: spec.end, begin, segments: spec.segments })
    }
}

impl Rows {
    /// Converts documents to rows that predict each token once. BOS precedes each document if the tokeniser has one; otherwise the first
    /// token is not predicted.
    ///
    /// # Errors
    /// If the tokeniser cannot encode a document, or no document has a token to predict.
    pub(super) fn of_documents(
        tokenizer: &LanguageTokenizer,
        documents: &[Document],
        windowing: Windowing,
        split: &str,
    ) -> Result<Self, Error> {
        let mut rows = Self { tokens: Vec::new(), rows: Vec::new(), segments: no_documents() };
        let mut counts = Vec::new();
        for document in documents {
            let first = rows.tokens.len();
            rows.tokens.extend(tokenizer.begin());
            rows.tokens.extend(tokenizer.encode(&document.text)?);
            let is_end = document.given == 0 && document.source.is_none();
            rows.tokens.extend(tokenizer.end().filter(|_| windowing.end && is_end));
            let document_words = u32::try_from(words(&document.text[document.given..])).unwrap_or(u32::MAX);
            if document.given > 0 {
                // the prompt is encoded alone to count its tokens, as for choices
                let given = tokenizer.encode(&document.text[..document.given])?.len();
                let given = given + usize::from(tokenizer.begin().is_some());
                // a single token has no context
                if rows.tokens.len() - first > 1 {
                    rows.continued(first, given, windowing, counts.len());
                }
                counts.push(document_words);
                continue;
            }
            match windowing.segments {
                SegmentKind::Documents => {
                    rows.window(first, windowing, |_| counts.len());
                    counts.push(document_words);
                }
                SegmentKind::Windows => {
                    let windows = rows.window(first, windowing, |window| counts.len() + window);
                    // words are not counted per window
                    counts.resize(counts.len() + windows, 0);
                }
            }
        }
        rows.segments = SegmentsOf::Documents { words: counts };
        if rows.rows.is_empty() {
            let allowed = "documents need two tokens, or one and a BOS token";
            return Err(Error::Invalid(format!("split `{split}` has no token to predict: {allowed}")));
        }
        Ok(rows)
    }

    /// Adds a row that predicts the tokens from `first` on, except the `given` ones. If a window is too short for them, it keeps the last
    /// ones.
    fn continued(&mut self, first: usize, given: usize, windowing: Windowing, segment: usize) {
        let end = self.tokens.len();
        let start = end.saturating_sub(windowing.length + 1).max(first);
        let context = (first + given).saturating_sub(start).clamp(1, end - start - 1);
        self.rows.push(Row { tokens: start..end, context, segment, length: 1.0 });
    }

    /// Cuts the tokens from `first` on into rows, and returns the number of rows.
    fn window(&mut self, first: usize, windowing: Windowing, segment: impl Fn(usize) -> usize) -> usize {
        let before = self.rows.len();
        let end = self.tokens.len();
        let mut next = first + 1; // next token to predict
        while next < end {
            // The first row predicts all its tokens but one, later ones `stride` tokens.
            let count = if next == first + 1 { windowing.length } else { windowing.stride };
            let last = (next + count).min(end);
            let start = last.saturating_sub(windowing.length + 1).max(first);
            let mut tokens = start..last;
            if let Some(begin) = windowing.begin.filter(|_| start > first) {
                let own = self.tokens.len();
                self.tokens.extend_from_within(tokens);
                self.tokens[own] = begin; // context, never predicted
                tokens = own..self.tokens.len();
            }
            self.rows.push(Row {
                tokens,
                context: next - start,
                segment: segment(self.rows.len() - before),
                length: 1.0,
            });
            next = last;
        }
        self.rows.len() - before
    }

    /// Concatenates the documents and makes a row at each position where `block` predictions fit, for training to draw from.
    pub(super) fn of_blocks(
        tokenizer: &LanguageTokenizer,
        documents: &[Document],
        block: usize,
        split: &str,
    ) -> Result<Self, Error> {
        let mut tokens = Vec::new();
        for document in documents {
            tokens.extend(tokenizer.encode(&document.text)?);
        }
        if tokens.len() <= block {
            let (found, least) = (tokens.len(), block + 1);
            let fault = format!("split `{split}` has {found} tokens");
            return Err(Error::Invalid(format!("{fault}, but training.blocks needs at least {least}")));
        }
        let row = |start| Row { tokens: start..start + block + 1, context: 1, segment: 0, length: 1.0 };
        Ok(Self { rows: (0..tokens.len() - block).map(row).collect(), tokens, segments: no_documents() })
    }

    /// Converts each choice of a question to a row whose continuation is predicted. As in lm-evaluation-harness, BOS always precedes a
    /// choice without context, and precedes a context if the tokenizer adds BOS to texts
    /// (<https://github.com/EleutherAI/lm-evaluation-harness/blob/5302f2a90838c6e73d88f5847a6b148754cf2155/tests/models/test_bos_handling.py>).
    ///
    /// # Errors
    /// If the tokeniser cannot encode a text, or a text exceeds the model's positions or has no token to predict.
    pub(super) fn of_choices(
        tokenizer: &LanguageTokenizer,
        questions: &[Choice],
        Choosing { rule, context_bos, positions }: Choosing,
        split: &str,
    ) -> Result<Self, Error> {
        let (mut tokens, mut rows, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (segment, question) in questions.iter().enumerate() {
            starts.push(rows.len());
            for part in question.parts() {
                let start = tokens.len();
                // The context is encoded alone to count its tokens, as in lm-evaluation-harness.
                let context = tokenizer.encode(&part.context)?.len();
                let begin = if part.context.is_empty() { tokenizer.begin() } else { context_bos };
                tokens.extend(begin);
                tokens.extend(tokenizer.encode(&format!("{}{}", part.context, part.continuation))?);
                let count = tokens.len() - start;
                if count < 2 {
                    let fault = "a choice needs two tokens, or one and a BOS token";
                    let question = segment + 1;
                    return Err(Error::Invalid(format!("split `{split}`, question {question}: {fault}")));
                }
                let positions = usize::try_from(positions).unwrap_or(usize::MAX);
                if count - 1 > positions {
                    let length = count - 1;
                    return Err(core_masking::Error::too_long("choice", length, positions).into());
                }
                // The first token cannot be predicted. A token that merges the end of the context with the choice is predicted.
                let context = (context + usize::from(begin.is_some())).clamp(1, count - 1);
                let length = match rule {
                    ChoiceRule::Acc | ChoiceRule::LogOdds => 1.0,
                    ChoiceRule::AccNorm => part.characters.max(1) as f64,
                };
                rows.push(Row { tokens: start..tokens.len(), context, segment, length });
            }
        }
        let answers = questions.iter().map(|question| question.answer).collect();
        Ok(Self { tokens, rows, segments: SegmentsOf::Questions { answers, starts, rule } })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of tokens that the model reads, for each row.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.iter().map(|row| row.tokens.len() - 1)
    }

    pub(super) fn predictions(&self, row: usize) -> usize {
        self.rows[row].tokens.len() - self.rows[row].context
    }

    /// Returns the number of units: rows of documents, or questions.
    pub(super) fn units(&self) -> usize {
        match &self.segments {
            SegmentsOf::Documents { .. } => self.len(),
            SegmentsOf::Questions { starts, .. } => starts.len(),
        }
    }

    pub(super) fn unit(&self, unit: usize) -> Range<usize> {
        match &self.segments {
            SegmentsOf::Documents { .. } => unit..unit + 1,
            SegmentsOf::Questions { starts, .. } => {
                starts[unit]..starts.get(unit + 1).copied().unwrap_or(self.len())
            }
        }
    }

    /// Returns true if each question has a single choice, which is right if greedy decoding produces it.
    pub(super) fn has_targets(&self) -> bool {
        matches!(&self.segments, SegmentsOf::Questions { starts, .. } if starts.len() == self.len())
    }

    pub(super) fn of_units(&self, units: &[usize]) -> Vec<usize> {
        units.iter().flat_map(|&unit| self.unit(unit)).collect()
    }

    /// Returns an upper bound of the tokens per unit in a batch: each unit counts as having as many rows as the largest one, all padded to
    /// the unit's longest row.
    pub(super) fn padded(&self) -> impl Iterator<Item = usize> + '_ {
        let most_rows = (0..self.units()).map(|unit| self.unit(unit).len()).max().unwrap_or(0);
        let longest = |unit: Range<usize>| unit.map(|row| self.rows[row].tokens.len() - 1).max().unwrap_or(0);
        (0..self.units()).map(move |unit| most_rows * longest(self.unit(unit)))
    }

    /// Returns the index of the document or question that a row belongs to.
    pub(super) fn segment(&self, row: usize) -> usize {
        self.rows[row].segment
    }

    pub(super) fn length(&self, row: usize) -> f64 {
        self.rows[row].length
    }

    pub(super) fn tokens(&self, row: usize) -> &[u32] {
        &self.tokens[self.rows[row].tokens.clone()]
    }

    pub(super) fn batch(&self, model: &LanguageModel, rows: &[usize]) -> Result<PredictionBatch, Error> {
        let window = |&row: &usize| Window { tokens: self.tokens(row), context: self.rows[row].context };
        Ok(model.batch(&rows.iter().map(window).collect::<Vec<_>>())?)
    }

    /// Returns these units with what their losses need: nats, or the right choice for questions with several choices.
    pub(super) fn examples(&self, model: &LanguageModel, units: &[usize]) -> Result<PredictionBatch, Error> {
        let rows = self.of_units(units);
        let mut batch = self.batch(model, &rows)?;
        if let SegmentsOf::Questions { answers, .. } = &self.segments
            && !self.has_targets()
        {
            let counts: Vec<usize> = units.iter().map(|&unit| self.unit(unit).len()).collect();
            let answers: Vec<usize> = units.iter().map(|&unit| answers[unit]).collect();
            let lengths: Vec<f64> = rows.iter().map(|&row| self.length(row)).collect();
            batch.choices = Some(ChoiceRows::new(&counts, &answers, &lengths, model.options()));
            batch.contrasts = self.contrasts(units);
        }
        Ok(batch)
    }

    /// Returns the contrasts of these units, with row indices relative to the batch.
    fn contrasts(&self, units: &[usize]) -> Vec<Contrast> {
        let mut first = 0;
        let of_unit = |&unit: &usize| {
            let before = first;
            first += self.unit(unit).len();
            self.contrast(unit).map(|own| Contrast { row: before + own.row, ..own })
        };
        units.iter().filter_map(of_unit).collect()
    }

    /// Returns the first token in which the two choices of a question differ, if it is predicted in both, with a row index relative to the
    /// question. `None` for all other units.
    fn contrast(&self, unit: usize) -> Option<Contrast> {
        let SegmentsOf::Questions { answers, .. } = &self.segments else { return None };
        let (rows, right) = (self.unit(unit), answers[unit]);
        if rows.len() != 2 {
            return None;
        }
        let [own, other] = [right, 1 - right].map(|choice| &self.rows[rows.start + choice]);
        let [tokens, others] = [own, other].map(|row| &self.tokens[row.tokens.clone()]);
        let place = tokens.iter().zip(others).position(|(token, other)| token != other)?;
        let is_predicted = place >= own.context.max(other.context);
        is_predicted.then(|| Contrast {
            row: right,
            position: place - 1,
            token: tokens[place],
            other: others[place],
        })
    }

    /// Returns true if a question has two choices that differ in a token.
    pub(super) fn has_contrasts(&self) -> bool {
        (0..self.units()).any(|unit| self.contrast(unit).is_some())
    }
}

fn no_documents() -> SegmentsOf {
    SegmentsOf::Documents { words: Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn tokenizer() -> LanguageTokenizer {
        LanguageTokenizer::characters(["ab cd?"].into_iter())
    }

    fn documents(lengths: &[usize]) -> Vec<Document> {
        lengths
            .iter()
            .map(|&length| Document::from("abcd".chars().cycle().take(length).collect::<String>()))
            .collect()
    }

    proptest! {
        /// With any windows, each token of a document is predicted once, from at most one window of tokens. After the first window, at
        /// least `length - stride` tokens of context are visible.
        #[test]
        fn every_token_is_predicted_once(
            lengths in prop::collection::vec(1_usize..60, 1..5), length in 1_usize..20, stride in 1_usize..20, end: bool,
        ) {
            let stride = stride.min(length);
            let windowing = Windowing { length, stride, end, begin: None, segments: SegmentKind::Documents };
            let rows = Rows::of_documents(&tokenizer(), &documents(&lengths), windowing, "test").unwrap();
            for (document, &count) in lengths.iter().enumerate() {
                let mut next = 1;
                let own = rows.rows.iter().filter(|row| row.segment == document);
                let first = own.clone().map(|row| row.tokens.start).min().unwrap();
                for row in own {
                    prop_assert!(row.tokens.len() - 1 <= length);
                    prop_assert_eq!(row.tokens.start + row.context - first, next);
                    next = row.tokens.end - first;
                    let seen = row.context;
                    prop_assert!(seen == row.tokens.start + row.context - first || seen >= length - stride);
                }
                prop_assert_eq!(next, 1 + count + usize::from(end), "BOS, the text, perhaps EOS");
            }
        }
    }

    /// Windows without overlap that start with BOS equal separate documents of their texts. With overlap, row by row: `^` is BOS, and
    /// predicted tokens follow the bar.
    #[test]
    fn windows_may_begin_with_bos() {
        let tokenizer = tokenizer();
        let rows = |texts: &[&str], stride| {
            let begin = tokenizer.begin();
            let windowing =
                Windowing { length: 4, stride, end: false, begin, segments: SegmentKind::Documents };
            let document = |text: &&str| Document::from((*text).to_owned());
            let documents: Vec<Document> = texts.iter().map(document).collect();
            let rows = Rows::of_documents(&tokenizer, &documents, windowing, "test").unwrap();
            let text =
                |&id: &u32| if Some(id) == begin { "^".to_owned() } else { tokenizer.decode(&[id]).unwrap() };
            let shown = |row: usize| {
                let letters: Vec<String> = rows.tokens(row).iter().map(text).collect();
                let (context, predicted) = letters.split_at(letters.len() - rows.predictions(row));
                format!("{}|{}", context.concat(), predicted.concat())
            };
            (0..rows.len()).map(shown).collect::<Vec<_>>()
        };
        assert_eq!(rows(&["abcdabcd"], 4), rows(&["abcd", "abcd"], 4));
        assert_eq!(rows(&["abcdabcdab"], 4), ["^|abcd", "^|abcd", "^cd|ab"]);
        assert_eq!(rows(&["abcdabcdab"], 2), ["^|abcd", "^cd|ab", "^ab|cd", "^cd|ab"]);
        assert_eq!(rows(&["abcda", "dc"], 3), ["^|abcd", "^bcd|a", "^|dc"]);
    }

    /// The last word of `^ab cd` is ` cd`; a window of three tokens keeps only `b` of its context.
    #[test]
    fn the_last_word_is_predicted_from_its_context_in_the_window() {
        let document = Document { given: 2, ..Document::from("ab cd".to_owned()) };
        let shape = |length| {
            let windowing = Windowing {
                length,
                stride: length,
                end: false,
                begin: None,
                segments: SegmentKind::Documents,
            };
            let rows =
                Rows::of_documents(&tokenizer(), std::slice::from_ref(&document), windowing, "test").unwrap();
            let SegmentsOf::Documents { words } = &rows.segments else { panic!("documents") };
            (rows.len(), rows.tokens(0).len(), rows.predictions(0), words[0])
        };
        assert_eq!(shape(9), (1, 6, 3, 1), "BOS and five characters, three of them predicted");
        assert_eq!(shape(3), (1, 4, 3, 1));
        assert_eq!(shape(2), (1, 3, 2, 1), "a word longer than a window loses its beginning");
    }

    fn choosing(rule: ChoiceRule, positions: i64) -> Choosing {
        Choosing { rule, context_bos: None, positions }
    }

    fn question(context: &str, choices: &[&str]) -> Choice {
        let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        Choice { context: context.to_owned(), choices, answer: 1, ..Choice::default() }
    }

    /// A sentence is predicted from BOS, a continuation from its context.
    #[test]
    fn only_the_continuation_of_a_choice_is_predicted() {
        let questions = [question("", &["ab", "abcd"]), question("ab?", &["c", "cd"])];
        let of = |rule| Rows::of_choices(&tokenizer(), &questions, choosing(rule, 9), "test").unwrap();
        let rows = of(ChoiceRule::AccNorm);
        let predicted = |row: usize| (rows.tokens(row).len(), rows.predictions(row), rows.length(row));
        let found: Vec<_> = (0..4).map(predicted).collect();
        // with a space between context and choice
        assert_eq!(found, [(3, 2, 2.0), (5, 4, 4.0), (5, 2, 1.0), (6, 3, 2.0)]);
        assert!((0..4).all(|row| of(ChoiceRule::Acc).length(row) == 1.0));
        assert_eq!(rows.padded().collect::<Vec<_>>(), [2 * 4, 2 * 5]);
        let long =
            Rows::of_choices(&tokenizer(), &questions, choosing(ChoiceRule::Acc, 4), "test").unwrap_err();
        assert_eq!(long.to_string(), "a choice of 5 tokens is longer than the 4 positions of the model");
    }

    /// As in lm-evaluation-harness: `^` is BOS, and predicted tokens follow the bar. The space between context and choice, and spaces at
    /// the end of the context, belong to the continuation.
    #[test]
    fn bos_precedes_contexts_only_by_rule_and_whole_sentences_always() {
        let tokenizer = tokenizer();
        let questions =
            [question("ab?  ", &["c", "cd"]), question("", &["ab", "b"]), question(" ", &["a", "b"])];
        let rows = |context_bos| {
            let choosing = Choosing { context_bos, ..choosing(ChoiceRule::Acc, 9) };
            let rows = Rows::of_choices(&tokenizer, &questions, choosing, "test").unwrap();
            let shown = |row: usize| {
                let tokens = rows.tokens(row).iter();
                let letters: Vec<String> = tokens
                    .map(
                        |&id| {
                            if Some(id) == tokenizer.begin() { "^".to_owned() } else { tokenizer.token(id) }
                        },
                    )
                    .collect();
                let (context, predicted) = letters.split_at(letters.len() - rows.predictions(row));
                format!("{}|{}", context.concat(), predicted.concat())
            };
            (0..rows.len()).map(shown).collect::<Vec<_>>()
        };
        let sentences = ["^|ab", "^|b", "^|  a", "^|  b"];
        assert_eq!(rows(tokenizer.begin()), [&["^ab?|   c", "^ab?|   cd"][..], &sentences].concat());
        assert_eq!(rows(None), [&["ab?|   c", "ab?|   cd"][..], &sentences].concat());
    }

    /// Tokens and predictions equal those of lm-evaluation-harness for seven kinds of tokenizers (`make.py` next to the fixtures). Three of
    /// them add BOS, and two join letters across the end of a context.
    #[test]
    fn contexts_and_choices_are_encoded_as_in_the_harness() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/tests/fixtures/language");
        let expected: Value =
            serde_json::from_slice(&std::fs::read(fixtures.join("expected.json")).unwrap()).unwrap();
        let pairs: Vec<[String; 2]> = serde_json::from_value(expected["pairs"].clone()).unwrap();
        for (name, results) in expected["folders"].as_object().unwrap() {
            let tokenizer = LanguageTokenizer::load(&fixtures.join(name)).unwrap();
            let choosing = Choosing { context_bos: tokenizer.added_bos(), ..choosing(ChoiceRule::Acc, 99) };
            let known: Vec<(Vec<u32>, usize)> = serde_json::from_value(results["pairs"].clone()).unwrap();
            for ([context, choice], (tokens, given)) in pairs.iter().zip(known) {
                let questions = [question(context, &[choice, "x"])];
                let rows = Rows::of_choices(&tokenizer, &questions, choosing, "test").unwrap();
                let found = (rows.tokens(0), rows.predictions(0));
                assert_eq!(found, (&*tokens, tokens.len() - given), "{name}: {context:?} {choice:?}");
            }
        }
    }

    /// `^ab` is continued by c or by d, and `^` by c or by a. A choice that is a prefix of the other gives no contrast, nor do three.
    #[test]
    fn two_choices_are_contrasted_at_the_first_token_that_differs() {
        let questions = [
            ("", &["abd", "abcd"][..]),
            ("ab?", &["c", "cd"]),
            ("ab?", &["c", "d", "a"]),
            ("", &["ab", "cd"]),
        ];
        let questions = questions.map(|(context, choices)| question(context, choices));
        let rows = Rows::of_choices(&tokenizer(), &questions, choosing(ChoiceRule::Acc, 9), "test").unwrap();
        let id = |letter: &str| tokenizer().encode(letter).unwrap()[0];
        let at =
            |position, token, other| Some(Contrast { row: 1, position, token: id(token), other: id(other) });
        let found: Vec<_> = (0..4).map(|unit| rows.contrast(unit)).collect();
        assert_eq!(found, [at(2, "c", "d"), None, None, at(0, "c", "a")]);
        assert!(rows.has_contrasts());
    }

    /// Row and token of the right choice come first; row indices count the rows of preceding questions.
    #[test]
    fn contrasts_of_a_batch_name_the_rows_of_right_answers() {
        let mut questions = [("ab?", &["c", "d"][..]), ("", &["abd", "abcd"]), ("a?", &["b", "c", "d"])]
            .map(|(context, choices)| question(context, choices));
        questions[0].answer = 0;
        let rows = Rows::of_choices(&tokenizer(), &questions, choosing(ChoiceRule::Acc, 9), "test").unwrap();
        let id = |letter: &str| tokenizer().encode(letter).unwrap()[0];
        let shown = |units: &[usize]| {
            let of = |found: &Contrast| (found.row, found.token, found.other);
            rows.contrasts(units).iter().map(of).collect::<Vec<_>>()
        };
        let at = |row, token, other| (row, id(token), id(other));
        assert_eq!(shown(&[0, 1]), [at(0, "c", "d"), at(3, "c", "d")]);
        assert_eq!(shown(&[2, 1, 0]), [at(4, "c", "d"), at(5, "c", "d")]);
    }

    #[test]
    fn questions_stay_together() {
        let choices = [&["c", "cd", "d"][..], &["a", "b"]];
        let questions: Vec<Choice> = (0..40).map(|place| question("ab?", choices[place % 2])).collect();
        let rows = Rows::of_choices(&tokenizer(), &questions, choosing(ChoiceRule::Acc, 9), "test").unwrap();
        assert_eq!((rows.units(), rows.len()), (40, 100));
        assert_eq!(rows.of_units(&[39, 0]), [98, 99, 0, 1, 2]);
    }
}
