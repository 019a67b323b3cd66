//! Parts of a Transformer layer other than attention.
use families::parts::{self, Activation, Normalisation};
use tch::{Kind, Tensor};

use crate::product;

/// A linear map, `x Wᵀ + b`.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl From<parts::Linear<Tensor>> for Linear {
    fn from(parts::Linear { weight, bias }: parts::Linear<Tensor>) -> Self {
        Self { weight, bias }
    }
}

impl Linear {
    /// Returns the numbers of outputs and inputs.
    pub fn size(&self) -> (u64, u64) {
        let size = self.weight.size();
        (size[0] as u64, size[1] as u64)
    }

    /// Returns the multiply-adds per row.
    pub fn multiply_adds(&self) -> u64 {
        let (outputs, inputs) = self.size();
        outputs * inputs
    }

    /// Returns the weight, `[out, in]`.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// Returns the bias, `[out]`; zeros if the map has none.
    pub fn bias(&self) -> Tensor {
        let options = (self.weight.kind(), self.weight.device());
        let zeros = || Tensor::zeros([self.weight.size()[0]], options);
        self.bias.as_ref().map_or_else(zeros, Tensor::shallow_clone)
    }

    /// Maps `x`, `[.., in]`, to `[.., out]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        product::linear(x, &self.weight, self.bias.as_ref())
    }
}

/// Layer normalisation over the last axis.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f64,
}

impl LayerNorm {
    /// Creates the norm from γ and β, both `[d_model]`; β defaults to 0. `epsilon` is added to the variance.
    pub fn new(weight: Tensor, bias: Option<Tensor>, epsilon: f64) -> Self {
        Self { bias: bias.unwrap_or_else(|| weight.detach().zeros_like()), weight, epsilon }
    }

    /// Returns γ and β, both `[d_model]`, and epsilon.
    pub(crate) fn parts(&self) -> (&Tensor, &Tensor, f64) {
        (&self.weight, &self.bias, self.epsilon)
    }

    /// Normalises `x`, `[.., d_model]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        if self.weight.dim() > 1 {
            // each head has its own factors
            let plain =
                x.layer_norm([self.weight.size()[1]], None::<&Tensor>, None::<&Tensor>, self.epsilon, false);
            return plain * &self.weight + &self.bias;
        }
        x.layer_norm(self.weight.size(), Some(&self.weight), Some(&self.bias), self.epsilon, false)
    }
}

/// Division by the root mean square over the last axis: Zhang and Sennrich (2019), <https://arxiv.org/abs/1910.07467>.
#[derive(Debug)]
pub struct RmsNorm {
    weight: Tensor,
    epsilon: f64,
    is_shifted: bool,
}

impl RmsNorm {
    /// Returns the factors, `[width]`, and the epsilon that is added to the mean square.
    pub(crate) fn parts(&self) -> (Tensor, f64) {
        let factors = if self.is_shifted { &self.weight + 1.0 } else { self.weight.shallow_clone() };
        (factors, self.epsilon)
    }

    /// Normalises `x`, `[.., width]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (factors, epsilon) = self.parts();
        x.rms_norm(factors.size(), Some(&factors), epsilon)
    }
}

/// A layer norm or an RMS norm.
#[derive(Debug)]
pub(crate) enum Norm {
    Layer(LayerNorm),
    RootMeanSquare(RmsNorm),
}

impl From<parts::Norm<Tensor>> for Norm {
    fn from(parts::Norm { weight, bias, kind: (kind, epsilon) }: parts::Norm<Tensor>) -> Self {
        match kind {
            Normalisation::Layer | Normalisation::LayerWithoutBias => {
                Self::Layer(LayerNorm::new(weight, bias, epsilon))
            }
            Normalisation::RootMeanSquare | Normalisation::ShiftedRootMeanSquare => {
                let is_shifted = kind == Normalisation::ShiftedRootMeanSquare;
                Self::RootMeanSquare(RmsNorm { weight, epsilon, is_shifted })
            }
        }
    }
}

/// Applies `norm` to `x`, `[.., d_model]`; returns `x` if it is `None`.
pub(crate) fn normalised(norm: Option<&Norm>, x: &Tensor) -> Tensor {
    norm.map_or_else(|| x.shallow_clone(), |norm| norm.forward(x))
}

impl Norm {
    /// Normalises `x`, `[.., d_model]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::RootMeanSquare(norm) => norm.forward(x),
        }
    }

    /// Returns `direction · norm(x)` with the norm's scale held constant, as a linear form in `x`: its direction, `[rows, d_model]`, and
    /// its constant term (from the norm's bias), `[rows]`. Both are in double precision.
    ///
    /// `x`, `direction`: `[rows, d_model]`
    pub(crate) fn frozen(&self, x: &Tensor, direction: &Tensor) -> (Tensor, Tensor) {
        let (x, along) =
            (x.to_kind(Kind::Double), |bias: &Tensor| direction.matmul(&bias.to_kind(Kind::Double)));
        match self {
            Self::Layer(norm) => {
                let (factors, bias, epsilon) = norm.parts();
                let scale = (x.var_dim([-1].as_slice(), false, true) + epsilon).rsqrt(); // [rows, 1]
                let inner = direction * factors * scale;
                (&inner - inner.mean_dim([-1].as_slice(), true, None), along(bias))
            }
            Self::RootMeanSquare(norm) => {
                let (factors, epsilon) = norm.parts();
                let scale = (x.square().mean_dim([-1].as_slice(), true, None) + epsilon).rsqrt();
                (direction * &factors * scale, along(&factors.zeros_like()))
            }
        }
    }
}

/// Applies the activation function elementwise.
pub(crate) fn activated(activation: Activation, x: &Tensor) -> Tensor {
    match activation {
        Activation::Gelu => x.gelu("none"),
        Activation::GeluNew | Activation::GeluPytorchTanh => x.gelu("tanh"),
        Activation::Relu => x.relu(),
        Activation::Silu | Activation::Swish => x.silu(),
    }
}

/// `outer(activation(inner(x)))`, or `outer(activation(gate(x)) * inner(x))` (Shazeer 2020, <https://arxiv.org/abs/2002.05202>),
/// applied to each position separately.
#[derive(Debug)]
pub struct FeedForward {
    pub(crate) activation: Activation,
    gate: Option<Linear>,
    pub(crate) inner: Linear,
    pub(crate) outer: Linear,
}

impl From<parts::FeedForward<Tensor>> for FeedForward {
    fn from(parts::FeedForward { maps, activation }: parts::FeedForward<Tensor>) -> Self {
        let mut maps: Vec<Linear> = maps.into_iter().map(Linear::from).collect();
        let (outer, inner) = (maps.pop(), maps.pop());
        let [outer, inner] =
            [outer, inner].map(|map| map.expect("a feed-forward network has two maps or three"));
        Self { activation, gate: maps.pop(), inner, outer }
    }
}

impl FeedForward {
    /// Applies the network to `x`, `[batch, position, d_model]`.
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let active = match &self.gate {
            Some(gate) => activated(self.activation, &gate.forward(x)) * self.inner.forward(x), // [batch, position, d_ff]
            None => activated(self.activation, &self.inner.forward(x)),
        };
        self.outer.forward(&active)
    }

    /// Returns true if the network is a gated linear unit.
    pub(crate) fn is_gated(&self) -> bool {
        self.gate.is_some()
    }

    /// Returns the multiply-adds per position.
    pub fn multiply_adds(&self) -> u64 {
        let gate = self.gate.as_ref().map_or(0, Linear::multiply_adds);
        gate + self.inner.multiply_adds() + self.outer.multiply_adds()
    }
}
