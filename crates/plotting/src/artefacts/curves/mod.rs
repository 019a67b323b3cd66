//! Pruning curves: the score over the share of masked heads, the share that is dispensable, and methods compared.
pub(crate) mod figures;
pub(crate) mod kinds;
pub(crate) mod methods;
pub(crate) mod retrained;
pub(crate) mod shares;
