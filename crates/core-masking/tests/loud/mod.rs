//! A random translator whose attention is far from uniform.
use core_masking::{GatedModel, Translator, TranslatorConfig, Weights};
use tch::{Device, Kind, Tensor};

/// Creates the translator in double precision, with nonzero biases.
pub fn translator(config: TranslatorConfig, seed: u64) -> Translator {
    let quiet = Translator::random(config, seed, (Kind::Double, Device::Cpu)).unwrap();
    // deterministic noise with standard deviation 0.4
    let noise = |name: &str, tensor: &Tensor| {
        let places = Tensor::arange(tensor.numel() as i64, (Kind::Double, Device::Cpu));
        (places * 12.9 + name.len() as f64 + seed as f64).sin().view_as(tensor) * 0.4 * 2_f64.sqrt()
    };
    let louder = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor + noise(name, tensor));
    Translator::new(quiet.config().clone(), Weights::from_tensors(quiet.weights().iter().map(louder)))
        .unwrap()
}
