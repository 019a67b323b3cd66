//! Formatting of texts and numbers for readers, and printing. This is the only crate that rounds numbers for tables, figures and messages.
mod command;
mod numbers;
mod streams;
mod visible;

pub use command::{LINE, TYPED, command_line, did_you_mean, front, parse, quoted};
pub use numbers::{
    bare_p, brackets, count, decimals, duration, fixed, p_value, percent_more, range, scientific, share,
    short, signed, tenths, typeset, with_minus,
};
pub use streams::{exit_code, print, print_error, print_line, say_line, warn, warnings};
pub use visible::{capitalised, excerpt, in_full, one_line, visible};
