//! A translator at work, to be timed.
use core_masking::Gates;
use corpus::batches::longest_first_rows;

use super::TranslationSubject;
use crate::Error;
use crate::subject::Pass;

/// Batches of sentences, with the gates of the plain model.
pub(super) struct TranslationPass<'a> {
    subject: &'a TranslationSubject,
    open: Gates,
    sources: Vec<Vec<u32>>,
    batches: Vec<Vec<usize>>,
}

impl<'a> TranslationPass<'a> {
    pub(super) fn new(subject: &'a TranslationSubject, sources: Vec<Vec<u32>>, batch_size: usize) -> Self {
        let model = &subject.model;
        Self {
            subject,
            open: Gates::open(&model.layout(), model.options()),
            batches: longest_first_rows(sources.iter().map(Vec::len), batch_size),
            sources,
        }
    }
}

impl Pass for TranslationPass<'_> {
    fn segments(&self) -> usize {
        self.sources.len()
    }

    fn run(&self) -> Result<u64, Error> {
        tch::set_num_threads(self.subject.machine.threads as i32);
        let (model, search) = (&self.subject.model, &self.subject.search);
        let mut multiply_adds = 0;
        for batch in &self.batches {
            let sources: Vec<&[u32]> = batch.iter().map(|&index| self.sources[index].as_slice()).collect();
            let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0) as u64;
            for translation in search.translate(model, &sources, &self.open)? {
                let steps = translation.steps as u64;
                multiply_adds += model.multiply_adds(longest, steps, search.beam as u64);
            }
        }
        Ok(multiply_adds)
    }
}
