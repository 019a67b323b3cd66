//! Beam search over a test set, compared with `generate` of transformers with equal weights, tokens, batches, threads and stopping rule.
//! There a batch's longest sentence sets the length limit; here each sentence has its own limit. Also compared with CTranslate2 in f32,
//! with one single-threaded worker per thread here. It sorts and batches by itself and stops once there are enough hypotheses; ours uses
//! that rule there.
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_masking::{BeamSearch, Gates, Stopping};
use core_masking::{GatedModel, Translator};
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::tokenizer::SubwordTokenizer;
use rayon::prelude::*;
use serde_json::{Value, json};
use subject::{Decoding, Description, decoding};
use training::Machine;

use crate::peer::Peer;
use crate::{Context, Row, timed};

/// Sentences per batch, which suits both sides best, and in total.
const BATCH: usize = 128;
const SENTENCES: usize = 1_000;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = Machine { quiet: true, ..context.machine.clone() };
    let description = Description::read(&context.args.translator).unwrap();
    let folder = description.train(&machine, Path::new("results"), false).unwrap();
    let model = Translator::load(&folder, machine.options()).unwrap();
    let tokenizer = SubwordTokenizer::load(&folder.join("tokenizer.json")).unwrap();
    let Decoding { text, search } = decoding(&description, &machine).unwrap();
    let mut sources: Vec<Vec<u32>> =
        text.source.iter().take(SENTENCES).map(|line| tokenizer.encode(line).unwrap()).collect();
    sources.sort_by_key(Vec::len);
    let batches: Vec<&[Vec<u32>]> = sources.chunks(BATCH).collect();
    tch::set_num_threads(1);
    for Other { task, name, wanted, search: beside } in OTHERS {
        let search = beside(&search);
        let threads = machine.evaluators();
        let told = told(&model, &folder, &search, &batches, (task, machine.threads));
        let ratio = Peer::start(context, told).map(|mut peer| {
            let ours = || timed(|| translate(&search, &model, &batches, threads));
            context.ratio(ours, || peer.seconds())
        });
        let (beam, sentences) = (search.beam, sources.len());
        let name = format!("beam {beam} over {sentences} sentences of {}, vs. {name}", description.name());
        row(Row { name, ratio, wanted });
    }
}

/// A translator to compare with.
struct Other {
    /// Name of the task in `peer.py`.
    task: &'static str,
    name: &'static str,
    wanted: f64,
    /// Derives the search of both sides from the setup's.
    search: fn(&BeamSearch) -> BeamSearch,
}

const OTHERS: [Other; 3] = [
    Other { task: "generate", name: "generate of transformers", wanted: 3.0, search: BeamSearch::clone },
    Other { task: "ctranslate2", name: "CTranslate2", wanted: 1.0, search: early },
    Other {
        task: "ctranslate2",
        name: "CTranslate2",
        wanted: 0.9,
        search: |search| BeamSearch { beam: 1, ..early(search) },
    },
];

/// CTranslate2 ends a search once there are enough hypotheses.
fn early(search: &BeamSearch) -> BeamSearch {
    BeamSearch { stopping: Stopping::Early, ..search.clone() }
}

/// Returns the task for `peer.py`.
pub fn told(
    model: &Translator,
    folder: &Path,
    search: &BeamSearch,
    batches: &[&[Vec<u32>]],
    (task, threads): (&str, usize),
) -> Value {
    let longest = |batch: &&[Vec<u32>]| batch.iter().map(Vec::len).max().unwrap_or(0);
    let limits: Vec<usize> =
        batches.iter().map(|batch| search.limit(model.config(), longest(batch))).collect();
    let stopping = match search.stopping {
        Stopping::Early => json!(true),
        Stopping::Heuristic => json!(false),
        Stopping::Exact => json!("never"),
    };
    json!({
        "do": task, "threads": threads, "folder": folder, "batches": batches, "limits": limits,
        "beam": search.beam, "length_penalty": search.length_penalty, "stopping": stopping, "pad": model.config().pad_token_id,
    })
}

/// Translates all batches; each thread takes the longest remaining batch.
fn translate(search: &BeamSearch, model: &Translator, batches: &[&[Vec<u32>]], threads: usize) {
    let models: Vec<Translator> = (0..threads).map(|_| model.share().unwrap()).collect();
    let next = AtomicUsize::new(0);
    models.into_par_iter().for_each(|model| {
        let gates = Gates::open(&model.layout(), model.options());
        while let Some(batch) = batches.iter().nth_back(next.fetch_add(1, Ordering::Relaxed)) {
            let rows: Vec<&[u32]> = batch.iter().map(Vec::as_slice).collect();
            search.translate(&model, &rows, &gates).unwrap();
        }
    });
}
