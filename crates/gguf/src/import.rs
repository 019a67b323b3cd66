//! Import of a GGUF file of architecture `llama` or `gemma3` as a Hugging Face folder.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};
use families::language_model::LanguageConfig;
use families::rotary::RotaryScaling;
use safetensors::{Dtype, View};
use serde_json::{Map, Value, json};
use words::excerpt;

use crate::Error;
use crate::config::divisors;
use crate::file::GgufFile;
use crate::names::{
    ARCHITECTURES, ATTENTION, Architecture, EMBEDDINGS, OUTPUT, Place, ROTARY_FACTORS, tensors,
};
use crate::tokenizer;

/// Writes the model of the GGUF file at `path` to `folder`, which must not exist. Weights have the values that llama.cpp computes with, in
/// f32 or rounded to `bf16`.
///
/// # Errors
/// If the file is truncated or its architecture, data type or tokenizer is unsupported; or if the folder exists or cannot be written.
pub fn import(path: &Path, folder: &Path, bf16: bool) -> Result<(), Error> {
    if folder.exists() {
        let shown = folder.display();
        return Err(Error::Invalid(format!(
            "`{shown}` exists already: choose another folder, or move it away"
        )));
    }
    let mut file = GgufFile::open(path)?;
    let kind = architecture(&file)?;
    let (mut entries, config) = configuration(&file, kind)?;
    let tokens = tokenizer::read(&file, kind)?;
    if tokens.count > config.vocab_size as usize {
        let reason = format!("it has {} tokens, but {} embeddings", tokens.count, config.vocab_size);
        return Err(Error::of(path, reason));
    }
    let symbols = json!({"bos_token_id": tokens.begin, "eos_token_id": tokens.end});
    entries.extend(symbols.as_object().cloned().unwrap_or_default());
    entries.insert("dtype".to_owned(), if bf16 { "bfloat16" } else { "float32" }.into());
    if let Some(scaling) = scaling_of_divisors(&mut file, &config)? {
        entries.insert("rope_scaling".to_owned(), json!(scaling));
    }
    let weights = weights(&mut file, &config, kind, bf16)?;
    durable::replace_folder(folder, |partial| {
        let write = |name: &str, value: &Value| durable::write(&partial.join(name), format!("{value:#}\n"));
        std::fs::create_dir_all(partial)
            .map_err(|source| durable::Error { path: partial.to_owned(), source })?;
        write("config.json", &Value::Object(entries))?;
        write("generation_config.json", &symbols)?;
        write("tokenizer.json", &tokens.json)?;
        write("tokenizer_config.json", &tokens.settings)?;
        let about = [("format".to_owned(), "pt".to_owned())].into();
        let place = partial.join("model.safetensors");
        safetensors::serialize_to_file(weights, Some(about), &place)
            .map_err(|error| Error::of(&place, excerpt(&error.to_string())))?;
        corpus::language_tokenizer::LanguageTokenizer::load(partial)?; // fails before an unusable folder is kept
        Ok(())
    })
}

/// Returns the keys of `config.json` except special tokens, from the metadata and the tensor names, and the configuration they mean.
fn configuration(
    file: &GgufFile,
    kind: &Architecture,
) -> Result<(Map<String, Value>, LanguageConfig), Error> {
    let key = |name: &str| format!("{}.{name}", kind.name);
    let number = |name: &str| file.require(&key(name), file.number(&key(name))?);
    let tensors = &file.content.tensor_infos;
    let embeddings = tensors.get(EMBEDDINGS).map(|info| info.shape.dims());
    let (heads, hidden_size) = (number("attention.head_count")?, number("embedding_length")?);
    let d_head = file.number(&key("attention.key_length"))?.unwrap_or(hidden_size / heads.max(1));
    let layers = number("block_count")?;
    let epsilon = key("attention.layer_norm_rms_epsilon");
    let entries = json!({
        "architectures": [kind.family.architecture],
        "model_type": kind.family.model_type,
        "vocab_size": file.require(EMBEDDINGS, embeddings.and_then(<[usize]>::first).copied())?,
        "hidden_size": hidden_size,
        "intermediate_size": number("feed_forward_length")?,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": file.number(&key("attention.head_count_kv"))?.unwrap_or(heads),
        "head_dim": d_head,
        "max_position_embeddings": number("context_length")?,
        "rms_norm_eps": file.require(&epsilon, file.real(&epsilon)?)?,
        "rope_theta": file.real(&key("rope.freq_base"))?.unwrap_or(10_000.0),
        "rope_scaling": scaling(file, kind)?,
        "attention_bias": ATTENTION.iter().any(|name| tensors.contains_key(&format!("blk.0.{name}.bias"))),
        "tie_word_embeddings": !tensors.contains_key(OUTPUT),
    });
    let mut entries = entries.as_object().cloned().unwrap_or_default();
    entries.extend(match kind.name {
        "gemma3" => of_gemma3(file, if layers == 62 { hidden_size / heads.max(1) } else { d_head })?,
        _ => {
            Map::from_iter([("hidden_act".to_owned(), json!("silu")), ("mlp_bias".to_owned(), json!(false))])
        }
    });
    for name in ["rope.dimension_count", "attention.value_length"] {
        if let Some(found) = file.number(&key(name))?.filter(|&width| width != d_head) {
            let name = key(name);
            let reason = format!("`{name}` is {found}, but heads are {d_head} wide: they must be equal");
            return Err(Error::of(&file.path, reason));
        }
    }
    let config = LanguageConfig::of_family(&file.path, entries.clone(), kind.family)?;
    Ok((entries, config))
}

fn architecture(file: &GgufFile) -> Result<&'static Architecture, Error> {
    let name = file.require("general.architecture", file.text("general.architecture")?)?;
    let known = ARCHITECTURES.iter().find(|known| known.name == name).ok_or_else(|| {
        let reason =
            format!("architecture `{}` is not supported; expected `llama` or `gemma3`", excerpt(name));
        Error::of(&file.path, reason)
    })?;
    match file.number(&format!("{name}.expert_count"))? {
        None | Some(0) => Ok(known),
        Some(_) => Err(Error::of(&file.path, "models with experts are not supported")),
    }
}

/// Returns the keys of `config.json` that Llama lacks. Values that files usually omit are llama.cpp's: five of six layers have sliding
/// windows and a rotary base of 10,000, and the model of 62 layers scales scores by another width
/// (<https://github.com/ggml-org/llama.cpp/blob/b6000/src/llama-model.cpp>, `LLM_ARCH_GEMMA3`).
fn of_gemma3(file: &GgufFile, of_scores: usize) -> Result<Map<String, Value>, Error> {
    let window = "gemma3.attention.sliding_window";
    let pattern = file.number(&format!("{window}_pattern"))?.unwrap_or(6);
    let entries = json!({
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": of_scores,
        "sliding_window": file.require(window, file.number(window)?)?, "sliding_window_pattern": pattern,
        "rope_local_base_freq": file.real("gemma3.rope.freq_base_swa")?.unwrap_or(10_000.0),
        "attn_logit_softcapping": null, "final_logit_softcapping": file.real("gemma3.final_logit_softcapping")?,
    });
    Ok(entries.as_object().cloned().unwrap_or_default())
}

/// Returns the rotary scaling given in the metadata.
fn scaling(file: &GgufFile, kind: &Architecture) -> Result<Option<Value>, Error> {
    let key = |name: &str| format!("{}.rope.{name}", kind.name);
    match file.text(&key("scaling.type"))? {
        Some("none") => Ok(None),
        // llama.cpp's default type is `linear`, and a factor of 0 means 1
        None | Some("linear") => {
            let older = file.real(&key("scale_linear"))?;
            let factor = file.real(&key("scaling.factor"))?.or(older);
            let factor = factor.filter(|factor| ![0.0, 1.0].contains(factor));
            Ok(factor.map(|factor| json!({"rope_type": "linear", "factor": factor})))
        }
        Some(other) => {
            let reason = format!("rotary scaling `{}` is not supported; expected linear", excerpt(other));
            Err(Error::of(&file.path, reason))
        }
    }
}

/// Returns Llama 3's rotary scaling if it yields these divisors. The file lacks its parameters, but all known models have equal ones, apart
/// from the factor.
fn llama3(found: &[f32], config: &LanguageConfig) -> Option<RotaryScaling> {
    let known = RotaryScaling::Llama3 {
        factor: f64::from(*found.last()?),
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    let expected = divisors(known, config);
    let is_near = |(found, expected): (&f32, &f32)| (found / expected - 1.0).abs() < 1e-4;
    (found.len() == expected.len() && found.iter().zip(&expected).all(is_near)).then_some(known)
}

/// A tensor of the folder to be written.
struct Expected {
    name: String,
    shape: Vec<usize>,
    /// Number of heads, if their rows must be reordered.
    heads_to_reorder: Option<usize>,
    is_norm: bool,
}

fn expected(config: &LanguageConfig, kind: &Architecture) -> BTreeMap<String, Expected> {
    let tensor = |(place, ending, name, shape): (Place, String, String, Vec<usize>)| {
        let heads_to_reorder = match place.part {
            "attn_q" => Some(config.num_attention_heads),
            "attn_k" => Some(config.key_value_heads()),
            _ => None,
        };
        let heads_to_reorder = heads_to_reorder.filter(|_| kind.turns_neighbours);
        let is_norm = place.part.ends_with("norm");
        (place.tensor(&ending), Expected { name, shape, heads_to_reorder, is_norm })
    };
    tensors(config).into_iter().map(tensor).collect()
}

fn weights(
    file: &mut GgufFile,
    config: &LanguageConfig,
    kind: &Architecture,
    bf16: bool,
) -> Result<BTreeMap<String, Stored>, Error> {
    let (precision, all) = (if bf16 { DType::BF16 } else { DType::F32 }, expected(config, kind));
    let is_known = |name: &String| name == ROTARY_FACTORS || all.contains_key(name);
    if let Some(name) = file.content.tensor_infos.keys().filter(|name| !is_known(name)).min() {
        return Err(Error::of(&file.path, format!("no `{}` has a tensor `{}`", kind.name, excerpt(name))));
    }
    let mut weights = BTreeMap::new();
    for (from, Expected { name, shape, heads_to_reorder, is_norm }) in all {
        // In Llama either all attention maps have a bias or none has.
        let is_zero = from.ends_with(".bias") && !file.content.tensor_infos.contains_key(&from);
        let tensor = if is_zero { None } else { Some(file.tensor(&from)?) };
        if let Some(found) = tensor.as_ref().map(|tensor| tensor.shape().dims()).filter(|dims| *dims != shape)
        {
            return Err(Error::of(
                &file.path,
                format!("tensor `{from}` is {found:?}, but must be {shape:?}"),
            ));
        }
        let added = if is_norm { kind.added_to_norms } else { 0.0 };
        weights.insert(name, Stored { tensor, shape, heads_to_reorder, added, precision });
    }
    Ok(weights)
}

/// Returns the scaling that a tensor of divisors represents.
fn scaling_of_divisors(file: &mut GgufFile, config: &LanguageConfig) -> Result<Option<RotaryScaling>, Error> {
    if !file.content.tensor_infos.contains_key(ROTARY_FACTORS) {
        return Ok(None);
    }
    let found = file.tensor(ROTARY_FACTORS)?.dequantize(&Device::Cpu);
    let found = found.and_then(|all| all.flatten_all()?.to_vec1::<f32>());
    let found = found.map_err(Error::told(&file.path))?;
    let unknown =
        || Error::of(&file.path, format!("`{ROTARY_FACTORS}` contains a different scaling from Llama 3's"));
    llama3(&found, config).ok_or_else(unknown).map(Some)
}

/// A tensor that is dequantised when written, so that a model takes little more memory than its file.
struct Stored {
    /// `None` for zeros.
    tensor: Option<QTensor>,
    shape: Vec<usize>,
    heads_to_reorder: Option<usize>,
    /// Offset of the weights in the file.
    added: f64,
    precision: DType,
}

impl Stored {
    fn numbers(&self) -> candle_core::Result<Tensor> {
        let tensor = match &self.tensor {
            Some(tensor) => tensor.dequantize(&Device::Cpu)?,
            None => Tensor::zeros(&*self.shape, DType::F32, &Device::Cpu)?,
        };
        let tensor = if self.added == 0.0 { tensor } else { (tensor - self.added)? };
        self.heads_to_reorder
            .map_or(Ok(tensor.clone()), |heads| split_rotary(&tensor, heads))?
            .to_dtype(self.precision)
    }
}

/// Reorders rows of queries or keys for rotary positions: transformers pairs x with x + half, llama.cpp pairs neighbours.
pub(crate) fn split_rotary(tensor: &Tensor, heads: usize) -> candle_core::Result<Tensor> {
    let pairs = tensor.reshape((heads, tensor.dim(0)? / heads / 2, 2, ()))?;
    pairs.transpose(1, 2)?.contiguous()?.reshape(tensor.dims())
}

impl View for Stored {
    fn dtype(&self) -> Dtype {
        if self.precision == DType::BF16 { Dtype::BF16 } else { Dtype::F32 }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let numbers = self.numbers().expect("sizes were compared, and memory needs no file");
        Cow::Owned(View::data(&numbers).into_owned())
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.precision.size_in_bytes()
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::Value as Field;

    use super::*;

    /// As in llama.cpp (`llama_model::load_hparams`): the default is `linear`, and `scale_linear` is the factor's older name.
    #[test]
    fn positions_are_scaled_linearly_unless_the_file_sets_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let read = |kind: Option<&str>, factor: &str, value: f32| {
            let kind =
                kind.map(|kind| ("llama.rope.scaling.type".to_owned(), Field::String(kind.to_owned())));
            let factor = (format!("llama.rope.{factor}"), Field::F32(value));
            crate::file::write(&path, &kind.into_iter().chain([factor]).collect::<Vec<_>>(), &[]).unwrap();
            scaling(&GgufFile::open(&path).unwrap(), &ARCHITECTURES[0]).unwrap()
        };
        let by_four = Some(json!({"rope_type": "linear", "factor": 4.0}));
        assert_eq!(read(Some("linear"), "scaling.factor", 4.0), by_four);
        assert_eq!(read(None, "scaling.factor", 4.0), by_four);
        assert_eq!(read(None, "scale_linear", 4.0), by_four);
        assert_eq!(read(Some("none"), "scaling.factor", 4.0), None);
        assert_eq!(read(None, "scaling.factor", 1.0), None);
    }

    /// A tiny Gemma 3 whose tensors count from 0: llama.cpp adds 1 to norms, and pairs halves as transformers does.
    #[test]
    fn norms_of_gemma3_lose_1_and_rows_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let [path, model] = ["model.gguf", "model"].map(|name| folder.path().join(name));
        let text = |text: &str| Field::String(text.to_owned());
        let tokens = ["<pad>", "<eos>", "<bos>", "a", "b", "ab", "  "];
        let scores = [0.0, 0.0, 0.0, -1.0, -2.0, 0.0, -1000.0].map(Field::F32);
        let kinds = [3, 3, 3, 1, 1, 1, 4].map(Field::I32);
        let sizes = [
            ("embedding_length", 10),
            ("feed_forward_length", 6),
            ("block_count", 1),
            ("context_length", 64),
            ("attention.head_count", 2),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 4),
            ("attention.sliding_window", 16),
        ];
        let mut metadata = vec![
            ("general.architecture".to_owned(), text("gemma3")),
            ("gemma3.attention.layer_norm_rms_epsilon".to_owned(), Field::F32(1e-6)),
            ("gemma3.rope.freq_base".to_owned(), Field::F32(1e6)),
            ("tokenizer.ggml.model".to_owned(), text("llama")),
            ("tokenizer.ggml.tokens".to_owned(), Field::Array(tokens.map(text).to_vec())),
            ("tokenizer.ggml.scores".to_owned(), Field::Array(scores.to_vec())),
            ("tokenizer.ggml.token_type".to_owned(), Field::Array(kinds.to_vec())),
            ("tokenizer.ggml.bos_token_id".to_owned(), Field::U32(2)),
            ("tokenizer.ggml.add_space_prefix".to_owned(), Field::Bool(false)),
        ];
        metadata.extend(sizes.map(|(name, size)| (format!("gemma3.{name}"), Field::U32(size))));
        let shape = |name: &str| match name {
            "attn_q" => vec![8, 10],
            "attn_k" | "attn_v" => vec![4, 10],
            "attn_output" => vec![10, 8],
            "ffn_gate" | "ffn_up" => vec![6, 10],
            "ffn_down" => vec![10, 6],
            "attn_q_norm" | "attn_k_norm" => vec![4],
            _ => vec![10],
        };
        let counting = |shape: Vec<usize>| {
            let all = Tensor::arange(0.0_f32, shape.iter().product::<usize>() as f32, &Device::Cpu).unwrap();
            crate::Precision::F32.of(&all.reshape(shape).unwrap()).unwrap()
        };
        let mut tensors = vec![
            ("token_embd.weight".to_owned(), counting(vec![7, 10])),
            ("output_norm.weight".to_owned(), counting(vec![10])),
        ];
        let in_layer = "attn_norm attn_q attn_k attn_v attn_output attn_q_norm attn_k_norm post_attention_norm ffn_norm ffn_gate ffn_up \
                        ffn_down post_ffw_norm";
        tensors.extend(
            in_layer.split_whitespace().map(|name| (format!("blk.0.{name}.weight"), counting(shape(name)))),
        );
        crate::file::write(&path, &metadata, &tensors).unwrap();
        import(&path, &model, false).unwrap();

        let config: Value =
            serde_json::from_slice(&std::fs::read(model.join("config.json")).unwrap()).unwrap();
        let entries =
            ["model_type", "hidden_activation", "hidden_act", "sliding_window", "query_pre_attn_scalar"];
        let expected = [json!("gemma3_text"), json!("gelu_pytorch_tanh"), Value::Null, json!(16), json!(4)];
        assert_eq!(entries.map(|entry| config[entry].clone()), expected);
        let weights = candle_core::safetensors::load(model.join("model.safetensors"), &Device::Cpu).unwrap();
        assert_eq!(weights.len(), 15);
        for (name, tensor) in weights {
            let lowest = if name.contains("norm") { -1.0 } else { 0.0 };
            let numbers: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
            let expected = (0_u8..).map(|place| f32::from(place) + lowest);
            assert!(numbers.iter().copied().eq(expected.take(numbers.len())), "{name}: {numbers:?}");
        }
        let tokenizer = corpus::language_tokenizer::LanguageTokenizer::load(&model).unwrap();
        assert_eq!((tokenizer.begin(), tokenizer.encode("ab  a").unwrap()), (Some(2), vec![5, 6, 3]));
    }
}
