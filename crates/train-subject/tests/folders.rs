//! Model folders: training in a temporary folder, by one process at a time, from data whose contents are remembered.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use durable::Lock;
use tempfile::TempDir;
use test_support::{CLASSIFIER, kill_when, killed_training, read, write_reviews};

const MODEL: &str = "data/models/tiny/model.safetensors";
const TRAIN: &str = "data/reviews/train.tsv";
const AGAIN: [&str; 3] = ["--threads", "2", "--again"];

fn folder() -> TempDir {
    let folder = test_support::folder(CLASSIFIER);
    write_reviews(folder.path());
    folder
}

fn command(folder: &Path) -> Command {
    let mut command = test_support::command("train-subject", folder);
    command.args(["--threads", "2"]);
    command
}

fn refusal(folder: &Path) -> String {
    test_support::refusal(&mut command(folder))
}

/// Returns the names in `data/models`.
fn models(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("data/models")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Replaces text in a file, which must contain it.
fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Makes a folder with a finished model of seed 1, and an unfinished training with seed 2 that was killed between its first and fourth
/// (last) epoch.
fn killed_again() -> TempDir {
    loop {
        let folder = folder();
        command(folder.path()).assert().success();
        edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
        let models = folder.path().join("data/models");
        let epoch = |number: usize| models.join(format!("tiny.partial/epochs/{number}")).exists();
        kill_when("train-subject", &AGAIN, folder.path(), || epoch(1));
        if epoch(1) && !epoch(4) {
            return folder; // otherwise it finished before it could be killed
        }
    }
}

#[test]
fn a_model_is_used_until_its_successor_is_complete() {
    let folder = killed_again();
    let spec = folder.path().join("tiny.toml");
    let old = read(folder.path(), MODEL);
    edit(&spec, "seed = 2", "seed = 1");
    command(folder.path()).assert().success();
    assert_eq!(read(folder.path(), MODEL), old, "the old one is in use");
    edit(&spec, "seed = 1", "seed = 2");

    let first = folder.path().join("data/models/tiny.partial/epochs/1/model.safetensors");
    let begun = fs::metadata(first).unwrap().modified().unwrap();
    command(folder.path()).args(AGAIN).assert().success();
    let first = folder.path().join("data/models/tiny/epochs/1/model.safetensors");
    assert_eq!(fs::metadata(first).unwrap().modified().unwrap(), begun, "the killed run was continued");
    assert_ne!(read(folder.path(), MODEL), old);
    command(folder.path()).assert().success();
    assert_eq!(models(folder.path()), ["tiny"], "nothing is left behind");
}

#[test]
fn the_rest_of_another_training_is_refused_and_removed_when_training_anew() {
    let folder = killed_training(folder);
    edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
    let message = refusal(folder.path());
    assert!(message.contains("tiny.partial` was trained from other settings"), "{message}");
    edit(&folder.path().join("tiny.toml"), "seed = 2", "seed = 1");
    edit(&folder.path().join(TRAIN), "\tgood", "\tbad");
    let message = refusal(folder.path());
    assert!(message.contains("was trained when other contents were in split `train`"), "{message}");
    write_reviews(folder.path());
    edit(&folder.path().join("tiny.toml"), "seed = 1", "seed = 2");
    command(folder.path()).args(AGAIN).assert().success();
    let unbroken = test_support::folder(&CLASSIFIER.replace("seed = 1", "seed = 2"));
    write_reviews(unbroken.path());
    command(unbroken.path()).assert().success();
    assert_eq!(read(folder.path(), MODEL), read(unbroken.path(), MODEL));
}

#[test]
fn other_data_is_noticed_where_it_is_at_hand() {
    let folder = folder();
    command(folder.path()).assert().success();
    let train = folder.path().join(TRAIN);
    edit(&train, "\tgood", "\tbad");
    let message = refusal(folder.path());
    assert!(
        message.contains("`data/models/tiny` was trained when other contents were in split `train`")
            && message.contains("`train-subject tiny.toml --again`"),
        "{message}"
    );
    write_reviews(folder.path()); // equal contents
    command(folder.path()).assert().success();
    fs::remove_file(&train).unwrap();
    command(folder.path()).assert().success();
}

/// Makes a setup `tiny` that fine-tunes the model `base`, whose files are read-only.
fn fine_tuning() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    command(folder.path()).assert().success();
    let base = folder.path().join("data/base");
    fs::rename(folder.path().join("data/models/tiny"), &base).unwrap();
    for entry in fs::read_dir(&base).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        }
    }
    let (head, tail) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let training = tail.split_once("[training]").unwrap().1;
    let spec =
        format!("{head}[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"base\"\n[training]{training}");
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    folder
}

/// The mode of the copy is checked because permissions do not bind the superuser.
#[test]
fn a_fine_tuning_goes_on_from_a_read_only_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let folder = killed_training(fine_tuning);
    let copy = folder.path().join("data/models/tiny.partial/tokenizer.json");
    let mode = fs::metadata(copy).unwrap().permissions().mode();
    assert_ne!(mode & 0o200, 0, "{mode:o}");
    command(folder.path()).assert().success();
}

#[test]
fn another_checkpoint_is_noticed_and_a_missing_one_does_not_matter() {
    let folder = fine_tuning();
    command(folder.path()).assert().success();
    let base = folder.path().join("data/base");
    let weights = fs::read(base.join("model.safetensors")).unwrap();
    let mut other = weights.clone();
    *other.last_mut().unwrap() ^= 1;
    durable::write(&base.join("model.safetensors"), other).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains("`model.safetensors` of the checkpoint: train it anew"), "{message}");
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
    let message = refusal(folder.path());
    assert!(message.contains("`data/models/tiny` is being trained by another process"), "{message}");
    drop(lock);
    command(folder.path()).assert().success();
    let _lock = Lock::take(&place).unwrap().unwrap();
    command(folder.path()).assert().success();
    let message = test_support::refusal(command(folder.path()).args(AGAIN));
    assert!(message.contains("is being trained by another process"), "{message}");
}

#[test]
fn what_a_killed_run_left_damaged_is_named_with_the_fault() {
    let folder = killed_training(folder);
    let partial = folder.path().join("data/models/tiny.partial");
    let epochs = (1..=4).map(|epoch| partial.join("epochs").join(epoch.to_string()));
    let epoch = epochs.rev().find(|epoch| epoch.join("state.json").exists()).unwrap();
    let cases: [(&Path, Option<&[u8]>, &str); 6] = [
        (&epoch.join("optimizer.safetensors"), None, "optimizer.safetensors"),
        (&epoch.join("optimizer.safetensors"), Some(b"torn"), "optimizer.safetensors"),
        (&epoch.join("model.safetensors"), Some(b"torn"), "model.safetensors"),
        (&epoch.join("config.json"), Some(b"{}"), "config.json"),
        (&epoch.join("state.json"), Some(b"{\"epoch\": 1}"), "state.json"),
        (&partial.join("tokenizer.json"), Some(b"{"), "tokenizer.json"),
    ];
    for (path, damage, named) in cases {
        let whole = fs::read(path).unwrap();
        match damage {
            Some(bytes) => fs::write(path, bytes).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let message = refusal(folder.path());
        assert!(
            message
                .contains("data/models/tiny.partial` holds a training that was interrupted, but is damaged")
                && message.contains(named),
            "{named}: {message}"
        );
        fs::write(path, whole).unwrap();
    }
    command(folder.path()).assert().success();
}

#[test]
fn a_replacement_that_was_killed_between_two_renames_is_put_right() {
    let folder = folder();
    command(folder.path()).assert().success();
    let (place, old) =
        (folder.path().join("data/models/tiny"), folder.path().join("data/models/tiny.replaced"));
    let before = fs::metadata(folder.path().join(MODEL)).unwrap().modified().unwrap();
    fs::rename(&place, &old).unwrap();
    command(folder.path()).assert().success();
    assert_eq!(fs::metadata(folder.path().join(MODEL)).unwrap().modified().unwrap(), before);
    assert_eq!(models(folder.path()), ["tiny"]);
}

#[test]
fn a_folder_of_other_things_is_not_replaced_by_a_model() {
    let folder = folder();
    let notes = folder.path().join("data/models/tiny/notes.txt");
    durable::write(&notes, "mine").unwrap();
    let message = refusal(folder.path());
    assert!(
        message.contains("`data/models/tiny` is where the model goes, but holds something else"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}
