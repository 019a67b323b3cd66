//! Translating one sentence at a time, which parallelises poorly, with a translator of width 128 and random weights: compared with
//! `generate` of transformers on one thread, and on all threads while another process computes, compared with no other process.
use std::fs;
use std::process::{Child, Command};

use core_masking::{BeamSearch, GatedModel, Gates, Translator, TranslatorConfig};
use serde_json::json;

use crate::decoding::told;
use crate::peer::Peer;
use crate::{Context, Row, timed};

const SENTENCES: u32 = 20;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = &context.machine;
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "marian", "vocab_size": 1000, "d_model": 128, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512,
        "activation_function": "relu", "max_position_embeddings": 64, "scale_embedding": true, "init_std": 0.02,
        "num_beams": 4, "eos_token_id": 0, "forced_eos_token_id": 0, "pad_token_id": 999, "decoder_start_token_id": 999,
        "max_length": 30, "share_encoder_decoder_embeddings": true, "static_position_embeddings": true,
    });
    let path = folder.path().join("config.json");
    fs::write(&path, config.to_string()).unwrap();
    let search = BeamSearch::read(folder.path(), &TranslatorConfig::read(&path).unwrap()).unwrap();
    let model = Translator::random(TranslatorConfig::read(&path).unwrap(), 1, machine.options()).unwrap();
    model.save(folder.path()).unwrap();
    let sentence =
        |number| (0..6 + number % 9).map(|place| 1 + (number + place) * 7 % 900).chain([0]).collect();
    let sources: Vec<Vec<u32>> = (0..SENTENCES).map(sentence).collect();
    let batches: Vec<&[Vec<u32>]> = sources.chunks(1).collect();
    let gates = Gates::open(&model.layout(), model.options());
    let ours = || {
        timed(|| {
            for source in &sources {
                search.translate(&model, &[source], &gates).unwrap();
            }
        })
    };

    tch::set_num_threads(1);
    let task = told(&model, folder.path(), &search, &batches, ("generate", 1));
    let peer = Peer::start(context, task);
    let ratio = peer.map(|mut peer| context.ratio(ours, || peer.seconds()));
    let name = "one sentence at a time, 128 wide, one thread, relative to transformers' generate".to_owned();
    row(Row { name, ratio, wanted: 2.0 });

    tch::set_num_threads(machine.threads as i32);
    let busy = || {
        let _other = Busy::start();
        ours()
    };
    let name = "  on all threads while another process computes, relative to the same alone".to_owned();
    row(Row { name, ratio: Ok(context.ratio(busy, ours)), wanted: 1.0 / 1.6 });
}

/// A process that computes until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
