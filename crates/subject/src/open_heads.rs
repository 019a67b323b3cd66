//! Models that are trained from scratch with only some of their heads.
use core_masking::{Attention, GatedModel, HeadLayout, HeadSet, ModelConfig, Removal};
use serde::{Deserialize, Serialize};

/// Heads of a model that is trained from scratch with no others: a baseline of Voita et al. (2019), Section 6.3.
///
/// Differs from their code, which multiplies the other heads by 0 throughout. Here they are removed from the new model, so that the
/// remaining weights are initialised as in a model with all heads, and removed heads have no weights to train.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OpenHeads(Option<Vec<String>>);

impl OpenHeads {
    pub(crate) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Refuses heads that are not in `layout`, the layout of the model with all heads.
    pub(crate) fn validate(&self, layout: &HeadLayout) -> Result<(), String> {
        let named = |fault: String| format!("model.open_heads: {fault}");
        let open = self.open(layout).map_err(|error| named(error.to_string()))?;
        match &self.0 {
            Some(_) if open.is_empty() => {
                Err(named("it names no head; leave it out to keep all heads".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the open heads. An entry is an attention type (all its heads) or heads joined by `+`, as in result files.
    fn open(&self, layout: &HeadLayout) -> Result<HeadSet, heads::Error> {
        let Some(entries) = &self.0 else { return Ok(layout.heads().into_iter().collect()) };
        let mut open = Vec::new();
        for entry in entries {
            match entry.parse::<Attention>() {
                Ok(attention) => open.extend(layout.heads_of(attention)?),
                Err(_) => open.extend(entry.parse::<HeadSet>()?.iter()),
            }
        }
        open.iter().try_for_each(|&id| layout.check(id))?;
        Ok(open.into_iter().collect())
    }

    /// Returns the heads that the model lacks; empty if validation refuses the entry.
    fn closed(&self, layout: &HeadLayout) -> HeadSet {
        let open = self.open(layout).unwrap_or_default();
        layout.heads().into_iter().filter(|&id| !open.is_empty() && !open.contains(id)).collect()
    }

    pub(crate) fn of_config<C: ModelConfig>(&self, config: C) -> C {
        let closed = self.closed(&config.layout());
        if closed.is_empty() { config } else { config.without_heads(&closed) }
    }

    /// Removes the closed heads from a newly initialised model with all heads.
    pub(crate) fn of_model<M: GatedModel>(&self, model: M) -> Result<M, core_masking::Error> {
        let closed = self.closed(&model.layout());
        if closed.is_empty() { Ok(model) } else { model.without_heads(&closed, Removal::Cut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_masking::LayerShape;

    /// 2 layers of 3 heads of each type.
    fn layout() -> HeadLayout {
        let types = [Attention::EncEnc, Attention::EncDec, Attention::DecDec];
        HeadLayout::new(types.map(|attention| (attention, LayerShape::plain(2, 3, 12))))
    }

    fn of(entries: &[&str]) -> OpenHeads {
        OpenHeads(Some(entries.iter().map(|&entry| entry.to_owned()).collect()))
    }

    #[test]
    fn entries_are_types_or_lists_of_heads() {
        let closed = of(&["enc-enc:1:2+enc-enc:2:3", "enc-dec", "dec-dec:1:1"]).closed(&layout()).names();
        assert_eq!(
            closed,
            "enc-enc:1:1+enc-enc:1:3+enc-enc:2:1+enc-enc:2:2+dec-dec:1:2+dec-dec:1:3+dec-dec:2:1+dec-dec:2:2+dec-dec:2:3"
        );
        assert!(OpenHeads::default().closed(&layout()).is_empty() && OpenHeads::default().is_all());
    }
}
