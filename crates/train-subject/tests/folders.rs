//! Model folders: training in a temporary folder, by one process at a time, from data whose checksums are recorded.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use durable::Lock;
use tempfile::TempDir;
use test_support::{CLASSIFIER, fine_tuning, killed_training, read, refuses, write_reviews};

const MODEL: &str = "data/models/tiny/model.safetensors";
const TRAIN: &str = "data/reviews/train.tsv";
const AGAIN: [&str; 3] = ["--threads", "2", "--again"];

fn folder() -> TempDir {
    let folder = test_support::folder(CLASSIFIER);
    write_reviews(folder.path());
    folder
}

fn command(folder: &Path) -> Command {
    test_support::command_with("train-subject", folder, &["--threads", "2"])
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_model_is_used_until_its_successor_is_complete() {
    let folder = killed_training(&AGAIN, || {
        let folder = folder();
        command(folder.path()).assert().success();
        edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
        folder
    });
    let spec = folder.path().join("tiny.toml");
    let old = read(folder.path(), MODEL);
    edit(&spec, "seed = 2", "seed = 1");
    command(folder.path()).assert().success();
    assert_eq!(read(folder.path(), MODEL), old, "the old one is still used");
    edit(&spec, "seed = 1", "seed = 2");

    let first = folder.path().join("data/models/tiny.partial/epochs/1/model.safetensors");
    let begun = fs::metadata(first).unwrap().modified().unwrap();
    command(folder.path()).args(AGAIN).assert().success();
    let first = folder.path().join("data/models/tiny/epochs/1/model.safetensors");
    assert_eq!(fs::metadata(first).unwrap().modified().unwrap(), begun, "the killed run was continued");
    assert_ne!(read(folder.path(), MODEL), old);
    command(folder.path()).assert().success();
    let left = fs::read_dir(folder.path().join("data/models")).unwrap();
    assert_eq!(left.count(), 1, "nothing is left next to the model");
}

#[test]
fn remains_of_another_training_are_refused_and_removed_by_a_new_training() {
    let folder = killed_training(&AGAIN[..2], folder);
    edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
    refuses(&mut command(folder.path()), "tiny.partial` was trained from settings other than");
    edit(&folder.path().join("tiny.toml"), "seed = 2", "seed = 1");
    edit(&folder.path().join(TRAIN), "\tgood", "\tbad");
    refuses(&mut command(folder.path()), "was trained with different contents of split `train`");
    write_reviews(folder.path());
    edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
    command(folder.path()).args(AGAIN).assert().success();
    let unbroken = test_support::folder(&CLASSIFIER.replace("seed = 1", "seed = 2"));
    write_reviews(unbroken.path());
    command(unbroken.path()).assert().success();
    assert_eq!(read(folder.path(), MODEL), read(unbroken.path(), MODEL));
}

/// The checkpoint is read-only. The mode of the copy is checked because permissions do not bind the superuser.
#[test]
fn a_changed_checkpoint_is_noticed_and_a_missing_one_does_not_matter() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    command(folder.path()).assert().success();
    let base = folder.path().join("data/base");
    fs::rename(folder.path().join("data/models/tiny"), &base).unwrap();
    for path in fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    }
    fs::write(folder.path().join("tiny.toml"), fine_tuning("base")).unwrap();
    command(folder.path()).assert().success();
    let copy = folder.path().join("data/models/tiny/tokenizer.json");
    let mode = fs::metadata(copy).unwrap().permissions().mode();
    assert_ne!(mode & 0o200, 0, "{mode:o}");
    let weights = fs::read(base.join("model.safetensors")).unwrap();
    let mut other = weights.clone();
    *other.last_mut().unwrap() ^= 1;
    durable::write(&base.join("model.safetensors"), other).unwrap();
    refuses(&mut command(folder.path()), "`model.safetensors` of the checkpoint: train it again");
    durable::write(&base.join("model.safetensors"), weights).unwrap();
    command(folder.path()).assert().success();
    fs::remove_dir_all(base).unwrap();
    command(folder.path()).assert().success();
}

#[test]
fn one_process_trains_a_model_and_others_use_a_finished_one() {
    let folder = folder();
    let place = folder.path().join("data/models/tiny");
    let lock = Lock::take(&place).unwrap().unwrap();
    refuses(&mut command(folder.path()), "`data/models/tiny` is being trained by another process");
    drop(lock);
    command(folder.path()).assert().success();
    let _lock = Lock::take(&place).unwrap().unwrap();
    command(folder.path()).assert().success();
    refuses(command(folder.path()).args(AGAIN), "is being trained by another process");
}

#[test]
fn damaged_files_of_a_killed_run_are_named() {
    let folder = killed_training(&AGAIN[..2], folder);
    let partial = folder.path().join("data/models/tiny.partial");
    let epochs = (1..=4).map(|epoch| partial.join("epochs").join(epoch.to_string()));
    let epoch = epochs.rev().find(|epoch| epoch.join("state.json").exists()).unwrap();
    let cases: [(&Path, Option<&[u8]>, &str); 3] = [
        (&epoch.join("optimizer.safetensors"), None, "optimizer.safetensors"),
        (&epoch.join("state.json"), Some(b"{\"epoch\": 1}"), "state.json"),
        (&partial.join("tokenizer.json"), Some(b"{"), "tokenizer.json"),
    ];
    for (path, damage, named) in cases {
        let whole = fs::read(path).unwrap();
        match damage {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        refuses(&mut command(folder.path()), "an interrupted training that is damaged");
        refuses(&mut command(folder.path()), named);
        fs::write(path, whole).unwrap();
    }
    command(folder.path()).assert().success();
}

#[test]
fn a_replacement_that_was_killed_between_two_renames_is_repaired() {
    let folder = folder();
    command(folder.path()).assert().success();
    let models = folder.path().join("data/models");
    let before = fs::metadata(folder.path().join(MODEL)).unwrap().modified().unwrap();
    fs::rename(models.join("tiny"), models.join("tiny.replaced")).unwrap();
    command(folder.path()).assert().success();
    assert_eq!(fs::metadata(folder.path().join(MODEL)).unwrap().modified().unwrap(), before);
}

#[test]
fn a_folder_with_other_files_is_not_replaced_by_a_model() {
    let folder = folder();
    let notes = folder.path().join("data/models/tiny/notes.txt");
    durable::write(&notes, "mine").unwrap();
    refuses(&mut command(folder.path()), "is the folder of the model, but contains other files");
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}
