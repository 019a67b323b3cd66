//! Accuracy by group of segments, which heads each group needs, and which groups need similar heads.
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::faulty;
use crate::findings::segments::stored;
use crate::findings::{Ablations, Criterion, Result, Results, Verdicts, experiment};
use charts::chart::{self, BAR_COLORS, Chart, Entry, Layer, Panel, Sign, Style};
use charts::palette::INK;
use charts::table::{Cell, Row, Table};
use records::verdicts::margin;
use records::{AblationRow, Attention, HeadId, Verdict};
use significance::{Change, Group, groups};
use stats::bootstrap::Interval;
use stats::classification::{ClassificationMetric, Outcome};
use stats::{MetricName, Segments};
use words::{count, fixed, signed, with_minus};

use super::heat_map::sign;
use crate::view::{by_name, sheet, three};

const STEM: &str = "groups";

/// Accuracy per group with the heads that change it, and how similar pairs of groups are in the heads they need.
pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "groups", chapter::OTHER_DATA],
    "Accuracy by group of segments, such as the paradigms of BLiMP, and the heads that each group needs",
    Reads::Files(|source, request| {
        if !request.is_all {
            return Ok(vec![source.one(experiment::SWEEP)?]);
        }
        Ok(source.all(experiment::SWEEP)?.into_iter().filter(|file| file.groups().is_some()).collect())
    }),
    |file, request, _| {
        let (found, criterion) = (Groups::read(Results::read(file)?)?, request.criterion);
        let tables = [heads_of_groups(&found, criterion), likeness(&found)];
        Ok(vec![sheet(&found.sweep.file, STEM, figure(&found, criterion), tables)])
    },
);

/// Effects of masking one head at a time, for each group of segments.
struct Groups {
    /// Sweep over all segments.
    sweep: Ablations,
    /// Masked heads, in the column order of each group.
    heads: Vec<HeadId>,
    /// Groups in split order.
    groups: Vec<Group>,
}

impl Groups {
    /// Reads the stored segments of a sweep, whose signature names the groups.
    fn read(sweep: Ablations) -> Result<Self> {
        let path = &sweep.file.path;
        let fault =
            "has no groups of choices: they require a signature that names groups, and stored segments";
        let none = || faulty(path, fault);
        let named = sweep.file.groups().ok_or_else(none)?;
        let choices = |segments| match segments {
            Segments::Classes(outcomes, ClassificationMetric::Accuracy) => Ok(outcomes),
            _ => Err(none()),
        };
        let (base, masked) = stored(&sweep, none)?;
        let base = choices(base)?;
        let of_head = |(row, segments): (&AblationRow, _)| Ok((row.head_id(), choices(segments)?));
        let mut heads: Vec<(HeadId, Vec<Outcome>)> =
            sweep.rows.iter().zip(masked).map(of_head).collect::<Result<_>>()?;
        heads.sort_by_key(|(head, _)| *head);
        let (heads, outcomes): (Vec<_>, Vec<_>) = heads.into_iter().unzip();
        let Some(groups) = groups(&named, &base, &outcomes) else {
            let sum = named.iter().map(|(_, segments)| *segments).fold(0, usize::saturating_add);
            let scored = base.len();
            let fault = format!(
                "has groups of {sum} segments in total, but the full model was scored on {scored}, or a masked one on other segments"
            );
            return Err(faulty(path, fault));
        };
        Ok(Self { sweep, heads, groups })
    }

    /// Returns the verdict on a head for a group, with a margin in percent of the group's accuracy.
    fn verdict(group: &Group, change: &Change, margin_percent: f64) -> Verdict {
        let Interval { low, high } = change.interval;
        let margin = margin(MetricName::Accuracy, group.accuracy(), margin_percent);
        Verdict::of(Interval { low: -high, high: -low }, margin)
    }
}

/// Number of heads to name in each direction.
const MAX_NAMED: usize = 3;

/// Maximum number of groups for a table of all pairs.
const MAX_PAIRS: usize = 12;

/// Maximum number of heads in the figure: those with the smallest p-values in any group.
const MAX_SHOWN: usize = 24;

fn heads_of_groups(groups: &Groups, criterion: Criterion) -> Table {
    let (alpha, judge) = (criterion.alpha, groups.sweep.judge(criterion));
    let margin_percent = judge.margin_percent;
    let row = |group: &Group| {
        let (Interval { low, high }, tenth) = (group.interval(), |percent| fixed(percent, 1));
        let verdicts =
            group.changes.iter().map(|change| Some(Groups::verdict(group, change, margin_percent)));
        let [needed, dispensable, undecided] = three(Verdicts::of(verdicts));
        let cells = vec![
            ("segments", group.segments.into()),
            ("base", Cell::printed(group.accuracy(), tenth)),
            ("95% interval", Cell::interval((low, high), tenth)),
            ("needed", needed),
            ("dispensable", dispensable),
            ("undecided", undecided),
            ("worse without", named(groups, group, alpha, |delta| -delta).into()),
            ("better without", named(groups, group, alpha, |delta| delta).into()),
        ];
        (Cell::from(&group.name[..]), cells)
    };
    let (heads, number) = (count(groups.heads.len(), "head"), count(groups.groups.len(), "group"));
    let title = "Accuracy by group of segments, in percent, the verdicts on single heads, and the heads whose masking changes \
         it significantly, with the change in percentage points";
    let file = &groups.sweep.file;
    let table = Table::new("Heads by group of segments", file.label(STEM), file.titled(title));
    by_name(table, ["Group", "Accuracy"], groups.groups.iter().map(row))
        .note(judge.of_verdicts())
        .note(format!(
            "significant: p < {} (McNemar's test with mid-p on the segments of the group; adjusted by Holm (1979) for {heads} \
             in {number})",
            alpha
        ))
        .note(format!("each column names at most {MAX_NAMED} such heads, those with the largest changes"))
        .note("intervals: Wilson (1927) of the base, Tango (1998) of the changes")
        .remark(file.open_question())
        .remark(groups.sweep.missing_heads())
}

/// Names the heads that change a group significantly, ordered by `size`; heads with a size of at most 0 are left out.
fn named(groups: &Groups, group: &Group, alpha: f64, size: fn(f64) -> f64) -> String {
    let is_meant = |(_, change): &(&HeadId, &Change)| change.p_adjusted < alpha && size(change.delta) > 0.0;
    let mut meant: Vec<_> = groups.heads.iter().zip(&group.changes).filter(is_meant).collect();
    meant.sort_by(|(_, one), (_, other)| size(other.delta).total_cmp(&size(one.delta)));
    let names = meant.iter().take(MAX_NAMED);
    let mut texts: Vec<_> =
        names.map(|(head, change)| format!("{head} {}", signed(change.delta, 1))).collect();
    if meant.len() > MAX_NAMED {
        texts.push(format!("{} more", meant.len() - MAX_NAMED));
    }
    texts.join(", ")
}

/// Tabulates the similarity of pairs of groups in the heads they need: all pairs for few groups, otherwise the most and the least similar.
fn likeness(groups: &Groups) -> Table {
    let size = groups.groups.len();
    let is_small = size <= MAX_PAIRS;
    let columns = if is_small {
        (1..=size).map(|number| number.to_string()).collect()
    } else {
        ["most similar", "rho", "least similar", "rho"].map(str::to_owned).to_vec()
    };
    let row = |(place, group): (usize, &Group)| {
        let cells = if is_small { pairs(groups, place) } else { extremes(groups, place) };
        Row::new(format!("{} {}", place + 1, group.name), cells)
    };
    let title = "Spearman's \u{3c1} between groups of segments, over the effects of masking each head on their \
         accuracies";
    let stem = format!("{STEM}-likeness");
    let file = &groups.sweep.file;
    Table::new("Groups that need the same heads", file.label(&stem), file.titled(title))
        .columns(["Group", "Group"], columns)
        .rows(groups.groups.iter().enumerate().map(row))
        .note("1: heads matter in the same order; 0: the order in one group does not predict the order in the other")
        .note("noise pulls \u{3c1} towards 0, especially if a group has few segments")
        .note("n/a: no head changes the accuracy of one of the groups, or there are fewer than three heads")
}

fn two_digits(rho: f64) -> String {
    signed(rho, 2)
}

/// Compares a group with all others; its own column is empty.
fn pairs(groups: &Groups, place: usize) -> Vec<Cell> {
    let group = &groups.groups[place];
    let cell = |(column, other): (usize, &Group)| match group.likeness(other) {
        _ if column == place => Cell::default(),
        Some(rho) => Cell::printed(rho, two_digits),
        None => Cell::gap("n/a"),
    };
    groups.groups.iter().enumerate().map(cell).collect()
}

/// Returns the groups most and least similar to this one; `n/a` if none can be compared.
fn extremes(groups: &Groups, place: usize) -> Vec<Cell> {
    let others = groups.groups.iter().enumerate().filter(|(other, _)| *other != place);
    let known = others.filter_map(|(_, other)| Some((other, groups.groups[place].likeness(other)?)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let cells = |end: Option<&(&Group, f64)>| match end {
        Some((other, rho)) => [Cell::from(other.name.clone()), Cell::printed(*rho, two_digits)],
        None => ["n/a"; 2].map(Cell::gap),
    };
    [known.first(), known.last()].into_iter().flat_map(cells).collect()
}

/// Returns the indices of the heads with the smallest p-values in any group, ties broken by the larger change, in ascending order.
fn shown(groups: &Groups) -> Vec<usize> {
    let changes = |head: usize| groups.groups.iter().map(move |group| group.changes[head]);
    let least_p = |head| changes(head).map(|change| change.p_adjusted).fold(1.0, f64::min);
    let most = |head| changes(head).map(|change| change.delta.abs()).fold(0.0, f64::max);
    let mut heads: Vec<usize> = (0..groups.heads.len()).collect();
    heads.sort_by(|&one, &other| {
        least_p(one).total_cmp(&least_p(other)).then(most(other).total_cmp(&most(one)))
    });
    heads.truncate(MAX_SHOWN);
    heads.sort_unstable();
    heads
}

/// Draws changes of accuracy, orange for losses, with verdicts as signs, and lines between layers and between key-value groups.
fn figure(groups: &Groups, criterion: Criterion) -> Chart {
    let judge = groups.sweep.judge(criterion);
    let (heads, all) = (shown(groups), groups.heads.len());
    let changes = groups.groups.iter().flat_map(|group| heads.iter().map(|&head| group.changes[head].delta));
    let most = changes.fold(f64::MIN_POSITIVE, |most, delta| most.max(delta.abs()));
    let cell = |row: usize, column: usize| {
        let (group, change) = (&groups.groups[row], &groups.groups[row].changes[heads[column]]);
        let verdict = Groups::verdict(group, change, judge.margin_percent);
        chart::Cell { value: Some(-change.delta / most), sign: sign(verdict), ..chart::Cell::default() }
    };
    let which = format!("the {} of {all} heads with the smallest p", heads.len());
    let which = if heads.len() == all { count(all, "head") } else { which };
    let is_single = groups.heads.iter().all(|head| head.attention() == Attention::SelfAttention);
    let columns =
        (if is_single { "head, layer" } else { "head, type and layer" }, head_names(groups, &heads));
    let names = groups.groups.iter().map(|group| &group.name);
    let mut panel = Panel::matrix(columns, ("", names), 9.0, cell);
    panel.layers.extend(borders(groups, &heads));
    let file = &groups.sweep.file;
    let numbers = BAR_COLORS.map(|color| with_minus(&signed(-color * most, 1)));
    let title = file.titled("Effect of masking one head on each group") + &format!("; {which}");
    Chart::new("Heads by group of segments", file.label(&format!("{STEM}-map")), title)
        .note("orange: accuracy falls with the head masked; blue, striped: it rises")
        .note(format!("dot: needed; ring: undecided; unmarked: dispensable; {}", judge.of_verdicts()))
        .note(
            "below the map: head numbers, with the layer number at the first head of each layer; lines separate layers, and groups \
             of heads that share keys and values",
        )
        .entries([Entry::sign("needed", Sign::Dot), Entry::sign("undecided", Sign::Ring)])
        .panels(1, vec![panel])
        .wide()
        .bar("change in accuracy with the head masked (percentage points)", numbers)
}

/// Returns the number of each head, with its layer below the first head of the layer.
fn head_names(groups: &Groups, heads: &[usize]) -> Vec<String> {
    let mut before = None;
    let name = |&place: &usize| {
        let (attention, layer, head) = groups.heads[place].numbers();
        let is_new = before.replace((attention, layer)) != Some((attention, layer));
        let kind = if attention == Attention::SelfAttention {
            String::new()
        } else {
            format!("{} ", attention.in_words())
        };
        let layer = if is_new { format!("{kind}L{layer}") } else { String::new() };
        format!("{head}\n{layer}")
    };
    heads.iter().map(name).collect()
}

/// Returns a line before each head that does not share keys and values with the previous one, thicker between layers.
fn borders(groups: &Groups, heads: &[usize]) -> Vec<Layer> {
    let of_layer = groups.sweep.heads();
    let size = of_layer / groups.sweep.file.key_value_heads(of_layer).unwrap_or(1);
    let block = |place: usize| {
        let (attention, layer, head) = groups.heads[place].numbers();
        ((attention, layer), (head - 1) / size)
    };
    let height = groups.groups.len() as f64;
    let border = |(place, pair): (usize, &[usize])| {
        let ((left, _), (right, _)) = (block(pair[0]), block(pair[1]));
        let width = if left != right { 0.9 } else { 0.4 };
        let x = (place + 1) as f64;
        (block(pair[0]) != block(pair[1]))
            .then(|| Layer::Line(vec![(x, 0.0), (x, height)], Style::line(INK, width)))
    };
    heads.windows(2).enumerate().filter_map(border).collect()
}
