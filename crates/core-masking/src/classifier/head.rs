//! Classification head: logits of a text or image, or of each token, from the output of the last layer.
use tch::Tensor;

use super::{Classified, ClassifierConfig, ClassifierHead, HeadActivation, Pooling};
use crate::ModelDropout;
use crate::layers::{Linear, Norm, normalised};
use families::classifier::HeadParts;

#[derive(Debug)]
pub(crate) struct Head {
    entering: Option<Norm>, // normalises each position
    reads: Reads,
    first: Option<Linear>,
    activation: HeadActivation,
    norm: Option<Norm>,
    pub(crate) last: Linear,
    drops_input: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// The first, such as `[CLS]`.
    First,
    /// The mean of all real positions.
    Mean,
    /// Each, for its token.
    Each,
}

impl Head {
    /// Builds the head; `entering` is the norm after the last layer.
    pub(super) fn new(config: &ClassifierConfig, entering: Option<Norm>, parts: HeadParts<Tensor>) -> Self {
        let &ClassifierHead { activation, drops_input, .. } = config.head();
        let reads = match (config.classified(), config.options.classifier_pooling) {
            (Classified::Tokens, _) => Reads::Each,
            (Classified::Texts, Some(Pooling::Mean)) => Reads::Mean,
            _ => Reads::First,
        };
        Self {
            entering,
            reads,
            first: parts.first.map(Linear::from),
            activation,
            norm: parts.norm.map(Norm::from),
            last: parts.last.into(),
            drops_input,
        }
    }

    pub(super) fn reads_first(&self) -> bool {
        self.reads == Reads::First
    }

    /// Returns how many positions, from the first on, are read.
    pub(super) fn reads(&self, positions: i64) -> i64 {
        if self.reads_first() { 1 } else { positions }
    }

    /// Returns the first map of a head that reads the first position; `None` for other heads.
    pub(crate) fn of_first(&self) -> Option<&Linear> {
        self.first.as_ref().filter(|_| self.reads_first())
    }

    /// Computes logits from the output of the last layer, `[batch, queries, d_model]`.
    ///
    /// - `bias`: `[batch, 1, 1, position]`, `-inf` at padding
    /// - returns `[batch, labels]`, or `[batch, position, labels]` for each token
    pub(super) fn forward(&self, x: &Tensor, bias: &Tensor, dropout: &ModelDropout) -> Tensor {
        let read = x.narrow(1, 0, self.reads(x.size()[1]));
        let read = normalised(self.entering.as_ref(), &read);
        let read = match self.reads {
            Reads::First => read.select(1, 0), // [batch, d_model]
            Reads::Mean => {
                let real = bias.isfinite().view([x.size()[0], -1, 1]).to_kind(x.kind()); // [batch, position, 1]
                (read * &real).sum_dim_intlist(1, false, None) / real.sum_dim_intlist(1, false, None) // [batch, d_model]
            }
            Reads::Each => read, // [batch, position, d_model]
        };
        let read = if self.drops_input { dropout.classifier.apply(read) } else { read };
        let mapped = match &self.first {
            Some(first) => self.activate(&first.forward(&read)),
            None => read,
        };
        let mapped = normalised(self.norm.as_ref(), &mapped);
        self.last.forward(&dropout.classifier.apply(mapped))
    }

    pub(crate) fn activate(&self, x: &Tensor) -> Tensor {
        match self.activation {
            HeadActivation::Tanh => x.tanh(),
            HeadActivation::Relu => x.relu(),
            HeadActivation::Gelu => x.gelu("none"),
        }
    }

    /// Returns the multiply-adds for a text of this many positions.
    pub(super) fn multiply_adds(&self, positions: u64) -> u64 {
        let maps = self.first.iter().chain([&self.last]).map(Linear::multiply_adds).sum::<u64>();
        if self.reads == Reads::Each { positions * maps } else { maps }
    }
}
