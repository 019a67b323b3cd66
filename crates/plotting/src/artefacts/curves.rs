//! Pruning curves, and methods that choose heads.
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::error::no_kinds;
use crate::findings::{KindsOfCurves, Methods, Pruning, Retrained, experiment};
use crate::view::{methods, pruning_curves, pruning_kinds, sheet};

pub(super) const FIGURE3: Artefact = Artefact::new(
    ["figure3", "prune", chapter::MORE_AND_MORE],
    "Score over the share of masked heads, and how many heads can go",
    Reads::Each(experiment::PRUNING),
    |file, asked, left_out| pruning_curves::third(&Pruning::read(file, left_out)?, asked, left_out),
)
.also("figure6")
.detail("for classifiers other than MNLI, Figure 6");

pub(super) const FIGURE4: Artefact = Artefact::new(
    ["figure4", "reproduce-figure4", chapter::MORE_AND_MORE],
    "Score over the share of masked heads of each attention type",
    Reads::Each(experiment::PRUNING),
    |file, asked, left_out| pruning_curves::fourth(&Pruning::read(file, left_out)?, asked, left_out),
);

pub(super) const KINDS: Artefact = Artefact::new(
    [pruning_kinds::STEM, "pruning-kinds", chapter::MORE_AND_MORE],
    "Score over the share of masked heads under each kind of ablation, and how many more heads can go than with zeros",
    Reads::Each(experiment::PRUNING),
    |file, asked, left_out| {
        let found = KindsOfCurves::read(file.clone(), left_out)?;
        let sheet = found.map(|found| Ok(pruning_kinds::sheet(&found, asked.criterion)));
        asked.sheet_or(sheet, || no_kinds(&file, experiment::PRUNING))
    },
)
.detail("after `--ablation mean` and `--ablation resample`");

pub(super) const RETRAINED: Artefact = Artefact::new(
    ["prune-and-retrain", "retrain", chapter::MORE_AND_MORE],
    "Score over the share of masked heads after retraining without them, compared with no retraining",
    Reads::Each(experiment::RETRAINED),
    |file, asked, left_out| {
        let found = Retrained::read(file, left_out)?;
        let table = pruning_curves::retrained_table(&found, asked.criterion);
        let chart = pruning_curves::retrained(&found, asked.criterion);
        Ok(vec![sheet(&found.after.results.file, pruning_curves::RETRAINED, chart, [table])])
    },
);

pub(super) const METHODS: Artefact = Artefact::new(
    [methods::STEM, "methods", chapter::MORE_AND_MORE],
    "Methods that choose heads side by side, with repairs: which to use, curves, areas under them, scores at each number of heads",
    Reads::Files(|source, asked| {
        let files = if asked.is_all { source.all(experiment::METHODS)? } else { Vec::new() };
        if files.is_empty() { Ok(vec![source.of_a_training(experiment::METHODS)?]) } else { Ok(files) }
    }),
    |file, asked, left_out| methods::sheets(&Methods::read(file, left_out)?, asked, left_out),
);
