//! Induction, duplicate-token, previous-token and attention-sink scores of the heads of language models.
mod scores;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use core_masking::{Attention, HeadId};
use experiment::{OpenRows, SharedArgs};
use heads::experiment::NAMED_HEADS;
use records::rows::functions::FunctionName;
use records::{HeadFunctionRow, Signature};
use scores::{Counts, Sequence};
use sha2::{Digest, Sha256};
use stats::ratio::{RatioStatistics, best, resampled_shares};
use subject::Subject;

/// Name of the results.
const EXPERIMENT: &str = NAMED_HEADS.name;
/// Number of blocks of repeated random tokens.
const BLOCKS: usize = 50;
/// Maximum number of tokens per block.
const LONGEST_BLOCK: usize = 64;

/// Measures scores of well-known kinds of heads of a language model: induction and duplicate-token heads on repeated random tokens,
/// previous-token heads and attention sinks on texts.
///
/// Writes a row for each head and score. Each text is cut to the length of a repeated block. Everything is computed in one pass, so a
/// killed run starts over. --limit takes the first texts.
#[derive(Debug, Parser)]
#[command(name = EXPERIMENT, version, args_override_self = true)]
struct Args {
    /// Resamples of the sequences for intervals, up to 99,999; fewer than 39 give no intervals
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
        "all heads are measured in the same pass over the sequences, so rows cannot be measured separately",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    description.check_language_model()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let split = description.split(args.shared.split.as_deref(), &machine)?;
    let texts = description.sentences(&split, &machine)?;
    let scored = args.shared.scored(split.clone(), false);
    let texts: Vec<String> =
        scored.places(&[texts.len()]).iter().map(|&place| texts[place].clone()).collect();
    let path = args.shared.output_path(EXPERIMENT, &description, &scored);
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let vocabulary = subject.vocabulary().context("a language model has a vocabulary")?;
    let longest = subject.text_input().longest;
    let blocks = scores::blocks(&vocabulary, longest, (BLOCKS, LONGEST_BLOCK), args.shared.seed())?;
    let length = blocks[0].tokens.len();
    let texts = read_texts(&subject, &texts, length)?;

    let mut identity = subject.identity_of_model(EXPERIMENT);
    identity.split.clone_from(&split);
    scored.describe_limit(&mut identity);
    identity.seed = Some(args.shared.seed());
    identity.metric = "share".to_owned();
    identity.data.insert(split, sha256(&texts));
    let numbers = [("blocks", BLOCKS), ("tokens", length), ("resamples", args.resamples)];
    identity.arguments.extend(numbers.map(|(name, number)| (name.to_owned(), number.into())));
    let OpenRows { path, mut writer, .. } =
        args.shared.open_rows::<HeadFunctionRow>(&path, &Signature::new(identity, machine.provenance()))?;
    let heads = subject.layout().heads_of(Attention::SelfAttention)?;
    if writer.rows().len() < heads.len() * FunctionName::NAMED.len() {
        for (scores, sequences) in [([0, 1], &blocks), ([2, 3], &texts)] {
            let scores = scores.map(|place| FunctionName::NAMED[place]);
            for counts in scores::measure(&subject, sequences, scores, &heads)? {
                let rows = rows(&counts, &heads, args.resamples, args.shared.seed());
                rows.context("scores of heads")?.into_iter().try_for_each(|row| writer.append(row, None))?;
            }
        }
    }
    if !machine.quiet {
        let rows: Vec<&HeadFunctionRow> = writer.rows().collect();
        FunctionName::NAMED
            .iter()
            .filter_map(|&score| greatest(score, &rows))
            .for_each(|line| words::say!("{line}"));
    }
    writer.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Tokenizes and cuts the texts; leaves out those with fewer than two tokens.
fn read_texts(subject: &Subject, texts: &[String], length: usize) -> anyhow::Result<Vec<Sequence>> {
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        let tokens: Vec<u32> = subject.place(text)?.iter().take(length).map(|token| token.id).collect();
        if tokens.len() > 1 {
            found.push(Sequence { tokens, block: None });
        }
    }
    ensure!(!found.is_empty(), "none of the {} texts has at least two tokens", texts.len());
    Ok(found)
}

fn sha256(sequences: &[Sequence]) -> String {
    let mut hasher = Sha256::new();
    for Sequence { tokens, .. } in sequences {
        hasher.update(tokens.len().to_le_bytes());
        tokens.iter().for_each(|token| hasher.update(token.to_le_bytes()));
    }
    format!("{:x}", hasher.finalize())
}

/// Returns a row for each head: its mean weight over the queries of all sequences.
fn rows(
    counts: &Counts,
    heads: &[HeadId],
    resamples: usize,
    seed: u64,
) -> Result<Vec<HeadFunctionRow>, stats::Error> {
    let shares = resampled_shares(&counts.even, &counts.heads, resamples, seed)?;
    let total = |counts: &[RatioStatistics]| counts.iter().map(|own| own.numerator).sum::<f64>();
    let denominator = counts.even.iter().map(|own| own.denominator).sum::<f64>();
    let even = total(&counts.even) / denominator;
    let row = |(((&id, own), share), best): (((&HeadId, &Vec<RatioStatistics>), _), _)| {
        let share: &stats::ratio::ResampledShare = share;
        let (interval, margin) = (share.interval(), share.margin_interval());
        let (attention, layer, head) = id.numbers();
        HeadFunctionRow {
            attention,
            layer,
            head,
            function: counts.score,
            detail: String::new(),
            numerator: total(own),
            denominator,
            share: share.share,
            // rounding may leave a tiny share below 0
            share_low: interval.map(|interval| interval.low.max(0.0)),
            share_high: interval.map(|interval| interval.high.min(1.0)),
            best,
            shuffled: None,
            baseline_position: None,
            baseline: Some(even),
            margin_points: Some(100.0 * (share.share - even)),
            margin_points_low: margin.map(|margin| 100.0 * margin.low),
            margin_points_high: margin.map(|margin| 100.0 * margin.high),
            margin_percent: Some(100.0 * (share.share / even - 1.0)),
            holds: None,
            holds_relative: None,
        }
    };
    Ok(heads.iter().zip(&counts.heads).zip(&shares).zip(best(&shares)).map(row).collect())
}

/// Describes the head with the highest score in a line.
fn greatest(score: FunctionName, rows: &[&HeadFunctionRow]) -> Option<String> {
    let own = rows.iter().filter(|row| row.function == score);
    let row = own.max_by(|one, other| one.share.total_cmp(&other.share))?;
    let ends = row.share_low.zip(row.share_high).map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
    let (ends, even) = (ends.unwrap_or_default(), row.baseline.unwrap_or_default());
    Some(format!("{score}: highest {:.2}{ends} for {}; spread evenly {even:.2}", row.share, row.head_id()))
}
