//! Time of one evaluation of a classifier: the whole test set, all heads open.
//!
//! `just bench` runs it on the demo; `cargo bench -p subject --bench classification -- minilm-mrpc` on another.
//! One pass warms up; of the passes that follow, minimum, median and maximum are printed.
#![expect(clippy::unwrap_used, reason = "a benchmark has no one to report an error to")]
use std::path::Path;
use std::time::Instant;

use clap::Parser;
use core_masking::HeadSet;
use subject::{Description, MachineArgs, Scored};

#[derive(Parser)]
struct Args {
    /// Subject whose test set is classified
    #[arg(default_value = "demo-inference")]
    subject: std::path::PathBuf,

    /// Timed passes
    #[arg(long, default_value_t = 5)]
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
    let split = description.split(None, &machine).unwrap();
    let subject = description.open(&machine, Path::new("results")).unwrap();
    let scored = Scored::first(split, None, false);
    let mut seconds: Vec<f64> = (0..=args.passes)
        .map(|_| {
            let started = Instant::now();
            subject.evaluate(&scored, &[HeadSet::none()], &mut |_, _| Ok(())).unwrap();
            started.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    seconds.sort_by(f64::total_cmp);
    let (median, last) = (seconds[seconds.len() / 2], seconds[seconds.len() - 1]);
    println!("{}, {}: one evaluation, {} threads", description.name(), scored.split, machine.threads);
    println!("seconds (min  median  max)\n{:>8.2} {median:>8.2} {last:>8.2}", seconds[0]);
}
