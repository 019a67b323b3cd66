//! The preset `compare-methods` on setups that train in a second.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use records::{AblationRow, Cost, CurveRow, HeadSet, Order, Repair, Signature, TestedRow};
use test_support::{CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, read, refuses, rows, with_model};

const TABLE: &str = "compare-methods.csv";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = test_support::command("iterative-prune", folder);
    command.args(["--resamples", "99", "--estimate-limit", "30"]).args(arguments);
    command
}

fn compare(folder: &Path, arguments: &[&str]) -> Command {
    command(folder, &[&["--preset", "compare-methods"][..], arguments].concat())
}

fn scores<'a>(rows: impl Iterator<Item = &'a CurveRow>) -> BTreeMap<String, u64> {
    let is_meant = |row: &&CurveRow| row.masked > 0 && row.masked < row.heads && row.order != "floor";
    rows.filter(is_meant)
        .map(|row| (format!("{}: {}", row.curve(), row.masked_heads), row.score.to_bits()))
        .collect()
}

/// Rows without repair and rows with mean repair equal the rows that plain and mean-ablated `iterative-prune` gives.
#[test]
fn repairs_equal_those_of_other_programs() {
    let folder = with_model(CLASSIFIER);
    let folder = folder.path();
    let shared = ["--order", "importance,entropy,random", "--random-orders", "2", "--step-percent", "25"];
    let mut all = compare(folder, &[&shared[..], &["--repair", "none,mean,least-squares"]].concat());
    all.assert().success().stdout("results/tiny/compare-methods.csv\n");
    let found: Vec<CurveRow> = rows(folder, TABLE);
    let of = |repair: Repair| -> Vec<CurveRow> {
        found.iter().filter(|row| row.repair == Some(repair)).cloned().collect()
    };
    assert_eq!(Repair::ALL.map(|repair| of(repair).len()), [15, 15, 15, 0], "5 methods, 3 steps");
    let own = |repair| scores(of(repair).iter());
    let alone: [(Repair, &[&str], &str); 2] = [
        (Repair::None, &[], "iterative-prune.csv"),
        (Repair::Mean, &["--ablation", "mean", "--reference-limit", "30"], "iterative-prune-mean.csv"),
    ];
    for (repair, arguments, file) in alone {
        command(folder, &[&shared[..], arguments].concat()).assert().success();
        let other: Vec<CurveRow> = rows(folder, file);
        let (own, other) = (own(repair), scores(other.iter()));
        assert!(own.iter().all(|row| other.get(row.0) == Some(row.1)), "{repair}: {own:?} but {other:?}");
    }
    let costs = |order: &str| {
        let row = found.iter().find(|row| row.order == *order).unwrap();
        (row.cost().forward, row.cost().backward)
    };
    assert_eq!(["importance", "entropy", "random"].map(costs), [(30, 30), (30, 0), (0, 0)]);
    let before = read(folder, "results/tiny/compare-methods.csv");
    all.assert().success();
    assert_eq!(read(folder, "results/tiny/compare-methods.csv"), before);
}

/// The comparison includes all rankings and searches that the setup allows, and the oracle on the split on which heads are chosen.
#[test]
fn all_methods_are_compared_on_each_task() {
    for (subject, modules, follows_relevance) in [(TRANSLATOR, 3, true), (LANGUAGE_MODEL, 1, false)] {
        let folder = with_model(subject);
        let mut arguments = vec!["--random-orders", "1", "--step-percent", "50", "--limit", "first:6"];
        arguments.extend(["--search-limit", "3", "--evaluations", "4"]);
        compare(folder.path(), &arguments).assert().success();
        let found: Vec<CurveRow> = rows(folder.path(), "compare-methods-first-6.csv");
        let methods: BTreeSet<&str> = found.iter().map(|row| row.order.name()).collect();
        assert_eq!(found.len(), 3 * (methods.len() + 1), "and the complement of importance");
        let is_left_out =
            |name: &str| name == "logit-attribution" || name == "relevance" && !follows_relevance;
        let expected: BTreeSet<&str> =
            Order::all().iter().map(|order| order.name()).filter(|name| !is_left_out(name)).collect();
        assert_eq!(methods, expected);
        let modules_of = |order: &str| {
            let row = found.iter().find(|row| row.order == *order).unwrap();
            row.masked_heads.parse::<HeadSet>().unwrap().iter().map(|id| id.module()).collect::<Vec<_>>()
        };
        assert_eq!(modules_of("fisher-rearranged"), modules_of("fisher-batches"));
        let masked = BTreeSet::from_iter(modules_of("modules-by-similarity"));
        assert_eq!(masked.len(), modules, "half of them");
        let differ = |repair| {
            let own =
                |repair| found.iter().filter(move |row| row.repair == Some(repair)).map(|row| row.score);
            own(repair).zip(own(Repair::None)).any(|(repaired, plain)| repaired != plain)
        };
        assert!(differ(Repair::Mean) && differ(Repair::LeastSquares));
    }
}

/// Each curve with further training has the fine-tuned baseline as step 0.
#[test]
fn training_has_a_control() {
    let folder = with_model(CLASSIFIER);
    let methods = ["--method", "importance,importance-recomputed", "--step-percent", "50"];
    compare(folder.path(), &[&methods[..], &["--repair", "none,training"]].concat()).assert().success();
    let found: Vec<CurveRow> = rows(folder.path(), TABLE);
    let trained: Vec<_> = found.iter().filter(|row| row.repair == Some(Repair::Training)).collect();
    assert_eq!((found.len(), trained.len()), (9, 6), "importance, its complement and recomputed");
    let controls: Vec<_> = trained.iter().filter(|row| row.step == 0).collect();
    assert_eq!(controls.len(), 3);
    assert!(controls.iter().all(|row| row.updates > Some(0) && row.score == controls[0].score));
}

/// Recomputed importance masks the heads that `iterative-prune --recompute` masks and needs one more pass per step. The oracle with mean
/// ablation starts with the two heads whose masking costs least in its sweep.
#[test]
fn choices_equal_those_of_other_programs() {
    let folder = with_model(CLASSIFIER);
    let folder = folder.path();
    let arguments = ["--method", "importance-recomputed,oracle-mean", "--repair", "none"];
    compare(folder, &arguments).assert().success();
    let found: Vec<CurveRow> = rows(folder, TABLE);
    let of = |order: &str| found.iter().filter(|row| row.order == *order).collect::<Vec<_>>();
    command(folder, &["--recompute", "--step-percent", "25"]).assert().success();
    let other: Vec<CurveRow> = rows(folder, "iterative-prune.csv");
    let other: Vec<_> = other.iter().filter(|row| !row.complement && row.order == *"importance").collect();
    for (place, row) in of("importance-recomputed").into_iter().enumerate() {
        assert_eq!(row.masked_heads, other[place + 1].masked_heads);
        let passes = Some(30 * (place + 1));
        assert_eq!((row.forward, row.backward), (passes, passes));
    }
    let files = fs::read_dir(folder.join("results/tiny")).unwrap();
    let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let sweep = names.find(|name| name.contains("mean") && name.ends_with(".csv")).unwrap();
    let mut sweep: Vec<AblationRow> = rows(folder, &sweep);
    sweep.sort_by(|one, other| other.gain().total_cmp(&one.gain()));
    let least: HeadSet = sweep[..2].iter().map(|row| row.head_id()).collect();
    assert_eq!(of("oracle-mean")[0].masked_heads, least.names());
}

/// Searches mask 2, 3 and 5 of 6 heads: by scoring sets on 30 segments, or by training only gates, which leaves the weights unchanged.
/// Heads are not chosen again for another repair.
#[test]
fn sets_are_searched_for_and_trained_for_once() {
    let folder = with_model(CLASSIFIER);
    let folder = folder.path();
    let methods = "greedy-forward,swap,gates,subset-pruning,subset-straight-through";
    let choose = |repair| {
        let arguments =
            ["--method", methods, "--step-percent", "25", "--evaluations", "7", "--repair", repair];
        compare(folder, &arguments).assert().success();
        rows::<CurveRow>(folder, TABLE)
    };
    let found = choose("none");
    let of = |order: &str| found.iter().filter(|row| row.order == *order).collect::<Vec<_>>();
    for order in methods.split(',') {
        let counts = of(order).iter().map(|row| row.masked_heads.split('+').count()).collect::<Vec<_>>();
        assert_eq!(counts, [2, 3, 5], "{order}");
    }
    // each of the remaining 6, 5, ... heads is tried in addition to those chosen
    let greedy = [6 + 5, 6 + 5 + 4, 6 + 5 + 4 + 3 + 2].map(|sets| (30 + 30 * sets, 30, 0));
    let costs = |row: &&CurveRow| {
        let Cost { forward, backward, updates } = row.cost();
        (forward, backward, updates)
    };
    assert_eq!(of("greedy-forward").iter().map(costs).collect::<Vec<_>>(), greedy);
    assert!(of("swap").iter().all(|row| (61..=30 + 7 * 30).contains(&row.cost().forward)));
    let (_, read, updates) = costs(&of("gates")[0]);
    for order in ["gates", "subset-pruning", "subset-straight-through"] {
        let is_equal = of(order).iter().all(|row| costs(row) == (read, read, updates));
        assert!(updates > 0 && read >= updates && is_equal, "{order}");
    }
    let (models, tuned) = (folder.join("data/models"), folder.join("data/models/tiny.tuned"));
    let before = fs::read(models.join("tiny/model.safetensors")).unwrap();
    let trained: Vec<_> = fs::read_dir(&tuned).unwrap().map(|entry| entry.unwrap().path()).collect();
    let trained: Vec<_> = trained.iter().filter(|path| path.is_dir()).collect();
    assert_eq!(trained.len(), 9);
    assert!(trained.iter().all(|folder| fs::read(folder.join("model.safetensors")).unwrap() == before));

    fs::remove_dir_all(&tuned).unwrap();
    let again = choose("mean");
    assert!(!tuned.exists() && again.len() == 30);
    for row in &again {
        let same = |other: &&CurveRow| other.order == row.order && other.step == row.step;
        let other = found.iter().find(same).unwrap();
        assert_eq!((&row.masked_heads, costs(&row)), (&other.masked_heads, costs(&other)));
    }
    let signature = Signature::read(&folder.join("results/tiny/compare-methods.json")).unwrap().unwrap();
    let timed = signature.runs.iter().map(|run| run.choosing_seconds.len()).collect::<Vec<_>>();
    assert_eq!(timed, [5, 0], "what was not chosen again took no time");
}

#[test]
fn invalid_comparisons_are_refused() {
    let folder = with_model(LANGUAGE_MODEL);
    for (arguments, expected) in [
        (&["--shard", "1/2"][..], "repairs cannot be split into shards"),
        (&["--order", "logit-attribution"], "choices"),
        (&["--method", "relevance"], "relevance propagation supports only translators"),
    ] {
        refuses(&mut compare(folder.path(), arguments), expected);
    }
    let model = LANGUAGE_MODEL.find("[model]").unwrap();
    let given = format!("{}[checkpoint]\nfrom = \"models/tiny\"\n", &LANGUAGE_MODEL[..model]);
    fs::write(folder.path().join("tiny.toml"), given).unwrap();
    let methods = ["--method", "swap,subset-pruning"];
    refuses(&mut compare(folder.path(), &methods), "leave subset-pruning out of --order");
}
