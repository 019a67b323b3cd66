//! The splits of a subject.
use std::path::{Path, PathBuf};

use corpus::parallel::ParallelText;
use corpus::splits::BadRows;
use corpus::splits::translation::{FilePair, Grammar};

use super::spec::DataSpec;
use crate::error::Error;
use crate::spec::check_fetched;

/// Reads one of the splits; `folder` is where data sets are.
///
/// # Errors
/// If its files are missing, torn or of different length.
pub(super) fn read_split(
    spec: &DataSpec,
    folder: &Path,
    split: &str,
    bad: &mut BadRows,
) -> Result<ParallelText, Error> {
    match spec.grammar {
        Some(grammar) => grammar.read(split).ok_or_else(|| Error::no_such_split(split, &Grammar::SPLITS)),
        None => {
            let files: &FilePair = &spec.splits[split];
            check_fetched(&files.paths(folder), files.fetch.as_ref().or(spec.fetch.as_ref()))?;
            Ok(files.read(folder, bad)?)
        }
    }
}

/// The files of a split; none if it is made up, or there is no such split.
pub(super) fn files(spec: &DataSpec, folder: &Path, split: &str) -> Vec<PathBuf> {
    let pair = spec.splits.get(split).filter(|_| spec.grammar.is_none());
    pair.map_or(Vec::new(), |pair| pair.paths(folder))
}

#[cfg(test)]
mod tests {
    use super::super::Translation;
    use super::*;
    use crate::subject_file::SubjectFile;
    use crate::test_machine::machine;
    use std::fs;
    use training::Machine;

    const DATA: &str = "
        fetch = 'common'
        [splits]
        files = { source = 'a.en', target = 'a.fr', most_words = 2 }
        table = { pairs = 'b.tsv', source = 2, target = 1, sample = 2, seed = 1, fetch = 'own' }
    ";

    fn read(folder: &Path, split: &str) -> Result<ParallelText, String> {
        let spec = format!("description = ''\n[data]\n{}", DATA.replace("[splits]", "[data.splits]"));
        let (name, spec) = (String::new(), toml::from_str(&spec).unwrap());
        let file = SubjectFile::<Translation> { name, path: PathBuf::new(), spec };
        let machine = Machine { data: folder.to_owned(), ..machine() };
        file.read(&machine, split).map_err(|error| error.to_string())
    }

    #[test]
    fn a_missing_file_is_named_with_what_brings_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = |file: &str, fetch: &str| {
            Err(format!("`{}` is missing: run `just fetch {fetch}`", folder.path().join(file).display()))
        };
        assert_eq!(read(folder.path(), "files"), missing("a.en", "common"));
        fs::write(folder.path().join("a.en"), "A.\n").unwrap();
        assert_eq!(read(folder.path(), "files"), missing("a.fr", "common"));
        assert_eq!(read(folder.path(), "table"), missing("b.tsv", "own"));
    }

    #[test]
    fn files_and_tables_are_read_as_described() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("a.en", "A dog.\nA big dog.\nDogs.\n"),
            ("a.fr", "Un chien.\nUn gros.\nDes chiens ici.\n"),
            ("b.tsv", "Va !\tGo.\nCours !\tRun!\nCourez !\tRun!\n"),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let files = read(folder.path(), "files").unwrap();
        assert_eq!((files.source, files.target), (vec!["A dog.".to_owned()], vec!["Un chien.".to_owned()]));
        let table = read(folder.path(), "table").unwrap();
        let mut pairs: Vec<_> = table.source.iter().zip(&table.target).collect();
        pairs.sort();
        assert_eq!(
            pairs,
            [(&"Go.".to_owned(), &"Va !".to_owned()), (&"Run!".to_owned(), &"Cours !".to_owned())]
        );
    }
}
