//! The model without the heads of one step of a curve, as a Hugging Face folder.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use core_masking::{HeadLayout, HeadSet, Removal};
use experiment::{Export, SharedArgs};
use records::rules::MARGIN_PERCENT;
use records::{PruningRow, Rule, Signature, Testing};
use serde_json::{Map, Value};
use stats::Metric;
use stats::bootstrap::LEAST_FOR_INTERVAL;
use subject::Subject;
use training::Precision;

/// Arguments of the export.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Export")]
pub struct ExportArgs {
    /// Write the model with the heads cut out of its weights to this folder. For classifiers and GPT-2, config.json has
    /// `pruned_heads`, which transformers 4 reads unless a layer has no head left; other models can be read only by this project
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,

    /// Write the model with the heads cut out and the others renumbered to this folder, which transformers loads as a smaller
    /// Llama, Mistral or Qwen; needs --uniform, so that every layer loses as many
    #[arg(long, value_name = "DIR", requires = "uniform")]
    export_uniform: Option<PathBuf>,

    /// Write the model with zeros for the weights of the heads to this folder, which any tool reads
    #[arg(long, value_name = "DIR")]
    export_dense: Option<PathBuf>,

    /// Share of heads to remove, in percent, at which the first curve has a step [default: the largest that is shown to be
    /// safe, see --margin]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=99))]
    export_percent: Option<u64>,

    /// Replace exports that are there
    #[arg(long)]
    replace: bool,
}

/// Folders to write, checked.
#[derive(Debug)]
pub struct Exports {
    folders: Vec<(Removal, Export)>,
    percent: Option<u64>,
}

impl ExportArgs {
    /// Whether anything of it was given.
    pub fn is_asked_for(&self) -> bool {
        [&self.export, &self.export_uniform, &self.export_dense].iter().any(|folder| folder.is_some())
            || self.export_percent.is_some()
    }

    /// Refuses what could not be written at the end. `counts`: numbers of heads that the first curve masks, of `layout`.
    ///
    /// # Errors
    /// If a folder is there already or cannot be made, no step masks the share that is wanted, the largest safe share is
    /// wanted of an order that is made on the split that is scored, scores are those of other models than can be exported, or
    /// zeros are asked for and heads are cut out already.
    pub fn checked(
        &self,
        (shared, rescale): (&SharedArgs, bool),
        (layout, heads, counts): (&HeadLayout, usize, &[usize]),
        is_of_scored: bool,
    ) -> anyhow::Result<Exports> {
        let wanted = [
            (Removal::Cut, &self.export),
            (Removal::Zeros, &self.export_dense),
            (Removal::Uniform, &self.export_uniform),
        ];
        let folders: Vec<(Removal, &Path)> =
            wanted.iter().filter_map(|(removal, folder)| Some((*removal, folder.as_deref()?))).collect();
        if folders.is_empty() {
            ensure!(
                self.export_percent.is_none(),
                "--export-percent needs --export, --export-dense or --export-uniform"
            );
            return Ok(Exports { folders: Vec::new(), percent: None });
        }
        ensure!(shared.precision == Precision::F32, "models are exported in f32: leave out --precision");
        ensure!(!rescale, "--rescale scores another model than is exported: leave it out");
        let distinct: BTreeSet<&Path> = folders.iter().map(|(_, folder)| *folder).collect();
        ensure!(distinct.len() == folders.len(), "two exports name one folder: give each its own");
        let removed = layout.removed().len();
        ensure!(
            self.export_dense.is_none() || removed == 0,
            "the model has {removed} heads cut out of its weights: a dense model is made of one with all its heads"
        );
        match self.export_percent {
            Some(percent) => drop(masked_at(percent, heads, (counts, layout.heads().len()))?),
            None => ensure!(
                !is_of_scored,
                "the order is made on the split that is scored, where its shares look safer than they are: give \
                 --export-percent, or make it on another split"
            ),
        }
        let export = |(removal, folder)| Ok((removal, Export::new(folder, self.replace)?));
        let folders = folders.into_iter().map(export).collect::<anyhow::Result<_>>()?;
        Ok(Exports { folders, percent: self.export_percent })
    }
}

/// Why transformers cannot run the model in `folder`, from which these heads were cut out, if it cannot.
fn not_run_by_transformers(layout: &HeadLayout, heads: &HeadSet, folder: &Path) -> Option<String> {
    let config = fs::read_to_string(folder.join("config.json")).unwrap_or_default();
    let config: Map<String, Value> = serde_json::from_str(&config).unwrap_or_default();
    if !config.contains_key("pruned_heads") {
        return Some("knows no models of this family with heads cut out".to_owned());
    }
    let mut layers = layout.heads_by_module().into_iter();
    let empty = layers.find(|layer| layer.iter().all(|&id| heads.contains(id)))?;
    Some(format!("cannot run a layer without heads, as layer {} is now", empty[0].layer_index() + 1))
}

/// The number of heads at a share of those that a curve masks, if there is a step; not all heads of the model can go.
fn masked_at(percent: u64, heads: usize, (counts, all): (&[usize], usize)) -> anyhow::Result<usize> {
    let count = (heads as u64 * percent).div_ceil(100) as usize;
    if count < all && counts.contains(&count) {
        return Ok(count);
    }
    let some: Vec<String> =
        counts.iter().filter(|count| (1..all).contains(*count)).map(usize::to_string).collect();
    ensure!(
        !some.is_empty(),
        "no step masks {count} of {heads} heads ({percent} %): the steps mask no head or all, and all cannot go; give a smaller \
         --step-percent"
    );
    bail!("no step masks {count} of {heads} heads ({percent} %): the steps mask {}", some.join(", "))
}

impl Exports {
    /// Refuses to look for the largest safe share where no difference has an interval, as far as that can be told without
    /// the metric.
    ///
    /// # Errors
    /// If no share is named.
    pub fn check_tested(&self, testing: Testing, metric: Option<Metric>) -> anyhow::Result<()> {
        let least = if metric.is_some_and(Metric::is_resampled) { LEAST_FOR_INTERVAL } else { 1 };
        ensure!(
            self.folders.is_empty() || self.percent.is_some() || testing.resamples >= least,
            "with --resamples {} no share can be shown to be safe: give --export-percent, or {least} or more resamples",
            testing.resamples
        );
        Ok(())
    }

    /// Writes the model at one of `steps`, the rows of one curve in their order, from the file `results`.
    ///
    /// # Errors
    /// If there is no step at the share that is asked for, none is shown to be safe, or a file cannot
    /// be written.
    pub fn write(
        &self,
        subject: &dyn Subject,
        steps: &[&PruningRow],
        results: &Path,
        quiet: bool,
    ) -> anyhow::Result<()> {
        if self.folders.is_empty() {
            return Ok(());
        }
        let signature = Signature::read(&Signature::path_beside(results))?;
        let signature = signature.context("the results have no signature")?;
        // Where --margin does not say otherwise, it is that of the results.
        let margin_percent = signature.testing.map_or(MARGIN_PERCENT, |testing| testing.margin_percent);
        let row = self.choose(steps, subject.layout().heads().len(), Rule::ShownSafe { margin_percent })?;
        let heads: HeadSet = row.masked_heads.parse()?;
        for (removal, export) in &self.folders {
            export.about(about(row, *removal, &signature)).write(subject, &heads, *removal)?;
            if !quiet {
                words::say!("{}", described(row, *removal, export.folder()));
            }
        }
        let cut = self.folders.iter().find(|(removal, _)| *removal == Removal::Cut);
        let why = cut.and_then(|(_, cut)| not_run_by_transformers(&subject.layout(), &heads, cut.folder()));
        if let Some(why) = why.filter(|_| !quiet) {
            words::say!("transformers {why}; --export-dense and --export-uniform write what it runs");
        }
        Ok(())
    }

    /// The step whose heads are removed from a model that has `all`, which cannot all go, whatever the score.
    fn choose<'a>(&self, steps: &[&'a PruningRow], all: usize, rule: Rule) -> anyhow::Result<&'a PruningRow> {
        let heads = steps.first().context("there is no curve to export from")?.heads;
        let Some(percent) = self.percent else {
            let found = rule.last_accepted(steps.iter().copied().filter(|row| row.masked < all));
            return found.filter(|row| row.masked > 0).context(
                "no step is shown to be safe: nothing is exported; --margin allows larger losses, --export-percent overrules",
            );
        };
        let counts: Vec<usize> = steps.iter().map(|row| row.masked).collect();
        let count = masked_at(percent, heads, (&counts, all))?;
        steps.iter().find(|row| row.masked == count).copied().context("the step has no row")
    }
}

/// The signature of the curve with what was exported of it.
fn about(row: &PruningRow, removal: Removal, signature: &Signature) -> Signature {
    let mut signature = signature.clone();
    let removal = match removal {
        Removal::Cut => "cut",
        Removal::Zeros => "zeros",
        Removal::Uniform => "uniform",
    };
    signature.identity.arguments.extend([
        ("removed_heads".to_owned(), row.masked_heads.clone().into()),
        ("removed".to_owned(), removal.into()),
        ("order".to_owned(), row.order.name().into()),
        ("base_score".to_owned(), row.base_score.into()),
        ("score".to_owned(), row.score.into()),
    ]);
    signature
}

fn described(row: &PruningRow, removal: Removal, folder: &Path) -> String {
    let how = match removal {
        Removal::Cut => "cut out",
        Removal::Zeros => "set to zero",
        Removal::Uniform => "cut out of all layers alike",
    };
    let digits = row.metric.digits();
    format!(
        "`{}`: {} of {} heads {how}, {} {:.digits$} ({:+.digits$})",
        folder.display(),
        row.masked,
        row.heads,
        row.metric,
        row.score,
        row.score_delta,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 6 encoder heads of 18 all may go, of 6 of 6 not.
    #[test]
    fn all_heads_of_one_type_may_go_but_not_all_of_the_model() {
        assert_eq!(masked_at(100, 6, (&[0, 3, 6], 18)).unwrap(), 6);
        assert_eq!(masked_at(50, 6, (&[0, 3, 6], 6)).unwrap(), 3);
        let refusal = masked_at(100, 6, (&[0, 3, 6], 6)).unwrap_err().to_string();
        assert_eq!(refusal, "no step masks 6 of 6 heads (100 %): the steps mask 3");
    }

    /// With steps of 100 % no head is masked, then every one: there is no number to name, so the argument is.
    #[test]
    fn where_steps_mask_no_head_or_all_the_refusal_names_what_sets_them() {
        let refusal = masked_at(50, 24, (&[0, 24], 24)).unwrap_err().to_string();
        let expected = "no step masks 12 of 24 heads (50 %): the steps mask no head or all, and all cannot go; give a smaller \
                        --step-percent";
        assert_eq!(refusal, expected);
    }
}
