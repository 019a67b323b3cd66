//! All rankings of all heads: importance (Michel et al. 2019, Section 4.1, Equation 2), and criteria to compare with it.
use std::process::ExitCode;

use clap::Parser;
use core_masking::{HeadMeans, HeadScores, HeadSet, Measure, Needs};
use experiment::{EstimateArgs, OpenRows, Oracle, Sampling, SharedArgs};
use heads::experiment::IMPORTANCE;
use records::{RowWriter, ScoreRow, Signature};
use stats::t_test::mean_interval;

/// Scores every head by gradients and attention weights, one row for each head and measure.
///
/// If ablate-one has results for this model, the loss of score without each head is added as a measure; --split, --limit and --rescale
/// select the results.
#[derive(Debug, Parser)]
#[command(name = "importance", version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    estimate: EstimateArgs,

    /// Use results of ablate-one in which the kept heads of a layer were multiplied by heads / kept
    #[arg(long)]
    rescale: bool,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "all heads are measured in the same passes over the data, so rows cannot be measured separately",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.rescale };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let scored = args.shared.scored(split, args.rescale);
    let path = args.shared.output_path(IMPORTANCE.name, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let mut identity = subject.identity(IMPORTANCE.name, &scored)?;
    identity.seed = Some(args.shared.seed());
    estimate.describe(&subject, &mut identity)?;
    let provenance = machine.provenance();
    let OpenRows { path, writer: mut rows, .. } =
        args.shared.open_rows(&path, &Signature::new(identity, provenance))?;
    let heads = subject.layout().heads();
    let given = subject.measures(&estimate.on)?;
    let is_measured = |measure: &Measure| given.contains(measure) || measure.entry().needs == Needs::Measures;
    let measures = || Measure::ALL.into_iter().filter(is_measured);
    let scores =
        |rows: &RowWriter<ScoreRow>| rows.rows().filter(|row| row.measure != Measure::Oracle).count();
    if scores(&rows) < heads.len() * measures().count() {
        let measured = subject.measure(&estimate.on, &HeadSet::none(), &given)?;
        let means = measured.iter().map(|(&measure, terms)| (measure, terms.means())).collect();
        for measure in measures() {
            push(&mut rows, measure, &estimate.value(measure, &means), measured.get(&measure))?;
        }
    }

    let oracle = Oracle::find(&description, &args.shared.results, (&subject, &scored))?;
    let lost = oracle.and_then(|oracle| oracle.scores(&heads)).unwrap_or_default();
    let is_known = |row: &ScoreRow| lost.iter().any(|(id, value)| (id, value) == (row.head_id(), row.value));
    rows.leave_out(|row| row.measure == Measure::Oracle && !is_known(row));
    push(&mut rows, Measure::Oracle, &lost, None)?;
    rows.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Adds the rows of a measure, with intervals if it is a mean over segments, whose `terms` are given.
fn push(
    rows: &mut RowWriter<ScoreRow>,
    measure: Measure,
    scores: &HeadScores,
    terms: Option<&HeadMeans>,
) -> Result<(), records::Error> {
    let interval = |id| {
        let terms = terms?.terms(id)?;
        mean_interval(terms.sum, terms.squares?, terms.count)
    };
    scores
        .iter()
        .try_for_each(|(id, value)| rows.append(ScoreRow::new(id, measure, value, interval(id)), None))
}
