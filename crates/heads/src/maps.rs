//! Attention weights of heads on one text.
use crate::Attention;

/// Attention weights of all heads of one attention type on one text.
#[derive(Debug, Clone)]
pub struct AttentionMaps {
    /// The attention type.
    pub attention: Attention,
    /// Texts of the query tokens.
    pub queries: Vec<String>,
    /// Texts of the key tokens.
    pub keys: Vec<String>,
    /// True if attention is causal.
    pub is_causal: bool,
    /// Weights of each layer, `[heads, query, key]`; zeros for heads that were removed.
    pub layers: Vec<Vec<f32>>,
}
