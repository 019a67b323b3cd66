//! Rows of models that were trained further with gates.
use heads::{Attention, HeadSet, Scope, names::named};

use super::{BASE, Goal, Row, TestedRow, tested_columns, tested_row};
use crate::check::{Limit, MOST, finite, step_limits, test_limits};

/// Choice of the heads of a row. The model was then trained further, with equally many updates for every method but [`Self::Scratch`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Heads kept by trained gates (Voita et al. 2019).
    #[default]
    Gates,
    /// All heads are kept.
    Ungated,
    /// The most important heads are kept (Michel et al. 2019, Equation 2).
    Importance,
    /// The heads that cost most when masked alone are kept: the oracle of Michel et al. (2019), Section 4.
    Oracle,
    /// Random heads are kept, one choice per seed.
    Random,
    /// The heads whose gates would close first are kept.
    Complement,
    /// The heads of trained gates are kept; the others were masked from the first update on, and no gate was trained.
    Chosen,
    /// The heads of trained gates are kept in a new model that never had the others: trained for all epochs of the model and of its further
    /// training (Voita et al. 2019, Section 6.3).
    Scratch,
}

impl Method {
    /// All methods, in the order of legends and tables.
    pub const ALL: [Self; 8] = [
        Self::Gates,
        Self::Chosen,
        Self::Importance,
        Self::Oracle,
        Self::Random,
        Self::Complement,
        Self::Scratch,
        Self::Ungated,
    ];

    /// Returns true if its heads depend on trained gates.
    pub fn depends_on_gates(self) -> bool {
        matches!(self, Self::Complement | Self::Chosen | Self::Scratch)
    }

    /// Returns the name in result files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::Ungated => "ungated",
            Self::Importance => "importance",
            Self::Oracle => "oracle",
            Self::Random => "random",
            Self::Complement => "complement",
            Self::Chosen => "chosen",
            Self::Scratch => "scratch",
        }
    }
}

named!(Method, "method", Method::ALL);

tested_row! {
    /// One row of `train-gates`: a model trained further with some heads pruned (Voita et al. 2019, Section 6, Figure 7 and Table 2).
    pub struct GateRow {
        /// Attention type of the heads that can be pruned, or `all`.
        pub attention: Scope,
        /// Choice of the heads: `gates` or a control.
        pub method: Method,
        /// Seed of a random choice; empty for other methods.
        pub method_seed: Option<u64>,
        /// Penalty for an open gate, in nats per prediction; empty if a number of heads was given.
        pub lambda: Option<f64>,
        /// Number of heads to keep; empty if a penalty was given or no head is pruned.
        pub target: Option<usize>,
        /// Number of heads kept.
        pub kept: usize,
        /// Number of heads that can be pruned.
        pub heads: usize,
        /// Heads kept in encoder self-attention; empty if the model has none.
        pub kept_enc_enc: Option<usize>,
        /// Heads kept in encoder-decoder attention; empty if the model has none.
        pub kept_enc_dec: Option<usize>,
        /// Heads kept in decoder self-attention; empty if the model has none.
        pub kept_dec_dec: Option<usize>,
        /// Heads kept in self-attention of classifiers and language models; empty for translators.
        pub kept_self: Option<usize>,
        [tests]
        /// Score on the development split, in the unit of the metric.
        pub dev_score: f64,
        /// Loss on the development split, in nats per prediction, without the penalty.
        pub dev_loss: f64,
        /// Epoch whose weights are used.
        pub epoch: usize,
        /// Updates of all epochs.
        pub steps: usize,
        /// Expected number of open gates minus `kept`; empty without gates.
        pub gap: Option<f64>,
        /// Heads kept, joined by `+`: `enc-enc:1:2+enc-enc:6:13`.
        pub kept_heads: String,
    }
}

impl GateRow {
    /// Returns the setting that distinguishes it from other rows of its method.
    pub fn goal(&self) -> Goal {
        match (self.lambda, self.target) {
            (Some(lambda), _) => Goal::Penalty(lambda),
            (None, Some(target)) => Goal::Heads(target),
            (None, None) => Goal::AllHeads,
        }
    }

    /// Returns the number of heads kept of one attention type; `None` if the model has no such heads.
    pub fn kept_of(&self, attention: Attention) -> Option<usize> {
        match attention {
            Attention::EncEnc => self.kept_enc_enc,
            Attention::EncDec => self.kept_enc_dec,
            Attention::DecDec => self.kept_dec_dec,
            Attention::SelfAttention => self.kept_self,
        }
    }

    /// Returns its name as part of a file name: `enc-enc-gates-heads-24`.
    pub fn short_name(&self) -> String {
        self.name().replace('/', "-")
    }
}

impl Row for GateRow {
    /// Attention type, method, seed of a random choice, target, and bits of λ, which sort like λ.
    type Key = (&'static str, Method, Option<u64>, Option<usize>, Option<u64>);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.method, self.method_seed, self.target, self.lambda.map(f64::to_bits))
    }

    /// For example `enc-enc/gates/heads-24`.
    fn name(&self) -> String {
        let seed = self.method_seed.map(|seed| format!("-{seed}")).unwrap_or_default();
        format!("{}/{}{seed}/{}", self.attention, self.method, self.goal())
    }

    fn limits(&self) -> Vec<Limit> {
        let kept = Limit::new("kept", self.kept as f64, 0.0..=self.heads as f64, "at most `heads`");
        let lambda = Limit::optional("lambda", self.lambda, 0.0..=MOST, "at least 0");
        let [heads, _] = step_limits(0, self.heads);
        let others = finite(&[
            ("dev_score", Some(self.dev_score)),
            ("dev_loss", Some(self.dev_loss)),
            ("gap", self.gap),
        ]);
        [heads, kept, lambda].into_iter().chain(others).chain(test_limits(self, self.score_delta)).collect()
    }

    fn fault(&self) -> Option<String> {
        let of_types = Attention::ALL.into_iter().filter(|&attention| self.attention.holds(attention));
        // a file may contain any number
        let by_type = of_types.filter_map(|attention| self.kept_of(attention)).fold(0, usize::saturating_add);
        match self.kept_heads.parse::<HeadSet>() {
            Err(fault) => Some(fault.to_string()),
            Ok(heads) if heads.len() != self.kept => {
                Some(format!("`kept_heads` has {} heads, but {} are kept", heads.len(), self.kept))
            }
            Ok(_) if by_type != self.kept => {
                Some(format!("attention types keep {by_type} heads in total, but `kept` is {}", self.kept))
            }
            Ok(_) => None,
        }
    }

    fn of_run(&self) -> Vec<(&'static str, String)> {
        vec![("metric", format!("`{}`", self.metric)), ("base_score", self.base_score.to_string())]
    }

    fn group(&self) -> Option<String> {
        Some(self.attention.to_string())
    }

    fn of_group(&self) -> Vec<(&'static str, String)> {
        vec![("heads", self.heads.to_string())]
    }
}

impl TestedRow for GateRow {
    /// Returns its attention type and method, such as `enc-enc/gates`.
    fn family(&self) -> String {
        format!("{}/{}", self.attention, self.method)
    }

    fn base(&self) -> String {
        BASE.to_owned()
    }

    tested_columns!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_heads_must_match_their_number() {
        let of_four = GateRow { heads: 4, kept_heads: "self:1:1+self:2:3".to_owned(), ..GateRow::default() };
        let row = |kept| GateRow { kept, kept_self: Some(kept), ..of_four.clone() };
        assert_eq!(row(2).fault(), None);
        for (faulty, expected) in [
            (GateRow { kept_self: Some(4), ..row(2) }, "attention types keep 4 heads"),
            (GateRow { kept_enc_enc: Some(usize::MAX), ..row(2) }, "attention types keep"),
            (row(3), "`kept_heads` has 2 heads"),
            (GateRow { kept_heads: "self:x".to_owned(), ..row(1) }, "`self:x` is not a head"),
        ] {
            let fault = faulty.fault().unwrap();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
