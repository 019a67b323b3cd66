//! Cuts texts into documents. Lines end at `\n` only, as in [`crate::parallel::read_lines`].

/// Returns the part of `text` between two shares of its characters.
pub(super) fn share(text: &str, [from, to]: [f64; 2]) -> &str {
    let count = text.chars().count();
    let place = |share: f64| {
        let characters = (count as f64 * share) as usize; // rounds down, like `int` in nanoGPT
        text.char_indices().nth(characters).map_or(text.len(), |(place, _)| place)
    };
    &text[place(from)..place(to)]
}

/// Returns the ends of blocks of about `size` bytes. A block begins with the white space before a word, or with any character if no white
/// space is near.
pub(super) fn blocks(text: &str, size: usize) -> Vec<usize> {
    let count = ((text.len() + size / 2) / size).max(1);
    let cut = |block: usize| {
        let from = text.floor_char_boundary(block * text.len() / count);
        let near = &text[from..text.floor_char_boundary(from + size / 8)];
        from + near.find(char::is_whitespace).unwrap_or(0)
    };
    let mut ends: Vec<usize> = (1..count).map(cut).chain([text.len()]).collect();
    ends.dedup();
    ends
}

/// Returns the lines without their line endings.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// A line without its line ending, and its byte range in the text.
struct Line<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

fn placed(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let line = |whole: &str| {
        let text = whole.strip_suffix('\r').unwrap_or(whole).len();
        let line = (start, start + text);
        start += whole.len() + 1;
        line
    };
    let places: Vec<(usize, usize)> = text.split('\n').map(line).collect();
    places.into_iter().map(|(start, end)| Line { text: &text[start..end], start, end }).collect()
}

fn is_blank(line: &Line) -> bool {
    line.text.trim().is_empty()
}

/// Returns the texts between blank lines.
pub(super) fn paragraphs(text: &str) -> Vec<&str> {
    let lines = placed(text);
    let groups = lines.split(is_blank).filter(|group| !group.is_empty());
    groups.map(|group| &text[group[0].start..group[group.len() - 1].end]).collect()
}

/// Returns the articles of a raw WikiText file without surrounding blank lines, or `None` if no line is a title. A title has blank lines
/// around it; if none has, because blank lines were dropped, the lines that look like titles and contain a name are titles. Formulas look
/// like titles too: ` = 1 henry and capacitance C = `. Text before the first title is also an article.
pub(super) fn articles(text: &str) -> Option<Vec<&str>> {
    let lines = placed(text);
    let is_edge = |place: Option<usize>| place.and_then(|place| lines.get(place)).is_none_or(is_blank);
    let is_apart = |place: usize| is_edge(place.checked_sub(1)) && is_edge(Some(place + 1));
    let like_titles: Vec<usize> = (0..lines.len()).filter(|&place| is_title(lines[place].text)).collect();
    let apart: Vec<usize> = like_titles.iter().copied().filter(|&place| is_apart(place)).collect();
    let has_name =
        |&place: &usize| lines[place].text.split(|letter: char| !letter.is_alphabetic()).any(is_name);
    let titles = if apart.is_empty() { like_titles.into_iter().filter(has_name).collect() } else { apart };
    let starts: Vec<usize> = titles.into_iter().map(|place| lines[place].start).collect();
    let mut edges = [&[0], &starts[..], &[text.len()]].concat();
    edges.dedup();
    let article = |edges: &[usize]| text[edges[0]..edges[1]].trim_end();
    (!starts.is_empty()).then(|| edges.windows(2).map(article).collect())
}

/// Returns true if a word has at least two letters and the first is a capital.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_some()
}

/// Returns true if a line is a heading of level one, ` = Title = `; lower levels begin with ` = = `.
fn is_title(line: &str) -> bool {
    let inner = line.trim().strip_prefix("= ").and_then(|rest| rest.strip_suffix(" ="));
    inner.is_some_and(|title| {
        let title = title.trim();
        !title.is_empty() && title != "=" && !title.starts_with("= ") && !title.ends_with(" =")
    })
}
