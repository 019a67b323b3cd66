//! OPT, Zhang et al. (2022), <https://arxiv.org/abs/2205.01068>: learned positions; the first two rows of the table are unused. The
//! post-norm variant, opt-350m, is refused.
//!
//! Names follow transformers:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/opt/modeling_opt.py>.
use super::ConfigKeys;
use super::llama::{LIKE_LLAMA, REMOVED};
use super::{Bias, Biases, LanguageFamily, LanguageNames, Normalisation, SublayerNorms};

/// OPT.
pub static OPT: LanguageFamily = LanguageFamily {
    model_type: "opt",
    architecture: "OPTForCausalLM",
    keys: ConfigKeys {
        entries: &[
            ("intermediate_size", Some("ffn_dim")),
            ("hidden_act", Some("activation_function")),
            ("initializer_range", Some("init_std")),
            ("resid_pdrop", Some("dropout")),
            ("rms_norm_eps", None),
            ("num_key_value_heads", None),
            ("head_dim", None),
            ("rope_theta", None),
            ("rope_scaling", None),
            ("rope_parameters", None),
            ("attention_bias", None),
            ("mlp_bias", None),
            REMOVED,
        ],
        defaults: r#"{"hidden_act": "relu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}"#,
    },
    names: LanguageNames {
        prefix: "model.decoder",
        positions: Some("embed_positions"),
        rows_before: 2,
        attention_norm: SublayerNorms { before: Some("self_attn_layer_norm"), after: None },
        projections: ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"],
        feed_forward_norm: SublayerNorms { before: Some("final_layer_norm"), after: None },
        feed_forward: &["fc1", "fc2"],
        norm: "final_layer_norm",
        ..LIKE_LLAMA.names
    },
    norm: Normalisation::Layer,
    biases: Biases { inputs: Bias::Always, output: Bias::Always, feed_forward: Bias::Always },
    supported: &[
        ("do_layer_norm_before", true),
        ("_remove_final_layer_norm", false),
        ("enable_bias", true),
        ("layer_norm_elementwise_affine", true),
    ],
    ..LIKE_LLAMA
};
