//! Agreement with Hugging Face transformers on random encoder-decoders of all families, under both forms of `config.json`:
//! `crates/test-support/golden/README.md` describes the numbers. There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use core_masking::loss::PairBatch;
use core_masking::{
    Attention, BeamSearch, GatedModel, Gates, HeadSet, ModelConfig, ModelDropout, Removal, Stopping,
    Translation, Translator, TranslatorConfig, Weights,
};
use golden::{OPTIONS, TOLERANCE, gap_of_each, head, masking, relative_gap, slices, tensor};
use serde_json::{Value, json};
use tch::{Kind, Tensor};

struct Golden {
    name: &'static str,
    folder: tempfile::TempDir,
    model: Translator,
    numbers: Value,
}

/// Checks every available folder, under the configurations of transformers 4 and 5.
fn each(check: impl Fn(&Golden)) {
    for name in golden::TRANSLATORS.split_whitespace() {
        let Some((source, numbers)) = golden::load(name) else { continue };
        let newer = ["../config-5.24", "../../more-config-5.24"].map(|place| source.join(place));
        let file = format!("{}.json", name.trim_start_matches("more/"));
        let newer = newer.into_iter().map(|place| place.join(&file)).find(|config| config.exists());
        for config in [source.join("config.json")].into_iter().chain(newer) {
            check(&Golden::new(name, &source, &config, numbers.clone()));
        }
    }
}

impl Golden {
    fn new(name: &'static str, source: &Path, config: &Path, mut numbers: Value) -> Self {
        if name == "families/fsmt" {
            // transformers 4.57 miscounts positions in `generate`; `make_golden_fsmt_output.py` counts them
            let outputs = golden::read(&source.with_file_name("fsmt-output.json"));
            numbers.as_object_mut().unwrap().extend(outputs.as_object().unwrap().clone());
        }
        let folder = tempfile::tempdir().unwrap();
        fs::copy(config, folder.path().join("config.json")).unwrap();
        for file in ["model.safetensors", "generation_config.json"] {
            fs::copy(source.join(file), folder.path().join(file)).unwrap();
        }
        let model = Translator::load(folder.path(), OPTIONS).unwrap();
        Self { name, folder, model, numbers }
    }

    /// Returns rows without padding.
    fn rows(&self, name: &str) -> Vec<Vec<u32>> {
        let mut rows = golden::rows(&self.numbers[name]);
        rows.iter_mut().for_each(|row| row.retain(|&id| id != self.model.config().pad_token_id));
        rows
    }

    fn batch(&self, model: &Translator) -> PairBatch {
        let (sources, targets) = (self.rows("source"), self.rows("target"));
        PairBatch::new(model, &slices(&sources), &slices(&targets))
    }

    fn nats(&self, model: &Translator, gates: &Gates) -> Tensor {
        model.losses(&self.batch(model), gates, &ModelDropout::OFF)
    }

    /// Returns gates or derivatives, `[layer, row, head]`, of each attention type, if there are any.
    fn stacked(&self, name: &str) -> Option<BTreeMap<Attention, Tensor>> {
        let types = self.numbers[name].as_object()?.iter();
        let stacked = |(kind, numbers): (&String, &Value)| {
            (kind.parse().unwrap(), tensor(numbers).to_kind(Kind::Float))
        };
        Some(types.map(stacked).collect())
    }

    fn several(&self) -> Option<Gates> {
        self.stacked("several_gates").map(|stacked| Gates::from_stacked(&stacked))
    }

    /// Returns the folder's decoding settings with `entries` replaced and at most 15 tokens, as for the reference numbers.
    fn search(&self, beam: usize, entries: &Value) -> BeamSearch {
        let path = self.folder.path().join("generation_config.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut json: Value = serde_json::from_str(&text).unwrap();
        json.as_object_mut().unwrap().extend(entries.as_object().cloned().unwrap_or_default());
        fs::write(&path, json.to_string()).unwrap();
        let search = BeamSearch::read(self.folder.path(), self.model.config()).unwrap();
        fs::write(&path, text).unwrap();
        BeamSearch { beam, length_penalty: 1.0, stopping: Stopping::Early, length_limit: (0.0, 15), ..search }
    }

    /// Compares translations with the numbers `name`, which start with the start token and are padded after the end.
    fn compare_output(&self, name: &str, search: &BeamSearch, gates: &Gates) {
        let config = self.model.config();
        let words =
            |row: &Vec<u32>| row[1..].iter().copied().take_while(|&id| id != config.eos_token_id).collect();
        let expected: Vec<Vec<u32>> = golden::rows(&self.numbers[name]).iter().map(words).collect();
        let sources = self.rows("source");
        let found = search.translate(&self.model, &slices(&sources), gates).unwrap();
        assert_eq!(tokens(&found), expected, "{}: {name}", self.name);
        let scores = self.numbers[name.replace("beam5", "beam5_scores")].as_array();
        for (found, expected) in found.iter().zip(scores.into_iter().flatten()) {
            if let (Some(found), Some(expected)) = (found.score, expected.as_f64()) {
                assert!((found - expected).abs() < TOLERANCE, "{}: {name}: {found} {expected}", self.name);
            }
        }
    }

    /// Asserts that logits or nats agree.
    fn assert_close(&self, what: &str, found: &Tensor, expected: &Tensor) {
        let (gap, tolerance) = match self.name {
            "families/fsmt" => (relative_gap(found, expected), 1e-5),
            _ => (gap_of_each(found, expected), TOLERANCE),
        };
        assert!(gap < tolerance, "{}: {what}: {gap:e}", self.name);
    }
}

fn tokens(translations: &[Translation]) -> Vec<Vec<u32>> {
    translations.iter().map(|translation| translation.tokens.clone()).collect()
}

#[test]
fn logits_nats_and_derivatives_agree() {
    each(|golden| {
        let (batch, open) = (golden.batch(&golden.model), golden.model.open());
        let memory = golden.model.encode(&batch.source, &open, &ModelDropout::OFF);
        let states =
            golden.model.decode(&batch.decoder_input, &memory, &batch.source.bias, &open, &ModelDropout::OFF);
        let real = batch.real.unsqueeze(-1).to_kind(Kind::Double);
        let logits = golden.model.logits(&states).to_kind(Kind::Double) * &real;
        golden.assert_close("logits", &logits, &(tensor(&golden.numbers["logits"]) * real));
        golden.assert_close("nats", &golden.nats(&golden.model, &open), &tensor(&golden.numbers["nll"]));
        if let Some(several) = golden.several() {
            let several = golden.nats(&golden.model, &several);
            golden.assert_close(
                "several gates",
                &several,
                &tensor(&golden.numbers["nll_with_several_gates"]),
            );
        }

        // in single precision the rounding of these sums depends on the processor and can reach the tolerance
        let wide = golden.model.to_kind(Kind::Double).unwrap();
        let leaf = |tensor: &Tensor| tensor.to_kind(Kind::Double).ones_like().set_requires_grad(true);
        let expected = golden.stacked("dnll_dxi_by_row").unwrap();
        let leaves = expected.iter().map(|(&kind, tensor)| (kind, leaf(tensor))).collect();
        golden.nats(&wide, &Gates::from_stacked(&leaves)).sum(None).backward();
        for (kind, expected) in &expected {
            let gap = gap_of_each(&leaves[kind].grad(), expected);
            assert!(gap < TOLERANCE, "{}: derivatives of {kind}: {gap:e}", golden.name);
        }
        golden.model.check_gates().unwrap();
    });
}

#[test]
fn masked_and_removed_heads_agree() {
    each(|golden| {
        let cases = golden.numbers["nll_with_one_head_masked"].as_object().unwrap();
        assert_eq!(cases.len(), golden.model.layout().heads().len(), "{}", golden.name);
        let mut seen = HeadSet::none();
        for (place, (key, expected)) in cases.iter().enumerate() {
            let id = head(key);
            let gates = masking(&golden.model, &HeadSet::from_iter([id]));
            golden.assert_close(key, &golden.nats(&golden.model, &gates), &tensor(expected));
            if place % 5 == 1 {
                seen = seen.iter().chain([id]).collect();
            }
        }
        let masked = masking(&golden.model, &seen);
        let expected = golden.nats(&golden.model, &masked).to_kind(Kind::Double);
        let cut = golden.model.without_heads(&seen, Removal::Cut).unwrap();
        let folder = tempfile::tempdir().unwrap();
        cut.save(folder.path()).unwrap();
        let back = Translator::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), cut.config());
        for model in [&cut, &back] {
            let found = golden.nats(model, &model.open()).to_kind(Kind::Double);
            let gap = ((found - &expected) / &expected).abs().max().double_value(&[]);
            assert!(gap < 1e-5, "{}: {gap:e}", golden.name);
        }
    });
}

/// In lanes and, in double precision, in tensors; sweeps translate like single head sets.
#[test]
fn greedy_and_beam_output_agree() {
    each(|golden| {
        let (entries, model, open) =
            (&golden.numbers["generate_arguments"], &golden.model, golden.model.open());
        let (greedy, beam) = (golden.search(1, entries), golden.search(5, entries));
        golden.compare_output("greedy", &greedy, &open);
        golden.compare_output("beam5", &beam, &open);
        if let Some(several) = golden.several() {
            golden.compare_output("greedy_with_several_gates", &greedy, &several);
        }
        let off = &golden.numbers["rules_off"];
        if off.is_object() {
            golden.compare_output("greedy_rules_off", &golden.search(1, off), &open);
            golden.compare_output("beam5_rules_off", &golden.search(5, off), &open);
        }
        let sources = golden.rows("source");
        let wide = model.to_kind(Kind::Double).unwrap();
        let of_wide = beam.translate(&wide, &slices(&sources), &wide.open()).unwrap();
        let alone = beam.translate(model, &slices(&sources), &open).unwrap();
        assert_eq!(tokens(&of_wide), tokens(&alone), "{}", golden.name);
        let sets = [HeadSet::none(), HeadSet::from_iter([model.layout().heads()[0]])];
        let variants = model.variants(&sets, false).unwrap();
        let (outputs, _) = beam.sweep(model, &slices(&sources), &variants, 2, None).unwrap();
        assert_eq!(tokens(&outputs[0]), tokens(&alone), "{}", golden.name);
    });
}

/// Returns the tensors that replace one, by name.
type Change = dyn Fn(&str, &Tensor) -> Vec<(String, Tensor)>;

/// A file without a prefix and without the bias of the logits, like facebook/bart-base; and extra tensors that old T5 1.0 files contain.
#[test]
fn files_of_older_versions_are_read() {
    let reread = |name: &'static str, change: &Change| {
        let (source, numbers) = golden::load(name).unwrap();
        let golden = Golden::new(name, &source, &source.join("config.json"), numbers);
        let weights = golden.model.weights().iter().flat_map(|(name, tensor)| change(name, tensor));
        let path = golden.folder.path().join("model.safetensors");
        Weights::from_tensors(weights).write(&path).unwrap();
        let back = Translator::load(golden.folder.path(), OPTIONS).unwrap();
        (golden.nats(&golden.model, &golden.model.open()), golden.nats(&back, &back.open()))
    };
    let (whole, bare) = reread("more/bart", &|name, tensor| {
        let bare = name.strip_prefix("model.").map(|bare| (bare.to_owned(), tensor.shallow_clone()));
        bare.into_iter().collect()
    });
    assert!((whole - bare).abs().max().double_value(&[]) > 1e-3, "the bias of the logits was not 0");
    let (whole, older) = reread("more/t5", &|name, tensor| {
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
fn what_these_families_cannot_have_is_refused_by_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    for (name, changes, expected) in [
        ("t5", json!({"relative_attention_num_buckets": 1}), "must be even and from 4 to 4096"),
        ("t5", json!({"relative_attention_max_distance": 2}), "must be from 5 to 65536"),
        ("t5", json!({"d_kv": 0}), "d_kv must be from 1"),
        ("t5", json!({"feed_forward_proj": "swish"}), "unknown variant `swish`"),
        ("mbart", json!({"tie_word_embeddings": false}), "tie_word_embeddings is false"),
        (
            "marian-two-sizes",
            json!({"share_encoder_decoder_embeddings": true}),
            "decoder_vocab_size (63) differs",
        ),
        ("m2m_100", json!({"d_model": 23}), "does not divide d_model (23)"),
    ] {
        let own = test_support::golden(&format!("more/{name}/config.json")).unwrap();
        golden::write_config(&own, &changes, folder.path());
        let message = TranslatorConfig::read(&folder.path().join("config.json")).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// `FSMTConfig` of transformers 4.57.1 scales embeddings, forces the EOS token and decodes with 5 beams up to 200 tokens. With null, the
/// end is not forced. The size of the vocabulary keeps its name.
#[test]
fn what_a_configuration_of_fsmt_leaves_out_is_what_transformers_assumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let mut json = json!({
        "model_type": "fsmt", "src_vocab_size": 12, "tgt_vocab_size": 9, "d_model": 6, "encoder_layers": 1,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 5, "decoder_layers": 1, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 7, "max_position_embeddings": 300,
    });
    let read = |json: &Value| {
        fs::write(&path, json.to_string()).unwrap();
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
    assert!(!fs::read_to_string(&path).unwrap().contains("\"vocab_size\""));
    assert_eq!((free.forced_eos_token_id, TranslatorConfig::read(&path).unwrap()), (None, free));
}
