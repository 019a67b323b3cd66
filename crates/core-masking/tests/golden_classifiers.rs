//! Agreement with Hugging Face transformers on random classifiers of all families: `crates/test-support/golden/README.md` describes the
//! numbers. There heads and layers count from 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::{BTreeMap, BTreeSet};

use core_masking::classifier::{Classified, Inputs, LabelledBatch};
use core_masking::{
    Attention, AttentionRecord, Classifier, ClassifierConfig, GatedModel, Gates, HeadScores, HeadSet,
    Measure, ModelDropout, Removal, Weights,
};
use golden::{OPTIONS, TOLERANCE, gap, gap_of_each, masking, relative_gap, tensor};
use serde_json::{Value, json};
use tch::{Kind, Tensor};

struct Golden {
    family: &'static str,
    model: Classifier,
    numbers: Value,
}

impl Golden {
    fn load(family: &'static str) -> Self {
        let (folder, numbers) = golden::load(family).unwrap();
        Self { family, model: Classifier::load(&folder, OPTIONS).unwrap(), numbers }
    }

    fn all() -> impl Iterator<Item = Self> {
        golden::CLASSIFIERS.split_whitespace().map(Self::load)
    }

    fn examples(&self) -> LabelledBatch {
        if self.model.config().image().is_some() {
            let inputs = self.model.images(&tensor(&self.numbers["pixel_values"])).unwrap();
            return LabelledBatch { inputs, labels: tensor(&self.numbers["labels"]).to_kind(Kind::Int64) };
        }
        self.examples_with(false)
    }

    /// Returns the examples, with their segments or without.
    fn examples_with(&self, has_segments: bool) -> LabelledBatch {
        let texts = golden::real(&self.numbers, "input_ids", "attention_mask");
        let segments = if has_segments {
            golden::real(&self.numbers, "token_type_ids", "attention_mask")
        } else {
            texts.iter().map(|text| vec![0; text.len()]).collect()
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
}

/// With two segment types for the families with such numbers.
#[test]
fn logits_losses_and_derivatives_agree_also_with_a_head_masked_and_under_several_gates() {
    for golden in Golden::all() {
        let (family, model, numbers) = (golden.family, &golden.model, &golden.numbers);
        let gap = |gates: &Gates, expected: &Value| gap_of_each(&golden.logits(gates), &tensor(expected));
        let open = gap(&model.open(), &numbers["logits"]);
        assert!(open < TOLERANCE, "{family}: {open:e}");
        let cases = &numbers["logits_with_one_head_masked"];
        golden::compare_masked(model, cases, TOLERANCE, gap_of_each, |gates| golden.logits(gates));
        let gates = |values: &Tensor| {
            let of_layers = BTreeMap::from([(Attention::SelfAttention, values.shallow_clone())]);
            Gates::from_stacked(&of_layers)
        };
        let several = gates(&tensor(&numbers["several_gates"]).to_kind(Kind::Float));
        let several = gap(&several, &numbers["logits_with_several_gates"]);
        assert!(several < TOLERANCE, "{family} under several gates: {several:e}");
        if let Some(expected) = numbers.get("logits_with_token_types") {
            let texts = golden.examples_with(true).inputs;
            let logits = model.forward(&texts, &model.open(), &ModelDropout::OFF);
            let gap = golden::gap(&logits, &tensor(expected));
            assert!(gap < TOLERANCE, "{family} with segments: {gap:e}");
        }

        let expected = tensor(&numbers["dloss_dxi_by_example"]);
        let leaf = expected.ones_like().to_kind(Kind::Float).set_requires_grad(true);
        let losses = model.losses(&golden.examples(), &gates(&leaf), &ModelDropout::OFF);
        let loss = relative_gap(&losses, &tensor(&numbers["loss"]));
        losses.sum(None).backward();
        let gaps = [gap_of_each, relative_gap].map(|gap| gap(&leaf.grad(), &expected));
        assert!(loss < 1e-5 && gaps[0] < TOLERANCE && gaps[1] < 1e-4, "{family}: {loss:e}, {gaps:?}");
    }
}

#[test]
fn scores_of_heads_equal_the_reference() {
    let golden = Golden::load("bert-random");
    let assert_scores = |name: &str, found: &HeadScores| {
        let found: Vec<f64> = found.iter().map(|(_, score)| score).collect();
        // single precision reaches about 1e-4 relative (golden/README.md)
        let gap = relative_gap(&Tensor::from_slice(&found).view([3, 4]), &tensor(&golden.numbers[name]));
        assert!(gap < 1e-4, "{name} differs by {gap:e} of its size");
    };
    let measure = |measures: &BTreeSet<Measure>| {
        golden.model.measure(&golden.examples_with(true), &golden.model.open(), measures)
    };
    let together = measure(&Measure::of_passes().collect());
    for (case, name) in [
        (Measure::Example, "importance_example"),
        (Measure::Token, "importance_token"),
        (Measure::AttentionGradient, "importance_attention"),
        (Measure::Entropy, "entropy_nats"),
        (Measure::Confidence, "confidence"),
    ] {
        assert_scores(name, &measure(&BTreeSet::from([case]))[&case].means());
        assert_scores(name, &together[&case].means());
        if [Measure::Example, Measure::Token].contains(&case) {
            assert_scores(&format!("{name}_normalised"), &together[&case].means().normalised_by_layer());
        }
    }
}

#[test]
fn each_family_can_be_saved_and_loaded() {
    for golden in Golden::all() {
        let (family, folder) = (golden.family, tempfile::tempdir().unwrap());
        golden.model.save(folder.path()).unwrap();
        let back = Classifier::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config(), golden.model.config());
        let logits = back.forward(&golden.examples().inputs, &back.open(), &ModelDropout::OFF);
        assert_eq!(golden.shown(&logits), golden.logits(&golden.model.open()), "{family}");
        let own = test_support::golden(family).unwrap();
        let [stored, saved] = [own.as_path(), folder.path()].map(|folder| {
            let weights = Weights::read(&folder.join("model.safetensors"), OPTIONS).unwrap();
            weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.size())).collect::<Vec<_>>()
        });
        assert_eq!(saved, stored, "{family}");
        let [original, saved] = [own.as_path(), folder.path()].map(|folder| {
            let text = std::fs::read_to_string(folder.join("config.json")).unwrap();
            serde_json::from_str::<BTreeMap<String, Value>>(&text).unwrap()
        });
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
        let logits = new.model.forward(&golden.examples().inputs, &new.model.open(), &ModelDropout::OFF);
        assert_eq!(logits.size()[2], 3);
        new.model.save(folder.path()).unwrap();
        let back = Classifier::load(folder.path(), OPTIONS).unwrap();
        assert_eq!(back.config().classified(), Classified::Tokens);
        let lacking = load(Classified::Texts).unwrap().new;
        assert!(lacking.iter().any(|name| name.starts_with(head)), "{family}: {lacking:?}");
        let one = back.config().clone().with_labels(&labels[..1]);
        assert!(one.validate().unwrap_err().contains("a classifier of tokens needs at least two"));
    }
}

/// Logits of transformers 4.57.1 for `<s> 7 <pad> 9 </s>`, all five attended to, in each family's ids. RoBERTa does not count a padding
/// token within a text as a position, DistilBERT does.
#[test]
fn a_padding_token_within_a_text_has_the_position_that_its_family_gives_it() {
    let cases = [
        ("families/roberta", 1, [1.253_062_2, -2.026_901, -1.773_159_1]),
        ("families/distilbert", 0, [-0.187_008_04, -0.005_111_329, 0.839_947_94]),
    ];
    for (family, padding, expected) in cases {
        let model = Golden::load(family).model;
        let texts = model.batch(&[(&[0, 7, padding, 9, 2], &[0; 5])]).unwrap();
        let logits = model.forward(&texts, &model.open(), &ModelDropout::OFF);
        let gap = gap(&logits, &Tensor::from_slice(&expected).view([1, 3]));
        assert!(gap < TOLERANCE, "{family}: {gap:e}");
    }
}

/// A text for RoBERTa may have two tokens fewer than the table has rows: rows up to the padding token's are not used.
#[test]
fn inputs_that_a_model_cannot_read_are_refused() {
    let [roberta, vit] = ["families/roberta", "tokens-images/vit"].map(|family| Golden::load(family).model);
    let ids = [5; 33];
    assert!(roberta.batch(&[(&ids[..32], &[0; 32])]).is_ok());
    let fault = |result: Result<Inputs, core_masking::Error>, expected: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    fault(roberta.batch(&[(&ids, &[0; 33])]), "longer than the 32 positions");
    fault(roberta.images(&Tensor::zeros([1, 3, 24, 24], OPTIONS)), "reads texts, not images");
    fault(vit.batch(&[(&[1, 2], &[0, 0])]), "reads images, not texts");
    fault(vit.images(&Tensor::zeros([2, 3, 16, 24], OPTIONS)), "the model reads [batch, 3, 24, 24]");
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

/// Removing a head and sweeping it give the results of masking it. If layers share weights, a head is removed from all.
#[test]
fn removal_and_sweeps_give_what_masking_gives_and_the_self_check_passes() {
    for golden in Golden::all() {
        let (family, model, texts) = (golden.family, &golden.model, golden.examples().inputs);
        model.check_gates().unwrap();
        let one = ["self:1:2", "self:2:1"].map(|name| name.parse::<HeadSet>().unwrap());
        let turns: HeadSet = model.layout().heads().into_iter().filter(|id| id.head_index() == 1).collect();
        let sets = [one[0].clone(), one[1].clone(), turns.clone()];
        let variants = model.variants(&sets, false).unwrap();
        let (outputs, _) = model.sweep(&texts, &variants, 2, None);
        for (set, output) in sets.iter().zip(outputs) {
            let masked = golden.logits(&masking(model, set)).to_kind(Kind::Double);
            let gap_of_sweep = gap(&golden.shown(&output), &masked);
            assert!(gap_of_sweep < 1e-5, "{family}: sweep of {set}: {gap_of_sweep:e}");
            for removal in [Removal::Cut, Removal::Zeros] {
                let cut = model.without_heads(set, removal);
                if family == "more/albert" && *set != turns {
                    let refusal = cut.unwrap_err().to_string();
                    assert!(refusal.contains("can only be removed from all layers"), "{refusal}");
                    continue;
                }
                let cut = cut.unwrap();
                if family == "more/albert" && removal == Removal::Cut {
                    // as transformers reads it: of the first layer only
                    assert_eq!(cut.config().pruned_heads, [(0, [1].into())].into());
                }
                let folder = tempfile::tempdir().unwrap();
                cut.save(folder.path()).unwrap();
                let back = Classifier::load(folder.path(), OPTIONS).unwrap();
                assert_eq!(back.layout(), cut.layout());
                for model in [cut, back] {
                    let found = model.forward(&texts, &model.open(), &ModelDropout::OFF);
                    let gap = gap(&golden.shown(&found), &masked);
                    assert!(gap < 1e-5, "{family}: {removal:?} of {set}: {gap:e}");
                }
            }
        }
    }
}

/// `config.json` as transformers 5.24 writes it.
#[test]
fn both_forms_of_a_configuration_mean_the_same() {
    for golden in Golden::all().filter(|golden| golden.family.starts_with("more/")) {
        let file = golden.family.replace("more/", "more/config-5.24/") + ".json";
        let other = ClassifierConfig::read(&test_support::golden(&file).unwrap()).unwrap();
        assert_eq!(other, *golden.model.config(), "{file}");
    }
}

/// Reads a family's `config.json` with these changes.
fn read_with(family: &str, changes: &Value) -> Result<ClassifierConfig, String> {
    let (own, folder) = (test_support::golden(family).unwrap(), tempfile::tempdir().unwrap());
    golden::write_config(&own.join("config.json"), changes, folder.path());
    ClassifierConfig::read(&folder.path().join("config.json")).map_err(|fault| fault.to_string())
}

#[test]
fn unsupported_forms_are_refused_by_their_entry() {
    let types = |names: &[&str]| json!({ "layer_types": names });
    for (family, changes, expected) in [
        ("more/albert", json!({"num_hidden_groups": 2}), "num_hidden_groups is 2"),
        ("more/deberta-v2", json!({"relative_attention": "absent"}), "relative_attention is false"),
        ("more/deberta-v2", json!({"conv_kernel_size": 3}), "conv_kernel_size is 3"),
        ("more/deberta-v2", json!({"position_biased_input": "absent"}), "position_biased_input is true"),
        ("more/deberta-v2", json!({"pos_att_type": "c2p"}), r#"pos_att_type is ["c2p"]"#),
        ("more/deberta-v2", json!({"max_relative_positions": 5}), "must be at least 6"),
        ("more/deberta-v2", json!({"position_buckets": "absent"}), "position_buckets is -1"),
        ("more/modernbert", types(&["full_attention"]), "layer_types names 1 of 3 layers"),
        ("more/modernbert", types(&["chunked_attention"; 3]), "`chunked_attention`"),
        ("more/modernbert", json!({"local_attention": 0}), "local_attention (0) must be at least 1"),
        ("more/modernbert", json!({"local_rope_theta": 0.5}), "local_rope_theta (0.5) must be from 1.0"),
        ("more/modernbert", json!({"global_attn_every_n_layers": 0}), "every_n_layers must be from 1"),
        ("more/modernbert", json!({"norm_bias": true}), "norm_bias is true"),
        ("more/modernbert", json!({"classifier_pooling": "max"}), "unknown variant `max`"),
        ("tokens-images/deit", json!({"architectures": ["DeiTWithTeacher"]}), "two classification heads"),
        ("tokens-images/deit", json!({"image_size": 2}), "patch_size (4) is larger than image_size (2)"),
        ("tokens-images/deit", json!({"image_size": [16, "a"]}), "a number of pixels, or height and width"),
        ("tokens-images/deit", json!({"patch_size": 0}), "patch_size is 0"),
        ("families/roberta", json!({"num_labels": "many", "id2label": "absent"}), "num_labels must be a"),
    ] {
        let refusal = read_with(family, &changes).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn relevance_is_conserved_unless_norms_are_elsewhere() {
    for golden in Golden::all().filter(|golden| golden.model.config().image().is_none()) {
        let family = golden.family;
        let model = golden.model.to_kind(Kind::Double).unwrap();
        let texts = model.batch(&[(&[1, 13, 33, 8, 25], &[0; 5])]).unwrap();
        let batch = LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64]) };
        match model.relevance(&batch) {
            Ok(found) => assert!((found.left[0] - 1.0).abs() < 1e-9, "{family}: {}", found.left[0]),
            Err(refusal) => {
                let refusal = refusal.to_string();
                let expected = match family {
                    "more/modernbert" | "more/modernbert-mean" => "unlike `modernbert`",
                    _ if family.ends_with("-tokens") => "this model classifies tokens",
                    _ => panic!("{family}: {refusal}"),
                };
                assert!(refusal.contains(expected), "{refusal}");
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
        let logits = golden.logits(&golden.model.open().recorded_in(&record));
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

/// Saved under the names of transformers; a removed head's part of the bias of `Wqkv` is removed too.
#[test]
fn modernbert_may_have_biases() {
    let config = read_with("more/modernbert", &json!({ "attention_bias": true, "mlp_bias": true })).unwrap();
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
    let masked = model.probe(&masking(&model, &set));
    let gap = gap(&cut.probe(&cut.open()), &masked.to_kind(Kind::Double));
    assert!(gap < 1e-5, "{gap:e}");
    assert!(model.probe(&model.open()) != masked);
}

/// Layer types of ModernBERT are stored as a period, as in transformers 4, if possible, else as a list, as in transformers 5. A manual
/// `config.json` may count its classes, or their names may be numbers. Microsoft's folders list the terms of scores in one string,
/// separated by a bar.
#[test]
fn entries_may_have_several_forms() {
    let (slides, full) = ("sliding_attention", "full_attention");
    let found = |types: [&str; 3]| {
        let options = read_with("more/modernbert", &json!({ "layer_types": types })).unwrap().options;
        (options.sliding_window_pattern, options.layer_types.is_some())
    };
    assert_eq!(found([full, slides, full]), (Some(2), false));
    assert_eq!(found([full, full, full]), (Some(1), false));
    assert_eq!(found([full, slides, slides]), (Some(3), false));
    assert_eq!(found([slides, slides, full]), (Some(2), true));
    let counted = read_with("families/roberta", &json!({"num_labels": 4, "id2label": "absent"})).unwrap();
    assert_eq!(counted.labels(), ["LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"]);
    let numbers = json!({"id2label": {"0": 1, "1": "0"}, "label2id": {"1": "0"}});
    let numbered = read_with("families/roberta", &numbers).unwrap();
    assert_eq!((numbered.labels(), numbered.label2id["0"]), (vec!["1".to_owned(), "0".to_owned()], 1));
    let listed = Golden::load("more/deberta-v2").model;
    for terms in [json!("p2c|c2p"), json!("C2P | P2C"), json!(["c2p", "p2c"])] {
        let found = read_with("more/deberta-v2", &json!({ "pos_att_type": terms }));
        assert_eq!(found.unwrap(), *listed.config());
    }
}

/// Including the relative-position embeddings and the projection of narrow embeddings.
#[test]
fn all_tensors_of_each_family_get_a_gradient() {
    for golden in Golden::all() {
        let leaves = golden.model.weights().iter();
        let leaves = leaves.map(|(name, tensor)| (name.to_owned(), tensor.copy().set_requires_grad(true)));
        let weights = Weights::from_tensors(leaves);
        let model = Classifier::new(golden.model.config().clone(), weights.share()).unwrap();
        model.losses(&golden.examples(), &model.open(), &ModelDropout::OFF).mean(None).backward();
        let lacking = weights.iter().find(|(_, tensor)| !tensor.grad().defined());
        assert!(lacking.is_none(), "{}: {lacking:?}", golden.family);
    }
}
