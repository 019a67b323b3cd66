//! One head left in a layer: Michel et al. (2019), Section 3.3, Tables 2 and 3, and Appendix A, Tables 5 and 6.
//!
//! Scores the test set with each head as the only one of its layer; other layers keep all heads. The tables show the best head of each
//! layer. The best of many scores on one test set is biased upwards, so `--select-on` chooses the head on another split.
use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use core_masking::{HeadId, HeadLayout};
use experiment::{DecidingArgs, HeadSweep, Ingredient, MaskingArgs, Selection, SharedArgs};
use heads::experiment::ABLATE_ALL_BUT_ONE;
use records::{AblationRow, TestedRow};
use significance::TestArgs;
use subject::{Description, Scored, Subject};
use training::Machine;

const EXPERIMENT: &str = ABLATE_ALL_BUT_ONE.name;

/// Masks all heads of a layer but one and scores the test set (Tables 2 and 3; with --select-on Tables 5 and 6).
///
/// Writes a row for each kept head as soon as it is scored, and resumes a killed run. Existing results are used and missing ones are
/// measured; --again measures everything again.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Attention type to measure: enc-enc, enc-dec, dec-dec, self or all
    #[arg(long, value_name = "TYPE", default_value = "all")]
    attention: Selection,

    /// Choose the best head of each layer on this split, and score only these heads on --split
    #[arg(long, value_name = "SPLIT", conflicts_with = "until_decided")]
    select_on: Option<String>,

    /// Segments of that split to choose on, drawn at random with --seed [default: all]
    #[arg(long, value_name = "N", requires = "select_on", value_parser = clap::value_parser!(u64).range(1..))]
    select_limit: Option<u64>,

    #[command(flatten)]
    masking: MaskingArgs,

    #[command(flatten)]
    deciding: DecidingArgs,

    #[command(flatten)]
    test: TestArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let select_on = args.select_on.as_deref();
    let select_on = select_on.map(|split| description.split(Some(split), &machine)).transpose()?;
    if select_on.as_ref() == Some(&split) {
        bail!("--select-on {split} is the split that is scored: omit it or name another split");
    }
    let layout = description.layout(&machine)?;
    let heads = args.attention.heads(&layout)?;
    let experiment =
        select_on.as_ref().map_or(EXPERIMENT.to_owned(), |on| format!("{EXPERIMENT}-selected-on-{on}"));
    let scored = args.masking.scored(split, &args.shared, &description, &machine)?;
    let path = args.shared.output_path(&experiment, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let run = Run { args, machine: &machine, description: &description, subject: &subject, layout };
    let finished = match select_on {
        None => {
            let metric = run.subject.metric(&scored.split).name();
            let deciding = args.deciding.build((&scored, metric), heads.len(), args.shared.seed())?;
            let sweep = run.sweep(scored, &run.layout.heads(), args.test.clone());
            HeadSweep { deciding, ..sweep }.run(run.subject, &heads, &path, &args.shared, &machine)?
        }
        Some(on) => {
            let rescale = args.masking.rescale;
            let selection = match args.select_limit {
                Some(size) => Scored::sample(on, size as usize, args.shared.seed(), rescale),
                None => Scored::first(on, None, rescale),
            };
            let selection = selection.under(scored.ablation.clone());
            let best = run.select(&selection, &heads)?;
            let own = run.subject.identity("", &scored)?;
            let Ingredient { sha256, arguments } = Ingredient::of(run.subject, &selection, "select", &own)?;
            let mut sweep = run.sweep(scored, &best, args.test.clone());
            sweep.arguments = vec![
                ("select_on".to_owned(), selection.split.into()),
                ("select_limit".to_owned(), selection.limit.into()),
                ("select_data".to_owned(), sha256.into()),
            ];
            sweep.arguments.extend(arguments);
            sweep.run(run.subject, &best, &path, &args.shared, &machine)?
        }
    };
    words::print_line(finished.path.display())?;
    Ok(())
}

/// State shared by both sweeps.
struct Run<'a> {
    args: &'a Args,
    machine: &'a Machine,
    description: &'a Description,
    subject: &'a Subject,
    layout: HeadLayout,
}

impl Run<'_> {
    /// Returns the sweep that keeps each of `heads` as the only one of its layer.
    fn sweep(&self, scored: Scored, heads: &[HeadId], test: TestArgs) -> HeadSweep {
        HeadSweep {
            experiment: EXPERIMENT,
            scored,
            heads: heads.to_vec(),
            masked: HeadLayout::all_but,
            test,
            deciding: None,
            arguments: Vec::new(),
        }
    }

    /// Scores every head as the only one of its layer on `selection`, and returns the best of each layer.
    fn select(&self, selection: &Scored, heads: &[HeadId]) -> anyhow::Result<Vec<HeadId>> {
        let shared = &self.args.shared;
        let path = self.description.result_path(&shared.results, EXPERIMENT, selection);
        let sweep = self.sweep(selection.clone(), &self.layout.heads(), TestArgs::default());
        let chosen = sweep.ingredient(self.subject, heads, &path, shared, self.machine)?;
        words::say!("chosen on `{}`: {}", selection.split, chosen.path.display());
        Ok(best_of_layers(heads, &chosen.rows))
    }
}

/// Returns the head with the best score in each layer, the first of those that tie.
fn best_of_layers(heads: &[HeadId], rows: &[AblationRow]) -> Vec<HeadId> {
    let mut best: BTreeMap<_, (HeadId, f64)> = BTreeMap::new();
    for row in rows {
        let Some(&id) = heads.iter().find(|&&id| row.head_id() == id) else { continue };
        let entry = best.entry((id.attention(), id.layer_index())).or_insert((id, row.score));
        let is_better = row.direction().is_better(row.score, entry.1);
        if is_better || row.score == entry.1 && id < entry.0 {
            *entry = (id, row.score);
        }
    }
    best.into_values().map(|(id, _)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::MetricName;

    #[test]
    fn each_layer_of_each_type_has_its_best_head() {
        let scores = [
            ("enc-enc:1:1", 3.0),
            ("enc-enc:1:2", 5.0),
            ("enc-enc:1:3", 5.0),
            ("enc-enc:2:1", -1.0),
            ("enc-enc:2:2", -2.0),
            ("dec-dec:1:3", 9.0),
        ];
        let heads: [HeadId; 6] = scores.map(|(name, _)| name.parse().unwrap());
        let row = |(&id, (_, score)): (&HeadId, _)| AblationRow::untested(id, MetricName::Bleu, 30.0, score);
        let rows: Vec<AblationRow> = heads.iter().zip(scores).map(row).collect();
        let names =
            |heads: &[HeadId]| best_of_layers(heads, &rows).iter().map(HeadId::to_string).collect::<Vec<_>>();
        assert_eq!(names(&heads), ["enc-enc:1:2", "enc-enc:2:1", "dec-dec:1:3"]);
        assert_eq!(names(&heads[2..4]), ["enc-enc:1:3", "enc-enc:2:1"], "rows of other heads do not count");
    }
}
