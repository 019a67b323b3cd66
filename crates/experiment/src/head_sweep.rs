//! Experiments with one row per head: the score with a set of heads masked for that head.
use std::path::Path;

use heads::experiment::ABLATE_ONE;
use heads::{HeadId, HeadLayout, HeadSet};
use records::{AblationRow, BASE, Identity, MetricName, Signature, read_signed};
use significance::TestArgs;
use subject::{Description, Scored, Subject};
use training::Machine;

use crate::args::SharedArgs;
use crate::error::Error;
use crate::measured::{Finished, MeasuredRows, RowPlan, RowSet};
use crate::until_decided::Deciding;

/// An experiment that masks one set of heads per head.
#[derive(Debug)]
pub struct HeadSweep {
    /// Name in signatures.
    pub experiment: &'static str,
    /// Split to score.
    pub scored: Scored,
    /// Heads that can have a row; the heads of one attention type are a family of tests.
    pub heads: Vec<HeadId>,
    /// Returns the heads to mask for a head's row.
    pub masked: fn(&HeadLayout, HeadId) -> Result<HeadSet, heads::Error>,
    /// Tests of the differences.
    pub test: TestArgs,
    /// Rules for measuring heads until they are decided; `None` to measure all segments.
    pub deciding: Option<Deciding>,
    /// Other arguments that the rows depend on, by name.
    pub arguments: Vec<(String, serde_json::Value)>,
}

impl HeadSweep {
    /// Returns the sweep of `ablate-one`: each head of the model masked alone.
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

    /// Returns results of `ablate-one` on a split; missing rows are measured.
    pub fn measured(
        on: &Scored,
        heads: &[HeadId],
        (description, subject): (&Description, &Subject),
        (shared, machine): (&SharedArgs, &Machine),
    ) -> Result<Finished<AblationRow>, Error> {
        let path = description.result_path(&shared.results, ABLATE_ONE.name, on);
        let sweep = Self::one_at_a_time(on.clone(), &subject.layout(), TestArgs::default());
        sweep.ingredient(subject, heads, &path, shared, machine)
    }

    /// Scores the model for each of `heads` that has no row yet, and tests all rows.
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
        rows.leave_out(is_of_other_head); // from heads that were chosen on other data
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

    /// Returns the rows of `heads` for another experiment. Missing rows are measured, except by a shard, since other shards may be
    /// measuring them. With --again, rows of another run, such as those of an earlier model, are replaced.
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
                "`{}` lacks rows, and a shard does not measure them: measure them first, either at once or in shards \
                 joined by merge",
                path.display()
            ))
        })
    }

    /// Returns the identity of the scores.
    fn identity(&self, subject: &Subject) -> Result<Identity, Error> {
        let mut identity = subject.identity(self.experiment, &self.scored)?;
        identity.arguments.extend(self.arguments.iter().cloned());
        identity.arguments.extend(self.deciding.map(|deciding| deciding.argument()));
        Ok(identity)
    }

    /// Returns the number of heads of each attention type that can have a row, and the rows of `heads`.
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

/// Returns complete results of a head sweep with this identity, at `path` or at the name that avoids another run's results.
pub(crate) fn find(path: &Path, identity: &Identity) -> Result<Option<Finished<AblationRow>>, Error> {
    for path in [path.to_owned(), identity.own_path(path)] {
        let stored = Signature::read(&Signature::path_beside(&path))?;
        if stored.as_ref().is_some_and(|stored| stored.complete.is_some() && stored.identity == *identity) {
            return Ok(Some(Finished { rows: read_signed(&path, stored.as_ref())?, path }));
        }
    }
    Ok(None)
}

/// Returns the row of a head, without scores.
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
        // a head's place does not depend on which heads are requested
        assert_eq!(places, BTreeMap::from([("dec-dec:1:2".to_owned(), 7), ("dec-dec:1:3".to_owned(), 8)]));
    }
}
