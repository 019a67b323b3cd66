//! What a writer refuses, and what it leaves alone.
use super::*;

#[test]
fn edited_results_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let [rows, segments] = bytes(&path);
    fs::write(&path, String::from_utf8(rows.clone()).unwrap().replace("36.05", "37.05")).unwrap();
    assert!(refusal(&path, &signature(1)).contains("ablate-one.csv` was edited"));
    fs::write(&path, rows).unwrap();
    fs::write(Blocks::path_beside(&path), &segments[..segments.len() - 1]).unwrap();
    assert!(refusal(&path, &signature(1)).contains("segments.csv.gz` was edited"));
}

#[test]
fn another_base_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work()[..2]);
    let mut writer = opened(&path, 1, Existing::Use);
    let error = writer.add_base(&COLUMNS, block(BASE, 1)).unwrap_err().to_string();
    assert!(error.contains("differs in 6 of 40 segments"), "{error}");
}

#[test]
fn duplicates_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let mut writer = opened(&path, 1, Existing::Use);
    push_missing(&mut writer, &[row("enc-enc", 1)]);
    let error = add(&mut writer, row("enc-enc", 1)).unwrap_err().to_string();
    assert!(error.contains("has a row for (\"enc-enc\", 1, 1, \"bleu\") already"), "{error}");
    assert_eq!(finish(writer).len(), 1);
}

#[test]
fn rows_of_another_run_are_refused_unless_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let error = refusal(&path, &signature(2));
    assert!(error.contains("belongs to another run (seed: 1 in the file, 2 now)"), "{error}");
    assert_eq!(bytes(&path), unbroken(), "a refused file was changed");
    assert_eq!(names(folder.path()).len(), 3, "a refusal left a file");

    let mut unfinished = opened(&path, 2, Existing::Again);
    push_missing(&mut unfinished, &work()[..1]);
    drop(unfinished);
    let mut again = opened(&path, 1, Existing::Again);
    again.renew(|_| true);
    assert_eq!(again.rows().len(), 0);
}

#[test]
fn rows_without_a_signature_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    fs::remove_file(Signature::path_beside(&path)).unwrap();
    for existing in [Existing::Use, Existing::Again] {
        let error = Writer::open(&path, &signature(1), existing).unwrap_err().to_string();
        assert!(error.contains("has rows, but its signature `"), "{error}");
    }
    assert!(Writer::revise(&path).is_err());
}

#[test]
fn without_rows_there_is_nothing_to_protect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    drop(opened(&path, 1, Existing::Use));
    assert!(names(folder.path()).is_empty(), "a run that added nothing left a trace");
    fs::write(&path, header::<AblationRow>()).unwrap();
    signature(2).write(&Signature::path_beside(&path)).unwrap();
    assert_eq!(opened(&path, 1, Existing::Use).rows().len(), 0);
}

#[test]
fn results_of_an_older_version_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    fs::write(&path, "attention,layer,head,p_holm\nself,1,1,0.5\n").unwrap();
    signature(1).write(&Signature::path_beside(&path)).unwrap();
    assert!(refusal(&path, &signature(1)).contains("does not begin with the header of these results"));
    let mut writer = opened(&path, 1, Existing::Again);
    push_missing(&mut writer, &work());
    finish(writer);
    assert_eq!(bytes(&path), unbroken());
}

#[test]
fn an_unfinished_run_of_an_older_version_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let partial = path.with_extension("partial.csv");
    fs::write(&partial, "attention,layer,head,p_holm\nself,1,1,0.5\n").unwrap();
    signature(1).write(&Signature::path_beside(&partial)).unwrap();
    assert!(refusal(&path, &signature(1)).contains("does not begin with the header of these results"));
    let mut writer = opened(&path, 1, Existing::Again);
    push_missing(&mut writer, &work());
    finish(writer);
    assert_eq!(bytes(&path), unbroken());
}

#[test]
fn other_files_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.csv");
    for content in ["milk, eggs", "milk\neggs\n", "day,note\n1,keep me\n"] {
        fs::write(&notes, content).unwrap();
        for existing in [Existing::Use, Existing::Again] {
            let error = Writer::open(&notes, &signature(1), existing).unwrap_err().to_string();
            assert!(
                error.contains("does not begin with the header of these results: it begins with `"),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(&notes).unwrap(), content);
    }
    let json = folder.path().join("package.json");
    fs::write(&json, "{}").unwrap();
    fs::write(folder.path().join("package.csv"), header::<AblationRow>()).unwrap();
    let error = refusal(&folder.path().join("package.csv"), &signature(1));
    assert!(error.contains("package.json` is not the signature of a run"), "{error}");
    assert_eq!(fs::read_to_string(&json).unwrap(), "{}");
    assert!(refusal(&json, &signature(1)).contains("the name must end in `.csv`"));
}

#[test]
fn other_kinds_of_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    run(&path, &work());
    let error = RowWriter::<TrainingRow>::open(&path, &signature(1), Existing::Use).unwrap_err().to_string();
    assert!(
        error.contains("does not begin with the header of these results: it begins with `attention,layer,"),
        "{error}"
    );
}

#[test]
fn only_one_writer_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let first = opened(&path, 1, Existing::Use);
    assert!(refusal(&path, &signature(1)).contains("is being written by another process"));
    assert!(check_writable(&path).is_err());
    assert!(Writer::open(&path, &signature(1), Existing::Again).is_err());
    drop(first);
    check_writable(&path).unwrap();
    assert!(Writer::open(&path, &signature(1), Existing::Use).is_ok());
}

#[test]
fn another_run_gets_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let place = |seed| place_of(&path, &signature(seed).identity).unwrap();
    let here = Destination { path: path.clone(), taken: None };
    assert_eq!(place(2), here);
    run(&path, &work());
    assert_eq!(place(1), here);
    let Destination { path: own, taken } = place(2);
    assert_eq!(
        taken.unwrap(),
        Taken { path: path.clone(), differences: "seed: 1 in the file, 2 now".to_owned() }
    );
    let name = own.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("ablate-one-") && name.len() == "ablate-one-12345678.csv".len(), "{name}");
    assert_ne!(own, place(3).path);
}

/// A run of all rows leaves the shards of another alone, and so do its shards; a run of the same settings belongs there.
#[test]
fn shards_of_another_run_keep_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ablate-one.csv");
    let shard: Shard = "2/3".parse().unwrap();
    run(&shard.path(&path), &work());
    for place in [place_of, place_of_shard] {
        let place = |seed| place(&path, &signature(seed).identity).unwrap();
        assert_eq!(place(1), Destination { path: path.clone(), taken: None });
        let Destination { path: own, taken } = place(2);
        assert_eq!(taken.unwrap().path, shard.path(&path));
        assert_ne!(own, path);
    }
}

/// Permissions do not bind the superuser, but nobody can put a file below a file.
#[test]
fn unusable_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(&file.join("ablate-one.csv"), &signature(1));
    assert!(error.starts_with("cannot write `") && error.contains("file`"), "{error}");
    let directory = folder.path().join("directory.csv");
    fs::create_dir(&directory).unwrap();
    assert!(refusal(&directory, &signature(1)).starts_with("cannot read `"));
    assert!(check_writable(&directory).unwrap_err().to_string().ends_with("not a regular file"));
}
