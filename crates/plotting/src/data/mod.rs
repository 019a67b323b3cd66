//! Results as views need them: rows that `records` has checked, with what can be asked of them. Nothing is drawn here.
pub mod best_heads;
pub mod contrasts;
pub mod dynamics;
pub mod functions;
pub mod gates;
pub mod groups;
pub mod pair;
pub mod pruning;
pub mod retrained;
pub mod same;
pub mod segments;
pub mod subject;
pub mod sweep;
