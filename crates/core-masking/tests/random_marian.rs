//! Truths about any translator, on small models with random weights: decoding agrees with the forward pass, with
//! exhaustive search and with itself in other company; checkpoints come back, and faulty ones are refused.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod loud;

use std::path::Path;

use core_masking::loss::PairBatch;
use core_masking::{
    Activation, BeamSearch, Error, GatedModel, Gates, HeadSet, ModelDropout, Stopping, Translation,
    Translator, TranslatorConfig, Weights,
};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);
const END: u32 = 0;
const PAD: u32 = 1;

fn config(vocab_size: i64) -> TranslatorConfig {
    let json = serde_json::json!({
        "model_type": "marian", "vocab_size": vocab_size, "d_model": 12, "encoder_layers": 2,
        "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 3, "decoder_attention_heads": 2,
        "decoder_ffn_dim": 10, "activation_function": "swish", "max_position_embeddings": 20,
        "scale_embedding": true, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD,
    });
    serde_json::from_value(json).unwrap()
}

/// Weights large enough that outputs differ.
fn model(vocab_size: i64, seed: u64) -> Translator {
    loud::translator(config(vocab_size), seed)
}

fn search(beam: usize, stopping: Stopping, limit: usize) -> BeamSearch {
    BeamSearch { beam, length_penalty: 1.0, stopping, length_limit: (0.0, limit), rules: None }
}

fn open(model: &Translator) -> Gates {
    Gates::open(&model.layout(), model.options())
}

/// Log-probability of `target`, end symbol included, over its length: what a beam search maximises.
fn teacher_forced_score(model: &Translator, source: &[u32], target: &[u32]) -> f64 {
    let batch = PairBatch::new(model, &[source], &[target]);
    -model.losses(&batch, &open(model), &ModelDropout::OFF).double_value(&[0]) / target.len() as f64
}

/// How far the scores of two translations are apart; greedy search leaves none.
fn score_gap(one: &Translation, other: &Translation) -> f64 {
    assert_eq!(one.score.is_some(), other.score.is_some());
    one.score.zip(other.score).map_or(0.0, |(one, other)| (one - other).abs())
}

/// Every sequence of up to `limit` tokens that ends with the end symbol.
fn all_targets(words: std::ops::Range<u32>, limit: usize) -> Vec<Vec<u32>> {
    let mut open = vec![Vec::new()];
    let mut finished = Vec::new();
    for _ in 0..limit {
        finished.extend(open.iter().map(|prefix: &Vec<u32>| [prefix.as_slice(), &[END]].concat()));
        open = open
            .iter()
            .flat_map(|prefix| words.clone().map(move |word| [prefix.as_slice(), &[word]].concat()))
            .collect();
    }
    finished
}

/// A beam that is wide enough to drop nothing must find the best of all sequences: 3 words, up to 3 tokens, so at
/// most 3 * 3 hypotheses with 4 continuations each.
#[test]
fn a_wide_exact_beam_finds_the_best_of_all_translations() {
    for seed in 0..6 {
        let model = model(5, seed);
        let source = [3, 4, 2, END];
        let found = search(36, Stopping::Exact, 3).translate(&model, &[&source], &open(&model)).unwrap();
        let best = all_targets(2..5, 3)
            .into_iter()
            .map(|target| (teacher_forced_score(&model, &source, &target), target))
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .unwrap();
        if found[0].tokens.len() < 3 {
            assert_eq!([found[0].tokens.as_slice(), &[END]].concat(), best.1, "seed {seed}");
            assert!((found[0].score.unwrap() - best.0).abs() < 1e-6, "seed {seed}");
        } else {
            assert!(
                found[0].score.unwrap() > best.0,
                "seed {seed}: an unfinished hypothesis must be better to win"
            );
        }
    }
}

/// Whatever was said before, the next word of greedy search is the likeliest one that may be said: in double precision, and in
/// single precision, which other kernels compute.
#[test]
fn greedy_search_takes_the_likeliest_token_at_each_step() {
    let mut longest = 0;
    for seed in 0..12 {
        let wide = model(23, seed);
        let single = Translator::new(wide.config().clone(), wide.weights().to_kind(Kind::Float)).unwrap();
        for model in [single, wide] {
            let source = [5, 9, 22, 7, 13, END];
            let found = search(1, Stopping::Exact, 15).translate(&model, &[&source], &open(&model)).unwrap();
            let mut expected = vec![i64::from(PAD)];
            while expected.len() <= 15 && expected.last() != Some(&i64::from(END)) {
                expected.push(likeliest(&model, &source, &expected));
            }
            let said = expected[1..].iter().map(|&token| token as u32).filter(|&token| token != END);
            assert_eq!(found[0].tokens, said.collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(found[0].score, None);
            longest = longest.max(found[0].steps);
        }
    }
    assert!(longest > 5, "some translation must be long for the test to mean something");
}

/// The token with the greatest logit after these, padding left out.
fn likeliest(model: &Translator, source: &[u32], target: &[i64]) -> i64 {
    let batch = PairBatch::new(model, &[source], &[&[END]]);
    let (gates, off) = (open(model), ModelDropout::OFF);
    let memory = model.encode(&batch.source, &gates, &off);
    let target = Tensor::from_slice(target).unsqueeze(0);
    let hidden = model.decode(&target, &memory, &batch.source.bias, &gates, &off); // [1, target, d_model]
    let logits = model.logits(&hidden.select(1, -1)).squeeze_dim(0); // [vocab]
    logits
        .index_fill(0, &Tensor::from_slice(&[i64::from(PAD)]), f64::NEG_INFINITY)
        .argmax(0, false)
        .int64_value(&[])
}

/// The cache, the reordering of hypotheses and the masks must leave a score that one forward pass confirms.
#[test]
fn scores_of_translations_are_those_of_the_forward_pass() {
    for seed in 0..20 {
        let model = model(23, seed);
        let source = [5, 9, 22, 7, 13, END];
        let beam = 2 + seed as usize % 4;
        let found =
            &search(beam, Stopping::Exact, 18).translate(&model, &[&source], &open(&model)).unwrap()[0];
        // at the greatest length a hypothesis is kept as it stands
        let end: &[u32] = if found.tokens.len() == 18 { &[] } else { &[END] };
        let expected = teacher_forced_score(&model, &source, &[&found.tokens, end].concat());
        // hypotheses add their log-probabilities in single precision
        let score = found.score.unwrap();
        assert!((score - expected).abs() < 1e-5, "seed {seed}: {score} and {expected}");
    }
}

#[test]
fn company_in_the_batch_changes_nothing() {
    let model = model(23, 8);
    let sources: [&[u32]; 4] = [&[5, 9, END], &[END], &[4, 4, 4, 21, 8, 3, 17, END], &[7, END]];
    let sets: Vec<HeadSet> = ["enc-enc:1:2", "enc-dec:3:1", "dec-dec:2:2", "enc-enc:2:3"]
        .map(|name| HeadSet::from_iter([name.parse().unwrap()]))
        .into();
    let gates = |sets: &[HeadSet]| Gates::masking(&model.layout(), sets, OPTIONS).unwrap();
    let search = BeamSearch { length_limit: (1.0, 2), ..search(4, Stopping::Exact, 0) };
    let together = search.translate(&model, &sources, &gates(&sets)).unwrap();
    assert!(together[1].steps < together[2].steps, "a sentence must leave before a later one does");
    for row in 0..4 {
        let alone = search.translate(&model, &sources[row..=row], &gates(&sets[row..=row])).unwrap();
        assert_eq!(together[row].tokens, alone[0].tokens, "row {row}");
        let gap = score_gap(&together[row], &alone[0]);
        assert!(gap < 1e-5, "row {row}: {gap:e}");
    }
}

fn set(names: &[&str]) -> HeadSet {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// However many variants are rows of one batch and whatever an earlier call left; encoder layers below the first masked
/// head are shared, those above are not.
#[test]
fn head_sets_together_translate_as_alone() {
    let model = loud::translator(TranslatorConfig { max_position_embeddings: 50, ..config(23) }, 9);
    let sources: [&[u32]; 3] = [&[5, 9, END], &[4, 4, 4, 21, 8, 3, 17, END], &[7, END]];
    let sets = [
        set(&[]),
        set(&["enc-enc:2:3", "dec-dec:1:1"]),
        set(&["enc-dec:3:1", "enc-dec:1:1"]),
        set(&["enc-enc:1:2"]),
        set(&["dec-dec:2:2", "enc-dec:2:1"]),
    ];
    // a sentence of 8 tokens is likely to end within 32
    let search = search(3, Stopping::Exact, 40);
    let mut longest = 0;
    for rescale in [false, true] {
        let alone: Vec<_> = sets
            .iter()
            .map(|set| {
                let gates = Gates::masking(&model.layout(), std::slice::from_ref(set), OPTIONS).unwrap();
                let gates = if rescale { gates.rescaled(&model.layout()) } else { gates };
                search.translate(&model, &sources, &gates).unwrap()
            })
            .collect();
        for other in 1..sets.len() {
            assert_ne!(alone[0], alone[other], "the sets must differ for the test to mean something");
        }
        // of sentences whose translations are long, all go on at once, or two at a time
        for (together, at_once) in [(1, 2), (2, usize::MAX), (5, 2)] {
            let mut trunk = None;
            // the last ones begin below where the others stopped
            for range in [0..1, 2..3, 1..2, 0..5, 4..5] {
                let variants = model.variants(&sets[range.clone()], rescale).unwrap();
                let (found, left) =
                    search.sweep(&model, &sources, &variants, together, trunk.take(), &|| at_once).unwrap();
                trunk = Some(left);
                for (found, expected) in found.iter().zip(&alone[range]) {
                    for (found, expected) in found.iter().zip(expected) {
                        assert_eq!((&found.tokens, found.steps), (&expected.tokens, expected.steps));
                        assert!(score_gap(found, expected) < 1e-5);
                        longest = longest.max(found.steps);
                    }
                }
            }
        }
    }
    assert!(longest > 32, "a batch must outgrow what is likely for the test to mean something");
}

/// In single precision too, where keys and values are kept otherwise: sentences of all lengths, some of which must end with their
/// first token, each under gates of its own.
#[test]
fn sentences_that_end_at_different_times_translate_as_alone() {
    let single = (Kind::Float, Device::Cpu);
    let config = TranslatorConfig { max_position_embeddings: 50, ..config(23) };
    let weights = loud::translator(config.clone(), 9).weights().to_kind(Kind::Float);
    let model = Translator::new(config, weights).unwrap();
    let sources: Vec<Vec<u32>> = (0..60_u32)
        .map(|sentence| {
            (0..sentence % 19).map(|place| 2 + (sentence * 7 + place * 5) % 21).chain([END]).collect()
        })
        .collect();
    let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
    let sets: Vec<HeadSet> = (0..sources.len())
        .map(|sentence| set([&[][..], &["dec-dec:2:1"], &["enc-dec:1:2", "enc-enc:2:3"]][sentence % 3]))
        .collect();
    for (beam, length_limit) in [(1, (1.0, 0)), (3, (1.5, 0))] {
        let search = BeamSearch { length_limit, ..search(beam, Stopping::Exact, 0) };
        let translate = |range: std::ops::Range<usize>| {
            let gates = Gates::masking(&model.layout(), &sets[range.clone()], single).unwrap();
            search.translate(&model, &sources[range], &gates).unwrap()
        };
        let together = translate(0..60);
        let alone: Vec<_> = (0..60).flat_map(|sentence| translate(sentence..sentence + 1)).collect();
        let lengths: std::collections::BTreeSet<_> = alone.iter().map(|found| found.steps).collect();
        assert!(lengths.len() > 5, "sentences must end at different times for the test to mean something");
        for (sentence, (found, expected)) in together.iter().zip(&alone).enumerate() {
            assert_eq!(
                (&found.tokens, found.steps),
                (&expected.tokens, expected.steps),
                "{beam}, {sentence}"
            );
            assert!(score_gap(found, expected) < 1e-5, "{beam}, {sentence}");
        }
    }
}

#[test]
fn padding_adds_nothing_to_a_loss() {
    let model = model(23, 3);
    let (sources, targets): ([&[u32]; 2], [&[u32]; 2]) =
        ([&[5, END], &[8, 9, 7, END]], [&[4, 6, 3, END], &[9, END]]);
    let batch = PairBatch::new(&model, &sources, &targets);
    let together = model.losses(&batch, &open(&model), &ModelDropout::OFF);
    for row in 0..2 {
        let batch = PairBatch::new(&model, &sources[row..=row], &targets[row..=row]);
        let alone = model.losses(&batch, &open(&model), &ModelDropout::OFF).double_value(&[0]);
        let gap = (together.double_value(&[row as i64]) - alone).abs();
        assert!(gap < 1e-12, "row {row} differs by {gap:e}");
    }
}

/// Masking every head of a layer leaves the bias of W_o, which belongs to no head: the layer is then the model
/// whose W_o is zero.
#[test]
fn a_layer_without_heads_keeps_the_bias_of_its_output() {
    let model = model(23, 4);
    let batch = PairBatch::new(&model, &[&[5, 9, END]], &[&[4, END]]);
    let heads = ["enc-enc:2:1", "enc-enc:2:2", "enc-enc:2:3"].map(|name| name.parse().unwrap());
    let gates = Gates::masking(&model.layout(), &[HeadSet::from_iter(heads)], OPTIONS).unwrap();
    let masked = model.encode(&batch.source, &gates, &ModelDropout::OFF);

    let weights = model.weights().duplicate();
    let _ = weights.get("model.encoder.layers.1.self_attn.out_proj.weight").unwrap().zero_();
    let cut = Translator::new(model.config().clone(), weights).unwrap();
    let pruned = cut.encode(&batch.source, &open(&cut), &ModelDropout::OFF);
    let gap = (masked - pruned).abs().max().double_value(&[]);
    assert!(gap < 1e-12, "{gap:e}");
}

/// The smoothed loss written out over the whole vocabulary, against the shortcut that avoids it.
#[test]
fn label_smoothing_spreads_over_the_whole_vocabulary() {
    let model = model(23, 5);
    let batch = PairBatch::new(&model, &[&[5, 9, END], &[6, END]], &[&[4, END], &[7, 8, 9, END]]);
    let found = core_masking::loss::training_loss(&model, &batch, &open(&model), 0.1, &ModelDropout::OFF);
    let memory = model.encode(&batch.source, &open(&model), &ModelDropout::OFF);
    let hidden =
        model.decode(&batch.decoder_input, &memory, &batch.source.bias, &open(&model), &ModelDropout::OFF);
    let logits = model.logits(&hidden).view([-1, 23]);
    let expected = logits.cross_entropy_loss(
        &batch.labels.view([-1]),
        None::<Tensor>,
        tch::Reduction::Sum,
        i64::from(PAD),
        0.1,
    );
    let gap = (found - expected).abs().double_value(&[]);
    assert!(gap < 1e-10, "{gap:e}");
}

#[test]
fn a_logit_that_is_no_number_ends_the_search() {
    for (beam, spoilt) in [(1, f64::NAN), (3, f64::NAN), (1, f64::INFINITY), (3, f64::INFINITY)] {
        let sound = model(23, 4);
        let bias = |name: &str, tensor: &Tensor| match name {
            "final_logits_bias" => tensor.index_fill(1, &Tensor::from_slice(&[7_i64]), spoilt),
            _ => tensor.shallow_clone(),
        };
        let weights = sound.weights().iter().map(|(name, tensor)| (name.to_owned(), bias(name, tensor)));
        let model = Translator::new(sound.config().clone(), Weights::from_tensors(weights)).unwrap();
        let found = search(beam, Stopping::Exact, 5).translate(&model, &[&[5, 9, END]], &open(&model));
        assert!(matches!(found, Err(Error::NotANumber)), "beam {beam}, {spoilt}: {found:?}");
    }
}

#[test]
fn a_sentence_beyond_the_positions_is_refused() {
    let model = model(23, 6);
    let source = vec![5; 21];
    let error = search(2, Stopping::Early, 5).translate(&model, &[&source], &open(&model)).unwrap_err();
    assert_eq!(error.to_string(), "a source of 21 tokens is longer than the 20 positions of the model");
}

/// Saves in single precision, so the model that comes back is compared in single precision.
fn saved() -> (Translator, tempfile::TempDir) {
    let model = Translator::random(config(23), 7, (Kind::Float, Device::Cpu)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path()).unwrap();
    (model, folder)
}

fn refusal(folder: &Path) -> String {
    let message = Translator::load(folder, OPTIONS).unwrap_err().to_string();
    assert!(!message.contains('\n'), "not one line: {message}");
    message
}

/// Rewrites the checkpoint of a folder.
fn tamper(folder: &Path, change: impl FnOnce(&mut Vec<(String, Tensor)>)) {
    let path = folder.join("model.safetensors");
    let weights = Weights::read(&path, (Kind::Float, Device::Cpu)).unwrap();
    let mut tensors: Vec<_> = weights.iter().map(|(name, tensor)| (name.to_owned(), tensor.copy())).collect();
    change(&mut tensors);
    Weights::from_tensors(tensors).write(&path).unwrap();
}

#[test]
fn a_saved_model_comes_back_to_the_bit() {
    let (model, folder) = saved();
    let loaded = Translator::load(folder.path(), (Kind::Float, Device::Cpu)).unwrap();
    assert_eq!(loaded.config(), model.config());
    assert_eq!(loaded.config().activation_function, Activation::Swish);
    for ((name, left), (_, right)) in model.weights().iter().zip(loaded.weights().iter()) {
        assert_eq!(left, right, "{name}");
    }
}

#[test]
fn a_faulty_checkpoint_is_refused_by_file_and_tensor() {
    const TENSOR: &str = "model.decoder.layers.2.fc1.bias";
    type Change = fn(&mut Vec<(String, Tensor)>);
    let cases: [(Change, &str); 4] = [
        (
            |tensors| tensors.retain(|(name, _)| name != TENSOR),
            "lacks tensor `model.decoder.layers.2.fc1.bias`",
        ),
        (|tensors| tensors.push(("extra".to_owned(), Tensor::from(1.0f32))), "holds tensor `extra`, which"),
        (
            |tensors| {
                tensors
                    .iter_mut()
                    .filter(|(name, _)| name == TENSOR)
                    .for_each(|(_, t)| *t = t.narrow(0, 0, 7))
            },
            "`model.decoder.layers.2.fc1.bias` is [7], but the configuration asks for [10]",
        ),
        (
            |tensors| {
                tensors.iter_mut().filter(|(name, _)| name == TENSOR).for_each(|(_, t)| *t = &*t * f64::NAN);
            },
            "tensor `model.decoder.layers.2.fc1.bias` holds NaN or infinite values",
        ),
    ];
    for (change, expected) in cases {
        let (_, folder) = saved();
        tamper(folder.path(), change);
        let message = refusal(folder.path());
        assert!(message.contains(expected) && message.contains("model.safetensors"), "{message}");
    }
}

#[test]
fn a_torn_missing_or_foreign_checkpoint_is_refused() {
    let (_, folder) = saved();
    let weights = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    for length in [0, 5, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&weights, &bytes[..length]).unwrap();
        assert!(refusal(folder.path()).contains("is not a complete safetensors file"), "{length} bytes");
    }
    std::fs::remove_file(&weights).unwrap();
    assert!(refusal(folder.path()).contains("cannot read"));

    let config = folder.path().join("config.json");
    std::fs::write(&config, r#"{"model_type": "bert"}"#).unwrap();
    assert!(refusal(folder.path()).contains("model_type is `bert`, but it must be `marian` or `fsmt` here"));
    std::fs::write(&config, "{").unwrap();
    assert!(refusal(folder.path()).contains("cannot understand"));
    std::fs::remove_file(&config).unwrap();
    assert!(refusal(folder.path()).contains("cannot read"));
}

#[test]
fn an_impossible_configuration_is_refused() {
    type Change = fn(&mut TranslatorConfig);
    let cases: [(Change, &str); 5] = [
        (
            |config| config.encoder_attention_heads = 5,
            "encoder_attention_heads (5) does not divide d_model (12)",
        ),
        (|config| config.decoder_layers = 0, "decoder_layers must be from 1"),
        (|config| config.pad_token_id = 23, "pad_token_id is not below vocab_size (23)"),
        (
            |config| config.tie_word_embeddings = Some(false),
            "tie_word_embeddings is false, which is not supported",
        ),
        (|config| config.dropout = 1.0, "dropout (1) must be at least 0 and below 1"),
    ];
    for (change, expected) in cases {
        let mut config = config(23);
        change(&mut config);
        let fault = config.validate().unwrap_err();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

/// opus-mt folders repeat the shared embedding under the names of its copies.
#[test]
fn tied_copies_are_accepted_and_untied_ones_refused() {
    let (_, folder) = saved();
    let shared = |tensors: &[(String, Tensor)]| {
        tensors.iter().find(|(name, _)| name == "model.shared.weight").unwrap().1.copy()
    };
    tamper(folder.path(), |tensors| tensors.push(("lm_head.weight".to_owned(), shared(tensors))));
    Translator::load(folder.path(), OPTIONS).unwrap();
    tamper(folder.path(), |tensors| tensors.push(("lm_head.weight".to_owned(), shared(tensors) * 2.0)));
    assert!(refusal(folder.path()).contains("tensor `lm_head.weight` is not equal to `model.shared.weight`"));
}
