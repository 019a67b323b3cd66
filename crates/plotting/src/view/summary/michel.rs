//! The claims of Michel et al. (2019), and the question that they leave open: language models.
use charts::table::{Cell, Row};
use findings::best_heads::{BestHeads, Layers};
use findings::dynamics::{Checkpoint, Dynamics};
use findings::judge::{Criterion, Tally, Which};
use findings::paper::{
    BASE_BLEU, BETTER, BLEU_LEFT, BREAKDOWN, FIGURE_2A, FIGURE_2B, FIGURE_5, HEADS, Paper, SIGNIFICANT,
};
use findings::pruning::{Pruning, Series};
use findings::subject::Subject;
use findings::sweep::Sweep;
use records::{AblationRow, Attention, Order, Scope, TestedRow};
use words::{count, signed, tenths};

use super::Claim;
use crate::view::Context;
use crate::view::cross_domain::cells;
use crate::view::pruning_table::{score_at, share};

/// Section 3.2: most single heads can go.
pub fn single_heads(all: &[Subject], context: Context<'_>) -> Claim {
    let sweeps = || all.iter().filter_map(|subject| subject.sweep.as_ref());
    let paper = context.paper.values([BASE_BLEU, HEADS, SIGNIFICANT, BETTER]);
    let paper = paper.map(|[base, heads, significant, better]| {
        let (base, [heads, significant, better]) =
            (format!("BLEU {base:.2}"), [heads, significant, better].map(|number| number.to_string()));
        Row::new(
            "M19: WMT, newstest2013 (Table 1)",
            ["enc-enc", &base, &heads, "", "", &significant, &better, ""],
        )
    });
    Claim {
        published: Vec::from_iter(paper),
        measured: sweeps().flat_map(|sweep| counts(sweep, context.criterion)).collect(),
        remarks: sweeps().flat_map(|sweep| titled(sweep, sweep.missing_heads())).collect(),
    }
}

/// Sentences with the title of what they are about.
fn titled(sweep: &Sweep, sentences: Vec<String>) -> Vec<String> {
    sentences.iter().map(|sentence| format!("{}, {sentence}", sweep.file.title())).collect()
}

fn counts(sweep: &Sweep, criterion: Criterion) -> Vec<Row> {
    let counts = |attention: Attention| {
        let family = sweep.family(attention);
        let rows = || family.iter().copied();
        let ours = criterion.tally(rows());
        let papers = Tally::of(rows(), criterion.alpha, |row| row.p_koehn.or(row.p_value));
        let of = |tally: Tally| {
            let is_tested = tally.tested > 0;
            [tally.significant, tally.better].map(|count| Cell::from(is_tested.then_some(count)))
        };
        let [adjusted, _] = of(criterion.adjusted().tally(rows()));
        let cells = [attention.name().into(), sweep.described_base().into(), family.len().into()];
        let cells = cells.into_iter().chain([ours, papers].into_iter().flat_map(of)).chain([adjusted]);
        Row::new(sweep.file.title(), cells)
    };
    sweep.attentions().into_iter().map(counts).collect()
}

/// Section 3.3: one head of a layer is often enough.
pub fn best_heads(all: &[Subject], context: Context<'_>) -> Claim {
    let published = [
        ("table2", "M19: WMT, newstest2013 (Table 2)", "the same"),
        ("table3", "M19: BERT, MNLI matched (Table 3)", "the same"),
        ("table5", "M19: WMT, newstest2014 (Table 5)", "newstest2013"),
        ("table6", "M19: BERT, MNLI matched (Table 6)", "5,000 training examples"),
    ];
    let theirs = |(table, model, chosen): (&str, &'static str, &'static str)| {
        let cells = context.paper.masked(table);
        let of = move |attention: Attention| {
            let deltas = cells.iter().filter(|cell| cell.attention == attention).map(|cell| cell.delta);
            let lowest = signed(deltas.min_by(f64::total_cmp)?, 2);
            let layers = Layers::published(cells, attention)?.to_string();
            Some(Row::new(model, [attention.name(), chosen, "", &layers, &lowest]))
        };
        Attention::ALL.into_iter().filter_map(of)
    };
    let best = || all.iter().flat_map(|subject| &subject.best);
    Claim {
        published: published.into_iter().flat_map(theirs).collect(),
        measured: best().flat_map(|best| layers(best, context.criterion)).collect(),
        remarks: best().flat_map(|best| titled(&best.sweep, best.missing_heads())).collect(),
    }
}

fn layers(best: &BestHeads, criterion: Criterion) -> Vec<Row> {
    let (sweep, judge) = (&best.sweep, best.sweep.judge(criterion));
    let of = |attention: Attention| {
        let of_type = best.of(attention);
        let gain = |row: &AblationRow| row.difference(None).gain;
        let worst = of_type.values().min_by(|one, other| gain(one).total_cmp(&gain(other)));
        let worst = worst.map(|row| sweep.metric().change(row.score_delta));
        let [safe, no_loss] =
            Which::BOTH.map(|which| Layers::ours(&of_type, judge, which).map(|layers| layers.to_string()));
        let chosen = best.selected_on.as_deref().unwrap_or("the same");
        Row::new(
            sweep.file.title(),
            [attention.name().into(), Cell::from(chosen), safe.into(), no_loss.into(), worst.into()],
        )
    };
    sweep.attentions().into_iter().map(of).collect()
}

/// Section 3.4: important heads are important in another domain too.
pub fn across_domains(all: &[Subject], context: Context<'_>) -> Claim {
    let published = [
        ("M19: WMT, newstest2013 and MTNT (Figure 2a)", "all reported", FIGURE_2A),
        ("M19: BERT, MNLI matched and mismatched (Figure 2b)", "self", FIGURE_2B),
    ];
    let theirs = |(model, attention, name): (&str, &str, _)| {
        Some(Row::new(model, [attention, "", &format!("{:.2}", context.paper.value(name)?)]))
    };
    let ours = all.iter().flat_map(|subject| &subject.pairs).flat_map(|pair| {
        pair.rows
            .iter()
            .map(|row| Row::new(pair.title(), std::iter::once(row.attention.to_string()).chain(cells(row))))
    });
    Claim {
        published: published.into_iter().filter_map(theirs).collect(),
        measured: ours.collect(),
        ..Claim::default()
    }
}

/// Section 4.2: many heads can go at once.
pub fn removable(all: &[Subject], context: Context<'_>) -> Claim {
    let theirs = context.paper.shares.iter().map(|share| {
        let (model, percent) = (format!("M19: {} ({})", share.task, share.figure), tenths(share.percent));
        Row::new(model, ["importance", "", "", "", "", &format!("{percent} %")])
    });
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref());
    Claim {
        published: theirs.collect(),
        measured: measured.flat_map(|pruning| shares_of(pruning, context.criterion)).collect(),
        ..Claim::default()
    }
}

/// A row for each of the orders that the paper compares.
fn shares_of(pruning: &Pruning, criterion: Criterion) -> Vec<Row> {
    let of = |order: Order| {
        let series = pruning.find(Scope::All, order)?;
        let complement = pruning.complement(series).map(|series| score_at(pruning, series, 50.0));
        let cells = [
            Cell::from(order.name()),
            pruning.results.described_base().into(),
            series.runs.first()?.first()?.heads.into(),
        ];
        let shares = share_and_change(pruning, series, criterion).map(Cell::from);
        let half = [score_at(pruning, series, 50.0).into(), complement.into(), floor(pruning, Scope::All)];
        Some(Row::new(pruning.results.file.title(), cells.into_iter().chain(shares).chain(half)))
    };
    [Order::Importance, Order::Oracle, Order::Random].into_iter().filter_map(of).collect()
}

/// The score with all heads masked; empty where it was not measured.
fn floor(pruning: &Pruning, scope: Scope) -> Cell {
    pruning.floors.get(&scope).map(|row| pruning.results.metric().amount(row.score)).into()
}

/// The share by each rule and the change there; empty if it has no share.
fn share_and_change(pruning: &Pruning, series: &Series, criterion: Criterion) -> [Option<String>; 4] {
    let judge = pruning.results.judge(criterion);
    let [safe, no_loss] = Which::BOTH.map(|which| {
        let removable = series.removable(judge, which);
        let change = removable.as_ref().and_then(|removable| removable.change);
        let change = change.map(|change| change.in_words(&pruning.results.metric()));
        (removable.map(|removable| format!("{} %", share(&removable))), change)
    });
    [safe.0, safe.1, no_loss.0, no_loss.1]
}

/// Section 5: attention from decoder to encoder needs its heads most.
pub fn by_type(all: &[Subject], context: Context<'_>) -> Claim {
    let model = "M19: WMT, newstest2013 (Figure 4)";
    let paper = context.paper.values([BREAKDOWN, BLEU_LEFT]).map(|found| found.map(tenths));
    let theirs = paper.map(|[breaks, left]| {
        [
            Row::new(model, ["enc-enc", "", "", "", "", &left]),
            Row::new(model, ["enc-dec", "", "", &format!("breaks down after {breaks} %")]),
            Row::new(model, ["dec-dec", "", "", "", "", &left]),
        ]
    });
    let of = |pruning: &Pruning, attention: Attention, series: &Series| {
        let [safe, _, no_loss, _] = share_and_change(pruning, series, context.criterion);
        let [half, most] = [50.0, 80.0].map(|share| score_at(pruning, series, share).into());
        let base = pruning.results.described_base();
        let floor = floor(pruning, Scope::One(attention));
        let cells = [attention.name().into(), base.into(), safe.into(), no_loss.into(), half, most, floor];
        Row::new::<Cell>(pruning.results.file.title(), cells)
    };
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref()).flat_map(|pruning| {
        let types = pruning.types().unwrap_or_default().into_iter();
        let types = types.filter(|(_, series)| !series.curve.is_complement);
        types.map(move |(attention, series)| of(pruning, attention, series))
    });
    Claim {
        published: theirs.into_iter().flatten().collect(),
        measured: measured.collect(),
        ..Claim::default()
    }
}

/// Section 6: heads become dispensable while a model is trained.
pub fn during_training(all: &[Subject], context: Context<'_>) -> Claim {
    let trainings = || all.iter().filter_map(|subject| subject.dynamics.as_ref());
    let left_out = |dynamics: &Dynamics| Some(format!("{}, {}", dynamics.file.title(), dynamics.left_out()?));
    Claim {
        published: Vec::from_iter(published_training(context.paper)),
        measured: trainings().filter_map(measured_training).collect(),
        remarks: trainings().filter_map(left_out).collect(),
    }
}

fn published_training(paper: &Paper) -> Option<Row> {
    let (last, share) = (paper.epochs.last()?, tenths(paper.value(FIGURE_5)?));
    let epoch = format!("epoch {} (the same from 10 on)", last.epoch);
    let base = format!("BLEU {:.1}", last.unpruned_bleu);
    Some(Row::new("M19: IWSLT (Figure 5)", [&epoch, &base, "", &format!("{share} %")]))
}

/// Nothing for a training without a score so far.
fn measured_training(dynamics: &Dynamics) -> Option<Row> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let base = dynamics.metric.described(last.base());
    let heads = last.steps.first()?.heads;
    let share_of = |checkpoint: &Checkpoint, least: f64| {
        let share = |(percent, is_open)| format!("{} %", words::share(percent, is_open));
        checkpoint.removable(least).map(share).unwrap_or_default()
    };
    let [most, more] = [85.0, 90.0].map(|least| share_of(last, least));
    let before = format!("{}: {}", dynamics.name(first), share_of(first, 85.0));
    let before = (comparable.len() > 1).then_some(before);
    let cells =
        [dynamics.name(last).into(), Cell::from(base), heads.into(), most.into(), more.into(), before.into()];
    Some(Row::new(dynamics.file.title(), cells))
}

/// Section 8 names other models as future work; there are no numbers of them.
pub fn language(all: &[Subject], context: Context<'_>) -> Claim {
    // The first file that there is says of which model it is.
    let is_meant = |subject: &&Subject| subject.files().next().is_some_and(|file| file.is_language());
    Claim {
        measured: all
            .iter()
            .filter(is_meant)
            .filter_map(|subject| answer(subject, context.criterion))
            .collect(),
        ..Claim::default()
    }
}

/// The row of a language model; none without a curve by importance or a sweep.
fn answer(subject: &Subject, criterion: Criterion) -> Option<Row> {
    let (sweep, pruning) = (subject.sweep.as_ref(), subject.pruning.as_ref());
    let tally = sweep.map(|sweep| criterion.adjusted().tally(&sweep.rows)).filter(|tally| tally.tested > 0);
    let alone = tally.map(|tally| format!("{} of {}", tally.significant, count(tally.tested, "head")));
    let words = subject.nats_a_word.map(|nats| format!("{nats:.3}"));
    let of_sweep = sweep.map(|sweep| (sweep.file.title(), sweep.described_base()));
    let of_curves = pruning.map(|pruning| (pruning.results.file.title(), pruning.results.described_base()));
    let (title, base) = of_curves.or(of_sweep)?;
    let shares = pruning.and_then(|pruning| {
        let series = pruning.find(Scope::All, Order::Importance)?;
        Some(share_and_change(pruning, series, criterion))
    });
    let floor = pruning.map_or(Cell::default(), |pruning| floor(pruning, Scope::All));
    let cells = [Cell::from(base), words.into(), alone.into()].into_iter();
    let cells = cells.chain(shares.unwrap_or_default().map(Cell::from));
    Some(Row::new(title, cells.chain([floor])))
}
