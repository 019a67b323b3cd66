//! Figures 7 to 10 and Table 2 of Voita et al. (2019): which heads gates keep, the score with them, and whether other methods do better.
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::gates::{kept, share};
use crate::findings::results::{distinct, interval};
use crate::findings::{Contrasts, Criterion, Draws, Functions, Gates, PAPER, experiment};
use charts::chart::{At, Axis, Chart, Color, Entry, Layer, Panel, Shape, Style};
use charts::palette::{BLUE, GREEN, SILVER, SKY, VERMILLION};
use charts::table::{Cell, Row, Table};
use records::{Attention, GateRow, HeadId, HeadSet, Method, Scope};
use stats::family::Comparison;

use super::heat_map::counts;
use crate::view::curve::{Curve, Point, base_entry, over_base, scores};
use crate::view::{difference, drawn, figure, of_draws, scored, sheet, worse_than_control};

const FIGURE7: &str = "v19-figure7";
const FIGURE8: &str = "v19-figure8";
const FIGURE9: &str = "v19-figure9";
const TABLE2: &str = "v19-table2";
const IN_PAIRS: &str = "gate-contrasts";

pub(super) const CURVES: Artefact = Artefact::new(
    [FIGURE7, "gates", chapter::GATES],
    "Score with the heads that learned gates keep, and of controls, after further training (Voita et al. 2019)",
    Reads::Each(experiment::GATES),
    |file, request, left_out| {
        let found = Gates::read(file)?;
        let (before, found) = (found.base(), found.against_control(left_out));
        Ok(vec![sheet(&found.file, FIGURE7, figure7(&found, before, request.criterion), [])])
    },
);

pub(super) const FUNCTIONS: Artefact = Artefact::new(
    [FIGURE8, "reproduce-v19-figure8", chapter::GATES],
    "Functions of the heads that learned gates keep (Voita et al. 2019)",
    Reads::Each(experiment::GATES),
    |file, request, left_out| {
        let found = Gates::read(file)?;
        let functions = request.if_there(Functions::of_model(&found.file), left_out)?;
        let torn = functions.as_ref().and_then(|functions| functions.file.torn());
        torn.into_iter().for_each(|torn| left_out.note(torn));
        let chart = functions.and_then(|functions| figure8(&found, &functions));
        Ok(vec![sheet(&found.file, FIGURE8, chart, [])])
    },
)
.detail("after `head-functions`");

pub(super) const LAYERS: Artefact = Artefact::new(
    [FIGURE9, "reproduce-v19-figure9", chapter::GATES],
    "Heads that learned gates keep, by attention type and layer (Voita et al. 2019)",
    Reads::Each(experiment::GATES),
    |file, _, _| figure(file, FIGURE9, figure9),
)
.also("v19-figure10");

pub(super) const TABLE: Artefact = Artefact::new(
    [TABLE2, "reproduce-v19-table2", chapter::GATES],
    "Heads kept and the score, by how the heads were chosen, after equal training (Voita et al. 2019)",
    Reads::Each(experiment::GATES),
    |file, request, left_out| {
        let found = Gates::read(file)?;
        let (before, found) = (found.base(), found.against_control(left_out));
        Ok(vec![sheet(&found.file, TABLE2, None, [table(&found, before, request.criterion)])])
    },
);

pub(super) const CONTRASTS: Artefact = Artefact::new(
    [IN_PAIRS, "gates", chapter::GATES],
    "Whether learned gates choose better heads, and what training them costs: methods of Figure 7 compared in pairs",
    Reads::Each(experiment::GATES),
    |file, request, left_out| {
        let found = request.if_there(Gates::read(file).and_then(Contrasts::read), left_out)?;
        let drawn = found
            .map(|found| sheet(&found.gates.file, IN_PAIRS, None, [contrasts(&found, request.criterion)]));
        Ok(drawn.into_iter().collect())
    },
);

/// Score of the fine-tuned baseline.
const CONTROL: Style = Style::dashed(GREEN, 0.6);

/// Formats the number of heads kept, and the penalty of an open gate if that decided: `12 of 96, λ 0.02`.
fn label(row: &GateRow) -> Cell {
    let penalty = row.lambda.map_or(String::new(), |lambda| format!(", \u{3bb} {lambda}"));
    Cell::number(format!("{} of {}{penalty}", row.kept, row.heads), row.kept as f64)
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Ungated => "no gates",
        Method::Chosen => "chosen by gates",
        Method::Scratch => "from scratch",
        method => method.name(),
    }
}

/// Methods shown in Figure 7, with their styles; the table has the others.
const SHOWN: [(Method, Color, Shape); 4] = [
    (Method::Gates, BLUE, Shape::Circle),
    (Method::Chosen, SKY, Shape::Triangle),
    (Method::Importance, VERMILLION, Shape::Square),
    (Method::Random, SILVER, Shape::Tick),
];

/// Draws the score over the share of heads kept, with a panel per set of gated heads. `gates` must be
/// [compared with the baseline](Gates::against_control); `before` is the score before further training.
fn figure7(gates: &Gates, before: f64, criterion: Criterion) -> Chart {
    let (scopes, metric) = (gates.scopes(), gates.metric());
    let shown = || SHOWN.into_iter().filter(|(method, ..)| gates.has(*method));
    let of_scope = |scope: Scope| shown().map(|shown| curve(gates, scope, shown, criterion)).collect();
    let curves: Vec<Vec<Curve>> = scopes.iter().map(|&scope| of_scope(scope)).collect();
    let control = |scope: Scope| {
        let row = gates.rows.iter().find(|row| row.attention == scope)?;
        (!gates.of(scope, Method::Ungated).is_empty()).then_some(row.base_score)
    };
    let controls = scopes.iter().filter_map(|&scope| control(scope));
    let y = scores(&metric, curves.iter().flatten().flat_map(Curve::heights).chain([before]).chain(controls));
    let panel = |&scope: &Scope| {
        let own = &curves[scopes.iter().position(|own| *own == scope).unwrap_or_default()];
        let mut layers = over_base(before, &own.iter().collect::<Vec<_>>());
        layers.extend(control(scope).map(|score| Layer::Rule(At::Y(score), CONTROL)));
        let x = Axis::percent(format!("{}heads kept (%)", whose(scope)));
        Panel::new([x, y.clone()], 160.0, layers)
    };
    let has_hollow = gates.rows.iter().any(|row| row.method != Method::Random && criterion.is_loss(row));
    let has_control = gates.has(Method::Ungated);
    let title =
        "after further training with some of the heads, over the share of heads kept (Voita et al. 2019)";
    Chart::new("Figure 7", gates.file.label(FIGURE7), gates.file.titled(format!("{} {title}", metric.label())))
        .note(gates.recipe())
        .note("bands: 95% intervals of the change from the full model after the same training")
        .note(has_hollow.then(|| format!("hollow: {}", worse_than_control(&metric, criterion))))
        .note(gates.has(Method::Chosen).then_some(
            "chosen by gates: the heads that the gates keep; the others are masked from the first update on",
        ))
        .note(gates.has(Method::Importance).then_some(
            "importance: equally many heads, the most important ones before this training",
        ))
        .note(gates.has(Method::Random).then_some(
            "random: the mean over draws of equally many heads; its band is the range over the draws, not an interval",
        ))
        .note(gaps(gates))
        .note(paper_remark(gates))
        .entries(shown().map(|shown| look(shown).entry()))
        .entries(has_control.then(|| Entry::line("all heads, trained further", CONTROL)))
        .entries([base_entry("before this training", &metric, before)])
        .beside(&scopes, Scope::in_words, panel)
}

fn look((method, color, shape): (Method, Color, Shape)) -> Curve {
    let name = if method == Method::Random { "random, with range" } else { name(method) };
    Curve::look(name, color, if method == Method::Gates { 1.1 } else { 0.8 }, Some((shape, 1.5)))
}

/// Describes missing baselines and what is therefore unknown.
fn gaps(gates: &Gates) -> Vec<String> {
    let has_control = |scope: &Scope| !gates.of(*scope, Method::Ungated).is_empty();
    let all_heads = (!gates.scopes().iter().all(has_control)).then(|| {
        "no model had the same further training with all heads: the effect of this training alone is unknown, \
         and nothing is marked"
            .to_owned()
    });
    let draws = gates.rows.iter().filter(|row| row.method == Method::Random);
    let fewest = draws.map(|row| gates.draws(row).count()).min();
    all_heads.into_iter().chain(of_draws(fewest.unwrap_or_default())).collect()
}

/// Names the gated attention type: `encoder `; empty for all types.
fn whose(scope: Scope) -> String {
    match scope {
        Scope::One(Attention::SelfAttention) | Scope::All => String::new(),
        Scope::One(attention) => format!("{} ", attention.in_words()),
    }
}

/// Returns a curve through the models of a method, hollow if significantly worse than the baseline. Random draws give their mean and range.
fn curve(gates: &Gates, scope: Scope, shown: (Method, Color, Shape), criterion: Criterion) -> Curve {
    let method = shown.0;
    let point = |row: &&GateRow| {
        let (x, is_worse) = (share(row), criterion.is_loss(*row));
        match Draws::of(gates.draws(row).map(|row| row.score)).filter(|_| method == Method::Random) {
            Some(draws) => Point { x, y: draws.mean, ends: Some(draws.range), is_worse: false },
            None => Point { x, y: row.score, ends: interval(*row), is_worse },
        }
    };
    let mut rows = gates.of(scope, method);
    if method == Method::Random {
        rows.sort_by_key(|row| row.kept);
        rows.dedup_by_key(|row| row.kept);
    }
    Curve { pieces: vec![rows.iter().map(point).collect()], ..look(shown) }
}

/// Returns the paper's numbers on encoders or, if translators have gates on all heads, on whole models.
fn paper_remark(gates: &Gates) -> String {
    let has_all = gates.rows.iter().any(|row| row.attention == Scope::All && row.kept_enc_dec.is_some());
    let scope = if has_all { Scope::All } else { Scope::One(Attention::EncEnc) };
    PAPER.sentence_on("few-heads", scope)
}

/// Counts the functions of kept heads, measured before the gates were trained; `None` if the gated heads have no known functions.
fn figure8(gates: &Gates, functions: &Functions) -> Option<Chart> {
    let (known, rows) = (functions.heads(), functions.kinds());
    let panel = |scope: Scope| {
        let has_gate = |head: &&HeadId| scope.holds(head.attention());
        let all: Vec<HeadId> = known.iter().filter(has_gate).copied().collect();
        let left = gates.sparser(scope).into_iter().map(|row| {
            let kept = kept(row);
            all.iter().filter(|head| kept.contains(**head)).copied().collect()
        });
        let columns: Vec<Vec<HeadId>> = std::iter::once(all.clone()).chain(left).collect();
        let types = distinct(all.iter().map(|head| head.attention()));
        let shown = if let [one] = types[..] { Scope::One(one) } else { scope };
        let count = |row: usize, column: usize| {
            (columns[column].iter().filter(|head| rows[row].1.contains(head)).count(), columns[column].len())
        };
        let (x, y) = (columns.iter().map(Vec::len), rows.iter().map(|(name, _)| name));
        (columns.len() > 1 && !all.is_empty())
            .then(|| counts((&format!("{}heads kept", whose(shown)), x), ("", y), count))
    };
    let panels: Vec<Panel> = gates.scopes().into_iter().filter_map(panel).collect();
    let has_none = functions.rows.iter().all(|row| row.holds != Some(true));
    let title = "Functions of the heads that the gates keep (Voita et al. 2019)";
    (!panels.is_empty()).then(|| {
        Chart::new("Figure 8", gates.file.label(FIGURE8), gates.file.titled(title))
            .note(
                "numbers: heads with this function before the gates were trained; darker cells are a larger share of the heads kept",
            )
            .note("first column: the model before this training; a head may have several functions")
            .note(has_none.then_some("no head reaches a threshold of the paper, before or after"))
            .note(gates.recipe())
            .panels(1, panels)
    })
}

/// Counts the heads kept in each layer, with a row for each number of heads kept: Figures 9 and 10.
fn figure9(gates: &Gates) -> Option<Chart> {
    let panels: Vec<Panel> = gates.scopes().into_iter().flat_map(|scope| layers(gates, scope)).collect();
    let title = "Heads that the gates keep, by attention type and layer (Voita et al. 2019)";
    (!panels.is_empty()).then(|| {
        Chart::new("Figures 9 and 10", gates.file.label(FIGURE9), gates.file.titled(title))
            .note("numbers: heads kept in a layer; darker cells have more")
            .note(gates.recipe())
            .panels(panels.len().min(3), panels)
    })
}

/// Returns a panel per gated attention type: a row for each number of heads kept, a column per layer.
fn layers(gates: &Gates, scope: Scope) -> Vec<Panel> {
    let rows = gates.sparser(scope);
    let found: Vec<HeadSet> = rows.iter().map(|row| kept(row)).collect();
    let heads = || found.iter().flat_map(HeadSet::iter);
    let deepest = heads().map(|head| head.layer_number()).max().unwrap_or(1);
    let panel = |(place, attention): (usize, Attention)| {
        let of = |row: usize, layer: usize| {
            let is_meant = |head: &HeadId| (head.attention(), head.layer_number()) == (attention, layer);
            found[row].iter().filter(is_meant).count()
        };
        let all = (0..rows.len()).flat_map(|row| (1..=deepest).map(move |layer| (row, layer)));
        let most = all.map(|(row, layer)| of(row, layer)).max().unwrap_or(0);
        let kept = rows.iter().map(|row| row.kept);
        // a panel with one row has no room for a longer label
        let label = if rows.len() > 1 { "heads kept in total" } else { "heads kept" };
        counts(("layer", 1..=deepest), (label, kept), |row, layer| (of(row, layer + 1), most))
            .named(attention.in_words())
            .in_row(place)
    };
    distinct(heads().map(|head| head.attention())).into_iter().enumerate().map(panel).collect()
}

/// Tabulates a row for each number of heads that gates keep, with the scores of other methods for this number: Table 2. `gates` must be
/// [compared with the baseline](Gates::against_control); `before` is the score before further training.
fn table(gates: &Gates, before: f64, criterion: Criterion) -> Table {
    let has_type = |&attention: &Attention| gates.rows.iter().any(|row| row.kept_of(attention).is_some());
    let types: Vec<Attention> = Attention::ALL.into_iter().filter(has_type).collect();
    let methods: Vec<Method> = Method::ALL.into_iter().filter(|&method| gates.has(method)).collect();
    let metric = gates.metric();
    let row = |leader: &GateRow| {
        let score = |&method: &Method| {
            if method == Method::Random {
                let draws = Draws::of(gates.draws(leader).map(|row| row.score));
                return Cell::from(draws.map(|draws| drawn(&draws, |score| metric.amount(score), None)));
            }
            let own = gates.counterpart(leader, method).filter(|own| own.kept == leader.kept);
            Cell::from(own.map(|row| scored(row, criterion)))
        };
        let kept = types.iter().map(|&attention| leader.kept_of(attention).into());
        Row::new(label(leader), kept.chain(methods.iter().map(score)))
    };
    let leaders = gates.scopes().into_iter().flat_map(|scope| {
        [Method::Ungated, Method::Gates].into_iter().flat_map(move |method| gates.of(scope, method))
    });
    let title = format!(
        "Heads kept, and {} after further training with only these, with the 95% interval of the change from all \
         heads with the same training (no gates) in brackets (Voita et al. 2019)",
        metric.label()
    );
    let names = types.iter().map(|attention| attention.name());
    Table::new("Table 2", gates.file.label(TABLE2), gates.file.titled(title))
        .columns(
            ["Heads kept", "Heads by type, and score by method"],
            names.chain(methods.iter().copied().map(name)),
        )
        .rows(leaders.map(row))
        .mark(worse_than_control(&metric, criterion))
        .note(format!("before: {}", metric.described(before)))
        .note(gaps(gates))
        .note(gates.recipe())
        .remark(paper_remark(gates))
}

/// Compares models with further training in pairs: a row for each number of heads, a column per pair of methods.
fn contrasts(contrasts: &Contrasts, criterion: Criterion) -> Table {
    let Contrasts { gates, leaders, measured, draws } = contrasts;
    let (metric, alpha) = (gates.metric(), criterion.alpha);
    let cell =
        |found: &Comparison| difference(found, &metric).marked(found.p_adjusted.is_some_and(|p| p < alpha));
    let row = |(place, leader): (usize, &GateRow)| {
        let drawn = |found: &Draws| drawn(found, |delta| metric.change(delta), Some(0.0));
        let tested = measured.iter().map(|(_, found)| Cell::from(found[place].as_ref().map(cell)));
        let draws = draws.iter().map(|(_, found)| Cell::from(found[place].as_ref().map(drawn)));
        Row::new(label(leader), tested.chain(draws))
    };
    let columns = measured.iter().map(|(contrast, _)| contrast.map(name).join(" \u{2212} "));
    let columns = columns.chain(draws.iter().map(|(method, _)| format!("{} \u{2212} random", name(*method))));
    let title = format!(
        "Differences in {} between trained models with equally many heads, with 95% intervals",
        metric.label()
    );
    let better = if metric.direction().gain(1.0) > 0.0 { "above" } else { "below" };
    Table::new("Gates and other choices", gates.file.label(IN_PAIRS), gates.file.titled(title))
        .columns(["Heads kept", "First method minus second"], columns)
        .rows(leaders.iter().enumerate().map(row))
        .mark(format!(
            "p < {alpha} for other test segments, adjusted by Holm (1979) for the numbers of heads in a column; compared \
             with random: outside the range of all draws, at least {}",
            Draws::ENOUGH
        ))
        .note(format!("{better} 0 the first is better"))
        .note(gates.has(Method::Ungated).then_some("no gates: with all heads"))
        .note(gaps(gates))
        .note("methods that mask the same heads share one training and are not compared")
        .note(gates.recipe())
        .remark(gates.has(Method::Chosen).then_some(
            "chosen by gates: the heads that the gates keep, the others masked from the first update on; this \
             minus importance or random is the value of the choice, and gates minus this is the cost of training the gates",
        ))
        .remark("intervals account for the choice of test segments, not for variation between training runs")
}
