//! Rows and published numbers for tests, which fill in what they are about.
use std::path::PathBuf;

use records::{AblationRow, PruningRow};

use crate::Error;
use crate::paper::{Published, PublishedFigure1b, PublishedFigure2, PublishedTable1};
use crate::sweep::Sweep;

/// An untested row of BLEU scores.
pub(crate) fn row(attention: &str, head: (usize, usize), base_score: f64, score: f64) -> AblationRow {
    AblationRow::untested(attention, head, "bleu", base_score, score)
}

/// The sweep of a demo subject.
pub(crate) fn sweep(rows: Vec<AblationRow>) -> Result<Sweep, Error> {
    Sweep::from_rows("demo-x", PathBuf::from("a.csv"), rows)
}

/// Numbers that the paper does not have.
pub(crate) fn published() -> Published {
    Published {
        table1: PublishedTable1 { base_bleu: 1.0, heads: 5.0, significant: 3.0, better: 2.0 },
        figure1b: PublishedFigure1b { base: 7.0, lowest: 6.0, highest: 9.0 },
        figure2: PublishedFigure2 { translation: 0.25, bert: 0.75 },
    }
}

/// An untested row of BLEU scores from a base of 30; `masked` of all heads.
pub(crate) fn pruning_row(
    attention: &str,
    order: &str,
    order_seed: Option<u64>,
    step: usize,
    (masked, heads): (usize, usize),
    score: f64,
) -> PruningRow {
    PruningRow {
        attention: attention.to_owned(),
        order: order.to_owned(),
        order_seed,
        step,
        masked,
        heads,
        metric: "bleu".to_owned(),
        base_score: 30.0,
        score,
        score_delta: score - 30.0,
        delta_low: None,
        delta_high: None,
        p_value: None,
        p_holm: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
        search_score: None,
        masked_heads: String::new(),
    }
}
