//! Peak memory of one pass, measured in a process of its own.
//!
//! A process that has computed something else before keeps memory that it no longer needs, so each model is measured in
//! a new one, which runs this program again with `--peak-of`.
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use core_masking::{HeadId, HeadSet};
use subject::{Scored, Subject, Work};
use tch::Device;
use training::{Machine, Precision};

/// File in which Linux tells what a process takes.
const STATUS: &str = "/proc/self/status";

/// The model whose memory is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeakOf {
    /// With all heads.
    Original,
    /// With heads removed.
    Pruned,
}

/// Peak resident memory of a process that makes one pass, in bytes; `None` where the system does not tell, or the model
/// is on a GPU, whose memory libtorch does not tell.
///
/// # Errors
/// If that process cannot be started, or fails.
pub fn peak(
    machine: &Machine,
    (model, replicate): (PeakOf, Option<usize>),
    removed: &HeadSet,
    batch_size: u64,
) -> anyhow::Result<Option<u64>> {
    // In bf16 a classifier has its weights in single precision too.
    let is_known = machine.device == Device::Cpu && machine.precision == Precision::F32;
    if !is_known || !Path::new(STATUS).exists() {
        return Ok(None);
    }
    let mut command = Command::new(std::env::current_exe()?);
    let mut own = std::env::args_os();
    command.arg0(own.next().unwrap_or_default());
    command.args(own).args(["--peak-batch-size", &batch_size.to_string(), "--quiet"]);
    // of all replicates the one that is timed now
    command.args(replicate.into_iter().flat_map(|number| ["--replicate".to_owned(), number.to_string()]));
    match model {
        PeakOf::Original => command.args(["--peak-of", "original"]),
        PeakOf::Pruned => command.args(["--peak-of", "pruned", "--removed", &removed.to_string()]),
    };
    // What is freed goes back to the system at once, so that only what is needed at one time counts.
    command.env("MALLOC_MMAP_THRESHOLD_", "65536").env("MALLOC_TRIM_THRESHOLD_", "65536");
    command.env_remove("MALLOC_TOP_PAD_");
    let output = command.output().context("cannot measure memory")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot measure memory: {}, {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Makes one pass, and prints the peak resident memory of this process from then on.
///
/// # Errors
/// If the pass fails, or the system does not tell.
pub fn print_peak(
    model: PeakOf,
    subject: Subject,
    removed: &[HeadId],
    scored: &Scored,
    (batch_size, work): (u64, Work),
) -> anyhow::Result<()> {
    let subject = match model {
        PeakOf::Original => subject,
        PeakOf::Pruned => {
            let pruned = subject.without_heads(&removed.iter().copied().collect(), &scored.ablation)?;
            drop(subject); // with the weights that were cut
            pruned
        }
    };
    // Loading takes more than computing: the count begins anew, see proc_pid_clear_refs(5).
    fs::write("/proc/self/clear_refs", "5")?;
    (subject.pass(scored, batch_size as usize, work)?.run)()?;
    let status = fs::read_to_string(STATUS)?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = peak {
        println!("{}", kilobytes.parse::<u64>()? * 1024);
    }
    Ok(())
}
