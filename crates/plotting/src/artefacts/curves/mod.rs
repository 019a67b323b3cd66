//! Pruning curves: the score over the share of masked heads, how many heads are dispensable, and methods compared.
pub(crate) mod figures;
pub(crate) mod kinds;
pub(crate) mod methods;
pub(crate) mod retrained;
pub(crate) mod shares;
