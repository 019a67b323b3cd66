//! The claims of Michel et al. (2019), and their open question: language models.
use crate::findings::ablations::Model;
use crate::findings::best_heads::Layers;
use crate::findings::judge::Tally;
use crate::findings::method_comparison::Recommended;
use crate::findings::{
    Ablations, BestHeads, Checkpoint, Criterion, Dynamics, KindsOfCurves, Methods, PAPER, Pruning, Removable,
    Result, Retrained, RuleKind, Series, SubjectResults, Verdicts,
};
use charts::table::{Cell, Row};
use records::{AblationRow, Attention, Order, Scope, TestedRow};
use words::{fixed, signed, tenths};

use super::Claim;
use crate::artefacts::cross_domain::cells;
use crate::artefacts::curves::method_comparison::{recommended, with_training};
use crate::artefacts::curves::shares::{score_at, share};
use crate::artefacts::curves::{ablation_kinds as pruning_kinds, retrained};
use crate::artefacts::{ablation_kinds, replicates};
use crate::view::three;

/// Section 3.2: most heads can be masked alone.
pub fn single_heads(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let sweeps = || all.iter().filter_map(|subject| subject.sweep.as_ref());
    let own = &PAPER.summary;
    let base = format!("BLEU {}", fixed(own.base_bleu, 2));
    let [heads, significant] =
        [own.heads, own.significant].map(|number| Cell::printed(number, |n| n.to_string()));
    let before = ["enc-enc".into(), base.into(), heads].into_iter().chain([(); 6].map(|()| Cell::default()));
    let by_the_papers_p = [Cell::default(), Cell::default(), significant];
    let paper = Row::new("M19: WMT, newstest2013 (Table 1)", before.chain(by_the_papers_p));
    Claim {
        published: vec![paper],
        measured: sweeps().flat_map(|sweep| counts(sweep, criterion)).collect(),
        remarks: sweeps().flat_map(|sweep| titled(sweep, sweep.missing_heads())).collect(),
    }
}

/// Puts the title of the file before each sentence.
fn titled(sweep: &Ablations, sentences: Vec<String>) -> Vec<String> {
    sentences.iter().map(|sentence| format!("{}, {sentence}", sweep.file.title())).collect()
}

fn counts(sweep: &Ablations, criterion: Criterion) -> Vec<Row> {
    let counts = |attention: Attention| {
        let family = sweep.family(attention);
        let rows = || family.iter().copied();
        let papers = Tally::of(rows(), criterion.alpha, |row| row.p_koehn.or(row.p_value));
        let significant = [criterion.tally(rows()), criterion.adjusted().tally(rows()), papers]
            .map(|tally| Cell::from((tally.tested > 0).then_some(tally.significant)));
        let metric = sweep.metric();
        let loss = |row: &AblationRow| metric.percent_lost(row.score_delta, row.base_score);
        let greatest = rows().map(loss).max_by(f64::total_cmp);
        let greatest = greatest.map(|loss| Cell::printed(loss, |loss| format!("{}%", fixed(loss, 2))));
        let cells =
            [attention.name().into(), sweep.described_base().into(), family.len().into(), greatest.into()];
        let judge = sweep.judge(criterion);
        let adjusted = [judge.verdicts_at_fdr(rows()), judge.verdicts_at_once(rows())].map(|found| {
            let cell = |Verdicts { needed, dispensable, undecided }| {
                Cell::number(format!("{needed} / {dispensable} / {undecided}"), needed as f64)
            };
            Cell::from(found.map(cell))
        });
        let verdicts = three(judge.verdicts(rows())).into_iter().chain(adjusted);
        Row::new(sweep.file.title(), cells.into_iter().chain(verdicts).chain(significant))
    };
    sweep.attentions().into_iter().map(counts).collect()
}

/// Beyond the paper: single heads in runs with other seeds.
pub fn replicates(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let found = all.iter().filter_map(|subject| subject.replicates.as_ref());
    measured(found.map(|found| replicates::rows(found, criterion)))
}

/// Collects rows, and the faults of setups without rows.
fn measured(rows: impl Iterator<Item = Result<Vec<Row>>>) -> Claim {
    let (rows, faults): (Vec<_>, Vec<_>) = rows.partition(Result::is_ok);
    let remarks = faults.into_iter().filter_map(Result::err).map(|fault| fault.to_string()).collect();
    Claim { measured: rows.into_iter().flatten().flatten().collect(), remarks, ..Claim::default() }
}

/// Beyond the paper: single heads under other kinds of ablation.
pub fn kinds(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let found = all.iter().filter_map(|subject| subject.kinds.as_ref());
    measured(found.map(|found| ablation_kinds::rows(found, criterion)))
}

/// Section 3.3: one head per layer is often enough.
pub fn best_heads(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let published = [
        (Model::Translator, false, "M19: WMT, newstest2013 (Table 2)", "the scored split"),
        (Model::Classifier, false, "M19: BERT, MNLI matched (Table 3)", "the scored split"),
        (Model::Translator, true, "M19: WMT, newstest2014 (Table 5)", "newstest2013"),
        (Model::Classifier, true, "M19: BERT, MNLI matched (Table 6)", "5,000 training examples"),
    ];
    let theirs = |(of, is_other_split, model, chosen): (Model, bool, &'static str, &'static str)| {
        let cells = PAPER.best_heads(of, is_other_split);
        let of = move |attention: Attention| {
            let deltas = cells.iter().filter(|cell| cell.attention == attention).map(|cell| cell.delta);
            let lowest = Cell::printed(deltas.min_by(f64::total_cmp)?, |delta| signed(delta, 2));
            let layers = of_layers(Layers::published(cells, attention)?);
            let empty = || Cell::default();
            let cells = [attention.name().into(), chosen.into(), empty(), empty(), empty(), layers, lowest];
            Some(Row::new(model, cells))
        };
        Attention::ALL.into_iter().filter_map(of)
    };
    let best = || all.iter().flat_map(|subject| &subject.best);
    Claim {
        published: published.into_iter().flat_map(theirs).collect(),
        measured: best().flat_map(|best| layers(best, criterion)).collect(),
        remarks: best().flat_map(|best| titled(&best.sweep, best.missing_heads())).collect(),
    }
}

fn of_layers(layers: Layers) -> Cell {
    Cell::number(layers.to_string(), layers.enough as f64)
}

fn layers(best: &BestHeads, criterion: Criterion) -> Vec<Row> {
    let (sweep, judge) = (&best.sweep, best.sweep.judge(criterion));
    let of = |attention: Attention| {
        let of_type = best.of(attention);
        let worst = of_type.values().min_by(|one, other| one.gain().total_cmp(&other.gain()));
        let worst = worst.map(|row| Cell::printed(row.score_delta, |delta| sweep.metric().change(delta)));
        let no_loss = Layers::ours(&of_type, judge).map(of_layers);
        let chosen = best.selected_on.as_deref().unwrap_or("the scored split");
        let verdicts = three(best.verdicts(attention, judge));
        let cells = [attention.name().into(), Cell::from(chosen)].into_iter().chain(verdicts);
        Row::new(sweep.file.title(), cells.chain([no_loss.into(), worst.into()]))
    };
    sweep.attentions().into_iter().map(of).collect()
}

/// Section 3.4: heads that are important in one domain are important in another.
pub fn across_domains(all: &[SubjectResults], _: Criterion) -> Claim {
    let row = |model, attention: &str, r| {
        Row::new(model, [attention.into(), Cell::default(), Cell::printed(r, |r| fixed(r, 2))])
    };
    let theirs = [
        row("M19: WMT, newstest2013 and MTNT (Figure 2a)", "all reported", PAPER.summary.r_of_translator),
        row("M19: BERT, MNLI matched and mismatched (Figure 2b)", "self", PAPER.summary.r_of_bert),
    ];
    let ours = all.iter().flat_map(|subject| &subject.pairs).flat_map(|pair| {
        pair.rows
            .iter()
            .map(|row| Row::new(pair.title(), [row.attention.name().into()].into_iter().chain(cells(row))))
    });
    Claim { published: theirs.into(), measured: ours.collect(), ..Claim::default() }
}

/// Section 4.2: many heads can be masked together.
pub fn removable(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let theirs = PAPER.shares.iter().map(|share| {
        let before = ["importance", "", "", "", "", ""].map(Cell::from);
        let percent = Cell::number(format!("{}%", tenths(share.percent)), share.percent);
        Row::new(format!("M19: {} ({})", share.task, share.figure), before.into_iter().chain([percent]))
    });
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref());
    Claim {
        published: theirs.collect(),
        measured: measured.flat_map(|pruning| shares_of(pruning, criterion)).collect(),
        ..Claim::default()
    }
}

/// Beyond the paper: pruning curves under other kinds of ablation.
pub fn pruning_kinds(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let rows = |found: &KindsOfCurves| {
        let title = found.all[0].1.results.file.title();
        let row = |row: Row| Row::new(title.clone(), [row.label].into_iter().chain(row.cells));
        pruning_kinds::rows(found, criterion).into_iter().map(row).collect::<Vec<_>>()
    };
    let found = all.iter().filter_map(|subject| subject.pruning_kinds.as_ref());
    Claim { measured: found.flat_map(rows).collect(), ..Claim::default() }
}

/// Returns a row for each ranking that the paper compares.
fn shares_of(pruning: &Pruning, criterion: Criterion) -> Vec<Row> {
    let of = |order: Order| {
        let series = pruning.find(Scope::All, order)?;
        let complement = pruning.complement(series).map(|series| score_at(pruning, series, 50.0));
        let cells = [
            Cell::from(order.name()),
            pruning.results.described_base().into(),
            series.runs.first()?.first()?.heads.into(),
        ];
        let shares = share_and_change(pruning, series, criterion);
        let half = [score_at(pruning, series, 50.0), complement.into(), floor(pruning, Scope::All)];
        Some(Row::new(pruning.results.file.title(), cells.into_iter().chain(shares).chain(half)))
    };
    [Order::Importance, Order::Oracle, Order::Random].into_iter().filter_map(of).collect()
}

/// Returns the score with all heads masked; empty if it was not measured.
fn floor(pruning: &Pruning, scope: Scope) -> Cell {
    let amount = |score| pruning.results.metric().amount(score);
    pruning.floors.get(&scope).map(|row| Cell::printed(row.score, amount)).into()
}

/// Returns the share and its change by each rule, and the power of the first rule; empty if the curve has no share.
fn share_and_change(pruning: &Pruning, series: &Series, criterion: Criterion) -> [Cell; 5] {
    let (judge, metric) = (pruning.results.judge(criterion), pruning.results.metric());
    let [dispensable, no_loss] = RuleKind::BOTH.map(|which| series.removable(judge, which));
    let change =
        |found: &Removable| found.change.map(|change| Cell::number(change.in_words(&metric), change.delta));
    let changes = [&dispensable, &no_loss].map(|found| Cell::from(found.as_ref().and_then(change)));
    let power = dispensable
        .as_ref()
        .and_then(|found| found.power)
        .map(|power| Cell::printed(power, |power| fixed(power, 2)));
    let [dispensable, no_loss] = [dispensable, no_loss]
        .map(|found| Cell::from(found.map(|found| Cell::number(share(&found, "%"), found.percent))));
    let [change, change_without_loss] = changes;
    [dispensable, change, power.into(), no_loss, change_without_loss]
}

/// Beyond the paper: retraining after masking heads.
pub fn retrained(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let rows = |retrained: &Retrained| {
        let title = retrained.after.results.file.title();
        let row = |row: Row| Row::new(title.clone(), [row.label].into_iter().chain(row.cells));
        retrained::rows(retrained, criterion).into_iter().map(row).collect::<Vec<_>>()
    };
    let measured = all.iter().filter_map(|subject| subject.retrained.as_ref());
    Claim { measured: measured.flat_map(rows).collect(), ..Claim::default() }
}

/// Beyond the paper: the best ranking or search for each share of the heads; empty if no statistics of segments are stored.
pub fn methods(all: &[SubjectResults], _: Criterion) -> Claim {
    let rows = |found: &Methods, scope: Scope| {
        let row = |own: &Recommended| {
            let of = if scope == Scope::All { String::new() } else { format!(" of {scope}") };
            let first = [format!("{}%{of}", tenths(own.percent)), with_training(own).to_owned()];
            Row::new(
                found.results.file.title(),
                first.map(Cell::from).into_iter().chain(recommended(found, own)),
            )
        };
        found.recommended(scope).unwrap_or_default().iter().map(row).collect::<Vec<_>>()
    };
    let measured = all.iter().filter_map(|subject| subject.methods.as_ref());
    let measured = measured.flat_map(|found| found.scopes().into_iter().flat_map(|scope| rows(found, scope)));
    Claim { measured: measured.collect(), ..Claim::default() }
}

/// Section 5: cross-attention depends most on its heads.
pub fn by_type(all: &[SubjectResults], criterion: Criterion) -> Claim {
    let model = "M19: WMT, newstest2013 (Figure 4)";
    let breaks = format!("breaks down after {}%", tenths(PAPER.summary.breakdown_percent));
    let left = |attention| {
        let before = [attention, "", "", "", "", "", ""].map(Cell::from);
        Row::new(model, before.into_iter().chain([Cell::printed(PAPER.summary.bleu_left, tenths)]))
    };
    let theirs = [left("enc-enc"), Row::new(model, ["enc-dec", "", "", "", &breaks]), left("dec-dec")];
    let of = |pruning: &Pruning, attention: Attention, series: &Series| {
        let [dispensable, _, power, no_loss, _] = share_and_change(pruning, series, criterion);
        let [half, most] = [50.0, 80.0].map(|share| score_at(pruning, series, share));
        let base = pruning.results.described_base();
        let floor = floor(pruning, Scope::One(attention));
        let random = pruning.find(Scope::One(attention), Order::Random);
        let random = Cell::from(random.map(|random| score_at(pruning, random, 50.0)));
        let cells =
            [attention.name().into(), base.into(), dispensable, power, no_loss, half, random, most, floor];
        Row::new(pruning.results.file.title(), cells)
    };
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref()).flat_map(|pruning| {
        let types = Attention::ALL.into_iter().filter(|attention| *attention != Attention::SelfAttention);
        types.filter_map(move |attention| {
            let series = pruning.find(Scope::One(attention), Order::Importance)?;
            Some(of(pruning, attention, series))
        })
    });
    Claim { published: theirs.into(), measured: measured.collect(), ..Claim::default() }
}

/// Section 6: heads become dispensable during training.
pub fn during_training(all: &[SubjectResults], _: Criterion) -> Claim {
    let runs = || all.iter().filter_map(|subject| subject.dynamics.as_ref());
    let left_out = |dynamics: &Dynamics| Some(format!("{}, {}", dynamics.file.title(), dynamics.left_out()?));
    Claim {
        published: Vec::from_iter(published_training()),
        measured: runs().filter_map(measured_training).collect(),
        remarks: runs().filter_map(left_out).collect(),
    }
}

fn published_training() -> Option<Row> {
    let (last, percent) = (PAPER.epochs.last()?, PAPER.summary.prunable_percent);
    let epoch = format!("epoch {} (equal from epoch 10 on)", last.epoch);
    let base = format!("BLEU {}", fixed(last.unpruned_bleu, 1));
    let share = Cell::number(format!("{}%", tenths(percent)), percent);
    Some(Row::new("M19: IWSLT (Figure 5)", [epoch.into(), base.into(), Cell::default(), share]))
}

/// Returns the row of a training run; `None` if no checkpoint has a score above 0.
fn measured_training(dynamics: &Dynamics) -> Option<Row> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let base = dynamics.metric.described(last.base());
    let heads = last.steps.first()?.heads;
    let share_of = |checkpoint: &Checkpoint, least: f64| {
        let share =
            |(percent, is_open)| Cell::number(format!("{}%", words::share(percent, is_open)), percent);
        Cell::from(checkpoint.removable(least).map(share))
    };
    let [most, more] = [85.0, 90.0].map(|least| share_of(last, least));
    let before = format!("{}: {}", dynamics.name(first), share_of(first, 85.0).text);
    let before = (comparable.len() > 1).then_some(before);
    let cells = [dynamics.name(last).into(), Cell::from(base), heads.into(), most, more, before.into()];
    Some(Row::new(dynamics.file.title(), cells))
}

/// Section 8 names other models as future work, without numbers.
pub fn language(all: &[SubjectResults], criterion: Criterion) -> Claim {
    // the first file determines the type of model
    let is_meant = |subject: &&SubjectResults| subject.files().next().is_some_and(|file| file.is_language());
    Claim {
        measured: all.iter().filter(is_meant).filter_map(|subject| answer(subject, criterion)).collect(),
        ..Claim::default()
    }
}

/// Returns the row of a language model; `None` without a sweep and pruning curves.
fn answer(subject: &SubjectResults, criterion: Criterion) -> Option<Row> {
    let (sweep, pruning) = (subject.sweep.as_ref(), subject.pruning.as_ref());
    let verdicts = three(sweep.and_then(|sweep| sweep.judge(criterion).verdicts(&sweep.rows)));
    let words = subject.nats_per_word.map(|nats| Cell::printed(nats, |nats| fixed(nats, 3)));
    let of_sweep = sweep.map(|sweep| (sweep.file.title(), sweep.metric(), sweep.base()));
    let of_curves =
        pruning.map(|Pruning { results, .. }| (results.file.title(), results.metric(), results.base()));
    let (title, metric, base) = of_curves.or(of_sweep)?;
    let files = [sweep.map(|sweep| &sweep.file), pruning.map(|own| &own.results.file)];
    let of_heads = match files.map(|file| file?.scored()) {
        [Some(heads), Some(curves)] if heads != curves => format!("; single heads: {heads}"),
        _ => String::new(),
    };
    let base = Cell::printed(base, |base| metric.described(base));
    let shares = pruning.and_then(|pruning| {
        let series = pruning.find(Scope::All, Order::Importance)?;
        Some(share_and_change(pruning, series, criterion))
    });
    let floor = pruning.map_or(Cell::default(), |pruning| floor(pruning, Scope::All));
    let cells = [base, words.into()].into_iter().chain(verdicts).chain(shares.unwrap_or_default());
    Some(Row::new(title + &of_heads, cells.chain([floor])))
}
