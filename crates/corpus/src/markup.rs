//! Refusal of SGML and XML where a file must contain one segment per line: the test sets of WMT come with markup, which would
//! otherwise be translated and scored.
use std::path::Path;

use crate::Error;

/// Names of elements that test sets of WMT and NIST begin with.
const ELEMENTS: [&str; 7] = ["srcset", "refset", "tstset", "mteval", "dataset", "doc", "seg"];
/// Declarations that SGML and XML begin with.
const DECLARATIONS: [&str; 2] = ["?xml", "!doctype"];

/// Returns the markup that a line begins with, such as `<srcset`, if it is one of these.
fn opening(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let tag = line.strip_prefix('<')?;
    let length = tag.find(|letter: char| letter.is_whitespace() || ['>', '/'].contains(&letter));
    let name = &tag[..length.unwrap_or(tag.len())];
    let is_known = |known: &&str| name.eq_ignore_ascii_case(known);
    ELEMENTS.iter().chain(&DECLARATIONS).any(is_known).then(|| &line[..=name.len()])
}

/// Refuses a file of one segment per line whose first line that is not blank begins with markup.
pub(crate) fn refuse(content: &str, path: &Path) -> Result<(), Error> {
    let Some((line, number)) = content.split('\n').zip(1..).find(|(line, _)| !line.trim().is_empty()) else {
        return Ok(());
    };
    let Some(markup) = opening(line) else { return Ok(()) };
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
