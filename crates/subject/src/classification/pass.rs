//! A classifier at work, to be timed.
use core_masking::bert::BertDropout;
use core_masking::{Gates, SegmentBatch};
use corpus::batches::longest_first_rows;
use tch::no_grad;

use super::ClassificationSubject;
use super::texts::Texts;
use crate::Error;
use crate::subject::Pass;

/// Batches of texts as tensors, with the gates of the plain model.
pub(super) struct ClassificationPass<'a> {
    subject: &'a ClassificationSubject,
    open: Gates,
    batches: Vec<SegmentBatch>,
}

impl<'a> ClassificationPass<'a> {
    pub(super) fn new(
        subject: &'a ClassificationSubject,
        texts: &Texts,
        batch_size: usize,
    ) -> Result<Self, Error> {
        let model = subject.models.quickest();
        let rows = longest_first_rows(texts.lengths(), batch_size).into_iter();
        Ok(Self {
            subject,
            open: Gates::open(&model.layout(), model.options()),
            batches: rows.map(|rows| texts.batch(model, &rows)).collect::<Result<_, _>>()?,
        })
    }
}

impl Pass for ClassificationPass<'_> {
    fn segments(&self) -> usize {
        self.batches.iter().map(|batch| batch.tokens.ids.size()[0] as usize).sum()
    }

    fn run(&self) -> Result<u64, Error> {
        tch::set_num_threads(self.subject.machine.threads as i32);
        let model = self.subject.models.quickest();
        let mut multiply_adds = 0;
        for batch in &self.batches {
            let logits = no_grad(|| model.forward(batch, &self.open, &BertDropout::OFF));
            // waits for a GPU
            if logits.isfinite().all().int64_value(&[]) == 0 {
                return Err(Error::NotFinite);
            }
            let size = batch.tokens.ids.size();
            multiply_adds += size[0] as u64 * model.multiply_adds(size[1] as u64);
        }
        Ok(multiply_adds)
    }
}
