//! The layers of an encoder-decoder model, and what its decoder attends to.
use families::parts;
use tch::{Device, Kind, Tensor};

use super::{TranslatorConfig, TranslatorParts};
use crate::attention::MultiHeadAttention;
use crate::block::{Block, Norms};
use crate::gates::Gate;
use crate::layers::{Norm, normalised};
use crate::{Attention, Dropout, Gates, ModelDropout};
use families::tables::{Positions, Sinusoids};

/// Embeddings, blocks and output layer of an encoder-decoder model. Layers are counted from 0.
///
/// Decoder layers serve teacher forcing and decoding steps, in which the hypotheses of a sentence take the place of queries:
/// [`DecoderAttention`] determines what they attend to. Each module's residual stream goes through [`Gate::passing`].
#[derive(Debug)]
pub struct Layers {
    pub(super) source: Embeddings,
    pub(super) target: Embeddings,
    pub(super) output: Tensor,      // [target vocab, d_model]
    pub(super) logits_bias: Tensor, // [target vocab]
    pub(crate) encoder: Vec<Block>,
    pub(crate) decoder: Vec<Block>,
    /// Norms after the last layers of encoder and decoder.
    pub(super) last_norms: [Option<Norm>; 2],
    /// Factor of decoder states before the output layer.
    pub(super) decoder_scale: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Embeddings {
    pub(super) table: Tensor,             // [vocab, d_model]
    pub(super) positions: Option<Tensor>, // [max_position, d_model]
    pub(super) scale: Option<f64>,
    pub(super) norm: Option<Norm>,
}

impl Embeddings {
    /// Embeds ids, `[batch, position]`, starting at position `start`: `[batch, position, d_model]`.
    fn of(&self, ids: &Tensor, start: i64) -> Tensor {
        let mut x = Tensor::embedding(&self.table, ids, -1, false, false);
        if let Some(scale) = self.scale {
            x *= scale;
        }
        if let Some(positions) = &self.positions {
            x += positions.narrow(0, start, ids.size()[1]);
        }
        normalised(self.norm.as_ref(), &x)
    }
}

/// Returns rows `first` to `first + rows` of a sinusoidal position table: `[rows, d_model]`.
pub(super) fn sinusoid_table(
    sinusoids: Sinusoids,
    first: i64,
    rows: i64,
    d_model: i64,
    options: (Kind, Device),
) -> Tensor {
    let wide = (Kind::Double, Device::Cpu);
    let step = match sinusoids {
        Sinusoids::Vaswani => -2.0 / d_model as f64 * 10_000_f64.ln(),
        Sinusoids::Fairseq => -(10_000_f64.ln()) / (d_model / 2 - 1) as f64,
    };
    let rate = (Tensor::arange(d_model / 2, wide) * step).exp();
    let position = Tensor::arange_start(first, first + rows, wide);
    let angle = position.unsqueeze(1) * rate; // [rows, d_model / 2]
    Tensor::cat(&[angle.sin(), angle.cos()], 1).to_kind(options.0).to_device(options.1)
}

impl Layers {
    pub(super) fn new(
        config: &TranslatorConfig,
        parts: TranslatorParts<Tensor>,
        options: (Kind, Device),
    ) -> Self {
        let rows = config.max_position_embeddings;
        let embeddings = |table, learned: Option<Tensor>, norm: Option<parts::Norm<Tensor>>| Embeddings {
            table,
            positions: match config.family.positions {
                Positions::Learned { first } => learned.map(|table| table.narrow(0, first, rows)),
                Positions::Sinusoids(sinusoids) => {
                    let first = sinusoids.first_row(config.pad_token_id);
                    Some(sinusoid_table(sinusoids, first, rows, config.d_model, options))
                }
                Positions::Nowhere => None,
            },
            scale: config.scale_embedding.then(|| (config.d_model as f64).sqrt()),
            norm: norm.map(Norm::from),
        };
        let ([source, target], [of_source, of_target]) = (parts.tables, parts.positions);
        let ([norm_of_source, norm_of_target], output) = (parts.embedding_norms, parts.output);
        let zeros = || Tensor::zeros([output.size()[0]], options);
        let [encoder, decoder] = parts.stacks.map(|blocks| blocks.into_iter().map(Block::from).collect());
        Self {
            source: embeddings(source, of_source, norm_of_source),
            target: embeddings(target, of_target, norm_of_target),
            logits_bias: parts.logits_bias.map_or_else(zeros, |bias| bias.view([-1])),
            output,
            encoder,
            decoder,
            last_norms: parts.last_norms.map(|norm| norm.map(Norm::from)),
            decoder_scale: config.decoder_scale(),
        }
    }

    /// Embeds source ids, `[batch, source]`: `[batch, source, d_model]`.
    pub(crate) fn embed_source(&self, ids: &Tensor) -> Tensor {
        self.source.of(ids, 0)
    }

    /// Embeds target ids, `[batch, target]`, starting at position `start`: `[batch, target, d_model]`.
    pub(crate) fn embed_target(&self, ids: &Tensor, start: i64) -> Tensor {
        self.target.of(ids, start)
    }

    /// Returns the output of an encoder layer; `x` and the result are `[batch, source, d_model]`, `bias` is `[batch, 1, 1, source]`.
    pub(super) fn encoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        bias: &Tensor,
        gate: Gate<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let (block, (module, norms)) = (&self.encoder[layer], self.sublayer(Attention::EncEnc, layer));
        let read = norms.read(x);
        let output = module.forward(&read, &read, &module.with_distances(bias), gate, &dropout.attention);
        let attended = gate.passing(x, norms.add(x, &output, None, &dropout.hidden));
        block.fed(&attended, &attended, dropout)
    }

    /// Returns encoder states from the output of the last layer, both `[batch, source, d_model]`.
    pub(super) fn encoder_states(&self, x: &Tensor) -> Tensor {
        normalised(self.last_norms[0].as_ref(), x)
    }

    /// Returns the output of a decoder layer; `x` and the result are `[batch, query, d_model]`.
    pub(super) fn decoder_layer(
        &self,
        layer: usize,
        x: &Tensor,
        attention: &mut DecoderAttention<'_>,
        dropout: &ModelDropout,
    ) -> Tensor {
        let block = &self.decoder[layer];
        let mut x = x.shallow_clone();
        for kind in [Attention::DecDec, Attention::EncDec] {
            let (module, norms) = self.sublayer(kind, layer);
            let output = attention.read(kind, layer, module, &norms.read(&x));
            let attended = norms.add(&x, &output, None, &dropout.hidden);
            x = attention.gates.of(kind, layer).passing(&x, attended);
        }
        block.fed(&x, &x, dropout)
    }

    /// Returns the input of the output layer from the output of the last decoder layer, both `[batch, query, d_model]`.
    pub(super) fn decoder_states(&self, x: &Tensor) -> Tensor {
        let x = normalised(self.last_norms[1].as_ref(), x);
        self.decoder_scale.map_or_else(|| x.shallow_clone(), |scale| &x * scale)
    }

    fn sublayer(&self, attention: Attention, layer: usize) -> (&MultiHeadAttention, &Norms) {
        let block = if attention == Attention::EncEnc { &self.encoder[layer] } else { &self.decoder[layer] };
        if attention == Attention::EncDec {
            let (module, norms) = block.cross.as_ref().expect("a decoder attends to the source");
            return (module, norms);
        }
        (&block.attention, &block.attention_norms)
    }

    pub(crate) fn module(&self, attention: Attention, layer: usize) -> &MultiHeadAttention {
        self.sublayer(attention, layer).0
    }

    /// Returns the multiply-adds per position of the feed-forward networks of an encoder layer and a decoder layer.
    pub(super) fn feed_forward_multiply_adds(&self) -> [u64; 2] {
        [&self.encoder, &self.decoder].map(|stack| stack[0].feed_forward.multiply_adds())
    }

    /// Returns the output layer, `[target vocab, d_model]`, and the bias of the logits, `[target vocab]`.
    pub(crate) fn output_layer(&self) -> (&Tensor, &Tensor) {
        (&self.output, &self.logits_bias)
    }
}

/// Self-attention and cross-attention of decoder layers, under the gates of a pass.
pub(super) struct DecoderAttention<'a> {
    pub(super) memory: &'a mut dyn DecoderMemory,
    pub(super) gates: &'a Gates,
    /// Of attention weights.
    pub(super) dropout: &'a Dropout,
}

impl DecoderAttention<'_> {
    /// Attends from `x` to the target so far, itself included, or to the source; `x` and the result are `[batch, query, d_model]`.
    fn read(&mut self, kind: Attention, layer: usize, module: &MultiHeadAttention, x: &Tensor) -> Tensor {
        let reader = Reader { layer, module, gate: self.gates.of(kind, layer), dropout: self.dropout };
        match kind {
            Attention::EncDec => self.memory.of_source(reader, x),
            _ => self.memory.of_target(reader, x),
        }
    }
}

/// An attention module of a decoder layer in one pass.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) layer: usize,
    pub(crate) module: &'a MultiHeadAttention,
    pub(crate) gate: Gate<'a>,
    pub(crate) dropout: &'a Dropout,
}

/// Key-value cache of the target so far and the source, for all layers of a decoder.
pub(crate) trait DecoderMemory {
    /// Attends from `x` to the target so far, itself included, and keeps its keys and values; both `[batch, query, d_model]`.
    fn of_target(&mut self, reader: Reader<'_>, x: &Tensor) -> Tensor;

    /// Attends from `x` to the source; both `[batch, query, d_model]`.
    fn of_source(&self, reader: Reader<'_>, x: &Tensor) -> Tensor;
}

/// All positions of a target at once, under a causal mask.
pub(super) struct TeacherForced<'a> {
    /// Encoder states, `[batch, source, d_model]`.
    pub(super) states: &'a Tensor,
    /// `[batch, 1, 1, source]`
    pub(super) source_bias: &'a Tensor,
    /// `[1, 1, target, target]`; padding is on the right, so no real position sees it.
    pub(super) causal_bias: Tensor,
}

impl DecoderMemory for TeacherForced<'_> {
    fn of_target(&mut self, Reader { module, gate, dropout, .. }: Reader<'_>, x: &Tensor) -> Tensor {
        module.forward(x, x, &module.with_distances(&self.causal_bias), gate, dropout)
    }

    fn of_source(&self, Reader { module, gate, dropout, .. }: Reader<'_>, x: &Tensor) -> Tensor {
        module.forward(x, self.states, self.source_bias, gate, dropout)
    }
}
