//! A model that ignores its gates is refused when it is opened.
use std::collections::BTreeMap;
use std::path::Path;

use core_masking::classifier::LabelledBatch;
use core_masking::importance::Attended;
use core_masking::{
    Attention, Classifier, ClassifierConfig, Error, GatedModel, Gates, ModelDropout, Removal, Translator,
    Weights,
};
use tch::{Device, Kind, Tensor};

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);

/// A classifier that counts its heads from the wrong end.
#[derive(Debug)]
struct Misread(Classifier);

impl GatedModel for Misread {
    type Config = ClassifierConfig;
    type Examples = LabelledBatch;

    fn new(config: ClassifierConfig, weights: Weights) -> Result<Self, Error> {
        Classifier::new(config, weights).map(Self)
    }

    fn config(&self) -> &ClassifierConfig {
        self.0.config()
    }

    fn weights(&self) -> &Weights {
        self.0.weights()
    }

    fn losses(&self, batch: &LabelledBatch, gates: &Gates, dropout: &ModelDropout) -> Tensor {
        self.0.losses(batch, gates, dropout)
    }

    fn attended(&self, batch: &LabelledBatch) -> BTreeMap<Attention, Attended> {
        self.0.attended(batch)
    }

    fn probe(&self, gates: &Gates) -> Tensor {
        let reversed = gates.stacked().into_iter().map(|(attention, gates)| (attention, gates.flip([2])));
        self.0.probe(&Gates::from_stacked(&reversed.collect()))
    }
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support/golden").join(name)
}

#[test]
fn models_that_are_read_rightly_pass_in_any_precision() {
    for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
        let options = (kind, Device::Cpu);
        for name in ["bert-random", "families/roberta", "families/distilbert"] {
            Classifier::load(&golden(name), options).unwrap().check_gates().unwrap();
        }
        for name in ["marian-random", "families/fsmt"] {
            Translator::load(&golden(name), options).unwrap().check_gates().unwrap();
        }
    }
}

#[test]
fn a_model_whose_heads_are_mixed_up_is_refused() {
    let misread = Misread(Classifier::load(&golden("bert-random"), OPTIONS).unwrap());
    let refusal = misread.check_gates().unwrap_err().to_string();
    assert!(refusal.starts_with("masking head self:1:1 is not the same as zeros"), "{refusal}");
}

#[test]
fn a_model_with_a_single_head_passes() {
    let model = Classifier::load(&golden("bert-random"), OPTIONS).unwrap();
    let others = model.layout().heads().into_iter().skip(1).collect();
    let model = model.without_heads(&others, Removal::Cut).unwrap();
    assert_eq!(model.layout().heads().len(), 1);
    model.check_gates().unwrap();
    let last = model.layout().heads().into_iter().collect();
    let refusal = model.without_heads(&last, Removal::Cut).unwrap_err().to_string();
    assert_eq!(refusal, "no head would be left in the model");
}

#[test]
fn a_model_that_computes_nan_is_refused() {
    let model = Classifier::load(&golden("bert-random"), OPTIONS).unwrap();
    let huge = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor * 1e38));
    let huge = Classifier::new(model.config().clone(), Weights::from_tensors(huge)).unwrap();
    assert!(matches!(huge.check_gates(), Err(Error::NotANumber)));
}
