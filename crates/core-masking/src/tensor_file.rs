//! A safetensors file, judged by its header before any tensor is read.
//!
//! <https://huggingface.co/docs/safetensors>: eight bytes give the length of a JSON header, which gives type, shape and
//! place of each tensor. A file says there whatever it likes, so nothing is built from it that is not checked.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use tch::{Device, Kind, Tensor};
use words::excerpt;

use crate::weights::Inventory;
use crate::{Error, Weights, checkpoint};

/// What names the shards of a model in several files.
const INDEX: &str = "model.safetensors.index.json";
/// Bytes of a header at most, as in the safetensors crate.
const LONGEST_HEADER: u64 = 100_000_000;
/// Axes of a tensor at most; models have one or two.
const MOST_AXES: usize = 8;
/// Elements of a tensor at most, where an empty axis counts as 1: far beyond any memory, and far below an overflow.
const MOST_ELEMENTS: usize = 1 << 48;

/// Numbers that are read and converted at once, so that a model takes hardly more memory than its tensors.
const CHUNK: usize = 1 << 22;

/// The tensors of a file, or of several shards, whose headers are read and consistent; the tensors are yet to be read.
#[derive(Debug)]
pub(crate) struct TensorFile {
    /// For messages: the file, or the index of the shards.
    path: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
}

/// A file of tensors.
#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: File,
    /// Where the data begins, in bytes.
    start: u64,
}

/// A tensor of the file.
#[derive(Debug)]
struct Entry {
    /// What the file calls it.
    own_name: String,
    shard: usize,
    info: TensorInfo,
}

impl Entry {
    fn shape(&self) -> Vec<i64> {
        self.info.shape.iter().map(|&extent| extent as i64).collect() // below `MOST_ELEMENTS`
    }
}

/// The files that hold a model's weights: `model.safetensors`, or an index and its shards.
///
/// # Errors
/// If the index cannot be read.
pub fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let (whole, index) = (folder.join("model.safetensors"), folder.join(INDEX));
    if whole.exists() || !index.exists() {
        return Ok(vec![whole]);
    }
    let shards =
        shard_names(&read_index(&index)?).into_iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    Ok(std::iter::once(index).chain(shards).collect())
}

/// The shard of each tensor; shards lie beside the index.
fn read_index(path: &Path) -> Result<BTreeMap<String, String>, Error> {
    let Index { weight_map } = checkpoint::read_json(path)?;
    match weight_map.values().find(|name| !is_shard_name(name)) {
        Some(name) => {
            let fault = format!("`{}` is no name of a shard beside it", excerpt(name));
            Err(Error::Index { path: path.to_owned(), fault })
        }
        None => Ok(weight_map),
    }
}

fn shard_names(weight_map: &BTreeMap<String, String>) -> BTreeSet<String> {
    weight_map.values().cloned().collect()
}

impl TensorFile {
    /// Reads the headers of a folder: of `model.safetensors` or else of the shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// As for [`open`](Self::open), or if a shard is missing, or holds other tensors than the index says.
    pub(crate) fn open_folder(folder: &Path) -> Result<Self, Error> {
        let (whole, index) = (folder.join("model.safetensors"), folder.join(INDEX));
        if whole.exists() || !index.exists() { Self::open(&whole) } else { Self::open_shards(&index) }
    }

    /// Reads the header of one file.
    ///
    /// # Errors
    /// If the file is missing or torn, a tensor occurs twice, or its shape, type and place do not fit each other.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let (shard, tensors) = Shard::open(path)?;
        let entry =
            |(name, info): (String, TensorInfo)| (name.clone(), Entry { own_name: name, shard: 0, info });
        Ok(Self {
            path: path.to_owned(),
            shards: vec![shard],
            tensors: tensors.into_iter().map(entry).collect(),
        })
    }

    fn open_shards(index: &Path) -> Result<Self, Error> {
        let weight_map = read_index(index)?;
        let fault = |fault: String| Error::Index { path: index.to_owned(), fault };
        let mut file = Self { path: index.to_owned(), shards: Vec::new(), tensors: BTreeMap::new() };
        for name in &shard_names(&weight_map) {
            let (shard, tensors) = Shard::open(&index.with_file_name(name))?;
            for (tensor, info) in tensors {
                if weight_map.get(&tensor) != Some(name) {
                    let place =
                        weight_map.get(&tensor).map_or("nowhere".to_owned(), |other| format!("in `{other}`"));
                    let (tensor, name) = (excerpt(&tensor), excerpt(name));
                    return Err(fault(format!("tensor `{tensor}` is in `{name}`, but should be {place}")));
                }
                let entry = Entry { own_name: tensor.clone(), shard: file.shards.len(), info };
                file.tensors.insert(tensor, entry);
            }
            file.shards.push(shard);
        }
        match weight_map.iter().find(|(tensor, _)| !file.tensors.contains_key(*tensor)) {
            Some((tensor, shard)) => {
                Err(fault(format!("tensor `{}` is not in `{}`", excerpt(tensor), excerpt(shard))))
            }
            None => Ok(file),
        }
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
    pub(crate) fn read(mut self, options: (Kind, Device)) -> Result<Weights, Error> {
        let mut tensors = Vec::new();
        for (name, entry) in std::mem::take(&mut self.tensors) {
            let tensor = Tensor::empty(entry.shape(), options);
            let (own_kind, flat) = (self.kind(&name, &entry)?, tensor.view([tensor.numel() as i64]));
            let mut filled = 0;
            self.shards[entry.shard].read(&entry.info, own_kind, |part| {
                let part = part.to_kind(options.0);
                if part.isfinite().all().int64_value(&[]) == 0 {
                    return Err(Error::NotFinite { path: self.path.clone(), name: name.clone() });
                }
                flat.narrow(0, filled, part.size()[0]).copy_(&part);
                filled += part.size()[0];
                Ok(())
            })?;
            tensors.push((name, tensor));
        }
        Ok(Weights::from_tensors(tensors))
    }
}

impl Shard {
    /// Reads the header: name and place of each tensor.
    fn open(path: &Path) -> Result<(Self, BTreeMap<String, TensorInfo>), Error> {
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
        Ok((Self { path: path.to_owned(), file, start }, tensors))
    }

    /// Hands the numbers of a tensor to `each`, some at a time: `[part]`, of the kind that they are stored in.
    fn read(
        &mut self,
        info: &TensorInfo,
        kind: Kind,
        mut each: impl FnMut(Tensor) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let fault = |source| Error::Read { path: self.path.clone(), source };
        let (start, end) = info.data_offsets; // within the file, which `open` has seen to
        self.file.seek(SeekFrom::Start(self.start + start as u64)).map_err(fault)?;
        let size = kind.elt_size_in_bytes();
        let mut left = end - start;
        let mut bytes = vec![0; left.min(CHUNK * size)];
        while left > 0 {
            let part = &mut bytes[..left.min(CHUNK * size)];
            self.file.read_exact(part).map_err(fault)?;
            each(Tensor::from_data_size(part, &[(part.len() / size) as i64], kind))?;
            left -= part.len();
        }
        Ok(())
    }
}

/// `model.safetensors.index.json`: which shard holds which tensor.
#[derive(serde::Deserialize)]
struct Index {
    #[serde(deserialize_with = "by_tensor")]
    weight_map: BTreeMap<String, String>,
}

fn is_shard_name(name: &str) -> bool {
    name.ends_with(".safetensors") && Path::new(name).components().count() == 1 && !name.contains(['/', '\\'])
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

/// The JSON header of a file of this many bytes.
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
fn data_length(tensors: &BTreeMap<String, TensorInfo>) -> Result<u64, SafeTensorError> {
    let mut tensors: Vec<_> = tensors.clone().into_iter().collect();
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

/// Name and place of each tensor; the entry `__metadata__` does not matter.
struct Header(BTreeMap<String, TensorInfo>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_tensor(deserializer).map(Self)
    }
}

/// Something of each tensor, by its name.
fn by_tensor<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_map(ByTensor(PhantomData))
}

struct ByTensor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for ByTensor<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("tensors by name")
    }

    /// Parsers of JSON keep one of several entries of the same name, and not all the same one.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tensors = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else if tensors.insert(name.clone(), map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("tensor `{name}` occurs twice")));
            }
        }
        Ok(tensors)
    }
}
