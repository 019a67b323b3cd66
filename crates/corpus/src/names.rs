//! Checks names from lists and descriptions that become file names.

/// Maximum length of a file name in bytes.
const LONGEST: usize = 255;

/// Returns true if `text` can name a file or folder, and cannot lead out of the parent folder.
pub fn is_file_name(text: &str) -> bool {
    let separates = |letter: char| letter == '/' || letter == '\\' || letter.is_control();
    !["", ".", ".."].contains(&text) && text.len() <= LONGEST && !text.contains(separates)
}

/// Returns true if `text` is a path that stays below its starting folder: names separated by `/`.
pub fn is_path_below(text: &str) -> bool {
    text.split('/').all(is_file_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["dev", "test_2016.flickr", "Ça va", "...", "a..b"] {
            assert!(is_file_name(name) && is_path_below(name), "{name:?}");
        }
        for name in ["", ".", "..", "a\\b", "..\\a", "a\nb", "\u{1b}[0m", "a\0"] {
            assert!(!is_file_name(name) && !is_path_below(name), "{name:?}");
        }
        assert!(is_file_name(&"x".repeat(LONGEST)) && !is_file_name(&"x".repeat(LONGEST + 1)));
        for path in ["a/b", "glue/CoLA/dev.tsv"] {
            assert!(!is_file_name(path) && is_path_below(path), "{path:?}");
        }
        for path in ["/", "/etc", "a/../b", "../a", "a/", "a//b", "./a"] {
            assert!(!is_file_name(path) && !is_path_below(path), "{path:?}");
        }
    }
}
