//! Rows that are computed again, and complete rows that no command may lose.
use super::*;

/// Until a run has something to put in its place, an unfinished one stays; then not a row of it does.
#[test]
fn an_unfinished_run_is_replaced_by_the_first_row_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut unfinished = opened(&path, 2, Existing::Use);
    push_missing(&mut unfinished, &work()[..2]);
    drop(unfinished);
    let before = fs::read(growing(&path)).unwrap();
    drop(opened(&path, 1, Existing::Again));
    assert_eq!(fs::read(growing(&path)).unwrap(), before);
    let mut again = opened(&path, 1, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    assert_eq!(bytes(&path), unbroken());
}

/// Rows that were begun by a run that used old ones are not taken for new ones, and what was not asked for stays.
#[test]
fn computing_again_takes_no_row_of_a_run_that_used_old_ones_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    let mut used = opened(&path, 1, Existing::Use);
    push_missing(&mut used, &work()[..3]);
    drop(used); // interrupted
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-enc");
    assert_eq!(again.rows().collect::<Vec<_>>(), [&row("enc-dec", 1)]);
    assert!(again.add_base(&COLUMNS, block(BASE, 4)).is_err());
    again.renew(|_| true);
    assert_eq!(again.rows().len(), 0);
    again.add_base(&COLUMNS, block(BASE, 4)).unwrap(); // as on another machine
    drop(again); // killed before its first row
    let mut elsewhere = opened(&path, 1, Existing::Use);
    elsewhere.add_base(&COLUMNS, block(BASE, 0)).unwrap();
}

#[test]
fn rows_without_statistics_are_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut writer = opened(&path, 1, Existing::Use);
    push_missing(&mut writer, &work()[..2]);
    let before = fs::read(&Place::partial(&path).segments).unwrap();
    push_missing(&mut writer, &work()[..3]);
    drop(writer);
    fs::write(Place::partial(&path).segments, before).unwrap();
    assert_eq!(opened(&path, 1, Existing::Use).rows().len(), 2);
    run(&path, &work());
    assert_eq!(bytes(&path), unbroken());
}

/// The new model's rows are of one family; those of the other, of the old model, get a name of their own.
#[test]
fn replacing_results_of_another_run_keeps_rows_that_have_no_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let old = bytes(&path);
    let mut again = opened(&path, 2, Existing::Again);
    push_missing(&mut again, &work()[..2]);
    finish(again);
    assert_eq!(read_rows::<AblationRow>(&path).unwrap().len(), 2);
    let own = signature(1).identity.own_path(&path);
    assert_eq!(bytes(&own), old);
    assert!(Signature::read(&Signature::path_beside(&own)).unwrap().is_some());
    fs::remove_file(&own).unwrap();

    let mut again = opened(&path, 3, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    assert!(!signature(2).identity.own_path(&path).exists(), "all its rows have successors");
}

#[test]
fn a_growing_file_is_no_result_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.partial.csv");
    assert!(refusal(&path, &signature(1)).contains("not in `.partial.csv`"));
}

#[test]
fn testing_again_keeps_the_names_of_all_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    run(&path, &work());
    let runs = || Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
    let before = runs();
    assert_eq!(before.len(), 2);
    for seed in [3, 4] {
        let mut writer = Writer::revise(&path).unwrap();
        let testing = crate::Testing { resamples: 5, seed, margin_percent: 2.0 };
        writer.signature_mut().testing = Some(testing);
        writer.finish(|_, _| Ok::<(), Error>(())).unwrap();
        assert_eq!(runs(), before);
    }
    let forged = Signature::path_beside(&path);
    let text = fs::read_to_string(&forged).unwrap().replace("\"resamples\": 5", "\"resamples\": 1000001");
    fs::write(&forged, text).unwrap();
    let error = Writer::revise(&path).unwrap_err().to_string();
    assert!(error.contains("asks for 1000001 resamples") && error.contains("at most 1000000"), "{error}");
}

fn interrupted_renewal(path: &Path) {
    run(path, &work());
    let mut again = opened(path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-enc");
    push_missing(&mut again, &work()[..1]);
}

/// The rows that the unfinished run was to compute again have no successors yet.
#[test]
fn a_plain_run_after_an_interrupted_renewal_loses_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    interrupted_renewal(&path);
    let mut plain = opened(&path, 1, Existing::Use);
    push_missing(&mut plain, &[row("enc-dec", 1)]);
    assert_eq!(finish(plain).len(), 4);
    assert_eq!(bytes(&path), unbroken());
    let runs = Signature::read(&Signature::path_beside(&path)).unwrap().unwrap().runs;
    let rows: Vec<Vec<String>> = runs.into_iter().map(|run| run.rows).collect();
    assert_eq!(rows, [vec!["enc-dec:1:1", "enc-dec:1:2", "enc-enc:1:2"], vec!["enc-enc:1:1"]]);
}

#[test]
fn a_second_renewal_computes_what_it_was_asked_for_and_keeps_what_the_first_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    interrupted_renewal(&path);
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|row| row.attention == "enc-dec");
    assert_eq!(again.rows().collect::<Vec<_>>(), [&row("enc-enc", 1)]);
    push_missing(&mut again, &work()[2..]);
    assert_eq!(finish(again).len(), 4);
    assert_eq!(bytes(&path), unbroken());
}

/// Rows of two bases cannot be tested together.
#[test]
fn rows_of_another_base_are_kept_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|_| true);
    again.add_base(&COLUMNS, block(BASE, 4)).unwrap(); // as on another machine
    add(&mut again, row("enc-enc", 1)).unwrap();
    assert_eq!(finish(again).len(), 1);
    assert_eq!(bytes(&folder.path().join("ablate-one.old.csv")), unbroken());
}

/// A discarded row must not come back, wherever the run that discarded it was killed.
#[test]
fn discarded_rows_stay_away_without_a_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let mut writer = opened(&path, 1, Existing::Use);
    writer.discard(|row| row.head == 2).unwrap();
    push_missing(&mut writer, &[row("dec-dec", 1)]);
    drop(writer); // interrupted
    let mut writer = opened(&path, 1, Existing::Use);
    writer.discard(|row| row.attention == "enc-dec").unwrap();
    drop(writer); // interrupted
    assert_eq!(finish(opened(&path, 1, Existing::Use)).len(), 2);
    assert_eq!(names(folder.path()).len(), 3, "nothing is spared that was discarded");
}

#[test]
fn no_spared_file_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let own = signature(1).identity.own_path(&path);
    run(&own, &work()[..1]);
    let there = bytes(&own);
    run(&path, &work());
    let mut again = opened(&path, 2, Existing::Again);
    push_missing(&mut again, &work()[..2]);
    finish(again);
    assert_eq!(bytes(&own), there);
    let second = own.with_file_name(format!("{}-2.csv", own.file_stem().unwrap().to_str().unwrap()));
    assert_eq!(bytes(&second), unbroken());
    assert!(Signature::path_beside(&second).exists());
}

/// Edited, of an older version, without its statistics, or without any: what is not computed again is kept.
#[test]
fn results_that_cannot_be_used_any_more_are_kept_under_another_name() {
    let edits: [fn(&Path); 4] = [
        |path| {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replacen("36.05", "37.05", 1)).unwrap();
        },
        |path| fs::write(path, "attention,layer\nself,1\n").unwrap(),
        |path| fs::remove_file(Blocks::path_beside(path)).unwrap(),
        |path| {
            let stored = Signature::read(&Signature::path_beside(path)).unwrap().unwrap();
            Signature { measured: None, ..stored }.write(&Signature::path_beside(path)).unwrap();
        },
    ];
    for (number, edit) in edits.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let old = folder.path().join("ablate-one.old.csv");
        fs::write(&old, "another").unwrap();
        run(&path, &work());
        edit(&path);
        let before = fs::read(&path).unwrap();
        let mut again = opened(&path, 1, Existing::Again);
        again.renew(|row| row.attention == "enc-enc");
        push_missing(&mut again, &work()[..2]);
        assert_eq!(finish(again).len(), 2, "edit {number}");
        assert_eq!(fs::read(folder.path().join("ablate-one.old-2.csv")).unwrap(), before, "edit {number}");
        assert!(folder.path().join("ablate-one.old-2.json").exists(), "edit {number}");
        assert_eq!(fs::read(&old).unwrap(), b"another");
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken(), "edit {number}");
    }
}

#[test]
fn results_without_statistics_are_refused_where_they_are_to_be_tested() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let unmeasured = |path: &Path| {
        let stored = Signature::read(path).unwrap().unwrap();
        Signature { measured: None, ..stored }.write(path).unwrap();
    };
    let mut unfinished = opened(&path, 1, Existing::Use);
    push_missing(&mut unfinished, &work()[..1]);
    drop(unfinished);
    unmeasured(&Place::partial(&path).signature);
    let error = refusal(&path, &signature(1));
    assert!(error.contains("ablate-one.partial.csv` has no statistics of segments"), "{error}");
    let mut again = opened(&path, 1, Existing::Again);
    push_missing(&mut again, &work());
    finish(again);
    unmeasured(&Signature::path_beside(&path));
    let error = refusal(&path, &signature(1));
    assert!(error.contains("ablate-one.csv` has no statistics of segments"), "{error}");
    assert!(error.ends_with("--again measures it anew"), "{error}");
}

/// One command: what it computes, and after how many rows it is killed, if it is.
#[derive(Debug, Clone)]
struct Invocation {
    existing: Existing,
    attention: Vec<&'static str>,
    killed_after: Option<usize>,
}

/// What is known of the growing file.
#[derive(Debug, Clone, Default)]
struct Growing {
    is_renewal: bool,
    there: BTreeSet<String>,
    new: BTreeSet<String>,
}

/// Carries a command out and checks that it computes what it must, and not more.
fn carry_out(command: &Invocation, path: &Path, growing: &mut Option<Growing>) {
    let stored = || read_rows::<AblationRow>(path).unwrap_or_default();
    let complete: BTreeSet<String> = stored().iter().map(Row::name).collect();
    let is_again = command.existing == Existing::Again;
    let is_asked_for = |row: &AblationRow| command.attention.contains(&row.attention.name());
    let mut now = growing.clone().unwrap_or(Growing { there: complete.clone(), ..Growing::default() });
    if is_again && !now.is_renewal {
        now = Growing { is_renewal: true, new: BTreeSet::new(), ..now };
    }
    let untouched = now.clone();
    let work: Vec<AblationRow> = work().into_iter().filter(is_asked_for).collect();
    if is_again {
        now.there.retain(|name| now.new.contains(name) || !work.iter().any(|row| row.name() == *name));
    }
    let missing: Vec<AblationRow> = work.into_iter().filter(|row| !now.there.contains(&row.name())).collect();
    let killed_after = command.killed_after.unwrap_or(missing.len());

    let mut writer = opened(path, 1, command.existing);
    writer.renew(is_asked_for);
    for row in missing.iter().take(killed_after) {
        assert!(!writer.contains(&row.key()), "{command:?} does not compute {}", row.name());
        writer.add_base(&COLUMNS, block(BASE, 0)).unwrap();
        add(&mut writer, row.clone()).unwrap();
        now.there.insert(row.name());
        now.new.insert(row.name());
    }
    let there: BTreeSet<String> = writer.rows().map(Row::name).collect();
    assert_eq!(there, now.there, "{command:?}");
    if command.killed_after.is_none() {
        if !there.is_empty() || !complete.is_empty() {
            finish(writer);
        }
        *growing = None;
    } else if killed_after.min(missing.len()) > 0 {
        *growing = Some(now);
    } else if growing.is_some() {
        *growing = Some(untouched);
    }
    let left: BTreeSet<String> = stored().iter().map(Row::name).collect();
    assert!(complete.is_subset(&left), "{command:?} lost a row");
}

fn commands() -> impl proptest::strategy::Strategy<Value = Vec<Invocation>> {
    use proptest::prelude::*;
    let attention = proptest::sample::subsequence(vec!["enc-enc", "enc-dec"], 1..=2);
    let one = (any::<bool>(), attention, proptest::option::of(0..4_usize));
    let command = one.prop_map(|(is_again, attention, killed_after)| Invocation {
        existing: if is_again { Existing::Again } else { Existing::Use },
        attention,
        killed_after,
    });
    proptest::collection::vec(command, 1..8)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn no_sequence_of_commands_loses_a_row(commands in commands()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablate-one.csv");
        let mut growing = None;
        for command in &commands {
            carry_out(command, &path, &mut growing);
        }
        run(&path, &work());
        assert_eq!(bytes(&path), unbroken());
        assert_eq!(names(folder.path()).len(), 3, "{:?}", names(folder.path()));
    }
}
