//! Rows whose score is compared with that of the full model, with the shared columns of scores and tests.
use stats::bootstrap::Interval;
use stats::family::Comparison;
use stats::spread::Reached;
use stats::{Direction, MetricName};

use super::Row;
use crate::verdicts::{Verdict, margin};

/// Name of the full model's statistics.
pub const BASE: &str = "base";

/// A row whose score is compared with that of the full model, by the stored statistics of segments.
pub trait TestedRow: Row {
    /// Returns the family of rows that are tested together.
    fn family(&self) -> String;

    /// Returns the name of the stored statistics of the model that the row is compared with.
    fn base(&self) -> String;

    /// Returns true for the full model, which is not tested.
    fn is_full_model(&self) -> bool {
        false
    }

    /// Returns the masked heads, joined by `+`, if the rows of a family are steps of a curve.
    fn masked_heads(&self) -> Option<&str> {
        None
    }

    /// Returns the step on the curve of its family; `None` if the rows are not consecutive steps.
    fn step(&self) -> Option<usize> {
        None
    }

    /// Returns the sample sizes at the looks at this row; `None` if all segments were measured at once.
    fn looks(&self) -> Option<Vec<usize>> {
        None
    }

    /// Returns the sample size at the last look; 0 without looks.
    fn sample(&self) -> usize {
        self.looks().and_then(|looks| looks.last().copied()).unwrap_or(0)
    }

    /// Adds a look with this sample size.
    fn add_look(&mut self, _sample: usize) {}

    /// Records the correlation of effects and predictions.
    fn record_correlation(&mut self, _correlation: Option<f64>) {}

    /// Records on which share of resamples the steps up to this one are acceptable.
    fn record_reached(&mut self, _reached: Reached) {}

    /// Records how the tested rows of a file compare with each other.
    fn compare(_rows: &mut [Self]) {}

    /// Returns the metric of the scores.
    fn metric(&self) -> MetricName;

    /// Returns the direction in which a score is better.
    fn direction(&self) -> Direction {
        self.metric().direction()
    }

    /// Returns the scores and the results of the tests.
    fn tests(&self) -> Comparison;

    /// Records the results of a test.
    fn record(&mut self, tests: &Comparison);

    /// Returns the ends of the 95% interval of the difference; `None` if it was not tested.
    fn delta_interval(&self) -> Option<(f64, f64)> {
        self.tests().interval.map(|Interval { low, high }| (low, high))
    }

    /// Returns the interval of the difference that holds for all rows of its family at once; `None` if there is none.
    fn simultaneous_interval(&self) -> Option<Interval> {
        self.tests().simultaneous
    }

    /// Returns the gain in score from masking the heads; negative if the score is worse, so the heads were useful.
    fn gain(&self) -> f64 {
        self.direction().gain(self.tests().delta)
    }

    /// Returns the verdict of the 95% interval for a margin in percent of the full model's score; `None` without an interval.
    fn verdict(&self, margin_percent: f64) -> Option<Verdict> {
        self.verdict_by(self.tests().interval, margin_percent)
    }

    /// Returns the verdict of another interval of the difference.
    fn verdict_by(&self, delta: Option<Interval>, margin_percent: f64) -> Option<Verdict> {
        let ends =
            delta.map(|Interval { low, high }| [low, high].map(|delta| -self.direction().gain(delta)))?;
        let loss = Interval { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
        Some(Verdict::of(loss, margin(self.metric(), self.tests().base, margin_percent)))
    }
}

/// Defines a flat row type, since `csv` cannot write nested ones; `[tests]` inserts the columns of scores and tests.
macro_rules! tested_row {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$key_meta:meta])* pub $key:ident: $key_type:ty,)*
            [tests]
            $($(#[$other_meta:meta])* pub $other:ident: $other_type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$key_meta])* pub $key: $key_type,)*
            /// Metric of the scores, such as `bleu` or `nats`.
            pub metric: stats::MetricName,
            /// Score of the full model, in the unit of the metric.
            pub base_score: f64,
            /// Score with heads masked, in the unit of the metric.
            pub score: f64,
            /// `score` minus `base_score`: the effect of masking.
            pub score_delta: f64,
            /// Lower end of the 95% interval of `score_delta`; empty if it was not tested.
            pub delta_low: Option<f64>,
            /// Upper end of the 95% interval of `score_delta`.
            pub delta_high: Option<f64>,
            /// Lower end of the 95% interval that holds for all rows of the family at once; empty until the family is complete.
            pub simultaneous_low: Option<f64>,
            /// Upper end of the simultaneous interval.
            pub simultaneous_high: Option<f64>,
            /// Two-sided p-value: paired t-test for `accuracy`, otherwise swaps of segments (approximate randomisation, Noreen 1989).
            pub p_value: Option<f64>,
            /// Two-sided p-value of the paired bootstrap, for comparison only; empty for `accuracy`.
            pub p_bootstrap: Option<f64>,
            /// The paper's p-value: one-sided paired bootstrap in the observed direction (Koehn 2004); empty for `accuracy`.
            pub p_koehn: Option<f64>,
            /// `p_value` adjusted for the family-wise error rate: step-down max-T (Westfall and Young 1993), for `accuracy` Holm
            /// (1979).
            pub p_adjusted: Option<f64>,
            /// `p_value` adjusted for the false discovery rate (Benjamini and Hochberg 1995).
            pub p_benjamini_hochberg: Option<f64>,
            /// Two-sided p-value of the unpaired t-test; `accuracy` only.
            pub p_unpaired_t: Option<f64>,
            /// Two-sided mid-p of McNemar's test; `accuracy` only.
            pub p_mcnemar: Option<f64>,
            /// Probability of showing that heads are dispensable if they cost nothing but changed equally many segments; empty in older
            /// files.
            pub power: Option<f64>,
            /// Number of segments at which `power` would be 80%; empty if fewer than 20 segments change.
            pub segments_for_power: Option<f64>,
            $($(#[$other_meta])* pub $other: $other_type,)*
        }
    };
}
pub(crate) use tested_row;

/// Implements the methods of [`TestedRow`] for the columns of scores and tests.
macro_rules! tested_columns {
    () => {
        fn metric(&self) -> stats::MetricName {
            self.metric
        }

        fn tests(&self) -> stats::family::Comparison {
            let between = |(low, high)| stats::bootstrap::Interval { low, high };
            stats::family::Comparison {
                interval: self.delta_low.zip(self.delta_high).map(between),
                simultaneous: self.simultaneous_low.zip(self.simultaneous_high).map(between),
                p_value: self.p_value,
                p_bootstrap: self.p_bootstrap,
                p_koehn: self.p_koehn,
                p_adjusted: self.p_adjusted,
                p_benjamini_hochberg: self.p_benjamini_hochberg,
                p_unpaired_t: self.p_unpaired_t,
                p_mcnemar: self.p_mcnemar,
                power: self.power,
                segments_for_power: self.segments_for_power,
                ..stats::family::Comparison::untested(self.base_score, self.score)
            }
        }

        fn record(&mut self, tests: &stats::family::Comparison) {
            self.base_score = tests.base;
            self.score = tests.variant;
            self.score_delta = tests.delta;
            self.delta_low = tests.interval.map(|ends| ends.low);
            self.delta_high = tests.interval.map(|ends| ends.high);
            self.simultaneous_low = tests.simultaneous.map(|ends| ends.low);
            self.simultaneous_high = tests.simultaneous.map(|ends| ends.high);
            self.p_value = tests.p_value;
            self.p_bootstrap = tests.p_bootstrap;
            self.p_koehn = tests.p_koehn;
            self.p_adjusted = tests.p_adjusted;
            self.p_benjamini_hochberg = tests.p_benjamini_hochberg;
            self.p_unpaired_t = tests.p_unpaired_t;
            self.p_mcnemar = tests.p_mcnemar;
            self.power = tests.power;
            self.segments_for_power = tests.segments_for_power;
        }
    };
}
pub(crate) use tested_columns;
