//! Beam search over a test set, beside `generate` of transformers on the same weights, tokens, batches and threads, with the
//! same rule for stopping; the limit of a batch is that of its longest sentence there, and each sentence has its own here.
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_masking::{BeamSearch, Gates, Stopping};
use core_masking::{GatedModel, Translator};
use corpus::sentence_tokenizer::SentenceTokenizer;
use corpus::tokenizer::SubwordTokenizer;
use rayon::prelude::*;
use serde_json::json;
use subject::{Decoding, Description, decoding};
use training::Machine;

use crate::peer::Peer;
use crate::{Context, Row, timed};

/// Sentences of a batch, which suits both best, and of all batches.
const BATCH: usize = 64;
const SENTENCES: usize = 1_000;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = Machine { quiet: true, ..context.machine.clone() };
    let description = Description::read(&context.args.translator).unwrap();
    let folder = description.train(&machine, Path::new("results"), false).unwrap();
    let model = Translator::load(&folder, machine.options()).unwrap();
    let tokenizer = SubwordTokenizer::load(&folder.join("tokenizer.json")).unwrap();
    let Decoding { text, search } = decoding(&description, &machine).unwrap();
    let mut sources: Vec<Vec<u32>> =
        text.source.iter().take(SENTENCES).map(|line| tokenizer.encode(line)).collect();
    sources.sort_by_key(Vec::len);
    let batches: Vec<&[Vec<u32>]> = sources.chunks(BATCH).collect();
    let longest = |batch: &&[Vec<u32>]| batch.iter().map(Vec::len).max().unwrap();
    let limits: Vec<usize> =
        batches.iter().map(|batch| search.limit(model.config(), longest(batch))).collect();
    let stopping = match search.stopping {
        Stopping::Early => json!(true),
        Stopping::Heuristic => json!(false),
        Stopping::Exact => json!("never"),
    };
    let task = json!({
        "do": "generate", "threads": machine.threads, "folder": folder, "batches": batches, "limits": limits,
        "beam": search.beam, "length_penalty": search.length_penalty, "stopping": stopping, "pad": model.config().pad_token_id,
    });
    let peer = Peer::start(&context.args.python, machine.device, &task);
    let ratio = peer.map(|mut peer| {
        tch::set_num_threads(1);
        let ours = || timed(|| translate(&search, &model, &batches, machine.threads));
        context.ratio(ours, || peer.seconds())
    });
    let (beam, sentences) = (search.beam, sources.len());
    let name = format!("beam {beam} over {sentences} sentences of {}, beside generate", description.name());
    row(Row { name, ratio, wanted: 3.0 });
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
