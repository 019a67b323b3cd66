//! Subjects of all tasks.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use core_masking::importance::Measured;
use core_masking::{
    Attention, AttentionRecord, Gates, HeadLayout, HeadScores, HeadSet, Measure, Removal, Rule, to_vec,
};
use corpus::batches::longest_first_rows;
use corpus::placed::PlacedToken;
use records::Identity;
use stats::Metric;
use tch::no_grad;
use training::{Machine, Memory, Progress, workers};

use crate::checkpoint::Origin;
use crate::error::Error;
use crate::evaluation::{Load, Plan, Scorer, Sets, Sweep};
use crate::model::{Model, of_threads};
use crate::reading::{Reading, TextAttention};
use crate::relevant::SegmentRelevance;
use crate::subject::{Evaluation, Evaluator, Pass, Scored, Subject, Work};
use crate::task::{Described, Task};

/// A model with its data and its task.
#[derive(Debug)]
pub(crate) struct TaskSubject<T: Task> {
    pub described: Described<T>,
    pub machine: Machine,
    pub task: T,
    pub model: T::Model,
    pub origin: Origin,
}

impl<T: Task> TaskSubject<T> {
    fn read(&self, scored: &Scored) -> Result<T::Examples, Error> {
        let examples = self.described.read(&self.machine, &scored.split)?;
        Ok(T::select(&examples, &scored.places(&T::groups(&examples))))
    }

    /// Runs `job` on each batch of a plan for the load, and hands what it finds to `each` in the order of batches, so that
    /// equal runs give equal numbers. `message` says in the progress what is done.
    fn over_batches<R: Send>(
        &self,
        (model, load): (&T::Model, &Load<'_>),
        message: &str,
        job: impl Fn(&T::Model, &[usize]) -> Result<R, Error> + Sync,
        mut each: impl FnMut(&[usize], R) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Plan { batches, workers, .. } = Plan::new(&self.machine, load)?;
        let mut models = of_threads(model, workers)?;
        let mut progress = Progress::new(batches.len(), self.machine.quiet);
        progress.message(message.to_owned());
        let job = |model: &T::Model, item: usize| job(model, &batches[item]);
        workers::in_order(&mut models, batches.len(), job, |item, found| {
            progress.advance(1);
            each(&batches[item], found)
        })
    }

    fn prepare(&self, scored: &Scored) -> Result<T::Prepared, Error> {
        self.task.prepare(&self.model, self.read(scored)?, &scored.split)
    }

    fn encode(&self, scored: &Scored) -> Result<T::Encoded, Error> {
        self.task.encode(&self.model, &self.read(scored)?, &scored.split)
    }
}

impl<T: Task> Subject for TaskSubject<T> {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        let mut identity = scored.identity(experiment, &self.described.name, &self.machine);
        let examples = self.read(scored)?;
        self.task.describe(&mut identity, &examples);
        self.origin.describe(&mut identity);
        identity.data.insert(scored.split.clone(), T::sha256(&examples));
        Ok(identity)
    }

    fn identity_of_model(&self, experiment: &str) -> Identity {
        let mut identity = Identity::new(experiment, &self.described.name);
        identity.precision = self.machine.precision.name().to_owned();
        self.origin.describe(&mut identity);
        identity
    }

    fn metric(&self, split: &str) -> Metric {
        self.task.metric(split)
    }

    fn evaluator<'a>(&'a self, scored: &Scored, beside: u64) -> Result<Box<dyn Evaluator + 'a>, Error> {
        let prepared = self.prepare(scored)?;
        let load = self.task.load_of(&self.model, &prepared);
        let memory = Memory::BesideModel(self.machine.memory.beside(load.model_bytes) / (1 + beside));
        let plan = Plan::new(&Machine { memory, ..self.machine.clone() }, &load)?;
        Ok(Box::new(SplitEvaluator {
            models: of_threads(&self.model, plan.workers)?,
            subject: self,
            scored: scored.clone(),
            prepared,
            sweep: Sweep::new(plan),
        }))
    }

    fn measure(
        &self,
        on: &Scored,
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<BTreeMap<Measure, HeadScores>, Error> {
        let encoded = self.encode(on)?;
        let layout = self.layout();
        let job = |model: &T::Model, batch: &[usize]| {
            let gates = on.gates(&layout, masked, model.options())?;
            T::measure(model, &encoded, batch, &gates, measures)
        };
        let load = T::measuring_load(&self.model, &encoded, measures);
        let mut total = Measured::new();
        self.over_batches((&self.model, &load), "measuring heads", job, |_, measured| {
            for (measure, means) in measured {
                total.entry(measure).or_default().merge(&means);
            }
            Ok(())
        })?;
        let scores: BTreeMap<Measure, HeadScores> =
            total.into_iter().map(|(measure, means)| (measure, means.means())).collect();
        let is_finite = |scores: &HeadScores| scores.iter().all(|(_, score)| score.is_finite());
        if scores.values().all(is_finite) { Ok(scores) } else { Err(Error::NotFinite) }
    }

    fn relevance(&self, on: &Scored, rule: Rule) -> Result<Vec<SegmentRelevance>, Error> {
        let exact = T::exact(&self.model)?;
        let encoded = self.encode(on)?;
        let load = T::relevance_load(&exact, &encoded)?;
        let job = |model: &T::Model, batch: &[usize]| {
            let of_row = |&row: &usize| SegmentRelevance::new(&T::relevance(model, &encoded, row, rule)?);
            batch.iter().map(of_row).collect::<Result<Vec<_>, Error>>()
        };
        let mut found = BTreeMap::new();
        self.over_batches((&exact, &load), "following relevance", job, |batch, relevance| {
            found.extend(batch.iter().copied().zip(relevance));
            Ok(())
        })?;
        Ok(found.into_values().collect())
    }

    fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        let encoded = self.encode(scored)?;
        let gates = scored.gates(&self.layout(), masked, self.model.options())?;
        let load = T::measuring_load(&self.model, &encoded, &BTreeSet::new());
        let mut outputs = Vec::new();
        for rows in Plan::new(&self.machine, &load)?.batches {
            let found = T::outputs(&self.model, &encoded, &rows, &gates)?;
            outputs.extend(rows.into_iter().zip(found));
        }
        outputs.sort_by_key(|&(row, _)| row);
        Ok(outputs.into_iter().flat_map(|(_, found)| found).collect())
    }

    fn reading(&self) -> Reading {
        self.task.reading(&self.model)
    }

    fn place(&self, text: &str) -> Result<Vec<PlacedToken>, Error> {
        let tokens = self.task.place(text)?;
        tokens.ok_or_else(|| Error::NoPlaces { folder: self.origin.folder.clone() })
    }

    fn look(
        &self,
        texts: &[&[u32]],
        each: &mut dyn FnMut(usize, TextAttention) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let load = T::reading_load(&self.model, texts.iter().map(|text| text.len()).collect());
        let attention = self.reading().attention;
        let job = |model: &T::Model, batch: &[usize]| {
            let rows: Vec<&[u32]> = batch.iter().map(|&row| texts[row]).collect();
            attention_of::<T>(attention, model, &rows)
        };
        self.over_batches((&self.model, &load), "reading", job, |batch, found| {
            batch.iter().zip(found).try_for_each(|(&row, attention)| each(row, attention))
        })
    }

    fn without_heads(&self, heads: &HeadSet) -> Result<Box<dyn Subject>, Error> {
        Ok(Box::new(Self {
            described: self.described.clone(),
            machine: self.machine.clone(),
            task: self.task.clone(),
            model: self.model.without_heads(heads, Removal::Cut)?,
            origin: self.origin.without_heads(heads),
        }))
    }

    fn folder(&self) -> &Path {
        &self.origin.folder
    }

    fn save_without_heads(&self, heads: &HeadSet, removal: Removal, folder: &Path) -> Result<(), Error> {
        self.origin.check_removal(removal, &self.layout())?;
        Ok(self.model.without_heads(heads, removal)?.save(folder)?)
    }

    fn parameters(&self) -> u64 {
        self.model.parameters()
    }

    fn pass<'a>(
        &'a self,
        scored: &Scored,
        batch_size: usize,
        work: Work,
    ) -> Result<Box<dyn Pass + 'a>, Error> {
        let prepared = self.prepare(scored)?;
        let lengths = T::lengths(&prepared);
        let batches = longest_first_rows(lengths.iter().copied(), batch_size);
        let open = Gates::open(&self.layout(), self.model.options());
        Ok(match work {
            Work::Score => {
                let batches = batches.into_iter().map(|rows| T::batch(&self.model, &prepared, &rows));
                let batches = batches.collect::<Result<_, _>>()?;
                Box::new(TaskPass { subject: self, open, lengths, batches })
            }
            Work::Continue(tokens) => {
                Box::new(Continuations { subject: self, open, prepared, batches, tokens })
            }
        })
    }

    fn say(&self, text: &str, tokens: usize, masked: &HeadSet) -> Result<String, Error> {
        let gates = Gates::masking(&self.layout(), std::slice::from_ref(masked), self.model.options())?;
        self.task.say(&self.model, text, tokens, &gates)
    }
}

/// Attention weights of this type in each text of a batch.
fn attention_of<T: Task>(
    attention: Attention,
    model: &T::Model,
    texts: &[&[u32]],
) -> Result<Vec<TextAttention>, Error> {
    let record = AttentionRecord::default();
    let gates = Gates::open(&model.layout(), model.options()).recorded_in(&record);
    no_grad(|| T::read_texts(model, texts, &gates))?;
    let recorded = record.take();
    let layers = recorded.iter().filter(|((of, _), _)| *of == attention).map(|(_, weights)| weights);
    let layers: Vec<_> = layers.collect(); // in the order of layers
    let of_text = |(row, text): (usize, &&[u32])| {
        let tokens = text.len() as i64;
        let own = layers.iter().map(|weights| {
            to_vec::<f32>(&weights.get(row as i64).narrow(1, 0, tokens).narrow(2, 0, tokens)) // [heads, query, key]
        });
        TextAttention::new(text.len(), own.collect())
    };
    let found: Vec<TextAttention> = texts.iter().enumerate().map(of_text).collect();
    if found.iter().all(TextAttention::is_finite) { Ok(found) } else { Err(Error::NotFinite) }
}

/// A split that is ready to be scored.
struct SplitEvaluator<'a, T: Task> {
    subject: &'a TaskSubject<T>,
    scored: Scored,
    prepared: T::Prepared,
    sweep: Sweep,
    models: Vec<T::Model>,
}

impl<T: Task> Evaluator for SplitEvaluator<'_, T> {
    fn evaluate(
        &mut self,
        sets: &[HeadSet],
        wanted: &[bool],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { subject: TaskSubject { task, model, machine, .. }, scored, prepared, sweep, models } =
            self;
        let layout = model.layout();
        sets.iter().flat_map(HeadSet::iter).try_for_each(|id| layout.check(id))?;
        let metric = task.metric(&scored.split).name();
        let scorer = task.scorer(model, &sweep.plan, prepared, scored)?;
        let count = wanted.iter().filter(|&&wanted| wanted).count();
        let mut progress = Progress::new(count * sweep.plan.batches.len(), machine.quiet);
        let all = Sets { all: sets, wanted, rescale: scored.rescale };
        sweep.run(&scorer, models, all, &mut progress, |progress, index, found| {
            let evaluation = Evaluation::new(task.segments(prepared, found)?)?;
            let digits = metric.digits();
            progress.message(format!(
                "masked {}: {metric} {:.digits$}",
                sets[index].brief(),
                evaluation.score
            ));
            each(index, evaluation)
        })?;
        if let Some(report) = scorer.report() {
            progress.line(&report);
        }
        Ok(())
    }
}

/// Batches of segments, with the gates of the plain model.
struct TaskPass<'a, T: Task> {
    subject: &'a TaskSubject<T>,
    open: Gates,
    /// Of the segments, in tokens.
    lengths: Vec<usize>,
    batches: Vec<T::Batch>,
}

impl<T: Task> Pass for TaskPass<'_, T> {
    fn segments(&self) -> usize {
        self.lengths.len()
    }

    fn tokens(&self) -> u64 {
        self.lengths.iter().sum::<usize>() as u64
    }

    fn run(&self) -> Result<u64, Error> {
        let TaskSubject { task, model, machine, .. } = self.subject;
        tch::set_num_threads(machine.threads as i32);
        self.batches.iter().map(|batch| task.pass(model, batch, &self.open)).sum()
    }
}

/// Segments that are continued, with the gates of the plain model.
struct Continuations<'a, T: Task> {
    subject: &'a TaskSubject<T>,
    open: Gates,
    prepared: T::Prepared,
    batches: Vec<Vec<usize>>,
    tokens: usize,
}

impl<T: Task> Pass for Continuations<'_, T> {
    fn segments(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    fn tokens(&self) -> u64 {
        (T::texts(&self.prepared) * self.tokens) as u64
    }

    fn run(&self) -> Result<u64, Error> {
        let TaskSubject { task, model, machine, .. } = self.subject;
        tch::set_num_threads(machine.threads as i32);
        let continued =
            |rows: &Vec<usize>| task.continue_by(model, &self.prepared, rows, self.tokens, &self.open);
        self.batches.iter().map(continued).sum()
    }
}
