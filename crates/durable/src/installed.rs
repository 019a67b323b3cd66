//! Files that come with programs that were installed, where no working tree of the repository is at hand.
use std::path::{Path, PathBuf};

/// A file of the repository, such as `experiments/demo-language.toml`: that in the working directory or, where there is none, that
/// which was installed with this program.
pub fn bundled(path: &Path) -> PathBuf {
    share()
        .map(|share| share.join(path))
        .filter(|installed| installed.exists() && !path.exists())
        .unwrap_or_else(|| path.to_owned())
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
