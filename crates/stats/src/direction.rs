/// Which of two scores of a metric is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// BLEU, accuracy.
    HigherIsBetter,
    /// Nats per token.
    LowerIsBetter,
}

impl Direction {
    /// How much better a model became whose score changed by `delta`; below 0, how much worse.
    pub fn gain(self, delta: f64) -> f64 {
        match self {
            Self::HigherIsBetter => delta,
            Self::LowerIsBetter => -delta,
        }
    }

    /// Whether `score` is better than `other`; of equals, none is.
    pub fn is_better(self, score: f64, other: f64) -> bool {
        self.gain(score) > self.gain(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_score_is_the_one_that_gains() {
        let (higher, lower) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        assert!(higher.is_better(2.0, 1.0) && !higher.is_better(1.0, 1.0) && !higher.is_better(1.0, 2.0));
        assert!(lower.is_better(1.0, 2.0) && !lower.is_better(1.0, 1.0) && !lower.is_better(2.0, 1.0));
        assert_eq!((higher.gain(-0.5), lower.gain(-0.5)), (-0.5, 0.5));
    }
}
