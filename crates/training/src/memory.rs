//! Memory limit of computations: what the machine has free, within the limits of its control groups.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tch::Device;

/// Memory in bytes if the system does not report what is free.
const UNKNOWN: u64 = 2 << 30;

/// Memory that computations may take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Limit in addition to the model, as set by `--memory`.
    ExcludingModel(u64),
    /// Limit including the model: 80% of what was free at the start, or 2 GiB if the system does not report it.
    WithModel(u64),
}

impl Memory {
    /// Returns the memory that `device` can spare now. Called once per run, because batch sizes, and so the last digits of results, depend
    /// on it.
    pub fn of_machine(device: Device) -> Self {
        let free = match device {
            Device::Cpu => free_of_system(Path::new("/")),
            Device::Cuda(index) => free_of_gpu(index),
            _ => None,
        };
        Self::WithModel(free.map_or(UNKNOWN, |free| free / 5 * 4))
    }

    /// Returns the memory left in addition to a model of this size in bytes.
    pub fn beside(self, model: u64) -> u64 {
        match self {
            Self::ExcludingModel(bytes) => bytes,
            Self::WithModel(bytes) => bytes.saturating_sub(model),
        }
    }
}

/// Returns the memory that Linux could give to this process without swapping, within the limits of its control groups.
fn free_of_system(root: &Path) -> Option<u64> {
    let available = table(&root.join("proc/meminfo")).find(|(name, _)| name == "MemAvailable:")?.1 * 1024;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let free = groups.lines().flat_map(|line| group_folders(root, line)).filter_map(|group| group.free());
    Some(free.fold(available, u64::min))
}

/// A folder that may contain the limit of a control group.
struct Group {
    folder: PathBuf,
    files: &'static GroupFiles,
}

/// File names of a control group.
struct GroupFiles {
    limit: &'static str,
    usage: &'static str,
    /// Line in `memory.stat` with cached files that can be evicted.
    cached: &'static str,
}

const SECOND: GroupFiles =
    GroupFiles { limit: "memory.max", usage: "memory.current", cached: "inactive_file" };
const FIRST: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached: "total_inactive_file",
};

/// Returns the folders of a control group and its ancestors, from a line `id:controllers:path` of `/proc/self/cgroup`; version 2 has no
/// controllers. A container sees its own group as the root, whatever the path is.
fn group_folders(root: &Path, line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (mount, files) = match controllers {
        "" => ("sys/fs/cgroup", &SECOND),
        _ if controllers.split(',').any(|name| name == "memory") => ("sys/fs/cgroup/memory", &FIRST),
        _ => return Vec::new(),
    };
    let mount = root.join(mount);
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors().map(|path| Group { folder: mount.join(path), files }).collect()
}

impl Group {
    /// Returns the rest of its limit; `None` without a limit.
    fn free(&self) -> Option<u64> {
        let number = |file| fs::read_to_string(self.folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let (limit, usage) = (number(self.files.limit)?, number(self.files.usage)?);
        let cached = table(&self.folder.join("memory.stat")).find(|(name, _)| name == self.files.cached);
        Some(limit.saturating_sub(usage.saturating_sub(cached.map_or(0, |(_, bytes)| bytes))))
    }
}

/// Reads names and numbers, the first two words of each line.
fn table(path: &Path) -> impl Iterator<Item = (String, u64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(row).collect::<Vec<_>>().into_iter()
}

/// Returns the free memory according to nvidia-smi, since tch has no function for it; `None` for MIG slices.
///
/// `CUDA_VISIBLE_DEVICES` defines which GPU libtorch calls `index`. Without it the driver's order is used, which matches libtorch's if all
/// GPUs are of one type.
fn free_of_gpu(index: usize) -> Option<u64> {
    let number = index.to_string();
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let name = visible.as_deref().map_or(Some(&*number), |visible| visible.split(',').nth(index))?;
    let output = Command::new("nvidia-smi")
        .env_remove("LD_PRELOAD") // may preload libtorch's CUDA library
        .args(["--query-gpu=memory.free", "--format=csv,noheader,nounits", "--id", name.trim()])
        .output()
        .ok()?;
    let mebibytes: u64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(mebibytes << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the free memory with these files below a temporary root.
    fn free(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        free_of_system(root.path())
    }

    const MEMORY: (&str, &str) =
        ("proc/meminfo", "MemTotal:  8388608 kB\nMemFree: 1024 kB\nMemAvailable:    4194304 kB\n");

    #[test]
    fn without_limits_all_that_is_available_is_free() {
        assert_eq!(free(&[MEMORY]), Some(4096 * MIB));
        let unlimited = [MEMORY, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "max\n")];
        assert_eq!(free(&unlimited), Some(4096 * MIB));
        assert_eq!(free(&[]), None);
    }

    /// 1,000 MiB less 300 MiB in use, of which 100 MiB are evictable file cache.
    #[test]
    fn a_control_group_of_either_version_leaves_what_it_does_not_use() {
        let [limit, usage] = [1000 * MIB, 300 * MIB].map(|bytes| bytes.to_string());
        let cached = 100 * MIB;
        let second = [
            MEMORY,
            ("proc/self/cgroup", "1:name=systemd:/\n0::/slurm/job_7\n"),
            ("sys/fs/cgroup/slurm/memory.max", &limit),
            ("sys/fs/cgroup/slurm/memory.current", &usage),
            ("sys/fs/cgroup/slurm/memory.stat", &format!("anon 1\ninactive_file {cached}\n")),
            ("sys/fs/cgroup/slurm/job_7/memory.max", "max\n"),
            ("sys/fs/cgroup/slurm/job_7/memory.current", "5\n"),
        ];
        assert_eq!(free(&second), Some(800 * MIB), "the limit of the group that holds ours");
        let first = [
            MEMORY,
            ("proc/self/cgroup", "9:cpu:/x\n4:memory:/not/seen/in/here\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", &limit),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", &usage),
            ("sys/fs/cgroup/memory/memory.stat", &format!("cache 1\ntotal_inactive_file {cached}\n")),
        ];
        assert_eq!(free(&first), Some(800 * MIB), "a container's own group is the outermost");
    }

    #[test]
    fn the_model_counts_unless_the_memory_was_asked_for() {
        assert_eq!(Memory::ExcludingModel(10).beside(7), 10);
        assert_eq!((Memory::WithModel(10).beside(7), Memory::WithModel(10).beside(70)), (3, 0));
        assert_eq!(Memory::of_machine(Device::Mps), Memory::WithModel(UNKNOWN));
    }
}
