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
        format!("{attention} layer {number}: of {} heads {known}", count(&all))
    });
    of_best.chain(of_layers).collect()
}

fn best_head(row: &HeadFunctionRow) -> String {
    let HeadFunctionRow { function, detail, share, .. } = row;
    let mut line = format!("{function} {detail}: best {} with {:.1} %", row.head_id(), 100.0 * share);
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

#[cfg(test)]
mod tests {
    use super::*;
    use records::Attention;
    use records::rows::functions::FunctionName;

    fn row(head: usize, function: FunctionName, detail: &str, share: f64) -> HeadFunctionRow {
        HeadFunctionRow {
            attention: Attention::EncEnc,
            layer: 2,
            head,
            function,
            detail: detail.to_owned(),
            numerator: 100.0 * share,
            denominator: 100.0,
            share,
            share_low: Some(share - 0.05),
            share_high: Some(share + 0.05),
            best: Some(0.75),
            shuffled: Some(0.125),
            baseline_position: None,
            baseline: None,
            margin_points: None,
            margin_points_low: None,
            margin_points_high: None,
            margin_percent: None,
            holds: Some(share > 0.8),
            holds_relative: None,
        }
    }

    /// The second head is the best at one relation. Positions share one line whichever they are, and a row whose `holds` is empty gives
    /// none.
    #[test]
    fn the_best_heads_and_the_numbers_of_each_layer_are_said() {
        let baseline = |row| HeadFunctionRow { baseline: Some(0.5), baseline_position: Some(-1), ..row };
        let rows = [
            row(1, FunctionName::Confidence, "", 0.9),
            row(1, FunctionName::Positional, "-1", 0.95),
            row(2, FunctionName::Positional, "+1", 0.4),
            row(1, FunctionName::PositionalThere, "-1", 0.99),
            baseline(row(1, FunctionName::Syntactic, "obj:verb->object", 0.3)),
            baseline(row(2, FunctionName::Syntactic, "obj:verb->object", 0.85)),
            row(1, FunctionName::Rare, "two-rarest", 0.6),
        ];
        let untested = HeadFunctionRow { share_low: None, best: None, shuffled: None, ..rows[6].clone() };
        let said = lines(rows[..6].iter().chain([&untested]));
        assert_eq!(
            said,
            [
                "positional -1: best enc-enc:2:1 with 95.0 % (90.0 to 100.0), best in 75 % of resamples; shuffled 12.5 %",
                "rare two-rarest: best enc-enc:2:1 with 60.0 %",
                "syntactic obj:verb->object: best enc-enc:2:2 with 85.0 % (80.0 to 90.0), best in 75 % of resamples; \
                 position -1 alone 50.0 %; shuffled 12.5 %",
                "enc-enc layer 2: of 2 heads 1 positional, 1 syntactic, 0 rare tokens, 0 other",
            ]
        );
    }
}
