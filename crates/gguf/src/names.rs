//! Names of tensors in GGUF files and in the folders of Llama and its like.

/// Maps and norms of a layer: below `blk.<layer>.`, and below `model.layers.<layer>.`.
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
