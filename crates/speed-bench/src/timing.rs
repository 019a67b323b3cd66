//! Times two models in turn, until the ratio of their speeds is precise enough.
use std::time::{Duration, Instant};

use stats::bootstrap::Interval;
use stats::t_test;
use subject::Pass;

use crate::neighbours::Usage;

/// Timed passes of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Passes {
    /// Duration of each pass, in seconds.
    pub seconds: Vec<f64>,
    /// Multiply-adds of one pass.
    pub multiply_adds: u64,
}

/// Passes of both models.
#[derive(Debug, Clone, PartialEq)]
pub struct Timed {
    /// Segments of one pass.
    pub segments: usize,
    /// Tokens of one pass.
    pub tokens: u64,
    /// Share of the machine's processor time that other processes used; `None` if unknown.
    pub neighbours: Option<f64>,
    /// With all heads.
    pub original: Passes,
    /// With heads removed.
    pub pruned: Passes,
}

/// A ratio with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Rule for when to stop timing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settling {
    /// Minimum number of timed passes of each model.
    pub repeats: usize,
    /// Maximum width of the 95% interval, as a share of the ratio.
    pub width: f64,
    /// Time after which a wider interval is accepted.
    pub limit: Duration,
}

impl Settling {
    /// Returns true if enough passes were timed.
    ///
    /// Checking after each pair lowers the coverage slightly below 95%. The width decides when to stop, not the ratio, so the ratio is not
    /// biased.
    fn is_content(&self, timed: &Timed, elapsed: Duration) -> Result<bool, stats::Error> {
        if timed.original.seconds.len() < self.repeats {
            return Ok(false);
        }
        if elapsed >= self.limit {
            return Ok(true);
        }
        let ratio = timed.ratio()?;
        Ok(ratio.high - ratio.low < self.width * ratio.mean)
    }
}

impl Passes {
    /// Returns the mean number of segments per second over all passes.
    pub fn mean(&self, segments: usize) -> f64 {
        self.speeds(segments).sum::<f64>() / self.seconds.len() as f64
    }

    /// Returns the sample standard deviation of the segments per second.
    pub fn deviation(&self, segments: usize) -> f64 {
        let mean = self.mean(segments);
        let squares: f64 = self.speeds(segments).map(|speed| (speed - mean).powi(2)).sum();
        (squares / (self.seconds.len() - 1) as f64).sqrt()
    }

    fn speeds(&self, segments: usize) -> impl Iterator<Item = f64> + '_ {
        self.seconds.iter().map(move |seconds| segments as f64 / seconds)
    }
}

impl Timed {
    /// Runs each model once as a warm-up, and then both in turn until `settling` is satisfied.
    pub fn in_turn(original: &Pass<'_>, pruned: &Pass<'_>, settling: &Settling) -> anyhow::Result<Self> {
        let mut timed = Self {
            segments: original.segments,
            tokens: original.tokens,
            neighbours: None,
            original: Passes { seconds: Vec::new(), multiply_adds: (original.run)()? },
            pruned: Passes { seconds: Vec::new(), multiply_adds: (pruned.run)()? },
        };
        let (usage, started) = (Usage::now(), Instant::now());
        while !settling.is_content(&timed, started.elapsed())? {
            for (pass, passes) in [(original, &mut timed.original), (pruned, &mut timed.pruned)] {
                let started = Instant::now();
                (pass.run)()?;
                passes.seconds.push(started.elapsed().as_secs_f64());
            }
        }
        timed.neighbours = usage.zip(Usage::now()).and_then(|(before, now)| now.of_others_since(&before));
        Ok(timed)
    }

    /// Returns the speed of the pruned model relative to the original. The interval is a t interval for the mean difference of logarithms
    /// over neighbouring passes, since a slow spell of the machine affects both passes of a pair.
    ///
    /// # Errors
    /// With fewer than two pairs.
    pub fn ratio(&self) -> Result<Ratio, stats::Error> {
        let logarithms =
            |passes: &Passes| passes.seconds.iter().map(|seconds| seconds.ln()).collect::<Vec<_>>();
        let (original, pruned) = (logarithms(&self.original), logarithms(&self.pruned));
        let Interval { low, high } = t_test::paired(&pruned, &original)?.interval;
        Ok(Ratio { mean: f64::midpoint(low, high).exp(), low: low.exp(), high: high.exp() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn passes(seconds: &[f64]) -> Passes {
        Passes { seconds: seconds.to_vec(), multiply_adds: 1 }
    }

    fn timed(original: &[f64], pruned: &[f64]) -> Timed {
        let (original, pruned) = (passes(original), passes(pruned));
        Timed { segments: 12, tokens: 30, neighbours: None, original, pruned }
    }

    /// Pairs with ratios 2 and 8: the mean of the logarithms is ln 4, its standard error ln 2, and the t distribution with one degree of
    /// freedom has its 97.5th percentile at 12.7062.
    #[test]
    fn the_ratio_compares_neighbouring_passes() {
        let ratio = timed(&[4.0, 80.0], &[2.0, 10.0]).ratio().unwrap();
        assert!((ratio.mean - 4.0).abs() < 1e-12, "{ratio:?}");
        let reach = 2_f64.powf(12.706_204_736_432_1);
        assert!((ratio.high / (4.0 * reach) - 1.0).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.low * reach / 4.0 - 1.0).abs() < 1e-9, "{ratio:?}");
    }

    /// 12 segments in 4 and in 3 seconds give 3 and 4 per second.
    #[test]
    fn speeds_are_averaged_over_passes() {
        let passes = passes(&[4.0, 3.0]);
        assert_eq!(passes.mean(12), 3.5);
        assert!((passes.deviation(12) - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    /// Ratios 2 and 2 have an interval of width 0; ratios 2 and 8 have one far wider than the ratio.
    #[test]
    fn pairs_are_timed_until_the_ratio_is_known_or_time_is_up() {
        let settling = Settling { repeats: 2, width: 0.05, limit: Duration::from_secs(60) };
        let (known, unknown) = (timed(&[4.0, 6.0], &[2.0, 3.0]), timed(&[4.0, 80.0], &[2.0, 10.0]));
        let is_content = |settling: Settling, timed: &Timed, seconds| {
            settling.is_content(timed, Duration::from_secs(seconds)).unwrap()
        };
        assert!(is_content(settling, &known, 1) && !is_content(settling, &unknown, 1));
        assert!(is_content(settling, &unknown, 60));
        let more = Settling { repeats: 3, ..settling };
        assert!(!is_content(more, &known, 1) && !is_content(more, &known, 60), "three pairs are needed");
    }

    #[test]
    fn models_are_timed_in_turn_after_a_warm_up_pass() {
        let order = RefCell::new(String::new());
        let order = &order;
        let noted = |name: char| {
            let run = move || {
                order.borrow_mut().push(name);
                Ok(name as u64)
            };
            Pass { segments: 7, tokens: 21, run: Box::new(run) }
        };
        let settling = Settling { repeats: 3, width: 0.05, limit: Duration::ZERO };
        let timed = Timed::in_turn(&noted('A'), &noted('B'), &settling).unwrap();
        assert_eq!(*order.borrow(), "ABABABAB");
        assert_eq!((timed.segments, timed.original.seconds.len(), timed.pruned.seconds.len()), (7, 3, 3));
        assert_eq!((timed.tokens, timed.original.multiply_adds, timed.pruned.multiply_adds), (21, 65, 66));
    }
}
