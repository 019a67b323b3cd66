//! CoNLL-U, the format of Universal Dependencies: <https://universaldependencies.org/format.html>.
//!
//! A word a line, ten columns between tabs; a blank line ends a sentence; lines with `#` are comments. Of the columns, ID,
//! FORM, HEAD and DEPREL are read, and of MISC whether a space follows. Empty nodes (`8.1`) are no part of the text and are
//! left out. A multiword token (`3-4`) is one word in the text: where the forms of its parts, joined, are its own form
//! (`do` and `n't`), the parts are words of their own; where they are not (German `zum` for `zu` and `dem`), it is one word,
//! which has the arcs of its parts to and from other words.
use std::ops::Range;
use std::path::Path;

use words::excerpt;

use super::{Tree, TreeArc};
use crate::Error;
use crate::rows::{fault, read_text};

/// Columns of a word.
const COLUMNS: usize = 10;

/// Reads the sentences of a file: UTF-8, plain or gzip (`.gz`).
///
/// # Errors
/// If the file is missing, torn, holds no sentence, or a sentence is no tree: a line has other columns, words are not
/// numbered from 1, a head is not among them, or arcs go round in a circle. The message names the line.
pub fn read(path: &Path) -> Result<Vec<Tree>, Error> {
    let text = read_text(path)?;
    let mut trees = Vec::new();
    let mut block = Block::default();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_end_matches('\r');
        let read = match line {
            "" => block.finish(&mut trees),
            _ if line.starts_with('#') => Ok(()),
            _ => block.add(line, number),
        };
        read.map_err(|Fault { line, reason }| fault(path, line, reason))?;
    }
    block.finish(&mut trees).map_err(|Fault { line, reason }| fault(path, line, reason))?;
    if trees.is_empty() { Err(Error::NoExamples { path: path.to_owned() }) } else { Ok(trees) }
}

/// What is wrong with a line, counted from 1.
struct Fault {
    line: usize,
    reason: String,
}

/// The lines of a sentence that have been read.
#[derive(Default)]
struct Block {
    words: Vec<Word>,
    multiword: Vec<Multiword>,
}

/// A syntactic word.
struct Word {
    line: usize,
    form: String,
    /// The number of its head, 0 for the root.
    head: usize,
    relation: String,
    has_space: bool,
}

/// A token that stands for several words.
struct Multiword {
    line: usize,
    form: String,
    /// Its words, counted from 0.
    words: Range<usize>,
    has_space: bool,
}

/// A word as it is written.
struct Token {
    form: String,
    has_space: bool,
    /// Syntactic words that it stands for.
    words: usize,
}

impl Block {
    fn add(&mut self, text: &str, line: usize) -> Result<(), Fault> {
        let wrong = |reason: String| Fault { line, reason };
        let columns: Vec<&str> = text.split('\t').collect();
        let [id, form, _, _, _, _, head, relation, _, misc] = columns[..] else {
            return Err(wrong(format!("{} columns instead of {COLUMNS}", columns.len())));
        };
        if form.is_empty() {
            return Err(wrong("the word has no form".to_owned()));
        }
        let has_space = !misc.split('|').any(|entry| entry == "SpaceAfter=No");
        let due = self.words.len() + 1;
        if let Some((word, place)) = id.split_once('.') {
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            return match (word.parse::<usize>(), is_number(place) && place.parse() != Ok(0_u32)) {
                (Ok(word), true) if due == word + 1 && !place.is_empty() => Ok(()),
                _ => Err(wrong(format!("`{}` is no empty node behind word {}", excerpt(id), due - 1))),
            };
        }
        let form = form.to_owned();
        if let Some((first, last)) = id.split_once('-') {
            return match (first.parse(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) if first == due && last > first && !self.is_within_multiword() => {
                    let words = first - 1..last;
                    self.multiword.push(Multiword { line, form, words, has_space });
                    Ok(())
                }
                _ => Err(wrong(format!(
                    "`{}` is not the range of a token whose first word, number {due}, follows",
                    excerpt(id)
                ))),
            };
        }
        if id.parse() != Ok(due) {
            return Err(wrong(format!("word `{}` stands where number {due} is due", excerpt(id))));
        }
        let head = head.parse().map_err(|_| {
            wrong(format!("head `{}` is no number of a word, and not 0 for the root", excerpt(head)))
        })?;
        self.words.push(Word { line, form, head, relation: relation.to_owned(), has_space });
        Ok(())
    }

    /// Whether the last multiword token waits for words.
    fn is_within_multiword(&self) -> bool {
        self.multiword.last().is_some_and(|token| token.words.end > self.words.len())
    }

    /// Turns the lines into a tree, if there are any.
    fn finish(&mut self, trees: &mut Vec<Tree>) -> Result<(), Fault> {
        let Self { words, multiword } = std::mem::take(self);
        let count = words.len();
        if let Some(token) = multiword.last().filter(|token| token.words.end > count) {
            let reason =
                format!("the token ends with word {}, but the sentence with {count}", token.words.end);
            return Err(Fault { line: token.line, reason });
        }
        if words.is_empty() {
            return Ok(());
        }
        check_heads(&words)?;
        trees.push(tree(&words, &multiword));
        Ok(())
    }
}

/// Refuses what is no tree.
fn check_heads(words: &[Word]) -> Result<(), Fault> {
    let count = words.len();
    if let Some(word) = words.iter().find(|word| word.head > count) {
        let reason = format!("head {} is not among the {count} words of the sentence", word.head);
        return Err(Fault { line: word.line, reason });
    }
    let mut roots = words.iter().filter(|word| word.head == 0);
    match (roots.next(), roots.next()) {
        (Some(_), None) => {}
        (_, Some(second)) => {
            return Err(Fault { line: second.line, reason: "the sentence has a second root".to_owned() });
        }
        (None, _) => {
            return Err(Fault { line: words[0].line, reason: "the sentence has no root".to_owned() });
        }
    }
    match first_without_root(words) {
        Some(word) => Err(Fault {
            line: word.line,
            reason: "the heads from this word on go round in a circle".to_owned(),
        }),
        None => Ok(()),
    }
}

/// The first word from which no root is reached. Each word is gone through once.
fn first_without_root(words: &[Word]) -> Option<&Word> {
    let mut is_rooted = vec![false; words.len()];
    for word in words {
        let (mut at, mut way) = (word, Vec::new());
        while let Some(head) = at.head.checked_sub(1).filter(|&head| !is_rooted[head]) {
            if way.len() == words.len() {
                return Some(word);
            }
            way.push(head);
            at = &words[head];
        }
        way.into_iter().for_each(|place| is_rooted[place] = true);
    }
    None
}

fn tree(words: &[Word], multiword: &[Multiword]) -> Tree {
    let mut tree = Tree { text: String::new(), words: Vec::new(), arcs: Vec::new() };
    let mut token_of = Vec::new(); // the written word of each syntactic one
    for token in tokens(words, multiword) {
        let start = tree.text.len();
        tree.text.push_str(&token.form);
        token_of.extend(std::iter::repeat_n(tree.words.len(), token.words));
        tree.words.push(start..tree.text.len());
        if token.has_space {
            tree.text.push(' ');
        }
    }
    tree.text.truncate(tree.text.trim_end().len());
    for (word, &dependent) in words.iter().zip(&token_of) {
        let head = word.head.checked_sub(1).map(|head| token_of[head]);
        if let Some(head) = head.filter(|&head| head != dependent) {
            tree.arcs.push(TreeArc { head, dependent, relation: word.relation.clone() });
        }
    }
    tree
}

/// The written words, in their order.
fn tokens(words: &[Word], multiword: &[Multiword]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut next = 0;
    let alone = |word: &Word| Token { form: word.form.clone(), has_space: word.has_space, words: 1 };
    for token in multiword {
        tokens.extend(words[next..token.words.start].iter().map(alone));
        next = token.words.end;
        let parts = &words[token.words.clone()];
        let joined: String = parts.iter().map(|word| word.form.as_str()).collect();
        if joined == token.form {
            tokens.extend(parts.iter().map(|word| Token { has_space: false, ..alone(word) }));
        } else {
            tokens.push(Token { form: token.form.clone(), has_space: false, words: parts.len() });
        }
        if let Some(last) = tokens.last_mut() {
            last.has_space = token.has_space;
        }
    }
    tokens.extend(words[next..].iter().map(alone));
    tokens
}
