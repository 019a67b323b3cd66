//! Beam search over a test set, beside `generate` of transformers on the same weights, tokens, batches and threads, with the
//! same rule for stopping; the limit of a batch is that of its longest sentence there, and each sentence has its own here.
//! Beside CTranslate2 too, in f32 and with as many workers of one thread each, which sorts and batches on its own and
//! stops as soon as there are enough hypotheses: so does ours there.
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

/// Sentences of a batch, which suits both best, and of all batches.
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
        let name = format!("beam {beam} over {sentences} sentences of {}, beside {name}", description.name());
        row(Row { name, ratio, wanted });
    }
}

/// Who translates beside ours.
struct Other {
    /// Name of the task in `peer.py`.
    task: &'static str,
    name: &'static str,
    wanted: f64,
    /// Search of both, made of the subject's.
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

/// CTranslate2 ends a search as soon as there are enough hypotheses.
fn early(search: &BeamSearch) -> BeamSearch {
    BeamSearch { stopping: Stopping::Early, ..search.clone() }
}

/// Task for `peer.py`.
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

/// Each thread takes the longest batch that is left.
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
