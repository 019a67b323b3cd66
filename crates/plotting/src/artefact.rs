//! What an artefact is: a table or a figure, or some that belong together.
use std::path::PathBuf;

use charts::write::Sheet;
use findings::{BestHeads, LeftOut, Pair, Result, ResultFile, Source, experiment};

use crate::view::Asked;

/// Which results an artefact is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    /// Those of an experiment, of which a command of its own draws one file.
    Each(&'static str),
    /// The same where several files stand beside each other, all of which are drawn.
    Every(&'static str),
    /// Sweeps over segments that have groups.
    Groups,
    /// Comparisons of two splits.
    Pairs,
    /// The best heads of the layers.
    Best {
        /// Whether they were chosen on another split than the one that is reported.
        other_split: bool,
    },
}

impl Reads {
    /// The files for everything that there is, of which there may be none, or those that a single command draws.
    pub fn files(self, source: &Source, asked: &Asked<'_>) -> Result<Vec<ResultFile>> {
        let each = |experiment| {
            if asked.is_all { source.all(experiment) } else { Ok(vec![source.one(experiment)?]) }
        };
        match self {
            Self::Each(experiment) => each(experiment),
            Self::Every(experiment) => {
                let files = source.all(experiment)?;
                if files.is_empty() { each(experiment) } else { Ok(files) }
            }
            Self::Groups => {
                let is_meant = |file: &ResultFile| !asked.is_all || file.groups().is_some();
                Ok(each(experiment::SWEEP)?.into_iter().filter(is_meant).collect())
            }
            Self::Pairs if asked.is_all => each(experiment::PAIR),
            Self::Pairs => Pair::files(source, asked.against),
            Self::Best { other_split } if asked.is_all => BestHeads::files(source, other_split),
            Self::Best { other_split: false } => each(experiment::BEST_HEADS),
            Self::Best { other_split: true } => BestHeads::largest_files(source),
        }
    }
}

/// What a command takes beside what all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// The attention types to show.
    Attention,
    /// The same, and whether Figure 1 is drawn too.
    AttentionAndFigure,
    /// The second split of a comparison.
    Against,
}

/// What artefacts of a report stand under one heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after its heading")]
pub enum Chapter {
    SingleHeads,
    BestHeads,
    MoreAndMore,
    Orders,
    Functions,
    Gates,
    OtherData,
    Speed,
    Training,
}

impl Chapter {
    /// With their headings, in the order of a report.
    pub const ALL: [(Self, &str); 9] = [
        (Self::SingleHeads, "Single heads"),
        (Self::BestHeads, "One head of a layer"),
        (Self::MoreAndMore, "More and more heads"),
        (Self::Orders, "Agreement of orders"),
        (Self::Functions, "What heads do"),
        (Self::Gates, "Gates that learn to close"),
        (Self::OtherData, "Other data"),
        (Self::Speed, "Speed"),
        (Self::Training, "During training"),
    ];
}

pub(crate) type Draw = fn(ResultFile, &Asked<'_>, &mut LeftOut) -> Result<Vec<Sheet>>;

/// One table or figure, or some that belong together.
pub struct Artefact {
    /// The command that draws it.
    pub name: &'static str,
    /// What measures it first.
    pub recipe: &'static str,
    /// Where it stands in a report.
    pub chapter: Chapter,
    /// What it shows.
    pub about: &'static str,
    pub(crate) reads: Reads,
    /// How what it reads is drawn, file by file.
    pub(crate) draw: Draw,
    pub(crate) options: Options,
}

/// What most artefacts do without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Another name of its command.
    pub alias: Option<&'static str>,
    /// More on what it shows; may be empty.
    pub detail: &'static str,
    /// What its command takes beside what all do.
    pub takes: Takes,
}

impl Options {
    pub const NONE: Self = Self { alias: None, detail: "", takes: Takes::Nothing };
}

impl Artefact {
    /// What it shows, with all details.
    pub fn described(&self) -> String {
        let Self { about, options: Options { detail, .. }, .. } = self;
        if detail.is_empty() { (*about).to_owned() } else { format!("{about}; {detail}") }
    }

    /// What is drawn of all files that are meant, each sheet with its folder; absent if there was no such file. Sheets of one
    /// folder and name share their files, as those of heads that were chosen on several splits.
    pub fn sheets(
        &self,
        source: &Source,
        asked: &Asked<'_>,
        left_out: &mut LeftOut,
    ) -> Result<Option<Vec<(PathBuf, Sheet)>>> {
        let (mut sheets, mut has_any) = (Vec::<(PathBuf, Sheet)>::new(), false);
        let files = self.reads.files(source, asked);
        let files = if asked.is_all { left_out.keep(files).unwrap_or_default() } else { files? };
        for file in files {
            let folder = file.path.with_file_name("figures");
            let drawn = (self.draw)(file, asked, left_out);
            let Some(drawn) = (if asked.is_all { left_out.keep(drawn) } else { Some(drawn?) }) else {
                continue;
            };
            has_any = true;
            for mut sheet in drawn {
                let mut there = sheets.iter_mut();
                match there.find(|(other, there)| *other == folder && there.stem == sheet.stem) {
                    Some((_, there)) => there.tables.append(&mut sheet.tables),
                    None => sheets.push((folder.clone(), sheet)),
                }
            }
        }
        Ok(has_any.then_some(sheets))
    }
}
