//! A translator as a subject: beam search, BLEU, paired bootstrap.
mod data;
mod learner;
mod pairs;
mod pass;
mod sweep;
mod train;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use core_masking::importance::measure_translator;
use core_masking::loss::sentence_losses;
use core_masking::marian::{Marian, MarianConfig};
use core_masking::{BeamSearch, HeadLayout, HeadScores, HeadSet, Measure, OutputRules, Removal, to_vec};
use corpus::marian_tokenizer::MarianTokenizer;
use corpus::parallel::ParallelText;
use corpus::tokenizer::SubwordTokenizer;
use records::Identity;
use serde_json::Value;
use stats::bleu::Bleu;
use stats::{Metric, Segments};
use tch::Kind;

use crate::checkpoint::{Checkpoint, Origin, Places};
use crate::spec::{DecodingSpec, TranslationSpec};
use crate::subject::{Evaluation, Pass, Scored, Subject};
use crate::{Error, Naming, measuring};
use pairs::Pairs;
use pass::TranslationPass;
use sweep::Sweep;
pub(crate) use train::train;
use training::{Machine, Progress};

/// Source tokens that are translated together: enough rows for whole matrix products, few enough that no thread
/// waits long for the last batch.
const BATCH_TOKENS: usize = 1_024;

/// A translator with its data.
#[derive(Debug)]
pub(crate) struct TranslationSubject {
    name: String,
    spec: TranslationSpec,
    search: BeamSearch,
    machine: Machine,
    model: Marian,
    tokenizer: Arc<Tokenizer>,
    origin: Origin,
}

/// A split as the model reads it.
struct Prepared {
    text: ParallelText,
    sources: Vec<Vec<u32>>,
}

/// The heads of the model.
///
/// # Errors
/// If the model is a checkpoint that cannot be found.
pub(crate) fn layout(spec: &TranslationSpec, machine: &Machine) -> Result<HeadLayout, Error> {
    match (spec.model, &spec.checkpoint) {
        // sizes of the vocabulary do not matter
        (Some(model), _) => Ok(model.untrained_config(3).layout()),
        (None, Some(checkpoint)) => {
            let folder = &checkpoint.find(machine)?.folder;
            Ok(MarianConfig::read(&folder.join("config.json"))?.layout())
        }
        (None, None) => Ok(HeadLayout::new([])), // refused by validation
    }
}

/// Whether there is a split of that name.
pub(crate) fn has_split(spec: &TranslationSpec, split: &str) -> bool {
    data::check_split(&spec.data, split).is_ok()
}

/// The sentence pairs of a split.
///
/// # Errors
/// If there is no such split, or its files are missing, torn, of different length or empty.
pub(crate) fn read_split(
    spec: &TranslationSpec,
    machine: &Machine,
    split: &str,
) -> Result<ParallelText, Error> {
    data::read_split(&spec.data, &machine.data, split)
}

/// How the subject's translations are searched for, where the model is trained here.
pub(crate) fn search(spec: &TranslationSpec) -> BeamSearch {
    spec.decoding.over(DecodingSpec::usual())
}

/// Makes the subject ready, training its model on first use.
///
/// # Errors
/// As for [`train`], or if the model's folder is at fault.
pub(crate) fn open(
    naming: Naming<'_>,
    spec: &TranslationSpec,
    machine: &Machine,
    results: &Path,
) -> Result<TranslationSubject, Error> {
    match &spec.checkpoint {
        Some(checkpoint) => {
            let found = checkpoint.find(machine)?;
            TranslationSubject::from_checkpoint(naming.name, spec, machine, found)
        }
        None => {
            let folder = train(naming, spec, machine, results, false)?;
            TranslationSubject::load(naming.name, spec, machine, Places::one(&folder))
        }
    }
}

/// Subwords of the model, as they were trained here or as they come from a hub.
#[derive(Debug)]
enum Tokenizer {
    Subwords(Box<SubwordTokenizer>),
    Marian(Box<MarianTokenizer>),
}

impl Tokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        match self {
            Self::Subwords(tokenizer) => tokenizer.encode(text),
            Self::Marian(tokenizer) => tokenizer.encode(text),
        }
    }

    fn encode_target(&self, text: &str) -> Vec<u32> {
        match self {
            Self::Subwords(tokenizer) => tokenizer.encode(text),
            Self::Marian(tokenizer) => tokenizer.encode_target(text),
        }
    }

    fn decode(&self, ids: &[u32]) -> String {
        match self {
            Self::Subwords(tokenizer) => tokenizer.decode(ids),
            Self::Marian(tokenizer) => tokenizer.decode(ids),
        }
    }

    /// Number of tokens, then the end symbol and the padding symbol.
    fn symbols(&self) -> (usize, [u32; 2]) {
        match self {
            Self::Subwords(tokenizer) => (tokenizer.vocabulary_size(), [tokenizer.end(), tokenizer.pad()]),
            Self::Marian(tokenizer) => (tokenizer.vocabulary_size(), [tokenizer.end(), tokenizer.pad()]),
        }
    }
}

/// Files of a translator's folder that its scores depend on, as far as they are there.
const FILES: [&str; 7] = [
    "config.json",
    "generation_config.json",
    "source.spm",
    "target.spm",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
];

impl TranslationSubject {
    /// Loads the model and the tokeniser that were trained.
    pub(crate) fn load(
        name: &str,
        spec: &TranslationSpec,
        machine: &Machine,
        places: Places<'_>,
    ) -> Result<Self, Error> {
        let tokenizer = SubwordTokenizer::load(&places.tokenizer.join("tokenizer.json"))?;
        let described = spec.model.map(|model| model.config(&tokenizer));
        let tokenizer = Tokenizer::Subwords(Box::new(tokenizer));
        let subject = Self::assemble(name, spec, machine, places, tokenizer, |_| Ok(search(spec)))?;
        if described.is_some_and(|described| *subject.model.config() != described) {
            return Err(Error::OtherModel { folder: places.model.to_owned(), name: name.to_owned() });
        }
        Ok(subject)
    }

    /// Loads a folder as it comes from a hub, or one that was trained here for another subject.
    fn from_checkpoint(
        name: &str,
        spec: &TranslationSpec,
        machine: &Machine,
        found: &Checkpoint,
    ) -> Result<Self, Error> {
        let (folder, places) = (&found.folder, Places::one(&found.folder));
        let mut subject = if folder.join("source.spm").exists() {
            let tokenizer = Tokenizer::Marian(Box::new(MarianTokenizer::load(folder)?));
            let read = |config: &MarianConfig| Ok(spec.decoding.over(BeamSearch::read(folder, config)?));
            Self::assemble(name, spec, machine, places, tokenizer, read)?
        } else {
            Self::load(name, spec, machine, places)? // without settings of generation, as models of ours are
        };
        subject.origin.checkpoint = Some(found.name.clone());
        Ok(subject)
    }

    fn assemble(
        name: &str,
        spec: &TranslationSpec,
        machine: &Machine,
        places: Places<'_>,
        tokenizer: Tokenizer,
        search: impl FnOnce(&MarianConfig) -> Result<BeamSearch, Error>,
    ) -> Result<Self, Error> {
        let (model, folder) = (Marian::load(places.model, machine.options())?, places.tokenizer);
        let config = model.config();
        let (tokens, [end, pad]) = tokenizer.symbols();
        if tokens as i64 > config.vocab_size {
            let embeddings = config.vocab_size;
            return Err(Error::Vocabulary { folder: folder.to_owned(), tokens, embeddings });
        }
        if [end, pad] != [config.eos_token_id, config.pad_token_id] {
            return Err(Error::OtherModel { folder: folder.to_owned(), name: name.to_owned() });
        }
        Ok(Self {
            name: name.to_owned(),
            search: search(config)?,
            spec: spec.clone(),
            machine: machine.clone(),
            model,
            tokenizer: Arc::new(tokenizer),
            origin: Origin::of(places, &FILES, None)?,
        })
    }

    fn read(&self, scored: &Scored) -> Result<ParallelText, Error> {
        let text = data::read_split(&self.spec.data, &self.machine.data, &scored.split)?;
        Ok(text.select(&scored.places(text.len())))
    }

    /// Sentences with their references, without those that are longer than the model's positions, as in training.
    fn pairs(&self, scored: &Scored) -> Result<Pairs, Error> {
        let (text, positions) = (self.read(scored)?, self.model.config().max_position_embeddings);
        let source = |text: &str| self.tokenizer.encode(text);
        let target = |text: &str| self.tokenizer.encode_target(text);
        let pairs = Pairs::encode(&text, [&source, &target], positions);
        if pairs.len() == 0 {
            return Err(Error::AllTooLong { split: scored.split.clone(), positions });
        }
        Ok(pairs)
    }

    fn prepare(&self, scored: &Scored) -> Result<Prepared, Error> {
        let text = self.read(scored)?;
        let sources: Vec<Vec<u32>> = text.source.iter().map(|line| self.tokenizer.encode(line)).collect();
        let positions = self.model.config().max_position_embeddings as usize;
        if let Some(index) = sources.iter().position(|source| source.len() > positions) {
            let (split, length) = (scored.split.clone(), sources[index].len());
            return Err(Error::SentenceTooLong { split, line: index + 1, length, positions });
        }
        Ok(Prepared { text, sources })
    }

    /// A model for each thread.
    fn models(&self) -> Result<Vec<Marian>, Error> {
        tch::set_num_threads(1);
        Ok((0..self.machine.workers()).map(|_| self.model.share()).collect::<Result<_, _>>()?)
    }
}

impl Subject for TranslationSubject {
    fn layout(&self) -> HeadLayout {
        self.model.layout()
    }

    fn identity(&self, experiment: &str, scored: &Scored) -> Result<Identity, Error> {
        let mut identity = scored.identity(experiment, &self.name, &self.machine);
        identity.metric = format!("BLEU|{}", Bleu::new().signature());
        self.origin.describe(&mut identity);
        identity.data.insert(scored.split.clone(), data::sha256(&self.read(scored)?));
        identity.arguments.insert("decoding".to_owned(), described(&self.search));
        Ok(identity)
    }

    fn metric(&self) -> Metric {
        Metric::Bleu
    }

    fn evaluate(
        &self,
        scored: &Scored,
        sets: &[HeadSet],
        each: &mut dyn FnMut(usize, Evaluation) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for id in sets.iter().flat_map(HeadSet::iter) {
            self.layout().check(id)?;
        }
        let prepared = self.prepare(scored)?;
        let sweep = Sweep::new(self, &prepared)?;
        let mut progress = Progress::new(sets.len() * sweep.batches(), self.machine.quiet);
        sweep.run(sets, scored.rescale, &mut progress, |progress, index, statistics| {
            let evaluation = Evaluation::new(Segments::Bleu(statistics))?;
            progress.message(format!("masked {}: {:.2} BLEU", sets[index].brief(), evaluation.score));
            each(index, evaluation)
        })
    }

    /// Pairs that are longer than the model's positions are left out, as in training.
    fn measure(
        &self,
        on: &Scored,
        masked: &HeadSet,
        measures: &BTreeSet<Measure>,
    ) -> Result<BTreeMap<Measure, HeadScores>, Error> {
        let pairs = self.pairs(on)?;
        let batches = pairs.batches();
        let layout = self.layout();
        let job = |model: &Marian, item: usize| {
            let gates = on.gates(&layout, masked, model.options())?;
            Ok(measure_translator(model, &pairs.batch(model, &batches[item]), &gates, measures))
        };
        measuring::over_batches(self.models()?, batches.len(), self.machine.quiet, job)
    }

    fn outputs(&self, scored: &Scored, masked: &HeadSet) -> Result<Vec<f64>, Error> {
        let pairs = self.pairs(scored)?;
        let gates = scored.gates(&self.layout(), masked, self.model.options())?;
        let mut outputs = Vec::new();
        for rows in pairs.batches() {
            let batch = pairs.batch(&self.model, &rows);
            let losses = tch::no_grad(|| sentence_losses(&self.model, &batch, &gates));
            let tokens = batch.real.sum_dim_intlist(1, false, Kind::Double);
            outputs.extend(to_vec::<f64>(&(losses / tokens)));
        }
        Ok(outputs)
    }

    fn without_heads(&self, heads: &HeadSet) -> Result<Box<dyn Subject>, Error> {
        Ok(Box::new(Self {
            name: self.name.clone(),
            spec: self.spec.clone(),
            search: self.search.clone(),
            machine: self.machine.clone(),
            model: self.model.without_heads(heads, Removal::Cut)?,
            tokenizer: Arc::clone(&self.tokenizer),
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
        self.model.weights().parameters()
    }

    fn pass<'a>(&'a self, scored: &Scored, batch_size: usize) -> Result<Box<dyn Pass + 'a>, Error> {
        let Prepared { sources, .. } = self.prepare(scored)?;
        Ok(Box::new(TranslationPass::new(self, sources, batch_size)))
    }
}

/// A search as signatures tell it.
fn described(search: &BeamSearch) -> Value {
    let BeamSearch { beam, length_penalty, stopping, length_limit: (ratio, offset), rules } = search;
    let mut json = serde_json::json!({
        "beam": beam, "length_penalty": length_penalty, "stopping": stopping,
        "length_ratio": ratio, "length_offset": offset,
    });
    if let Some(OutputRules { banned, renormalised, end_forced }) = rules {
        json["banned"] = serde_json::json!(banned);
        json["renormalised"] = (*renormalised).into();
        json["end_forced"] = (*end_forced).into();
    }
    json
}
