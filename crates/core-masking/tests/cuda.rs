//! A GPU computes what the CPU computes, whose agreement with transformers other tests see to. Skipped without one.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeSet;
use std::path::Path;

use core_masking::language_model::Window;
use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Classifier, Error, GatedModel, Gates, HeadSet, LanguageModel, Measure, Stopping, Translator,
};
use tch::{Cuda, Device, Kind, Tensor, no_grad};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../test-support/golden");
const LANGUAGE_MODELS: [&str; 6] = ["gpt2", "llama", "llama3", "mistral", "qwen2", "qwen3"];
const CLASSIFIERS: [&str; 3] = ["distilbert", "roberta", "xlm-roberta"];

type Load<M> = fn(&Path, (Kind, Device)) -> Result<M, Error>;

/// The same model on the CPU and on the GPU, if there is one.
fn both<M>(folder: &str, load: Load<M>) -> Option<[M; 2]> {
    if !Cuda::is_available() {
        test_support::skipped("libtorch finds no CUDA device");
        return None;
    }
    let load = |device| load(&Path::new(GOLDEN).join(folder), (Kind::Float, device)).unwrap();
    Some([Device::Cpu, Device::Cuda(0)].map(load))
}

/// No head masked, each one, and several.
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

/// Single precision sums in another order on a GPU.
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
    assert_probes_equal("bert-random", Classifier::load);
    assert_probes_equal("marian-random", Translator::load);
    assert_probes_equal("families/fsmt", Translator::load);
    for family in CLASSIFIERS {
        assert_probes_equal(&format!("families/{family}"), Classifier::load);
    }
    for family in LANGUAGE_MODELS {
        assert_probes_equal(&format!("families/{family}"), LanguageModel::load);
    }
}

const SOURCES: [&[u32]; 3] = [&[7, 3, 9, 20, 0], &[4, 5, 0], &[33, 8, 2, 19, 11, 6, 0]];

/// Greedy and with a beam, many head sets as rows of one batch.
#[test]
fn translations_are_equal_whichever_head_is_masked() {
    let Some(models) = both("marian-random", Translator::load) else { return };
    for beam in [1, 5] {
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
            let (found, _) =
                search.sweep(model, &SOURCES, &variants, together, None, &|| usize::MAX).unwrap();
            found.concat().into_iter().map(|translation| translation.tokens).collect::<Vec<_>>()
        });
        assert_eq!(gpu, cpu, "beam {beam}");
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

/// Shared work of sets, computed several at a time.
#[test]
fn sweeps_of_language_models_are_equal() {
    for family in LANGUAGE_MODELS {
        let Some(models) = both(&format!("families/{family}"), LanguageModel::load) else { return };
        let [cpu, gpu] = models.each_ref().map(|model| {
            let windows = SOURCES.map(|tokens| Window { tokens, context: 1 });
            let batch = model.batch(&windows).unwrap();
            let variants = model.variants(&sets(model), false).unwrap();
            let (found, _) = no_grad(|| model.sweep(&batch, &variants, 8, None));
            Tensor::stack(&found, 0)
        });
        assert_equal(family, &gpu, &cpu, 1e-5);
    }
}
