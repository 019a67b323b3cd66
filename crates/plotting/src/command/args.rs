//! The command line: one command for each artefact, `all` and `summary`.
use std::path::PathBuf;

use crate::findings::source::subject_named;
use crate::findings::{Criterion, Folders, Source};
use charts::write::Format;
use clap::parser::MatchesError;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, value_parser};
use heads::Selection;

use crate::artefact::Artefact;
use crate::artefacts::ARTEFACTS;

/// Arguments of every command.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    #[command(flatten)]
    pub folders: Folders,

    #[command(flatten)]
    pub criterion: Criterion,
}

/// Choice of results, and formats.
#[derive(Debug, clap::Args)]
pub struct DrawArgs {
    /// Subject of the experiments, a folder in the results such as `demo-translation`, or the file that describes it; or a
    /// result file, such as `results/demo-translation/ablate-one-first-500.csv`
    #[arg(value_name = "SETUP|FILE.csv")]
    subject: String,

    /// Split that was scored [default: that of the standard files]
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,

    /// File formats of figures, separated by commas; files of others, from an earlier run, are removed
    #[arg(long, value_name = "FORMATS", value_enum, action = ArgAction::Set, value_delimiter = ',', default_values_t = Format::ALL)]
    pub format: Vec<Format>,

    #[command(flatten)]
    pub common: CommonArgs,
}

impl DrawArgs {
    /// Folders to read.
    pub fn folders(&self) -> Folders {
        self.common.folders.beside(&self.subject)
    }

    /// Results to read.
    pub fn source(&self) -> Source {
        let folders = self.folders();
        if self.subject.ends_with(".csv") {
            // a recipe with `--replicate all` hands on a line for each; the first has the others beside it
            let path = self.subject.lines().next().unwrap_or_default();
            return Source::File { path: PathBuf::from(path), experiments: folders.experiments };
        }
        let subject = subject_named(&self.subject).to_owned();
        let kind = folders.kind(&subject);
        Source::Subject { subject, results: folders.results, kind, split: self.split.clone() }
    }
}

/// Draws the tables and figures of Michel et al. (2019) from the results of experiments.
///
/// Tables are printed and written as Markdown and LaTeX, figures as SVG and PNG with their captions, all to `figures/` beside
/// the result file. Equal results give byte-equal files.
#[derive(Debug, clap::Parser)]
#[command(version, about)]
struct Args;

/// The whole command line.
pub fn command() -> Command {
    let all = DrawArgs::augment_args(Command::new("all"));
    let summary = CommonArgs::augment_args(Command::new("summary"));
    let (all, summary) = (typed(all, "[OPTIONS] <SETUP|FILE.csv>"), typed(summary, "[OPTIONS]"));
    <Args as clap::CommandFactory>::command()
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(ARTEFACTS.iter().map(of_artefact))
        .subcommand(summary.about(
            "The paper's claims beside the results of all subjects, as Markdown, also written to `<RESULTS>/summary.md`",
        ))
        .subcommand(all.about(
            "Everything that can be drawn from the results that are there. Files that cannot be read are named and left out; \
             the exit code is 1 if nothing is drawn",
        ))
}

/// Shows the command that was typed in the usage line, such as `headcount figures`, which runs `plotting all`.
fn typed(command: Command, arguments: &str) -> Command {
    match std::env::var(words::TYPED) {
        Ok(name) if !name.is_empty() => command.override_usage(format!("{name} {arguments}")),
        _ => command,
    }
}

fn of_artefact(artefact: &Artefact) -> Command {
    let command = DrawArgs::augment_args(Command::new(artefact.name).visible_aliases(artefact.alias));
    let attention =
        Arg::new("attention").long("attention").value_name("TYPE").value_parser(value_parser!(Selection));
    let attention = attention.overrides_with("attention").help(
        "Attention type: enc-enc, enc-dec, dec-dec, self or all; by default enc-enc as in the paper, or all if there is none",
    );
    let figure = Arg::new("with_figure").long("with-figure").action(ArgAction::SetTrue);
    let against = Arg::new("against").long("against").value_name("SPLIT");
    let options = [
        attention,
        figure.help("Draw Figure 1 of the same rows too"),
        against.help("Second split of the comparison; by default every comparison that is there"),
    ];
    let own = options.into_iter().filter(|option| artefact.options.contains(&option.get_id().as_str()));
    // last, since arguments bring the description of their struct along
    command.args(own).about(artefact.described())
}

/// The value of an argument, if the command has it and it was given.
///
/// # Panics
/// If it is of another type.
pub fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    match matches.try_get_one(name) {
        Ok(value) => value.cloned(),
        Err(MatchesError::UnknownArgument { .. }) => None,
        Err(fault) => panic!("{fault}"),
    }
}
