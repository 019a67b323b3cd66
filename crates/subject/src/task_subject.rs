//! Models with their data, for any task.
use std::collections::{BTreeMap, BTreeSet};

use core_masking::{
    Attention, AttentionRecord, GatedModel, Gates, HeadMeans, HeadSet, Measure, Measured, Moments, Needs,
    Removal, Replacement, to_vec,
};
use corpus::batches::longest_first_rows;
use records::Identity;
use tch::{Kind, no_grad};
use training::{Machine, Memory, Progress, workers};

use crate::checkpoint::Origin;
use crate::error::Error;
use crate::evaluation::{Batches, Masks, Need, Plan, Purpose, Replace, Scorer};
use crate::models::Models;
use crate::outcome::{Evaluation, Pass, Work};
use crate::relevant::SegmentRelevance;
use crate::scored::{Ablation, Scored};
use crate::subject_file::SubjectFile;
use crate::substitute::{Substitute, means_of};
use crate::task::{ExamplesOf, Sizes, Spec, Task};
use crate::text_input::{Input, ReadText, TextAttention, TextInput};

/// A model with its data and its task.
#[derive(Debug)]
pub(crate) struct TaskSubject<T: Task> {
    pub file: SubjectFile<T>,
    pub machine: Machine,
    pub task: T,
    pub models: Models<T::Model>,
    pub origin: Origin,
}

impl<T: Task> TaskSubject<T> {
    fn read(&self, scored: &Scored) -> Result<ExamplesOf<T>, Error> {
        Ok(select::<T>(scored, &self.file.read(&self.machine, &scored.split)?))
    }

    fn model(&self) -> &T::Model {
        self.models.quickest()
    }

    /// Removes these heads from the exact model; mean ablation keeps their means as biases.
    pub(crate) fn removed(
        &self,
        heads: &HeadSet,
        removal: Removal,
        ablation: &Ablation,
    ) -> Result<T::Model, Error> {
        let model = &self.models.exact;
        Ok(match ablation {
            Ablation::Zero => model.without_heads(heads, removal)?,
            Ablation::Mean(of) => model.folded(heads, &means_of(self, of)?, removal)?,
            Ablation::Resample { .. } => {
                let fault = "only zeros and mean head outputs can be written into a model";
                return Err(Error::Invalid(fault.to_owned()));
            }
        })
    }

    /// Runs `job` on batches of segments with these lengths, and calls `each` in batch order, so that equal runs give equal numbers.
    /// `message` is shown with the progress.
    pub(crate) fn over_batches<R: Send>(
        &self,
        models: &Models<T::Model>,
        (need, lengths): (&Need<'_>, &[usize]),
        message: &str,
        job: impl Fn(&Models<T::Model>, &[usize]) -> Result<R, Error> + Sync,
        mut each: impl FnMut(&[usize], R) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Plan { batches, workers, .. } = Plan::new(&self.machine, need, lengths);
        let mut models = models.of_threads(workers)?;
        let mut progress = Progress::new(batches.len(), self.machine.quiet);
        progress.message(message.to_owned());
        let job = |models: &Models<T::Model>, item: usize| job(models, &batches[item]);
        workers::in_order(&mut models, batches.len(), job, |item, found| {
            progress.advance(1);
            each(&batches[item], found)
        })
    }

    fn prepare(&self, scored: &Scored) -> Result<T::Prepared, Error> {
        self.task.prepare(self.model(), self.read(scored)?, &scored.split)
    }

    pub(crate) fn encode(&self, scored: &Scored) -> Result<T::Encoded, Error> {
        self.task.encode(self.model(), &self.read(scored)?, &scored.split)
    }

    /// [`Subject::measure`](crate::Subject::measure) on the encoded segments of `on`, without its check for NaN and infinite values.
    pub(crate) fn measured(
        &self,
        (on, encoded): (&Scored, &T::Encoded),
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<Measured, Error> {
        if measures.contains(&Measure::LogitAttribution) && !T::has_contrasts(encoded) {
            return Err(Error::no_contrasts(&on.split));
        }
        let layout = self.models.layout();
        let is_reference = on.ablation.sample().is_some_and(|reference| reference.places_like(on));
        let lengths = T::encoded_text_lengths(encoded);
        let substitute = Substitute::new(self, &on.ablation, (lengths, is_reference), 0)?;
        // the first-order effect of masking a head depends on what replaces its output
        let all = layout.heads().into_iter().collect();
        let is_first_order = measures.iter().eq([&Measure::FirstOrder]);
        let replaced = if is_first_order { &all } else { masked };
        let job = |models: &Models<T::Model>, batch: &[usize]| {
            let model = models.quickest();
            let replacement =
                if replaced.is_empty() { None } else { substitute.of(models, batch, replaced)? };
            let replacement = replacement.map(|all| all.to(model.options()));
            let replacement =
                if is_first_order { replacement.map(Replacement::derived) } else { replacement };
            let gates = on.gates(&layout, masked, model.options())?.replaced_by(replacement);
            Ok(model.measure(&T::examples(model, encoded, batch)?, &gates, measures))
        };
        let need = self.task.need(&self.models, Purpose::Measuring(measures));
        let lengths = T::encoded_lengths(encoded);
        let (mut total, mut order) = (Measured::new(), Vec::new());
        self.over_batches(&self.models, (&need, &lengths), "measuring heads", job, |batch, measured| {
            order.extend(batch);
            for (measure, means) in measured {
                total.entry(measure).or_default().merge(&means);
            }
            Ok(())
        })?;
        let whole = |(measure, means): (Measure, HeadMeans)| (measure, means.of_split(measure, &order));
        Ok(total.into_iter().map(whole).collect())
    }

    pub(crate) fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        let mut identity = scored.identity(experiment, &self.file.name, &self.machine);
        let (examples, skipped) = self.file.read_counting(&self.machine, &scored.split)?;
        let examples = select::<T>(scored, &examples);
        if skipped > 0 {
            identity.arguments.insert("skipped_rows".to_owned(), skipped.into());
        }
        self.task.describe(&mut identity, &examples);
        self.origin.describe(&mut identity);
        if self.models.layout().is_one_layer() {
            identity.arguments.insert("one_layer".to_owned(), true.into());
        }
        identity.data.insert(scored.split.clone(), T::Spec::sha256(&examples));
        if let Some(reference) = scored.ablation.sample() {
            let sha256 = T::Spec::sha256(&self.read(&reference)?);
            identity.data.insert(format!("reference: {}", reference.split), sha256);
        }
        Ok(identity)
    }

    pub(crate) fn evaluator(&self, scored: &Scored, beside: u64) -> Result<SplitEvaluator<'_, T>, Error> {
        let prepared = self.prepare(scored)?;
        let need = self.task.need(&self.models, Purpose::Scoring);
        let memory = self.machine.memory.beside(need.model_bytes) / (1 + beside);
        let room = if matches!(scored.ablation, Ablation::Resample { .. }) { memory / 4 } else { 0 };
        let memory = Memory::ExcludingModel(memory - room);
        let machine = Machine { memory, ..self.machine.clone() };
        let Sizes { count, in_memory, of_text, .. } = T::sizes(&prepared);
        let plan = Plan::new(&machine, &need, &in_memory);
        Ok(SplitEvaluator {
            substitute: Substitute::new(self, &scored.ablation, (of_text, false), room)?,
            models: self.models.of_threads(plan.workers)?,
            subject: self,
            scored: scored.clone(),
            prepared,
            segments: count,
            batches: Batches::new(plan),
        })
    }

    pub(crate) fn measures(&self, on: &Scored) -> Result<BTreeSet<Measure>, Error> {
        let has_contrasts = T::has_contrasts(&self.encode(on)?);
        let given = |measure: &Measure| has_contrasts || measure.entry().needs != Needs::ChoicesOfTwo;
        Ok(Measure::of_passes().filter(given).collect())
    }

    pub(crate) fn relevance(&self, on: &Scored) -> Result<Vec<SegmentRelevance>, Error> {
        if !self.file.spec.outline().follows_relevance {
            return Err(Error::no_relevance());
        }
        let exact = Models::alone(self.models.exact.to_kind(Kind::Double)?);
        let encoded = self.encode(on)?;
        let (need, lengths) = (self.task.need(&exact, Purpose::Relevance), T::encoded_lengths(&encoded));
        let job = |models: &Models<T::Model>, batch: &[usize]| {
            let of_row = |&row: &usize| {
                let model = models.quickest();
                let segment = T::examples(model, &encoded, &[row])?;
                SegmentRelevance::new(&T::relevance(model, &segment)?)
            };
            batch.iter().map(of_row).collect::<Result<Vec<_>, Error>>()
        };
        let mut found = BTreeMap::new();
        self.over_batches(&exact, (&need, &lengths), "following relevance", job, |batch, relevance| {
            found.extend(batch.iter().copied().zip(relevance));
            Ok(())
        })?;
        Ok(found.into_values().collect())
    }

    pub(crate) fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        let encoded = self.encode(scored)?;
        let (layout, options) = (self.models.layout(), self.model().options());
        let ablation = if masked.is_empty() { &Ablation::Zero } else { &scored.ablation };
        let substitute = Substitute::new(self, ablation, (T::encoded_text_lengths(&encoded), false), 0)?;
        let measures = BTreeSet::new();
        let need = self.task.need(&self.models, Purpose::Measuring(&measures));
        let mut outputs = Vec::new();
        for rows in Plan::new(&self.machine, &need, &T::encoded_lengths(&encoded)).batches {
            let replacement = substitute.of(&self.models, &rows, masked)?.map(|all| all.to(options));
            let gates = scored.gates(&layout, masked, options)?.replaced_by(replacement);
            let found = T::outputs(self.model(), &encoded, &rows, &gates)?;
            outputs.extend(rows.into_iter().zip(found));
        }
        outputs.sort_by_key(|&(row, _)| row);
        Ok(outputs.into_iter().flat_map(|(_, found)| found).collect())
    }

    pub(crate) fn text_input(&self) -> TextInput {
        self.task.text_input(self.model())
    }

    pub(crate) fn look(
        &self,
        texts: &[&[u32]],
        each: &mut dyn FnMut(usize, TextAttention) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let measures = BTreeSet::from([Measure::Confidence]);
        let need = self.task.need(&self.models, Purpose::Measuring(&measures));
        let lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
        let attention = self.text_input().attention;
        let job = |models: &Models<T::Model>, batch: &[usize]| {
            let rows: Vec<&[u32]> = batch.iter().map(|&row| texts[row]).collect();
            attention_of::<T>(attention, models.quickest(), &rows)
        };
        self.over_batches(&self.models, (&need, &lengths), "reading", job, |batch, found| {
            batch.iter().zip(found).try_for_each(|(&row, attention)| each(row, attention))
        })
    }

    pub(crate) fn read_text(&self, input: &Input<'_>, masked: &HeadSet) -> Result<ReadText, Error> {
        let (model, record) = (&self.models.exact, AttentionRecord::default());
        let gates = || Gates::masking(&self.models.layout(), std::slice::from_ref(masked), model.options());
        let gates = [gates()?, gates()?.recorded_in(&record)];
        let (answer, mut maps) = no_grad(|| self.task.read(model, input, gates.each_ref()))?;
        for ((attention, _), weights) in record.take() {
            let weights = to_vec::<f32>(&weights.squeeze_dim(0)); // [heads, query, key]
            if !weights.iter().all(|weight| weight.is_finite()) {
                return Err(Error::not_finite());
            }
            let own = maps.iter_mut().find(|maps| maps.attention == attention);
            own.expect("maps of each type").layers.push(weights); // in the order of layers
        }
        Ok(ReadText { answer, maps })
    }

    fn with_model(&self, exact: T::Model, origin: Origin) -> Result<Self, Error> {
        let (file, machine, task) = (self.file.clone(), self.machine.clone(), self.task.clone());
        Ok(Self { file, machine, task, models: self.models.with_exact(exact)?, origin })
    }

    pub(crate) fn without_heads(&self, heads: &HeadSet, ablation: &Ablation) -> Result<Self, Error> {
        self.with_model(self.removed(heads, Removal::Cut, ablation)?, self.origin.without_heads(heads))
    }

    pub(crate) fn refitted(&self, masked: &HeadSet, on: &Scored) -> Result<Self, Error> {
        let encoded = self.encode(on)?;
        let measures = BTreeSet::from([Measure::Confidence]);
        let (lengths, mut exact) = (T::encoded_lengths(&encoded), self.models.exact.share()?);
        for module in self.models.layout().modules_from(masked) {
            let both = Models::beside(self.models.exact.share()?, exact.share()?);
            let need = self.task.need(&both, Purpose::Measuring(&measures));
            let job = |both: &Models<T::Model>, batch: &[usize]| {
                let (full, lacking) = (&both.exact, both.quickest());
                let examples = T::examples(full, &encoded, batch)?;
                Ok(lacking.moments(full, &examples, (module, masked))?)
            };
            let mut total: Option<Moments> = None;
            self.over_batches(&both, (&need, &lengths), "fitting kept heads", job, |_, found| {
                match &mut total {
                    Some(total) => total.merge(&found),
                    None => total = Some(found),
                }
                Ok(())
            })?;
            let Some(moments) = total else { break };
            let Some(fitted) = exact.refitted((module, masked), &moments)? else { break };
            exact = fitted;
        }
        self.with_model(exact, self.origin.clone())
    }

    pub(crate) fn pass(&self, scored: &Scored, batch_size: usize, work: Work) -> Result<Pass<'_>, Error> {
        let prepared = self.prepare(scored)?;
        let Sizes { texts, tokens, .. } = T::sizes(&prepared);
        let (segments, model) = (tokens.len(), self.model());
        let batches = longest_first_rows(tokens.iter().copied(), batch_size);
        let open = Gates::open(&self.models.layout(), model.options());
        let threads = self.machine.threads as i32;
        Ok(match work {
            Work::Score => {
                let timed = |rows: Vec<usize>| self.task.pass(model, &prepared, &rows);
                let batches = batches.into_iter().map(timed).collect::<Result<Vec<_>, _>>()?;
                let run = move || {
                    tch::set_num_threads(threads);
                    batches.iter().map(|batch| batch(&open)).sum()
                };
                Pass { segments, tokens: tokens.iter().sum::<usize>() as u64, run: Box::new(run) }
            }
            Work::Continue(count) => {
                let run = move || {
                    tch::set_num_threads(threads);
                    let continued = |rows| self.task.continue_by(model, &prepared, rows, count, &open);
                    batches.iter().map(|rows| continued(rows)).sum()
                };
                Pass { segments, tokens: (texts * count) as u64, run: Box::new(run) }
            }
        })
    }

    pub(crate) fn say(
        &self,
        text: &str,
        tokens: usize,
        masked: &HeadSet,
        ablation: &Ablation,
    ) -> Result<String, Error> {
        let options = self.model().options();
        let length = if *ablation == Ablation::Zero { 0 } else { self.task.length(text)? };
        let substitute = Substitute::new(self, ablation, (vec![length], false), 0)?;
        let replacement = if masked.is_empty() { None } else { substitute.of(&self.models, &[0], masked)? };
        let replacement = replacement.map(|all| all.to(options));
        let gates = Gates::masking(&self.models.layout(), std::slice::from_ref(masked), options)?;
        let gates = gates.replaced_by(replacement);
        self.task.say(self.model(), text, tokens, &gates)
    }
}

fn select<T: Task>(scored: &Scored, examples: &ExamplesOf<T>) -> ExamplesOf<T> {
    T::Spec::select(examples, &scored.places(&T::Spec::groups(examples)))
}

/// Returns the attention weights of this type in each text of a batch.
fn attention_of<T: Task>(
    attention: Attention,
    model: &T::Model,
    texts: &[&[u32]],
) -> Result<Vec<TextAttention>, Error> {
    let record = AttentionRecord::default();
    let gates = model.open().recorded_in(&record);
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
    if found.iter().all(TextAttention::is_finite) { Ok(found) } else { Err(Error::not_finite()) }
}

/// A split that is ready to be scored.
pub(crate) struct SplitEvaluator<'a, T: Task> {
    subject: &'a TaskSubject<T>,
    scored: Scored,
    prepared: T::Prepared,
    segments: usize,
    batches: Batches,
    models: Vec<Models<T::Model>>,
    substitute: Substitute<T>,
}

impl<T: Task> SplitEvaluator<'_, T> {
    pub(crate) fn segments(&self) -> usize {
        self.segments
    }

    pub(crate) fn evaluate(
        &mut self,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { subject, scored, prepared, batches, models, substitute, .. } = self;
        let TaskSubject { task, machine, .. } = subject;
        let layout = subject.models.layout();
        sets.iter().flat_map(HeadSet::iter).try_for_each(|id| layout.check(id))?;
        let metric = task.metric(&scored.split).name();
        let scorer = task.scorer(prepared);
        let mut undefined = Vec::new();
        let replace =
            |models: &Models<T::Model>, rows: &[usize], masked: &HeadSet| substitute.of(models, rows, masked);
        let masks = (&Masks { sets, rescale: scored.rescale }, &replace as &Replace<'_, T::Model>);
        batches.run(&scorer, models, masks, machine.quiet, |progress, index, found| {
            let evaluation = Evaluation::new(task.segments(prepared, found)?)?;
            let digits = metric.digits();
            if evaluation.segments.is_undefined() {
                undefined.push(sets[index].brief());
            }
            progress.message(format!(
                "masked {}: {metric} {:.digits$}",
                sets[index].brief(),
                evaluation.score
            ));
            if sets[index].is_empty()
                && let Some(doubt) = scorer.doubt()
            {
                words::warn(&format!("split `{}`: {doubt}", scored.split));
            }
            each(index, evaluation)
        })?;
        if !undefined.is_empty() {
            words::say!(
                "warning: all predictions are equal with these heads masked, so the correlation is undefined and counts as 0: {}",
                undefined.join("; ")
            );
        }
        Ok(())
    }
}
