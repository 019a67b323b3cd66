//! What can go wrong between a subject and its results.
use std::path::PathBuf;

/// Why an experiment could not be done, or a model not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A file beside a model that export will not copy.
    #[error("cannot export `{}`: {fault}", path.display())]
    Companion { path: PathBuf, fault: &'static str },

    /// A model's configuration that cannot be understood.
    #[error("`{}`: {fault}", path.display())]
    Config { path: PathBuf, fault: String },

    /// A folder to export to that holds a folder, which would have to be moved.
    #[error("`{}` is in the way of an export: choose another folder, or move it away", path.display())]
    ExportBesideFolder { path: PathBuf },

    /// A folder to export to that holds something.
    #[error(
        "`{}` is there already: choose another folder, or replace it with --replace",
        folder.display()
    )]
    ExportExists { folder: PathBuf },

    /// A folder to export to that the weights come from.
    #[error("`{}` is where the model comes from: choose another folder", folder.display())]
    ExportOntoSource { folder: PathBuf },

    /// A head is at fault.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// A name of heads, or a head that the model does not have.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// Groups that are not whole, or not alike.
    #[error(
        "--unit group and --uniform need groups of one size throughout the model, and {removed} heads of this one have been \
         removed"
    )]
    NoUnits { removed: usize },

    /// Results that an experiment is made of, where only a shard of it is to be measured.
    #[error(
        "`{}` does not have all rows yet: a shard takes them as they are, so measure them first, in shards and merged or at \
         once",
        path.display()
    )]
    NoIngredient { path: PathBuf },

    /// An experiment without rows that could be measured apart.
    #[error("--shard {shard}: {reason}")]
    NotSharded { shard: records::Shard, reason: &'static str },

    /// A row of a curve that came from another order of heads.
    #[error("row `{row}` masked other heads than now: compute it again with --again")]
    OtherHeads { row: String },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },

    /// A result file is at fault.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// Rows could not be tested.
    #[error(transparent)]
    Significance(#[from] significance::Error),

    /// The subject is at fault.
    #[error(transparent)]
    Subject(#[from] subject::Error),

    /// The machine is at fault.
    #[error(transparent)]
    Training(#[from] training::Error),

    /// A file could not be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
