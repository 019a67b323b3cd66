//! The rows of `ablate-one`, read and checked (Michel et al. 2019, Section 3.2).
use std::path::Path;

use records::AblationRow;

use crate::Error;
use crate::attention::Attention;
use crate::metric::Metric;
use crate::number::count;
use crate::origin::{Model, is_demo};
use crate::result_file::ResultFile;
use crate::significance::{Criterion, Rules, Test};
use crate::table::ColumnGroup;
use crate::tested::implausible;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-one";

/// What it may mean that heads are missing: a sweep that is still running and uneven layers look the same from here.
pub(crate) const UNFINISHED: &str = "the sweep is not finished, or not all layers have as many heads";

/// Layers and heads beyond this are faults, not models.
const MOST: usize = 1000;

/// What one masked head at a time does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The file that the rows are from.
    pub file: ResultFile,
    /// What the scores measure.
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    rows: Vec<(Attention, AblationRow)>,
}

impl Sweep {
    /// Reads a file of such rows, which `experiment` has written.
    ///
    /// # Errors
    /// If the file is missing or damaged, or its rows are not one sweep.
    pub fn read(file: ResultFile, experiment: &'static str) -> Result<Self, Error> {
        let rows = file.rows()?;
        Self::from_rows(file, rows).map_err(|error| match error {
            Error::Attention { path, source, .. } => Error::Attention { path, experiment, source },
            other => other,
        })
    }

    /// Checks rows that come from `file`.
    ///
    /// # Errors
    /// If there are none or they are not one sweep.
    pub fn from_rows(file: ResultFile, rows: Vec<AblationRow>) -> Result<Self, Error> {
        let path = &file.path;
        let Some(first) = rows.first().cloned() else { return Err(Error::Empty { path: path.clone() }) };
        for row in &rows {
            check_numbers(path, row)?;
            check_same_run(path, &first, row)?;
        }
        let rows = rows.into_iter().map(|row| with_attention(path, row)).collect::<Result<_, _>>()?;
        Ok(Self { file, metric: Metric::new(&first.metric), base: first.base_score, rows })
    }

    /// What tested the rows.
    pub fn test(&self) -> Test {
        Test::of(&self.metric, &self.file.origin)
    }

    /// What decides whether heads can go.
    pub fn rules(&self, criterion: Criterion) -> Rules {
        Rules::of(&self.metric, &self.file.origin, criterion)
    }

    /// All rows with their attention types.
    pub fn rows(&self) -> &[(Attention, AblationRow)] {
        &self.rows
    }

    /// The attention types that have rows, in the order of [`Attention::ALL`].
    pub fn attentions(&self) -> Vec<Attention> {
        let has_rows = |attention: &Attention| self.rows.iter().any(|(found, _)| found == attention);
        Attention::ALL.into_iter().filter(has_rows).collect()
    }

    /// All rows of one attention type: one family of tests (Section 9 of the experiment notes).
    ///
    /// # Errors
    /// If there are none.
    pub fn family(&self, attention: Attention) -> Result<Vec<&AblationRow>, Error> {
        let of_type = self.rows.iter().filter(|(found, _)| *found == attention);
        let family: Vec<_> = of_type.map(|(_, row)| row).collect();
        if family.is_empty() {
            let present: Vec<_> = self.attentions().into_iter().map(Attention::name).collect();
            let (asked, present) = (attention.name(), present.join(", "));
            return Err(Error::NoRows { path: self.file.path.clone(), asked, present });
        }
        Ok(family)
    }

    /// A sentence on the heads of one attention type that have no row, if their number can be told.
    pub fn missing_heads(&self, attention: Attention) -> Option<String> {
        let family = self.family(attention).ok()?;
        let layers = family.iter().map(|row| row.layer).max()?;
        let heads = layers * family.iter().map(|row| row.head).max()?;
        let missing = heads.saturating_sub(family.len());
        (missing > 0).then(|| {
            format!("{attention}: {missing} of {} are not there: {UNFINISHED}", count(heads, "head"))
        })
    }

    /// Subject and split as a reader should see them: `demo-translation (demo language), test`.
    pub fn title(&self) -> String {
        self.file.title()
    }

    /// Which model the rows are of.
    pub fn model(&self) -> Model {
        self.file.origin.model()
    }

    /// The names of the key-value heads of a layer, each over the heads that read it; none where each head has its own, or
    /// the `heads` of a layer are not as many for each.
    pub fn key_value_groups(&self, heads: usize) -> Vec<ColumnGroup> {
        let key_values =
            self.file.origin.key_value_heads().filter(|key_values| heads.is_multiple_of(*key_values));
        let key_values = key_values.filter(|&key_values| key_values < heads).unwrap_or(0);
        let group = |number| ColumnGroup { name: format!("kv {number}"), columns: heads / key_values };
        (1..=key_values).map(group).collect()
    }

    /// The file that the rows are from.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether the paper's Figure 1b, accuracies on MNLI, is of the same kind: those of MNLI, and of the demo that stands
    /// for it. Beside other tasks its numbers would mislead.
    pub fn is_like_figure1b(&self) -> bool {
        self.model() == Model::Other
            && self.metric.is_accuracy()
            && (is_demo(&self.file.subject) || self.file.subject.contains("mnli"))
    }
}

/// The name of a row's head, such as `enc-enc:6:13`.
pub(crate) fn head_name(row: &AblationRow) -> String {
    format!("{}:{}:{}", row.attention, row.layer, row.head)
}

fn with_attention(path: &Path, row: AblationRow) -> Result<(Attention, AblationRow), Error> {
    let attention = row.attention.parse();
    let attention = attention.map_err(|source| Error::Attention {
        path: path.to_owned(),
        experiment: EXPERIMENT,
        source,
    })?;
    Ok((attention, row))
}

fn check_numbers(path: &Path, row: &AblationRow) -> Result<(), Error> {
    let fault = |column, found, range| {
        Err(Error::Range { path: path.to_owned(), head: head_name(row), column, found, range })
    };
    for (column, value) in [("layer", row.layer), ("head", row.head)] {
        if !(1..=MOST).contains(&value) {
            return fault(column, value as f64, "1 to 1000");
        }
    }
    implausible(row, row.score_delta).map_or(Ok(()), |(column, found, range)| fault(column, found, range))
}

/// Metric and base score are the same in all rows of one run.
fn check_same_run(path: &Path, first: &AblationRow, row: &AblationRow) -> Result<(), Error> {
    let fault = |column, value: fn(&AblationRow) -> String| {
        let describe = |row| format!("{} for {}", value(row), head_name(row));
        Err(Error::Mixed { path: path.to_owned(), column, expected: describe(first), found: describe(row) })
    };
    if row.metric != first.metric {
        return fault("metric", |row| format!("`{}`", row.metric));
    }
    if row.base_score != first.base_score {
        return fault("base_score", |row| row.base_score.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows;

    fn row(attention: &str, layer: usize, head: usize, score: f64) -> AblationRow {
        test_rows::row(attention, (layer, head), 30.0, score)
    }

    fn message(rows: Vec<AblationRow>) -> String {
        test_rows::sweep(rows).unwrap_err().to_string()
    }

    #[test]
    fn types_come_in_the_order_of_the_paper() {
        let rows = vec![row("dec-dec", 1, 1, 29.0), row("enc-enc", 1, 1, 29.5)];
        let sweep = test_rows::sweep(rows).unwrap();
        assert_eq!(sweep.attentions(), [Attention::EncEnc, Attention::DecDec]);
        let error = sweep.family(Attention::EncDec).unwrap_err().to_string();
        assert_eq!(error, "no rows for attention type enc-dec: `a.csv` has enc-enc, dec-dec");
    }

    #[test]
    fn rows_of_two_runs_are_refused() {
        let other = AblationRow { base_score: 31.0, ..row("self", 1, 2, 29.0) };
        let found = message(vec![row("self", 1, 1, 29.0), other]);
        assert_eq!(found, "`a.csv` mixes runs: base_score is 30 for self:1:1 but 31 for self:1:2");
        let other = AblationRow { metric: "f1".to_owned(), ..row("self", 1, 2, 29.0) };
        let found = message(vec![row("self", 1, 1, 29.0), other]);
        assert_eq!(found, "`a.csv` mixes runs: metric is `bleu` for self:1:1 but `f1` for self:1:2");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let found = message(vec![row("self", 1, 2, f64::NAN)]);
        assert_eq!(found, "`a.csv`: score of self:1:2 is NaN, but it must be a finite number of points");
        assert!(message(vec![row("self", 0, 2, 1.0)]).contains("layer of self:0:2 is 0"));
        assert!(message(vec![row("self", 1, 9_999_999, 1.0)]).contains("must be 1 to 1000"));
        let impossible = AblationRow { p_adjusted: Some(1.5), ..row("self", 1, 1, 1.0) };
        assert!(message(vec![impossible]).contains("p_adjusted of self:1:1 is 1.5"));
        let impossible = AblationRow { p_mcnemar: Some(-0.5), ..row("self", 1, 1, 1.0) };
        assert!(message(vec![impossible]).contains("p_mcnemar of self:1:1 is -0.5"));
        assert!(message(vec![]).contains("holds no rows yet"));
    }
}
