//! Golden files: texts in the repository that tests compare with their output.
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Compares texts with the golden files of a folder: one per name, such as `tiny-language/figure3`, and no others. With `GOLDEN=write` in
/// the environment the folder is first replaced by these texts.
///
/// # Panics
/// If a text differs, or a file is missing or left over.
pub fn check(folder: &Path, texts: &BTreeMap<String, String>) {
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        write(folder, texts);
    }
    compare(folder, texts);
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.golden"))
}

fn write(folder: &Path, texts: &BTreeMap<String, String>) {
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
    for (name, text) in texts {
        let path = path(folder, name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn compare(folder: &Path, texts: &BTreeMap<String, String>) {
    for (name, text) in texts {
        let path = path(folder, name);
        let expected = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("there is no golden file `{}`: GOLDEN=write writes it", path.display())
            }
            expected => expected.unwrap(),
        };
        let differing = expected.lines().zip(text.lines()).find(|(expected, text)| expected != text);
        let lengths = (expected.lines().count(), text.lines().count());
        assert!(
            expected == *text,
            "`{}` has other text: {differing:?}, {lengths:?} lines; GOLDEN=write writes it anew",
            path.display()
        );
    }
    let expected: Vec<PathBuf> = texts.keys().map(|name| path(folder, name)).collect();
    for file in files(folder) {
        assert!(expected.contains(&file), "`{}` is left over: no text has this name", file.display());
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[[&str; 2]]) -> BTreeMap<String, String> {
        all.iter().map(|[name, text]| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn other_texts_and_missing_or_left_over_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &texts(&[["old", "text"]]));
        write(folder.path(), &texts(&[["b/two", "1\n2\n"], ["one", ""]])); // what was there before is gone
        let compared = |all: &[[&str; 2]]| {
            let all = texts(all);
            std::panic::catch_unwind(|| compare(folder.path(), &all)).is_ok()
        };
        assert!(compared(&[["b/two", "1\n2\n"], ["one", ""]]));
        for text in ["1\n3\n", "1\n2\n3\n"] {
            assert!(!compared(&[["b/two", text], ["one", ""]]), "{text}");
        }
        assert!(!compared(&[["b/two", "1\n2\n"], ["one", ""], ["three", ""]]), "a missing file");
        assert!(!compared(&[["one", ""]]), "a file too many");
    }
}
