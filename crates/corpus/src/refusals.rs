//! Refusals by readers of data and tokenizers: tables of messages, and property tests on arbitrary bytes.
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::classifier_tokenizer::ClassifierTokenizer;
use crate::fsmt_tokenizer::FsmtTokenizer;
use crate::labelled::{Column, RowKind};
use crate::language_tokenizer::LanguageTokenizer;
use crate::marian_tokenizer::MarianTokenizer;
use crate::pairs::PairTable;
use crate::rows::BadRows;
use crate::test_files::{copied, gzip, read_as, shown, zip};
use crate::{Error, choices, documents, labelled, parallel, tables, trees};

/// A reader with its description in TOML.
#[derive(Debug, Clone, Copy)]
enum Reader {
    Labelled(&'static str),
    Choices(&'static str),
    Documents(&'static str),
    Pairs([usize; 2]),
    Lines,
    Table,
    Trees,
}
use Reader::{Choices, Documents, Labelled, Lines, Pairs, Table, Trees};

impl Reader {
    fn read(self, path: &Path) -> Result<(), Error> {
        let mut bad = BadRows::default();
        match self {
            Labelled(format) => labelled::read(path, &toml::from_str(format).unwrap(), &mut bad).map(drop),
            Choices(format) => {
                choices::read(path, &toml::from_str(format).unwrap(), &mut choices::Shots::none(), &mut bad)
                    .map(drop)
            }
            Documents(format) => {
                documents::read(&[path.to_owned()], &toml::from_str(format).unwrap(), &mut bad).map(drop)
            }
            Pairs(columns) => {
                let [source, target] = columns.map(Column::Number);
                let table = PairTable {
                    path: path.to_owned(),
                    inside: None,
                    kind: None,
                    source,
                    target,
                    others: Vec::new(),
                };
                table.read(&mut bad).map(drop)
            }
            Lines => parallel::read_lines(path).map(drop),
            Table => tables::read(path, RowKind::Csv, tables::Header::Likely).map(drop),
            Trees => trees::read(path).map(drop),
        }
    }
}

const NAMED: Reader = Labelled("kind = 'tsv'\ntext = 't'\nlabel = 'n'");
const NUMBERED: Reader = Labelled("kind = 'tsv'\nheader = false\ntext = 4\nlabel = 2");
const THIRD: Reader = Labelled("kind = 'tsv'\ntext = 1\nlabel = 3");
const QUOTED: Reader = Labelled("kind = 'csv'\ntext = 'a'\nlabel = 'b'");
const JSONL: Reader = Labelled("kind = 'jsonl'\ntext = 't'\nlabel = 'n'");
const WORDS: Reader = Labelled("kind = 'jsonl'\ntext = 'tokens'\nlabel = 'tags'");
const CONLL: Reader = Labelled("kind = 'conll'\ntext = 1\nlabel = 3");
const LINES: Reader = Documents("kind = 'lines'");
const CHOICES: Reader = Choices("kind = 'csv'\nchoices = ['a', 'b']\nanswer = { field = 'n', first = 1 }");
const LIST: Reader =
    Choices("kind = 'jsonl'\ncontext = '{q}'\nchoices = 'c'\nanswer = { field = 'n', first = 0 }");

/// Each check has one row, even if several readers share it.
#[test]
fn faulty_files_are_refused_by_name_and_line() {
    for (reader, content, expected) in [
        (NAMED, &b"t\tn\na\t1\nb\n"[..], "line 3: 1 column, but the header has 2"),
        (NAMED, b"t\tn\n \t0\n", "line 2: `t` is empty"),
        (NAMED, b"t\tn\na\t1\ncaf\xe9\t0\n", "line 3: not valid UTF-8"),
        (NAMED, b"\x1b\tn\n", r"has no column `t`: its header names `\u{1b}`, `n`"),
        (NAMED, b"t\tn\tn\n", "has more than one column `n`"),
        (NAMED, b"t\tn\n", "contains no examples"),
        (THIRD, b"x\ty\n", "has no column 3"),
        (NUMBERED, b"x\t1\t\n", "line 1: 3 columns, but column 4 is needed"),
        (QUOTED, b"a,b\n\"x,y\n", "line 2: 1 column, but the header has 2; if quotation marks are part"),
        (JSONL, b"\n{\"te\\u001bxt\": 1}", r"line 2: no field `n`: the row has `te\u{1b}xt`"),
        (JSONL, b"{\"t\": 1, \"n\": 1}\n[1]", "line 2: a list instead of a JSON object"),
        (JSONL, b"{\"n\": {}}", "line 1: field `n` is an object, but text is needed"),
        (WORDS, br#"{"tokens": [], "tags": []}"#, "line 1: the sentence has no words"),
        (WORDS, br#"{"tokens": ["a", "b"], "tags": ["O"]}"#, "line 1: 2 words, but 1 tag"),
        (WORDS, b"{\"tokens\": [\"a\", \" \"], \"tags\": [0, 1]}", "line 1: word 2 is blank"),
        (WORDS, br#"{"tokens": ["a"], "tags": ["B PER"]}"#, "tag `B PER` is empty or contains white space"),
        (WORDS, br#"{"tokens": ["a"], "tags": "O"}"#, "line 1: field `tags` is text, but a list is needed"),
        (CONLL, b"-DOCSTART- -X- O O\n\n\n", "contains no examples"),
        (CONLL, b"a N O\n\nb N\n", "line 3: 2 columns, but column 3 is needed, and must not be empty"),
        (CONLL, b"# text = a b\n1\ta\tO\nb O\n", "must not be empty; other lines have tabs"),
        (CHOICES, b"n,a,b\n0,x,y\n", "line 2: its answer is `0`, expected a number from 1 to 2"),
        (CHOICES, b"n,a,b\n1,x, \n", "line 2: its choice 2 is blank"),
        (LIST, br#"{"c": ["x", "y"], "n": 0}"#, "line 1: no field `q`: the row has `c`, `n`"),
        (LIST, br#"{"q": "?", "c": ["x"]}"#, "line 1: it needs at least 2 choices, found 1"),
        (LIST, br#"{"q": "?", "c": "xy"}"#, "line 1: field `c` is text, but a list is needed"),
        (LIST, br#"{"q": "?", "c": ["x", null]}"#, "line 1: field `c` is missing (null or NaN)"),
        (Pairs([1, 2]), b"a\tb\n\n \tb\n", "line 3: column 1 is empty"),
        (LINES, b" \n\t\r\n", "contains only blank documents"),
        (Lines, b"A.\nB.\n \r\n", "line 3: empty line, but every line must contain one sentence"),
        (Lines, b"A.\n\xff\n", "line 2: not valid UTF-8"),
        (Lines, b"\xef\xbb\xbf", "is empty: it must contain one sentence per line"),
        (Table, b"text,label\n", "has a header and no rows"),
        (Table, b"a,b\n1,2\n3\n", "line 3: 1 column, but column 2 is needed; if quotation marks"),
        (Trees, b"1\tGo\t_", "line 1: 3 columns instead of 10"),
        (Trees, b"# nothing", "contains no examples"),
    ] {
        let refusal = read_as("a", content, |path| reader.read(path)).unwrap_err();
        assert!(refusal.starts_with("`a`") && refusal.contains(expected), "{reader:?}: {refusal}");
    }
}

/// The words of a sentence in CoNLL-U after the root, as number, form and head.
#[test]
fn sentences_that_are_not_trees_are_refused() {
    let word = |[id, form, head]: &[&str; 3]| format!("{id}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t_\n");
    for (root, others, expected) in [
        ("0", &[["3", "on", "1"]][..], "line 2: found word `3`, expected word 2 with its form"),
        ("0", &[["2", "", "1"]], "line 2: found word `2`, expected word 2 with its form"),
        ("0", &[["2", "on", "3"]], "line 2: head 3 is not among the 2 words"),
        ("0", &[["2", "on", "_"]], "line 2: head `_` is neither the number of a word"),
        ("0", &[["2", "on", "0"]], "line 1: the sentence has 2 roots"),
        ("1", &[], "line 1: the sentence has 0 roots"),
        ("0", &[["2", "a", "3"], ["3", "b", "2"]], "line 2: the heads from this word on form a cycle"),
        ("0", &[["2-4", "ab", "_"], ["2", "a", "1"]], "line 2: the token ends with word 4"),
        ("0", &[["3-4", "ab", "_"]], "line 2: `3-4` is not the range of a token"),
    ] {
        let text: String = [&[["1", "Go", root]], others].concat().iter().map(word).collect();
        let refusal = read_as("a", text, trees::read).unwrap_err();
        assert!(refusal.starts_with(&format!("`a`, {expected}")), "{refusal}");
    }
}

#[test]
fn contradictory_descriptions_are_refused_before_a_file_is_read() {
    let by_number = "without a header, columns are numbers, counted from 1, but `a` is a name";
    let share = "but must be two numbers from 0 to 1, the smaller one first";
    for (reader, expected) in [
        (Labelled("kind = 'tsv'\ntext = 1\nlabel = 0"), "there is no column 0"),
        (Labelled("kind = 'csv'\nheader = false\ntext = 1\nlabel = 'a'"), by_number),
        (Labelled("kind = 'jsonl'\ntext = 'a'\npair = 2\nlabel = 'c'"), "but column 2 is given"),
        (Labelled("kind = 'jsonl'\ntext = 't'\nlabel = 'n'\nheader = true"), "are for `tsv` and `csv`"),
        (Choices("kind = 'tsv'\ncontext = '{'\nchoices = ['a', 'b']\nanswer = { always = 1 }"), "a lone `{`"),
        (Choices("kind = 'csv'\nheader = false\nchoices = ['a', 'b']\nanswer = { always = 1 }"), by_number),
        (Choices("kind = 'tsv'\nchoices = 'a'\nanswer = { always = 1 }"), "a table has no lists"),
        (Choices("kind = 'jsonl'\nchoices = ['a']\nanswer = { always = 1 }"), "at least 2 fields, found 1"),
        (Choices("kind = 'jsonl'\nchoices = ['a', 'b']\nanswer = { always = 3 }"), "must be from 1 to 2"),
        (Choices("kind = 'jsonl'\nchoices = 'a'\nanswer = { always = 0 }"), "choices are counted from 1"),
        (
            Choices("kind = 'csv'\nchoices = ['a', 'b']\nanswer = { field = 'n', first = 2 }"),
            "is 2, but must be 0 or 1",
        ),
        (
            Choices("kind = 'jsonl'\nchoices = ['a', 'b']\nanswer = { file = '../x', first = 0 }"),
            "`../x` is not the name of a file",
        ),
        (Pairs([0, 2]), "there is no column 0"),
        (Pairs([2, 2]), "source and target are both column 2"),
        (Documents("kind = 'csv'"), "`text` must name the column or field"),
        (Documents("kind = 'lines'\ntext = 1"), "`text` is for tables and `jsonl`"),
        (Documents("kind = 'text'\nheader = true"), "`header` and `quoting` are for tables"),
        (Documents("kind = 'jsonl'\ntext = 1"), "but column 1 is given"),
        (Documents("kind = 'lines'\nsample = { count = 0, seed = 1 }"), "must have a count of at least 1"),
        (Documents("kind = 'tsv'\ntext = 1\nshare = [0.0, 0.5]"), "`share` is for plain text"),
        (Documents("kind = 'text'\nshare = [0.5, 0.5]"), share),
        (Documents("kind = 'text'\nshare = [-0.1, 0.5]"), share),
        (Documents("kind = 'text'\nshare = [0.0, 1.1]"), share),
        (Documents("kind = 'text'\nshare = [nan, 1.0]"), share),
        (Documents("kind = 'text'\nshare = [0.0, nan]"), share),
        (Documents("kind = 'lines'\ninside = 'a'"), "`inside` is for archives, but `a` is not a .zip file"),
    ] {
        let error = read_as("a", "a", |path| reader.read(path)).unwrap_err();
        let reason = error.strip_prefix("the description of a data set's format is wrong: ");
        assert!(reason.is_some_and(|reason| reason.contains(expected)), "{reader:?}: {error}");
    }
    let refused = toml::from_str::<labelled::Format>("kind = 'tsv'\ntext = -1\nlabel = 1").unwrap_err();
    assert_eq!(refused.message(), "a column must be a name or a number, counted from 1");
}

/// Readers, each with a file that it accepts.
const ACCEPTED: [(Reader, &str); 8] = [
    (NAMED, "t\tn\ngood\t1\nb\u{e9}\t0\n"),
    (QUOTED, "a,b\n\"x\ny\",1\n"),
    (JSONL, "{\"t\": \"\\u00e9\", \"n\": -1}\n\n{\"t\": \"b\", \"n\": \"x\"}\n"),
    (LIST, "{\"q\": \"?\", \"c\": [\"x\", \"y\"], \"n\": 1}\n"),
    (Documents("kind = 'wikitext'"), " = A = \n\n b .\n\n = C = \n\n d .\n"),
    (Pairs([1, 2]), "Go.\tVa !\nRun!\tCours !\n"),
    (Lines, "\u{feff}A dog.\r\nIt sleeps.\n"),
    (
        Trees,
        "# a\n1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n1\tzu\t_\t_\t_\t_\t2\tcase\t_\t_\n2\tdem\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
    ),
];

/// Checks that a reader does not panic, and that a refusal names the file.
fn check(name: &str, content: &[u8], reader: Reader) {
    if let Err(refusal) = read_as(name, content, |path| reader.read(path)) {
        assert!(refusal.contains(name), "{reader:?}: {refusal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_bytes_are_read_or_refused_by_name(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        (cut, place, byte) in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()),
    ) {
        for (reader, content) in ACCEPTED {
            let mut changed = content.as_bytes().to_vec();
            changed[place.index(content.len())] = byte;
            for content in [&bytes, &content.as_bytes()[..cut.index(content.len())], &changed] {
                check("a.txt", content, reader);
            }
            let packed = gzip(content.as_bytes());
            check("a.gz", &packed, reader);
            let plain = read_as("a.gz", content, |path| reader.read(path));
            prop_assert!(plain.is_err_and(|refusal| refusal.contains("a.gz")), "{:?}: not packed", reader);
            let torn = read_as("a.gz", &packed[..cut.index(packed.len())], |path| reader.read(path));
            prop_assert!(torn.is_err_and(|refusal| refusal.contains("a.gz")), "{:?}: torn", reader);
        }
        let archive = zip(&[("a.txt", ACCEPTED[5].1.as_bytes())]);
        let torn = read_as("a.zip", &archive[..cut.index(archive.len())], |path| Pairs([1, 2]).read(path));
        prop_assert!(torn.unwrap_err().contains("a.zip"));
    }
}

/// A tokenizer and the folder of its fixture.
#[derive(Debug, Clone, Copy)]
enum Tokens {
    Classifier(&'static str),
    Language(&'static str),
    Fsmt,
    Marian,
}
use Tokens::{Classifier, Fsmt, Language, Marian};

impl Tokens {
    fn fixture(self) -> PathBuf {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        match self {
            Classifier(name) => fixtures.join("classifiers").join(name),
            Language(name) => fixtures.join("language").join(name),
            Fsmt => fixtures.join("fsmt"),
            Marian => fixtures.join("../../../core-masking/tests/fixtures/tiny-marian"),
        }
    }

    fn load(self, folder: &Path) -> Result<(), Error> {
        match self {
            Classifier(_) => ClassifierTokenizer::load(folder, 16).map(drop),
            Language(_) => LanguageTokenizer::load(folder).map(drop),
            Fsmt => FsmtTokenizer::load(folder).map(drop),
            Marian => MarianTokenizer::load(folder).map(drop),
        }
    }

    /// Returns a file of the fixture with the first occurrence of `part` replaced.
    fn with(self, file: &str, part: &str, new: &str) -> String {
        let text = fs::read_to_string(self.fixture().join(file)).unwrap();
        assert!(text.contains(part), "{part}");
        text.replacen(part, new, 1)
    }
}

#[test]
fn faulty_tokenizer_folders_are_refused() {
    let (lists, bert, silent) =
        (Classifier("roberta-lists"), Classifier("bert-list"), Classifier("distilbert-silent"));
    let (gpt2, llama2, llama3) = (Language("gpt2-lists"), Language("llama2"), Language("llama3"));
    let added = |id: &str, content: &str| {
        format!(r#"{{"added_tokens_decoder": {{"{id}": {{"content": "{content}"}}}}}}"#)
    };
    let copy = "`tokenizer.json`, or else `vocab.json` and `merges.txt`: copy";
    let convert = "it contains `vocab.json`, but no `tokenizer.json`: make one with python";
    let shared_id = r#"{"</s>": 0, "<unk>": 1, "a": 7, "b": 7, "<pad>": 9}"#;
    let (settings, target) = ("tokenizer_config.json", "vocab-tgt.json");
    let exchanged = Fsmt.with(target, "\"</s>\": 2", "\"</s>\": 3").replace("\"<unk>\": 3", "\"<unk>\": 2");
    for (tokens, file, text, reason) in [
        (lists, "merges.txt", "", copy),
        (Classifier("distilbert-list"), "vocab.txt", "", "`tokenizer.json`, or else `vocab.txt`: copy"),
        (lists, "config.json", r#"{"model_type": "xlm-roberta"}"#, convert),
        (lists, "vocab.json", &lists.with("vocab.json", "\"<mask>\"", "\"<other>\""), "it lacks `<mask>`"),
        (lists, "vocab.json", &lists.with("vocab.json", ":77,", ":4000000000,"), "highest id is 4000000000"),
        (lists, "merges.txt", "#version: 0.2\ne r\nh\n", "merges.txt`: Merges text file invalid at line 2"),
        (lists, "merges.txt", "#version: 0.2\nqqq r\n", "merges.txt`: Token `qqq` out of vocabulary"),
        (lists, settings, &added("777", "new"), "`new` should have the id 777, but its id is 400"),
        (lists, settings, &added("400", "<mask>"), "should have the id 400, but its id is 4"),
        (lists, settings, &added("x\\n", "new"), "tokenizer_config.json`: "),
        (bert, "vocab.txt", "[UNK]\n[CLS]\n", "it lacks `[PAD]`"),
        (bert, "added_tokens.json", r#"{"[MASK]": 5}"#, "should have the id 5, but its id is 4"),
        (silent, "config.json", r#"{"model_type": "rob"#, "config.json`: EOF"),
        (gpt2, "merges.txt", "", copy),
        (gpt2, "config.json", r#"{"model_type": "qwen2"}"#, convert),
        (gpt2, settings, r#"{"tokenizer_class": "qwen2"}"#, convert),
        (llama3, settings, r#"{"bos_token": 3}"#, "`tokenizer_config.json`: "),
        (llama2, settings, r#"{"eos_token": "<end>"}"#, "it lacks `<end>`"),
        (Fsmt, "merges.txt", "#version: 0.2\na b\na\u{1b}\n", r"line 3: `a\u{1b}` is not two"),
        (Fsmt, target, &exchanged, "must give `</s>` the same id"),
        (Fsmt, target, &Fsmt.with(target, ": 0,", ": 0,\n\"no piece\": 0,"), "must have a unique id"),
        (Fsmt, settings, "{}", "missing field `langs`"),
        (Marian, "source.spm", "torn", "no tokenizer can be read from `source.spm`: "),
        (Marian, "vocab.json", r#"{"<unk>": 1, "<pad>": 9}"#, "`vocab.json`: it lacks `</s>`"),
        (Marian, "vocab.json", shared_id, "`vocab.json`: each piece must have a unique id"),
        (Marian, settings, r#"{"separate_vocabs": true}"#, "`vocab.json` and `target_vocab.json`: copy"),
    ] {
        let folder = copied(&tokens.fixture(), &[(file, text)]);
        let error = shown(&tokens.load(folder.path()).unwrap_err(), folder.path());
        assert!(error.contains(reason), "{tokens:?}, {file}: {error}");
    }
}

/// Parts of a `tokenizer.json` that other libraries accept.
#[test]
fn parts_of_tokenizers_that_cannot_work_are_refused() {
    let pattern = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    for (tokens, place, part, reason) in [
        (Classifier("roberta-json"), "/model/dropout", json!(0.1), "`dropout` is 0.1"),
        (Language("llama3"), pattern, json!("(a"), "`tokenizer.json`: "),
        // The library cuts merges at this length, even within a letter.
        (Language("gpt2"), "/model/continuing_subword_prefix", json!("#".repeat(30)), "its parser fails: "),
    ] {
        let mut json: Value = serde_json::from_str(&tokens.with("tokenizer.json", "", "")).unwrap();
        *json.pointer_mut(place).unwrap() = part;
        let folder = copied(&tokens.fixture(), &[("tokenizer.json", &json.to_string())]);
        let error = shown(&tokens.load(folder.path()).unwrap_err(), folder.path());
        assert!(error.contains(reason), "{tokens:?}: {error}");
    }
}

/// Tokenizer files, each read by different code.
const FILES: [(Tokens, &str); 10] = [
    (Classifier("roberta-lists"), "vocab.json"),
    (Classifier("roberta-lists"), "merges.txt"),
    (Classifier("bert-list"), "vocab.txt"),
    (Classifier("bert-list"), "tokenizer_config.json"),
    (Language("llama3"), "tokenizer.json"),
    (Language("gpt2-lists"), "merges.txt"),
    (Fsmt, "vocab-tgt.json"),
    (Fsmt, "merges.txt"),
    (Marian, "source.spm"),
    (Marian, "vocab.json"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn files_of_tokenizers_with_any_bytes_are_read_or_refused_by_name(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        for (tokens, file) in FILES {
            let folder = copied(&tokens.fixture(), &[]);
            let path = folder.path().join(file);
            let whole = fs::read(&path).unwrap();
            for content in [&bytes, &whole[..cut.index(whole.len())]] {
                fs::write(&path, content).unwrap();
                let Err(error) = tokens.load(folder.path()) else {
                    let is_whole = content.len() >= whole.trim_ascii_end().len();
                    prop_assert!(is_whole || !file.ends_with(".json"), "{:?}, {}: torn", tokens, file);
                    continue;
                };
                shown(&error, folder.path());
                prop_assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{tokens:?}: {error}");
            }
        }
    }
}
