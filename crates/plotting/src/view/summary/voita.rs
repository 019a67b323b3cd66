//! The claims of Voita et al. (2019).
use std::collections::BTreeSet;

use crate::findings::gates::kept;
use crate::findings::same_model::may_have_same_weights;
use crate::findings::{Criterion, Draws, Functions, Gates, PAPER, SubjectResults};
use charts::table::{Cell, Row};
use records::rows::functions::{FunctionName, by_function, leaders};
use records::{Attention, GateRow, HeadFunctionRow, HeadId, Method, Scope};
use words::{range, signed, tenths, typeset};

use super::Claim;
use crate::view::{drawn, scored};

/// Section 6.2: few encoder heads are enough.
pub fn few_heads(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let plain = |number: f64| Cell::printed(number, |number| number.to_string());
    let empty = Cell::default;
    let published = PAPER.few_heads.iter().map(|own| {
        let change = || Cell::printed(own.change(), |change| format!("{} BLEU", signed(change, 2)));
        let [base, scratch] = [own.base, own.from_scratch].map(|score| Cell::from(score.map(plain)));
        let by_gates = own.by_gates.map_or_else(change, plain);
        let sizes = [Cell::from(own.gates.name()), base, own.heads.into(), own.kept.into(), empty()];
        let scores = [by_gates, empty(), empty(), empty(), scratch];
        Row::new(format!("V19: {} ({})", own.data, own.source), sizes.into_iter().chain(scores))
    });
    let measured = all.iter().flat_map(|subject| {
        let is_of =
            |functions: &&Functions, gates: &Gates| may_have_same_weights(&functions.file, &gates.file);
        subject.gates.iter().flat_map(move |gates| {
            let functions = subject.functions.as_ref().filter(|functions| is_of(functions, gates));
            sparser(gates, functions, criterion)
        })
    });
    Claim { published: published.collect(), measured: measured.collect(), ..Claim::default() }
}

/// Returns a row for each number of heads that gates keep.
fn sparser(gates: &Gates, functions: Option<&Functions>, criterion: Criterion) -> Vec<Row> {
    const METHODS: [Method; 5] =
        [Method::Gates, Method::Chosen, Method::Importance, Method::Random, Method::Scratch];
    let metric = gates.metric();
    let one = |scope: Scope, leader: &GateRow| {
        let draws = || Draws::of(gates.draws(leader).map(|row| row.score));
        let scores = METHODS.map(|method| match method {
            Method::Random => draws().map(|draws| drawn(&draws, |score| metric.amount(score), None)).into(),
            _ => {
                Cell::from(gates.counterpart(leader, method).map(|row| scored(row, criterion).marked(false)))
            }
        });
        let with_function = functions.and_then(|functions| with_function(leader, functions));
        let control = gates.counterpart(leader, Method::Ungated).map(|row| metric.described(row.score));
        let cells = [
            scope.name().into(),
            control.into(),
            leader.heads.into(),
            leader.kept.into(),
            with_function.into(),
        ];
        Row::new(gates.file.title(), cells.into_iter().chain(scores))
    };
    let scopes = gates.scopes().into_iter();
    scopes.flat_map(|scope| gates.sparser(scope).into_iter().map(move |leader| one(scope, leader))).collect()
}

/// Counts the kept heads with a function among all heads with gates and a function, `2 of 5`; `None` if no head with a gate was examined.
fn with_function(row: &GateRow, functions: &Functions) -> Option<Cell> {
    let has_gate = |head: &HeadId| row.attention.holds(head.attention());
    functions.heads().iter().find(|head| has_gate(head))?;
    let [kinds @ .., _other] = by_function(&functions.rows);
    let with_function: BTreeSet<HeadId> =
        kinds.into_iter().filter_map(|(_, heads)| heads).flatten().filter(has_gate).collect();
    let kept = kept(row);
    let left = with_function.iter().filter(|head| kept.contains(**head)).count();
    Some(Cell::number(format!("{left} of {}", with_function.len()), left as f64))
}

/// Section 5: the functions of heads.
pub fn functions(all: &[SubjectResults], _: Criterion) -> Claim {
    let published = PAPER.rare_tokens.iter().map(|own| {
        let bound = if own.is_least { "more than " } else { "" };
        let share = format!("{bound}{}%", tenths(own.percent));
        Row::new(format!("V19: {} ({})", own.data, own.source), ["enc-enc", "", "", "", "", "", &share])
    });
    Claim {
        published: published.collect(),
        measured: all.iter().filter_map(|subject| subject.functions.as_ref()).flat_map(found).collect(),
        ..Claim::default()
    }
}

/// Returns a row for each attention type that was examined.
fn found(functions: &Functions) -> Vec<Row> {
    let of = |attention: Attention| {
        let of_type =
            |heads: BTreeSet<HeadId>| heads.iter().filter(|head| head.attention() == attention).count();
        let all = of_type(functions.heads());
        let [kinds @ .., _other] = by_function(&functions.rows);
        let kinds = kinds.map(|(_, heads)| Cell::from(heads.map(of_type)));
        let rows = || functions.rows.iter().filter(|row| row.attention == attention);
        let rare = leaders(rows()).into_iter().find(|row| row.detail == "two-rarest");
        let margin = |row: &HeadFunctionRow| row.margin_points.unwrap_or(f64::NEG_INFINITY);
        let syntactic = rows().filter(|row| row.margin_points.is_some());
        let syntactic = syntactic.max_by(|one, other| margin(one).total_cmp(&margin(other)));
        let best = [
            confidence(functions, attention).into(),
            rare.map(share).into(),
            syntactic.map(dependency).into(),
        ];
        let cells = [Cell::from(attention.name()), all.into()].into_iter().chain(kinds).chain(best);
        (all > 0).then(|| Row::new(functions.file.title(), cells))
    };
    Attention::ALL.into_iter().filter_map(of).collect()
}

/// Formats the range of confidence of the positional heads of a type and of its other heads: `0.93 to 1.00; others 0.13 to 0.88`.
fn confidence(functions: &Functions, attention: Attention) -> Option<String> {
    let positional: BTreeSet<HeadId> =
        functions.kinds().into_iter().find(|(name, _)| *name == "positional").map(|(_, heads)| heads)?;
    let rows = || functions.rows.iter().filter(|row| row.attention == attention);
    let of = |is_positional: bool| {
        let own = rows().filter(|row| row.function == FunctionName::Confidence);
        let own = own.filter(|row| positional.contains(&row.head_id()) == is_positional);
        let found = own
            .map(|row| (row.share, row.share))
            .reduce(|(low, high), (one, _)| (low.min(one), high.max(one)))?;
        Some(range(found, |share| typeset(share, 2)))
    };
    let others = of(false)?;
    Some(of(true).map_or(format!("others {others}"), |own| format!("{own}; others {others}")))
}

/// Formats the share of a head: `21.3% (17.1 to 25.8), enc-enc:2:16`.
fn share(row: &HeadFunctionRow) -> String {
    let percent = |share: f64| tenths(100.0 * share);
    let ends = row.share_low.zip(row.share_high).map(|ends| format!(" ({})", range(ends, percent)));
    format!("{}%{}, {}", percent(row.share), ends.unwrap_or_default(), row.head_id())
}

/// Formats the share of a dependency: `nsubj:verb->subject: 95.8% (94.1 to 97.0), self:2:7; position alone 43.2%`.
fn dependency(row: &HeadFunctionRow) -> String {
    let baseline = row.baseline.map(|share| format!("; position alone {}%", tenths(100.0 * share)));
    format!("{}: {}{}", row.detail, share(row), baseline.unwrap_or_default())
}
