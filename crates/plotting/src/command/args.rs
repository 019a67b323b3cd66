//! The command line: one command per artefact, `all` and `summary`.
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

/// Choice of results and formats.
#[derive(Debug, clap::Args)]
pub struct DrawArgs {
    /// Setup, by its name such as `demo-translation` or by its file; or a result file, `results/demo-translation/ablate-one-first-500.csv`
    #[arg(value_name = "SETUP|FILE.csv")]
    subject: String,

    /// Split of the scores [default: the split of the standard files]
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,

    /// File formats of figures, comma-separated; files in other formats from an earlier run are removed
    #[arg(long, value_name = "FORMATS", value_enum, action = ArgAction::Set, value_delimiter = ',', default_values_t = Format::ALL)]
    pub format: Vec<Format>,

    #[command(flatten)]
    pub common: CommonArgs,
}

impl DrawArgs {
    pub fn folders(&self) -> Folders {
        self.common.folders.beside(&self.subject)
    }

    /// Returns the results to read.
    pub fn source(&self) -> Source {
        let folders = self.folders();
        if self.subject.ends_with(".csv") {
            // a recipe with `--replicate all` passes one line per run; the files of the other runs are found from the first
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
/// Prints tables and writes them as Markdown and LaTeX, and writes figures as SVG and PNG with their captions, all to `figures/` next to
/// the result file. Equal results give byte-identical files.
#[derive(Debug, clap::Parser)]
#[command(version, about)]
struct Args;

/// Returns the whole command line.
pub fn command() -> Command {
    let all = DrawArgs::augment_args(Command::new("all"));
    let summary = CommonArgs::augment_args(Command::new("summary"));
    let (all, summary) = (typed(all, "[OPTIONS] <SETUP|FILE.csv>"), typed(summary, "[OPTIONS]"));
    <Args as clap::CommandFactory>::command()
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(ARTEFACTS.iter().map(of_artefact))
        .subcommand(summary.about(
            "The paper's claims next to the results of all setups, as Markdown, also written to `<RESULTS>/summary.md`",
        ))
        .subcommand(all.about(
            "Everything that can be drawn from the available results. Files that cannot be read are named and left out; \
             the exit code is 1 if nothing is drawn",
        ))
}

/// Shows in the usage line the command that was typed, such as `headcount figures`, which runs `plotting all`.
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
        "Attention type: enc-enc, enc-dec, dec-dec, self or all; by default enc-enc as in the paper, or all for models without enc-enc",
    );
    let figure = Arg::new("with_figure").long("with-figure").action(ArgAction::SetTrue);
    let against = Arg::new("against").long("against").value_name("SPLIT");
    let options = [
        attention,
        figure.help("Also draw Figure 1 from the same rows"),
        against.help("Second split of the comparison [default: all measured comparisons]"),
    ];
    let own = options.into_iter().filter(|option| artefact.options.contains(&option.get_id().as_str()));
    // last, since flattened arguments would replace the description by that of their struct
    command.args(own).about(artefact.described())
}

/// Returns the value of an argument; `None` if the command lacks it or it was not given. Panics if the type is wrong.
pub fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    match matches.try_get_one(name) {
        Ok(value) => value.cloned(),
        Err(MatchesError::UnknownArgument { .. }) => None,
        Err(fault) => panic!("{fault}"),
    }
}
