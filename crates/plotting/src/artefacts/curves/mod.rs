//! Pruning curves: the score over the share of masked heads, the share that is dispensable, and methods compared.
pub(crate) mod ablation_kinds;
pub(crate) mod figures;
pub(crate) mod method_comparison;
pub(crate) mod retrained;
pub(crate) mod shares;
