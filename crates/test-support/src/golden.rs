//! Golden files: texts kept in the repository, which tests compare with what is made now.
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Compares texts with the golden files of a folder: one for each name, such as `tiny-language/figure3`, and no other. With
/// `GOLDEN=write` in the environment the folder gets these texts first, in place of what it had.
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
        assert!(expected.contains(&file), "`{}` is left over: nothing of this name is made", file.display());
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

    fn written(all: &[[&str; 2]]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &texts(all));
        folder
    }

    #[test]
    fn what_was_written_is_found_the_same_and_what_was_there_before_is_gone() {
        let folder = written(&[["old", "text"], ["b/two", "1"]]);
        write(folder.path(), &texts(&[["b/two", "1\n2\n"], ["one", ""]]));
        compare(folder.path(), &texts(&[["b/two", "1\n2\n"], ["one", ""]]));
    }

    #[test]
    #[should_panic(expected = "b/two.golden` has other text: Some((\"2\", \"3\")), (2, 2) lines")]
    fn another_text_is_found() {
        compare(written(&[["b/two", "1\n2\n"]]).path(), &texts(&[["b/two", "1\n3\n"]]));
    }

    #[test]
    #[should_panic(expected = "two.golden` has other text: None, (1, 2) lines")]
    fn a_line_too_many_is_found() {
        compare(written(&[["two", "1\n"]]).path(), &texts(&[["two", "1\n2\n"]]));
    }

    #[test]
    #[should_panic(expected = "there is no golden file")]
    fn a_missing_file_is_found() {
        compare(written(&[["one", "1"]]).path(), &texts(&[["one", "1"], ["two", "2"]]));
    }

    #[test]
    #[should_panic(expected = "is left over")]
    fn a_file_too_many_is_found() {
        compare(written(&[["one", "1"], ["two", "2"]]).path(), &texts(&[["one", "1"]]));
    }
}
