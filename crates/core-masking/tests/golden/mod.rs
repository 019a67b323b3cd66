//! Reference numbers as JSON.
use std::path::PathBuf;

use core_masking::{Attention, GatedModel, Gates, HeadId, HeadSet};
use serde_json::Value;
use tch::{Kind, Tensor};

/// Returns the folder of reference numbers and the contents of its file `name`.
#[allow(dead_code, reason = "some tests have no use for it")]
pub fn load(name: &str) -> (PathBuf, Value) {
    tch::set_num_threads(1); // the models are tiny, and waiting for threads would take most of the time
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../test-support/golden"));
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    (folder, serde_json::from_str(&text).unwrap())
}

/// Converts nested arrays of numbers to a tensor in double precision.
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

/// Returns the maximum difference of two tensors of equal shape.
pub fn gap(found: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(found.size(), expected.size());
    (found.to_kind(Kind::Double) - expected).abs().max().double_value(&[])
}

/// Maximum [`gap`] that rounding and summation order explain, relative to expected numbers above 1.
#[allow(dead_code, reason = "some tests have no use for it")]
pub const TOLERANCE: f64 = 5e-5;

/// Returns the [`gap`] that [`TOLERANCE`] limits.
#[allow(dead_code, reason = "some tests have no use for it")]
pub fn gap_of_each(found: &Tensor, expected: &Tensor) -> f64 {
    let size = expected.abs().clamp_min(1.0);
    gap(&(found.to_kind(Kind::Double) / &size), &(expected / &size))
}

/// Returns the [`gap`] relative to the largest expected number.
#[allow(dead_code, reason = "some tests have no use for it")]
pub fn relative_gap(found: &Tensor, expected: &Tensor) -> f64 {
    gap(found, expected) / expected.abs().max().double_value(&[])
}

/// Parses attention type and numbers, counted from 0, from a key such as `1,3`, `enc-dec,1,3` or `enc_dec,1`.
pub fn place(key: &str) -> (Attention, Vec<usize>) {
    let key = key.replace('_', "-");
    let (attention, numbers) = match key.split_once(',') {
        Some((name, numbers)) if name.parse::<usize>().is_err() => (name.parse().unwrap(), numbers),
        _ => (Attention::SelfAttention, &*key),
    };
    (attention, numbers.split(',').map(|number| number.parse().unwrap()).collect())
}

/// Compares the results of `run` with each head masked that is a key of `cases`; returns the number of cases.
#[allow(dead_code, reason = "some tests have no use for it")]
pub fn compare_masked<M: GatedModel>(
    model: &M,
    cases: &Value,
    tolerance: f64,
    gap: fn(&Tensor, &Tensor) -> f64,
    run: impl Fn(&Gates) -> Tensor,
) -> usize {
    let cases = cases.as_object().unwrap();
    for (key, expected) in cases {
        let (attention, numbers) = place(key);
        let id = HeadId::from_index(attention, numbers[0], numbers[1]);
        let set = [HeadSet::from_iter([id])];
        let gap =
            gap(&run(&Gates::masking(&model.layout(), &set, model.options()).unwrap()), &tensor(expected));
        assert!(gap < tolerance, "without {id}: {gap:e}");
    }
    cases.len()
}
