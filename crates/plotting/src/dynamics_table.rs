//! Figure 5 in numbers, and how many heads can go at each checkpoint, beside the paper's claim (Michel et al. 2019,
//! Section 6).
use crate::dynamics::{Checkpoint, Dynamics, share_of};
use crate::number::tenths;
use crate::origin::{Model, OPEN_QUESTION};
use crate::paper::PublishedFigure5;
use crate::table::{Cell, Row, Table};

/// Shares of the score that the paper's claim is about, in percent.
pub const KEPT: [f64; 2] = [90.0, 85.0];

/// The scores in percent of the unpruned one; and the shares of heads that can go.
pub fn tables(dynamics: &Dynamics, published: Option<&PublishedFigure5>) -> [Table; 2] {
    [percentages(dynamics), removable(dynamics, published)]
}

/// One row for each checkpoint, one column for each share of masked heads.
fn percentages(dynamics: &Dynamics) -> Table {
    let shares = dynamics.shares();
    let (metric, proportional) = (dynamics.metric.label(), dynamics.metric.proportional());
    let cell = |checkpoint: &Checkpoint, masked: usize| {
        checkpoint.step(masked).map_or(String::new(), |row| {
            checkpoint.kept(row.score).map_or("n/a".to_owned(), |kept| format!("{kept:.1}"))
        })
    };
    let row = |checkpoint: &Checkpoint| Row {
        label: format!("{} [{}]", dynamics.number(checkpoint), dynamics.unpruned(checkpoint)),
        cells: shares.iter().map(|&(masked, _)| Cell::plain(cell(checkpoint, masked))).collect(),
    };
    Table {
        name: "Figure 5",
        label: format!("figure5-{}", dynamics.file.subject),
        title: format!(
            "{proportional} with some percent of heads masked, in percent of the unpruned {proportional} of the same \
             checkpoint, {} in brackets; {}",
            if proportional == metric { "which stands" } else { "whose nats a token stand" },
            dynamics.title()
        ),
        row_heading: if dynamics.is_by_epoch() { "Epoch" } else { "Updates" },
        column_heading: "Masked",
        columns: shares.iter().map(|&(_, percent)| tenths(percent)).collect(),
        rows: dynamics.checkpoints().iter().map(row).collect(),
        column_groups: Vec::new(),
        mark: None,
        summary: summary(dynamics),
        remarks: dynamics.file.remark().into_iter().collect(),
    }
}

fn summary(dynamics: &Dynamics) -> Vec<String> {
    dynamics.file.origin.estimate().of_orders().into_iter().chain(dynamics.notes()).collect()
}

/// One row for each checkpoint: what can go, beside the paper's unpruned BLEU where epochs can be compared.
fn removable(dynamics: &Dynamics, published: Option<&PublishedFigure5>) -> Table {
    let metric = &dynamics.metric;
    let paper = published.filter(|_| metric.name() == "bleu" && dynamics.is_by_epoch());
    let remark = match dynamics.file.origin.model() {
        Model::Language => Some(format!("not compared with Michel et al. (2019), {OPEN_QUESTION}")),
        Model::Other => published.map(paper_remark),
    };
    let mut columns = vec!["unpruned".to_owned()];
    columns.extend(paper.map(|_| "paper".to_owned()));
    columns.extend(KEPT.map(|least| format!("{} % kept", tenths(least))));
    let row = |checkpoint: &Checkpoint| {
        let mut texts = vec![dynamics.unpruned(checkpoint)];
        texts.extend(paper.map(|paper| paper_bleu(paper, checkpoint)));
        texts.extend(KEPT.map(|least| share_of(checkpoint.removable(least))));
        let label = format!("{}{}", dynamics.number(checkpoint), dynamics.state(checkpoint));
        Row { label, cells: texts.into_iter().map(Cell::plain).collect() }
    };
    Table {
        name: "Heads that can go during training",
        label: format!("figure5-kept-{}", dynamics.file.subject),
        title: format!(
            "Largest share of heads, in percent, that can be masked with {} % of the unpruned {} kept; {}",
            KEPT.map(tenths).join(" and "),
            metric.proportional(),
            dynamics.title()
        ),
        row_heading: if dynamics.is_by_epoch() { "Epoch" } else { "Updates" },
        column_heading: "Heads",
        columns,
        rows: dynamics.checkpoints().iter().map(row).collect(),
        column_groups: Vec::new(),
        mark: None,
        summary: removable_summary(dynamics),
        remarks: remark.into_iter().chain(dynamics.file.remark()).collect(),
    }
}

fn removable_summary(dynamics: &Dynamics) -> Vec<String> {
    let shares = || dynamics.checkpoints().iter().flat_map(|one| KEPT.map(|least| one.removable(least)));
    let mut summary =
        vec!["the share is that of the last step before the first one that keeps less".to_owned()];
    if shares().any(|found| found.is_none()) {
        summary.push("?: a step on the way is missing, or the unpruned score is 0.0 or below".to_owned());
    }
    if shares().flatten().any(|found| found.is_open) {
        summary.push("\u{2265}: no step of the curve keeps less".to_owned());
    }
    summary.extend(dynamics.notes());
    summary
}

/// Of the same epoch; empty where the paper has none.
fn paper_bleu(paper: &PublishedFigure5, checkpoint: &Checkpoint) -> String {
    let same = paper.epochs.iter().find(|row| Some(row.epoch) == checkpoint.epoch);
    same.map_or(String::new(), |row| format!("{:.1}", row.unpruned_bleu))
}

fn paper_remark(paper: &PublishedFigure5) -> String {
    let epochs = paper.epochs.iter().map(|row| format!("{} [{:.1}]", row.epoch, row.unpruned_bleu));
    format!(
        "paper: Michel et al. (2019), Figure 5, IWSLT: {} % of heads from epoch 10 on, with 85 to 90 % of BLEU kept; epochs \
         and their unpruned BLEU {}",
        tenths(paper.percent),
        epochs.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::tests::dynamics;
    use crate::paper::PublishedEpoch;
    use crate::test_rows::{checkpoint, dynamics_row};

    fn published() -> PublishedFigure5 {
        let epoch = |epoch, unpruned_bleu| PublishedEpoch { epoch, unpruned_bleu };
        PublishedFigure5 { percent: 40.0, epochs: vec![epoch(2, 6.5), epoch(10, 30.5)] }
    }

    /// Epoch 1 has no score; in epoch 2 one head of ten can go with 90 % kept, two with 85 %; epoch 5 lacks a step.
    fn rows() -> Vec<records::DynamicsRow> {
        let mut rows: Vec<_> =
            (0..4).map(|step| dynamics_row((Some(1), 100), step, 0.0, step as f64)).collect();
        rows.extend(checkpoint(2, 6.0, &[95.0, 87.5, 50.0]));
        rows.extend(checkpoint(5, 20.0, &[97.5, 96.0]));
        rows
    }

    fn terminal(table: &Table) -> String {
        anstream::adapter::strip_str(&table.terminal()).to_string()
    }

    #[test]
    fn scores_are_percentages_of_their_own_checkpoint() {
        let expected = "\
Figure 5. BLEU with some percent of heads masked, in percent of the unpruned BLEU of the same checkpoint, which stands in \
brackets; demo-x (demo language)

          Masked
   Epoch      10       20       30
 1 [0.0]     n/a      n/a      n/a
 2 [6.0]    95.0     87.5     50.0
5 [20.0]    97.5     96.0

no percentages of a score of 0.0 or below: epoch 1
not finished, steps or their tests are missing: epoch 5
split unknown: no signature beside `a.csv`
";
        let found = terminal(&percentages(&dynamics(rows())));
        assert_eq!(found, expected, "\n{found}");
    }

    #[test]
    fn shares_that_can_go_stand_beside_the_paper() {
        let expected = "\
Heads that can go during training. Largest share of heads, in percent, that can be masked with 90 and 85 % of the unpruned \
BLEU kept; demo-x (demo language)

                     Heads
          Epoch   unpruned       paper   90 % kept   85 % kept
              1        0.0                       ?           ?
              2        6.0         6.5          10          20
5, not finished       20.0                    ≥ 20        ≥ 20

the share is that of the last step before the first one that keeps less
?: a step on the way is missing, or the unpruned score is 0.0 or below
≥: no step of the curve keeps less
no percentages of a score of 0.0 or below: epoch 1
not finished, steps or their tests are missing: epoch 5
paper: Michel et al. (2019), Figure 5, IWSLT: 40 % of heads from epoch 10 on, with 85 to 90 % of BLEU kept; epochs and \
their unpruned BLEU 2 [6.5], 10 [30.5]
split unknown: no signature beside `a.csv`
";
        let found = terminal(&removable(&dynamics(rows()), Some(&published())));
        assert_eq!(found, expected, "\n{found}");
    }

    #[test]
    fn other_metrics_and_updates_have_no_column_of_the_paper() {
        let has_column = |rows: Vec<records::DynamicsRow>, published: Option<&PublishedFigure5>| {
            let table = removable(&dynamics(rows), published);
            (table.columns.contains(&"paper".to_owned()), table.row_heading)
        };
        let paper = published();
        assert_eq!(has_column(checkpoint(1, 6.0, &[50.0]), Some(&paper)), (true, "Epoch"));
        assert_eq!(has_column(checkpoint(1, 6.0, &[50.0]), None), (false, "Epoch"));
        assert_eq!(has_column(vec![dynamics_row((None, 5), 0, 6.0, 6.0)], Some(&paper)), (false, "Updates"));
        let mut accuracies = checkpoint(1, 6.0, &[50.0]);
        accuracies.iter_mut().for_each(|row| row.metric = "accuracy".to_owned());
        assert_eq!(has_column(accuracies, Some(&paper)), (false, "Epoch"));
    }
}
