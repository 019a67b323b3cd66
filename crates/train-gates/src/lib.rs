//! Trained gates: Voita et al. (2019), <https://aclanthology.org/P19-1580>, Section 6, Figures 7, 9 and 10, Table 2.
//!
//! Trains the model further with a gate on each head. The loss has a term for the expected number of open gates: a penalty on each, as in
//! the paper (--lambda), or, beyond the paper, a term that keeps a given number of heads (--heads). Controls, which the paper lacks, are
//! trained further for equal numbers of updates, with all heads or with heads chosen differently.
mod args;
mod gating;
mod tuning;

use std::process::ExitCode;

use anyhow::Context;
use experiment::{Finished, MeasuredRows, RowPlan, Sampling};
use records::{Method, Signature};
use subject::Scored;

use args::Args;
use gating::GateExperiment;
use tuning::Tuner;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "models are trained one after another, and controls keep as many heads as the trained gates",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    if args.asks_for(Method::Scratch) {
        description.check_from_nothing()?;
    }
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
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
    let mut rows = MeasuredRows::open(&path, identity, &base, plan, (&args.shared, &machine, &args.test))?;
    gating.train(&penalties, &mut rows)?;
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
