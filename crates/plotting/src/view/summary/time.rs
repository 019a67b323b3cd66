//! Computing time of the measurements.
use crate::findings::{Criterion, SubjectResults, experiment};
use charts::table::{Cell, Row};
use words::tenths;

use super::Claim;

/// Experiments with a separate column, in the order of the template.
const COLUMNS: [&str; 6] = [
    experiment::TRAINING,
    experiment::SWEEP,
    experiment::BEST_HEADS,
    experiment::PRUNING,
    experiment::DYNAMICS,
    experiment::GATES,
];

/// Returns the minutes of each setup by experiment.
pub fn minutes(all: &[SubjectResults], _: Criterion) -> Claim {
    Claim { measured: all.iter().filter_map(row).collect(), ..Claim::default() }
}

fn row(subject: &SubjectResults) -> Option<Row> {
    let seconds = &subject.time.seconds;
    let minutes = |seconds: f64| Cell::printed(seconds / 60.0, tenths);
    let own = COLUMNS.map(|experiment| Cell::from(seconds.get(experiment).map(|&seconds| minutes(seconds))));
    let others = seconds.iter().filter(|(experiment, _)| !COLUMNS.contains(&experiment.as_str()));
    // `sum` of no values is -0
    let others = minutes(others.fold(0.0, |sum, (_, seconds)| sum + seconds));
    let processors = subject.time.threads.iter().map(ToString::to_string);
    let processors: Vec<_> = processors.chain(subject.time.has_gpu.then(|| "GPU".to_owned())).collect();
    let all = minutes(seconds.values().sum());
    let cells = [Cell::from(processors.join(" or "))].into_iter().chain(own).chain([others, all]);
    (!seconds.is_empty()).then(|| Row::new(subject.shown(), cells))
}
