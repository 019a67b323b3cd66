//! Files that are installed with programs, for use without a working tree of the repository.
use std::path::{Path, PathBuf};

/// Returns the path of a file of the repository, such as `experiments/demo-language.toml`: in the working directory if it exists there,
/// otherwise as installed with this program.
pub fn bundled(path: &Path) -> PathBuf {
    let installed = installed(path);
    if path.exists() || !installed.exists() { path.to_owned() } else { installed }
}

/// Returns the path of a file or folder of the repository in the installation, whether it exists or not.
pub fn installed(path: &Path) -> PathBuf {
    share().unwrap_or_default().join(path)
}

/// Returns the commit that an installed program was built from; the working directory is then unrelated to this project.
pub fn installed_commit() -> Option<String> {
    let commit = std::fs::read_to_string(share()?.join("commit")).ok()?;
    Some(commit.trim().to_owned())
}

/// Returns the command in front of recipes and programs: `just` in the repository, `headcount` if installed.
pub fn front() -> &'static str {
    if share().is_some() { "headcount" } else { "just" }
}

/// Returns the `share` folder of an installed program, next to the program's folder.
fn share() -> Option<PathBuf> {
    let share = std::env::current_exe().ok()?.parent()?.parent()?.join("share");
    share.join("experiments").is_dir().then_some(share)
}
