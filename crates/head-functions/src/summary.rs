//! Summary of the results on stderr.
use std::collections::BTreeSet;

use records::rows::functions::{by_function, leaders};
use records::{HeadFunctionRow, HeadId};

/// Describes the best head of each function, and how many heads of each layer have which function.
pub fn lines<'a>(rows: impl Iterator<Item = &'a HeadFunctionRow>) -> Vec<String> {
    let rows: Vec<HeadFunctionRow> = rows.cloned().collect();
    let of_best = leaders(&rows).into_iter().map(best_head);
    let (all, functions) = (rows.iter().map(HeadFunctionRow::head_id).collect(), by_function(&rows));
    let layers: BTreeSet<_> = rows.iter().map(|row| (row.attention, row.layer)).collect();
    let of_layers = layers.into_iter().map(|layer| {
        let count = |heads: &BTreeSet<HeadId>| {
            heads.iter().filter(|head| (head.attention(), head.layer_number()) == layer).count()
        };
        let known =
            functions.iter().filter_map(|(name, heads)| Some(format!("{} {name}", count(heads.as_ref()?))));
        let ((attention, number), known) = (layer, known.collect::<Vec<_>>().join(", "));
        format!("{attention} layer {number}: {} heads, of which {known}", count(&all))
    });
    of_best.chain(of_layers).collect()
}

fn best_head(row: &HeadFunctionRow) -> String {
    let HeadFunctionRow { function, detail, share, .. } = row;
    let mut line = format!("{function} {detail}: best head {} with {:.1}%", row.head_id(), 100.0 * share);
    if let (Some(low), Some(high)) = (row.share_low, row.share_high) {
        line += &format!(" ({:.1} to {:.1})", 100.0 * low, 100.0 * high);
    }
    if let Some(best) = row.best {
        line += &format!(", best in {:.0}% of resamples", 100.0 * best);
    }
    if let Some((baseline, position)) = row.baseline.zip(row.baseline_position) {
        line += &format!("; position {position:+} alone {:.1}%", 100.0 * baseline);
    }
    if let Some(shuffled) = row.shuffled {
        line += &format!("; shuffled {:.1}%", 100.0 * shuffled);
    }
    line
}
