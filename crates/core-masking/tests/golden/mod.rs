//! Reference numbers as JSON.
use std::path::PathBuf;

use serde_json::Value;
use tch::{Kind, Tensor};

/// The folder of reference numbers and what its file `name` holds.
pub fn load(name: &str) -> (PathBuf, Value) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../test-support/golden"));
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    (folder, serde_json::from_str(&text).unwrap())
}

/// Nested arrays of numbers, in double precision.
pub fn tensor(value: &Value) -> Tensor {
    fn flatten(value: &Value, flat: &mut Vec<f64>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| flatten(item, flat)),
            number => flat.push(number.as_f64().unwrap()),
        }
    }
    let mut shape = Vec::new();
    let mut inner = value;
    while let Value::Array(items) = inner {
        shape.push(items.len() as i64);
        inner = &items[0];
    }
    let mut flat = Vec::new();
    flatten(value, &mut flat);
    Tensor::from_slice(&flat).view(shape.as_slice())
}

/// The greatest difference of two tensors of equal shape.
pub fn gap(found: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(found.size(), expected.size());
    (found.to_kind(Kind::Double) - expected).abs().max().double_value(&[])
}

/// [`gap`] as a share of the greatest of the expected numbers.
#[allow(dead_code, reason = "some tests have no use for it")]
pub fn relative_gap(found: &Tensor, expected: &Tensor) -> f64 {
    gap(found, expected) / expected.abs().max().double_value(&[])
}
