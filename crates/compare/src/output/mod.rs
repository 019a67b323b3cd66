//! Prints a report as a table, as JSON, and as a page with a forest plot.
mod plot;

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use words::{bare_p, fixed, signed};

use crate::Error;
use crate::verdict::{Report, Row, Verdict};

/// Label of the row that averages all tasks.
const MEAN: &str = "mean over tasks";

const HEADINGS: [&str; 8] =
    ["documents", "first", "this", "difference", "95% interval", "p", "verdict", "to decide"];

impl Report {
    /// True if each row must name its run.
    fn has_several(&self) -> bool {
        self.runs.len() > 2
    }

    fn label(&self, row: &Row) -> String {
        let task = row.task.as_deref().unwrap_or(MEAN);
        match (task, self.has_several()) {
            ("", _) => row.run.clone(),
            (task, true) => format!("{task}: {}", row.run),
            (task, false) => task.to_owned(),
        }
    }

    /// Returns the margin, or the smallest and the largest if tasks differ.
    fn margins(&self) -> String {
        let by_size = |one: &&Row, other: &&Row| one.margin.total_cmp(&other.margin);
        let shown = |row: Option<&Row>| row.map(|row| fixed(row.margin, row.digits)).unwrap_or_default();
        let ends = [self.rows.iter().min_by(by_size), self.rows.iter().max_by(by_size)].map(shown);
        match ends {
            [low, high] if low == high => low,
            [low, high] => format!("{low} to {high}, depending on the task,"),
        }
    }

    /// Returns the sentences below the table.
    fn notes(&self) -> Vec<String> {
        let [first, second] = [&self.runs[0], &self.runs[1]];
        let what = if self.has_several() { "runs are compared with" } else { "compared with" };
        let mut notes = vec![format!("{} {what} {first}", if self.has_several() { "All" } else { second })];
        let better = if self.lower_is_better { "lower" } else { "higher" };
        notes.push(format!(
            "{}; {better} is better; a loss of at most {} is tolerated",
            self.metrics().join(", "),
            self.margins()
        ));
        let families = [
            (self.has_several(), "runs (max-T)"),
            (
                self.tasks() > 1,
                if self.has_several() { "tasks (Holm, for each run)" } else { "tasks (Holm)" },
            ),
        ];
        let over: Vec<&str> =
            families.into_iter().filter(|(is_adjusted, _)| *is_adjusted).map(|(_, over)| over).collect();
        if !over.is_empty() {
            notes.push(format!("p is adjusted for all {}", over.join(" and ")));
        }
        if self.has_several() {
            notes.push("intervals and verdicts hold for all runs simultaneously".to_owned());
        }
        let missing: usize =
            self.rows.iter().filter(|row| row.task.is_some()).map(|row| row.missing).max().unwrap_or(0);
        if missing > 0 {
            notes.push(format!(
                "at most {} left out per task because a run lacks them",
                words::count(missing, "document")
            ));
        }
        notes
    }

    fn tasks(&self) -> usize {
        self.rows.iter().filter(|row| row.task.is_some()).count() / (self.runs.len() - 1)
    }

    fn metrics(&self) -> Vec<String> {
        let mut metrics: Vec<String> = Vec::new();
        for row in self.rows.iter().filter(|row| row.task.is_some()) {
            if !metrics.contains(&row.metric) {
                metrics.push(row.metric.clone());
            }
        }
        metrics
    }
}

fn cells(row: &Row, has_several: bool) -> [String; 8] {
    let interval = row
        .ends(has_several)
        .map(|(low, high)| format!("{} to {}", signed(low, row.digits), signed(high, row.digits)));
    // a run that is still undecided although it has this many documents is probably not as good: more would not help
    let is_open = |documents: &f64| row.verdict == Verdict::Undecided && *documents > row.documents as f64;
    let to_decide = row.documents_to_decide.filter(is_open);
    [
        row.documents.to_string(),
        fixed(row.base, row.digits),
        fixed(row.score, row.digits),
        signed(row.difference, row.digits),
        interval.unwrap_or_default(),
        row.p_adjusted.map(bare_p).unwrap_or_default(),
        row.verdict.name().to_owned(),
        to_decide.map(|documents| format!("{documents:.0}")).unwrap_or_default(),
    ]
}

pub(crate) fn table(report: &Report) -> String {
    let line = |label: String, cells: [String; 8]| {
        [label].into_iter().chain(cells).map(|cell| words::one_line(&cell))
    };
    let headings = line(if report.tasks() > 1 { "task" } else { "" }.to_owned(), HEADINGS.map(str::to_owned));
    let mut lines: Vec<Vec<String>> = vec![headings.collect()];
    lines.extend(
        report.rows.iter().map(|row| line(report.label(row), cells(row, report.has_several())).collect()),
    );
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    text.push('\n');
    for note in report.notes() {
        let _ = writeln!(text, "{}.", words::one_line(&note));
    }
    text
}

/// Returns the report as JSON, with numbers at full precision.
pub(crate) fn json(report: &Report) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(report).map_err(|error| Error::Invalid(error.to_string()))?;
    Ok(text + "\n")
}

/// Returns a self-contained HTML page with a forest plot.
pub(crate) fn page(report: &Report) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let fault = |error: minijinja::Error| Error::Invalid(error.to_string());
    environment.add_template("page.html", include_str!("page.html")).map_err(fault)?;
    let rows: Vec<(String, [String; 8])> =
        report.rows.iter().map(|row| (report.label(row), cells(row, report.has_several()))).collect();
    let page = context! {
        font => BASE64_STANDARD.encode(charts::FONT),
        title => format!("{} compared with {}", report.runs[1..].join(", "), report.runs[0]),
        headings => HEADINGS,
        rows => rows,
        notes => report.notes(),
        plot => charts::svg(&plot::forest(report)),
    };
    environment.get_template("page.html").and_then(|template| template.render(page)).map_err(fault)
}
