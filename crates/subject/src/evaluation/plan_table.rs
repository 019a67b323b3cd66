//! Plans of models that people have, on machines that they have: functions of sizes alone, without a weight.
use core_masking::{BeamSearch, ClassifierConfig, LanguageConfig, Measure, Stopping, TranslatorConfig};
use serde_json::json;
use tch::Device;
use training::{Machine, Memory};

use super::plan::{Load, Plan};
use crate::classification::memory as classifier;
use crate::language::memory as language;
use crate::precision::Bytes;
use crate::test_machine::machine;
use crate::translation::memory as translation;

const GIB: u64 = 1 << 30;
const WORKERS: [usize; 7] = [1, 2, 4, 8, 16, 24, 64];

/// Lengths around a median, spread as those of sentences are (log-logistic), none below `least` or above `most`.
fn lengths(count: usize, median: f64, [least, most]: [usize; 2]) -> Vec<usize> {
    let length = |place: usize| {
        let share = ((place * 7919 % count) as f64 + 0.5) / count as f64;
        ((median * (share / (1.0 - share)).powf(0.35)) as usize).clamp(least, most)
    };
    (0..count).map(length).collect()
}

fn translator(d_model: i64, heads: usize, d_ff: i64, vocabulary: i64, positions: i64) -> TranslatorConfig {
    let json = json!({
        "model_type": "marian", "vocab_size": vocabulary, "d_model": d_model, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": d_ff,
        "decoder_ffn_dim": d_ff, "activation_function": "relu", "max_position_embeddings": positions,
        "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 1,
    });
    serde_json::from_value(json).unwrap()
}

fn bert(layers: usize, width: i64, heads: usize) -> ClassifierConfig {
    let json = json!({
        "model_type": "bert", "vocab_size": 30_522, "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "intermediate_size": 4 * width, "hidden_act": "gelu",
        "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02,
    });
    serde_json::from_value(json).unwrap()
}

/// Qwen2.5-0.5B.
fn half_a_billion() -> LanguageConfig {
    let json = json!({
        "model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 896, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "hidden_act": "silu",
        "max_position_embeddings": 32_768, "tie_word_embeddings": true, "initializer_range": 0.02,
    });
    serde_json::from_value(json).unwrap()
}

fn search(beam: usize, length_limit: (f64, usize)) -> BeamSearch {
    BeamSearch { beam, length_penalty: 1.0, stopping: Stopping::Heuristic, length_limit, rules: None }
}

struct Case {
    name: &'static str,
    load: Load<'static>,
}

/// Scored and, where heads are measured on such texts, all measures at once.
fn cases() -> Vec<Case> {
    let all = Measure::of_passes().collect();
    let example = [Measure::Example].into_iter().collect();
    let opus = &translator(512, 8, 2048, 59_514, 512);
    let wmt_big = &translator(1024, 16, 4096, 44_512, 1024);
    let sentences = || lengths(1997, 32.0, [3, 200]);
    let single = Bytes::single(0);
    let qwen = &half_a_billion();
    let to_512 = || lengths(2000, 250.0, [128, 512]);
    [
        ("opus-mt-en-fr", translation::load(&search(4, (0.0, 511)), opus, single, sentences())),
        ("opus-mt-en-fr, measured", translation::measuring_load(opus, single, sentences(), &all)),
        ("WMT big", translation::load(&search(5, (0.0, 200)), wmt_big, single, sentences())),
        ("WMT big, measured", translation::measuring_load(wmt_big, single, sentences(), &all)),
        ("BERT base on MNLI", classifier::load(&bert(12, 768, 12), single, lengths(9815, 36.0, [8, 128]))),
        ("BERT base to 512", classifier::load(&bert(12, 768, 12), single, to_512())),
        (
            "BERT base, measured",
            classifier::measuring_load(&bert(12, 768, 12), single, lengths(2000, 36.0, [8, 128]), &all),
        ),
        ("BERT large at 512", classifier::load(&bert(24, 1024, 16), single, vec![512; 2000])),
        (
            "BERT large, measured",
            classifier::measuring_load(&bert(24, 1024, 16), single, lengths(2000, 36.0, [8, 128]), &example),
        ),
        ("0.5 B, documents", language::load(qwen, single, vec![1024; 300])),
        ("0.5 B, questions", language::load(qwen, single, lengths(24_000, 10.0, [5, 40]))),
        ("0.5 B, measured", language::measuring_load(qwen, single, vec![128; 500], &example)),
    ]
    .map(|(name, load)| Case { name, load })
    .into()
}

fn plan(load: &Load<'_>, threads: usize, gibibytes: u64) -> Plan {
    let machine = Machine { memory: Memory::BesideModel(gibibytes * GIB), threads, ..machine() };
    Plan::new(&machine, load).unwrap_or_else(|error| panic!("{threads} threads, {gibibytes} GiB: {error}"))
}

/// Tokens of a batch, padding included.
fn padded(load: &Load<'_>, batch: &[usize]) -> usize {
    batch.len() * batch.iter().map(|&row| load.lengths[row]).max().unwrap()
}

/// No model is refused from 8 GiB on, and where there is 1 GiB for each thread, all of them work, on batches of 512 tokens at
/// least, but for the last of a split and where single texts end.
#[test]
fn models_of_all_sizes_have_a_plan_on_machines_of_all_sizes() {
    for Case { name, load } in cases() {
        let whole = plan(&load, 1, 1024).batches;
        for threads in WORKERS {
            for gibibytes in [8, 16, 32, 64, 128, 256] {
                let plan = plan(&load, threads, gibibytes);
                let case = format!("{name}, {threads} threads, {gibibytes} GiB: {} work", plan.workers);
                if gibibytes < threads as u64 {
                    continue;
                }
                // Measuring BERT large by its attention weights takes more than 1 GiB for 512 tokens.
                assert!(plan.workers == threads || name.ends_with("measured"), "{case}");
                let pieces = load.batch_tokens / 512;
                for batch in &whole {
                    let own = plan.batches.iter().filter(|part| batch.contains(&part[0])).count();
                    assert!(
                        own <= pieces,
                        "{case}: a batch of {} tokens is cut into {own}",
                        padded(&load, batch)
                    );
                }
            }
        }
    }
}

/// How long threads take, in tokens, each of which takes the next batch whenever it is free.
fn span(costs: impl Iterator<Item = usize>, threads: usize) -> usize {
    let mut busy = vec![0; threads];
    for cost in costs {
        *busy.iter_mut().min().unwrap() += cost;
    }
    busy.into_iter().max().unwrap()
}

/// A sweep over 144 heads, with the intact model before them, for which all threads wait: they work at least ten elevenths of
/// the time.
#[test]
fn threads_do_the_same_work() {
    for Case { name, load } in cases().into_iter().filter(|case| !case.name.ends_with("measured")) {
        for threads in [2, 4, 8, 16] {
            let plan = plan(&load, threads, 16);
            let all: Vec<usize> = plan.batches.iter().map(|batch| padded(&load, batch)).collect();
            let sets = |count: usize| (0..count).flat_map(|_| all.iter().copied());
            let taken = (span(sets(1), plan.workers) + span(sets(144), plan.workers)) as f64;
            let fair = sets(145).sum::<usize>() as f64 / plan.workers as f64;
            assert!(taken <= 1.1 * fair, "{name}, {threads} threads: {taken} instead of {fair} tokens");
        }
    }
}

/// Batches, and with them numbers, are those of any machine on which one thread could take the largest of them.
#[test]
fn batches_do_not_depend_on_threads_where_there_is_memory() {
    for Case { name, load } in cases() {
        let whole = plan(&load, 1, 1024);
        assert_eq!(plan(&load, 2, 64).batches, whole.batches, "{name}");
        assert_eq!(whole.sets_per_batch, 1);
        let on_gpu = Machine { device: Device::Cuda(0), memory: Memory::BesideModel(64 * GIB), ..machine() };
        assert_eq!(Plan::new(&on_gpu, &load).unwrap().batches, whole.batches, "{name}");
    }
}
