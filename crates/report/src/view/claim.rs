//! Findings on one subject, in sentences and in three numbers.
use charts::table::Cell;
use findings::{Ablations, Criterion, Pruning, SubjectResults, Tolerable};
use records::{AblationRow, TestedRow};
use words::{count, range, short, tenths};

/// The names of [`key_numbers`].
pub const KEY_NUMBERS: [&str; 3] =
    ["base", "heads that change it, adjusted", "share of heads that can go (%) [95 % interval]"];

/// Sentences on the number of heads that matter, the one that matters most, and the share that can go; none where neither was measured.
pub fn sentences(subject: &SubjectResults, criterion: Criterion) -> Vec<String> {
    let heads = subject.sweep.iter().flat_map(|sweep| heads(sweep, criterion));
    heads.chain(subject.pruning.iter().filter_map(|pruning| share(pruning, criterion))).collect()
}

fn heads(sweep: &Ablations, criterion: Criterion) -> Vec<String> {
    let (criterion, metric) = (criterion.adjusted(), sweep.metric());
    let tally = criterion.tally(&sweep.rows);
    let verb = if tally.significant == 1 { "changes" } else { "change" };
    let (heads, significant) = (count(tally.tested, "head"), tally.significant);
    let counted = if tally.tested > 0 {
        let number = if sweep.attentions().len() > 1 {
            "their number within each attention type"
        } else {
            "their number"
        };
        format!(
            "{significant} of {heads} {verb} {} significantly after adjustment for {number}",
            metric.label()
        )
    } else {
        "no head was tested for significance".to_owned()
    };
    let size = |row: &&AblationRow| row.score_delta.abs();
    let most = sweep.rows.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
    let most = most.map(|row| {
        let change = |delta| metric.change(delta);
        let ends = row.delta_interval();
        let ends = ends.map(|ends| format!(" (95 % interval {})", range(ends, change))).unwrap_or_default();
        let (base, change, head) = (sweep.base_line(), change(row.score_delta), row.head_id());
        format!("; the largest change of the {base} is {change}{ends}, without head {head}")
    });
    let alone =
        format!("masked one at a time in {}, {counted}{}", sweep.file.title(), most.unwrap_or_default());
    let test = format!("significant: {}", sweep.judge(criterion).description("heads"));
    [alone, test].into_iter().chain(sweep.missing_heads()).collect()
}

fn share(pruning: &Pruning, criterion: Criterion) -> Option<String> {
    let Tolerable { percent, low, high } = pruning.tolerable(criterion)?;
    let margin = short(pruning.results.judge(criterion).margin_percent);
    let safe = if low > 0.0 { format!("{} % are", tenths(low)) } else { "none is".to_owned() };
    let [percent, low, high] = [percent, low, high].map(tenths);
    Some(format!(
        "masked together by importance, {percent} % of the heads can go with a loss of at most {margin} % of the score (95 % \
         interval {low} to {high} %); {safe} shown to be safe"
    ))
}

/// The base, how many heads change it significantly after adjustment, and the share that can go.
pub fn key_numbers(subject: &SubjectResults, criterion: Criterion) -> [Cell; 3] {
    let (sweep, pruning) = (subject.sweep.as_ref(), subject.pruning.as_ref());
    let base = sweep.map(|sweep| sweep.described_base());
    let base = base.or(pruning.map(|pruning| pruning.results.described_base()));
    let tally = sweep.map(|sweep| criterion.adjusted().tally(&sweep.rows));
    let heads = tally.filter(|tally| tally.tested > 0).map(|tally| {
        let share = tally.significant as f64 / tally.tested as f64;
        Cell::number(format!("{} of {}", tally.significant, tally.tested), share)
    });
    let share = pruning.and_then(|pruning| pruning.tolerable(criterion)).map(|found| {
        let ends = range((found.low, found.high), tenths);
        Cell::number(format!("{} [{ends}]", tenths(found.percent)), found.percent)
    });
    [base.into(), heads.into(), share.into()]
}
