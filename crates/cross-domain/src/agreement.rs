//! How far two sweeps over the same heads agree.
use anyhow::Context;
use core_masking::HeadId;
use records::{AblationRow, CorrelationRow};
use stats::correlation::{Correlation, pearson, spearman};
use subject::is_of;

/// Heads of each split whose overlap is counted.
const TOP: usize = 10;

/// A head's rows on both splits.
type Pair<'a> = (&'a AblationRow, &'a AblationRow);

/// A row for all of `heads`, and one for each attention type.
///
/// # Errors
/// If a head has no row, or the correlation cannot be computed for lack of heads.
pub fn rows(
    first: &[AblationRow],
    second: &[AblationRow],
    heads: &[HeadId],
) -> anyhow::Result<Vec<CorrelationRow>> {
    let mut types: Vec<String> = heads.iter().map(|id| id.attention().to_string()).collect();
    types.dedup();
    let pairs: Vec<Pair<'_>> =
        heads.iter().map(|&id| Ok((find(first, id)?, find(second, id)?))).collect::<anyhow::Result<_>>()?;
    let mut rows = vec![row("all", &pairs)?];
    for name in types {
        let of_type: Vec<Pair<'_>> =
            pairs.iter().copied().filter(|(first, _)| first.attention == name).collect();
        rows.push(row(&name, &of_type)?);
    }
    Ok(rows)
}

fn find(rows: &[AblationRow], id: HeadId) -> anyhow::Result<&AblationRow> {
    rows.iter().find(|row| is_of(row, id)).with_context(|| format!("no row for {id}"))
}

fn row(attention: &str, pairs: &[Pair<'_>]) -> anyhow::Result<CorrelationRow> {
    let side = |score: fn(&Pair<'_>) -> f64| pairs.iter().map(score).collect::<Vec<f64>>();
    let (first, second) = (side(|(first, _)| first.score), side(|(_, second)| second.score));
    let (base, _) = pairs.first().context("no heads to compare")?;
    let pearson = known(pearson(&first, &second))?;
    let spearman = known(spearman(&first, &second))?;
    let top = TOP.min(pairs.len());
    Ok(CorrelationRow {
        attention: attention.to_owned(),
        heads: pairs.len(),
        metric: base.metric.clone(),
        first_base_score: base.base_score,
        second_base_score: pairs[0].1.base_score,
        pearson: pearson.map(|found| found.coefficient),
        pearson_p_value: pearson.map(|found| found.p_value),
        spearman: spearman.map(|found| found.coefficient),
        spearman_p_value: spearman.map(|found| found.p_value),
        top,
        top_overlap: overlap(&first, &second, top),
        top_overlap_by_chance: (top * top) as f64 / pairs.len() as f64,
    })
}

/// A correlation, or none where one side does not vary or there are too few heads.
fn known(found: Result<Correlation, stats::Error>) -> anyhow::Result<Option<Correlation>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(stats::Error::NoSpread | stats::Error::TooFew) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How many of the `top` lowest scores on both sides are of the same heads: the mean over all ways to break ties.
fn overlap(first: &[f64], second: &[f64], top: usize) -> f64 {
    shares(first, top).into_iter().zip(shares(second, top)).map(|(first, second)| first * second).sum()
}

/// The share of all ways to break ties in which a score is among the `top` lowest: 1, 0, or between them if it ties at the
/// edge.
fn shares(scores: &[f64], top: usize) -> Vec<f64> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(&edge) = top.checked_sub(1).and_then(|last| sorted.get(last)) else {
        return vec![0.0; scores.len()];
    };
    let below = sorted.iter().filter(|&&score| score < edge).count();
    let ties = sorted.iter().filter(|&&score| score == edge).count();
    let share = |&score: &f64| match score.total_cmp(&edge) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => (top - below) as f64 / ties as f64,
        std::cmp::Ordering::Greater => 0.0,
    };
    scores.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two costliest of the first side are heads 0 and 1. On the second head 1 is, and 0 and 2 tie for the other
    /// place: 1 + 1/2.
    #[test]
    fn ties_count_by_half() {
        let (first, second) = ([1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 5.0, 9.0]);
        assert_eq!(overlap(&first, &second, 2), 1.5);
        assert_eq!(overlap(&first, &first, 2), 2.0);
        assert_eq!(overlap(&first, &[4.0, 3.0, 2.0, 1.0], 2), 0.0);
        assert_eq!(overlap(&first, &second, 4), 4.0);
    }

    /// If nothing differs, chance decides: top² / heads.
    #[test]
    fn ties_all_over_give_what_chance_gives() {
        assert!((overlap(&[7.0; 5], &[7.0, 8.0, 9.0, 10.0, 11.0], 2) - 4.0 / 5.0).abs() < 1e-12);
    }

    fn swept(scores: &[f64], base_score: f64) -> Vec<AblationRow> {
        let row = |(head, &score): (usize, &f64)| {
            let attention = if head < 4 { "enc-enc" } else { "dec-dec" };
            AblationRow::untested(attention, (1, head % 4 + 1), "bleu", base_score, score)
        };
        scores.iter().enumerate().map(row).collect()
    }

    /// enc-enc: (1, 2, 3, 4) against (2, 4, 6, 8), r = 1; dec-dec never varies on the second split. All six heads have
    /// ranks 1 to 6 on both sides but for dec-dec's tie.
    #[test]
    fn each_type_is_compared_by_itself_and_all_together() {
        let heads: Vec<HeadId> =
            ["enc-enc:1:1", "enc-enc:1:2", "enc-enc:1:3", "enc-enc:1:4", "dec-dec:1:1", "dec-dec:1:2"]
                .map(|name| name.parse().unwrap())
                .to_vec();
        let first = swept(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 9.0);
        let mut second = swept(&[2.0, 4.0, 6.0, 8.0, 9.0, 9.0], 10.0);
        second.reverse(); // rows are found by their head
        let found = rows(&first, &second, &heads).unwrap();
        let names: Vec<&str> = found.iter().map(|row| row.attention.as_str()).collect();
        assert_eq!(names, ["all", "enc-enc", "dec-dec"]);
        assert!(
            (found[1].pearson.unwrap() - 1.0).abs() < 1e-12
                && (found[1].spearman.unwrap() - 1.0).abs() < 1e-12
        );
        assert_eq!((found[2].pearson, found[2].spearman), (None, None));
        assert_eq!((found[0].first_base_score, found[0].second_base_score, found[0].top), (9.0, 10.0, 6));
        assert!(
            rows(&first[1..], &second, &heads).unwrap_err().to_string().contains("no row for enc-enc:1:1")
        );
    }
}
