//! Locations of setup files.
use std::path::{Path, PathBuf};

use durable::bundled;

use crate::error::Error;

/// Returns the TOML file and the name of a setup, given as a path or as a name in `experiments/` or among the installed setups.
pub(crate) fn locate(subject: &Path) -> Result<(PathBuf, String), Error> {
    locate_in(Path::new("experiments"), subject)
}

fn locate_in(experiments: &Path, subject: &Path) -> Result<(PathBuf, String), Error> {
    let mut file = subject.to_owned();
    if !is_description(subject) {
        file.as_mut_os_string().push(".toml"); // not `with_extension`: names may hold dots
    }
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let by_name = experiments.join(&file);
    let is_name = !is_description(subject) && subject.components().count() == 1;
    let path = if is_name { by_name.clone() } else { file };
    let found = [path.clone(), bundled(&by_name)].into_iter().find(|place| place.is_file());
    match found {
        Some(path) => Ok((path, name)),
        None => {
            let known = match subjects_in(experiments) {
                known if known.is_empty() => String::new(),
                known => {
                    let names = known.iter().map(String::as_str);
                    format!("{}; the setups are {}", words::did_you_mean(&name, names), known.join(", "))
                }
            };
            Err(Error::Invalid(format!("no setup `{name}`: `{}` is not a file{known}", path.display())))
        }
    }
}

fn is_description(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn subjects_in(experiments: &Path) -> Vec<String> {
    let folders = [experiments.to_owned(), durable::installed(experiments)];
    let paths = folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let specs = paths.filter(|path| is_description(path));
    let mut names: Vec<String> =
        specs.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_found_by_name_and_by_path_whatever_dots_are_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let experiments = folder.path().join("experiments");
        std::fs::create_dir(&experiments).unwrap();
        for name in ["my", "my.v2"] {
            let path = experiments.join(format!("{name}.toml"));
            std::fs::write(&path, "").unwrap();
            let found = Some((path.clone(), name.to_owned()));
            let locate = |subject: &Path| locate_in(&experiments, subject).ok();
            assert_eq!(locate(Path::new(name)), found);
            assert_eq!(locate(Path::new(&format!("{name}.toml"))), found);
            assert_eq!(locate(&experiments.join(name)), found);
            assert_eq!(locate(&path), found);
        }
        let message = locate_in(&experiments, Path::new("my.v3")).unwrap_err().to_string();
        assert!(message.contains("no setup `my.v3`") && message.contains("my.v3.toml"), "{message}");
    }
}
