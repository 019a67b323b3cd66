//! Results of evaluating a model on a split, and of timing it.
use stats::Segments;

use crate::error::Error;

/// Work that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Scores the segments: reads, classifies or translates them.
    Score,
    /// Generates this many tokens after each segment, greedily and with a key-value cache.
    Continue(usize),
}

/// A pass over a split, to be timed.
pub struct Pass<'a> {
    /// Number of segments.
    pub segments: usize,
    /// Number of tokens that are read (of a translator, source tokens) or, if segments are continued, generated.
    pub tokens: u64,
    /// Computes all segments once; returns the number of multiply-adds, padding included. Fails if the model cannot read a segment.
    pub run: Box<dyn Fn() -> Result<u64, Error> + 'a>,
}

/// A score, with the data for significance tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// In the unit of the metric: BLEU, accuracy and F1 in points from 0 to 100, losses in nats per token.
    pub score: f64,
    /// Results of each segment.
    pub segments: Segments,
}

impl Evaluation {
    /// Computes the score from the results of all segments.
    ///
    /// # Errors
    /// If there are no segments, or the metric does not support a class.
    pub fn new(segments: Segments) -> Result<Self, Error> {
        Ok(Self { score: segments.score()?, segments })
    }
}
