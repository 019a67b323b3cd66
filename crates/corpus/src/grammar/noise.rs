//! Noise in the source of the shifted domain, in the role of the paper's MTNT: typing errors, lower-case initials, missing punctuation.
//! Words are never joined or split, so arcs stay valid.
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const TYPING_ERROR: f64 = 0.04;
const SMALL_LETTER: f64 = 0.15;
const NO_PUNCTUATION: f64 = 0.25;

/// Makes typing errors in some words, but not in names, which have to be copied.
pub(super) fn mistype(words: &mut [String], rng: &mut ChaCha8Rng) {
    for word in words.iter_mut().filter(|word| !word.starts_with(char::is_uppercase)) {
        if word.len() > 3 && rng.random_bool(TYPING_ERROR) {
            mistype_word(word, rng);
        }
    }
}

/// Doubles, drops or swaps letters after the first one.
fn mistype_word(word: &mut String, rng: &mut ChaCha8Rng) {
    let mut letters: Vec<char> = word.chars().collect();
    let index = rng.random_range(1..letters.len() - 1);
    match rng.random_range(0..3) {
        0 => letters.insert(index, letters[index]),
        1 => drop(letters.remove(index)),
        _ => letters.swap(index, index + 1),
    }
    *word = letters.into_iter().collect();
}

/// Draws whether the sentence starts with a lower-case letter.
pub(super) fn forgets_capital(rng: &mut ChaCha8Rng) -> bool {
    rng.random_bool(SMALL_LETTER)
}

/// Draws whether the sentence ends without punctuation.
pub(super) fn forgets_punctuation(rng: &mut ChaCha8Rng) -> bool {
    rng.random_bool(NO_PUNCTUATION)
}
