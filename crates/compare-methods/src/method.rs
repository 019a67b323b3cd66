//! A method that chooses heads, and what it costs.
use core_masking::{HeadSet, Needs};
use experiment::Pool;
use records::{CurveId, MetricName, Order, PruningRow, Repair, RepairedRow};

/// An order of the heads of a pool, the first of which are masked.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    /// The heads.
    pub pool: &'a Pool,
    /// Their order.
    pub order: Order,
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// Reverses the order.
    pub complement: bool,
}

/// Segments that a model reads for some purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passes {
    /// Read forward.
    pub forward: usize,
    /// Of these, followed backward from their loss.
    pub backward: usize,
}

impl<'a> Method<'a> {
    /// The orders of a pool: a random one for each seed, and of importance the complement too, which masks what importance keeps
    /// (Prasanna et al. 2020).
    pub fn all(pool: &'a Pool, orders: &[Order], seeds: &[u64]) -> Vec<Self> {
        let of_order = |&order: &Order| {
            let plain = Self { pool, order, seed: None, complement: false };
            match order {
                Order::Random => seeds.iter().map(|&seed| Self { seed: Some(seed), ..plain }).collect(),
                Order::Importance => vec![plain, Self { complement: true, ..plain }],
                _ => vec![plain],
            }
        };
        orders.iter().flat_map(of_order).collect()
    }

    /// Its name in result files.
    pub fn id(&self) -> CurveId {
        CurveId { order_seed: self.seed, complement: self.complement, ..self.pool.curve(self.order) }
    }

    /// The steps that have a row, with the number of heads that are masked: some, but not all.
    pub fn steps(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.pool.heads.len();
        self.pool.counts().into_iter().enumerate().filter(move |&(_, count)| count > 0 && count < all)
    }

    /// Its row at a step, without scores.
    pub fn row(&self, (step, masked): (usize, &HeadSet), metric: MetricName, repair: Repair) -> RepairedRow {
        let row = self.pool.row(self.order, step, masked, metric);
        let row = PruningRow { order_seed: self.seed, complement: self.complement, ..row };
        RepairedRow { repair, ..RepairedRow::from(row) }
    }

    /// What it takes to order the heads by this many segments.
    pub fn passes(&self, segments: usize) -> Passes {
        let read = |forward, backward| Passes { forward, backward };
        match self.order {
            Order::Random => Passes::default(),
            Order::Oracle => read((self.pool.heads.len() + 1) * segments, 0),
            Order::By(measure) if !measure.is_gradient() && measure.entry().needs != Needs::Measures => {
                read(segments, 0)
            }
            _ => read(segments, segments),
        }
    }
}
