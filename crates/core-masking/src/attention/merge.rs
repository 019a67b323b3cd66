//! What heads add to the residual stream: gates, and W_o.
use tch::Tensor;

use super::MultiHeadAttention;
use crate::ablation::Contexts;
use crate::gates::Gate;

impl MultiHeadAttention {
    /// Output of the module, which is added to the residual stream, `[batch, query, d_model]`.
    ///
    /// `context`: `[batch, kept, query, d_head]`
    pub(crate) fn merge(&self, context: Tensor, gates: Gate<'_>) -> Tensor {
        // ξ_h multiplies Att_h, which ends with W_o. W_o is linear, so gating its input is the
        // same; its bias belongs to no head and stays.
        self.merge_open(&self.gated(context, gates))
    }

    /// `context` after its gates, `[batch, kept, query, d_head]`.
    pub(crate) fn gated(&self, context: Tensor, gates: Gate<'_>) -> Tensor {
        gates.apply(context, self.kept.as_ref())
    }

    /// [`merge`](Self::merge) with all gates open.
    pub(crate) fn merge_open(&self, context: &Tensor) -> Tensor {
        let joined = context.transpose(1, 2).flatten(2, 3); // [batch, query, kept * d_head]
        if self.is_without_heads() {
            // libtorch divides by the number of heads; the sum of nothing is 0, so that gradients are 0 and not absent
            self.output.bias() + joined.sum_dim_intlist(2, true, None)
        } else {
            self.output.forward(&joined)
        }
    }

    /// [`merge`](Self::merge) with some gates closed and all others at one value, by fewer products with W_o.
    ///
    /// - `context`: `[batch, kept, query, d_head]`
    /// - `values`: the gates of the heads in `context`
    /// - `whole`: what [`merge_open`](Self::merge_open) gives, from which masked heads are taken if they are the fewer; the
    ///   others are added up without it
    ///
    /// # Panics
    /// If the gates that are not closed differ.
    pub(crate) fn merge_some(&self, context: &Tensor, values: &[f64], whole: Option<&Tensor>) -> Tensor {
        let (kept, masked): (Vec<i64>, Vec<i64>) =
            (0..values.len() as i64).partition(|&place| values[place as usize] != 0.0);
        let gate = kept.first().map_or(0.0, |&place| values[place as usize]);
        assert!(kept.iter().all(|&place| values[place as usize] == gate), "one value for all kept heads");
        let bias = self.output.bias();
        match whole {
            Some(whole) if masked.len() < kept.len() => {
                let scaled = if gate == 1.0 { whole } else { &(whole * gate + bias * (1.0 - gate)) };
                self.add_heads(scaled, context, &masked, -gate)
            }
            _ if masked.is_empty() && gate == 1.0 => self.merge_open(context),
            _ => {
                let size = context.size();
                let none = bias.expand([size[0], size[2], bias.size()[0]], false); // [batch, query, d_model]
                self.add_heads(&none, context, &kept, gate)
            }
        }
    }

    /// `sum`, `[batch, query, d_model]`, with what the replacements of masked heads add.
    ///
    /// `values`: the gates of the heads that are kept, of which those at 0 are masked
    pub(crate) fn add_replaced(&self, sum: &Tensor, replacement: &Contexts, values: &[f64]) -> Tensor {
        let masked: Vec<i64> =
            (0..values.len() as i64).filter(|&place| values[place as usize] == 0.0).collect();
        if masked.is_empty() {
            return sum.shallow_clone();
        }
        let all = replacement.of_first(sum.size()[1]); // [rows, heads, query or 1, d_head]
        let kept = self.kept.as_ref().map_or_else(|| all.shallow_clone(), |kept| all.index_select(1, kept));
        let (read, columns) = self.part_of(&kept, &masked);
        sum + read.matmul(&columns)
    }

    /// What the heads at these places read, `[rows, query, places * d_head]`, and what W_o makes of it,
    /// `[places * d_head, d_model]`.
    fn part_of(&self, context: &Tensor, places: &[i64]) -> (Tensor, Tensor) {
        let places = Tensor::from_slice(places).to_device(context.device());
        let read = context.index_select(1, &places).transpose(1, 2).flatten(2, 3);
        let columns = self.output.weight().unflatten(1, [-1, self.d_head]).index_select(1, &places);
        (read, columns.flatten(1, 2).tr())
    }

    /// `sum`, `[batch, query, d_model]`, with what some heads add, times a factor.
    ///
    /// - `context`: `[batch, kept, query, d_head]`; `places`: of the heads in it
    /// - returns the shape of `sum`, and `sum` itself if there are no heads
    fn add_heads(&self, sum: &Tensor, context: &Tensor, places: &[i64], factor: f64) -> Tensor {
        if places.is_empty() {
            return sum.shallow_clone();
        }
        let (read, columns) = self.part_of(context, places);
        // tch's addmm takes no factor; a batch of one does
        let one_batch = |rows: &Tensor| rows.flatten(0, -2).unsqueeze(0); // [1, rows, ..]
        one_batch(sum).baddbmm(&one_batch(&read), &columns.unsqueeze(0), 1.0, factor).view_as(sum)
    }
}
