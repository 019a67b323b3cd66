//! The command line: one command for each artefact of the registry, `all` and `summary`.
use std::path::PathBuf;

use charts::write::Format;
use clap::{Args as _, Command};
use findings::judge::{Adjustment, Criterion};
use findings::source::Source;
use records::Attention;

use crate::registry::{ARTEFACTS, Artefact, Selection};

/// What every command takes.
#[derive(Debug, clap::Args)]
pub struct CommonArgs {
    /// Folder with the results of all subjects
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub results: PathBuf,

    /// A p-value below this is significant
    #[arg(long, value_name = "P", default_value_t = records::rules::ALPHA, value_parser = parse_alpha)]
    alpha: f64,

    /// Which of the two-sided p-values to look at
    #[arg(long, value_name = "METHOD", value_enum, default_value_t)]
    adjust: Adjustment,

    /// Folder with the published numbers
    #[arg(long, value_name = "FOLDER", default_value = "data/paper")]
    pub paper: PathBuf,
}

impl CommonArgs {
    /// The two arguments that decide on marks.
    pub fn criterion(&self) -> Criterion {
        Criterion { alpha: self.alpha, adjustment: self.adjust }
    }
}

/// Which results to draw, and how.
#[derive(Debug, clap::Args)]
pub struct DrawArgs {
    /// Subject of the experiments, a folder in the results such as `demo-translation`, or the file that describes it; or a
    /// result file, such as `results/demo-translation/ablate-one-first-500.csv`
    #[arg(value_name = "SUBJECT|FILE.csv")]
    subject: String,

    /// Split that was scored; that of the standard files if absent
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,

    /// File formats, separated by commas
    #[arg(long, value_name = "FORMATS", value_enum, value_delimiter = ',', default_values = ["svg", "png"])]
    pub format: Vec<Format>,

    #[command(flatten)]
    pub common: CommonArgs,
}

impl DrawArgs {
    /// What to read.
    pub fn source(&self) -> Source {
        let results = self.common.results.clone();
        if self.subject.ends_with(".csv") {
            return Source::File { path: PathBuf::from(&self.subject) };
        }
        let description = self.subject.strip_suffix(".toml").and_then(|path| path.rsplit(['/', '\\']).next());
        let subject = description.unwrap_or(&self.subject).to_owned();
        Source::Subject { subject, results, split: self.split.clone() }
    }
}

/// Which attention types to show.
#[derive(Debug, clap::Args)]
pub struct AttentionArgs {
    /// Attention type: enc-enc, enc-dec, dec-dec, self or all; by default enc-enc as in the paper,
    /// or all if there is none
    #[arg(long, value_name = "TYPE", value_parser = parse_selection)]
    pub attention: Option<Selection>,
}

/// Which comparison to show.
#[derive(Debug, clap::Args)]
pub struct AgainstArgs {
    /// Second split of the comparison; by default every comparison that is there
    #[arg(long, value_name = "SPLIT")]
    pub against: Option<String>,
}

/// Whether to draw the figure of the same rows.
#[derive(Debug, clap::Args)]
pub struct FigureArgs {
    /// Draw Figure 1 of the same rows too
    #[arg(long)]
    pub with_figure: bool,
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
    <Args as clap::CommandFactory>::command()
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(ARTEFACTS.iter().map(of_artefact))
        .subcommand(summary.about(
            "The paper's claims beside the results of all subjects, as Markdown, also written to `<RESULTS>/summary.md`",
        ))
        .subcommand(all.about("Everything that can be drawn from the results that are there"))
}

fn of_artefact(artefact: &Artefact) -> Command {
    let command = DrawArgs::augment_args(Command::new(artefact.name).visible_aliases(artefact.alias));
    let command = match artefact.name {
        "table1" => FigureArgs::augment_args(AttentionArgs::augment_args(command)),
        "figure1" => AttentionArgs::augment_args(command),
        "figure2" => AgainstArgs::augment_args(command),
        _ => command,
    };
    // last, since arguments bring the description of their struct along
    command.about(artefact.about)
}

fn parse_selection(text: &str) -> Result<Selection, String> {
    if text == "all" {
        return Ok(Selection::All);
    }
    text.parse::<Attention>().map(Selection::One).map_err(|error| format!("{error} or all"))
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    let alpha = text.parse().ok().filter(|alpha| *alpha > 0.0 && *alpha < 1.0);
    alpha.ok_or_else(|| "it must be a number between 0 and 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_says_what_it_draws() {
        let command = command();
        for artefact in ARTEFACTS {
            let about = command.find_subcommand(artefact.name).unwrap().get_about().unwrap();
            assert_eq!(about.to_string(), artefact.about);
        }
    }
}
