//! Versions of the libraries that results depend on, for signatures.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of tch; a test compares it with `Cargo.lock`.
const TCH: &str = "0.24.0";
/// Headers that contain the version of libtorch, in the folder that contains `lib/`; the second is for older releases.
const HEADERS: [&str; 2] =
    ["include/torch/headeronly/version.h", "include/torch/csrc/api/include/torch/version.h"];

/// Returns the versions of the libraries that results depend on, `unknown` if one cannot be found, and which of them multiplies matrices.
pub(crate) fn libraries() -> BTreeMap<String, String> {
    let libtorch = loaded_libtorch().and_then(|library| version_beside(&library));
    BTreeMap::from([
        ("products".to_owned(), core_masking::products().to_owned()),
        ("libtorch".to_owned(), libtorch.unwrap_or_else(|| "unknown".to_owned())),
        ("tch".to_owned(), TCH.to_owned()),
    ])
}

/// Returns the libtorch file that this process has loaded; `None` on systems other than Linux.
fn loaded_libtorch() -> Option<PathBuf> {
    let mapped = fs::read_to_string("/proc/self/maps").ok()?;
    let mut files = mapped.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_libtorch = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libtorch_cpu.so"))
    };
    files.find(|path| is_libtorch(path)).map(Path::to_owned)
}

/// Returns the version installed with a library: neither tch nor libtorch has a function for it.
fn version_beside(library: &Path) -> Option<String> {
    let root = library.parent()?.parent()?;
    let header = HEADERS.iter().find_map(|header| fs::read_to_string(root.join(header)).ok())?;
    let parts = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let define = format!("#define TORCH_VERSION_{part} ");
        let number = header.lines().find_map(|line| line.strip_prefix(&define))?;
        number.trim().parse::<u32>().ok()
    });
    let [Some(major), Some(minor), Some(patch)] = parts else { return None };
    Some(format!("{major}.{minor}.{patch}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libtorch writes its version into the ONNX files that it exports, so the library itself contains it.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_version_is_that_of_the_library_that_runs() {
        let version = libraries()["libtorch"].clone();
        let library = fs::read(loaded_libtorch().unwrap()).unwrap();
        let text = format!("\0{version}\0");
        let is_there = library.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(is_there, "the library that runs is not of version {version}");
    }

    #[test]
    fn the_version_of_tch_is_that_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let expected = format!("name = \"tch\"\nversion = \"{TCH}\"\n");
        assert!(lock.contains(&expected), "tch {TCH} is not in Cargo.lock");
    }
}
