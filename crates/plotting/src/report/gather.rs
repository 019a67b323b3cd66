//! Gathers everything on one setup, and comparisons of all setups, for reports. Faults in one file do not affect others.
use std::path::PathBuf;

use crate::artefact::Artefact;
use crate::artefacts::ARTEFACTS;
use crate::findings::{
    Adjustment, Criterion, Folders, LeftOut, ResultFile, Source, Speed, SubjectFile, SubjectResults,
    experiment, source, tasks,
};
use crate::view::Request;
use anyhow::Result;
use charts::table::{Cell, Table};
use charts::write::Sheet;
use records::signature::Testing;

use crate::report::samples;
use crate::report::view::all_heads::Heads;
use crate::report::view::{claim, comparison, training_log, verdicts};

/// An artefact with its sheets; empty without results.
pub type Section = (&'static Artefact, Vec<Sheet>);

/// A comparison of all setups: short name, description, and sheet.
pub type Comparison = (&'static str, &'static str, Sheet);

/// Named facts from the signature of a file; empty without a file.
pub type Facts = Vec<(&'static str, String)>;

/// Everything on one setup.
pub struct Gathered {
    /// Results; their name is that of the folder.
    pub subject: SubjectResults,
    /// The setup file.
    pub described: SubjectFile,
    /// Findings as sentences without full stops.
    pub claim: Vec<String>,
    /// The base score, verdicts on single heads, and the share that can be masked.
    pub key_numbers: [Cell; 5],
    /// Facts on the sweep or, without one, on the pruning curves.
    pub facts: Facts,
    /// `true` for a language model, for which the paper has no numbers.
    pub is_language: bool,
    /// Comparison with the paper's numbers.
    pub verdicts: Option<Table>,
    pub heads: Option<Heads>,
    /// Texts of the segments that heads change most; `None` if they may not be shown.
    pub texts: Option<Table>,
    /// Training log.
    pub training: Option<Sheet>,
    /// Everything that artefacts draw, in order, including those without results.
    pub sections: Vec<Section>,
    /// Files that could not be read or shown completely, with reasons.
    pub faults: Vec<String>,
}

impl Gathered {
    /// Returns the displayed name of the setup.
    pub fn title(&self) -> String {
        self.described.kind.shown(&self.subject.name)
    }

    /// `true` if anything could be read.
    pub fn has_any(&self) -> bool {
        self.heads.is_some()
            || self.training.is_some()
            || self.sections.iter().any(|(_, sheets)| !sheets.is_empty())
    }
}

pub struct Reader {
    folders: Folders,
    criterion: Criterion,
    /// Folder of the user's own texts; `None` if they may not be shown.
    data: Option<PathBuf>,
}

impl Reader {
    pub fn new(folders: Folders, data: Option<PathBuf>, alpha: f64) -> Self {
        Self { folders, criterion: Criterion { alpha, adjustment: Adjustment::None }, data }
    }

    /// Gathers everything on one setup, which must exist; unreadable files are among its faults.
    pub fn gather(&self, name: &str) -> Result<Gathered> {
        source::folder(&self.folders.results, name, experiment::SWEEP)?;
        let mut described = SubjectFile::read(&self.folders.experiments, name);
        described.fault = described.fault.map(|fault| format!("setup file: {fault}"));
        let (source, criterion) = (Source::of_kind(&self.folders, name, described.kind), self.criterion);
        let mut left_out = LeftOut::default();
        let request = Request::everything(criterion, &self.folders);
        let mut sections = Vec::new();
        for artefact in ARTEFACTS {
            let sheets = artefact.sheets(&source, &request, &mut left_out);
            let sheets = left_out.keep(sheets).flatten().unwrap_or_default();
            // tables that are not printed are part of another sheet
            let shown = sheets.into_iter().map(|(_, sheet)| {
                if sheet.is_printed { sheet } else { Sheet { tables: Vec::new(), ..sheet } }
            });
            sections.push((artefact, shown.filter(|sheet| !sheet.is_empty()).collect()));
        }
        let mut subject = SubjectResults::read(&self.folders, name, &mut left_out);
        subject.read_heads(&source, &mut left_out);
        let speed = source.one(experiment::SPEED).and_then(Speed::of_file).ok();
        let curves = subject.pruning.as_ref().map(|pruning| &pruning.results.file);
        let file = subject.sweep.as_ref().map(|sweep| &sweep.file).or(curves).or(subject.files().next());
        left_out.faults.extend(subject.files().filter_map(ResultFile::remark));
        let texts = samples::table(&subject, &described, self.data.as_deref()).unwrap_or_else(|fault| {
            left_out.faults.push(format!("{fault:#}"));
            None
        });
        left_out.faults.sort();
        Ok(Gathered {
            described,
            claim: claim::sentences(&subject, criterion),
            key_numbers: claim::key_numbers(&subject, criterion),
            facts: file.map_or_else(Facts::new, facts),
            is_language: file.is_some_and(ResultFile::is_language),
            verdicts: verdicts::table(&subject, speed.as_ref(), criterion),
            heads: Heads::of(&subject, self.criterion),
            texts,
            training: subject.training.as_ref().map(training_log::sheet),
            sections,
            faults: left_out.faults,
            subject,
        })
    }

    /// Compares all setups, and returns what could not be compared.
    pub fn comparison(&self, all: Vec<Gathered>) -> (Vec<Comparison>, Vec<String>) {
        let mut left_out = LeftOut::default();
        let subjects: Vec<_> = all.into_iter().map(|gathered| gathered.subject).collect();
        let pairings = tasks::pairings(&subjects, &mut left_out);
        let drawn = [
            ("shares", "How many heads can be masked?", comparison::shares(&subjects, self.criterion)),
            ("effects", "What does masking a head cost?", comparison::effects(&subjects, self.criterion)),
            ("tasks", "Do the same heads matter for several tasks?", comparison::tasks(&pairings)),
        ];
        let drawn = drawn.into_iter().filter_map(|(name, about, sheet)| Some((name, about, sheet?)));
        (drawn.collect(), left_out.faults)
    }
}

/// Returns the command that repeats a measurement, for all shards at once.
fn command(words: &[String]) -> String {
    let (mut kept, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        if word == "--shard" {
            words.next();
        } else if !word.starts_with("--shard=") {
            kept.push(quoted(word));
        }
    }
    kept.join(" ")
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn facts(file: &ResultFile) -> Facts {
    let Some(signature) = &file.signature else {
        return vec![("Signature", "no file next to the results".to_owned())];
    };
    let (identity, run) = (&signature.identity, signature.runs.last());
    let data = identity.data.get(&identity.split).map(|sum| format!(" (sha256 {sum})")).unwrap_or_default();
    let tests = |Testing { resamples, seed, margin_percent, .. }| {
        format!("{resamples} swaps, seed {seed}, margin {margin_percent}%")
    };
    let commit = run.and_then(|run| {
        let changed = if run.modified == Some(true) { ", with uncommitted changes" } else { "" };
        Some(format!("{}{changed}", run.commit.as_ref()?))
    });
    let facts = [
        ("File", Some(file.path.display().to_string())),
        ("Data", file.scored().map(|scored| scored + &data)),
        ("Score", Some(identity.metric.clone()).filter(|metric| !metric.is_empty())),
        ("Tests", signature.testing.map(tests)),
        ("Seed", identity.seed.map(|seed| seed.to_string())),
        ("Weights", identity.weights.as_ref().map(|sum| format!("sha256 {sum}"))),
        ("Command", run.map(|run| command(&run.command))),
        ("Commit", commit),
        ("Machine", file.machine()),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted_and_measure_all_shards() {
        let of = |words: &[&str]| command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["ablate-one", "x", "--shard", "2/8", "--limit", "9"]), "ablate-one x --limit 9");
        assert_eq!(of(&["ablate-one", "--shard=2/8", "--data", "my data"]), "ablate-one --data 'my data'");
        assert_eq!(of(&["a", "x; y", "it's", ""]), r"a 'x; y' 'it'\''s' ''");
    }
}
