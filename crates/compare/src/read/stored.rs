//! Result files of headcount: the full model or one row, from the per-segment statistics stored next to the file.
use std::path::Path;

use records::{BASE, Blocks, Identity, Signature};
use significance::{Store, has_windows, metric_of, unpaired};
use stats::Segments;
use stats::blocks::block_length;

use super::translations::Counted;
use crate::Error;

/// A result file and the name of a row in it, empty for the full model.
type Place<'a> = (&'a Path, &'a str);

/// Splits `FILE.csv#ROW` into file and row; the row is empty if not given, or if a file has the whole name.
pub(crate) fn file_and_row(path: &Path) -> Place<'_> {
    let both = path.to_str().and_then(|text| text.rsplit_once('#')).filter(|_| !path.exists());
    both.map_or((path, ""), |(file, row)| (Path::new(file), row))
}

/// Returns the file and the row of a run; `None` if no statistics are stored next to it.
pub(super) fn place(run: &Path) -> Option<Place<'_>> {
    Some(file_and_row(run)).filter(|(file, _)| file.exists() && Blocks::path_beside(file).exists())
}

/// Reads the segments of all runs; fails if a run has other segments than the first.
pub(super) fn read(runs: &[Place<'_>]) -> Result<Counted, Error> {
    let read = |(file, row): &Place<'_>| segments(file, row);
    let all = runs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (first, base) = &all[0];
    for ((file, _), (own, segments)) in runs.iter().zip(&all).skip(1) {
        let (here, there) = (described(own), described(first));
        let fault = match (here == there, unpaired(segments, base)) {
            (false, _) => format!("this run has {here}, the first run has {there}"),
            (true, Some(fault)) => fault.to_owned(),
            (true, None) => continue,
        };
        return Err(Error::of(file, format!("its segments differ from the first run's: {fault}")));
    }
    let (metric, clusters) = (first.metric.clone(), first.clusters());
    let is_text = has_windows(first);
    let runs: Vec<Segments> = all.into_iter().map(|(_, segments)| segments).collect();
    let block = if is_text { block_length(&runs[0], &runs[1..]) } else { 1 };
    Ok(Counted { metric, runs, clusters, block })
}

/// Describes the data and metric that two runs must share.
fn described(own: &Identity) -> String {
    let data = own.data.get(&own.split).map_or("", String::as_str);
    let limit = own.limit.map_or_else(|| "all segments".to_owned(), |limit| format!("{limit} segments"));
    let sample = own.arguments.get("sample").map_or(String::new(), |seed| format!(", sample {seed}"));
    let sum = &data[..data.len().min(8)];
    format!("split `{}` (SHA-256 {sum}…), {limit}{sample}, {}", own.split, own.metric)
}

fn segments(file: &Path, row: &str) -> Result<(Identity, Segments), Error> {
    let signature = Signature::read(&Signature::path_beside(file)).map_err(significance::Error::from)?;
    let none = || Error::of(file, "has no signature file with a metric next to it, so it cannot be read");
    let signature = signature.ok_or_else(none)?;
    let measured = signature.measured.as_ref().ok_or_else(none)?;
    if signature.identity.until_decided().is_some() && !row.is_empty() {
        return Err(Error::of(file, "its rows were measured until decided, on only a part of the segments"));
    }
    let blocks = Blocks::beside(file, &signature).map_err(significance::Error::from)?.unwrap_or_default();
    let names = || blocks.iter().map(|block| block.name.as_str());
    if !row.is_empty() && !names().any(|name| name == row) {
        let known = words::excerpt(&names().collect::<Vec<_>>().join(", "));
        return Err(Error::of(file, format!("no row `{}`: expected one of {known}", words::excerpt(row))));
    }
    // a row of a checkpoint, such as 1200/3, is compared with the full model of that checkpoint
    let base = names()
        .find(|name| *name == BASE)
        .map_or_else(|| format!("{}/{BASE}", row.split('/').next().unwrap_or_default()), str::to_owned);
    let mut store = Store::new(&blocks, metric_of(measured)?);
    let segments =
        if row.is_empty() || row == base { store.base(&base)? } else { store.variant(row, &base)? };
    Ok((signature.identity, segments))
}
