//! The whole command on tiny setups.
use std::path::Path;

use records::SpeedRow;
use test_support::{CLASSIFIER, TRANSLATOR, command, refuses, rows, with_model};

/// Uses one thread, because several threads wait for each other if tests share the cores.
const QUICK: [&str; 8] = ["--limit", "first:12", "--repeats", "2", "--minutes", "0", "--threads", "1"];

fn bench(folder: &Path, arguments: &[&str]) -> Vec<SpeedRow> {
    command("speed-bench", folder).args(QUICK).args(arguments).assert().success();
    rows(folder, "speed-bench-first-12.csv")
}

/// 6 heads of width 4, of which 50% leaves 3; d_model is 12 and d_ff 14.
#[test]
fn a_classifier_is_timed_at_each_batch_size() {
    let folder = with_model(CLASSIFIER);
    let rows = bench(folder.path(), &["--batch-size", "5,1", "--percent", "50,10"]);
    let keys: Vec<_> =
        rows.iter().map(|row| (row.removed, row.heads, row.batch_size, row.segments)).collect();
    assert_eq!(keys, [(1, 6, 1, 12), (1, 6, 5, 12), (3, 6, 1, 12), (3, 6, 5, 12)]);
    for row in &rows {
        // a head has three maps from 12 to 4 with biases, and one from 4 to 12
        let head = 3 * (12 * 4 + 4) + 4 * 12;
        assert_eq!(row.original_parameters - row.pruned_parameters, row.removed as u64 * head);
        assert!(row.ratio_low <= row.ratio && row.ratio <= row.ratio_high && row.ratio_low > 0.0);
        assert!(row.original_multiply_adds > row.pruned_multiply_adds);
        assert!(row.neighbours.is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert!(row.original_per_second > 0.0 && row.original_deviation >= 0.0);
        if cfg!(target_os = "linux") {
            // libtorch alone needs more than ten megabytes
            assert!(row.original_peak_bytes.unwrap() > 10 << 20 && row.pruned_peak_bytes.unwrap() > 10 << 20);
        }
    }
    // a row's work does not depend on the other batch sizes
    let one = bench(folder.path(), &["--batch-size", "1", "--percent", "50", "--again"]);
    assert_eq!(one[2].original_multiply_adds, rows[2].original_multiply_adds);
    // padding increases the work of larger batches
    assert!(rows[1].original_multiply_adds > rows[0].original_multiply_adds);
    // the bias for the means exists already, so a folded model has the size and the work of the pruned one
    let fold = ["--batch-size", "5", "--fold"];
    command("speed-bench", folder.path()).args(QUICK).args(fold).assert().success();
    let folded: Vec<SpeedRow> = self::rows(folder.path(), "speed-bench-mean-first-12.csv");
    let costs = |row: &SpeedRow| (row.removed_heads.clone(), row.pruned_parameters, row.pruned_multiply_adds);
    assert_eq!(folded.iter().map(costs).collect::<Vec<_>>(), [costs(&rows[3])]);
}

#[test]
fn a_translator_is_timed_finished_rows_are_kept_and_what_cannot_be_timed_is_refused() {
    let folder = with_model(TRANSLATOR);
    let first = bench(folder.path(), &["--batch-size", "12"]);
    let both = bench(folder.path(), &["--batch-size", "12,4"]);
    assert_eq!(both.len(), 2);
    assert_eq!(both[1], first[0]);
    for (arguments, expected) in [
        (["--percent", "99"], "would remove all"),
        (["--order", "oracle"], "choose another"),
        (["--batch-size", "4,4"], "given twice in --batch-size"),
        (["--percent", "10,11"], "remove the same number of heads"),
    ] {
        refuses(command("speed-bench", folder.path()).args(arguments), expected);
    }
    command("speed-bench", folder.path()).args(["--width", "0"]).assert().failure().code(2);
}
