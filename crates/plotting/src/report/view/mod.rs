//! Views that only reports have: all heads, the training log, comparisons with the paper and between setups. No file access, no drawing.
pub mod all_heads;
pub mod claim;
pub mod comparison;
pub mod training_log;
pub mod verdicts;
