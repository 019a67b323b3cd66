//! Arguments, and the settings that follow from them before any training.
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{ArgAction, ValueEnum};
use core_masking::HeadLayout;
use experiment::{EstimateArgs, Export, Selection, SharedArgs, has_duplicates};
use heads::experiment::TRAIN_GATES;
use records::{Method, Scope};
use significance::TestArgs;
use subject::{Description, TrainedWeights};
use training::{GATE_RATE, GateStart, Penalty, Precision};

/// Trains gates that prune heads (hard concrete, L0 penalty; Voita et al. 2019), and controls with equal numbers of heads.
///
/// Starts from the trained model of the setup and restarts its recipe: schedule, dropout and label smoothing. The loss has a penalty on the
/// expected number of open gates. Writes a row for each number of heads or penalty, with the scores before and after training and the kept
/// heads. Models are kept in `<data>/models/<setup>.tuned/`, and a killed run resumes after its last finished epoch. Existing results are
/// used and missing ones are computed; --again scores existing models again.
#[derive(Debug, clap::Parser)]
#[command(version, args_override_self = true)]
pub struct Args {
    /// Heads with gates: the attention types enc-enc, enc-dec, dec-dec or self, all, or paper (the encoder of a translator, all heads of
    /// other models)
    #[arg(long, value_name = "TYPE", default_value = "paper")]
    pub attention: Selection,

    /// Weights that are trained [default: the encoder's if only its heads have gates, as in the paper, otherwise all]
    #[arg(long, value_enum, value_name = "PART")]
    pub train: Option<TrainedWeights>,

    /// Numbers of heads to keep, separated by commas [default: a half, a quarter and an eighth of the heads, unless --lambda is given]
    #[arg(long, action = ArgAction::Set, value_delimiter = ',', value_name = "N", conflicts_with = "lambda")]
    pub heads: Vec<usize>,

    /// Penalty on each open gate, in nats per prediction; several values are separated by commas. It multiplies the expected number of open
    /// gates, as in the paper. The authors' code divides by the number of attention modules with gates, so its lambda is larger by that
    /// factor
    #[arg(long, action = ArgAction::Set, value_delimiter = ',', value_name = "LAMBDA", value_parser = penalty)]
    pub lambda: Vec<f64>,

    /// Learning rate of the gates, constant over all steps; they have no weight decay
    #[arg(long, value_name = "RATE", default_value_t = GATE_RATE, value_parser = rate)]
    pub gate_learning_rate: f64,

    /// Gates before the first step
    #[arg(long, value_enum, default_value_t = GateStart::Open)]
    pub start: GateStart,

    /// Passes over the training split, for gates and controls [default: epochs of the model's own training]. The epoch with the lowest loss
    /// on the development split is used (heads with closed gates masked, plus the penalty with --lambda). The last epoch is used if the
    /// setup keeps the last, and for gates with --heads, which reach that number only at the end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub epochs: Option<u64>,

    /// Controls, separated by commas: models trained further for an equal number of updates, with all heads or with an equal number of
    /// heads chosen differently; or trained from scratch with the heads that the gates keep
    #[arg(long = "control", value_enum, action = ArgAction::Set, value_delimiter = ',', value_name = "CONTROLS")]
    pub controls: Vec<Control>,

    /// Number of random choices, with seeds counting up from --seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub random_orders: u64,

    /// Write the model without the closed heads to this folder; requires a single number of heads or penalty
    #[arg(long, value_name = "DIR")]
    pub export: Option<PathBuf>,

    /// Replace an existing export
    #[arg(long, requires = "export")]
    pub replace: bool,

    #[command(flatten)]
    pub test: TestArgs,

    #[command(flatten)]
    pub estimate: EstimateArgs,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    pub shared: SharedArgs,
}

/// Models that gates are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Control {
    /// Keep all heads
    Ungated,
    /// Keep the most important heads (Michel et al. 2019, Equation 2)
    Importance,
    /// Keep the heads that cost most when masked alone, by ablate-one, whose missing rows are measured
    Oracle,
    /// Keep heads drawn at random
    Random,
    /// Keep the heads whose gates would close first
    Complement,
    /// Keep the heads that the gates keep, with the others masked from the first update: the effect of the choice alone
    Chosen,
    /// Train a new model from scratch with only the heads that the gates keep, for the epochs of the model and --epochs
    Scratch,
}

impl Control {
    fn method(self) -> Method {
        match self {
            Self::Ungated => Method::Ungated,
            Self::Importance => Method::Importance,
            Self::Oracle => Method::Oracle,
            Self::Random => Method::Random,
            Self::Complement => Method::Complement,
            Self::Chosen => Method::Chosen,
            Self::Scratch => Method::Scratch,
        }
    }
}

fn penalty(text: &str) -> Result<f64, String> {
    let is_meant = |lambda: &f64| *lambda == 0.0 || (1e-9..=1e9).contains(lambda);
    let lambda = text.parse().ok().filter(is_meant);
    lambda.map(f64::abs).ok_or_else(|| "must be 0, or a number from 1e-9 to 1e9".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "must be a number above 0".to_owned())
}

impl Args {
    /// Returns the penalty of each model with this many `heads`.
    ///
    /// # Errors
    /// If a number of heads is 0 or too large, or a value is given twice.
    pub fn penalties(&self, heads: usize) -> anyhow::Result<Vec<Penalty>> {
        ensure!(!has_duplicates(&self.lambda), "a penalty is given twice in --lambda");
        ensure!(!has_duplicates(&self.heads), "a number is given twice in --heads");
        ensure!(!has_duplicates(&self.controls), "a control is given twice in --control");
        if let Some(wrong) = self.heads.iter().find(|&&open| open == 0 || open > heads) {
            bail!("--heads {wrong}: expected 1 to {heads}, the number of heads with gates");
        }
        if !self.lambda.is_empty() {
            return Ok(self.lambda.iter().copied().map(Penalty::Lambda).collect());
        }
        let mut numbers = self.heads.clone();
        if numbers.is_empty() {
            numbers = [2, 4, 8].map(|part| heads.div_ceil(part)).to_vec();
            numbers.dedup();
        }
        Ok(numbers.into_iter().map(Penalty::Heads).collect())
    }

    /// Returns the weights that are trained.
    ///
    /// # Errors
    /// If only the encoder should be trained, but the model has no decoder or other heads have gates.
    pub fn trained(&self, layout: &HeadLayout) -> anyhow::Result<TrainedWeights> {
        let usual = TrainedWeights::usual(self.attention.scope(layout));
        let trained = self.train.unwrap_or(usual);
        ensure!(
            trained == usual || trained == TrainedWeights::All,
            "--train encoder needs gates on encoder heads only: use --attention enc-enc of a translator"
        );
        Ok(trained)
    }

    /// Returns the number of passes over the training split.
    ///
    /// # Errors
    /// If the model is a ready-made checkpoint, which has no training recipe.
    pub fn epochs(&self, description: &Description) -> anyhow::Result<usize> {
        let trained = description.epochs().with_context(|| {
            let name = description.name();
            format!("the model of setup `{name}` is not trained here, so there is no recipe to train gates")
        })?;
        Ok(self.epochs.map_or(trained, |epochs| epochs as usize))
    }

    /// Returns the name of the heads with gates; `all` if the model has no others.
    pub fn scope(&self, layout: &HeadLayout) -> Scope {
        if layout.types().count() == 1 { Scope::All } else { self.attention.scope(layout) }
    }

    /// Returns the name of the result file, which contains the attention type unless it is the paper's.
    pub fn file_name(&self, layout: &HeadLayout) -> String {
        let scope = self.attention.scope(layout);
        let is_papers = scope == Selection::Paper.scope(layout) || layout.types().count() == 1;
        if is_papers { TRAIN_GATES.name.to_owned() } else { format!("{}-{scope}", TRAIN_GATES.name) }
    }

    /// Returns the folder to export to; `models` is the number of trained models.
    ///
    /// # Errors
    /// If several models are trained, the folder exists already, or models are not in f32.
    pub fn export(&self, models: usize) -> anyhow::Result<Option<Export>> {
        let Some(folder) = &self.export else { return Ok(None) };
        ensure!(models == 1, "--export writes one model: give one number of --heads, or one --lambda");
        ensure!(self.shared.precision == Precision::F32, "models are exported in f32: leave out --precision");
        Ok(Some(Export::new(folder, self.replace)?))
    }

    /// Returns true if this control is requested.
    pub fn asks_for(&self, method: Method) -> bool {
        self.controls.iter().any(|control| control.method() == method)
    }

    /// Returns the seeds of random choices.
    pub fn random_seeds(&self) -> impl Iterator<Item = u64> {
        let first = self.shared.seed();
        (0..self.random_orders).map(move |n| first.wrapping_add(n))
    }
}
