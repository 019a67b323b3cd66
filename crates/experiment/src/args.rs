//! Command-line arguments that every experiment shares.
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::RangedU64ValueParser;
use records::{Row, RowWriter, Shard, Signature, Taken};
use significance::SEED;
use subject::{Description, Scored};
use training::{Machine, Memory, Precision, device, start_threads};

use crate::error::Error;
use crate::exit::exit_code;

/// Arguments that every experiment takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Shared options")]
pub struct SharedArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for the text of --help")]
    pub subject: SubjectArgs,

    /// Seed of random orders, samples and resamples; tests of existing results keep theirs [default: 1]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,

    /// Split to score [default: the test split]
    #[arg(long, value_name = "SPLIT")]
    pub split: Option<String>,

    /// Score a random sample of N segments, drawn with --seed; `first:N` takes the first N, of each group in proportion [default: all]
    #[arg(long, value_name = "N|first:N", value_parser = limit)]
    pub limit: Option<Limit>,

    /// Result file; split and limit are in the default name [default: `<results>/<setup>/<experiment>.csv`]
    #[arg(long, value_name = "FILE.csv", conflicts_with = "replicate")]
    pub output: Option<PathBuf>,

    /// Compute everything again; old results stay until the new ones are complete
    #[arg(long)]
    pub again: bool,

    /// Measure every N-th row from row I on, such as `2/8`; `merge` joins the shards
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,

    /// Number format of the model; bf16 may change close decisions
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Precision::F32)]
    pub precision: Precision,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for the text of --help")]
    pub machine: MachineArgs,
}

/// Segments to score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A random sample.
    Sample(usize),
    /// The first segments of the split.
    First(usize),
}

fn limit(text: &str) -> Result<Limit, String> {
    match text.strip_prefix("first:") {
        Some(first) => positive(first).map(Limit::First),
        None => positive(text).map(Limit::Sample),
    }
    .map_err(|fault| format!("{fault}, such as 200, or first:200"))
}

/// The setup and the run of its model.
#[derive(Debug, Clone, clap::Args)]
pub struct SubjectArgs {
    /// Setup to experiment on: a TOML file, or its name in `experiments/`; its model is trained on first use
    #[arg(value_name = "SETUP")]
    pub subject: PathBuf,

    /// Run to measure, from 1 to `replicates` in [training], or `all` [default: 1]
    #[arg(long, value_name = "N", value_parser = replicate)]
    pub replicate: Option<Replicate>,
}

/// Runs of a setup to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicate {
    /// Every run.
    All,
    /// Run N, counted from 1.
    One(usize),
}

fn replicate(text: &str) -> Result<Replicate, String> {
    if text == "all" {
        return Ok(Replicate::All);
    }
    let number = text.parse().ok().filter(|&number| number > 0);
    number.map(Replicate::One).ok_or_else(|| "must be a whole number of at least 1, or all".to_owned())
}

impl SubjectArgs {
    /// Reads the setup's file.
    ///
    /// # Errors
    /// If the file is missing or invalid, or has no such run.
    pub fn read(&self) -> Result<Description, Error> {
        if self.replicate == Some(Replicate::All) {
            let reason = "only one model can be used at a time here: give its number";
            return Err(Error::input(format!("--replicate all: {reason}")));
        }
        Ok(Description::read(&self.subject)?.replicate(self.number())?)
    }

    /// Returns the number of the run, from 1.
    pub fn number(&self) -> usize {
        match self.replicate {
            Some(Replicate::One(n)) => n,
            _ => 1,
        }
    }

    /// Returns arguments for each run that is asked for, one at a time.
    fn each(&self) -> Result<Vec<Self>, Error> {
        if self.replicate != Some(Replicate::All) {
            return Ok(vec![self.clone()]);
        }
        let one = |n| Self { replicate: Some(Replicate::One(n)), ..self.clone() };
        Ok((1..=Description::read(&self.subject)?.replicates()).map(one).collect())
    }
}

/// Runs a binary on its setup or, with `--replicate all`, on each run, and ends it as [`exit_code`] does.
///
/// - `subject`: finds the setup in the arguments
pub fn run_each<A, E: From<Error> + Display>(
    mut args: A,
    subject: impl Fn(&mut A) -> &mut SubjectArgs,
    run: impl Fn(&A) -> Result<(), E>,
) -> ExitCode {
    exit_code(subject(&mut args).each().map_err(E::from).and_then(|each| {
        each.into_iter().try_for_each(|one| {
            *subject(&mut args) = one;
            run(&args)
        })
    }))
}

impl SharedArgs {
    /// Checks the machine, as [`MachineArgs::build`] does, and sets its precision.
    pub fn machine(&self) -> Result<Machine, Error> {
        Ok(Machine { precision: self.precision, ..self.machine.build()? })
    }

    /// Returns the seed of all measurements.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    /// Returns the segments of a split that --limit selects.
    ///
    /// - `rescale`: multiply the kept heads of a layer by heads / kept
    pub fn scored(&self, split: String, rescale: bool) -> Scored {
        match self.limit {
            Some(Limit::Sample(size)) => Scored::sample(split, size, self.seed(), rescale),
            Some(Limit::First(size)) => Scored::first(split, Some(size), rescale),
            None => Scored::first(split, None, rescale),
        }
    }

    /// Returns arguments for results of other experiments that this one builds on: stored results that match are reused.
    pub fn of_ingredients(&self) -> Self {
        Self { again: false, output: None, seed: None, shard: None, ..self.clone() }
    }

    /// Refuses --shard for experiments whose rows cannot be measured separately.
    ///
    /// - `reason`: why not, as a sentence
    pub fn refuse_shard(&self, reason: &str) -> Result<(), Error> {
        self.shard.map_or(Ok(()), |shard| Err(Error::input(format!("--shard {shard}: {reason}"))))
    }

    /// Refuses results at `path` that could not be written, before any long work.
    pub fn check_writable(&self, path: &Path) -> Result<(), Error> {
        Ok(records::check_writable(&self.own_file(path))?)
    }

    /// Returns the file that this run writes: `path`, or its shard of the results.
    fn own_file(&self, path: &Path) -> PathBuf {
        self.shard.map_or_else(|| path.to_owned(), |shard| shard.path(path))
    }

    /// Returns the result file of an experiment: `<results>/<setup>/<experiment>.csv`. The name includes the limit, and the split unless it
    /// is the setup's test split.
    pub fn output_path(&self, experiment: &str, description: &Description, scored: &Scored) -> PathBuf {
        self.output.clone().unwrap_or_else(|| description.result_path(&self.results, experiment, scored))
    }

    /// Opens the results at `path`. If `path` holds results of another run, they stay and this run writes to a new name; --again replaces
    /// them instead, and a `path` set by --output is refused as by [`RowWriter::open`].
    pub fn open_rows<R: Row>(&self, path: &Path, signature: &Signature) -> Result<OpenRows<R>, Error> {
        let mut path = path.to_owned();
        if !self.again
            && self.output.is_none()
            && let Some(Taken { path: taken, differences }) = records::taken(&path, &signature.identity)?
        {
            path = signature.identity.own_path(&path);
            words::say!(
                "`{}` is from another run ({differences}): this run writes to `{}`; --again would replace the other",
                taken.display(),
                path.display()
            );
        }
        let path = self.own_file(&path);
        let writer = RowWriter::open(&path, signature, self.again)?;
        if writer.rows().len() > 0 && !self.again && !self.machine.quiet {
            words::say!(
                "`{}`: {} rows exist already and match{} (--again computes them again)",
                path.display(),
                writer.rows().len(),
                if writer.continues() { ", and this run resumes the unfinished one" } else { "" }
            );
        }
        Ok(OpenRows { path, writer })
    }
}

/// Results that are open for writing.
#[derive(Debug)]
pub struct OpenRows<R: Row> {
    /// File that this run writes.
    pub path: PathBuf,
    /// Writer of the file.
    pub writer: RowWriter<R>,
}

/// Arguments for where and how to compute.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Shared options")]
pub struct MachineArgs {
    /// Folder of data sets and trained models
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub data: PathBuf,

    /// CPU threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub threads: Option<usize>,

    /// Device: auto (the first GPU, otherwise the CPU), cpu or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,

    /// Memory in addition to the model, such as 500M or 8G [default: 80% of what is free]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,

    /// No progress on stderr
    #[arg(long)]
    pub quiet: bool,
}

/// Parses a number of bytes, with K, M, G or T for powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let power =
        ["", "K", "M", "G", "T"].iter().position(|unit| text[digits.len()..].eq_ignore_ascii_case(unit));
    let number: Option<u64> = digits.parse().ok().filter(|&number| number > 0);
    let size = number.zip(power).and_then(|(number, power)| number.checked_mul(1 << (10 * power)));
    size.ok_or_else(|| "must be a whole number of bytes, such as 500M or 8G".to_owned())
}

/// Parses a whole number of at least 1.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "must be a whole number of at least 1".to_owned())
}

impl MachineArgs {
    /// Checks the device and starts the threads. The precision is f32.
    pub fn build(&self) -> Result<Machine, Error> {
        let device = device(&self.device)?;
        Ok(Machine {
            data: self.data.clone(),
            threads: start_threads(self.threads)?,
            device,
            precision: Precision::F32,
            memory: self.memory.map_or_else(|| Memory::of_machine(device), Memory::ExcludingModel),
            quiet: self.quiet,
        })
    }
}

/// Returns true if an item occurs twice.
pub fn has_duplicates<T: PartialEq>(items: &[T]) -> bool {
    (1..items.len()).any(|later| items[..later].contains(&items[later]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_random_sample_unless_the_first_are_asked_for() {
        assert_eq!((limit("5"), limit("first:5")), (Ok(Limit::Sample(5)), Ok(Limit::First(5))));
        for wrong in ["0", "first:0", "last:5", "first:", "-1", "5%"] {
            assert!(limit(wrong).unwrap_err().contains("at least 1, such as 200, or first:200"), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!((bytes("3k"), bytes("500M"), bytes("8G")), (Ok(3 << 10), Ok(500 << 20), Ok(8 << 30)));
        for wrong in ["", "G", "0", "-1M", "1.5G", "8GB", "99999999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
