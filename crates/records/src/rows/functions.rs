//! Rows of the functions of heads.
use heads::{Attention, HeadId, names::named};
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Row;
use crate::check::{Limit, finite, head_limits};

/// Function of heads that a [`HeadFunctionRow`] tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionName {
    /// Mean maximum attention weight: Voita et al. (2019), Section 4.
    Confidence,
    /// Attention to the earlier occurrence of the token, in repeated random tokens: Olsson et al. (2022).
    DuplicateToken,
    /// Attention to the token after the earlier occurrence, in repeated random tokens.
    Induction,
    /// Attention to one relative position, over all queries: Section 5.1.
    Positional,
    /// Attention to one relative position, over the queries that have a key there; not in the paper, and does not make a head positional.
    PositionalThere,
    /// Attention to the previous position, in texts.
    PreviousToken,
    /// Attention to the rarest tokens: Section 5.3.
    Rare,
    /// Attention sink, from all other positions to the first one, in texts: Xiao et al. (2024), <https://arxiv.org/abs/2309.17453>.
    Sink,
    /// Attention along a dependency in one of its directions: Section 5.2.
    Syntactic,
}

impl FunctionName {
    /// All functions, by name.
    pub const ALL: [Self; 9] = [
        Self::Confidence,
        Self::DuplicateToken,
        Self::Induction,
        Self::Positional,
        Self::PositionalThere,
        Self::PreviousToken,
        Self::Rare,
        Self::Sink,
        Self::Syntactic,
    ];

    /// Functions measured as mean attention weights on a position, the rows of `named-heads`, in the order of reports.
    pub const NAMED: [Self; 4] = [Self::Induction, Self::DuplicateToken, Self::PreviousToken, Self::Sink];

    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confidence => "confidence",
            Self::DuplicateToken => "duplicate-token",
            Self::Induction => "induction",
            Self::Positional => "positional",
            Self::PositionalThere => "positional-there",
            Self::PreviousToken => "previous-token",
            Self::Rare => "rare",
            Self::Sink => "sink",
            Self::Syntactic => "syntactic",
        }
    }
}

named!(FunctionName, "function of a head", FunctionName::ALL);

/// Minimum share at one position for a positional head, in percent: Section 5.1.
pub const POSITIONAL_PERCENT: f64 = 90.0;
/// Minimum lead over the most frequent position for a syntactic head, in points: Section 5.2.
pub const SYNTACTIC_POINTS: f64 = 10.0;

/// One row of `head-functions` or `named-heads`: how well a head performs a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadFunctionRow {
    /// Attention type.
    pub attention: Attention,
    /// Layer, counted from 1.
    pub layer: usize,
    /// Head, counted from 1.
    pub head: usize,
    /// Function that is tested.
    pub function: FunctionName,
    /// Relative position (`-1`), relation and direction (`nsubj:verb->subject`), `rarest` or `two-rarest`; empty for
    /// confidence.
    pub detail: String,
    /// Number of hits; for confidence the sum of the maximum weights, for named scores the sum of the weights on the position.
    pub numerator: f64,
    /// Number of queries, arcs or sentences.
    pub denominator: f64,
    /// `numerator` / `denominator`, 0 to 1.
    pub share: f64,
    /// Lower end of the 95% interval of `share`, by resampling sentences; empty with few resamples.
    pub share_low: Option<f64>,
    /// Upper end of the 95% interval of `share`.
    pub share_high: Option<f64>,
    /// Share of resamples in which no other head has a larger `share`.
    pub best: Option<f64>,
    /// `share` under the same attention weights with targets shuffled within sentences; empty for confidence.
    pub shuffled: Option<f64>,
    /// Most frequent relative position of the partner, in words; dependencies only.
    pub baseline_position: Option<i64>,
    /// Share of cases at that position; for named scores the share of uniform attention.
    pub baseline: Option<f64>,
    /// `share` minus `baseline`, in points from -100 to 100.
    pub margin_points: Option<f64>,
    /// Lower end of the 95% interval of `margin_points`.
    pub margin_points_low: Option<f64>,
    /// Upper end of the 95% interval of `margin_points`.
    pub margin_points_high: Option<f64>,
    /// The margin in percent of `baseline`.
    pub margin_percent: Option<f64>,
    /// `true` if the share reaches the threshold of Voita et al. (2019); empty without a threshold.
    pub holds: Option<bool>,
    /// `true` if the share exceeds `baseline` by at least 10% of it; dependencies only.
    pub holds_relative: Option<bool>,
}

impl HeadFunctionRow {
    /// Returns its head.
    pub fn head_id(&self) -> HeadId {
        HeadId::numbered(self.attention, self.layer, self.head)
    }

    /// Returns true for a function that a head may be said to have. Confidence is not a function, and attention over only the queries that
    /// have a key at a position does not make a head positional.
    pub fn is_function(&self) -> bool {
        [FunctionName::Positional, FunctionName::Syntactic, FunctionName::Rare].contains(&self.function)
    }

    /// Returns the function and detail that heads compete for; for positions without the detail, since any position counts.
    pub fn task(&self) -> (FunctionName, &str) {
        let by_head = [FunctionName::Positional, FunctionName::PositionalThere].contains(&self.function);
        (self.function, if by_head { "" } else { &self.detail })
    }
}

impl Row for HeadFunctionRow {
    type Key = (&'static str, usize, usize, &'static str, String);

    fn key(&self) -> Self::Key {
        (self.attention.name(), self.layer, self.head, self.function.name(), self.detail.clone())
    }

    fn name(&self) -> String {
        let Self { function, detail, .. } = self;
        let place = format!("{}:{function}", self.head_id());
        if detail.is_empty() { place } else { format!("{place}:{detail}") }
    }

    fn limits(&self) -> Vec<Limit> {
        let shares = [
            ("share", Some(self.share)),
            ("share_low", self.share_low),
            ("share_high", self.share_high),
            ("best", self.best),
            ("shuffled", self.shuffled),
            ("baseline", self.baseline),
        ]
        .map(|(column, share)| Limit::optional(column, share, 0.0..=1.0, "0 to 1"));
        let others = finite(&[
            ("numerator", Some(self.numerator)),
            ("denominator", Some(self.denominator)),
            ("margin_points", self.margin_points),
            ("margin_points_low", self.margin_points_low),
            ("margin_points_high", self.margin_points_high),
            ("margin_percent", self.margin_percent),
        ]);
        head_limits(self.layer, self.head).into_iter().chain(shares).chain(others).collect()
    }
}

/// Returns the row of the head with the largest share for each task, ordered by function; the first one if several tie.
pub fn leaders<'a>(rows: impl IntoIterator<Item = &'a HeadFunctionRow>) -> Vec<&'a HeadFunctionRow> {
    let mut leaders: BTreeMap<(FunctionName, &str), &HeadFunctionRow> = BTreeMap::new();
    for row in rows.into_iter().filter(|row| row.is_function()) {
        let leader = leaders.entry(row.task()).or_insert(row);
        if row.share > leader.share {
            *leader = row;
        }
    }
    leaders.into_values().collect()
}

/// Returns the heads with each function by the paper's thresholds: Voita et al. (2019), Figures 1c and 2b. A head may have several. A
/// function that was not tested, such as dependencies in texts without trees, is `None`; so is `other`, the heads without any function,
/// unless all three were tested.
pub fn by_function(rows: &[HeadFunctionRow]) -> [(&'static str, Option<BTreeSet<HeadId>>); 4] {
    let of = |function: FunctionName| {
        let mut rows = rows.iter().filter(|row| row.function == function).peekable();
        rows.peek()?;
        Some(rows.filter(|row| row.holds == Some(true)).map(HeadFunctionRow::head_id).collect())
    };
    let found: [Option<BTreeSet<HeadId>>; 3] =
        [FunctionName::Positional, FunctionName::Syntactic, FunctionName::Rare].map(of);
    let has_none = |head: &HeadId| !found.iter().flatten().any(|heads| heads.contains(head));
    let other = || rows.iter().map(HeadFunctionRow::head_id).filter(has_none).collect();
    let other = found.iter().all(Option::is_some).then(other);
    let [positional, syntactic, rare] = found;
    [("positional", positional), ("syntactic", syntactic), ("rare tokens", rare), ("other", other)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a row of head `layer`:`head`, such as `1,1,positional,-1`.
    fn row(cells: &str, holds: &str) -> HeadFunctionRow {
        let line = format!("self,{cells},1.0,2.0,0.5,,,,,,,,,,,{holds}\n");
        let text = crate::table::header::<HeadFunctionRow>() + &line;
        let table = crate::table::parse::<HeadFunctionRow>("rows.csv".as_ref(), text.as_bytes(), false);
        table.unwrap().rows.into_values().next().unwrap()
    }

    /// Confidence is not a function, nor is attention over only the queries that have a key at the position.
    #[test]
    fn a_head_may_have_several_functions_or_none() {
        let rows = [
            row("1,1,positional,-1", "true,"),
            row("1,1,syntactic,nsubj:verb->subject", "true,true"),
            row("1,1,syntactic,nsubj:subject->verb", "false,false"),
            row("1,2,syntactic,nsubj:verb->subject", "false,true"),
            row("1,2,confidence,", ","),
            row("1,3,rare,rarest", "false,"),
            row("1,3,positional-there,-1", "true,"),
            row("2,1,rare,rarest", "true,"),
        ];
        // the position is not part of the task
        assert_eq!(rows[0].task(), (FunctionName::Positional, ""));
        assert_eq!(rows[1].task(), (FunctionName::Syntactic, "nsubj:verb->subject"));
        assert_eq!(rows[1].name(), "self:1:1:syntactic:nsubj:verb->subject");
        assert_eq!(rows[4].name(), "self:1:2:confidence");
        let heads = |places: &[(usize, usize)]| {
            let head = |&(layer, head): &_| HeadId::numbered(Attention::SelfAttention, layer, head);
            Some(places.iter().map(head).collect())
        };
        let one = heads(&[(1, 1)]);
        let expected = [one.clone(), one.clone(), heads(&[(2, 1)]), heads(&[(1, 2), (1, 3)])];
        assert_eq!(by_function(&rows).map(|(_, found)| found), expected);
        // without trees it is unknown which heads have no function
        let without = [&rows[..1], &rows[4..]].concat();
        assert_eq!(by_function(&without).map(|(_, found)| found), [one, None, heads(&[(2, 1)]), None]);
    }
}
