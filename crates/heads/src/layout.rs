//! Layouts: the heads of a model.
use std::collections::BTreeMap;

use crate::{Attention, Error, HeadId, HeadSet};

/// Layers and heads of one attention type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// Number of layers.
    pub layers: usize,
    /// Number of query heads in each layer.
    pub heads: usize,
    /// Number of key-value heads in each layer, each shared by a group of query heads (Ainslie et al. 2023,
    /// <https://aclanthology.org/2023.emnlp-main.298>): query head h uses key-value head `h / (heads / key_value_heads)`.
    pub key_value_heads: usize,
    /// Width of the queries, keys and values of a head.
    pub d_head: i64,
}

impl LayerShape {
    /// Returns the shape of multi-head attention without shared keys and values, whose heads divide `d_model`.
    pub fn plain(layers: usize, heads: usize, d_model: i64) -> Self {
        Self { layers, heads, key_value_heads: heads, d_head: d_model / heads as i64 }
    }
}

/// The heads of one attention module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleHeads {
    /// Shape of all layers of its type.
    pub shape: LayerShape,
    /// Remaining heads, counted from 0.
    pub kept: Vec<i64>,
}

impl ModuleHeads {
    /// Returns the total query width of the remaining heads.
    pub fn width(&self) -> i64 {
        self.kept.len() as i64 * self.shape.d_head
    }

    /// Returns the key-value heads that remaining heads use, counted from 0.
    pub fn kept_key_values(&self) -> Vec<i64> {
        let mut kept: Vec<i64> = self.kept.iter().map(|&head| self.key_value_of(head)).collect();
        kept.dedup();
        kept
    }

    /// Returns the key-value head of a query head.
    pub fn key_value_of(&self, head: i64) -> i64 {
        head / (self.shape.heads / self.shape.key_value_heads) as i64
    }
}

/// All heads of a model. Removing heads does not change the numbers of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLayout {
    types: BTreeMap<Attention, LayerShape>,
    removed: HeadSet,
    /// True if all layers share their weights.
    one_layer: bool,
}

impl HeadLayout {
    /// Returns a layout from its attention types.
    pub fn new(types: impl IntoIterator<Item = (Attention, LayerShape)>) -> Self {
        Self { types: types.into_iter().collect(), removed: HeadSet::none(), one_layer: false }
    }

    /// Returns this layout for a model whose layers share their weights, so that a head is removed from all layers or none; gates still act
    /// on single layers.
    pub fn of_one_layer(self) -> Self {
        Self { one_layer: true, ..self }
    }

    /// Returns true if all layers share their weights.
    pub fn is_one_layer(&self) -> bool {
        self.one_layer
    }

    /// Returns this layout with these heads removed, whether they exist or not.
    pub fn with_removed(self, removed: HeadSet) -> Self {
        Self { removed, ..self }
    }

    /// Returns the layout after removing these heads too.
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

    /// Returns the layout after removing these heads too, even if no head is left.
    pub fn lacking(&self, heads: &HeadSet) -> Result<Self, Error> {
        heads.iter().try_for_each(|id| self.check(id))?;
        Ok(self.clone().with_removed(self.removed.iter().chain(heads.iter()).collect()))
    }

    /// Returns the removed heads.
    pub fn removed(&self) -> &HeadSet {
        &self.removed
    }

    /// Returns the attention types with their sizes, removed heads included, in a fixed order.
    pub fn types(&self) -> impl Iterator<Item = (Attention, LayerShape)> + '_ {
        self.types.iter().map(|(&attention, &shape)| (attention, shape))
    }

    /// Returns all heads, by attention type and layer.
    pub fn heads(&self) -> Vec<HeadId> {
        self.types().flat_map(|(attention, shape)| self.heads_in(attention, shape)).collect()
    }

    /// Returns [`heads`](Self::heads) by module, without modules that have no heads.
    pub fn heads_by_module(&self) -> Vec<Vec<HeadId>> {
        let heads = self.heads();
        let modules = heads.chunk_by(|one, next| one.module() == next.module());
        modules.map(<[HeadId]>::to_vec).collect()
    }

    /// Returns, in the order of computation, the modules from the first with one of these heads on that also have other heads.
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

    /// Returns the heads of one module; no heads for a module that the model does not have.
    pub fn module(&self, attention: Attention, layer: usize) -> ModuleHeads {
        let none = LayerShape::plain(0, 1, 1);
        let shape = self.types.get(&attention).copied().unwrap_or(none);
        ModuleHeads { shape, kept: self.kept(attention, layer) }
    }

    /// Returns the remaining heads of one module, counted from 0.
    pub fn kept(&self, attention: Attention, layer: usize) -> Vec<i64> {
        let shape = self.types.get(&attention).filter(|shape| layer < shape.layers);
        let heads = 0..shape.map_or(0, |shape| shape.heads);
        let is_there = |head: &usize| !self.removed.contains(HeadId::from_index(attention, layer, *head));
        heads.filter(is_there).map(|head| head as i64).collect()
    }

    /// Returns the heads of one attention type, by layer.
    pub fn heads_of(&self, attention: Attention) -> Result<Vec<HeadId>, Error> {
        Ok(self.heads_in(attention, self.shape_of(attention)?).collect())
    }

    fn heads_in(&self, attention: Attention, shape: LayerShape) -> impl Iterator<Item = HeadId> + '_ {
        let heads = move |layer| (0..shape.heads).map(move |head| HeadId::from_index(attention, layer, head));
        (0..shape.layers).flat_map(heads).filter(|id| !self.removed.contains(*id))
    }

    /// Returns the other heads of a head's layer.
    pub fn all_but(&self, id: HeadId) -> Result<HeadSet, Error> {
        self.check(id)?;
        let others = self.heads_of(id.attention())?.into_iter();
        Ok(others.filter(|other| other.module() == id.module() && *other != id).collect())
    }

    /// Parses a list of heads of this model: `self:2:5`, or `L2H5` and `2:5` if the model has one attention type, separated by white space,
    /// commas or `+`. Layers and heads count from 1. Skips brackets, quotes, dashes and keys of a YAML list, and comments from `#` to the
    /// end of a line.
    ///
    /// # Errors
    /// If a name is not a head of the model, a head is listed twice, or the list is empty.
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
                return Err(Error::Head(format!("`{id}` occurs twice")));
            }
            heads = heads.with(id);
        }
        if heads.is_empty() { Err(Error::Head("the list has no head".to_owned())) } else { Ok(heads) }
    }

    /// Parses the name of a head that may leave out the attention type.
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
