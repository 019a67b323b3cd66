//! Models with their data, loss and metric.
//!
//! A TOML file in `experiments/` describes a setup; [`Description::open`] loads its model, training it on first use. Experiments only see a
//! [`Subject`]. Each task has a module that implements `task::Task`; `tasks` lists them.
mod checkpoint;
mod classification;
mod decoding;
mod description;
mod dynamics;
mod error;
mod evaluation;
mod fine_tune;
mod first_order;
mod functions;
pub mod init;
mod language;
mod locate;
mod models;
mod open_heads;
mod outcome;
mod relevant;
mod scored;
mod spec;
mod subject;
mod subject_file;
mod substitute;
mod task;
mod task_subject;
mod tasks;
#[cfg(test)]
mod test_machine;
mod text_input;
mod train;
mod translation;

pub use checkpoint::sha256_of_weights;
pub use decoding::{Decoding, decoding};
pub use description::Description;
pub use error::Error;
pub use fine_tune::{FineTuned, FineTuning, InitialWeights, TrainedWeights};
pub use outcome::{Evaluation, Pass, Work};
pub use relevant::{HeadRelevance, SegmentRelevance};
pub use scored::{Ablation, Sample, Scored};
pub use subject::{Evaluator, Subject};
pub use text_input::{Input, ReadText, TextAttention, TextInput, Vocabulary};
