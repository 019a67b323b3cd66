//! Named tensors of a model, read from and written to `model.safetensors`.
//!
//! Names and shapes are those of Hugging Face transformers, so a folder goes both ways.
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, View};
use tch::{Device, Kind, Tensor};

use crate::Error;
use crate::parts::{Inventory, Tensors};
use crate::tensor_file::{TensorFile, check_shapes};

/// The tensors of one model by name.
#[derive(Debug)]
pub struct Weights(BTreeMap<String, Tensor>);

/// Rows and columns of a table at most: sums and products of them stay far below an overflow.
pub(crate) const MOST_ROWS: i64 = 1 << 28;
/// Layers of a model at most, and heads of a layer: lists of tensors and heads are made of them before shapes are compared.
const MOST_LAYERS: usize = 1 << 10;

/// Refuses numbers of layers and heads, of which there is one at least: name and number.
pub(crate) fn check_counts<const N: usize>(counts: [(&str, usize); N]) -> Result<(), String> {
    match counts.iter().find(|(_, count)| !(1..=MOST_LAYERS).contains(count)) {
        Some((name, _)) => Err(format!("{name} must be from 1 to {MOST_LAYERS}")),
        None => Ok(()),
    }
}

/// Refuses a width that does not part into heads: names and numbers of the heads and of the width.
pub(crate) fn check_divides((name, heads): (&str, usize), (of, width): (&str, i64)) -> Result<(), String> {
    if width % heads as i64 == 0 {
        Ok(())
    } else {
        Err(format!("{name} ({heads}) does not divide {of} ({width})"))
    }
}

/// Refuses dropout rates that are none: name and rate.
pub(crate) fn check_rates<const N: usize>(rates: [(&str, f64); N]) -> Result<(), String> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some((name, rate)) => Err(format!("{name} ({rate}) must be at least 0 and below 1")),
        None => Ok(()),
    }
}

/// Range of the number that is added to a variance; single precision still tells its least from 0.
pub(crate) const EPSILONS: RangeInclusive<f64> = 1e-30..=1.0;

/// Refuses numbers outside of a range: name and number.
pub(crate) fn check_range<const N: usize>(
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

/// Parameters of a model at most, far beyond any with heads to be masked one by one.
const MOST_PARAMETERS: f64 = (1_u64 << 37) as f64;

/// Refuses sizes that no tensor has, and a model that no memory holds, since new weights have no file that bounds them. Of the
/// model with all its heads: one without may have empty tensors.
pub(crate) fn check_inventory(inventory: &Inventory) -> Result<(), String> {
    let is_size = |extent: &i64| (1..=MOST_ROWS).contains(extent);
    if let Some((name, shape)) = inventory.iter().find(|(_, shape)| !shape.iter().all(is_size)) {
        return Err(format!(
            "tensor `{name}` would be {shape:?}, but sizes are from 1 to {MOST_ROWS}: \
             they follow from `config.json`, or from `[model]` for a new model"
        ));
    }
    let size = |shape: &[i64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
    let parameters: f64 = inventory.iter().map(|(_, shape)| size(shape)).sum();
    if parameters > MOST_PARAMETERS {
        return Err(format!("a model of {parameters} parameters; at most {MOST_PARAMETERS} are allowed"));
    }
    Ok(())
}

impl Weights {
    /// Collects tensors that are made, not read.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self(tensors.into_iter().collect())
    }

    /// New tensors: `initial` draws each of `inventory`, in its order, from libtorch's generator.
    ///
    /// The generator, which is seeded here, serves the whole process, so one model is drawn at a time: equal seeds give
    /// equal models whatever models other threads draw.
    pub(crate) fn drawn(inventory: Inventory, seed: u64, initial: impl Fn(&str, &[i64]) -> Tensor) -> Self {
        static GENERATOR: Mutex<()> = Mutex::new(());
        let _alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        tch::manual_seed(seed as i64);
        Self::from_tensors(inventory.into_iter().map(|(name, shape)| {
            let tensor = initial(&name, &shape);
            (name, tensor)
        }))
    }

    /// Reads a safetensors file whole; floating-point tensors are converted to `kind`.
    ///
    /// # Errors
    /// If the file is missing or torn, or a tensor is no floating-point number or holds NaN or infinity.
    pub fn read(path: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        TensorFile::open(path)?.read(options)
    }

    /// Writes a safetensors file that transformers reads; it is there whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let tensors = self.0.iter().map(|(name, tensor)| (name, Written::new(tensor)));
        // transformers refuses a file that does not say which framework wrote it
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        durable::replace_file(path, |partial| {
            let path = path.to_owned();
            safetensors::serialize_to_file(tensors, Some(metadata), partial).map_err(|fault| match fault {
                SafeTensorError::IoError(source) => Error::Write { path, source },
                fault => Error::file(&path, fault.to_string()),
            })
        })
    }

    /// Refuses a checkpoint with a missing, unexpected or wrongly shaped tensor. `path` is for the message.
    ///
    /// # Errors
    /// The first difference from `inventory`, by name.
    pub fn check(&self, path: &Path, inventory: &Inventory) -> Result<(), Error> {
        let found = self.0.iter().map(|(name, tensor)| (name.as_str(), tensor.size())).collect();
        check_shapes(path, &found, inventory)
    }

    /// One tensor; shares its storage.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn get(&self, name: &str) -> Result<Tensor, Error> {
        let found = self.0.get(name).map(Tensor::shallow_clone);
        found.ok_or_else(|| Error::Input(format!("the model lacks tensor `{name}`")))
    }

    /// Looks for a tensor of that name.
    pub fn holds(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Kind and device of the tensors, which are those of the first.
    ///
    /// # Panics
    /// If there is no tensor.
    pub fn options(&self) -> (Kind, Device) {
        let first = self.0.values().next().expect("a model has tensors");
        (first.kind(), first.device())
    }

    /// Puts a tensor in, in the place of one of that name.
    pub(crate) fn insert(&mut self, name: String, tensor: Tensor) {
        self.0.insert(name, tensor);
    }

    /// Puts tensors in, in the place of those of their names.
    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Takes a tensor out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.0.remove(name)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> u64 {
        self.0.values().map(|tensor| tensor.numel() as u64).sum()
    }

    /// Name and tensor, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The same tensors, sharing storage: what a second thread needs, since a [`Tensor`] is `Send` but not `Sync`.
    pub fn share(&self) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())))
    }

    /// The tensors converted to another kind.
    pub fn to_kind(&self, kind: Kind) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.to_kind(kind))))
    }

    /// A copy with storage of its own.
    pub fn duplicate(&self) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.detach().copy())))
    }
}

impl Tensors for &Weights {
    type Tensor = Tensor;
    type Fault = Error;

    fn take(&mut self, name: String, shape: Vec<i64>) -> Result<Tensor, Error> {
        let tensor = self.get(&name)?;
        let found = tensor.size();
        if found != shape {
            return Err(Error::Input(format!(
                "tensor `{name}` is {found:?}, but the model asks for {shape:?}"
            )));
        }
        Ok(tensor)
    }
}

/// The numbers of a tensor in the order of its axes, converted to `T`.
pub fn to_vec<T: tch::kind::Element>(tensor: &Tensor) -> Vec<T> {
    let flat = tensor.to_device(Device::Cpu).to_kind(T::KIND).contiguous();
    let mut values = vec![T::ZERO; flat.numel()];
    flat.copy_data(&mut values, flat.numel());
    values
}

/// A tensor on its way to a file, in single precision; its numbers are converted when their turn comes.
struct Written<'a> {
    tensor: &'a Tensor,
    shape: Vec<usize>,
}

impl<'a> Written<'a> {
    fn new(tensor: &'a Tensor) -> Self {
        Self { tensor, shape: tensor.size().into_iter().map(|extent| extent as usize).collect() }
    }
}

impl View for Written<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Little-endian.
    fn data(&self) -> Cow<'_, [u8]> {
        let flat = self.tensor.detach().to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
        let mut bytes = vec![0; self.data_len()];
        flat.copy_data_u8(&mut bytes, flat.numel());
        bytes.into()
    }

    fn data_len(&self) -> usize {
        self.tensor.numel() * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_tensors_whatever_else_is_drawn_so() {
        let drawn = || {
            let inventory = (2..40).map(|place| (format!("{place}"), vec![place, 7])).collect();
            let weights =
                Weights::drawn(inventory, 3, |_, shape| Tensor::randn(shape, (Kind::Double, Device::Cpu)));
            weights.iter().flat_map(|(_, tensor)| to_vec::<f64>(tensor)).collect::<Vec<f64>>()
        };
        let alone = drawn();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(drawn)).collect();
            for thread in threads {
                assert!(thread.join().unwrap() == alone, "another thread drew from the same stream");
            }
        });
    }
}
