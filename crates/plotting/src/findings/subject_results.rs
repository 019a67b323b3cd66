//! All results of one setup.
use std::collections::BTreeMap;

use records::{BASE, Blocks, HeadId, TrainingRow};

use crate::findings::ablation_kinds::{Kinds, KindsOfCurves};
use crate::findings::ablations::Ablations;
use crate::findings::best_heads::BestHeads;
use crate::findings::dynamics::Dynamics;
use crate::findings::error::{LeftOut, Result};
use crate::findings::functions::{Functions, Relevance};
use crate::findings::gates::Gates;
use crate::findings::importance::Importance;
use crate::findings::method_comparison::Methods;
use crate::findings::metric::Metric;
use crate::findings::pair::Pair;
use crate::findings::pruning::Pruning;
use crate::findings::replicates::Replicates;
use crate::findings::results::Results;
use crate::findings::retrained::Retrained;
use crate::findings::same_model::may_have_same_weights;
use crate::findings::segments::{self, SegmentChange};
use crate::findings::source::{Folders, ResultFile, Source, experiment};
use crate::findings::subject_file::SubjectKind;
use crate::findings::time::Time;

/// All results of one setup. `best` has an entry per split that heads were chosen on, `gates` one per set of heads with gates.
/// [`SubjectResults::read_heads`] reads the fields from `others` on.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each is named after its experiment")]
pub struct SubjectResults {
    /// Name of its folder.
    pub name: String,
    pub kind: SubjectKind,
    pub time: Time,
    pub sweep: Option<Ablations>,
    pub replicates: Option<Replicates>,
    pub kinds: Option<Kinds>,
    pub best: Vec<BestHeads>,
    pub pairs: Vec<Pair>,
    pub pruning: Option<Pruning>,
    pub pruning_kinds: Option<KindsOfCurves>,
    pub retrained: Option<Retrained>,
    /// From the setup's own run, or else from another run.
    pub methods: Option<Methods>,
    pub dynamics: Option<Dynamics>,
    pub functions: Option<Functions>,
    pub gates: Vec<Gates>,
    /// Nats per word of the full model; `None` if words were not counted.
    pub nats_per_word: Option<f64>,
    /// Sweeps on other splits.
    pub others: Vec<Ablations>,
    pub importance: Option<Importance>,
    /// One entry per set of rules.
    pub relevance: Vec<Relevance>,
    /// The segments that change most when a head is masked.
    pub segments: BTreeMap<HeadId, Vec<SegmentChange>>,
    pub training: Option<Results<TrainingRow>>,
}

impl SubjectResults {
    /// Reads the standard files, or else those with most segments.
    pub fn read(folders: &Folders, name: &str, left_out: &mut LeftOut) -> Self {
        let kind = folders.kind(name);
        let source = Source::of_kind(folders, name, kind);
        let time = Time::read(&folders.results, name, left_out);
        let mut subject = Self {
            name: name.to_owned(),
            kind,
            sweep: one(&source, experiment::SWEEP, left_out, |file, _| Ablations::read(file)),
            replicates: one(&source, experiment::SWEEP, left_out, Replicates::read).flatten(),
            kinds: one(&source, experiment::SWEEP, left_out, |file, _| Kinds::read(file)).flatten(),
            best: {
                let own = one(&source, experiment::BEST_HEADS, left_out, |file, _| BestHeads::read(file));
                let elsewhere = left_out.read_all(BestHeads::largest_files(&source), BestHeads::read);
                own.into_iter().chain(elsewhere).collect()
            },
            pairs: left_out.read_all(Pair::files(&source, None), |file| Pair::read(file, &folders.results)),
            pruning: one(&source, experiment::PRUNING, left_out, Pruning::read),
            pruning_kinds: one(&source, experiment::PRUNING, left_out, KindsOfCurves::read).flatten(),
            retrained: one(&source, experiment::RETRAINED, left_out, Retrained::read),
            methods: {
                let file = source.of_a_run(experiment::METHODS);
                let found = file.and_then(|file| Methods::read(file, left_out));
                left_out.keep_if_there(found)
            },
            dynamics: one(&source, experiment::DYNAMICS, left_out, |file, _| Dynamics::read(file)),
            functions: one(&source, experiment::FUNCTIONS, left_out, |file, _| Functions::read(file)),
            gates: {
                let gates = left_out.read_all(source.all(experiment::GATES), Gates::read);
                gates.into_iter().map(|gates| gates.against_control(left_out)).collect()
            },
            time: left_out.keep(time).unwrap_or_default(),
            ..Self::default()
        };
        let measured = subject.pruning.iter().map(|pruning| &pruning.results.file);
        let measured = measured.chain(subject.sweep.iter().map(|sweep| &sweep.file)).next();
        let words = measured.filter(|file| file.is_language()).map_or(Ok(None), nats_per_word);
        subject.nats_per_word = left_out.keep(words).flatten();
        subject
    }

    /// Reads what else is known about each head.
    pub fn read_heads(&mut self, source: &Source, left_out: &mut LeftOut) {
        let importance = source.one(experiment::IMPORTANCE).and_then(Importance::read);
        self.importance = left_out.keep_if_there(importance);
        let own = self.sweep.as_ref().map(|sweep| &sweep.file.path);
        let mut others = left_out.keep(source.all(experiment::SWEEP)).unwrap_or_default();
        others.retain(|file| Some(&file.path) != own);
        self.others = left_out.read_all(Ok(others), Ablations::read);
        self.relevance = left_out.read_all(source.all(experiment::RELEVANCE), Relevance::read);
        if let Some(own) = self.heads_file().cloned() {
            let mut is_same = |file: &ResultFile| {
                let is_same = may_have_same_weights(&own, file);
                if !is_same {
                    let (path, own) = (file.path.display(), own.path.display());
                    left_out.note(format!("`{path}` is not shown: its weights differ from those of `{own}`"));
                }
                is_same
            };
            self.others.retain(|other| is_same(&other.file));
            self.relevance.retain(|relevance| is_same(&relevance.file));
            self.importance = self.importance.take().filter(|importance| is_same(&importance.file));
            // other files keep their own tables and figures
            let functions = self.functions.iter().map(|functions| &functions.file);
            let curves = self.pruning.iter().map(|pruning| &pruning.results.file);
            functions.chain(curves).chain(self.gates.iter().map(|gates| &gates.file)).for_each(|file| {
                is_same(file);
            });
        }
        let log = source.one(experiment::TRAINING_LOG);
        let log = log.and_then(|log| Results::read(log.with_experiment(experiment::TRAINING)));
        self.training = left_out.keep_if_there(log);
        if let Some(sweep) = &self.sweep {
            self.segments = left_out.keep(segments::most_changed(sweep)).unwrap_or_default();
        }
    }

    /// Returns the file that identifies the model of these heads: the sweep, or else the importance.
    pub fn heads_file(&self) -> Option<&ResultFile> {
        let sweep = self.sweep.as_ref().map(|sweep| &sweep.file);
        sweep.or(self.importance.as_ref().map(|importance| &importance.file))
    }

    /// Returns the displayed name.
    pub fn shown(&self) -> String {
        self.kind.shown(&self.name)
    }

    /// Returns the pretrained model that its training log names.
    pub fn pretrained(&self) -> Option<&str> {
        let file = &self.training.as_ref()?.file;
        file.text("checkpoint").filter(|_| file.identity().is_some_and(|identity| identity.weights.is_some()))
    }

    /// `true` if its scores are nats per token.
    pub fn has_nats(&self) -> bool {
        let metrics = self.sweep.iter().map(|sweep| sweep.metric());
        metrics.chain(self.pruning.iter().map(|pruning| pruning.results.metric())).any(Metric::is_nats)
    }

    /// Returns the files that were read.
    pub fn files(&self) -> impl Iterator<Item = &ResultFile> {
        let sweeps = self.sweep.iter().chain(self.best.iter().map(|best| &best.sweep));
        let files = sweeps.map(|sweep| &sweep.file).chain(self.pairs.iter().map(|pair| &pair.file));
        let files = files.chain(self.pruning.iter().map(|pruning| &pruning.results.file));
        let files = files.chain(self.retrained.iter().map(|retrained| &retrained.after.results.file));
        let files = files.chain(self.methods.iter().map(|methods| &methods.results.file));
        let files = files.chain(self.dynamics.iter().map(|dynamics| &dynamics.file));
        let files = files.chain(self.functions.iter().map(|functions| &functions.file));
        files.chain(self.gates.iter().map(|gates| &gates.file))
    }
}

/// Reads the standard file of an experiment; `None` if it was not run or cannot be read.
fn one<T>(
    source: &Source,
    experiment: &str,
    left_out: &mut LeftOut,
    read: impl FnOnce(ResultFile, &mut LeftOut) -> Result<T>,
) -> Option<T> {
    let found = source.one(experiment).and_then(|file| read(file, left_out));
    left_out.keep_if_there(found)
}

fn nats_per_word(file: &ResultFile) -> Result<Option<f64>> {
    let Some(signature) = &file.signature else { return Ok(None) };
    let Some(blocks) = Blocks::beside(&file.path, signature)? else { return Ok(None) };
    let sum = |column: &str| {
        let place = blocks.columns.iter().position(|name| name == column)?;
        Some(blocks.get(BASE)?.sums.get(place)?.value())
    };
    Ok(sum("nats").zip(sum("words")).filter(|(_, words)| *words > 0.0).map(|(nats, words)| nats / words))
}
