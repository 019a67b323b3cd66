//! Sufficient statistics of test sets.

/// Sufficient statistics of a test set: numbers for each segment, whose sums over any resample determine the score.
pub(crate) struct Counted {
    /// `[segment, number]`
    numbers: Vec<f64>,
    width: usize,
    score: fn(&[f64]) -> f64,
}

impl Counted {
    /// - `numbers`: the numbers of each segment
    /// - `score`: the score for these sums, in the unit of the metric; also defines the score of 0/0
    pub(crate) fn new<const N: usize>(
        numbers: impl IntoIterator<Item = [f64; N]>,
        score: fn(&[f64]) -> f64,
    ) -> Self {
        Self { numbers: numbers.into_iter().flatten().collect(), width: N, score }
    }

    pub(crate) fn mean(all: &[Self]) -> Self {
        let mut numbers = vec![0.0; all[0].numbers.len()];
        for own in all {
            assert_eq!(own.numbers.len(), numbers.len(), "paired systems must cover the same segments");
            numbers.iter_mut().zip(&own.numbers).for_each(|(sum, number)| *sum += number);
        }
        numbers.iter_mut().for_each(|sum| *sum /= all.len() as f64);
        Self { numbers, width: all[0].width, score: all[0].score }
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len() / self.width
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &[f64]> {
        self.numbers.chunks_exact(self.width)
    }

    pub(crate) fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        for segment in self.segments() {
            sums.iter_mut().zip(segment).for_each(|(sum, number)| *sum += number);
        }
        sums
    }

    pub(crate) fn score_of(&self, sums: &[f64]) -> f64 {
        (self.score)(sums)
    }

    pub(crate) fn score(&self) -> f64 {
        self.score_of(&self.sums())
    }

    pub(crate) fn variant(&self, variant: &Self) -> Variant {
        assert_eq!(self.len(), variant.len(), "paired systems must cover the same segments");
        let mut found = Variant { score: variant.score(), changed: Vec::new(), differences: Vec::new() };
        for (segment, (base, own)) in self.segments().zip(variant.segments()).enumerate() {
            if base != own {
                found.changed.push(segment);
                found.differences.extend(own.iter().zip(base).map(|(own, base)| own - base));
            }
        }
        found
    }
}

/// A variant as its differences from the base, which are few.
pub(crate) struct Variant {
    /// Score from the variant's own numbers, so that it equals the measured one without rounding errors.
    pub(crate) score: f64,
    pub(crate) changed: Vec<usize>,
    /// The variant's numbers minus the base's, `[change, number]`.
    pub(crate) differences: Vec<f64>,
}

impl Variant {
    /// Returns the variant's numbers minus the base's for each segment; `None` for unchanged segments.
    pub(crate) fn by_segment(&self, base: &Counted) -> Vec<Option<&[f64]>> {
        let mut all = vec![None; base.len()];
        for (&segment, difference) in self.changed.iter().zip(self.differences.chunks_exact(base.width())) {
            all[segment] = Some(difference);
        }
        all
    }

    pub(crate) fn first_changes(&self, base: &Counted) -> Vec<f64> {
        self.by_segment(base).into_iter().map(|own| own.map_or(0.0, |own| own[0])).collect()
    }

    /// Returns the number of blocks of this many segments that contain a change.
    pub(crate) fn changed_units(&self, block: usize) -> usize {
        self.changed.chunk_by(|left, right| left / block == right / block).count()
    }
}
