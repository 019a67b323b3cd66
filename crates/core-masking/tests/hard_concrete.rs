//! At test time, closing trained gates equals removing the heads.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use core_masking::loss::PairBatch;
use core_masking::{
    Attention, GatedModel, Gates, HardConcrete, ModelDropout, Removal, Translator, TranslatorConfig,
};
use tch::{Device, Kind, Tensor};

const DOUBLE: (Kind, Device) = (Kind::Double, Device::Cpu);

/// 2 encoder layers of 3 heads of width 4, and 3 decoder layers of 2 heads of width 6.
fn translator() -> Translator {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": 19, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 3, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 10, "activation_function": "swish", "max_position_embeddings": 20,
        "scale_embedding": true, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    let config: TranslatorConfig = serde_json::from_value(json).unwrap();
    Translator::random(config, 5, DOUBLE).unwrap()
}

fn losses(model: &Translator, gates: &Gates) -> Tensor {
    let (sources, targets): ([&[u32]; 2], [&[u32]; 2]) =
        ([&[5, 9, 14, 2, 0], &[7, 0]], [&[8, 2, 0], &[4, 4, 16, 0]]);
    let batch = PairBatch::new(model, &sources, &targets);
    tch::no_grad(|| model.losses(&batch, gates, &ModelDropout::OFF))
}

fn gap(one: &Tensor, other: &Tensor) -> f64 {
    (one - other).abs().max().double_value(&[])
}

/// Far from 0 a gate is 0 or 1 for any noise between 1/10 and 9/10: ln 9 shifts `log_alpha` by at most 2.2.
#[test]
fn gates_that_are_sure_are_heads_removed() {
    let model = translator();
    let heads = model.layout().heads_of(Attention::EncEnc).unwrap();
    let log_alpha = Tensor::from_slice(&[9.0, -9.0, 7.0, -8.0, -9.0, 8.0]);
    let gates = HardConcrete::new(heads, log_alpha);
    let closed = gates.closed();
    assert_eq!(closed.to_string(), "enc-enc:1:2+enc-enc:2:1+enc-enc:2:2");

    let noise = Tensor::from_slice(&[0.1, 0.9, 0.5, 0.7, 0.2, 0.3]);
    let drawn = Gates::of_heads(&model.layout(), gates.heads(), &gates.sample(&noise)).unwrap();
    let masked = Gates::masking(&model.layout(), std::slice::from_ref(&closed), DOUBLE).unwrap();
    let removed = model.without_heads(&closed, Removal::Cut).unwrap();
    let removed = losses(&removed, &Gates::open(&removed.layout(), DOUBLE));
    for gates in [drawn, masked] {
        let gap = gap(&losses(&model, &gates), &removed);
        assert!(gap < 1e-12, "{gap:e}");
    }
    let intact = gap(&losses(&model, &Gates::open(&model.layout(), DOUBLE)), &removed);
    assert!(intact > 1e-3, "closed heads must matter: {intact:e}");
}
