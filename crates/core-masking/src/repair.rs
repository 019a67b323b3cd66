//! Repair without training: factors for the kept heads of a module that bring its output as close as possible to the full model's.
//! Kwon et al. (2022), Section 4.3, <https://arxiv.org/abs/2204.09656>.
//!
//! Differs from the paper: only heads are removed and rescaled here, including those of the first layer; the target is the output of the
//! attention module, without the change of the residual stream before it; and there is no constant column, whose factor the authors' code
//! drops.
use tch::{Device, Kind, Tensor};

use crate::importance::Attended;
use crate::{HeadId, HeadScores, HeadSet};

/// The paper's damping, which keeps factors near 1 if the data does not determine them.
const DAMPING: f64 = 1.0;

/// The bound of the authors' code: if a factor exceeds it, this module and all later ones are left unchanged.
const GREATEST: f64 = 10.0;

/// Second moments of a module's head outputs over real positions, which add up over batches.
#[derive(Debug)]
pub struct Moments {
    own: Tensor,   // [heads * d_head, heads * d_head], of the masked model with itself
    cross: Tensor, // of the masked model with the full model
}

impl Moments {
    /// Sums over head outputs of the masked (`lacking`) and of the full model (`full`), `[batch, heads, query, d_head]`.
    pub(crate) fn new(lacking: &Tensor, full: &Tensor, attended: &Attended) -> Self {
        let real = attended.queries.to_kind(Kind::Double).unsqueeze(-1); // [batch, query, 1]
        let rows = |contexts: &Tensor| {
            let together = contexts.to_kind(Kind::Double).transpose(1, 2).flatten(2, 3); // [batch, query, heads * d_head]
            (together * &real).flatten(0, 1)
        };
        let (lacking, full) = (rows(lacking), rows(full));
        let with = |other: &Tensor| lacking.tr().matmul(other).to_device(Device::Cpu);
        Self { own: with(&lacking), cross: with(&full) }
    }

    /// Adds the moments of another batch.
    pub fn merge(&mut self, other: &Self) {
        self.own = &self.own + &other.own;
        self.cross = &self.cross + &other.cross;
    }

    /// Returns the factors s of the module's `present` heads that are not `masked`: the least-squares solution of
    /// `Σ_p |Σ_h s_h W_o^h c'_h - Σ_h W_o^h c_h|²` over positions p, with head outputs c' of the masked and c of the full model. `None` if
    /// a factor exceeds the bound.
    ///
    /// - `output`: W_o, `[d_model, present * d_head]`
    pub(crate) fn scales(&self, output: &Tensor, present: &[HeadId], masked: &HeadSet) -> Option<HeadScores> {
        let output = output.detach().to_device(Device::Cpu).to_kind(Kind::Double);
        let d_head = output.size()[1] / present.len() as i64;
        let places: Vec<i64> = present.iter().map(|id| id.head_index() as i64).collect();
        // [heads, heads]: inner products of the contributions of each pair of heads, summed over positions
        let written = |moments: &Tensor| {
            let heads = Tensor::from_slice(&places);
            let blocks = moments.unflatten(0, [-1, d_head]).unflatten(2, [-1, d_head]); // [heads, d_head, heads, d_head]
            let blocks = blocks.index_select(0, &heads).index_select(2, &heads);
            let products = output.tr().matmul(&output).view_as(&blocks);
            (blocks * products).sum_dim_intlist([1, 3].as_slice(), false, None)
        };
        let is_kept = |place: &&i64| !masked.contains(present[**place as usize]);
        let all: Vec<i64> = (0..present.len() as i64).collect();
        let kept: Vec<i64> = all.iter().filter(is_kept).copied().collect();
        if kept.is_empty() {
            return Some(HeadScores::default());
        }
        let of_kept = Tensor::from_slice(&kept);
        let gram = written(&self.own).index_select(0, &of_kept).index_select(1, &of_kept);
        let wanted = written(&self.cross).index_select(0, &of_kept).sum_dim_intlist(1, false, None);
        // as in the authors' code, damping is added to the squared eigenvalues of the Gram matrix
        let missing = wanted - gram.sum_dim_intlist(1, false, None);
        let (values, vectors) = gram.linalg_eigh("L");
        let inverse = &values / (values.square() + DAMPING);
        let change = vectors.mv(&(inverse * vectors.tr().mv(&missing)));
        let scales = crate::to_vec::<f64>(&(change + 1.0));
        if scales.iter().any(|scale| scale.is_nan() || scale.abs() > GREATEST) {
            return None;
        }
        Some(kept.iter().map(|&place| present[place as usize]).zip(scales).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::LabelledBatch;
    use crate::{
        Attention, Classifier, ClassifierConfig, GatedModel, Gates, ModelConfig, ModelDropout, Weights,
    };
    use tch::no_grad;

    const OPTIONS: (Kind, Device) = (Kind::Double, Device::Cpu);

    fn heads(count: usize) -> Vec<HeadId> {
        (1..=count).map(|head| format!("self:1:{head}").parse().unwrap()).collect()
    }

    /// Outputs of 3 heads of width 2 at 40 positions, of which the last 10 are padding, and W_o to width 5.
    fn linear(seed: i64) -> (Tensor, Attended, Tensor) {
        tch::manual_seed(seed);
        let contexts = Tensor::randn([1, 3, 40, 2], OPTIONS) * 10.0;
        let queries = Tensor::arange(40, (Kind::Int64, Device::Cpu)).lt(30).unsqueeze(0);
        let attended = Attended {
            visible: vec![queries.shallow_clone()],
            excluded: queries.logical_not(),
            queries,
            last_by_example: false,
            examples: None,
        };
        (contexts, attended, Tensor::randn([5, 6], OPTIONS))
    }

    fn scales(
        lacking: &Tensor,
        full: &Tensor,
        (attended, output): (&Attended, &Tensor),
        masked: &str,
    ) -> Vec<f64> {
        let moments = Moments::new(lacking, full, attended);
        let found = moments.scales(output, &heads(3), &masked.parse().unwrap());
        found.unwrap().iter().map(|(_, scale)| scale).collect()
    }

    /// Least squares by hand: the columns of Y are the contributions of the kept heads, after earlier layers lost a third of theirs, t is
    /// the sum of all contributions in the full model, and `s = 1 + (A² + I)⁻¹ A (Yᵀ t - A 1)` with `A = Yᵀ Y`, over all 30 real positions.
    #[test]
    fn the_closed_form_of_a_linear_model_is_found() {
        let (full, attended, output) = linear(1);
        let lacking = &full * (2.0 / 3.0);
        let found = scales(&lacking, &full, (&attended, &output), "self:1:2");
        assert_eq!(found.len(), 2, "heads 1 and 3");
        let written = |contexts: &Tensor, head: i64| {
            let own = contexts.get(0).get(head).narrow(0, 0, 30); // [30, 2]
            own.matmul(&output.narrow(1, head * 2, 2).tr()).flatten(0, 1) // [30 * 5]
        };
        let all = written(&full, 0) + written(&full, 1) + written(&full, 2);
        let y = Tensor::stack(&[written(&lacking, 0), written(&lacking, 2)], 1); // [150, 2]
        let gram = y.tr().matmul(&y);
        let ones = Tensor::ones([2], OPTIONS);
        let missing = y.tr().mv(&all) - gram.mv(&ones);
        let change = (gram.matmul(&gram) + Tensor::eye(2, OPTIONS)).inverse().mv(&gram.mv(&missing));
        let expected = crate::to_vec::<f64>(&(change + 1.0));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-8, "{found} instead of {expected}");
        }
        assert!(found.iter().any(|scale| (scale - 1.0).abs() > 1e-3), "{found:?}");
    }

    /// A whole model in which two heads are equal: with one masked, the repaired model and the full model have equal outputs.
    #[test]
    fn a_model_is_fitted_through_its_weights() {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 3, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": 0.3,
        });
        let config: ClassifierConfig = serde_json::from_value(json).unwrap();
        let model = Classifier::random(config, 3, (Kind::Double, Device::Cpu)).unwrap();
        let names = model.config().projections(Attention::SelfAttention, 1);
        let places = Tensor::from_slice(&[0_i64, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]);
        let twice = model.weights().iter().map(|(name, tensor)| {
            let is_in = [&names.query, &names.key, &names.value].iter().any(|map| name.starts_with(*map));
            let is_out = *name == format!("{}.weight", names.output);
            let axis = if is_in { Some(0) } else { is_out.then_some(1) };
            let own = || tensor.shallow_clone();
            (name.to_owned(), axis.map_or_else(own, |axis| tensor.index_select(axis, &places)))
        });
        let full = Classifier::new(model.config().clone(), Weights::from_tensors(twice)).unwrap();
        let (long, short): (&[u32], &[u32]) = (&[3, 9, 14, 2, 7], &[5, 1]);
        let texts = full.batch(&[(long, &[0; 5]), (short, &[0; 2])]).unwrap();
        let examples = LabelledBatch { inputs: texts, labels: Tensor::from_slice(&[0_i64, 1]) };
        let (masked, module) = ("self:2:2".parse().unwrap(), (Attention::SelfAttention, 1));
        let moments = full.moments(&full, &examples, (module, &masked)).unwrap();
        let fitted = full.refitted((module, &masked), &moments).unwrap().unwrap();
        let gates = Gates::masking(&full.layout(), &[masked], full.options()).unwrap();
        let losses = |model: &Classifier, gates: &Gates| {
            no_grad(|| model.losses(&examples, gates, &ModelDropout::OFF))
        };
        let gap = |model: &Classifier| {
            (losses(model, &gates) - losses(&full, &full.open())).abs().max().double_value(&[])
        };
        assert!(gap(&fitted) < 1e-4 && gap(&full) > 1e-3, "{} and {}", gap(&fitted), gap(&full));
    }

    #[test]
    fn a_module_is_left_unchanged_beyond_the_bound() {
        let (contexts, attended, output) = linear(3);
        let faint = &contexts * 0.05;
        let moments = Moments::new(&faint, &contexts, &attended);
        assert!(moments.scales(&output, &heads(3), &"self:1:2".parse().unwrap()).is_none());
        assert!(scales(&contexts, &contexts, (&attended, &output), "self:1:1+self:1:2+self:1:3").is_empty());
    }
}
