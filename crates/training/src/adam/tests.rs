use super::*;
use tch::Kind;

const PLAIN: AdamSettings = AdamSettings { betas: [0.9, 0.98], epsilon: 1e-9, weight_decay: 0.0 };

/// Adam with one learning rate for all weights.
fn one_rate(weights: &Weights, settings: &AdamSettings) -> Adam {
    Adam::laid_out(weights, settings, |_| None, false)
}

fn weights(values: &[f64]) -> Weights {
    let tensor = Tensor::from_slice(values).set_requires_grad(true);
    Weights::from_tensors([("w".to_owned(), tensor)])
}

/// Algorithm 1 by hand for one weight, gradients 1 and then 3, β = (0.9, 0.98), learning rate 1. After the first step both corrected
/// moments are 1: w = -1. Then the moments are 0.9 * 0.1 + 0.1 * 3 = 0.39 and 0.98 * 0.02 + 0.02 * 9 = 0.1996, the corrections 1 - 0.81 =
/// 0.19 and 1 - 0.9604 = 0.0396, and the step (0.39 / 0.19) / sqrt(0.1996 / 0.0396).
#[test]
fn two_different_gradients_are_averaged_with_their_own_rates() {
    let weights = weights(&[0.0]);
    let mut adam = one_rate(&weights, &PLAIN);
    adam.update(&[Tensor::from_slice(&[1.0])], 1.0, f64::INFINITY);
    adam.update(&[Tensor::from_slice(&[3.0])], 1.0, f64::INFINITY);
    let expected = -1.0 - (0.39 / 0.19) / (0.1996_f64 / 0.0396).sqrt();
    let gap = (weights.get("w").unwrap().double_value(&[0]) - expected).abs();
    assert!(gap < 1e-7, "{gap:e}");
}

/// |(3, 4)| = 5, so a maximum of 1 scales by a fifth: the first moment is 0.1 * 3/5 and 0.1 * 4/5.
#[test]
fn gradients_are_scaled_to_the_norm_only_when_longer() {
    for (clip_norm, expected) in [(1.0, [0.06, 0.08]), (6.0, [0.3, 0.4])] {
        let weights = weights(&[0.0, 0.0]);
        let mut adam = one_rate(&weights, &PLAIN);
        assert_eq!(adam.update(&[Tensor::from_slice(&[3.0, 4.0])], 1.0, clip_norm), 5.0);
        let gap = (&adam.parameters[0].first - Tensor::from_slice(&expected)).abs().max().double_value(&[]);
        assert!(gap < 1e-12, "{gap:e}");
    }
}

/// Zero gradients move nothing, so a step with rate 0.1 leaves 1 - 0.1 * 0.5 of a matrix, and all of a bias.
#[test]
fn matrices_decay_and_biases_do_not() {
    let tensor =
        |shape: &[i64]| Tensor::full(shape, 2.0, (Kind::Double, Device::Cpu)).set_requires_grad(true);
    let weights = Weights::from_tensors([("b".to_owned(), tensor(&[3])), ("w".to_owned(), tensor(&[2, 3]))]);
    let mut adam = one_rate(&weights, &AdamSettings { weight_decay: 0.5, ..PLAIN });
    let zeros: Vec<Tensor> = weights.iter().map(|(_, tensor)| tensor.zeros_like()).collect();
    adam.update(&zeros, 0.1, f64::INFINITY);
    assert_eq!(weights.get("b").unwrap().detach(), Tensor::full([3], 2.0, (Kind::Double, Device::Cpu)));
    let gap = (weights.get("w").unwrap() - 1.9).abs().max().double_value(&[]);
    assert!(gap < 1e-15, "{gap:e}");
}

/// The size is above a chunk and not a multiple of it. In the first step each element moves by the learning rate in the direction of the
/// sign, whatever its gradient.
#[test]
fn every_element_of_a_large_tensor_is_updated_once() {
    let size = 2 * CHUNK + 17;
    let weights = weights(&vec![0.0; size as usize]);
    let mut adam = one_rate(&weights, &PLAIN);
    let gradient = Tensor::arange(size, (Kind::Double, Device::Cpu)) + 1.0;
    adam.update(&[gradient], 0.1, f64::INFINITY);
    let gap = (weights.get("w").unwrap() + 0.1).abs().max().double_value(&[]);
    assert!(gap < 1e-9, "{gap:e}");
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let weights = weights(&[1.0, 2.0]);
    let mut adam = one_rate(&weights, &PLAIN);
    assert!(adam.update(&[Tensor::from_slice(&[f64::NAN, 1.0])], 1.0, 1.0).is_nan());
    assert_eq!(weights.get("w").unwrap(), Tensor::from_slice(&[1.0, 2.0]));
    assert_eq!(adam.steps(), 0);
}

#[test]
fn parts_add_up_to_the_gradient_of_the_whole() {
    let of = |factor: f64| Vec::from([[1.0, 2.0], [3.0, 4.0]].map(|row| Tensor::from_slice(&row) * factor));
    let mut total = None;
    add(&mut total, [of(1.0), of(10.0)]);
    assert_eq!(total.unwrap(), of(11.0));
}

/// The gradient (3, 4) of `w` is clipped to norm 1 whatever the gradient of `gates`: its first moment is 0.1 * (3/5, 4/5). `gates` moves by
/// its own rate in the direction of the sign, and does not decay.
#[test]
fn a_tensor_with_its_own_rate_is_neither_clipped_nor_decayed() {
    let options = (Kind::Double, Device::Cpu);
    let ones = || Tensor::ones([1, 2], options).set_requires_grad(true);
    let weights = Weights::from_tensors([("gates".to_owned(), ones()), ("w".to_owned(), ones())]);
    let settings = AdamSettings { weight_decay: 0.5, ..PLAIN };
    for is_flat in [false, true] {
        let own_rate = |name: &str| (name == "gates").then_some(0.25);
        let _ = no_grad(|| weights.get("gates").unwrap().fill_(1.0));
        let mut adam = Adam::laid_out(&weights, &settings, own_rate, is_flat);
        let gradients = [[100.0, -200.0], [3.0, 4.0]].map(|row| Tensor::from_slice2(&[row]));
        assert_eq!(adam.update(&gradients, 0.1, 1.0), 5.0);
        let gap = |tensor: &Tensor, expected: [f64; 2]| {
            (tensor - Tensor::from_slice2(&[expected])).abs().max().double_value(&[])
        };
        let found = [
            gap(&weights.get("gates").unwrap(), [0.75, 1.25]),
            gap(&adam.parameters[0].first, [10.0, -20.0]),
            gap(&adam.parameters[1].first, [0.06, 0.08]),
        ];
        assert!(found.iter().all(|&gap| gap < 1e-8), "{found:?}");
    }
}

/// With and without other weights, whose gradient is (3, 4).
#[test]
fn a_gradient_that_overflows_leaves_a_tensor_with_its_own_rate_unchanged() {
    for (others, is_flat) in [(&["w"][..], false), (&["w"], true), (&[], false)] {
        let tensor = || Tensor::from_slice(&[1.0, 2.0]).set_requires_grad(true);
        let names = ["gates"].iter().chain(others);
        let weights = Weights::from_tensors(names.map(|&name| (name.to_owned(), tensor())));
        let mut adam = Adam::laid_out(&weights, &PLAIN, |name| (name == "gates").then_some(0.25), is_flat);
        let gradients = [[f64::INFINITY, f64::NAN], [3.0, 4.0]].map(|row| Tensor::from_slice(&row));
        let norm = adam.update(&gradients[..=others.len()], 0.1, f64::INFINITY);
        assert_eq!((norm, adam.left_out(), adam.steps()), (5.0 * others.len() as f64, 1, 1));
        assert_eq!(weights.get("gates").unwrap(), tensor());
        let parameter = &adam.parameters[0];
        assert_eq!((&parameter.first + &parameter.second).abs().max().double_value(&[]), 0.0);
        assert!(others.iter().all(|name| weights.get(name).unwrap() != tensor()));
    }
}

/// Three steps with clipping and decay on a matrix and a bias, with a restart before the last.
#[test]
fn moments_in_one_tensor_act_like_those_of_each_parameter() {
    let trained = |is_flat| {
        let options = (Kind::Double, Device::Cpu);
        let tensor = |shape: &[i64]| Tensor::ones(shape, options).set_requires_grad(true);
        let weights =
            Weights::from_tensors([("b".to_owned(), tensor(&[3])), ("w".to_owned(), tensor(&[2, 3]))]);
        let settings = AdamSettings { weight_decay: 0.5, ..PLAIN };
        let own_rate = |_: &str| None;
        let mut adam = Adam::laid_out(&weights, &settings, own_rate, is_flat);
        for step in 1..=3 {
            if step == 3 {
                let state = adam.state().duplicate();
                adam = Adam::laid_out(&weights, &settings, own_rate, is_flat);
                adam.restore(&state, 2).unwrap();
            }
            let gradient = |shape: &[i64], size: i64| Tensor::arange(size, options).view(shape) * step;
            adam.update(&[gradient(&[3], 3), gradient(&[2, 3], 6)], 0.1, 5.0);
        }
        Tensor::cat(&weights.iter().map(|(_, value)| value.detach().flatten(0, -1)).collect::<Vec<_>>(), 0)
    };
    let (each, flat) = (trained(false), trained(true));
    let gap = (&each - flat).abs().max().double_value(&[]);
    assert!(gap < 1e-15 && (each - 1.0).abs().max().double_value(&[]) > 0.1, "{gap:e}");
}
