//! A safetensors file, judged by its header before any tensor is read.
//!
//! <https://huggingface.co/docs/safetensors>: eight bytes give the length of a JSON header, which gives type, shape and
//! place of each tensor. A file says there whatever it likes, so nothing is built from it that is not checked.
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use tch::{Device, Kind, Tensor};

use crate::message::excerpt;
use crate::weights::Inventory;
use crate::{Error, Weights, checkpoint};

/// Bytes of a header at most, as in the safetensors crate.
const LONGEST_HEADER: u64 = 100_000_000;
/// Axes of a tensor at most; models have one or two.
const MOST_AXES: usize = 8;
/// Elements of a tensor at most, where an empty axis counts as 1: far beyond any memory, and far below an overflow.
const MOST_ELEMENTS: usize = 1 << 48;

/// A file whose header is read and consistent, and whose tensors are yet to be read.
#[derive(Debug)]
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    /// Where the data begins, in bytes.
    start: u64,
    tensors: BTreeMap<String, Entry>,
}

/// A tensor of the file.
#[derive(Debug)]
struct Entry {
    /// What the file calls it.
    own_name: String,
    info: TensorInfo,
}

impl Entry {
    fn shape(&self) -> Vec<i64> {
        self.info.shape.iter().map(|&extent| extent as i64).collect() // below `MOST_ELEMENTS`
    }
}

impl TensorFile {
    /// Reads the header.
    ///
    /// # Errors
    /// If the file is missing or torn, a tensor occurs twice, or its shape, type and place do not fit each other.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let read = |source| Error::Read { path: path.to_owned(), source };
        let mut file = checkpoint::open(path)?;
        let length = file.metadata().map_err(read)?.len();
        let torn = |source| Error::Format { path: path.to_owned(), source: tame(source) };
        let header = read_header(&mut file, length).map_err(torn)?;
        let Header(tensors) = serde_json::from_slice(&header)
            .map_err(|source| torn(SafeTensorError::InvalidHeaderDeserialization(source)))?;
        let start = 8 + header.len() as u64;
        let end = data_length(&tensors).map_err(torn)?;
        if start.checked_add(end) != Some(length) {
            return Err(torn(SafeTensorError::MetadataIncompleteBuffer));
        }
        for (name, info) in &tensors {
            check_shape(path, name, &info.shape)?;
        }
        let entries = tensors.into_iter().map(|(name, info)| (name.clone(), Entry { own_name: name, info }));
        Ok(Self { path: path.to_owned(), file, start, tensors: entries.collect() })
    }

    /// The same file under the names that a model has for its tensors; a tensor without one is left out.
    ///
    /// # Errors
    /// If two tensors get the same name.
    pub(crate) fn renamed(self, rename: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut tensors: BTreeMap<String, Entry> = BTreeMap::new();
        for (name, entry) in self.tensors {
            let Some(name) = rename(&name) else { continue };
            let own_name = entry.own_name.clone();
            if let Some(other) = tensors.insert(name, entry) {
                return Err(Error::AmbiguousTensor {
                    path: self.path,
                    first: other.own_name,
                    second: own_name,
                });
            }
        }
        Ok(Self { tensors, ..self })
    }

    /// Whether there is a tensor of that name.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Refuses a file with a missing, unexpected or wrongly shaped tensor, or one that holds no floating-point numbers.
    ///
    /// # Errors
    /// The first difference from `inventory`, by name.
    pub(crate) fn check(&self, inventory: &Inventory) -> Result<(), Error> {
        let found = self.tensors.iter().map(|(name, entry)| (name.as_str(), entry.shape())).collect();
        check_shapes(&self.path, &found, inventory)?;
        self.tensors.iter().try_for_each(|(name, entry)| self.kind(name, entry).map(drop))
    }

    fn kind(&self, name: &str, entry: &Entry) -> Result<Kind, Error> {
        match entry.info.dtype {
            Dtype::F64 => Ok(Kind::Double),
            Dtype::F32 => Ok(Kind::Float),
            Dtype::F16 => Ok(Kind::Half),
            Dtype::BF16 => Ok(Kind::BFloat16),
            other => {
                let (path, found) = (self.path.clone(), format!("{other:?}"));
                Err(Error::TensorType { path, name: name.to_owned(), found })
            }
        }
    }

    /// Reads the tensors, converted to one kind.
    ///
    /// # Errors
    /// If the file cannot be read, or a tensor is no floating-point number or holds NaN or infinity.
    pub(crate) fn read(mut self, (kind, device): (Kind, Device)) -> Result<Weights, Error> {
        let mut tensors = Vec::new();
        for (name, entry) in std::mem::take(&mut self.tensors) {
            let own_kind = self.kind(&name, &entry)?;
            let data = self.data(&entry.info)?;
            let tensor = Tensor::from_data_size(&data, &entry.shape(), own_kind);
            let tensor = tensor.to_kind(kind).to_device(device);
            if tensor.isfinite().all().int64_value(&[]) == 0 {
                return Err(Error::NotFinite { path: self.path, name });
            }
            tensors.push((name, tensor));
        }
        Ok(Weights::from_tensors(tensors))
    }

    fn data(&mut self, info: &TensorInfo) -> Result<Vec<u8>, Error> {
        let (start, end) = info.data_offsets;
        let mut data = vec![0; end - start]; // no longer than the file, which `open` has seen to
        self.file
            .seek(SeekFrom::Start(self.start + start as u64))
            .and_then(|_| self.file.read_exact(&mut data))
            .map_err(|source| Error::Read { path: self.path.clone(), source })?;
        Ok(data)
    }
}

/// Refuses shapes other than those of `inventory`.
///
/// # Errors
/// The first difference, by name: missing or wrongly shaped tensors before unexpected ones.
pub(crate) fn check_shapes(
    path: &Path,
    found: &BTreeMap<&str, Vec<i64>>,
    inventory: &Inventory,
) -> Result<(), Error> {
    let expected: BTreeMap<&str, &Vec<i64>> =
        inventory.iter().map(|(name, shape)| (name.as_str(), shape)).collect();
    for (&name, &shape) in &expected {
        let (path, name) = (path.to_owned(), name.to_owned());
        match found.get(name.as_str()) {
            Some(found) if found == shape => {}
            Some(found) => {
                return Err(Error::Shape { path, name, expected: shape.clone(), found: found.clone() });
            }
            None => return Err(Error::MissingTensor { path, name }),
        }
    }
    match found.keys().find(|name| !expected.contains_key(*name)) {
        Some(name) => Err(Error::UnexpectedTensor { path: path.to_owned(), name: (*name).to_owned() }),
        None => Ok(()),
    }
}

/// The JSON header of a file of so many bytes.
fn read_header(file: &mut File, length: u64) -> Result<Vec<u8>, SafeTensorError> {
    let mut size = [0; 8];
    if length < size.len() as u64 {
        return Err(SafeTensorError::HeaderTooSmall);
    }
    file.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST_HEADER {
        return Err(SafeTensorError::HeaderTooLarge);
    }
    if size > length - 8 {
        return Err(SafeTensorError::InvalidHeaderLength);
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header)?;
    Ok(header)
}

/// Bytes of all tensors, which lie one behind the other without gaps.
fn data_length(tensors: &[(String, TensorInfo)]) -> Result<u64, SafeTensorError> {
    let mut tensors = tensors.to_vec();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    Metadata::new(None, tensors).map(|metadata| metadata.data_len() as u64)
}

fn check_shape(path: &Path, name: &str, shape: &[usize]) -> Result<(), Error> {
    // libtorch computes with an empty axis as if it had one element
    let elements = shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent.max(1)));
    if shape.len() <= MOST_AXES && elements.is_some_and(|elements| elements <= MOST_ELEMENTS) {
        return Ok(());
    }
    let shape = excerpt(&format!("{:?}", &shape[..shape.len().min(MOST_AXES + 1)]));
    Err(Error::ImpossibleShape { path: path.to_owned(), name: name.to_owned(), shape })
}

/// The error without control characters of the file, and not longer than a line.
fn tame(error: SafeTensorError) -> SafeTensorError {
    match error {
        SafeTensorError::InvalidOffset(name) => SafeTensorError::InvalidOffset(excerpt(&name)),
        SafeTensorError::InvalidHeaderDeserialization(source) => {
            SafeTensorError::InvalidHeaderDeserialization(checkpoint::tame(&source))
        }
        other => other,
    }
}

/// Name and place of each tensor in the order of the file; the entry `__metadata__` does not matter.
struct Header(Vec<(String, TensorInfo)>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("tensors by name")
    }

    /// Parsers of JSON keep one of several entries of the same name, and not all the same one.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut tensors = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else if tensors.insert(name.clone(), map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("tensor `{name}` occurs twice")));
            }
        }
        Ok(Header(tensors.into_iter().collect()))
    }
}
