//! Time of one paired bootstrap: 1,000 resamples of 3,000 segments, in milliseconds.

use std::hint::black_box;
use std::time::Instant;

use stats::bleu::BleuStatistics;
use stats::bootstrap::paired_bootstrap;

const SEGMENTS: u32 = 3_000;
const RESAMPLES: usize = 1_000;
const REPEATS: u64 = 50;

/// A segment of 10 to 40 words, about two thirds of them right.
fn segment(index: u32, salt: u32) -> BleuStatistics {
    let length = 10 + index * 7 % 31;
    let total = [0, 1, 2, 3].map(|n| length - n);
    let correct = total.map(|words| words * (60 + (index + salt) % 17) / 100);
    BleuStatistics { hypothesis_length: length, reference_length: length + index % 3, correct, total }
}

fn main() {
    let base: Vec<_> = (0..SEGMENTS).map(|index| segment(index, 0)).collect();
    let variant: Vec<_> = (0..SEGMENTS).map(|index| segment(index, index % 5)).collect();
    let mut milliseconds: Vec<f64> = (0..REPEATS)
        .map(|seed| {
            let start = Instant::now();
            let compared = paired_bootstrap(&base, &variant, RESAMPLES, seed);
            black_box(compared).expect("the segments are not empty");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    milliseconds.sort_by(f64::total_cmp);
    println!(
        "{RESAMPLES} resamples of {SEGMENTS} segments on {} threads: min {:.2} ms, median {:.2} ms",
        rayon::current_num_threads(),
        milliseconds[0],
        milliseconds[milliseconds.len() / 2]
    );
}
