//! A GPU gives the CPU's results, which other tests compare with transformers. Skipped without a GPU.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
mod golden;

use std::collections::BTreeSet;
use std::path::Path;

use core_masking::language_model::Window;
use core_masking::loss::PairBatch;
use core_masking::{
    BeamSearch, Classifier, Error, GatedModel, HeadSet, LanguageModel, Measure, Stopping, Translator,
};
use golden::{CLASSIFIERS, LANGUAGE_MODELS, TRANSLATORS};
use tch::{Cuda, Device, Kind, Tensor, no_grad};

type Load<M> = fn(&Path, (Kind, Device)) -> Result<M, Error>;

/// Loads the model on the CPU and on the GPU, if both a GPU and the model are available.
fn both<M>(folder: &str, load: Load<M>) -> Option<[M; 2]> {
    if !Cuda::is_available() {
        test_support::skipped("libtorch finds no CUDA device");
        return None;
    }
    let path = golden::folder(folder)?;
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

/// Compares up to rounding, as a GPU sums in another order.
fn assert_equal(what: &str, gpu: &Tensor, cpu: &Tensor, tolerance: f64) {
    let [gpu, cpu] = [gpu, cpu].map(|tensor| tensor.to_device(Device::Cpu).to_kind(Kind::Double));
    assert_eq!(gpu.size(), cpu.size());
    let gap = ((gpu - &cpu).abs().max() / cpu.abs().max()).double_value(&[]);
    assert!(gap < tolerance, "{what}: {gap:e} of the maximum");
}

fn assert_probes_equal<M: GatedModel>(folder: &str, load: Load<M>) {
    let Some([cpu, gpu]) = both(folder, load) else { return };
    for set in sets(&cpu) {
        let probe = |model: &M| no_grad(|| model.probe(&golden::masking(model, &set)));
        assert_equal(&format!("{folder} without {set}"), &probe(&gpu), &probe(&cpu), 1e-4);
    }
    gpu.check_gates().unwrap();
}

#[test]
fn logits_are_equal_whichever_head_is_masked() {
    CLASSIFIERS.split_whitespace().for_each(|family| assert_probes_equal(family, Classifier::load));
    TRANSLATORS.split_whitespace().for_each(|family| assert_probes_equal(family, Translator::load));
    LANGUAGE_MODELS.split_whitespace().for_each(|family| assert_probes_equal(family, LanguageModel::load));
}

const SOURCES: [&[u32]; 3] = [&[7, 3, 9, 20, 0], &[4, 5, 0], &[33, 8, 2, 19, 11, 6, 0]];

#[test]
fn translations_are_equal_whichever_head_is_masked() {
    for (family, beam) in TRANSLATORS.split_whitespace().flat_map(|family| [(family, 1), (family, 5)]) {
        let Some(models) = both(family, Translator::load) else { continue };
        let (stopping, length_limit) = (Stopping::Exact, (1.0, 9));
        let search = BeamSearch { beam, length_penalty: 1.0, stopping, length_limit, rules: None };
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
        let measured = model.measure(&batch, &model.open(), &measures);
        let scores: Vec<f64> = measured[&Measure::Example].means().iter().map(|(_, score)| score).collect();
        Tensor::from_slice(&scores)
    });
    assert_equal("importance", &gpu, &cpu, 1e-4);
}

#[test]
fn sweeps_of_language_models_are_equal() {
    for family in LANGUAGE_MODELS.split_whitespace() {
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
