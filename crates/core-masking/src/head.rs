//! Names of heads, and which heads a model has.
//!
//! Michel et al. (2019), Section 3: an encoder-decoder model has three types of attention, each with layers of
//! heads. Users count layers and heads from 1, as the paper does; tensors count from 0. Only [`HeadId`] converts.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::Error;

/// What attends to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attention {
    /// Encoder self-attention of an encoder-decoder model.
    EncEnc,
    /// Decoder to encoder.
    EncDec,
    /// Decoder self-attention.
    DecDec,
    /// Self-attention of an encoder-only model such as BERT.
    #[serde(rename = "self")]
    SelfAttention,
}

impl fmt::Display for Attention {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::EncEnc => "enc-enc",
            Self::EncDec => "enc-dec",
            Self::DecDec => "dec-dec",
            Self::SelfAttention => "self",
        })
    }
}

impl FromStr for Attention {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "enc-enc" => Ok(Self::EncEnc),
            "enc-dec" => Ok(Self::EncDec),
            "dec-dec" => Ok(Self::DecDec),
            "self" => Ok(Self::SelfAttention),
            _ => Err(Error::UnknownAttention { name: name.to_owned() }),
        }
    }
}

/// One head of a model, written `enc-enc:6:13`: attention type, layer and head, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadId {
    attention: Attention,
    layer: usize,
    head: usize,
}

impl HeadId {
    /// A head by its place in the tensors: layer and head counted from 0.
    pub fn from_index(attention: Attention, layer: usize, head: usize) -> Self {
        Self { attention, layer, head }
    }

    /// The attention type.
    pub fn attention(self) -> Attention {
        self.attention
    }

    /// Layer, counted from 0.
    pub fn layer_index(self) -> usize {
        self.layer
    }

    /// Head within the layer, counted from 0.
    pub fn head_index(self) -> usize {
        self.head
    }

    /// Layer, counted from 1 as in the paper.
    pub fn layer_number(self) -> usize {
        self.layer.saturating_add(1)
    }

    /// Head within the layer, counted from 1 as in the paper.
    pub fn head_number(self) -> usize {
        self.head.saturating_add(1)
    }
}

impl fmt::Display for HeadId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.attention, self.layer_number(), self.head_number())
    }
}

impl FromStr for HeadId {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let fault = || Error::HeadName { name: name.to_owned() };
        let [attention, layer, head] = name.split(':').collect::<Vec<_>>()[..] else { return Err(fault()) };
        let index = |number: &str| number.parse::<usize>().ok()?.checked_sub(1);
        Ok(Self {
            attention: attention.parse()?,
            layer: index(layer).ok_or_else(fault)?,
            head: index(head).ok_or_else(fault)?,
        })
    }
}

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
}

impl HeadLayout {
    /// A layout from its attention types.
    pub fn new(types: impl IntoIterator<Item = (Attention, LayerShape)>) -> Self {
        Self { types: types.into_iter().collect(), removed: HeadSet::none() }
    }

    /// The same layout with these heads removed, whether they exist or not.
    pub(crate) fn with_removed(self, removed: HeadSet) -> Self {
        Self { removed, ..self }
    }

    /// The layout of the model from which these heads were removed too.
    ///
    /// # Errors
    /// If the model does not have one of them, or no head would be left.
    pub fn without(&self, heads: &HeadSet) -> Result<Self, Error> {
        let layout = self.lacking(heads)?;
        if layout.heads().is_empty() { Err(Error::NoHeadLeft) } else { Ok(layout) }
    }

    /// The same, also if no head is left.
    pub(crate) fn lacking(&self, heads: &HeadSet) -> Result<Self, Error> {
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
        let modules = heads.chunk_by(|one, next| (one.attention, one.layer) == (next.attention, next.layer));
        modules.map(<[HeadId]>::to_vec).collect()
    }

    /// The heads of one module; none is left of a module that the model does not have.
    pub fn module(&self, attention: Attention, layer: usize) -> ModuleHeads {
        let none = LayerShape::plain(0, 1, 1);
        let shape = self.types.get(&attention).copied().unwrap_or(none);
        ModuleHeads { shape, kept: self.kept(attention, layer) }
    }

    /// The heads of one module that are left, counted from 0.
    pub(crate) fn kept(&self, attention: Attention, layer: usize) -> Vec<i64> {
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
        let others = self.heads_of(id.attention)?.into_iter();
        Ok(others.filter(|other| other.layer == id.layer && other.head != id.head).collect())
    }

    /// Refuses a head that the model does not have.
    ///
    /// # Errors
    /// If the attention type, layer or head does not exist; the message gives the valid range.
    pub fn check(&self, id: HeadId) -> Result<(), Error> {
        let LayerShape { layers, heads, .. } = self.shape_of(id.attention)?;
        let HeadId { attention, .. } = id;
        if id.layer >= layers {
            return Err(Error::NoSuchLayer { attention, layer: id.layer_number(), layers });
        }
        if id.head >= heads {
            return Err(Error::NoSuchHead { attention, head: id.head_number(), heads });
        }
        if self.removed.contains(id) {
            return Err(Error::RemovedHead { id });
        }
        Ok(())
    }

    fn shape_of(&self, attention: Attention) -> Result<LayerShape, Error> {
        let found = self.types.get(&attention).copied();
        found.ok_or_else(|| Error::NoSuchAttention {
            attention,
            allowed: self.types.keys().copied().collect(),
        })
    }
}

/// Heads that are masked together; the empty set is the intact model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeadSet(BTreeSet<HeadId>);

impl HeadSet {
    /// No head: the intact model.
    pub fn none() -> Self {
        Self::default()
    }

    /// The heads, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = HeadId> + '_ {
        self.0.iter().copied()
    }

    /// Whether a head is among them.
    pub fn contains(&self, id: HeadId) -> bool {
        self.0.contains(&id)
    }

    /// Number of heads.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the intact model.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The heads for a line of progress: their names, or only their number if there are many.
    pub fn brief(&self) -> String {
        if self.len() <= 2 { self.to_string() } else { format!("{} heads", self.len()) }
    }

    /// The names of the heads, as result files write them: joined by `+`, and nothing for no head.
    pub fn names(&self) -> String {
        self.iter().map(|id| id.to_string()).collect::<Vec<_>>().join("+")
    }

    /// These heads and one more.
    pub fn with(&self, id: HeadId) -> Self {
        self.iter().chain([id]).collect()
    }

    /// These heads but one.
    pub fn without(&self, id: HeadId) -> Self {
        self.iter().filter(|&other| other != id).collect()
    }
}

impl fmt::Display for HeadSet {
    /// `enc-enc:1:2+enc-enc:1:3`, or `no head`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { formatter.pad("no head") } else { formatter.pad(&self.names()) }
    }
}

impl FromStr for HeadSet {
    type Err = Error;

    /// Names joined by `+`, as in result files; no name is no head.
    fn from_str(names: &str) -> Result<Self, Error> {
        names.split('+').filter(|name| !name.is_empty()).map(str::parse).collect()
    }
}

impl FromIterator<HeadId> for HeadSet {
    fn from_iter<I: IntoIterator<Item = HeadId>>(heads: I) -> Self {
        Self(heads.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
