//! The machine: device, threads, precision, memory.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use records::Provenance;
use tch::{Cuda, Device, Kind};

use crate::error::Error;
use crate::libraries::libraries;
use crate::memory::Memory;

/// Number format of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// Single precision
    F32,
    /// bfloat16, fast on machines that have units for it; decisions that are close may change
    Bf16,
}

impl Precision {
    /// The name on the command line and in signatures.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
        }
    }
}

/// Device, threads, precision and memory of a computation.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Folder of data sets and trained models.
    pub data: PathBuf,
    /// Threads of the computation.
    pub threads: usize,
    /// Device of the model.
    pub device: Device,
    /// Number format of the model in experiments.
    pub precision: Precision,
    /// Memory that computations may take.
    pub memory: Memory,
    /// No progress on stderr.
    pub quiet: bool,
}

impl Machine {
    /// Kind and device of tensors.
    pub fn options(&self) -> (Kind, Device) {
        (self.precision.kind(), self.device)
    }

    /// Threads with a model of their own: one for each core of a CPU, each computing alone, which keeps cores busier than
    /// dividing small matrix products between them; one on a GPU, which divides them itself.
    pub fn workers(&self) -> usize {
        if self.device == Device::Cpu { self.threads } else { 1 }
    }

    /// Threads that evaluate: as many as there are workers, but two for a GPU, which computes for one while the other
    /// prepares texts or scores.
    pub fn evaluators(&self) -> usize {
        if self.device == Device::Cpu { self.workers() } else { 2 }
    }

    /// `cpu` or `cuda:N`, for signatures.
    pub fn device_name(&self) -> String {
        match self.device {
            Device::Cuda(index) => format!("cuda:{index}"),
            _ => "cpu".to_owned(),
        }
    }

    /// Name of the processor, or of the GPU; the instruction set where the system does not say.
    pub fn processor_name(&self) -> String {
        let listed = |path: &Path, key: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            let mut fields = text.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
        };
        let found = match self.device {
            Device::Cuda(_) => {
                // which of several kinds this one is cannot be seen there
                let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
                let models = gpus.filter_map(|gpu| listed(&gpu.path().join("information"), "Model"));
                let models: Vec<String> = models.collect::<BTreeSet<_>>().into_iter().collect();
                (!models.is_empty()).then(|| models.join(" or "))
            }
            _ => listed(Path::new("/proc/cpuinfo"), "model name"),
        };
        found.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
    }

    /// Provenance of a run that starts now, for signatures.
    pub fn provenance(&self) -> Provenance {
        Provenance::collect(&self.device_name(), self.threads, libraries())
    }

    /// Folder of a trained model of that name.
    pub fn model_folder(&self, name: &str) -> PathBuf {
        // a replicate's beside the subject's, which is replaced as a whole
        self.data.join("models").join(name.replace("/replicate-", ".replicate-"))
    }
}

/// Starts this many threads, or one for each core, lets products on this thread take as many, and returns their number.
///
/// # Errors
/// If they cannot be started.
pub fn start_threads(threads: Option<usize>) -> Result<usize, Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores);
    let fault = |error| Error::Invalid(format!("cannot start {threads} threads: {error}"));
    let started = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    // a binary that runs on one replicate after another has them already
    started
        .or_else(|error| if rayon::current_num_threads() == threads { Ok(()) } else { Err(fault(error)) })?;
    tch::set_num_threads(threads as i32);
    Ok(threads)
}

/// The device of that name: `auto`, `cpu` or `cuda:N`.
///
/// # Errors
/// If there is no such device.
pub fn device(name: &str) -> Result<Device, Error> {
    let found = if Cuda::is_available() { Cuda::device_count() } else { 0 };
    let cuda = |index: &str| index.parse().ok().filter(|&index| (index as i64) < found).map(Device::Cuda);
    let device = match name.split_once(':') {
        None if name == "cpu" => Some(Device::Cpu),
        None if name == "auto" => Some(if found > 0 { Device::Cuda(0) } else { Device::Cpu }),
        Some(("cuda", index)) => cuda(index),
        _ => None,
    };
    device.ok_or_else(|| {
        let cause = if found == 0 { ", and needs a torch with CUDA and a driver to see one" } else { "" };
        let allowed = format!("choose auto, cpu or cuda:N; libtorch sees {found} CUDA devices{cause}");
        Error::Invalid(format!("no device `{name}`: {allowed}"))
    })
}
