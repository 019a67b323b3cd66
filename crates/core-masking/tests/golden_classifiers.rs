//! Agreement with Hugging Face transformers on random classifiers of all families; `golden_bert.rs` has more numbers for BERT.
//! `crates/test-support/golden/README.md` describes the numbers. There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeMap;

use core_masking::classifier::{Classified, Inputs, LabelledBatch};
use core_masking::{
    Attention, AttentionRecord, Classifier, ClassifierConfig, GatedModel, Gates, HeadSet, ModelDropout,
    Removal, Weights,
};
use golden::{TOLERANCE, gap, gap_of_each, relative_gap, tensor};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const FAMILIES: [&str; 17] = [
    "more/bert",
    "families/roberta",
    "families/xlm-roberta",
    "families/distilbert",
    "more/camembert",
    "more/electra",
    "more/mpnet",
    "more/albert",
    "more/deberta-v2",
    "more/modernbert",
    "more/modernbert-mean",
    "tokens-images/bert-tokens",
    "tokens-images/roberta-tokens",
    "tokens-images/distilbert-tokens",
    "tokens-images/vit",
    "tokens-images/vit-grey",
    "tokens-images/deit",
];

struct Golden {
    model: Classifier,
    numbers: Value,
}

impl Golden {
    fn load(family: &str) -> Self {
        let (folder, numbers) = golden::load(&format!("{family}.json"));
        Self { model: Classifier::load(&folder.join(family), OPTIONS).unwrap(), numbers }
    }

    fn examples(&self) -> LabelledBatch {
        if self.model.config().image().is_some() {
            let inputs = self.model.images(&tensor(&self.numbers["pixel_values"])).unwrap();
            return LabelledBatch { inputs, labels: tensor(&self.numbers["labels"]).to_kind(Kind::Int64) };
        }
        self.examples_with(None)
    }

    /// Returns the examples with the segments called `segments`, or without.
    fn examples_with(&self, segments: Option<&str>) -> LabelledBatch {
        let rows =
            |name: &str| -> Vec<Vec<f64>> { serde_json::from_value(self.numbers[name].clone()).unwrap() };
        let real = |(ids, mask): (Vec<f64>, Vec<f64>)| -> Vec<u32> {
            ids.into_iter().zip(mask).filter(|&(_, real)| real == 1.0).map(|(id, _)| id as u32).collect()
        };
        let texts: Vec<Vec<u32>> =
            rows("input_ids").into_iter().zip(rows("attention_mask")).map(real).collect();
        let segments: Vec<Vec<u32>> = match segments {
            Some(name) => {
                let kinds = rows(name).into_iter().zip(&texts);
                kinds.map(|(row, text)| row[..text.len()].iter().map(|&kind| kind as u32).collect()).collect()
            }
            None => texts.iter().map(|text| vec![0; text.len()]).collect(),
        };
        let rows: Vec<(&[u32], &[u32])> =
            texts.iter().zip(&segments).map(|(ids, segments)| (&ids[..], &segments[..])).collect();
        let labels = tensor(&self.numbers["labels"]).to_kind(Kind::Int64);
        LabelledBatch { inputs: self.model.batch(&rows).unwrap(), labels }
    }

    fn logits(&self, gates: &Gates) -> Tensor {
        self.shown(&self.model.forward(&self.examples().inputs, gates, &ModelDropout::OFF))
    }

    /// Sets token logits to 0 at padding, as the reference does.
    fn shown(&self, logits: &Tensor) -> Tensor {
        if logits.dim() < 3 {
            return logits.shallow_clone();
        }
        logits * tensor(&self.numbers["attention_mask"]).to_kind(logits.kind()).unsqueeze(2)
    }

    fn open(&self) -> Gates {
        Gates::open(&self.model.layout(), OPTIONS)
    }
}

#[test]
fn logits_agree_also_with_a_head_masked_and_under_several_gates() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let gap = |gates: &Gates, expected: &Value| gap_of_each(&golden.logits(gates), &tensor(expected));
        let open = gap(&golden.open(), &golden.numbers["logits"]);
        assert!(open < TOLERANCE, "{family}: {open:e}");
        let cases = &golden.numbers["logits_with_one_head_masked"];
        golden::compare_masked(&golden.model, cases, TOLERANCE, gap_of_each, |gates| golden.logits(gates));
        let several = tensor(&golden.numbers["several_gates"]).to_kind(Kind::Float);
        let several = Gates::from_stacked(&BTreeMap::from([(Attention::SelfAttention, several)]));
        let several = gap(&several, &golden.numbers["logits_with_several_gates"]);
        assert!(several < TOLERANCE, "{family} under several gates: {several:e}");
    }
}

#[test]
fn losses_and_their_derivatives_by_gates_agree() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let ones = tensor(&golden.numbers["dloss_dxi_by_example"]).ones_like().to_kind(Kind::Float);
        let leaves = BTreeMap::from([(Attention::SelfAttention, ones.set_requires_grad(true))]);
        let gates = Gates::from_stacked(&leaves);
        let losses = golden.model.losses(&golden.examples(), &gates, &ModelDropout::OFF);
        let loss = relative_gap(&losses, &tensor(&golden.numbers["loss"]));
        assert!(loss < 1e-5, "{family}: losses differ by {loss:e} of the greatest");
        losses.sum(None).backward();
        let expected = tensor(&golden.numbers["dloss_dxi_by_example"]);
        let derivatives = leaves[&Attention::SelfAttention].grad();
        let of_each = gap_of_each(&derivatives, &expected);
        assert!(of_each < TOLERANCE, "{family}: derivatives differ by {of_each:e}");
        let of_greatest = relative_gap(&derivatives, &expected);
        assert!(of_greatest < 1e-4, "{family}: derivatives differ by {of_greatest:e} of the greatest");
    }
}

#[test]
fn a_folder_of_each_family_goes_there_and_back() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let folder = tempfile::tempdir().unwrap();
        golden.model.save(folder.path()).unwrap();
        let back = Classifier::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), golden.model.config());
        let logits = back.forward(&golden.examples().inputs, &golden.open(), &ModelDropout::OFF);
        assert_eq!(golden.shown(&logits), golden.logits(&golden.open()), "{family}");
        let own = golden::load("versions.json").0.join(family);
        let [stored, saved] = [own.as_path(), folder.path()].map(|folder| {
            let weights = Weights::read(&folder.join("model.safetensors"), OPTIONS).unwrap();
            weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.size())).collect::<Vec<_>>()
        });
        assert_eq!(saved, stored, "{family}");
        let original = std::fs::read_to_string(own.join("config.json"));
        let [original, saved] = [original, std::fs::read_to_string(folder.path().join("config.json"))]
            .map(|text| serde_json::from_str::<BTreeMap<String, Value>>(&text.unwrap()).unwrap());
        for (name, value) in saved {
            // 0 equals 0.0
            let number = |value: Option<&Value>| value.and_then(Value::as_f64);
            let is_same = value.is_number() && number(original.get(&name)) == number(Some(&value));
            assert!(is_same || original.get(&name).unwrap_or(&Value::Null) == &value, "{family}: {name}");
        }
    }
}

/// The encoder stays and the classification head is new, even if a map has the same name in both heads, as in BERT.
#[test]
fn a_classifier_of_texts_becomes_one_of_tokens_and_back() {
    let labels = ["a", "b", "c"].map(str::to_owned);
    for (family, head, of_tokens) in [
        ("more/bert", "bert.pooler.dense", "classifier"),
        ("families/roberta", "classifier.dense", "classifier"),
        ("more/modernbert", "", "classifier"),
    ] {
        let golden = Golden::load(family);
        let folder = tempfile::tempdir().unwrap();
        golden.model.save(folder.path()).unwrap();
        let load = |classified| Classifier::load_pretrained(folder.path(), (&labels, classified), 3, OPTIONS);
        let new = load(Classified::Tokens).unwrap();
        assert_eq!(new.new, [format!("{of_tokens}.weight"), format!("{of_tokens}.bias")], "{family}");
        assert!(new.model.config().architectures[0].ends_with("ForTokenClassification"));
        let logits = new.model.forward(&golden.examples().inputs, &golden.open(), &ModelDropout::OFF);
        assert_eq!(logits.size()[2], 3);
        new.model.save(folder.path()).unwrap();
        let back = Classifier::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config().classified(), Classified::Tokens);
        let lacking = load(Classified::Texts).unwrap().new;
        assert!(lacking.iter().any(|name| name.starts_with(head)), "{family}: {lacking:?}");
    }
}

#[test]
fn one_class_of_tokens_is_refused_and_relevance_too() {
    let golden = Golden::load("tokens-images/bert-tokens");
    let one = golden.model.config().clone().with_labels(&["O".to_owned()]);
    assert!(one.validate().unwrap_err().contains("a classifier of tokens needs at least two"));
    let texts = golden.model.batch(&[(&[1, 13], &[0; 2])]).unwrap();
    let batch = LabelledBatch { inputs: texts, labels: Tensor::from_slice2(&[[0_i64, 1]]) };
    let refusal = golden.model.relevance(&batch).unwrap_err().to_string();
    assert!(refusal.contains("this model classifies tokens"), "{refusal}");
}

/// Logits of transformers 4.57.1 for `<s> 7 <pad> 9 </s>`, all five attended to, in each family's ids. RoBERTa does not count a padding
/// token within a text as a position, DistilBERT does.
#[test]
fn a_padding_symbol_within_a_text_has_the_position_that_its_family_gives_it() {
    let cases = [
        ("families/roberta", 1, [1.253_062_2, -2.026_901, -1.773_159_1]),
        ("families/distilbert", 0, [-0.187_008_04, -0.005_111_329, 0.839_947_94]),
    ];
    for (family, padding, expected) in cases {
        let model = Golden::load(family).model;
        let texts = model.batch(&[(&[0, 7, padding, 9, 2], &[0; 5])]).unwrap();
        let logits = model.forward(&texts, &Gates::open(&model.layout(), OPTIONS), &ModelDropout::OFF);
        let gap = gap(&logits, &Tensor::from_slice(&expected).view([1, 3]));
        assert!(gap < TOLERANCE, "{family}: {gap:e}");
    }
}

/// A hand-written `config.json` need not name its classes.
#[test]
fn classes_may_be_counted_instead_of_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let mut config = serde_json::json!({
        "model_type": "roberta", "vocab_size": 9, "hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 5, "hidden_act": "gelu_python", "max_position_embeddings": 8, "num_labels": 3,
    });
    std::fs::write(&path, config.to_string()).unwrap();
    assert_eq!(ClassifierConfig::read(&path).unwrap().labels(), ["LABEL_0", "LABEL_1", "LABEL_2"]);
    config["num_labels"] = "many".into();
    std::fs::write(&path, config.to_string()).unwrap();
    let refusal = ClassifierConfig::read(&path).unwrap_err().to_string();
    assert!(refusal.contains("num_labels must be a number up to 65536"), "{refusal}");
}

/// A text for RoBERTa may have two tokens fewer than the table has rows: rows up to the padding token's are not used.
#[test]
fn a_text_longer_than_the_positions_behind_the_padding_is_refused() {
    let model = Golden::load("families/roberta").model;
    let ids = [5; 33];
    assert!(model.batch(&[(&ids[..32], &[0; 32])]).is_ok());
    let message = model.batch(&[(&ids, &[0; 33])]).unwrap_err().to_string();
    assert_eq!(message, "a text of 33 tokens is longer than the 32 positions of the model");
}

#[test]
fn models_of_images_refuse_texts_other_sizes_and_two_classification_heads() {
    let golden = Golden::load("tokens-images/vit");
    let fault = |result: Result<Inputs, core_masking::Error>| result.unwrap_err().to_string();
    assert_eq!(fault(golden.model.batch(&[(&[1, 2], &[0, 0])])), "the model reads images, not texts");
    assert_eq!(
        fault(golden.model.images(&Tensor::zeros([2, 3, 16, 24], OPTIONS))),
        "images are [2, 3, 16, 24], but the model reads [batch, 3, 24, 24]"
    );
    let bert = Golden::load("more/bert").model;
    assert_eq!(
        fault(bert.images(&Tensor::zeros([1, 3, 24, 24], OPTIONS))),
        "the model reads texts, not images"
    );
    for (changes, expected) in [
        (
            json!({"architectures": ["DeiTForImageClassificationWithTeacher"]}),
            "the mean of two classification heads",
        ),
        (json!({"image_size": 2}), "patch_size (4) is more than image_size (2)"),
        (json!({"image_size": [16, "a"]}), "a number of pixels, or height and width"),
        (json!({"patch_size": 0}), "patch_size is 0; it must be from 1 to 8192"),
        (json!({"image_size": 24}), "`deit.embeddings.position_embeddings`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        test_support::copy_files(&golden::load("versions.json").0.join("tokens-images/deit"), folder.path());
        let path = folder.path().join("config.json");
        let mut config: BTreeMap<String, Value> =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config.extend(serde_json::from_value::<BTreeMap<String, Value>>(changes).unwrap());
        std::fs::write(&path, serde_json::to_string(&config).unwrap()).unwrap();
        let refusal = Classifier::load(folder.path(), OPTIONS).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

/// A `ViTModel` has neither the prefix nor a classification head; its pooler is ignored.
#[test]
fn an_encoder_of_images_without_a_classification_head_gets_one() {
    let golden = Golden::load("tokens-images/vit");
    let folder = tempfile::tempdir().unwrap();
    golden.model.save(folder.path()).unwrap();
    let file = folder.path().join("model.safetensors");
    let weights = Weights::read(&file, OPTIONS).unwrap();
    let own = weights
        .iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix("vit.")?.to_owned(), tensor.shallow_clone())));
    let pooler = ("pooler.dense.weight".to_owned(), Tensor::zeros([24, 24], OPTIONS));
    Weights::from_tensors(own.chain([pooler])).write(&file).unwrap();
    let labels = ["cat".to_owned(), "dog".to_owned()];
    let found =
        Classifier::load_pretrained(folder.path(), (&labels, Classified::Images), 1, OPTIONS).unwrap();
    assert_eq!(found.new, ["classifier.weight", "classifier.bias"]);
    let pixels = tensor(&golden.numbers["pixel_values"]);
    let entering = |model: &Classifier| model.embed(&model.images(&pixels).unwrap(), &ModelDropout::OFF);
    assert_eq!(entering(&found.model), entering(&golden.model));
}

/// Two segment types, for the families with reference numbers.
#[test]
fn logits_with_segments_agree() {
    for family in ["more/bert", "more/electra", "more/albert"] {
        let golden = Golden::load(family);
        let texts = golden.examples_with(Some("token_type_ids")).inputs;
        let logits = golden.model.forward(&texts, &golden.open(), &ModelDropout::OFF);
        let gap = gap(&logits, &tensor(&golden.numbers["logits_with_token_types"]));
        assert!(gap < TOLERANCE, "{family}: {gap:e}");
    }
}

/// Removing a head and sweeping it give the results of masking it. If layers share weights, a head is removed from all.
#[test]
fn removal_and_sweeps_give_what_masking_gives_and_the_self_check_passes() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let (model, texts) = (&golden.model, golden.examples().inputs);
        model.check_gates().unwrap();
        let one = ["self:1:2", "self:2:1"].map(|name| name.parse::<HeadSet>().unwrap());
        let turns: HeadSet = model.layout().heads().into_iter().filter(|id| id.head_index() == 1).collect();
        let sets = [one[0].clone(), one[1].clone(), turns.clone()];
        let variants = model.variants(&sets, false).unwrap();
        let (swept, _) = model.sweep(&texts, &variants, 2, None);
        for (set, swept) in sets.iter().zip(swept) {
            let gates = Gates::masking(&model.layout(), std::slice::from_ref(set), OPTIONS).unwrap();
            let masked = golden.logits(&gates).to_kind(Kind::Double);
            let swept = gap(&golden.shown(&swept), &masked);
            assert!(swept < 1e-5, "{family}: sweep of {set}: {swept:e}");
            for removal in [Removal::Cut, Removal::Zeros] {
                let cut = model.without_heads(set, removal);
                if family == "more/albert" && *set != turns {
                    let refusal = cut.unwrap_err().to_string();
                    assert!(refusal.contains("can only be removed from all of them"), "{refusal}");
                    continue;
                }
                let cut = cut.unwrap();
                if family == "more/albert" && removal == Removal::Cut {
                    // as transformers reads it: of the first layer only
                    assert_eq!(cut.config().pruned_heads, [(0, [1].into())].into());
                }
                let found = cut.forward(&texts, &Gates::open(&cut.layout(), OPTIONS), &ModelDropout::OFF);
                let cut = gap(&golden.shown(&found), &masked);
                assert!(cut < 1e-5, "{family}: {removal:?} of {set}: {cut:e}");
            }
        }
    }
}

/// `config.json` as transformers 5.24 writes it.
#[test]
fn both_forms_of_a_configuration_mean_the_same() {
    for family in
        ["bert", "camembert", "electra", "mpnet", "albert", "deberta-v2", "modernbert", "modernbert-mean"]
    {
        let golden = Golden::load(&format!("more/{family}"));
        let folder = golden::load("versions.json").0.join("more/config-5.24");
        let other = ClassifierConfig::read(&folder.join(format!("{family}.json"))).unwrap();
        assert_eq!(other, *golden.model.config(), "{family}");
    }
}

/// Reads a family's `config.json` with an entry changed or left out.
fn read_with(family: &str, entry: &str, value: Value) -> Result<ClassifierConfig, String> {
    let path = golden::load("versions.json").0.join("more").join(family).join("config.json");
    let mut config: BTreeMap<String, Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    config.insert(entry.to_owned(), value);
    config.retain(|_, value| *value != "absent");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, serde_json::to_string(&config).unwrap()).unwrap();
    ClassifierConfig::read(&path).map_err(|fault| fault.to_string())
}

#[test]
fn unsupported_forms_are_refused_by_their_entry() {
    let cases = [
        ("albert", "num_hidden_groups", json!(2), "num_hidden_groups is 2; only 1 is supported"),
        (
            "deberta-v2",
            "relative_attention",
            json!("absent"),
            "relative_attention is false; only true is supported",
        ),
        ("deberta-v2", "conv_kernel_size", json!(3), "conv_kernel_size is 3; only null is supported"),
        (
            "deberta-v2",
            "position_biased_input",
            json!("absent"),
            "position_biased_input is true; only false is supported",
        ),
        (
            "deberta-v2",
            "pos_att_type",
            json!("c2p"),
            r#"pos_att_type is ["c2p"]; only ["p2c","c2p"] is supported"#,
        ),
        ("deberta-v2", "max_relative_positions", json!(5), "max_relative_positions (5) must be at least 6"),
    ];
    for (family, entry, value, expected) in cases {
        let refusal = read_with(family, entry, value).unwrap_err();
        assert!(refusal.ends_with(expected), "{refusal}");
    }
    for value in [json!(-1), json!("absent")] {
        let refusal = read_with("deberta-v2", "position_buckets", value).unwrap_err();
        assert!(
            refusal.ends_with("position_buckets is -1; only distances in 2 to 4096 buckets are supported"),
            "{refusal}"
        );
    }
}

/// Microsoft's folders contain one string with a bar.
#[test]
fn the_terms_of_scores_may_be_a_list_or_a_text_in_any_order() {
    let listed = Golden::load("more/deberta-v2");
    for terms in [json!("p2c|c2p"), json!("C2P | P2C"), json!(["c2p", "p2c"])] {
        assert_eq!(read_with("deberta-v2", "pos_att_type", terms).unwrap(), *listed.model.config());
    }
}

#[test]
fn relevance_is_conserved_unless_norms_are_elsewhere() {
    for family in FAMILIES.iter().filter(|family| !family.starts_with("tokens-images")) {
        let model = Golden::load(family).model.to_kind(Kind::Double).unwrap();
        let texts = model.batch(&[(&[1, 13, 33, 8, 25], &[0; 5])]).unwrap();
        let batch = LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64]) };
        match model.relevance(&batch) {
            Ok(found) => assert!((found.left[0] - 1.0).abs() < 1e-9, "{family}: {}", found.left[0]),
            Err(refusal) => {
                assert!(family.starts_with("more/modernbert"), "{family}: {refusal}");
                let expected = "after each sublayer alone, and `modernbert` has others";
                assert!(refusal.to_string().contains(expected), "{refusal}");
            }
        }
    }
}

/// With attention weights recorded at all positions, the fused kernel is not used. Local layers of ModernBERT see two tokens on each side.
#[test]
fn attention_weights_are_those_that_give_the_logits() {
    for family in ["more/deberta-v2", "more/modernbert", "more/modernbert-mean"] {
        let golden = Golden::load(family);
        let record = AttentionRecord::default();
        let logits = golden.logits(&golden.open().recorded_in(&record));
        let gap = gap_of_each(&logits, &tensor(&golden.numbers["logits"]));
        assert!(gap < TOLERANCE, "{family}: {gap:e}");
        let mask = tensor(&golden.numbers["attention_mask"]); // [text, position]
        let pairs = (mask.unsqueeze(2) * mask.unsqueeze(1)).unsqueeze(1); // [text, 1, query, key]
        for ((_, layer), weights) in record.take() {
            let seen = (&weights * &pairs).sum_dim_intlist(-1, false, None); // [text, heads, query]
            let gap = (seen - mask.unsqueeze(1)).abs().max().double_value(&[]);
            assert!(gap < 1e-6, "{family}: {gap:e}");
            let far = (weights.triu(3) + weights.tril(-3)).max().double_value(&[]);
            let is_local = match family {
                "more/modernbert" => layer == 1,
                "more/modernbert-mean" => layer > 0,
                _ => false,
            };
            assert_eq!(far == 0.0, is_local, "{family}, layer {layer}");
        }
    }
}

/// Reads the `config.json` of ModernBERT with some entries changed.
fn modernbert(changes: &Value) -> Result<ClassifierConfig, String> {
    let path = golden::load("versions.json").0.join("more/modernbert/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (config_entries, changes) = (config.as_object_mut().unwrap(), changes.as_object().unwrap());
    config_entries.extend(changes.clone());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, config.to_string()).unwrap();
    ClassifierConfig::read(&path).map_err(|fault| fault.to_string())
}

/// Saved under the names of transformers; a removed head's part of the bias of `Wqkv` is removed too.
#[test]
fn modernbert_may_have_biases() {
    let config = modernbert(&serde_json::json!({ "attention_bias": true, "mlp_bias": true })).unwrap();
    let model = Classifier::random(config, 7, OPTIONS).unwrap();
    for (name, bias) in model.weights().iter().filter(|(name, _)| name.ends_with("bias")) {
        let _ = tch::no_grad(|| bias.shallow_clone().fill_(name.len() as f64 / 40.0));
    }
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path()).unwrap();
    let stored = Weights::read(&folder.path().join("model.safetensors"), OPTIONS).unwrap();
    let sizes = [("attn.Wqkv", 72), ("attn.Wo", 24), ("mlp.Wi", 72), ("mlp.Wo", 24)];
    for (map, size) in sizes {
        assert_eq!(stored.get(&format!("model.layers.1.{map}.bias")).unwrap().size(), [size]);
    }
    let back = Classifier::load(folder.path(), OPTIONS).unwrap();
    back.check_gates().unwrap();
    let set: HeadSet = "self:2:3".parse().unwrap();
    let cut = back.without_heads(&set, Removal::Cut).unwrap();
    let masked = model.probe(&Gates::masking(&model.layout(), &[set], OPTIONS).unwrap());
    let gap = gap(&cut.probe(&Gates::open(&cut.layout(), OPTIONS)), &masked.to_kind(Kind::Double));
    assert!(gap < 1e-5, "{gap:e}");
    assert!(model.probe(&Gates::open(&model.layout(), OPTIONS)) != masked);
}

/// Stored as a period, as in transformers 4, if possible, else as a list, as in transformers 5.
#[test]
fn layers_of_modernbert_are_named_or_counted() {
    let (slides, full) = ("sliding_attention", "full_attention");
    let read = |types: [&str; 3]| modernbert(&serde_json::json!({ "layer_types": types })).unwrap();
    let found = |types| {
        let options = read(types).options;
        (options.sliding_window_pattern, options.layer_types.is_some())
    };
    assert_eq!(found([full, slides, full]), (Some(2), false));
    assert_eq!(found([full, full, full]), (Some(1), false));
    assert_eq!(found([full, slides, slides]), (Some(3), false));
    assert_eq!(found([slides, slides, full]), (Some(2), true));
    for (change, fault) in [
        (
            r#"{"layer_types": ["chunked_attention", "full_attention", "full_attention"]}"#,
            "`chunked_attention`",
        ),
        (r#"{"layer_types": ["full_attention"]}"#, "layer_types names 1 layers of 3"),
        (r#"{"local_attention": 0}"#, "local_attention (0) must be at least 1"),
        (r#"{"local_rope_theta": 0.5}"#, "local_rope_theta (0.5) must be from 1.0"),
        (r#"{"global_attn_every_n_layers": 0}"#, "global_attn_every_n_layers must be from 1"),
        (r#"{"norm_bias": true}"#, "norm_bias is true; only false is supported"),
        (r#"{"classifier_pooling": "max"}"#, "unknown variant `max`"),
    ] {
        let refusal = modernbert(&serde_json::from_str(change).unwrap()).unwrap_err();
        assert!(refusal.contains(fault), "{refusal}");
    }
}

/// All tensors of a model train on four texts or their tokens, including the table of distances and the map of narrow embeddings.
#[test]
fn each_family_learns_a_toy_task() {
    for family in FAMILIES {
        let golden = Golden::load(family);
        let mut weights: Vec<(String, Tensor)> = golden
            .model
            .weights()
            .iter()
            .map(|(name, tensor)| (name.to_owned(), tensor.detach().copy().set_requires_grad(true)))
            .collect();
        let (rate, steps) = if family.ends_with("-tokens") { (0.01, 400) } else { (0.05, 60) };
        let mut losses = Vec::new();
        for _ in 0..steps {
            let shared = weights.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
            let model =
                Classifier::new(golden.model.config().clone(), Weights::from_tensors(shared)).unwrap();
            let loss = model.losses(&golden.examples(), &golden.open(), &ModelDropout::OFF).mean(None);
            losses.push(loss.double_value(&[]));
            loss.backward();
            for (name, tensor) in &mut weights {
                let gradient = tensor.grad();
                if gradient.defined() {
                    tch::no_grad(|| *tensor -= &gradient * rate);
                    tensor.zero_grad();
                } else {
                    panic!("{family}: {name} does not learn");
                }
            }
        }
        assert!(losses[steps - 1] < losses[0] / 2.0, "{family}: {losses:?}");
    }
}
