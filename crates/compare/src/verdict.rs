//! Tests each task and decides the verdicts.
use serde::{Serialize, Serializer};
use stats::bootstrap::Interval;
use stats::deciding::test_clusters;
use stats::family::{Comparison, Testing};
use stats::means::{MeanMetric, test_scores};
use stats::power::power;
use stats::{Direction, MetricName, Segments, adjust, pooled, t_test};

use crate::Error;
use crate::align::{Task, run_names};
use crate::args::Args;
use records::verdicts;

/// Verdict of a comparison, from the 95% interval of the loss and the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The whole interval is below the margin.
    NoWorse,
    /// The interval contains the margin, or no interval could be computed.
    Undecided,
    /// The whole interval is above the margin.
    Worse,
}

impl Verdict {
    fn of(loss: Option<Interval>, margin: f64) -> Self {
        match loss.map(|loss| verdicts::Verdict::of(loss, margin)) {
            Some(verdicts::Verdict::Needed) => Self::Worse,
            Some(verdicts::Verdict::Dispensable) => Self::NoWorse,
            _ => Self::Undecided,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoWorse => "no worse",
            Self::Undecided => "undecided",
            Self::Worse => "worse",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// Comparison of one run with the first, on one task or averaged over all tasks.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Empty if the files name no task, absent for the mean over tasks.
    pub task: Option<String>,
    pub run: String,
    pub metric: String,
    pub documents: usize,
    /// Documents left out because some run lacks them.
    pub missing: usize,
    /// Score of the first run.
    pub base: f64,
    pub score: f64,
    /// `score` minus `base`; `low` and `high` are its 95% interval.
    pub difference: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// 95% interval that holds for all runs at once; with several runs the verdict is based on it.
    pub simultaneous_low: Option<f64>,
    pub simultaneous_high: Option<f64>,
    /// Two-sided p-value from swaps of documents; McNemar's exact test for scores 0 and 1, a paired t-test for headcount's accuracies.
    pub p_value: Option<f64>,
    /// `p_value` adjusted for all runs (step-down max-T; Holm for t-tests), then for all tasks (Holm).
    pub p_adjusted: Option<f64>,
    /// McNemar's mid-p test; only if all answers are right or wrong.
    pub p_mcnemar: Option<f64>,
    /// Paired t-test; only for means without clusters.
    pub p_paired_t: Option<f64>,
    /// P-value of the paired bootstrap; absent if two runs have only right and wrong answers, for which nothing is resampled.
    pub p_bootstrap: Option<f64>,
    /// Margin, in the unit of the score.
    pub margin: f64,
    pub verdict: Verdict,
    /// Probability that a run of equal quality that differs on as many documents would be shown to be no worse.
    pub power: Option<f64>,
    /// Number of documents for which `power` would be 80%; absent if few documents differ.
    pub documents_to_decide: Option<f64>,
    #[serde(skip)]
    pub digits: usize,
}

impl Row {
    /// Returns the interval that the verdict is based on.
    pub(crate) fn ends(&self, has_several: bool) -> Option<(f64, f64)> {
        if has_several { self.simultaneous_low.zip(self.simultaneous_high) } else { self.low.zip(self.high) }
    }
}

/// All rows and the settings that produced them.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub runs: Vec<String>,
    pub lower_is_better: bool,
    pub resamples: usize,
    pub seed: u64,
    /// Rows task by task, then the mean over several tasks.
    pub rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(tasks: &[Task], args: &Args) -> Result<Self, Error> {
        let runs = run_names(&args.runs);
        let metric = tasks[0].runs[0].metric().name();
        let lower_is_better = args.lower_is_better || metric.direction() == Direction::LowerIsBetter;
        let testing = Testing { resamples: args.resamples, seed: args.seed, block: 1 };
        let judge = Judge { args, testing, lower_is_better, metric };
        let compared = tasks.iter().map(|task| judge.tests(task)).collect::<Result<Vec<_>, _>>()?;
        let mut rows = Vec::new();
        for (task, compared) in tasks.iter().zip(&compared) {
            for (place, own) in compared.iter().enumerate() {
                let row = judge.row(task, (&task.runs[0], &task.runs[place + 1]), *own)?;
                rows.push(Row { task: Some(task.name.clone()), run: runs[place + 1].clone(), ..row });
            }
        }
        if tasks.len() > 1 {
            adjust_over_tasks(&mut rows, runs.len() - 1);
            if tasks.iter().all(|task| task.metric == tasks[0].metric) || tasks.iter().all(is_share) {
                rows.extend(judge.pooled(tasks, &compared, &runs)?);
            }
        }
        Ok(Self { runs, lower_is_better, resamples: args.resamples, seed: args.seed, rows })
    }

    /// Returns the worst verdict over all runs: of the mean over tasks if it exists, otherwise of all tasks.
    pub(crate) fn gate(&self) -> Verdict {
        let has_mean = self.rows.iter().any(|row| row.task.is_none());
        let counts = self.rows.iter().filter(|row| row.task.is_none() == has_mean);
        counts.map(|row| row.verdict).max().unwrap_or(Verdict::Undecided)
    }
}

/// `true` if all scores are from 0 to 1: a mean over tasks with different units would be meaningless.
fn is_share(task: &Task) -> bool {
    task.runs.iter().all(|run| match run {
        Segments::Means(all, _) => all.iter().all(|one| (0.0..=1.0).contains(&one.value())),
        _ => false,
    })
}

/// Adjusts p-values by Holm's method over the tasks of each run.
fn adjust_over_tasks(rows: &mut [Row], runs: usize) {
    for run in 0..runs {
        let own = || (run..rows.len()).step_by(runs);
        let p_values: Vec<f64> = own().map(|place| rows[place].p_adjusted.unwrap_or(f64::NAN)).collect();
        for (place, adjusted) in own().collect::<Vec<_>>().into_iter().zip(adjust::holm(&p_values)) {
            rows[place].p_adjusted = rows[place].p_adjusted.and(Some(adjusted));
        }
    }
}

/// The settings of all tests.
struct Judge<'a> {
    args: &'a Args,
    testing: Testing,
    lower_is_better: bool,
    metric: MetricName,
}

impl Judge<'_> {
    /// Returns the margin, in the unit of the score.
    fn margin(&self, base: f64) -> f64 {
        self.args.margin_absolute.unwrap_or_else(|| verdicts::margin(self.metric, base, self.args.margin))
    }

    /// Tests all runs against the first.
    fn tests(&self, task: &Task) -> Result<Vec<Comparison>, Error> {
        let (base, variants) = (&task.runs[0], task.runs[1..].iter().collect::<Vec<_>>());
        let margin = self.margin(base.score()?);
        let testing = self.testing_of(task);
        Ok(match base {
            Segments::Means(_, MeanMetric::Score) => test_scores(base, &variants, testing, margin)?,
            _ => test_clusters(base, &variants, &task.clusters, (testing, margin))?,
        })
    }

    /// Returns the test settings with the block length of a task: windows of one text are resampled together.
    fn testing_of(&self, task: &Task) -> Testing {
        Testing { block: task.block, ..self.testing }
    }

    fn row(&self, task: &Task, (base, own): (&Segments, &Segments), found: Comparison) -> Result<Row, Error> {
        let margin = self.margin(found.base);
        let loss = |ends: Interval| match self.lower_is_better {
            true => ends,
            false => Interval { low: -ends.high, high: -ends.low },
        };
        let cost = if self.lower_is_better { found.delta } else { -found.delta };
        let deciding = if self.args.runs.len() > 2 { found.simultaneous } else { found.interval };
        let power = match deciding.map(loss).filter(|_| margin > 0.0) {
            Some(ends) => Some(power(base, own, (ends.high - cost, margin), self.testing_of(task))?),
            None => None,
        };
        let per_segment = task.documents as f64 / base.len() as f64;
        let [ends, simultaneous] = [found.interval, found.simultaneous];
        let metric = base.metric().name();
        Ok(Row {
            task: None,
            run: String::new(),
            metric: task.metric.clone(),
            documents: task.documents,
            missing: task.missing,
            base: found.base,
            score: found.variant,
            difference: found.delta,
            low: ends.map(|ends| ends.low),
            high: ends.map(|ends| ends.high),
            simultaneous_low: simultaneous.map(|ends| ends.low),
            simultaneous_high: simultaneous.map(|ends| ends.high),
            p_value: found.p_value,
            p_adjusted: found.p_adjusted,
            p_mcnemar: found.p_mcnemar,
            p_paired_t: if task.is_clustered { None } else { paired_t(base, own) },
            p_bootstrap: found.p_bootstrap,
            margin,
            verdict: Verdict::of(deciding.map(loss), margin),
            power: power.map(|power| power.power),
            documents_to_decide: power.and_then(|power| power.segments).map(|all| (all * per_segment).ceil()),
            digits: metric.digits(),
        })
    }

    /// Averages each run over the tasks.
    fn pooled(
        &self,
        tasks: &[Task],
        compared: &[Vec<Comparison>],
        runs: &[String],
    ) -> Result<Vec<Row>, Error> {
        let both = tasks.iter().zip(compared);
        let pooled_tasks: Vec<pooled::Task<'_>> = both
            .map(|(task, compared)| pooled::Task {
                base: &task.runs[0],
                variants: task.runs[1..].iter().collect(),
                compared,
            })
            .collect();
        let sum = |of: fn(&Task) -> usize| tasks.iter().map(of).sum();
        let all = Task {
            name: String::new(),
            metric: "mean over tasks".to_owned(),
            documents: sum(|task| task.documents),
            missing: sum(|task| task.missing),
            runs: Vec::new(),
            // documents of tasks that differ in size have different weights, which the paired t-test cannot use
            is_clustered: true,
            clusters: Vec::new(),
            block: 1,
        };
        let weighted =
            |run: usize| pooled::weighted(&tasks.iter().map(|task| &task.runs[run]).collect::<Vec<_>>());
        let base = weighted(0);
        let row = |(place, found): (usize, Comparison)| {
            let row = self.row(&all, (&base, &weighted(place + 1)), found)?;
            Ok(Row { run: runs[place + 1].clone(), ..row })
        };
        pooled::test(&pooled_tasks, self.testing)?.into_iter().enumerate().map(row).collect()
    }
}

/// Returns the p-value of the paired t-test; `None` if segments are not means or there are fewer than two.
fn paired_t(base: &Segments, own: &Segments) -> Option<f64> {
    let (Segments::Means(base, _), Segments::Means(own, _)) = (base, own) else { return None };
    let values = |all: &[stats::means::Mean]| all.iter().map(|one| one.value()).collect::<Vec<_>>();
    Some(t_test::paired(&values(base), &values(own)).ok()?.test.p_value)
}
