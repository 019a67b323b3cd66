//! Everything of one subject, and all subjects beside each other, as sheets of tables and charts: what a report is made of. Faults
//! of one file keep nothing else from being shown.
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use charts::table::{Cell, Table};
use charts::write::Sheet;
use findings::error::LeftOut;
use findings::judge::{Adjustment, Criterion};
use findings::paper::Paper;
use findings::source::{self, Folders, ResultFile, Source, experiment};
use findings::speed::Speed;
use findings::subject::Subject;
use findings::tasks;
use plotting::artefact::Artefact;
use plotting::registry::ARTEFACTS;
use plotting::view::{Asked, Context};
use records::signature::Testing;

use crate::view::all_heads::{self, HeadMap, Measure};
use crate::view::{claim, comparison, training_log, verdicts};

/// An artefact of the registry with what is drawn of it; no sheets if there are no results for it.
pub type Section = (&'static Artefact, Vec<Sheet>);

/// One comparison of all subjects: a short name, what it shows, and that.
pub type Comparison = (&'static str, &'static str, Sheet);

/// What a signature says of the numbers of a file, in words; absent where it says nothing.
#[derive(Debug, Default)]
pub struct Facts {
    /// That there is none.
    pub signature: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// What was scored, with its checksum.
    pub data: Option<String>,
    /// The metric.
    pub score: Option<String>,
    /// How differences were tested.
    pub tests: Option<String>,
    /// Seed of random choices.
    pub seed: Option<String>,
    /// Checksum of the weights.
    pub weights: Option<String>,
    /// The command of the last run.
    pub command: Option<String>,
    /// The commit that it was built from.
    pub commit: Option<String>,
    /// The machines of all runs.
    pub machine: Option<String>,
}

/// The heads of a subject: a table of everything that is known of each, and maps of them.
#[derive(Debug)]
pub struct Heads {
    /// One row for each head.
    pub table: Table,
    /// What maps can show.
    pub measures: Vec<Measure>,
    /// One map for each attention type.
    pub maps: Vec<HeadMap>,
    /// Places of the segments that the table names, counted from 1.
    pub segments: Vec<usize>,
    /// The split of these segments.
    pub split: Option<String>,
    /// SHA-256 of that split, as the signature has it.
    pub data: Option<String>,
}

/// Everything of one subject.
pub struct Gathered {
    /// What was measured; its name is the folder of its results.
    pub subject: Subject,
    /// The same name as a reader should see it.
    pub title: String,
    /// What was found, in sentences without full stops.
    pub claim: Vec<String>,
    /// What made the sweep over single heads or, without one, the pruning curves; absent where neither was measured.
    pub facts: Option<Facts>,
    /// Whether it is a language model, of which the paper has no numbers.
    pub is_language: bool,
    /// The paper's numbers beside ours.
    pub verdicts: Option<Table>,
    /// All heads.
    pub heads: Option<Heads>,
    /// How it was trained.
    pub training: Option<Sheet>,
    /// Everything that the registry draws, in its order; those without results too.
    pub sections: Vec<Section>,
    /// Files that could not be read or shown, or only in part, with the reason.
    pub faults: Vec<String>,
}

impl Gathered {
    /// Whether anything of it could be read.
    pub fn has_any(&self) -> bool {
        self.heads.is_some()
            || self.training.is_some()
            || self.sections.iter().any(|(_, sheets)| !sheets.is_empty())
    }
}

/// Reads results.
pub struct Reader {
    folders: Folders,
    criterion: Criterion,
    /// The published numbers, if they are there.
    pub paper: Option<Paper>,
}

impl Reader {
    /// Of the results of all subjects in a folder, and of the published numbers in another, if that is there.
    ///
    /// # Errors
    /// If the published numbers cannot be read.
    pub fn new(folders: Folders, paper: &Path, alpha: f64) -> Result<Self> {
        let criterion = Criterion { alpha, adjustment: Adjustment::None };
        Ok(Self { folders, criterion, paper: Paper::read_if_there(paper)? })
    }

    fn context(&self) -> Context<'_> {
        Context { criterion: self.criterion, paper: self.paper.as_ref() }
    }

    /// Everything of one subject. What cannot be read is among its faults.
    ///
    /// # Errors
    /// If there is no such subject.
    pub fn gather(&self, name: &str) -> Result<Gathered> {
        source::folder(&self.folders.results, name, experiment::SWEEP)?;
        let (source, context) = (Source::subject(&self.folders, name), self.context());
        let mut left_out = LeftOut { notes_every_fault: true, ..LeftOut::default() };
        let asked = Asked::everything(context, &self.folders);
        let mut sections = Vec::new();
        for artefact in ARTEFACTS {
            let sheets = artefact.sheets(&source, &asked, &mut left_out);
            let sheets = left_out.keep(sheets)?.flatten().unwrap_or_default();
            // Tables that are not printed are part of another sheet.
            let shown = sheets.into_iter().map(|(_, sheet)| match sheet.is_printed {
                true => sheet,
                false => Sheet { tables: Vec::new(), ..sheet },
            });
            sections.push((artefact, shown.filter(|sheet| !sheet.is_empty()).collect()));
        }
        let subject = Subject::read(&self.folders, name, &mut left_out);
        let mut subject = left_out.keep(subject)?.unwrap_or_default();
        name.clone_into(&mut subject.name);
        subject.read_heads(&source, &mut left_out)?;
        let speed = source.one(experiment::SPEED).and_then(Speed::of_file).ok();
        let file = subject.files().next();
        left_out.faults.extend(subject.files().filter_map(ResultFile::remark));
        left_out.faults.sort();
        Ok(Gathered {
            title: self.folders.kind(name).shown(name),
            claim: claim::sentences(&subject, context),
            facts: file.map(facts),
            is_language: file.is_some_and(ResultFile::is_language),
            verdicts: verdicts::table(&subject, speed.as_ref(), context),
            heads: self.heads(&subject),
            training: subject.training.as_ref().map(training_log::sheet),
            sections,
            faults: left_out.faults,
            subject,
        })
    }

    fn heads(&self, subject: &Subject) -> Option<Heads> {
        let table = all_heads::table(subject, self.criterion)?;
        let (measures, maps) = all_heads::maps(subject, self.criterion);
        let segments: BTreeSet<usize> =
            subject.segments.values().flatten().map(|change| change.segment).collect();
        let identity = subject.sweep.as_ref().and_then(|sweep| sweep.file.identity());
        let data = identity.and_then(|identity| identity.data.get(&identity.split).cloned());
        let split = identity.map(|identity| identity.split.clone());
        Some(Heads { table, measures, maps, segments: segments.into_iter().collect(), split, data })
    }

    /// The base, how many heads change it significantly after adjustment, and the share that can go.
    pub fn key_numbers(&self, gathered: &Gathered) -> [Cell; 3] {
        claim::key_numbers(&gathered.subject, self.context())
    }

    /// All subjects beside each other, and what could not be compared.
    ///
    /// # Errors
    /// If a figure cannot be drawn.
    pub fn comparison(&self, all: Vec<Gathered>) -> Result<(Vec<Comparison>, Vec<String>)> {
        let mut left_out = LeftOut { notes_every_fault: true, ..LeftOut::default() };
        let subjects: Vec<_> = all.into_iter().map(|gathered| gathered.subject).collect();
        let pairings = tasks::pairings(&subjects, &mut left_out)?;
        let drawn = [
            ("shares", "How many heads can go?", comparison::shares(&subjects, self.context())),
            ("effects", "How much do single heads do?", comparison::effects(&subjects, self.context())),
            ("tasks", "Do the same heads matter for several tasks?", comparison::tasks(&pairings)),
        ];
        let drawn = drawn.into_iter().filter_map(|(name, about, sheet)| Some((name, about, sheet?)));
        Ok((drawn.collect(), left_out.faults))
    }
}

/// What the signature says of a file.
fn facts(file: &ResultFile) -> Facts {
    let Some(signature) = &file.signature else {
        return Facts { signature: Some("none beside the file".to_owned()), ..Facts::default() };
    };
    let (identity, run) = (&signature.identity, signature.runs.last());
    let data = identity.data.get(&identity.split).map(|sum| format!(" (sha256 {sum})")).unwrap_or_default();
    let tests = |Testing { resamples, seed, margin_percent }| {
        format!("{resamples} resamples, seed {seed}, margin {margin_percent} %")
    };
    let commit = run.and_then(|run| {
        let changed = if run.modified == Some(true) { ", with changes that are not committed" } else { "" };
        Some(format!("{}{changed}", run.commit.as_ref()?))
    });
    Facts {
        file: Some(file.path.display().to_string()),
        data: file.scored().map(|scored| scored + &data),
        score: Some(identity.metric.clone()).filter(|metric| !metric.is_empty()),
        tests: signature.testing.map(tests),
        seed: identity.seed.map(|seed| seed.to_string()),
        weights: identity.weights.as_ref().map(|sum| format!("sha256 {sum}")),
        command: run.map(|run| run.command.join(" ")),
        commit,
        machine: file.machine(),
        ..Facts::default()
    }
}
