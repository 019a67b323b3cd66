//! Sentences of different lengths as one tensor.
use tch::{Device, Kind, Tensor};

/// Token ids of a batch, padded on the right, with the bias that hides the padding.
#[derive(Debug)]
pub struct TokenBatch {
    /// `[batch, position]`, integers
    pub ids: Tensor,
    /// `[batch, 1, 1, position]`: 0 at tokens, `-inf` at padding
    pub bias: Tensor,
}

impl TokenBatch {
    /// Pads `rows` to the longest; `kind` is the model's.
    pub fn new(rows: &[&[u32]], pad: u32, (kind, device): (Kind, Device)) -> Self {
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let mut ids = Vec::with_capacity(rows.len() * longest);
        let mut bias = Vec::with_capacity(rows.len() * longest);
        for row in rows {
            let padding = longest - row.len();
            ids.extend(row.iter().map(|&token| i64::from(token)));
            ids.extend(std::iter::repeat_n(i64::from(pad), padding));
            bias.extend(std::iter::repeat_n(0.0_f32, row.len()));
            bias.extend(std::iter::repeat_n(f32::NEG_INFINITY, padding));
        }
        let (batch, position) = (rows.len() as i64, longest as i64);
        Self {
            ids: Tensor::from_slice(&ids).view([batch, position]).to_device(device),
            bias: Tensor::from_slice(&bias).view([batch, 1, 1, position]).to_kind(kind).to_device(device),
        }
    }
}

/// Texts as BERT takes them: token ids, and the segment (first or second text) of each token.
#[derive(Debug)]
pub struct SegmentBatch {
    /// Token ids and the bias that hides padding.
    pub tokens: TokenBatch,
    /// `[batch, position]`, 0 or 1; 0 at padding.
    pub segments: Tensor,
}

impl SegmentBatch {
    /// Pads rows of (ids, segments) to the longest.
    pub fn new(rows: &[(&[u32], &[u32])], pad: u32, options: (Kind, Device)) -> Self {
        let (ids, segments): (Vec<&[u32]>, Vec<&[u32]>) = rows.iter().copied().unzip();
        Self {
            tokens: TokenBatch::new(&ids, pad, options),
            segments: TokenBatch::new(&segments, 0, options).ids,
        }
    }
}

/// Returns the causal bias: `[1, 1, position, position]`, 0 up to the diagonal and `-inf` above it.
pub fn causal_bias(positions: i64, options: (Kind, Device)) -> Tensor {
    Tensor::full([positions, positions], f64::NEG_INFINITY, options)
        .triu(1)
        .view([1, 1, positions, positions])
}
