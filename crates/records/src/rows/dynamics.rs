//! Rows of pruning curves during training.
use super::{BASE, Row, TestedRow, falls, heads_fault, tested_columns, tested_row};
use crate::check::{Limit, step_limits, test_limits};

tested_row! {
    /// One row of `training-dynamics`: a checkpoint with its least important heads masked (Michel et al. 2019, Section 6, Figure 5).
    pub struct DynamicsRow {
        /// Epoch that ends at this checkpoint, counted from 1; empty for a checkpoint within an epoch.
        pub epoch: Option<usize>,
        /// Parameter updates before this checkpoint.
        pub updates: usize,
        /// Step of the curve; no head is masked at step 0.
        pub step: usize,
        /// Number of masked heads.
        pub masked: usize,
        /// Number of heads that can be masked.
        pub heads: usize,
        [tests]
        /// Masked heads, joined by `+`: `enc-enc:1:2+enc-enc:6:13`; empty at step 0.
        pub masked_heads: String,
    }
}

impl DynamicsRow {
    /// Returns the name of the row of a step after this many updates, such as `1200/3`.
    pub fn name_of(updates: usize, step: usize) -> String {
        format!("{updates}/{step}")
    }
}

impl Row for DynamicsRow {
    type Key = (usize, usize);

    fn key(&self) -> Self::Key {
        (self.updates, self.step)
    }

    /// Returns its checkpoint and step, such as `1200/3`.
    fn name(&self) -> String {
        Self::name_of(self.updates, self.step)
    }

    fn title(&self) -> String {
        format!("step {} after {} updates", self.step, self.updates)
    }

    fn limits(&self) -> Vec<Limit> {
        step_limits(self.masked, self.heads).into_iter().chain(test_limits(self, self.score_delta)).collect()
    }

    fn fault(&self) -> Option<String> {
        heads_fault(&self.masked_heads, self.masked)
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("heads", self.heads.to_string())]
    }

    fn series(&self) -> String {
        self.family()
    }

    fn group(&self) -> Option<String> {
        Some(self.family())
    }

    fn of_group(&self) -> Vec<(&'static str, String)> {
        let epoch = self.epoch.map_or("empty".to_owned(), |epoch| epoch.to_string());
        vec![("epoch", epoch), ("base_score", self.base_score.to_string())]
    }

    /// Checks that epochs rise with the updates.
    fn against(&self, before: &Self) -> Option<(&'static str, f64, &'static str)> {
        if self.updates == before.updates {
            return falls(before.masked, self.masked);
        }
        let epoch = self.epoch.filter(|&epoch| before.epoch.is_some_and(|before| epoch <= before))?;
        Some(("epoch", epoch as f64, "above the epoch of the previous checkpoint"))
    }
}

impl TestedRow for DynamicsRow {
    fn family(&self) -> String {
        self.updates.to_string()
    }

    /// Returns the checkpoint with all its heads, such as `1200/base`.
    fn base(&self) -> String {
        format!("{}/{BASE}", self.updates)
    }

    fn is_full_model(&self) -> bool {
        self.masked == 0
    }

    fn masked_heads(&self) -> Option<&str> {
        Some(&self.masked_heads)
    }

    tested_columns!();
}
