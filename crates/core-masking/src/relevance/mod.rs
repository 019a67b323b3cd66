//! Share of each head in what a model says: layer-wise relevance propagation.
//!
//! Voita et al. (2019), Section 4 and Appendix A, after Bach et al. (2015), <https://doi.org/10.1371/journal.pone.0130140>, and
//! Ding et al. (2017), <https://aclanthology.org/P17-1106>. Relevance 1 at the greatest logit is handed down from the outputs of
//! each step to its inputs. The relevance of a head is what reaches its context, the input of W_o: the sum over neurons and
//! positions, with its sign. [`Rule`] says how a step divides what it is given.
//!
//! All target positions go the same way through the model, so they are rows `n` of one tensor: relevance of a translation of T tokens
//! is handed down once, with T rows.
//!
//! This is for translators and classifiers, whatever their family, whose norms follow the sum of each sublayer and its input. Language models, with norms before, rotary positions and
//! products of gates, are refused: neither source has rules for them.
mod alpha_beta;
mod attention;
mod layers;
mod rules;

use std::collections::BTreeMap;

use tch::{Kind, Tensor, no_grad};

use crate::block::{Block, PostNorm};
use crate::classifier::LabelledBatch;
use crate::layers::Linear;
use crate::loss::PairBatch;
use crate::{Attention, Classifier, Error, GatedModel, HeadId, HeadLayout, ModelDropout, Translator};

use layers::{DecoderTrace, EncoderTrace};

/// Division of relevance between the inputs of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Voita et al. (2019), Appendix A: in proportion to what each input adds, z / Σ z, without a bias or anything to keep
    /// the sum from 0. All relevance is handed on: the sum is conserved.
    ///
    /// The paper says nothing of normalisation; here it is linear, its deviation held constant. Attention is the weighted sum
    /// of values, its weights constant; queries and keys get nothing.
    Paper,
    /// The code published later, <https://github.com/lena-voita/the-story-of-heads>, `lib/layers/lrp.py` after its correction of
    /// 2021: z = J x + f(0) / inputs, with the Jacobian J of the step, and of each output half by z⁺ / (Σ z⁺ + ε), half by
    /// z⁻ / (Σ z⁻ - ε), ε = 1e-5; then rescaled so that the sum of absolute values is conserved: of each position for linear maps
    /// and norms, of all positions for the rest. Attention goes to queries, keys and values.
    AlphaBeta,
}

/// The relevance of heads for the outputs of one example.
#[derive(Debug)]
pub struct Relevance {
    /// Of each module, counted from 0, and of each of its heads, at each target position: `[targets, kept]`.
    modules: BTreeMap<(Attention, usize), Tensor>,
    /// The heads of each module that are there.
    kept: BTreeMap<(Attention, usize), Vec<i64>>,
    /// The sum that reaches the embeddings, of each target position, `[targets]`: 1 where none of it is lost.
    pub left: Tensor,
}

impl Relevance {
    /// Of each head the relevance for each target position.
    pub fn by_head(&self) -> BTreeMap<HeadId, Vec<f64>> {
        self.read(|module| module.shallow_clone())
    }

    /// The same, divided for each target position by the sum of the absolute values of the layer's heads. A layer without any
    /// relevance stays at 0.
    ///
    /// Differs from the paper, which normalises over the heads of a layer and does not say how: relevance has either sign, so that the
    /// sum of a layer may come near 0, and what is divided by it may be anything.
    pub fn shares(&self) -> BTreeMap<HeadId, Vec<f64>> {
        self.read(|module| {
            let size = module.abs().sum_dim_intlist(1, true, None); // [targets, 1]
            module / size.clamp_min(f64::MIN_POSITIVE)
        })
    }

    fn read(&self, change: impl Fn(&Tensor) -> Tensor) -> BTreeMap<HeadId, Vec<f64>> {
        let mut found = BTreeMap::new();
        for (&(attention, layer), module) in &self.modules {
            let changed = change(module);
            for (&head, column) in self.kept[&(attention, layer)].iter().zip(changed.unbind(1)) {
                let id = HeadId::from_index(attention, layer, head as usize);
                found.insert(id, crate::to_vec::<f64>(&column));
            }
        }
        found
    }
}

impl Classifier {
    /// The relevance of all heads for the greatest logit of a text.
    ///
    /// # Errors
    /// If the model classifies tokens, or the layers have their norms elsewhere than behind each sublayer, or if scores owe something to embeddings of distances, and the rule follows relevance into scores.
    ///
    /// # Panics
    /// Unless the batch is of one text.
    pub fn relevance(&self, batch: &LabelledBatch, rule: Rule) -> Result<Relevance, Error> {
        assert_eq!(batch.inputs.size()[0], 1, "one text");
        let family = self.config().family.model_type;
        let blocks = post_norm(self.layers.iter().map(|layer| &layer.block), family)?;
        if rule == Rule::AlphaBeta && blocks.iter().any(|block| block.attention.0.is_disentangled()) {
            return Err(Error::Input(format!(
                "relevance by this rule does not know scores from embeddings of distances, which `{family}` has; the paper's rule does"
            )));
        }
        let first = self.head.of_first().ok_or_else(|| {
            Error::Input(
                "relevance is followed from the class of a text, and this model classifies tokens".to_owned(),
            )
        })?;
        Ok(no_grad(|| self.relevance_of((&blocks, first), batch, rule)))
    }
}

impl Translator {
    /// The relevance of all heads for the greatest logit at each position of the reference, teacher forced.
    ///
    /// Relevance of the encoder's states is the sum over the layers of the decoder.
    ///
    /// # Errors
    /// If the layers have their norms elsewhere than behind each sublayer.
    ///
    /// # Panics
    /// Unless the batch is of one pair.
    pub fn relevance(&self, batch: &PairBatch, rule: Rule) -> Result<Relevance, Error> {
        assert_eq!(batch.labels.size()[0], 1, "one pair");
        let family = self.config().family.model_type;
        let encoder = post_norm(self.layers.encoder.iter(), family)?;
        let decoder = post_norm(self.layers.decoder.iter(), family)?;
        Ok(no_grad(|| self.relevance_of([&encoder, &decoder], batch, rule)))
    }
}

impl Classifier {
    fn relevance_of(
        &self,
        (blocks, of_first): (&[PostNorm<'_>], &Linear),
        batch: &LabelledBatch,
        rule: Rule,
    ) -> Relevance {
        let x = self.embed(&batch.inputs, &ModelDropout::OFF).squeeze_dim(0); // [position, d_model]
        let (traces, x) = trace_encoder(blocks, x, batch.inputs.bias());
        let (head, read) = (&self.head, x.narrow(0, 0, 1)); // the classifier reads the first position
        let pooled = head.activate(&of_first.forward(&read)); // [1, d_model]
        let logits = head.last.forward(&pooled); // [1, labels]
        let top = logits.argmax(1, false); // [1]
        let start = Tensor::zeros_like(&logits).scatter_value(1, &top.unsqueeze(1), 1.0).unsqueeze(0); // [1, 1, labels]
        let of_pooled = rule.linear(&start, &pooled, &head.last);
        let first = rule.linear(&of_pooled, &read, of_first); // [1, 1, d_model]
        let others = x.size()[0] - 1;
        let at = first.constant_pad_nd([0, 0, 0, others]); // [1, position, d_model]
        let mut relevance = Relevance::empty();
        relevance.left =
            relevance.follow_encoder((&traces, at), Attention::SelfAttention, &self.layout(), rule);
        relevance
    }
}

impl Translator {
    fn relevance_of(
        &self,
        [encoder, decoder]: [&[PostNorm<'_>]; 2],
        batch: &PairBatch,
        rule: Rule,
    ) -> Relevance {
        let (layers, layout, source_bias) = (&self.layers, self.layout(), &batch.source.bias);
        let x = layers.embed_source(&batch.source.ids).squeeze_dim(0); // [source, d_model]
        let (encoder, memory) = trace_encoder(encoder, x, source_bias);
        let mut y = layers.embed_target(&batch.decoder_input, 0).squeeze_dim(0); // [target, d_model]
        let mut traces = Vec::new();
        for block in decoder {
            let trace = DecoderTrace::new(block, &y, &memory, source_bias);
            y = trace.output.shallow_clone();
            traces.push(trace);
        }

        let mut relevance = Relevance::empty();
        let mut at = rule.greatest_logit(&y, layers.output_layer()); // [target, target, d_model]
        let mut of_memory =
            Tensor::zeros([y.size()[0], memory.size()[0], memory.size()[1]], (y.kind(), y.device()));
        for (layer, trace) in traces.iter().enumerate().rev() {
            let found = trace.propagate(&at, rule);
            for (attention, context) in
                [(Attention::DecDec, &found.self_context), (Attention::EncDec, &found.encoder_context)]
            {
                relevance.insert((attention, layer), context, &layout);
            }
            of_memory += found.memory;
            at = found.input;
        }
        let of_source = relevance.follow_encoder((&encoder, of_memory), Attention::EncEnc, &layout, rule);
        relevance.left = total(&at) + of_source;
        relevance
    }
}

/// The parts of these blocks.
///
/// # Errors
/// If their norms are elsewhere than after each sum.
fn post_norm<'a>(blocks: impl Iterator<Item = &'a Block>, family: &str) -> Result<Vec<PostNorm<'a>>, Error> {
    blocks.map(Block::as_post_norm).collect::<Option<_>>().ok_or_else(|| {
        Error::Input(format!(
            "relevance has rules for layers with normalisation behind each sublayer alone, and `{family}` has others"
        ))
    })
}

/// Intermediate values of the layers of an encoder for `x`, `[position, d_model]`, and the output of the last.
fn trace_encoder<'a>(
    blocks: &[PostNorm<'a>],
    mut x: Tensor,
    bias: &Tensor,
) -> (Vec<EncoderTrace<'a>>, Tensor) {
    let mut traces = Vec::new();
    for block in blocks {
        let trace = EncoderTrace::new(block, &x, bias);
        x = trace.output.shallow_clone();
        traces.push(trace);
    }
    (traces, x)
}

impl Relevance {
    fn empty() -> Self {
        Self {
            modules: BTreeMap::new(),
            kept: BTreeMap::new(),
            left: Tensor::zeros([0], (Kind::Double, tch::Device::Cpu)),
        }
    }

    /// Hands relevance down through an encoder, from what leaves it, `[n, position, d_model]`; returns the sum that reaches its
    /// embeddings, `[n]`.
    fn follow_encoder(
        &mut self,
        (traces, mut at): (&[EncoderTrace<'_>], Tensor),
        attention: Attention,
        layout: &HeadLayout,
        rule: Rule,
    ) -> Tensor {
        for (layer, trace) in traces.iter().enumerate().rev() {
            let found = trace.propagate(&at, rule);
            self.insert((attention, layer), &found.context, layout);
            at = found.input;
        }
        total(&at)
    }

    /// `context`: of what the heads of a module read, `[targets, kept, query, d_head]`
    fn insert(&mut self, module: (Attention, usize), context: &Tensor, layout: &HeadLayout) {
        self.modules.insert(module, context.sum_dim_intlist([2_i64, 3].as_slice(), false, None));
        self.kept.insert(module, layout.kept(module.0, module.1));
    }
}

/// The sum over positions and neurons: `[targets]` of `[targets, position, d_model]`.
fn total(relevance: &Tensor) -> Tensor {
    relevance.sum_dim_intlist([1_i64, 2].as_slice(), false, None)
}
