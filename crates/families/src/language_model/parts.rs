//! The tensors of a language model, assembled into blocks.
use super::config::LanguageConfig;
use crate::config::ModelConfig;
use crate::parts::{
    Block, FeedForward, FeedForwardInput, FeedForwards, HeadNorm, HeadNorms, Module, Norm, NormKind, Norms,
    Taken, Tensors,
};
use crate::tables::{Bias, LayerNames, SublayerNorms};
use heads::{Attention, HeadLayout};

/// Parts of a language model.
#[derive(Debug)]
pub struct LanguageParts<T> {
    /// Token embeddings, `[vocab, d_model]`.
    pub words: T,
    /// Position embeddings, `[max_position, d_model]`.
    pub positions: Option<T>,
    /// The layers.
    pub blocks: Vec<Block<T>>,
    /// Norm after the last layer.
    pub norm: Norm<T>,
    /// The output layer, `[vocab, d_model]`; `None` if it is tied to the embeddings.
    pub output: Option<T>,
}

impl LanguageConfig {
    /// Assembles the parts of the model.
    pub fn parts<S: Tensors>(&self, tensors: &mut S) -> Taken<LanguageParts<S::Tensor>, S> {
        let (names, words, output) = (&self.family.names, self.embeddings(), self.output());
        let rows = self.max_position_embeddings.saturating_add(names.rows_before);
        Ok(LanguageParts {
            words: tensors.take(words.0, words.1)?,
            positions: names
                .positions
                .map(|part| tensors.table(&names.of(part), &[rows, self.hidden_size]))
                .transpose()?,
            blocks: self.blocks(tensors)?,
            norm: self.last_norm(tensors)?,
            output: (!self.tie_word_embeddings).then(|| tensors.take(output.0, output.1)).transpose()?,
        })
    }

    /// Assembles the layers.
    pub fn blocks<S: Tensors>(&self, tensors: &mut S) -> Taken<Vec<Block<S::Tensor>>, S> {
        let layout = self.layout();
        (0..self.num_hidden_layers).map(|layer| self.block(tensors, &layout, layer)).collect()
    }

    /// Takes the norm after the last layer.
    pub fn last_norm<S: Tensors>(&self, tensors: &mut S) -> Taken<Norm<S::Tensor>, S> {
        let names = &self.family.names;
        tensors.norm(&names.of(names.norm), &[self.hidden_size], self.norm_kind())
    }

    fn norm_kind(&self) -> NormKind {
        (self.family.norm, self.rms_norm_eps)
    }

    fn block<S: Tensors>(
        &self,
        tensors: &mut S,
        layout: &HeadLayout,
        layer: usize,
    ) -> Taken<Block<S::Tensor>, S> {
        let (biases, options, names) = (self.family.biases, &self.options, self.layer_names(layer));
        let (heads, biases) = (
            layout.module(Attention::SelfAttention, layer),
            [biases.inputs, biases.output].map(|bias| self.has(bias)),
        );
        let attention = Module::take(
            tensors,
            &names.projections,
            heads,
            self.hidden_size,
            (biases, self.queries_stay()),
        )?;
        let feed_forward = self.feed_forward(tensors, layer, &names)?;
        let norms = self.norms(tensors, &names.attention_norm)?;
        let feed_forward_norms = self.norms(tensors, &names.feed_forward_norm)?;
        let head_norms = names.head_norms.map(|names| self.head_norms(tensors, names, &attention));
        Ok(Block {
            attention: Module {
                norms,
                head_norms: head_norms.transpose()?,
                divisor: self.divisor(),
                cap: options.attn_logit_softcapping,
                ..attention
            },
            cross: None,
            feed_forward,
            feed_forward_norms,
            feed_forward_input: match options.use_parallel_residual {
                _ if self.family.shared_norm => FeedForwardInput::AttentionInput,
                Some(true) => FeedForwardInput::BlockInput,
                _ => FeedForwardInput::AfterAttention,
            },
            residual: options.residual_multiplier.filter(|&factor| factor != 1.0),
            window: self.window(layer),
            rotary: self.rotary(layer),
        })
    }

    fn norms<S: Tensors>(
        &self,
        tensors: &mut S,
        names: &SublayerNorms<String>,
    ) -> Taken<Norms<S::Tensor>, S> {
        let mut norm = |name: &Option<String>| {
            name.as_ref().map(|name| tensors.norm(name, &[self.hidden_size], self.norm_kind())).transpose()
        };
        Ok(Norms { before: norm(&names.before)?, inside: norm(&names.after)?, after: None })
    }

    fn head_norms<S: Tensors>(
        &self,
        tensors: &mut S,
        [query, key]: [String; 2],
        Module { heads, .. }: &Module<S::Tensor>,
    ) -> Taken<HeadNorms<S::Tensor>, S> {
        let (kind, d_head) = (self.family.names.head_norm, heads.shape.d_head);
        let mut norm = |name: &str, heads: usize| {
            let heads = heads as i64;
            let shape = match kind {
                HeadNorm::Alike => vec![d_head],
                HeadNorm::Own => vec![heads, d_head],
                HeadNorm::Joined => vec![heads.saturating_mul(d_head)],
            };
            tensors.norm(name, &shape, self.norm_kind())
        };
        Ok(([norm(&query, heads.shape.heads)?, norm(&key, heads.shape.key_value_heads)?], kind))
    }

    fn feed_forward<S: Tensors>(
        &self,
        tensors: &mut S,
        layer: usize,
        names: &LayerNames,
    ) -> Taken<FeedForwards<S::Tensor>, S> {
        let (options, width) = (&self.options, self.hidden_size);
        let settings = (self.hidden_act, self.has(self.family.biases.feed_forward));
        let (Some([router, _]), count @ 1..) = (&names.experts, self.experts(layer)) else {
            let sizes = [width, self.feed_forward_width()];
            return Ok(FeedForwards::One(FeedForward::take(tensors, &names.feed_forward, sizes, settings)?));
        };
        let sizes = [width, options.moe_intermediate_size.unwrap_or(self.feed_forward_width())];
        let expert = |number| FeedForward::take(tensors, &names.expert(number), sizes, settings);
        Ok(FeedForwards::Experts {
            experts: (0..count).map(expert).collect::<Result<_, _>>()?,
            router: tensors.linear(router, [count as i64, width], false)?,
            chosen: options.num_experts_per_tok.unwrap_or(1) as i64,
            is_normalised: options.norm_topk_prob == Some(true),
        })
    }

    fn has(&self, bias: Bias) -> bool {
        match bias {
            Bias::Always => true,
            Bias::Never => false,
            Bias::OfAttention => self.attention_bias,
            Bias::OfFeedForward => self.mlp_bias,
        }
    }
}
