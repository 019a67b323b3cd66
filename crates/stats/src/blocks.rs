//! Blocks of segments that are not independent, such as windows of one text.
//!
//! Hall, Horowitz and Jing (1995), *On Blocking Rules for the Bootstrap with Dependent Data*, Biometrika 82, 561-574: blocks can be treated
//! as independent once they are longer than the dependence between neighbours reaches.

use crate::Segments;

/// Minimum number of blocks in a test set, so that they can be resampled and swapped.
const MIN_BLOCKS: usize = 20;

/// Share of the maximum variance that is enough.
const ALL: f64 = 0.95;

/// Returns how many neighbouring segments to resample and swap together: the smallest power of 2 at which the variance of the mean
/// difference between variants and base, averaged over the variants, reaches 95% of its maximum over all powers. A test set keeps at least
/// [`MIN_BLOCKS`] blocks; if the variance still grows at that limit, tests underestimate it. Always 1 for metrics other than nats per
/// token.
///
/// # Panics
/// If a variant covers other segments or has another metric.
pub fn block_length(base: &Segments, variants: &[Segments]) -> usize {
    let Segments::Nats(_) = base else { return 1 };
    let differences: Vec<Vec<f64>> =
        variants.iter().map(|variant| deviations(base, variant)).filter(|own| !own.is_empty()).collect();
    let variance = |block: usize| {
        let of = |own: &Vec<f64>| variance_of_mean(own, block) / variance_of_mean(own, 1);
        differences.iter().map(of).sum::<f64>()
    };
    let lengths = std::iter::successors(Some(1), |block| Some(2 * block));
    let lengths = lengths.take_while(|&block| block == 1 || block * MIN_BLOCKS <= base.len());
    let variances: Vec<(usize, f64)> = lengths.map(|block| (block, variance(block))).collect();
    let greatest = variances.iter().map(|&(_, variance)| variance).fold(0.0, f64::max);
    let enough = variances.iter().find(|&&(_, variance)| variance >= ALL * greatest);
    enough.map_or(1, |&(block, _)| block)
}

/// Returns each segment's change minus the change expected from its share of the tokens; empty if this is always 0.
fn deviations(base: &Segments, variant: &Segments) -> Vec<f64> {
    base.assert_paired(variant);
    let (Segments::Nats(base), Segments::Nats(variant)) = (base, variant) else { return Vec::new() };
    let changes = base.iter().zip(variant).map(|(base, own)| f64::from(own.nats()) - f64::from(base.nats()));
    let changes: Vec<f64> = changes.collect();
    let tokens = base.iter().map(|own| f64::from(own.tokens()));
    let rate = changes.iter().sum::<f64>() / tokens.clone().sum::<f64>().max(1.0);
    let deviations: Vec<f64> =
        changes.iter().zip(tokens).map(|(change, tokens)| change - rate * tokens).collect();
    if deviations.iter().all(|one| one.abs() < 1e-9) { Vec::new() } else { deviations }
}

/// Returns the variance of the mean, up to a factor that all block lengths share.
fn variance_of_mean(deviations: &[f64], block: usize) -> f64 {
    let blocks = deviations.chunks_exact(block);
    let count = blocks.len() as f64;
    blocks.map(|own| own.iter().sum::<f64>().powi(2)).sum::<f64>() / (count * block as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nats::NatsStatistics;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Returns the block length for variants with this correlation between the changes of neighbouring segments.
    fn length(correlation: f64) -> usize {
        let mut lot = ChaCha8Rng::seed_from_u64(1);
        let document = |nats| NatsStatistics::new(nats, 64, 12).unwrap();
        let mut variant = || {
            let mut change = 0.0;
            let mut next = || {
                change = correlation * change + lot.random_range(-1.0..1.0);
                document(100.0 + change)
            };
            Segments::Nats((0..2_000).map(|_| next()).collect())
        };
        let variants: Vec<Segments> = (0..20).map(|_| variant()).collect();
        block_length(&Segments::Nats(vec![document(100.0); 2_000]), &variants)
    }

    /// With correlation r, the variance of a mean of m segments grows as 1 + 2 r / (1 - r) (1 - (1 - r^m) / (m (1 - r))). For r = 0.5 it
    /// grows towards 3, of which m = 16 reaches 92% and m = 32 reaches 96%; for r = 0 it does not grow.
    #[test]
    fn blocks_are_as_long_as_the_dependence_of_neighbours() {
        assert!(length(0.0) <= 4, "{}", length(0.0));
        assert!((16..=64).contains(&length(0.5)), "{}", length(0.5));
        let independent = Segments::Nats(vec![NatsStatistics::new(1.0, 2, 1).unwrap(); 9]);
        assert_eq!(block_length(&independent, std::slice::from_ref(&independent)), 1);
    }
}
