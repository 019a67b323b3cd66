//! The output layer of a decoder, computed in tiles of the vocabulary.
//!
//! Products with a whole embedding table write rows so far apart that a CPU waits for its page tables. In tiles they take half to three
//! quarters of the time, and the logits of a tile are summed while they are cached.
use tch::{Device, Kind, Tensor};

use super::OutputRules;
use crate::loss::log_sum_exp;
use crate::product;

/// Tokens per block: the search for the best tokens first compares the maxima of blocks.
pub(super) const BLOCK: i64 = 64;

/// Tokens per tile on a CPU, a multiple of the block size.
const TILE: i64 = 1_024;

struct Tile {
    weight: Tensor,         // [tokens, d_model]
    bias: Option<Tensor>,   // [tokens]; absent if it is 0
    banned: Option<Tensor>, // [banned], indices in the tile
    tokens: i64,
}

pub(super) struct OutputLayer {
    tiles: Vec<Tile>,
    width: i64, // of a tile, a multiple of the block size
    renormalised: bool,
    normalised: bool,
}

/// Logits of all tokens for each row.
pub(super) struct Logits {
    /// `[tile, row, token]`; `-inf` for banned tokens and for the padding of the last tile.
    pub(super) tiles: Tensor,
    /// `[row]`: the log-sum-exp, which turns logits into log-probabilities; absent if it was not asked for.
    pub(super) normaliser: Option<Tensor>,
}

impl OutputLayer {
    /// - `weight`: `[vocab, d_model]`; `bias`: `[vocab]`
    /// - `normalised`: whether the log-sum-exp over the vocabulary is computed too
    pub(super) fn new(weight: &Tensor, bias: &Tensor, rules: &OutputRules, normalised: bool) -> Self {
        let vocabulary = weight.size()[0];
        let whole = (vocabulary + BLOCK - 1) / BLOCK * BLOCK;
        // A GPU is faster with few large products.
        let width = if weight.device() == Device::Cpu { whole.min(TILE) } else { whole };
        let bias = (bias.count_nonzero(0).int64_value(&[]) > 0).then_some(bias);
        let tile = |first: i64| {
            let tokens = width.min(vocabulary - first);
            let inside = rules.banned.iter().map(|&token| i64::from(token) - first);
            let banned: Vec<i64> = inside.filter(|place| (0..tokens).contains(place)).collect();
            let places = || Tensor::from_slice(&banned).to_device(weight.device());
            Tile {
                weight: weight.narrow(0, first, tokens),
                bias: bias.map(|bias| bias.narrow(0, first, tokens)),
                banned: (!banned.is_empty()).then(places),
                tokens,
            }
        };
        let tiles = (0..vocabulary).step_by(width as usize).map(tile).collect();
        Self { tiles, width, renormalised: rules.renormalised, normalised }
    }

    /// Computes the logits of `hidden`, `[row, d_model]`, at least in single precision; `forbidden`: further banned (row, token) pairs.
    pub(super) fn logits(&self, hidden: &Tensor, forbidden: &[(i64, i64)]) -> Logits {
        let kind = if hidden.kind() == Kind::Double { Kind::Double } else { Kind::Float };
        let size = [self.tiles.len() as i64, hidden.size()[0], self.width];
        let all = Tensor::empty(size, (kind, hidden.device()));
        let tiles = (0..).zip(&self.tiles);
        // of all tiles, or empty
        let mut sums: Vec<Tensor> =
            tiles.filter_map(|(place, tile)| self.fill(&all.get(place), tile, hidden)).collect();
        if !forbidden.is_empty() {
            let place = |&(row, token): &(i64, i64)| {
                (token / self.width * size[1] + row) * self.width + token % self.width
            };
            let places = Tensor::from_slice(&forbidden.iter().map(place).collect::<Vec<_>>());
            let _ = all.view([-1]).index_fill_(0, &places.to_device(hidden.device()), f64::NEG_INFINITY);
            if self.renormalised && self.normalised {
                sums = log_sum_exp(&all).unbind(0);
            }
        }
        let normaliser = (!sums.is_empty()).then(|| log_sum_exp(&Tensor::stack(&sums, -1)));
        Logits { tiles: all, normaliser }
    }

    /// Writes the logits of a tile to `room`, `[row, token]`; returns their log-sum-exp, `[row]`, if asked for.
    fn fill(&self, room: &Tensor, tile: &Tile, hidden: &Tensor) -> Option<Tensor> {
        let mut logits = room.narrow(1, 0, tile.tokens);
        let beyond = self.width - tile.tokens;
        if beyond > 0 {
            let _ = room.narrow(1, tile.tokens, beyond).fill_(f64::NEG_INFINITY);
        }
        product::linear_into(&mut logits, hidden, &tile.weight, tile.bias.as_ref());
        if self.renormalised {
            tile.ban(&mut logits);
        }
        let sum = self.normalised.then(|| log_sum_exp(&logits));
        if !self.renormalised {
            tile.ban(&mut logits);
        }
        sum
    }
}

impl Tile {
    fn ban(&self, logits: &mut Tensor) {
        if let Some(banned) = &self.banned {
            let _ = logits.index_fill_(1, banned, f64::NEG_INFINITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: (Kind, Device) = (Kind::Double, Device::Cpu);

    fn gap(found: &Tensor, expected: &Tensor) -> f64 {
        (found - expected).nan_to_num(0.0, None, None).abs().max().double_value(&[])
    }

    fn numbers(shape: &[i64], step: f64) -> Tensor {
        (Tensor::arange(shape.iter().product::<i64>(), DOUBLE) * step).sin().view(shape) * 4.0
    }

    /// In bfloat16, logits are products in bfloat16, but their exponentials are summed in single precision: in bfloat16 a sum over 1,089
    /// tokens would be a multiple of 8.
    #[test]
    fn reduced_precision_is_summed_up_in_single() {
        let numbers = |shape: &[i64], step| numbers(shape, step).to_kind(Kind::BFloat16);
        let (weight, hidden) = (numbers(&[TILE + 65, 5], 0.7), numbers(&[3, 5], 1.3));
        for bias in [numbers(&[TILE + 65], 0.3), Tensor::zeros([TILE + 65], (Kind::BFloat16, Device::Cpu))] {
            let rules = OutputRules { banned: vec![7], ..OutputRules::default() };
            let found = OutputLayer::new(&weight, &bias, &rules, true).logits(&hidden, &[]);
            let normaliser = found.normaliser.unwrap();
            assert_eq!((found.tiles.kind(), normaliser.kind()), (Kind::Float, Kind::Float));
            let whole = hidden.linear(&weight, Some(&bias)).to_kind(Kind::Float);
            let all = found.tiles.transpose(0, 1).flatten(1, 2).narrow(1, 0, TILE + 65);
            let others = |of: &Tensor| of.index_fill(1, &Tensor::from_slice(&[7_i64]), 0.0);
            // tiles may be summed in another order: one unit in the last of the 8 bits of numbers up to 64
            let gap = gap(&others(&all), &others(&whole));
            assert!(gap <= 0.5, "{gap}");
            assert!(all.select(1, 7).isinf().all().int64_value(&[]) == 1);
            let expected = all.index_copy(1, &Tensor::from_slice(&[7_i64]), &whole.narrow(1, 7, 1));
            let gap = self::gap(&normaliser, &expected.logsumexp(1, false));
            assert!(gap < 1e-5, "{gap:e}");
        }
    }

    /// Three tiles, the last with 65 tokens; two tiles, the last with one banned token; and one that is not a whole block. With and without
    /// a bias.
    #[test]
    fn tiles_give_what_the_whole_vocabulary_gives() {
        for (vocabulary, banned) in
            [(2 * TILE + 65, vec![3, 1_024, 1_025, 2_112]), (TILE + 1, vec![1_024]), (70, vec![])]
        {
            let (weight, hidden) = (numbers(&[vocabulary, 5], 0.7), numbers(&[3, 5], 1.3));
            for bias in [numbers(&[vocabulary], 0.3), Tensor::zeros([vocabulary], DOUBLE)] {
                for renormalised in [true, false] {
                    let rules =
                        OutputRules { banned: banned.clone(), renormalised, ..OutputRules::default() };
                    let layer = |normalised| OutputLayer::new(&weight, &bias, &rules, normalised);
                    let (found, plain) =
                        (layer(true).logits(&hidden, &[]), layer(false).logits(&hidden, &[]));
                    assert!(plain.normaliser.is_none() && plain.tiles.equal(&found.tiles));
                    let ban = |all: &Tensor| {
                        let banned: Vec<i64> = banned.iter().map(|&token| i64::from(token)).collect();
                        all.index_fill(1, &Tensor::from_slice(&banned), f64::NEG_INFINITY)
                    };
                    let whole = hidden.linear(&weight, Some(&bias));
                    let expected = if renormalised {
                        ban(&whole).log_softmax(1, Kind::Double)
                    } else {
                        ban(&whole.log_softmax(1, Kind::Double))
                    };
                    let all =
                        found.tiles.transpose(0, 1).flatten(1, 2) - found.normaliser.unwrap().unsqueeze(1);
                    let (inside, beyond) =
                        (all.narrow(1, 0, vocabulary), all.narrow(1, vocabulary, all.size()[1] - vocabulary));
                    assert!(beyond.eq(f64::NEG_INFINITY).all().int64_value(&[]) == 1);
                    assert_eq!(inside.isinf(), expected.isinf(), "{vocabulary}");
                    let gap = gap(&inside, &expected);
                    assert!(gap < 1e-12, "{vocabulary} tokens, renormalised: {renormalised}: {gap:e}");
                }
            }
        }
    }
}
