//! The whole commands on subjects that train in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::{AblationRow, ImportanceRow, PruningRow};
use tempfile::TempDir;
use test_support::{CLASSIFIER, TRANSLATOR, kill_when, read, rows, trained};

const TABLE: &str = "results/tiny/iterative-prune.csv";

fn folder() -> TempDir {
    trained(
        TRANSLATOR,
        "iterative-prune",
        &["--limit", "1", "--estimate-limit", "5", "--step-percent", "100"],
    )
}

fn reviews() -> TempDir {
    trained(
        CLASSIFIER,
        "iterative-prune",
        &["--limit", "1", "--estimate-limit", "5", "--step-percent", "100"],
    )
}

const ARGUMENTS: [&str; 4] = ["--resamples", "99", "--estimate-limit", "40"];

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(ARGUMENTS);
    command
}

fn refusal(folder: &Path, arguments: &[&str]) -> String {
    test_support::refusal(command(folder).args(arguments))
}

fn ablate_one(folder: &Path, arguments: &[&str]) {
    let mut command = test_support::command("ablate-one", folder);
    command.args(["--resamples", "0"]).args(arguments).assert().success();
}

fn curve<'a>(rows: &'a [PruningRow], attention: &str, order: &str, seed: Option<u64>) -> Vec<&'a PruningRow> {
    let of_curve = |row: &&PruningRow| {
        (row.attention.as_str(), row.order.as_str(), row.order_seed) == (attention, order, seed)
    };
    rows.iter().filter(of_curve).collect()
}

fn heads(row: &PruningRow) -> BTreeSet<&str> {
    row.masked_heads.split('+').filter(|name| !name.is_empty()).collect()
}

/// Nothing is masked at first and everything at last; between them sets are nested.
#[test]
fn curves_have_their_known_ends() {
    let folder = folder();
    let arguments = ["--order", "importance,random,entropy", "--random-orders", "2", "--seed", "5"];
    command(folder.path()).args(arguments).assert().success().stdout(format!("{TABLE}\n"));
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let whole = ["importance", "entropy"].map(|order| curve(&rows, "all", order, None));
    let random = [5, 6].map(|seed| curve(&rows, "all", "random", Some(seed)));
    assert_eq!(rows.len(), 4 * 11);
    for curve in whole.iter().chain(&random) {
        // 18 heads: ⌈1.8⌉, ⌈3.6⌉ ..
        let masked: Vec<usize> = curve.iter().map(|row| row.masked).collect();
        assert_eq!(masked, [0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 18]);
        assert_eq!((curve[0].score, curve[0].p_value), (curve[0].base_score, None));
        assert!(curve.windows(2).all(|pair| heads(pair[0]).is_subset(&heads(pair[1]))));
        assert!(curve[1..].iter().all(|row| row.p_holm.unwrap() >= row.p_value.unwrap()));
    }
    assert_ne!(random[0][5].masked_heads, random[1][5].masked_heads);
}

/// One head masked is one row of `ablate-one`, and the oracle's first is the one that costs least.
#[test]
fn the_first_step_is_a_row_of_ablate_one() {
    let folder = folder();
    let message = refusal(folder.path(), &["--order", "oracle"]);
    assert!(
        message.contains("`results/tiny/ablate-one.csv` is missing: make it with `ablate-one"),
        "{message}"
    );
    ablate_one(folder.path(), &[]);
    command(folder.path()).args(["--order", "oracle,importance", "--step-percent", "5"]).assert().success();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let pruned: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    for row in pruned.iter().filter(|row| row.masked == 1) {
        let name = |head: &AblationRow| format!("{}:{}:{}", head.attention, head.layer, head.head);
        let head = single.iter().find(|head| name(head) == row.masked_heads).unwrap();
        assert_eq!((row.score, row.base_score), (head.score, head.base_score));
    }
    let first = curve(&pruned, "all", "oracle", None)[1];
    assert!(single.iter().all(|head| head.score <= first.score), "{}", first.masked_heads);
}

#[test]
fn an_oracle_of_another_model_is_refused() {
    let folder = folder();
    ablate_one(folder.path(), &["--attention", "enc-enc"]);
    let message = refusal(folder.path(), &["--order", "oracle"]);
    assert!(message.contains("has no row for enc-dec:1:1"), "{message}");
    command(folder.path()).args(["--step-percent", "50"]).assert().success();
    let before = read(folder.path(), TABLE);
    let message = refusal(folder.path(), &["--order", "oracle", "--limit", "7", "--overwrite"]);
    assert!(message.contains("limit: absent in the file, 7 now"), "{message}");
    assert_eq!(read(folder.path(), TABLE), before, "refused before the file is touched");
    let message = refusal(folder.path(), &["--order", "oracle", "--limit", "7"]);
    assert!(
        message.contains("limit: absent in the file, 7 now") && message.contains("--limit 7`"),
        "{message}"
    );
    let path = folder.path().join("results/tiny/ablate-one.json");
    let mut signature: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    signature["identity"]["weights"] = "0123".into();
    fs::write(&path, signature.to_string()).unwrap();
    let message = refusal(folder.path(), &["--order", "oracle"]);
    assert!(message.contains("stems from another model or other data (weights:"), "{message}");
    // a recipe makes what it is made of
    command(folder.path())
        .args(["--order", "oracle", "--step-percent", "50", "--restart"])
        .assert()
        .success();
    assert_eq!(rows::<AblationRow>(folder.path(), "ablate-one.csv").len(), 18);
}

#[test]
fn an_oracle_that_is_no_number_is_refused() {
    let folder = folder();
    ablate_one(folder.path(), &[]);
    let path = folder.path().join("results/tiny/ablate-one.csv");
    let mut forged: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    forged[4].score_delta = f64::NAN;
    let mut writer = csv::Writer::from_path(&path).unwrap();
    forged.iter().for_each(|row| writer.serialize(row).unwrap());
    writer.flush().unwrap();
    let message = refusal(folder.path(), &["--order", "oracle"]);
    assert!(message.contains("changes the score by NaN"), "{message}");
}

/// Figure 4: each type by itself, in one file with the curve over all.
#[test]
fn attention_types_have_curves_of_their_own() {
    let folder = folder();
    command(folder.path())
        .args(["--attention", "enc-dec,dec-dec", "--step-percent", "50"])
        .assert()
        .success();
    command(folder.path()).args(["--attention", "all", "--step-percent", "50"]).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    for attention in ["enc-dec", "dec-dec"] {
        let curve = curve(&rows, attention, "importance", None);
        assert_eq!(
            curve.iter().map(|row| (row.masked, row.heads)).collect::<Vec<_>>(),
            [(0, 6), (3, 6), (6, 6)]
        );
        assert!(heads(curve[2]).iter().all(|name| name.starts_with(attention)));
    }
    assert_eq!(curve(&rows, "all", "importance", None).len(), 3);
}

#[test]
fn layers_keep_their_heads_and_scores_can_be_taken_again() {
    let folder = folder();
    let arguments = ["--recompute", "--keep-at-least", "1", "--step-percent", "25"];
    command(folder.path()).args(arguments).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    assert_eq!(rows.iter().map(|row| row.masked).collect::<Vec<_>>(), [0, 5, 9, 12]);
    let last = heads(rows.last().unwrap());
    for attention in ["enc-enc", "enc-dec", "dec-dec"] {
        for layer in 1..=2 {
            let prefix = format!("{attention}:{layer}:");
            assert_eq!(last.iter().filter(|name| name.starts_with(&prefix)).count(), 2, "{prefix}");
        }
    }
}

/// Without attention the first position sees only itself, so that all texts get one class: the score is the share of one.
#[test]
fn a_classifier_without_heads_gives_all_texts_one_class() {
    let folder = reviews();
    command(folder.path()).args(["--step-percent", "100"]).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let text = fs::read_to_string(folder.path().join("data/reviews/test.tsv")).unwrap();
    let share = |label: &str| {
        let labels: Vec<bool> = text.lines().skip(1).map(|line| line.ends_with(label)).collect();
        100.0 * labels.iter().filter(|&&is| is).count() as f64 / labels.len() as f64
    };
    let score = rows.last().unwrap().score;
    assert!([share("good"), share("bad")].iter().any(|share| (share - score).abs() < 1e-9), "{score}");
    assert!(
        share("good") != share("bad") && rows[0].score > share("good").max(share("bad")),
        "{}",
        rows[0].score
    );
}

/// Scores on the masked model differ from those on the intact one, and so does what is masked next.
#[test]
fn recomputed_scores_change_the_order() {
    let (plain, again) = (folder(), folder());
    command(plain.path()).args(["--step-percent", "20"]).assert().success();
    command(again.path()).args(["--step-percent", "20", "--recompute"]).assert().success();
    let [plain, again] =
        [&plain, &again].map(|folder| rows::<PruningRow>(folder.path(), "iterative-prune.csv"));
    assert_eq!(plain[1].masked_heads, again[1].masked_heads, "nothing is masked yet");
    assert!(plain.iter().zip(&again).any(|(plain, again)| plain.masked_heads != again.masked_heads));
}

#[test]
fn a_killed_run_goes_on_to_the_file_of_an_unbroken_one() {
    let (unbroken, killed) = (folder(), folder());
    let arguments = [&ARGUMENTS[..], &["--order", "importance,random"]].concat();
    command(unbroken.path()).args(&arguments).assert().success();
    let lines = || fs::read_to_string(killed.path().join(TABLE)).map_or(0, |text| text.lines().count());
    kill_when("iterative-prune", &arguments, killed.path(), || lines() > 4);
    command(killed.path()).args(&arguments).args(["--threads", "1"]).assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
    command(killed.path()).args(&arguments).arg("--restart").assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
}

/// A table whose rows were of another order, as those of an oracle that was measured again would be.
#[test]
fn a_curve_of_another_order_is_not_gone_on_with() {
    let folder = folder();
    let path = folder.path().join(TABLE);
    command(folder.path()).args(["--step-percent", "50"]).assert().success();
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let middle = lines.remove(2);
    let (start, heads) = middle.rsplit_once(',').unwrap();
    let other = heads.split('+').skip(1).collect::<Vec<_>>().join("+");
    let forged = format!("{}\n{start},{other}\n", lines[..2].join("\n"));
    fs::write(&path, forged).unwrap();
    let message = refusal(folder.path(), &["--step-percent", "50"]);
    assert!(message.contains("step 1 of order importance masked other heads than now"), "{message}");
}

/// The first head of greedy search is the best single one on the split of the search; the row tells the test score.
#[test]
fn greedy_search_begins_with_the_best_single_head() {
    let folder = reviews();
    let search = ["--search", "greedy-forward", "--search-on", "dev", "--search-limit", "40"];
    let greedy = ["--step-percent", "1", "--search-percent", "60"];
    command(folder.path())
        .args(search)
        .args(greedy)
        .assert()
        .success()
        .stdout("results/tiny/joint-search.csv\n");
    let found: Vec<PruningRow> = rows(folder.path(), "joint-search.csv");
    // 6 heads, up to ⌈3.6⌉ of them
    assert_eq!(found.iter().map(|row| row.masked).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    ablate_one(folder.path(), &["--split", "dev"]); // all 40 reviews
    ablate_one(folder.path(), &[]);
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one-dev.csv");
    let best = single.iter().map(|row| row.score).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(found[1].search_score, Some(best));
    let on_test: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let name = |head: &AblationRow| format!("{}:{}:{}", head.attention, head.layer, head.head);
    let same = on_test.iter().find(|head| name(head) == found[1].masked_heads).unwrap();
    assert_eq!(found[1].score, same.score);
    let before = read(folder.path(), "results/tiny/joint-search.csv");
    command(folder.path()).args(search).args(greedy).assert().success();
    assert_eq!(read(folder.path(), "results/tiny/joint-search.csv"), before);
}

/// From the importance order on, the score on the split of the search can only rise; here it does.
#[test]
fn swap_search_improves_on_its_start() {
    let folder = folder();
    let search =
        ["--search", "swap", "--search-on", "dev", "--search-limit", "20", "--search-evaluations", "50"];
    command(folder.path()).args(search).assert().success();
    let found: Vec<PruningRow> = rows(folder.path(), "joint-search.csv");
    assert_eq!(found.iter().map(|row| row.masked).collect::<Vec<_>>(), [0, 9]);
    command(folder.path()).args(["--split", "dev"]).assert().success();
    let start: Vec<PruningRow> = rows(folder.path(), "iterative-prune-dev.csv");
    let start = start.iter().find(|row| row.masked == 9).unwrap().score;
    assert!(found[1].search_score.unwrap() > start, "{:?} after {start}", found[1].search_score);
    command(folder.path()).args(search).args(["--search-percent", "15"]).assert().success();
    let found: Vec<PruningRow> = rows(folder.path(), "joint-search.csv");
    assert_eq!(
        found.iter().map(|row| row.masked).collect::<Vec<_>>(),
        [0, 2, 9],
        "a smaller share has its row too"
    );
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let folder = folder();
    let usage = |arguments: &[&str], expected: &str| {
        command(folder.path()).args(arguments).assert().code(2).stderr(contains(expected));
    };
    usage(&["--order", "size"], "importance-entropy");
    usage(&["--step-percent", "0"], "1..=100");
    usage(&["--step-percent", "101"], "1..=100");
    usage(&["--entropy-weight", "2"], "from 0 to 1");
    usage(&["--search-on", "dev"], "--search");
    usage(&["--search", "swap", "--order", "entropy"], "--order");
    let message = refusal(folder.path(), &["--order", "importance,entropy,importance"]);
    assert_eq!(message, "error: an order is given twice in --order\n");
    let message = refusal(folder.path(), &["--attention", "all,all"]);
    assert_eq!(message, "error: a type is given twice in --attention\n");
    let message = refusal(folder.path(), &["--keep-at-least", "3"]);
    assert_eq!(message, "error: --keep-at-least 3 leaves nothing to mask: layers have 3 heads\n");
    usage(&["--search-limit", "9"], "--search");
    let message = refusal(folder.path(), &["--recompute", "--order", "random"]);
    assert!(message.contains("--recompute") && message.contains("random"), "{message}");
    let message = refusal(folder.path(), &["--estimate-on", "newstest"]);
    assert!(message.contains("no split `newstest`: this subject has train, dev, test, shifted"), "{message}");
    let message = refusal(folder.path(), &["--search", "swap", "--search-on", "test"]);
    assert!(message.contains("is the split that is scored"), "{message}");
}

/// Every layer's normalised scores have norm 1; the oracle's column follows when `ablate-one` has run.
#[test]
fn importance_has_a_row_for_each_head() {
    let folder = folder();
    let importance = || {
        let mut command = test_support::command("importance", folder.path());
        command.args(["--estimate-limit", "40"]).assert().success().stdout("results/tiny/importance.csv\n");
        rows::<ImportanceRow>(folder.path(), "importance.csv")
    };
    let before = importance();
    assert_eq!(before.len(), 18);
    assert!(before.iter().all(|row| row.oracle.is_none()));
    for layer in before.chunks(3) {
        for column in
            [|row: &ImportanceRow| row.example_normalised, |row: &ImportanceRow| row.token_normalised]
        {
            let norm: f64 = layer.iter().map(|row| column(row).powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-9, "{norm}");
        }
        assert!(layer.iter().all(|row| row.confidence > 0.0 && row.confidence <= 1.0 && row.entropy > 0.0));
    }
    ablate_one(folder.path(), &[]);
    let after = importance();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    for (row, head) in after.iter().zip(&single) {
        assert_eq!((&row.attention, row.layer, row.head), (&head.attention, head.layer, head.head));
        assert_eq!(row.oracle, Some(0.0 - head.score_delta));
    }
    assert!(before.iter().zip(&after).all(|(before, after)| before.example == after.example));
}

/// What a tool prints of an exported folder that a subject is made of.
fn scores_of(folder: &Path, export: &str, spec: &str) -> f64 {
    let checkpoint = format!("[checkpoint]\nfrom = \"{}\"\n", folder.join(export).display());
    let (without, _) = spec.split_once("[training]").unwrap();
    let (head, tail) = without.split_once("[model]").unwrap();
    let tail = tail.split_once("\n[").map_or(String::new(), |(_, tail)| format!("[{tail}"));
    let name = format!("{export}.toml");
    fs::write(folder.join(&name), format!("{head}{tail}{checkpoint}")).unwrap();
    let mut command = Command::cargo_bin("ablate-one").unwrap();
    command.current_dir(folder).args([&name, "--quiet", "--resamples", "0"]).assert().success();
    let path = folder.join(format!("results/{export}/ablate-one.csv"));
    let rows: Vec<AblationRow> =
        csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap();
    rows[0].base_score
}

/// Without retraining, the folder scores as the row of its heads says, read back as a checkpoint, in both forms.
#[test]
fn an_exported_model_scores_as_its_row() {
    let folder = reviews();
    let exports =
        ["--export", "cut", "--export-dense", "dense", "--export-percent", "50", "--step-percent", "25"];
    command(folder.path()).args(exports).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let row = rows.iter().find(|row| row.masked == 3).unwrap();
    let spec = CLASSIFIER.replace("[tokenizer]\nvocabulary = 60\n", "[tokenizer]\n");
    for export in ["cut", "dense"] {
        assert_eq!(scores_of(folder.path(), export, &spec), row.score, "{export}");
        let about = fs::read_to_string(folder.path().join(export).join("pruning.json")).unwrap();
        assert!(about.contains(&row.masked_heads), "{about}");
    }
    let kept = fs::read_to_string(folder.path().join("results/cut/ablate-one.csv")).unwrap();
    assert_eq!(kept.lines().count(), 1 + 3, "heads that are gone have no row: {kept}");
}

/// The classifier for tests leans on its heads: masking any of them at random costs it significantly, at the latest when
/// most are gone. Whatever the largest share is, the folder has it.
#[test]
fn the_largest_share_without_a_significant_loss_is_exported() {
    let folder = reviews();
    let steps = ["--step-percent", "10"];
    command(folder.path()).args(steps).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let is_loss = |row: &&PruningRow| row.score_delta < 0.0 && row.p_value.unwrap() < 0.01;
    let first_loss = rows.iter().position(|row| is_loss(&row)).unwrap_or(rows.len());
    let expected = &rows[first_loss.min(rows.len() - 1) - 1];
    let exported = command(folder.path()).args(steps).args(["--export", "best"]).output().unwrap();
    if expected.masked == 0 {
        let message = String::from_utf8(exported.stderr).unwrap();
        assert!(message.contains("no step removes heads without a significant loss"), "{message}");
        return;
    }
    assert!(exported.status.success());
    let config = fs::read_to_string(folder.path().join("best/config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let layers = config["pruned_heads"].as_object().unwrap();
    let removed: usize = layers.values().map(|heads| heads.as_array().unwrap().len()).sum();
    assert_eq!(removed, expected.masked);
}

#[test]
fn a_translator_is_exported_and_read_back() {
    let folder = folder();
    let exports = ["--export", "cut", "--export-percent", "50", "--step-percent", "50"];
    command(folder.path()).args(exports).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let spec = TRANSLATOR.replace("[tokenizer]\nvocabulary = 300\n", "");
    let (decoding, spec) = (spec.find("[decoding]").unwrap(), spec.clone());
    let reordered = format!("{}{}", &spec[..spec.find("[model]").unwrap()], &spec[decoding..]);
    let reordered = format!("{reordered}[model]\n[training]\n");
    assert_eq!(scores_of(folder.path(), "cut", &reordered), rows[1].score);
}

#[test]
fn exports_that_cannot_be_written_are_refused_before_any_work() {
    let folder = reviews();
    fs::create_dir(folder.path().join("taken")).unwrap();
    assert!(refusal(folder.path(), &["--export", "taken"]).contains("`taken` is there already"));
    let message = refusal(folder.path(), &["--export", "new", "--resamples", "0"]);
    assert!(message.contains("give --export-percent"), "{message}");
    let message = refusal(folder.path(), &["--export", "new", "--precision", "bf16"]);
    assert!(message.contains("exported in f32"), "{message}");
    assert!(refusal(folder.path(), &["--export-percent", "50"]).contains("needs --export"));
    let message = refusal(folder.path(), &["--export", "new", "--export-dense", "new"]);
    assert!(message.contains("give each its own"), "{message}");
    let steps = ["--step-percent", "50", "--export", "new", "--export-percent", "20"];
    let message = refusal(folder.path(), &steps);
    assert!(message.contains("no step masks 2 of 6 heads (20 %): the steps mask 3"), "{message}");
    assert!(
        refusal(folder.path(), &["--export", "new", "--rescale"]).contains("--rescale scores another model")
    );
    assert!(!folder.path().join(TABLE).exists() && !folder.path().join("new").exists());
}

/// Zeros cannot stand for weights that are not there.
#[test]
fn a_model_with_heads_cut_out_has_no_dense_form() {
    let folder = reviews();
    let exports = ["--export", "cut", "--export-percent", "50", "--step-percent", "50"];
    command(folder.path()).args(exports).assert().success();
    scores_of(folder.path(), "cut", &CLASSIFIER.replace("[tokenizer]\nvocabulary = 60\n", "[tokenizer]\n"));
    let mut command = Command::cargo_bin("iterative-prune").unwrap();
    command.current_dir(folder.path()).args(["cut.toml", "--quiet", "--step-percent", "50"]).args(ARGUMENTS);
    let message = test_support::refusal(command.args(["--export-dense", "dense", "--export-percent", "50"]));
    assert!(message.contains("has 3 heads cut out of its weights: a dense model"), "{message}");
}
