//! What tokenisers from elsewhere have in common, whatever model they belong to: their files, and the checks without which
//! the library would panic, drop text or draw at random.
pub(crate) mod charsmap;
pub(crate) mod lists;
pub(crate) mod loaded;
pub(crate) mod parts;
mod patterns;
