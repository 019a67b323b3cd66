//! Arguments of searches that train gates or score head sets.
use records::{Identity, Order};
use serde_json::Value;
use subject::Description;

use crate::error::Error;

/// Arguments of orders that train or search.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Orders that train or search")]
pub struct SelectorArgs {
    /// Passes over the training split in which gates, subset-pruning and subset-straight-through train their gates for each number of
    /// heads; the model's weights stay fixed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub selector_epochs: u64,

    /// Split on which greedy-forward and swap score head sets [default: the development split, or the training split if the development
    /// split is scored; with --preset compare-methods the split of --estimate-on]
    #[arg(long, value_name = "SPLIT")]
    pub search_on: Option<String>,

    /// Random segments of that split, drawn with --seed
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub search_limit: u64,

    /// Maximum number of head sets that swap scores for each number of heads
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    pub evaluations: u64,

    /// Random segments of the split of --estimate-on on which relevance is computed, at most --estimate-limit
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub relevance_limit: u64,
}

impl SelectorArgs {
    /// Refuses orders that the setup cannot provide: gates without a training recipe, or relevance if it is not defined for the model.
    pub fn check(orders: &[Order], description: &Description) -> Result<(), Error> {
        let trained = orders.iter().find(|order| order.is_trained());
        if let (Some(order), None) = (trained, description.epochs()) {
            return Err(Error::input(format!(
                "the model of setup `{}` is not trained here, so there is no recipe to train gates: leave {order} out of --order",
                description.name()
            )));
        }
        if orders.contains(&Order::Relevance) {
            description.check_relevance()?;
        }
        Ok(())
    }

    /// Returns the settings, by name, that rows of these orders depend on. Searches by score are described with their split instead.
    pub fn of_orders(&self, orders: &[Order]) -> Vec<(&'static str, Value)> {
        let trained = orders.iter().any(|order| order.is_trained());
        let epochs = trained.then(|| ("selector_epochs", self.selector_epochs.into()));
        let relevance = orders.contains(&Order::Relevance);
        let limit = relevance.then(|| ("relevance_limit", self.relevance_limit.into()));
        epochs.into_iter().chain(limit).collect()
    }

    /// Adds the settings to the identity of an experiment that compares all orders.
    pub fn describe(&self, identity: &mut Identity) {
        let &Self { selector_epochs, search_limit, evaluations, relevance_limit, .. } = self;
        let arguments = [
            ("selector_epochs", selector_epochs),
            ("search_limit", search_limit),
            ("search_evaluations", evaluations),
            ("relevance_limit", relevance_limit),
        ];
        identity.arguments.extend(arguments.map(|(name, value)| (name.to_owned(), value.into())));
    }
}
