//! Files that cannot be shown yet, and need not keep anything else from being shown.
use crate::Error;

/// Why files were left out, in the order in which they were met.
#[derive(Debug, Default)]
pub struct LeftOut(Vec<Error>);

impl LeftOut {
    /// What was read; nothing if the fault [leaves other files alone](Error::leaves_others_alone), which is then noted.
    ///
    /// # Errors
    /// With any other fault.
    pub fn keep<T>(&mut self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Err(error) if error.leaves_others_alone() => {
                self.0.push(error);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// The same for an experiment that may not have been run at all, which needs no note.
    ///
    /// # Errors
    /// As for [`LeftOut::keep`].
    pub fn keep_if_there<T>(&mut self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Err(Error::NoResults { .. }) => Ok(None),
            read => self.keep(read),
        }
    }

    /// The reasons noted so far, which are then forgotten.
    pub fn take(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_what_a_job_leaves_behind_is_noted() {
        let path = || PathBuf::from("a.csv");
        let no_results =
            || Error::NoResults { path: path(), experiment: "ablate-one", subject: "x".to_owned() };
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.keep(Ok(3)).unwrap(), Some(3));
        assert_eq!(left_out.keep_if_there::<u8>(Err(no_results())).unwrap(), None);
        assert!(left_out.take().is_empty());
        assert_eq!(left_out.keep::<u8>(Err(no_results())).unwrap(), None);
        assert_eq!(left_out.keep_if_there::<u8>(Err(Error::Empty { path: path() })).unwrap(), None);
        assert_eq!(left_out.take().len(), 2);
        let damaged = Error::Mixed {
            path: path(),
            column: "metric",
            expected: "`f1`".to_owned(),
            found: "`bleu`".to_owned(),
        };
        assert!(left_out.keep::<u8>(Err(damaged)).is_err());
    }
}
