//! Descriptions of splits in a setup file, one module per task.
pub mod classification;
mod harness;
pub mod language;
pub mod translation;

pub use crate::rows::{BadRowRule, BadRows};

/// Fails with the message of the first rule that does not hold.
pub fn check(rules: &[(&str, bool)]) -> Result<(), String> {
    match rules.iter().find(|(_, holds)| !holds) {
        Some((fault, _)) => Err((*fault).to_owned()),
        None => Ok(()),
    }
}
