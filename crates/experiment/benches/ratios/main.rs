//! Speed of the project, as ratios to other tools or plainer computations: `just bench`.
//!
//! Both ways are measured alternately in one run. A ratio is the median over pairs of neighbouring measurements, and states how many times
//! faster ours is unless the row's name defines it differently. Rows that compare with transformers need a Python with transformers
//! (`--python`), which computes on `--device` too; CTranslate2 is compared on CPUs only.
#![expect(clippy::unwrap_used, reason = "a benchmark has no one to report an error to")]
mod ablation;
mod decide;
mod decoding;
mod hook;
mod importance;
mod latency;
mod models;
mod opus_size;
mod peer;
mod precision;
mod pruning;
mod relevance;
mod sweep;
mod train;

use std::time::Instant;

use clap::Parser;
use experiment::MachineArgs;
use training::Machine;

#[derive(Parser)]
struct Args {
    /// Measurements to take [default: all]
    #[arg(value_parser = MEASUREMENTS.map(|(name, _)| name))]
    only: Vec<String>,

    /// Timed pairs, after a warm-up pair; an odd number
    #[arg(long, default_value_t = 3, value_parser = odd)]
    rounds: usize,

    /// Classifier that is swept in bf16 and under each kind of ablation
    #[arg(long, default_value = "demo-inference")]
    classifier: std::path::PathBuf,

    /// Language model that is swept under each kind of ablation
    #[arg(long, default_value = "demo-language")]
    language_model: std::path::PathBuf,

    /// Translator that translates its test set
    #[arg(long, default_value = "demo-translation")]
    translator: std::path::PathBuf,

    /// Python with torch and transformers [default: `$PYTHON` or python3]
    #[arg(long, default_value_t = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned()))]
    python: String,

    /// cargo passes this on
    #[arg(long, hide = true)]
    bench: bool,

    #[command(flatten)]
    machine: MachineArgs,
}

/// Settings of all measurements.
struct Context {
    args: Args,
    machine: Machine,
}

/// A line of the table.
struct Row {
    /// Names of what is compared.
    name: String,
    /// Speed of ours as a multiple of the other's, or the reason why it is unknown.
    ratio: Result<f64, String>,
    /// Ratio that the project aims for.
    wanted: f64,
}

type Measurement = fn(&Context, &mut dyn FnMut(Row));

const MEASUREMENTS: [(&str, Measurement); 12] = [
    ("ablation", ablation::measure),
    ("sweep", sweep::measure),
    ("hook", hook::measure),
    ("decide", decide::measure),
    ("precision", precision::measure),
    ("pruning", pruning::measure),
    ("decoding", decoding::measure),
    ("latency", latency::measure),
    ("opus-size", opus_size::measure),
    ("training", train::measure),
    ("importance", importance::measure),
    ("relevance", relevance::measure),
];

fn main() {
    let args = Args::parse();
    // benchmarks start in the folder of their crate
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let context = Context { machine: args.machine.build().unwrap(), args };
    let Machine { threads, .. } = context.machine;
    let (device, processor) = (context.machine.device_name(), context.machine.processor_name());
    println!("{:>7} {:>7}  {device} ({processor}), {threads} threads", "ratio", "wanted");
    for (name, measure) in MEASUREMENTS {
        if context.args.only.is_empty() || context.args.only.iter().any(|only| only == name) {
            measure(&context, &mut |Row { name, ratio, wanted }| match ratio {
                Ok(ratio) => println!("{ratio:>7.2} {wanted:>7.2}  {name}"),
                Err(why) => println!("{:>7} {wanted:>7.2}  {name}: {why}", "-"),
            });
        }
    }
}

impl Context {
    /// Returns the time of `theirs` divided by the time of `ours`; both return the seconds that they took.
    fn ratio(&self, ours: impl FnMut() -> f64, theirs: impl FnMut() -> f64) -> f64 {
        self.ratios(ours, &mut [Box::new(theirs)])[0]
    }

    /// Returns the [`ratio`](Self::ratio) for each of `theirs`, all measured in turn.
    fn ratios(&self, mut ours: impl FnMut() -> f64, theirs: &mut [Box<dyn FnMut() -> f64 + '_>]) -> Vec<f64> {
        let mut round = || -> Vec<f64> {
            let ours = ours();
            theirs.iter_mut().map(|theirs| theirs() / ours).collect()
        };
        round();
        let rounds: Vec<Vec<f64>> = (0..self.args.rounds).map(|_| round()).collect();
        let median = |other: usize| {
            let mut ratios: Vec<f64> = rounds.iter().map(|round| round[other]).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        (0..rounds[0].len()).map(median).collect()
    }
}

fn odd(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(rounds) if rounds % 2 == 1 => Ok(rounds),
        _ => Err("not an odd number".to_owned()),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64()
}
