//! Setups that train in a second, for tests of whole commands; [`golden`] files; and synthetic results, in the folder `results/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
pub mod golden;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use assert_cmd::Command;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// A translator of the demo language.
pub const TRANSLATOR: &str = r#"
description = "A translator for tests"
[data]
grammar = { seed = 3, train = 900, dev = 20, test = 24, shifted = 9 }
[tokenizer]
vocabulary = 300
[model]
layers = 2
heads = 3
d_model = 12
d_ff = 12
activation = "relu"
dropout = 0.2
positions = 160
[training]
seed = 1
epochs = 4
batch_tokens = 800
peak_learning_rate = 1e-2
warmup_steps = 10
label_smoothing = 0.1
clip_norm = 1.0
[decoding]
length_ratio = 1.0
length_offset = 2
"#;

/// A classifier of the reviews from [`write_reviews`].
pub const CLASSIFIER: &str = r#"
task = "classification"
description = "A classifier for tests"
[data]
test = "test"
labels = ["bad", "good"]
format = { kind = "tsv", text = "review", label = "verdict" }
[data.splits]
train = "reviews/train.tsv"
dev = "reviews/dev.tsv"
test = "reviews/test.tsv"
[score]
metric = "accuracy"
[tokenizer]
vocabulary = 60
max_length = 16
[model]
layers = 2
heads = 3
d_model = 12
d_ff = 14
dropout = 0.1
[training]
seed = 1
epochs = 4
batch_size = 16
learning_rate = 1e-2
keep = "best"
"#;

/// A single-output model for the ratings from [`write_reviews`].
pub const REGRESSION: &str = r#"
task = "classification"
description = "A model with one output for tests"
score.metric = "pearson"
data.format = { kind = "tsv", text = "review", label = "rating" }
data.splits = { train = "reviews/train.tsv", dev = "reviews/dev.tsv", test = "reviews/test.tsv" }
tokenizer.max_length = 16
tokenizer.vocabulary = 60
model = { layers = 2, heads = 3, d_model = 12, d_ff = 14, dropout = 0.0 }
training = { seed = 1, epochs = 4, batch_size = 16, learning_rate = 1e-2, keep = "best" }
"#;

/// A token classifier of the demo language.
pub const TAGGER: &str = r#"
task = "classification"
description = "A tagger for tests"
[data]
grammar = { phrases = true, seed = 3, train = 900, dev = 30, matched = 60, mismatched = 20 }
test = "matched"
labels = ["O", "B-SUBJ", "I-SUBJ", "B-OBJ", "I-OBJ", "B-OBL", "I-OBL", "B-MOD", "I-MOD"]
[score]
metric = "entity-f1"
[tokenizer]
vocabulary = 300
max_length = 64
[model]
layers = 2
heads = 3
d_model = 24
d_ff = 24
dropout = 0.0
[training]
seed = 1
epochs = 4
batch_size = 16
learning_rate = 1e-2
keep = "best"
"#;

/// A language model of the demo language with 2 key-value heads for 4 heads in each layer.
pub const LANGUAGE_MODEL: &str = r#"
task = "language-modelling"
description = "A language model for tests"
[data]
grammar = { seed = 3, train = 600, dev = 20, test = 30, shifted = 20, pairs = 40 }
[windows]
end = true
[model]
family = "llama"
layers = 2
heads = 4
key_value_heads = 2
d_model = 16
d_ff = 24
positions = 96
[tokenizer]
kind = "bytes"
vocabulary = 320
[training]
seed = 1
epochs = 4
batch_tokens = 1200
learning_rate = 1e-2
warmup_steps = 5
"#;

/// A classifier of the images from [`write_images`].
pub const IMAGES: &str = r#"
task = "classification"
description = "A classifier of images for tests"
[data]
labels = ["bottom", "top"]
[data.splits]
train = { images = "stripes/train" }
dev = { images = "stripes/dev" }
test = { images = "stripes/test" }
[score]
metric = "accuracy"
[model]
layers = 2
heads = 3
d_model = 12
d_ff = 12
dropout = 0.0
initializer_range = 0.2
image = { size = 6, patch = 2, channels = 1 }
[training]
seed = 1
epochs = 8
batch_size = 8
learning_rate = 1e-2
keep = "best"
"#;

/// Returns [`CLASSIFIER`] as a setup that fine-tunes the model `from`.
pub fn fine_tuning(from: &str) -> String {
    let (data, rest) = CLASSIFIER.split_once("[tokenizer]").unwrap();
    let (_, training) = rest.split_once("[training]").unwrap();
    format!("{data}[tokenizer]\nmax_length = 16\n[checkpoint]\nfrom = \"{from}\"\n[training]{training}")
}

/// Prints why a test is skipped, even if the harness hides the output of passing tests.
pub fn skipped(why: &str) {
    // A closed stderr must not fail the test.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Finds reference numbers in the repository or next to the workspace; prints that the test is skipped if they are missing.
pub fn golden(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [root.join("golden"), root.join("../../../shared/golden")];
    let found = places.into_iter().map(|place| place.join(name)).find(|path| path.exists());
    if found.is_none() {
        skipped(&format!("the reference numbers `{name}` are missing"));
    }
    found
}

/// Makes a folder with the setup `tiny`.
pub fn folder(spec: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.toml"), spec).unwrap();
    folder
}

/// Makes a [`folder`] with data and a model that `train-subject` trains, once for all tests of this process.
pub fn with_model(spec: &'static str) -> TempDir {
    static TRAINED: Mutex<BTreeMap<&str, TempDir>> = Mutex::new(BTreeMap::new());
    // After a failure the next test tries again, to fail for its own reason.
    let mut trained = TRAINED.lock().unwrap_or_else(PoisonError::into_inner);
    let trained = trained.entry(spec).or_insert_with(|| {
        let folder = folder(spec);
        write_data(spec, folder.path());
        command("train-subject", folder.path()).assert().success();
        folder
    });
    let folder = folder(spec);
    write_data(spec, folder.path());
    let model = "data/models/tiny";
    copy_files(&trained.path().join(model), &folder.path().join(model));
    folder
}

/// Writes the data of a setup.
fn write_data(spec: &str, folder: &Path) {
    if spec.contains("images =") { write_images(folder) } else { write_reviews(folder) }
}

/// Copies the files, but not the subfolders, of a folder into another, which is created if needed.
pub fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Makes a folder with a copy of the synthetic `results` and of their setups in `experiments`.
pub fn synthetic_results() -> TempDir {
    let (here, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    let subjects = ["results/tiny-translation", "results/tiny-inference", "results/tiny-language"];
    for part in subjects.into_iter().chain(["experiments"]) {
        copy_files(&here.join(part), &folder.path().join(part));
    }
    folder
}

/// Reads the rows of `results/tiny/<file>` in `folder`.
pub fn rows<R: DeserializeOwned>(folder: &Path, file: &str) -> Vec<R> {
    let mut reader = csv::Reader::from_path(folder.join("results/tiny").join(file)).unwrap();
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

/// Scores the model in the folder `export` with `ablate-one`. The setup is `spec` without `[model]`, `[training]` and the size of the
/// vocabulary.
pub fn score_of_export(folder: &Path, export: &str, spec: &str) -> f64 {
    let is_kept = |table: &&str| {
        let is_of_training = ["model]", "training]", "checkpoint]"].iter().any(|own| table.starts_with(own));
        !is_of_training && (!table.starts_with("tokenizer]") || table.contains("max_length"))
    };
    let data = spec.split("\n[").filter(is_kept).collect::<Vec<_>>().join("\n[");
    let lines = data.lines().filter(|line| !line.starts_with("vocabulary"));
    let data: String = lines.map(|line| format!("{line}\n")).collect();
    let checkpoint = format!("{data}[checkpoint]\nfrom = \"{}\"\n", folder.join(export).display());
    fs::write(folder.join(format!("{export}.toml")), checkpoint).unwrap();
    let setup = format!("{export}.toml");
    program("ablate-one", folder).args([&*setup, "--quiet", "--resamples", "0"]).assert().success();
    let mut reader = csv::Reader::from_path(folder.join(format!("results/{export}/ablate-one.csv"))).unwrap();
    let row: BTreeMap<String, String> = reader.deserialize().next().unwrap().unwrap();
    row["base_score"].parse().unwrap()
}

/// Writes `data/reviews/{train,dev,test}.tsv` with columns `review`, `verdict` (whether most opinions are praise) and `rating` (half the
/// excess of praise).
pub fn write_reviews(folder: &Path) {
    fs::create_dir_all(folder.join("data/reviews")).unwrap();
    for (split, offset, rows) in [("train", 0, 400), ("dev", 1_000, 40), ("test", 2_000, 240)] {
        let mut text = "review\tverdict\trating\n".to_owned();
        for index in offset..offset + rows {
            let (review, lead) = review(index);
            let verdict = if lead > 0 { "good" } else { "bad" };
            writeln!(text, "{review}\t{verdict}\t{}", f64::from(lead) / 2.0).unwrap();
        }
        fs::write(folder.join(format!("data/reviews/{split}.tsv")), text).unwrap();
    }
}

/// Returns three or five opinions after a noun, and the excess of praise; `index` determines both.
fn review(index: usize) -> (String, i32) {
    // mixes the bits, so that neighbouring indices give unrelated reviews
    let mut bits = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let mut next = |choices: &[&'static str]| {
        let choice = choices[bits as usize % choices.len()];
        bits /= choices.len() as u64;
        choice
    };
    let opinions = if next(&["short", "long"]) == "short" { 3 } else { 5 };
    let (mut words, mut lead) = (vec![next(&["film", "story", "music"])], 0);
    for _ in 0..opinions {
        let word = next(&["lovely", "brilliant", "dull", "awful"]);
        lead += if word == "lovely" || word == "brilliant" { 1 } else { -1 };
        words.push(word);
    }
    (words.join(" "), lead)
}

/// Writes `data/stripes/{train,dev,test}/{bottom,top}/N.png`: 6 by 6 grey pixels, slightly brighter in the half that names the class.
pub fn write_images(folder: &Path) {
    for (split, offset, images) in [("train", 0, 96), ("dev", 1_000, 24), ("test", 2_000, 60)] {
        for index in offset..offset + images {
            let class = ["bottom", "top"][index % 2];
            // mixes the bits, so that neighbouring pixels are unrelated
            let noise =
                |pixel: usize| ((index * 64 + pixel + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 120;
            let is_bright = |pixel: usize| (pixel < 18) == (class == "top");
            let level = |pixel: usize| (noise(pixel) + if is_bright(pixel) { 26 } else { 0 }) as u8;
            let levels: Vec<u8> = (0..36).map(level).collect();
            let place = folder.join(format!("data/stripes/{split}/{class}"));
            fs::create_dir_all(&place).unwrap();
            let path = place.join(format!("{index}.png"));
            image::save_buffer(path, &levels, 6, 6, image::ExtendedColorType::L8).unwrap();
        }
    }
}

/// Returns a program that runs in `folder`.
pub fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::cargo_bin(name).unwrap();
    command.current_dir(folder).env_remove("HF_HUB_CACHE");
    command
}

/// Returns the command `program tiny.toml --quiet` in `folder`.
pub fn command(name: &str, folder: &Path) -> Command {
    let mut command = program(name, folder);
    command.args(["tiny.toml", "--quiet"]);
    command
}

/// Returns the command `program tiny.toml --quiet` with more arguments in `folder`.
pub fn command_with(name: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(name, folder);
    command.args(arguments);
    command
}

/// Starts `program tiny.toml --quiet` with more `arguments` in `folder`, and kills it once `reached`, unless it has finished. Panics if it
/// fails.
pub fn kill_when(program: &str, arguments: &[&str], folder: &Path, reached: impl Fn() -> bool) {
    signal_when("KILL", program, arguments, folder, reached);
}

/// Starts a program as [`kill_when`] does, sends it `signal` once `reached`, and returns its exit code: 0 if it had finished.
pub fn signal_when(
    signal: &str,
    program: &str,
    arguments: &[&str],
    folder: &Path,
    reached: impl Fn() -> bool,
) -> Option<i32> {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin(program));
    command.current_dir(folder).args(["tiny.toml", "--quiet"]).args(arguments);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    while !reached() {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{program} failed");
            return Some(0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = std::process::Command::new("kill").args(["-s", signal, &child.id().to_string()]).output();
    assert!(kill.is_ok(), "there is no `kill`");
    child.wait().unwrap().code()
}

/// Makes a folder with `new` in which training with these arguments was killed between its first and its fourth (last) epoch.
pub fn killed_training(arguments: &[&str], new: impl Fn() -> TempDir) -> TempDir {
    loop {
        let folder = new();
        let partial = folder.path().join("data/models/tiny.partial/epochs");
        let epoch = |number: usize| partial.join(number.to_string()).exists();
        kill_when("train-subject", arguments, folder.path(), || epoch(1));
        if epoch(1) && !epoch(4) {
            return folder; // otherwise it finished before it could be killed
        }
    }
}

/// Returns what a command that must succeed prints on stderr.
pub fn said(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stderr.clone()).unwrap()
}

/// Checks that a command fails as for [`refusal`], with a message that contains `fault`.
#[track_caller]
pub fn refuses(command: &mut Command, fault: &str) {
    let message = refusal(command);
    assert!(message.contains(fault), "`{fault}` is not in: {message}");
}

/// Returns the message of a command that must fail with a single line and exit code 1.
#[track_caller]
pub fn refusal(command: &mut Command) -> String {
    let output = command.assert().failure().code(1).get_output().stderr.clone();
    let message = String::from_utf8(output).unwrap();
    assert_eq!(message.lines().count(), 1, "not one line: {message}");
    message
}

/// Computes Pearson's r by its definition.
pub fn pearson(pairs: &[[f64; 2]]) -> f64 {
    let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / pairs.len() as f64;
    let means = [mean(0), mean(1)];
    let sum = |a: usize, b: usize| {
        pairs.iter().map(|pair| (pair[a] - means[a]) * (pair[b] - means[b])).sum::<f64>()
    };
    sum(0, 1) / (sum(0, 0) * sum(1, 1)).sqrt()
}

/// Reads a text file in `folder`.
pub fn text(folder: &Path, file: &str) -> String {
    String::from_utf8(read(folder, file)).unwrap()
}

/// Reads a file in `folder`.
pub fn read(folder: &Path, file: &str) -> Vec<u8> {
    fs::read(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}
