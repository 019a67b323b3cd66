//! Rankings of heads, those to be masked first in front: Michel et al. (2019), Section 4.1, and rankings to compare with it.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::ValueEnum;
use core_masking::{HeadId, HeadScores, HeadSet, Measure};
use heads::experiment::ABLATE_ONE;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use records::{AblationRow, Identity, Order, TestedRow};
use serde_json::Value;
use subject::{Ablation, Description, Sample, Scored, Subject};
use training::Machine;

use crate::args::{SharedArgs, positive};
use crate::error::Error;
use crate::head_sweep::{HeadSweep, find};

/// Settings for sampling the segments that heads are ranked on.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Seed of the sample.
    pub seed: u64,
    /// Multiplies the kept heads of a layer by heads / kept if some heads are masked already.
    pub rescale: bool,
}

/// Averaging of the gradient in Equation 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Granularity {
    /// Absolute value of each example's gradient, as in the paper
    Example,
    /// Absolute value at each position, as in the authors' code
    Token,
}

/// Arguments of experiments that rank heads.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Order of heads")]
pub struct EstimateArgs {
    /// Split on which importance and other criteria are measured [default: `data.estimate`, otherwise the training split]
    #[arg(long, value_name = "SPLIT")]
    pub estimate_on: Option<String>,

    /// Random segments of that split, drawn with --seed
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = positive)]
    pub estimate_limit: usize,

    /// Average of importance
    #[arg(long, value_enum, default_value_t = Granularity::Example)]
    pub granularity: Granularity,

    /// Do not divide importance by the l2 norm over its layer
    #[arg(long)]
    pub no_normalise: bool,

    /// Weight of importance in importance-entropy, 0 to 1
    #[arg(long, value_name = "W", default_value_t = 0.5, value_parser = share)]
    pub entropy_weight: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight));
    weight.ok_or_else(|| "must be a number from 0 to 1".to_owned())
}

impl EstimateArgs {
    /// Returns the data and settings for ranking heads.
    pub fn estimate(
        &self,
        description: &Description,
        sampling: Sampling,
        machine: &Machine,
    ) -> Result<Estimate, Error> {
        let split = self.estimate_on.as_deref().unwrap_or(description.estimate_split());
        let split = description.split(Some(split), machine)?;
        Ok(Estimate {
            on: Scored::sample(split, self.estimate_limit, sampling.seed, sampling.rescale),
            granularity: self.granularity,
            normalise: !self.no_normalise,
            entropy_weight: self.entropy_weight,
        })
    }

    /// Returns [`estimate`](Self::estimate), or `None` if it fails while no ranking needs it and no split is named: a ready-made checkpoint
    /// may have no training split.
    pub fn estimate_if(
        &self,
        is_needed: bool,
        description: &Description,
        sampling: Sampling,
        machine: &Machine,
    ) -> Result<Option<Estimate>, Error> {
        let estimate = self.estimate(description, sampling, machine);
        if is_needed || self.estimate_on.is_some() { estimate.map(Some) } else { Ok(estimate.ok()) }
    }
}

/// Data and settings for ranking heads.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The data.
    pub on: Scored,
    /// Averaging of importance.
    pub granularity: Granularity,
    /// Divides importance by the l2 norm of its layer.
    pub normalise: bool,
    /// Weight of importance in importance-entropy, 0 to 1.
    pub entropy_weight: f64,
}

impl Estimate {
    /// Returns the estimate with another ablation for heads that are masked already.
    #[must_use]
    pub fn under(self, ablation: &Ablation) -> Self {
        Self { on: self.on.under(ablation.clone()), ..self }
    }

    /// Returns the ablation by mean head outputs over the segments of the estimate.
    pub fn mean_ablation(&self) -> Ablation {
        let Scored { split, limit, sample, .. } = &self.on;
        let (size, seed) = (limit.unwrap_or(usize::MAX), sample.unwrap_or_default());
        Ablation::Mean(Sample { split: split.clone(), size, seed })
    }

    /// Adds data and settings to the identity of an experiment.
    pub fn describe(&self, subject: &Subject, identity: &mut Identity) -> Result<(), Error> {
        Ingredient::describe(subject, &self.on, "estimate", identity)?;
        let granularity = match self.granularity {
            Granularity::Example => "example",
            Granularity::Token => "token",
        };
        identity.arguments.extend([
            ("estimate_on".to_owned(), self.on.split.clone().into()),
            ("estimate_limit".to_owned(), self.on.limit.into()),
            ("granularity".to_owned(), granularity.into()),
            ("normalise".to_owned(), self.normalise.into()),
            ("entropy_weight".to_owned(), self.entropy_weight.into()),
        ]);
        Ok(())
    }

    /// Returns the scores of the open heads, with the heads of `masked` masked, for an order that is [measured](Order::is_measured).
    ///
    /// # Panics
    /// If the order is not measured.
    pub fn scores(&self, order: Order, subject: &Subject, masked: &HeadSet) -> Result<HeadScores, Error> {
        let measures = self.ingredients(order);
        let measured = subject.measure(&self.on, masked, &measures)?;
        // Masked heads do not count in the norm of their layer.
        let open = |scores: HeadScores| scores.iter().filter(|&(id, _)| !masked.contains(id)).collect();
        let measured = measured.into_iter().map(|(measure, means)| (measure, open(means.means()))).collect();
        Ok(self.score(order, &measured))
    }

    /// Returns the criteria to measure for an order's scores; panics if the order is not measured.
    pub fn ingredients(&self, order: Order) -> BTreeSet<Measure> {
        match self.measure(order) {
            Measure::ExampleNormalised => BTreeSet::from([Measure::Example]),
            Measure::ModuleImportance => BTreeSet::from([self.importance()]),
            Measure::TokenNormalised => BTreeSet::from([Measure::Token]),
            Measure::ImportanceEntropy => BTreeSet::from([self.importance(), Measure::NormalisedEntropy]),
            measure => BTreeSet::from([measure]),
        }
    }

    /// Computes an order's scores from measured criteria; the criteria of [`Measure::of_passes`] suffice for every order.
    ///
    /// # Panics
    /// If a criterion that the order needs is missing, or the order is not measured.
    pub fn score(&self, order: Order, measured: &BTreeMap<Measure, HeadScores>) -> HeadScores {
        let measure = self.measure(order);
        self.value(measure, measured).map(|_, value| measure.ascending(value))
    }

    /// Computes the scores of a criterion, including criteria derived from others; panics if one of those is missing.
    pub fn value(&self, measure: Measure, measured: &BTreeMap<Measure, HeadScores>) -> HeadScores {
        match measure {
            Measure::ExampleNormalised => measured[&Measure::Example].normalised_by_layer(),
            Measure::TokenNormalised => measured[&Measure::Token].normalised_by_layer(),
            Measure::ModuleImportance => measured[&self.importance()].summed_by_module(),
            Measure::ImportanceEntropy => {
                // importance is mixed with entropy as a share, so it must be normalised
                let importance = measured[&self.importance()].normalised_by_layer();
                importance_entropy(&importance, &measured[&Measure::NormalisedEntropy], self.entropy_weight)
            }
            _ => measured[&measure].clone(),
        }
    }

    /// Returns the criterion that an order ranks by.
    fn measure(&self, order: Order) -> Measure {
        match (order, self.granularity) {
            (Order::By(measure), _) => measure,
            (Order::Importance, _) if !self.normalise => self.importance(),
            (Order::Importance, Granularity::Example) => Measure::ExampleNormalised,
            (Order::Importance, Granularity::Token) => Measure::TokenNormalised,
            _ => panic!("order {order} is not measured"),
        }
    }

    fn importance(&self) -> Measure {
        match self.granularity {
            Granularity::Example => Measure::Example,
            Granularity::Token => Measure::Token,
        }
    }
}

/// Returns `w I_h + (1 - w) H_h / log(n_keys)`, the HIS+AE score: important heads and heads with spread-out attention are kept.
fn importance_entropy(importance: &HeadScores, entropy: &HeadScores, weight: f64) -> HeadScores {
    importance
        .map(|head, importance| weight * importance + (1.0 - weight) * entropy.get(head).unwrap_or_default())
}

/// Data that an experiment depends on in addition to the split that it scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Ingredient {
    /// SHA-256 of its segments.
    pub sha256: String,
    /// Arguments of its model and data that differ from those of the scored split; names begin with the role.
    pub arguments: Vec<(String, Value)>,
}

impl Ingredient {
    /// Describes the segments of `scored` relative to the identity of the experiment.
    ///
    /// - `role`: its purpose, such as `estimate`
    pub fn of(subject: &Subject, scored: &Scored, role: &str, identity: &Identity) -> Result<Self, Error> {
        let Identity { mut data, arguments, .. } = subject.identity("", scored)?;
        let unknown = || subject::Error::NoSuchSplit { split: scored.split.clone(), known: Vec::new() };
        let sha256 = data.remove(&scored.split).ok_or_else(unknown)?;
        // These belong to the model and the sample, and are recorded there.
        let is_told = |name: &str| ["rescale", "sample", "removed_heads"].contains(&name);
        let differs =
            |(name, value): &(String, Value)| !is_told(name) && identity.arguments.get(name) != Some(value);
        let named = |(name, value)| (format!("{role}: {name}"), value);
        Ok(Self { sha256, arguments: arguments.into_iter().filter(differs).map(named).collect() })
    }

    /// Adds an ingredient to the identity of an experiment.
    pub fn describe(
        subject: &Subject,
        scored: &Scored,
        role: &str,
        identity: &mut Identity,
    ) -> Result<(), Error> {
        let Self { sha256, arguments } = Self::of(subject, scored, role, identity)?;
        identity.data.insert(format!("{role}: {}", scored.split), sha256);
        identity.arguments.extend(arguments);
        Ok(())
    }
}

/// Shuffles heads. The setup's name is part of the seed, so that setups of equal size get different orders.
pub fn random_order(heads: &[HeadId], subject: &str, seed: u64) -> Vec<HeadId> {
    // FNV-1a (Fowler, Noll and Vo), with its constants for 64 bits
    let stream = subject.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    let mut order = heads.to_vec();
    order.shuffle(&mut random);
    order
}

/// Results of `ablate-one`, for the oracle ranking.
#[derive(Debug, Clone)]
pub struct Oracle {
    rows: Vec<AblationRow>,
}

impl Oracle {
    /// Finds complete results for the subject's model and the scored split; `None` if they are missing or from another run.
    pub fn find(
        description: &Description,
        results: &Path,
        (subject, scored): (&Subject, &Scored),
    ) -> Result<Option<Self>, Error> {
        let identity = subject.identity(ABLATE_ONE.name, scored)?;
        let path = description.result_path(results, ABLATE_ONE.name, scored);
        Ok(find(&path, &identity)?.map(|found| Self { rows: found.rows }))
    }

    /// Returns results of `ablate-one` on a split; missing rows are measured.
    pub fn measured(
        on: &Scored,
        heads: &[HeadId],
        model: (&Description, &Subject),
        with: (&SharedArgs, &Machine),
    ) -> Result<Self, Error> {
        Ok(Self { rows: HeadSweep::measured(on, heads, model, with)?.rows })
    }

    /// Returns the loss of score without each of `heads`, in the metric's unit; `None` if a head has no row.
    pub fn scores(&self, heads: &[HeadId]) -> Option<HeadScores> {
        let lost = |&id: &HeadId| {
            let row = self.rows.iter().find(|row| row.head_id() == id)?;
            Some((id, -row.gain()))
        };
        heads.iter().map(lost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(entries: &[(&str, f64)]) -> HeadScores {
        entries.iter().map(|&(name, score)| (name.parse().unwrap(), score)).collect()
    }

    fn estimate() -> Estimate {
        let on = Scored::first("train".to_owned(), None, false);
        Estimate { on, granularity: Granularity::Example, normalise: true, entropy_weight: 0.25 }
    }

    fn measured() -> BTreeMap<Measure, HeadScores> {
        BTreeMap::from([
            (Measure::Example, scores(&[("self:1:1", 3.0), ("self:1:2", 4.0)])),
            (Measure::Entropy, scores(&[("self:1:1", 0.2), ("self:1:2", 0.7)])),
            (Measure::NormalisedEntropy, scores(&[("self:1:1", 0.1), ("self:1:2", 0.5)])),
        ])
    }

    /// 3/5 and 4/5 after normalisation; weight 1/4, and weight 3/4 for the entropies 0.1 and 0.5. A high entropy goes first.
    #[test]
    fn importance_and_entropy_are_mixed_after_optional_normalisation_and_high_entropy_goes_first() {
        let found = estimate().score(Order::By(Measure::ImportanceEntropy), &measured());
        let expected = [0.25 * 0.6 + 0.75 * 0.1, 0.25 * 0.8 + 0.75 * 0.5];
        for ((head, found), expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{head}: {found}");
        }
        let plain = Estimate { normalise: false, ..estimate() };
        assert_eq!(plain.score(Order::Importance, &measured()), measured()[&Measure::Example]);
        let order = estimate().score(Order::By(Measure::Entropy), &measured()).ascending();
        assert_eq!(order[0].to_string(), "self:1:2");
    }

    #[test]
    fn a_random_order_has_all_heads_and_depends_on_the_seed_and_the_subject_alone() {
        let heads: Vec<HeadId> = (1..=40).map(|head| format!("self:1:{head}").parse().unwrap()).collect();
        let order = random_order(&heads, "demo", 7);
        assert_eq!(order, random_order(&heads, "demo", 7));
        assert_ne!(order, random_order(&heads, "demo", 8));
        assert_ne!(order, random_order(&heads, "tiny", 7));
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, heads);
    }
}
