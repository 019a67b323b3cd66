//! Committed sweeps of all segments, replayed as if each head had left the sweep once it was decided.
#![expect(clippy::unwrap_used, reason = "a torn result should fail the test")]
use std::path::{Path, PathBuf};

use records::{AblationRow, BASE, Blocks, Row, Signature, TestedRow, UntilDecided, Verdict, read_complete};
use significance::{Store, look, metric_of};
use stats::deciding::look_sizes;
use stats::sequential::{Spending, sampling_order};

const LOOKS: usize = 6;

/// What stopping makes of a sweep.
#[derive(Default)]
struct Replayed {
    heads: usize,
    equal: usize,
    reversed: usize,
    /// Segments that were measured, as a share of those of all heads.
    share: f64,
}

fn replay(path: &Path, bounds: Spending, seed: u64) -> Replayed {
    let signature = Signature::read(&Signature::path_beside(path)).unwrap().unwrap();
    let blocks = Blocks::beside(path, &signature).unwrap().unwrap();
    let rows: Vec<AblationRow> = read_complete(path).unwrap();
    let testing = signature.testing.unwrap();
    let mut store = Store::new(&blocks, metric_of(signature.measured.as_ref().unwrap()).unwrap());
    let base = store.base(BASE).unwrap();
    let (order, rules) =
        (sampling_order(base.len(), seed), UntilDecided { bounds, seed, control_variate: false });
    let mut found = Replayed { heads: rows.len(), ..Replayed::default() };
    let sizes = look_sizes(&base, LOOKS);
    for exact in rows {
        let expected = exact.verdict(testing.margin_percent).unwrap();
        let whole = store.variant(&exact.name(), BASE).unwrap();
        let mut row = exact.clone();
        let (mut verdict, mut sample) = (Verdict::Undecided, 0);
        for &size in &sizes[..sizes.len() - 1] {
            let mut places = order[..size].to_vec();
            places.sort_unstable();
            let variant = base.clone().with(&places, &whole.at(&places));
            row.add_look(size);
            look(&mut row, (&base, &variant), (None, &[]), (rules, testing)).unwrap();
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
    found
}

fn committed() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let of = |name: &str| results.join(name).with_extension("csv");
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
    .to_vec()
}

/// Verdicts are those of the sweeps that measured everything, for a part of the segments. Heads that the plain test leaves undecided at the
/// edge of the margin may be decided early, by other segments; none is decided the other way.
#[test]
fn heads_that_stop_keep_their_verdicts() {
    let (mut heads, mut equal, mut reversed) = (0, 0, 0);
    for path in committed() {
        for bounds in Spending::ALL {
            let found = replay(&path, bounds, 1);
            println!(
                "{} {}: {:.1}% of the segments, {} of {} verdicts equal",
                path.iter().rev().take(2).map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(" of "),
                bounds.name(),
                100.0 * found.share,
                found.equal,
                found.heads
            );
            (heads, equal, reversed) = (heads + found.heads, equal + found.equal, reversed + found.reversed);
            assert!(found.share <= 1.0 + 1e-9);
        }
    }
    assert_eq!(reversed, 0, "of {heads}");
    assert!(equal as f64 >= 0.99 * heads as f64, "{equal} of {heads}");
}
