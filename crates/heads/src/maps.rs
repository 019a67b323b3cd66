//! Attention of heads in one text.
use crate::Attention;

/// Attention weights of all heads of one type in one text.
#[derive(Debug, Clone)]
pub struct AttentionMaps {
    /// The attention type.
    pub attention: Attention,
    /// Texts of the tokens that attend.
    pub queries: Vec<String>,
    /// Texts of the tokens that are attended to.
    pub keys: Vec<String>,
    /// True if a query sees itself and those before alone.
    pub is_causal: bool,
    /// Weights of each layer, `[heads, query, key]`; zeros for heads that were removed.
    pub layers: Vec<Vec<f32>>,
}
