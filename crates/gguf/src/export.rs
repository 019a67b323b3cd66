//! Export of a Hugging Face folder, with all heads or with some removed, to a GGUF file.
use std::collections::HashMap;
use std::path::Path;

use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Device, Tensor};
use families::ModelConfig;
use families::language_model::LanguageConfig;
use families::rotary::RotaryScaling;
use heads::{Attention, HeadLayout, ModuleHeads};
use words::excerpt;

use crate::Error;
use crate::config::divisors;
use crate::file::{self, Precision};
use crate::names::{ATTENTION, Place, ROTARY_FACTORS, tensors};
use crate::slots::PaddedHeads;
use crate::{config, fields};

/// What a file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// `llama`, or `deci` if layers differ.
    pub architecture: &'static str,
    /// Query heads and key-value heads of each layer, including heads of zeros.
    pub heads: Vec<(usize, usize)>,
    /// False if llama.cpp has no tokenizer of the folder's kind, so that it accepts token ids only.
    pub has_tokenizer: bool,
}

impl Exported {
    /// Returns a warning for the user of the file.
    pub fn warning(&self) -> Option<&'static str> {
        let lacks = "llama.cpp does not support this tokenizer: the GGUF file accepts token ids only";
        (!self.has_tokenizer).then_some(lacks)
    }
}

/// Refuses a folder that [`export`] could not write, before any long work: the family is not Llama, Mistral or Qwen2, or llama.cpp lacks a
/// feature of the model. Reads `config.json` only.
pub fn check(folder: &Path) -> Result<(), Error> {
    config::read(folder).map(drop)
}

/// Writes the model of a folder, `config.json` and `model.safetensors`, as a GGUF file for llama.cpp, completely or not at all. Removed
/// heads are left out; if layers differ, the architecture is llama.cpp's `deci`.
///
/// # Errors
/// If [`check`] refuses the folder, its weights are invalid, or the file cannot be written.
pub fn export(folder: &Path, to: &Path, precision: Precision) -> Result<Exported, Error> {
    let config = config::read(folder)?;
    let path = folder.join("model.safetensors");
    if !path.exists() && folder.join(corpus::hub::INDEX).exists() {
        return Err(Error::of(folder, "its weights are in several files: export-model writes one"));
    }
    let weights = candle_core::safetensors::load(&path, &Device::Cpu).map_err(Error::told(&path))?;
    let mut model = Model { weights, path: &path, config: &config, layout: config.layout() };
    let heads: Vec<PaddedHeads> =
        (0..config.num_hidden_layers).map(|layer| model.slots(layer)).collect::<Result<_, _>>()?;
    let tensors = model.tensors(&heads, precision)?;
    let sizes: Vec<_> = heads.iter().map(|slots| (slots.queries.len(), slots.key_values.len())).collect();
    let architecture = if sizes.iter().all(|size| *size == sizes[0]) { "llama" } else { "deci" };
    let tokens = fields::of_tokenizer(folder, &config)?;
    let exported = Exported { architecture, heads: sizes, has_tokenizer: tokens.is_some() };
    let mut metadata = metadata(&config, &exported, precision).map_err(|reason| Error::of(&path, reason))?;
    let none = || vec![("tokenizer.ggml.model".to_owned(), Value::String("none".to_owned()))];
    metadata.extend(tokens.unwrap_or_else(none));
    durable::replace_file(to, |partial| file::write(partial, &metadata, &tensors))?;
    Ok(exported)
}

/// Returns what llama.cpp needs to know apart from weights.
fn metadata(
    config: &LanguageConfig,
    exported: &Exported,
    precision: Precision,
) -> Result<Vec<(String, Value)>, String> {
    let number =
        |number: i64| u32::try_from(number).map(Value::U32).map_err(|_| format!("{number} is too large"));
    let real = |real: f64| Value::F32(real as f32);
    let key = |name: &str| format!("{}.{name}", exported.architecture);
    let mut all = vec![
        ("general.architecture".to_owned(), Value::String(exported.architecture.to_owned())),
        ("general.file_type".to_owned(), Value::U32(precision.code())),
        ("general.quantization_version".to_owned(), Value::U32(2)),
        (key("attention.layer_norm_rms_epsilon"), real(config.rms_norm_eps)),
        (key("rope.freq_base"), real(config.rope_theta)),
    ];
    let numbers = [
        ("block_count", config.num_hidden_layers as i64),
        ("context_length", config.max_position_embeddings),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.feed_forward_width()),
        ("vocab_size", config.vocab_size),
        ("attention.key_length", config.d_head()),
        ("attention.value_length", config.d_head()),
        ("rope.dimension_count", config.d_head()),
    ];
    for (name, value) in numbers {
        all.push((key(name), number(value)?));
    }
    let (queries, key_values): (Vec<usize>, Vec<usize>) = exported.heads.iter().copied().unzip();
    for (name, counts) in [("attention.head_count", queries), ("attention.head_count_kv", key_values)] {
        let values =
            counts.into_iter().map(|count| number(count as i64)).collect::<Result<Vec<Value>, String>>()?;
        let value = if exported.architecture == "llama" { values[0].clone() } else { Value::Array(values) };
        all.push((key(name), value));
    }
    if let Some(RotaryScaling::Linear { factor }) = config.rope_scaling {
        all.push((key("rope.scaling.type"), Value::String("linear".to_owned())));
        all.push((key("rope.scaling.factor"), real(factor)));
    }
    Ok(all)
}

/// The weights of a folder, taken out one by one.
struct Model<'a> {
    weights: HashMap<String, Tensor>,
    path: &'a Path,
    config: &'a LanguageConfig,
    layout: HeadLayout,
}

impl Model<'_> {
    fn fault(&self, reason: String) -> Error {
        Error::of(self.path, reason)
    }

    /// Returns the heads of a layer in the file. A layer without heads gets a head of zeros if llama.cpp needs one: in the first layer, or
    /// to keep a bias of the output.
    fn slots(&self, layer: usize) -> Result<PaddedHeads, Error> {
        let ModuleHeads { shape, kept } = self.layout.module(Attention::SelfAttention, layer);
        let kept: Vec<usize> = kept.into_iter().map(|head| head as usize).collect();
        let slots = PaddedHeads::of(&kept, shape.heads / shape.key_value_heads, shape.key_value_heads);
        let bias = self.weights.get(&format!("model.layers.{layer}.self_attn.o_proj.bias"));
        let has_bias = bias.map_or(Ok(false), |bias| {
            Ok(bias.to_dtype(DType::F32)?.abs()?.sum_all()?.to_scalar::<f32>()? != 0.0)
        });
        let has_bias = has_bias.map_err(Error::told(self.path))?;
        Ok(if slots.queries.is_empty() && (layer == 0 || has_bias) { PaddedHeads::zero() } else { slots })
    }

    /// Takes out a tensor of this shape, so that memory never contains it twice.
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let tensor =
            self.weights.remove(name).ok_or_else(|| self.fault(format!("tensor `{name}` is missing")))?;
        if tensor.dims() != shape {
            let found = tensor.dims();
            return Err(
                self.fault(format!("tensor `{name}` is {found:?}, but config.json asks for {shape:?}"))
            );
        }
        tensor.to_dtype(DType::F32).map_err(Error::told(self.path))
    }

    fn tensors(
        &mut self,
        heads: &[PaddedHeads],
        precision: Precision,
    ) -> Result<Vec<(String, QTensor)>, Error> {
        let told = Error::told(self.path);
        let stored =
            |name: String, tensor: &Tensor| Ok::<_, Error>((name, precision.of(tensor).map_err(&told)?));
        let (config, mut all) = (self.config, Vec::new());
        let output = format!("{}.weight", config.family.names.output);
        let mut expected = tensors(config);
        if config.tie_word_embeddings || !self.weights.contains_key(&output) {
            self.weights.remove(&output); // copy of the embeddings
            expected.retain(|(place, ..)| place.part != "output");
        }
        for (place, ending, name, shape) in expected {
            let tensor = self.take(&name, &shape)?;
            let Some(slots) = place.layer.map(|layer| &heads[layer]) else {
                all.push(stored(place.tensor(&ending), &tensor)?);
                continue;
            };
            let is_of_attention = place.part == "attn_norm" || ATTENTION.contains(&place.part);
            if !(is_of_attention && slots.queries.is_empty()) {
                let placed = self.placed(&place, ending == "bias", &tensor, slots).map_err(&told)?;
                all.push(stored(place.tensor(&ending), &placed)?);
            }
        }
        if let Some(scaling @ RotaryScaling::Llama3 { .. }) = config.rope_scaling {
            let divisors = Tensor::new(divisors(scaling, config), &Device::Cpu).map_err(&told)?;
            all.push(stored(ROTARY_FACTORS.to_owned(), &divisors)?);
        }
        match self.weights.keys().filter(|name| !name.ends_with("rotary_emb.inv_freq")).min() {
            Some(name) => {
                Err(self.fault(format!("no Llama, Mistral or Qwen2 has a tensor `{}`", excerpt(name))))
            }
            None => Ok(all),
        }
    }

    /// Returns a layer's tensor with the heads of the file.
    fn placed(
        &self,
        place_of: &Place,
        is_bias: bool,
        tensor: &Tensor,
        slots: &PaddedHeads,
    ) -> candle_core::Result<Tensor> {
        let d_head = self.config.d_head() as usize;
        match place_of.part {
            "attn_q" => interleave_rotary(&place(tensor, &slots.queries, d_head, 0)?, slots.queries.len()),
            "attn_k" => {
                interleave_rotary(&place(tensor, &slots.key_values, d_head, 0)?, slots.key_values.len())
            }
            "attn_v" => place(tensor, &slots.key_values, d_head, 0),
            "attn_output" if !is_bias => place(tensor, &slots.queries, d_head, 1),
            _ => Ok(tensor.clone()),
        }
    }
}

/// Arranges the heads of a tensor, slices of `d_head` along an axis, in the order of `slots`.
fn place(
    tensor: &Tensor,
    slots: &[Option<usize>],
    d_head: usize,
    axis: usize,
) -> candle_core::Result<Tensor> {
    if slots.is_empty() {
        return Ok(tensor.clone());
    }
    let mut shape = tensor.dims().to_vec();
    shape[axis] = d_head;
    let zeros = Tensor::zeros(shape, DType::F32, &Device::Cpu)?;
    let slice = |slot: &Option<usize>| {
        slot.map_or(Ok(zeros.clone()), |position| {
            tensor.narrow(axis, position * d_head, d_head)?.contiguous()
        })
    };
    let slices = slots.iter().map(slice).collect::<candle_core::Result<Vec<Tensor>>>()?;
    Tensor::cat(&slices, axis)?.contiguous()
}

/// Reorders rows of queries or keys for rotary positions: llama.cpp pairs neighbours, transformers pairs x with x + half.
fn interleave_rotary(tensor: &Tensor, heads: usize) -> candle_core::Result<Tensor> {
    if heads == 0 {
        return Ok(tensor.clone());
    }
    let halves = tensor.reshape((heads, 2, tensor.dim(0)? / heads / 2, ()))?;
    halves.transpose(1, 2)?.contiguous()?.reshape(tensor.dims())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::split_rotary;

    /// Two heads of 6 rows: llama.cpp pairs rows 0 and 1, which are rows 0 and 3 in transformers.
    #[test]
    fn rows_that_rotate_together_are_neighbours_in_each_head() {
        let rows = Tensor::arange(0_f32, 12.0, &Device::Cpu).unwrap();
        let pairs = interleave_rotary(&rows, 2).unwrap();
        let expected = [0., 3., 1., 4., 2., 5., 6., 9., 7., 10., 8., 11.];
        assert_eq!(pairs.to_vec1::<f32>().unwrap(), expected);
        assert_eq!(
            split_rotary(&pairs, 2).unwrap().to_vec1::<f32>().unwrap(),
            rows.to_vec1::<f32>().unwrap()
        );
    }

    /// The last and the first of three heads of 2 columns, with zeros in between.
    #[test]
    fn heads_are_placed_and_zeros_fill_the_gaps() {
        let columns = Tensor::arange(0_f32, 6.0, &Device::Cpu).unwrap().reshape((1, 6)).unwrap();
        let placed = place(&columns, &[Some(2), None, Some(0)], 2, 1).unwrap();
        assert_eq!(placed.to_vec2::<f32>().unwrap(), [[4., 5., 0., 0., 0., 1.]]);
    }
}
