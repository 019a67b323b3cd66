//! The whole command on setups that train in a second.
use records::HeadFunctionRow;
use records::rows::functions::FunctionName;
use test_support::{CLASSIFIER, LANGUAGE_MODEL, folder, read, trained};

const TABLE: &str = "named-heads-first-20.csv";

#[test]
fn every_head_has_a_row_of_each_score_whose_sums_are_those_of_its_sequences() {
    let folder = trained(LANGUAGE_MODEL, "ablate-one", &["--limit", "first:2", "--resamples", "0"]);
    let run = |arguments: &[&str]| {
        let mut command = test_support::command("named-heads", folder.path());
        command.args(["--resamples", "99", "--limit", "first:20"]).args(arguments);
        command.assert().success().stdout(format!("results/tiny/{TABLE}\n"));
        read(folder.path(), &format!("results/tiny/{TABLE}"))
    };
    let written = run(&["--threads", "1"]);
    assert_eq!(written, run(&["--threads", "2", "--again"]), "threads change no number");
    let rows: Vec<HeadFunctionRow> = test_support::rows(folder.path(), TABLE);
    run(&["--memory", "6M", "--again"]);
    let small: Vec<HeadFunctionRow> = test_support::rows(folder.path(), TABLE);
    assert!(
        rows.len() == small.len()
            && rows.iter().zip(&small).all(|(row, small)| {
                (row.head_id(), row.function) == (small.head_id(), small.function)
                    && (row.share - small.share).abs() < 1e-5
            }),
        "memory changes no number beyond rounding"
    );
    assert_eq!(rows.len(), 4 * 8);
    for score in FunctionName::NAMED {
        let own: Vec<&HeadFunctionRow> = rows.iter().filter(|row| row.function == score).collect();
        assert_eq!(own.len(), 8);
        for row in own {
            let (low, high) = (row.share_low.unwrap(), row.share_high.unwrap());
            assert!(low <= row.share && row.share <= high, "{row:?}");
            assert!((row.share - row.numerator / row.denominator).abs() < 1e-12, "{row:?}");
            if [FunctionName::Induction, FunctionName::DuplicateToken].contains(&score) {
                // 96 positions hold BOS and two blocks of 47; the queries at 48 to 94 see 49 to 95 keys
                let even = (49..=95).map(|seen| 1.0 / f64::from(seen)).sum::<f64>() / 47.0;
                assert_eq!(row.denominator, 50.0 * 47.0);
                assert!((row.baseline.unwrap() - even).abs() < 1e-12, "{row:?}");
            }
        }
    }
}

#[test]
fn a_classifier_is_refused_before_it_is_trained() {
    let folder = folder(CLASSIFIER);
    let message = test_support::refusal(&mut test_support::command("named-heads", folder.path()));
    assert!(message.contains("`tiny` is no language model"), "{message}");
}
