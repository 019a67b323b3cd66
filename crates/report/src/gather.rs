//! Everything of one subject, and all subjects beside each other, as plain tables and drawn figures: what a report is made of.
//! Faults of one file keep nothing else from being shown.
mod tasks;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use charts::chart::Chart;
use charts::table::{Cell, Table};
use charts::write::Sheet;
use findings::error::LeftOut;
use findings::judge::{Adjustment, Criterion};
use findings::paper::Paper;
use findings::results::Results;
use findings::source::{self, ResultFile, Source, experiment};
use findings::speed::Speed;
use findings::subject::Subject;
use plotting::registry::{ARTEFACTS, Artefact, Asked, Selection};
use plotting::view::Context;
use records::TrainingRow;
use records::signature::Testing;

use crate::view::all_heads::{self, HeadMap, Measure};
use crate::view::{claim, comparison, training_log, verdicts};

/// A table, or a figure with the frames of a film beside it, if there are any.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Table(Table),
    Figure(Chart, Vec<Chart>),
}

/// What the registry draws under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The command of `plotting` that draws it.
    pub name: &'static str,
    /// The recipe that measures it first; none for comparisons of subjects.
    pub recipe: Option<&'static str>,
    /// What it shows.
    pub about: &'static str,
    /// Its tables and figures; none if there are no results for it.
    pub parts: Vec<Part>,
}

/// Something that a signature says, with its name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// What the signature has.
    pub value: String,
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
#[derive(Debug)]
pub struct Gathered {
    /// Its name, the folder of its results.
    pub name: String,
    /// The same as a reader should see it.
    pub title: String,
    /// What was found, in sentences without full stops.
    pub claim: Vec<String>,
    /// What made the sweep over single heads or, without one, the pruning curves.
    pub facts: Vec<Fact>,
    /// Whether it is a language model, of which the paper has no numbers.
    pub is_language: bool,
    /// The paper's numbers beside ours.
    pub verdicts: Option<Table>,
    /// All heads.
    pub heads: Option<Heads>,
    /// How it was trained.
    pub training: Vec<Part>,
    /// Everything that the registry draws, in its order; those without results too.
    pub sections: Vec<Section>,
    /// Files that could not be read or shown, or only in part, with the reason.
    pub faults: Vec<String>,
    subject: Subject,
    pretrained: Option<String>,
}

impl Gathered {
    /// Whether anything of it could be read.
    pub fn has_any(&self) -> bool {
        self.heads.is_some()
            || !self.training.is_empty()
            || self.sections.iter().any(|section| !section.parts.is_empty())
    }
}

/// Reads results.
#[derive(Debug)]
pub struct Reader {
    results: PathBuf,
    paper: Paper,
    has_paper: bool,
    criterion: Criterion,
}

impl Reader {
    /// Of the results of all subjects in a folder, and of the published numbers in another, if that is there.
    ///
    /// # Errors
    /// If the published numbers cannot be read.
    pub fn new(results: &Path, paper: &Path, alpha: f64) -> Result<Self> {
        let published = Paper::read_if_there(paper)?;
        let (has_paper, paper) = (published.is_some(), published.unwrap_or_default());
        let criterion = Criterion { alpha, adjustment: Adjustment::None };
        Ok(Self { results: results.to_owned(), paper, has_paper, criterion })
    }

    /// Whether the published numbers are there.
    pub fn has_paper(&self) -> bool {
        self.has_paper
    }

    /// Names of all subjects, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn subjects(&self) -> Result<Vec<String>> {
        source::subjects(&self.results)
    }

    fn context(&self) -> Context<'_> {
        Context { criterion: self.criterion, paper: &self.paper }
    }

    /// Everything of one subject. What cannot be read is among its faults.
    ///
    /// # Errors
    /// If there is no such subject.
    pub fn gather(&self, name: &str) -> Result<Gathered> {
        source::folder(&self.results, name, experiment::SWEEP)?;
        let (source, context) = (Source::subject(&self.results, name), self.context());
        let mut left_out = LeftOut { takes_all: true, ..LeftOut::default() };
        let (results, attention) = (&self.results, Selection::Paper);
        let asked = Asked { context, results, attention, against: None, is_all: true };
        let sections: Result<_> =
            ARTEFACTS.iter().map(|artefact| section(artefact, &source, &asked, &mut left_out)).collect();
        let subject = Subject::read(&self.results, name, &mut left_out);
        let mut subject = left_out.keep(subject)?.unwrap_or_default();
        subject.read_heads(&source, &mut left_out)?;
        let speed = source.one(experiment::SPEED).and_then(Speed::read_limited).ok();
        let log = left_out.keep_if_there(training(&source))?;
        let (training, pretrained) = log.unwrap_or_default();
        let file = subject.files().next();
        left_out.faults.extend(subject.files().filter_map(ResultFile::remark));
        left_out.faults.sort();
        left_out.faults.dedup();
        Ok(Gathered {
            name: name.to_owned(),
            title: findings::origin::name(name),
            claim: claim::sentences(&subject, context),
            facts: file.map(facts).unwrap_or_default(),
            is_language: file.is_some_and(ResultFile::is_language),
            verdicts: verdicts::table(&subject, speed.as_ref(), context),
            heads: self.heads(&subject),
            training,
            sections: sections?,
            faults: left_out.faults,
            subject,
            pretrained,
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

    /// The names of [`Self::key_numbers`].
    pub fn key_names() -> [&'static str; 3] {
        claim::KEY_NUMBERS
    }

    /// The base, how many heads change it significantly after adjustment, and the share that can go.
    pub fn key_numbers(&self, gathered: &Gathered) -> [Cell; 3] {
        claim::key_numbers(&gathered.subject, self.context())
    }

    /// All subjects beside each other, and what could not be compared.
    ///
    /// # Errors
    /// If a figure cannot be drawn.
    pub fn comparison(&self, all: Vec<Gathered>) -> Result<(Vec<Section>, Vec<String>)> {
        let mut left_out = LeftOut { takes_all: true, ..LeftOut::default() };
        let pairings = tasks::pairings(&all, &mut left_out)?;
        let subjects: Vec<_> = all.into_iter().map(|gathered| gathered.subject).collect();
        let (shares, effects) = (
            comparison::shares(&subjects, self.context()).unzip(),
            comparison::effects(&subjects, self.context()).unzip(),
        );
        let drawn = [
            ("shares", "How many heads can go?", shares),
            ("effects", "How much do single heads do?", effects),
            ("tasks", "Do the same heads matter for several tasks?", (comparison::tasks(&pairings), None)),
        ];
        let mut sections = Vec::new();
        for (name, about, (table, chart)) in drawn {
            let Some(table) = table else { continue };
            let parts = parts(chart, Vec::new(), [table]);
            sections.push(Section { name, recipe: None, about, parts });
        }
        Ok((sections, left_out.faults))
    }
}

/// One artefact of all its files.
fn section(
    artefact: &Artefact,
    source: &Source,
    asked: &Asked<'_>,
    left_out: &mut LeftOut,
) -> Result<Section> {
    let sheets = artefact.sheets(source, asked, left_out);
    let of_sheet = |(_, sheet): (PathBuf, Sheet)| {
        // Sheets that are not printed are part of one that is.
        parts(sheet.chart, sheet.frames, sheet.tables.into_iter().filter(|_| sheet.is_printed))
    };
    let sheets = left_out.keep(sheets)?.flatten().unwrap_or_default();
    let Artefact { name, recipe, about, .. } = *artefact;
    Ok(Section { name, recipe: Some(recipe), about, parts: sheets.into_iter().flat_map(of_sheet).collect() })
}

/// A figure, with the frames of a film if there are any, and tables.
fn parts(chart: Option<Chart>, frames: Vec<Chart>, tables: impl IntoIterator<Item = Table>) -> Vec<Part> {
    let figure = chart.map(|chart| Part::Figure(chart, frames));
    figure.into_iter().chain(tables.into_iter().map(Part::Table)).collect()
}

/// How a subject was trained, and the pretrained model that it began with, if any.
fn training(source: &Source) -> Result<(Vec<Part>, Option<String>)> {
    let file = source.one(experiment::TRAINING_LOG)?.with_experiment(experiment::TRAINING);
    let log = Results::<TrainingRow>::read(file)?;
    let pretrained = log.file.identity().and_then(|identity| {
        let name = identity.arguments.get("checkpoint")?.as_str()?.to_owned();
        identity.weights.is_some().then_some(name)
    });
    let chart = (log.rows.len() > 1).then(|| training_log::figure(&log));
    Ok((parts(chart, Vec::new(), [training_log::table(&log)]), pretrained))
}

/// What the signature says of a file: data, seed, commit, command, machine.
fn facts(file: &ResultFile) -> Vec<Fact> {
    let Some(signature) = &file.signature else {
        return vec![Fact { name: "Signature", value: "none beside the file".to_owned() }];
    };
    let (identity, run) = (&signature.identity, signature.runs.last());
    let data = identity.data.get(&identity.split).map(|sum| format!(" (sha256 {sum})")).unwrap_or_default();
    let testing = signature.testing.map(|Testing { resamples, seed, margin_percent }| {
        format!("{resamples} resamples, seed {seed}, margin {margin_percent} %")
    });
    let commit = run.and_then(|run| {
        let changed = if run.modified == Some(true) { ", with changes that are not committed" } else { "" };
        Some(format!("{}{changed}", run.commit.as_ref()?))
    });
    let facts = [
        ("File", Some(file.path.display().to_string())),
        ("Data", file.scored().map(|scored| scored + &data)),
        ("Score", Some(identity.metric.clone()).filter(|metric| !metric.is_empty())),
        ("Tests", testing),
        ("Seed", identity.seed.map(|seed| seed.to_string())),
        ("Weights", identity.weights.as_ref().map(|sum| format!("sha256 {sum}"))),
        ("Command", run.map(|run| run.command.join(" "))),
        ("Commit", commit),
        ("Machine", file.machine()),
    ];
    let fact = |(name, value): (_, Option<String>)| Some(Fact { name, value: words::one_line(&value?) });
    facts.into_iter().filter_map(fact).collect()
}
