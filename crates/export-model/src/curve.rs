//! A measured curve, and the step whose heads are removed.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use heads::experiment::{ITERATIVE_PRUNE, JOINT_SEARCH};
use records::verdicts::MARGIN_PERCENT;
use records::{CurveRow, FLOOR, Rule, Signature, is_shard, read_signed};
use subject::{Ablation, Scored, Subject};

/// Default curve of a file with several.
const USUAL: &str = "all/importance";

/// Steps of a pruning curve, starting with the full model.
#[derive(Debug)]
pub struct MeasuredCurve {
    path: PathBuf,
    signature: Signature,
    steps: Vec<CurveRow>,
}

impl MeasuredCurve {
    /// Reads a curve by its name, or the only one in the file, or `all/importance`. Complements, random orders and the floor must be named.
    ///
    /// # Errors
    /// If the file is not from `iterative-prune` or `joint-search`, has no such curve, or scores a model that cannot be written.
    pub fn read(path: &Path, name: Option<&str>) -> anyhow::Result<Self> {
        let place = path.display();
        let signature = Signature::read(&Signature::path_beside(path))?.with_context(|| {
            let such = neighbour(path).map_or(String::new(), |found| format!(", such as {}", found.display()));
            format!("`{place}` does not exist: measure a curve with iterative-prune or joint-search, or name a file with --from{such}")
        })?;
        let identity = &signature.identity;
        ensure!(
            [ITERATIVE_PRUNE.name, JOINT_SEARCH.name].contains(&identity.experiment.as_str()),
            "`{place}` is from {}: expected results of iterative-prune or joint-search",
            identity.experiment
        );
        ensure!(
            identity.precision == "f32",
            "`{place}` was measured in {}: models are written in f32",
            identity.precision
        );
        ensure!(
            identity.arguments.get("rescale") != Some(&true.into()),
            "`{place}` was measured with --rescale, which cannot be written into a model"
        );
        let rows: Vec<CurveRow> = read_signed(path, Some(&signature))?;
        let mut names: Vec<String> =
            rows.iter().filter(|row| is_main(row)).map(|row| row.curve().to_string()).collect();
        names.dedup();
        let usual = || names.iter().find(|&name| names.len() == 1 || name == USUAL);
        let name = name.or_else(|| usual().map(String::as_str)).unwrap_or(USUAL);
        let is_of = |row: &CurveRow| row.curve().to_string() == name;
        let steps: Vec<CurveRow> = rows.into_iter().filter(is_of).collect();
        ensure!(
            !steps.is_empty(),
            "`{place}` has no curve `{name}`: --curve must be one of {}",
            names.join(", ")
        );
        Ok(Self { path: path.to_owned(), signature, steps })
    }

    /// Returns the kind of ablation that the curve was measured with.
    ///
    /// # Errors
    /// If it is unknown, cannot be written into a model, or does not match `is_folded`.
    pub fn ablation(&self, is_folded: bool) -> anyhow::Result<Ablation> {
        let place = self.path.display();
        let ablation = Ablation::of(&self.signature.identity);
        let ablation =
            ablation.with_context(|| format!("`{place}` was measured with an unknown kind of ablation"))?;
        match &ablation {
            Ablation::Zero if is_folded => {
                bail!(
                    "`{place}` was measured with zeros: --fold needs a curve of iterative-prune --ablation mean"
                )
            }
            Ablation::Mean(_) if !is_folded => {
                bail!("`{place}` was measured with mean ablation: --fold writes that model")
            }
            Ablation::Resample { .. } => {
                bail!("`{place}` was measured with resample ablation, which cannot be written into a model")
            }
            _ => Ok(ablation),
        }
    }

    /// Returns the step that masks a share of the curve's heads, in percent; not all `heads` of the model can be masked.
    pub fn step_at(&self, percent: u64, heads: usize) -> anyhow::Result<&CurveRow> {
        let of = self.steps[0].heads;
        let count = (of as u128 * u128::from(percent)).div_ceil(100) as usize;
        let can_go = |step: &&CurveRow| step.masked < heads;
        if let Some(step) = self.steps.iter().filter(can_go).find(|step| step.masked == count) {
            return Ok(step);
        }
        // the largest whole percentage that finds the step
        let share = |step: &CurveRow| step.masked as u128 * 100 / of as u128;
        let is_found = |step: &&CurveRow| {
            step.masked > 0 && (of as u128 * share(step)).div_ceil(100) == step.masked as u128
        };
        let some: Vec<String> =
            self.steps.iter().filter(can_go).filter(is_found).map(|step| share(step).to_string()).collect();
        let why = if count == heads { "not all heads can be removed" } else { "no step masks this number" };
        ensure!(
            !some.is_empty(),
            "{count} of {of} heads ({percent}%): {why}, and no other share has a step; measure a curve with a smaller \
             --step-percent"
        );
        bail!("{count} of {of} heads ({percent}%): {why}; --percent can be {}", some.join(", "))
    }

    /// Returns the last dispensable step: from the first step to this one, the 95% interval of the loss is below the margin, in percent of
    /// the full model's score. Not all `heads` of the model can be masked.
    ///
    /// # Errors
    /// If no step is dispensable or tested, or heads were ranked on the split that is scored.
    pub fn largest_dispensable(&self, margin: Option<f64>, heads: usize) -> anyhow::Result<&CurveRow> {
        let identity = &self.signature.identity;
        let estimated_on = identity.arguments.get("estimate_on").and_then(|split| split.as_str());
        ensure!(
            !self.steps[0].order.is_made_on(Some(&identity.split), estimated_on),
            "the heads were ranked on the scored split, where too many look dispensable: give --percent, or \
             measure a curve whose heads are ranked on another split"
        );
        ensure!(
            self.steps.iter().any(|step| step.delta_low.is_some()),
            "no step of `{}` has an interval, so no heads can be shown to be dispensable: give --percent, or test it with retest",
            self.path.display()
        );
        let rule = Rule::Dispensable { margin_percent: margin.unwrap_or_else(|| self.margin_percent()) };
        let found = rule.last_accepted(self.steps.iter().filter(|step| step.masked < heads));
        found.filter(|step| step.masked > 0).context(
            "no heads are shown to be dispensable: nothing is exported; --margin allows larger losses, --percent overrides the test",
        )
    }

    fn margin_percent(&self) -> f64 {
        self.signature.testing.map_or(MARGIN_PERCENT, |testing| testing.margin_percent)
    }

    /// Refuses a model other than the measured one, and means from other texts.
    pub fn check_model(&self, subject: &Subject, ablation: &Ablation) -> anyhow::Result<()> {
        let measured = &self.signature.identity;
        let scored = Scored::first(measured.split.clone(), measured.limit, false).under(ablation.clone());
        let (now, place) = (subject.identity(&measured.experiment, &scored)?, self.path.display());
        ensure!(
            now.weights == measured.weights,
            "`{place}` was measured with a model other than the one in `{}`: measure it again with --again",
            subject.folder().display()
        );
        let of_reference = |(name, _): &(&String, &String)| name.starts_with("reference: ");
        let other = now
            .data
            .iter()
            .filter(of_reference)
            .find(|(name, sha256)| measured.data.get(*name) != Some(sha256));
        if let Some((name, _)) = other {
            bail!("`{place}` was measured with means of other texts ({name}): measure it again with --again");
        }
        Ok(())
    }

    /// Returns the signature of the results, with this margin if one is given.
    pub fn signature(&self, margin: Option<f64>) -> Signature {
        let mut signature = self.signature.clone();
        if let (Some(testing), Some(margin)) = (&mut signature.testing, margin) {
            testing.margin_percent = margin;
        }
        signature
    }
}

/// Returns finished results next to `path` whose name starts like its name and whose ablation matches, such as results with --limit.
fn neighbour(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?;
    let is_same_kind = |signature: &Signature| {
        matches!(
            (Ablation::of(&signature.identity), stem.ends_with("-mean")),
            (Some(Ablation::Zero), false) | (Some(Ablation::Mean(_)), true)
        )
    };
    let is_other = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(stem)
            && name.ends_with(".csv")
            && !is_shard(path)
            && matches!(
                Signature::read(&Signature::path_beside(path)),
                Ok(Some(signature)) if signature.complete.is_some() && is_same_kind(&signature)
            )
    };
    fs::read_dir(path.parent()?).ok()?.flatten().map(|entry| entry.path()).filter(is_other).min()
}

/// Returns true for rows of curves to export: not reversed, not random, and not the floor.
fn is_main(row: &CurveRow) -> bool {
    !row.complement && row.order_seed.is_none() && row.order.name() != FLOOR
}

#[cfg(test)]
mod tests {
    use records::Identity;

    use super::*;

    fn curve(heads: usize, counts: &[usize]) -> MeasuredCurve {
        let step = |(step, &masked)| CurveRow { step, masked, heads, ..CurveRow::default() };
        let identity = Identity::new("iterative-prune", "tiny");
        let provenance = records::Provenance::collect("cpu", 1, Default::default());
        let steps = counts.iter().enumerate().map(step).collect();
        MeasuredCurve { path: "x.csv".into(), signature: Signature::new(identity, provenance), steps }
    }

    /// All 6 encoder heads of 18 heads may be removed, but not 6 of 6. If all other steps mask no head or all heads, the message names an
    /// option.
    #[test]
    fn all_heads_of_one_type_can_be_removed_but_not_all_of_the_model() {
        let thirds = curve(6, &[0, 3, 6]);
        assert_eq!(thirds.step_at(100, 18).unwrap().masked, 6);
        assert_eq!(thirds.step_at(50, 6).unwrap().masked, 3);
        assert_eq!(thirds.step_at(0, 6).unwrap().masked, 0);
        let refusal = thirds.step_at(100, 6).unwrap_err().to_string();
        assert!(refusal.contains("not all heads can be removed; --percent can be 50"), "{refusal}");
        let refusal = curve(24, &[0, 24]).step_at(50, 24).unwrap_err().to_string();
        assert!(refusal.contains("no step masks this number, and no other share has a step"), "{refusal}");
    }
}
