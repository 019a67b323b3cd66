//! Properties of any translator, tested on small random models: decoding agrees with the forward pass and with exhaustive search, and does
//! not depend on the batch.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod random;

use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Error, GatedModel, Gates, HeadSet, ModelDropout, Stopping, Translation, Translator,
    TranslatorConfig, Weights,
};
use random::{END, PAD, loud, marian, masking};
use tch::{Kind, Tensor};

fn search(beam: usize, stopping: Stopping, limit: usize) -> BeamSearch {
    BeamSearch { beam, length_penalty: 1.0, stopping, length_limit: (0.0, limit), rules: None }
}

/// Returns the log-probability of `target`, including the EOS token, divided by its length: the objective of beam search.
fn teacher_forced_score(model: &Translator, source: &[u32], target: &[u32]) -> f64 {
    let batch = PairBatch::new(model, &[source], &[target]);
    -model.losses(&batch, &model.open(), &ModelDropout::OFF).double_value(&[0]) / target.len() as f64
}

/// Asserts that two translations are equal, their scores up to rounding; greedy search has none.
fn assert_same(found: &Translation, expected: &Translation, what: &str) {
    assert_eq!((&found.tokens, found.steps), (&expected.tokens, expected.steps), "{what}");
    assert_eq!(found.score.is_some(), expected.score.is_some(), "{what}");
    let gap = found.score.zip(expected.score).map_or(0.0, |(one, other)| (one - other).abs());
    assert!(gap < 1e-5, "{what}: {gap:e}");
}

/// Returns every sequence of up to `limit` tokens that ends with the EOS token.
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

/// A beam wide enough to drop nothing must find the best of all sequences: 3 words, up to 3 tokens, so at most 3 * 3 hypotheses with 4
/// continuations each.
#[test]
fn a_wide_exact_beam_finds_the_best_of_all_translations() {
    for seed in 0..6 {
        let model = loud(marian(5), seed);
        let source = [3, 4, 2, END];
        let found = search(36, Stopping::Exact, 3).translate(&model, &[&source], &model.open()).unwrap();
        let best = all_targets(2..5, 3)
            .into_iter()
            .map(|target| (teacher_forced_score(&model, &source, &target), target))
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .unwrap();
        if found[0].tokens.len() < 3 {
            assert_eq!([found[0].tokens.as_slice(), &[END]].concat(), best.1, "seed {seed}");
            assert!((found[0].score.unwrap() - best.0).abs() < 1e-6, "seed {seed}");
        } else {
            assert!(found[0].score.unwrap() > best.0, "seed {seed}: an unfinished one must be better to win");
        }
    }
}

fn set(heads: &str) -> HeadSet {
    if heads.is_empty() { HeadSet::none() } else { heads.parse().unwrap() }
}

/// For any number of variants per batch and with or without an earlier call's prefix cache. Only encoder layers before the first masked
/// head are shared.
#[test]
fn head_sets_together_translate_as_alone() {
    let wide = loud(TranslatorConfig { max_position_embeddings: 50, ..marian(23) }, 9);
    let sources: [&[u32]; 3] = [&[5, 9, END], &[4, 4, 4, 21, 8, 3, 17, END], &[7, END]];
    let sets =
        ["", "enc-enc:2:3+dec-dec:1:1", "enc-dec:3:1+enc-dec:1:1", "enc-enc:1:2", "dec-dec:2:2+enc-dec:2:1"];
    let sets = sets.map(set);
    let search = search(3, Stopping::Exact, 40);
    for (rescale, kind) in [(false, Kind::Float), (true, Kind::Double)] {
        let model = wide.to_kind(kind).unwrap();
        let alone: Vec<_> = sets
            .iter()
            .map(|set| {
                let gates = masking(&model, set);
                let gates = if rescale { gates.rescaled(&model.layout()) } else { gates };
                search.translate(&model, &sources, &gates).unwrap()
            })
            .collect();
        for other in 1..sets.len() {
            assert_ne!(alone[0], alone[other], "the sets must differ for the test to mean something");
        }
        for together in [1, 2, 5] {
            let mut prefix = None;
            // the last sets start before the layer at which earlier ones stopped
            for range in [0..1, 2..3, 1..2, 0..5, 4..5] {
                let variants = model.variants(&sets[range.clone()], rescale).unwrap();
                let (found, left) =
                    search.sweep(&model, &sources, &variants, together, prefix.take()).unwrap();
                prefix = Some(left);
                for (found, expected) in found.iter().zip(&alone[range]) {
                    for (found, expected) in found.iter().zip(expected) {
                        assert_same(found, expected, &format!("{together} together"));
                    }
                }
            }
        }
    }
}

/// In single precision, which uses another cache. Sentences have all lengths, some must end with their first token, and their gates
/// differ.
#[test]
fn sentences_that_end_at_different_times_translate_as_alone() {
    let wide = loud(TranslatorConfig { max_position_embeddings: 50, ..marian(23) }, 9);
    let model = wide.to_kind(Kind::Float).unwrap();
    let sources: Vec<Vec<u32>> = (0..60_u32)
        .map(|sentence| {
            (0..sentence % 19).map(|place| 2 + (sentence * 7 + place * 5) % 21).chain([END]).collect()
        })
        .collect();
    let sources: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
    let sets: Vec<HeadSet> = (0..sources.len())
        .map(|sentence| set(["", "dec-dec:2:1", "enc-dec:1:2+enc-enc:2:3"][sentence % 3]))
        .collect();
    for (beam, length_limit) in [(1, (1.0, 0)), (3, (1.5, 0))] {
        let search = BeamSearch { length_limit, ..search(beam, Stopping::Exact, 0) };
        let translate = |range: std::ops::Range<usize>| {
            let gates = Gates::masking(&model.layout(), &sets[range.clone()], model.options()).unwrap();
            search.translate(&model, &sources[range], &gates).unwrap()
        };
        let together = translate(0..60);
        let alone: Vec<_> = (0..60).flat_map(|sentence| translate(sentence..sentence + 1)).collect();
        let lengths: std::collections::BTreeSet<_> = alone.iter().map(|found| found.steps).collect();
        assert!(lengths.len() > 5, "sentences must end at different times for the test to mean something");
        for (sentence, (found, expected)) in together.iter().zip(&alone).enumerate() {
            assert_same(found, expected, &format!("{beam}, {sentence}"));
        }
    }
}

#[test]
fn label_smoothing_spreads_over_the_whole_vocabulary() {
    let model = loud(marian(23), 5);
    let batch = PairBatch::new(&model, &[&[5, 9, END], &[6, END]], &[&[4, END], &[7, 8, 9, END]]);
    let found = core_masking::loss::training_loss(&model, &batch, &model.open(), 0.1, &ModelDropout::OFF);
    let memory = model.encode(&batch.source, &model.open(), &ModelDropout::OFF);
    let hidden =
        model.decode(&batch.decoder_input, &memory, &batch.source.bias, &model.open(), &ModelDropout::OFF);
    let logits = model.logits(&hidden).view([-1, 23]);
    let (labels, sum) = (batch.labels.view([-1]), tch::Reduction::Sum);
    let expected = logits.cross_entropy_loss(&labels, None::<Tensor>, sum, i64::from(PAD), 0.1);
    let gap = (found - expected).abs().double_value(&[]);
    assert!(gap < 1e-10, "{gap:e}");
}

#[test]
fn a_logit_that_is_not_finite_ends_the_search() {
    for (beam, spoilt) in [(1, f64::NAN), (3, f64::NAN), (1, f64::INFINITY), (3, f64::INFINITY)] {
        let sound = loud(marian(23), 4);
        let bias = |name: &str, tensor: &Tensor| match name {
            "final_logits_bias" => tensor.index_fill(1, &Tensor::from_slice(&[7_i64]), spoilt),
            _ => tensor.shallow_clone(),
        };
        let weights = sound.weights().iter().map(|(name, tensor)| (name.to_owned(), bias(name, tensor)));
        let model = Translator::new(sound.config().clone(), Weights::from_tensors(weights)).unwrap();
        let found = search(beam, Stopping::Exact, 5).translate(&model, &[&[5, 9, END]], &model.open());
        assert!(matches!(found, Err(Error::NotANumber)), "beam {beam}, {spoilt}: {found:?}");
    }
}

#[test]
fn a_sentence_beyond_the_positions_is_refused() {
    let model = loud(marian(23), 6);
    let source = vec![5; 21];
    let error = search(2, Stopping::Early, 5).translate(&model, &[&source], &model.open()).unwrap_err();
    assert!(error.to_string().contains("longer than the 20 positions"), "{error}");
}
