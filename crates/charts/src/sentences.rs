//! Sentences of captions.

/// Sentences of a caption: one, several, or none if they do not apply.
pub trait Sentences {
    /// Returns all sentences, without full stops.
    fn all(self) -> Vec<String>;
}

impl Sentences for &str {
    fn all(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl Sentences for String {
    fn all(self) -> Vec<String> {
        vec![self]
    }
}

impl<T: Sentences> Sentences for Option<T> {
    fn all(self) -> Vec<String> {
        self.map(T::all).unwrap_or_default()
    }
}

impl<T: Sentences> Sentences for Vec<T> {
    fn all(self) -> Vec<String> {
        self.into_iter().flat_map(T::all).collect()
    }
}
