//! What head sets share below the first layer in which one of them masks a head.
use tch::Tensor;

/// What enters a layer of the intact model for one batch, which can be given to a later sweep.
///
/// It belongs to the model and the batch that it comes from, to which a caller must give it.
#[derive(Debug)]
pub struct Trunk {
    pub(crate) layer: usize,
    pub(crate) x: Tensor, // [batch, position, d_model]
}

impl Trunk {
    /// The same on the same tensor, for another thread.
    pub fn share(&self) -> Self {
        Self { layer: self.layer, x: self.x.shallow_clone() }
    }

    /// What enters layer `top` of a batch: what is `left` of an earlier sweep, gone on with, if it is of a batch of this
    /// size and stops at `top` or below, and computed anew otherwise.
    ///
    /// - `size`: `[batch, position]`
    /// - `enter`: what enters the first layer
    /// - `pass`: what leaves a layer, counted from 0, from what enters it
    pub(crate) fn up_to(
        top: usize,
        left: Option<Self>,
        size: &[i64],
        enter: impl FnOnce() -> Tensor,
        pass: impl Fn(usize, &Tensor) -> Tensor,
    ) -> Self {
        let usable = left.filter(|left| left.layer <= top && left.x.size()[..2] == *size);
        let Self { layer, x } = usable.unwrap_or_else(|| Self { layer: 0, x: enter() });
        Self { layer: top, x: (layer..top).fold(x, |x, layer| pass(layer, &x)) }
    }
}
