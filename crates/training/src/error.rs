//! What can go wrong on the machine and in training.
use std::path::PathBuf;

/// Why a model could not be trained, or a computation not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// The rest of a training that cannot be continued.
    #[error("`{}` holds a training that was interrupted, but is damaged: remove it ({fault})", folder.display())]
    DamagedRest { folder: PathBuf, fault: String },

    /// A device that is not there, or is written wrongly.
    #[error("no device `{name}`: choose auto, cpu or cuda:N; this machine has {found} CUDA devices")]
    Device { name: String, found: i64 },

    /// The loss of a training step, or its gradient, was not a number.
    #[error(
        "the loss is no longer finite in epoch {epoch} after step {step}: lower the learning rate or clip_norm"
    )]
    Diverged { epoch: usize, step: usize },

    /// Less memory than a computation asked for.
    #[error(
        "the memory of the {place} is full: free some of it, or use fewer --threads or less --memory; what is finished stays, and \
         the same command goes on from there"
    )]
    FullMemory { place: &'static str },

    /// A model that another process is training.
    #[error("`{}` is being trained by another process: wait for it", folder.display())]
    InTraining { folder: PathBuf },

    /// Weights are at fault.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// A folder of other things where a model is to be.
    #[error("`{}` is where the model goes, but holds something else: move that away", folder.display())]
    NoModelFolder { folder: PathBuf },

    /// A checkpoint that lies beyond the end of training.
    #[error("`{}`: dynamics.steps has {step}, but training ends after {steps} updates", spec.display())]
    NoSuchStep { spec: PathBuf, step: usize, steps: usize },

    /// A checkpoint of training that was not kept.
    #[error(
        "no checkpoint in `{}`: train again with `train-subject {} --again`, which keeps those of [dynamics]",
        folder.display(),
        spec.display()
    )]
    NoTrainingCheckpoint { folder: PathBuf, spec: PathBuf },

    /// A trained model that other settings or other data made.
    #[error("`{}` {fault}: train it anew with `train-subject {} --again`", folder.display(), spec.display())]
    OtherTraining { folder: PathBuf, spec: PathBuf, fault: String },

    /// A file of a training run could not be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },

    /// The training curve is at fault.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// Signals cannot be caught.
    #[error("cannot wait for signals")]
    Signals { source: std::io::Error },

    /// A signal has asked the process to end.
    #[error("stopped by a signal: the rows that are finished stay, and the same command goes on from them")]
    Stopped,

    /// The state of an epoch that no training wrote.
    #[error("`{}`: {fault}", path.display())]
    State { path: PathBuf, fault: String },

    /// More threads than a machine can have.
    #[error("cannot start {threads} threads")]
    Threads { threads: usize, source: std::io::Error },

    /// A thread of the computation gave up.
    #[error("the computation failed: {fault}")]
    Worker { fault: String },

    /// A file of a training run could not be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
