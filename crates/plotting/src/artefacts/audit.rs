//! Lists of heads compared with random sets of equal size in each layer.
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::{AuditRow, HeadSet, TestedRow as _};
use stats::bootstrap::{Interval, percentile_interval};
use words::{bare_p, fixed};

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::pruning::median;
use crate::findings::{Criterion, LeftOut, Result, ResultFile, Results, Source, experiment};
use crate::view::{Request, SIGNS, judged};

const STEM: &str = "audit";

/// Maximum number of heads named per list.
const NAMED: usize = 8;

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "audit", chapter::OTHER_DATA],
    "Lists of heads compared with random sets with equal numbers of heads per layer",
    // one table for all lists and splits
    Reads::Files(|source, request| {
        let one = || Ok(vec![source.one(experiment::AUDIT)?]);
        if request.is_all { Ok(source.all(experiment::AUDIT)?.into_iter().take(1).collect()) } else { one() }
    }),
    draw,
);

fn draw(file: ResultFile, request: &Request<'_>, left_out: &mut LeftOut) -> Result<Vec<Sheet>> {
    let (subject, kind) = (file.subject.clone(), file.kind);
    let results = file.path.parent().and_then(|folder| folder.parent());
    let beside =
        Source::Subject { subject, results: results.unwrap_or(&file.path).to_owned(), kind, split: None };
    let mut all = vec![Results::<AuditRow>::read(file)?];
    for other in beside.all(experiment::AUDIT)? {
        if other.path.file_name() != all[0].file.path.file_name() {
            all.extend(left_out.keep(Results::read(other)));
        }
    }
    let remarks: Vec<String> = all.iter().filter_map(|audit| audit.file.remark()).collect();
    Ok(vec![Sheet::new(STEM, None, [table(&all, request.criterion)]).remark(remarks)])
}

fn table(all: &[Results<AuditRow>], criterion: Criterion) -> Table {
    let rows = all.iter().filter_map(|audit| {
        let list = audit.rows.iter().find(|row| row.draw.is_none())?;
        Some(row(audit, list, criterion))
    });
    let (metric, judge) = (all[0].metric(), all[0].judge(criterion));
    let names =
        ["Split", "Effect", "95% interval", "Random sets", "Rank", "p", "Top elsewhere", "By chance", "p"];
    Table::new("Audit", all[0].file.label(STEM), all[0].file.titled("Lists of heads compared with random sets"))
        .columns(["Heads", "List"], names)
        .rows(rows)
        .note(format!("effect: {0} with the list masked minus {0} of the full model", metric.label()))
        .note("random sets: equal numbers of heads per layer; median of their effects, with percentiles 2.5 and 97.5")
        .note("rank: of the list's loss, 1 for the largest; p: (1 + random sets that lose at least as much) / (1 + random sets)")
        .note(
            "top elsewhere: heads of the list that an estimate on other data also ranks first, with equal numbers per layer; by \
             chance: expected for a random list; p: hypergeometric",
        )
        .note(judge.of_verdicts())
        .note(SIGNS)
}

fn row(audit: &Results<AuditRow>, list: &AuditRow, criterion: Criterion) -> Row {
    let metric = audit.metric();
    let change = |delta: f64| metric.change(delta);
    let mut draws: Vec<f64> =
        audit.rows.iter().filter(|row| row.draw.is_some()).map(|row| row.score_delta).collect();
    draws.sort_by(f64::total_cmp);
    let of_draws = median(&draws).zip(percentile_interval(&draws));
    let p = |p: Option<f64>| p.map(|p| Cell::printed(p, bare_p));
    let interval = list.delta_interval().map(|ends| Cell::interval(ends, change));
    let random = of_draws.map(|(median, Interval { low, high })| {
        Cell::number(format!("{} ({} to {})", change(median), change(low), change(high)), median)
    });
    let rank = list
        .rank
        .zip(list.draws)
        .map(|(rank, draws)| Cell::number(format!("{rank} (of {draws} random sets)"), rank as f64));
    let heads: HeadSet = list.masked_heads.parse().unwrap_or_default();
    let count = heads.len();
    let found = list.found_again.map(|found| Cell::number(format!("{found} of {count}"), found as f64));
    let split = Cell::from(audit.file.split().unwrap_or_default());
    let effect = judged(Cell::printed(list.score_delta, change), audit.judge(criterion).verdict(list));
    let by_chance = list.found_again_by_chance.map(|number| Cell::printed(number, |number| fixed(number, 1)));
    let cells: [Cell; 9] = [
        split,
        effect,
        interval.into(),
        random.into(),
        rank.into(),
        p(list.p_rank).into(),
        found.into(),
        by_chance.into(),
        p(list.p_found_again).into(),
    ];
    Row::new(label(&heads), cells)
}

/// Formats heads: `L2H4, L2H8`, or `12 heads: L1H2, … and 4 more`.
fn label(heads: &HeadSet) -> String {
    let names: Vec<String> = heads.iter().take(NAMED).map(|id| id.in_words()).collect();
    match heads.len().checked_sub(NAMED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} heads: {} and {more} more", heads.len(), names.join(", ")),
    }
}
