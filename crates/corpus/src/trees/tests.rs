use proptest::prelude::*;

use super::*;
use crate::test_files::read_as;

fn read_lines(lines: &[&str]) -> Result<Vec<Tree>, String> {
    read_as("a.conllu", lines.join("\n") + "\n", read)
}

/// Returns the line of a word with the columns that matter.
fn word(id: &str, form: &str, head: &str, relation: &str, misc: &str) -> String {
    format!("{id}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t{misc}")
}

fn read_words(words: &[[&str; 5]]) -> Result<Vec<Tree>, String> {
    let lines: Vec<String> =
        words.iter().map(|[id, form, head, relation, misc]| word(id, form, head, relation, misc)).collect();
    read_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn forms(tree: &Tree) -> Vec<&str> {
    tree.words.iter().map(|word| &tree.text[word.clone()]).collect()
}

fn named(tree: &Tree) -> Vec<(&str, &str, &str)> {
    let forms = forms(tree);
    tree.arcs.iter().map(|arc| (forms[arc.dependent], arc.relation.as_str(), forms[arc.head])).collect()
}

/// "Dogs don't bark." with an empty node and a multiword token whose form is its parts joined.
#[test]
fn parts_that_make_up_a_token_are_words_and_empty_nodes_are_not() {
    let trees = read_words(&[
        ["1", "Dogs", "4", "nsubj", "_"],
        ["2-3", "don't", "_", "_", "_"],
        ["2", "do", "4", "aux", "_"],
        ["3", "n't", "4", "advmod", "_"],
        ["4", "bark", "0", "root", "SpaceAfter=No"],
        ["4.1", "loudly", "_", "_", "_"],
        ["5", ".", "4", "punct", "_"],
    ])
    .unwrap();
    assert_eq!(trees.len(), 1);
    assert_eq!(trees[0].text, "Dogs don't bark.");
    assert_eq!(forms(&trees[0]), ["Dogs", "do", "n't", "bark", "."]);
    let expected =
        [("Dogs", "nsubj", "bark"), ("do", "aux", "bark"), ("n't", "advmod", "bark"), (".", "punct", "bark")];
    assert_eq!(named(&trees[0]), expected);
}

/// "zum" is "zu dem": one word with the arcs of both parts, but without the arc between them.
#[test]
fn a_token_that_is_not_its_parts_is_one_word() {
    let trees = read_words(&[
        ["1", "Er", "2", "nsubj", "_"],
        ["2", "geht", "0", "root", "_"],
        ["3-4", "zum", "_", "_", "_"],
        ["3", "zu", "5", "case", "_"],
        ["4", "dem", "3", "det", "_"],
        ["5", "Arzt", "2", "obl", "_"],
    ])
    .unwrap();
    assert_eq!(trees[0].text, "Er geht zum Arzt");
    assert_eq!(named(&trees[0]), [("Er", "nsubj", "geht"), ("zum", "case", "Arzt"), ("Arzt", "obl", "geht")]);
}

#[test]
fn blank_lines_separate_sentences_and_the_last_needs_none() {
    let one = word("1", "Go", "0", "root", "_");
    let trees = read_lines(&["# a comment", &one, "", "", "# another", &one]).unwrap();
    assert_eq!(trees.iter().map(|tree| tree.text.as_str()).collect::<Vec<_>>(), ["Go", "Go"]);
}

proptest! {
    /// Words come in order and do not overlap, and arcs connect them.
    #[test]
    fn words_do_not_overlap(forms in prop::collection::vec("[a-cé]{1,3}", 1..7), spaces in any::<u8>()) {
        let misc = |place: usize| if spaces >> place & 1 == 1 { "SpaceAfter=No" } else { "_" };
        let lines: Vec<String> = forms.iter().enumerate()
            .map(|(place, form)| word(&(place + 1).to_string(), form, &place.to_string(), "dep", misc(place)))
            .collect();
        let trees = read_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(super::tests::forms(&trees[0]), forms);
        prop_assert!(trees[0].words.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert_eq!(trees[0].arcs.len(), trees[0].words.len() - 1);
    }
}
