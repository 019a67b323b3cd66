//! Machine settings for tests.
use std::path::PathBuf;

use tch::Device;
use training::{Machine, Memory, Precision};

/// Returns settings with two CPU threads.
pub(crate) fn machine() -> Machine {
    Machine {
        data: PathBuf::new(),
        threads: 2,
        device: Device::Cpu,
        precision: Precision::F32,
        memory: Memory::ExcludingModel(1 << 30),
        quiet: true,
    }
}
