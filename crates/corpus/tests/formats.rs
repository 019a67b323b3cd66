//! Files that other programs write: Parquet, Arrow, compressed files, JSON of Python, test sets of WMT. `tests/fixtures/tables/make.py`
//! made the tables: five rows, `text {n}`, `Été {n}`, class n mod 2.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use corpus::choices;
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

/// The message of an error with its sources, without the folder.
fn one_line(error: &corpus::Error, path: &Path) -> String {
    let message = format!("{:#}", anyhow::Error::msg(format!("{error}{}", source(error))));
    assert!(!message.contains('\n'), "{message}");
    message.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

fn source(error: &corpus::Error) -> String {
    std::error::Error::source(error).map_or(String::new(), |source| format!(": {source}"))
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

/// Of numbers with names in the metadata, of categories, and whatever `kind` a description has.
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
        // pandas keeps the numbers alone
        assert_eq!(tags[0].label, if name == "pandas.parquet" { "1 0" } else { "B-PER O" });
        let scores = labelled(&path, "kind = 'parquet'\ntext = 1\nlabel = 'score'").unwrap();
        assert_eq!(
            scores.iter().map(|own| own.label.as_str()).collect::<Vec<_>>(),
            ["0.1", "3.8", "5.0", "1.25", "-2.5"]
        );
        let truths = labelled(&path, "kind = 'parquet'\ntext = 'text'\nlabel = 'right'").unwrap();
        assert_eq!(truths[1].label, "false");
        let format = "kind = 'arrow'\ncontext = '{text}'\nchoices = 'choices.text'\nfirst = 3\n\
                      answer = { field = 'key', within = 'choices.label' }";
        let questions = choices::read(
            &path,
            &toml::from_str(format).unwrap(),
            &mut choices::Shots::none(),
            &mut BadRows::default(),
        )
        .unwrap();
        assert_eq!((questions.len(), questions[1].choices.len(), questions[1].answer), (3, 3, 1));
        // a class is a number where the answer is one
        let format = "kind = 'arrow'\nchoices = ['text', 'other']\nanswer = { field = 'label', first = 0 }";
        if name != "pandas.parquet" {
            let questions = choices::read(
                &path,
                &toml::from_str(format).unwrap(),
                &mut choices::Shots::none(),
                &mut BadRows::default(),
            )
            .unwrap();
            assert_eq!(questions.iter().map(|own| own.answer).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
        }
        let format = toml::from_str("kind = 'parquet'\ntext = 'choices.label'").unwrap();
        let fault = documents::read(&[&path], &format, &mut BadRows::default()).unwrap_err();
        assert!(
            fault.to_string().contains("row 1: field `choices.label` is a list, but text is needed"),
            "{fault}"
        );
        for (kind, [source, target]) in [
            (None, [1, 2].map(Column::Number)),
            (Some(RowKind::Parquet), ["text", "other"].map(|name| Column::Name(name.to_owned()))),
        ] {
            let others = vec![source.clone()];
            let table =
                PairTable { path: path.clone(), inside: None, kind, source, target, others: Vec::new() };
            let text = table.read(&mut BadRows::default()).unwrap();
            assert_eq!(text.references(4), ["Été 4"]);
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
            "`hub.parquet` has no column `nothing`: its header names",
        ),
        (
            "hub.parquet",
            "kind = 'csv'\ntext = 'text'\nlabel = 'blob'",
            "column `blob` is of type Binary, but texts",
        ),
        ("hub.parquet", "kind = 'conll'\ntext = 1\nlabel = 2", "it is a table in Parquet or Arrow, not text"),
        (
            "pandas.parquet",
            "kind = 'parquet'\ntext = 'text'\nlabel = 'gap'",
            "row 1: field `gap` is missing (null or NaN)",
        ),
        ("splits", text, "a folder of several splits"),
        ("rows.jsonl.zst", text, "neither Parquet nor Arrow, as its kind or its name says"),
    ] {
        let refusal = labelled(&fixture(name), format).unwrap_err();
        assert!(refusal.contains(expected), "{name}: {refusal}");
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["hub.parquet", "zstd.parquet", "zstd.feather", "saved/data-00000-of-00002.arrow"] {
        let whole = fs::read(fixture(name)).unwrap();
        let path = folder.path().join("torn.parquet");
        for length in (0..whole.len()).step_by(101) {
            fs::write(&path, &whole[..length]).unwrap();
            let mut bad = BadRows::new(BadRowRule::Skip);
            let read = labelled::read(&path, &toml::from_str(text).unwrap(), &mut bad);
            // a stream may end after a batch
            assert!(read.is_err() || name.ends_with(".arrow"), "{name}, {length} bytes");
            if let Err(error) = read {
                assert!(one_line(&error, &path).contains("torn.parquet"), "{error}");
            }
        }
        for place in (0..whole.len()).step_by(37) {
            let mut changed = whole.clone();
            changed[place] ^= 0x55;
            fs::write(&path, &changed).unwrap();
            if let Err(refusal) = labelled(&path, text) {
                assert!(refusal.contains("torn.parquet"), "{refusal}");
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
        ("a.csv", b"PK\x03\x04...", "a zip archive, whose name must end in .zip"),
        (
            "a.jsonl",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "a Git LFS pointer",
        ),
        ("a.jsonl.zst", b"{}", "cannot read `a.jsonl.zst`"),
        ("b.jsonl", b"\x28\xb5\x2f\xfd\x24", "cannot read `b.jsonl`"),
        ("c.jsonl", b"PAR1", "it is not a whole Parquet or Arrow file"),
        ("d.jsonl", b"", "`d.jsonl` holds no examples"),
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
        let found: Vec<_> =
            found.iter().map(|own| (own.input.first().into_owned(), own.label.clone())).collect();
        assert_eq!(found, [("a".to_owned(), "0".to_owned()), ("b c".to_owned(), "1".to_owned())], "{text}");
    }
    let whole = "\\ud83d\\ude00";
    let halves = format!(r#"{{"t": "\"NaN\" \ud83d {whole} \\", "l": true}}"#);
    let found = read(&halves, "l").unwrap();
    assert_eq!(
        (found[0].input.first().as_ref(), found[0].label.as_str()),
        ("\"NaN\" \u{fffd} \u{1f600} \\", "true")
    );
    for (text, expected) in [
        (r#"{"t": "a", "l": NaN}"#, "line 1: field `l` is missing (null or NaN), but text is needed"),
        (r#"[{"t": "a", "l": 0}, {"t": "b", "l": null}]"#, "row 2: field `l` is missing (null or NaN)"),
        ("[{\"t\": \"a\", \"l\": 0}, 7]", "row 2: a number instead of a JSON object"),
        ("[{\"t\": \"a\"", "line 1: not valid JSON (EOF"),
        (
            "[\n {\n  \"t\": \"a\",\n  \"l\": 0\n },\n {\n  \"t\": \"b",
            "line 7: not valid JSON (EOF while parsing a string at column 9)",
        ),
        (
            "{'t': 'a', 'l': 0}",
            "line 1: a dictionary as Python prints it, not JSON: write it with `json.dumps`",
        ),
        ("[]", "holds no examples"),
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
        (
            &source,
            &other,
            &[],
            "`src.sgm`: segment `1` of document `b`: `other.sgm` has another segment in its place",
        ),
        (&source, &empty, &[], "`empty.sgm`: segment `2` of document `a`: it is empty"),
        (&source, &latin_1, &[], "`latin-1.sgm`: not valid UTF-8"),
        (&source, &torn, &[], "`torn.sgm`: it ends within a segment"),
        (&source, &source, &[], "`src.sgm`: it has no references"),
        (&target, &target, &[], "`ref.sgm`: it has no source segments"),
        (&xml, &xml, &["C"], "`wmt.xml`: no translator `C`: there are `A`, `B`"),
    ] {
        let refusal = read(source, &[target], translators).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}
