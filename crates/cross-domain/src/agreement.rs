//! How far two sweeps over the same heads agree.
use anyhow::Context;
use core_masking::HeadId;
use records::{AblationRow, CorrelationRow};
use stats::correlation::{Correlation, pearson, spearman};

/// Heads of each split whose overlap is counted.
const TOP: usize = 10;

/// A head's rows on both splits.
type Pair<'a> = (&'a AblationRow, &'a AblationRow);

/// A row for each attention type, and one for all of `heads` if there are several types.
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
    let is_of = |row: &&AblationRow| {
        row.attention == id.attention().to_string()
            && (row.layer, row.head) == (id.layer_number(), id.head_number())
    };
    rows.iter().find(is_of).with_context(|| format!("no row for {id}"))
}

fn row(attention: &str, pairs: &[Pair<'_>]) -> anyhow::Result<CorrelationRow> {
    let side = |score: fn(&Pair<'_>) -> f64| pairs.iter().map(score).collect::<Vec<f64>>();
    let (first, second) = (side(|(first, _)| first.score), side(|(_, second)| second.score));
    let (base, _) = pairs.first().context("no heads to compare")?;
    let pearson = known(pearson(&first, &second))?;
    let spearman = known(spearman(&first, &second))?;
    let top = TOP.min(pairs.len());
    let (costliest, others) = (costliest(&first, top), costliest(&second, top));
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
        top_overlap: costliest.iter().filter(|place| others.contains(place)).count(),
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

/// Places of the `top` lowest scores: the heads whose masking costs most. Of heads that tie, the first.
fn costliest(scores: &[f64], top: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|&left, &right| scores[left].total_cmp(&scores[right])); // stable
    places.truncate(top);
    places
}
