//! The whole command on a tiny model of each task.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use predicates::str::contains;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, command, refusal, trained};

/// Returns `[name, queries, keys]` for each map in the page's data, and the page.
fn look(folder: &Path, arguments: &[&str]) -> (Vec<(String, usize, usize)>, String) {
    command("look", folder).args(arguments).assert().success().stdout("results/tiny/look.html\n");
    let page = fs::read_to_string(folder.join("results/tiny/look.html")).unwrap();
    let data = page.split("id=\"look\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let map = |map: &serde_json::Value| {
        let count = |name: &str| map[name].as_array().unwrap().len();
        assert_eq!(count("layers"), 2);
        (map["attention"].as_str().unwrap().to_owned(), count("queries"), count("keys"))
    };
    (data["maps"].as_array().unwrap().iter().map(map).collect(), page)
}

/// The encoder reads the words and EOS. The decoder reads the start symbol instead of EOS.
#[test]
fn a_translator_shows_source_against_its_translation_or_one_that_is_given() {
    let folder = trained(TRANSLATOR, "look", &["the dog"]);
    let (maps, page) = look(folder.path(), &["the dog"]);
    let [(_, source, _), (_, target, of_source), (_, read, of_read)] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!((source, target), (of_source, read));
    assert_eq!((read, maps[0].0.as_str(), maps[1].0.as_str()), (of_read, "enc-enc", "enc-dec"));
    assert!(page.contains("Its translation"));
    let given = ["the dog", "--second", "a", "--mask", "enc-dec:2:1"];
    let (maps, page) = look(folder.path(), &given);
    assert_eq!((maps[1].1, maps[2].1), (2, 2), "one token and the end symbol");
    assert!(page.contains("Translation, given") && page.contains("enc-dec:2:1"));
}

/// Special symbols: `[CLS] a [SEP]` for a text, `[CLS] a [SEP] a [SEP]` for a pair.
#[test]
fn a_classifier_reads_a_text_or_a_pair() {
    let folder = trained(CLASSIFIER, "look", &["a"]);
    let ((one, page), (pair, _)) =
        (look(folder.path(), &["a"]), look(folder.path(), &["a", "--second", "a"]));
    let tokens = (one[0].1 - 2, pair[0].1 - 3);
    assert_eq!((one[0].0.as_str(), tokens.1), ("self", 2 * tokens.0));
    assert!(page.contains("%)</code>"), "its class and its probability");
    let long = "lovely film ".repeat(20);
    let fault = refusal(command("look", folder.path()).arg(&long));
    assert!(fault.contains("but the model reads 16 at most"), "{fault}");
}

#[test]
fn a_language_model_reads_any_text_and_refuses_what_it_cannot_read() {
    let folder = trained(LANGUAGE_MODEL, "look", &["The dog"]);
    let hostile = "</script><b>\u{1b}[2J\u{202e}";
    let (maps, page) = look(folder.path(), &[hostile]);
    assert!(maps[0].1 > 4 && !page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains("<b>"));
    let faults: [(&[&str], &str); 3] = [
        (&[" "], "the text is empty"),
        (&[&"dog ".repeat(200)], "tokens, but the model reads 96 at most"),
        (&["The", "--mask", "self:9:1"], "no layer 9"),
    ];
    for (arguments, fault) in faults {
        command("look", folder.path()).args(arguments).assert().failure().stderr(contains(fault));
    }
}

/// One fault is a path below a file, where nothing can be written.
#[test]
fn what_cannot_be_is_refused_before_the_model_is_trained() {
    let folder = test_support::folder(LANGUAGE_MODEL);
    let faults: [(&[&str], &str); 3] = [
        (&["--second", "dog"], "a language model reads one text"),
        (&["--output", "results"], "must end in `.html`"),
        (&["--output", "tiny.toml/look.html"], "cannot write `tiny.toml"),
    ];
    for (arguments, fault) in faults {
        command("look", folder.path()).arg("The").args(arguments).assert().failure().stderr(contains(fault));
        assert!(!folder.path().join("data/models").exists(), "{fault}");
    }
}
