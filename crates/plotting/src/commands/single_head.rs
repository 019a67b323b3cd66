//! Table 1 and Figure 1.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plotting::attention::Selection;
use plotting::figure::canvas::Format;
use plotting::figure1::{self, figure1};
use plotting::left_out::LeftOut;
use plotting::paper::Published;
use plotting::significance::Criterion;
use plotting::sweep::Sweep;
use plotting::table1::{self, table1};

use super::output::{figures_folder, paper_folder, print_tables, report, write_tables};
use crate::args::{AllArgs, FigureArgs, SourceArgs, TableArgs};

/// The table, printed.
pub fn run_table1(args: &TableArgs) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    let selection = args.selection.attention.unwrap_or_default();
    drawing.draw_table1(args.criterion.criterion(), selection, true)
}

/// The figure.
pub fn run_figure1(args: &FigureArgs) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    let selection = args.selection.attention.unwrap_or_default();
    drawing.draw_figure1(&args.format.format, selection)
}

/// The paper's table and figure, and those of all attention types where there are several; says whether there are results.
pub fn run_present(args: &AllArgs, paper: Option<&Path>, left_out: &mut LeftOut) -> Result<bool> {
    let sweep = Sweep::read(&args.source.results, &args.source.subject);
    let Some(sweep) = left_out.keep_if_there(sweep)? else { return Ok(false) };
    let drawing = Drawing::new(sweep, &args.source, paper)?;
    let present = drawing.sweep.attentions();
    let shows_all = Selection::Paper.of(&present) == present;
    let selections = if shows_all { vec![Selection::Paper] } else { vec![Selection::Paper, Selection::All] };
    if shows_all {
        remove_all_types(&drawing.folder)?;
    }
    for (index, &selection) in selections.iter().enumerate() {
        let is_last = index + 1 == selections.len();
        drawing.draw_table1(args.criterion.criterion(), selection, is_last)?;
        drawing.draw_figure1(&args.format.format, selection)?;
    }
    Ok(true)
}

/// Takes away what an earlier run drew of attention types that are no longer among the rows.
fn remove_all_types(folder: &Path) -> Result<()> {
    for file in ["table1-all.md", "table1-all.tex", "figure1-all.svg", "figure1-all.png"] {
        match std::fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot remove `{}`", folder.join(file).display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What tables and figures are made of, and where they go.
struct Drawing {
    sweep: Sweep,
    published: Option<Published>,
    folder: PathBuf,
}

impl Drawing {
    fn read(source: &SourceArgs, paper: Option<&Path>) -> Result<Self> {
        Self::new(Sweep::read(&source.results, &source.subject)?, source, paper)
    }

    fn new(sweep: Sweep, source: &SourceArgs, paper: Option<&Path>) -> Result<Self> {
        Ok(Self { sweep, published: paper.map(Published::read).transpose()?, folder: figures_folder(source) })
    }

    fn draw_table1(&self, criterion: Criterion, selection: Selection, print: bool) -> Result<()> {
        let present = self.sweep.attentions();
        let tables = selection
            .of(&present)
            .into_iter()
            .map(|attention| table1(&self.sweep, attention, criterion, self.published.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        if print {
            print_tables(&tables)?;
        }
        write_tables(&self.folder, &selection.file_stem(table1::FILE_NAMES, &present), &tables)
    }

    fn draw_figure1(&self, formats: &[Format], selection: Selection) -> Result<()> {
        let figure = figure1(&self.sweep, selection, self.published.as_ref())?;
        let stem = selection.file_stem(figure1::FILE_NAMES, &self.sweep.attentions());
        report(&figure.write(&self.folder, &stem, formats)?);
        Ok(())
    }
}
