//! Agreement with Hugging Face transformers on a random fairseq translator: `crates/test-support/golden/README.md` describes the numbers.
//! There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;

use core_masking::loss::PairBatch;
use core_masking::{
    Attention, BeamSearch, GatedModel, Gates, ModelConfig, ModelDropout, OutputRules, Stopping, Translator,
    TranslatorConfig,
};
use golden::{gap, relative_gap, tensor};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const PADDING: u32 = 1;

struct Golden {
    model: Translator,
    numbers: Value,
}

impl Golden {
    fn load() -> Self {
        let (folder, numbers) = golden::load("families/fsmt.json");
        Self { model: Translator::load(&folder.join("families/fsmt"), OPTIONS).unwrap(), numbers }
    }

    /// Returns rows without padding; the end token stays.
    fn sentences(&self, name: &str) -> Vec<Vec<u32>> {
        let rows: Vec<Vec<f64>> = serde_json::from_value(self.numbers[name].clone()).unwrap();
        let real = |row: Vec<f64>| row.into_iter().map(|id| id as u32).filter(|&id| id != PADDING).collect();
        rows.into_iter().map(real).collect()
    }

    fn batch(&self) -> PairBatch {
        let (sources, targets) = (self.sentences("source"), self.sentences("target"));
        PairBatch::new(&self.model, &slices(&sources), &slices(&targets))
    }

    fn nats(&self, gates: &Gates) -> Tensor {
        self.model.losses(&self.batch(), gates, &ModelDropout::OFF)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }
}

fn slices(rows: &[Vec<u32>]) -> Vec<&[u32]> {
    rows.iter().map(Vec::as_slice).collect()
}

#[test]
fn teacher_forced_logits_agree() {
    let golden = Golden::load();
    let (batch, open) = (golden.batch(), golden.open());
    let memory = golden.model.encode(&batch.source, &open, &ModelDropout::OFF);
    let hidden =
        golden.model.decode(&batch.decoder_input, &memory, &batch.source.bias, &open, &ModelDropout::OFF);
    let real = batch.real.unsqueeze(-1).to_kind(Kind::Double);
    let found = golden.model.logits(&hidden).to_kind(Kind::Double) * &real;
    let gap = gap(&found, &(tensor(&golden.numbers["logits"]) * real));
    assert!(gap < 1e-4, "{gap:e}");
}

#[test]
fn nats_agree_also_with_a_head_masked() {
    let golden = Golden::load();
    let open = relative_gap(&golden.nats(&golden.open()), &tensor(&golden.numbers["nll"]));
    assert!(open < 1e-5, "{open:e}");
    let cases = &golden.numbers["nll_with_one_head_masked"];
    let compared =
        golden::compare_masked(&golden.model, cases, 1e-5, relative_gap, |gates| golden.nats(gates));
    assert_eq!(compared, golden.model.layout().heads().len());
}

#[test]
fn derivatives_by_gates_agree() {
    let golden = Golden::load();
    let expected: BTreeMap<Attention, Tensor> = golden.numbers["dnll_dxi_by_row"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(attention, numbers)| (attention.parse().unwrap(), tensor(numbers)))
        .collect();
    let leaf = |tensor: &Tensor| tensor.ones_like().to_kind(Kind::Float).set_requires_grad(true);
    let leaves = expected.iter().map(|(&attention, tensor)| (attention, leaf(tensor))).collect();
    golden.nats(&Gates::from_stacked(&leaves)).sum(None).backward();
    for (attention, expected) in &expected {
        let gap = relative_gap(&leaves[attention].grad(), expected);
        assert!(gap < 1e-4, "{attention}: {gap:e}");
    }
}

/// `fsmt-output.json` was made by `make_golden_fsmt_output.py`, since transformers 4.57 miscounts positions in `generate`. An output starts
/// with the start token, which is also the end token, and is padded after the end.
#[test]
fn greedy_and_beam_output_agree() {
    let golden = Golden::load();
    let (_, outputs) = golden::load("families/fsmt-output.json");
    let sources = golden.sentences("source");
    for (beam, name) in [(1, "greedy"), (5, "beam5")] {
        let search = BeamSearch {
            beam,
            length_penalty: 1.0,
            stopping: Stopping::Early,
            length_limit: (0.0, 15),
            rules: Some(OutputRules { end_forced: true, ..OutputRules::default() }),
        };
        let rows: Vec<Vec<u32>> = serde_json::from_value(outputs[name].clone()).unwrap();
        let tokens = |row: &Vec<u32>| row[1..].iter().copied().take_while(|&token| token != 2).collect();
        let expected: Vec<Vec<u32>> = rows.iter().map(tokens).collect();
        let found = search.translate(&golden.model, &slices(&sources), &golden.open()).unwrap();
        let found: Vec<Vec<u32>> = found.into_iter().map(|translation| translation.tokens).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_folder_goes_there_and_back() {
    let golden = Golden::load();
    let folder = tempfile::tempdir().unwrap();
    golden.model.save(folder.path()).unwrap();
    let back = Translator::load(folder.path(), OPTIONS).unwrap();
    assert_eq!(back.config(), golden.model.config());
    let nats = back.losses(&golden.batch(), &golden.open(), &ModelDropout::OFF);
    assert_eq!(nats, golden.nats(&golden.open()));
    let config = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
    assert!(config.contains("src_vocab_size") && !config.contains("\"vocab_size\""), "{config}");
}

/// `FSMTConfig` of transformers 4.57.1 scales embeddings, forces the end token and decodes with 5 beams up to 200 tokens. With null, the
/// end is not forced.
#[test]
fn what_a_configuration_leaves_out_is_what_transformers_assumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let mut json = serde_json::json!({
        "model_type": "fsmt", "src_vocab_size": 12, "tgt_vocab_size": 9, "d_model": 6, "encoder_layers": 1,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 1, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 7, "max_position_embeddings": 300,
    });
    let read = |json: &Value| {
        std::fs::write(&path, json.to_string()).unwrap();
        TranslatorConfig::read(&path).unwrap()
    };
    let config = read(&json);
    assert!(config.scale_embedding && config.forced_eos_token_id == Some(2));
    assert_eq!(config.architectures, ["FSMTForConditionalGeneration"]);
    let search = BeamSearch::read(folder.path(), &config).unwrap();
    assert_eq!((search.beam, search.length_limit), (5, (0.0, 199)));

    json["forced_eos_token_id"] = Value::Null;
    let free = read(&json);
    free.write(&path).unwrap();
    assert_eq!((free.forced_eos_token_id, TranslatorConfig::read(&path).unwrap()), (None, free));
}
