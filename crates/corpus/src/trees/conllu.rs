//! CoNLL-U, the format of Universal Dependencies: <https://universaldependencies.org/format.html>.
//!
//! Each line is a word with ten tab-separated columns. A blank line ends a sentence; lines with `#` are comments. Only ID, FORM, HEAD and
//! DEPREL are read, and in MISC whether a space follows. Empty nodes (`8.1`) are not part of the text and are skipped. A multiword token
//! (`3-4`) is one word of the text: if its form is its parts joined (`do` and `n't`), each part becomes a word; otherwise (German `zum` for
//! `zu` and `dem`) the token becomes one word with the arcs of its parts to and from other words.
use std::ops::Range;
use std::path::Path;

use words::excerpt;

use super::{Tree, TreeArc};
use crate::Error;
use crate::rows::read_text;

/// Reads the sentences of a file: UTF-8, plain, gzip or zstd.
///
/// # Errors
/// If the file is missing, truncated or has no sentence, or a sentence is not a tree: a line does not have ten columns, words are not
/// numbered from 1, a head is not among them, or arcs form a cycle. The message names the line.
pub fn read(path: &Path) -> Result<Vec<Tree>, Error> {
    let text = read_text(path)?;
    let mut trees = Vec::new();
    let mut block = Block::default();
    for (line, number) in text.lines().chain([""]).zip(1..) {
        let read = match line {
            "" => std::mem::take(&mut block).tree().map(|tree| trees.extend(tree)),
            _ if line.starts_with('#') => Ok(()),
            _ => block.add(line, number),
        };
        read.map_err(|(line, reason)| Error::of_line(path, line, reason))?;
    }
    if trees.is_empty() { Err(Error::no_examples(path)) } else { Ok(trees) }
}

/// A line, counted from 1, and its fault.
type Fault = (usize, String);

#[derive(Default)]
struct Block {
    words: Vec<Word>,
    multiword: Vec<Multiword>,
}

/// A syntactic word.
struct Word {
    line: usize,
    form: String,
    /// Number of its syntactic head, 0 for the root.
    head: usize,
    relation: String,
    has_space: bool,
}

/// A token of several words.
struct Multiword {
    line: usize,
    form: String,
    /// Its words, counted from 0.
    words: Range<usize>,
    has_space: bool,
}

impl Block {
    fn add(&mut self, text: &str, line: usize) -> Result<(), Fault> {
        let columns: Vec<&str> = text.split('\t').collect();
        let [id, form, _, _, _, _, head, relation, _, misc] = columns[..] else {
            return Err((line, format!("{} columns instead of 10", columns.len())));
        };
        let has_space = !misc.split('|').any(|entry| entry == "SpaceAfter=No");
        let form = form.to_owned();
        let due = self.words.len() + 1;
        let open = self.multiword.last().is_some_and(|token| token.words.end >= due);
        if id.contains('.') {
            return Ok(());
        }
        if let Some((first, last)) = id.split_once('-') {
            return match (first.parse(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) if first == due && last > first && !open => {
                    self.multiword.push(Multiword { line, form, words: first - 1..last, has_space });
                    Ok(())
                }
                _ => {
                    let id = excerpt(id);
                    Err((
                        line,
                        format!("`{id}` is not the range of a token whose first word, number {due}, follows"),
                    ))
                }
            };
        }
        if id.parse() != Ok(due) || form.is_empty() {
            let id = excerpt(id);
            return Err((line, format!("found word `{id}`, expected word {due} with its form")));
        }
        let number = head.parse().map_err(|_| {
            (line, format!("head `{}` is neither the number of a word nor 0 for the root", excerpt(head)))
        })?;
        self.words.push(Word { line, form, head: number, relation: relation.to_owned(), has_space });
        Ok(())
    }

    /// Returns the tree of the lines; `None` without lines.
    fn tree(self) -> Result<Option<Tree>, Fault> {
        let Self { words, multiword } = self;
        let count = words.len();
        if let Some(token) = multiword.last().filter(|token| token.words.end > count) {
            let end = token.words.end;
            return Err((
                token.line,
                format!("the token ends with word {end}, but the sentence with {count}"),
            ));
        }
        if words.is_empty() {
            return Ok(None);
        }
        check_heads(&words)?;
        let mut tree = Tree { text: String::new(), words: Vec::new(), arcs: Vec::new() };
        let mut token_of = Vec::new(); // the written word of each syntactic word
        for Token { form, has_space, words } in tokens(&words, &multiword) {
            let start = tree.text.len();
            tree.text.push_str(form);
            token_of.extend(std::iter::repeat_n(tree.words.len(), words));
            tree.words.push(start..tree.text.len());
            if has_space {
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
        Ok(Some(tree))
    }
}

/// Checks that the words form a tree, in linear time.
fn check_heads(words: &[Word]) -> Result<(), Fault> {
    let count = words.len();
    if let Some(word) = words.iter().find(|word| word.head > count) {
        let head = word.head;
        return Err((word.line, format!("head {head} is not among the {count} words of the sentence")));
    }
    let roots = words.iter().filter(|word| word.head == 0).count();
    if roots != 1 {
        return Err((words[0].line, format!("the sentence has {roots} roots instead of one")));
    }
    let mut is_rooted = vec![false; count];
    for word in words {
        let (mut at, mut way) = (word, Vec::new());
        while let Some(head) = at.head.checked_sub(1).filter(|&head| !is_rooted[head]) {
            if way.len() == count {
                return Err((word.line, "the heads from this word on form a cycle".to_owned()));
            }
            way.push(head);
            at = &words[head];
        }
        way.into_iter().for_each(|place| is_rooted[place] = true);
    }
    Ok(())
}

/// A word as written.
struct Token<'a> {
    form: &'a str,
    has_space: bool,
    /// Number of syntactic words in it.
    words: usize,
}

fn tokens<'a>(words: &'a [Word], multiword: &'a [Multiword]) -> Vec<Token<'a>> {
    let mut tokens = Vec::new();
    let mut next = 0;
    let alone = |word: &'a Word| Token { form: &word.form, has_space: word.has_space, words: 1 };
    for token in multiword {
        tokens.extend(words[next..token.words.start].iter().map(alone));
        next = token.words.end;
        let parts = &words[token.words.clone()];
        let joined: String = parts.iter().map(|word| word.form.as_str()).collect();
        if joined == token.form {
            tokens.extend(parts.iter().map(|word| Token { has_space: false, ..alone(word) }));
        } else {
            tokens.push(Token { form: &token.form, has_space: false, words: parts.len() });
        }
        if let Some(last) = tokens.last_mut() {
            last.has_space = token.has_space;
        }
    }
    tokens.extend(words[next..].iter().map(alone));
    tokens
}
