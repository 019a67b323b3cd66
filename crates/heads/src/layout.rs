//! Heads that a model has.
use std::collections::BTreeMap;

use crate::{Attention, Error, HeadId, HeadSet};

/// Layers and heads of one attention type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// Number of layers.
    pub layers: usize,
    /// Number of heads in each layer, each with a query of its own.
    pub heads: usize,
    /// Number of keys and values in each layer. Heads share them in groups (Ainslie et al. 2023,
    /// <https://aclanthology.org/2023.emnlp-main.298>): head h reads those of number `h / (heads / key_value_heads)`.
    pub key_value_heads: usize,
    /// Width of a query, a key and a value of a head.
    pub d_head: i64,
}

impl LayerShape {
    /// Heads with keys and values of their own that share the width of the residual stream between them.
    pub fn plain(layers: usize, heads: usize, d_model: i64) -> Self {
        Self { layers, heads, key_value_heads: heads, d_head: d_model / heads as i64 }
    }
}

/// The heads of one attention module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleHeads {
    /// Of all layers of its type.
    pub shape: LayerShape,
    /// The heads that are left, counted from 0.
    pub kept: Vec<i64>,
}

impl ModuleHeads {
    /// Width of the queries of the heads that are left.
    pub fn width(&self) -> i64 {
        self.kept.len() as i64 * self.shape.d_head
    }

    /// The keys and values that are left, counted from 0: those that a head reads.
    pub fn kept_key_values(&self) -> Vec<i64> {
        let mut kept: Vec<i64> = self.kept.iter().map(|&head| self.key_value_of(head)).collect();
        kept.dedup();
        kept
    }

    /// The number of the keys and values that a head reads.
    pub fn key_value_of(&self, head: i64) -> i64 {
        head / (self.shape.heads / self.shape.key_value_heads) as i64
    }
}

/// All heads of a model. Heads that were removed from it have left their numbers behind: the others keep theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLayout {
    types: BTreeMap<Attention, LayerShape>,
    removed: HeadSet,
    /// True if all layers are one that is passed several times.
    one_layer: bool,
}

impl HeadLayout {
    /// A layout from its attention types.
    pub fn new(types: impl IntoIterator<Item = (Attention, LayerShape)>) -> Self {
        Self { types: types.into_iter().collect(), removed: HeadSet::none(), one_layer: false }
    }

    /// The same layout of a model whose layers are one that is passed several times, so that a head is removed from all turns or
    /// none. Gates act on one turn.
    pub fn of_one_layer(self) -> Self {
        Self { one_layer: true, ..self }
    }

    /// Returns true if all layers are one that is passed several times.
    pub fn is_one_layer(&self) -> bool {
        self.one_layer
    }

    /// The same layout with these heads removed, whether they exist or not.
    pub fn with_removed(self, removed: HeadSet) -> Self {
        Self { removed, ..self }
    }

    /// The layout of the model from which these heads were removed too.
    ///
    /// # Errors
    /// If the model does not have one of them, or no head would be left.
    pub fn without(&self, heads: &HeadSet) -> Result<Self, Error> {
        let layout = self.lacking(heads)?;
        let is_without_heads = layout.heads().is_empty();
        if is_without_heads {
            Err(Error::Head("no head would be left in the model".to_owned()))
        } else {
            Ok(layout)
        }
    }

    /// The same, also if no head is left.
    pub fn lacking(&self, heads: &HeadSet) -> Result<Self, Error> {
        heads.iter().try_for_each(|id| self.check(id))?;
        Ok(self.clone().with_removed(self.removed.iter().chain(heads.iter()).collect()))
    }

    /// The heads that were removed.
    pub fn removed(&self) -> &HeadSet {
        &self.removed
    }

    /// The attention types with their sizes, removed heads included, in a fixed order.
    pub fn types(&self) -> impl Iterator<Item = (Attention, LayerShape)> + '_ {
        self.types.iter().map(|(&attention, &shape)| (attention, shape))
    }

    /// All heads: attention type by attention type, layer by layer.
    pub fn heads(&self) -> Vec<HeadId> {
        self.types().flat_map(|(attention, shape)| self.heads_in(attention, shape)).collect()
    }

    /// [`heads`](Self::heads), module by module; a module without heads is left out.
    pub fn heads_by_module(&self) -> Vec<Vec<HeadId>> {
        let heads = self.heads();
        let modules = heads.chunk_by(|one, next| one.module() == next.module());
        modules.map(<[HeadId]>::to_vec).collect()
    }

    /// The modules from the first with one of these heads on that have others too, in the order in which a model computes them.
    pub fn modules_from(&self, heads: &HeadSet) -> Vec<(Attention, usize)> {
        let mut modules: Vec<_> = self.heads_by_module().iter().map(|heads| heads[0].module()).collect();
        let is_of_decoder = |attention| matches!(attention, Attention::DecDec | Attention::EncDec);
        modules.sort_by_key(|&(attention, layer)| {
            (is_of_decoder(attention), layer, attention == Attention::EncDec)
        });
        let has_none = |module: &(Attention, usize)| heads.iter().all(|id| id.module() != *module);
        let has_others = |module: &(Attention, usize)| {
            self.heads().iter().any(|id| id.module() == *module && !heads.contains(*id))
        };
        modules.into_iter().skip_while(has_none).filter(has_others).collect()
    }

    /// The heads of one module; none is left of a module that the model does not have.
    pub fn module(&self, attention: Attention, layer: usize) -> ModuleHeads {
        let none = LayerShape::plain(0, 1, 1);
        let shape = self.types.get(&attention).copied().unwrap_or(none);
        ModuleHeads { shape, kept: self.kept(attention, layer) }
    }

    /// The heads of one module that are left, counted from 0.
    pub fn kept(&self, attention: Attention, layer: usize) -> Vec<i64> {
        let shape = self.types.get(&attention).filter(|shape| layer < shape.layers);
        let heads = 0..shape.map_or(0, |shape| shape.heads);
        let is_there = |head: &usize| !self.removed.contains(HeadId::from_index(attention, layer, *head));
        heads.filter(is_there).map(|head| head as i64).collect()
    }

    /// The heads of one attention type, layer by layer.
    ///
    /// # Errors
    /// If the model has no such attention.
    pub fn heads_of(&self, attention: Attention) -> Result<Vec<HeadId>, Error> {
        Ok(self.heads_in(attention, self.shape_of(attention)?).collect())
    }

    fn heads_in(&self, attention: Attention, shape: LayerShape) -> impl Iterator<Item = HeadId> + '_ {
        let heads = move |layer| (0..shape.heads).map(move |head| HeadId::from_index(attention, layer, head));
        (0..shape.layers).flat_map(heads).filter(|id| !self.removed.contains(*id))
    }

    /// The other heads of a head's layer.
    ///
    /// # Errors
    /// If the model does not have that head.
    pub fn all_but(&self, id: HeadId) -> Result<HeadSet, Error> {
        self.check(id)?;
        let others = self.heads_of(id.attention())?.into_iter();
        Ok(others.filter(|other| other.module() == id.module() && *other != id).collect())
    }

    /// Reads a list of heads of this model: `self:2:5`, or `L2H5` and `2:5` if the model has one attention type, separated by white
    /// space, commas or `+`. Layers and heads count from 1. The brackets, quotes, dashes and keys of a YAML list are skipped, as are
    /// comments from `#` to the end of a line.
    ///
    /// # Errors
    /// If a name is no head of the model, a head is there twice, or there is none.
    pub fn list(&self, text: &str) -> Result<HeadSet, Error> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let is_between = |sign: char| sign.is_whitespace() || ",+[]\"'".contains(sign);
        let words = lines.flat_map(|line| line.split(is_between));
        let names = words.filter(|word| !word.is_empty() && *word != "-" && !word.ends_with(':'));
        let mut heads = HeadSet::none();
        for name in names {
            let id = self.named(name)?;
            self.check(id)?;
            if heads.contains(id) {
                return Err(Error::Head(format!("`{id}` is there twice")));
            }
            heads = heads.with(id);
        }
        if heads.is_empty() { Err(Error::Head("the list has no head".to_owned())) } else { Ok(heads) }
    }

    /// The head of a name that may leave out the attention type.
    fn named(&self, name: &str) -> Result<HeadId, Error> {
        let short =
            name.strip_prefix('L').and_then(|rest| rest.split_once('H')).or_else(|| name.split_once(':'));
        match (short.filter(|(_, head)| !head.contains(':')), &self.types().collect::<Vec<_>>()[..]) {
            (Some((layer, head)), [(attention, _)]) => format!("{attention}:{layer}:{head}").parse(),
            _ => name.parse(),
        }
    }

    /// Refuses a head that the model does not have.
    ///
    /// # Errors
    /// If the attention type, layer or head does not exist; the message gives the valid range.
    pub fn check(&self, id: HeadId) -> Result<(), Error> {
        let (attention, layer, head) = (id.attention(), id.layer_number(), id.head_number());
        let LayerShape { layers, heads, .. } = self.shape_of(attention)?;
        Err(Error::Head(if id.layer_index() >= layers {
            format!("no layer {layer} of `{attention}`: layers are numbered 1 to {layers}")
        } else if id.head_index() >= heads {
            format!("no head {head} in a layer of `{attention}`: heads are numbered 1 to {heads}")
        } else if self.removed.contains(id) {
            format!("head {id} has been removed from this model")
        } else {
            return Ok(());
        }))
    }

    fn shape_of(&self, attention: Attention) -> Result<LayerShape, Error> {
        self.types.get(&attention).copied().ok_or_else(|| {
            let allowed: Vec<_> = self.types.keys().map(|attention| attention.name()).collect();
            let allowed = allowed.join(", ");
            Error::Head(format!("no `{attention}` attention in this model: it has {allowed}"))
        })
    }
}

#[cfg(test)]
mod tests;
