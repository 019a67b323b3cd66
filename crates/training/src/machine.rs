//! The machine: device, threads, precision and memory.
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
    /// bfloat16, fast on machines with hardware support; close decisions may change
    Bf16,
}

impl Precision {
    /// Returns its name on the command line and in signatures.
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
    /// Number of threads.
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
    /// Returns the kind and device of tensors.
    pub fn options(&self) -> (Kind, Device) {
        (self.precision.kind(), self.device)
    }

    /// Returns the number of threads with a copy of the model: one per CPU core, which is faster than dividing small matrix products
    /// between cores, but only one on a GPU.
    pub fn workers(&self) -> usize {
        if self.device == Device::Cpu { self.threads } else { 1 }
    }

    /// Returns the number of threads that evaluate: the workers, but two on a GPU, so that one prepares texts or scores while the other
    /// computes.
    pub fn evaluators(&self) -> usize {
        if self.device == Device::Cpu { self.workers() } else { 2 }
    }

    /// Returns `cpu` or `cuda:N`, for signatures.
    pub fn device_name(&self) -> String {
        match self.device {
            Device::Cuda(index) => format!("cuda:{index}"),
            _ => "cpu".to_owned(),
        }
    }

    /// Returns the name of the processor or GPU, or the instruction set if the system does not provide it.
    pub fn processor_name(&self) -> String {
        let listed = |path: &Path, key: &str| {
            let text = std::fs::read_to_string(path).ok()?;
            let mut fields = text.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
        };
        let found = match self.device {
            Device::Cuda(_) => {
                // does not tell which of several GPU models this device is
                let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
                let models = gpus.filter_map(|gpu| listed(&gpu.path().join("information"), "Model"));
                let models: Vec<String> = models.collect::<BTreeSet<_>>().into_iter().collect();
                (!models.is_empty()).then(|| models.join(" or "))
            }
            _ => listed(Path::new("/proc/cpuinfo"), "model name"),
        };
        found.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
    }

    /// Returns the provenance of a run that starts now, for signatures.
    pub fn provenance(&self) -> Provenance {
        Provenance::collect(&self.device_name(), self.threads, libraries())
    }

    /// Returns the folder of the trained model with this name.
    pub fn model_folder(&self, name: &str) -> PathBuf {
        // later runs are stored next to the first run's folder, which is replaced as a whole
        self.data.join("models").join(name.replace("/replicate-", ".replicate-"))
    }
}

/// Starts this many threads, by default one per core, which matrix products on this thread use too. Returns their number.
pub fn start_threads(threads: Option<usize>) -> Result<usize, Error> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores);
    let fault = |error| Error::Invalid(format!("cannot start {threads} threads: {error}"));
    let started = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    // a binary that handles several runs has started them already
    started
        .or_else(|error| if rayon::current_num_threads() == threads { Ok(()) } else { Err(fault(error)) })?;
    tch::set_num_threads(threads as i32);
    Ok(threads)
}

/// Parses a device: `auto`, `cpu` or `cuda:N`, which must exist.
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
        let cause = if found == 0 { "; using one needs a torch with CUDA and a driver" } else { "" };
        let allowed = format!("choose auto, cpu or cuda:N; libtorch sees {found} CUDA devices{cause}");
        Error::Invalid(format!("no device `{name}`: {allowed}"))
    })
}
