//! Names of tensors in GGUF files and in Hugging Face folders.

/// An architecture of GGUF files that is read.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// `general.architecture`, and the beginning of its keys.
    pub(crate) name: &'static str,
    pub(crate) class: &'static str,
    pub(crate) model_type: &'static str,
    /// Maps and norms of a layer: below `blk.<layer>.`, and below `model.layers.<layer>.`.
    pub(crate) in_layer: &'static [(&'static str, &'static str)],
    /// `true` if llama.cpp turns neighbouring rows of queries and keys, where transformers turns x with x + half.
    pub(crate) turns_neighbours: bool,
    /// What the file adds to the weights of norms.
    pub(crate) added_to_norms: f64,
}

pub(crate) const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "llama",
        class: "LlamaForCausalLM",
        model_type: "llama",
        in_layer: &IN_LAYER,
        turns_neighbours: true,
        added_to_norms: 0.0,
    },
    Architecture {
        name: "gemma3",
        class: "Gemma3ForCausalLM",
        model_type: "gemma3_text",
        in_layer: &[
            ("attn_norm", "input_layernorm"),
            ("attn_q", "self_attn.q_proj"),
            ("attn_k", "self_attn.k_proj"),
            ("attn_v", "self_attn.v_proj"),
            ("attn_output", "self_attn.o_proj"),
            (HEAD_NORMS[0], "self_attn.q_norm"),
            (HEAD_NORMS[1], "self_attn.k_norm"),
            ("post_attention_norm", "post_attention_layernorm"),
            ("ffn_norm", "pre_feedforward_layernorm"),
            ("ffn_gate", "mlp.gate_proj"),
            ("ffn_up", "mlp.up_proj"),
            ("ffn_down", "mlp.down_proj"),
            ("post_ffw_norm", "post_feedforward_layernorm"),
        ],
        turns_neighbours: false,
        added_to_norms: 1.0,
    },
];

/// Norms as wide as a head.
pub(crate) const HEAD_NORMS: [&str; 2] = ["attn_q_norm", "attn_k_norm"];

/// Maps and norms of a layer of Llama.
pub(crate) const IN_LAYER: [(&str, &str); 9] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Maps that may have biases, `attention_bias` in config.json.
pub(crate) const ATTENTION: [&str; 4] = ["attn_q", "attn_k", "attn_v", "attn_output"];

/// Tensors outside layers. Without `output.weight` the embeddings serve as it.
pub(crate) const OUTSIDE: [(&str, &str); 3] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    (OUTPUT, "lm_head.weight"),
];

pub(crate) const OUTPUT: &str = "output.weight";

/// What the frequencies of rotary positions are divided by, as Llama 3.1 does.
pub(crate) const ROTARY_FACTORS: &str = "rope_freqs.weight";
