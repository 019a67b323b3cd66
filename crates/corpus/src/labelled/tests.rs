use super::*;
use crate::splits::BadRowRule;
use crate::test_files::read_as;

fn try_read(name: &str, content: impl AsRef<[u8]>, format: &str) -> Result<Vec<Example>, String> {
    read_as(name, content, |path| read(path, &toml::from_str(format).unwrap(), &mut BadRows::default()))
}

fn examples(content: &str, format: &str) -> Vec<Example> {
    try_read("a", content, format).unwrap()
}

fn fault(content: &str, format: &str) -> String {
    try_read("a", content, format).unwrap_err()
}

fn single(text: &str, label: &str) -> Example {
    Example { input: Input::Text(text.to_owned()), label: label.to_owned() }
}

fn pair(text: &str, pair: &str, label: &str) -> Example {
    Example { input: Input::Pair(text.to_owned(), pair.to_owned()), label: label.to_owned() }
}

const NAMED: &str = "kind = 'tsv'\ntext = 'sentence'\nlabel = 'label'";
const NUMBERED: &str = "kind = 'tsv'\nheader = false\ntext = 4\nlabel = 2";
const CSV: &str = "kind = 'csv'\ntext = 'a'\npair = 'b'\nlabel = 'class'";
const JSONL: &str = "kind = 'jsonl'\ntext = 'text'\nlabel = 'label'";
const JSONL_PAIR: &str = "kind = 'jsonl'\ntext = 'premise'\npair = 'hypothesis'\nlabel = 'label'";

#[test]
fn columns_are_found_by_name_or_by_number() {
    let table = "label\tid\tsentence\n1\t7\tso good \n0\t8\tso bad\n";
    let expected = vec![single("so good ", "1"), single("so bad", "0")];
    assert_eq!(examples(table, NAMED), expected, "by name; the trailing space belongs to the text");
    assert_eq!(examples(table, "kind = 'tsv'\ntext = 3\nlabel = 1"), expected, "by number, with a header");
    let cola = "gj04\t1\t\tThe sailors sang.\ngj04\t0\t*\tSailors the sang.\n";
    assert_eq!(
        examples(cola, NUMBERED),
        [single("The sailors sang.", "1"), single("Sailors the sang.", "0")],
        "without a header"
    );
}

#[test]
fn quotation_marks_are_characters_unless_quoting_is_on() {
    let row = "sentence\tlabel\n\" he said\t1\n\"she said\"\t0\n";
    assert_eq!(examples(row, NAMED), [single("\" he said", "1"), single("\"she said\"", "0")]);
    let quoting = format!("{NAMED}\nquoting = true");
    let quoted = "sentence\tlabel\n\"she \"\"said\"\"\tso\"\t0\n";
    assert_eq!(examples(quoted, &quoting), [single("she \"said\"\tso", "0")]);
    let open = "label\tsentence\n0\ta\n1\t\"b\n0\tc\n1\td\n";
    assert_eq!(fault(open, &quoting), "`a`, line 3: a quotation mark is never closed");
    assert_eq!(examples("label\tsentence\n0\ta\n1\t\"b\nc\"\n", &quoting).len(), 2);
}

#[test]
fn csv_cells_may_contain_commas_and_line_breaks() {
    let table = "a,b,class\r\n\"one, two\",\"three\nfour\",x\r\nfive,six,\"y\"\r\n";
    assert_eq!(examples(table, CSV), [pair("one, two", "three\nfour", "x"), pair("five", "six", "y")]);
    let late = fault("a,b,class\n\"one\ntwo\",three,x\n\nfive,six\n", CSV);
    assert!(late.starts_with("`a`, line 5: 2 columns, but the header has 3"), "{late}");
}

#[test]
fn json_labels_are_text_or_whole_numbers() {
    let line = "{\"premise\": \"P.\", \"hypothesis\": \"H.\\n\", \"label\": \"neutral\"}";
    assert_eq!(examples(line, JSONL_PAIR), [pair("P.", "H.\n", "neutral")]);
    assert_eq!(examples(&line.replace("\"neutral\"", "-1"), JSONL_PAIR), [pair("P.", "H.\n", "-1")]);
}

#[test]
fn byte_order_mark_carriage_returns_and_blank_lines_do_not_matter() {
    let plain = "sentence\tlabel\ngood\t1\nbad\t0\n";
    let odd = "\u{feff}\nsentence\tlabel\r\n\r\n\ngood\t1\r\nbad\t0";
    assert_eq!(examples(odd, NAMED), examples(plain, NAMED));
    let json = "{\"text\": \"t\", \"label\": 1}";
    assert_eq!(examples(&format!("\u{feff}{json}\r\n\r\n{json}"), JSONL), vec![single("t", "1"); 2]);
}

/// As in MultiNLI, whose pairs without consensus have the label `-`.
#[test]
fn examples_with_labels_to_skip_are_left_out() {
    let format = format!("{NAMED}\nskip_labels = ['-']");
    let table = "sentence\tlabel\na\t-\nb\tneutral\n";
    assert_eq!(examples(table, &format), [single("b", "neutral")]);
    let none = fault(&table.replace("neutral", "-"), &format);
    assert_eq!(none, "`a` has no examples but those with labels to skip (-)");
}

#[test]
fn a_description_is_written_as_it_was_read() {
    let format: Format = toml::from_str(&format!("{CSV}\nquoting = false\nskip_labels = ['-']")).unwrap();
    let written = toml::to_string(&format).unwrap();
    assert_eq!(toml::from_str::<Format>(&written).unwrap(), format, "{written}");
}

/// Good rows among rows with a missing, surplus or empty cell, or invalid JSON.
#[test]
fn faulty_rows_are_skipped_and_counted_if_requested() {
    let table = "a\tb\tc\nx\ty\t1\nx\t1\nx\ty\tz\t1\nx\t \t1\nx\ty\t0\n";
    let objects = "{\"a\": \"x\", \"b\": \"y\", \"c\": 1}\n{\"a\": \"x\"\n{\"a\": \"x\", \"c\": 1}\n";
    for (content, kind, kept, skipped, fault) in [
        (table, "tsv", 2, 3, "line 3: 2 columns, but the header has 3"),
        (objects, "jsonl", 1, 2, "line 2: not valid JSON"),
    ] {
        let format = format!("kind = '{kind}'\ntext = 'a'\npair = 'b'\nlabel = 'c'");
        let refused = try_read("a", content, &format).unwrap_err();
        let mut bad = BadRows::new(BadRowRule::Skip);
        let read = read_as("a", content, |path| read(path, &toml::from_str(&format).unwrap(), &mut bad));
        assert_eq!((read.unwrap().len(), bad.skipped), (kept, skipped));
        assert!(refused.contains(fault) && bad.first.unwrap().to_string().contains(fault), "{refused}");
    }
}

/// -0.2 is written as -2e-1 in CSV and as a number in JSON.
#[test]
fn labels_may_be_numbers() {
    let values = |content: &str, format: &str| {
        let format = toml::from_str(format).unwrap();
        let read = read_as("a", content, |path| read_values(path, &format, &mut BadRows::default()))?;
        Ok::<_, String>(read.iter().map(Example::value).collect::<Vec<_>>())
    };
    let expected = Ok([3.25, 4.0, -0.2].map(Some).to_vec());
    assert_eq!(values("a,b,class\nx,y,3.250\nx,y,4\nx,y, -2e-1\n", CSV), expected);
    let json = [3.25, 4.0, -0.2].map(|label| format!("{{\"text\": \"t\", \"label\": {label}}}\n"));
    assert_eq!(values(&json.concat(), JSONL), expected);
    for label in ["good", "NaN", "inf", "1e99", "3,5"] {
        let fault = values(&format!("sentence\tlabel\nx\t1\nx\t{label}\n"), NAMED).unwrap_err();
        assert!(fault.ends_with(&format!("a`, line 3: label `{label}` is not a finite number")), "{fault}");
    }
}

/// Makes a sentence with tags.
fn tagged(words: &str, tags: &str) -> Example {
    let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    Example::tagged(list(words), &list(tags)).unwrap()
}

/// CoNLL-2003, and CoNLL-U with a multiword token, an empty node and a comment; `#` can also be a word.
#[test]
fn words_have_tags_one_per_line_or_in_lists() {
    let conll = "kind = 'conll'\ntext = 1\nlabel = 4";
    let expected = [tagged("EU rejects # calls", "B-ORG O O O"), tagged("Peter", "B-PER")];
    let spaces = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n# NN B-NP O\r\ncalls NN I-NP O\n\n\nPeter NN B-NP B-PER";
    assert_eq!(examples(spaces, conll), expected);
    let tabs = "# sent_id = 1\n1-2\tdu\t_\t_\n1\tde\tADP\tO\n2\tle\tDET\tO\n2.1\tx\tX\tO\n\n# text = #\n1\t#\tSYM\tO\n";
    let conllu = "kind = 'conll'\ntext = 2\nlabel = 4";
    assert_eq!(examples(tabs, conllu), [tagged("de le", "O O"), tagged("#", "O")]);
    let lists = "{\"tokens\": [\"EU\", \"rejects\"], \"ner_tags\": [3, 0]}\n";
    let jsonl = "kind = 'jsonl'\ntext = 'tokens'\nlabel = 'ner_tags'";
    let mut found = examples(lists, jsonl);
    assert_eq!(found, [tagged("EU rejects", "3 0")]);
    found[0].rename(&[("0", "O"), ("3", "B-ORG")].map(|(old, new)| (old.to_owned(), new.to_owned())).into());
    assert_eq!(found, [tagged("EU rejects", "B-ORG O")]);
    let refusal = fault("a O\n", "kind = 'conll'\ntext = 'word'\nlabel = 2");
    assert!(refusal.contains("columns of `conll` are numbers"), "{refusal}");
}
