//! Where the text of a drawing stands, for tests.
use super::canvas::UNITS_PER_INCH;
use super::text::width;

/// A text and the box around it, in units of the drawing.
#[derive(Debug, Clone, PartialEq)]
struct Text {
    text: String,
    /// From the left to the right.
    across: (f64, f64),
    /// From the top to the bottom.
    down: (f64, f64),
}

/// The first two texts of a drawing that overlap, or one that is not wholly on the page.
pub(crate) fn clash(svg: &str) -> Option<String> {
    let texts: Vec<_> = svg.split("<text ").skip(1).map(parse).collect();
    assert!(!texts.is_empty(), "no text was found");
    let page = attribute(svg, "viewBox").map(|sides| numbers(&sides)).unwrap_or_default();
    let is_off = |text: &&Text| {
        text.across.0 < page[0] || text.across.1 > page[2] || text.down.0 < page[1] || text.down.1 > page[3]
    };
    if let Some(off) = texts.iter().find(is_off) {
        return Some(format!("{off:?} is not on the page {page:?}"));
    }
    let meet = |one: (f64, f64), other: (f64, f64)| one.0 < other.1 && other.0 < one.1;
    let pairs = texts
        .iter()
        .enumerate()
        .flat_map(|(index, one)| texts[..index].iter().map(move |other| (one, other)));
    let mut clashes =
        pairs.filter(|(one, other)| meet(one.across, other.across) && meet(one.down, other.down));
    clashes.next().map(|(one, other)| format!("{one:?} overlaps {other:?}"))
}

/// The element after `<text `. Capitals are 0.72 em high, what hangs below the baseline 0.2 em deep.
fn parse(element: &str) -> Text {
    let number =
        |name| attribute(element, name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(f64::NAN);
    let (x, y, size) = (number("x"), number("y"), number("font-size"));
    let body = element.split_once('>').map_or("", |(_, rest)| rest);
    let text = body.split('<').next().unwrap_or("").trim().replace("&lt;", "<");
    let points = size * 72.0 / f64::from(UNITS_PER_INCH);
    let length = width(&text, points) * f64::from(UNITS_PER_INCH) / 72.0;
    let before = match attribute(element, "text-anchor").as_deref() {
        Some("middle") => length / 2.0,
        Some("end") => length,
        _ => 0.0,
    };
    if element.contains("rotate(270") {
        // The top of the text points to the left.
        return Text {
            text,
            across: (x + 0.04 * size, x + 0.96 * size),
            down: (y - length + before, y + before),
        };
    }
    let baseline = y + 0.76 * size;
    Text {
        text,
        across: (x - before, x - before + length),
        down: (baseline - 0.72 * size, baseline + 0.2 * size),
    }
}

fn attribute(element: &str, name: &str) -> Option<String> {
    let rest = element.split_once(&format!("{name}=\""))?.1;
    Some(rest.split('"').next().unwrap_or("").to_owned())
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(x: i32, y: i32, anchor: &str, text: &str) -> String {
        format!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"0.76em\" text-anchor=\"{anchor}\" font-size=\"100\">\n{text}\n</text>\n"
        )
    }

    /// In Roboto a digit is 0.56 em wide: 56 units of these 100, and about 72 high.
    #[test]
    fn texts_are_as_wide_as_in_print() {
        let page = |texts: &str| format!("<svg viewBox=\"0 0 1000 500\">{texts}</svg>");
        let pair = |x, y| clash(&page(&(text(100, 100, "start", "00") + &text(x, y, "start", "0"))));
        assert!(pair(210, 100).is_some_and(|found| found.contains("overlaps")));
        assert_eq!(pair(215, 100), None);
        assert!(pair(150, 180).is_some() && pair(150, 200).is_none());
        for (x, y, anchor) in
            [(-1, 100, "start"), (960, 100, "start"), (20, 100, "middle"), (100, 450, "end")]
        {
            assert!(
                clash(&page(&text(x, y, anchor, "0"))).is_some_and(|found| found.contains("not on the page"))
            );
        }
    }
}
