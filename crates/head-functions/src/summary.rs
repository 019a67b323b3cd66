//! What was found, for people: on stderr.
use std::collections::BTreeMap;

use records::HeadFunctionRow;
use records::rows::functions::{CONFIDENCE, LayerCensus, POSITIONAL_ALL, census};

/// The best head of each function, and the census of each layer.
pub fn lines<'a>(rows: impl Iterator<Item = &'a HeadFunctionRow>) -> Vec<String> {
    let rows: Vec<HeadFunctionRow> = rows.cloned().collect();
    let mut best: BTreeMap<(&str, &str), &HeadFunctionRow> = BTreeMap::new();
    for row in rows.iter().filter(|row| ![CONFIDENCE, POSITIONAL_ALL].contains(&row.function.as_str())) {
        let leader = best.entry(row.task()).or_insert(row);
        if row.share > leader.share {
            *leader = row;
        }
    }
    let of_best = best.values().map(|row| best_head(row));
    let of_layers = census(&rows, false).into_iter().map(|((attention, layer), found)| {
        let LayerCensus { heads, positional, syntactic, rare, other } = found;
        let counts =
            [(positional, "positional"), (syntactic, "syntactic"), (rare, "rare tokens"), (other, "other")];
        let known = counts.iter().filter_map(|(count, name)| Some(format!("{} {name}", (*count)?)));
        format!("{attention} layer {layer}: of {heads} heads {}", known.collect::<Vec<_>>().join(", "))
    });
    of_best.chain(of_layers).collect()
}

fn best_head(row: &HeadFunctionRow) -> String {
    let HeadFunctionRow { attention, layer, head, function, detail, share, .. } = row;
    let mut line =
        format!("{function} {detail}: best {attention}:{layer}:{head} with {:.1} %", 100.0 * share);
    if let (Some(low), Some(high)) = (row.share_low, row.share_high) {
        line += &format!(" ({:.1} to {:.1})", 100.0 * low, 100.0 * high);
    }
    if let Some(best) = row.best {
        line += &format!(", best in {:.0} % of resamples", 100.0 * best);
    }
    if let Some((baseline, position)) = row.baseline.zip(row.baseline_position) {
        line += &format!("; position {position:+} alone {:.1} %", 100.0 * baseline);
    }
    if let Some(shuffled) = row.shuffled {
        line += &format!("; shuffled {:.1} %", 100.0 * shuffled);
    }
    line
}
