//! Methods that choose a set of heads for each number: gates that are trained on a model as it is, and searches that score sets.
use std::cell::Cell;

use anyhow::{Context, ensure};
use core_masking::HeadSet;
use experiment::Search;
use records::{Cost, Identity, Order};
use subject::{Description, FineTuning, InitialWeights, Scored, TrainedWeights, Work};
use training::{Closing, GATE_RATE, GateStart, GateTraining, Gating, MULTIPLIER_RATE, Penalty};

use crate::method::Method;
use crate::select::{Chosen, Selection};

/// Heads at most for which greedy-forward is a method by default: it scores about half as many sets as the square of their number.
pub const MOST_GREEDY: usize = 100;

/// Arguments of methods that train or search.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Methods that train or search")]
pub struct SelectorArgs {
    /// Passes over the training split in which gates, subset-pruning and subset-straight-through are trained for each number of heads;
    /// the weights of the model stay as they are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    selector_epochs: u64,

    /// Segments of the split of --estimate-on that greedy-forward and swap score sets on, drawn at random with --seed; no more than
    /// --estimate-limit
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    search_limit: u64,

    /// Sets that swap scores at most for each number of heads
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    evaluations: u64,

    /// Segments of that split through which relevance is followed, one by one, drawn at random with --seed; no more than
    /// --estimate-limit
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub relevance_limit: u64,
}

/// Returns true for methods that train gates.
pub fn is_trained(order: Order) -> bool {
    matches!(order, Order::Gates | Order::Subset | Order::SubsetStraight)
}

/// Returns true for methods that take long to choose, so that what rows hold of their choices is used again.
pub fn is_dear(order: Order) -> bool {
    is_trained(order) || matches!(order, Order::GreedyForward | Order::Swap)
}

impl SelectorArgs {
    /// Refuses methods that the subject has no recipe for.
    ///
    /// # Errors
    /// If one trains gates, and the model is a checkpoint that is taken as it is, or relevance cannot be followed through it.
    pub fn check(orders: &[Order], description: &Description) -> anyhow::Result<()> {
        let trained = orders.iter().find(|&&order| is_trained(order));
        ensure!(
            trained.is_none() || description.epochs().is_some(),
            "subject `{}` is not trained here, so that there is no recipe to train gates by: leave {} out of --method",
            description.name(),
            trained.map_or("", |order| order.name())
        );
        if orders.contains(&Order::Relevance) {
            description.check_relevance()?;
        }
        Ok(())
    }

    /// Adds all that the choices depend on to an identity.
    pub fn describe(&self, identity: &mut Identity) {
        let &Self { selector_epochs, search_limit, evaluations, relevance_limit } = self;
        let arguments = [
            ("selector_epochs", selector_epochs),
            ("search_limit", search_limit),
            ("search_evaluations", evaluations),
            ("relevance_limit", relevance_limit),
        ];
        identity.arguments.extend(arguments.map(|(name, value)| (name.to_owned(), value.into())));
    }
}

impl Selection<'_> {
    /// The heads whose gates are closed after a training for each number, in which nothing else is trained.
    ///
    /// # Errors
    /// If the training cannot be done.
    pub fn trained(&self, method: &Method<'_>) -> anyhow::Result<Vec<Chosen>> {
        let epochs = self.selectors.selector_epochs as usize;
        let split = Scored::first(self.description.train_split().to_owned(), None, false);
        let read = epochs * self.subject.pass(&split, 64, Work::Score)?.segments;
        let choose = |count: usize| {
            let (heads, seed) = (method.pool.heads.clone(), self.shared.seed());
            let open = heads.len() - count;
            let closing = if method.order == Order::Gates {
                let (start, penalty) = (GateStart::Open, Penalty::Heads(open));
                Closing::Concrete { start, multiplier_rate: MULTIPLIER_RATE, penalty }
            } else {
                Closing::Subset { open, straight_through: method.order == Order::SubsetStraight }
            };
            // Differs from Li et al. (2021), who have 0.5 for BERT and 0.2 for a translator: in the 119 updates of a pass of
            // `demo-language` that is no better for draws (2.676 nats with 8 of 32 heads, 2.663 at 0.05), and worse straight through
            // (2.961, 2.833).
            let learning_rate = GATE_RATE;
            let tuning = FineTuning {
                name: format!("{}-{open}", method.order),
                initial: InitialWeights::Trained,
                gating: Gating::Trained(GateTraining { heads, closing, learning_rate, seed }),
                trained: TrainedWeights::None,
                epochs,
                seed,
            };
            let tuned = self.description.fine_tune(self.machine, &tuning)?;
            self.training_seconds.update(|before| before + tuned.seconds);
            let gates = tuned.history.last().context("a training has left no gates")?;
            let masked = method.pool.extend(&HeadSet::none(), &method.pool.order(&gates.scores()), count);
            Ok(Chosen { masked, cost: Cost { forward: read, backward: read, updates: tuned.steps } })
        };
        method.steps().iter().map(|step| choose(step.count)).collect()
    }

    /// The heads that a search by the score of sets ends with; it begins with importance.
    ///
    /// # Errors
    /// If the split is at fault.
    pub fn searched(&self, method: &Method<'_>) -> anyhow::Result<Vec<Chosen>> {
        let (subject, seed, split) = (self.subject, self.shared.seed(), &self.estimate.on.split);
        let limit = self.estimate.on.limit.unwrap_or(usize::MAX).min(self.selectors.search_limit as usize);
        let on = Scored::sample(split.clone(), limit, seed, false);
        let importance = self.scores(Order::Importance)?;
        let (order, pass) = (method.pool.order(&importance), self.pass(Order::Importance)?);
        let segments = subject.pass(&on, 64, Work::Score)?.segments;
        let mut evaluator = subject.evaluator(&on, 0)?;
        let scored = Cell::new(0);
        let mut scores = |sets: &[HeadSet]| {
            scored.update(|before| before + sets.len());
            let mut scores = Vec::with_capacity(sets.len());
            evaluator.evaluate(sets, &mut |_, evaluation| {
                scores.push(evaluation.score);
                Ok(())
            })?;
            Ok(scores)
        };
        let direction = subject.metric(split).name().direction();
        let mut search = Search { pool: method.pool, order: &order, direction, scores: &mut scores };
        let (mut masked, mut chosen) = (HeadSet::none(), Vec::new());
        for step in method.steps() {
            (masked, _) = if method.order == Order::GreedyForward {
                search.grow(masked, step.count)?
            } else {
                scored.set(0);
                search.exchange(step.count, self.selectors.evaluations, seed)?
            };
            let forward = pass.forward + scored.get() * segments;
            chosen.push(Chosen { masked: masked.clone(), cost: Cost { forward, ..pass } });
        }
        Ok(chosen)
    }
}
