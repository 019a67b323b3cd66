//! Texts classified under many head sets.
use std::ops::Range;

use core_masking::{Classifier, GatedModel, HeadSet, Trunk, to_vec};
use stats::{Cell, Cells};
use tch::{Kind, Tensor, no_grad};

use super::texts::{Texts, predictions};
use crate::error::Error;
use crate::evaluation::{BySet, Plan, Request, Scorer, by_lowest_layer};
use crate::models::{Models, Pair, SecondLook};
use crate::subject::Scored;

/// A split that is classified.
pub(crate) struct Decisions<'a> {
    texts: &'a Texts,
    second_look: Option<SecondLook>,
}

impl<'a> Decisions<'a> {
    /// A model with one output decides nothing, so that nothing of it is close.
    ///
    /// # Errors
    /// If a logit is NaN or infinite.
    pub(super) fn new(
        models: &Models<Classifier>,
        plan: &Plan,
        texts: &'a Texts,
        scored: &Scored,
    ) -> Result<Self, Error> {
        if models.exact.config().has_one_output() {
            return Ok(Self { texts, second_look: None });
        }
        let error = |models: &Pair<'_, Classifier>, rows: &[usize]| {
            let logits = |model: &Classifier| -> Result<Tensor, Error> {
                let intact = model.variants(&[HeadSet::none()], false)?;
                let (logits, _) = model.sweep(&texts.batch(model, rows)?, &intact, 1, None);
                Ok(logits[0].to_kind(Kind::Float))
            };
            Ok(largest_gap(&logits(models.quick)?, &logits(models.exact)?))
        };
        let second_look = models.second_look((plan, scored), texts.len(), error)?;
        Ok(Self { texts, second_look })
    }

    /// Replaces the classes of close decisions by those of the exact model, set by set: what one set tells of the quick model's
    /// error must not change what is found under another, which a resumed run may not have.
    ///
    /// - `logits`: those of the quick model, `[batch, labels]` of each set
    /// - `found`: the class of each text under each set
    fn look_again(
        &self,
        exact: &Classifier,
        request: &Request<'_>,
        logits: &[Tensor],
        found: &mut [Vec<Cell>],
    ) -> Result<(), Error> {
        let Some(look) = &self.second_look else { return Ok(()) };
        let rows = request.rows;
        for ((set, logits), found) in request.sets.iter().zip(logits).zip(found) {
            let logits = logits.to_kind(Kind::Float); // [batch, labels]
            let (greatest, _) = logits.topk(2, -1, true, true);
            let leads = to_vec::<f64>(&(greatest.select(1, 0) - greatest.select(1, 1)));
            let variants = exact.variants(std::slice::from_ref(set), request.rescale)?;
            let variants = variants.replaced_by(request.replacement);
            look.take(&leads, |close| {
                let cells: Vec<(usize, usize)> = close.iter().map(|&text| (0, text)).collect();
                let exact = exact.sweep_cells(&self.texts.batch(exact, rows)?, &variants, &cells);
                for (&text, class) in close.iter().zip(predictions(&exact)?) {
                    found[text] = class;
                }
                let places: Vec<i64> = close.iter().map(|&text| text as i64).collect();
                let places = Tensor::from_slice(&places).to_device(logits.device());
                Ok(largest_gap(&logits.index_select(0, &places), &exact))
            })?;
        }
        Ok(())
    }
}

/// The largest error in a difference of two logits of a row; both `[.., labels]`.
fn largest_gap(quick: &Tensor, exact: &Tensor) -> f64 {
    let errors = quick - exact;
    (errors.amax([-1], false) - errors.amin([-1], false)).max().double_value(&[])
}

impl Scorer for Decisions<'_> {
    type Model = Classifier;
    type Segment = Cells;

    const SHARES_LOWER_LAYERS: bool = true;

    fn groups(sets: &[HeadSet], _: usize) -> Vec<Range<usize>> {
        by_lowest_layer(sets)
    }

    /// The models' answers to the texts of a batch under each set.
    fn score(
        &self,
        models: &Models<Classifier>,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Cells>, Trunk), Error> {
        let model = models.quickest();
        let variants = model.variants(request.sets, request.rescale)?.replaced_by(request.replacement);
        let batch = self.texts.batch(model, request.rows)?;
        let (logits, trunk) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let mut found = logits.iter().map(predictions).collect::<Result<Vec<_>, _>>()?;
        no_grad(|| self.look_again(&models.exact, request, &logits, &mut found))?;
        let outcome = |(&row, predicted): (&usize, Cell)| vec![self.texts.answers[row], predicted];
        let of_set = |predicted: Vec<Cell>| request.rows.iter().zip(predicted).map(outcome).collect();
        Ok((found.into_iter().map(of_set).collect(), trunk))
    }

    /// Report of the second look, if there is one.
    fn report(&self) -> Option<String> {
        self.second_look.as_ref().map(SecondLook::report)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory;
    use super::super::reader::Read;
    use super::super::texts::outcomes;
    use super::*;
    use crate::evaluation::{Batches, Masks, Purpose, Replace, no_replacement};
    use core_masking::{ClassifierConfig, ModelDropout};
    use corpus::classifier_tokenizer::Encoded;
    use tch::{Device, Kind};
    use training::{Machine, Memory, Progress};

    /// Errors of 0.5, -0.25 and 0: the greatest difference of two logits is off by 0.75.
    #[test]
    fn errors_of_differences_count() {
        let quick = Tensor::from_slice2(&[[1.0, 1.0, 1.0], [1.5, 2.75, 4.0]]);
        let exact = Tensor::from_slice2(&[[1.0, 1.0, 1.0], [1.0, 3.0, 4.0]]);
        assert!((largest_gap(&quick, &exact) - 0.75).abs() < 1e-12);
    }

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// 3 layers of 4 heads.
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
        Texts::new(Read::Texts(encoded.collect()), vec![Cell::Count(0); count as usize])
    }

    /// The model's classes under a set alone.
    fn alone(model: &Classifier, texts: &Texts, set: &HeadSet, rescale: bool) -> Vec<Cells> {
        let scored = Scored::first("test".to_owned(), None, rescale);
        let gates = scored.gates(&GatedModel::layout(model), set, GatedModel::options(model)).unwrap();
        let rows: Vec<usize> = (0..texts.len()).collect();
        let logits = model.forward(&texts.batch(model, &rows).unwrap(), &gates, &ModelDropout::OFF);
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
    ) -> (Vec<Vec<Cells>>, usize) {
        let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
        let plan = Plan::new(machine, &need, &texts.lengths().collect::<Vec<_>>());
        let scored = Scored::first("test".to_owned(), None, rescale);
        let scorer = Decisions::new(models, &plan, texts, &scored).unwrap();
        let (sets, mut found) = (some_sets(), Vec::new());
        let each = |_: &mut Progress, index: usize, outcomes| {
            assert_eq!(index, found.len(), "in order");
            found.push(outcomes);
            Ok(())
        };
        let mut models = models.of_threads(plan.workers).unwrap();
        let masks = (&Masks { sets: &sets, rescale }, &no_replacement as &Replace<'_, _>);
        Batches::new(plan).run(&scorer, &mut models, masks, true, each).unwrap();
        (found, scorer.second_look.map_or(0, |look| look.made_again()))
    }

    /// Whatever the memory and the sets, each text has the outcome that it has when its set is evaluated alone.
    #[test]
    fn sharing_changes_no_outcome() {
        let texts = texts(40);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 70_000)] {
            let memory = Memory::BesideModel(memory);
            let machine = Machine { memory, ..crate::test_machine::machine() };
            let models = Models::new(model(0.6, Kind::Double), machine.precision).unwrap();
            let (found, again) = together(&models, &machine, &texts, rescale);
            for (set, found) in some_sets().iter().zip(&found) {
                assert_eq!(alone(&models.exact, &texts, set, rescale), *found);
            }
            assert_ne!(found[0], found[1], "the sets must differ for the test to mean something");
            assert_eq!(again, 0);
        }
    }

    /// Classes that bf16 alone would change are those of single precision, since only these few are computed twice.
    #[test]
    fn a_second_look_gives_the_outcomes_of_single_precision() {
        let texts = texts(900);
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 100_000)] {
            let precision = training::Precision::Bf16;
            let memory = Memory::BesideModel(memory);
            let machine = Machine { memory, precision, ..crate::test_machine::machine() };
            let models = Models::new(model(0.3, Kind::Float), machine.precision).unwrap();
            let quick = models.quick.as_ref().unwrap();
            let (found, again) = together(&models, &machine, &texts, rescale);
            let mut changed = 0;
            for (set, found) in some_sets().iter().zip(&found) {
                let expected = alone(&models.exact, &texts, set, rescale);
                let differs = |(left, right): &(&Cells, &Cells)| left != right;
                changed += alone(quick, &texts, set, rescale).iter().zip(&expected).filter(differs).count();
                let wrong = found.iter().zip(&expected).filter(differs).count();
                assert_eq!(wrong, 0, "{set}, rescaled: {rescale}");
            }
            assert!(changed > 0, "bf16 must err for the test to mean something");
            assert!(again >= changed && again < 5 * 900 / 2, "{again} looked at again, {changed} changed");
        }
    }
}
