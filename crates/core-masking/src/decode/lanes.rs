//! Attention of single queries on a CPU, computed for eight heads at once.
//!
//! In a step of decoding each hypothesis has one query. libtorch's kernel makes a matrix product of each sentence and head, so
//! small that it takes longer to prepare than to compute. Here the numbers of eight heads lie beside each other, as the lanes of
//! a vector, and each instruction works on all of them.
use pulp::{Arch, NullaryFnOnce};
use tch::Tensor;

use crate::to_vec;

/// Heads beside each other: numbers of single precision in 256 bits.
const LANES: usize = 8;

/// Vectors of a sum that are held in registers; those of a head are filled up with zeros to whole blocks.
const HELD: usize = 4;

/// A number of each of eight heads.
type Lanes = [f32; LANES];

/// Layout of the numbers of a position: those of the first eight heads, place by place, then those of the next eight.
/// Lanes without a head are 0, and so are places beyond the width of heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneLayout {
    pub(super) heads: usize,
    pub(super) d_head: usize,
}

/// Positions in this layout, one after another.
#[derive(Debug)]
pub(super) struct Packed {
    numbers: Vec<Lanes>,
    of_position: usize,
}

/// Keys and values.
#[derive(Debug)]
pub(super) struct PackedKeyValue {
    pub(super) key: Packed,
    pub(super) value: Packed,
}

/// Keys and values that a query attends to.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    keys: Vec<&'a [Lanes]>,
    values: Vec<&'a [Lanes]>,
}

impl LaneLayout {
    /// Vectors of eight heads.
    fn of_group(self) -> usize {
        self.d_head.next_multiple_of(HELD)
    }

    /// Vectors of a position.
    fn of_position(self) -> usize {
        self.heads.div_ceil(LANES) * self.of_group()
    }

    /// Numbers of a position as a tensor has them; 1 where there are no heads, so that there is something to divide by.
    fn width(self) -> usize {
        (self.heads * self.d_head).max(1)
    }

    /// Bytes of a position.
    pub(super) fn bytes(self) -> u64 {
        (self.of_position() * size_of::<Lanes>()) as u64
    }

    /// Lays out the positions of `numbers`, `[.., heads * d_head]`, times a factor.
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

    /// Context of each query.
    ///
    /// - `queries`: `[.., heads * d_head]`
    /// - `divisor`: of the scores
    /// - `biases`: of each head on its scores, one for each key that a query sees, in the same order; `[keys, heads]`
    /// - `show`: adds what a query sees, counted from 0; one key at least
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
        // compiled for each set of vector instructions
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
    /// Adds a position.
    pub(super) fn add(&mut self, memory: &'a PackedKeyValue, place: usize) {
        self.keys.push(memory.key.position(place));
        self.values.push(memory.value.position(place));
    }
}

/// All queries of a step: a value, so that it is compiled as a whole for the instructions that it is called with.
struct Attention<'q, F> {
    layout: LaneLayout,
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
                // not `extend`, which would be compiled apart and without these instructions
                for key in &seen.keys {
                    weights.push(product(&query[group.clone()], &key[group.clone()]));
                }
                if let Some(biases) = self.biases {
                    for (key, score) in weights.iter_mut().enumerate() {
                        // one number in the first of a group's vectors
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

/// The scalar product of each head.
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

/// Makes of each score the exponential of its distance to the greatest one of its head; returns their sums.
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

/// Writes the sum of values, from vector `first` of each on, times their weights.
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

/// e^x of a number that is not above 0, to a few units in the last place; below -87 it is that of -87, which is 1.6e-38.
///
/// 2ⁿ eʳ, where n is x / ln 2 rounded, with a Taylor series for eʳ. Unlike the standard library's, it is compiled to vector
/// instructions.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5 * 2²³: what is added to it is rounded to a whole number, which then are the last bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 as two numbers, of which the first has so few digits that its multiples are exact (Cody and Waite 1980).
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    // NaN stays what it is, unlike in `f32::max`
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

    /// Fewer heads than lanes, as many, more, and with a rest; widths with a rest too. Each query sees all keys but some, with a
    /// bias on each in turn, or without.
    #[test]
    fn attention_is_that_of_libtorch() {
        for (heads, d_head) in [(3, 5), (8, 16), (11, 4), (16, 1)] {
            let (queries, keys) = (7, 6);
            let [q, k, v] = [(queries, 0.7), (keys, 1.3), (keys, 2.1)]
                .map(|(rows, step)| numbers(&[rows, heads * d_head], step));
            let by_head = |all: &Tensor| all.unflatten(1, [heads, d_head]).transpose(0, 1); // [heads, row, d_head]
            let seen_by = |query: i64| (0..keys).filter(move |&key| key == 0 || (query + key) % 3 != 0);
            let layout = LaneLayout { heads: heads as usize, d_head: d_head as usize };
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

    /// Scores that exponentials of would overflow, and a NaN in one head alone.
    #[test]
    fn great_scores_are_weighed_and_nan_is_not_hidden() {
        let layout = LaneLayout { heads: 2, d_head: 1 };
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
