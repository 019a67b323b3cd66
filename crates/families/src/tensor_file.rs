//! The tensors of a folder, checked by the headers of its files before any tensor is read.
//!
//! The crate `safetensors` (<https://huggingface.co/docs/safetensors>) parses headers and checks that types, shapes and offsets are
//! consistent and cover the file. Names, shapes against the model, and the numbers are checked here.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use words::excerpt;

use crate::parts::Inventory;
use crate::{Error, checkpoint};

/// Maximum size of a header in bytes, as in the safetensors crate.
const LONGEST_HEADER: u64 = 100_000_000;
/// Number of elements read and converted at once, so that a model takes hardly more memory than its tensors.
const CHUNK: usize = 1 << 22;

/// Prefixes that wrappers add to tensor names.
const WRAPPERS: [(&str, &str); 3] =
    [("module.", "DataParallel"), ("_orig_mod.", "torch.compile"), ("base_model.model.", "PEFT")];

/// A safetensors file, or several shards, of which only headers have been read.
#[derive(Debug)]
pub struct TensorFile {
    /// The file or the index of the shards, for messages.
    path: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: File,
    /// Offset of the data in bytes.
    start: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    /// Name in the file.
    own_name: String,
    shard: usize,
    info: TensorInfo,
}

impl Entry {
    /// Sizes beyond `i64`, which an empty tensor may have, become negative, which no model has.
    fn shape(&self) -> Vec<i64> {
        self.info.shape.iter().map(|&extent| extent as i64).collect()
    }
}

/// `model.safetensors.index.json`: the shard of each tensor.
#[derive(serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Returns the files with a model's weights: `model.safetensors`, or an index and its shards.
///
/// # Errors
/// If there is neither, or the index is malformed or names a file outside of its folder.
pub fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let [whole, index] = ["model.safetensors", "model.safetensors.index.json"].map(|name| folder.join(name));
    if whole.exists() || !index.exists() {
        checkpoint::refuse_adapter(&whole)?;
        if !whole.exists() {
            return Err(Error::file(folder, no_weights(folder)));
        }
        return Ok(vec![whole]);
    }
    let Index { weight_map } = checkpoint::read_json(&index)?;
    let names: BTreeSet<String> = weight_map.into_values().collect();
    if let Some(name) = names.iter().find(|name| !is_shard_name(name)) {
        let fault = format!("`{}` is not the name of a shard in the same folder", excerpt(name));
        return Err(Error::file(&index, fault));
    }
    let shards = names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
    Ok(std::iter::once(index).chain(shards).collect())
}

/// Returns the error for a folder without safetensors, with the command that converts a pickle, which is never read here.
fn no_weights(folder: &Path) -> String {
    let pickles = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
    match pickles.iter().find(|name| folder.join(name).exists()) {
        Some(name) => format!(
            "its weights are only in `{name}`: convert them with python -c \"import glob, torch; from safetensors.torch import \
             save_file; d = '{}/'; save_file({{k: v.clone() for f in glob.glob(d + 'pytorch_model*.bin') for k, v in \
             torch.load(f, map_location='cpu', weights_only=True).items()}}, d + 'model.safetensors', {{'format': 'pt'}})\"",
            folder.display()
        ),
        None => "it has no model.safetensors, and no model.safetensors.index.json with shards".to_owned(),
    }
}

fn is_shard_name(name: &str) -> bool {
    name.ends_with(".safetensors") && Path::new(name).components().count() == 1 && !name.contains(['/', '\\'])
}

impl TensorFile {
    /// Reads the headers of a folder: `model.safetensors`, or else the shards in `model.safetensors.index.json`.
    pub fn open_folder(folder: &Path) -> Result<Self, Error> {
        match &weight_files(folder)?[..] {
            [index, shards @ ..] if !shards.is_empty() => Self::open_shards(index, shards),
            files => Self::open(&files[0]),
        }
    }

    /// Reads the header of one file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_shards(path, &[path.to_owned()])
    }

    fn open_shards(path: &Path, files: &[PathBuf]) -> Result<Self, Error> {
        let mut all = Self { path: path.to_owned(), shards: Vec::new(), tensors: BTreeMap::new() };
        // names that safetensors' `save_model` left out, and the tensors they are tied to, perhaps in another shard
        let mut aliases = Vec::new();
        for file in files {
            let (shard, metadata) = Shard::open(file)?;
            for (name, info) in metadata.tensors() {
                let entry = Entry { own_name: name.clone(), shard: all.shards.len(), info: info.clone() };
                if all.tensors.insert(name.clone(), entry).is_some() {
                    return Err(Error::tensor(path, &name, "is in more than one of its files"));
                }
            }
            all.shards.push(shard);
            aliases.extend(metadata.metadata().iter().flatten().map(|(name, of)| (name.clone(), of.clone())));
        }
        aliases.iter().for_each(|(name, of)| all.alias(name, of));
        let begins = |(prefix, _): &&(&str, &str)| all.tensors.keys().any(|name| name.starts_with(prefix));
        match WRAPPERS.iter().find(begins) {
            Some((prefix, wrapper)) => Err(Error::file(
                path,
                format!(
                    "names of tensors begin with `{prefix}`, which {wrapper} adds: save the model without the wrapper"
                ),
            )),
            None => Ok(all),
        }
    }

    /// Adds `name` as an alias of tensor `of`, if `of` exists and `name` does not.
    pub fn alias(&mut self, name: &str, of: &str) {
        if let (false, Some(entry)) = (self.holds(name), self.tensors.get(of).cloned()) {
            self.tensors.insert(name.to_owned(), entry);
        }
    }

    /// Renames the tensors to the model's names and drops those without one.
    pub fn renamed(self, rename: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut tensors: BTreeMap<String, Entry> = BTreeMap::new();
        for (name, entry) in self.tensors {
            let Some(name) = rename(&name) else { continue };
            let own_name = entry.own_name.clone();
            if let Some(other) = tensors.insert(name, entry) {
                let (first, second) = (excerpt(&other.own_name), excerpt(&own_name));
                let fault = format!("it contains both `{first}` and `{second}`, which mean the same tensor");
                return Err(Error::file(&self.path, fault));
            }
        }
        Ok(Self { tensors, ..self })
    }

    /// Returns true if a tensor has this name.
    pub fn holds(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.tensors.keys()
    }

    /// Returns the shape of a tensor.
    pub fn shape(&self, name: &str) -> Option<Vec<i64>> {
        self.tensors.get(name).map(Entry::shape)
    }

    /// Refuses a file with a missing, unexpected, wrongly shaped or non-floating-point tensor.
    pub fn check(&self, inventory: &Inventory) -> Result<(), Error> {
        use Dtype::{F8_E4M3, F8_E5M2, I8, U8};
        let is_quantised = |(name, entry): &(&String, &Entry)| {
            matches!(entry.info.dtype, I8 | U8 | F8_E4M3 | F8_E5M2) || name.ends_with(".qweight")
        };
        if let Some((name, entry)) = self.tensors.iter().find(is_quantised) {
            let fault = format!("is quantised ({:?}): {}", entry.info.dtype, checkpoint::DEQUANTISE);
            return Err(Error::tensor(&self.path, name, &fault));
        }
        let found = self.tensors.iter().map(|(name, entry)| (name.as_str(), entry.shape())).collect();
        check_shapes(&self.path, &found, inventory)?;
        self.tensors.iter().try_for_each(|(name, entry)| self.check_type(name, entry))
    }

    fn check_type(&self, name: &str, entry: &Entry) -> Result<(), Error> {
        match entry.info.dtype {
            Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::BF16 => Ok(()),
            other => {
                let fault = format!("has type {other:?}; only F64, F32, F16 and BF16 are supported");
                Err(Error::tensor(&self.path, name, &fault))
            }
        }
    }

    /// Returns name, element type and shape of each tensor. Fails if one is not floating-point.
    pub fn entries(&self) -> Result<Vec<(String, Dtype, Vec<i64>)>, Error> {
        let entry = |(name, entry): (&String, &Entry)| {
            self.check_type(name, entry)?;
            Ok((name.clone(), entry.info.dtype, entry.shape()))
        };
        self.tensors.iter().map(entry).collect()
    }

    /// Passes the elements of a tensor, which must exist, to `each` in parts, as they are stored.
    pub fn read(&mut self, name: &str, each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let entry = &self.tensors[name];
        self.shards[entry.shard].read(&entry.info, each)
    }

    /// Returns the file, or the index of the shards.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Shard {
    fn open(path: &Path) -> Result<(Self, Metadata), Error> {
        let torn = |fault: &str| {
            Error::file(path, format!("this is not a complete safetensors file: {}", excerpt(fault)))
        };
        let mut file = checkpoint::open(path)?;
        let (length, header) = read_header(&mut file).map_err(|fault| torn(&fault.to_string()))?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|fault| torn(&fault.to_string()))?;
        let start = 8 + header.len() as u64;
        if start.checked_add(metadata.data_len() as u64) != Some(length) {
            return Err(torn("its length differs from its header"));
        }
        Ok((Self { path: path.to_owned(), file, start }, metadata))
    }

    fn read(
        &mut self,
        info: &TensorInfo,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let fault = |source| Error::Read { path: self.path.clone(), source };
        let (start, end) = info.data_offsets; // within the file, as `open` has checked
        self.file.seek(SeekFrom::Start(self.start + start as u64)).map_err(fault)?;
        let size = CHUNK * info.dtype.bitsize() / 8;
        let mut left = end - start;
        let mut bytes = vec![0; left.min(size)];
        while left > 0 {
            let part = &mut bytes[..left.min(size)];
            self.file.read_exact(part).map_err(fault)?;
            each(part)?;
            left -= part.len();
        }
        Ok(())
    }
}

/// Returns the length of a file and its header; the header's stated length is not trusted beyond the end of the file.
fn read_header(file: &mut File) -> std::io::Result<(u64, Vec<u8>)> {
    let (mut size, mut header) = ([0; 8], Vec::new());
    file.read_exact(&mut size)?;
    file.take(u64::from_le_bytes(size).min(LONGEST_HEADER)).read_to_end(&mut header)?;
    Ok((file.metadata()?.len(), header))
}

/// Refuses shapes that differ from `inventory`.
pub fn check_shapes(
    path: &Path,
    found: &BTreeMap<&str, Vec<i64>>,
    inventory: &Inventory,
) -> Result<(), Error> {
    let expected: BTreeMap<&str, &Vec<i64>> =
        inventory.iter().map(|(name, shape)| (name.as_str(), shape)).collect();
    for (&name, &shape) in &expected {
        match found.get(name) {
            Some(found) if found == shape => {}
            Some(found) => {
                let found = excerpt(&format!("{found:?}"));
                let fault = format!("is {found}, but the configuration requires {shape:?}");
                return Err(Error::tensor(path, name, &fault));
            }
            None => return Err(Error::file(path, format!("it lacks tensor `{name}`"))),
        }
    }
    match found.keys().find(|name| !expected.contains_key(*name)) {
        Some(name) => {
            let name = excerpt(name);
            Err(Error::file(path, format!("it contains tensor `{name}`, which this model does not have")))
        }
        None => Ok(()),
    }
}
