//! The claims of Voita et al. (2019), one table each.
use std::collections::BTreeSet;

use records::rows::functions::{POSITIONAL, RARE, SYNTACTIC, leaders};
use records::{Attention, GateRow, Head, HeadFunctionRow, Method, Scope};

use super::{Cells, Claim, row};
use crate::data::functions::Functions;
use crate::data::gates::{Gates, kept};
use crate::data::same::{difference, weights_entry};
use crate::data::subject::Subject;
use crate::table::Cell;
use crate::view::{Context, scored};
use crate::words::{short, tenths};

/// Section 6.2: few encoder heads are enough.
pub fn few_heads(all: &[Subject], context: Context<'_>) -> Claim {
    let published = context.paper.into_iter().flat_map(|paper| paper.encoder_heads()).map(|own| {
        let (kept, lost) = (own.kept.to_string(), format!("\u{2212}{} BLEU", short(own.lost)));
        let (model, heads) = (format!("V19: {} (Section 6.2)", own.data), own.heads.to_string());
        row([&model, "enc-enc", "", &heads, &kept, "", &lost])
    });
    let sparse = context.paper.into_iter().flat_map(|paper| paper.sparse()).map(|own| {
        let model = format!("V19: {} (Table 2)", own.data);
        let [kept, heads] = [own.kept, own.heads].map(|count| count.to_string());
        let [base, by_gates, scratch] =
            [own.base, own.by_gates, own.from_scratch].map(|bleu| bleu.to_string());
        row([&model, Scope::All.name(), &base, &heads, &kept, "", &by_gates, "", "", "", &scratch])
    });
    let measured = all.iter().flat_map(|subject| {
        let is_of = |functions: &&Functions, gates: &Gates| {
            let signed = functions.file.identity().zip(gates.file.identity());
            signed.is_none_or(|(one, other)| difference([one, other], &[weights_entry]).is_none())
        };
        subject.gates.iter().flat_map(move |gates| {
            let functions = subject.functions.as_ref().filter(|functions| is_of(functions, gates));
            sparser(gates, functions, context)
        })
    });
    Claim {
        name: "With gates that learn to close, few heads are enough (Voita et al. 2019, Section 6.2, Figure 7, Table 2)",
        how_to_read: "How to read it: gates close heads while the model is trained on, and all but the heads that stay are gone; \
                      the score afterwards with the 95 % interval of its change in brackets. Chosen by gates: the same \
                      heads, the others closed from the first update on. By importance and at random: as many heads, chosen \
                      before. All are trained on for as many updates, which the paper has not. From scratch: the same heads in \
                      a new model that never had the others; no gates: all heads. Do something: heads that stay and had a function before, of all that had one."
            .to_owned(),
        columns: "model and test set | heads with gates | base | heads | stay | do something | under gates | chosen by gates | by importance | at random | from scratch | no gates",
        published: published.chain(sparse).collect(),
        measured: measured.collect(),
        remarks: Vec::new(),
    }
}

/// A row for each number of heads that gates leave.
fn sparser(gates: &Gates, functions: Option<&Functions>, context: Context<'_>) -> Vec<Cells> {
    let base = gates.metric.described(gates.base);
    let one = |scope: Scope, leader: &GateRow| {
        let of = |own: Option<&GateRow>| {
            own.map(|row| scored(&gates.metric, row, context).text).unwrap_or_default()
        };
        let ungated = gates.of(scope, Method::Ungated).into_iter().next();
        let [chosen, importance, random, scratch] =
            [Method::Chosen, Method::Importance, Method::Random, Method::Scratch]
                .map(|method| of(gates.beside(leader, method)));
        row([
            &gates.file.title(),
            scope.name(),
            &base,
            &leader.heads.to_string(),
            &leader.kept.to_string(),
            &functions.map_or(String::new(), |functions| busy(leader, functions)),
            &of(Some(leader)),
            &chosen,
            &importance,
            &random,
            &scratch,
            &of(ungated),
        ])
    };
    let scopes = gates.scopes().into_iter();
    scopes.flat_map(|scope| gates.sparser(scope).into_iter().map(move |leader| one(scope, leader))).collect()
}

/// `2 of 5`: heads that stay and do something, of those with gates that do. Empty where no head with gates was looked at.
fn busy(row: &GateRow, functions: &Functions) -> String {
    let has_gate = |head: &Head| match row.attention {
        Scope::All => true,
        Scope::One(attention) => head.attention == attention,
    };
    if !functions.heads().iter().any(has_gate) {
        return String::new();
    }
    let with = [POSITIONAL, SYNTACTIC, RARE].map(|function| functions.heads_with(function));
    let busy: BTreeSet<Head> = with.into_iter().flatten().flatten().filter(has_gate).collect();
    let kept = kept(row);
    format!("{} of {}", busy.iter().filter(|head| kept.contains(head)).count(), busy.len())
}

/// Section 5: what heads do.
pub fn functions(all: &[Subject], context: Context<'_>) -> Claim {
    let published = context.paper.into_iter().flat_map(|paper| paper.rare_tokens()).map(|own| {
        let bound = if own.is_least { "more than " } else { "" };
        let (model, share) =
            (format!("V19: {} (Section 5.3)", own.data), format!("{bound}{} %", tenths(own.percent)));
        row([&model, "enc-enc", "", "", "", "", &share])
    });
    let measured = all.iter().filter_map(|subject| subject.functions.as_ref());
    Claim {
        name: "What heads do: positions, dependencies, rare tokens (Voita et al. 2019, Section 5)",
        how_to_read: "How to read it: heads that reach the paper's thresholds. Positional: nine of ten maxima at one position. \
                      Syntactic: on the partner in a dependency 10 points more often than its most frequent position. Rare tokens: \
                      on one of the two rarest in more than half of the sentences; the best head for these stands beside, with its \
                      share and 95 % interval. The best dependency is the one furthest above its position alone. Trees are gold, \
                      where the paper's come from a parser."
            .to_owned(),
        columns: "model and text | attention | heads | positional | syntactic | rare tokens | best head for the two rarest | best dependency",
        published: published.collect(),
        measured: measured.flat_map(found).collect(),
        remarks: Vec::new(),
    }
}

/// A row for each attention type that was looked at.
fn found(functions: &Functions) -> Vec<Cells> {
    let of = |attention: Attention| {
        let all = functions.heads().into_iter().filter(|head| head.attention == attention).count();
        let count = |function: &str| {
            let heads = functions.heads_with(function)?;
            Some(heads.into_iter().filter(|head| head.attention == attention).count().to_string())
        };
        let rows = || functions.rows.iter().filter(|row| row.attention == attention);
        let rare = leaders(rows()).into_iter().find(|row| row.detail == "two-rarest");
        let margin = |row: &HeadFunctionRow| row.margin_points.unwrap_or(f64::NEG_INFINITY);
        let syntactic = rows().filter(|row| row.margin_points.is_some());
        let syntactic = syntactic.max_by(|one, other| margin(one).total_cmp(&margin(other)));
        let [positional, related, rare_heads] =
            [POSITIONAL, SYNTACTIC, RARE].map(|function| count(function).unwrap_or_default());
        let cells =
            [functions.file.title(), attention.to_string(), all.to_string(), positional, related, rare_heads];
        let best = [rare.map(share).unwrap_or_default(), syntactic.map(dependency).unwrap_or_default()];
        (all > 0).then(|| cells.into_iter().chain(best).map(Cell::from).collect())
    };
    Attention::ALL.into_iter().filter_map(of).collect()
}

/// `21.3 % (17.1 to 25.8), enc-enc:2:16`
fn share(row: &HeadFunctionRow) -> String {
    let percent = |share: f64| tenths(100.0 * share);
    let ends = row.share_low.zip(row.share_high);
    let ends = ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    format!("{} %{ends}, {}", percent(row.share), row.head_id())
}

/// `nsubj:verb->subject: 95.8 % (94.1 to 97.0), self:2:7; position alone 43.2 %`
fn dependency(row: &HeadFunctionRow) -> String {
    let baseline =
        row.baseline.map_or(String::new(), |share| format!("; position alone {} %", tenths(100.0 * share)));
    format!("{}: {}{baseline}", row.detail, share(row))
}
