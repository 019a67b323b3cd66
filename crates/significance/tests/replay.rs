//! Replays of committed sweeps, as if each head had left the sweep once it was decided.
use std::path::Path;

use significance::replay;
use stats::sequential::Spending;

const SWEEPS: [&str; 11] = [
    "results/minilm-mnli/ablate-one",
    "results/minilm-mnli/ablate-one-xnli",
    "results/minilm-sst2/ablate-one",
    "results/minilm-cola/ablate-one",
    "results/minilm-mrpc/ablate-one",
    "results/multi30k-de-en/ablate-one",
    "results/multi30k-en-fr/ablate-one-ntrex",
    "results/demo-language/ablate-one",
    "results/tatoeba-language/ablate-one",
    "results/tatoeba-language/ablate-one-blimp",
    // with predictions, measured by `just heads minilm-mrpc --split msr_test --until-decided --looks 1 --control-variate on`
    "crates/significance/tests/minilm-mrpc/ablate-one-msr_test",
];

/// Verdicts agree with the complete sweeps, for part of the segments. Heads that the plain test leaves undecided close to the margin may be
/// decided early, by other segments; no head gets the opposite verdict.
#[test]
fn heads_that_stop_keep_their_verdicts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut heads, mut equal, mut reversed, mut helped) = (0, 0, 0, 0);
    for sweep in SWEEPS {
        for (bounds, is_helped) in Spending::ALL.into_iter().flat_map(|own| [(own, false), (own, true)]) {
            let found = replay(&root.join(sweep).with_extension("csv"), bounds, is_helped).unwrap();
            let Some(found) = found else { continue };
            println!("{sweep} {} with predictions: {is_helped}: {found:?}", bounds.name());
            (heads, equal, reversed) = (heads + found.heads, equal + found.equal, reversed + found.reversed);
            helped += usize::from(is_helped);
            assert!(is_helped || found.share <= 1.0 + 1e-9);
        }
    }
    assert_eq!((reversed, helped), (0, 2), "of {heads}");
    assert!(equal as f64 >= 0.99 * heads as f64, "{equal} of {heads}");
}
