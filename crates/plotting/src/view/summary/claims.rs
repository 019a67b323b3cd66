//! The claims of Michel et al. (2019), one table each.
use records::{AblationRow, Attention, Order, Scope, TestedRow};

use super::{Cells, Claim, row};
use crate::data::best_heads::{BestHeads, enough, enough_published};
use crate::data::dynamics::{Checkpoint, Dynamics};
use crate::data::pruning::{Pruning, Series};
use crate::data::subject::Subject;
use crate::data::sweep::Sweep;
use crate::judge::{Adjustment, CAUTION, Criterion, Tally, Which};
use crate::paper::{
    BASE_BLEU, BETTER, BLEU_LEFT, BREAKDOWN, FIGURE_2A, FIGURE_2B, FIGURE_5, HEADS, Paper, Published,
    SIGNIFICANT, Share,
};
use crate::table::Cell;
use crate::view::Context;
use crate::view::cross_domain::{HOW_TO_READ, cells};
use crate::view::pruning_table::{COMPLEMENT, ORACLE, score_at, share};
use crate::words::{self, short, signed, tenths};

/// Section 3.2: most single heads can go.
pub fn single_heads(all: &[Subject], context: Context<'_>) -> Claim {
    let sweeps = || all.iter().filter_map(|subject| subject.sweep.as_ref());
    let paper = context.paper.map(|paper| {
        let base = format!("BLEU {:.2}", paper.value(BASE_BLEU));
        let [heads, significant, better] =
            [HEADS, SIGNIFICANT, BETTER].map(|name| paper.value(name).to_string());
        let model = "M19: WMT, newstest2013 (Table 1)";
        row([model, "enc-enc", &base, &heads, "", "", &significant, &better, ""])
    });
    Claim {
        name: "One head at a time: few matter (Section 3.2, Table 1)",
        how_to_read: format!(
            "How to read it: heads whose masking alone changes the score significantly, by the two-sided p-value ({}), by \
             the one-sided one that the paper used for BLEU, which marks too many, and by the p-value adjusted for a single false \
             alarm among the heads of the type; better are those of them without which the score rises.",
            significantly(context.criterion)
        ),
        columns: "model and test set | attention | base | heads | significant | better | by the paper's p | better | adjusted",
        published: paper.into_iter().collect(),
        measured: sweeps().flat_map(|sweep| counts(sweep, context.criterion)).collect(),
        remarks: sweeps().flat_map(|sweep| titled(sweep, sweep.missing_heads())).collect(),
    }
}

/// Sentences with the title of what they are about.
fn titled(sweep: &Sweep, sentences: Vec<String>) -> Vec<String> {
    sentences.iter().map(|sentence| format!("{}, {sentence}", sweep.file.title())).collect()
}

fn significantly(criterion: Criterion) -> String {
    let adjustment = match criterion.adjustment {
        Adjustment::None => "not adjusted",
        Adjustment::Family => "adjusted for the family",
        Adjustment::Bh => "adjusted by Benjamini and Hochberg (1995)",
    };
    format!("p < {}, {adjustment}", short(criterion.alpha))
}

fn counts(sweep: &Sweep, criterion: Criterion) -> Vec<Cells> {
    let base = sweep.metric.described(sweep.base);
    let counts = |attention: Attention| {
        let family = sweep.family(attention);
        let rows = || family.iter().copied();
        let ours = criterion.tally(rows());
        let papers = Tally::of(rows(), criterion.alpha, |row| row.p_koehn.or(row.p_value));
        let adjusted = criterion.adjusted().tally(rows());
        let of = |tally: Tally| {
            let numbers = [tally.significant, tally.better].map(|count| Cell::from(count.to_string()));
            if tally.tested > 0 { numbers } else { Default::default() }
        };
        let mut cells = row([&sweep.file.title(), attention.name(), &base, &family.len().to_string()]);
        cells.extend([ours, papers, adjusted].into_iter().flat_map(of));
        cells
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
    let of_paper = |paper: &Paper| {
        let layers = |(table, model, chosen)| published_layers(paper.rows(table), model, chosen);
        published.into_iter().flat_map(layers).collect()
    };
    let best = || all.iter().flat_map(|subject| &subject.best);
    Claim {
        name: "One head of a layer is often enough (Section 3.3, Tables 2, 3, 5 and 6)",
        how_to_read: format!(
            "How to read it: layers in which one head is enough, when all their heads but the best one are masked. {} \
             Chosen on the same split, the best head is an optimistic choice.",
            both_rules(context.criterion)
        ),
        columns: "model and test set | attention | best head chosen on | shown safe in | no significant loss in | largest loss",
        published: context.paper.map(of_paper).unwrap_or_default(),
        measured: best().flat_map(|best| layers(best, context.criterion)).collect(),
        remarks: best().flat_map(|best| titled(&best.sweep, best.missing_heads())).collect(),
    }
}

fn published_layers(cells: &[Published], model: &str, chosen: &str) -> Vec<Cells> {
    let of = |attention: Attention| {
        let deltas =
            cells.iter().filter(|cell| cell.attention == Some(attention)).filter_map(|cell| cell.delta);
        let lowest = deltas.min_by(f64::total_cmp)?;
        let layers = enough_published(cells, attention)?.to_string();
        Some(row([model, attention.name(), chosen, "", &layers, &signed(lowest, 2)]))
    };
    Attention::ALL.into_iter().filter_map(of).collect()
}

fn layers(best: &BestHeads, criterion: Criterion) -> Vec<Cells> {
    let of = |attention: Attention| {
        let of_type = best.of(attention);
        let gain = |row: &AblationRow| row.difference(None).gain;
        let worst = of_type.values().min_by(|one, other| gain(one).total_cmp(&gain(other)));
        let worst = worst.map_or(String::new(), |row| best.sweep.metric.change(row.score_delta));
        let judge = best.sweep.judge(criterion);
        let [safe, no_loss] = Which::BOTH
            .map(|which| enough(&of_type, judge, which).map_or(String::new(), |found| found.to_string()));
        let chosen = best.selected_on.as_deref().unwrap_or("the same");
        row([&best.sweep.file.title(), attention.name(), chosen, &safe, &no_loss, &worst])
    };
    best.sweep.attentions().into_iter().map(of).collect()
}

/// Both rules in a sentence or two.
fn both_rules(criterion: Criterion) -> String {
    format!(
        "Shown safe: at the worse end of the 95 % interval the loss is small (at most 2 % of the base, unless the files name \
         another margin). No significant loss ({}): the paper's rule; {CAUTION}.",
        significantly(criterion)
    )
}

/// Section 3.4: important heads are important in another domain too.
pub fn across_domains(all: &[Subject], context: Context<'_>) -> Claim {
    let paper = context.paper.map(|paper| {
        let published =
            |(model, attention, name)| row([model, attention, "", &format!("{:.2}", paper.value(name))]);
        [
            ("M19: WMT, newstest2013 and MTNT (Figure 2a)", "all reported", FIGURE_2A),
            ("M19: BERT, MNLI matched and mismatched (Figure 2b)", "self", FIGURE_2B),
        ]
        .map(published)
    });
    let pairs = all.iter().flat_map(|subject| &subject.pairs);
    let measured = pairs.flat_map(|pair| {
        pair.rows.iter().map(move |found| {
            let texts = [pair.title(), found.attention.to_string()].into_iter().chain(cells(found));
            texts.map(Cell::from).collect()
        })
    });
    Claim {
        name: "Heads matter across domains (Section 3.4, Figure 2)",
        how_to_read: format!(
            "How to read it: Pearson's r between the scores with one head masked on two test sets, with what noise \
             allows; {HOW_TO_READ}."
        ),
        columns: "model and test sets | attention | heads | r | 95 % interval | p of r | reliability | ceiling of r | rho | top heads shared | reading",
        published: paper.into_iter().flatten().collect(),
        measured: measured.collect(),
        remarks: Vec::new(),
    }
}

/// Section 4.2: many heads can go at once.
pub fn removable(all: &[Subject], context: Context<'_>) -> Claim {
    let published =
        context.paper.map_or(Vec::new(), Paper::shares).into_iter().map(|Share { figure, task, percent }| {
            row([
                &format!("M19: {task} ({figure})"),
                "importance",
                "",
                "",
                "",
                "",
                &format!("{} %", tenths(percent)),
            ])
        });
    let measured = all.iter().filter_map(|subject| subject.pruning.as_ref());
    Claim {
        name: "Many heads can go at once (Section 4.2, Figures 3 and 6)",
        how_to_read: format!(
            "How to read it: the largest share of heads that can be masked in an order, by two rules, and the change of \
             the score there. {} The paper's own shares are judged by eye. The oracle's order is {ORACLE}; of random orders \
             the median stands with the least and the greatest share. Complement: {COMPLEMENT}; floor: all heads masked.",
            both_rules(context.criterion)
        ),
        columns: "model and test set | order | base | heads | shown safe | change | no significant loss | change | score at 50 % | complement at 50 % | floor",
        published: published.collect(),
        measured: measured.flat_map(|pruning| shares_of(pruning, context.criterion)).collect(),
        remarks: Vec::new(),
    }
}

/// A row for each of the orders that the paper compares.
fn shares_of(pruning: &Pruning, criterion: Criterion) -> Vec<Cells> {
    let of = |order: Order| {
        let series = pruning.find(Scope::All, order)?;
        let heads = series.runs.first()?.first()?.heads.to_string();
        let [safe, no_loss] = Which::BOTH.map(|which| share_of(pruning, series, criterion, which));
        let half = score_at(pruning, series, 50.0);
        let complement = pruning.complement(series);
        let complement = complement.map_or(String::new(), |series| score_at(pruning, series, 50.0));
        let (title, base, floor) = (pruning.file.title(), base(pruning), floor(pruning, Scope::All));
        let fixed = row([&title, order.name(), &base, &heads, &safe[0], &safe[1], &no_loss[0], &no_loss[1]]);
        Some(fixed.into_iter().chain([half, complement, floor].map(Cell::from)).collect())
    };
    [Order::Importance, Order::Oracle, Order::Random].into_iter().filter_map(of).collect()
}

/// The score with all heads masked; empty where it was not measured.
pub fn floor(pruning: &Pruning, scope: Scope) -> String {
    pruning.floors.get(&scope).map_or(String::new(), |row| pruning.metric.amount(row.score))
}

/// The score with all heads.
pub fn base(pruning: &Pruning) -> String {
    pruning.metric.described(pruning.base)
}

/// The share by one rule and the change there; empty if it has no share.
pub fn share_of(pruning: &Pruning, series: &Series, criterion: Criterion, which: Which) -> [String; 2] {
    let removable = series.removable(pruning.judge(criterion), which);
    let change = removable.as_ref().and_then(|removable| removable.change);
    let change = change.map_or(String::new(), |change| change.in_words(&pruning.metric));
    [removable.map_or(String::new(), |removable| format!("{} %", share(&removable))), change]
}

/// Section 5: attention from decoder to encoder needs its heads most.
pub fn by_type(all: &[Subject], context: Context<'_>) -> Claim {
    let of_paper = |paper: &Paper| {
        let [breaks, left] = [BREAKDOWN, BLEU_LEFT].map(|name| tenths(paper.value(name)));
        let (model, breaks) = ("M19: WMT, newstest2013 (Figure 4)", format!("breaks down after {breaks} %"));
        vec![
            row([model, "enc-enc", "", "", "", "", &left]),
            row([model, "enc-dec", "", "", &breaks]),
            row([model, "dec-dec", "", "", "", "", &left]),
        ]
    };
    let translators = all.iter().filter_map(|subject| subject.pruning.as_ref());
    let measured = translators.flat_map(|pruning| {
        let types = pruning.types().unwrap_or_default();
        let types = types.into_iter().filter(|(_, series)| !series.curve.is_complement);
        types.map(|(attention, series)| sensitivity(pruning, attention, series, context.criterion))
    });
    Claim {
        name: "Encoder-decoder attention needs its heads most (Section 5, Figure 4)",
        how_to_read: "How to read it: heads of one attention type masked by importance; the largest share that can go by the two \
                      rules above, and the score with half, with four fifths and with all of them masked."
            .to_owned(),
        columns: "model and test set | attention | base | shown safe | no significant loss | score at 50 % | score at 80 % | floor",
        published: context.paper.map(of_paper).unwrap_or_default(),
        measured: measured.collect(),
        remarks: Vec::new(),
    }
}

fn sensitivity(pruning: &Pruning, attention: Attention, series: &Series, criterion: Criterion) -> Cells {
    let [safe, no_loss] = Which::BOTH.map(|which| share_of(pruning, series, criterion, which)[0].clone());
    let [half, most] = [50.0, 80.0].map(|share| score_at(pruning, series, share));
    let floor = floor(pruning, Scope::One(attention));
    row([&pruning.file.title(), attention.name(), &base(pruning), &safe, &no_loss, &half, &most, &floor])
}

/// Section 6: heads become dispensable while a model is trained.
pub fn during_training(all: &[Subject], context: Context<'_>) -> Claim {
    let trainings = || all.iter().filter_map(|subject| subject.dynamics.as_ref());
    let left_out = |dynamics: &Dynamics| Some(format!("{}, {}", dynamics.file.title(), dynamics.left_out()?));
    Claim {
        name: "Heads become dispensable during training (Section 6, Figure 5)",
        how_to_read: "How to read it: the largest share of heads that can be masked, by importance at that checkpoint, with 85 or 90 % of its own \
                      unpruned score kept; after the last checkpoint and, to compare, after the first with a score above 0. The \
                      paper says that its share is within 85 to 90 %."
            .to_owned(),
        columns: "model and test set | last checkpoint | base | heads | 85 % kept | 90 % kept | 85 % kept after the first",
        published: context.paper.map(published_training).into_iter().collect(),
        measured: trainings().filter_map(measured_training).collect(),
        remarks: trainings().filter_map(left_out).collect(),
    }
}

fn published_training(paper: &Paper) -> Cells {
    let last = paper.rows("figure5").last().and_then(|row| Some((row.epoch?, row.unpruned_bleu?)));
    let (epoch, bleu) = last.unwrap_or_default();
    let (epoch, base) = (format!("epoch {epoch} (the same from 10 on)"), format!("BLEU {bleu:.1}"));
    let share = format!("{} %", tenths(paper.value(FIGURE_5)));
    row(["M19: IWSLT (Figure 5)", &epoch, &base, "", &share])
}

/// Nothing for a training without a score so far.
fn measured_training(dynamics: &Dynamics) -> Option<Cells> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let base = dynamics.metric.described(last.base());
    let heads = last.steps.first()?.heads.to_string();
    let share_of = |checkpoint: &Checkpoint, least: f64| {
        let found = checkpoint.removable(least);
        found.map_or(String::new(), |(percent, is_open)| format!("{} %", words::share(percent, is_open)))
    };
    let [most, more] = [85.0, 90.0].map(|least| share_of(last, least));
    let before = format!("{}: {}", dynamics.name(first), share_of(first, 85.0));
    let before = if comparable.len() > 1 { before } else { String::new() };
    Some(row([&dynamics.file.title(), &dynamics.name(last), &base, &heads, &most, &more, &before]))
}
