//! Options of masking: rescaling and kinds of ablation.
use clap::ValueEnum;
use subject::{Ablation, Description, Sample, Scored};
use training::Machine;

use crate::args::{SharedArgs, positive};
use crate::error::Error;

/// Default number of segments from which means and replacements are taken.
const REFERENCE_LIMIT: usize = 2000;

/// Arguments of experiments that mask heads.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Masking")]
pub struct MaskingArgs {
    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long, conflicts_with = "ablation")]
    pub rescale: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for the text of --help")]
    pub ablation: AblationArgs,
}

/// Arguments that choose a kind of ablation.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Masking")]
pub struct AblationArgs {
    /// What replaces the output of a masked head
    #[arg(long, value_enum, value_name = "KIND", default_value_t = AblationKind::Zero)]
    pub ablation: AblationKind,

    /// Split of the texts for --ablation mean and resample [default: the split for importance]
    #[arg(long, value_name = "SPLIT")]
    pub reference_on: Option<String>,

    /// Random segments of that split, drawn with --seed [default: 2000]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub reference_limit: Option<usize>,

    /// Number of the draw of other texts for --ablation resample; each draw has its own file [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub draw: Option<u64>,
}

/// Kind of ablation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AblationKind {
    /// Zeros, as in the paper
    Zero,
    /// Its mean over all positions of the reference texts
    Mean,
    /// Its output at the corresponding position of another text
    Resample,
}

impl AblationArgs {
    /// Returns the kind of ablation.
    ///
    /// # Errors
    /// If the split is invalid, or an option does not apply to the kind.
    pub fn build(&self, seed: u64, description: &Description, machine: &Machine) -> Result<Ablation, Error> {
        let sample = || -> Result<Sample, Error> {
            let split = self.reference_on.as_deref().unwrap_or(description.estimate_split());
            let split = description.split(Some(split), machine)?;
            Ok(Sample { split, size: self.reference_limit.unwrap_or(REFERENCE_LIMIT), seed })
        };
        let (kind, reads) = (self.ablation, self.reference_on.is_some() || self.reference_limit.is_some());
        if self.draw.is_some() && kind != AblationKind::Resample || reads && kind == AblationKind::Zero {
            return Err(Error::input(
                "--draw is for --ablation resample, --reference-on and --reference-limit are for mean and resample",
            ));
        }
        Ok(match self.ablation {
            AblationKind::Zero => Ablation::Zero,
            AblationKind::Mean => Ablation::Mean(sample()?),
            AblationKind::Resample => Ablation::Resample { of: sample()?, draw: self.draw.unwrap_or(1) },
        })
    }
}

impl MaskingArgs {
    /// Returns the split that an experiment scores, with its ablation.
    ///
    /// # Errors
    /// As for [`AblationArgs::build`], or if replacements would come from the scored split itself.
    pub fn scored(
        &self,
        split: String,
        shared: &SharedArgs,
        description: &Description,
        machine: &Machine,
    ) -> Result<Scored, Error> {
        let ablation = self.ablation.build(shared.seed(), description, machine)?;
        if matches!(&ablation, Ablation::Resample { of, .. } if of.split == split) {
            return Err(Error::input(format!(
                "--ablation resample would take head outputs from the scored split, `{split}`, where a text may replace itself: \
                 name another split with --reference-on"
            )));
        }
        let mut scored = shared.scored(split, self.rescale);
        if scored.sample.is_some() {
            scored = scored.within(description.sentences(&scored.split, machine)?.len());
        }
        Ok(scored.under(ablation))
    }
}
