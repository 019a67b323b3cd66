//! Agreement with Hugging Face transformers on random language models of all families: `crates/test-support/golden/README.md` describes the
//! numbers. There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;
use std::path::PathBuf;

use core_masking::language_model::{Contrast, PredictionBatch, Stop, Window};
use core_masking::{Attention, GatedModel, Gates, HeadSet, LanguageModel, ModelDropout, Removal};
use golden::{TOLERANCE, gap_of_each, relative_gap, tensor};
use serde_json::Value;
use tch::{Device, Kind, Tensor, no_grad};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const FAMILIES: [&str; 6] = ["gpt2", "llama", "llama3", "mistral", "qwen2", "qwen3"];
/// Folders in `more/`, in the repository or in `../shared/golden`.
const MORE: [&str; 16] = [
    "llama-bias",
    "llama-head_dim",
    "granite",
    "starcoder2",
    "smollm3",
    "olmo2",
    "phi3",
    "phi3-partial",
    "gpt_neox",
    "gpt_neox-serial",
    "opt",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gemma3_text-linear",
    "qwen3_moe",
];

/// Folders in `tokens-images/`, which transformers 5 reads unchanged.
const NEWER: [&str; 3] = ["cohere", "cohere-qk", "glm4"];

struct Golden {
    family: &'static str,
    model: LanguageModel,
    numbers: Value,
}

impl Golden {
    fn load(family: &'static str) -> Self {
        let (folder, numbers) = golden::load(&format!("families/{family}.json"));
        let model = LanguageModel::load(&folder.join("families").join(family), OPTIONS).unwrap();
        Self { family, model, numbers }
    }

    fn all() -> impl Iterator<Item = Self> {
        let more = MORE.into_iter().flat_map(Self::more).chain(NEWER.into_iter().map(Self::newer));
        FAMILIES.into_iter().map(Self::load).chain(more)
    }

    /// Loads a folder with the `config.json` of transformers 4 and of transformers 5.
    fn more(family: &'static str) -> Vec<Self> {
        tch::set_num_threads(1); // as in `golden::load`
        let Some(folder) = test_support::golden(&format!("more/{family}")) else { return Vec::new() };
        let text = std::fs::read_to_string(folder.with_extension("json")).unwrap();
        let of_5 = folder.join("../../more-config-5.24").join(family).with_extension("json");
        let load = |config: PathBuf| {
            let copy = tempfile::tempdir().unwrap();
            std::fs::copy(config, copy.path().join("config.json")).unwrap();
            std::fs::copy(folder.join("model.safetensors"), copy.path().join("model.safetensors")).unwrap();
            let model = LanguageModel::load(copy.path(), OPTIONS).unwrap_or_else(|e| panic!("{family}: {e}"));
            Self { family, model, numbers: serde_json::from_str(&text).unwrap() }
        };
        [folder.join("config.json"), of_5].map(load).into()
    }

    fn newer(family: &'static str) -> Self {
        tch::set_num_threads(1); // as in `golden::load`
        let folder = test_support::golden(&format!("tokens-images/{family}")).unwrap();
        let text = std::fs::read_to_string(folder.with_extension("json")).unwrap();
        let model = LanguageModel::load(&folder, OPTIONS).unwrap_or_else(|e| panic!("{family}: {e}"));
        Self { family, model, numbers: serde_json::from_str(&text).unwrap() }
    }

    fn texts(&self) -> Vec<Vec<u32>> {
        let rows =
            |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(self.numbers[name].clone()).unwrap() };
        let real = |(ids, mask): (Vec<f64>, Vec<f64>)| {
            ids.into_iter().zip(mask).filter(|&(_, real)| real == 1.0).map(|(id, _)| id as u32).collect()
        };
        rows("input_ids").into_iter().zip(rows("attention_mask")).map(real).collect()
    }

    fn batch(&self) -> PredictionBatch {
        let texts = self.texts();
        let windows: Vec<Window<'_>> = texts.iter().map(|tokens| Window { tokens, context: 1 }).collect();
        self.model.batch(&windows).unwrap()
    }

    fn nats(&self, gates: &Gates) -> Tensor {
        self.model.losses(&self.batch(), gates, &ModelDropout::OFF)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }
}

#[test]
fn logits_agree() {
    for golden in Golden::all() {
        let expected = tensor(&golden.numbers["logits"]); // [text, position, vocab]
        for (row, text) in golden.texts().iter().enumerate() {
            let ids: Vec<i64> = text.iter().map(|&id| i64::from(id)).collect();
            let ids = Tensor::from_slice(&ids).unsqueeze(0);
            let hidden = golden.model.hidden(&ids, &golden.open(), &ModelDropout::OFF);
            let expected = expected.narrow(0, row as i64, 1).narrow(1, 0, text.len() as i64);
            let gap = gap_of_each(&golden.model.logits(&hidden), &expected);
            assert!(gap < TOLERANCE, "{}: {gap:e}", golden.family);
        }
    }
}

#[test]
fn nats_agree_also_with_each_head_masked_and_under_several_gates() {
    for golden in Golden::all() {
        let gap = |gates: &Gates, expected: &Value| gap_of_each(&golden.nats(gates), &tensor(expected));
        let open = gap(&golden.open(), &golden.numbers["nll"]);
        assert!(open < 1e-5, "{}: {open:e}", golden.family);
        let cases = &golden.numbers["nll_with_one_head_masked"];
        golden::compare_masked(&golden.model, cases, 1e-5, gap_of_each, |gates| golden.nats(gates));
        let several = tensor(&golden.numbers["several_gates"]).to_kind(Kind::Float);
        let several = Gates::from_stacked(&BTreeMap::from([(Attention::SelfAttention, several)]));
        let several = gap(&several, &golden.numbers["nll_with_several_gates"]);
        assert!(several < 1e-5, "{} under several gates: {several:e}", golden.family);
    }
}

#[test]
fn derivatives_by_gates_agree() {
    for golden in Golden::all() {
        let expected = tensor(&golden.numbers["dnll_dxi_by_row"]);
        let leaf = expected.ones_like().to_kind(Kind::Float).set_requires_grad(true);
        let leaves = BTreeMap::from([(Attention::SelfAttention, leaf)]);
        golden.nats(&Gates::from_stacked(&leaves)).sum(None).backward();
        let gap = gap_of_each(&leaves[&Attention::SelfAttention].grad(), &expected);
        assert!(gap < TOLERANCE, "{}: {gap:e}", golden.family);
    }
}

/// For all families, with all heads, some masked, and these removed. A masked head contributes nothing; the others contribute what they do
/// in the smaller model.
#[test]
fn parts_of_heads_and_all_else_sum_to_the_logit_difference() {
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
            let gap = (found.differences.to_kind(Kind::Double)
                - found.others.sum_dim_intlist(1, false, None)
                - Tensor::cat(&found.heads, 1).sum_dim_intlist(1, false, None))
            .abs()
            .max()
            .double_value(&[]);
            assert!(gap < 1e-4, "{}: {gap:e}", golden.family);
            found
        };
        let open = check(&golden.model, &golden.open());
        let differences = Vec::<f64>::try_from(&open.differences).unwrap();
        assert!(!differences.is_empty());
        for (at, found) in windows.contrasts.iter().zip(differences) {
            let expected = expected(at);
            assert!((found - expected).abs() < 1e-4, "{}: {found} instead of {expected}", golden.family);
        }
        let set: HeadSet = "self:1:2+self:2:1".parse().unwrap();
        let masked = Gates::masking(&golden.model.layout(), std::slice::from_ref(&set), OPTIONS).unwrap();
        let masked = check(&golden.model, &masked);
        assert_eq!(masked.heads[0].select(1, 1).abs().max().double_value(&[]), 0.0);
        let cut = golden.model.without_heads(&set, Removal::Cut).unwrap();
        let cut = check(&cut, &Gates::open(&cut.layout(), OPTIONS));
        let kept = masked.heads[1].narrow(1, 1, masked.heads[1].size()[1] - 1);
        let gap = (&kept - &cut.heads[1]).abs().max().double_value(&[]);
        assert!(gap < 1e-4 && kept.abs().max().double_value(&[]) > 1e-4, "{}: {gap:e}", golden.family);
    }
}

#[test]
fn greedy_continuations_are_equal() {
    for golden in Golden::all() {
        let tokens = |name: &str| -> Vec<u32> {
            let ids: Vec<f64> = serde_json::from_value(golden.numbers["greedy"][name].clone()).unwrap();
            ids.into_iter().map(|id| id as u32).collect()
        };
        let (prompt, expected) = (tokens("prompt"), tokens("continuation"));
        let made = golden
            .model
            .continue_greedily(&[&prompt, &prompt], expected.len(), Stop::Never, &golden.open())
            .unwrap();
        assert_eq!(made, [&expected[..], &expected], "{}", golden.family);
    }
}

/// Decoding token by token with the cache agrees with whole texts, also beyond a window and with heads masked.
#[test]
fn a_continuation_is_the_most_probable_token_of_the_text_so_far() {
    for golden in Golden::all() {
        let set: HeadSet = "self:1:2+self:2:1".parse().unwrap();
        let gates = Gates::masking(&golden.model.layout(), &[set], OPTIONS).unwrap();
        let mut text = vec![9_u32, 17];
        let made = golden.model.continue_greedily(&[&text], 12, Stop::Never, &gates).unwrap();
        for token in &made[0] {
            let ids: Vec<i64> = text.iter().map(|&id| i64::from(id)).collect();
            let hidden =
                golden.model.hidden(&Tensor::from_slice(&ids).unsqueeze(0), &gates, &ModelDropout::OFF);
            let logits = no_grad(|| golden.model.logits(&hidden)).squeeze_dim(0);
            assert_eq!(
                logits.get(-1).argmax(None, false).int64_value(&[]),
                i64::from(*token),
                "{}",
                golden.family
            );
            text.push(*token);
        }
    }
}

#[test]
fn a_folder_of_each_family_goes_there_and_back() {
    for golden in Golden::all() {
        let folder = tempfile::tempdir().unwrap();
        golden.model.save(folder.path()).unwrap();
        let back = LanguageModel::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), golden.model.config());
        assert_eq!(
            back.losses(&golden.batch(), &golden.open(), &ModelDropout::OFF),
            golden.nats(&golden.open())
        );
        let original =
            golden::load("versions.json").0.join("families").join(golden.family).join("config.json");
        if !original.exists() {
            continue;
        }
        let [original, saved] = [original, folder.path().join("config.json")].map(|path| {
            serde_json::from_str::<BTreeMap<String, Value>>(&std::fs::read_to_string(path).unwrap()).unwrap()
        });
        for (name, value) in saved {
            let as_saved = original.get(&name).is_none_or(|original| *original == value);
            assert!(as_saved, "{}: {name} is {value}, but was {:?}", golden.family, original.get(&name));
        }
    }
}

/// Masked, removed and zeroed heads give equal nats, also whole groups, which lose their keys and values.
#[test]
fn masking_is_pruning() {
    for golden in Golden::all() {
        for heads in
            ["self:1:1", "self:1:1+self:1:2+self:1:3+self:2:4", "self:2:1+self:2:2+self:2:3+self:2:4"]
        {
            let set: HeadSet = heads.parse().unwrap();
            let masked = golden
                .nats(&Gates::masking(&golden.model.layout(), std::slice::from_ref(&set), OPTIONS).unwrap());
            let folder = tempfile::tempdir().unwrap();
            golden.model.without_heads(&set, Removal::Cut).unwrap().save(folder.path()).unwrap();
            let cut = LanguageModel::load(folder.path(), OPTIONS).unwrap();
            let open = Gates::open(&cut.layout(), OPTIONS);
            let gap = relative_gap(
                &cut.losses(&golden.batch(), &open, &ModelDropout::OFF),
                &masked.to_kind(Kind::Double),
            );
            assert!(gap < 1e-5, "{} without {heads}: {gap:e}", golden.family);
            assert!(cut.weights().parameters() < golden.model.weights().parameters());
        }
        golden.model.check_gates().unwrap();
    }
}

#[test]
fn sets_that_share_their_work_give_what_each_gives_alone() {
    for golden in Golden::all() {
        let layout = golden.model.layout();
        let mut sets: Vec<HeadSet> = layout.heads().into_iter().map(|id| HeadSet::from_iter([id])).collect();
        sets.push(HeadSet::none());
        sets.push("self:1:1+self:1:2+self:2:4".parse().unwrap());
        sets.push(layout.all_but("self:2:2".parse().unwrap()).unwrap());
        let batch = golden.batch();
        let variants = golden.model.variants(&sets, false).unwrap();
        for together in [1, 3] {
            let (found, trunk) = no_grad(|| golden.model.sweep(&batch, &variants, together, None));
            let (again, _) = no_grad(|| golden.model.sweep(&batch, &variants, together, Some(trunk)));
            for ((set, found), again) in sets.iter().zip(found).zip(again) {
                let alone =
                    golden.nats(&Gates::masking(&layout, std::slice::from_ref(set), OPTIONS).unwrap());
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
    let golden = Golden::load("qwen3");
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
        let open = Gates::open(&uniform.layout(), OPTIONS);
        let nats = uniform.losses(&golden.batch(), &open, &ModelDropout::OFF);
        let masked = golden.nats(&Gates::masking(&golden.model.layout(), &[set], OPTIONS).unwrap());
        assert!(relative_gap(&nats, &masked.to_kind(Kind::Double)) < 1e-5);
    }
    let message = cut(&|head| head < 2).0.unwrap_err().to_string();
    assert!(message.ends_with("the groups of layer 1 have [1, 3] heads left"), "{message}");
    let of_one_layer = "self:2:1+self:2:2+self:2:3".parse().unwrap();
    let message = golden.model.without_heads(&of_one_layer, Removal::Uniform).unwrap_err().to_string();
    assert!(message.ends_with("layer 2 has groups of [3] heads left, layer 1 of [3, 3]"), "{message}");
    let whole_layer = "self:2:1+self:2:2+self:2:3+self:2:4+self:2:5+self:2:6".parse().unwrap();
    let message = golden.model.without_heads(&whole_layer, Removal::Uniform).unwrap_err().to_string();
    assert!(message.ends_with("layer 2 has no head left"), "{message}");
    let gpt2 = Golden::load("gpt2").model;
    let message =
        gpt2.without_heads(&"self:1:1+self:2:1+self:3:1".parse().unwrap(), Removal::Uniform).unwrap_err();
    assert!(message.to_string().ends_with("gpt2 has no entry for the width of a head"), "{message}");
}
