//! Texts and numbers as a reader should see them. Nothing here knows what a number is of, but this is the only place where one is
//! rounded for tables, figures and messages.
mod numbers;
mod visible;

pub use numbers::{
    count, decimals, name_among, p_value, percent_more, range, share, short, signed, tenths, typeset,
};
pub use visible::{excerpt, one_line, visible};
