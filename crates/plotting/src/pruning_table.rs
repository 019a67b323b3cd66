//! How many heads can go, by two rules, beside what the paper reports for its models (Michel et al. 2019, Section 4.2 and
//! Appendix B).
use std::path::Path;

use records::Order;

use crate::Error;
use crate::number::{self, tenths};
use crate::origin::{Model, OPEN_QUESTION, is_demo};
use crate::paper::{PublishedShare, shares};
use crate::pruning::Pruning;
use crate::pruning::curve::{Removable, Series, percent};
use crate::pruning::order::Scope;
use crate::significance::{Criterion, Rules, Which};
use crate::table::{Cell, Row, Table};

/// Name of its files, without extension.
pub const FILE_STEM: &str = "pruning";

/// Why the share of the oracle says less than it seems.
pub const ORACLE: &str = "made on the very split that is scored, so its share is optimistic";

/// What a complement is.
pub const COMPLEMENT: &str =
    "as many heads masked in the opposite order, so that those which the order masks first are kept";

/// A score is given for a share of masked heads if a step lies no further away, in percentage points.
const NEAR: f64 = 5.0;

/// One row for each curve, and one for each floor.
pub fn pruning_table(pruning: &Pruning, criterion: Criterion, published: &[PublishedShare]) -> Table {
    let metric = &pruning.metric;
    let unit = metric.difference_unit().map_or(String::new(), |unit| format!(", changes in {unit}"));
    let paper = comparable(pruning, published);
    let published = if pruning.model() == Model::Language { &[] } else { published };
    let mut columns = vec!["safe (%)", "change", "no sig. loss (%)", "change", "score at 50 %"];
    columns.extend((!published.is_empty()).then_some("paper (%)"));
    let rules = pruning.rules(criterion);
    let curves = pruning.series().iter().map(|series| row(pruning, series, rules, paper));
    let mut rows: Vec<_> = curves.chain(floors(pruning)).collect();
    rows.iter_mut().for_each(|row| row.cells.resize(columns.len(), Cell::default()));
    Table {
        name: "Heads that can go",
        label: format!("{FILE_STEM}-{}", pruning.file.subject),
        title: format!(
            "Largest share of heads that can be masked: shown to be safe, and without a significant loss of {}{unit}; {}",
            metric.label(),
            pruning.title()
        ),
        row_heading: "Order",
        column_heading: "Largest share",
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows,
        column_groups: Vec::new(),
        mark: None,
        summary: summary(pruning, rules),
        remarks: remarks(pruning, published),
    }
}

/// The published shares in the folder `paper`.
///
/// # Errors
/// If the file cannot be read.
pub fn published(paper: &Path) -> Result<Vec<PublishedShare>, Error> {
    shares(paper)
}

/// What the paper reports for the same task, or the one that a subject stands for.
pub fn comparable<'a>(pruning: &Pruning, published: &'a [PublishedShare]) -> Option<&'a PublishedShare> {
    let subject = &pruning.file.subject;
    if pruning.model() == Model::Language {
        return None;
    }
    let figure = match pruning.is_translator() {
        true if subject.contains("iwslt") => "Figure 6d",
        true => "Figure 3a",
        false if is_demo(subject) || subject.contains("mnli") => "Figure 3b",
        false if subject.contains("sst2") => "Figure 6a",
        false if subject.contains("cola") => "Figure 6b",
        false if subject.contains("mrpc") => "Figure 6c",
        false => return None,
    };
    published.iter().find(|share| share.figure == figure)
}

/// The share as printed: `20`, `12.5 [0 to 30]` for several runs, `≥ 90` where the climb ended for want of a test.
pub fn share(removable: &Removable) -> String {
    let range = removable.range.map(|(low, high)| format!(" [{} to {}]", tenths(low), tenths(high)));
    number::share(removable.percent, removable.is_open) + &range.unwrap_or_default()
}

/// The score near a share of masked heads, with the share of that step where it is another; empty if none is near.
pub fn score_at(pruning: &Pruning, series: &Series, share: f64) -> String {
    series.score_at(share, NEAR).map_or(String::new(), |(found, score)| {
        let amount = pruning.metric.amount(score);
        if (found - share).abs() < 0.05 { amount } else { format!("{amount} (at {} %)", tenths(found)) }
    })
}

fn row(pruning: &Pruning, series: &Series, rules: Rules, paper: Option<&PublishedShare>) -> Row {
    let of = |which| {
        let Some(removable) = series.removable(rules, which) else { return ["?"; 2].map(str::to_owned) };
        let change = removable.step.map(|step| pruning.metric.change(step.delta));
        [share(&removable), change.unwrap_or_default()]
    };
    let mut texts: Vec<_> = Which::BOTH.into_iter().flat_map(of).collect();
    texts.push(score_at(pruning, series, 50.0));
    let is_the_papers = pruning.find(Scope::All, Order::Importance) == Some(series);
    texts.push(paper.filter(|_| is_the_papers).map_or(String::new(), |share| tenths(share.percent)));
    Row { label: label(pruning, series), cells: texts.into_iter().map(Cell::plain).collect() }
}

/// `enc-enc: random, median of 10, not finished`; `importance, complement`.
fn label(pruning: &Pruning, series: &Series) -> String {
    let runs = match series.runs.len() {
        1 => String::new(),
        runs => format!(", median of {runs}"),
    };
    let complement = if series.curve.is_complement { ", complement" } else { "" };
    format!("{}{}{complement}{runs}{}", prefix(series.curve.scope), series.curve.order, pruning.state(series))
}

fn prefix(scope: Scope) -> String {
    if scope == Scope::All { String::new() } else { format!("{scope}: ") }
}

/// The score with all heads masked stands in the column of scores, with its share.
fn floors(pruning: &Pruning) -> impl Iterator<Item = Row> {
    pruning.floors().iter().map(|(&scope, row)| {
        let score = format!("{} (at {} %)", pruning.metric.amount(row.score), tenths(percent(row)));
        let mut cells = vec![Cell::default(); 4];
        cells.push(Cell::plain(score));
        Row { label: format!("{}floor, all masked", prefix(scope)), cells }
    })
}

fn summary(pruning: &Pruning, rules: Rules) -> Vec<String> {
    let mut summary = vec![format!("base {}", pruning.metric.described(pruning.base))];
    summary.push(
        "each share is that of the last step before the first one that the rule does not accept".to_owned(),
    );
    summary.extend(rules.descriptions("steps"));
    summary.extend(pruning.estimate());
    let shares = || {
        let series = pruning.series().iter();
        series.flat_map(|series| Which::BOTH.map(|which| series.removable(rules, which)))
    };
    let has = |order: &dyn Fn(&Series) -> bool| pruning.series().iter().any(order);
    let sentences = [
        (
            shares().any(|share| share.is_none()),
            "?: no step was tested in a way that could tell, or the only step that was searched is a loss",
        ),
        (
            shares().flatten().any(|share| share.is_open),
            "\u{2265}: no step fails; the curve, or its tests, end here",
        ),
        (has(&|series| series.runs.len() > 1), "random: median and range of the shares of single orders"),
        (
            has(&|series| !pruning.is_finished(series)),
            "not finished: the run was killed or is still going, so steps or their tests are missing",
        ),
    ];
    summary.extend(sentences.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text.to_owned()));
    if has(&|series| series.curve.is_complement) {
        summary.push(format!("complement: {COMPLEMENT}"));
    }
    summary
}

fn remarks(pruning: &Pruning, published: &[PublishedShare]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(share) = comparable(pruning, published) {
        remarks.push(format!("paper: Michel et al. (2019), {}, {}", share.figure, share.task));
    }
    let all = published.iter().map(|share| format!("{} % ({})", tenths(share.percent), share.task));
    let all: Vec<_> = all.collect();
    if !all.is_empty() {
        remarks.push(format!("all shares in the paper, \"without noticeable loss\": {}", all.join(", ")));
    }
    if pruning.series().iter().any(|series| series.curve.order == Order::Oracle) {
        remarks.push(format!("oracle: {ORACLE}"));
    }
    if pruning.model() == Model::Language {
        remarks.push(format!("not compared with Michel et al. (2019), {OPEN_QUESTION}"));
    }
    remarks.extend(without_attention(pruning).map(str::to_owned));
    remarks.extend(pruning.file.remark());
    remarks
}

/// What a model whose only attention type is `self` still sees with all heads masked, where it was scored so.
fn without_attention(pruning: &Pruning) -> Option<&'static str> {
    pruning.has_blind_step().then_some(match pruning.model() {
        Model::Language => "at 100 % each position sees only itself: a token is predicted from the one before it alone",
        Model::Other => {
            "at 100 % the first position, which is classified, sees only itself: every text gets the same class"
        }
    })
}

#[cfg(test)]
mod tests {
    use records::PruningRow;

    use super::*;
    use crate::result_file::ResultFile;
    use crate::significance::Adjustment;
    use crate::test_rows::{file, pruning_row};

    const CRITERION: Criterion = Criterion { alpha: 0.01, adjustment: Adjustment::None };

    fn published() -> Vec<PublishedShare> {
        let share = |figure: &str, task: &str, percent| PublishedShare {
            figure: figure.to_owned(),
            task: task.to_owned(),
            percent,
        };
        vec![share("Figure 3a", "WMT", 7.0), share("Figure 6b", "BERT CoLA", 8.0)]
    }

    fn tested(
        attention: &str,
        order: &str,
        seed: Option<u64>,
        steps: &[(usize, f64, f64)],
    ) -> Vec<PruningRow> {
        let row = |(index, &(masked, score, p_value)): (usize, &_)| PruningRow {
            p_value: Some(p_value),
            p_adjusted: Some(p_value),
            delta_low: Some(score - 30.0 - 0.25),
            ..pruning_row(attention, order, seed, index + 1, (masked, 8), score)
        };
        let intact = pruning_row(attention, order, seed, 0, (0, 8), 30.0);
        std::iter::once(intact).chain(steps.iter().enumerate().map(row)).collect()
    }

    /// Importance: 3 of 8 heads are 37.5 %; the interval there reaches down to 0.75 points, more than 2 % of 30. Random: 1
    /// and 3 of 8 heads, so the median is 25 %. Oracle: the second of three steps has no row.
    #[test]
    fn each_curve_has_its_shares() {
        let mut rows =
            tested("all", "importance", None, &[(1, 29.75, 0.2), (3, 29.5, 0.2), (5, 20.0, 0.001)]);
        rows.extend(tested("all", "random", Some(1), &[(1, 29.0, 0.2), (4, 25.0, 0.002)]));
        rows.extend(tested("all", "random", Some(2), &[(1, 29.0, 0.2), (3, 27.0, 0.02), (4, 2.0, 0.001)]));
        rows.extend(tested("enc-enc", "importance", None, &[(7, 29.0, 0.5)]));
        let mut killed = tested("all", "oracle", None, &[(3, 29.5, 0.2), (5, 29.0, 0.2), (8, 20.0, 0.001)]);
        killed.remove(2);
        rows.extend(killed);
        rows.push(PruningRow { complement: true, ..pruning_row("all", "importance", None, 1, (4, 8), 12.0) });
        rows.push(pruning_row("all", "floor", None, 0, (8, 8), 0.25));
        let pruning = Pruning::from_rows(file(), rows).unwrap();
        let table = pruning_table(&pruning, CRITERION, &published());
        let expected = "\
Heads that can go. Largest share of heads that can be masked: shown to be safe, and without a significant loss of BLEU; \
demo-x (demo language)

                            Largest share
                 Order           safe (%)              change    no sig. loss (%)              change       score at 50 %           paper (%)
            importance               12.5               -0.25                37.5               -0.50                                       7
importance, complement                  ?                   ?                   ?                   ?               12.00
  oracle, not finished                  0                0.00              ≥ 37.5               -0.50
   random, median of 2         0 [0 to 0]                       25 [12.5 to 37.5]                                   13.50
   enc-enc: importance                  0                0.00              ≥ 87.5               -1.00
     floor, all masked                                                                                    0.25 (at 100 %)

base BLEU 30.00
each share is that of the last step before the first one that the rule does not accept
shown safe, the default: at the worse end of the 95 % interval the loss is at most 2 % of the base
no significant loss, the paper's rule: not worse than the base at p < 0.01 (two-sided paired bootstrap; not adjusted for the \
number of steps); it grows as the test set shrinks, since a test that cannot see a loss calls it none
?: no step was tested in a way that could tell, or the only step that was searched is a loss
≥: no step fails; the curve, or its tests, end here
random: median and range of the shares of single orders
not finished: the run was killed or is still going, so steps or their tests are missing
complement: as many heads masked in the opposite order, so that those which the order masks first are kept
paper: Michel et al. (2019), Figure 3a, WMT
all shares in the paper, \"without noticeable loss\": 7 % (WMT), 8 % (BERT CoLA)
oracle: made on the very split that is scored, so its share is optimistic
split unknown: no signature beside `a.csv`
";
        let plain = anstream::adapter::strip_str(&table.terminal()).to_string();
        assert_eq!(plain, expected, "\n{plain}");
    }

    #[test]
    fn a_bert_without_attention_is_explained() {
        let remarks = |heads: &str, masked| {
            let row = PruningRow {
                masked_heads: heads.to_owned(),
                ..pruning_row("all", "importance", None, 1, (masked, 8), 29.0)
            };
            let pruning = Pruning::from_rows(file(), vec![row]).unwrap();
            pruning_table(&pruning, CRITERION, &[]).remarks.join("; ")
        };
        assert!(remarks("self:1:1", 8).contains("sees only itself: every text gets the same class"));
        assert!(!remarks("self:1:1", 7).contains("sees only itself"));
        assert!(!remarks("enc-enc:1:1+self:1:1", 8).contains("sees only itself"));
    }

    #[test]
    fn a_task_is_compared_with_its_own_figure_or_none() {
        let of = |subject: &str| {
            let row = PruningRow {
                masked_heads: "self:1:1".to_owned(),
                ..pruning_row("all", "importance", None, 1, (1, 8), 29.0)
            };
            let pruning = Pruning::from_rows(ResultFile::unsigned(subject, "a.csv"), vec![row]).unwrap();
            comparable(&pruning, &published()).map(|share| share.percent)
        };
        assert_eq!((of("minilm-cola"), of("reviews"), of("minilm-mnli")), (Some(8.0), None, None));
    }
}
