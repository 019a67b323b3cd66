//! A row for each head: what masking one set of heads for each of them does to the score.
use std::path::Path;
use std::str::FromStr;

use core_masking::{Attention, HeadId, HeadLayout, HeadSet};
use records::{AblationRow, Identity, Provenance, RowWriter, Signature};
use stats::Comparison;
use stats::adjust::adjusted;

use crate::args::Machine;
use crate::{Error, Evaluation, Scored, SharedArgs, Subject};

/// Arguments of experiments that have a row for each head.
#[derive(Debug, Clone, clap::Args)]
pub struct SweepArgs {
    /// Paired bootstrap resamples for each head, up to a million; 0 skips the test
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub resamples: u64,

    /// Multiply the kept heads of a layer by heads / kept
    #[arg(long)]
    pub rescale: bool,
}

/// Which attention types to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// All that the model has.
    All,
    /// One of them.
    One(Attention),
}

impl FromStr for Selection {
    type Err = core_masking::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "all" { Ok(Self::All) } else { name.parse().map(Self::One) }
    }
}

impl Selection {
    /// The heads of these types.
    ///
    /// # Errors
    /// If the model has no such attention.
    pub fn heads(self, layout: &HeadLayout) -> Result<Vec<HeadId>, core_masking::Error> {
        match self {
            Self::All => Ok(layout.heads()),
            Self::One(attention) => layout.heads_of(attention),
        }
    }
}

/// An experiment that masks a set of heads for each head.
#[derive(Debug)]
pub struct HeadSweep {
    /// Its name in signatures.
    pub experiment: &'static str,
    /// What is scored.
    pub scored: Scored,
    /// The heads that can have a row: those of an attention type are a family of tests.
    pub families: Vec<HeadId>,
    /// What is masked for a head.
    pub masked: fn(&HeadLayout, HeadId) -> Result<HeadSet, core_masking::Error>,
    /// Number of bootstrap resamples.
    pub resamples: u64,
    /// What else the rows depend on, by name.
    pub arguments: Vec<(&'static str, serde_json::Value)>,
}

impl HeadSweep {
    /// One head at a time, of any that the model has: `ablate-one`.
    pub fn one_at_a_time(scored: Scored, layout: &HeadLayout, resamples: u64) -> Self {
        Self {
            experiment: "ablate-one",
            scored,
            families: layout.heads(),
            masked: |_, id| Ok(HeadSet::from_iter([id])),
            resamples,
            arguments: Vec::new(),
        }
    }

    /// Scores the subject for each of `heads` that has no row in the file yet; a killed run's file is gone on with.
    ///
    /// # Errors
    /// If the file belongs to other numbers or cannot be written, or the split is at fault.
    pub fn run(
        &self,
        subject: &dyn Subject,
        heads: &[HeadId],
        path: &Path,
        shared: &SharedArgs,
        machine: &Machine,
    ) -> Result<Vec<AblationRow>, Error> {
        let run = Provenance::collect(&machine.device_name(), machine.threads, crate::libraries());
        let identity = self.identity(subject, shared.seed)?;
        let mut rows = RowWriter::open(path, &Signature::new(identity, run), shared.existing())?;
        // Heads that were chosen by other data than now.
        if rows.rows().any(|row| !self.families.iter().any(|&id| is_of(row, id))) {
            rows.discard(|row| !self.families.iter().any(|&id| is_of(row, id)))?;
        }
        if shared.restart {
            let finished = self.finished(&rows.rows().collect::<Vec<_>>());
            let again = |row: &AblationRow| heads.iter().any(|&id| is_of(row, id));
            rows.discard(|row| finished.contains(&row.attention) && again(row))?;
        }
        self.fill(subject, heads, &mut rows, shared.seed)?;
        Ok(rows.finish(|rows| self.adjust(rows))?)
    }

    /// All that the rows depend on.
    fn identity(&self, subject: &dyn Subject, seed: u64) -> Result<Identity, Error> {
        let mut identity = subject.identity(self.experiment, &self.scored)?;
        identity.seed = seed;
        identity.arguments.insert("resamples".to_owned(), self.resamples.into());
        let more = self.arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        identity.arguments.extend(more);
        Ok(identity)
    }

    fn fill(
        &self,
        subject: &dyn Subject,
        heads: &[HeadId],
        rows: &mut RowWriter<AblationRow>,
        seed: u64,
    ) -> Result<(), Error> {
        let is_missing = |id: &HeadId| !rows.rows().any(|row| is_of(row, *id));
        let missing: Vec<HeadId> = heads.iter().copied().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let layout = subject.layout();
        let masked = missing.iter().map(|&id| (self.masked)(&layout, id));
        let sets = std::iter::once(Ok(HeadSet::none())).chain(masked).collect::<Result<Vec<_>, _>>()?;
        let mut base: Option<Evaluation> = None;
        subject.evaluate(&self.scored, &sets, &mut |index, evaluation| {
            let Some(base) = &base else {
                check_base(rows.rows().map(|row| row.base_score), evaluation.score)?;
                base = Some(evaluation);
                return Ok(());
            };
            let comparison = evaluation.compare_with(base, self.resamples as usize, seed)?;
            Ok(rows.push(row(missing[index - 1], evaluation.metric(), &comparison))?)
        })
    }

    /// The heads of each attention type that can have a row.
    fn families(&self) -> Vec<(String, usize)> {
        let mut families: Vec<(String, usize)> = Vec::new();
        for id in &self.families {
            let name = id.attention().to_string();
            match families.iter_mut().find(|(known, _)| *known == name) {
                Some((_, heads)) => *heads += 1,
                None => families.push((name, 1)),
            }
        }
        families
    }

    /// The attention types all of whose heads have their row, with adjusted p-values if they were tested: what a run
    /// that finished leaves, and one that was killed does not.
    fn finished(&self, rows: &[&AblationRow]) -> Vec<String> {
        let is_finished = |(name, heads): &(String, usize)| {
            let mut family = rows.iter().filter(|row| row.attention == *name);
            family.clone().count() == *heads
                && family.all(|row| row.p_value.is_some() == row.p_holm.is_some())
        };
        self.families().into_iter().filter(is_finished).map(|(name, _)| name).collect()
    }

    /// Fills in the adjusted p-values of each attention type whose heads have all been tested: a family of tests.
    fn adjust(&self, rows: &mut [AblationRow]) {
        for (name, heads) in self.families() {
            let mut family: Vec<&mut AblationRow> =
                rows.iter_mut().filter(|row| row.attention == name && row.p_value.is_some()).collect();
            if family.len() < heads {
                continue;
            }
            let p_values: Vec<f64> = family.iter().filter_map(|row| row.p_value).collect();
            for (row, (holm, benjamini_hochberg)) in family.iter_mut().zip(adjusted(&p_values)) {
                row.p_holm = Some(holm);
                row.p_benjamini_hochberg = Some(benjamini_hochberg);
            }
        }
    }
}

/// Refuses to mix rows of machines, or of library versions, on which the same model scores differently.
///
/// # Errors
/// If one of the `stored` base scores is another than that of `now`.
pub fn check_base(mut stored: impl Iterator<Item = f64>, now: f64) -> Result<(), Error> {
    match stored.find(|&stored| stored != now) {
        Some(stored) => Err(Error::OtherBase { stored, now }),
        None => Ok(()),
    }
}

/// The row of a head; adjusted p-values follow when the whole family is there.
fn row(id: HeadId, metric: &str, comparison: &Comparison) -> AblationRow {
    let (attention, head) = (id.attention().to_string(), (id.layer_number(), id.head_number()));
    AblationRow {
        delta_low: comparison.interval.map(|(low, _)| low),
        delta_high: comparison.interval.map(|(_, high)| high),
        p_value: comparison.p_value,
        p_unpaired_t: comparison.p_unpaired_t,
        p_mcnemar: comparison.p_mcnemar,
        ..AblationRow::untested(&attention, head, metric, comparison.base, comparison.variant)
    }
}

/// Whether a row is that of a head.
pub fn is_of(row: &AblationRow, id: HeadId) -> bool {
    row.layer == id.layer_number()
        && row.head == id.head_number()
        && row.attention == id.attention().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_masking::LayerShape;

    fn rows(p_values: &[(&str, f64)]) -> Vec<AblationRow> {
        let row = |&(name, p): &(&str, f64)| {
            let id: HeadId = name.parse().unwrap();
            let head = (id.layer_number(), id.head_number());
            let row = AblationRow::untested(&id.attention().to_string(), head, "bleu", 30.0, 29.0);
            AblationRow { p_value: Some(p), ..row }
        };
        p_values.iter().map(row).collect()
    }

    fn sweep() -> HeadSweep {
        let shape = LayerShape { layers: 1, heads: 3 };
        let layout = HeadLayout::new([(Attention::EncEnc, shape), (Attention::DecDec, shape)]);
        let scored = Scored::first("test".to_owned(), None, false);
        HeadSweep::one_at_a_time(scored, &layout, 10)
    }

    /// Holm: 3 * 0.01, 2 * 0.02, 1 * 0.5. Benjamini-Hochberg: 3/1 * 0.01, 3/2 * 0.02, 3/3 * 0.5.
    #[test]
    fn a_whole_family_is_adjusted_by_itself() {
        let mut rows = rows(&[
            ("enc-enc:1:1", 0.5),
            ("enc-enc:1:2", 0.01),
            ("enc-enc:1:3", 0.02),
            ("dec-dec:1:1", 0.001),
        ]);
        sweep().adjust(&mut rows);
        let holm: Vec<_> = rows.iter().map(|row| row.p_holm).collect();
        assert_eq!(holm, [Some(0.5), Some(0.03), Some(0.04), None]);
        let controlled: Vec<_> = rows.iter().map(|row| row.p_benjamini_hochberg).collect();
        assert_eq!(controlled, [Some(0.5), Some(0.03), Some(0.03), None]);
    }

    #[test]
    fn a_family_is_finished_when_all_its_rows_are_adjusted() {
        let names = |rows: &[AblationRow]| sweep().finished(&rows.iter().collect::<Vec<_>>());
        let mut rows = rows(&[("enc-enc:1:1", 0.5), ("enc-enc:1:2", 0.01), ("enc-enc:1:3", 0.02)]);
        assert!(names(&rows).is_empty(), "killed after the last row");
        sweep().adjust(&mut rows);
        assert_eq!(names(&rows), ["enc-enc"]);
        assert!(names(&rows[..2]).is_empty());
    }

    #[test]
    fn a_row_belongs_to_its_head_alone() {
        let rows = rows(&[("enc-enc:1:2", 0.5)]);
        assert!(is_of(&rows[0], "enc-enc:1:2".parse().unwrap()));
        for other in ["enc-enc:1:1", "enc-enc:2:2", "dec-dec:1:2"] {
            assert!(!is_of(&rows[0], other.parse().unwrap()), "{other}");
        }
    }
}
