//! One head at a time: Michel et al. (2019), Section 3.2, Table 1 and Figure 1.
//!
//! For every head, the score of the test set without it, minus the score of the intact model, and a test of whether
//! that difference could be chance.
mod row;

use std::process::ExitCode;
use std::str::FromStr;

use clap::Parser;
use core_masking::{Attention, HeadId, HeadLayout, HeadSet};
use records::{AblationRow, Identity, Provenance, RowWriter, Signature};
use subject::{Description, Evaluation, Scored, SharedArgs, Subject};

/// Masks one head at a time and scores the test set (Table 1).
///
/// Writes a row for each head as soon as it is scored, and continues a file that a killed run has left.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// Attention type whose heads are masked: enc-enc, enc-dec, dec-dec, self or all
    #[arg(long, value_name = "TYPE", default_value = "all")]
    attention: Selection,

    /// Split that is scored; the subject's test split if absent
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,

    /// Paired bootstrap resamples for each head, up to a million; 0 skips the test
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    resamples: u64,

    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long)]
    rescale: bool,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Which attention types to look at.
#[derive(Debug, Clone, Copy)]
enum Selection {
    All,
    One(Attention),
}

impl FromStr for Selection {
    type Err = core_masking::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "all" { Ok(Self::All) } else { name.parse().map(Self::One) }
    }
}

impl Selection {
    fn heads(self, layout: &HeadLayout) -> Result<Vec<HeadId>, core_masking::Error> {
        match self {
            Self::All => Ok(layout.heads()),
            Self::One(attention) => layout.heads_of(attention),
        }
    }
}

fn main() -> ExitCode {
    subject::exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let machine = args.shared.machine()?;
    let description = Description::read(&args.shared.subject)?;
    // Opening the subject may train its model for an hour: whatever else can fail is tried first.
    let split = description.split(args.split.as_deref(), &machine)?;
    let heads = args.attention.heads(&description.layout(&machine)?)?;
    let path = args.shared.output_path("ablate-one", &description, &split);
    records::check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let scored = Scored { split, limit: args.shared.limit, rescale: args.rescale };
    let identity = identity(args, subject.as_ref(), &scored)?;
    let run = Provenance::collect(&machine.device_name(), machine.threads, subject::libraries());
    let mut rows = RowWriter::open(&path, &Signature::new(identity, run), args.shared.existing())?;
    if args.shared.restart {
        let finished = row::finished(&rows.rows().collect::<Vec<_>>(), &subject.layout());
        rows.discard(|row| finished.contains(&row.attention) && heads.iter().any(|&id| row::is_of(row, id)))?;
    }

    ablate(args, subject.as_ref(), &scored, &heads, &mut rows)?;
    let layout = subject.layout();
    rows.finish(|rows| row::adjust(rows, &layout))?;
    println!("{}", path.display());
    Ok(())
}

/// Scores the model without each of `heads` that has no row yet.
fn ablate(
    args: &Args,
    subject: &dyn Subject,
    scored: &Scored,
    heads: &[HeadId],
    rows: &mut RowWriter<AblationRow>,
) -> Result<(), subject::Error> {
    let missing: Vec<HeadId> =
        heads.iter().copied().filter(|&id| !rows.rows().any(|row| row::is_of(row, id))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut sets = vec![HeadSet::none()];
    sets.extend(missing.iter().map(|&id| HeadSet::from_iter([id])));
    let mut base: Option<Evaluation> = None;
    subject.evaluate(scored, &sets, &mut |index, evaluation| {
        let Some(base) = &base else {
            check_base(rows, evaluation.score)?;
            base = Some(evaluation);
            return Ok(());
        };
        let comparison = evaluation.compare_with(base, args.resamples as usize, args.shared.seed)?;
        Ok(rows.push(row::row(missing[index - 1], evaluation.metric(), &comparison))?)
    })
}

/// Refuses to mix rows of machines, or of library versions, on which the same model scores differently.
fn check_base(rows: &RowWriter<AblationRow>, now: f64) -> Result<(), subject::Error> {
    match rows.rows().map(|row| row.base_score).find(|&stored| stored != now) {
        Some(stored) => Err(subject::Error::OtherBase { stored, now }),
        None => Ok(()),
    }
}

fn identity(args: &Args, subject: &dyn Subject, scored: &Scored) -> Result<Identity, subject::Error> {
    let mut identity = subject.identity("ablate-one", scored)?;
    identity.seed = args.shared.seed;
    identity.arguments.insert("resamples".to_owned(), args.resamples.into());
    Ok(identity)
}
