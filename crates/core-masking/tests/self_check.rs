//! A model that ignores its gates is refused when it is opened.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
use std::collections::BTreeMap;

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

fn bert() -> Classifier {
    Classifier::load(&test_support::golden("bert-random").unwrap(), OPTIONS).unwrap()
}

/// `golden_*.rs` check all families in single precision.
#[test]
fn models_that_are_read_correctly_pass_in_any_precision() {
    let translator = Translator::load(&test_support::golden("marian-random").unwrap(), OPTIONS).unwrap();
    for kind in [Kind::Double, Kind::BFloat16] {
        bert().to_kind(kind).unwrap().check_gates().unwrap();
        translator.to_kind(kind).unwrap().check_gates().unwrap();
    }
}

#[test]
fn a_model_whose_heads_are_mixed_up_or_that_computes_nan_is_refused() {
    let refusal = Misread(bert()).check_gates().unwrap_err().to_string();
    assert!(refusal.starts_with("masking head self:1:1 differs from zeros"), "{refusal}");
    let model = bert();
    let huge = model.weights().iter().map(|(name, tensor)| (name.to_owned(), tensor * 1e38));
    let huge = Classifier::new(model.config().clone(), Weights::from_tensors(huge)).unwrap();
    assert!(matches!(huge.check_gates(), Err(Error::NotANumber)));
}

#[test]
fn a_model_with_a_single_head_passes() {
    let others = bert().layout().heads().into_iter().skip(1).collect();
    let model = bert().without_heads(&others, Removal::Cut).unwrap();
    assert_eq!(model.layout().heads().len(), 1);
    model.check_gates().unwrap();
    let last = model.layout().heads().into_iter().collect();
    assert!(model.without_heads(&last, Removal::Cut).is_err(), "no head would be left");
}
