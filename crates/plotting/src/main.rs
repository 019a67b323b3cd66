//! Tables and figures from the results of experiments.
mod args;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{ArgMatches, FromArgMatches};
use plotting::error::LeftOut;
use plotting::paper::Paper;
use plotting::registry::{self, ARTEFACTS, Artefact, Asked};
use plotting::source::{self, ResultFile};
use plotting::view::{Context, summary};
use plotting::write::{Format, Sheet, section, write_file};
use records::visible::{one_line, visible};

use args::{AgainstArgs, AttentionArgs, CommonArgs, DrawArgs, FigureArgs};

fn main() -> ExitCode {
    let matches = args::command().get_matches();
    let mut left_out = LeftOut::default();
    let result = run(&matches, &mut left_out);
    for error in left_out.take() {
        let error = format!("{:#}", anyhow::Error::from(error));
        anstream::eprintln!("warning: left out: {}", one_line(&error));
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn run(matches: &ArgMatches, left_out: &mut LeftOut) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    if name == "summary" {
        return sum_up(&CommonArgs::from_arg_matches(matches)?, left_out);
    }
    let args = DrawArgs::from_arg_matches(matches)?;
    let paper = published(&args.common.paper)?;
    let attention = AttentionArgs::from_arg_matches(matches).ok().and_then(|args| args.attention);
    let against = AgainstArgs::from_arg_matches(matches).ok().and_then(|args| args.against);
    let asked = Asked {
        context: Context { criterion: args.common.criterion(), paper: paper.as_ref() },
        results: &args.common.results,
        attention: attention.unwrap_or_default(),
        against: against.as_deref(),
        is_all: name == "all",
    };
    if asked.is_all {
        return draw_all(&args, &asked, left_out);
    }
    let with_figure = FigureArgs::from_arg_matches(matches).is_ok_and(|args| args.with_figure);
    let is_meant = |artefact: &&Artefact| artefact.name == name || with_figure && artefact.name == "figure1";
    for artefact in ARTEFACTS.iter().filter(is_meant) {
        let mut sheets = Sheets::default();
        for file in (artefact.one)(&args.source(), &asked)? {
            sheets.add(file.figures(), (artefact.draw)(file, &asked, left_out)?);
        }
        sheets.write(&args.format)?;
    }
    Ok(())
}

/// Whatever there are results for. Without any, the message is that on the first experiment.
fn draw_all(args: &DrawArgs, asked: &Asked<'_>, left_out: &mut LeftOut) -> Result<()> {
    let (source, mut has_any) = (args.source(), false);
    for artefact in ARTEFACTS {
        let mut sheets = Sheets::default();
        for file in (artefact.all)(&source)? {
            let folder = file.figures();
            let drawn = (artefact.draw)(file, asked, left_out);
            let drawn = left_out.keep(drawn)?;
            has_any |= drawn.is_some();
            sheets.add(folder, drawn.unwrap_or_default());
        }
        sheets.write(&args.format)?;
    }
    if !has_any && left_out.is_empty() {
        let mut file: ResultFile = source.one(plotting::data::sweep::EXPERIMENT)?;
        file.rows::<records::AblationRow>(plotting::data::sweep::EXPERIMENT)?;
    }
    Ok(())
}

/// Sheets by folder and name: tables of one name share their files, as those of heads that were chosen on several splits.
#[derive(Default)]
struct Sheets(BTreeMap<(PathBuf, String), Sheet>);

impl Sheets {
    fn add(&mut self, folder: PathBuf, sheets: Vec<Sheet>) {
        for mut sheet in sheets {
            let key = (folder.clone(), sheet.stem.clone());
            match self.0.get_mut(&key) {
                Some(there) => there.tables.append(&mut sheet.tables),
                None => drop(self.0.insert(key, sheet)),
            }
        }
    }

    /// Prints tables, writes files, and says which.
    fn write(&self, formats: &[Format]) -> Result<()> {
        for ((folder, _), sheet) in &self.0 {
            if sheet.is_printed && !sheet.tables.is_empty() {
                print(&format!("{}\n", sheet.terminal()))?;
            }
            for path in sheet.write(folder, formats)? {
                anstream::eprintln!("wrote {}", one_line(&path.display().to_string()));
            }
        }
        Ok(())
    }
}

/// Prints and writes one Markdown table for each claim of the paper.
fn sum_up(args: &CommonArgs, left_out: &mut LeftOut) -> Result<()> {
    let paper = published(&args.paper)?;
    let context = Context { criterion: args.criterion(), paper: paper.as_ref() };
    let names = source::subjects(&args.results)?.into_iter();
    let subject = |name: String| registry::subject(&args.results, &name, left_out);
    let all: Vec<_> = names.map(subject).collect::<Result<_, _>>()?;
    let tables = summary::tables(&all, context);
    if tables.is_empty() {
        let results = args.results.display();
        anyhow::bail!("`{results}` has no results to sum up: make some with `ablate-one experiments/<subject>.toml`");
    }
    let [head, nats] = summary::HEAD;
    let nats = if all.iter().any(summary::Subject::has_nats) { nats } else { "" };
    let sections: Vec<_> = tables.iter().map(section).collect();
    let remark = |file: &ResultFile| Some(format!("- {}: {}\n", file.subject, file.remark()?));
    let unchecked: String = all.iter().flat_map(summary::Subject::files).filter_map(remark).collect();
    let unchecked =
        if unchecked.is_empty() { unchecked } else { format!("\n## Files that could not be checked\n\n{unchecked}") };
    let text = visible(&format!("{head}{nats}\n{}{unchecked}", sections.join("\n")));
    print(&text)?;
    let path = write_file(&args.results, "summary.md", text.as_bytes())?;
    anstream::eprintln!("wrote {}", one_line(&path.display().to_string()));
    Ok(())
}

/// The published numbers; a table or figure without them is better than none, so a missing folder is a warning.
fn published(paper: &Path) -> Result<Option<Paper>> {
    if paper.is_dir() {
        return Ok(Some(Paper::read(paper)?));
    }
    let folder = one_line(&paper.display().to_string());
    anstream::eprintln!("warning: no folder `{folder}`: leaving out the published numbers");
    Ok(None)
}

/// Prints to a terminal with styles, to anything else without; `NO_COLOR` is honoured. A reader that stops early, such as
/// `head`, is no error.
fn print(text: &str) -> Result<()> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the table"),
        _ => Ok(()),
    }
}
