//! Training of any model, from scratch or from a pretrained checkpoint, and what any long computation needs: the machine,
//! ordered work on its threads, progress, the versions of its libraries.
//!
//! A [`TrainingPlan`] says how a model is trained, an [`Objective`] what it minimises, a [`Learner`] is the model. An epoch's batches and dropout are
//! functions of the seed and its number, and it is saved whole, so a run that is killed goes on from its last epoch with the
//! losses of an unbroken run. A model is trained beside its place, in `<name>.partial`, and goes there when it is complete:
//! what is in the place is used until then.
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
