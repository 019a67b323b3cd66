//! A GPU gives the CPU's results, which other tests compare with transformers. Skipped without a GPU.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::path::Path;

use core_masking::language_model::Window;
use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Classifier, Error, GatedModel, Gates, HeadSet, LanguageModel, Measure, Stopping, Translator,
};
use tch::{Cuda, Device, Kind, Tensor, no_grad};

const LANGUAGE_MODELS: [&str; 20] = [
    "families/gpt2",
    "families/llama",
    "families/llama3",
    "families/mistral",
    "families/qwen2",
    "families/qwen3",
    "more/llama-bias",
    "more/llama-head_dim",
    "more/granite",
    "more/starcoder2",
    "more/smollm3",
    "more/olmo2",
    "more/phi3-partial",
    "more/gpt_neox",
    "more/gpt_neox-serial",
    "more/opt",
    "more/gemma",
    "more/gemma2",
    "more/gemma3_text",
    "more/qwen3_moe",
];
const CLASSIFIERS: [&str; 12] = [
    "bert-random",
    "families/distilbert",
    "families/roberta",
    "families/xlm-roberta",
    "more/camembert",
    "more/electra",
    "more/mpnet",
    "more/albert",
    "more/deberta-v2",
    "more/modernbert",
    "tokens-images/vit",
    "tokens-images/deit",
];
const TRANSLATORS: [&str; 10] = [
    "marian-random",
    "families/fsmt",
    "more/marian-two-sizes",
    "more/bart",
    "more/mbart",
    "more/m2m_100",
    "more/pegasus",
    "more/t5",
    "more/t5-v1.1",
    "more/mt5",
];

type Load<M> = fn(&Path, (Kind, Device)) -> Result<M, Error>;

/// Loads the model on the CPU and on the GPU, if both a GPU and the model are available.
fn both<M>(folder: &str, load: Load<M>) -> Option<[M; 2]> {
    if !Cuda::is_available() {
        test_support::skipped("libtorch finds no CUDA device");
        return None;
    }
    let path = test_support::golden(folder)?;
    let load = |device| load(&path, (Kind::Float, device)).unwrap();
    Some([Device::Cpu, Device::Cuda(0)].map(load))
}

/// Returns no head, each head, and several heads.
fn sets<M: GatedModel>(model: &M) -> Vec<HeadSet> {
    let heads = model.layout().heads();
    let mut sets: Vec<HeadSet> = heads.iter().map(|&id| HeadSet::from_iter([id])).collect();
    sets.push(HeadSet::none());
    sets.push(heads.into_iter().step_by(2).collect());
    sets
}

fn gates<M: GatedModel>(model: &M, set: &HeadSet) -> Gates {
    Gates::masking(&model.layout(), std::slice::from_ref(set), model.options()).unwrap()
}

fn on_cpu(tensor: &Tensor) -> Tensor {
    tensor.to_device(Device::Cpu).to_kind(Kind::Double)
}

/// Compares up to rounding, as a GPU sums in another order.
fn assert_equal(what: &str, gpu: &Tensor, cpu: &Tensor, tolerance: f64) {
    let (gpu, cpu) = (on_cpu(gpu), on_cpu(cpu));
    assert_eq!(gpu.size(), cpu.size());
    let gap = ((gpu - &cpu).abs().max() / cpu.abs().max()).double_value(&[]);
    assert!(gap < tolerance, "{what}: {gap:e} of the greatest");
}

fn assert_probes_equal<M: GatedModel>(folder: &str, load: Load<M>) {
    let Some([cpu, gpu]) = both(folder, load) else { return };
    for set in sets(&cpu) {
        let probe = |model: &M| no_grad(|| model.probe(&gates(model, &set)));
        assert_equal(&format!("{folder} without {set}"), &probe(&gpu), &probe(&cpu), 1e-4);
    }
    gpu.check_gates().unwrap();
}

#[test]
fn logits_are_equal_whichever_head_is_masked() {
    CLASSIFIERS.into_iter().for_each(|family| assert_probes_equal(family, Classifier::load));
    TRANSLATORS.into_iter().for_each(|family| assert_probes_equal(family, Translator::load));
    LANGUAGE_MODELS.into_iter().for_each(|family| assert_probes_equal(family, LanguageModel::load));
}

const SOURCES: [&[u32]; 3] = [&[7, 3, 9, 20, 0], &[4, 5, 0], &[33, 8, 2, 19, 11, 6, 0]];

/// Greedy and beam search, with many head sets as rows of one batch.
#[test]
fn translations_are_equal_whichever_head_is_masked() {
    for (family, beam) in TRANSLATORS.into_iter().flat_map(|family| [(family, 1), (family, 5)]) {
        let Some(models) = both(family, Translator::load) else { continue };
        let search = BeamSearch {
            beam,
            length_penalty: 1.0,
            stopping: Stopping::Exact,
            length_limit: (1.0, 9),
            rules: None,
        };
        let [cpu, gpu] = models.each_ref().map(|model| {
            let variants = model.variants(&sets(model), false).unwrap();
            let together = if model.options().1 == Device::Cpu { 1 } else { 8 };
            let (found, _) = search.sweep(model, &SOURCES, &variants, together, None).unwrap();
            found.concat().into_iter().map(|translation| translation.tokens).collect::<Vec<_>>()
        });
        assert_eq!(gpu, cpu, "{family}, beam {beam}");
    }
}

#[test]
fn importance_is_equal() {
    let Some(models) = both("marian-random", Translator::load) else { return };
    let measures = BTreeSet::from([Measure::Example]);
    let [cpu, gpu] = models.each_ref().map(|model| {
        let batch = PairBatch::new(model, &SOURCES, &SOURCES);
        let measured = model.measure(&batch, &Gates::open(&model.layout(), model.options()), &measures);
        let scores: Vec<f64> = measured[&Measure::Example].means().iter().map(|(_, score)| score).collect();
        Tensor::from_slice(&scores)
    });
    assert_equal("importance", &gpu, &cpu, 1e-4);
}

/// Sets that share computation, several at a time.
#[test]
fn sweeps_of_language_models_are_equal() {
    for family in LANGUAGE_MODELS {
        let Some(models) = both(family, LanguageModel::load) else { continue };
        let [cpu, gpu] = models.each_ref().map(|model| {
            let windows = SOURCES.map(|tokens| Window { tokens, context: 1 });
            let batch = model.batch(&windows).unwrap();
            let variants = model.variants(&sets(model), false).unwrap();
            // with zeros, and with the texts' own head outputs in place of masked ones
            let own = no_grad(|| model.replacement(&batch));
            let resampled = model.variants(&sets(model), false).unwrap().replaced_by(Some(&own));
            let found = [variants, resampled]
                .iter()
                .flat_map(|variants| no_grad(|| model.sweep(&batch, variants, 8, None)).0)
                .collect::<Vec<_>>();
            Tensor::stack(&found, 0)
        });
        assert_equal(family, &gpu, &cpu, 1e-5);
    }
}
