//! Agreement with Hugging Face transformers on random encoder-decoders of all families, under both forms of `config.json`:
//! `crates/test-support/golden/README.md` describes the numbers. There heads and layers count from 0. Some folders are outside the
//! repository.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use core_masking::loss::PairBatch;
use core_masking::{
    Attention, BeamSearch, GatedModel, Gates, HeadId, HeadSet, ModelDropout, Removal, Stopping, Translation,
    Translator, Weights,
};
use golden::tensor;
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const TOLERANCE: f64 = 5e-5;
const ALL: [&str; 10] = [
    "marian",
    "marian-two",
    "marian-two-sizes",
    "bart",
    "mbart",
    "m2m_100",
    "pegasus",
    "t5",
    "t5-v1.1",
    "mt5",
];

struct Golden {
    name: &'static str,
    folder: tempfile::TempDir,
    model: Translator,
    numbers: Value,
}

/// Checks every available folder, under the configurations of transformers 4 and 5.
fn each(check: impl Fn(&Golden)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own =
        (root.join("../test-support/golden/more"), root.join("../test-support/golden/more/config-5.24"));
    let shared = root.join("../../../shared/golden");
    let beside = (shared.join("more"), shared.join("more-config-5.24"));
    for name in ALL {
        let places = [&own, &beside];
        let Some((numbers, newer)) = places.into_iter().find(|(place, _)| place.join(name).is_dir()) else {
            println!("`{name}` is not at hand and not compared");
            continue;
        };
        let text = fs::read_to_string(numbers.join(format!("{name}.json"))).unwrap();
        let source = numbers.join(name);
        for config in [source.join("config.json"), newer.join(format!("{name}.json"))] {
            check(&Golden::load(name, &source, &config, serde_json::from_str(&text).unwrap()));
        }
    }
}

fn copy(from: PathBuf, to: &Path) {
    fs::write(to, fs::read(from).unwrap()).unwrap();
}

impl Golden {
    fn load(name: &'static str, source: &Path, config: &Path, numbers: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(config.to_owned(), &folder.path().join("config.json"));
        for file in ["model.safetensors", "generation_config.json"] {
            copy(source.join(file), &folder.path().join(file));
        }
        let model = Translator::load(folder.path(), OPTIONS).unwrap();
        Self { name, folder, model, numbers }
    }

    /// Returns the tokens at which the mask is 1.
    fn rows(&self, name: &str) -> Vec<Vec<u32>> {
        let rows: Vec<Vec<u32>> = serde_json::from_value(self.numbers[name].clone()).unwrap();
        let mask: Vec<Vec<u32>> =
            serde_json::from_value(self.numbers[format!("{name}_mask")].clone()).unwrap();
        let real = |(row, mask): (Vec<u32>, Vec<u32>)| {
            row.into_iter().zip(mask).filter(|(_, mask)| *mask == 1).map(|(id, _)| id).collect()
        };
        rows.into_iter().zip(mask).map(real).collect()
    }

    fn batch(&self, model: &Translator) -> PairBatch {
        let (sources, targets) = (self.rows("source"), self.rows("target"));
        PairBatch::new(model, &slices(&sources), &slices(&targets))
    }

    fn nats(&self, model: &Translator, gates: &Gates) -> Tensor {
        model.losses(&self.batch(model), gates, &ModelDropout::OFF)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }

    /// Returns `several_gates`, `[layer, row, head]` of each attention type.
    fn several(&self) -> Gates {
        Gates::from_stacked(&self.stacked("several_gates"))
    }

    fn stacked(&self, name: &str) -> BTreeMap<Attention, Tensor> {
        let types = self.numbers[name].as_object().unwrap().iter();
        types.map(|(kind, numbers)| (kind.parse().unwrap(), tensor(numbers).to_kind(Kind::Float))).collect()
    }

    /// Returns the folder's decoding settings with `entries` replaced and at most 15 tokens, as for the reference numbers.
    fn search(&self, beam: usize, entries: &Value) -> BeamSearch {
        let path = self.folder.path().join("generation_config.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json.as_object_mut().unwrap().extend(entries.as_object().unwrap().clone());
        fs::write(&path, json.to_string()).unwrap();
        let search = BeamSearch::read(self.folder.path(), self.model.config()).unwrap();
        fs::write(&path, text).unwrap();
        BeamSearch { beam, length_penalty: 1.0, stopping: Stopping::Early, length_limit: (0.0, 15), ..search }
    }

    /// Compares translations with the numbers `name`, which start with the start token and are padded after the end.
    fn compare_output(&self, name: &str, search: &BeamSearch, gates: &Gates) {
        let config = self.model.config();
        let rows: Vec<Vec<u32>> = serde_json::from_value(self.numbers[name].clone()).unwrap();
        let words =
            |row: &Vec<u32>| row[1..].iter().copied().take_while(|&id| id != config.eos_token_id).collect();
        let expected: Vec<Vec<u32>> = rows.iter().map(words).collect();
        let sources = self.rows("source");
        let found = search.translate(&self.model, &slices(&sources), gates).unwrap();
        let tokens: Vec<Vec<u32>> = found.iter().map(|translation| translation.tokens.clone()).collect();
        assert_eq!(tokens, expected, "{}: {name}", self.name);
        let scores = self.numbers[name.replace("beam5", "beam5_scores")].as_array();
        for (found, expected) in found.iter().zip(scores.into_iter().flatten()) {
            if let (Some(found), Some(expected)) = (found.score, expected.as_f64()) {
                assert!((found - expected).abs() < TOLERANCE, "{}: {name}: {found} {expected}", self.name);
            }
        }
    }

    fn assert_close(&self, what: &str, found: &Tensor, expected: &Tensor) {
        let gap = found.to_kind(Kind::Double) - expected;
        let gap = (gap.abs() / expected.abs().clamp_min(1.0)).max().double_value(&[]);
        assert!(gap < TOLERANCE, "{}: {what}: {gap:e}", self.name);
    }
}

fn slices(rows: &[Vec<u32>]) -> Vec<&[u32]> {
    rows.iter().map(Vec::as_slice).collect()
}

#[test]
fn logits_nats_and_derivatives_agree() {
    each(|golden| {
        let (batch, open) = (golden.batch(&golden.model), golden.open());
        let memory = golden.model.encode(&batch.source, &open, &ModelDropout::OFF);
        let states =
            golden.model.decode(&batch.decoder_input, &memory, &batch.source.bias, &open, &ModelDropout::OFF);
        let real = batch.real.unsqueeze(-1).to_kind(Kind::Double);
        let logits = golden.model.logits(&states).to_kind(Kind::Double) * &real;
        golden.assert_close("logits", &logits, &(tensor(&golden.numbers["logits"]) * real));
        golden.assert_close("nats", &golden.nats(&golden.model, &open), &tensor(&golden.numbers["nll"]));
        let several = golden.nats(&golden.model, &golden.several());
        golden.assert_close("several gates", &several, &tensor(&golden.numbers["nll_with_several_gates"]));

        // in single precision the rounding of these sums depends on the processor and can reach the tolerance
        let wide = golden.model.to_kind(Kind::Double).unwrap();
        let leaf = |tensor: &Tensor| tensor.to_kind(Kind::Double).ones_like().set_requires_grad(true);
        let expected = golden.stacked("dnll_dxi_by_row");
        let leaves = expected.iter().map(|(&kind, tensor)| (kind, leaf(tensor))).collect();
        golden.nats(&wide, &Gates::from_stacked(&leaves)).sum(None).backward();
        for (kind, expected) in &expected {
            golden.assert_close(&format!("derivatives of {kind}"), &leaves[kind].grad(), expected);
        }
        golden.model.check_gates().unwrap();
    });
}

/// Each head masked, and three heads of one model removed, in memory and in a saved folder.
#[test]
fn masked_and_removed_heads_agree() {
    each(|golden| {
        let cases = golden.numbers["nll_with_one_head_masked"].as_object().unwrap();
        let mut seen = HeadSet::none();
        for (place, (key, expected)) in cases.iter().enumerate() {
            let (kind, numbers) = golden::place(key);
            let id = HeadId::from_index(kind, numbers[0], numbers[1]);
            let set = HeadSet::from_iter([id]);
            let gates = Gates::masking(&golden.model.layout(), &[set], OPTIONS).unwrap();
            golden.assert_close(key, &golden.nats(&golden.model, &gates), &tensor(expected));
            if place % 5 == 1 {
                seen = seen.iter().chain([id]).collect();
            }
        }
        let masked = Gates::masking(&golden.model.layout(), &[seen.clone()], OPTIONS).unwrap();
        let expected = golden.nats(&golden.model, &masked).to_kind(Kind::Double);
        let cut = golden.model.without_heads(&seen, Removal::Cut).unwrap();
        let folder = tempfile::tempdir().unwrap();
        cut.save(folder.path()).unwrap();
        let back = Translator::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), cut.config());
        for model in [&cut, &back] {
            let found = golden.nats(model, &Gates::open(&model.layout(), OPTIONS)).to_kind(Kind::Double);
            let gap = ((found - &expected) / &expected).abs().max().double_value(&[]);
            assert!(gap < 1e-5, "{}: {gap:e}", golden.name);
        }
    });
}

/// In lanes and, in double precision, in tensors; sweeps translate like single head sets.
#[test]
fn greedy_and_beam_output_agree() {
    each(|golden| {
        let entries = &golden.numbers["generate_arguments"];
        let (greedy, beam) = (golden.search(1, entries), golden.search(5, entries));
        golden.compare_output("greedy", &greedy, &golden.open());
        golden.compare_output("beam5", &beam, &golden.open());
        golden.compare_output("greedy_with_several_gates", &greedy, &golden.several());
        if let Some(off) = golden.numbers["rules_off"].as_object() {
            let off = Value::Object(off.clone());
            golden.compare_output("greedy_rules_off", &golden.search(1, &off), &golden.open());
            golden.compare_output("beam5_rules_off", &golden.search(5, &off), &golden.open());
        }
        let sources = golden.rows("source");
        let open = golden.open();
        let wide = golden.model.to_kind(Kind::Double).unwrap();
        let of_wide = beam.translate(&wide, &slices(&sources), &Gates::open(&wide.layout(), wide.options()));
        let alone = beam.translate(&golden.model, &slices(&sources), &open).unwrap();
        let words = |all: &[Translation]| {
            all.iter().map(|translation| translation.tokens.clone()).collect::<Vec<_>>()
        };
        assert_eq!(words(&of_wide.unwrap()), words(&alone), "{}", golden.name);
        let first = golden.model.layout().heads()[0];
        let sets = [HeadSet::none(), HeadSet::from_iter([first])];
        let variants = golden.model.variants(&sets, false).unwrap();
        let (swept, _) = beam.sweep(&golden.model, &slices(&sources), &variants, 2, None).unwrap();
        assert_eq!(words(&swept[0]), words(&alone), "{}", golden.name);
    });
}

/// Returns the tensors that replace one, by name.
type Change = dyn Fn(&str, &Tensor) -> Vec<(String, Tensor)>;

/// A file without a prefix and without the bias of the logits, like facebook/bart-base; and extra tensors that old T5 1.0 files contain.
#[test]
fn files_of_older_versions_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden/more");
    let reread = |name: &'static str, change: &Change| {
        let source = root.join(name);
        let text = fs::read_to_string(root.join(format!("{name}.json"))).unwrap();
        let config = source.join("config.json");
        let golden = Golden::load(name, &source, &config, serde_json::from_str(&text).unwrap());
        let weights = golden.model.weights().iter().flat_map(|(name, tensor)| change(name, tensor));
        let path = golden.folder.path().join("model.safetensors");
        Weights::from_tensors(weights).write(&path).unwrap();
        let back = Translator::load(golden.folder.path(), OPTIONS).unwrap();
        (golden.nats(&golden.model, &golden.open()), golden.nats(&back, &golden.open()))
    };
    let (whole, bare) = reread("bart", &|name, tensor| {
        let bare = name.strip_prefix("model.").map(|bare| (bare.to_owned(), tensor.shallow_clone()));
        bare.into_iter().collect()
    });
    assert!((whole - bare).abs().max().double_value(&[]) > 1e-3, "the bias of the logits was not 0");
    let (whole, older) = reread("t5", &|name, tensor| {
        let own = |name: &str| (name.to_owned(), tensor.shallow_clone());
        let copies: &[&str] = match name {
            "shared.weight" => &["lm_head.weight", "encoder.embed_tokens.weight"],
            name if name.starts_with("decoder.block.0.layer.0.SelfAttention.relative") => {
                &["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"]
            }
            _ => &[],
        };
        copies.iter().copied().chain([name]).map(own).collect()
    });
    assert_eq!(whole, older);
}

#[test]
fn what_these_families_cannot_have_is_refused_in_one_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden/more");
    for (name, entry, value, expected) in [
        ("t5", "relative_attention_num_buckets", json!(1), "must be even and from 4 to 4096"),
        ("t5", "relative_attention_max_distance", json!(2), "must be from 5 to 65536"),
        ("t5", "d_kv", json!(0), "d_kv must be from 1"),
        ("t5", "d_kv", json!(7), "SelfAttention.k.weight"),
        ("t5", "feed_forward_proj", json!("swish"), "unknown variant `swish`, expected one of"),
        ("t5-v1.1", "feed_forward_proj", json!("relu"), "DenseReluDense.wi.weight"),
        ("bart", "max_position_embeddings", json!(49), "embed_positions.weight"),
        (
            "mbart",
            "tie_word_embeddings",
            json!(false),
            "tie_word_embeddings is false, which is not supported",
        ),
        (
            "marian-two-sizes",
            "share_encoder_decoder_embeddings",
            json!(true),
            "decoder_vocab_size (63) differs",
        ),
        ("m2m_100", "d_model", json!(23), "does not divide d_model (23)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        copy(root.join(name).join("model.safetensors"), &folder.path().join("model.safetensors"));
        let text = fs::read_to_string(root.join(name).join("config.json")).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config[entry] = value;
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        let message = Translator::load(folder.path(), OPTIONS).unwrap_err().to_string();
        assert!(message.contains(expected) && !message.contains('\n'), "{name} {entry}: {message}");
    }
}
