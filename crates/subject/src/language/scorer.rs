//! Language-model scoring under many head sets.
use core_masking::{HeadSet, LanguageModel, PrefixCache, Replacement, to_vec};
use corpus::splits::language::ChoiceRule;
use tch::{Kind, Tensor, no_grad};

use super::rows::{Rows, SegmentsOf};
use crate::error::Error;
use crate::evaluation::{BySet, Request, Scorer};
use crate::first_order::log_odds;
use crate::models::Models;

/// Result of a row of a document or of a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum UnitResult {
    /// Nats of a row, summed over its predictions; of a question the log-odds of the right choice.
    Value(f64),
    /// Index of the most probable choice; for a single choice, 0 if greedy decoding produces it.
    Choice(usize),
}

impl UnitResult {
    pub(super) fn value(self) -> f64 {
        if let Self::Value(value) = self { value } else { unreachable!("a choice has no value") }
    }

    pub(super) fn choice(self) -> usize {
        if let Self::Choice(choice) = self { choice } else { unreachable!("a value is not a choice") }
    }
}

/// Returns the index of the maximum score; of equal ones the first.
fn best(scores: &[f64]) -> usize {
    let mut best = 0;
    for (place, &score) in scores.iter().enumerate() {
        if score > scores[best] {
            best = place;
        }
    }
    best
}

/// Returns the full model's scores of the choices of these questions.
pub(super) fn scores(
    model: &LanguageModel,
    rows: &Rows,
    questions: &[usize],
) -> Result<Vec<Vec<f64>>, Error> {
    let batch = rows.batch(model, &rows.of_units(questions))?;
    let full = model.variants(&[HeadSet::none()], false)?;
    let (found, _) = no_grad(|| model.sweep(&batch, &full, 1, None));
    Ok(by_question(rows, questions, &finite(&batch.by_row(&found[0].to_kind(Kind::Double)))?))
}

/// Repeats the replacements of each unit for all its rows.
fn by_row(rows: &Rows, units: &[usize], of_unit: &Replacement) -> Replacement {
    let of_row = units.iter().zip(0_i64..).flat_map(|(&unit, place)| rows.unit(unit).map(move |_| place));
    of_unit.select(&Tensor::from_slice(&of_row.collect::<Vec<_>>()))
}

/// Returns the scores of the choices of these questions: log-probabilities, divided as the rule requires.
///
/// `nats`: of each row of the questions
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

impl Scorer for &Rows {
    type Model = LanguageModel;
    type Segment = UnitResult;

    fn score(
        &self,
        models: &Models<LanguageModel>,
        request: &Request<'_>,
        left: Option<PrefixCache>,
    ) -> Result<(BySet<UnitResult>, PrefixCache), Error> {
        let model = models.quickest();
        let mut batch = self.batch(model, &self.of_units(request.rows))?;
        batch.shortfalls = self.has_targets();
        let replacement = request.replacement.map(|all| by_row(self, request.rows, all));
        let variants = model.variants(request.sets, request.rescale)?.replaced_by(replacement.as_ref());
        let (nats, prefix) = no_grad(|| model.sweep(&batch, &variants, request.sets_per_batch, left));
        let nats = nats.iter().map(|nats| finite(&batch.by_row(&nats.to_kind(Kind::Double))));
        let nats = nats.collect::<Result<Vec<_>, _>>()?;
        let of_set = |nats: Vec<f64>| -> Vec<UnitResult> {
            let scores = || by_question(self, request.rows, &nats).into_iter().zip(request.rows);
            match &self.segments {
                SegmentsOf::Documents { .. } => nats.into_iter().map(UnitResult::Value).collect(),
                SegmentsOf::Questions { answers, rule: ChoiceRule::LogOdds, .. } => scores()
                    .map(|(scores, &row)| UnitResult::Value(log_odds(&scores, answers[row])))
                    .collect(),
                SegmentsOf::Questions { .. } if batch.shortfalls => {
                    let choice = |shortfall: f64| UnitResult::Choice(usize::from(shortfall > 0.0));
                    nats.into_iter().map(choice).collect()
                }
                SegmentsOf::Questions { .. } => {
                    scores().map(|(scores, _)| UnitResult::Choice(best(&scores))).collect()
                }
            }
        };
        Ok((nats.into_iter().map(of_set).collect(), prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Choosing;
    use super::*;
    use crate::evaluation::{Batches, Masks, Plan, Purpose, Replace, no_replacement};
    use crate::language::memory;
    use crate::scored::Scored;
    use core_masking::{GatedModel, Gates, LanguageConfig, ModelConfig, ModelDropout};
    use corpus::choices::Choice;
    use corpus::language_tokenizer::LanguageTokenizer;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use tch::Device;
    use training::{Machine, Memory, Precision, Progress};

    #[test]
    fn of_equal_scores_the_first_is_chosen() {
        assert_eq!((best(&[-3.0, -1.0, -1.5]), best(&[-2.0, -1.0, -1.0])), (1, 1));
    }

    /// 3 layers of 4 query heads and 2 key-value heads.
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
                ..Choice::default()
            })
            .collect();
        let tokenizer = LanguageTokenizer::characters(["ab cd"].into_iter());
        let choosing = Choosing { rule, context_bos: None, positions: 13 };
        Rows::of_choices(&tokenizer, &questions, choosing, "test").unwrap()
    }

    fn set(names: &[&str]) -> HeadSet {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    /// With p = 1 / (1 + exp(-log-odds)), -log p is the cross-entropy of the choices, which is differentiated.
    #[test]
    fn log_odds_are_those_of_the_loss() {
        let rows = questions(40, ChoiceRule::LogOdds);
        let model = model();
        let sets = [set(&[]), set(&["self:1:1", "self:3:2"])];
        let machine = crate::test_machine::machine();
        let models = Models::new(model, machine.precision).unwrap();
        let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
        let plan = Plan::new(&machine, &need, &rows.padded().collect::<Vec<_>>());
        let units: Vec<usize> = (0..40).collect();
        let each = |_: &mut Progress, index: usize, found: Vec<UnitResult>| {
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
        Batches::new(plan).run(&&rows, &mut threads, masks, true, each).unwrap();
    }

    /// Returns the model's choices under one head set, evaluated separately.
    fn alone(model: &LanguageModel, rows: &Rows, set: &HeadSet, rescale: bool) -> Vec<UnitResult> {
        let scored = Scored::first("test".to_owned(), None, rescale);
        let gates = scored.gates(&model.layout(), set, model.options()).unwrap();
        let all: Vec<usize> = (0..rows.units()).collect();
        let batch = rows.batch(model, &rows.of_units(&all)).unwrap();
        let nats = model.prediction_nats(&batch, &gates, &ModelDropout::OFF);
        let nats = finite(&batch.by_row(&nats.to_kind(Kind::Double))).unwrap();
        by_question(rows, &all, &nats).iter().map(|scores| UnitResult::Choice(best(scores))).collect()
    }

    /// With any memory budget and any head sets, each question gets the choice that a separate evaluation of the head set gives. Of 2,400
    /// choices bf16 changes fewer than one in ten.
    #[test]
    fn sharing_changes_no_choice_and_bf16_few() {
        let rows = questions(600, ChoiceRule::Acc);
        let sets =
            [set(&["self:1:1"]), set(&["self:2:1", "self:3:2"]), set(&["self:3:2"]), set(&["self:3:4"])];
        for (rescale, memory, precision) in [
            (false, 1 << 30, Precision::F32),
            (true, 1 << 30, Precision::F32),
            (false, 202_000_000, Precision::F32),
            (false, 1 << 30, Precision::Bf16),
        ] {
            let memory = Memory::ExcludingModel(memory);
            let machine = Machine { memory, precision, ..crate::test_machine::machine() };
            let models = Models::new(model(), precision).unwrap();
            let need = memory::need(models.exact.config(), models.sizes(), Purpose::Scoring);
            let plan = Plan::new(&machine, &need, &rows.padded().collect::<Vec<_>>());
            let mut changed = 0;
            let each = |_: &mut Progress, index: usize, found: Vec<UnitResult>| {
                let expected = alone(&models.exact, &rows, &sets[index], rescale);
                changed += found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
                Ok(())
            };
            let mut threads = models.of_threads(plan.workers).unwrap();
            let masks = (&Masks { sets: &sets, rescale }, &no_replacement as &Replace<'_, _>);
            Batches::new(plan).run(&&rows, &mut threads, masks, true, each).unwrap();
            let allowed = if precision == Precision::Bf16 { 1..240 } else { 0..1 };
            assert!(allowed.contains(&changed), "{precision:?}, rescaled: {rescale}: {changed} changed");
        }
    }
}
