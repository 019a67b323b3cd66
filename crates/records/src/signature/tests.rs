use std::fs;

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn identity() -> Identity {
    let arguments = [("beam", json!(5)), ("length_penalty", json!(1.0)), ("rescale", json!(false))];
    let arguments = arguments.map(|(name, value)| (name.to_owned(), value)).into();
    let data = [("test.en".to_owned(), "cd34".to_owned())].into();
    let (split, seed, weights) = ("test".to_owned(), Some(u64::MAX), Some("ab12".to_owned()));
    let identity = Identity::new("ablate-one", "demo-translation");
    Identity { split, limit: Some(100), arguments, seed, weights, data, ..identity }
}

/// SHA-256 of FIPS 180-2, appendix B.1.
#[test]
fn signature_reads_back_unchanged_and_sha256_is_the_standard_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/ablate-one.json");
    let run = Provenance::collect("cpu", 2, [("libtorch".to_owned(), "2.11.0".to_owned())].into());
    let signature = Signature::new(identity(), run);
    signature.write(&path).unwrap();
    assert_eq!(Signature::read(&path).unwrap(), Some(signature));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "a temporary file stayed");
    fs::write(&path, "abc").unwrap();
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256_file(&path).unwrap(), expected);
}

#[test]
fn only_differing_entries_are_shown() {
    let mut now = identity();
    assert!(now.differences(&identity()).is_empty());
    now.seed = Some(1);
    now.limit = None;
    now.arguments.insert("beam".to_owned(), json!(4));
    now.data.insert("test.de".to_owned(), "ef56".to_owned());
    assert_eq!(
        now.differences(&identity()),
        [
            "arguments.beam: 5 in the file, 4 now",
            "data.test.de: absent in the file, \"ef56\" now",
            "limit: 100 in the file, absent now",
            "seed: 18446744073709551615 in the file, 1 now",
        ]
    );
    // foreign text is shown without control characters and truncated
    let mut stored = identity();
    stored.data.insert("\u{1b}[31m".to_owned(), "\u{202e}".repeat(100_000));
    let differences = identity().differences(&stored).concat();
    let is_safe = differences.len() < 2000 && !differences.contains('\u{202e}');
    assert!(is_safe && differences.starts_with(r"data.\u{1b}[31m: "), "{differences}");
}

#[test]
fn commands_and_warnings_name_no_folder_of_the_machine() {
    let here = Path::new("/home/someone/project");
    for (word, public) in [
        ("--results=/tmp/out", "--results=.../out"),
        ("/home/someone/project/data", "data"),
        ("/home/someone/project", "."),
        ("../../home/someone/results", ".../results"),
        ("--output=results/a.csv", "--output=results/a.csv"),
    ] {
        assert_eq!(without_machine(word, here), public);
    }
    let words = ["/opt/target/release/ablate-one", "demo"].map(OsString::from);
    assert_eq!(command(words.into_iter()), ["ablate-one", "demo"]);
    for (warning, public) in [
        ("the vocabulary in `/opt/my models/bert` has capitals", "the vocabulary in `.../bert` has capitals"),
        ("`/home/someone/project/data/a.tsv`, line 3: `x`", "`data/a.tsv`, line 3: `x`"),
        ("accuracy is 1/3 or 2/3", "accuracy is 1/3 or 2/3"),
    ] {
        assert_eq!(without_folders(warning, here), public);
    }
}

#[test]
fn results_that_a_run_replaced_leave_the_code_unmodified() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("results/demo/a.csv", "1");
    write("crates/a/results/a.rs", "1");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
    git(folder.path(), &["init"]).unwrap();
    git(folder.path(), &["add", "."]).unwrap();
    git(folder.path(), &[&identity[..], &["commit", "-m", "first"]].concat()).unwrap();
    assert_eq!(modified(folder.path()), Some(false));
    write("results/demo/a.csv", "2");
    assert_eq!(modified(folder.path()), Some(false));
    assert_eq!(modified(&folder.path().join("crates")), Some(false));
    write("crates/a/results/a.rs", "2");
    assert_eq!(modified(folder.path()), Some(true));
    assert_eq!(modified(&folder.path().join("results")), Some(true));
}

proptest! {
    /// An inexact parser would change the last bit, and with it the identity.
    #[test]
    fn numbers_in_arguments_read_back_bit_by_bit(number in proptest::num::f64::NORMAL) {
        let now = Identity { arguments: [("number".to_owned(), json!(number))].into(), ..identity() };
        let stored = serde_json::from_str(&serde_json::to_string(&now).unwrap()).unwrap();
        prop_assert_eq!(now.differences(&stored), Vec::<String>::new());
    }
}
