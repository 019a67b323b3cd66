//! Learned gates: Voita et al. (2019), <https://aclanthology.org/P19-1580>, Section 6, Figures 7, 9 and 10, Table 2.
//!
//! The trained model is trained further with a gate on each head, and a loss that has a term for the expected number of open gates:
//! with a penalty for each (--lambda), as in the paper, or, beyond it, so that a number of heads is kept (--heads). Controls, which the
//! paper lacks, are trained further for as many updates with heads that were chosen otherwise, or with all.
mod args;
mod film;
mod gating;
mod tuning;

use std::process::ExitCode;

use anyhow::Context;
use experiment::{Finished, MeasuredRows, RowPlan, Sampling};
use records::{Method, Signature};
use subject::Scored;

use args::Args;
use film::Film;
use gating::GateExperiment;
use tuning::Tuner;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "models are trained one after another, and controls are as small as gates have made them",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    if args.asks_for(Method::Scratch) {
        description.check_from_nothing()?;
    }
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let layout = description.layout(&machine)?;
    let heads = args.attention.heads(&layout)?;
    let penalties = args.penalties(heads.len())?;
    let tuner = Tuner {
        args,
        description: &description,
        machine: &machine,
        heads: &heads,
        scope: args.scope(&layout),
        trained: args.trained(&layout)?,
        epochs: args.epochs(&description)?,
    };
    let sampling = Sampling { seed: args.shared.seed(), rescale: false };
    let needs_scores = args.asks_for(Method::Importance);
    let estimate = args.estimate.estimate_if(needs_scores, &description, sampling, &machine)?;
    let export = args.export(penalties.len())?;
    let scored = args.shared.scored(split, false);
    let dev = Scored::first(description.dev_split().to_owned(), None, false);
    let path = args.shared.output_path(&args.file_name(&layout), &description, &scored);
    args.shared.check_writable(&path)?;
    let base = description.open(&machine, &args.shared.results)?;

    let gating = GateExperiment { tuner, base: &base, scored, dev, estimate };
    let identity = gating.identity()?;
    let plan = RowPlan { families: gating.families(), ..RowPlan::default() };
    let film = Film::open(&path, &identity, &args.shared, &machine)?;
    let mut rows = MeasuredRows::open(&path, identity, &base, plan, (&args.shared, &machine, &args.test))?;
    gating.train(&penalties, film, &mut rows)?;
    gating.control(&penalties, &mut rows)?;
    let Finished { path, .. } = rows.finish()?;
    if let Some(export) = export {
        let signature = Signature::read(&Signature::path_beside(&path))?;
        let signature = signature.context("the results have no signature")?;
        gating.export(penalties[0], &export.about(signature))?;
    }
    words::print_line(path.display())?;
    Ok(())
}
