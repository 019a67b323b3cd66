//! Words of both languages, most frequent first. The target words are artificial; no form belongs to two words (tested).
use Class::{First, Second, Third};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    Singular,
    Plural,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tense {
    Present,
    Past,
}

/// Noun class of the target language, visible in adjectives and in the plural.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    First,
    Second,
    Third,
}

/// A noun: English singular and plural, target stem and class.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Noun {
    pub singular: &'static str,
    pub plural: &'static str,
    pub stem: &'static str,
    pub class: Class,
}

/// A verb: English base (also the present plural), third person singular and past; target stem.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verb {
    pub base: &'static str,
    pub third: &'static str,
    pub past: &'static str,
    pub stem: &'static str,
}

/// Any other word: English form, target form or stem.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub source: &'static str,
    pub target: &'static str,
}

/// A determiner: singular and plural in English and in the target language.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Determiner {
    pub source: [&'static str; 2],
    pub target: [&'static str; 2],
}

impl Noun {
    pub fn source(&self, number: Number) -> &'static str {
        match number {
            Number::Singular => self.singular,
            Number::Plural => self.plural,
        }
    }

    /// Returns the target form: the stem, in the plural with the ending of its class.
    pub fn target(&self, number: Number) -> String {
        let ending = match (number, self.class) {
            (Number::Singular, _) => "",
            (Number::Plural, First) => "en",
            (Number::Plural, Second) => "is",
            (Number::Plural, Third) => "ot",
        };
        format!("{}{ending}", self.stem)
    }
}

impl Verb {
    /// Returns the English form without auxiliary; the past does not show the number.
    pub fn source(&self, tense: Tense, number: Number) -> &'static str {
        match (tense, number) {
            (Tense::Present, Number::Singular) => self.third,
            (Tense::Present, Number::Plural) => self.base,
            (Tense::Past, _) => self.past,
        }
    }

    /// Returns the target form, which agrees with the subject in both tenses.
    pub fn target(&self, tense: Tense, number: Number) -> String {
        let ending = match (tense, number) {
            (Tense::Present, Number::Singular) => "sk",
            (Tense::Present, Number::Plural) => "mosk",
            (Tense::Past, Number::Singular) => "rak",
            (Tense::Past, Number::Plural) => "morak",
        };
        format!("{}{ending}", self.stem)
    }
}

/// Returns the target form of the adjective `stem` for a noun of this class and number.
pub(super) fn inflect_adjective(stem: &str, class: Class, number: Number) -> String {
    let ending = match (class, number) {
        (First, Number::Singular) => "o",
        (First, Number::Plural) => "oni",
        (Second, Number::Singular) => "a",
        (Second, Number::Plural) => "ari",
        (Third, Number::Singular) => "u",
        (Third, Number::Plural) => "uli",
    };
    format!("{stem}{ending}")
}

pub(super) const NAMES: usize = 14 * 5 * 14 * 5 * 8;

/// Returns the name of this rank: two or three syllables, equal in both languages. The endings exclude words that can open a sentence, such
/// as "Some" (tested).
///
/// # Panics
/// If `rank` is not below [`NAMES`].
pub(super) fn name(rank: usize) -> String {
    assert!(rank < NAMES, "there are {NAMES} names");
    // The factor is coprime to NAMES, so all names differ; names of neighbouring ranks look different.
    let mut code = (rank * 104_729 + 12_345) % NAMES;
    let mut next = |letters: &[&'static str]| {
        let letter = letters[code % letters.len()];
        code /= letters.len();
        letter
    };
    let consonants = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"];
    let vowels = ["a", "e", "i", "o", "u"];
    let endings = ["l", "n", "s", "ra", "li", "do", "ven", "mir"];
    let parts = [next(&consonants), next(&vowels), next(&consonants), next(&vowels), next(&endings)];
    let mut name = parts.concat();
    name[..1].make_ascii_uppercase();
    name
}

const fn noun(singular: &'static str, plural: &'static str, stem: &'static str, class: Class) -> Noun {
    Noun { singular, plural, stem, class }
}

const fn verb(base: &'static str, third: &'static str, past: &'static str, stem: &'static str) -> Verb {
    Verb { base, third, past, stem }
}

const fn word(source: &'static str, target: &'static str) -> Word {
    Word { source, target }
}

pub(super) static DETERMINERS: [Determiner; 4] = [
    Determiner { source: ["the", "the"], target: ["lu", "lu"] },
    Determiner { source: ["a", "some"], target: ["en", "enin"] },
    Determiner { source: ["this", "these"], target: ["ti", "tir"] },
    Determiner { source: ["every", "all"], target: ["oma", "omar"] },
];

/// Nouns that can be the subject of a verb.
pub(super) static BEINGS: [Noun; 18] = [
    noun("dog", "dogs", "pesak", Third),
    noun("girl", "girls", "gidul", First),
    noun("man", "men", "fotal", First),
    noun("woman", "women", "tages", Third),
    noun("child", "children", "dusal", First),
    noun("king", "kings", "hiter", First),
    noun("bird", "birds", "nujar", Third),
    noun("boy", "boys", "kigus", First),
    noun("teacher", "teachers", "dukos", Third),
    noun("cat", "cats", "tivun", Second),
    noun("doctor", "doctors", "nejek", Third),
    noun("farmer", "farmers", "nuzis", Second),
    noun("horse", "horses", "nufar", Second),
    noun("sailor", "sailors", "jihon", First),
    noun("thief", "thieves", "fupis", Second),
    noun("painter", "painters", "zuvat", First),
    noun("wolf", "wolves", "mofas", Third),
    noun("uncle", "uncles", "nuvis", Second),
];

/// Nouns that cannot be a subject; they also name places.
pub(super) static THINGS: [Noun; 16] = [
    noun("house", "houses", "ravil", Third),
    noun("book", "books", "godet", Second),
    noun("tree", "trees", "hesot", Second),
    noun("box", "boxes", "fevor", Second),
    noun("boat", "boats", "homom", Third),
    noun("hat", "hats", "sehal", First),
    noun("letter", "letters", "lebot", Third),
    noun("table", "tables", "jinal", Second),
    noun("lamp", "lamps", "rupes", Third),
    noun("knife", "knives", "doson", Second),
    noun("apple", "apples", "gosal", First),
    noun("bridge", "bridges", "kojam", Third),
    noun("flower", "flowers", "dabul", Third),
    noun("stone", "stones", "gibat", First),
    noun("village", "villages", "semir", Second),
    noun("umbrella", "umbrellas", "zagon", Second),
];

pub(super) static TRANSITIVE: [Verb; 16] = [
    verb("see", "sees", "saw", "zife"),
    verb("find", "finds", "found", "gimo"),
    verb("follow", "follows", "followed", "jube"),
    verb("like", "likes", "liked", "rebu"),
    verb("watch", "watches", "watched", "namu"),
    verb("carry", "carries", "carried", "rere"),
    verb("know", "knows", "knew", "peke"),
    verb("hear", "hears", "heard", "seku"),
    verb("draw", "draws", "drew", "ziba"),
    verb("remember", "remembers", "remembered", "mome"),
    verb("want", "wants", "wanted", "rori"),
    verb("touch", "touches", "touched", "fege"),
    verb("seek", "seeks", "sought", "zepe"),
    verb("praise", "praises", "praised", "zubo"),
    verb("bring", "brings", "brought", "rago"),
    verb("forget", "forgets", "forgot", "kojo"),
];

pub(super) static INTRANSITIVE: [Verb; 12] = [
    verb("sleep", "sleeps", "slept", "paso"),
    verb("laugh", "laughs", "laughed", "saje"),
    verb("wait", "waits", "waited", "hahu"),
    verb("sing", "sings", "sang", "vezi"),
    verb("run", "runs", "ran", "huha"),
    verb("work", "works", "worked", "baho"),
    verb("fall", "falls", "fell", "kebi"),
    verb("dance", "dances", "danced", "kilu"),
    verb("smile", "smiles", "smiled", "pite"),
    verb("swim", "swims", "swam", "divu"),
    verb("shout", "shouts", "shouted", "tuhu"),
    verb("arrive", "arrives", "arrived", "hubo"),
];

/// Adjectives with their target stems.
pub(super) static ADJECTIVES: [Word; 16] = [
    word("old", "hoguk"),
    word("small", "puzar"),
    word("red", "dekik"),
    word("young", "guvuk"),
    word("happy", "fopur"),
    word("big", "kivur"),
    word("tired", "zulum"),
    word("quiet", "kohok"),
    word("clever", "sopas"),
    word("green", "lofes"),
    word("angry", "nahil"),
    word("proud", "meves"),
    word("strange", "gozes"),
    word("honest", "letun"),
    word("brave", "pokim"),
    word("elegant", "fibir"),
];

/// Adverbs between subject and verb.
pub(super) static ADVERBS: [Word; 10] = [
    word("often", "vobolek"),
    word("always", "nufash"),
    word("slowly", "gamish"),
    word("quickly", "mohunim"),
    word("rarely", "zifish"),
    word("quietly", "jofish"),
    word("secretly", "fifush"),
    word("happily", "figosh"),
    word("gladly", "putinim"),
    word("bravely", "halash"),
];

/// Adverbs that open a statement.
pub(super) static OPENINGS: [Word; 4] =
    [word("today", "majewa"), word("sometimes", "nukiwa"), word("now", "jirawa"), word("perhaps", "dabuye")];

/// Adverbs of degree, before an adjective in English and after it in the target language.
pub(super) static DEGREES: [Word; 3] = [word("very", "zew"), word("quite", "gow"), word("rather", "suw")];

/// Prepositions that attach a noun to a noun.
pub(super) static INNER_PREPOSITIONS: [Word; 3] =
    [word("with", "kewo"), word("of", "ray"), word("from", "bawo")];

/// Prepositions that attach a noun to a verb. None is an inner one, so that the sentence shows what a phrase modifies.
pub(super) static OUTER_PREPOSITIONS: [Word; 5] = [
    word("near", "teye"),
    word("in", "fowi"),
    word("behind", "liye"),
    word("under", "veye"),
    word("beside", "moye"),
];
