//! Peak memory of evaluations and the budget, as Linux counts it. Each case is a process, since freed memory may still count.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use core_masking::HeadSet;
use subject::{Description, Scored};
use tch::Device;
use training::{Machine, Memory, Precision};

const SETUPS: [&str; 2] = [CLASSIFIER, TRANSLATOR];

/// A classifier whose batches take about 30 MB each.
const CLASSIFIER: &str = r#"
task = "classification"
description = "A wide classifier"
[data]
labels = ["bad", "good"]
format = { kind = "tsv", text = "review", label = "verdict" }
[data.splits]
train = "train.tsv"
dev = "train.tsv"
test = "test.tsv"
[score]
metric = "accuracy"
[tokenizer]
vocabulary = 60
max_length = 128
[model]
layers = 3
heads = 4
d_model = 256
d_ff = 1024
dropout = 0.0
[training]
seed = 1
epochs = 1
batch_size = 2
learning_rate = 1e-4
keep = "last"
"#;

/// A translator that learns nothing, so that translations reach the maximum length, where a sentence takes about 3 MB.
const TRANSLATOR: &str = r#"
description = "A translator that does not stop"
[data]
grammar = { seed = 1, train = 20, dev = 4, test = 40, shifted = 4 }
[tokenizer]
vocabulary = 300
[model]
layers = 2
heads = 8
d_model = 128
d_ff = 256
activation = "relu"
dropout = 0.0
positions = 250
[training]
seed = 1
epochs = 1
batch_tokens = 2000
peak_learning_rate = 1e-6
warmup_steps = 200
label_smoothing = 0.1
clip_norm = 1.0
[decoding]
beam = 4
length_penalty = 1.0
stopping = "exact"
length_ratio = 0.0
length_offset = 240
"#;

const MIB: u64 = 1 << 20;

/// Writes a table of `texts` texts of 120 words.
fn write_reviews(path: &Path, texts: usize) {
    let mut table = "review\tverdict\n".to_owned();
    for text in 0..texts {
        let words = (0..120).map(|place| ["sad", "fine", "dull", "bright"][(text + place * place) % 4]);
        let words: Vec<&str> = words.collect();
        writeln!(table, "{}\t{}", words.join(" "), ["bad", "good"][text % 2]).unwrap();
    }
    fs::write(path, table).unwrap();
}

/// Returns a line of `/proc/self/status` in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<u64>().unwrap() * 1024
}

/// Environment variable with the case that a child process measures: number of the setup, threads, bytes of memory, folder.
const CASE: &str = "MEASURED_CASE";

/// Prints by how many bytes the memory of this process grows while two head sets are evaluated. Prints nothing if the system cannot reset
/// the peak.
fn measure(case: &str) {
    let fields: Vec<&str> = case.splitn(4, ' ').collect();
    let [setup, threads, memory, folder] = fields[..] else { panic!("not a case: {case}") };
    let file = Path::new(folder).join(format!("setup-{setup}.toml"));
    fs::write(&file, SETUPS[setup.parse::<usize>().unwrap()]).unwrap();
    let machine = Machine {
        data: folder.into(),
        threads: threads.parse().unwrap(),
        device: Device::Cpu,
        precision: Precision::F32,
        memory: Memory::ExcludingModel(memory.parse().unwrap()),
        quiet: true,
    };
    tch::set_num_threads(1);
    let subject = Description::read(&file).unwrap().open(&machine, Path::new(folder)).unwrap();
    let sets = [HeadSet::none(), HeadSet::from_iter(subject.layout().heads().into_iter().take(1))];
    let evaluate = |limit| {
        let scored = Scored::first("test".to_owned(), limit, false);
        subject.evaluate(&scored, &sets, &mut |_, _| Ok(())).unwrap();
    };
    evaluate(Some(1)); // libraries have their own buffers, which stay
    if fs::write("/proc/self/clear_refs", "5").is_ok() {
        let before = status("VmRSS");
        evaluate(None);
        println!("{GROWN}{}", status("VmHWM") - before);
    }
}

/// Prefix of the number that a child process prints.
const GROWN: &str = "grown by ";

/// With 2 to 16 threads: first with a budget that some batches fill, then without one, where batches take more.
#[test]
fn a_sweep_stays_under_the_bound_with_any_number_of_threads() {
    if let Ok(case) = std::env::var(CASE) {
        return measure(&case);
    }
    let folder = tempfile::tempdir().unwrap();
    write_reviews(&folder.path().join("train.tsv"), 4);
    write_reviews(&folder.path().join("test.tsv"), 200);
    let bound = 90 * MIB;
    for (setup, threads, memory) in [
        (0, 2, bound),
        (0, 4, bound),
        (0, 8, bound),
        (0, 16, bound),
        (0, 16, 1 << 33),
        (1, 2, bound),
        (1, 16, bound),
        (1, 2, 1 << 33),
    ] {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "a_sweep_stays_under_the_bound_with_any_number_of_threads", "--nocapture"]);
        let case = format!("{setup} {threads} {memory} {}", folder.path().display());
        let output = own.env(CASE, case).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let Some(taken) = said.lines().find_map(|line| line.split_once(GROWN)) else {
            return test_support::skipped("this system cannot reset the peak memory of a process");
        };
        let taken: u64 = taken.1.parse().unwrap();
        let told = format!("setup {setup}, {threads} threads: {} MiB of {}", taken / MIB, memory / MIB);
        println!("{told}");
        assert_eq!(taken <= bound, memory == bound, "{told}");
    }
}
