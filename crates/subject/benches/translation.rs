//! Throughput of beam search: sentences a second at several batch sizes, on the test set of a trained subject.
//!
//! `just bench` runs it on the demo; `cargo bench -p subject --bench translation -- multi30k-en-fr` on another.
//! One pass warms up; of the passes that follow, minimum, median and maximum are printed.
#![expect(clippy::unwrap_used, reason = "a benchmark has no one to report an error to")]
use std::path::Path;
use std::time::Instant;

use clap::Parser;
use core_masking::marian::Marian;
use core_masking::{BeamSearch, Gates};
use corpus::tokenizer::SubwordTokenizer;
use rayon::prelude::*;
use subject::{Description, MachineArgs};

const BATCH_SIZES: [usize; 4] = [1, 16, 64, 256];

#[derive(Parser)]
struct Args {
    /// Subject whose test set is translated
    #[arg(default_value = "demo-translation")]
    subject: std::path::PathBuf,

    /// First sentences of the test set; all if absent
    #[arg(long)]
    sentences: Option<usize>,

    /// Timed passes
    #[arg(long, default_value_t = 3)]
    passes: usize,

    /// cargo passes this on
    #[arg(long, hide = true)]
    bench: bool,

    #[command(flatten)]
    machine: MachineArgs,
}

fn main() {
    let args = Args::parse();
    // benchmarks start in the folder of their crate
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let machine = args.machine.build().unwrap();
    let description = Description::read(&args.subject).unwrap();
    let folder = description.train(&machine, Path::new("results"), false).unwrap();
    let model = Marian::load(&folder, machine.options()).unwrap();
    let tokenizer = SubwordTokenizer::load(&folder.join("tokenizer.json")).unwrap();
    let (text, search) = description.translation(None, &machine).unwrap();
    let mut sources: Vec<Vec<u32>> = text
        .source
        .iter()
        .take(args.sentences.unwrap_or(usize::MAX))
        .map(|line| tokenizer.encode(line))
        .collect();
    sources.sort_by_key(Vec::len);

    tch::set_num_threads(1);
    println!("{}: {} sentences, {} threads", description.name(), sources.len(), machine.threads);
    println!("batch size  sentences a second (min  median  max)");
    for size in BATCH_SIZES {
        let mut speeds: Vec<f64> = (0..=args.passes)
            .map(|_| {
                let started = Instant::now();
                translate(&search, &model, &sources, size, machine.threads);
                sources.len() as f64 / started.elapsed().as_secs_f64()
            })
            .skip(1)
            .collect();
        speeds.sort_by(f64::total_cmp);
        let median = speeds[speeds.len() / 2];
        println!("{size:>10}  {:>8.1} {median:>8.1} {:>8.1}", speeds[0], speeds[speeds.len() - 1]);
    }
}

/// Translates all sentences; each thread takes every n-th batch.
fn translate(search: &BeamSearch, model: &Marian, sources: &[Vec<u32>], size: usize, threads: usize) {
    let batches: Vec<Vec<&[u32]>> =
        sources.chunks(size).map(|batch| batch.iter().map(Vec::as_slice).collect()).collect();
    let models: Vec<(usize, Marian)> = (0..threads).map(|thread| (thread, model.share().unwrap())).collect();
    models.into_par_iter().for_each(|(thread, model)| {
        let gates = Gates::open(&model.layout(), model.options());
        for batch in batches.iter().skip(thread).step_by(threads) {
            search.translate(&model, batch, &gates).unwrap();
        }
    });
}
