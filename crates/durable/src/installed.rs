//! What comes with programs that were installed, where no working tree of the repository is at hand.
use std::path::{Path, PathBuf};

/// A file of the repository, such as `experiments/demo-language.toml`: that in the working directory or, where there is none, that
/// which was installed with this program.
pub fn bundled(path: &Path) -> PathBuf {
    let installed = installed(path);
    if path.exists() || !installed.exists() { path.to_owned() } else { installed }
}

/// The place of a file or folder of the repository among what was installed, whether or not it is there.
pub fn installed(path: &Path) -> PathBuf {
    share().unwrap_or_default().join(path)
}

/// The commit that this program was built of, where it was installed: the working directory is then none of this project's.
pub fn installed_commit() -> Option<String> {
    let commit = std::fs::read_to_string(share()?.join("commit")).ok()?;
    Some(commit.trim().to_owned())
}

/// The command in front of recipes and programs: `just` in the repository, `headcount` where that is installed.
pub fn front() -> &'static str {
    if share().is_some() { "headcount" } else { "just" }
}

/// The folder beside that of an installed program which holds what comes with it.
fn share() -> Option<PathBuf> {
    let share = std::env::current_exe().ok()?.parent()?.parent()?.join("share");
    share.join("experiments").is_dir().then_some(share)
}
