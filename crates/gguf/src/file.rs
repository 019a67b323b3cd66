//! GGUF files: metadata and tensors.
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use crate::Error;

/// Data type of weights in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Precision {
    /// Single precision
    F32,
    /// Half precision
    #[default]
    F16,
    /// 8 bits, with a scale per 32 weights; a quarter of the size
    #[value(name = "q8_0")]
    Q8,
}

impl Precision {
    /// Returns the type of a matrix with rows of this width; Q8_0 needs a multiple of 32.
    fn of_matrix(self, width: usize) -> GgmlDType {
        match self {
            Self::F32 => GgmlDType::F32,
            Self::Q8 if width.is_multiple_of(GgmlDType::Q8_0.block_size()) => GgmlDType::Q8_0,
            Self::F16 | Self::Q8 => GgmlDType::F16,
        }
    }

    pub(crate) fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q8 => 7,
        }
    }

    /// Converts a tensor; norms and biases stay in f32, as llama.cpp requires.
    pub(crate) fn of(self, tensor: &Tensor) -> candle_core::Result<QTensor> {
        let kind = match tensor.dims() {
            &[_, width] => self.of_matrix(width),
            _ => GgmlDType::F32,
        };
        QTensor::quantize(tensor, kind)
    }
}

/// A GGUF file whose metadata has been read.
pub(crate) struct GgufFile {
    pub(crate) path: PathBuf,
    file: BufReader<File>,
    pub(crate) content: Content,
}

impl GgufFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = BufReader::new(durable::open_regular(path).map_err(Error::reading(path))?);
        let fault = |reason: String| Error::of(path, format!("not a readable GGUF file: {reason}"));
        let refusal = |error: candle_core::Error| {
            let said = error.to_string();
            let said = said.lines().next().unwrap_or_default();
            let types = "; expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1 or Q2_K to Q8_K";
            fault(format!("{said}{}", if said.contains("unknown dtype") { types } else { "" }))
        };
        // candle divides by `general.alignment` and allocates lengths before it checks them, so it may panic.
        let content = corpus::guarded(|| Content::read(&mut file).map_err(refusal), fault)?;
        Ok(Self { path: path.to_owned(), file, content })
    }

    /// Returns the value of a metadata key, converted by `read`; `None` if the key is absent.
    pub(crate) fn get<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let value = self.content.metadata.get(key);
        let fault = || Error::of(&self.path, format!("`{key}` is not {kind}"));
        value.map(|value| read(value).ok_or_else(fault)).transpose()
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<usize>, Error> {
        self.get(key, "a whole number", |value| whole(value).and_then(|number| number.try_into().ok()))
    }

    pub(crate) fn real(&self, key: &str) -> Result<Option<f64>, Error> {
        self.get(key, "a number", |value| match value {
            // the shortest decimal of this f32: 1e-5, not 9.999999747378752e-6
            Value::F32(real) => real.to_string().parse().ok(),
            Value::F64(real) => Some(*real),
            _ => None,
        })
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        self.get(key, "true or false", |value| value.to_bool().ok())
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>, Error> {
        self.get(key, "text", |value| value.to_string().ok().map(String::as_str))
    }

    /// Returns a list, each entry converted by `read`; empty if the key is absent.
    pub(crate) fn list<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let all = self.get(key, kind, |value| value.to_vec().ok()?.iter().map(&read).collect());
        Ok(all?.unwrap_or_default())
    }

    /// Returns a required value; fails if it is absent.
    pub(crate) fn require<T>(&self, key: &str, found: Option<T>) -> Result<T, Error> {
        found.ok_or_else(|| Error::of(&self.path, format!("`{key}` is missing")))
    }

    pub(crate) fn tensor(&mut self, name: &str) -> Result<QTensor, Error> {
        if !self.content.tensor_infos.contains_key(name) {
            return Err(Error::of(&self.path, format!("it lacks the tensor `{name}`")));
        }
        let tensor = self.content.tensor(&mut self.file, name, &Device::Cpu);
        tensor
            .map_err(Error::told(&self.path))
            .map_err(|told| Error::Invalid(format!("{told} (tensor `{name}`)")))
    }
}

/// Converts an integer of any width.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    match *value {
        Value::U8(number) => Some(number.into()),
        Value::I8(number) => Some(number.into()),
        Value::U16(number) => Some(number.into()),
        Value::I16(number) => Some(number.into()),
        Value::U32(number) => Some(number.into()),
        Value::I32(number) => Some(number.into()),
        Value::U64(number) => number.try_into().ok(),
        Value::I64(number) => Some(number),
        _ => None,
    }
}

/// Writes a file, which must not exist.
pub(crate) fn write(
    path: &Path,
    metadata: &[(String, Value)],
    tensors: &[(String, QTensor)],
) -> Result<(), Error> {
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (&**key, value)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (&**name, tensor)).collect();
    let at = |source| durable::Error { path: path.to_owned(), source };
    let mut file = std::io::BufWriter::new(File::create(path).map_err(at)?);
    candle_core::quantized::gguf_file::write(&mut file, &metadata, &tensors).map_err(Error::told(path))?;
    Ok(file.into_inner().map(drop).map_err(|error| at(error.into_error()))?)
}
