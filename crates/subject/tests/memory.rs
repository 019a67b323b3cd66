//! The memory of a sweep and its budget, as Linux counts it. One test, since others would be counted with it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::fmt::Write;
use std::fs;
use std::path::Path;

use core_masking::HeadSet;
use subject::{Description, Scored};
use tch::Device;
use training::{Machine, Memory, Precision};

/// A classifier whose batches take about 30 MB each.
const SUBJECT: &str = r#"
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

const MIB: u64 = 1 << 20;

/// As many texts of 120 words.
fn write_reviews(path: &Path, texts: usize) {
    let mut table = "review\tverdict\n".to_owned();
    for text in 0..texts {
        let words = (0..120).map(|place| ["sad", "fine", "dull", "bright"][(text + place * place) % 4]);
        let words: Vec<&str> = words.collect();
        writeln!(table, "{}\t{}", words.join(" "), ["bad", "good"][text % 2]).unwrap();
    }
    fs::write(path, table).unwrap();
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<u64>().unwrap() * 1024
}

/// Greatest growth of this process's memory during `work`, in bytes; none where the system does not count anew.
fn growth(work: impl FnOnce()) -> Option<u64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = status("VmRSS");
    work();
    Some(status("VmHWM") - before)
}

/// With 2, 4, 8 and 16 threads at a bound that two of their batches fill, and then without one, where they take more.
#[test]
fn a_sweep_stays_under_the_bound_with_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("wide.toml");
    fs::write(&spec, SUBJECT).unwrap();
    write_reviews(&folder.path().join("train.tsv"), 4);
    write_reviews(&folder.path().join("test.tsv"), 200);
    let description = Description::read(&spec).unwrap();
    let sweep = |threads, memory| {
        let machine = Machine {
            data: folder.path().to_owned(),
            threads,
            device: Device::Cpu,
            precision: Precision::F32,
            memory: Memory::BesideModel(memory),
            quiet: true,
        };
        let subject = description.open(&machine, folder.path()).unwrap();
        let heads = subject.layout().heads().into_iter().take(2).map(|id| HeadSet::from_iter([id]));
        let sets: Vec<HeadSet> = std::iter::once(HeadSet::none()).chain(heads).collect();
        let scored = Scored::first("test".to_owned(), None, false);
        growth(|| subject.evaluate(&scored, &sets, &mut |_, _| Ok(())).unwrap())
    };
    tch::set_num_threads(1);
    let bound = 90 * MIB;
    let _ = sweep(1, bound); // libraries have their own buffers, which stay
    for threads in [2, 4, 8, 16] {
        let Some(taken) = sweep(threads, bound) else {
            return test_support::skipped("this system does not count the memory of a process anew");
        };
        println!("{threads} threads: {} MiB", taken / MIB);
        assert!(taken <= bound, "{threads} threads took {} MiB of {}", taken / MIB, bound / MIB);
    }
    let taken = sweep(16, 1 << 33).unwrap();
    assert!(taken > bound, "{} MiB are no test of a bound of {}", taken / MIB, bound / MIB);
}
