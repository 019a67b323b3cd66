//! Vectorised attention of single queries on a CPU: eight heads at once.
//!
//! In a decoding step each hypothesis has one query. libtorch's kernel multiplies matrices per sentence and head, so small that the
//! overhead exceeds the computation. Here the numbers of eight heads are interleaved as the lanes of a vector, and each instruction
//! processes eight heads.
use pulp::{Arch, NullaryFnOnce};
use tch::Tensor;

use crate::to_vec;

/// Heads per vector: single precision in 256 bits.
const LANES: usize = 8;

/// Vectors of a sum that are held in registers; heads are padded with zeros to whole blocks of this size.
const HELD: usize = 4;

/// One number per head.
type Lanes = [f32; LANES];

/// Memory layout of a position: the first eight heads, dimension by dimension, then the next eight. Unused lanes and dimensions are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimdLayout {
    pub(super) heads: usize,
    pub(super) d_head: usize,
}

/// Positions in this layout, one after another.
#[derive(Debug)]
pub(super) struct Packed {
    numbers: Vec<Lanes>,
    of_position: usize,
}

#[derive(Debug)]
pub(super) struct PackedKeyValue {
    pub(super) key: Packed,
    pub(super) value: Packed,
}

#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    keys: Vec<&'a [Lanes]>,
    values: Vec<&'a [Lanes]>,
}

impl SimdLayout {
    /// Vectors per group of eight heads.
    fn of_group(self) -> usize {
        self.d_head.next_multiple_of(HELD)
    }

    /// Vectors per position.
    fn of_position(self) -> usize {
        self.heads.div_ceil(LANES) * self.of_group()
    }

    /// Numbers per position in a tensor; 1 without heads, as a divisor.
    fn width(self) -> usize {
        (self.heads * self.d_head).max(1)
    }

    /// Bytes per position.
    pub(super) fn bytes(self) -> u64 {
        (self.of_position() * size_of::<Lanes>()) as u64
    }

    /// Packs `numbers`, `[.., heads * d_head]`, times a factor.
    pub(super) fn pack(self, numbers: &Tensor, factor: f32) -> Packed {
        let given: Vec<f32> = to_vec(numbers);
        let of_position = self.of_position();
        let positions = given.len() / self.width();
        let mut numbers = vec![[0.0; LANES]; positions * of_position];
        let rows = given.chunks_exact(self.width());
        for (given, packed) in rows.zip(numbers.chunks_exact_mut(of_position.max(1))) {
            let groups = given.chunks(LANES * self.d_head).zip(packed.chunks_exact_mut(self.of_group()));
            for (given, packed) in groups {
                for (lane, head) in given.chunks_exact(self.d_head).enumerate() {
                    for (packed, number) in packed.iter_mut().zip(head) {
                        packed[lane] = factor * number;
                    }
                }
            }
        }
        Packed { numbers, of_position }
    }

    /// Computes the head outputs for each query.
    ///
    /// - `queries`: `[.., heads * d_head]`
    /// - `divisor`: divides the scores
    /// - `biases`: added to the scores, for each key that a query sees, in order, and head; `[keys, heads]`
    /// - `show`: adds the keys and values that a query, counted from 0, sees; at least one
    /// - returns the shape of `queries`
    pub(super) fn attend<'a>(
        self,
        queries: &Tensor,
        divisor: f64,
        biases: Option<&Tensor>,
        show: impl Fn(usize, &mut Seen<'a>),
    ) -> Tensor {
        let packed = self.pack(queries, (divisor as f32).recip());
        let biases = biases.map(|biases| Self { d_head: 1, ..self }.pack(biases, 1.0));
        let (shape, mut contexts) = (queries.size(), vec![0.0; queries.numel()]);
        // compiled for each instruction set
        let (queries, biases) = (&packed, biases.as_ref());
        Arch::new().dispatch(Attention { layout: self, queries, biases, show, contexts: &mut contexts });
        Tensor::from_slice(&contexts).view(&shape[..])
    }
}

impl Packed {
    fn position(&self, place: usize) -> &[Lanes] {
        &self.numbers[place * self.of_position..][..self.of_position]
    }
}

impl<'a> Seen<'a> {
    pub(super) fn add(&mut self, memory: &'a PackedKeyValue, place: usize) {
        self.keys.push(memory.key.position(place));
        self.values.push(memory.value.position(place));
    }
}

/// All queries of a step; a value, so that its call is compiled as a whole for an instruction set.
struct Attention<'q, F> {
    layout: SimdLayout,
    queries: &'q Packed,
    biases: Option<&'q Packed>,
    show: F,
    contexts: &'q mut [f32],
}

impl<'a, F: Fn(usize, &mut Seen<'a>)> NullaryFnOnce for Attention<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (d_head, of_group) = (self.layout.d_head, self.layout.of_group());
        let (mut seen, mut weights) = (Seen::default(), Vec::new());
        let mut read = vec![[0.0; LANES]; of_group];
        for (row, context) in self.contexts.chunks_exact_mut(self.layout.width()).enumerate() {
            seen.keys.clear();
            seen.values.clear();
            (self.show)(row, &mut seen);
            let query = self.queries.position(row);
            for (number, context) in context.chunks_mut(LANES * d_head).enumerate() {
                let group = number * of_group..(number + 1) * of_group;
                weights.clear();
                // not `extend`, which would be compiled separately, without these instructions
                for key in &seen.keys {
                    weights.push(product(&query[group.clone()], &key[group.clone()]));
                }
                if let Some(biases) = self.biases {
                    for (key, score) in weights.iter_mut().enumerate() {
                        // each group has one number, in its first vector
                        let bias = &biases.position(key)[number * HELD];
                        (0..LANES).for_each(|lane| score[lane] += bias[lane]);
                    }
                }
                let total = exponentiate(&mut weights);
                add_up(&weights, &seen.values, group.start, &mut read);
                for (lane, context) in context.chunks_exact_mut(d_head).enumerate() {
                    for (context, read) in context.iter_mut().zip(&read) {
                        *context = read[lane] / total[lane];
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn product(query: &[Lanes], key: &[Lanes]) -> Lanes {
    let mut sum = [0.0; LANES];
    for (query, key) in query.iter().zip(key) {
        for lane in 0..LANES {
            sum[lane] += query[lane] * key[lane];
        }
    }
    sum
}

/// Replaces each score by the exponential of its difference to the maximum of its head; returns the sums.
#[inline(always)]
fn exponentiate(scores: &mut [Lanes]) -> Lanes {
    let mut greatest = [f32::NEG_INFINITY; LANES];
    for score in &*scores {
        for lane in 0..LANES {
            greatest[lane] = if score[lane] > greatest[lane] { score[lane] } else { greatest[lane] };
        }
    }
    let mut total = [0.0; LANES];
    for score in scores {
        for lane in 0..LANES {
            score[lane] = exp(score[lane] - greatest[lane]);
            total[lane] += score[lane];
        }
    }
    total
}

/// Writes the weighted sum of the values' vectors from `first` on.
#[inline(always)]
fn add_up(weights: &[Lanes], values: &[&[Lanes]], first: usize, sum: &mut [Lanes]) {
    let (blocks, _) = sum.as_chunks_mut::<HELD>();
    for (first, sum) in (first..).step_by(HELD).zip(blocks) {
        let mut held = [[0.0; LANES]; HELD];
        for (weight, value) in weights.iter().zip(values) {
            let value = &value[first..first + HELD];
            for place in 0..HELD {
                for lane in 0..LANES {
                    held[place][lane] += weight[lane] * value[place][lane];
                }
            }
        }
        *sum = held;
    }
}

/// Returns e^x for x ≤ 0, to a few units in the last place; below -87 it returns e^-87, 1.6e-38.
///
/// Computes 2ⁿ eʳ, where n is x / ln 2 rounded, with a Taylor series for eʳ. Unlike the standard library's function it can be vectorised.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5 * 2²³: adding it rounds a number to an integer, stored in the last bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 as a sum of two numbers; the first has few enough digits that its multiples are exact (Cody and Waite 1980).
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    // unlike `f32::max`, this keeps NaN
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2[0] - n * LN_2[1];
    let mut series = 1.0;
    for divisor in [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        series = series * r * (1.0 / divisor) + 1.0;
    }
    series * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()))
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    fn numbers(shape: &[i64], step: f64) -> Tensor {
        let count = shape.iter().product::<i64>();
        ((Tensor::arange(count, (Kind::Double, Device::Cpu)) * step).sin() * 3.0).view(shape)
    }

    /// Fewer heads than lanes, one full group, a full and a partial group, two full groups; d_head with and without padding. Each query
    /// sees all but a few keys, with and without a bias.
    #[test]
    fn attention_is_that_of_libtorch() {
        for (heads, d_head) in [(3, 5), (8, 16), (11, 4), (16, 1)] {
            let (queries, keys) = (7, 6);
            let [q, k, v] = [(queries, 0.7), (keys, 1.3), (keys, 2.1)]
                .map(|(rows, step)| numbers(&[rows, heads * d_head], step));
            let by_head = |all: &Tensor| all.unflatten(1, [heads, d_head]).transpose(0, 1); // [heads, row, d_head]
            let seen_by = |query: i64| (0..keys).filter(move |&key| key == 0 || (query + key) % 3 != 0);
            let layout = SimdLayout { heads: heads as usize, d_head: d_head as usize };
            let memory = PackedKeyValue { key: layout.pack(&k, 1.0), value: layout.pack(&v, 1.0) };
            let some = numbers(&[keys, heads], 0.9);
            for (biases, of_key) in [(None, some.zeros_like()), (Some(&some), some.shallow_clone())] {
                let options = (Kind::Double, Device::Cpu);
                let visible = Tensor::full([heads, queries, keys], f64::NEG_INFINITY, options);
                for query in 0..queries {
                    for (place, key) in (0..).zip(seen_by(query)) {
                        visible.select(1, query).select(1, key).copy_(&of_key.get(place)); // [heads]
                    }
                }
                let [q_by_head, k, v] = [&q, &k, &v].map(by_head);
                let expected = Tensor::scaled_dot_product_attention(
                    &q_by_head,
                    &k,
                    &v,
                    Some(&visible),
                    0.0,
                    false,
                    None,
                    false,
                );
                let expected = expected.transpose(0, 1).flatten(1, 2); // [query, heads * d_head]
                let divisor = (d_head as f64).sqrt();
                let found = layout.attend(&q.to_kind(Kind::Float), divisor, biases, |query, seen| {
                    seen_by(query as i64).for_each(|key| seen.add(&memory, key as usize));
                });
                let gap = (found - expected).abs().max().double_value(&[]);
                let is_biased = biases.is_some();
                assert!(gap < 2e-6, "{heads} heads of {d_head}, biased: {is_biased}: {gap:e}");
            }
        }
    }

    #[test]
    fn exponentials_are_right_to_a_few_units_in_the_last_place() {
        for step in 0..=870_000 {
            let x = -87.0 * (step as f32 / 870_000.0);
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 3.0 * f64::from(f32::EPSILON), "{x}: {found:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), exp(-87.0));
        assert!(exp(f32::NAN).is_nan());
    }

    /// Scores whose exponentials would overflow, and a NaN in one head only.
    #[test]
    fn great_scores_are_weighed_and_nan_is_not_hidden() {
        let layout = SimdLayout { heads: 2, d_head: 1 };
        let pack = |values: [f32; 4]| layout.pack(&Tensor::from_slice(&values).view([2, 2]), 1.0);
        let memory =
            PackedKeyValue { key: pack([500.0, f32::NAN, 501.0, 2.0]), value: pack([1.0, 1.0, 3.0, 3.0]) };
        let found = layout.attend(&Tensor::from_slice(&[1.0_f32, 1.0]).view([1, 2]), 1.0, None, |_, seen| {
            [0, 1].into_iter().for_each(|place| seen.add(&memory, place));
        });
        let found: Vec<f32> = to_vec(&found);
        // weights of 1 and e
        let expected = (1.0 + 3.0 * std::f32::consts::E) / (1.0 + std::f32::consts::E);
        assert!((found[0] - expected).abs() < 1e-6, "{found:?}");
        assert!(found[1].is_nan());
    }
}
