//! Compares the paper's numbers with ours: do both have the same direction, and is the published number inside our interval?
use crate::artefacts::best_heads::published;
use crate::findings::best_heads::Layers;
use crate::findings::paper::{FewHeads, PAPER, Summary};
use crate::findings::results::interval;
use crate::findings::{
    Ablations, Adjustment, BestHeads, Criterion, Dynamics, Functions, Gates, Pair, Pruning, Speed,
    SubjectResults, Verdicts,
};
use charts::table::{Row, Table};
use records::rows::functions::leaders;
use records::{Attention, HeadFunctionRow, Method, Order, Scope, SpeedRow, StandsFor, TestedRow as _};
use words::{count, percent_more, range, signed, tenths, typeset};

/// Columns: both numbers, our interval, and the comparisons.
const COLUMNS: [&str; 5] =
    ["paper", "ours", "our 95% interval", "same direction?", "paper's number inside it?"];

const LOSS: [&str; 2] = ["a loss, as in the paper", "a gain"];
const GAIN: [&str; 2] = ["a gain, as in the paper", "a loss"];

/// Why there is no verdict.
const NO_INTERVAL: &str = "unknown: ours has no interval";

/// Tabulates each number of the paper that the results of a setup can be compared with; `None` if there is none.
pub fn table(subject: &SubjectResults, speed: Option<&Speed>, criterion: Criterion) -> Option<Table> {
    let mut rows = Vec::new();
    rows.extend(subject.sweep.iter().filter_map(|sweep| single_heads(sweep, criterion)));
    rows.extend(subject.sweep.iter().filter_map(|sweep| worst_head(sweep, criterion)));
    rows.extend(subject.best.iter().flat_map(|best| layers(best, criterion)));
    rows.extend(subject.pairs.iter().filter_map(domains));
    rows.extend(subject.pruning.iter().filter_map(|pruning| share(pruning, criterion)));
    rows.extend(subject.pruning.iter().filter_map(types));
    rows.extend(subject.dynamics.iter().filter_map(training));
    let speed = speed.filter(|speed| speed.is_beside_bert());
    rows.extend(speed.into_iter().flat_map(|speed| &speed.rows).filter_map(faster));
    rows.extend(subject.functions.iter().flat_map(dependencies));
    rows.extend(subject.gates.iter().flat_map(few_heads));
    let title = "Published numbers and ours; V19: Voita et al. (2019), all others: Michel et al. (2019). They come from other models and other data, so \
         only the direction can agree; a published number inside our interval is not contradicted by our data";
    (!rows.is_empty()).then(|| {
        Table::new("Comparison with the paper", "verdicts", title).columns(["Claim", ""], COLUMNS).rows(rows)
    })
}

fn said(holds: bool, what: &str) -> String {
    format!("{}: {what}", if holds { "yes" } else { "no" })
}

/// Describes whether an interval is above 0, below 0, or contains it.
fn side_of_0((low, high): (f64, f64), [above, below]: [&str; 2]) -> String {
    if low > 0.0 {
        said(true, above)
    } else if high < 0.0 {
        said(false, below)
    } else {
        "unknown: our interval contains 0".to_owned()
    }
}

/// Returns our interval, whether it is on their number's side of 0 (`shown`: words for yes and no), and whether it contains their number.
fn judged(
    theirs: f64,
    ends: Option<(f64, f64)>,
    number: impl Fn(f64) -> String,
    shown: [&str; 2],
) -> [String; 3] {
    beside(theirs, ends, number, |(low, high)| {
        side_of_0(if theirs < 0.0 { (-high, -low) } else { (low, high) }, shown)
    })
}

/// Returns our interval, what it shows about the side of 0, and whether it contains their number.
fn beside(
    theirs: f64,
    ends: Option<(f64, f64)>,
    number: impl Fn(f64) -> String,
    side: impl Fn((f64, f64)) -> String,
) -> [String; 3] {
    let Some(ends) = ends else {
        return [String::new(), NO_INTERVAL.to_owned(), NO_INTERVAL.to_owned()];
    };
    [range(ends, number), side(ends), inside(theirs, ends)]
}

fn inside(number: f64, (low, high): (f64, f64)) -> String {
    if (low..=high).contains(&number) { "yes" } else { "no" }.to_owned()
}

/// Describes by verdicts whether most are dispensable, as in the paper if `most_in_paper`.
fn most_dispensable(verdicts: Verdicts, most_in_paper: bool, of: &str) -> String {
    let half = |number: usize| 2 * number > verdicts.all();
    if half(verdicts.dispensable) {
        said(most_in_paper, &format!("most {of} are dispensable"))
    } else if half(verdicts.needed) {
        said(!most_in_paper, &format!("most {of} are needed"))
    } else {
        "unknown: too many are undecided, or there is no majority".to_owned()
    }
}

/// Section 3.2: few single heads matter by the paper's reading; ours gives verdicts and the paper's reading.
fn single_heads(sweep: &Ablations, criterion: Criterion) -> Option<Row> {
    let family = sweep.family(Attention::EncEnc);
    sweep.beside().filter(|beside| beside.translates() && !family.is_empty())?;
    let verdicts = sweep.judge(criterion).verdicts(family.iter().copied())?;
    let tally = Criterion { adjustment: Adjustment::None, ..criterion }.tally(family.iter().copied());
    let Summary { heads, significant, .. } = PAPER.summary;
    let whole = count(family.len(), "head");
    let cells = [
        format!("{significant} of {heads} significant"),
        format!("{}; {} of {} significant", verdicts.in_words(), tally.significant, tally.tested),
        String::new(),
        most_dispensable(verdicts, 2.0 * significant < heads, "single heads"),
        format!("unknown: all {whole} were tested, so the number has no interval"),
    ];
    Some(Row::new("encoder heads that are needed alone", cells))
}

/// Section 3.3: one head per layer is often enough.
fn layers(best: &BestHeads, criterion: Criterion) -> Vec<Row> {
    let judge = best.sweep.judge(criterion);
    let of = |attention: Attention| {
        let theirs = Layers::published(best.published(), attention)?;
        let ours = best.verdicts(attention, judge)?;
        let most = 2 * theirs.enough > theirs.tested;
        let no_loss = Layers::ours(&best.of(attention), judge);
        let no_loss = no_loss.map(|layers| format!("; no significant loss in {layers}")).unwrap_or_default();
        let cells = [
            format!("no significant loss in {theirs} of {attention} ({})", published(best)[1]),
            ours.in_words() + &no_loss,
            String::new(),
            most_dispensable(ours, most, "other heads of a layer"),
            NO_INTERVAL.to_owned(),
        ];
        Some(Row::new("layers by their heads other than the best one", cells))
    };
    best.sweep.attentions().into_iter().filter_map(of).collect()
}

/// Section 3.4: importance of heads agrees across domains.
fn domains(pair: &Pair) -> Option<Row> {
    let Summary { r_of_translator, r_of_bert, .. } = PAPER.summary;
    let (figure, theirs) =
        pair.beside()?.of_both(("Figure 2a", r_of_translator), ("Figure 2b", r_of_bert))?;
    let row = &pair.rows[0];
    let (r, ends) = (row.pearson?, row.pearson_low.zip(row.pearson_high));
    let number = |r| typeset(r, 2);
    let shown = ["r is shown to be above 0", "r is shown to be below 0"];
    let cells = [format!("r = {} ({})", number(theirs), figure), format!("r = {}", number(r))];
    let cells = cells.into_iter().chain(judged(theirs, ends, number, shown));
    Some(Row::new("correlation of heads across domains", cells))
}

/// Section 4.2: many heads can be masked together.
fn share(pruning: &Pruning, criterion: Criterion) -> Option<Row> {
    let theirs = pruning.published(&PAPER.shares)?;
    let found = pruning.within_margin(criterion)?;
    let direction = match (found.low > 0.0, found.high > 0.0) {
        (true, _) => said(true, "some heads are dispensable together"),
        (false, true) => "unknown: our interval begins at 0".to_owned(),
        (false, false) => said(false, "the heads of the first step are needed"),
    };
    let ends = (found.low, found.high);
    let cells = [
        format!("{}%, judged by eye ({}, {})", tenths(theirs.percent), theirs.task, theirs.figure),
        format!("{}% with a loss within the margin", tenths(found.percent)),
        format!("{}%", range(ends, tenths)),
        direction,
        inside(theirs.percent, ends),
    ];
    Some(Row::new("share of prunable heads by importance", cells))
}

/// Section 5: cross-attention depends most on its heads.
fn types(pruning: &Pruning) -> Option<Row> {
    const SHARE: f64 = 80.0;
    pruning.results.beside().filter(|beside| beside.translates())?;
    let metric = pruning.results.metric();
    let of = |attention: Attention| {
        let series = pruning.find(Scope::One(attention), Order::Importance)?;
        let row = series.nearest(SHARE)?;
        Some((metric.amount(row.score), interval(row)?))
    };
    let (own, between, decoder) = (of(Attention::EncEnc)?, of(Attention::EncDec)?, of(Attention::DecDec)?);
    let direction = if between.1.1 < own.1.0.min(decoder.1.0) {
        said(true, "its interval is below both others")
    } else if between.1.0 > own.1.1.min(decoder.1.1) {
        said(false, "another type is shown to lose more")
    } else {
        "unknown: the intervals overlap".to_owned()
    };
    let breakdown = tenths(PAPER.summary.breakdown_percent);
    let (first, second, third) = (between.0, decoder.0, own.0);
    let cells = [
        format!("breaks down once {breakdown}% of its heads are masked (Figure 4)"),
        format!("with {SHARE}% of a type masked: enc-dec {first}, dec-dec {second}, enc-enc {third}"),
        range(between.1, |score| metric.amount(score)),
        direction,
        "unknown: the paper prints no score there".to_owned(),
    ];
    Some(Row::new("cross-attention loses most", cells))
}

/// Section 6: heads become dispensable during training.
fn training(dynamics: &Dynamics) -> Option<Row> {
    let comparable = dynamics.comparable().ok()?;
    let (first, last) = (comparable.first()?, comparable.last()?);
    let ((before, _), (after, _)) = (first.removable(90.0)?, last.removable(90.0)?);
    let share = tenths(PAPER.summary.prunable_percent);
    let [at_first, at_last] = [(before, first), (after, last)]
        .map(|(share, at)| format!("{}% after {}", tenths(share), dynamics.name(at)));
    let cells = [
        format!("{share}% from epoch 10 on, 85 to 90% of BLEU kept (Figure 5)"),
        format!("90% kept: {at_first}, {at_last}"),
        String::new(),
        said(after > before, "last checkpoint compared with the first; not tested"),
        NO_INTERVAL.to_owned(),
    ];
    let is_meant = dynamics.metric.is_bleu() && comparable.len() > 1;
    is_meant.then(|| Row::new("heads become dispensable during training", cells))
}

/// Section 4.3: a model with half of its heads removed is faster.
fn faster(row: &SpeedRow) -> Option<Row> {
    let theirs = PAPER.speedup(row)?;
    let [low, high] = [row.ratio_low, row.ratio_high].map(|ratio| 100.0 * (ratio - 1.0));
    let cells = [
        format!("{}% in batches of {} (Table 4)", signed(theirs, 1), row.batch_size),
        format!("{}%", percent_more(row.ratio)),
        format!("{}%", range((low, high), |more| signed(more, 1))),
        side_of_0((low, high), ["it is shown to be faster", "it is shown to be slower"]),
        inside(theirs, (low, high)),
    ];
    Some(Row::new("faster without half of the heads", cells))
}

/// Figure 1b: the head that BERT needs most. It is selected for its loss, so its test is adjusted for all heads.
fn worst_head(sweep: &Ablations, criterion: Criterion) -> Option<Row> {
    sweep.beside().filter(|beside| beside.is_inference())?;
    let worst = sweep.rows.iter().min_by(|one, other| one.score_delta.total_cmp(&other.score_delta))?;
    let [base, lowest, _] = PAPER.summary.accuracies();
    let (theirs, metric) = (lowest - base, sweep.metric());
    let ends = worst.delta_interval();
    let cells = [
        format!("{} points (Figure 1b)", metric.change(theirs)),
        format!("{} points, {}", metric.change(worst.score_delta), worst.head_id()),
        ends.map(|ends| range(ends, |delta| metric.change(delta))).unwrap_or_default(),
        if criterion.adjusted().is_loss(worst) {
            said(true, "a loss is shown, adjusted for all heads")
        } else {
            "unknown: not significant once adjusted for all heads".to_owned()
        },
        "unknown: both are the worst of many heads".to_owned(),
    ];
    Some(Row::new("the largest loss of accuracy from masking one head", cells))
}

/// V19, Table 1: advantage of the best head for a relation over position alone.
fn dependencies(functions: &Functions) -> Vec<Row> {
    let of = |row: &HeadFunctionRow| {
        let theirs = PAPER.dependency(&row.detail)?;
        let margin = row.margin_points?;
        let ends = row.margin_points_low.zip(row.margin_points_high);
        let above = theirs.wmt - theirs.wmt_position;
        let number = |points: f64| signed(points, 1);
        let cells = [
            format!("{} points above position (V19 Table 1, WMT)", number(above)),
            format!("{} points, {}", number(margin), row.head_id()),
        ];
        // selection of the best of many heads inflates its advantage, but never makes it look worse
        let side = |(_, high): (f64, f64)| {
            if high < 0.0 {
                said(above < 0.0, "it is shown to be below position")
            } else {
                "unknown: it is the best of many heads".to_owned()
            }
        };
        let cells = cells.into_iter().chain(beside(above, ends, number, side));
        Some(Row::new(format!("best encoder head for {}", row.detail), cells))
    };
    let is_translator = functions.file.kind.stands_for.is_some_and(StandsFor::translates);
    let rows = functions.rows.iter().filter(|row| is_translator && row.attention == Attention::EncEnc);
    leaders(rows).into_iter().filter_map(of).collect()
}

/// V19, Section 6.2 and Table 2: the score with few heads, compared with the closest share that gates keep here, if it is near.
fn few_heads(gates: &Gates) -> Vec<Row> {
    let is_translator = gates.beside().is_some_and(StandsFor::translates);
    let of = |own: &FewHeads| {
        let (FewHeads { source, data, kept, heads, .. }, change) = (own, own.change());
        let row = gates.nearest(own.gates, own.percent())?;
        gates.counterpart(row, Method::Ungated)?;
        let metric = gates.metric();
        let cells = [
            format!("{} BLEU with {kept} of {heads} (V19 {source})", signed(change, 2)),
            format!("{} with {} of {}", metric.change(row.score_delta), row.kept, row.heads),
        ];
        let shown = if change < 0.0 { LOSS } else { GAIN };
        let judged = judged(change, row.delta_interval(), |delta| metric.change(delta), shown);
        let with = if own.gates == Scope::All { "heads of all types" } else { "encoder heads" };
        Some(Row::new(
            format!(
                "BLEU with the {with} that gates keep, minus BLEU with all heads after the same training, {data}"
            ),
            cells.into_iter().chain(judged),
        ))
    };
    PAPER.few_heads.iter().filter(|_| is_translator).filter_map(of).collect()
}
