//! Joint evaluation of head sets, which share computation.
//!
//! A layer's output depends on the gates of that layer and of earlier ones. All sets therefore share the layers before the first in which
//! one of them masks a head: the [`PrefixCache`]. Sets whose gates agree up to some layer share the layers before it, and the head outputs
//! in it, which are computed before gating. So the sets form a tree, layer by layer, and each node is computed once: a [`Walk`]. When nodes
//! are computed one by one, the contribution of a few masked heads is subtracted from the contribution of all heads. Results are exact
//! except for rounding.
use std::ops::Range;

use tch::{Device, Kind, Tensor};

use crate::ablation::Contexts;
use crate::attention::MultiHeadAttention;
use crate::gates::Gate;
use crate::model::GatedModel;
use crate::{Attention, Error, Gates, HeadLayout, HeadSet, Replacement, to_vec};

/// Head sets of one model, ready to be evaluated together.
#[derive(Debug)]
pub struct Variants {
    pub(crate) gates: Gates, // one row for each set
    /// By layer of the stack and set: the gates of the heads that the layer has.
    pub(crate) values: Vec<Vec<Vec<f64>>>,
    /// The first layer of the stack with a masked head; the number of layers if no head is masked.
    pub(crate) lowest: usize,
    pub(crate) replacement: Option<Replacement>, // of one row, or one for each row of the batch
    options: (Kind, Device),                     // of the model
    len: usize,
}

impl Variants {
    /// Prepares one or more `sets`; `rescale` multiplies the kept heads of a layer by heads / kept. The sets share
    /// layers of the stack of `attention`.
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
            replacement: None,
            options: model.options(),
            len: sets.len(),
        })
    }

    /// Replaces the outputs of masked heads with `replacement`, which has one row, or one for each row of the batch.
    #[must_use]
    pub fn replaced_by(self, replacement: Option<&Replacement>) -> Self {
        Self { replacement: replacement.map(|replacement| replacement.to(self.options)), ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// Returns the gates of the remaining heads of a layer, by row and head.
fn values(gates: &Gates, layout: &HeadLayout, attention: Attention, layer: usize) -> Vec<Vec<f64>> {
    let present = layout.kept(attention, layer);
    let gates = gates.of(attention, layer);
    let heads = gates.values().size()[1] as usize;
    let all = to_vec::<f64>(gates.values());
    all.chunks(heads).map(|row| present.iter().map(|&head| row[head as usize]).collect()).collect()
}

/// Input of a layer of the full model for one batch, which a later sweep with this model and batch can reuse. The caller must not mix
/// models or batches.
#[derive(Debug)]
pub struct PrefixCache {
    pub(crate) layer: usize,
    pub(crate) x: Tensor, // [batch, position, d_model]
}

impl PrefixCache {
    /// Returns a cache that shares this tensor, for another thread.
    pub fn share(&self) -> Self {
        Self { layer: self.layer, x: self.x.shallow_clone() }
    }

    /// Computes the input of layer `top` for a batch, starting from `left`, the cache of an earlier sweep, if it has this batch's size
    /// and ends at or before `top`.
    ///
    /// - `size`: `[batch, position]`
    /// - `enter`: returns the input of the first layer
    /// - `pass`: returns the output of a layer, counted from 0, from its input
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

/// A stack of self-attention layers.
pub(crate) trait Stack {
    /// The attention module of a layer, counted from 0.
    fn attention(&self, layer: usize) -> &MultiHeadAttention;

    /// Returns the head outputs of a layer before gating, `[rows, kept, position, d_head]`, from its input `x`,
    /// `[rows, position, d_model]`. The layer's own `gates` do not matter.
    fn context(&self, layer: usize, x: &Tensor, gates: &Gates) -> Tensor;

    /// Returns the output of a layer from its input `x` and the output of its attention; all `[rows, position, d_model]`.
    fn finish(&self, layer: usize, x: &Tensor, attended: Tensor) -> Tensor;
}

/// Variants whose gates have agreed so far and which are computed as one.
pub(crate) type Node = Vec<usize>;

pub(crate) struct NodeGates {
    values: Tensor, // [nodes * batch, heads]
    replacement: Option<Contexts>,
}

impl NodeGates {
    pub(crate) fn gate(&self) -> Gate<'_> {
        Gate::from(&self.values).replaced_by(self.replacement.as_ref())
    }
}

/// A traversal of a stack by one batch under all variants.
pub(crate) struct Walk<'a, S> {
    stack: &'a S,
    variants: &'a Variants,
    attention: Attention,
    batch: i64,
    together: usize,
}

impl<'a, S: Stack> Walk<'a, S> {
    /// - `attention`: the stack's attention type
    /// - `batch`: rows of the batch
    /// - `together`: nodes that are computed as rows of one batch, which bounds the memory
    pub(crate) fn new(
        stack: &'a S,
        variants: &'a Variants,
        attention: Attention,
        batch: i64,
        together: usize,
    ) -> Self {
        Self { stack, variants, attention, batch, together }
    }

    /// Computes all `layers` for all variants from the first layer's input, `[batch, position, d_model]`. Passes finished nodes and their
    /// outputs, `[nodes * batch, position, d_model]`, to `arrive`.
    pub(crate) fn ascend(
        &self,
        layers: Range<usize>,
        x: &Tensor,
        arrive: &mut impl FnMut(&Tensor, Vec<Node>),
    ) {
        self.ascend_from(layers, x, vec![(0..self.variants.len()).collect()], arrive);
    }

    fn ascend_from(
        &self,
        layers: Range<usize>,
        x: &Tensor,
        nodes: Vec<Node>,
        arrive: &mut impl FnMut(&Tensor, Vec<Node>),
    ) {
        let layer = layers.start;
        if layers.is_empty() {
            return arrive(x, nodes);
        }
        let children = self.children(layer, &nodes);
        let attention = self.stack.attention(layer);
        let context = self.stack.context(layer, x, &self.variants.gates);
        // With half-precision sums, differences would have a larger error than the model itself.
        let one_by_one = self.together == 1 && matches!(context.kind(), Kind::Float | Kind::Double);
        let whole = if one_by_one { self.whole(layer, &context, &children) } else { None };
        for part in children.chunks(self.together) {
            let of_parents = |all: &Tensor| match part {
                [(parent, _)] => self.of_node(all, *parent),
                _ => {
                    let parents: Vec<_> = part.iter().map(|(parent, _)| self.of_node(all, *parent)).collect();
                    Tensor::cat(&parents, 0)
                }
            };
            let nodes: Vec<Node> = part.iter().map(|(_, node)| node.clone()).collect();
            let attended = match part {
                [(_, node)] if one_by_one => {
                    let values = &self.variants.values[layer][node[0]];
                    let merged = attention.merge_some(&context, values, whole.as_ref());
                    self.replacement(layer).map_or_else(
                        || merged.shallow_clone(),
                        |replaced| attention.add_replaced(&merged, replaced, values),
                    )
                }
                _ => attention.merge(of_parents(&context), self.gates(layer, &nodes).gate()),
            };
            let out = self.stack.finish(layer, &of_parents(x), attended);
            self.ascend_from(layer + 1..layers.end, &out, nodes, arrive);
        }
    }

    /// Returns the output of a layer's attention with all heads open, `[batch, position, d_model]`, if one of the `children` keeps more
    /// heads than it masks. Those children subtract their masked heads from it; the others do not, so that a set's numbers do not depend on
    /// which sets are evaluated together.
    fn whole(&self, layer: usize, context: &Tensor, children: &[(usize, Node)]) -> Option<Tensor> {
        let keeps_most = |(_, child): &(usize, Node)| {
            let values = &self.variants.values[layer][child[0]];
            let masked = values.iter().filter(|&&value| value == 0.0).count();
            masked > 0 && 2 * masked < values.len()
        };
        children.iter().any(keeps_most).then(|| self.stack.attention(layer).merge_open(context))
    }

    /// Returns the rows of one node: `[batch, ..]` of `[nodes * batch, ..]`.
    pub(crate) fn of_node(&self, all: &Tensor, node: usize) -> Tensor {
        all.narrow(0, node as i64 * self.batch, self.batch)
    }

    /// Returns the nodes after a layer, each with the index of its parent.
    pub(crate) fn children(&self, layer: usize, nodes: &[Node]) -> Vec<(usize, Node)> {
        let mut children: Vec<(usize, Node)> = Vec::new();
        for (parent, node) in nodes.iter().enumerate() {
            let first = children.len();
            for &variant in node {
                let values = &self.variants.values[layer];
                let same = |(_, child): &&mut (usize, Node)| values[child[0]] == values[variant];
                match children[first..].iter_mut().find(same) {
                    Some((_, child)) => child.push(variant),
                    None => children.push((parent, vec![variant])),
                }
            }
        }
        children
    }

    /// Returns the gates of `nodes` in a layer.
    pub(crate) fn gates(&self, layer: usize, nodes: &[Node]) -> NodeGates {
        let rows: Vec<i64> = nodes.iter().map(|node| node[0] as i64).collect();
        let gates = self.variants.gates.of(self.attention, layer);
        let rows = Tensor::from_slice(&rows).to_device(gates.values().device());
        NodeGates {
            values: gates.values().index_select(0, &rows).repeat_interleave_self_int(self.batch, 0, None),
            replacement: self.replacement(layer).map(|contexts| contexts.repeat(nodes.len() as i64)),
        }
    }

    fn replacement(&self, layer: usize) -> Option<&Contexts> {
        self.variants.replacement.as_ref()?.of(self.attention, layer)
    }

    /// Distributes the results of nodes to their variants.
    pub(crate) fn by_variant(&self, nodes: impl IntoIterator<Item = (Node, Tensor)>) -> Vec<Tensor> {
        let mut by_variant: Vec<Option<Tensor>> = (0..self.variants.len()).map(|_| None).collect();
        for (node, found) in nodes {
            for variant in node {
                by_variant[variant] = Some(found.shallow_clone());
            }
        }
        by_variant.into_iter().map(|found| found.expect("each variant is in one node")).collect()
    }
}
