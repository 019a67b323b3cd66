//! Places of the texts of a split, as the file of a subject says: a module for each task.
pub mod classification;
mod harness;
pub mod language;
pub mod translation;

pub use crate::rows::{BadRowRule, BadRows};

/// The first rule that does not hold.
pub fn check(rules: &[(&str, bool)]) -> Result<(), String> {
    match rules.iter().find(|(_, holds)| !holds) {
        Some((fault, _)) => Err((*fault).to_owned()),
        None => Ok(()),
    }
}
