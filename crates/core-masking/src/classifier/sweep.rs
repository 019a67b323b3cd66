//! Evaluation of one batch under many head sets. In the last layer only positions that the classification head reads are computed, without
//! keys and values of the others.
use tch::Tensor;

use super::{Classifier, Inputs};
use crate::attention::MultiHeadAttention;
use crate::sweep::{Node, PrefixCache, Stack, Variants, Walk};
use crate::{Attention, Error, GatedModel, Gates, HeadSet, ModelDropout};

struct Texts<'a> {
    model: &'a Classifier,
    bias: &'a Tensor, // [batch, 1, 1, position]
}

impl Stack for Texts<'_> {
    fn attention(&self, layer: usize) -> &MultiHeadAttention {
        &self.model.layers[layer].block.attention
    }

    fn context(&self, layer: usize, x: &Tensor, gates: &Gates) -> Tensor {
        let any = gates.of(Attention::SelfAttention, layer); // the head outputs do not depend on this layer's gates
        self.model.layers[layer].context(x, x.size()[1], &self.bias_of(x), any, &ModelDropout::OFF)
    }

    fn finish(&self, layer: usize, x: &Tensor, attended: Tensor) -> Tensor {
        self.model.layers[layer].finish(x, &attended, None, &ModelDropout::OFF)
    }
}

impl Texts<'_> {
    /// Repeats the bias for all nodes in `x`, `[nodes * batch, position, d_model]`.
    fn bias_of(&self, x: &Tensor) -> Tensor {
        self.bias.repeat([x.size()[0] / self.bias.size()[0], 1, 1, 1])
    }
}

impl Classifier {
    /// Prepares `sets` for [`sweep`](Self::sweep); `rescale` multiplies the kept heads of a layer by heads / kept. Fails if the model lacks
    /// one of the heads.
    pub fn variants(&self, sets: &[HeadSet], rescale: bool) -> Result<Variants, Error> {
        Variants::new(self, Attention::SelfAttention, sets, rescale)
    }

    /// Computes the [logits](Self::forward) of a batch under each variant.
    ///
    /// - `together`: nodes of the tree that are computed as rows of one batch, at least 1, which bounds the memory
    /// - `prefix`: the second result of an earlier call with this batch; reused if all variants leave the layers before it unmasked
    pub fn sweep(
        &self,
        batch: &Inputs,
        variants: &Variants,
        together: usize,
        prefix: Option<PrefixCache>,
    ) -> (Vec<Tensor>, PrefixCache) {
        let prefix = self.prefix(batch, self.top(variants), prefix);
        let texts = Texts { model: self, bias: batch.bias() };
        let walk = Walk::new(&texts, variants, Attention::SelfAttention, batch.size()[0], together);
        let last = self.layers.len() - 1;
        let mut found = Vec::new();
        walk.ascend(prefix.layer..last, &prefix.x, &mut |x, nodes| {
            let read = self.head.reads(x.size()[1]);
            let context = self.layers[last].last_context(x, read, &texts.bias_of(x)); // [nodes * batch, kept, read, d_head]
            for part in walk.children(last, &nodes).chunks(together) {
                found.extend(self.classify(&walk, part, (&x.narrow(1, 0, read), &context), &texts));
            }
        });
        (walk.by_variant(found), prefix)
    }

    /// Computes the last layer and the logits of its nodes, each given with the index of its parent node.
    ///
    /// - `x`: the layer's input, of all parents, at the positions that are read, `[nodes * batch, read, d_model]`
    /// - `context`: head outputs there, `[nodes * batch, kept, read, d_head]`
    fn classify(
        &self,
        walk: &Walk<'_, Texts<'_>>,
        part: &[(usize, Node)],
        (x, context): (&Tensor, &Tensor),
        texts: &Texts<'_>,
    ) -> Vec<(Node, Tensor)> {
        let of_parents = |all: &Tensor| {
            Tensor::cat(&part.iter().map(|(parent, _)| walk.of_node(all, *parent)).collect::<Vec<_>>(), 0)
        };
        let nodes: Vec<Node> = part.iter().map(|(_, node)| node.clone()).collect();
        let last = self.layers.len() - 1;
        let module = &self.layers[last];
        let attended = module.block.attention.merge(of_parents(context), walk.gates(last, &nodes).gate());
        let out = module.finish(&of_parents(x), &attended, None, &ModelDropout::OFF);
        let logits = self.head.forward(&out, &texts.bias_of(&out), &ModelDropout::OFF); // [nodes * batch, .., labels]
        nodes.into_iter().zip(0..).map(|(node, place)| (node, walk.of_node(&logits, place))).collect()
    }

    /// Returns the first layer in which variants differ, at most the last layer, which is computed separately.
    fn top(&self, variants: &Variants) -> usize {
        variants.lowest.min(self.layers.len() - 1)
    }

    fn prefix(&self, batch: &Inputs, top: usize, left: Option<PrefixCache>) -> PrefixCache {
        let open = self.open();
        let enter = || self.embed(batch, &ModelDropout::OFF);
        let pass = |layer: usize, x: &Tensor| self.layer(layer, x, batch, &open, &ModelDropout::OFF);
        PrefixCache::up_to(top, left, &batch.size(), enter, pass)
    }
}
