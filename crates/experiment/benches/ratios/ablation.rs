//! Masking each head in turn with mean and resample ablation, compared with zero ablation, as an experiment evaluates them. The ratio is
//! the duration of a sweep relative to zero ablation. The warm-up caches the means; resampled texts are read in each sweep.
use std::path::Path;

use core_masking::HeadSet;
use subject::{Ablation, Description, Sample, Scored};
use training::Machine;

use crate::{Context, Row, timed};

/// Numbers of segments to score, and of segments from which replacements are taken.
const SEGMENTS: usize = 100;
const OTHERS: usize = 500;

pub fn measure(context: &Context, row: &mut dyn FnMut(Row)) {
    let machine = Machine { quiet: true, ..context.machine.clone() };
    for path in [&context.args.language_model, &context.args.classifier, &context.args.translator] {
        let description = Description::read(path).unwrap();
        let subject = description.open(&machine, Path::new("results")).unwrap();
        let split = description.split(None, &machine).unwrap();
        let of = Sample { split: description.estimate_split().to_owned(), size: OTHERS, seed: 1 };
        let heads = subject.layout().heads().into_iter().map(|id| HeadSet::from_iter([id]));
        let sets: Vec<HeadSet> = std::iter::once(HeadSet::none()).chain(heads).collect();
        let sweep = |ablation: &Ablation| {
            let scored = Scored::first(split.clone(), Some(SEGMENTS), false).under(ablation.clone());
            timed(|| subject.evaluate(&scored, &sets, &mut |_, _| Ok(())).unwrap())
        };
        let kinds = [(Ablation::Mean(of.clone()), 1.15), (Ablation::Resample { of, draw: 1 }, 1.3)];
        let mut others: Vec<Box<dyn FnMut() -> f64 + '_>> = Vec::new();
        for (kind, _) in &kinds {
            others.push(Box::new(|| sweep(kind)));
        }
        let ratios = context.ratios(|| sweep(&Ablation::Zero), &mut others);
        for ((kind, wanted), ratio) in kinds.iter().zip(ratios) {
            let name = format!(
                "time for all heads of {} under {}, relative to zeros: at most",
                description.name(),
                kind.name()
            );
            row(Row { name, ratio: Ok(ratio), wanted: *wanted });
        }
    }
}
