//! What masking a head does.
use clap::ValueEnum;
use subject::{Ablation, Description, Sample, Scored};
use training::Machine;

use crate::args::{SharedArgs, positive};
use crate::error::Error;

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

/// What takes the place of masked heads.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Masking")]
pub struct AblationArgs {
    /// What takes the place of a masked head
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Kind::Zero)]
    pub ablation: Kind,

    /// Split whose texts --ablation mean and resample read [default: that on which importance is measured]
    #[arg(long, value_name = "SPLIT")]
    pub reference_on: Option<String>,

    /// Segments of that split, drawn at random with --seed; all if there are fewer
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = positive)]
    pub reference_limit: usize,

    /// Number of the draw of other texts for --ablation resample, from 1; each draw has a file of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub draw: u64,
}

/// Kind of ablation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Nothing, as in the paper
    Zero,
    /// What the head reads on average, over all positions of texts
    Mean,
    /// What the head reads at the same position of another text, at least as long where there is one
    Resample,
}

impl AblationArgs {
    /// What takes the place of masked heads, checked.
    ///
    /// # Errors
    /// If there is no such split, or it is at fault.
    pub fn build(&self, seed: u64, description: &Description, machine: &Machine) -> Result<Ablation, Error> {
        let sample = || -> Result<Sample, Error> {
            let split = self.reference_on.as_deref().unwrap_or(description.estimate_split());
            let split = description.split(Some(split), machine)?;
            Ok(Sample { split, size: self.reference_limit, seed })
        };
        Ok(match self.ablation {
            Kind::Zero => Ablation::Zero,
            Kind::Mean => Ablation::Mean(sample()?),
            Kind::Resample => Ablation::Resample { of: sample()?, draw: self.draw },
        })
    }
}

impl MaskingArgs {
    /// The split that an experiment scores, with its heads masked so.
    ///
    /// # Errors
    /// As for [`AblationArgs::build`].
    pub fn scored(
        &self,
        split: String,
        shared: &SharedArgs,
        description: &Description,
        machine: &Machine,
    ) -> Result<Scored, Error> {
        let ablation = self.ablation.build(shared.seed(), description, machine)?;
        Ok(Scored::first(split, shared.limit, self.rescale).under(ablation))
    }
}
