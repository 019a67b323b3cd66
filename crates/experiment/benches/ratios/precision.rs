//! Masking each head in turn in bf16, compared with f32.
use std::path::Path;

use core_masking::HeadSet;
use subject::{Description, Scored, Subject};
use training::{Machine, Precision};

use crate::{Context, Row, timed};

/// Texts that are classified.
const TEXTS: usize = 150;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let description = Description::read(&context.args.classifier).unwrap();
    let open = |precision| {
        let machine = Machine { precision, quiet: true, ..context.machine.clone() };
        description.open(&machine, Path::new("results")).unwrap()
    };
    let (exact, quick) = (open(Precision::F32), open(Precision::Bf16));
    let split = description.split(None, &context.machine).unwrap();
    let scored = Scored::first(split, Some(TEXTS), false);
    let heads = exact.layout().heads().into_iter().map(|id| HeadSet::from_iter([id]));
    let sets: Vec<HeadSet> = std::iter::once(HeadSet::none()).chain(heads).collect();
    let sweep = |subject: &Subject| timed(|| subject.evaluate(&scored, &sets, &mut |_, _| Ok(())).unwrap());
    let ratio = context.ratio(|| sweep(&quick), || sweep(&exact));
    let name = format!("all heads of {} in bf16, compared with f32", description.name());
    row(Row { name, ratio: Ok(ratio), wanted: 1.6 });
}
