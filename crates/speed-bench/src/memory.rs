//! Peak memory of one pass, measured in a separate process.
//!
//! A process keeps memory from earlier computations, so each model is measured in a new process, which runs this program with `--peak-of`.
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

/// File in which Linux reports the memory of a process.
const STATUS: &str = "/proc/self/status";

/// The model whose memory is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeakOf {
    /// With all heads.
    Original,
    /// With heads removed.
    Pruned,
}

/// Returns the peak resident memory, in bytes, of a process that makes one pass; `None` if the system does not report it, in bf16, or on a
/// GPU, whose memory libtorch does not report.
pub fn peak(
    machine: &Machine,
    (model, replicate): (PeakOf, Option<usize>),
    removed: &HeadSet,
    batch_size: u64,
) -> anyhow::Result<Option<u64>> {
    // In bf16 a classifier also keeps its weights in f32.
    let is_known = machine.device == Device::Cpu && machine.precision == Precision::F32;
    if !is_known || !Path::new(STATUS).exists() {
        return Ok(None);
    }
    let mut command = Command::new(std::env::current_exe()?);
    let mut own = std::env::args_os();
    command.arg0(own.next().unwrap_or_default());
    command.args(own).args(["--peak-batch-size", &batch_size.to_string(), "--quiet"]);
    // in case --replicate all is given
    command.args(replicate.into_iter().flat_map(|number| ["--replicate".to_owned(), number.to_string()]));
    match model {
        PeakOf::Original => command.args(["--peak-of", "original"]),
        PeakOf::Pruned => command.args(["--peak-of", "pruned", "--removed", &removed.to_string()]),
    };
    // Freed memory goes back to the system at once, so that only memory in use counts.
    command.env("MALLOC_MMAP_THRESHOLD_", "65536").env("MALLOC_TRIM_THRESHOLD_", "65536");
    command.env_remove("MALLOC_TOP_PAD_");
    let output = command.output().context("cannot measure memory")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot measure memory: {}, {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Makes one pass, and prints the peak resident memory of this process during the pass.
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
            drop(subject); // with the removed weights
            pruned
        }
    };
    // Loading takes more memory than computing, so the peak is reset first: see proc_pid_clear_refs(5).
    fs::write("/proc/self/clear_refs", "5")?;
    (subject.pass(scored, batch_size as usize, work)?.run)()?;
    let status = fs::read_to_string(STATUS)?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    if let Some(kilobytes) = peak {
        println!("{}", kilobytes.parse::<u64>()? * 1024);
    }
    Ok(())
}
