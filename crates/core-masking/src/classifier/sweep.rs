//! One batch under many head sets: what they have in common is computed once.
//!
//! What leaves a layer depends on the gates of that layer and of those below, so sets whose gates agree up to some layer
//! share all below it; where they part, they still share what the heads read, since gates come after it. The sets are a
//! tree, layer by layer, and each of its nodes is computed once. Where nodes are computed one by one and several of them
//! mask a few heads of a layer, what these add is taken from what all heads add together. In the last layer only the position
//! that the classifier reads is computed, without keys and values of the others. Exact but for rounding: of these
//! differences and of products of other sizes.
use tch::{Kind, Tensor};

use super::Classifier;
use crate::sweep::{Trunk, Variants};
use crate::{Attention, Error, GatedModel, Gates, HeadSet, ModelDropout, SegmentBatch};

/// The variants whose gates agree so far: they are computed as one.
type Node = Vec<usize>;

/// A batch on its way through the layers.
struct Walk<'a> {
    model: &'a Classifier,
    variants: &'a Variants,
    bias: &'a Tensor, // [batch, 1, 1, position]
    together: usize,
    last: Vec<Last>,
}

/// What a node has in the last layer at the position that is read, before gates are applied. Nodes wait for each other
/// here: a few rows would hardly pay for reading the layer's weights.
struct Last {
    x: Tensor,       // [batch, 1, d_model]
    context: Tensor, // [batch, kept, 1, d_head]
    node: Node,
}

impl Classifier {
    /// One variant for each of `sets`; `rescale` multiplies the kept heads of a layer by heads / kept.
    ///
    /// # Errors
    /// If a set names a head that the model does not have.
    pub fn variants(&self, sets: &[HeadSet], rescale: bool) -> Result<Variants, Error> {
        Variants::new(self, Attention::SelfAttention, sets, rescale)
    }

    /// Logits `[batch, labels]` of a batch under each variant.
    ///
    /// - `together`: nodes of the tree that are computed as rows of one batch, which bounds the memory
    /// - `trunk`: what an earlier call left for this batch, used if all variants leave the layers below it intact
    ///
    /// Also returns what is left for the next call with this batch.
    ///
    /// # Panics
    /// If `together` is 0.
    pub fn sweep(
        &self,
        batch: &SegmentBatch,
        variants: &Variants,
        together: usize,
        trunk: Option<Trunk>,
    ) -> (Vec<Tensor>, Trunk) {
        let trunk = self.trunk(batch, self.top(variants), trunk);
        let mut walk = Walk { model: self, variants, bias: &batch.tokens.bias, together, last: Vec::new() };
        walk.ascend(trunk.layer, &trunk.x, vec![(0..variants.len()).collect()]);
        (walk.classify(), trunk)
    }

    /// Logits `[cells, labels]` of single texts under single variants.
    ///
    /// - `cells`: places of variant and text; what lies below the first masked head is computed once for each text among
    ///   them
    ///
    /// # Panics
    /// If there is no such variant or text, or no cell.
    pub fn sweep_cells(&self, batch: &SegmentBatch, variants: &Variants, cells: &[(usize, usize)]) -> Tensor {
        let mut texts: Vec<usize> = cells.iter().map(|&(_, text)| text).collect();
        texts.sort_unstable();
        texts.dedup();
        let place = |text| texts.partition_point(|&other| other < text);
        let index = |places: Vec<usize>| {
            let places: Vec<i64> = places.into_iter().map(|place| place as i64).collect();
            Tensor::from_slice(&places).to_device(batch.tokens.ids.device())
        };
        let batch = batch.select(&index(texts.clone()));
        let trunk = self.trunk(&batch, self.top(variants), None);
        let rows = index(cells.iter().map(|&(_, text)| place(text)).collect());
        let gates = variants.gates.select(&index(cells.iter().map(|&(variant, _)| variant).collect()));
        let x = trunk.x.index_select(0, &rows);
        self.forward_from(trunk.layer, &x, &batch.select(&rows), &gates, &ModelDropout::OFF)
    }

    /// The layer below which the variants are one; the last layer is computed in a way of its own.
    fn top(&self, variants: &Variants) -> usize {
        variants.lowest.min(self.layers.len() - 1)
    }

    /// What enters layer `top` of the intact model.
    fn trunk(&self, batch: &SegmentBatch, top: usize, left: Option<Trunk>) -> Trunk {
        let open = Gates::open(&self.layout(), self.options());
        let enter = || self.embed(batch, &ModelDropout::OFF);
        let pass = |layer: usize, x: &Tensor| self.layer(layer, x, batch, &open, &ModelDropout::OFF);
        Trunk::up_to(top, left, &batch.tokens.ids.size(), enter, pass)
    }
}

impl Walk<'_> {
    /// Takes `nodes` from what enters `layer` to the last one; `x`: `[nodes * batch, position, d_model]`.
    fn ascend(&mut self, layer: usize, x: &Tensor, nodes: Vec<Node>) {
        let bias = self.bias.repeat([nodes.len() as i64, 1, 1, 1]); // [nodes * batch, 1, 1, position]
        let children = self.children(layer, &nodes);
        if layer + 1 == self.model.layers.len() {
            let context = self.model.layers[layer].attention.first_context(x, &bias);
            for (parent, node) in children {
                let own = |all: &Tensor| self.of_node(all, parent).contiguous();
                self.last.push(Last { x: own(&x.narrow(1, 0, 1)), context: own(&context), node });
            }
            return;
        }
        let any = self.variants.gates.of(Attention::SelfAttention, layer); // gates come after it
        let module = &self.model.layers[layer];
        let context = module.context(x, x, &bias, any, &ModelDropout::OFF);
        // Differences of sums that were rounded to half precision would be off by more than the model itself.
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
                    module.attention.merge_some(&context, values, whole.as_ref())
                }
                _ => module.attention.merge(of_parents(&context), (&self.gates(layer, &nodes)).into()),
            };
            let out = module.finish(&of_parents(x), attended, &ModelDropout::OFF);
            self.ascend(layer + 1, &out, nodes);
        }
    }

    /// What attention adds in a layer with all heads open, `[batch, position, d_model]`, if it takes less to compute that and
    /// to take masked heads from it in the `children` of the only node than to add up the heads that each of them keeps.
    fn whole(&self, layer: usize, context: &Tensor, children: &[(usize, Node)]) -> Option<Tensor> {
        let (mut with, mut without) = (context.size()[1] as usize, 0);
        for (_, child) in children {
            let values = &self.variants.values[layer][child[0]];
            let kept = values.iter().filter(|&&value| value != 0.0).count();
            with += kept.min(values.len() - kept);
            without += kept;
        }
        (with < without).then(|| self.model.layers[layer].attention.merge_open(context))
    }

    /// The rows of one node: `[batch, ..]` of `[nodes * batch, ..]`.
    fn of_node(&self, all: &Tensor, node: usize) -> Tensor {
        let batch = self.bias.size()[0];
        all.narrow(0, node as i64 * batch, batch)
    }

    /// The nodes after a layer, with the place of the node that each comes from.
    fn children(&self, layer: usize, nodes: &[Node]) -> Vec<(usize, Node)> {
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

    /// The gates of `nodes` in a layer: `[nodes * batch, heads]`.
    fn gates(&self, layer: usize, nodes: &[Node]) -> Tensor {
        let rows: Vec<i64> = nodes.iter().map(|node| node[0] as i64).collect();
        let gates = self.variants.gates.of(Attention::SelfAttention, layer);
        let rows = Tensor::from_slice(&rows).to_device(self.bias.device());
        gates.values().index_select(0, &rows).repeat_interleave_self_int(self.bias.size()[0], 0, None)
    }

    /// Logits `[batch, labels]` of each variant.
    fn classify(self) -> Vec<Tensor> {
        let all = |of: fn(&Last) -> &Tensor| Tensor::cat(&self.last.iter().map(of).collect::<Vec<_>>(), 0);
        let (x, context) = (all(|last| &last.x), all(|last| &last.context));
        let nodes: Vec<Node> = self.last.iter().map(|last| last.node.clone()).collect();
        let last = self.model.layers.len() - 1;
        let module = &self.model.layers[last];
        let attended = module.attention.merge(context, (&self.gates(last, &nodes)).into());
        let out = module.finish(&x, attended, &ModelDropout::OFF);
        let logits = self.model.head.forward(&out, &ModelDropout::OFF); // [nodes * batch, labels]
        let mut by_variant: Vec<Option<Tensor>> = (0..self.variants.len()).map(|_| None).collect();
        for (place, node) in nodes.iter().enumerate() {
            for &variant in node {
                by_variant[variant] = Some(self.of_node(&logits, place));
            }
        }
        by_variant.into_iter().map(|logits| logits.expect("each variant is in one node")).collect()
    }
}
