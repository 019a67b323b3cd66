//! The whole command on setups that train in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::rows::functions::FunctionName;
use records::{Attention, HeadFunctionRow, RelevanceRow};
use test_support::{
    CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, command_with, copy_files, program, read, refuses, text,
    with_model,
};

const TABLE: &str = "head-functions.csv";
const FILE: &str = "results/tiny/head-functions.csv";

fn command(folder: &Path) -> Command {
    command_with("head-functions", folder, &["--resamples", "99"])
}

fn rows(folder: &Path, file: &str) -> Vec<HeadFunctionRow> {
    test_support::rows(folder, file)
}

/// Returns the functions that have rows, with their details except for positions.
fn functions(rows: &[HeadFunctionRow]) -> BTreeSet<String> {
    rows.iter().map(|row| format!("{} {}", row.task().0, row.task().1)).collect()
}

/// Two sentences with trees, in words of the reviews: "lovely film" and "dull story fades".
const TREES: &str = "# text = lovely film
1\tlovely\t_\t_\t_\t_\t2\tamod\t_\t_
2\tfilm\t_\t_\t_\t_\t0\troot\t_\t_

1\tdull\t_\t_\t_\t_\t2\tamod\t_\t_
2\tstory\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tfades\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t_\t_\t_\t_\t3\tpunct\t_\t_
";

fn write_trees(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::write(folder.join("data/a.conllu"), text).unwrap();
}

/// 2 layers of 3 heads on the 24 test sentences: confidence, two positional functions, and each relation that occurs.
#[test]
fn every_head_of_an_encoder_has_a_row_for_each_function() {
    let folder = with_model(TRANSLATOR);
    command(folder.path()).args(["--frequent", "20"]).assert().success().stdout(format!("{FILE}\n"));
    let rows = rows(folder.path(), TABLE);
    let functions = functions(&rows);
    assert_eq!(rows.len(), 6 * functions.len());
    for function in ["confidence ", "positional ", "syntactic amod:modifier->noun", "rare two-rarest"] {
        assert!(functions.contains(function), "{function}: {functions:?}");
    }
    // the setup can set the number too, and the option takes precedence
    let before = read(folder.path(), FILE);
    let named = |frequent: usize| {
        let spec = format!("{TRANSLATOR}[functions]\nfrequent = {frequent}\n");
        fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    };
    for (frequent, arguments) in [(20, &["--again"][..]), (100_000, &["--again", "--frequent", "20"])] {
        named(frequent);
        command(folder.path()).args(arguments).assert().success();
        assert_eq!(read(folder.path(), FILE), before);
    }
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for row in &rows {
        assert_eq!((row.attention, row.share), (Attention::EncEnc, row.numerator / row.denominator));
        assert!((0.0..=1.0).contains(&row.share), "{row:?}");
        assert!(row.share_low.unwrap() <= row.share && row.share <= row.share_high.unwrap(), "{row:?}");
        assert_eq!(row.baseline.is_some(), row.function == "syntactic");
        assert_eq!(row.shuffled.is_none(), row.function == "confidence");
        *best.entry(format!("{:?}", row.task())).or_default() += row.best.unwrap();
        if row.function == "rare" {
            assert!(row.denominator <= 24.0 && row.numerator.fract() == 0.0, "a hit or none: {row:?}");
        }
    }
    assert!(best.values().all(|&sum| sum >= 1.0 - 1e-9), "in each resample one is the best: {best:?}");
    let signature = text(folder.path(), "results/tiny/head-functions.json");
    assert!(signature.contains("\"first_piece\": false") && signature.contains("\"frequencies\": \"train\""));
}

#[test]
fn equal_runs_give_equal_files_on_any_number_of_threads() {
    let (one, two) = (with_model(TRANSLATOR), with_model(TRANSLATOR));
    command(one.path()).args(["--threads", "1"]).assert().success();
    command(two.path()).args(["--threads", "2"]).assert().success();
    assert_eq!(read(one.path(), FILE), read(two.path(), FILE));
    let signature = one.path().join("results/tiny/head-functions.json");
    let written = || fs::metadata(&signature).unwrap().modified().unwrap();
    let before = written();
    command(one.path()).assert().success();
    assert_eq!(written(), before, "existing results that match are used");
    command(one.path()).args(["--first-piece", "--again"]).assert().success();
    assert!(fs::read_to_string(&signature).unwrap().contains("\"first_piece\": true"));
}

/// Subjects and modifiers come before their heads in the tree, so only those can attend to them.
#[test]
fn a_language_model_follows_arcs_to_earlier_words() {
    let folder = with_model(LANGUAGE_MODEL);
    command(folder.path()).args(["--frequent", "20"]).assert().success();
    let rows = rows(folder.path(), TABLE);
    let functions = functions(&rows);
    assert_eq!(rows.len(), 8 * functions.len(), "2 layers of 4 heads: {functions:?}");
    assert!(functions.contains("rare rarest"), "{functions:?}");
    let arcs = |detail: &str| rows.iter().find(|row| row.detail == detail).map_or(0.0, |row| row.denominator);
    assert!(arcs("nsubj:verb->subject") > 10.0 * arcs("nsubj:subject->verb"));
    let mut positional = rows.iter().filter(|row| row.function == "positional");
    assert!(positional.all(|row| row.detail.parse::<i64>().unwrap() <= 0), "no later token is seen");
    assert!(rows.iter().all(|row| row.attention == Attention::SelfAttention));
}

#[test]
fn a_classifier_is_measured_on_trees_from_a_file() {
    let folder = with_model(CLASSIFIER);
    write_trees(folder.path(), TREES);
    command(folder.path()).args(["--trees", "data/a.conllu", "--frequent", "3"]).assert().success();
    let found = rows(folder.path(), TABLE);
    let functions = functions(&found);
    let expected = "confidence , positional , positional-there , rare rarest, rare two-rarest, syntactic amod:modifier->noun, \
                    syntactic amod:noun->modifier, syntactic nsubj:subject->verb, syntactic nsubj:verb->subject";
    assert_eq!(functions.into_iter().collect::<Vec<_>>().join(", "), expected);
    let modifier = found.iter().find(|row| row.detail == "amod:noun->modifier").unwrap();
    assert_eq!((modifier.denominator, modifier.baseline), (2.0, Some(1.0)));
    assert_eq!(modifier.baseline_position, Some(-1));
    // the setup can name the file too
    let named = format!("{CLASSIFIER}[functions]\ntrees = [\"a.conllu\"]\n");
    fs::write(folder.path().join("tiny.toml"), named).unwrap();
    let before = read(folder.path(), FILE);
    command(folder.path()).args(["--frequent", "3", "--again"]).assert().success();
    assert_eq!(read(folder.path(), FILE), before);
}

#[test]
fn a_split_without_trees_has_no_dependencies() {
    let folder = with_model(CLASSIFIER);
    let mut command = program("head-functions", folder.path());
    command.args(["tiny.toml", "--split", "test", "--frequencies", "none", "--resamples", "0"]);
    let left_out = "dependencies are left out: these sentences have no trees";
    command.assert().success().stderr(contains(left_out)).stderr(contains("240 sentences of `test`"));
    let functions = functions(&rows(folder.path(), TABLE));
    assert_eq!(functions, ["confidence ", "positional ", "positional-there "].map(str::to_owned).into());
}

#[test]
fn invalid_trees_and_splits_are_refused_in_one_line() {
    let folder = with_model(CLASSIFIER);
    write_trees(folder.path(), "1\tlovely\t_\n");
    for (arguments, said) in [
        (&["--trees", "data/a.conllu"], "`data/a.conllu`, line 1: 3 columns instead of 10"),
        (&["--frequencies", "nowhere"], "no split `nowhere`: this setup has"),
        (&["--shard", "1/2"], "rows cannot be measured separately"),
    ] {
        refuses(command(folder.path()).args(arguments), said);
    }
    fs::write(folder.path().join("tiny.toml"), format!("{CLASSIFIER}[functions]\ntrees = []\n")).unwrap();
    refuses(&mut command(folder.path()), "functions.trees names no file");
    assert!(!folder.path().join("results/tiny").join(TABLE).exists());
}

#[test]
fn sentences_beyond_the_model_are_left_out_or_refused_if_all_are() {
    let folder = with_model(TRANSLATOR);
    let long = |words: usize| {
        let line = |number: usize| format!("{number}\tdog\t_\t_\t_\t_\t{}\tdep\t_\t_\n", number - 1);
        (1..=words).map(line).collect::<String>()
    };
    // the model has 160 positions
    write_trees(folder.path(), &long(200));
    let trees = ["--trees", "data/a.conllu", "--frequencies", "none"];
    refuses(command(folder.path()).args(trees), "longer than the model's 160 positions");
    write_trees(folder.path(), &format!("{}\n{}", long(200), long(3)));
    command(folder.path()).args(trees).assert().success();
    let rows = rows(folder.path(), TABLE);
    assert_eq!(rows.len(), 6 * 3, "`dep` is none of the relations");
}

/// SentencePiece gives no offsets.
#[test]
fn a_tokenizer_without_offsets_is_refused() {
    let spec = "description = \"As it comes from a hub\"\n\
                [data.splits]\ntest = { source = \"a.en\", target = \"a.xx\" }\n\
                [checkpoint]\nfrom = \"opus\"\n";
    let folder = test_support::folder(spec);
    let hub = concat!(env!("CARGO_MANIFEST_DIR"), "/../core-masking/tests/fixtures/tiny-marian");
    copy_files(Path::new(hub), &folder.path().join("data/opus"));
    for name in ["a.en", "a.xx"] {
        fs::write(folder.path().join("data").join(name), "The dog sees the cat.\n").unwrap();
    }
    refuses(&mut command(folder.path()), "does not give the positions of tokens in a text");
}

const RELEVANCE: &str = "relevance-first-6.csv";

fn relevance(folder: &Path) -> Command {
    command_with("relevance", folder, &["--resamples", "99", "--limit", "first:6"])
}

#[test]
fn every_head_of_a_translator_has_a_share_of_the_relevance_of_its_layer() {
    let folder = with_model(TRANSLATOR);
    relevance(folder.path()).assert().success().stdout(format!("results/tiny/{RELEVANCE}\n"));
    let rows: Vec<RelevanceRow> = test_support::rows(folder.path(), RELEVANCE);
    assert_eq!(rows.len(), 3 * 2 * 3);
    let mut layers: BTreeMap<(Attention, usize), f64> = BTreeMap::new();
    for row in &rows {
        assert!(row.relevance_low.unwrap() <= row.relevance && row.relevance <= row.relevance_high.unwrap());
        assert!(row.targets > 6 && row.undivided.is_finite() && row.lost < 1e-9, "{row:?}");
        *layers.entry((row.attention, row.layer)).or_default() += row.relevance.abs();
    }
    assert_eq!(layers.len(), 6);
    // the absolute value of a mean is at most the mean of absolute values, which sum to 1 over a layer
    assert!(layers.values().all(|&sum| sum > 0.0 && sum < 1.0 + 1e-9), "{layers:?}");
}

#[test]
fn relevance_in_a_classifier_is_the_same_on_any_number_of_threads() {
    let (one, two) = (with_model(CLASSIFIER), with_model(CLASSIFIER));
    relevance(one.path()).args(["--threads", "1"]).assert().success();
    relevance(two.path()).args(["--threads", "2"]).assert().success();
    let rows: Vec<RelevanceRow> = test_support::rows(one.path(), RELEVANCE);
    assert_eq!(rows, test_support::rows::<RelevanceRow>(two.path(), RELEVANCE));
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row.targets == 6 && row.attention == Attention::SelfAttention));
}

#[test]
fn relevance_in_a_language_model_and_named_heads_of_a_classifier_are_refused() {
    let folder = with_model(LANGUAGE_MODEL);
    let fault = "relevance propagation supports only translators and text classifiers";
    refuses(&mut relevance(folder.path()), fault);
    refuses(relevance(folder.path()).args(["--shard", "1/2"]), "rows cannot be measured separately");
    let untrained = test_support::folder(CLASSIFIER);
    refuses(&mut test_support::command("named-heads", untrained.path()), "`tiny` is not a language model");
}

const NAMED_HEADS: &str = "named-heads-first-20.csv";

#[test]
fn every_head_has_a_row_for_each_score_of_its_sequences() {
    let folder = with_model(LANGUAGE_MODEL);
    let run = |arguments: &[&str]| {
        let mut command = test_support::command("named-heads", folder.path());
        command.args(["--resamples", "99", "--limit", "first:20"]).args(arguments);
        command.assert().success().stdout(format!("results/tiny/{NAMED_HEADS}\n"));
        read(folder.path(), &format!("results/tiny/{NAMED_HEADS}"))
    };
    let written = run(&["--threads", "1"]);
    assert_eq!(written, run(&["--threads", "2", "--again"]), "threads change no number");
    let found = rows(folder.path(), NAMED_HEADS);
    run(&["--memory", "6M", "--again"]);
    let small = rows(folder.path(), NAMED_HEADS);
    assert_eq!((found.len(), small.len()), (4 * 8, 4 * 8));
    for (row, small) in found.iter().zip(&small) {
        assert_eq!((row.head_id(), row.function), (small.head_id(), small.function));
        assert!((row.share - small.share).abs() < 1e-5, "memory changes no number beyond rounding");
    }
    for score in FunctionName::NAMED {
        let own: Vec<&HeadFunctionRow> = found.iter().filter(|row| row.function == score).collect();
        assert_eq!(own.len(), 8);
        for row in own {
            let (low, high) = (row.share_low.unwrap(), row.share_high.unwrap());
            assert!(low <= row.share && row.share <= high, "{row:?}");
            assert!((row.share - row.numerator / row.denominator).abs() < 1e-12, "{row:?}");
            if [FunctionName::Induction, FunctionName::DuplicateToken].contains(&score) {
                // 96 positions contain BOS and two blocks of 47; the queries at 48 to 94 see 49 to 95 keys
                let even = (49..=95).map(|seen| 1.0 / f64::from(seen)).sum::<f64>() / 47.0;
                assert_eq!(row.denominator, 50.0 * 47.0);
                assert!((row.baseline.unwrap() - even).abs() < 1e-12, "{row:?}");
            }
        }
    }
}

/// Returns `[name, queries, keys]` for each map in the page's data, and the page.
fn look(folder: &Path, arguments: &[&str]) -> (Vec<(String, usize, usize)>, String) {
    command_with("look", folder, arguments).assert().success().stdout("results/tiny/look.html\n");
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

/// The encoder reads the words and EOS. The decoder reads the start token instead of EOS.
#[test]
fn a_translator_shows_the_source_with_its_own_or_a_given_translation() {
    let folder = with_model(TRANSLATOR);
    let (maps, page) = look(folder.path(), &["the dog"]);
    let [(_, source, _), (_, target, of_source), (_, read, of_read)] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!((source, target), (of_source, read));
    assert_eq!((read, maps[0].0.as_str(), maps[1].0.as_str()), (of_read, "enc-enc", "enc-dec"));
    assert!(page.contains("Generated translation"));
    let given = ["the dog", "--second", "a", "--mask", "enc-dec:2:1"];
    let (maps, page) = look(folder.path(), &given);
    assert_eq!((maps[1].1, maps[2].1), (2, 2), "one token and EOS");
    assert!(page.contains("Given translation") && page.contains("enc-dec:2:1"));
}

/// Special tokens: `[CLS] a [SEP]` for a text, `[CLS] a [SEP] a [SEP]` for a pair.
#[test]
fn a_classifier_shows_a_text_or_a_pair() {
    let folder = with_model(CLASSIFIER);
    let (one, page) = look(folder.path(), &["a"]);
    let (pair, _) = look(folder.path(), &["a", "--second", "a"]);
    let tokens = (one[0].1 - 2, pair[0].1 - 3);
    assert_eq!((one[0].0.as_str(), tokens.1), ("self", 2 * tokens.0));
    assert!(page.contains("%)</code>"), "its class and its probability");
    let long = "lovely film ".repeat(20);
    refuses(test_support::command("look", folder.path()).arg(&long), "but the model reads at most 16");
}

#[test]
fn a_language_model_shows_any_text_and_refuses_what_it_cannot_read() {
    let folder = with_model(LANGUAGE_MODEL);
    let hostile = "</script><b>\u{1b}[2J\u{202e}";
    let (maps, page) = look(folder.path(), &[hostile]);
    assert!(maps[0].1 > 4 && !page.contains('\u{1b}') && !page.contains('\u{202e}') && !page.contains("<b>"));
    let faults: [(&[&str], &str); 3] = [
        (&[" "], "the text is empty"),
        (&[&"dog ".repeat(200)], "tokens, but the model reads at most 96"),
        (&["The", "--mask", "self:9:1"], "no layer 9"),
    ];
    for (arguments, fault) in faults {
        command_with("look", folder.path(), arguments).assert().failure().stderr(contains(fault));
    }
}

/// One fault is a path below a file, where nothing can be written.
#[test]
fn invalid_requests_are_refused_before_the_model_is_trained() {
    let folder = test_support::folder(LANGUAGE_MODEL);
    let faults: [(&[&str], &str); 3] = [
        (&["--second", "dog"], "a language model reads one text"),
        (&["--output", "results"], "must end in `.html`"),
        (&["--output", "tiny.toml/look.html"], "cannot write `tiny.toml"),
    ];
    for (arguments, fault) in faults {
        let arguments = [&["The"][..], arguments].concat();
        command_with("look", folder.path(), &arguments).assert().failure().stderr(contains(fault));
        assert!(!folder.path().join("data/models").exists(), "{fault}");
    }
}
