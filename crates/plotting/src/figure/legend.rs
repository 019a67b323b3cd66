//! A legend in columns, for a place where nothing else is drawn.
use plotters::style::text_anchor::HPos;

use super::canvas::{Area, points};
use super::lines::Style;
use super::palette::INK;
use super::text::{SMALL, TextStyle, fitted, width};
use crate::Error;

/// Height of a line of text, in points.
pub const LINE: f64 = 11.0;
/// Length of a sample, in points.
const SAMPLE: f64 = 16.0;
/// From the left end of a sample to its text, in points.
const INDENT: f64 = 20.0;

/// One line of a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the sample looks like.
    pub style: Style,
    /// Whether its mark is hollow.
    pub is_hollow: bool,
    /// What it stands for.
    pub text: String,
}

/// Entries with their places.
#[derive(Debug, Clone, PartialEq)]
pub struct Legend {
    /// Row, column and entry.
    places: Vec<(usize, usize, Entry)>,
    /// Width of a column, in points.
    column: f64,
    room: f64,
}

impl Legend {
    /// Places the entries row by row in two columns, `room` points wide; one that is too long for a column gets a row.
    pub fn new(entries: Vec<Entry>, room: f64) -> Self {
        Self::in_columns(entries, room, 2)
    }

    /// The same in as many columns as have room for the longest entry.
    pub fn compact(entries: Vec<Entry>, room: f64) -> Self {
        let longest = entries.iter().map(needed).fold(1.0, f64::max);
        Self::in_columns(entries, room, ((room / longest) as usize).max(1))
    }

    fn in_columns(entries: Vec<Entry>, room: f64, columns: usize) -> Self {
        let column = room / columns as f64;
        let mut places: Vec<(usize, usize, Entry)> = Vec::new();
        let (mut row, mut next) = (0, 0);
        for entry in entries {
            let is_long = needed(&entry) > column;
            if is_long && next > 0 {
                (row, next) = (row + 1, 0);
            }
            places.push((row, next, entry));
            (row, next) = if is_long || next + 1 == columns { (row + 1, 0) } else { (row, next + 1) };
        }
        Self { places, column, room }
    }

    /// Height in points.
    pub fn height(&self) -> f64 {
        LINE * self.places.last().map_or(0, |(row, _, _)| row + 1) as f64
    }

    /// Draws it with its upper left corner at `left` and `top`, in points.
    ///
    /// # Errors
    /// If the backend fails.
    pub fn draw(&self, page: &Area<'_>, left: f64, top: f64) -> Result<(), Error> {
        for (row, column, entry) in &self.places {
            let left = left + self.column * *column as f64;
            let baseline = top + LINE * (row + 1) as f64;
            let middle = points(baseline - SMALL * 0.355);
            let ends = [(points(left), middle), (points(left + SAMPLE), middle)];
            entry.style.draw_sample(page, ends, entry.is_hollow)?;
            let (text, size) = fitted(&entry.text, SMALL, self.room - INDENT);
            let at = (points(left + INDENT), points(baseline));
            TextStyle::new(size, INK, HPos::Left).write(page, &text, at)?;
        }
        Ok(())
    }
}

/// Width of an entry with the room to the next, in points.
fn needed(entry: &Entry) -> f64 {
    INDENT + width(&entry.text, SMALL) + 4.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::palette::BLUE;

    #[test]
    fn long_entries_have_a_row_of_their_own() {
        let entry = |text: &str| Entry { style: Style::line(BLUE), is_hollow: false, text: text.to_owned() };
        let long = "longer than half of the width of a column of text";
        let texts = ["one", "two", "three", long, "four"];
        let legend = Legend::new(texts.into_iter().map(entry).collect(), 200.0);
        let places: Vec<_> = legend.places.iter().map(|(row, column, _)| (*row, *column)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(legend.height(), 4.0 * LINE);
        assert_eq!(Legend::new(vec![], 200.0).height(), 0.0);
    }

    /// Of 20 points and the text, with 4 points to the next.
    #[test]
    fn short_entries_share_a_row_if_the_longest_fits() {
        let entry = |text: &str| Entry { style: Style::line(BLUE), is_hollow: false, text: text.to_owned() };
        let room = 3.0 * (width("longest", SMALL) + 24.0) + 0.1;
        let columns = |room: f64| {
            let entries = ["a", "longest", "b", "c"].map(entry).into();
            let legend = Legend::compact(entries, room);
            legend.places.iter().map(|(row, column, _)| (*row, *column)).collect::<Vec<_>>()
        };
        assert_eq!(columns(room), [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!(columns(room - 0.2), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(columns(1.0), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    }
}
