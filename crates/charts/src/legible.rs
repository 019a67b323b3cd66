//! Checks that a drawing can be read, for the tests of crates that describe charts.
use words::fixed;

use crate::chart::Chart;
use crate::paint::{Drawing, draw};

/// Maximum share of the height that a legend may take.
const LEGEND: f64 = 0.2;

/// Returns what makes a drawing unreadable: a text that leaves the page or overlaps another, or a legend taller than a fifth of the page.
pub fn fault(chart: &Chart) -> Option<String> {
    let Drawing { texts, size: [across, down], .. } = draw(chart);
    let [_, least] = draw(&Chart { legend: Vec::new(), ..chart.clone() }).size;
    let mut numbers = texts.iter().flat_map(|(_, sides)| sides).chain([&across, &down, &least]);
    if texts.is_empty() || numbers.any(|number| !number.is_finite()) {
        return Some("the drawing has no text, or a text has no finite position".to_owned());
    }
    for (index, (text, sides @ [left, right, top, bottom])) in texts.iter().enumerate() {
        if *left < 0.0 || *right > across || *top < 0.0 || *bottom > down {
            return Some(format!("`{text}` leaves the page"));
        }
        if let Some((other, _)) = texts[..index].iter().find(|(_, other)| overlap(sides, other)) {
            return Some(format!("`{text}` overlaps `{other}`"));
        }
    }
    let share = (down - least) / down;
    (share > LEGEND).then(|| format!("the legend takes {} of the height", fixed(share, 2)))
}

fn overlap([left, right, top, bottom]: &[f64; 4], [start, end, above, below]: &[f64; 4]) -> bool {
    left < end && start < right && top < below && above < bottom
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Entry, Layer, Panel};
    use crate::palette::INK;

    #[test]
    fn overlaps_large_legends_and_texts_off_the_page_are_found() {
        let panel =
            |height, layers| Panel::new([Axis::percent("share"), Axis::percent("score")], height, layers);
        let chart = |height, layers| Chart::new("", "", "").panels(1, vec![panel(height, layers)]);
        assert_eq!(fault(&chart(100.0, vec![])), None);
        let texts = |text: &str| chart(30.0, vec![]).entries([text; 9].map(Entry::text));
        assert_eq!(fault(&texts("a")), None);
        assert!(fault(&texts("a long text of a legend")).unwrap().starts_with("the legend takes 0."));
        let names = |height: f64| (height, "the same name".to_owned(), INK);
        let twice = vec![Layer::Ends(vec![names(50.0)]), Layer::Ends(vec![names(52.0)])];
        assert_eq!(fault(&chart(100.0, twice)).unwrap(), "`the same name` overlaps `the same name`");
        let beyond = vec![Layer::Tops(vec![(100.0, "a name ".repeat(30), INK)])];
        assert!(fault(&chart(100.0, beyond)).unwrap().ends_with("leaves the page"));
    }
}
