//! Time of testing a sweep: 144 heads, 1,000 segments, 99,999 swaps and 10,000 resamples, as `retest` does it.

use std::hint::black_box;
use std::time::Instant;

use stats::Segments;
use stats::bleu::BleuStatistics;
use stats::family::{Testing, test_family};

const SEGMENTS: u32 = 1_000;
const HEADS: u32 = 144;
const TESTING: Testing = Testing { resamples: stats::swaps::SWAPS, seed: 1, block: 1 };
const REPEATS: usize = 5;

/// A segment of 10 to 40 words, about two thirds of them right; two of three heads leave it unchanged.
fn segment(index: u32, head: u32) -> BleuStatistics {
    let length = 10 + index * 7 % 31;
    let salt = if (index + head).is_multiple_of(3) { head } else { 0 };
    let total = [0, 1, 2, 3].map(|order| length - order);
    let correct = total.map(|words| words * (60 + (index + salt) % 17) / 100);
    BleuStatistics { hypothesis_length: length, reference_length: length + index % 3, correct, total }
}

fn segments(head: u32) -> Segments {
    Segments::Bleu((0..SEGMENTS).map(|index| segment(index, head)).collect())
}

fn main() {
    let base = segments(0);
    let variants: Vec<Segments> = (1..=HEADS).map(segments).collect();
    let variants: Vec<&Segments> = variants.iter().collect();
    let mut seconds: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            let compared = test_family(&base, &variants, TESTING, 0.0);
            black_box(compared).expect("the segments are not empty");
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "{HEADS} heads, {} swaps of {SEGMENTS} segments on {} threads: min {:.2} s, median {:.2} s",
        TESTING.resamples,
        rayon::current_num_threads(),
        seconds[0],
        seconds[seconds.len() / 2]
    );
}
