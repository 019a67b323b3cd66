//! Classification of texts under many head sets.
use core_masking::{Classifier, PrefixCache};
use stats::Cells;
use tch::no_grad;

use super::inputs::{Texts, outcomes};
use crate::error::Error;
use crate::evaluation::{BySet, Request, Scorer};
use crate::models::Models;

impl Scorer for &Texts {
    type Model = Classifier;
    type Segment = Cells;

    fn score(
        &self,
        models: &Models<Classifier>,
        request: &Request<'_>,
        left: Option<PrefixCache>,
    ) -> Result<(BySet<Cells>, PrefixCache), Error> {
        let model = models.quickest();
        let variants = model.variants(request.sets, request.rescale)?.replaced_by(request.replacement);
        let batch = self.read.batch(model, request.rows)?;
        let (logits, prefix) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let found = logits.iter().map(|logits| outcomes(logits, self, request.rows));
        Ok((found.collect::<Result<_, _>>()?, prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::Answer;
    use super::super::memory;
    use super::super::reader::Read;
    use super::*;
    use crate::evaluation::{Batches, Masks, Plan, Purpose, Replace, no_replacement};
    use crate::scored::Scored;
    use core_masking::{ClassifierConfig, GatedModel, HeadSet, ModelDropout};
    use corpus::classifier_tokenizer::Encoded;
    use stats::Cell;
    use tch::{Device, Kind};
    use training::{Machine, Memory, Precision, Progress};

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// A model with 3 layers of 4 heads.
    fn model(initializer_range: f64, kind: Kind) -> Classifier {
        let json = serde_json::json!({
            "model_type": "bert", "vocab_size": 23, "hidden_size": 20, "num_hidden_layers": 3,
            "num_attention_heads": 4, "intermediate_size": 14, "hidden_act": "gelu",
            "max_position_embeddings": 13, "type_vocab_size": 2, "initializer_range": initializer_range,
        });
        let config: ClassifierConfig = serde_json::from_value(json).unwrap();
        Classifier::random(config, 3, (kind, Device::Cpu)).unwrap()
    }

    fn texts(count: u32) -> Texts {
        let encoded = (0..count).map(|text| {
            let ids =
                (0..3 + text % 9).map(|place| 1 + (text * 7 + place * place * (text % 31) + place) % 22);
            let ids: Vec<u32> = ids.collect();
            let segments = vec![0; ids.len()];
            Encoded { ids, segments }
        });
        Texts::new(Read::Texts(encoded.collect()), vec![Answer::One(Cell::Count(0)); count as usize])
    }

    /// Returns the predicted classes under one head set, evaluated separately.
    fn alone(model: &Classifier, texts: &Texts, set: &HeadSet, rescale: bool) -> Vec<Cells> {
        let scored = Scored::first("test".to_owned(), None, rescale);
        let gates = scored.gates(&GatedModel::layout(model), set, GatedModel::options(model)).unwrap();
        let rows: Vec<usize> = (0..texts.lengths().count()).collect();
        let logits = model.forward(&texts.read.batch(model, &rows).unwrap(), &gates, &ModelDropout::OFF);
        outcomes(&logits, texts, &rows).unwrap()
    }

    fn some_sets() -> Vec<HeadSet> {
        [&["self:1:1"][..], &["self:2:1", "self:3:2"], &["self:2:3"], &["self:3:2"], &["self:3:4"]]
            .into_iter()
            .map(set)
            .collect()
    }

    fn together(
        models: &Models<Classifier>,
        machine: &Machine,
        texts: &Texts,
        rescale: bool,
    ) -> Vec<Vec<Cells>> {
        let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
        let plan = Plan::new(machine, &need, &texts.lengths().collect::<Vec<_>>());
        let (sets, mut found) = (some_sets(), Vec::new());
        let each = |_: &mut Progress, index: usize, outcomes| {
            assert_eq!(index, found.len(), "in order");
            found.push(outcomes);
            Ok(())
        };
        let mut models = models.of_threads(plan.workers).unwrap();
        let masks = (&Masks { sets: &sets, rescale }, &no_replacement as &Replace<'_, _>);
        Batches::new(plan).run(&texts, &mut models, masks, true, each).unwrap();
        found
    }

    /// With any memory budget and any head sets, each text has the outcome that a separate evaluation of the head set gives.
    #[test]
    fn sharing_changes_no_outcome() {
        let texts = texts(40);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 70_000)] {
            let memory = Memory::ExcludingModel(memory);
            let machine = Machine { memory, ..crate::test_machine::machine() };
            let models = Models::new(model(0.6, Kind::Double), machine.precision).unwrap();
            let found = together(&models, &machine, &texts, rescale);
            for (set, found) in some_sets().iter().zip(&found) {
                assert_eq!(alone(&models.exact, &texts, set, rescale), *found);
            }
            assert_ne!(found[0], found[1], "the sets must differ for the test to mean something");
        }
    }

    /// Of 4,500 decisions bf16 changes fewer than one in twenty.
    #[test]
    fn bf16_decides_nearly_as_single_precision() {
        let (texts, precision) = (texts(900), Precision::Bf16);
        let machine = Machine { precision, ..crate::test_machine::machine() };
        let models = Models::new(model(0.3, Kind::Float), precision).unwrap();
        let found = together(&models, &machine, &texts, false);
        let expected =
            some_sets().iter().flat_map(|set| alone(&models.exact, &texts, set, false)).collect::<Vec<_>>();
        let changed =
            found.concat().iter().zip(&expected).filter(|(found, expected)| found != expected).count();
        assert!((1..expected.len() / 20).contains(&changed), "{changed} of {}", expected.len());
    }
}
