//! Views of reports alone: all heads, the log of a training, the paper's numbers beside ours, subjects beside each
//! other. No file, no drawing.
pub mod all_heads;
pub mod claim;
pub mod comparison;
pub mod training_log;
pub mod verdicts;
