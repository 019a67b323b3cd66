use super::*;
use crate::splits::BadRowRule;
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use tempfile::TempDir;

/// Reads `content` as a file of this name; errors begin with the name and without the folder.
fn try_read(name: &str, content: &[u8], format: &str) -> Result<Vec<Example>, String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let prefix = format!("{}/", folder.path().display());
    let found = read(&path, &toml::from_str(format).unwrap(), &mut BadRows::default());
    found.map_err(|error| error.to_string().replace(&prefix, ""))
}

fn examples(content: &str, format: &str) -> Vec<Example> {
    try_read("a", content.as_bytes(), format).unwrap()
}

fn fault(content: &str, format: &str) -> String {
    try_read("a", content.as_bytes(), format).unwrap_err()
}

fn single(text: &str, label: &str) -> Example {
    Example { text: text.to_owned(), pair: None, label: label.to_owned() }
}

fn pair(text: &str, pair: &str, label: &str) -> Example {
    Example { pair: Some(pair.to_owned()), ..single(text, label) }
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
fn csv_cells_may_hold_commas_and_line_breaks() {
    let table = "a,b,class\r\n\"one, two\",\"three\nfour\",x\r\nfive,six,\"y\"\r\n";
    assert_eq!(examples(table, CSV), [pair("one, two", "three\nfour", "x"), pair("five", "six", "y")]);
    let late = fault("a,b,class\n\"one\ntwo\",three,x\n\nfive,six\n", CSV);
    assert!(late.starts_with("`a`, line 5: 2 columns, but the header has 3"), "{late}");
}

#[test]
fn json_labels_are_text_or_whole_numbers() {
    let lines =
        "{\"text\": \"so\\ngood\", \"label\": \"yes\"}\n{\"label\": -1, \"text\": \"so bad\", \"id\": null}";
    assert_eq!(examples(lines, JSONL), [single("so\ngood", "yes"), single("so bad", "-1")]);
    let line = "{\"premise\": \"P.\", \"hypothesis\": \"H.\", \"label\": \"neutral\"}";
    assert_eq!(examples(line, JSONL_PAIR), [pair("P.", "H.", "neutral")]);
}

#[test]
fn byte_order_mark_carriage_returns_blank_lines_and_compression_do_not_matter() {
    let plain = "sentence\tlabel\ngood\t1\nbad\t0\n";
    let odd = "\u{feff}\nsentence\tlabel\r\n\r\n\ngood\t1\r\nbad\t0";
    assert_eq!(examples(odd, NAMED), examples(plain, NAMED));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain.as_bytes()).unwrap();
    let gzip = encoder.finish().unwrap();
    assert_eq!(try_read("a.tsv.gz", &gzip, NAMED).unwrap(), examples(plain, NAMED));
    let json = "{\"text\": \"t\", \"label\": 1}";
    assert_eq!(examples(&format!("\u{feff}{json}\r\n\r\n{json}"), JSONL), vec![single("t", "1"); 2]);
}

/// The columns of `MNLI/dev_matched.tsv` as GLUE gives them out, made-up rows.
#[test]
fn official_multinli_tables_are_read_and_pairs_without_consensus_left_out() {
    let format =
        "kind = 'tsv'\ntext = 'sentence1'\npair = 'sentence2'\nlabel = 'gold_label'\nskip_labels = ['-']";
    let start = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t\
                 sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1";
    let row = "0\t1\t1n\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tIt rained.\tIt \"snowed.";
    let labels = "neutral\tneutral\tcontradiction\tentailment\tcontradiction";
    let dev = format!(
        "{start}\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n{row}\t{labels}\t-\n{row}\t{labels}\tneutral\n"
    );
    assert_eq!(examples(&dev, format), [pair("It rained.", "It \"snowed.", "neutral")]);
    let none = fault(&dev.replace("\tneutral\n", "\t-\n"), format);
    assert_eq!(none, "`a` has no examples but those with labels to skip (-)");
}

#[test]
fn faults_are_named_with_file_and_line() {
    let object = "{\"text\": \"t\", \"label\": 1}\n\n";
    let json = |line: &str| format!("{object}{line}\n");
    for (format, content, expected) in [
        (NAMED, "sentence\tlabel\ngood\t1\nbad\n", ", line 3: 1 column, but the header has 2"),
        (NAMED, "sentence\tlabel\ngood\t1\nbad\t0\tx\n", ", line 3: 3 columns, but the header has 2"),
        (NAMED, "sentence\tlabel\n \t0\n", ", line 2: `sentence` is empty"),
        (NUMBERED, "x\t1\t\n", ", line 1: 3 columns, but column 4 is needed"),
        (NUMBERED, "x\t1\t\t\n", ", line 1: column 4 is empty"),
        (
            CSV,
            "a,b,class\n\"x,y,z\n",
            ", line 2: 1 column, but the header has 3; if quotation marks are part of the text, set `quoting = false`",
        ),
        (JSONL, &json("{\"te\\u001bxt\": 1}"), r", line 3: no field `label`: there are `te\u{1b}xt`"),
        (JSONL, &json("[1]"), ", line 3: a list instead of a JSON object"),
        (JSONL, &json("{\"text\""), ", line 3: not valid JSON (EOF while parsing an object at column 7)"),
        (
            JSONL,
            &json("{\"text\": \"t\", \"label\": true}"),
            ", line 3: field `label` is true or false, but text is needed",
        ),
        (JSONL, "\n\n", " holds no examples"),
        (NAMED, "te\u{1b}xt\tlabel\n", r" has no column `sentence`: its header names `te\u{1b}xt`, `label`"),
        (
            NAMED,
            "sentence\tlabel\tlabel\n",
            " has more than one column `label`: its header names `sentence`, `label`, `label`",
        ),
        ("kind = 'tsv'\ntext = 1\nlabel = 3", "x\ty\n", " has no column 3: its header names `x`, `y`"),
        (NAMED, "\u{feff}", " holds no examples"),
        (NAMED, "sentence\tlabel\n", " holds no examples"),
    ] {
        assert_eq!(fault(content, format), format!("`a`{expected}"));
    }
    let torn = try_read("a", b"sentence\tlabel\ngood\t1\ncaf\xe9\t0\n", NAMED);
    assert_eq!(torn, Err("`a`, line 3: not valid UTF-8".to_owned()));
}

#[test]
fn faults_of_the_description_are_found_without_a_file() {
    let table = format!("{JSONL}\nheader = true");
    for (format, expected) in [
        ("kind = 'tsv'\ntext = 1\nlabel = 0", "there is no column 0: columns are counted from 1"),
        (
            "kind = 'csv'\nheader = false\ntext = 1\nlabel = 'label'",
            "without a header a column is given by its number, counted from 1, but `label` is a name",
        ),
        (
            "kind = 'jsonl'\ntext = 'a'\npair = 2\nlabel = 'c'",
            "`jsonl` has named fields, but column 2 is asked for",
        ),
        (&table, "`header` and `quoting` are for tables, not for `jsonl`"),
    ] {
        let error = toml::from_str::<Format>(format).unwrap().validate().unwrap_err().to_string();
        assert_eq!(error, format!("the description of a data set's format is wrong: {expected}"));
    }
    let refused = toml::from_str::<Format>("kind = 'tsv'\ntext = -1\nlabel = 1").unwrap_err();
    assert_eq!(refused.message(), "a column is a name or a number, counted from 1");
}

#[test]
fn a_description_is_written_as_it_was_read() {
    for text in [NAMED, NUMBERED, &format!("{CSV}\nquoting = false\nskip_labels = ['-']")] {
        let format: Format = toml::from_str(text).unwrap();
        let written = toml::to_string(&format).unwrap();
        assert_eq!(toml::from_str::<Format>(&written).unwrap(), format, "{written}");
    }
}

/// Rows of three good ones, one that is short, one that is crowded, one with an empty cell, or no JSON.
#[test]
fn rows_at_fault_are_left_out_and_counted_where_that_is_asked_for() {
    let table = "a\tb\tc\nx\ty\t1\nx\t1\nx\ty\tz\t1\nx\t \t1\nx\ty\t0\n";
    let objects = "{\"a\": \"x\", \"b\": \"y\", \"c\": 1}\n{\"a\": \"x\"\n{\"a\": \"x\", \"c\": 1}\n";
    for (content, kind, kept, skipped, fault) in [
        (table, "tsv", 2, 3, "line 3: 2 columns, but the header has 3"),
        (objects, "jsonl", 1, 2, "line 2: not valid JSON"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, content).unwrap();
        let format = format!("kind = '{kind}'\ntext = 'a'\npair = 'b'\nlabel = 'c'");
        let format: Format = toml::from_str(&format).unwrap();
        let refused = read(&path, &format, &mut BadRows::default()).unwrap_err().to_string();
        let mut bad = BadRows::new(BadRowRule::Skip);
        assert_eq!((read(&path, &format, &mut bad).unwrap().len(), bad.skipped), (kept, skipped));
        assert_eq!(bad.first.unwrap().to_string(), refused);
        assert!(refused.contains(fault), "{refused}");
    }
}

/// -0.2 is 2 times ten to the power of -1 with a sign; JSON has numbers of its own.
#[test]
fn labels_may_be_numbers() {
    let folder = TempDir::new().unwrap();
    let values = |content: &str, format: &str| {
        let path = folder.path().join("a");
        fs::write(&path, content).unwrap();
        let read = read_values(&path, &toml::from_str(format).unwrap(), &mut BadRows::default())
            .map_err(|error| error.to_string())?;
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
