//! Parts of models. Assembling a model's parts requests each tensor by name and shape where it is used. The source of tensors decides what
//! they are: tensors of a file, or nothing but an entry of name and shape in an [`Inventory`].
use std::collections::HashSet;
use std::convert::Infallible;

use heads::ModuleHeads;
use serde::{Deserialize, Serialize};

use crate::buckets::{DebertaBuckets, T5Buckets};
use crate::rotary::RotaryConfig;

/// Name and shape of each tensor that the configuration requires in a checkpoint.
pub type Inventory = Vec<(String, Vec<i64>)>;

/// Result of assembling a part of a model from a source.
pub type Taken<P, S> = Result<P, <S as Tensors>::Fault>;

/// A source of tensors; assembly fails if it lacks one. A tensor may be taken several times; new weights are drawn in the order of first
/// use.
pub trait Tensors {
    /// A tensor, or a stand-in for it.
    type Tensor;
    /// Error for a missing tensor.
    type Fault;

    /// Returns the tensor of this name and shape.
    fn take(&mut self, name: String, shape: Vec<i64>) -> Result<Self::Tensor, Self::Fault>;

    /// Takes a table: `{name}.weight`.
    fn table(&mut self, name: &str, shape: &[i64]) -> Result<Self::Tensor, Self::Fault> {
        self.take(format!("{name}.weight"), shape.to_vec())
    }

    /// Takes a linear map: `{name}.weight` and optionally `{name}.bias`.
    fn linear(&mut self, name: &str, size: [i64; 2], has_bias: bool) -> Taken<Linear<Self::Tensor>, Self> {
        let weight = self.table(name, &size)?;
        let bias = has_bias.then(|| self.take(format!("{name}.bias"), vec![size[0]]));
        Ok(Linear { weight, bias: bias.transpose()? })
    }

    /// Takes a norm: `{name}.weight` and, for layer norm, `{name}.bias`.
    fn norm(&mut self, name: &str, shape: &[i64], kind: NormKind) -> Taken<Norm<Self::Tensor>, Self> {
        let weight = self.table(name, shape)?;
        let bias =
            (kind.0 == Normalisation::Layer).then(|| self.take(format!("{name}.bias"), shape.to_vec()));
        Ok(Norm { weight, bias: bias.transpose()?, kind })
    }
}

/// A source that only records names and shapes.
#[derive(Debug, Default)]
pub struct Recorder {
    inventory: Inventory,
    names: HashSet<String>,
}

impl Tensors for Recorder {
    type Tensor = ();
    type Fault = Infallible;

    fn take(&mut self, name: String, shape: Vec<i64>) -> Result<(), Infallible> {
        if self.names.insert(name.clone()) {
            self.inventory.push((name, shape));
        }
        Ok(())
    }
}

/// Returns the tensors that an assembly takes, in the order of first use.
pub fn inventory<P>(walk: impl FnOnce(&mut Recorder) -> Result<P, Infallible>) -> Inventory {
    let mut recorder = Recorder::default();
    let Ok(_) = walk(&mut recorder);
    recorder.inventory
}

/// A linear map.
#[derive(Debug)]
pub struct Linear<T> {
    /// `[output, input]`
    pub weight: T,
    /// `[output]`
    pub bias: Option<T>,
}

/// Kind of norm and epsilon, which is added to the variance or mean square.
pub type NormKind = (Normalisation, f64);

/// A norm.
#[derive(Debug)]
pub struct Norm<T> {
    /// Factors: `[width]`, or `[heads, width]`.
    pub weight: T,
    /// `[width]`
    pub bias: Option<T>,
    /// Kind and epsilon.
    pub kind: NormKind,
}

/// Kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// Layer norm, Ba et al. (2016), <https://arxiv.org/abs/1607.06450>.
    Layer,
    /// Layer norm without a bias.
    LayerWithoutBias,
    /// RMS norm, Zhang and Sennrich (2019), <https://arxiv.org/abs/1910.07467>: without mean or bias.
    RootMeanSquare,
    /// RMS norm whose factors are 1 + weight: Gemma.
    ShiftedRootMeanSquare,
}

/// Norms of a sublayer f, all optional: `after(x + inside(f(before(x))))`. Vaswani et al. (2017) normalise after the sum, Xiong et al.
/// (2020), <https://arxiv.org/abs/2002.04745>, before the sublayer, Gemma 2 and GLM-4 also inside the residual connection.
#[derive(Debug)]
pub struct Norms<T> {
    /// Norm of the sublayer's input.
    pub before: Option<Norm<T>>,
    /// Norm of the sublayer's output.
    pub inside: Option<Norm<T>>,
    /// Norm of the sum.
    pub after: Option<Norm<T>>,
}

impl<T> Norms<T> {
    /// Returns one norm, before the sublayer or after the sum.
    pub fn one(norm: Norm<T>, is_before: bool) -> Self {
        let (before, after) = if is_before { (Some(norm), None) } else { (None, Some(norm)) };
        Self { before, inside: None, after }
    }
}

/// A block of a Transformer.
#[derive(Debug)]
pub struct Block<T> {
    /// Self-attention.
    pub attention: Module<T>,
    /// Cross-attention.
    pub cross: Option<Module<T>>,
    /// The feed-forward network, or experts.
    pub feed_forward: FeedForwards<T>,
    /// Norms of the feed-forward network.
    pub feed_forward_norms: Norms<T>,
    /// Input of the feed-forward network.
    pub feed_forward_input: FeedForwardInput,
    /// Factor of each sublayer's output.
    pub residual: Option<f64>,
    /// Sliding attention window, in keys: the last ones in a decoder, half of them on each side in an encoder.
    pub window: Option<i64>,
    /// Rotary positions; `None` if the block has none.
    pub rotary: Option<RotaryConfig>,
}

impl<T> Block<T> {
    /// Creates a block without cross-attention, sliding window and rotary positions, whose feed-forward network reads the residual stream
    /// after attention.
    pub fn new(attention: Module<T>, feed_forward: FeedForward<T>, feed_forward_norms: Norms<T>) -> Self {
        Self {
            attention,
            cross: None,
            feed_forward: FeedForwards::One(feed_forward),
            feed_forward_norms,
            feed_forward_input: FeedForwardInput::AfterAttention,
            residual: None,
            window: None,
            rotary: None,
        }
    }
}

/// Input of the feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForwardInput {
    /// The residual stream after attention.
    AfterAttention,
    /// The block's input, with a norm separate from attention's: GPT-NeoX.
    BlockInput,
    /// The normalised input of attention: Cohere.
    AttentionInput,
}

/// An attention module.
#[derive(Debug)]
pub struct Module<T> {
    /// Maps of queries, keys, values and output, for the remaining heads.
    pub maps: [Linear<T>; 4],
    /// The remaining heads.
    pub heads: ModuleHeads,
    /// Norms of the sublayer.
    pub norms: Norms<T>,
    /// Norms of queries and keys.
    pub head_norms: Option<HeadNorms<T>>,
    /// Divisor of attention scores.
    pub divisor: f64,
    /// Cap of attention scores.
    pub cap: Option<f64>,
    /// Position terms of attention scores.
    pub distances: Distances<T>,
}

impl<T> Module<T> {
    /// Takes the four maps; scores are divided by √d_head.
    ///
    /// - `width`: of the residual stream
    /// - `biases`: whether the maps of queries, keys and values have biases, and whether the output map has one
    /// - `queries_stay`: true if the maps of queries and keys still have removed heads
    pub fn take<S: Tensors<Tensor = T> + ?Sized>(
        tensors: &mut S,
        names: &Projections,
        heads: ModuleHeads,
        width: i64,
        (biases, queries_stay): ([bool; 2], bool),
    ) -> Taken<Self, S> {
        let (shape, key_values) = (heads.shape, heads.kept_key_values().len());
        let wide = |heads: usize| (heads as i64).saturating_mul(shape.d_head);
        let (queries, keys) =
            if queries_stay { (shape.heads, shape.key_value_heads) } else { (heads.kept.len(), key_values) };
        let maps = [
            tensors.linear(&names.query, [wide(queries), width], biases[0])?,
            tensors.linear(&names.key, [wide(keys), width], biases[0])?,
            tensors.linear(&names.value, [wide(key_values), width], biases[0])?,
            tensors.linear(&names.output, [width, wide(heads.kept.len())], biases[1])?,
        ];
        Ok(Self {
            maps,
            heads,
            norms: Norms { before: None, inside: None, after: None },
            head_norms: None,
            divisor: (shape.d_head as f64).sqrt(),
            cap: None,
            distances: Distances::None,
        })
    }
}

/// Norms of queries and of keys.
pub type HeadNorms<T> = ([Norm<T>; 2], HeadNorm);

/// How queries and keys are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorm {
    /// Over each head, with shared factors.
    Alike,
    /// Over each head, with separate factors.
    Own,
    /// Over all heads at once.
    Joined,
}

/// Position terms of attention scores, which depend on the distance between query and key.
#[derive(Debug)]
pub enum Distances<T> {
    /// No position terms.
    None,
    /// Relative position bias, `[buckets, heads]`, removed heads included.
    Bias(T, T5Buckets),
    /// Products with embeddings of distances (DeBERTa).
    Embeddings {
        /// `[2 * buckets, d_model]`
        table: T,
        /// Norm of the rows of the table.
        norm: Norm<T>,
        /// Buckets of distances.
        buckets: DebertaBuckets,
        /// Maximum number of positions.
        longest: i64,
    },
}

/// The feed-forward part of a block.
#[derive(Debug)]
pub enum FeedForwards<T> {
    /// A single network.
    One(FeedForward<T>),
    /// A mixture of experts.
    Experts {
        /// The map that selects experts.
        router: Linear<T>,
        /// The networks.
        experts: Vec<FeedForward<T>>,
        /// Experts per token (top k).
        chosen: i64,
        /// True if the routing weights of the selected experts are rescaled to sum to 1.
        is_normalised: bool,
    },
}

/// A feed-forward network.
#[derive(Debug)]
pub struct FeedForward<T> {
    /// Inner and outer map, preceded by the gate if the network is gated.
    pub maps: Vec<Linear<T>>,
    /// Applied to the gate, or to the inner map of an ungated network.
    pub activation: Activation,
}

impl<T> FeedForward<T> {
    /// Takes the maps of these names, the outer one last.
    ///
    /// - `width`: of the residual stream; `inner`: of the network
    pub fn take<S: Tensors<Tensor = T> + ?Sized>(
        tensors: &mut S,
        names: &[String],
        [width, inner]: [i64; 2],
        (activation, has_bias): (Activation, bool),
    ) -> Taken<Self, S> {
        let size = |place| if place + 1 == names.len() { [width, inner] } else { [inner, width] };
        let maps = names.iter().enumerate().map(|(place, name)| tensors.linear(name, size(place), has_bias));
        Ok(Self { maps: maps.collect::<Result<_, _>>()?, activation })
    }
}

/// The activation function of a feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// x Φ(x), Hendrycks and Gimpel (2016), exactly.
    #[serde(alias = "gelu_python")]
    Gelu,
    /// The tanh approximation of GELU.
    #[serde(alias = "gelu_fast", alias = "gelu_accurate", alias = "gelu_python_tanh")]
    GeluNew,
    /// The tanh approximation of GELU, as Gemma calls it.
    GeluPytorchTanh,
    /// max(0, x), Vaswani et al. (2017)
    Relu,
    /// x * sigmoid(x), as in Llama
    Silu,
    /// x * sigmoid(x), as the opus-mt models call it
    Swish,
}

/// Names of the four linear maps of an attention module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projections {
    /// W_q
    pub query: String,
    /// W_k
    pub key: String,
    /// W_v
    pub value: String,
    /// W_o
    pub output: String,
}

impl Projections {
    /// Collects the names of query, key, value and output map.
    pub fn new([query, key, value, output]: [String; 4]) -> Self {
        Self { query, key, value, output }
    }
}
