//! Relevance of each head for the model's output: Voita et al. (2019), Section 4, Figures 1a and 2a.
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use core_masking::HeadId;
use experiment::{OpenRows, SharedArgs};
use heads::experiment::RELEVANCE;
use records::{RelevanceRow, Signature};
use stats::ratio::{RatioStatistics, ResampledShare, resampled_shares};
use subject::SegmentRelevance;

const EXPERIMENT: &str = RELEVANCE.name;

/// Propagates relevance from the model's output back to its heads, layer by layer (Voita et al. 2019).
///
/// For translators and classifiers. Writes a row for each head; everything is computed in one pass, so a killed run starts over.
#[derive(Debug, Parser)]
#[command(name = "relevance", version, args_override_self = true)]
struct Args {
    /// Resamples of the segments for intervals, up to 99,999; fewer than 39 give no intervals
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = significance::resamples)]
    resamples: usize,

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
    description.check_relevance()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let scored = args.shared.scored(split, false);
    let path = args.shared.output_path(EXPERIMENT, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let mut identity = subject.identity(EXPERIMENT, &scored)?;
    identity.seed = Some(args.shared.seed());
    identity.precision = "f64".to_owned(); // regardless of the model's precision
    identity.arguments.insert("lrp".to_owned(), "alpha-beta".into());
    identity.arguments.insert("resamples".to_owned(), args.resamples.into());
    let OpenRows { path, mut writer, .. } =
        args.shared.open_rows::<RelevanceRow>(&path, &Signature::new(identity, machine.provenance()))?;
    let heads = subject.layout().heads();
    if writer.rows().len() < heads.len() {
        let segments = subject.relevance(&scored)?;
        let rows =
            rows(&segments, &heads, args.resamples, args.shared.seed()).context("relevance of heads")?;
        rows.into_iter().try_for_each(|row| writer.append(row, None))?;
    }
    let lost = writer.rows().next().map_or(0.0, |row| row.lost);
    if let Some(doubt) = RelevanceRow::doubt(lost).filter(|_| !machine.quiet) {
        words::say!("warning: {doubt}");
    }
    writer.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Returns a row for each head, with means over the target positions of all segments.
fn rows(
    segments: &[SegmentRelevance],
    heads: &[HeadId],
    resamples: usize,
    seed: u64,
) -> Result<Vec<RelevanceRow>, stats::Error> {
    let of_head = |id: &HeadId| -> Vec<RatioStatistics> {
        let share = |segment: &SegmentRelevance| RatioStatistics {
            numerator: segment.heads.get(id).map_or(0.0, |head| head.share),
            denominator: segment.targets as f64,
        };
        segments.iter().map(share).collect()
    };
    let targets: usize = segments.iter().map(|segment| segment.targets).sum();
    let lost = SegmentRelevance::mean(segments, |segment| segment.lost);
    let none = vec![RatioStatistics::default(); segments.len()];
    let counts: Vec<_> = heads.iter().map(of_head).collect();
    let shares = resampled_shares(&none, &counts, resamples, seed)?;
    let row = |(&id, share): (&HeadId, &ResampledShare)| {
        let undivided =
            |segment: &SegmentRelevance| segment.heads.get(&id).map_or(0.0, |head| head.undivided);
        let interval = share.interval();
        let (attention, layer, head) = id.numbers();
        RelevanceRow {
            attention,
            layer,
            head,
            relevance: share.share,
            relevance_low: interval.map(|interval| interval.low),
            relevance_high: interval.map(|interval| interval.high),
            undivided: SegmentRelevance::mean(segments, undivided),
            lost,
            targets,
        }
    };
    Ok(heads.iter().zip(&shares).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use subject::HeadRelevance;

    /// Two segments of one and three positions: (0.5 + 0.7) / 4, not the mean of 0.5 and 0.7 / 3.
    #[test]
    fn relevance_is_a_mean_over_target_positions() {
        let id: HeadId = "self:1:2".parse().unwrap();
        let segment = |targets, share, undivided| SegmentRelevance {
            targets,
            lost: share / 10.0,
            heads: BTreeMap::from([(id, HeadRelevance { share, undivided })]),
        };
        let rows = rows(&[segment(1, 0.5, -1.0), segment(3, 0.7, 3.0)], &[id], 0, 1).unwrap();
        assert!((rows[0].relevance - 0.3).abs() < 1e-12 && rows[0].undivided == 0.5, "{:?}", rows[0]);
        assert_eq!((rows[0].targets, rows[0].relevance_low, rows[0].head), (4, None, 2));
        assert!((rows[0].lost - 0.03).abs() < 1e-12, "{:?}", rows[0]);
    }
}
