//! Rows and published numbers for tests, which fill in what they are about.
use records::{AblationRow, DynamicsRow, PruningRow};

use crate::Error;
use crate::paper::{Published, PublishedFigure1b, PublishedFigure2, PublishedTable1};
use crate::result_file::ResultFile;
use crate::sweep::Sweep;

/// An untested row of BLEU scores.
pub(crate) fn row(attention: &str, head: (usize, usize), base_score: f64, score: f64) -> AblationRow {
    AblationRow::untested(attention, head, "bleu", base_score, score)
}

/// A file of a demo subject, without a signature.
pub(crate) fn file() -> ResultFile {
    ResultFile::unsigned("demo-x", "a.csv")
}

/// The sweep of a demo subject.
pub(crate) fn sweep(rows: Vec<AblationRow>) -> Result<Sweep, Error> {
    Sweep::from_rows(file(), rows)
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
        complement: false,
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
        p_koehn: None,
        p_adjusted: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
        search_score: None,
        masked_heads: String::new(),
    }
}

/// An untested row of BLEU scores; steps mask one more of 10 heads each.
pub(crate) fn dynamics_row(
    (epoch, updates): (Option<usize>, usize),
    step: usize,
    base_score: f64,
    score: f64,
) -> DynamicsRow {
    DynamicsRow {
        epoch,
        updates,
        step,
        masked: step,
        heads: 10,
        metric: "bleu".to_owned(),
        base_score,
        score,
        score_delta: score - base_score,
        delta_low: None,
        delta_high: None,
        p_value: None,
        p_koehn: None,
        p_adjusted: None,
        p_benjamini_hochberg: None,
        p_unpaired_t: None,
        p_mcnemar: None,
        masked_heads: String::new(),
    }
}

/// A checkpoint at 100 updates an epoch, whose steps keep these percentages of its score; those of step 0 are all.
pub(crate) fn checkpoint(epoch: usize, base_score: f64, kept: &[f64]) -> Vec<DynamicsRow> {
    let kept = std::iter::once(100.0).chain(kept.iter().copied());
    let row =
        |(step, kept)| dynamics_row((Some(epoch), 100 * epoch), step, base_score, base_score * kept / 100.0);
    kept.enumerate().map(row).collect()
}
