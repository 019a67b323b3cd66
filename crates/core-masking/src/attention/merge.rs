//! From head outputs to the residual stream: gating, and W_o.
use tch::Tensor;

use super::MultiHeadAttention;
use crate::ablation::Contexts;
use crate::gates::Gate;

impl MultiHeadAttention {
    /// Returns the module's output, `[batch, query, d_model]`, from head outputs, `[batch, kept, query, d_head]`.
    pub(crate) fn merge(&self, context: Tensor, gates: Gate<'_>) -> Tensor {
        // ξ_h multiplies Att_h, which ends with W_o. W_o is linear, so its input can be gated instead; its bias belongs to no head and is
        // not gated.
        self.merge_open(&self.gated(context, gates))
    }

    /// Returns the head outputs after gating, `[batch, kept, query, d_head]`.
    pub(crate) fn gated(&self, context: Tensor, gates: Gate<'_>) -> Tensor {
        gates.apply(context, self.kept.as_ref())
    }

    /// [`merge`](Self::merge) with all gates open.
    pub(crate) fn merge_open(&self, context: &Tensor) -> Tensor {
        let joined = context.transpose(1, 2).flatten(2, 3); // [batch, query, kept * d_head]
        if self.is_without_heads() {
            // libtorch would divide by the number of heads, 0; with the empty sum, gradients are 0 instead of absent
            self.output.bias() + joined.sum_dim_intlist(2, true, None)
        } else {
            self.output.forward(&joined)
        }
    }

    /// [`merge`](Self::merge) with some gates closed and all others equal, computed from the kept or from the masked heads, whichever are
    /// fewer.
    ///
    /// - `context`: `[batch, kept, query, d_head]`
    /// - `values`: the gates of the heads in `context`
    /// - `whole`: the output of [`merge_open`](Self::merge_open), from which masked heads are subtracted; without it kept heads are added
    ///   up
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

    /// Adds the contribution of the replacements of masked heads to `sum`, `[batch, query, d_model]`.
    ///
    /// `values`: the gates of the remaining heads; 0 marks a masked head
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

    /// Returns the outputs of the heads at `places`, `[rows, query, places * d_head]`, and their rows of W_oᵀ,
    /// `[places * d_head, d_model]`.
    fn part_of(&self, context: &Tensor, places: &[i64]) -> (Tensor, Tensor) {
        let places = Tensor::from_slice(places).to_device(context.device());
        let read = context.index_select(1, &places).transpose(1, 2).flatten(2, 3);
        let columns = self.output.weight().unflatten(1, [-1, self.d_head]).index_select(1, &places);
        (read, columns.flatten(1, 2).tr())
    }

    /// Adds `factor` times the contribution of the heads at `places` to `sum`, `[batch, query, d_model]`.
    ///
    /// `context`: `[batch, kept, query, d_head]`
    fn add_heads(&self, sum: &Tensor, context: &Tensor, places: &[i64], factor: f64) -> Tensor {
        if places.is_empty() {
            return sum.shallow_clone();
        }
        let (read, columns) = self.part_of(context, places);
        // tch's addmm takes no factor, but baddbmm does, here with a batch of one
        let one_batch = |rows: &Tensor| rows.flatten(0, -2).unsqueeze(0); // [1, rows, ..]
        one_batch(sum).baddbmm(&one_batch(&read), &columns.unsqueeze(0), 1.0, factor).view_as(sum)
    }
}
