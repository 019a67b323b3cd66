//! A row for each head: the score with one set of heads masked for each of them.
use std::path::Path;

use heads::experiment::ABLATE_ONE;
use heads::{HeadId, HeadLayout, HeadSet};
use records::{AblationRow, BASE, Identity, MetricName, Signature, read_signed};
use significance::TestArgs;
use subject::{Scored, Subject};
use training::Machine;

use crate::args::SharedArgs;
use crate::error::Error;
use crate::measured::{Finished, MeasuredRows, RowPlan, RowSet};
use crate::until_decided::Deciding;

/// An experiment that masks a set of heads for each head.
#[derive(Debug)]
pub struct HeadSweep {
    /// Its name in signatures.
    pub experiment: &'static str,
    /// Split that is scored.
    pub scored: Scored,
    /// The heads that can have a row: those of an attention type are a family of tests.
    pub heads: Vec<HeadId>,
    /// Heads that are masked for a head.
    pub masked: fn(&HeadLayout, HeadId) -> Result<HeadSet, heads::Error>,
    /// Tests of the differences.
    pub test: TestArgs,
    /// Rules by which heads are measured until they are decided; `None` if on all segments.
    pub deciding: Option<Deciding>,
    /// Further arguments that the rows depend on, by name.
    pub arguments: Vec<(String, serde_json::Value)>,
}

impl HeadSweep {
    /// One head at a time, of any that the model has: `ablate-one`.
    pub fn one_at_a_time(scored: Scored, layout: &HeadLayout, test: TestArgs) -> Self {
        Self {
            experiment: ABLATE_ONE.name,
            scored,
            heads: layout.heads(),
            masked: |_, id| Ok(HeadSet::from_iter([id])),
            test,
            deciding: None,
            arguments: Vec::new(),
        }
    }

    /// Scores the subject for each of `heads` that has no row yet, and tests all rows.
    ///
    /// # Errors
    /// If the results cannot be written, or the split is at fault.
    pub fn run(
        &self,
        subject: &Subject,
        heads: &[HeadId],
        path: &Path,
        shared: &SharedArgs,
        machine: &Machine,
    ) -> Result<Finished<AblationRow>, Error> {
        let identity = self.identity(subject)?;
        let settings = (shared, machine, &self.test);
        let mut rows = MeasuredRows::open(path, identity, subject, self.plan(heads), settings)?;
        let is_of_other_head = |row: &AblationRow| {
            let mut family = self.heads.iter().filter(|id| row.attention == id.attention());
            family.clone().next().is_some() && !family.any(|&id| row.head_id() == id)
        };
        rows.leave_out(is_of_other_head); // chosen by other data than now
        let (layout, metric) = (subject.layout(), subject.metric(&self.scored.split));
        let mut sets = Vec::new();
        for &id in self.heads.iter().filter(|id| heads.contains(id)) {
            let row = row(id, metric.name());
            if self.deciding.is_some() || rows.is_due(&row) {
                sets.push(RowSet { masked: (self.masked)(&layout, id)?, rows: vec![row] });
            }
        }
        match self.deciding {
            Some(deciding) => rows.measure_until_decided(subject, &self.scored, sets, deciding)?,
            None => rows.measure(subject, &self.scored, BASE, sets)?,
        }
        rows.finish()
    }

    /// The rows of `heads` as another experiment needs them, which this is an ingredient of. Those that are missing are
    /// measured, but not by a shard: others may be at it. With --again rows of another run are replaced, such as those of an
    /// earlier model.
    ///
    /// # Errors
    /// As for [`run`](Self::run), or if a shard of the other experiment lacks rows.
    pub fn ingredient(
        &self,
        subject: &Subject,
        heads: &[HeadId],
        path: &Path,
        shared: &SharedArgs,
        machine: &Machine,
    ) -> Result<Finished<AblationRow>, Error> {
        let identity = self.identity(subject)?;
        if shared.shard.is_none() {
            let is_of_another_run = records::taken(path, &identity)?.is_some();
            let again = shared.again && is_of_another_run;
            let settings = SharedArgs { again, ..shared.of_ingredients() };
            return self.run(subject, heads, path, &settings, machine);
        }
        let found = find(path, &identity)?;
        let has_all = |found: &Finished<AblationRow>| {
            heads.iter().all(|&id| found.rows.iter().any(|row| row.head_id() == id))
        };
        found.filter(has_all).ok_or_else(|| {
            Error::input(format!(
                "`{}` does not have all rows yet: a shard takes them as they are, so measure them first, in shards and \
                 merged or at once",
                path.display()
            ))
        })
    }

    /// Identity of the scores.
    ///
    /// # Errors
    /// If the split is at fault.
    fn identity(&self, subject: &Subject) -> Result<Identity, Error> {
        let mut identity = subject.identity(self.experiment, &self.scored)?;
        identity.arguments.extend(self.arguments.iter().cloned());
        identity.arguments.extend(self.deciding.map(|deciding| deciding.argument()));
        Ok(identity)
    }

    /// The number of heads of each attention type that can have a row, and the rows of `heads`.
    fn plan(&self, heads: &[HeadId]) -> RowPlan {
        let mut plan = RowPlan::default();
        for (place, &id) in self.heads.iter().enumerate() {
            *plan.families.entry(id.attention().to_string()).or_default() += 1;
            if heads.contains(&id) {
                plan.places.insert(id.to_string(), place);
            }
        }
        plan
    }
}

/// Complete results of `ablate-one` or its like with this identity, at `path` or where they have a name of their own.
///
/// # Errors
/// If they cannot be read.
pub(crate) fn find(path: &Path, identity: &Identity) -> Result<Option<Finished<AblationRow>>, Error> {
    for path in [path.to_owned(), identity.own_path(path)] {
        let stored = Signature::read(&Signature::path_beside(&path))?;
        if stored.as_ref().is_some_and(|stored| stored.complete.is_some() && stored.identity == *identity) {
            return Ok(Some(Finished { rows: read_signed(&path, stored.as_ref())?, path }));
        }
    }
    Ok(None)
}

/// The row of a head, without scores.
fn row(id: HeadId, metric: MetricName) -> AblationRow {
    AblationRow::untested(id, metric, 0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use heads::{Attention, LayerShape};

    #[test]
    fn each_attention_type_is_a_family() {
        let shape = LayerShape::plain(2, 3, 6);
        let layout = HeadLayout::new([(Attention::EncEnc, shape), (Attention::DecDec, shape)]);
        let scored = Scored::first("test".to_owned(), None, false);
        let sweep = HeadSweep::one_at_a_time(scored, &layout, TestArgs::default());
        let heads = layout.heads_of(Attention::DecDec).unwrap();
        let RowPlan { families, places } = sweep.plan(&heads[1..3]);
        assert_eq!(families, BTreeMap::from([("enc-enc".to_owned(), 6), ("dec-dec".to_owned(), 6)]));
        // the places of heads do not depend on which of them are asked for
        assert_eq!(places, BTreeMap::from([("dec-dec:1:2".to_owned(), 7), ("dec-dec:1:3".to_owned(), 8)]));
    }
}
