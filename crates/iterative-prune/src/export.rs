//! The model without the heads of one step of a curve, as a Hugging Face folder.
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use core_masking::{Attention, HeadSet, Removal};
use records::{PruningRow, Signature, before_first_loss};
use subject::{Export, Precision, SharedArgs, Subject};

/// A loss with a p-value below this is one (EXPERIMENTS.md, section 5).
const ALPHA: f64 = 0.01;

/// What is said beside the weights of how they came to be.
const ABOUT: &str = "pruning.json";

/// Arguments of the export.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Export")]
pub struct ExportArgs {
    /// Write the model with the heads cut out of its weights to this folder. For BERT, config.json has `pruned_heads`, which
    /// transformers 4 knows; of a translator only this project reads it
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,

    /// Write the model with zeros for the weights of the heads to this folder, which any tool reads
    #[arg(long, value_name = "DIR")]
    export_dense: Option<PathBuf>,

    /// Share of heads to remove, in percent, at which the first curve has a step; the largest that can go without a
    /// significant loss, p < 0.01, if absent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=99))]
    export_percent: Option<u64>,
}

/// Folders to write, checked.
#[derive(Debug)]
pub struct Exports {
    folders: Vec<(Removal, Export)>,
    percent: Option<u64>,
}

impl ExportArgs {
    /// Refuses what could not be written at the end.
    ///
    /// # Errors
    /// If a folder is there already or cannot be made, the largest share is wanted and nothing is tested, or the model
    /// is not in the precision of its file.
    pub fn checked(&self, shared: &SharedArgs, resamples: u64) -> anyhow::Result<Exports> {
        let wanted = [(Removal::Cut, &self.export), (Removal::Zeros, &self.export_dense)];
        let mut folders = Vec::new();
        for (removal, folder) in wanted {
            if let Some(folder) = folder {
                folders.push((removal, Export::new(folder, shared.overwrite)?));
            }
        }
        if folders.is_empty() {
            ensure!(self.export_percent.is_none(), "--export-percent needs --export or --export-dense");
            return Ok(Exports { folders, percent: None });
        }
        ensure!(shared.precision == Precision::F32, "models are exported in f32: leave out --precision");
        ensure!(
            self.export != self.export_dense,
            "--export and --export-dense name one folder: give each its own"
        );
        ensure!(
            self.export_percent.is_some() || resamples > 0,
            "without tests (--resamples 0) no share is the largest without a significant loss: give --export-percent"
        );
        Ok(Exports { folders, percent: self.export_percent })
    }
}

impl Exports {
    /// Writes the model at one of `steps`, the rows of one curve in their order.
    ///
    /// # Errors
    /// If there is no step at the share that is asked for, none masks heads without a significant loss, or a file cannot
    /// be written.
    pub fn write(
        &self,
        subject: &dyn Subject,
        steps: &[&PruningRow],
        signature: &Signature,
        quiet: bool,
    ) -> anyhow::Result<()> {
        if self.folders.is_empty() {
            return Ok(());
        }
        let row = self.choose(steps)?;
        let heads: HeadSet = row.masked_heads.parse()?;
        for (removal, export) in &self.folders {
            subject.export(&heads, *removal, export)?;
            about(row, *removal, signature).write(&export.folder().join(ABOUT))?;
            if !quiet {
                eprintln!("{}", described(row, *removal, export.folder()));
            }
        }
        let is_translator = heads.iter().any(|id| id.attention() != Attention::SelfAttention);
        if !quiet && is_translator && self.folders.iter().any(|(removal, _)| *removal == Removal::Cut) {
            eprintln!(
                "transformers knows no translators with heads cut out; --export-dense writes what it reads"
            );
        }
        Ok(())
    }

    /// The step whose heads are removed.
    fn choose<'a>(&self, steps: &[&'a PruningRow]) -> anyhow::Result<&'a PruningRow> {
        let heads = steps.first().context("there is no curve to export from")?.heads;
        let Some(percent) = self.percent else {
            let is_loss = |row: &PruningRow| row.score_delta < 0.0 && row.p_value.is_some_and(|p| p < ALPHA);
            // all heads of a model cannot go, whatever the score
            let found = before_first_loss(steps.iter().copied().filter(|row| row.masked < heads), is_loss);
            return found.filter(|row| row.masked > 0).context(
                "no step removes heads without a significant loss: nothing is exported; --export-percent overrules",
            );
        };
        let count = (heads as u64 * percent).div_ceil(100) as usize;
        let found = steps.iter().find(|row| row.masked == count).copied();
        let Some(row) = found.filter(|row| row.masked < heads) else {
            let steps = steps.iter().filter(|row| (1..heads).contains(&row.masked));
            let counts: Vec<String> = steps.map(|row| row.masked.to_string()).collect();
            bail!(
                "no step masks {count} of {heads} heads ({percent} %): the steps mask {}",
                counts.join(", ")
            );
        };
        Ok(row)
    }
}

/// The signature of the curve with what was exported of it.
fn about(row: &PruningRow, removal: Removal, signature: &Signature) -> Signature {
    let mut signature = signature.clone();
    let removal = match removal {
        Removal::Cut => "cut",
        Removal::Zeros => "zeros",
    };
    signature.identity.arguments.extend([
        ("removed_heads".to_owned(), row.masked_heads.clone().into()),
        ("removed".to_owned(), removal.into()),
        ("order".to_owned(), row.order.clone().into()),
        ("base_score".to_owned(), row.base_score.into()),
        ("score".to_owned(), row.score.into()),
    ]);
    signature
}

fn described(row: &PruningRow, removal: Removal, folder: &Path) -> String {
    let how = match removal {
        Removal::Cut => "cut out",
        Removal::Zeros => "set to zero",
    };
    format!(
        "`{}`: {} of {} heads {how}, {} {:.2} ({:+.2})",
        folder.display(),
        row.masked,
        row.heads,
        row.metric,
        row.score,
        row.score_delta,
    )
}
