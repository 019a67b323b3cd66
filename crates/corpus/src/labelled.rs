//! Labelled texts: one text, or a pair of texts, and the class that it belongs to.

/// One example of a classification data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The text, or the first of two.
    pub text: String,
    /// The second of two texts.
    pub pair: Option<String>,
    /// The name of its class, as it stands in the data.
    pub label: String,
}
