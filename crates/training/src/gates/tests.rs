use super::*;
use core_masking::{Attention, LayerShape, to_vec};

fn layout() -> HeadLayout {
    HeadLayout::new([(Attention::SelfAttention, LayerShape::plain(2, 2, 6))])
}

/// Four heads.
fn plan(penalty: Penalty, start: GateStart) -> GateTraining {
    GateTraining {
        heads: layout().heads(),
        closing: Closing::Concrete { start, multiplier_rate: 0.02, penalty },
        learning_rate: 0.1,
        seed: 3,
    }
}

fn started(penalty: Penalty) -> TrainedGates {
    TrainedGates::start(&plan(penalty, GateStart::Open), |_| 2, Device::Cpu)
}

/// From 4 to 2 heads in the first 5 of 10 steps: 0.4 per step.
#[test]
fn the_target_falls_in_the_first_half_of_the_steps() {
    let mut gates = started(Penalty::Heads(2));
    for (step, expected) in [(1, 3.6), (3, 2.8), (5, 2.0), (6, 2.0), (10, 2.0)] {
        gates.begin_step(step, 10);
        assert!((gates.target - expected).abs() < 1e-12, "step {step}: {}", gates.target);
    }
}

/// 4 gates with odds of e² 11^0.33 and a target of 2: d = (4 p - 2) / 4. The first step gives μ = 0.02 d, the second twice that; the loss
/// is μ d + 10 d².
#[test]
fn the_multiplier_rises_while_too_many_gates_are_open() {
    let mut gates = started(Penalty::Heads(2));
    let odds = 2_f64.exp() * 11_f64.powf(0.33);
    let excess = (4.0 * odds / (1.0 + odds) - 2.0) / 4.0;
    for step in [1.0, 2.0] {
        gates.begin_step(10, 10);
        assert!((gates.multiplier - 0.02 * step * excess).abs() < 1e-6, "{}", gates.multiplier);
    }
    let expected = 0.04 * excess * excess + 10.0 * excess * excess;
    assert!((gates.penalty().unwrap().double_value(&[]) - expected).abs() < 1e-5);
    assert_eq!(gates.test_penalty(), 0.0);
}

/// p = 1 / (1 + exp(-log_alpha - 0.33 ln 11)) has the derivative p (1 - p) in `log_alpha`, and d = (Σ p - 1) / 4. The derivative of
/// μ d + 10 d² in each `log_alpha` is (μ + 20 d) p (1 - p) / 4.
#[test]
fn each_gate_has_its_own_gradient_of_the_penalty() {
    let mut gates = started(Penalty::Heads(1));
    let log_alpha = [1.5, -0.5, 0.25, -2.0];
    tch::no_grad(|| gates.gates.log_alpha().shallow_clone().copy_(&Tensor::from_slice(&log_alpha)));
    gates.begin_step(10, 10);
    gates.penalty().unwrap().backward();
    let open = log_alpha.map(|alpha| 1.0 / (1.0 + (-alpha - 0.33 * 11_f64.ln()).exp()));
    let excess = (open.iter().sum::<f64>() - 1.0) / 4.0;
    let slopes = open.map(|open| (gates.multiplier + 20.0 * excess) * open * (1.0 - open) / 4.0);
    let gap = (gates.gates.log_alpha().grad() - Tensor::from_slice(&slopes)).abs().max().double_value(&[]);
    assert!(gap < 1e-6, "{gap:e}");
}

/// λ = 1/4 for each of 4 gates; their odds give the expected number of open gates.
#[test]
fn each_open_gate_costs_a_penalty() {
    let gates = started(Penalty::Lambda(0.25));
    let odds = 2_f64.exp() * 11_f64.powf(0.33);
    assert!((gates.penalty().unwrap().double_value(&[]) - odds / (1.0 + odds)).abs() < 1e-6);
    assert_eq!((gates.test_penalty(), gates.closed().len()), (1.0, 0));
}

#[test]
fn threads_sample_the_same_gates_and_steps_different_ones() {
    let mut gates = started(Penalty::Lambda(0.1));
    let mut shared = gates.share();
    let mut drawn = Vec::new();
    for step in [1, 2] {
        let of_step = [&mut gates, &mut shared].map(|gates| {
            gates.begin_step(step, 10);
            to_vec::<f64>(&gates.noise)
        });
        assert_eq!(of_step[0], of_step[1]);
        drawn.extend(of_step);
    }
    assert_ne!(drawn[0], drawn[2]);
    let open = gates.sample(&layout()).unwrap().stacked();
    assert_eq!(open[&Attention::SelfAttention].size(), [2, 1, 2]);
}

/// In the last step exactly 3 of 4 gates are open, sampled or straight through, in single precision; the loss has no penalty.
#[test]
fn a_fixed_number_of_gates_is_sampled_without_a_penalty() {
    for straight_through in [false, true] {
        let closing = Closing::Subset { open: 3, straight_through };
        let plan = GateTraining { closing, ..plan(Penalty::Lambda(0.0), GateStart::Open) };
        let mut gates = TrainedGates::start(&plan, |_| 2, Device::Cpu);
        gates.begin_step(10, 10);
        let drawn = gates.sample(&layout()).unwrap().stacked();
        let mut values: Vec<f64> = to_vec(&drawn[&Attention::SelfAttention].flatten(0, -1));
        values.sort_by(f64::total_cmp);
        assert_eq!(values, [0.0, 1.0, 1.0, 1.0]);
        assert!(gates.penalty().is_none() && gates.test_penalty() == 0.0 && gates.closed().len() == 1);
    }
}

#[test]
fn saved_gates_resume_with_their_history() {
    let folder = tempfile::tempdir().unwrap();
    let mut gates = started(Penalty::Heads(2));
    gates.begin_epoch();
    let _ = tch::no_grad(|| gates.gates.log_alpha().shallow_clone().g_sub_scalar_(0.5));
    gates.multiplier = 0.25;
    gates.save(folder.path()).unwrap();

    let plan = plan(Penalty::Heads(2), GateStart::Open);
    let mut loaded = TrainedGates::load(&plan, folder.path(), Device::Cpu).unwrap();
    assert_eq!(loaded.multiplier, 0.25);
    loaded.begin_epoch();
    loaded.save(folder.path()).unwrap();
    let history = gate_history(folder.path(), &plan.heads).unwrap();
    let at = history.iter().map(|gates| to_vec::<f64>(gates.log_alpha())[0]);
    assert_eq!(at.collect::<Vec<_>>(), [2.0, 1.5, 1.5]);
    let refused = gate_history(folder.path(), &plan.heads[1..]).unwrap_err().to_string();
    assert!(refused.contains("gates.history"), "{refused}");
}
