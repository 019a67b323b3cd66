//! Named tensors of a model, read from and written to `model.safetensors`.
//!
//! Names and shapes follow Hugging Face transformers, which can read what is written here.
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, View};
use tch::{Device, Kind, Tensor};

use families::TensorFile;
use families::parts::{Inventory, Tensors};
use families::tensor_file::check_shapes;

use crate::Error;

/// The tensors of one model by name.
#[derive(Debug)]
pub struct Weights(BTreeMap<String, Tensor>);

impl Weights {
    /// Collects tensors that were not read from a file.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self(tensors.into_iter().collect())
    }

    /// Draws new tensors: `initial` draws each of `inventory`, in order, from libtorch's generator.
    ///
    /// The generator is global and seeded here, so only one model is drawn at a time: equal seeds give equal models, even if other threads
    /// draw models too.
    pub(crate) fn drawn(inventory: Inventory, seed: u64, initial: impl Fn(&str, &[i64]) -> Tensor) -> Self {
        static GENERATOR: Mutex<()> = Mutex::new(());
        let _alone = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
        tch::manual_seed(seed as i64);
        Self::from_tensors(inventory.into_iter().map(|(name, shape)| {
            let tensor = initial(&name, &shape);
            (name, tensor)
        }))
    }

    /// Reads a safetensors file; floating-point tensors are converted to `kind`.
    ///
    /// # Errors
    /// If the file is missing or truncated, or a tensor is not floating-point or contains NaN or infinity.
    pub fn read(path: &Path, options: (Kind, Device)) -> Result<Self, Error> {
        Self::of_file(TensorFile::open(path)?, options)
    }

    /// Reads the tensors of a file whose headers have been read, converted to one kind.
    pub(crate) fn of_file(mut file: TensorFile, (kind, device): (Kind, Device)) -> Result<Self, Error> {
        let path = file.path().to_owned();
        let fault = |name: &str, fault: &str| Error::tensor(&path, name, fault);
        let mut tensors = Vec::new();
        for (name, dtype, shape) in file.entries()? {
            let stored = kind_of(dtype);
            let tensor = Tensor::f_empty(shape, (kind, device));
            let tensor = tensor.map_err(|_| fault(&name, "has an impossible shape"))?;
            let flat = tensor.view([tensor.numel() as i64]);
            let mut filled = 0;
            file.read(&name, |bytes| {
                let count = (bytes.len() / stored.elt_size_in_bytes()) as i64;
                let part = Tensor::from_data_size(bytes, &[count], stored).to_kind(kind);
                if part.isfinite().all().int64_value(&[]) == 0 {
                    return Err(fault(&name, "contains NaN or infinite values"));
                }
                flat.narrow(0, filled, count).copy_(&part);
                filled += count;
                Ok(())
            })?;
            tensors.push((name, tensor));
        }
        Ok(Self::from_tensors(tensors))
    }

    /// Writes a safetensors file that transformers can read. The file appears complete or not at all.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let tensors = self.0.iter().map(|(name, tensor)| (name, Written::new(tensor)));
        // transformers refuses a file that does not name the framework that wrote it
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        durable::replace_file(path, |partial| {
            let path = path.to_owned();
            safetensors::serialize_to_file(tensors, Some(metadata), partial).map_err(|fault| match fault {
                SafeTensorError::IoError(source) => Error::Write { path, source },
                fault => Error::file(&path, fault.to_string()),
            })
        })
    }

    /// Refuses a checkpoint with a missing, unexpected or wrongly shaped tensor, and names the first. `path` is for the message.
    pub fn check(&self, path: &Path, inventory: &Inventory) -> Result<(), Error> {
        let found = self.0.iter().map(|(name, tensor)| (name.as_str(), tensor.size())).collect();
        check_shapes(path, &found, inventory)
    }

    /// Returns a tensor, which shares its storage.
    pub fn get(&self, name: &str) -> Result<Tensor, Error> {
        let found = self.0.get(name).map(Tensor::shallow_clone);
        found.ok_or_else(|| Error::Input(format!("the model lacks tensor `{name}`")))
    }

    /// Returns true if a tensor has this name.
    pub fn holds(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns kind and device of the first tensor, of which there must be one.
    pub fn options(&self) -> (Kind, Device) {
        let first = self.0.values().next().expect("a model has tensors");
        (first.kind(), first.device())
    }

    /// Inserts or replaces a tensor.
    pub(crate) fn insert(&mut self, name: String, tensor: Tensor) {
        self.0.insert(name, tensor);
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Removes a tensor and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.0.remove(name)
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> u64 {
        self.0.values().map(|tensor| tensor.numel() as u64).sum()
    }

    /// Returns the tensors, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Shares the tensors with a second thread, as a [`Tensor`] is `Send` but not `Sync`.
    pub fn share(&self) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())))
    }

    /// Converts the tensors to another kind.
    pub fn to_kind(&self, kind: Kind) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.to_kind(kind))))
    }

    /// Copies the tensors.
    pub fn duplicate(&self) -> Self {
        Self::from_tensors(self.0.iter().map(|(name, tensor)| (name.clone(), tensor.detach().copy())))
    }
}

/// Returns the kind for an element type; [`TensorFile::entries`] admits no others.
fn kind_of(dtype: Dtype) -> Kind {
    match dtype {
        Dtype::F64 => Kind::Double,
        Dtype::F16 => Kind::Half,
        Dtype::BF16 => Kind::BFloat16,
        _ => Kind::Float,
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

/// Returns the numbers of a tensor in row-major order, converted to `T`.
pub fn to_vec<T: tch::kind::Element>(tensor: &Tensor) -> Vec<T> {
    let flat = tensor.to_device(Device::Cpu).to_kind(T::KIND).contiguous();
    let mut values = vec![T::ZERO; flat.numel()];
    flat.copy_data(&mut values, flat.numel());
    values
}

/// A tensor to be written, converted to single precision when it is.
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
