use records::Identity;

use super::*;
use crate::origin::tests::origin;
use crate::test_rows::{checkpoint, dynamics_row as row, file};

pub(crate) fn dynamics(rows: Vec<DynamicsRow>) -> Dynamics {
    Dynamics::from_rows(file(), rows).unwrap()
}

fn message(rows: Vec<DynamicsRow>) -> String {
    Dynamics::from_rows(file(), rows).unwrap_err().to_string()
}

fn removable(kept: &[f64], least: f64) -> Option<(f64, bool)> {
    let dynamics = dynamics(checkpoint(1, 20.0, kept));
    dynamics.checkpoints()[0].removable(least).map(|found| (found.percent, found.is_open))
}

/// One more of ten heads at each step: the third keeps less than 90 %, and the fourth does not undo it.
#[test]
fn the_share_ends_before_the_first_step_that_keeps_too_little() {
    let kept = [101.0, 90.0, 89.0, 95.0, 80.0];
    assert_eq!(removable(&kept, 90.0), Some((20.0, false)));
    assert_eq!(removable(&kept, 85.0), Some((40.0, false)));
    assert_eq!(removable(&kept, 75.0), Some((50.0, true)));
    assert_eq!(removable(&[10.0], 85.0), Some((0.0, false)));
    assert_eq!(removable(&[90.0; 10], 85.0), Some((100.0, false)));
    assert_eq!(removable(&[], 85.0), None);
}

#[test]
fn a_gap_hides_the_share_unless_it_comes_later() {
    let without = |missing: usize, least| {
        let mut rows = checkpoint(1, 20.0, &[99.0, 95.0, 70.0, 60.0]);
        rows.remove(missing);
        dynamics(rows).checkpoints()[0].removable(least).map(|found| found.percent)
    };
    assert_eq!((without(1, 90.0), without(4, 90.0)), (None, Some(20.0)));
    assert_eq!(share_of(None), "?");
    assert_eq!(share_of(Some(Removable { percent: 90.0, is_open: true })), "\u{2265} 90");
}

/// 0.05 is printed as 0.1, less as 0.0, of which nothing is a percentage.
#[test]
fn nothing_is_a_percentage_of_nothing() {
    let rows = [(1, -2.0), (2, 0.0), (3, 0.049), (4, 0.05), (5, 8.0)];
    let rows = rows.map(|(epoch, base)| row((Some(epoch), epoch), 0, base, 2.0));
    let all = dynamics(rows.to_vec());
    let kept: Vec<_> = all.checkpoints().iter().map(|checkpoint| checkpoint.kept(2.0)).collect();
    assert_eq!(kept[..3], [None; 3]);
    assert_eq!(kept[4], Some(25.0));
    assert_eq!(all.comparable().unwrap().len(), 2);
    assert_eq!(all.checkpoints()[0].removable(85.0), None);
    let note = "no percentages of a score of 0.0 or below: epoch 1, epoch 2, epoch 3";
    assert_eq!(all.notes()[0], note);
    let none = dynamics(rows[..3].to_vec()).comparable().unwrap_err();
    assert_eq!(
        none.to_string(),
        "`a.csv` has no checkpoint with a score above 0, of which others could be percentages"
    );
    assert!(none.leaves_others_alone());
}

#[test]
fn epochs_number_checkpoints_only_where_all_have_one() {
    let names = |rows: Vec<DynamicsRow>| {
        let dynamics = dynamics(rows);
        let checkpoints = dynamics.checkpoints().iter();
        checkpoints.map(|checkpoint| dynamics.name(checkpoint)).collect::<Vec<_>>()
    };
    let (half, whole) = (row((None, 50), 0, 1.0, 1.0), row((Some(1), 100), 0, 1.0, 1.0));
    assert_eq!(names(vec![whole.clone()]), ["epoch 1"]);
    assert_eq!(names(vec![whole, half]), ["50 updates", "100 updates"]);
}

#[test]
fn what_is_missing_is_said() {
    let mut rows = checkpoint(1, 20.0, &[99.0, 90.0]);
    rows.extend(checkpoint(2, 20.0, &[99.0, 90.0]));
    rows.extend(checkpoint(3, 20.0, &[99.0]));
    rows.extend(checkpoint(4, 20.0, &[99.0, 90.0]));
    rows.last_mut().unwrap().p_value = Some(0.5);
    let mut all = dynamics(rows.clone());
    let expected = "not finished, steps or their tests are missing: epoch 3, epoch 4";
    assert_eq!(all.notes(), [expected]);
    all.file.origin = origin(Identity::new(EXPERIMENT, "demo-x"), false);
    assert_eq!(all.notes()[1], "the run was killed or is still going, so checkpoints may be missing");
    all = dynamics(rows[..6].to_vec());
    all.file.origin = origin(Identity::new(EXPERIMENT, "demo-x"), true);
    assert!(all.notes().is_empty());
    assert_eq!(all.state(&all.checkpoints()[1]), "");
}

#[test]
fn shares_are_those_of_all_checkpoints() {
    let mut rows = checkpoint(1, 20.0, &[99.0]);
    rows.extend(checkpoint(2, 20.0, &[99.0, 90.0]));
    assert_eq!(dynamics(rows).shares(), [(1, 10.0), (2, 20.0)]);
}

/// Of 20 heads each step masks one, 5 %: every second one is a tenth. With 19 the last is the nearest to 100 %.
#[test]
fn of_many_shares_the_tenths_are_shown() {
    let of = |steps| {
        let step = |step| DynamicsRow { heads: 20, ..row((Some(1), 100), step, 20.0, 20.0) };
        dynamics((0..=steps).map(step).collect()).shares().iter().map(|share| share.0).collect::<Vec<_>>()
    };
    assert_eq!(of(20), [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    assert_eq!(of(19), [2, 4, 6, 8, 10, 12, 14, 16, 18, 19]);
    assert_eq!(of(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn rows_of_two_trainings_are_refused() {
    let rows = |other: DynamicsRow| [checkpoint(1, 20.0, &[99.0]), vec![other]].concat();
    let other = row((Some(1), 100), 2, 21.0, 21.0);
    let expected =
        "`a.csv` mixes runs: base_score is 20 but 21 for all by importance, step 2 after 100 updates";
    assert_eq!(message(rows(other)), expected);
    let other = DynamicsRow { metric: "f1".to_owned(), ..row((Some(2), 200), 0, 1.0, 1.0) };
    let expected = "`a.csv` mixes runs: metric is `bleu` for step 0 after 100 updates but `f1` for step 0 after 200 updates";
    assert_eq!(message(rows(other)), expected);
    let other = DynamicsRow { heads: 12, ..row((Some(2), 200), 0, 1.0, 1.0) };
    assert!(message(rows(other)).contains("heads is 10 for step 0 after 100 updates but 12"));
    let other = row((None, 100), 2, 20.0, 20.0);
    assert!(message(rows(other)).contains("epoch is 1 for step 0 after 100 updates but empty for step 2"));
    for epoch in [1, 0] {
        let found = message(rows(row((Some(epoch), 200), 0, 1.0, 1.0)));
        let expected =
            format!("epoch of the checkpoint after 200 updates is {epoch}, but it must be at least 1");
        assert!(found.contains(&expected), "{found}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let faulty = |change: fn(&mut DynamicsRow)| {
        let mut rows = checkpoint(1, 20.0, &[99.0, 98.0]);
        change(&mut rows[2]);
        message(rows)
    };
    let found = faulty(|row| row.score = f64::NAN);
    let expected = "`a.csv`: score of all by importance, step 2 after 100 updates is NaN, but it must be a finite number \
                    of points";
    assert_eq!(found, expected);
    assert!(faulty(|row| row.masked = 11).contains("no more than 100 % can be masked"));
    assert!(faulty(|row| row.masked = 0).contains("must be no less than in the step before"));
    assert!(faulty(|row| row.p_adjusted = Some(2.0)).contains("p_adjusted"));
    assert!(
        faulty(|row| row.masked_heads = "mid:1:1".to_owned())
            .contains("is not what `training-dynamics` writes: unknown type in masked_heads `mid`")
    );
    assert!(message(vec![]).contains("holds no rows yet"));
}

/// exp(-0.1) = 90.5 % of 1/perplexity are left of 0.1 nats a token more, exp(-0.2) = 81.9 % of 0.2; fewer nats keep more
/// than all.
#[test]
fn of_nats_percentages_are_of_the_inverse_perplexity() {
    let rows = [3.0, 2.9, 3.1, 3.2].into_iter().enumerate();
    let nats =
        |(step, score)| DynamicsRow { metric: "nats".to_owned(), ..row((Some(1), 100), step, 3.0, score) };
    let dynamics = dynamics(rows.map(nats).collect());
    let checkpoint = &dynamics.checkpoints()[0];
    assert!((checkpoint.kept(3.1).unwrap() - 90.483_741_803_595_95).abs() < 1e-9);
    assert_eq!(checkpoint.kept(3.0), Some(100.0));
    assert_eq!(checkpoint.removable(90.0), Some(Removable { percent: 20.0, is_open: false }));
    assert_eq!(dynamics.unpruned(checkpoint), "3.000");
}
