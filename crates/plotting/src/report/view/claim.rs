//! Findings on one setup, as sentences and as a few numbers.
use crate::artefacts::replicates::in_words;
use crate::findings::{
    Ablations, Criterion, Pruning, Replicates, RuleKind, ShareWithinMargin, SubjectResults,
};
use crate::view::three;
use charts::table::Cell;
use records::{Order, Scope, TestedRow as _};
use words::{count, fixed, range, tenths};

pub const KEY_NUMBERS: [&str; 5] =
    ["base", "needed", "dispensable", "undecided", "share of prunable heads (%) [95% interval]"];

/// Returns sentences on verdicts, the most expensive head, and the share that can be masked; empty if neither was measured.
pub fn sentences(subject: &SubjectResults, criterion: Criterion) -> Vec<String> {
    let heads = subject.sweep.iter().flat_map(|sweep| heads(sweep, subject.replicates.as_ref(), criterion));
    heads.chain(subject.pruning.iter().filter_map(|pruning| share(pruning, criterion))).collect()
}

fn heads(sweep: &Ablations, replicates: Option<&Replicates>, criterion: Criterion) -> Vec<String> {
    let (adjusted, metric, judge) = (criterion.adjusted(), sweep.metric(), sweep.judge(criterion));
    let verdicts = judge.verdicts(&sweep.rows);
    let counted = verdicts.map_or("no head was tested".to_owned(), |verdicts| {
        format!("{} of {}", verdicts.in_words(), count(verdicts.all(), "head"))
    });
    let most = sweep.rows.iter().min_by(|one, other| one.gain().total_cmp(&other.gain()));
    let most = most.filter(|row| row.gain() < 0.0).map(|row| {
        let change = |delta| metric.change(delta);
        let ends = row.delta_interval();
        let ends = ends.map(|ends| format!(" (95% interval {})", range(ends, change))).unwrap_or_default();
        let (base, change, head) = (sweep.base_line(), change(row.score_delta), row.head_id());
        format!("; the largest loss: masking {head} changes the score by {change}{ends} ({base})")
    });
    let alone =
        format!("masked one at a time in {}, {counted}{}", sweep.file.title(), most.unwrap_or_default());
    let meaning = verdicts.map(|_| judge.of_verdicts());
    let tally = adjusted.tally(&sweep.rows);
    let reading = (tally.tested > 0).then(|| {
        let test = sweep.judge(adjusted).description("heads");
        format!("the paper's reading, adjusted: {} with {test}", tally.in_words())
    });
    let one = || "this is one run: another may need other heads".to_owned();
    let one = replicates.map_or_else(one, |found| in_words(found, &sweep.attentions(), criterion));
    [alone].into_iter().chain(meaning).chain([one]).chain(reading).chain(sweep.missing_heads()).collect()
}

fn share(pruning: &Pruning, criterion: Criterion) -> Option<String> {
    let ShareWithinMargin { percent, low, high } = pruning.within_margin(criterion)?;
    let judge = pruning.results.judge(criterion);
    let margin = judge.margin_in_words();
    let dispensable = if low > 0.0 { format!("{}% are", tenths(low)) } else { "none are".to_owned() };
    let [percent, low, high] = [percent, low, high].map(tenths);
    let found = pruning.find(Scope::All, Order::Importance)?.removable(judge, RuleKind::Dispensable);
    let spread = found.as_ref().and_then(|found| found.spread);
    let spread = spread.map(|ends| format!(" ({}% on resamples of the test set)", range(ends, tenths)));
    let power = found.and_then(|found| found.power);
    let power = power.map(|power| format!("; power to show more: {}", fixed(power, 2)));
    Some(format!(
        "by importance, {percent}% of the heads can be masked together with a loss of at most {margin} (95% interval {low} to \
         {high}%); {dispensable} dispensable together{}{}",
        spread.unwrap_or_default(),
        power.unwrap_or_default()
    ))
}

/// Returns the base score, verdicts on single heads, and the share that can be masked, named by [`KEY_NUMBERS`].
pub fn key_numbers(subject: &SubjectResults, criterion: Criterion) -> [Cell; 5] {
    let (sweep, pruning) = (subject.sweep.as_ref(), subject.pruning.as_ref());
    let base = sweep.map(|sweep| sweep.described_base());
    let base = base.or(pruning.map(|pruning| pruning.results.described_base()));
    let [needed, dispensable, undecided] =
        three(sweep.and_then(|sweep| sweep.judge(criterion).verdicts(&sweep.rows)));
    let share = pruning.and_then(|pruning| pruning.within_margin(criterion)).map(|found| {
        let ends = range((found.low, found.high), tenths);
        Cell::number(format!("{} [{ends}]", tenths(found.percent)), found.percent)
    });
    [base.into(), needed, dispensable, undecided, share.into()]
}
