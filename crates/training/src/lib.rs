//! Training of any model, from scratch or from a checkpoint, and support for long computations: the machine, threads with ordered results,
//! progress, and versions of libraries.
//!
//! A [`TrainingPlan`] defines the training, an [`Objective`] what it minimises, and a [`Learner`] is the model in training. An epoch's
//! batches and dropout depend only on the seed and its number, and every epoch is saved. So a killed run resumes after its last epoch and
//! gives the losses of an uninterrupted run. A model is trained in `<name>.partial` and replaces the existing one when it is complete.
mod adam;
mod error;
mod full_memory;
mod gates;
mod learner;
mod libraries;
mod machine;
mod memory;
mod plan;
mod progress;
mod record;
mod run;
mod state;
pub mod stop;
pub mod workers;

pub use adam::AdamSettings;
pub use error::Error;
pub use full_memory::or_full_memory;
pub use gates::{Closing, GATE_RATE, GateStart, GateTraining, MULTIPLIER_RATE, Penalty, gate_history};
pub use learner::{Gating, Learner, Objective, Validation};
pub use machine::{Machine, Precision, device, start_threads};
pub use memory::Memory;
pub use plan::{Keep, Material, Recipe, TrainingPlan, Workplace, checkpoints};
pub use progress::Progress;
pub use record::Ingredient;
pub use state::{Stay, TrainingCheckpoint, write_once};
