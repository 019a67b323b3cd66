//! SGML and XML test sets of WMT and NIST: segments and documents of the source and of each translator. Such files are refused where one
//! segment per line is expected, since their markup would be scored as text.
use std::path::Path;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use words::excerpt;

use crate::Error;

/// Elements at the start of WMT and NIST test sets.
const ELEMENTS: [&str; 7] = ["srcset", "refset", "tstset", "mteval", "dataset", "doc", "seg"];
/// Declarations at the start of SGML and XML.
const DECLARATIONS: [&str; 2] = ["?xml", "!doctype"];

/// Returns the known markup at the start of a line, such as `<srcset`; `None` if the line starts with anything else.
fn opening(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let tag = line.strip_prefix('<')?;
    let length = tag.find(|letter: char| letter.is_whitespace() || ['>', '/'].contains(&letter));
    let name = &tag[..length.unwrap_or(tag.len())];
    let is_known = |known: &&str| name.eq_ignore_ascii_case(known);
    ELEMENTS.iter().chain(&DECLARATIONS).any(is_known).then(|| &line[..=name.len()])
}

/// Returns the markup at the start of the first non-blank line, and the line's number; `None` if the file is plain text.
fn beginning(content: &str) -> Option<(&str, usize)> {
    let (line, number) = content.split('\n').zip(1..).find(|(line, _)| !line.trim().is_empty())?;
    Some((opening(line)?, number))
}

/// The source of a test set, or one translator's references.
pub(crate) struct Side {
    /// The translator, empty if the file names none; `None` for the source.
    pub(crate) translator: Option<String>,
    pub(crate) segments: Vec<Segment>,
}

pub(crate) struct Segment {
    /// Index of the segment's document in the file, counted from 0.
    pub(crate) document: usize,
    /// Names of the document and the segment, by which sides are aligned.
    pub(crate) id: [String; 2],
    /// Text, with white space collapsed to single spaces.
    pub(crate) text: String,
}

/// Returns the source and the references of a test set, and skips system outputs; `None` if the file is plain text.
pub(crate) fn sides(content: &str, path: &Path) -> Result<Option<Vec<Side>>, Error> {
    if beginning(content).is_none() {
        return Ok(None);
    }
    let mut reader = Reader::from_str(content);
    let config = reader.config_mut();
    // SGML may leave tags open and `&` unescaped
    (config.check_end_names, config.allow_unmatched_ends, config.allow_dangling_amp) = (false, true, true);
    let mut found = Found::default();
    loop {
        match reader.read_event() {
            Ok(Event::Eof) if found.open.is_none() => {
                found.sides.retain(|side| !side.segments.is_empty());
                return Ok(Some(found.sides));
            }
            Ok(Event::Eof) => return Err(Error::of(path, "it ends within a segment: it is truncated")),
            Ok(Event::Start(tag)) => found.start(&tag),
            Ok(Event::Empty(tag)) => {
                found.start(&tag);
                found.end(tag.name().as_ref());
            }
            Ok(Event::End(tag)) => found.end(tag.name().as_ref()),
            Ok(Event::Text(text)) => found.push(&text),
            Ok(Event::CData(text)) => found.push(&text),
            Ok(Event::GeneralRef(name)) => found.push(&letter(&name)),
            Ok(_) => {}
            Err(error) => {
                let before = content.bytes().take(reader.error_position() as usize);
                let line = 1 + before.filter(|&byte| byte == b'\n').count();
                return Err(Error::of_line(
                    path,
                    line,
                    format!("not valid SGML or XML ({})", excerpt(&error.to_string())),
                ));
            }
        }
    }
}

/// Returns the character of an entity; entities that XML does not define stay unchanged.
fn letter(name: &BytesRef<'_>) -> String {
    let by_number = name.resolve_char_ref().ok().flatten().map(String::from);
    by_number
        .or_else(|| resolve_predefined_entity(name).map(str::to_owned))
        .unwrap_or_else(|| format!("&{};", &**name))
}

#[derive(Default)]
struct Found {
    sides: Vec<Side>,
    /// Index of the current side; `None` within system outputs and before the first side.
    side: Option<usize>,
    /// Number of documents so far, and name of the last one.
    documents: (usize, String),
    open: Option<(String, String)>,
}

impl Found {
    fn start(&mut self, tag: &BytesStart<'_>) {
        let attribute = |name: &str| {
            let mut all = tag.html_attributes();
            all.with_checks(false); // for repeated names
            let own = all.flatten().find(|own| own.key.as_ref().eq_ignore_ascii_case(name))?;
            let value = own.normalized_value(XmlVersion::Implicit1_0);
            Some(value.map_or_else(|_| String::new(), |value| value.into_owned()))
        };
        match tag.name().as_ref().to_ascii_lowercase().as_str() {
            "src" | "srcset" => self.turn_to(None),
            "ref" | "refset" => self.turn_to(Some(attribute("translator").unwrap_or_default())),
            "hyp" | "tstset" => self.side = None,
            "doc" => {
                let is_reference = self.side.is_some_and(|side| self.sides[side].translator.is_some());
                if let Some(system) = attribute("sysid").filter(|_| is_reference) {
                    self.turn_to(Some(system));
                }
                let name = attribute("docid").or_else(|| attribute("id")).unwrap_or_default();
                self.documents = (self.documents.0 + 1, name);
            }
            "seg" => self.open = Some((attribute("id").unwrap_or_default(), String::new())),
            _ => {}
        }
    }

    /// Switches to the side of this translator, adding it if it is new.
    fn turn_to(&mut self, translator: Option<String>) {
        let known = self.sides.iter().position(|side| side.translator == translator);
        self.side = Some(known.unwrap_or_else(|| {
            self.sides.push(Side { translator, segments: Vec::new() });
            self.sides.len() - 1
        }));
    }

    fn push(&mut self, text: &str) {
        if let Some((_, open)) = &mut self.open {
            open.push_str(text);
        }
    }

    fn end(&mut self, name: &str) {
        if !name.eq_ignore_ascii_case("seg") {
            return;
        }
        if let (Some((name, text)), Some(side)) = (self.open.take(), self.side) {
            let (number, document) = &self.documents;
            self.sides[side].segments.push(Segment {
                document: number.saturating_sub(1),
                id: [document.clone(), name],
                text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            });
        }
    }
}

/// Refuses a file whose first non-blank line begins with markup.
pub(crate) fn refuse(content: &str, path: &Path) -> Result<(), Error> {
    let Some((markup, number)) = beginning(content) else { return Ok(()) };
    let has = |element: &str| {
        content.contains(&format!("<{element} ")) || content.contains(&format!("<{element}>"))
    };
    let (extract, choice) = if has("src") && has("ref") {
        let extract = "import sys, xml.etree.ElementTree as E; [print(' '.join(''.join(s.itertext()).split())) for s in \
                       E.parse(sys.argv[1]).iterfind('.//src//seg')]";
        (extract, ", and of the references with `.//ref[@translator='A']//seg` in place of `.//src//seg`")
    } else {
        let extract = "import html, re, sys; [print(html.unescape(' '.join(s.split()))) for s in \
                       re.findall('(?is)<seg[^>]*>(.*?)</seg>', open(sys.argv[1], encoding='utf-8').read())]";
        (extract, "")
    };
    let shown = path.display();
    Err(Error::of_line(
        path,
        number,
        format!(
            "`{markup}` is SGML or XML, but every line must be one segment: extract the segments with python3 -c \"{extract}\" \
             '{shown}' > segments.txt{choice}"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_sets_with_markup_are_known_by_their_first_tag() {
        for (line, markup) in [
            ("<srcset setid=\"newstest2014\" srclang=\"any\">", Some("<srcset")),
            ("<refset>", Some("<refset")),
            ("  <tstset setid=\"a\">\r", Some("<tstset")),
            ("<?xml version='1.0' encoding='utf-8'?>", Some("<?xml")),
            (
                "<!DOCTYPE mteval SYSTEM \"ftp://jaguar.ncsl.nist.gov/mt/resources/mteval-xml-v1.3.dtd\">",
                Some("<!DOCTYPE"),
            ),
            ("<dataset id=\"wmttest2021\">", Some("<dataset")),
            ("<DOC docid=\"a\">", Some("<DOC")),
            ("<seg id=\"1\">A dog.</seg>", Some("<seg")),
            ("<document> is a tag of HTML.", None),
            ("<unk> dogs sleep.", None),
            ("< doc", None),
            ("A <doc id=\"1\">.", None),
            ("<", None),
            ("<2 dogs", None),
            ("<\u{e9}", None),
        ] {
            assert_eq!(opening(line), markup, "{line}");
        }
    }

    #[test]
    fn the_message_names_the_place_and_extracts_the_segments() {
        let message = |content: &str| refuse(content, Path::new("a.sgm")).map_err(|error| error.to_string());
        assert_eq!(message("A dog.\n<doc>\n"), Ok(()));
        assert_eq!(message("\n \n"), Ok(()));
        assert_eq!(
            message("\u{20}\n<srcset>\n<doc>\n<seg id=\"1\">A dog.</seg>\n").unwrap_err(),
            "`a.sgm`, line 2: `<srcset` is SGML or XML, but every line must be one segment: extract the segments with python3 -c \
             \"import html, re, sys; [print(html.unescape(' '.join(s.split()))) for s in \
             re.findall('(?is)<seg[^>]*>(.*?)</seg>', open(sys.argv[1], encoding='utf-8').read())]\" 'a.sgm' > segments.txt"
        );
        let both = message(
            "<?xml version='1.0'?>\n<dataset><src lang=\"en\"></src><ref lang=\"fr\"></ref></dataset>\n",
        );
        let both = both.unwrap_err();
        assert!(both.starts_with("`a.sgm`, line 1: `<?xml` is SGML or XML"), "{both}");
        assert!(
            both.contains("iterfind('.//src//seg')]\" 'a.sgm' > segments.txt, and of the references with"),
            "{both}"
        );
    }
}
