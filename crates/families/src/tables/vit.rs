//! ViT, Dosovitskiy et al. (2021), <https://arxiv.org/abs/2010.11929>, and DeiT, Touvron et al. (2021), <https://arxiv.org/abs/2012.12877>:
//! patches of an image with learned positions, pre-norm layers, and a linear map of the first position. DeiT has a second position before
//! the patches, whose output only its distillation head reads. It has the layers of a language model without the causal mask.
//!
//! Names follow transformers' `ViTForImageClassification`:
//! <https://github.com/huggingface/transformers/blob/v4.57.1/src/transformers/models/vit/modeling_vit.py>.
use super::llama::LIKE_LLAMA;
use super::{Bias, Biases, LanguageFamily, LanguageNames, Normalisation, SublayerNorms};
use super::{ClassifierFamily, ClassifierHead, ClassifierNames, HeadActivation, PatchNames, PositionStart};
use super::{ConfigKeys, bert};
use crate::storage::Storage;

/// ViT.
pub static VIT: ClassifierFamily = LIKE_VIT;

const LIKE_VIT: ClassifierFamily = ClassifierFamily {
    model_type: "vit",
    architecture: "ViTForImageClassification",
    keys: KEYS,
    names: names("vit", &["embeddings.cls_token"]),
    stack: Some(&LAYERS),
    storage: Storage::PLAIN,
    shares_layers: false,
    supported: "{}",
    positions: PositionStart::Zero,
    head: HEAD,
    token_head: HEAD,
    unused: &["vit.pooler.", "vit.embeddings.mask_token", "decoder."],
};

/// DeiT.
pub static DEIT: ClassifierFamily = ClassifierFamily {
    model_type: "deit",
    architecture: "DeiTForImageClassification",
    names: names("deit", &["embeddings.cls_token", "embeddings.distillation_token"]),
    stack: Some(&LAYERS_OF_DEIT),
    unused: &["deit.pooler.", "deit.embeddings.mask_token", "decoder."],
    ..LIKE_VIT
};

const HEAD: ClassifierHead = ClassifierHead {
    first: None,
    activation: HeadActivation::Tanh, // unused, as there is no first map
    norm: None,
    last: "classifier",
    drops_input: false,
};

const POSITIONS: &str = "embeddings.position_embeddings";

const fn names(prefix: &'static str, first: &'static [&'static str]) -> ClassifierNames {
    let projection = "embeddings.patch_embeddings.projection";
    let patches = Some(PatchNames { first, projection, positions: POSITIONS });
    ClassifierNames { patches, ..bert::below(prefix) }
}

const KEYS: ConfigKeys = ConfigKeys {
    entries: &[
        ("attention_bias", Some("qkv_bias")),
        ("vocab_size", None),
        ("max_position_embeddings", None),
        ("type_vocab_size", None),
        ("pad_token_id", None),
        ("classifier_dropout", None),
        ("position_embedding_type", None),
    ],
    defaults: r#"{"vocab_size": 1, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": 1e-12, "image_size": 224, "patch_size": 16, "num_channels": 3, "attention_bias": true,
        "classifier_dropout": 0.0, "max_position_embeddings": 1, "type_vocab_size": 0}"#,
};

static LAYERS: LanguageFamily = layers("vit");
static LAYERS_OF_DEIT: LanguageFamily = layers("deit");

const fn layers(prefix: &'static str) -> LanguageFamily {
    LanguageFamily {
        keys: KEYS,
        names: LanguageNames {
            prefix,
            // learned, so that no rotary positions are used
            positions: Some(POSITIONS),
            layers: "encoder.layer",
            attention_norm: SublayerNorms { before: Some("layernorm_before"), after: None },
            projections: [
                "attention.attention.query",
                "attention.attention.key",
                "attention.attention.value",
                "attention.output.dense",
            ],
            feed_forward_norm: SublayerNorms { before: Some("layernorm_after"), after: None },
            feed_forward: &["intermediate.dense", "output.dense"],
            norm: "layernorm",
            ..LIKE_LLAMA.names
        },
        norm: Normalisation::Layer,
        biases: Biases { inputs: Bias::OfAttention, output: Bias::Always, feed_forward: Bias::Always },
        ..LIKE_LLAMA
    }
}
