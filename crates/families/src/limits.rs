//! Bounds on numbers in a `config.json`, checked before anything of their size is allocated.
use std::ops::RangeInclusive;

use crate::parts::Inventory;

/// Maximum number of rows or columns of a tensor: their sums and products cannot overflow.
pub const MAX_ROWS: i64 = 1 << 28;
/// Maximum number of layers, and of heads per layer: both are enumerated before shapes are compared.
const MAX_LAYERS: usize = 1 << 10;

/// Refuses counts (name and number) that are 0 or too large.
pub fn check_counts<const N: usize>(counts: [(&str, usize); N]) -> Result<(), String> {
    match counts.iter().find(|(_, count)| !(1..=MAX_LAYERS).contains(count)) {
        Some((name, _)) => Err(format!("{name} must be from 1 to {MAX_LAYERS}")),
        None => Ok(()),
    }
}

/// Refuses a width that heads do not divide; both are given as name and number.
pub fn check_divides((name, heads): (&str, usize), (of, width): (&str, i64)) -> Result<(), String> {
    if width % heads as i64 == 0 {
        Ok(())
    } else {
        Err(format!("{name} ({heads}) does not divide {of} ({width})"))
    }
}

/// Refuses invalid dropout rates (name and rate).
pub fn check_rates<const N: usize>(rates: [(&str, f64); N]) -> Result<(), String> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some((name, rate)) => Err(format!("{name} ({rate}) must be at least 0 and below 1")),
        None => Ok(()),
    }
}

/// Range of an epsilon; single precision distinguishes the smallest from 0.
pub const EPSILONS: RangeInclusive<f64> = 1e-30..=1.0;

/// Refuses numbers (name and number) outside of a range.
pub fn check_range<const N: usize>(
    range: RangeInclusive<f64>,
    numbers: [(&str, f64); N],
) -> Result<(), String> {
    match numbers.iter().find(|(_, number)| !range.contains(number)) {
        Some((name, number)) => {
            Err(format!("{name} ({number:?}) must be from {:?} to {:?}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}

/// Maximum number of parameters of a model, more than anyone would mask head by head.
const MAX_PARAMETERS: f64 = (1_u64 << 37) as f64;

/// Refuses impossible tensor sizes and models that are too large, since no file limits the size of new weights. `inventory` must include
/// all heads, as a model with heads removed may have empty tensors.
pub fn check_inventory(inventory: &Inventory) -> Result<(), String> {
    let is_size = |extent: &i64| (1..=MAX_ROWS).contains(extent);
    if let Some((name, shape)) = inventory.iter().find(|(_, shape)| !shape.iter().all(is_size)) {
        return Err(format!(
            "tensor `{name}` would be {shape:?}, but sizes are from 1 to {MAX_ROWS}: \
             they follow from `config.json`, or from `[model]` for a new model"
        ));
    }
    let size = |shape: &[i64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
    let parameters: f64 = inventory.iter().map(|(_, shape)| size(shape)).sum();
    if parameters > MAX_PARAMETERS {
        return Err(format!("a model of {parameters} parameters; at most {MAX_PARAMETERS} are allowed"));
    }
    Ok(())
}
