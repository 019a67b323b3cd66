//! Committed sweeps of all segments, replayed as if each head had left the sweep once it was decided.
#![expect(clippy::unwrap_used, reason = "a torn result should fail the test")]
use std::path::{Path, PathBuf};

use records::{AblationRow, BASE, Blocks, Row, Signature, TestedRow, UntilDecided, Verdict, read_complete};
use significance::{Store, look, metric_of};
use stats::deciding::look_sizes;
use stats::predictions::passes;
use stats::sequential::{Spending, sampling_order};

const LOOKS: usize = 6;

/// Draws the order of the segments.
const SEED: u64 = 1;

/// What stopping makes of a sweep.
#[derive(Default)]
struct Replayed {
    heads: usize,
    equal: usize,
    reversed: usize,
    /// Passes over a segment, as a share of the passes of all heads over all segments.
    share: f64,
}

/// `None` if predictions are asked for that are not stored.
fn replay(path: &Path, bounds: Spending, is_helped: bool) -> Option<Replayed> {
    let signature = Signature::read(&Signature::path_beside(path)).unwrap().unwrap();
    let blocks = Blocks::beside(path, &signature).unwrap().unwrap();
    let rows: Vec<AblationRow> = read_complete(path).unwrap();
    let testing = signature.testing.unwrap();
    let mut store = Store::new(&blocks, metric_of(signature.measured.as_ref().unwrap()).unwrap());
    let base = store.base(BASE).unwrap();
    let (order, rules) =
        (sampling_order(base.len(), SEED), UntilDecided { bounds, seed: SEED, control_variate: is_helped });
    let mut found = Replayed { heads: rows.len(), ..Replayed::default() };
    if is_helped {
        found.share = passes(base.metric()) as f64 / found.heads as f64;
    }
    let sizes = look_sizes(&base, LOOKS);
    for exact in rows {
        let expected = exact.verdict(testing.margin_percent).unwrap();
        let whole = store.variant(&exact.name(), BASE).unwrap();
        let predicted = if is_helped { Some(store.first_order(&exact.name(), BASE).unwrap()?) } else { None };
        let mut row = AblationRow { looks: String::new(), ..exact.clone() };
        let (mut verdict, mut sample) = (Verdict::Undecided, 0);
        for &size in &sizes[..sizes.len() - 1] {
            let mut places = order[..size].to_vec();
            places.sort_unstable();
            let variant = base.clone().with(&places, &whole.at(&places));
            row.add_look(size);
            look(&mut row, (&base, &variant), (predicted.as_ref(), &[]), (rules, testing)).unwrap();
            (verdict, sample) = (row.verdict(testing.margin_percent).unwrap(), size);
            if verdict != Verdict::Undecided {
                break;
            }
        }
        if verdict == Verdict::Undecided {
            (verdict, sample) = (expected, base.len()); // the last look is the plain test
        }
        found.equal += usize::from(verdict == expected);
        let is_reversed = verdict != expected && expected != Verdict::Undecided;
        found.reversed += usize::from(is_reversed);
        found.share += sample as f64 / base.len() as f64 / found.heads as f64;
    }
    Some(found)
}

fn committed() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let of = |name: &str| results.join(name).with_extension("csv");
    // with predictions, by `just heads minilm-mrpc --split msr_test --until-decided --looks 1 --control-variate on`
    let first_order = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/minilm-mrpc/ablate-one-msr_test.csv");
    [
        "minilm-mnli/ablate-one",
        "minilm-mnli/ablate-one-xnli",
        "minilm-sst2/ablate-one",
        "minilm-cola/ablate-one",
        "minilm-mrpc/ablate-one",
        "multi30k-de-en/ablate-one",
        "multi30k-en-fr/ablate-one-ntrex",
        "demo-language/ablate-one",
        "tatoeba-language/ablate-one",
        "tatoeba-language/ablate-one-blimp",
    ]
    .map(of)
    .into_iter()
    .chain([first_order])
    .collect()
}

/// Verdicts are those of the sweeps that measured everything, for a part of the segments. Heads that the plain test leaves undecided at the
/// edge of the margin may be decided early, by other segments; none is decided the other way.
#[test]
fn heads_that_stop_keep_their_verdicts() {
    let (mut heads, mut equal, mut reversed) = (0, 0, 0);
    for path in committed() {
        for (bounds, is_helped) in
            Spending::ALL.into_iter().flat_map(|bounds| [(bounds, false), (bounds, true)])
        {
            let Some(found) = replay(&path, bounds, is_helped) else { continue };
            let helped = if is_helped { " with a control variate" } else { "" };
            println!(
                "{} {}{helped}: {:.1}% of the passes, {} of {} verdicts equal",
                path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" of "),
                bounds.name(),
                100.0 * found.share,
                found.equal,
                found.heads
            );
            (heads, equal, reversed) = (heads + found.heads, equal + found.equal, reversed + found.reversed);
            assert!(is_helped || found.share <= 1.0 + 1e-9);
        }
    }
    assert_eq!(reversed, 0, "of {heads}");
    assert!(equal as f64 >= 0.99 * heads as f64, "{equal} of {heads}");
}
