//! Artefacts: tables and figures that one command draws.
use std::path::PathBuf;

use crate::findings::{LeftOut, Result, ResultFile, Source};
use charts::write::Sheet;

use crate::view::Request;

/// Results that an artefact is drawn from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    /// Results of an experiment, of which a single command draws one file.
    Each(&'static str),
    /// Files chosen by a function.
    Files(fn(&Source, &Request<'_>) -> Result<Vec<ResultFile>>),
}

impl Reads {
    /// Returns all files, possibly none, or only those that a single command draws.
    fn files(self, source: &Source, request: &Request<'_>) -> Result<Vec<ResultFile>> {
        match self {
            Self::Each(experiment) if request.is_all => source.all(experiment),
            Self::Each(experiment) => Ok(vec![source.one(experiment)?]),
            Self::Files(files) => files(source, request),
        }
    }
}

/// Headings of a report.
#[expect(missing_docs, reason = "each is named after its heading")]
pub mod chapter {
    pub const SINGLE_HEADS: &str = "Single heads";
    pub const BEST_HEADS: &str = "One head per layer";
    pub const MANY_HEADS: &str = "Many heads at once";
    pub const ORDERS: &str = "Agreement of rankings";
    pub const FUNCTIONS: &str = "What heads do";
    pub const GATES: &str = "Learned gates";
    pub const OTHER_DATA: &str = "Other data";
    pub const SPEED: &str = "Speed";
    pub const TRAINING: &str = "During training";
    /// All headings, in report order.
    pub const ALL: [&str; 9] =
        [SINGLE_HEADS, BEST_HEADS, MANY_HEADS, ORDERS, FUNCTIONS, GATES, OTHER_DATA, SPEED, TRAINING];
}

pub(crate) type Draw = fn(ResultFile, &Request<'_>, &mut LeftOut) -> Result<Vec<Sheet>>;

/// A table or figure, or several that belong together.
pub struct Artefact {
    /// The command that draws it.
    pub name: &'static str,
    /// The recipe that measures its results.
    pub recipe: &'static str,
    /// Its heading in a report.
    pub chapter: &'static str,
    /// A description for help texts and reports.
    pub about: &'static str,
    reads: Reads,
    draw: Draw,
    pub(crate) alias: Option<&'static str>,
    detail: Option<&'static str>,
    /// Additional options of the command: `attention`, `with_figure`, `against`.
    pub(crate) options: &'static [&'static str],
}

impl Artefact {
    pub(crate) const fn new(
        [name, recipe, chapter]: [&'static str; 3],
        about: &'static str,
        reads: Reads,
        draw: Draw,
    ) -> Self {
        Self { name, recipe, chapter, about, reads, draw, alias: None, detail: None, options: &[] }
    }

    /// Adds another name of the command.
    pub(crate) const fn also(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Adds a detail to the full description.
    pub(crate) const fn detail(self, detail: &'static str) -> Self {
        Self { detail: Some(detail), ..self }
    }

    pub(crate) const fn options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// Returns the description with all details.
    pub fn described(&self) -> String {
        [self.about].into_iter().chain(self.detail).collect::<Vec<_>>().join("; ")
    }

    /// Draws all requested files, with their folders; merges sheets with equal folder and name. `None` if there was no file.
    pub fn sheets(
        &self,
        source: &Source,
        request: &Request<'_>,
        left_out: &mut LeftOut,
    ) -> Result<Option<Vec<(PathBuf, Sheet)>>> {
        let (mut sheets, mut has_any) = (Vec::<(PathBuf, Sheet)>::new(), false);
        let files = request.if_there(self.reads.files(source, request), left_out)?;
        for file in files.unwrap_or_default() {
            let folder = source.figures(&file);
            let drawn = (self.draw)(file, request, left_out);
            let Some(drawn) = (if request.is_all { left_out.keep(drawn) } else { Some(drawn?) }) else {
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
