//! Ticks with names that are too long to stand side by side.
use super::text::{SIZE, width};

/// How far the numbers at an axis reach down from it, in points.
pub const NUMBERS: f64 = 11.0;
/// Height of a line of a name, in points.
const LINE: f64 = 9.0;
/// Room between two names, in points.
const GAP: f64 = 4.0;
/// Names stand at this many levels at most.
const LEVELS: usize = 2;

/// A tick of the lower axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its place, in data coordinates.
    pub at: f64,
    /// Its name; none where there is no room.
    pub lines: Vec<String>,
    /// How far down the name stands: at level 1 below the names of level 0.
    pub level: usize,
}

impl Tick {
    /// How far below the axis the baseline of a line of its name is, in points.
    pub fn baseline(&self, line: usize) -> f64 {
        NUMBERS + LINE * (self.level * self.lines.len() + line) as f64
    }
}

/// How far names reach down from the axis, in points.
pub fn depth(ticks: &[Tick]) -> f64 {
    let named = ticks.iter().filter(|tick| !tick.lines.is_empty());
    named.map(|tick| tick.baseline(tick.lines.len() - 1)).fold(NUMBERS, f64::max)
}

/// Puts names at the first level where they touch no other, the last and the first name before all others; one that fits
/// nowhere is left out. `to_points` turns places into points on the page.
pub fn arranged(names: Vec<(f64, Vec<String>)>, to_points: impl Fn(f64) -> f64) -> Vec<Tick> {
    let spans: Vec<_> = names
        .iter()
        .map(|(at, lines)| {
            let half = lines.iter().map(|line| width(line, SIZE)).fold(0.0, f64::max) / 2.0;
            (to_points(*at) - half, to_points(*at) + half)
        })
        .collect();
    let levels = levels(&spans);
    let tick = |((at, lines), level): ((f64, Vec<String>), Option<usize>)| Tick {
        at,
        lines: if level.is_some() { lines } else { Vec::new() },
        level: level.unwrap_or(0),
    };
    names.into_iter().zip(levels).map(tick).collect()
}

/// The level of each span from left to right, if there is room.
fn levels(spans: &[(f64, f64)]) -> Vec<Option<usize>> {
    let mut levels: Vec<Option<usize>> = vec![None; spans.len()];
    let last = spans.len().checked_sub(1);
    for index in last.into_iter().chain(0..spans.len().saturating_sub(1)) {
        let (left, right) = spans[index];
        let is_free = |level: &usize| {
            let there = spans.iter().zip(&levels).filter(|(_, other)| **other == Some(*level));
            there.into_iter().all(|((start, end), _)| right + GAP <= *start || *end + GAP <= left)
        };
        levels[index] = (0..LEVELS).find(is_free);
    }
    levels
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two spans of 10 points that lie 8 apart need two levels, a third between them has no room, a fourth has.
    #[test]
    fn names_that_would_touch_go_down_or_away() {
        let spans = [0.0, 8.0, 10.0, 14.0].map(|start| (start, start + 10.0));
        assert_eq!(levels(&spans), [Some(0), Some(1), None, Some(0)]);
        assert_eq!(levels(&[]), []);
        assert_eq!(levels(&[(0.0, 5.0)]), [Some(0)]);
    }

    #[test]
    fn a_name_without_room_leaves_its_tick() {
        let names = [1.0, 1.1, 1.2, 100.0].map(|at| (at, vec![format!("{at}"), "[30.5]".to_owned()]));
        let ticks = arranged(names.into(), |at| at);
        let lines: Vec<_> = ticks.iter().map(|tick| (tick.at, tick.lines.len(), tick.level)).collect();
        assert_eq!(lines, [(1.0, 2, 0), (1.1, 2, 1), (1.2, 0, 0), (100.0, 2, 0)]);
        assert_eq!((ticks[1].baseline(0), depth(&ticks)), (29.0, 38.0));
        assert_eq!(depth(&[]), NUMBERS);
    }

    proptest! {
        #[test]
        fn no_two_names_touch(mut starts in prop::collection::vec(0.0_f64..200.0, 1..30), width in 1.0_f64..40.0) {
            starts.sort_by(f64::total_cmp);
            let spans: Vec<_> = starts.iter().map(|start| (*start, start + width)).collect();
            let levels = levels(&spans);
            prop_assert_eq!(levels[levels.len() - 1], Some(0));
            prop_assert!(levels[0].is_some(), "{:?}", levels);
            for (index, level) in levels.iter().enumerate() {
                for other in index + 1..levels.len() {
                    let are_apart = spans[index].1 + GAP <= spans[other].0;
                    prop_assert!(level.is_none() || *level != levels[other] || are_apart, "{:?}", levels);
                }
            }
        }
    }
}
