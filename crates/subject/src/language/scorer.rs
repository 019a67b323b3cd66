//! Texts that are predicted under many head sets.
use std::ops::Range;

use core_masking::{HeadSet, LanguageModel, Replacement, Trunk, to_vec};
use corpus::splits::language::ChoiceRule;
use tch::{Kind, Tensor, no_grad};

use super::rows::{Rows, SegmentsOf};
use crate::error::Error;
use crate::evaluation::{BySet, Plan, Request, Scorer, by_lowest_layer};
use crate::first_order::log_odds;
use crate::models::{Models, Pair, SecondLook};
use crate::subject::Scored;

/// A split that is predicted.
pub(crate) struct Predictions<'a> {
    rows: &'a Rows,
    /// At decisions.
    second_look: Option<SecondLook>,
}

/// Result of a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found {
    /// Of a row of a document its nats, summed over its predictions; of a question the log-odds of the right choice.
    Value(f64),
    /// Of a question: the place of the choice that the model finds most probable.
    Choice(usize),
}

impl Found {
    /// Nats of a row of a document, or log-odds of a question.
    pub(super) fn value(self) -> f64 {
        match self {
            Self::Value(value) => value,
            Self::Choice(_) => unreachable!("a decision has no value"),
        }
    }

    /// The choice at a question.
    pub(super) fn choice(self) -> usize {
        match self {
            Self::Choice(choice) => choice,
            Self::Value(_) => unreachable!("a value is not a decision"),
        }
    }
}

impl<'a> Predictions<'a> {
    /// # Errors
    /// If a number of nats is NaN or infinite.
    pub(super) fn new(
        models: &Models<LanguageModel>,
        plan: &Plan,
        rows: &'a Rows,
        scored: &Scored,
    ) -> Result<Self, Error> {
        if !matches!(rows.segments, SegmentsOf::Questions { rule: ChoiceRule::Acc | ChoiceRule::AccNorm, .. })
        {
            return Ok(Self { rows, second_look: None });
        }
        let error = |models: &Pair<'_, LanguageModel>, units: &[usize]| {
            let scores = |model| scores(rows, model, units, (&HeadSet::none(), false), None);
            let gaps = scores(models.quick)?.into_iter().zip(scores(models.exact)?);
            Ok(gaps.map(|(quick, exact)| largest_gap(&quick, &exact)).fold(0.0, f64::max))
        };
        let second_look = models.second_look((plan, scored), rows.units(), error)?;
        Ok(Self { rows, second_look })
    }

    /// The choice of each question under each set, close ones by the exact model, set by set: what one set tells of the
    /// quick model's error must not change what is found under another, which a resumed run may not have.
    ///
    /// `nats`: of the quick model, of each row under each set
    fn choose(
        &self,
        exact: &LanguageModel,
        request: &Request<'_>,
        nats: &[Vec<f64>],
    ) -> Result<Vec<Vec<usize>>, Error> {
        let questions = request.rows;
        let under_set = |(set, nats): (&HeadSet, &Vec<f64>)| {
            let quick = by_question(self.rows, questions, nats);
            let decisions: Vec<Decision> = quick.iter().map(|scores| Decision::of(scores)).collect();
            let mut chosen: Vec<usize> = decisions.iter().map(|decision| decision.choice).collect();
            let Some(look) = &self.second_look else { return Ok(chosen) };
            let leads: Vec<f64> = decisions.iter().map(|decision| decision.lead).collect();
            look.take(&leads, |close| {
                let again: Vec<usize> = close.iter().map(|&place| questions[place]).collect();
                let places: Vec<i64> = close.iter().map(|&place| place as i64).collect();
                let places = Tensor::from_slice(&places);
                let replacement = request.replacement.map(|all| all.select(&places));
                let masked = (set, request.rescale);
                let exact = scores(self.rows, exact, &again, masked, replacement.as_ref())?;
                let mut largest = 0.0_f64;
                for (&place, exact) in close.iter().zip(exact) {
                    chosen[place] = Decision::of(&exact).choice;
                    largest = largest.max(largest_gap(&quick[place], &exact));
                }
                Ok(largest)
            })?;
            Ok(chosen)
        };
        request.sets.iter().zip(nats).map(under_set).collect()
    }
}

/// A model's decision on a question.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decision {
    /// The place of the best score; of equal ones the first.
    choice: usize,
    /// Difference to the next best score.
    lead: f64,
}

impl Decision {
    fn of(scores: &[f64]) -> Self {
        let mut choice = 0;
        for (place, &score) in scores.iter().enumerate() {
            if score > scores[choice] {
                choice = place;
            }
        }
        let leads = scores.iter().enumerate().filter(|&(place, _)| place != choice);
        let lead = leads.map(|(_, score)| scores[choice] - score).fold(f64::INFINITY, f64::min);
        Self { choice, lead }
    }
}

/// The largest error in a difference of two scores.
fn largest_gap(quick: &[f64], exact: &[f64]) -> f64 {
    let errors = || quick.iter().zip(exact).map(|(quick, exact)| quick - exact);
    errors().fold(f64::NEG_INFINITY, f64::max) - errors().fold(f64::INFINITY, f64::min)
}

/// The scores of the choices of these questions with the heads of a set masked.
pub(super) fn scores(
    rows: &Rows,
    model: &LanguageModel,
    questions: &[usize],
    (set, rescale): (&HeadSet, bool),
    replacement: Option<&Replacement>,
) -> Result<Vec<Vec<f64>>, Error> {
    let batch = rows.batch(model, &rows.of_units(questions))?;
    let replacement = replacement.map(|all| by_row(rows, questions, all));
    let variants = model.variants(std::slice::from_ref(set), rescale)?.replaced_by(replacement.as_ref());
    let (found, _) = no_grad(|| model.sweep(&batch, &variants, 1, None));
    Ok(by_question(rows, questions, &finite(&batch.by_row(&found[0].to_kind(Kind::Double)))?))
}

/// What replaces the contexts of each row of these units, of what does so for each unit.
fn by_row(rows: &Rows, units: &[usize], of_unit: &Replacement) -> Replacement {
    let of_row = units.iter().zip(0_i64..).flat_map(|(&unit, place)| rows.unit(unit).map(move |_| place));
    of_unit.select(&Tensor::from_slice(&of_row.collect::<Vec<_>>()))
}

/// The scores of the choices of these questions: log-probabilities, divided by what the rule says.
///
/// `nats`: of each of their rows
fn by_question(rows: &Rows, questions: &[usize], nats: &[f64]) -> Vec<Vec<f64>> {
    let mut nats = nats.iter();
    let scores = |&question: &usize| {
        rows.unit(question).zip(&mut nats).map(|(row, nats)| -nats / rows.length(row)).collect()
    };
    questions.iter().map(scores).collect()
}

fn finite(nats: &Tensor) -> Result<Vec<f64>, Error> {
    let nats = to_vec::<f64>(nats);
    if nats.iter().all(|nats| nats.is_finite()) { Ok(nats) } else { Err(Error::not_finite()) }
}

impl Scorer for Predictions<'_> {
    type Model = LanguageModel;
    type Segment = Found;

    const SHARES_LOWER_LAYERS: bool = true;

    fn groups(sets: &[HeadSet], _: usize) -> Vec<Range<usize>> {
        by_lowest_layer(sets)
    }

    /// Results of the units of a batch under each set.
    fn score(
        &self,
        models: &Models<LanguageModel>,
        request: &Request<'_>,
        left: Option<Trunk>,
    ) -> Result<(BySet<Found>, Trunk), Error> {
        let model = models.quickest();
        let batch = self.rows.batch(model, &self.rows.of_units(request.rows))?;
        let replacement = request.replacement.map(|all| by_row(self.rows, request.rows, all));
        let variants = model.variants(request.sets, request.rescale)?.replaced_by(replacement.as_ref());
        let (nats, trunk) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let nats = nats.iter().map(|nats| finite(&batch.by_row(&nats.to_kind(Kind::Double))));
        let nats = nats.collect::<Result<Vec<_>, _>>()?;
        let found = match &self.rows.segments {
            SegmentsOf::Documents { .. } => {
                nats.into_iter().map(|nats| nats.into_iter().map(Found::Value).collect()).collect()
            }
            SegmentsOf::Questions { answers, rule: ChoiceRule::LogOdds, .. } => {
                let of_set = |nats: Vec<f64>| {
                    let scores = by_question(self.rows, request.rows, &nats).into_iter().zip(request.rows);
                    scores.map(|(scores, &row)| Found::Value(log_odds(&scores, answers[row]))).collect()
                };
                nats.into_iter().map(of_set).collect()
            }
            SegmentsOf::Questions { .. } => {
                let chosen = self.choose(&models.exact, request, &nats)?.into_iter();
                chosen.map(|choices| choices.into_iter().map(Found::Choice).collect()).collect()
            }
        };
        Ok((found, trunk))
    }

    /// Report of the second look, if there is one.
    fn report(&self) -> Option<String> {
        self.second_look.as_ref().map(SecondLook::report)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Choosing;
    use super::*;
    use crate::evaluation::{Batches, Masks, Purpose, Replace, no_replacement};
    use crate::language::memory;
    use core_masking::{GatedModel, Gates, LanguageConfig, ModelConfig, ModelDropout};
    use corpus::choices::Choice;
    use corpus::language_tokenizer::LanguageTokenizer;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tch::Device;
    use training::{Machine, Memory, Precision, Progress};

    #[test]
    fn a_choice_leads_by_its_distance_to_the_next() {
        assert_eq!(Decision::of(&[-3.0, -1.0, -1.5]), Decision { choice: 1, lead: 0.5 });
        assert_eq!(Decision::of(&[-2.0, -2.0]), Decision { choice: 0, lead: 0.0 });
    }

    /// Errors of 0.5, -0.25 and 0.
    #[test]
    fn errors_of_differences_count() {
        assert_eq!(largest_gap(&[1.5, 2.75, 4.0], &[1.0, 3.0, 4.0]), 0.75);
    }

    /// 3 layers of 4 heads that share 2 keys and values.
    fn model() -> LanguageModel {
        let json = serde_json::json!({
            "model_type": "llama", "vocab_size": 9, "hidden_size": 16, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 14, "hidden_act": "silu",
            "max_position_embeddings": 13, "rms_norm_eps": 1e-5, "initializer_range": 0.3,
        });
        let config: LanguageConfig = serde_json::from_value(json).unwrap();
        LanguageModel::random(config, 3, (Kind::Float, Device::Cpu)).unwrap()
    }

    fn questions(count: usize, rule: ChoiceRule) -> Rows {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut text = || -> String {
            let letters = (0..rng.random_range(2..6)).map(|_| b"abcd"[rng.random_range(0..4)] as char);
            letters.collect()
        };
        let questions: Vec<Choice> = (0..count)
            .map(|question| Choice {
                context: text(),
                choices: ["a", "b", "c"][..2 + question % 2]
                    .iter()
                    .map(|first| format!("{first}{}", text()))
                    .collect(),
                answer: 0,
                group: None,
            })
            .collect();
        let tokenizer = LanguageTokenizer::characters(["ab cd"].into_iter());
        let choosing = Choosing { rule, context_bos: None, positions: 13 };
        Rows::of_choices(&tokenizer, &questions, choosing, "test").unwrap()
    }

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// With p = 1 / (1 + exp(-log-odds)), -log p is the cross-entropy of the choices, which gradients are taken of.
    #[test]
    fn log_odds_are_those_of_the_loss() {
        let rows = questions(40, ChoiceRule::LogOdds);
        let model = model();
        let sets = [set(&[]), set(&["self:1:1", "self:3:2"])];
        let machine = crate::test_machine::machine();
        let models = Models::new(model, machine.precision).unwrap();
        let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
        let plan = Plan::new(&machine, &need, &rows.padded().collect::<Vec<_>>());
        let scored = Scored::first("test".to_owned(), None, false);
        let scorer = Predictions::new(&models, &plan, &rows, &scored).unwrap();
        let units: Vec<usize> = (0..40).collect();
        let each = |_: &mut Progress, index: usize, found: Vec<Found>| {
            let model = &models.exact;
            let layout = model.config().layout();
            let gates = Gates::masking(&layout, std::slice::from_ref(&sets[index]), model.options()).unwrap();
            let examples = rows.examples(model, &units).unwrap();
            let losses = no_grad(|| model.losses(&examples, &gates, &ModelDropout::OFF));
            for (found, loss) in found.into_iter().zip(to_vec::<f64>(&losses.to_kind(Kind::Double))) {
                let expected = (-found.value()).exp().ln_1p();
                assert!((loss - expected).abs() < 1e-5, "{found:?}: {loss}, {expected}");
            }
            Ok(())
        };
        let mut threads = models.of_threads(plan.workers).unwrap();
        let masks = (&Masks { sets: &sets, rescale: false }, &no_replacement as &Replace<'_, _>);
        Batches::new(plan).run(&scorer, &mut threads, masks, true, each).unwrap();
    }

    /// Choices that bf16 alone would change are those of single precision, since only close ones are computed twice.
    #[test]
    fn a_second_look_gives_the_choices_of_single_precision() {
        let rows = questions(600, ChoiceRule::Acc);
        let sets =
            [set(&["self:1:1"]), set(&["self:2:1", "self:3:2"]), set(&["self:3:2"]), set(&["self:3:4"])];
        for (rescale, memory) in [(false, 1 << 30), (true, 1 << 30), (false, 202_000_000)] {
            let machine = Machine {
                memory: Memory::BesideModel(memory),
                precision: Precision::Bf16,
                ..crate::test_machine::machine()
            };
            let models = Models::new(model(), machine.precision).unwrap();
            let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
            let plan = Plan::new(&machine, &need, &rows.padded().collect::<Vec<_>>());
            let scored = Scored::first("test".to_owned(), None, rescale);
            let scorer = Predictions::new(&models, &plan, &rows, &scored).unwrap();
            let mut changed = 0;
            let each = |_: &mut Progress, index: usize, found: Vec<Found>| {
                let all: Vec<usize> = (0..rows.units()).collect();
                let choices = |model| -> Vec<Found> {
                    let scores = scores(&rows, model, &all, (&sets[index], rescale), None).unwrap();
                    scores.iter().map(|scores| Found::Choice(Decision::of(scores).choice)).collect()
                };
                let (exact, quick) = (choices(&models.exact), choices(models.quick.as_ref().unwrap()));
                changed += quick.iter().zip(&exact).filter(|(quick, exact)| quick != exact).count();
                assert_eq!(found, exact, "{}, rescaled: {rescale}", sets[index]);
                Ok(())
            };
            let mut threads = models.of_threads(plan.workers).unwrap();
            let masks = (&Masks { sets: &sets, rescale }, &no_replacement as &Replace<'_, _>);
            Batches::new(plan).run(&scorer, &mut threads, masks, true, each).unwrap();
            let again = scorer.second_look.unwrap().made_again();
            assert!(changed > 0, "bf16 must err for the test to mean something");
            assert!(
                again >= changed && again < sets.len() * 600 / 2,
                "{again} looked at again, {changed} changed"
            );
        }
    }
}
