//! Verdicts on all heads, compared with transformers and a hook, which mask every head on every segment.
//!
//! A sweep that stops early needs only a share of the passes, which is read from committed results. The ratio is the speed of a masked pass
//! relative to transformers, divided by this share; gradients count as three passes per segment.
use std::path::Path;

use records::{AblationRow, TestedRow as _, read_complete};
use stats::sequential::Spending;

use crate::hook::Case;
use crate::models::{MINILM, bert_config, classifier, smollm2, smollm2_config};
use crate::{Context, Row};

/// Segments of the committed sweep of SmolLM2; a gradient was computed for each.
const PASSAGES: f64 = 1_600.0;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let device = context.machine.device;
    tch::set_num_threads(context.machine.threads as i32);
    let mut tell = |case: &Case, sweep: &str, share: f64, (_, of_peer): (f64, Result<f64, String>)| {
        row(Row {
            name: format!(
                "verdicts of `{sweep}`, {share:.2} of its passes, compared with transformers and a hook"
            ),
            ratio: of_peer.map(|ratio| ratio / share),
            wanted: case.wanted[1],
        });
    };

    let sweep = "results/minilm-mnli/ablate-one.csv";
    let share = significance::replay(Path::new(sweep), Spending::Pocock, false).unwrap().unwrap().share;
    let config = bert_config(MINILM);
    let case = Case { name: MINILM.0, config, texts: 12, length: 40, wanted: [1.0, 8.0] };
    tell(&case, sweep, share, case.ratios(&classifier(MINILM, device), context));

    let sweep = "results/smollm2-135m-instruct/ablate-one-sample-1600.csv";
    let rows: Vec<AblationRow> = read_complete(Path::new(sweep)).unwrap();
    let samples = rows.iter().map(|row| row.sample() as f64);
    // without early stopping, all heads would use the largest sample
    let fixed = rows.len() as f64 * samples.clone().fold(0.0, f64::max);
    let share = (samples.sum::<f64>() + 3.0 * PASSAGES) / fixed;
    let config = smollm2_config();
    let case = Case { name: "SmolLM2 135M", config, texts: 8, length: 80, wanted: [1.0, 4.0] };
    tell(&case, sweep, share, case.ratios(&smollm2(device), context));
}
