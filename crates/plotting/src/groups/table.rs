//! The groups in numbers: which heads each needs, and which groups need the same heads.
use stats::bootstrap::Interval;

use super::{Change, FILE_STEM, Group, Groups, Head};
use crate::number::{count, short, signed};
use crate::origin::{Model, OPEN_QUESTION};
use crate::table::{Cell, Row, Table};

/// Heads that are named in each direction.
const MOST_NAMED: usize = 3;

/// Up to so many groups, all pairs fit into one table.
const MOST_PAIRS: usize = 12;

/// The accuracy of each group with the heads that change it, and how far pairs of groups need the same heads.
pub fn tables(groups: &Groups, alpha: f64) -> [Table; 2] {
    [heads_of_groups(groups, alpha), likeness(groups)]
}

fn heads_of_groups(groups: &Groups, alpha: f64) -> Table {
    let row = |group: &Group| {
        let texts = [
            group.segments.to_string(),
            format!("{:.1}", group.accuracy()),
            interval(group.interval()),
            named(groups, group, alpha, |delta| -delta),
            named(groups, group, alpha, |delta| delta),
        ];
        Row { label: group.name.clone(), cells: texts.map(Cell::plain).to_vec() }
    };
    let heads = count(groups.heads.len(), "head");
    Table {
        name: "Heads by group of segments",
        label: format!("{FILE_STEM}-{}", groups.sweep.file.subject),
        title: format!(
            "Accuracy by group of segments, in percent, and the heads whose masking changes it significantly, with the change \
             in percentage points; {}",
            groups.sweep.title()
        ),
        row_heading: "Group",
        column_heading: "Accuracy",
        columns: ["segments", "base", "95 % interval", "worse without", "better without"]
            .map(str::to_owned)
            .to_vec(),
        column_groups: Vec::new(),
        rows: groups.groups.iter().map(row).collect(),
        mark: None,
        summary: vec![
            format!(
                "significant: p < {} (McNemar's test with mid-p on the segments of the group; adjusted by Holm (1979) for {} \
                 in {})",
                short(alpha),
                heads,
                count(groups.groups.len(), "group")
            ),
            format!("of more than {MOST_NAMED} such heads the {MOST_NAMED} with the largest changes"),
            "interval: Wilson (1927)".to_owned(),
        ],
        remarks: remarks(groups),
    }
}

fn interval(Interval { low, high }: Interval) -> String {
    format!("{low:.1} to {high:.1}")
}

/// The heads that change a group significantly, those first for which `size` is greatest; only where it is above 0.
fn named(groups: &Groups, group: &Group, alpha: f64, size: fn(f64) -> f64) -> String {
    let all = groups.heads.iter().zip(&group.changes);
    let is_meant =
        |(_, change): &(&Head, &Change)| Groups::is_significant(**change, alpha) && size(change.delta) > 0.0;
    let mut meant: Vec<_> = all.filter(is_meant).collect();
    meant.sort_by(|(_, one), (_, other)| size(other.delta).total_cmp(&size(one.delta)));
    let names = meant.iter().take(MOST_NAMED);
    let mut texts: Vec<_> =
        names.map(|(head, change)| format!("{} {}", head.name, signed(change.delta, 1))).collect();
    if meant.len() > MOST_NAMED {
        texts.push(format!("{} more", meant.len() - MOST_NAMED));
    }
    texts.join(", ")
}

fn likeness(groups: &Groups) -> Table {
    let is_small = groups.groups.len() <= MOST_PAIRS;
    let columns = if is_small {
        (1..=groups.groups.len()).map(|number| number.to_string()).collect()
    } else {
        ["most alike", "rho", "least alike", "rho"].map(str::to_owned).to_vec()
    };
    let row = |place: usize| Row {
        label: format!("{} {}", place + 1, groups.groups[place].name),
        cells: if is_small { pairs(groups, place) } else { extremes(groups, place) },
    };
    Table {
        name: "Groups that need the same heads",
        label: format!("{FILE_STEM}-likeness-{}", groups.sweep.file.subject),
        title: format!(
            "Spearman's \u{3c1} between groups of segments, of the changes that each head makes to their accuracies; {}",
            groups.sweep.title()
        ),
        row_heading: "Group",
        column_heading: "Group",
        columns,
        column_groups: Vec::new(),
        rows: (0..groups.groups.len()).map(row).collect(),
        mark: None,
        summary: vec![
            "1: heads matter in the same order; 0: those that one group needs say nothing of the other"
                .to_owned(),
            "noise draws \u{3c1} towards 0, the more so the fewer segments a group has".to_owned(),
            "n/a: no head changes one of the groups, or there are fewer than three".to_owned(),
        ],
        remarks: groups.sweep.file.remark().into_iter().collect(),
    }
}

/// Each group beside all others; its own column is empty.
fn pairs(groups: &Groups, place: usize) -> Vec<Cell> {
    let group = &groups.groups[place];
    let cell = |(column, other): (usize, &Group)| match group.likeness(other) {
        _ if column == place => Cell::default(),
        Some(rho) => Cell::plain(signed(rho, 2)),
        None => Cell::plain("n/a".to_owned()),
    };
    groups.groups.iter().enumerate().map(cell).collect()
}

/// The groups that are most and least like this one; empty where none can be compared.
fn extremes(groups: &Groups, place: usize) -> Vec<Cell> {
    let others = groups.groups.iter().enumerate().filter(|(other, _)| *other != place);
    let known = others.filter_map(|(_, other)| Some((other, groups.groups[place].likeness(other)?)));
    let mut known: Vec<_> = known.collect();
    known.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let ends = known.first().into_iter().chain(known.last());
    ends.flat_map(|(other, rho)| [other.name.clone(), signed(*rho, 2)]).map(Cell::plain).collect()
}

fn remarks(groups: &Groups) -> Vec<String> {
    let question = (groups.sweep.model() == Model::Language)
        .then(|| format!("not compared with Michel et al. (2019), {OPEN_QUESTION}"));
    let missing = groups.sweep.attentions().into_iter();
    let missing = missing.filter_map(|attention| groups.sweep.missing_heads(attention));
    question.into_iter().chain(missing).chain(groups.sweep.file.remark()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::tests::example;

    fn plain(table: &Table) -> String {
        anstream::adapter::strip_str(&table.terminal()).to_string()
    }

    #[test]
    fn each_group_has_its_accuracy_and_the_heads_that_change_it() {
        let [heads, likeness] = tables(&example(), 0.01);
        let text = |row: &Row| row.cells.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>().join(" | ");
        assert_eq!(
            heads.rows.iter().map(text).collect::<Vec<_>>(),
            [
                "20 | 100.0 | 83.9 to 100.0 | self:1:2 -80.0 | ",
                "16 | 93.8 | 71.7 to 98.9 | self:1:2 -75.0 | ",
                "12 | 16.7 | 4.7 to 44.8 |  | ",
            ]
        );
        assert!(
            plain(&heads).contains("adjusted by Holm (1979) for 8 heads in 3 groups"),
            "{}",
            plain(&heads)
        );
        assert!(plain(&heads).contains("who name language models as an open question"));
        assert!(likeness.rows[1].cells[1].text.is_empty());
        assert_eq!(likeness.rows[0].cells[1], likeness.rows[1].cells[0]);
        let [looser, _] = tables(&example(), 0.05);
        assert_eq!(looser.rows[2].cells[4].text, "self:2:3 +83.3");
    }

    #[test]
    fn of_many_groups_the_most_and_the_least_alike_are_named() {
        let mut many = example();
        let third = many.groups.remove(2);
        let first = many.groups[0].clone();
        many.groups.extend((0..MOST_PAIRS).map(|_| first.clone()));
        many.groups.push(third);
        let [_, likeness] = tables(&many, 0.01);
        assert_eq!(likeness.columns[0], "most alike");
        let texts: Vec<_> = likeness.rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!((texts[0], texts[1], texts[2]), ("agreement", "+1.00", "islands"));
    }
}
