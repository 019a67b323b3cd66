//! All scores of all heads: Michel et al. (2019), Section 4.1, Equation 2, and orders to compare with it.
use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Parser;
use core_masking::{HeadId, HeadScores, HeadSet, Measure};
use experiment::{EstimateArgs, OpenRows, Oracle, Sampling, SharedArgs};
use records::{ImportanceRow, Order, Signature};
use subject::{Description, Scored};

/// Scores every head by gradients and attention weights, one column for each way.
///
/// If there are results of ablate-one for the same model, the score lost without each head is added as a column; --split,
/// --limit and --rescale say which results to use.
#[derive(Debug, Parser)]
#[command(name = "importance", version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    estimate: EstimateArgs,

    /// Whether ablate-one multiplied the kept heads of a layer
    #[arg(long)]
    rescale: bool,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

fn main() -> ExitCode {
    experiment::exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "all heads are scored by the same passes over the data, so that no row can be had by itself",
    )?;
    let machine = args.shared.machine()?;
    let description = Description::read(&args.shared.subject)?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let sampling = Sampling { seed: args.shared.seed(), rescale: args.rescale };
    let estimate = args.estimate.estimate(&description, sampling, &machine)?;
    let scored = Scored::first(split, args.shared.limit, args.rescale);
    let path = args.shared.output_path("importance", &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let mut identity = subject.identity("importance", &scored)?;
    identity.seed = Some(args.shared.seed());
    estimate.describe(subject.as_ref(), &mut identity)?;
    let provenance = machine.provenance();
    let OpenRows { path, writer: mut rows, .. } =
        args.shared.open_rows(&path, &Signature::new(identity, provenance))?;
    rows.renew(|_| true);
    let heads = subject.layout().heads();
    if rows.rows().len() < heads.len() {
        rows.discard(|_| true)?;
        let measured = subject.measure(&estimate.on, &HeadSet::none(), &BTreeSet::from(Measure::ALL))?;
        let [example, token] = [Measure::Example, Measure::Token].map(|measure| &measured[&measure]);
        let columns = Columns {
            example,
            example_normalised: &example.normalised_by_layer(),
            token,
            token_normalised: &token.normalised_by_layer(),
            attention_gradient: &measured[&Measure::AttentionGradient],
            entropy: &measured[&Measure::Entropy],
            confidence: &measured[&Measure::Confidence],
            importance_entropy: &estimate.score(Order::ImportanceEntropy, &measured),
        };
        for &id in &heads {
            rows.push(columns.row(id))?;
        }
    }

    let oracle = Oracle::find(&description, &args.shared.results, (subject.as_ref(), &scored))?;
    let lost = oracle.and_then(|oracle| oracle.scores(&heads)).unwrap_or_default();
    rows.finish(|rows, _| {
        for row in rows {
            let id = lost.iter().find(|(id, _)| *id == row.head_id());
            row.oracle = id.map(|(_, lost)| lost);
        }
        Ok::<(), records::Error>(())
    })?;
    words::print_line(path.display())?;
    Ok(())
}

/// Scores of all heads, by column.
struct Columns<'a> {
    example: &'a HeadScores,
    example_normalised: &'a HeadScores,
    token: &'a HeadScores,
    token_normalised: &'a HeadScores,
    attention_gradient: &'a HeadScores,
    entropy: &'a HeadScores,
    confidence: &'a HeadScores,
    importance_entropy: &'a HeadScores,
}

impl Columns<'_> {
    fn row(&self, id: HeadId) -> ImportanceRow {
        let of = |scores: &HeadScores| scores.get(id).unwrap_or_default();
        let (attention, layer, head) = id.numbers();
        ImportanceRow {
            attention,
            layer,
            head,
            example: of(self.example),
            example_normalised: of(self.example_normalised),
            token: of(self.token),
            token_normalised: of(self.token_normalised),
            attention_gradient: of(self.attention_gradient),
            entropy: of(self.entropy),
            confidence: of(self.confidence),
            importance_entropy: of(self.importance_entropy),
            oracle: None,
        }
    }
}
