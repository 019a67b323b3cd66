//! The command line.
use std::path::PathBuf;

use plotting::attention::{Attention, Selection};
use plotting::figure::canvas::Format;
use plotting::result_file::Source;
use plotting::significance::{Adjustment, Criterion};

/// Draws the tables and figures of Michel et al. (2019) from the results of experiments.
///
/// Tables are printed and written as Markdown and LaTeX, figures as SVG and PNG, all to `figures/` beside the result file.
/// Equal results give byte-equal files.
#[derive(Debug, clap::Parser)]
#[command(version, about)]
pub struct Args {
    /// What to draw
    #[command(subcommand)]
    pub command: Command,
}

/// What to draw.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Score change for each masked head, layer x head, with the significant ones marked; for BERT in the same layout
    Table1(Table1Args),
    /// Histogram of the scores with one head masked, beside the score of the intact model; for BERT, Figure 1b
    Figure1(Figure1Args),
    /// Scores with one head masked on two splits, after `cross-domain`, and how far noise lets them agree
    Figure2(Figure2Args),
    /// Rank correlations of what heads can be ordered by, as a matrix and a table; where heads share keys and values, also the
    /// sums over such groups
    Agreement(AgreementArgs),
    /// Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs
    Groups(GroupsArgs),
    /// Best single head of each layer, chosen and reported on one split; for BERT, Table 3
    #[command(visible_alias = "table3")]
    Table2(BestHeadArgs),
    /// Best single head of each layer, chosen on another split than reported; for BERT, Table 6
    #[command(visible_alias = "table6")]
    Table5(BestHeadArgs),
    /// Score over the share of masked heads, and how many heads can go; for classifiers other than MNLI, Figure 6
    #[command(visible_alias = "figure6")]
    Figure3(CurveArgs),
    /// Score over the share of masked heads of each attention type
    Figure4(CurveArgs),
    /// Segments a second with all heads and without some, and what else is saved
    Table4(Table4Args),
    /// Scores with more and more heads masked while the model is trained, in percent of the unpruned ones
    Figure5(Figure5Args),
    /// The paper's claims beside the results of all subjects, as Markdown, also written to `<RESULTS>/summary.md`
    Summary(SummaryArgs),
    /// Everything that can be drawn from the results that are there
    All(AllArgs),
}

/// Which results to show.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Subject of the experiments, a folder in the results such as `demo-translation`, or the file that describes it; or a
    /// result file, such as `results/demo-translation/ablate-one-first-500.csv`
    #[arg(value_name = "SUBJECT|FILE.csv")]
    subject: String,

    /// Folder with the results of all subjects
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,

    /// Split that was scored; that of the standard files if absent
    #[arg(long, value_name = "SPLIT")]
    split: Option<String>,
}

impl SourceArgs {
    /// What to read.
    pub fn source(&self) -> Source {
        let results = self.results.clone();
        if self.subject.ends_with(".csv") {
            return Source::File { path: PathBuf::from(&self.subject), results };
        }
        let description = self.subject.strip_suffix(".toml").and_then(|path| path.rsplit(['/', '\\']).next());
        let subject = description.unwrap_or(&self.subject).to_owned();
        Source::Subject { subject, results, split: self.split.clone() }
    }
}

/// Which attention types to show.
#[derive(Debug, clap::Args)]
pub struct SelectionArgs {
    /// Attention type: enc-enc, enc-dec, dec-dec, self or all; by default enc-enc as in the paper,
    /// or all if there is none
    #[arg(long, value_name = "TYPE", value_parser = parse_selection)]
    pub attention: Option<Selection>,
}

/// When a head counts as significant.
#[derive(Debug, clap::Args)]
pub struct CriterionArgs {
    /// A p-value below this is significant
    #[arg(long, value_name = "P", default_value_t = records::rules::ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,

    /// Which of the two-sided p-values to look at
    #[arg(long, value_name = "METHOD", value_enum, default_value_t)]
    pub adjust: Adjustment,
}

impl CriterionArgs {
    /// The two arguments that decide on marks.
    pub fn criterion(&self) -> Criterion {
        Criterion { alpha: self.alpha, adjustment: self.adjust }
    }
}

/// What to compare results with.
#[derive(Debug, clap::Args)]
pub struct PaperArgs {
    /// Folder with the published numbers
    #[arg(long, value_name = "FOLDER", default_value = "data/paper")]
    pub paper: PathBuf,
}

/// Formats of figures.
#[derive(Debug, clap::Args)]
pub struct FormatArgs {
    /// File formats, separated by commas
    #[arg(long, value_name = "FORMATS", value_enum, value_delimiter = ',', default_values = ["svg", "png"])]
    pub format: Vec<Format>,
}

/// Arguments of Table 1.
#[derive(Debug, clap::Args)]
pub struct Table1Args {
    /// Draw Figure 1 of the same rows too
    #[arg(long)]
    pub with_figure: bool,

    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub criterion: CriterionArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Arguments of Figure 1.
#[derive(Debug, clap::Args)]
pub struct Figure1Args {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of a table of best heads.
#[derive(Debug, clap::Args)]
pub struct BestHeadArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub criterion: CriterionArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of a figure of curves.
#[derive(Debug, clap::Args)]
pub struct CurveArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub criterion: CriterionArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of Figure 2.
#[derive(Debug, clap::Args)]
pub struct Figure2Args {
    #[command(flatten)]
    pub source: SourceArgs,

    /// Second split of the comparison; by default every comparison that is there
    #[arg(long, value_name = "SPLIT")]
    pub against: Option<String>,

    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of Table 4.
#[derive(Debug, clap::Args)]
pub struct Table4Args {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of Figure 5.
#[derive(Debug, clap::Args)]
pub struct Figure5Args {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of the summary.
#[derive(Debug, clap::Args)]
pub struct SummaryArgs {
    /// Folder with the results of all subjects
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    pub results: PathBuf,
    #[command(flatten)]
    pub criterion: CriterionArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
}

/// Arguments of the agreement of orders.
#[derive(Debug, clap::Args)]
pub struct AgreementArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Arguments of the groups of segments.
#[derive(Debug, clap::Args)]
pub struct GroupsArgs {
    #[command(flatten)]
    pub source: SourceArgs,

    /// A p-value below this is significant
    #[arg(long, value_name = "P", default_value_t = records::rules::ALPHA, value_parser = parse_alpha)]
    pub alpha: f64,

    #[command(flatten)]
    pub format: FormatArgs,
}

/// Arguments of everything.
#[derive(Debug, clap::Args)]
pub struct AllArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub criterion: CriterionArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub paper: PaperArgs,
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
