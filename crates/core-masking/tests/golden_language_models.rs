//! Agreement with Hugging Face transformers on random language models of all families: `crates/test-support/golden/README.md` describes the
//! numbers. There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;
use std::path::Path;

use core_masking::language_model::{Contrast, PredictionBatch, Stop, Window};
use core_masking::{
    Attention, GatedModel, Gates, HeadSet, LanguageConfig, LanguageModel, ModelDropout, Removal, TokenBatch,
    Weights,
};
use golden::{OPTIONS, TOLERANCE, gap_of_each, masking, relative_gap, tensor};
use serde_json::{Value, json};
use tch::{Kind, Tensor, no_grad};

struct Golden {
    family: &'static str,
    model: LanguageModel,
    numbers: Value,
}

impl Golden {
    fn all() -> impl Iterator<Item = Self> {
        golden::LANGUAGE_MODELS.split_whitespace().flat_map(Self::load)
    }

    /// Loads a folder, those in `more/` with the `config.json` of transformers 4 and of transformers 5.
    fn load(family: &'static str) -> Vec<Self> {
        let Some((folder, numbers)) = golden::load(family) else { return Vec::new() };
        let new = |folder: &Path| {
            let model = LanguageModel::load(folder, OPTIONS).unwrap_or_else(|e| panic!("{family}: {e}"));
            Self { family, model, numbers: numbers.clone() }
        };
        let mut all = vec![new(&folder)];
        if let Some(name) = family.strip_prefix("more/") {
            let copy = tempfile::tempdir().unwrap();
            let config = folder.join(format!("../../more-config-5.24/{name}.json"));
            std::fs::copy(config, copy.path().join("config.json")).unwrap();
            std::fs::copy(folder.join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
            all.push(new(copy.path()));
        }
        all
    }

    fn texts(&self) -> Vec<Vec<u32>> {
        golden::real(&self.numbers, "input_ids", "attention_mask")
    }

    fn batch(&self) -> PredictionBatch {
        let texts = self.texts();
        let windows: Vec<Window<'_>> = texts.iter().map(|tokens| Window { tokens, context: 1 }).collect();
        self.model.batch(&windows).unwrap()
    }

    fn nats(&self, gates: &Gates) -> Tensor {
        self.model.losses(&self.batch(), gates, &ModelDropout::OFF)
    }
}

#[test]
fn logits_nats_and_derivatives_agree_also_with_each_head_masked_and_under_several_gates() {
    for golden in Golden::all() {
        let (family, numbers) = (golden.family, &golden.numbers);
        let expected = tensor(&numbers["logits"]); // [text, position, vocab]
        for (row, text) in golden.texts().iter().enumerate() {
            let ids = TokenBatch::new(&[text], 0, OPTIONS).ids;
            let hidden = golden.model.hidden(&ids, &golden.model.open(), &ModelDropout::OFF);
            let expected = expected.narrow(0, row as i64, 1).narrow(1, 0, text.len() as i64);
            let gap = gap_of_each(&golden.model.logits(&hidden), &expected);
            assert!(gap < TOLERANCE, "{family}: {gap:e}");
        }
        let gap = |gates: &Gates, expected: &Value| gap_of_each(&golden.nats(gates), &tensor(expected));
        let open = gap(&golden.model.open(), &numbers["nll"]);
        assert!(open < 1e-5, "{family}: {open:e}");
        let cases = &numbers["nll_with_one_head_masked"];
        golden::compare_masked(&golden.model, cases, 1e-5, gap_of_each, |gates| golden.nats(gates));
        let gates = |values: &Tensor| {
            let of_layers = BTreeMap::from([(Attention::SelfAttention, values.shallow_clone())]);
            Gates::from_stacked(&of_layers)
        };
        let several = gates(&tensor(&numbers["several_gates"]).to_kind(Kind::Float));
        let several = gap(&several, &numbers["nll_with_several_gates"]);
        assert!(several < 1e-5, "{family} under several gates: {several:e}");

        let expected = tensor(&numbers["dnll_dxi_by_row"]);
        let leaf = expected.ones_like().to_kind(Kind::Float).set_requires_grad(true);
        golden.nats(&gates(&leaf)).sum(None).backward();
        let gap = gap_of_each(&leaf.grad(), &expected);
        assert!(gap < TOLERANCE, "{family}: derivatives: {gap:e}");
    }
}

/// For all families, with all heads, some masked, and these removed. A masked head contributes nothing; the others contribute what they do
/// in the smaller model.
#[test]
fn contributions_of_heads_and_all_other_parts_sum_to_the_logit_difference() {
    for golden in Golden::all() {
        let contrast = |(row, text): (usize, &Vec<u32>)| {
            let position = text.len() - 1 - row % 2;
            Contrast { row, position, token: 3 + row as u32, other: 11 }
        };
        let texts = golden.texts();
        let mut windows = golden.batch();
        // The last token is only predicted, so the position before it is the last.
        windows.contrasts = texts
            .iter()
            .enumerate()
            .map(contrast)
            .filter(|at| at.position + 1 < texts[at.row].len())
            .collect();
        let cap = golden.model.config().options.final_logit_softcapping;
        let expected = |at: &Contrast| {
            let logit = |token: u32| {
                let logits = &golden.numbers["logits"][at.row][at.position];
                let logit = logits[token as usize].as_f64().unwrap();
                cap.map_or(logit, |cap| cap * (logit / cap).atanh())
            };
            logit(at.token) - logit(at.other)
        };
        let check = |model: &LanguageModel, gates: &Gates| {
            let found = model.attribution(&windows, gates);
            let parts = Tensor::cat(&found.heads, 1).sum_dim_intlist(1, false, None);
            let rest = found.differences.to_kind(Kind::Double) - parts;
            let gap = (rest - found.others.sum_dim_intlist(1, false, None)).abs().max().double_value(&[]);
            assert!(gap < 1e-4, "{}: {gap:e}", golden.family);
            found
        };
        let open = check(&golden.model, &golden.model.open());
        let differences = Vec::<f64>::try_from(&open.differences).unwrap();
        assert!(!differences.is_empty());
        for (at, found) in windows.contrasts.iter().zip(differences) {
            let expected = expected(at);
            assert!((found - expected).abs() < 1e-4, "{}: {found} instead of {expected}", golden.family);
        }
        let set: HeadSet = "self:1:2+self:2:1".parse().unwrap();
        let masked = check(&golden.model, &masking(&golden.model, &set));
        assert_eq!(masked.heads[0].select(1, 1).abs().max().double_value(&[]), 0.0);
        let cut = golden.model.without_heads(&set, Removal::Cut).unwrap();
        let cut = check(&cut, &cut.open());
        let kept = masked.heads[1].narrow(1, 1, masked.heads[1].size()[1] - 1);
        let gap = (&kept - &cut.heads[1]).abs().max().double_value(&[]);
        assert!(gap < 1e-4 && kept.abs().max().double_value(&[]) > 1e-4, "{}: {gap:e}", golden.family);
    }
}

/// As in transformers. With heads masked, also beyond a window, decoding with the cache agrees with passes over whole texts.
#[test]
fn a_continuation_is_the_most_probable_token_of_the_text_so_far() {
    for golden in Golden::all() {
        let (model, own) = (&golden.model, &golden.numbers["greedy"]);
        let tokens = |name: &str| golden::rows(&Value::from(vec![own[name].clone()])).remove(0);
        let (prompt, expected) = (tokens("prompt"), tokens("continuation"));
        let made = model.continue_greedily(&[&prompt, &prompt], expected.len(), Stop::Never, &model.open());
        assert_eq!(made.unwrap(), [&expected[..], &expected], "{}", golden.family);

        let gates = masking(model, &"self:1:2+self:2:1".parse().unwrap());
        let mut text = vec![9_u32, 17];
        let made = model.continue_greedily(&[&text], 12, Stop::Never, &gates).unwrap();
        for token in &made[0] {
            let ids = TokenBatch::new(&[&text], 0, OPTIONS).ids;
            let hidden = model.hidden(&ids, &gates, &ModelDropout::OFF);
            let logits = no_grad(|| model.logits(&hidden)).squeeze_dim(0);
            let best = logits.get(-1).argmax(None, false).int64_value(&[]);
            assert_eq!(best, i64::from(*token), "{}", golden.family);
            text.push(*token);
        }
    }
}

#[test]
fn a_folder_of_each_family_survives_a_round_trip() {
    for golden in Golden::all() {
        let folder = tempfile::tempdir().unwrap();
        golden.model.save(folder.path()).unwrap();
        let back = LanguageModel::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), golden.model.config());
        let losses = back.losses(&golden.batch(), &back.open(), &ModelDropout::OFF);
        assert_eq!(losses, golden.nats(&golden.model.open()));
        if !golden.family.starts_with("families/") {
            continue;
        }
        let original = golden::read(&test_support::golden(golden.family).unwrap().join("config.json"));
        let saved = golden::read(&folder.path().join("config.json"));
        for (name, value) in saved.as_object().unwrap() {
            let as_saved = original.get(name).is_none_or(|original| original == value);
            assert!(as_saved, "{}: {name} is {value}, but was {:?}", golden.family, original.get(name));
        }
    }
}

/// Masked, removed and zeroed heads give equal nats, also whole groups, which lose their keys and values.
#[test]
fn masking_equals_removal() {
    for golden in Golden::all() {
        for heads in
            ["self:1:1", "self:1:1+self:1:2+self:1:3+self:2:4", "self:2:1+self:2:2+self:2:3+self:2:4"]
        {
            let set: HeadSet = heads.parse().unwrap();
            let masked = golden.nats(&masking(&golden.model, &set));
            let folder = tempfile::tempdir().unwrap();
            golden.model.without_heads(&set, Removal::Cut).unwrap().save(folder.path()).unwrap();
            let cut = LanguageModel::load(folder.path(), OPTIONS).unwrap();
            let found = cut.losses(&golden.batch(), &cut.open(), &ModelDropout::OFF);
            let gap = relative_gap(&found, &masked.to_kind(Kind::Double));
            assert!(gap < 1e-5, "{} without {heads}: {gap:e}", golden.family);
            assert!(cut.weights().parameters() < golden.model.weights().parameters());
        }
        golden.model.check_gates().unwrap();
    }
}

#[test]
fn sets_evaluated_together_give_the_results_of_each_alone() {
    for golden in Golden::all() {
        let layout = golden.model.layout();
        let mut sets: Vec<HeadSet> = layout.heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        sets.push(HeadSet::none());
        sets.push("self:1:1+self:1:2+self:2:4".parse().unwrap());
        sets.push(layout.all_but("self:2:2".parse().unwrap()).unwrap());
        let batch = golden.batch();
        let variants = golden.model.variants(&sets, false).unwrap();
        for together in [1, 3] {
            let (found, prefix) = no_grad(|| golden.model.sweep(&batch, &variants, together, None));
            let (again, _) = no_grad(|| golden.model.sweep(&batch, &variants, together, Some(prefix)));
            for ((set, found), again) in sets.iter().zip(found).zip(again) {
                let alone = golden.nats(&masking(&golden.model, set));
                let gap = relative_gap(&batch.by_row(&found), &alone.to_kind(Kind::Double));
                assert!(gap < 1e-5, "{} without {set}: {gap:e}", golden.family);
                assert_eq!(found, again, "{} without {set}", golden.family);
            }
        }
    }
}

/// Two of three heads of each group, or one of two groups, in every layer: an ordinary configuration with fewer heads.
#[test]
fn a_uniform_cut_needs_no_list_of_removed_heads() {
    let golden = Golden::load("families/qwen3").remove(0);
    let cut = |removed: &dyn Fn(usize) -> bool| {
        let heads = golden.model.layout().heads().into_iter().filter(|id| removed(id.head_index()));
        let set: HeadSet = heads.collect();
        (golden.model.without_heads(&set, Removal::Uniform), set)
    };
    for (removed, sizes) in
        [(&(|head: usize| head % 3 == 1) as &dyn Fn(usize) -> bool, [4, 2]), (&|head| head < 3, [3, 1])]
    {
        let (uniform, set) = cut(removed);
        let uniform = uniform.unwrap();
        let config = uniform.config();
        assert_eq!([config.num_attention_heads, config.key_value_heads()], sizes);
        assert!(config.pruned_heads.is_empty() && config.head_dim == Some(8));
        let nats = uniform.losses(&golden.batch(), &uniform.open(), &ModelDropout::OFF);
        let masked = golden.nats(&masking(&golden.model, &set));
        assert!(relative_gap(&nats, &masked.to_kind(Kind::Double)) < 1e-5);
    }
    let gpt2 = Golden::load("families/gpt2").remove(0).model;
    let refuse = |model: &LanguageModel, heads: &str, expected: &str| {
        let message = model.without_heads(&heads.parse().unwrap(), Removal::Uniform).unwrap_err().to_string();
        assert!(message.ends_with(expected), "{message}");
    };
    let (model, layer_2) = (&golden.model, "self:2:1+self:2:2+self:2:3");
    refuse(model, "self:1:1+self:1:2", "the groups of layer 1 have [1, 3] heads left");
    refuse(model, layer_2, "layer 2 has groups of [3] heads left, layer 1 has [3, 3]");
    refuse(model, &format!("{layer_2}+self:2:4+self:2:5+self:2:6"), "layer 2 has no head left");
    refuse(&gpt2, "self:1:1+self:2:1+self:3:1", "the config.json of gpt2 has no key for the head width");
}

#[test]
fn numbers_that_no_tensor_confirms_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let read = |family: &str, changes: &Value| {
        let own = test_support::golden(family).unwrap().join("config.json");
        golden::write_config(&own, changes, folder.path());
        LanguageConfig::read(&folder.path().join("config.json")).map(drop).map_err(|error| error.to_string())
    };
    let llama3 = |low: u32, length: u32| {
        json!({"rope_scaling": {
            "rope_type": "llama3", "factor": 8, "low_freq_factor": low, "high_freq_factor": 4,
            "original_max_position_embeddings": length,
        }})
    };
    for (changes, expected) in [
        (json!({"sliding_window": i64::MIN}), "sliding_window (-9223372036854775808) must be at least 1"),
        (json!({"rope_theta": 0}), "rope_theta (0.0) must be from 1.0 to 1e16"),
        (json!({"rms_norm_eps": -1e-6}), "rms_norm_eps (-1e-6) must be from 1e-30 to 1.0"),
        (json!({"rope_scaling": {"rope_type": "linear", "factor": 0}}), "factor (0.0) must be from 1e-6"),
        (llama3(4, 100), "must be below high_freq_factor (4.0)"),
        (llama3(1, 0), "original_max_position_embeddings (0.0) must be from 1e-6"),
    ] {
        let message = read("families/mistral", &changes).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
    // layers of this family have a window only with `use_sliding_window`
    assert_eq!(read("families/qwen2", &json!({"sliding_window": 0})), Ok(()));
}

#[test]
fn an_unknown_family_is_compared_with_those_that_are_known() {
    let llama = test_support::golden("families/llama").unwrap();
    let folder = tempfile::tempdir().unwrap();
    test_support::copy_files(&llama, folder.path());
    golden::write_config(&llama.join("config.json"), &json!({ "model_type": "llamoid" }), folder.path());
    let refuse = |expected: &str| {
        let refusal = LanguageModel::load(folder.path(), OPTIONS).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
    };
    refuse("its tensors have the names and shapes of `llama`");
    let file = folder.path().join("model.safetensors");
    let mut weights = Weights::read(&file, OPTIONS).unwrap();
    let norm = weights.remove("model.norm.weight").unwrap();
    let own = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()));
    Weights::from_tensors(own.chain([("model.last.weight".to_owned(), norm)])).write(&file).unwrap();
    refuse("; the closest is `llama`, with 1 tensor missing or misshapen, such as `model.norm.weight`");
    refuse(" and 1 tensor unknown, such as `model.last.weight`");
}
