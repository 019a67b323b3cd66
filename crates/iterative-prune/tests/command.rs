//! The whole commands on subjects that train in a second.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::str::contains;
use records::{AblationRow, Measure, PruningRow, Row, ScoreRow, Signature, TestedRow};
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

/// The rows of a curve by its name, such as `all/importance` or `all/random-5`.
fn curve<'a>(rows: &'a [PruningRow], name: &str) -> Vec<&'a PruningRow> {
    rows.iter().filter(|row| row.family() == name).collect()
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
    let whole = ["importance", "entropy"].map(|order| curve(&rows, &format!("all/{order}")));
    let turned = ["importance", "entropy"].map(|order| curve(&rows, &format!("all/{order}/complement")));
    let random = [5, 6].map(|seed| curve(&rows, &format!("all/random-{seed}")));
    let floor = curve(&rows, "all/floor");
    assert_eq!((rows.len(), floor.len(), floor[0].masked), (6 * 11 + 1, 1, 18));
    for curve in whole.iter().chain(&turned).chain(&random) {
        // 18 heads: ⌈1.8⌉, ⌈3.6⌉ ..
        let masked: Vec<usize> = curve.iter().map(|row| row.masked).collect();
        assert_eq!(masked, [0, 2, 4, 6, 8, 9, 11, 13, 15, 17, 18]);
        assert_eq!((curve[0].score, curve[0].p_value), (curve[0].base_score, None));
        assert!(curve.windows(2).all(|pair| heads(pair[0]).is_subset(&heads(pair[1]))));
        assert!(curve[1..].iter().all(|row| row.p_adjusted.unwrap() >= row.p_value.unwrap()));
    }
    assert_ne!(random[0][5].masked_heads, random[1][5].masked_heads);
    for (curve, turned) in whole.iter().zip(&turned) {
        assert_eq!(curve[10].score, floor[0].score, "all heads masked");
        // 9 of 18 masked: what one side masks the other keeps
        assert!(heads(curve[5]).is_disjoint(&heads(turned[5])));
        assert!(heads(curve[10]).difference(&heads(curve[9])).all(|last| heads(turned[1]).contains(last)));
    }
}

/// One head masked is one row of `ablate-one`, which is measured as far as it is missing; the oracle's first head is the one
/// that costs least.
#[test]
fn the_first_step_is_a_row_of_ablate_one() {
    let folder = folder();
    ablate_one(folder.path(), &["--attention", "enc-enc"]);
    command(folder.path()).args(["--order", "oracle,importance", "--step-percent", "5"]).assert().success();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    assert_eq!(single.len(), 18);
    let pruned: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    for row in pruned.iter().filter(|row| row.masked == 1) {
        let head = single.iter().find(|head| head.name() == row.masked_heads).unwrap();
        assert_eq!((row.score, row.base_score), (head.score, head.base_score));
    }
    let first = curve(&pruned, "all/oracle")[1];
    assert!(single.iter().all(|head| head.score <= first.score), "{}", first.masked_heads);
}

#[test]
fn an_oracle_of_another_model_is_not_used() {
    let folder = folder();
    ablate_one(folder.path(), &[]);
    let path = folder.path().join("results/tiny/ablate-one.json");
    let mut signature: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    signature["identity"]["weights"] = "0123".into();
    fs::write(&path, signature.to_string()).unwrap();
    let before = read(folder.path(), "results/tiny/ablate-one.csv");
    let output = command(folder.path()).args(["--order", "oracle", "--step-percent", "50"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("is of another run (weights:"), "{said}");
    assert_eq!(read(folder.path(), "results/tiny/ablate-one.csv"), before);
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
        let curve = curve(&rows, &format!("{attention}/importance"));
        assert_eq!(
            curve.iter().map(|row| (row.masked, row.heads)).collect::<Vec<_>>(),
            [(0, 6), (3, 6), (6, 6)]
        );
        assert!(heads(curve[2]).iter().all(|name| name.starts_with(attention)));
    }
    assert_eq!(curve(&rows, "all/importance").len(), 3);
}

#[test]
fn layers_keep_their_heads_and_scores_can_be_taken_again() {
    let folder = folder();
    let arguments = ["--recompute", "--keep-at-least", "1", "--step-percent", "25"];
    command(folder.path()).args(arguments).assert().success();
    let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
    let (curve, turned) = (curve(&rows, "all/importance"), curve(&rows, "all/importance/complement"));
    for curve in [&curve, &turned] {
        assert_eq!(curve.iter().map(|row| row.masked).collect::<Vec<_>>(), [0, 5, 9, 12]);
    }
    let last = heads(curve[3]);
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
    let score = curve(&rows, "all/floor")[0].score;
    assert!([share("good"), share("bad")].iter().any(|share| (share - score).abs() < 1e-9), "{score}");
    assert!(
        share("good") != share("bad") && rows[0].base_score > share("good").max(share("bad")),
        "{}",
        rows[0].base_score
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
    let [plain, again] = [&plain, &again].map(|rows| curve(rows, "all/importance"));
    assert_eq!(plain[1].masked_heads, again[1].masked_heads, "nothing is masked yet");
    assert!(plain.iter().zip(&again).any(|(plain, again)| plain.masked_heads != again.masked_heads));
}

#[test]
fn a_killed_run_goes_on_to_the_file_of_an_unbroken_one() {
    let (unbroken, killed) = (folder(), folder());
    let arguments = [&ARGUMENTS[..], &["--order", "importance,random"]].concat();
    command(unbroken.path()).args(&arguments).assert().success();
    let growing = killed.path().join(TABLE.replace(".csv", ".partial.csv"));
    let lines = || fs::read_to_string(&growing).map_or(0, |text| text.lines().count());
    kill_when("iterative-prune", &arguments, killed.path(), || lines() > 4);
    command(killed.path()).args(&arguments).args(["--threads", "1"]).assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
    command(killed.path()).args(&arguments).arg("--again").assert().success();
    assert_eq!(read(killed.path(), TABLE), read(unbroken.path(), TABLE));
}

/// Rows of an unfinished run that were of another order, as those of an oracle that was measured again would be.
#[test]
fn a_curve_of_another_order_is_not_continued() {
    let folder = folder();
    let steps = [&ARGUMENTS[..], &["--step-percent", "20"]].concat();
    let growing = folder.path().join(TABLE.replace(".csv", ".partial.csv"));
    let lines = || fs::read_to_string(&growing).map_or(0, |text| text.lines().count());
    kill_when("iterative-prune", &steps, folder.path(), || lines() > 3);
    let text = fs::read_to_string(&growing).unwrap();
    let mut forged: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = forged.iter().position(|line| line.contains('+')).unwrap();
    let (start, heads) = forged[line].rsplit_once(',').unwrap();
    forged[line] = format!("{start},{}", heads.split('+').skip(1).collect::<Vec<_>>().join("+"));
    fs::write(&growing, forged.join("\n") + "\n").unwrap();
    let message = refusal(folder.path(), &["--step-percent", "20"]);
    assert!(message.contains("masked other heads than now"), "{message}");
}

#[test]
fn shares_are_said_again_with_other_tests() {
    let folder = folder();
    command(folder.path()).args(["--step-percent", "50"]).assert().success();
    let said = |settings: [&str; 2]| {
        let mut command = Command::cargo_bin("retest").unwrap();
        let output = command.current_dir(folder.path()).arg(TABLE).args(settings).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let all = said(["--margin", "100"]);
    assert!(all.contains("results/tiny/iterative-prune.csv: 7 rows"), "{all}");
    assert!(all.contains("all/importance: 100.0 % of heads shown to be safe to mask"), "{all}");
    assert!(!all.contains("complement") && !all.contains("floor"), "{all}");
    let untested = said(["--resamples", "0"]);
    assert!(
        untested.contains("all/importance: 0.0 % of heads shown to be safe to mask, 0.0 %"),
        "{untested}"
    );
}

/// A result file that somebody changed is not tested, drawn from or continued.
#[test]
fn an_edited_file_is_named() {
    let folder = folder();
    command(folder.path()).args(["--step-percent", "50"]).assert().success();
    let path = folder.path().join(TABLE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("importance", "entropy", 1)).unwrap();
    let message = refusal(folder.path(), &["--step-percent", "50"]);
    assert!(message.contains("iterative-prune.csv` was edited, or mixed"), "{message}");
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
    let same = on_test.iter().find(|head| head.name() == found[1].masked_heads).unwrap();
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
    let start = curve(&start, "all/importance")[5].score;
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

/// Every layer's normalised scores have norm 1; the oracle follows when `ablate-one` has run.
#[test]
fn importance_has_a_row_for_each_head_and_measure() {
    let folder = folder();
    let importance = || {
        let mut command = test_support::command("importance", folder.path());
        command.args(["--estimate-limit", "40"]).assert().success().stdout("results/tiny/importance.csv\n");
        rows::<ScoreRow>(folder.path(), "importance.csv")
    };
    let of = |rows: &[ScoreRow], measure: Measure| {
        let own = rows.iter().filter(|row| row.measure == measure);
        own.map(|row| row.value).collect::<Vec<_>>()
    };
    let before = importance();
    for measure in Measure::ALL {
        let heads = if measure == Measure::Oracle { 0 } else { 18 };
        assert_eq!(of(&before, measure).len(), heads, "{measure}");
    }
    for measure in [Measure::ExampleNormalised, Measure::TokenNormalised] {
        for layer in of(&before, measure).chunks(3) {
            let norm: f64 = layer.iter().map(|value| value.powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-9, "{norm}");
        }
    }
    assert!(of(&before, Measure::Confidence).iter().all(|&value| value > 0.0 && value <= 1.0));
    assert!(of(&before, Measure::Entropy).iter().all(|&value| value > 0.0));
    ablate_one(folder.path(), &[]);
    let after = importance();
    let single: Vec<AblationRow> = rows(folder.path(), "ablate-one.csv");
    let lost: Vec<f64> = single.iter().map(|row| 0.0 - row.score_delta).collect();
    assert_eq!(of(&after, Measure::Oracle), lost);
    let (lost, measured): (Vec<_>, Vec<_>) =
        after.into_iter().partition(|row| row.measure == Measure::Oracle);
    assert_eq!((lost.len(), measured), (18, before));
    assert_eq!(importance().len(), 18 * Measure::ALL.len());
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
    let row = curve(&rows, "all/importance").into_iter().find(|row| row.masked == 3).unwrap();
    let spec = CLASSIFIER.replace("[tokenizer]\nvocabulary = 60\n", "[tokenizer]\n");
    for export in ["cut", "dense"] {
        assert_eq!(scores_of(folder.path(), export, &spec), row.score, "{export}");
        let about = fs::read_to_string(folder.path().join(export).join("pruning.json")).unwrap();
        assert!(about.contains(&row.masked_heads), "{about}");
    }
    let kept = fs::read_to_string(folder.path().join("results/cut/ablate-one.csv")).unwrap();
    assert_eq!(kept.lines().count(), 1 + 3, "heads that are gone have no row: {kept}");
}

/// Whatever share is shown to be safe at a margin, the folder has it; where none is, nothing is exported.
#[test]
fn the_largest_share_that_is_shown_to_be_safe_is_exported() {
    let folder = reviews();
    let mut exported = 0;
    for margin in ["0", "2", "10", "30"] {
        let settings = ["--step-percent", "10", "--margin", margin, "--replace"];
        let output = command(folder.path()).args(settings).args(["--export", "best"]).output().unwrap();
        let rows: Vec<PruningRow> = rows(folder.path(), "iterative-prune.csv");
        let steps = curve(&rows, "all/importance");
        let percent: f64 = margin.parse().unwrap();
        let is_safe = |row: &&&PruningRow| {
            row.masked == 0 || row.masked < 6 && row.delta_low.unwrap() >= -percent / 100.0 * row.base_score
        };
        let expected = steps.iter().take_while(is_safe).last().unwrap();
        if expected.masked == 0 {
            let message = String::from_utf8(output.stderr).unwrap();
            assert!(message.contains("no step is shown to be safe"), "{message}");
            continue;
        }
        assert!(output.status.success());
        exported += 1;
        let config = fs::read_to_string(folder.path().join("best/config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let layers = config["pruned_heads"].as_object().unwrap();
        let removed: usize = layers.values().map(|heads| heads.as_array().unwrap().len()).sum();
        assert_eq!(removed, expected.masked, "margin {margin}");
        let about = Signature::read(&folder.path().join("best/pruning.json")).unwrap().unwrap();
        assert_eq!(about.testing.unwrap().margin_percent, percent);
    }
    assert!(exported > 0, "at some margin a head can go");

    // the margin of the results, which is that of the last run, holds until another is given
    let steps = ["--step-percent", "10", "--export", "as-before"];
    command(folder.path()).args(steps).assert().success();
    let config = |export: &str| fs::read(folder.path().join(export).join("config.json")).unwrap();
    assert_eq!(config("as-before"), config("best"));
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
    assert_eq!(scores_of(folder.path(), "cut", &reordered), curve(&rows, "all/importance")[1].score);
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
