//! Command R, <https://arxiv.org/abs/2504.00698>: one layer norm without bias for attention and feed-forward layer, which run in parallel;
//! rotary positions pair neighbouring dimensions; logits have a factor.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/cohere/modeling_cohere.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, HeadNorm, LanguageFamily, LanguageNames, Normalisation, SublayerNorms};

/// Cohere's Command R.
pub static COHERE: LanguageFamily = LanguageFamily {
    model_type: "cohere",
    architecture: "CohereForCausalLM",
    keys: ConfigKeys {
        entries: &[REMOVED, ("rms_norm_eps", Some("layer_norm_eps")), ("mlp_bias", None)],
        defaults: r#"{"hidden_act": "silu", "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "logit_scale": 0.0625,
            "use_qk_norm": false, "tie_word_embeddings": true}"#,
    },
    optional: &["logit_scale", "use_qk_norm"],
    names: LanguageNames {
        head_norms: Some(["self_attn.q_norm", "self_attn.k_norm"]),
        head_norm: HeadNorm::Own,
        feed_forward_norm: SublayerNorms { before: None, after: None },
        ..LIKE_LLAMA.names
    },
    norm: Normalisation::LayerWithoutBias,
    biases: Biases { inputs: Bias::OfAttention, output: Bias::OfAttention, feed_forward: Bias::Never },
    shared_norm: true,
    interleaved_rotary: true,
    ..LIKE_LLAMA
};
