//! Rows of audits: a list of heads, and random sets with equally many heads in each layer.
use super::{BASE, Row, TestedRow, heads_fault, tested_columns, tested_row};
use crate::check::{Limit, MOST, test_limits};

tested_row! {
    /// One row of `audit`: the list of heads, or a random set with equally many heads in each layer.
    pub struct AuditRow {
        /// Seed of the random set; empty for the list.
        pub draw: Option<u64>,
        [tests]
        /// Rank of the list's loss among the random sets: 1 if none loses more; empty for random sets.
        pub rank: Option<usize>,
        /// Number of random sets that the list was compared with.
        pub draws: Option<usize>,
        /// One-sided p-value of the rank: (1 + random sets that lose at least as much) / (1 + random sets).
        pub p_rank: Option<f64>,
        /// Heads of the list among equally many heads of each layer that a second estimate, on other data, puts first; empty without
        /// one.
        pub found_again: Option<usize>,
        /// Expected `found_again` of a random list: hypergeometric in each layer.
        pub found_again_by_chance: Option<f64>,
        /// Probability that `found_again` is at least as large for a random list.
        pub p_found_again: Option<f64>,
        /// Masked heads, joined by `+`.
        pub masked_heads: String,
    }
}

impl Row for AuditRow {
    /// Seed of the random set; `None` for the list, whose row comes first.
    type Key = Option<u64>;

    fn key(&self) -> Self::Key {
        self.draw
    }

    /// Returns `list`, or a name such as `draw-7`.
    fn name(&self) -> String {
        self.draw.map_or_else(|| "list".to_owned(), |seed| format!("draw-{seed}"))
    }

    fn limits(&self) -> Vec<Limit> {
        let own = [
            Limit::share("p_rank", self.p_rank),
            Limit::optional(
                "found_again_by_chance",
                self.found_again_by_chance,
                0.0..=MOST,
                "a number of heads",
            ),
            Limit::share("p_found_again", self.p_found_again),
        ];
        test_limits(self, self.score_delta).into_iter().chain(own).collect()
    }

    fn fault(&self) -> Option<String> {
        heads_fault(&self.masked_heads, self.masked_heads.split('+').count())
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }
}

impl TestedRow for AuditRow {
    fn family(&self) -> String {
        if self.draw.is_none() { "list" } else { "draws" }.to_owned()
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    fn compare(rows: &mut [Self]) {
        let draws: Vec<f64> = rows.iter().filter(|row| row.draw.is_some()).map(Self::gain).collect();
        let Some(list) = rows.iter_mut().find(|row| row.draw.is_none()).filter(|_| !draws.is_empty()) else {
            return;
        };
        let gain = list.gain();
        list.rank = Some(1 + draws.iter().filter(|draw| **draw < gain).count());
        list.draws = Some(draws.len());
        let as_large = draws.iter().filter(|draw| **draw <= gain).count();
        list.p_rank = Some((1 + as_large) as f64 / (1 + draws.len()) as f64);
    }

    tested_columns!();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses of 3 for the list and 1, 3, 5 and 2 for the random sets: one loses more, two at least 3.
    #[test]
    fn a_list_is_ranked_by_its_loss() {
        let base = AuditRow { base_score: 9.0, ..AuditRow::default() };
        let row = |(draw, score)| AuditRow { draw, score, score_delta: score - 9.0, ..base.clone() };
        let mut rows = [(None, 6.0), (Some(1), 8.0), (Some(2), 6.0), (Some(3), 4.0), (Some(4), 7.0)].map(row);
        AuditRow::compare(&mut rows);
        assert_eq!((rows[0].rank, rows[0].draws, rows[0].p_rank), (Some(2), Some(4), Some(3.0 / 5.0)));
        assert_eq!(rows[1].rank, None);
    }
}
