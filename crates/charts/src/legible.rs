//! Whether a drawing can be read: for the tests of those who describe charts.
use crate::chart::Chart;
use crate::paint::canvas::{DIGIT, UNITS_PER_INCH, width};
use crate::paint::svg;

/// A text of a drawing and the box around it, left, right, top and bottom, in units of the drawing.
type Boxed = (String, [f64; 4]);

/// The most of the height that a legend may take.
const LEGEND: f64 = 0.2;

/// What cannot be read in a drawing: a text that leaves the page or overlaps another, or panels below a legend that takes more
/// than a fifth of the height.
pub fn fault(chart: &Chart) -> Option<String> {
    let (drawn, without) = (svg(chart), svg(&Chart { legend: Vec::new(), ..chart.clone() }));
    let ([across, down], [_, least]) = (size(&drawn), size(&without));
    let texts = boxes(&drawn);
    let mut numbers = texts.iter().flat_map(|(_, sides)| sides).chain([&across, &down, &least]);
    if texts.is_empty() || numbers.any(|number| !number.is_finite()) {
        return Some("the drawing has no text, or one without a place".to_owned());
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
    (share > LEGEND).then(|| format!("the legend takes {share:.2} of the height"))
}

/// Width and height of a drawing.
fn size(svg: &str) -> [f64; 2] {
    let view = attribute(svg, "viewBox");
    let mut numbers = view.split(' ').skip(2).map(|number| number.parse().unwrap_or(f64::NAN));
    [(); 2].map(|()| numbers.next().unwrap_or(f64::NAN))
}

fn overlap([left, right, top, bottom]: &[f64; 4], [start, end, above, below]: &[f64; 4]) -> bool {
    left < end && start < right && top < below && above < bottom
}

/// The value of the first attribute of this name; empty if there is none.
fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let rest = element.split_once(&format!("{name}=\"")).map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default()
}

fn boxes(svg: &str) -> Vec<Boxed> {
    svg.split("<text ").skip(1).map(boxed).collect()
}

fn boxed(element: &str) -> Boxed {
    let number = |name| attribute(element, name).parse().unwrap_or(f64::NAN);
    let (x, y, size): (f64, f64, f64) = (number("x"), number("y"), number("font-size"));
    let text = element.split_once('>').map_or("", |(_, rest)| rest).split('<').next().unwrap_or_default();
    let text = text.trim().replace("&lt;", "<");
    let per_point = f64::from(UNITS_PER_INCH) / 72.0;
    let length = width(&text, size / per_point) * per_point;
    let before = match attribute(element, "text-anchor") {
        "middle" => length / 2.0,
        "end" => length,
        _ => 0.0,
    };
    // The top of a text that is written upwards points to the left.
    let (top, bottom) = (0.05 * size, (0.05 + DIGIT) * size);
    let sides = if element.contains("rotate(270") {
        [x + top, x + bottom, y - length + before, y + before]
    } else {
        [x - before, x - before + length, y + top, y + bottom]
    };
    (text, sides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Entry, Layer, Panel};
    use crate::palette::INK;

    #[test]
    fn what_overlaps_and_what_crowds_is_found() {
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
    }
}
