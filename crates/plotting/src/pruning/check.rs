//! What rows of a pruning file must be.
use std::path::Path;

use records::{Order, PruningRow};

use super::curve::Series;
use super::order::{Scope, allowed_orders};
use crate::Error;
use crate::attention::Attention;
use crate::tested::implausible;

/// More heads than this are a fault, not a model.
const MOST: usize = 100_000;

/// The file that rows are from, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    pub path: &'a Path,
    pub experiment: &'static str,
}

impl File<'_> {
    pub fn scope(self, row: &PruningRow) -> Result<Scope, Error> {
        let scope = Scope::parse(&row.attention);
        scope.ok_or_else(|| self.unknown("attention", &row.attention, Scope::allowed()))
    }

    pub fn order(self, row: &PruningRow) -> Result<Order, Error> {
        Order::parse(&row.order).ok_or_else(|| self.unknown("order", &row.order, allowed_orders()))
    }

    /// Types of the masked heads, with that of the scope.
    pub fn attentions(self, row: &PruningRow) -> Result<Vec<Attention>, Error> {
        let names = row.masked_heads.split('+').filter(|name| !name.is_empty());
        let types = names.map(|name| name.split(':').next().unwrap_or(name));
        let types = types.chain((row.attention != "all").then_some(row.attention.as_str()));
        let allowed = || Attention::ALL.map(Attention::name).join(", ");
        let parse =
            |name: &str| name.parse().map_err(|_| self.unknown("type in masked_heads", name, allowed()));
        types.map(parse).collect()
    }

    fn unknown(self, column: &'static str, found: &str, allowed: String) -> Error {
        let (path, found) = (self.path.to_owned(), found.to_owned());
        Error::Name { path, experiment: self.experiment, column, found, allowed }
    }

    pub fn check_numbers(self, row: &PruningRow) -> Result<(), Error> {
        let fault = |column, found, range| {
            Err(Error::Range { path: self.path.to_owned(), head: name(row), column, found, range })
        };
        if !(1..=MOST).contains(&row.heads) {
            return fault("heads", row.heads as f64, "1 to 100000");
        }
        if row.masked > row.heads {
            return fault("masked", row.masked as f64, "at most `heads`: no more than 100 % can be masked");
        }
        implausible(row, row.score_delta).map_or(Ok(()), |(column, found, range)| fault(column, found, range))
    }

    /// Metric and base score are the same in all rows, also in those of another file.
    pub fn check_same_run(self, row: &PruningRow, metric: &str, base: f64) -> Result<(), Error> {
        if row.metric != metric {
            return self.mixed(
                "metric",
                format!("`{metric}`"),
                format!("`{}` for {}", row.metric, name(row)),
            );
        }
        if row.base_score != base {
            let found = format!("{} for {}", row.base_score, name(row));
            return self.mixed("base_score", base.to_string(), found);
        }
        Ok(())
    }

    /// From one step to the next, no head comes back.
    pub fn check_steps(self, steps: &[PruningRow]) -> Result<(), Error> {
        let falls = steps.windows(2).find(|pair| pair[1].masked < pair[0].masked);
        falls.map_or(Ok(()), |pair| {
            Err(Error::Range {
                path: self.path.to_owned(),
                head: name(&pair[1]),
                column: "masked",
                found: pair[1].masked as f64,
                range: "no less than in the step before",
            })
        })
    }

    /// Percentages of different wholes cannot share an axis.
    pub fn check_heads(self, series: &[Series]) -> Result<(), Error> {
        for one in series {
            let of_scope = series.iter().filter(|other| other.curve.scope == one.curve.scope);
            let mut rows = of_scope.flat_map(|series| &series.runs).flat_map(|run| &run.steps);
            let Some(first) = rows.next() else { continue };
            if let Some(other) = rows.find(|row| row.heads != first.heads) {
                let describe = |row: &PruningRow| format!("{} for {}", row.heads, name(row));
                return self.mixed("heads", describe(first), describe(other));
            }
        }
        Ok(())
    }

    fn mixed(self, column: &'static str, expected: String, found: String) -> Result<(), Error> {
        Err(Error::Mixed { path: self.path.to_owned(), column, expected, found })
    }
}

/// What messages call a row: `all by random, seed 3, step 2`, `all by importance, complement, step 2`.
fn name(row: &PruningRow) -> String {
    let seed = row.order_seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let complement = if row.complement { ", complement" } else { "" };
    format!("{} by {}{seed}{complement}, step {}", row.attention, row.order, row.step)
}
