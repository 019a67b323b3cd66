use super::*;
use crate::assert_close;
use proptest::collection::vec;
use proptest::prelude::*;

type Correlate = fn(&[f64], &[f64]) -> Result<f64, Error>;

const ALL: [Correlate; 3] =
    [|x, y| Ok(pearson(x, y)?.coefficient), |x, y| Ok(spearman(x, y)?.coefficient), kendall];

/// SciPy 1.17.1 on the sides 7 i mod 11 and ((5 i² + 3 i) mod 13) + floor((7 i mod 11) / 2), with many ties; `tests/golden.rs`
/// has data without ties.
#[test]
fn coefficients_and_p_values_equal_scipy() {
    let side = |value: fn(u32) -> u32| (0..40).map(|i| value(i).into()).collect::<Vec<f64>>();
    let (x, y) = (side(|i| 7 * i % 11), side(|i| (5 * i * i + 3 * i) % 13 + (7 * i % 11) / 2));
    let r = (0.487_932_961_828_737_2, 0.001_403_891_245_371_792_5);
    let rho = (0.526_119_165_309_724_4, 0.000_488_744_896_064_742_6);
    for (found, (coefficient, p_value)) in [(pearson(&x, &y), r), (spearman(&x, &y), rho)] {
        let found = found.unwrap();
        assert_close(found.coefficient, coefficient, 1e-12);
        assert_close(found.p_value, p_value, 1e-10);
    }
    assert_close(kendall(&x, &y).unwrap(), 0.391_753_410_041_080_7, 1e-12);
    let perfect = Ok(Correlation { coefficient: -1.0, p_value: 0.0 });
    assert_eq!(spearman(&[1.0, 2.0, 4.0], &[3.0, 2.0, 1.0]), perfect);
    let other = [7.0, -2.0, 5.0, -3.0];
    assert_eq!(spearman(&[-8.0, 0.0, -0.0, 1e9], &other), spearman(&[1.0, 2.0, 2.0, 4.0], &other), "-0 is 0");
}

/// 0.1 has no exact sum: the sum of seven divided by seven is not 0.1.
#[test]
fn numbers_near_the_limits_are_correlated_and_what_cannot_be_is_an_error() {
    let huge = [f64::MAX, -f64::MAX, f64::MAX / 2.0];
    let tiny = [3e-308, 1e-308, 2e-308];
    for correlate in ALL {
        let found = correlate(&huge, &tiny).unwrap();
        assert!((0.96..=1.0).contains(&found), "{found}");
        assert_eq!(correlate(&[1.0, 2.0], &[2.0, 1.0]), Err(Error::TooFew));
        assert_eq!(correlate(&[1.0, 2.0, 3.0], &[f64::INFINITY, 1.0, 3.0]), Err(Error::not_finite()));
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        assert_eq!(correlate(&rising, &[0.1; 7]), Err(Error::NoSpread));
        assert_eq!(correlate(&[0.1; 7], &rising), Err(Error::NoSpread));
    }
}

/// Pairs of numbers, sometimes with ties; both sides vary.
fn pairs() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let coarse = vec((0..6_u8, 0..6_u8), 3..50)
        .prop_map(|pairs| pairs.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect::<Vec<_>>());
    let unzipped = prop_oneof![coarse, vec((-1e3..1e3_f64, -1e3..1e3_f64), 3..50)]
        .prop_map(|pairs| pairs.into_iter().unzip());
    unzipped.prop_filter("both sides vary", |(x, y): &(Vec<f64>, Vec<f64>)| {
        [x, y].iter().all(|side| side.iter().any(|value| value != &side[0]))
    })
}

fn map(values: &[f64], change: impl Fn(f64) -> f64) -> Vec<f64> {
    values.iter().map(|&value| change(value)).collect()
}

proptest! {
    #[test]
    fn sides_may_be_swapped_and_a_negative_side_turns_the_sign((x, y) in pairs()) {
        for correlate in ALL {
            let found = correlate(&x, &y).unwrap();
            prop_assert!((-1.0..=1.0).contains(&found));
            prop_assert_eq!(correlate(&y, &x).unwrap(), found);
            prop_assert!((correlate(&x, &map(&y, |y| -y)).unwrap() + found).abs() < 1e-12);
        }
        prop_assert!((0.0..=1.0).contains(&pearson(&x, &y).unwrap().p_value));
    }

    /// Draws in which rounding makes different values equal do not count.
    #[test]
    fn ranks_ignore_rising_maps((x, y) in pairs()) {
        let bent = map(&x, |x| (x / 1024.0).exp());
        prop_assume!(count_orders(&x, &bent)[0] == untied_pairs(&x));
        prop_assert_eq!(spearman(&bent, &y), spearman(&x, &y));
        prop_assert_eq!(kendall(&bent, &y), kendall(&x, &y));
    }
}

/// The four points (±1, ±1) have r = 0, but (4, 4) makes it high.
#[test]
fn one_pair_can_make_a_correlation() {
    let (x, y) = ([1.0, 1.0, 4.0, -1.0, -1.0], [1.0, -1.0, 4.0, 1.0, -1.0]);
    assert!(pearson(&x, &y).unwrap().coefficient > 0.7);
    let found = most_influential(&x, &y).unwrap();
    assert_eq!((found.place, found.pearson, found.spearman), (2, Some(0.0), Some(0.0)));
    let alone = most_influential(&[0.0, 0.0, 3.0, 0.0], &[1.0, 2.0, 9.0, 4.0]).unwrap();
    assert_eq!((alone.place, alone.pearson), (2, None), "all others are equal on one side");
    assert_eq!(most_influential(&[1.0, 2.0, 4.0], &[1.0, 3.0, 2.0]), None);
}
