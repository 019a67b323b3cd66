//! Plans of models that people have, on machines that they have: functions of sizes alone, without a weight.
use std::collections::BTreeSet;

use core_masking::{BeamSearch, ClassifierConfig, LanguageConfig, Measure, Stopping, TranslatorConfig};
use serde_json::json;
use tch::Device;
use training::{Machine, Memory};

use super::{Need, Plan, Purpose};
use crate::classification::memory as classifier;
use crate::language::memory as language;
use crate::models::Bytes;
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

/// Segments that a model is to be planned for.
struct Case<'a> {
    name: &'static str,
    need: Need<'a>,
    lengths: Vec<usize>,
}

/// Calls `test` on models of all tasks, scored and, where heads are measured on such texts, measured.
fn for_each_case(test: impl Fn(&Case<'_>)) {
    let single = Bytes { exact: 4, quickest: 4, model: 0 };
    let (all, example): (BTreeSet<Measure>, _) =
        (Measure::of_passes().collect(), BTreeSet::from([Measure::Example]));
    let (scoring, all, example) = (Purpose::Scoring, Purpose::Measuring(&all), Purpose::Measuring(&example));
    let (opus, wmt) = (translator(512, 8, 2048, 59_514, 512), translator(1024, 16, 4096, 44_512, 1024));
    let (of_opus, of_wmt) = (search(4, (0.0, 511)), search(5, (0.0, 200)));
    let (base, large, qwen) = (bert(12, 768, 12), bert(24, 1024, 16), half_a_billion());
    let sentences = lengths(1997, 32.0, [3, 200]);
    let pairs = lengths(2000, 36.0, [8, 128]);
    for (name, need, lengths) in [
        ("opus-mt-en-fr", translation::need(&of_opus, &opus, single, scoring), sentences.clone()),
        ("opus-mt-en-fr, measured", translation::need(&of_opus, &opus, single, all), sentences.clone()),
        ("WMT big", translation::need(&of_wmt, &wmt, single, scoring), sentences.clone()),
        ("WMT big, measured", translation::need(&of_wmt, &wmt, single, all), sentences),
        ("BERT base on MNLI", classifier::need(&base, single, scoring), lengths(9815, 36.0, [8, 128])),
        ("BERT base to 512", classifier::need(&base, single, scoring), lengths(2000, 250.0, [128, 512])),
        ("BERT base, measured", classifier::need(&base, single, all), pairs.clone()),
        ("BERT large at 512", classifier::need(&large, single, scoring), vec![512; 2000]),
        ("BERT large, measured", classifier::need(&large, single, example), pairs),
        ("0.5 B, documents", language::need(&qwen, single, scoring), vec![1024; 300]),
        ("0.5 B, questions", language::need(&qwen, single, scoring), lengths(24_000, 10.0, [5, 40])),
        ("0.5 B, measured", language::need(&qwen, single, example), vec![128; 500]),
    ] {
        test(&Case { name, need, lengths });
    }
}

fn plan(case: &Case<'_>, threads: usize, gibibytes: u64) -> Plan {
    let machine = Machine { memory: Memory::BesideModel(gibibytes * GIB), threads, ..machine() };
    Plan::new(&machine, &case.need, &case.lengths)
}

/// From 1 GiB for each thread on, all of them work, on batches of 512 tokens at least, but for the last of a split and where
/// single texts end.
#[test]
fn all_threads_have_work_on_machines_of_all_sizes() {
    for_each_case(|case| {
        let whole = plan(case, 1, 1024).batches;
        for threads in WORKERS {
            for gibibytes in [8, 16, 32, 64, 128, 256].into_iter().filter(|&memory| memory >= threads as u64)
            {
                let plan = plan(case, threads, gibibytes);
                let told =
                    format!("{}, {threads} threads, {gibibytes} GiB: {} work", case.name, plan.workers);
                // Measuring BERT large by its attention weights takes more than 1 GiB for 512 tokens.
                assert!(plan.workers == threads || case.name.ends_with("measured"), "{told}");
                for batch in &whole {
                    let own = plan.batches.iter().filter(|part| batch.contains(&part[0])).count();
                    assert!(own <= case.need.batch_tokens / 512, "{told}: a batch is cut into {own}");
                }
            }
        }
    });
}

/// Batches, and with them numbers, are those of any machine on which one thread could take the largest of them.
#[test]
fn batches_do_not_depend_on_threads_where_there_is_memory() {
    for_each_case(|case| {
        let whole = plan(case, 1, 1024);
        assert_eq!(plan(case, 2, 64).batches, whole.batches, "{}", case.name);
        assert_eq!(whole.sets_per_batch, 1);
        let on_gpu = Machine { device: Device::Cuda(0), memory: Memory::BesideModel(64 * GIB), ..machine() };
        let on_gpu = Plan::new(&on_gpu, &case.need, &case.lengths);
        assert_eq!(on_gpu.batches, whole.batches, "{}", case.name);
    });
}
