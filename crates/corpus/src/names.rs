//! Names in lists and descriptions that become names of files.

/// Whether `text` can be the name of a file or folder, and of nothing outside the folder that it is put in.
pub fn is_file_name(text: &str) -> bool {
    let separates = |letter: char| letter == '/' || letter == '\\' || letter.is_control();
    !["", ".", ".."].contains(&text) && !text.contains(separates)
}

/// Whether `text` is a path that leads below the folder that it starts from: names with `/` between them.
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
        for path in ["a/b", "glue/CoLA/dev.tsv"] {
            assert!(!is_file_name(path) && is_path_below(path), "{path:?}");
        }
        for path in ["/", "/etc", "a/../b", "../a", "a/", "a//b", "./a"] {
            assert!(!is_file_name(path) && !is_path_below(path), "{path:?}");
        }
    }
}
