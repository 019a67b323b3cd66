//! A translator of opus-mt's size with random weights, as an experiment translates with it: default settings, on the first sentences of
//! NTREX, compared with `generate` of transformers on this folder and these sentences in batches of 16. Also compares its peak memory with
//! the memory limit.
use std::fs;
use std::path::Path;

use core_masking::HeadSet;
use serde_json::json;
use subject::{Description, Scored, Subject};
use tch::Device;
use training::{Machine, Memory};

use crate::peer::Peer;
use crate::{Context, Row, timed};

const SENTENCES: usize = 60;
const SOURCE: &str = "ntrex/newstest2019-src.eng.txt";
const TARGET: &str = "ntrex/newstest2019-ref.fra.txt";
const PIECES: &str = "crates/core-masking/tests/fixtures/tiny-marian";
/// Folder that is kept for later runs (300 MB).
const FOLDER: &str = "target/bench/opus-size";

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = Machine { quiet: true, ..context.machine.clone() };
    let found = prepare(context, &machine);
    let (ratio, room) = match found {
        Err(why) => (Err(why.clone()), Err(why)),
        Ok(mut peer) => {
            let subject = open(&machine);
            let scored = Scored::first("test".to_owned(), Some(SENTENCES), false);
            let base = [HeadSet::none()];
            let ours = || timed(|| subject.evaluate(&scored, &base, &mut |_, _| Ok(())).unwrap());
            let ratio = context.ratio(ours, || peer.seconds());
            let is_on_cpu = machine.device == Device::Cpu;
            let peak = if is_on_cpu { peak() } else { Err("measured on CPUs only".to_owned()) };
            (Ok(ratio), peak.map(|peak| bound(&machine) as f64 / peak as f64))
        }
    };
    let name = format!("{SENTENCES} sentences of NTREX by a translator of opus-mt's size, vs. generate");
    row(Row { name, ratio, wanted: 3.0 });
    row(Row { name: "  memory limit, relative to its peak".to_owned(), ratio: room, wanted: 1.0 });
}

/// Starts the other side, which makes the folder.
fn prepare(context: &Context, machine: &Machine) -> Result<Peer, String> {
    let path = machine.data.join(SOURCE);
    let text = fs::read_to_string(&path).map_err(|_| "get NTREX with `just fetch ntrex`".to_owned())?;
    let texts: Vec<&str> = text.lines().take(SENTENCES).collect();
    let task = json!({
        "do": "opus_size", "threads": machine.threads, "folder": FOLDER, "pieces": PIECES, "texts": texts, "rows": 16,
    });
    Peer::start(context, task)
}

fn open(machine: &Machine) -> Subject {
    let toml = format!(
        "description = \"opus-mt's size\"\n[data.splits]\ntest = {{ source = \"{SOURCE}\", target = \"{TARGET}\" }}\n\
         [checkpoint]\nfrom = \"{}\"\n",
        std::path::absolute(FOLDER).unwrap().display()
    );
    let path = Path::new(FOLDER).join("subject.toml");
    fs::write(&path, toml).unwrap();
    Description::read(&path).unwrap().open(machine, Path::new("results")).unwrap()
}

/// Returns the memory limit in bytes, including the model.
fn bound(machine: &Machine) -> u64 {
    match machine.memory {
        Memory::WithModel(bytes) => bytes,
        Memory::ExcludingModel(bytes) => {
            bytes + fs::metadata(Path::new(FOLDER).join("model.safetensors")).unwrap().len()
        }
    }
}

/// Returns the peak memory of this process in bytes, as Linux reports it.
fn peak() -> Result<u64, String> {
    let status =
        fs::read_to_string("/proc/self/status").map_err(|error| format!("/proc/self/status: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes * 1024).ok_or_else(|| "/proc/self/status has no VmHWM".to_owned())
}
