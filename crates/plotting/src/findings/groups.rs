//! Heads that matter for some segments: a sweep by group of segments, which its signature names.
use records::rules::margin;
use records::{AblationRow, HeadId, Verdict};
use significance::{Change, Group, groups};
use stats::bootstrap::Interval;
use stats::classification::{ClassificationMetric, Outcome};
use stats::{MetricName, Segments};

use crate::findings::ablations::Ablations;
use crate::findings::error::{Result, faulty};
use crate::findings::segments::stored;

/// Changes of each group of segments by masking one head at a time.
#[derive(Debug, Clone)]
pub struct Groups {
    /// Of all segments.
    pub sweep: Ablations,
    /// Heads that were masked, in the order of the columns of each group.
    pub heads: Vec<HeadId>,
    /// In the order of the split.
    pub groups: Vec<Group>,
}

impl Groups {
    /// Reads what is stored of the segments of a sweep; its signature names the groups.
    pub fn read(sweep: Ablations) -> Result<Self> {
        let path = &sweep.file.path;
        let fault =
            "has no groups of choices: its signature must name them, and `ablate-one` store its segments";
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
                "has groups of {sum} segments, but the model was scored on {scored}, or on others without a head"
            );
            return Err(faulty(path, fault));
        };
        Ok(Self { sweep, heads, groups })
    }

    /// What the interval of a head's loss says of a group, beside a margin in percent of the group's accuracy.
    pub fn verdict(group: &Group, change: &Change, margin_percent: f64) -> Verdict {
        let Interval { low, high } = change.interval;
        let margin = margin(MetricName::Accuracy, group.accuracy(), margin_percent);
        Verdict::of(Interval { low: -high, high: -low }, margin)
    }
}
