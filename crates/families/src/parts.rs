//! Parts of models. Each walk over a model's parts names each tensor once, with its shape, where it is used; what a tensor is depends on
//! the source: one of a file, or nothing but a note of name and shape in an [`Inventory`].
use std::collections::HashSet;
use std::convert::Infallible;

use heads::ModuleHeads;
use serde::{Deserialize, Serialize};

use crate::buckets::{DebertaBuckets, T5Buckets};
use crate::rotary::Turning;

/// Name and shape of each tensor that a checkpoint must hold by its configuration.
pub type Inventory = Vec<(String, Vec<i64>)>;

/// What a walk over the parts of a model gives.
pub type Taken<P, S> = Result<P, <S as Tensors>::Fault>;

/// A source of tensors; a walk fails if it lacks one. A walk may take a tensor several times; new weights are drawn in the order of the
/// first times.
pub trait Tensors {
    /// A tensor.
    type Tensor;
    /// Why there is none.
    type Fault;

    /// The tensor of this name and shape.
    ///
    /// # Errors
    /// If there is none.
    fn take(&mut self, name: String, shape: Vec<i64>) -> Result<Self::Tensor, Self::Fault>;

    /// A table: `{name}.weight`.
    fn table(&mut self, name: &str, shape: &[i64]) -> Result<Self::Tensor, Self::Fault> {
        self.take(format!("{name}.weight"), shape.to_vec())
    }

    /// A linear map: `{name}.weight` and, if it has one, `{name}.bias`.
    fn linear(&mut self, name: &str, size: [i64; 2], has_bias: bool) -> Taken<Linear<Self::Tensor>, Self> {
        let weight = self.table(name, &size)?;
        let bias = has_bias.then(|| self.take(format!("{name}.bias"), vec![size[0]]));
        Ok(Linear { weight, bias: bias.transpose()? })
    }

    /// A norm: `{name}.weight` and, of layer normalisation, `{name}.bias`.
    fn norm(&mut self, name: &str, shape: &[i64], kind: NormKind) -> Taken<Norm<Self::Tensor>, Self> {
        let weight = self.table(name, shape)?;
        let bias =
            (kind.0 == Normalisation::Layer).then(|| self.take(format!("{name}.bias"), shape.to_vec()));
        Ok(Norm { weight, bias: bias.transpose()?, kind })
    }
}

/// Notes names and shapes.
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

/// The tensors that a walk takes, in the order of the first times.
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

/// A kind of normalisation, and what is added to the variance or to the mean square.
pub type NormKind = (Normalisation, f64);

/// A norm.
#[derive(Debug)]
pub struct Norm<T> {
    /// Factors: `[width]`, or `[heads, width]`.
    pub weight: T,
    /// `[width]`
    pub bias: Option<T>,
    /// What it computes.
    pub kind: NormKind,
}

/// Kind of normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// Layer normalisation, Ba et al. (2016), <https://arxiv.org/abs/1607.06450>.
    Layer,
    /// The same without a bias.
    LayerWithoutBias,
    /// Root mean square, Zhang and Sennrich (2019), <https://arxiv.org/abs/1910.07467>: no mean is taken away, no bias added.
    RootMeanSquare,
    /// The same with factors that are 1 more than the weights: Gemma.
    ShiftedRootMeanSquare,
}

/// Norms of a sublayer f, each of which may be missing: `after(x + inside(f(before(x))))`. Vaswani et al. (2017) normalise after the
/// sum, Xiong et al. (2020), <https://arxiv.org/abs/2002.04745>, before the sublayer, Gemma 2 and GLM-4 also inside the residual
/// connection.
#[derive(Debug)]
pub struct Norms<T> {
    /// Of what the sublayer reads.
    pub before: Option<Norm<T>>,
    /// Of what it adds.
    pub inside: Option<Norm<T>>,
    /// Of the sum.
    pub after: Option<Norm<T>>,
}

impl<T> Norms<T> {
    /// One norm: before the sublayer, or after the sum.
    pub fn one(norm: Norm<T>, is_before: bool) -> Self {
        let (before, after) = if is_before { (Some(norm), None) } else { (None, Some(norm)) };
        Self { before, inside: None, after }
    }
}

/// One block.
#[derive(Debug)]
pub struct Block<T> {
    /// Self-attention.
    pub attention: Module<T>,
    /// Attention to the source.
    pub cross: Option<Module<T>>,
    /// The feed-forward network, or experts.
    pub feed_forward: FeedForwards<T>,
    /// Norms of the feed-forward network.
    pub feed_forward_norms: Norms<T>,
    /// What the feed-forward network reads.
    pub feed_forward_input: FeedForwardInput,
    /// Factor of what each sublayer adds.
    pub residual: Option<f64>,
    /// Keys that a query sees at most.
    pub window: Option<i64>,
    /// Rotary positions, if the block has any.
    pub turning: Option<Turning>,
}

impl<T> Block<T> {
    /// A block without attention to a source, windows and rotary positions, whose feed-forward network reads the residual stream after
    /// attention.
    pub fn new(attention: Module<T>, feed_forward: FeedForward<T>, feed_forward_norms: Norms<T>) -> Self {
        Self {
            attention,
            cross: None,
            feed_forward: FeedForwards::One(feed_forward),
            feed_forward_norms,
            feed_forward_input: FeedForwardInput::AfterAttention,
            residual: None,
            window: None,
            turning: None,
        }
    }
}

/// What the feed-forward network reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedForwardInput {
    /// The residual stream after attention.
    AfterAttention,
    /// The block's input, as attention does, with a separate norm: GPT-NeoX.
    BlockInput,
    /// The normalised input of attention: Cohere.
    AttentionInput,
}

/// An attention module.
#[derive(Debug)]
pub struct Module<T> {
    /// Maps of queries, keys and values, of the heads that are kept, and the output projection.
    pub maps: [Linear<T>; 4],
    /// The heads that are kept.
    pub heads: ModuleHeads,
    /// Norms around it.
    pub norms: Norms<T>,
    /// Norms of queries and keys.
    pub head_norms: Option<HeadNorms<T>>,
    /// Divisor of the scores.
    pub divisor: f64,
    /// The greatest size of a score.
    pub cap: Option<f64>,
    /// What scores owe to distances.
    pub distances: Distances<T>,
}

impl<T> Module<T> {
    /// Takes the four maps. Scores are divided by the square root of the width of heads.
    ///
    /// - `width`: of the residual stream
    /// - `biases`: true if the maps of queries, keys and values have a bias, and if the output projection has one
    /// - `queries_stay`: true if the maps of queries and keys are of all heads
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

/// Normalisation of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorm {
    /// Over each head; the heads share their factors.
    Alike,
    /// Over each head, with separate factors.
    Own,
    /// Over all heads together.
    Joined,
}

/// What scores of attention owe to the distance between query and key.
#[derive(Debug)]
pub enum Distances<T> {
    /// Nothing.
    None,
    /// A bias of each head: `[buckets, heads]`, all heads of the layout.
    Bias(T, T5Buckets),
    /// Products with embeddings of distances.
    Embeddings {
        /// `[2 * buckets, d_model]`
        table: T,
        /// Of the rows of the table.
        norm: Norm<T>,
        /// Of distances.
        buckets: DebertaBuckets,
        /// Positions of a text at most.
        longest: i64,
    },
}

/// A feed-forward network, or several.
#[derive(Debug)]
pub enum FeedForwards<T> {
    /// One.
    One(FeedForward<T>),
    /// Several, of which each position reads a few.
    Experts {
        /// The map that chooses among them.
        router: Linear<T>,
        /// The networks.
        experts: Vec<FeedForward<T>>,
        /// Experts that a position reads.
        chosen: i64,
        /// True if the shares of those that are chosen sum to 1.
        is_normalised: bool,
    },
}

/// A feed-forward network.
#[derive(Debug)]
pub struct FeedForward<T> {
    /// The inner and the outer map, after the gate if there is one.
    pub maps: Vec<Linear<T>>,
    /// After the inner map, or after the gate.
    pub activation: Activation,
}

impl<T> FeedForward<T> {
    /// Takes maps of these names: the last is the outer one.
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

/// The nonlinearity of a feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// x Φ(x), Hendrycks and Gimpel (2016), exactly.
    #[serde(alias = "gelu_python")]
    Gelu,
    /// The same by its tanh approximation.
    #[serde(alias = "gelu_fast", alias = "gelu_accurate", alias = "gelu_python_tanh")]
    GeluNew,
    /// The same, as Gemma calls it.
    GeluPytorchTanh,
    /// max(0, x), Vaswani et al. (2017)
    Relu,
    /// x * sigmoid(x), as in Llama
    Silu,
    /// The same, as the opus-mt models call it
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
    /// From the names of query, key, value and output projection.
    pub fn new([query, key, value, output]: [String; 4]) -> Self {
        Self { query, key, value, output }
    }
}
