//! A method that chooses heads, with the names of its rows.
use core_masking::HeadSet;
use experiment::Pool;
use records::{CurveId, MetricName, Order, PruningRow, Repair, RepairedRow};

/// A method that chooses heads of a pool to mask.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    /// The heads.
    pub pool: &'a Pool,
    /// Its name: an order, the first heads of which are masked, or another way to choose.
    pub order: Order,
    /// Seed of a random order.
    pub seed: Option<u64>,
    /// Reverses the order.
    pub complement: bool,
}

/// A number of heads, and the rows that are of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its place, counted from 0, where no head is masked.
    pub place: usize,
    /// Number of masked heads.
    pub count: usize,
}

/// The steps at which some heads of a pool are masked, but not all.
pub fn steps(pool: &Pool) -> Vec<Step> {
    let steps = pool.counts().into_iter().enumerate().map(|(place, count)| Step { place, count });
    steps.filter(|step| step.count > 0 && step.count < pool.heads.len()).collect()
}

impl<'a> Method<'a> {
    /// The methods of a pool: a random order for each seed, and of importance the complement too, which masks what importance keeps
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

    /// The steps at which some heads are masked, but not all.
    pub fn steps(&self) -> Vec<Step> {
        steps(self.pool)
    }

    /// The steps that have a row after a repair: of models that are trained further, the control too, which has all heads.
    pub fn steps_of(&self, repair: Repair) -> Vec<Step> {
        let control = (repair == Repair::Training).then_some(Step { place: 0, count: 0 });
        control.into_iter().chain(self.steps()).collect()
    }

    /// Its row at a step, without scores.
    pub fn row(&self, step: Step, masked: &HeadSet, metric: MetricName, repair: Repair) -> RepairedRow {
        let row = self.pool.row(self.order, step.place, masked, metric);
        let row = PruningRow { order_seed: self.seed, complement: self.complement, ..row };
        RepairedRow { repair, ..RepairedRow::from(row) }
    }
}
