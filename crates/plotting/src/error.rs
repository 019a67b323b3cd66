//! What can go wrong between a result file and a figure.
use std::path::{Path, PathBuf};

/// Why a table or figure could not be made. Heads are named like `enc-enc:6:13`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be shown yet, which says nothing about others.
    #[error("`{}` {fault}", path.display())]
    Alone {
        /// The file.
        path: PathBuf,
        /// Why not.
        fault: String,
    },

    /// Something that was asked for is not there, or has no such name.
    #[error("{0}")]
    Asked(String),

    /// Lists of numbers could not be compared.
    #[error("cannot compare the numbers of `{}`", path.display())]
    Compare {
        /// The CSV file.
        path: PathBuf,
        /// Why not.
        source: stats::Error,
    },

    /// The figure could not be drawn.
    #[error("cannot draw the figure: {0}")]
    Draw(String),

    /// A file is not what it is taken for.
    #[error("`{}` {fault}", path.display())]
    Fault {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: String,
    },

    /// The experiment has not been run on this subject.
    #[error("`{}` does not exist: make it with `{experiment} experiments/{subject}.toml`", path.display())]
    NoResults {
        /// The CSV file.
        path: PathBuf,
        /// The command that makes it.
        experiment: &'static str,
        /// The subject.
        subject: String,
    },

    /// A file of published numbers is not a table of them.
    #[error("cannot read `{}`", path.display())]
    Published {
        /// The file.
        path: PathBuf,
        /// Where and why reading it failed.
        source: csv::Error,
    },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },

    /// A result file or its signature could not be read; the message is that of `records`.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// The statistics of segments beside a file are damaged.
    #[error("the segments of `{}` cannot be read", path.display())]
    Segments {
        /// The CSV file.
        path: PathBuf,
        /// What is wrong.
        source: Box<significance::Error>,
    },

    /// A file or folder could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl Error {
    /// A file that cannot be shown, with what follows its name in the message.
    pub fn alone(path: &Path, fault: impl Into<String>) -> Self {
        Self::Alone { path: path.to_owned(), fault: fault.into() }
    }

    /// A file that is not what it is taken for, with what follows its name in the message.
    pub fn fault(path: &Path, fault: impl Into<String>) -> Self {
        Self::Fault { path: path.to_owned(), fault: fault.into() }
    }

    /// Whether it says nothing about other files: what a job leaves behind that is running, was killed or has been done
    /// again in part, and what was edited or is of another version.
    pub fn leaves_others_alone(&self) -> bool {
        match self {
            Self::Alone { .. } | Self::NoResults { .. } => true,
            Self::Records(error) => matches!(
                error,
                records::Error::Changed { .. }
                    | records::Error::Edited { .. }
                    | records::Error::Empty { .. }
                    | records::Error::Header { .. }
            ),
            Self::Compare { source, .. } => *source == stats::Error::TooFew,
            _ => false,
        }
    }
}

/// Files that could not be shown and kept nothing else from being shown, in the order in which they were met.
#[derive(Debug, Default)]
pub struct LeftOut(Vec<Error>);

impl LeftOut {
    /// What was read; nothing if the fault [leaves other files alone](Error::leaves_others_alone), which is then noted once.
    ///
    /// # Errors
    /// With any other fault.
    pub fn keep<T>(&mut self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Err(error) if error.leaves_others_alone() => {
                if self.0.iter().all(|noted| noted.to_string() != error.to_string()) {
                    self.0.push(error);
                }
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

    /// Whether nothing was left out so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reasons noted so far, which are then forgotten.
    pub fn take(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.0)
    }
}
