//! The segments to score, and the ablation of masked heads.
use core_masking::{Gates, HeadLayout, HeadSet};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use records::Identity;
use tch::{Device, Kind};
use training::Machine;

use crate::error::Error;

/// Segments to score, and how heads are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scored {
    /// Name of the split.
    pub split: String,
    /// Number of segments; all by default.
    pub limit: Option<usize>,
    /// Seed for drawing the segments at random; by default the first ones are used.
    pub sample: Option<u64>,
    /// True if the remaining heads of a layer are multiplied by heads / remaining heads.
    pub rescale: bool,
    /// Replacement of masked heads' outputs.
    pub ablation: Ablation,
    /// Restricts the segments to these indices, ascending; all by default.
    pub among: Option<Vec<usize>>,
}

/// Kind of ablation: what replaces a masked head's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ablation {
    /// Zeros: Michel et al. (2019).
    #[default]
    Zero,
    /// The head's mean output over all positions of these segments.
    Mean(Sample),
    /// The head's output at the same position of another text, drawn from these segments for each draw.
    Resample {
        /// The texts to draw from.
        of: Sample,
        /// Number of the draw, from 1.
        draw: u64,
    },
}

/// A random sample of segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name of the split.
    pub split: String,
    /// Number of segments; all if the split has fewer.
    pub size: usize,
    /// Seed of the draw.
    pub seed: u64,
}

impl Ablation {
    /// Returns the name in files and signatures.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Mean(_) => "mean",
            Self::Resample { .. } => "resample",
        }
    }

    /// Returns the ablation recorded in an identity; `None` if the ablation is unknown or its segments are not recorded.
    pub fn of(identity: &Identity) -> Option<Self> {
        let number = |name: &str| identity.arguments.get(name).and_then(serde_json::Value::as_u64);
        let text = |name: &str| identity.arguments.get(name).and_then(serde_json::Value::as_str);
        let sample = || {
            Some(Sample {
                split: text("reference_on")?.to_owned(),
                size: number("reference_limit")? as usize,
                seed: number("reference_seed")?,
            })
        };
        Some(match text("ablation") {
            None => Self::Zero,
            Some("mean") => Self::Mean(sample()?),
            Some("resample") => Self::Resample { of: sample()?, draw: number("draw")? },
            Some(_) => return None,
        })
    }

    /// Returns the part of result file names; empty for zero ablation.
    pub fn suffix(&self) -> String {
        match self {
            Self::Zero => String::new(),
            Self::Mean(_) => "-mean".to_owned(),
            Self::Resample { draw, .. } => format!("-resample-{draw}"),
        }
    }

    /// Returns the segments that replacements come from; `None` for zero ablation.
    pub fn sample(&self) -> Option<Scored> {
        match self {
            Self::Zero => None,
            Self::Mean(of) | Self::Resample { of, .. } => Some(of.scored()),
        }
    }
}

impl Sample {
    /// Returns the segments of the sample.
    pub(crate) fn scored(&self) -> Scored {
        Scored::sample(self.split.clone(), self.size, self.seed, false)
    }
}

impl Scored {
    /// Selects the first segments of a split, or all; in a split with groups, the first of each group in proportion.
    pub fn first(split: String, limit: Option<usize>, rescale: bool) -> Self {
        Self { split, limit, sample: None, rescale, ablation: Ablation::Zero, among: None }
    }

    /// Returns true if these are the segments of `other`.
    pub(crate) fn places_like(&self, other: &Self) -> bool {
        let of = |scored: &Self| (scored.split.clone(), scored.limit, scored.sample, scored.among.clone());
        of(self) == of(other)
    }

    /// Sets the ablation.
    #[must_use]
    pub fn under(self, ablation: Ablation) -> Self {
        Self { ablation, ..self }
    }

    /// Selects segments at random without replacement, because files are often sorted by source.
    pub fn sample(split: String, size: usize, seed: u64, rescale: bool) -> Self {
        Self { limit: Some(size), sample: Some(seed), ..Self::first(split, None, rescale) }
    }

    /// Restricts the segments to these indices.
    #[must_use]
    pub fn among(&self, mut places: Vec<usize>) -> Self {
        places.sort_unstable();
        Self { among: Some(places), ..self.clone() }
    }

    /// Replaces a random sample larger than the split's `length` by all segments, with a warning.
    #[must_use]
    pub fn within(&self, length: usize) -> Self {
        match (self.limit, self.sample) {
            (Some(limit), Some(_)) if limit > length => {
                let split = &self.split;
                words::warn(&format!(
                    "--limit {limit}: split `{split}` has only {length} segments, and all are scored"
                ));
                Self { limit: None, sample: None, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Returns the limit in result file names, such as `-sample-200`; empty without a limit.
    pub fn limit_suffix(&self) -> String {
        records::limit_suffix(self.limit, self.sample)
    }

    /// Returns the indices of the segments in a split, in ascending order.
    ///
    /// - `groups`: number of segments in each group of the split
    pub fn places(&self, groups: &[usize]) -> Vec<usize> {
        let length = groups.iter().sum();
        let size = self.limit.unwrap_or(length).min(length);
        let places = self.sample.map_or_else(
            || first_of_each(groups, size),
            |seed| {
                let mut places: Vec<usize> = (0..length).collect();
                places.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
                places.truncate(size);
                places.sort_unstable();
                places
            },
        );
        let chosen = |among: &Vec<usize>| among.iter().map(|&place| places[place]).collect();
        self.among.as_ref().map_or_else(|| places.clone(), chosen)
    }

    /// Adds the number of segments, and the seed of a random sample, to an identity.
    pub fn describe_limit(&self, identity: &mut Identity) {
        identity.limit = self.limit;
        if let Some(seed) = self.sample {
            identity.arguments.insert("sample".to_owned(), seed.into());
        }
    }

    /// Returns the part of the identity that all scores share.
    pub(crate) fn identity(&self, experiment: &str, subject: &str, machine: &Machine) -> Identity {
        let mut identity = Identity::new(experiment, subject);
        identity.split.clone_from(&self.split);
        self.describe_limit(&mut identity);
        identity.precision = machine.precision.name().to_owned();
        identity.arguments.insert("rescale".to_owned(), self.rescale.into());
        // Omitted for zero ablation: older results do not record it.
        if let Ablation::Mean(of) | Ablation::Resample { of, .. } = &self.ablation {
            identity.arguments.extend([
                ("ablation".to_owned(), self.ablation.name().into()),
                ("reference_on".to_owned(), of.split.clone().into()),
                ("reference_limit".to_owned(), of.size.into()),
                ("reference_seed".to_owned(), of.seed.into()),
            ]);
        }
        if let Ablation::Resample { draw, .. } = self.ablation {
            identity.arguments.insert("draw".to_owned(), draw.into());
        }
        identity
    }

    /// Returns one row of gates that mask a set of heads.
    pub(crate) fn gates(
        &self,
        layout: &HeadLayout,
        masked: &HeadSet,
        options: (Kind, Device),
    ) -> Result<Gates, Error> {
        let gates = Gates::masking(layout, std::slice::from_ref(masked), options)?;
        Ok(if self.rescale { gates.rescaled(layout) } else { gates })
    }
}

/// Returns the indices of the first segments of each group, `size` in total, in proportion to the groups and rounded to that total.
fn first_of_each(groups: &[usize], size: usize) -> Vec<usize> {
    let length: usize = groups.iter().sum();
    let share = |end: usize| (size as u128 * end as u128 / length.max(1) as u128) as usize;
    let mut start = 0;
    let mut places = Vec::with_capacity(size);
    for group in groups {
        let end = start + group;
        places.extend(start..start + share(end) - share(start));
        start = end;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_drawn_once_from_the_whole_split() {
        let sample = |size, seed| Scored::sample("train".to_owned(), size, seed, false).places(&[100]);
        let places = sample(30, 7);
        assert_eq!(places.len(), 30);
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]) && places[29] > 60, "{places:?}");
        assert_eq!(places, sample(30, 7));
        assert_ne!(places, sample(30, 8));
        assert_eq!(sample(200, 7), (0..100).collect::<Vec<_>>());
        assert_eq!(Scored::first("test".to_owned(), Some(3), false).places(&[100]), [0, 1, 2]);
    }

    /// Of groups with 2, 6 and 4 segments, 6 takes 1, 3 and 2; 5 takes 0, 3 and 2, since the ends 5/6, 40/12 and 5 are rounded down.
    #[test]
    fn a_limit_takes_the_first_segments_of_each_group() {
        let places = |size| Scored::first("test".to_owned(), Some(size), false).places(&[2, 6, 4]);
        assert_eq!(places(6), [0, 2, 3, 4, 8, 9]);
        assert_eq!(places(5), [2, 3, 4, 8, 9]);
        assert_eq!(places(0), [0; 0]);
        assert_eq!(places(20), (0..12).collect::<Vec<_>>());
        assert!(Scored::first("test".to_owned(), Some(3), false).places(&[]).is_empty());
    }
}
