//! One batch under many head sets: what they have in common is computed once.
//!
//! What leaves a layer depends on the gates of that layer and of those below, so sets whose gates agree up to some layer
//! share all below it; where they part, they still share what the heads read, since gates come after it. The sets are a
//! tree, layer by layer, and each of its nodes is computed once. In the last layer only the position that the classifier
//! reads is computed, without keys and values of the others. Exact but for rounding: of that last step and, where several
//! sets are rows of one product, of products of other sizes.
use tch::Tensor;

use super::{BertClassifier, BertDropout};
use crate::{Attention, Error, Gates, HeadLayout, HeadSet, SegmentBatch, Trunk};

/// Head sets of one classifier, ready to be evaluated together.
#[derive(Debug)]
pub struct Variants {
    gates: Gates,              // one row for each set
    patterns: Vec<Vec<usize>>, // by layer and set: equal numbers are equal gates
    lowest: usize,
}

impl Variants {
    /// One variant for each of `sets`; `rescale` multiplies the kept heads of a layer by heads / kept.
    ///
    /// # Errors
    /// If a set names a head that the model does not have.
    pub fn new(model: &BertClassifier, sets: &[HeadSet], rescale: bool) -> Result<Self, Error> {
        let layout = model.layout();
        let gates = Gates::masking(&layout, sets, model.options())?;
        let heads = sets.iter().flat_map(HeadSet::iter);
        let layers = model.layers.len();
        Ok(Self {
            gates: if rescale { gates.rescaled(&layout) } else { gates },
            patterns: (0..layers).map(|layer| patterns(&layout, layer, sets)).collect(),
            lowest: heads.map(|id| id.layer_index()).min().unwrap_or(layers - 1),
        })
    }

    fn len(&self) -> usize {
        self.patterns[0].len()
    }
}

/// Numbers the distinct gates of a layer by their first appearance.
fn patterns(layout: &HeadLayout, layer: usize, sets: &[HeadSet]) -> Vec<usize> {
    let ids = layout.heads_of(Attention::SelfAttention).unwrap_or_default();
    let masked = |set: &HeadSet| -> Vec<bool> {
        ids.iter().filter(|id| id.layer_index() == layer).map(|&id| set.contains(id)).collect()
    };
    let mut known: Vec<Vec<bool>> = Vec::new();
    let number = |set: &HeadSet| {
        let masked = masked(set);
        known.iter().position(|other| *other == masked).unwrap_or_else(|| {
            known.push(masked);
            known.len() - 1
        })
    };
    sets.iter().map(number).collect()
}

/// The variants whose gates agree so far: they are computed as one.
type Node = Vec<usize>;

/// A batch on its way through the layers.
struct Walk<'a> {
    model: &'a BertClassifier,
    variants: &'a Variants,
    bias: &'a Tensor, // [batch, 1, 1, position]
    together: usize,
    logits: Vec<Option<Tensor>>,
}

impl BertClassifier {
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
        let trunk = self.trunk(batch, variants.lowest, trunk);
        let logits = (0..variants.len()).map(|_| None).collect();
        let mut walk = Walk { model: self, variants, bias: &batch.tokens.bias, together, logits };
        walk.ascend(trunk.layer, &trunk.x, vec![(0..variants.len()).collect()]);
        let logits = walk.logits.into_iter().map(|logits| logits.expect("each variant is in one node"));
        (logits.collect(), trunk)
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
        let trunk = self.trunk(&batch, variants.lowest, None);
        let rows = index(cells.iter().map(|&(_, text)| place(text)).collect());
        let gates = variants.gates.select(&index(cells.iter().map(|&(variant, _)| variant).collect()));
        let x = trunk.x.index_select(0, &rows);
        self.forward_from(trunk.layer, &x, &batch.select(&rows), &gates, &BertDropout::OFF)
    }

    /// What enters layer `top` of the intact model.
    fn trunk(&self, batch: &SegmentBatch, top: usize, left: Option<Trunk>) -> Trunk {
        let open = Gates::open(&self.layout(), self.options());
        let enter = || self.embed(batch, &BertDropout::OFF);
        let pass = |layer: usize, x: &Tensor| self.layer(layer, x, batch, &open, &BertDropout::OFF);
        Trunk::up_to(top, left, &batch.tokens.ids.size(), enter, pass)
    }
}

impl Walk<'_> {
    /// Takes `nodes` from what enters `layer` to their logits; `x`: `[nodes * batch, position, d_model]`.
    fn ascend(&mut self, layer: usize, x: &Tensor, nodes: Vec<Node>) {
        let is_last = layer + 1 == self.model.layers.len();
        let bias = self.bias.repeat([nodes.len() as i64, 1, 1, 1]); // [nodes * batch, 1, 1, position]
        let context = match is_last {
            true => self.model.layers[layer].attention.first_context(x, &bias), // the classifier reads no other
            false => {
                let any = self.variants.gates.of(Attention::SelfAttention, layer); // gates come after it
                self.model.layers[layer].context(x, x.size()[1], &bias, any, &BertDropout::OFF)
            }
        };
        let children = self.children(layer, &nodes);
        for part in children.chunks(self.together) {
            let out = self.finish(layer, (x, &context), part);
            let nodes: Vec<Node> = part.iter().map(|(_, node)| node.clone()).collect();
            match is_last {
                true => self.classify(&out, &nodes),
                false => self.ascend(layer + 1, &out, nodes),
            }
        }
    }

    /// The nodes after a layer, with the place of the node that each comes from.
    fn children(&self, layer: usize, nodes: &[Node]) -> Vec<(usize, Node)> {
        let mut children: Vec<(usize, Node)> = Vec::new();
        for (parent, node) in nodes.iter().enumerate() {
            let first = children.len();
            for &variant in node {
                let pattern = self.variants.patterns[layer][variant];
                let same =
                    |(_, child): &&mut (usize, Node)| self.variants.patterns[layer][child[0]] == pattern;
                match children[first..].iter_mut().find(same) {
                    Some((_, child)) => child.push(variant),
                    None => children.push((parent, vec![variant])),
                }
            }
        }
        children
    }

    /// What leaves a layer in each of `children`: `[children * batch, queries, d_model]`.
    fn finish(&self, layer: usize, (x, context): (&Tensor, &Tensor), children: &[(usize, Node)]) -> Tensor {
        let batch = self.bias.size()[0];
        let of_parent = |all: &Tensor, parent: usize| all.narrow(0, parent as i64 * batch, batch);
        let of_parents = |all: &Tensor| match children {
            [(parent, _)] => of_parent(all, *parent),
            _ => Tensor::cat(
                &children.iter().map(|(parent, _)| of_parent(all, *parent)).collect::<Vec<_>>(),
                0,
            ),
        };
        let rows: Vec<i64> = children.iter().map(|(_, node)| node[0] as i64).collect();
        let rows = Tensor::from_slice(&rows).to_device(x.device());
        let gates = self.variants.gates.of(Attention::SelfAttention, layer).values().index_select(0, &rows);
        let gates = gates.repeat_interleave_self_int(batch, 0, None); // [children * batch, heads]
        let layer = &self.model.layers[layer];
        layer.finish(&of_parents(x), of_parents(context), (&gates).into(), &BertDropout::OFF)
    }

    /// `x`: `[nodes * batch, 1, d_model]`.
    fn classify(&mut self, x: &Tensor, nodes: &[Node]) {
        let batch = self.bias.size()[0];
        let logits = self.model.classify(x, &BertDropout::OFF); // [nodes * batch, labels]
        for (place, node) in nodes.iter().enumerate() {
            let own = logits.narrow(0, place as i64 * batch, batch);
            for &variant in node {
                self.logits[variant] = Some(own.shallow_clone());
            }
        }
    }
}
