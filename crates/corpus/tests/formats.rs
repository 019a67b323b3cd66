//! Files written by other programs: Parquet, Arrow, compressed files, Python's JSON, WMT test sets. `tests/fixtures/tables/make.py` made
//! the tables: five rows, `text {n}`, `Été {n}`, class n mod 2.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use corpus::choices::{self, Choice};
use corpus::documents;
use corpus::labelled::{self, Column, Example, Input, RowKind};
use corpus::pairs::PairTable;
use corpus::parallel::ParallelText;
use corpus::splits::{BadRowRule, BadRows};
use corpus::tables::{self, Header};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables").join(name)
}

fn labelled(path: &Path, format: &str) -> Result<Vec<Example>, String> {
    let format = toml::from_str(format).unwrap();
    labelled::read(path, &format, &mut BadRows::default()).map_err(|error| one_line(&error, path))
}

fn questions(path: &Path, format: &str) -> Vec<Choice> {
    let (format, mut shots) = (toml::from_str(format).unwrap(), choices::Shots::none());
    choices::read(path, &format, &mut shots, &mut BadRows::default()).unwrap()
}

fn one_line(error: &corpus::Error, path: &Path) -> String {
    let source = std::error::Error::source(error).map_or(String::new(), |source| format!(": {source}"));
    let message = format!("{error}{source}");
    assert!(!message.contains('\n'), "{message}");
    message.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

const TABLES: [&str; 9] = [
    "hub.parquet",
    "zstd.parquet",
    "gzip.parquet",
    "lz4.parquet",
    "pandas.parquet",
    "pandas.feather",
    "zstd.feather",
    "saved",
    "saved/data-00000-of-00002.arrow",
];

/// Names from metadata or from categories, whatever `kind` the description has.
#[test]
fn classes_have_their_names_in_parquet_and_arrow() {
    for (name, kind) in TABLES.into_iter().zip(["parquet", "arrow", "csv"].into_iter().cycle()) {
        let format = format!("kind = '{kind}'\ntext = 'text'\npair = 'other'\nlabel = 'label'");
        let examples = labelled(&fixture(name), &format).unwrap();
        assert_eq!(examples.len(), if name.ends_with(".arrow") { 3 } else { 5 }, "{name}");
        for (n, example) in examples.iter().enumerate() {
            let label = ["bad", "good"][n % 2].to_owned();
            let input = Input::Pair(format!("text {n}"), format!("Été {n}"));
            assert_eq!(*example, Example { input, label }, "{name}");
        }
    }
}

#[test]
fn columns_of_all_types_serve_all_tasks() {
    for name in ["hub.parquet", "saved", "pandas.parquet"] {
        let path = fixture(name);
        let tags = labelled(&path, "kind = 'parquet'\ntext = 'tokens'\nlabel = 'tags'").unwrap();
        assert_eq!(tags[0].words(), ["Ann", "runs"]);
        // pandas keeps only the numbers
        assert_eq!(tags[0].label, if name == "pandas.parquet" { "1 0" } else { "B-PER O" });
        let scores = labelled(&path, "kind = 'parquet'\ntext = 1\nlabel = 'score'").unwrap();
        assert!(scores.iter().map(|own| own.label.as_str()).eq(["0.1", "3.8", "5.0", "1.25", "-2.5"]));
        let truths = labelled(&path, "kind = 'parquet'\ntext = 'text'\nlabel = 'right'").unwrap();
        assert_eq!(truths[1].label, "false");
        let format = "kind = 'arrow'\ncontext = '{text}'\nchoices = 'choices.text'\nfirst = 3\n\
                      answer = { field = 'key', within = 'choices.label' }";
        let found = questions(&path, format);
        assert_eq!((found.len(), found[1].choices.len(), found[1].answer), (3, 3, 1));
        // an answer is the number of a class, not its name
        let format = "kind = 'arrow'\nchoices = ['text', 'other']\nanswer = { field = 'label', first = 0 }";
        if name != "pandas.parquet" {
            assert!(questions(&path, format).iter().map(|own| own.answer).eq([0, 1, 0, 1, 0]));
        }
        let format = toml::from_str("kind = 'parquet'\ntext = 'choices.label'").unwrap();
        let fault = documents::read(&[&path], &format, &mut BadRows::default()).unwrap_err().to_string();
        assert!(fault.contains("row 1: field `choices.label` is a list"), "{fault}");
        for (kind, [source, target]) in [
            (None, [1, 2].map(Column::Number)),
            (Some(RowKind::Parquet), ["text", "other"].map(|name| Column::Name(name.to_owned()))),
        ] {
            let others = vec![source.clone()];
            let table =
                PairTable { path: path.clone(), inside: None, kind, source, target, others: Vec::new() };
            assert_eq!(table.read(&mut BadRows::default()).unwrap().references(4), ["Été 4"]);
            let fault = PairTable { others, ..table }.read(&mut BadRows::default()).unwrap_err();
            assert!(fault.to_string().contains("source and target are both column"), "{fault}");
        }
        let table = tables::read(&path, RowKind::Parquet, Header::Likely).unwrap();
        let label = table.columns.iter().find(|column| column.name() == "label").unwrap();
        assert_eq!(label.cells[..2], ["bad", "good"]);
    }
}

#[test]
fn binary_tables_at_fault_are_refused_in_one_line() {
    let text = "kind = 'parquet'\ntext = 'text'\nlabel = 'label'";
    for (name, format, expected) in [
        (
            "hub.parquet",
            "kind = 'csv'\ntext = 'text'\nlabel = 'nothing'",
            "`hub.parquet` has no column `nothing`",
        ),
        ("hub.parquet", "kind = 'csv'\ntext = 'text'\nlabel = 'blob'", "column `blob` is of type Binary"),
        ("hub.parquet", "kind = 'conll'\ntext = 1\nlabel = 2", "it is a table in Parquet or Arrow, not text"),
        ("pandas.parquet", "kind = 'parquet'\ntext = 'text'\nlabel = 'gap'", "row 1: field `gap` is missing"),
        ("splits", text, "a folder of several splits"),
        ("rows.jsonl.zst", text, "it is neither Parquet nor Arrow"),
    ] {
        let refusal = labelled(&fixture(name), format).unwrap_err();
        assert!(refusal.contains(expected), "{name}: {refusal}");
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["hub.parquet", "zstd.parquet", "zstd.feather", "saved/data-00000-of-00002.arrow"] {
        let whole = fs::read(fixture(name)).unwrap();
        let path = folder.path().join("torn.parquet");
        let torn = (0..whole.len()).step_by(101).map(|length| (whole[..length].to_vec(), true));
        let changed = (0..whole.len()).step_by(37).map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            (bytes, false)
        });
        for (bytes, is_torn) in torn.chain(changed) {
            fs::write(&path, &bytes).unwrap();
            let mut bad = BadRows::new(BadRowRule::Skip);
            let read = labelled::read(&path, &toml::from_str(text).unwrap(), &mut bad);
            // a stream may end after a batch
            assert!(read.is_err() || !is_torn || name.ends_with(".arrow"), "{name}, {} bytes", bytes.len());
            if let Err(error) = read {
                assert!(one_line(&error, &path).contains("torn.parquet"), "{error}");
            }
        }
    }
}

#[test]
fn files_are_known_by_their_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let format = "kind = 'jsonl'\ntext = 'text'\nlabel = 'label'";
    assert_eq!(labelled(&fixture("rows.jsonl.zst"), format).unwrap()[4].label, "bad");
    let path = folder.path().join("rows.jsonl");
    fs::copy(fixture("rows.jsonl.zst"), &path).unwrap();
    assert_eq!(labelled(&path, format).unwrap().len(), 5, "zstd without its ending");
    for (name, bytes, expected) in [
        ("a.xlsx", &b"PK\x03\x04..."[..], "an Excel workbook: python3 -c \"import pandas"),
        ("a.csv", b"PK\x03\x04...", "a zip archive: its name must end in .zip"),
        (
            "a.jsonl",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "a Git LFS pointer",
        ),
        ("a.jsonl.zst", b"{}", "cannot read `a.jsonl.zst`"),
        ("b.jsonl", b"\x28\xb5\x2f\xfd\x24", "cannot read `b.jsonl`"),
        ("c.jsonl", b"PAR1", "it is not a complete Parquet or Arrow file"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let refusal = labelled(&path, format).unwrap_err();
        assert!(refusal.contains(expected), "{name}: {refusal}");
    }
}

#[test]
fn json_is_read_as_python_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let read = |text: &str, label: &str| {
        fs::write(&path, text).unwrap();
        labelled(&path, &format!("kind = 'jsonl'\ntext = 't'\nlabel = '{label}'"))
    };
    for text in [
        r#"[{"t": "a", "l": 0}, {"t": "b c", "l": 1}]"#,
        "[\n {\n  \"t\": \"a\",\n  \"l\": 0\n },\n {\n  \"t\": \"b c\",\n  \"l\": 1\n }\n]\n",
        r#"{"t": ["a", "b c"], "l": [0, 1]}"#,
        r#"{"t": {"0": "a", "1": "b c"}, "l": {"0": 0, "1": 1}}"#,
        r#"{"data": [{"t": "a", "l": 0}, {"t": "b c", "l": 1}]}"#,
        "{\"t\": \"a\", \"l\": 0, \"x\": NaN}\n{\"t\": \"b c\", \"l\": 1, \"x\": -Infinity}\n",
    ] {
        let found = read(text, "l").unwrap();
        let found = found.iter().map(|own| (own.input.first().into_owned(), own.label.as_str()));
        assert!(found.eq([("a".to_owned(), "0"), ("b c".to_owned(), "1")]), "{text}");
    }
    let whole = "\\ud83d\\ude00";
    let halves = format!(r#"{{"t": "\"NaN\" \ud83d {whole} \\", "l": true}}"#);
    let found = read(&halves, "l").unwrap();
    assert_eq!(found[0].input.first(), "\"NaN\" \u{fffd} \u{1f600} \\");
    assert_eq!(found[0].label, "true");
    for (text, expected) in [
        (r#"{"t": "a", "l": NaN}"#, "line 1: field `l` is missing (null or NaN)"),
        (r#"[{"t": "a", "l": 0}, {"t": "b", "l": null}]"#, "row 2: field `l` is missing (null or NaN)"),
        ("[{\"t\": \"a\", \"l\": 0}, 7]", "row 2: a number instead of a JSON object"),
        ("[{\"t\": \"a\"", "line 1: not valid JSON (EOF"),
        (" [\n{\"t\": \"a\",\n\"l\"", "line 3: not valid JSON (EOF"),
        (
            "[\n {\n  \"t\": \"a\",\n  \"l\": 0\n },\n {\n  \"t\": \"b",
            "line 7: not valid JSON (EOF while parsing a string at column 9)",
        ),
        ("{'t': 'a', 'l': 0}", "line 1: a dictionary as Python prints it, not JSON"),
        ("[]", "contains no examples"),
    ] {
        let refusal = read(text, "l").unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

const SGML: [&str; 2] = [
    "<srcset setid=\"t\" srclang=\"any\">\n<DOC docid=\"a\">\n<p>\n<seg id=1>A & B &amp; &lt;C&#62;</seg>\n<seg id=2> Two\n lines. </seg>\n</DOC>\n<doc docid=\"b\"><seg id=\"1\">&eacute;</seg></doc>\n</srcset>\n",
    "<refset setid=\"t\">\n<doc docid=\"a\" sysid=\"ref\"><seg id=\"1\">un</seg><seg id=\"2\">deux</seg></doc>\n<doc docid=\"b\" sysid=\"ref\"><seg id=\"1\">trois</seg></doc></refset>",
];

const XML: &str = "<?xml version='1.0' encoding='utf-8'?>\n<dataset id=\"t\"><doc id=\"a\"><src lang=\"en\"><p><seg id=\"1\">x &amp; y</seg></p></src>\
    <ref lang=\"fr\" translator=\"A\"><p><seg id=\"1\">un</seg></p></ref><ref lang=\"fr\" translator=\"B\"><p><seg id=\"1\">une</seg></p></ref>\
    <hyp system=\"s\"><p><seg id=\"1\">no</seg></p></hyp></doc></dataset>";

#[test]
fn test_sets_of_wmt_give_segments_references_and_documents() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let read = |source: &Path, targets: &[&Path], translators: &[&str]| {
        let translators: Vec<String> = translators.iter().map(|name| (*name).to_owned()).collect();
        ParallelText::read(source, targets, &translators, &mut BadRows::default())
            .map_err(|error| one_line(&error, source))
    };
    let [source, target] = [write("src.sgm", SGML[0]), write("ref.sgm", SGML[1])];
    let text = read(&source, &[&target], &[]).unwrap();
    assert_eq!(text.source, ["A & B & <C>", "Two lines.", "&eacute;"]);
    assert_eq!((text.target.len(), text.document_lengths(), text.reference_count()), (3, vec![2, 1], 1));

    let plain = write("plain.txt", "1\n2\n3\n");
    let text = read(&source, &[&target, &plain], &[]).unwrap();
    assert_eq!((text.references(1), text.reference_count()), (vec!["deux", "2"], 2));
    assert_eq!(text.select(&[2, 0]).references(0), ["trois", "3"]);

    let xml = write("wmt.xml", XML);
    let text = read(&xml, &[&xml], &[]).unwrap();
    assert_eq!((text.source[0].as_str(), text.references(0)), ("x & y", vec!["un", "une"]));
    assert_eq!(read(&xml, &[&xml], &["B"]).unwrap().references(0), ["une"]);

    let short = write("short.txt", "1\n2\n");
    let other = write("other.sgm", &SGML[1].replace("docid=\"b\"", "docid=\"c\""));
    let empty = write("empty.sgm", &SGML[1].replace("deux", " "));
    let torn = write("torn.sgm", &SGML[1][..SGML[1].find("rois").unwrap()]);
    let latin_1 = folder.path().join("latin-1.sgm");
    let bytes: Vec<u8> = SGML[1].replace("un<", "\u{e9}<").chars().map(|letter| letter as u8).collect();
    fs::write(&latin_1, bytes).unwrap();
    for (source, target, translators, expected) in [
        (&source, &short, &[][..], "`src.sgm` has 3 lines, but `short.txt` has 2"),
        (&source, &other, &[], "`src.sgm`: segment `1` of document `b`: `other.sgm` has a different segment"),
        (&source, &empty, &[], "`empty.sgm`: segment `2` of document `a`: it is empty"),
        (&source, &latin_1, &[], "`latin-1.sgm`: not valid UTF-8"),
        (&source, &torn, &[], "`torn.sgm`: it ends within a segment"),
        (&source, &source, &[], "`src.sgm`: it has no references"),
        (&target, &target, &[], "`ref.sgm`: it has no source segments"),
        (&xml, &xml, &["C"], "`wmt.xml`: no translator `C`, only `A`, `B`"),
    ] {
        let refusal = read(source, &[target], translators).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}
