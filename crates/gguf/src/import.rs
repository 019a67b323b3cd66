//! A GGUF file of architecture `llama` or `gemma3` as a Hugging Face folder.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};
use safetensors::{Dtype, View};
use serde_json::{Value, json};
use words::excerpt;

use crate::Error;
use crate::config::{Config, Llama3};
use crate::file::GgufFile;
use crate::names::{ARCHITECTURES, ATTENTION, Architecture, HEAD_NORMS, OUTPUT, OUTSIDE, ROTARY_FACTORS};
use crate::tokenizer;

/// Writes the model of the GGUF file at `path` to `folder`, which must not be there: weights as the numbers that llama.cpp
/// computes with, in f32, or rounded to `bf16`.
///
/// # Errors
/// If the file is torn, of another architecture, or of types that cannot be read; its tokeniser is of an unknown kind; or the
/// folder is there or cannot be written.
pub fn import(path: &Path, folder: &Path, bf16: bool) -> Result<(), Error> {
    if folder.exists() {
        let shown = folder.display();
        return Err(Error::Invalid(format!(
            "`{shown}` is there already: choose another folder, or move it away"
        )));
    }
    let mut file = GgufFile::open(path)?;
    let kind = architecture(&file)?;
    let mut config = configuration(&file, kind)?;
    config.dtype = if bf16 { "bfloat16" } else { "float32" }.to_owned();
    let tokens = tokenizer::read(&file, kind)?;
    if tokens.count > config.vocab_size {
        let reason = format!("it has {} tokens, but embeddings of {}", tokens.count, config.vocab_size);
        return Err(Error::of(path, reason));
    }
    (config.bos_token_id, config.eos_token_id) = (tokens.begin.map(Into::into), tokens.end.map(Into::into));
    config.rope_scaling = scaling_of_divisors(&mut file, &config)?.or(config.rope_scaling);
    let mut entries = json!(config);
    if kind.name == "gemma3" {
        let own = entries.as_object_mut().expect("a structure is an object");
        own.remove("hidden_act");
        own.extend(of_gemma3(&file, &config)?);
    }
    let weights = weights(&mut file, &config, kind, bf16)?;
    durable::replace_folder(folder, |partial| {
        let write = |name: &str, value: &Value| durable::write(&partial.join(name), format!("{value:#}\n"));
        std::fs::create_dir_all(partial)
            .map_err(|source| durable::Error { path: partial.to_owned(), source })?;
        write("config.json", &entries)?;
        write(
            "generation_config.json",
            &json!({"bos_token_id": config.bos_token_id, "eos_token_id": config.eos_token_id}),
        )?;
        write("tokenizer.json", &tokens.json)?;
        write("tokenizer_config.json", &tokens.settings)?;
        let about = [("format".to_owned(), "pt".to_owned())].into();
        let place = partial.join("model.safetensors");
        safetensors::serialize_to_file(weights, Some(about), &place)
            .map_err(|error| Error::of(&place, excerpt(&error.to_string())))?;
        corpus::language_tokenizer::LanguageTokenizer::load(partial)?; // what cannot be loaded is not left behind
        Ok(())
    })
}

/// The configuration but for its symbols, as the metadata and the names of the tensors give it.
fn configuration(file: &GgufFile, kind: &Architecture) -> Result<Config, Error> {
    let key = |name: &str| format!("{}.{name}", kind.name);
    let number = |name: &str| file.require(&key(name), file.number(&key(name))?);
    let tensors = &file.content.tensor_infos;
    let embeddings = tensors.get(OUTSIDE[0].0).map(|info| info.shape.dims());
    let (heads, hidden_size) = (number("attention.head_count")?, number("embedding_length")?);
    let epsilon = key("attention.layer_norm_rms_epsilon");
    let config = Config {
        architectures: vec![kind.class.to_owned()],
        model_type: kind.model_type.to_owned(),
        vocab_size: file.require(OUTSIDE[0].0, embeddings.and_then(<[usize]>::first).copied())?,
        hidden_size,
        intermediate_size: number("feed_forward_length")?,
        num_hidden_layers: number("block_count")?,
        num_attention_heads: heads,
        num_key_value_heads: Some(file.number(&key("attention.head_count_kv"))?.unwrap_or(heads)),
        head_dim: Some(file.number(&key("attention.key_length"))?.unwrap_or(hidden_size / heads.max(1))),
        hidden_act: "silu".to_owned(),
        max_position_embeddings: Some(number("context_length")?),
        rms_norm_eps: file.require(&epsilon, file.real(&epsilon)?)?,
        rope_theta: Some(file.real(&key("rope.freq_base"))?.unwrap_or(10_000.0)),
        rope_scaling: scaling(file, kind)?,
        attention_bias: ATTENTION.iter().any(|name| tensors.contains_key(&format!("blk.0.{name}.bias"))),
        tie_word_embeddings: !tensors.contains_key(OUTPUT),
        ..Config::default()
    };
    let (fault, d_head) = (|reason: String| Error::of(&file.path, reason), config.d_head());
    config.check(tensors.len()).map_err(fault)?;
    for name in ["rope.dimension_count", "attention.value_length"] {
        if let Some(found) = file.number(&key(name))?.filter(|&width| width != d_head) {
            return Err(fault(format!(
                "`{}` is {found}, but heads are {d_head} wide: they must be equal",
                key(name)
            )));
        }
    }
    Ok(config)
}

fn architecture(file: &GgufFile) -> Result<&'static Architecture, Error> {
    let name = file.require("general.architecture", file.text("general.architecture")?)?;
    let known = ARCHITECTURES.iter().find(|known| known.name == name).ok_or_else(|| {
        let reason =
            format!("a model of architecture `{}` cannot be read; `llama` and `gemma3` can", excerpt(name));
        Error::of(&file.path, reason)
    })?;
    match file.number(&format!("{name}.expert_count"))? {
        None | Some(0) => Ok(known),
        Some(_) => Err(Error::of(&file.path, "a model with experts cannot be read")),
    }
}

/// The entries of `config.json` that Llama has not. What files mostly do not hold is as llama.cpp has it: five of six layers have
/// windows and rotary positions of base 10,000, and the model of 62 layers scales scores by another width
/// (<https://github.com/ggml-org/llama.cpp/blob/b6000/src/llama-model.cpp>, `LLM_ARCH_GEMMA3`).
fn of_gemma3(file: &GgufFile, config: &Config) -> Result<serde_json::Map<String, Value>, Error> {
    let of_scores = match config.num_hidden_layers {
        62 => config.hidden_size / config.num_attention_heads,
        _ => config.d_head(),
    };
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

/// Scaling of rotary positions that the metadata tell.
fn scaling(file: &GgufFile, kind: &Architecture) -> Result<Option<Value>, Error> {
    let key = |name: &str| format!("{}.rope.{name}", kind.name);
    match file.text(&key("scaling.type"))? {
        Some("none") => Ok(None),
        // llama.cpp takes `linear` where no type is stated, and 0 as 1
        None | Some("linear") => {
            let older = file.real(&key("scale_linear"))?;
            let factor = file.real(&key("scaling.factor"))?.or(older);
            let factor = factor.filter(|factor| ![0.0, 1.0].contains(factor));
            Ok(factor.map(|factor| json!({"rope_type": "linear", "factor": factor})))
        }
        Some(other) => {
            let reason = format!("rotary scaling `{}` cannot be read; linear can", excerpt(other));
            Err(Error::of(&file.path, reason))
        }
    }
}

/// Llama 3's scaling with these divisors: the file does not hold its numbers, but all known models have the same, and differ
/// in the factor alone.
fn llama3(divisors: &[f32], config: &Config) -> Option<Llama3> {
    let factor = f64::from(*divisors.last()?);
    let known = Llama3 { factor, low: 1.0, high: 4.0, original: 8192.0 };
    let expected = known.divisors(config.rope_theta?, config.d_head());
    let is_near = |(found, expected): (&f32, &f32)| (found / expected - 1.0).abs() < 1e-4;
    (divisors.len() == expected.len() && divisors.iter().zip(&expected).all(is_near)).then_some(known)
}

/// A tensor of the folder.
struct Expected {
    name: String,
    shape: Vec<usize>,
    /// The number of its heads, if their rows change their order.
    turning: Option<usize>,
    is_norm: bool,
}

/// The tensors of the file, by name.
fn expected(config: &Config, kind: &Architecture) -> BTreeMap<String, Expected> {
    let mut all = BTreeMap::new();
    let (hidden, rows) = (config.hidden_size, config.vocab_size);
    for (from, to) in OUTSIDE {
        if from != OUTPUT || !config.tie_word_embeddings {
            let is_norm = from == OUTSIDE[1].0;
            let shape = if is_norm { vec![hidden] } else { vec![rows, hidden] };
            all.insert(from.to_owned(), Expected { name: to.to_owned(), shape, turning: None, is_norm });
        }
    }
    for layer in 0..config.num_hidden_layers {
        for (from, to) in kind.in_layer {
            let (outputs, inputs, turning) = extent(from, config);
            let turning = turning.filter(|_| kind.turns_neighbours);
            let mut put = |ending: &str, shape, is_norm| {
                let name = format!("model.layers.{layer}.{to}.{ending}");
                all.insert(
                    format!("blk.{layer}.{from}.{ending}"),
                    Expected { name, shape, turning, is_norm },
                );
            };
            put("weight", [Some(outputs), inputs].into_iter().flatten().collect(), inputs.is_none());
            if config.attention_bias && ATTENTION.contains(from) {
                put("bias", vec![outputs], false);
            }
        }
    }
    all
}

/// All tensors of the folder, by name.
fn weights(
    file: &mut GgufFile,
    config: &Config,
    kind: &Architecture,
    bf16: bool,
) -> Result<BTreeMap<String, Stored>, Error> {
    let (precision, all) = (if bf16 { DType::BF16 } else { DType::F32 }, expected(config, kind));
    let is_known = |name: &String| name == ROTARY_FACTORS || all.contains_key(name);
    if let Some(name) = file.content.tensor_infos.keys().filter(|name| !is_known(name)).min() {
        return Err(Error::of(&file.path, format!("no `{}` has a tensor `{}`", kind.name, excerpt(name))));
    }
    let mut weights = BTreeMap::new();
    for (from, Expected { name, shape, turning, is_norm }) in all {
        // Llama has all biases of attention or none.
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
        weights.insert(name, Stored { tensor, shape, turning, added, precision });
    }
    Ok(weights)
}

/// The scaling that a tensor of divisors stands for.
fn scaling_of_divisors(file: &mut GgufFile, config: &Config) -> Result<Option<Value>, Error> {
    if !file.content.tensor_infos.contains_key(ROTARY_FACTORS) {
        return Ok(None);
    }
    let divisors = file.tensor(ROTARY_FACTORS)?.dequantize(&Device::Cpu);
    let divisors = divisors.and_then(|all| all.flatten_all()?.to_vec1::<f32>());
    let divisors = divisors.map_err(Error::told(&file.path))?;
    let unknown =
        || Error::of(&file.path, format!("`{ROTARY_FACTORS}` holds another scaling than Llama 3's"));
    Ok(Some(llama3(&divisors, config).ok_or_else(unknown)?.to_json()))
}

/// Outputs and inputs of a map of a layer, no inputs for a norm; and for queries and keys the number of heads whose rows turn.
fn extent(name: &str, config: &Config) -> (usize, Option<usize>, Option<usize>) {
    let (hidden, middle) = (config.hidden_size, config.intermediate_size);
    let (heads, key_values) = (config.num_attention_heads, config.key_values());
    match name {
        "attn_q" => (heads * config.d_head(), Some(hidden), Some(heads)),
        "attn_k" => (key_values * config.d_head(), Some(hidden), Some(key_values)),
        "attn_v" => (key_values * config.d_head(), Some(hidden), None),
        "attn_output" => (hidden, Some(heads * config.d_head()), None),
        "ffn_gate" | "ffn_up" => (middle, Some(hidden), None),
        "ffn_down" => (hidden, Some(middle), None),
        norm if HEAD_NORMS.contains(&norm) => (config.d_head(), None, None),
        _ => (hidden, None, None),
    }
}

/// A tensor that is dequantised when it is written, so that a model takes little more memory than its file.
struct Stored {
    /// Zeros if there is none.
    tensor: Option<QTensor>,
    shape: Vec<usize>,
    turning: Option<usize>,
    /// What the file adds to the weights.
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
        self.turning.map_or(Ok(tensor.clone()), |heads| in_halves(&tensor, heads))?.to_dtype(self.precision)
    }
}

/// Rows of queries or keys as transformers turns them, x with x + half, where llama.cpp turns neighbours.
pub(crate) fn in_halves(tensor: &Tensor, heads: usize) -> candle_core::Result<Tensor> {
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

    /// As llama.cpp reads them (`llama_model::load_hparams`): `linear` is its default, and `scale_linear` the factor's older name.
    #[test]
    fn positions_are_scaled_linearly_unless_the_file_says_otherwise() {
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

    /// A tiny Gemma 3 whose tensors count from 0: llama.cpp adds 1 to norms, and turns halves as transformers does.
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
        let in_layer = ARCHITECTURES[1].in_layer.iter();
        tensors.extend(in_layer.map(|(name, _)| (format!("blk.0.{name}.weight"), counting(shape(name)))));
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
