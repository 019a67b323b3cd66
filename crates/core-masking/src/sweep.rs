//! Head sets that are evaluated together, and what they share.
//!
//! What leaves a layer depends on the gates of that layer and of those below, so sets share all that lies below the first
//! layer in which one of them masks a head: the [`Trunk`].
use tch::Tensor;

use crate::model::GatedModel;
use crate::{Attention, Error, Gates, HeadLayout, HeadSet, to_vec};

/// Head sets of one model, ready to be evaluated together.
#[derive(Debug)]
pub struct Variants {
    pub(crate) gates: Gates, // one row for each set
    /// By layer of the stack and set: the gates of the heads that the layer has.
    pub(crate) values: Vec<Vec<Vec<f64>>>,
    /// The first layer of the stack with a masked head; their number if there is none.
    pub(crate) lowest: usize,
    sets: usize,
}

impl Variants {
    /// One variant for each of `sets`; `rescale` multiplies the kept heads of a layer by heads / kept. The stack whose layers
    /// the sets share is that of `attention`.
    ///
    /// # Errors
    /// If a set names a head that the model does not have.
    ///
    /// # Panics
    /// If there are no sets.
    pub(crate) fn new(
        model: &impl GatedModel,
        attention: Attention,
        sets: &[HeadSet],
        rescale: bool,
    ) -> Result<Self, Error> {
        let layout = model.layout();
        let gates = Gates::masking(&layout, sets, model.options())?;
        let gates = if rescale { gates.rescaled(&layout) } else { gates };
        let layers = layout.module(attention, 0).shape.layers;
        let of_stack = sets.iter().flat_map(HeadSet::iter).filter(|id| id.attention() == attention);
        Ok(Self {
            values: (0..layers).map(|layer| values(&gates, &layout, attention, layer)).collect(),
            gates,
            lowest: of_stack.map(|id| id.layer_index()).min().unwrap_or(layers),
            sets: sets.len(),
        })
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.sets
    }
}

/// The gates in a layer, by row and head; heads that were removed have none.
fn values(gates: &Gates, layout: &HeadLayout, attention: Attention, layer: usize) -> Vec<Vec<f64>> {
    let present = layout.kept(attention, layer);
    let gates = gates.of(attention, layer);
    let heads = gates.values().size()[1] as usize;
    let all = to_vec::<f64>(gates.values());
    all.chunks(heads).map(|row| present.iter().map(|&head| row[head as usize]).collect()).collect()
}

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

    /// What enters layer `top` of a batch: what is `left` of an earlier sweep, taken further, if it is of a batch of
    /// this size and stops at `top` or below, and computed anew otherwise.
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
