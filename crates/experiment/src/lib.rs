//! Parts that experiments share: arguments, measured and tested rows, rankings of heads, pruning curves and export.
//!
//! An experiment reads its [`SharedArgs`], opens a subject, chooses a head set for each row, and lets [`MeasuredRows`] score them.
mod args;
mod curves;
mod error;
mod exit;
mod export;
mod head_sweep;
mod masking;
mod measured;
mod order;
mod pool;
mod unit;
mod until_decided;

pub use args::{Limit, MachineArgs, OpenRows, Replicate, SharedArgs, SubjectArgs, has_duplicates, run_each};
pub use curves::{
    Chooser, Curve, Curves, Known, Retraining, SelectorArgs, Step, Steps, check_heads, possible_orders,
};
pub use error::Error;
pub use exit::exit_code;
pub use export::{Export, complete_folder};
pub use head_sweep::HeadSweep;
pub use heads::Selection;
pub use masking::{AblationArgs, AblationKind, MaskingArgs};
pub use measured::{Finished, MeasuredRows, RowPlan, RowSet};
pub use order::{Estimate, EstimateArgs, Granularity, Ingredient, Oracle, Sampling, random_order};
pub use pool::{Pool, StepArgs};
pub use unit::{MaskingUnits, Unit};
pub use until_decided::{Deciding, DecidingArgs};
