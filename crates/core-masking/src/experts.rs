//! Feed-forward networks: a single one, or a mixture of experts, Shazeer et al. (2017),
//! <https://arxiv.org/abs/1701.06538>, as in Qwen3-MoE, <https://arxiv.org/abs/2505.09388>.
use families::parts;
use tch::Tensor;

use crate::layers::{FeedForward, Linear};

/// The feed-forward part of a block.
#[derive(Debug)]
pub(crate) enum FeedForwards {
    One(FeedForward),
    Experts(Experts),
}

#[derive(Debug)]
pub(crate) struct Experts {
    pub(crate) router: Linear,
    pub(crate) experts: Vec<FeedForward>,
    /// Experts per token (top k).
    pub(crate) chosen: i64,
    /// True if the routing weights of the selected experts are rescaled to sum to 1.
    pub(crate) is_normalised: bool,
}

impl From<parts::FeedForwards<Tensor>> for FeedForwards {
    fn from(networks: parts::FeedForwards<Tensor>) -> Self {
        match networks {
            parts::FeedForwards::One(network) => Self::One(network.into()),
            parts::FeedForwards::Experts { router, experts, chosen, is_normalised } => {
                let experts = experts.into_iter().map(FeedForward::from).collect();
                Self::Experts(Experts { router: router.into(), experts, chosen, is_normalised })
            }
        }
    }
}

impl FeedForwards {
    /// Applies the network to `x`, `[batch, position, d_model]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Self::One(block) => block.forward(x),
            Self::Experts(experts) => experts.forward(x),
        }
    }

    /// Returns the multiply-adds per position.
    pub(crate) fn multiply_adds(&self) -> u64 {
        match self {
            Self::One(block) => block.multiply_adds(),
            Self::Experts(Experts { router, experts, chosen, .. }) => {
                router.multiply_adds() + *chosen as u64 * experts[0].multiply_adds()
            }
        }
    }
}

impl Experts {
    fn forward(&self, x: &Tensor) -> Tensor {
        let rows = x.flatten(0, -2); // [row, d_model]
        let logits = self.router.forward(&rows); // [row, expert]
        let (shares, chosen) = logits.softmax(-1, logits.kind()).topk(self.chosen, -1, true, true);
        let shares =
            if self.is_normalised { &shares / shares.sum_dim_intlist(-1, true, None) } else { shares };
        let mut sum = rows.zeros_like();
        for (number, expert) in (0..).zip(&self.experts) {
            let places = chosen.eq(number).nonzero(); // [read, 2], rows and ranks
            let (readers, ranks) = (places.select(1, 0), places.select(1, 1));
            if readers.numel() > 0 {
                let share = shares.index_select(0, &readers).gather(1, &ranks.unsqueeze(1), false); // [read, 1]
                sum = sum.index_add(0, &readers, &(expert.forward(&rows.index_select(0, &readers)) * share));
            }
        }
        sum.view_as(x)
    }
}
