//! Table 1 and Figure 1.
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use plotting::attention::Selection;
use plotting::figure::canvas::Format;
use plotting::figure1::{self, figure1};
use plotting::left_out::LeftOut;
use plotting::paper::Published;
use plotting::significance::Criterion;
use plotting::sweep::{EXPERIMENT, Sweep};
use plotting::table1::{self, table1};

use super::Setting;
use super::output::{paper_folder, print_tables, report, write_tables};
use crate::args::{Figure1Args, SourceArgs, Table1Args};

/// The table, printed, and the figure if it is asked for.
pub fn run_table1(args: &Table1Args) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    let selection = args.selection.attention.unwrap_or_default();
    drawing.draw_table1(args.criterion.criterion(), selection, true)?;
    if args.with_figure { drawing.draw_figure1(&args.format.format, selection) } else { Ok(()) }
}

/// The figure.
pub fn run_figure1(args: &Figure1Args) -> Result<()> {
    let drawing = Drawing::read(&args.source, paper_folder(&args.paper.paper))?;
    drawing.draw_figure1(&args.format.format, args.selection.attention.unwrap_or_default())
}

/// The paper's table and figure, and those of all attention types where there are several, of each file that is there; only
/// the first is printed. Says whether there are results.
pub fn run_present(setting: &Setting, left_out: &mut LeftOut) -> Result<bool> {
    let mut has_any = false;
    for file in setting.source.all(EXPERIMENT, EXPERIMENT)? {
        let Some(sweep) = left_out.keep(Sweep::read(file, EXPERIMENT))? else { continue };
        Drawing::new(sweep, setting.paper.as_deref())?.draw_all(setting, !has_any)?;
        has_any = true;
    }
    Ok(has_any)
}

/// What tables and figures are made of.
struct Drawing {
    sweep: Sweep,
    published: Option<Published>,
}

impl Drawing {
    fn read(source: &SourceArgs, paper: Option<&Path>) -> Result<Self> {
        Self::new(Sweep::read(source.source().one(EXPERIMENT)?, EXPERIMENT)?, paper)
    }

    fn new(sweep: Sweep, paper: Option<&Path>) -> Result<Self> {
        Ok(Self { sweep, published: paper.map(Published::read).transpose()? })
    }

    fn draw_all(&self, setting: &Setting, print: bool) -> Result<()> {
        let present = self.sweep.attentions();
        let shows_all = Selection::Paper.of(&present) == present;
        let selections =
            if shows_all { &[Selection::Paper][..] } else { &[Selection::Paper, Selection::All] };
        if shows_all {
            self.remove_all_types()?;
        }
        for (index, &selection) in selections.iter().enumerate() {
            let is_last = index + 1 == selections.len();
            self.draw_table1(setting.criterion, selection, print && is_last)?;
            self.draw_figure1(&setting.formats, selection)?;
        }
        Ok(())
    }

    /// Takes away what an earlier run drew of attention types that are no longer among the rows.
    fn remove_all_types(&self) -> Result<()> {
        let (folder, file) = (self.sweep.file.figures(), &self.sweep.file);
        for (name, extension) in [("table1", "md"), ("table1", "tex"), ("figure1", "svg"), ("figure1", "png")]
        {
            let path = folder.join(format!("{}.{extension}", file.stem(&format!("{name}-all"))));
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove `{}`", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
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
        let stem =
            self.sweep.file.stem(&selection.file_stem(table1::FILE_NAMES, &present, self.sweep.model()));
        write_tables(&self.sweep.file.figures(), &stem, &tables)
    }

    fn draw_figure1(&self, formats: &[Format], selection: Selection) -> Result<()> {
        let figure = figure1(&self.sweep, selection, self.published.as_ref())?;
        let stem = selection.file_stem(figure1::FILE_NAMES, &self.sweep.attentions(), self.sweep.model());
        report(&figure.write(&self.sweep.file.figures(), &self.sweep.file.stem(&stem), formats)?);
        Ok(())
    }
}
