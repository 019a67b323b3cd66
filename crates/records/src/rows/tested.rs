//! Rows whose score is compared with that of the full model: the columns of scores and tests, which stand here once.
use stats::bootstrap::Interval;
use stats::family::Comparison;
use stats::spread::Reached;
use stats::{Direction, MetricName};

use super::Row;
use crate::rules::{Verdict, margin};

/// Name of the intact model's statistics.
pub const BASE: &str = "base";

/// A row whose score is compared with that of the intact model, by statistics of segments that are stored beside the file.
pub trait TestedRow: Row {
    /// The rows that are tested together.
    fn family(&self) -> String;

    /// Name of the stored statistics of the model that it is compared with.
    fn base(&self) -> String;

    /// Returns true if nothing is masked, so that there is nothing to test.
    fn is_intact(&self) -> bool {
        false
    }

    /// The masked heads, joined by `+`, where the rows of a family are steps of a curve.
    fn masked_heads(&self) -> Option<&str> {
        None
    }

    /// Place on a curve that the rows of its family make, which can be walked along; absent where they are no curve.
    fn step(&self) -> Option<usize> {
        None
    }

    /// Sizes of the sample at the looks at this row, if it was measured on a growing sample; `None` if on all segments.
    fn looks(&self) -> Option<Vec<usize>> {
        None
    }

    /// Size of the sample at the last look; 0 without looks.
    fn sample(&self) -> usize {
        self.looks().and_then(|looks| looks.last().copied()).unwrap_or(0)
    }

    /// Fills in one more look: the size of the sample.
    fn add_look(&mut self, _sample: usize) {}

    /// Fills in the correlation of effects and predictions.
    fn record_correlation(&mut self, _correlation: Option<f64>) {}

    /// Fills in how often the walk along a curve gets here.
    fn record_reached(&mut self, _reached: Reached) {}

    /// Fills in how the tested rows of a file compare with each other.
    fn compare(_rows: &mut [Self]) {}

    /// Metric of the scores.
    fn metric(&self) -> MetricName;

    /// Which of two scores is the better one.
    fn direction(&self) -> Direction {
        self.metric().direction()
    }

    /// Scores, and the results of the tests.
    fn tests(&self) -> Comparison;

    /// Fills in what a test says.
    fn record(&mut self, tests: &Comparison);

    /// The ends of the 95 % interval of the difference; absent where nothing was tested.
    fn delta_interval(&self) -> Option<(f64, f64)> {
        self.tests().interval.map(|Interval { low, high }| (low, high))
    }

    /// The interval of the difference that holds for all rows of its family at once; absent where there is none.
    fn simultaneous_interval(&self) -> Option<Interval> {
        self.tests().simultaneous
    }

    /// Gain of the score with the heads masked; below 0 it is worse, so they were useful.
    fn gain(&self) -> f64 {
        self.direction().gain(self.tests().delta)
    }

    /// What the 95 % interval of the loss says beside a margin in percent of the intact score; absent where there is none.
    fn verdict(&self, margin_percent: f64) -> Option<Verdict> {
        self.verdict_by(self.tests().interval, margin_percent)
    }

    /// The same by another interval of the difference.
    fn verdict_by(&self, delta: Option<Interval>, margin_percent: f64) -> Option<Verdict> {
        let ends =
            delta.map(|Interval { low, high }| [low, high].map(|delta| -self.direction().gain(delta)))?;
        let loss = Interval { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
        Some(Verdict::of(loss, margin(self.metric(), self.tests().base, margin_percent)))
    }
}

/// Defines a flat row type, since `csv` cannot write nested ones: `[tests]` stands for the columns of scores and tests.
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

/// Implements what [`TestedRow`] reads and writes in the columns of scores and tests.
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
