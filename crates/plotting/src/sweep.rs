//! The rows of `ablate-one`, read and checked (Michel et al. 2019, Section 3.2).
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use records::{AblationRow, Identity, Signature, read_rows};

use crate::Error;
use crate::attention::Attention;
use crate::metric::Metric;
use crate::number::count;

/// The experiment whose results these are.
pub const EXPERIMENT: &str = "ablate-one";

/// What it may mean that heads are missing: a sweep that is still running and uneven layers look the same from here.
pub(crate) const UNFINISHED: &str = "the sweep is not finished, or not all layers have as many heads";

/// Layers and heads beyond this are faults, not models.
const MOST: usize = 1000;

/// What one masked head at a time does to the score of a subject.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Name of the subject.
    pub subject: String,
    /// Split that was scored; unknown without a signature.
    pub split: Option<String>,
    /// Segments scored from the start of the split; all if absent.
    pub limit: Option<usize>,
    /// Resamples of the bootstrap, if the signature has them.
    pub resamples: Option<u64>,
    /// What the scores measure.
    pub metric: Metric,
    /// Score of the intact model, in the unit of the metric.
    pub base: f64,
    path: PathBuf,
    rows: Vec<(Attention, AblationRow)>,
}

impl Sweep {
    /// Reads `<results>/<subject>/ablate-one.csv` and the signature beside it.
    ///
    /// # Errors
    /// If a file is missing or damaged, or its rows are not one sweep.
    pub fn read(results: &Path, subject: &str) -> Result<Self, Error> {
        Self::read_file(csv_path(results, subject, EXPERIMENT, EXPERIMENT)?, subject, EXPERIMENT)
    }

    /// Reads the sweep on one `split`: `ablate-one.csv` if its signature says so, else `ablate-one-<split>.csv`.
    ///
    /// # Errors
    /// As for [`Sweep::read`]; what is missing is made by `maker`.
    pub fn read_split(
        results: &Path,
        subject: &str,
        split: &str,
        maker: &'static str,
    ) -> Result<Self, Error> {
        if let Ok(plain) = csv_path(results, subject, EXPERIMENT, maker) {
            let signature = Signature::read(&Signature::path_beside(&plain))?;
            if signature.is_some_and(|signature| signature.identity.split == split) {
                return Self::read_file(plain, subject, EXPERIMENT);
            }
        }
        let stem = format!("{EXPERIMENT}-{split}");
        Self::read_file(csv_path(results, subject, &stem, maker)?, subject, EXPERIMENT)
    }

    /// Reads a file of such rows that `experiment` has written, and the signature beside it.
    ///
    /// # Errors
    /// As for [`Sweep::read`].
    pub fn read_file(path: PathBuf, subject: &str, experiment: &'static str) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(&path))?;
        let rows = read_rows(&path)?;
        let mut sweep = Self::from_rows(subject, path, rows).map_err(|error| match error {
            Error::Attention { path, source, .. } => Error::Attention { path, experiment, source },
            other => other,
        })?;
        if let Some(Signature { identity, .. }) = signature {
            sweep.split = Some(identity.split).filter(|split| !split.is_empty());
            sweep.limit = identity.limit;
            sweep.resamples = identity.arguments.get("resamples").and_then(|value| value.as_u64());
        }
        Ok(sweep)
    }

    /// Checks rows that come from `path`, which only errors mention.
    ///
    /// # Errors
    /// If there are none or they are not one sweep.
    pub fn from_rows(subject: &str, path: PathBuf, rows: Vec<AblationRow>) -> Result<Self, Error> {
        let Some(first) = rows.first().cloned() else { return Err(Error::Empty { path }) };
        for row in &rows {
            check_numbers(&path, row)?;
            check_same_run(&path, &first, row)?;
        }
        let rows = rows.into_iter().map(|row| with_attention(&path, row)).collect::<Result<_, _>>()?;
        Ok(Self {
            subject: subject.to_owned(),
            split: None,
            limit: None,
            resamples: None,
            metric: Metric::new(&first.metric),
            base: first.base_score,
            path,
            rows,
        })
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
            return Err(Error::NoRows { path: self.path.clone(), asked, present });
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
        title(&self.subject, self.split.as_deref(), self.limit)
    }

    /// The file that the rows are from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the paper's Figure 1b, accuracies on MNLI, is of the same kind: those of MNLI, and of the demo that stands
    /// for it. Beside other tasks its numbers would mislead.
    pub fn is_like_figure1b(&self) -> bool {
        self.metric.is_accuracy() && (self.is_demo() || self.subject.contains("mnli"))
    }

    /// Whether the data is the synthetic language of this project.
    pub fn is_demo(&self) -> bool {
        is_demo(&self.subject)
    }
}

/// Whether a subject's data is the synthetic language of this project.
pub(crate) fn is_demo(subject: &str) -> bool {
    subject.starts_with("demo-")
}

/// Subject, split and number of segments as a reader should see them.
pub(crate) fn title(subject: &str, split: Option<&str>, limit: Option<usize>) -> String {
    let parts = [name(subject)].into_iter().chain(data_parts(split, limit));
    parts.collect::<Vec<_>>().join(", ")
}

/// The same as far as a signature has it.
pub(crate) fn title_of(subject: &str, identity: Option<&Identity>) -> String {
    let split = identity.map(|identity| identity.split.as_str()).filter(|split| !split.is_empty());
    title(subject, split, identity.and_then(|identity| identity.limit))
}

/// Split and number of segments that a run scored, as a reader should see them; absent if the split is not named.
pub(crate) fn data(identity: &Identity) -> Option<String> {
    let split = Some(identity.split.as_str()).filter(|split| !split.is_empty())?;
    Some(data_parts(Some(split), identity.limit).collect::<Vec<_>>().join(", "))
}

fn data_parts(split: Option<&str>, limit: Option<usize>) -> impl Iterator<Item = String> {
    let limit = limit.map(|limit| format!("first {limit} segments"));
    split.map(str::to_owned).into_iter().chain(limit)
}

/// Subject as a reader should see it.
pub(crate) fn name(subject: &str) -> String {
    let demo = if is_demo(subject) { " (demo language)" } else { "" };
    format!("{subject}{demo}")
}

/// The results file `stem` of a subject, which `experiment` makes, if it is there.
pub(crate) fn csv_path(
    results: &Path,
    subject: &str,
    stem: &str,
    experiment: &'static str,
) -> Result<PathBuf, Error> {
    let path = folder(results, subject, experiment)?.join(format!("{stem}.csv"));
    let subject = subject.to_owned();
    if path.exists() { Ok(path) } else { Err(Error::NoResults { path, experiment, subject }) }
}

/// The results files of a subject whose names start with `prefix`, sorted; there may be none.
pub(crate) fn csv_paths(
    results: &Path,
    subject: &str,
    prefix: &str,
    experiment: &'static str,
) -> Result<Vec<PathBuf>, Error> {
    let folder = folder(results, subject, experiment)?;
    let entries =
        std::fs::read_dir(&folder).map_err(|source| Error::Read { path: folder.clone(), source })?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix) && name.ends_with(".csv")).collect();
    names.sort();
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// The folder of a subject, if it is there; `experiment` would make it.
fn folder(results: &Path, subject: &str, experiment: &'static str) -> Result<PathBuf, Error> {
    if subject.is_empty() || subject.starts_with('.') || subject.contains(['/', '\\']) {
        return Err(Error::SubjectName(subject.to_owned()));
    }
    let folder = results.join(subject);
    if !folder.is_dir() {
        let (subject, known) = (subject.to_owned(), known_subjects(results)?);
        return Err(Error::UnknownSubject { subject, results: results.to_owned(), known, experiment });
    }
    Ok(folder)
}

fn known_subjects(results: &Path) -> Result<String, Error> {
    let names = subjects(results)?;
    Ok(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

/// Names of the folders in `results`, sorted; none if it does not exist.
pub(crate) fn subjects(results: &Path) -> Result<Vec<String>, Error> {
    let entries = match std::fs::read_dir(results) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::Read { path: results.to_owned(), source }),
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
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
    let scores = [("base_score", row.base_score), ("score", row.score), ("score_delta", row.score_delta)];
    let p_values = [
        ("p_value", row.p_value),
        ("p_holm", row.p_holm),
        ("p_benjamini_hochberg", row.p_benjamini_hochberg),
        ("p_unpaired_t", row.p_unpaired_t),
        ("p_mcnemar", row.p_mcnemar),
    ];
    implausible(&scores, &p_values).map_or(Ok(()), |(column, found, range)| fault(column, found, range))
}

/// The first score or p-value that cannot be: its column, its value, and what is allowed.
pub(crate) fn implausible(
    scores: &[(&'static str, f64)],
    p_values: &[(&'static str, Option<f64>)],
) -> Option<(&'static str, f64, &'static str)> {
    let score = scores.iter().find(|(_, value)| !(-1e9..=1e9).contains(value));
    let score = score.map(|&(column, value)| (column, value, "a finite number of points"));
    let p_value = || {
        let present = p_values.iter().filter_map(|&(column, value)| Some((column, value?)));
        let (column, value) = present.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value))?;
        Some((column, value, "0 to 1 or empty"))
    };
    score.or_else(p_value)
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
        let impossible = AblationRow { p_holm: Some(1.5), ..row("self", 1, 1, 1.0) };
        assert!(message(vec![impossible]).contains("p_holm of self:1:1 is 1.5"));
        let impossible = AblationRow { p_mcnemar: Some(-0.5), ..row("self", 1, 1, 1.0) };
        assert!(message(vec![impossible]).contains("p_mcnemar of self:1:1 is -0.5"));
        assert!(message(vec![]).contains("holds no rows yet"));
    }
}
