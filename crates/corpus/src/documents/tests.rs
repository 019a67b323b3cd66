use proptest::prelude::*;

use super::*;
use crate::test_files::{read_as, zip};

fn try_read(name: &str, content: impl AsRef<[u8]>, format: &str) -> Result<Vec<String>, String> {
    let format = toml::from_str(format).unwrap();
    let documents =
        read_as(name, content, |path| read(&[path.to_owned()], &format, &mut BadRows::default()))?;
    Ok(documents.into_iter().map(|document| document.text).collect())
}

fn texts(content: &str, format: &str) -> Vec<String> {
    try_read("a", content, format).unwrap()
}

fn fault(content: &str, format: &str) -> String {
    try_read("a", content, format).unwrap_err()
}

#[test]
fn a_line_a_paragraph_or_the_whole_file_is_a_document() {
    let content = "\u{feff}one \r\ntwo\n \n\n three\u{2028}3\r\n";
    assert_eq!(texts(content, "kind = 'lines'"), ["one ", "two", " three\u{2028}3"]);
    assert_eq!(texts(content, "kind = 'paragraphs'"), ["one \r\ntwo", " three\u{2028}3"]);
    assert_eq!(texts(content, "kind = 'text'"), [&content[3..]], "as it stands, but for the mark");
}

#[test]
fn markup_is_refused_only_where_lines_are_documents() {
    let content = "<doc id=\"1\">\n<seg id=\"1\">A dog.</seg>\n</doc>\n";
    for format in ["kind = 'lines'", "kind = 'lines'\nshare = [0.5, 1.0]"] {
        let refusal = fault(content, format);
        assert!(refusal.starts_with("`a`, line 1: `<doc` is SGML or XML"), "{refusal}");
    }
    assert_eq!(texts(content, "kind = 'text'"), [content]);
}

#[test]
fn an_article_begins_at_a_title_of_level_one() {
    let content = " \n = Robert = \n \n He acts . \n \n = = Career = = \n \n x = y \n = no = \n \n = A = B = \n \n End . \n";
    let articles = texts(content, "kind = 'wikitext'");
    let first = " = Robert = \n \n He acts . \n \n = = Career = = \n \n x = y \n = no =";
    assert_eq!(articles, [first, " = A = B = \n \n End ."], "` = no = ` follows text");
    assert_eq!(texts("Before . \n \n = T = \n", "kind = 'wikitext'"), ["Before .", " = T ="]);
    for line in [" = = x = = ", "= =", "=", " = = = x = = = ", "=x=", " = = ", "x = y"] {
        let refusal = fault(&format!("a\n\n{line}\n\nb"), "kind = 'wikitext'");
        assert!(refusal.starts_with("`a`: `wikitext` expects articles that begin with a line"), "{refusal}");
    }
}

#[test]
fn articles_begin_at_titles_where_blank_lines_were_dropped() {
    let content = " = Ab = \n One . \n = = B = = \n Two . \n = 1 henry and C = \n = C De = \n Three . \n";
    for end in ["\n", "\r\n"] {
        let articles = texts(&content.replace('\n', end), "kind = 'wikitext'");
        assert_eq!(articles.len(), 2, "{articles:?}");
        assert!(articles[0].ends_with("and C =") && articles[1].starts_with(" = C De ="), "{articles:?}");
    }
}

#[test]
fn fields_and_columns_hold_documents() {
    let jsonl = "{\"text\": \"one\\ntwo\", \"id\": 1}\n\n{\"text\": \" \"}\n{\"text\": \"three\"}\n";
    assert_eq!(texts(jsonl, "kind = 'jsonl'\ntext = 'text'"), ["one\ntwo", "three"]);
    assert_eq!(texts("id\ttext\n1\t\"one\n2\ttwo\n", "kind = 'tsv'\ntext = 'text'"), ["\"one", "two"]);
    assert_eq!(texts("one\tun\ntwo\tdeux\n", "kind = 'tsv'\nheader = false\ntext = 1"), ["one", "two"]);
    assert_eq!(texts("id,text\n1,\"one\ntwo\"\n", "kind = 'csv'\ntext = 2"), ["one\ntwo"]);
}

/// 10 characters: ⌊0.25 · 10⌋ = 2 and ⌊0.99 · 10⌋ = 9.
#[test]
fn a_share_is_counted_in_characters() {
    let share = |format: &str| texts("äbcdé\nfg犬i", format);
    assert_eq!(share("kind = 'text'\nshare = [0.25, 0.99]"), ["cdé\nfg犬"]);
    assert_eq!(share("kind = 'lines'\nshare = [0.5, 1.0]"), ["fg犬i"]);
}

proptest! {
    #[test]
    fn shares_that_meet_make_up_the_text(text in any::<String>(), middle in 0.0..1.0_f64) {
        let parts = [cut::share(&text, [0.0, middle]), cut::share(&text, [middle, 1.0])];
        prop_assert_eq!(parts.concat(), text);
    }

    #[test]
    fn documents_are_parts_of_the_text_in_its_order(text in "[ab= \\n\\r]{0,40}") {
        for parts in [cut::lines(&text).collect(), cut::paragraphs(&text), cut::articles(&text).unwrap_or(vec![&text])] {
            let mut rest = text.as_str();
            for part in parts {
                let place = rest.find(part).unwrap();
                prop_assert!(rest[..place].trim().is_empty(), "{:?} is lost", &rest[..place]);
                rest = &rest[place + part.len()..];
            }
            prop_assert!(rest.trim().is_empty(), "{rest:?} is lost");
        }
    }
}

#[test]
fn equal_documents_can_be_dropped_before_some_are_drawn() {
    let content: String = (0..40).map(|number| format!("{}\n", number % 20)).collect();
    let read = |format: &str| texts(&content, &format!("kind = 'lines'\n{format}"));
    let numbers: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(read("distinct = true"), numbers);
    let sample = |count, skip, seed| {
        read(&format!("distinct = true\nsample = {{ count = {count}, skip = {skip}, seed = {seed} }}"))
    };
    let all = sample(20, 0, 1);
    assert_ne!(all, numbers);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 20);
    assert_eq!([sample(5, 0, 1), sample(12, 5, 1), sample(3, 17, 1)].concat(), all, "splits of one order");
    assert_eq!(read("distinct = true\nsample = { count = 5, seed = 1 }"), all[..5]);
    assert_ne!(sample(20, 0, 0), all);
}

#[test]
fn a_text_can_be_a_file_in_an_archive() {
    let zip = zip(&[("_about.txt", b"About.\n"), ("fra.txt", b"Go.\tVa !\n")]);
    assert_eq!(try_read("a.zip", &zip, "kind = 'lines'\ninside = '_about.txt'").unwrap(), ["About."]);
}

/// `distinct` drops repetitions across files, and a sample is drawn from all files.
#[test]
fn files_that_follow_each_other_are_one_text_collection() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("a", "one\ntwo\n"), ("b", "two\nthree\nfour\n")].map(|(name, content)| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    });
    let format = toml::from_str("kind = 'lines'\ndistinct = true\nsample = { count = 4, seed = 1 }").unwrap();
    let documents = read(&files, &format, &mut BadRows::default()).unwrap();
    let mut drawn: Vec<_> = documents.into_iter().map(|document| document.text).collect();
    drawn.sort();
    assert_eq!(drawn, ["four", "one", "three", "two"]);
}

/// 260 words of 9 letters are 2,599 bytes and make five blocks. Each begins with the space before a word and is predicted after the block
/// before it; joined, they are the text.
#[test]
fn blocks_cover_a_text_and_follow_the_block_before() {
    let word = |letter: char| letter.to_string().repeat(9);
    let text = ('a'..='z').cycle().take(260).map(word).collect::<Vec<_>>().join(" ");
    let format = toml::from_str("kind = 'lines'\npredict = 'blocks'").unwrap();
    let read_all = |text: &str| {
        read_as("a", text, |path| read(&[path.to_owned()], &format, &mut BadRows::default())).unwrap()
    };
    let blocks = read_all(&format!("{text}\nshort one"));
    assert_eq!(blocks.len(), 6);
    let predicted: Vec<&str> = blocks.iter().map(|block| &block.text[block.given..]).collect();
    assert_eq!(predicted[..5].concat(), text);
    assert!(predicted[1..5].iter().all(|block| block.starts_with(' ')), "{predicted:?}");
    for (block, before) in blocks[1..5].iter().zip(&predicted) {
        assert_eq!(&block.text[..block.given], *before);
    }
    assert_eq!(blocks.iter().map(|block| block.source).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1].map(Some));
    assert_eq!((blocks[0].given, blocks[5].given, predicted[5]), (0, 0, "short one"));

    let unspaced = read_all(&"\u{4e16}".repeat(1_000));
    assert_eq!(unspaced.iter().map(|block| block.text.len() - block.given).sum::<usize>(), 3_000);
    assert_eq!(unspaced.len(), 6);
}
