//! What can go wrong with data sets and tokenisers.
use std::path::PathBuf;

/// Why a data set or a tokeniser could not be read, written or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Every example of a file has a label whose rows are left out.
    #[error("`{}` has no examples but those with labels to skip ({labels})", path.display())]
    AllSkipped {
        /// The file at fault.
        path: PathBuf,
        /// The labels that are left out, separated by commas.
        labels: String,
    },

    /// An archive does not hold what it should.
    #[error("`{}`: {reason}", path.display())]
    Archive {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The list of sources is not what it should be.
    #[error("`{}` is not a list of data sources: {reason}", path.display())]
    Catalogue {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong, and in which line.
        reason: String,
    },

    /// A column cannot be found in a table.
    #[error("`{}` has {found} {column}: its header names {header}", path.display())]
    Column {
        /// The file at fault.
        path: PathBuf,
        /// "no column" or "more than one column".
        found: &'static str,
        /// The column that was asked for.
        column: String,
        /// The columns that there are, separated by commas.
        header: String,
    },

    /// A fetched file is not the file that was asked for.
    #[error("`{address}` has the wrong content: its text should have sha256 {expected}, found {found}")]
    Content {
        /// Where the file came from.
        address: String,
        /// The checksum in `sources.toml`.
        expected: String,
        /// The checksum of what came, or why it has none.
        found: String,
    },

    /// A text cannot be cut into tokens.
    #[error("a text cannot be cut into tokens: {reason}")]
    Encoding {
        /// What the library says.
        reason: String,
    },

    /// A file has no lines.
    #[error("`{}` is empty: it must hold one sentence a line", path.display())]
    EmptyFile {
        /// The file at fault.
        path: PathBuf,
    },

    /// A line has no sentence.
    #[error("`{}`, line {line}: empty line, but every line must hold one sentence", path.display())]
    EmptyLine {
        /// The file at fault.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },

    /// The format of a labelled data set contradicts itself.
    #[error("the description of a data set's format is wrong: {reason}")]
    Format {
        /// What is wrong, and what is allowed.
        reason: String,
    },

    /// A model of the hub cannot be had.
    #[error("cannot get `{model}` from the hub: {reason}")]
    Hub {
        /// The model, `owner/name` or `owner/name@revision`.
        model: String,
        /// What is missing, or what the hub or the transport says.
        reason: String,
    },

    /// A text is no name of a model of the hub.
    #[error("`{text}` names no model of the hub: expected owner/name or owner/name@revision")]
    HubName {
        /// What was given.
        text: String,
    },

    /// Two files that should be parallel are not.
    #[error(
        "`{}` has {source_lines} lines, but `{}` has {target_lines}: parallel files must have equally many",
        source_path.display(), target_path.display()
    )]
    LineCounts {
        /// The source side.
        source_path: PathBuf,
        /// Its number of lines.
        source_lines: usize,
        /// The target side.
        target_path: PathBuf,
        /// Its number of lines.
        target_lines: usize,
    },

    /// A tokeniser may not return so few tokens.
    #[error("a maximum length of {asked} is too small: special tokens and one word take {least}")]
    MaximumLength {
        /// The length that was asked for.
        asked: usize,
        /// The least length that is possible.
        least: usize,
    },

    /// A file could not be fetched.
    #[error("cannot fetch `{address}`: {reason}; a copy elsewhere can be named with --mirror")]
    Network {
        /// What was asked for.
        address: String,
        /// What the transport or the server said.
        reason: String,
    },

    /// Questions of one group do not stand side by side.
    #[error("`{}`: the questions of group `{group}` must stand side by side", path.display())]
    Scattered {
        /// The first file of the split.
        path: PathBuf,
        /// The group.
        group: String,
    },

    /// Another process fetches the same data set.
    #[error("another process is fetching to `{}`: wait for it to end", path.display())]
    Busy {
        /// The folder of the data set.
        path: PathBuf,
    },

    /// Nobody offers the files of a data set to the public.
    #[error("`{name}` has no public address for these files; give --mirror ({hint})")]
    NoAddress {
        /// The data set.
        name: String,
        /// How its files can be had.
        hint: String,
    },

    /// All documents of a file are blank.
    #[error("`{}` holds no documents but blank ones", path.display())]
    NoDocuments {
        /// The file at fault.
        path: PathBuf,
    },

    /// A file has no labelled examples.
    #[error("`{}` holds no examples", path.display())]
    NoExamples {
        /// The file at fault.
        path: PathBuf,
    },

    /// A text has a token that the model does not know.
    #[error(
        "the token `{token}` has the id {id}, but the model has only {rows} embeddings: this text is not for it"
    )]
    NoRow {
        /// The token.
        token: String,
        /// Its id.
        id: u32,
        /// The number of embeddings.
        rows: i64,
    },

    /// No data set has this name.
    #[error("no data set `{name}`: known are {known}")]
    NoSuchSource {
        /// The name that was asked for.
        name: String,
        /// All names, separated by commas.
        known: String,
    },

    /// A line is not UTF-8.
    #[error("`{}`, line {line}: not valid UTF-8", path.display())]
    NotUtf8 {
        /// The file at fault.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },

    /// A Python package could not be fetched.
    #[error(
        "cannot fetch the Python package `{package}`: {reason}; a copy elsewhere can be named with --mirror"
    )]
    Package {
        /// The package, with its version.
        package: String,
        /// What is missing, or what pip says.
        reason: String,
    },

    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file at fault.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },

    /// A branch or tag in the cache of the hub leads to no commit.
    #[error("`{}` should hold a commit, 40 hexadecimal digits, but holds `{found}`", path.display())]
    Reference {
        /// The file at fault.
        path: PathBuf,
        /// What it holds.
        found: String,
    },

    /// A row of a labelled data set is not as described.
    #[error("`{}`, line {line}: {reason}", path.display())]
    Row {
        /// The file at fault.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// A sample is larger than what it is drawn from.
    #[error("`{}`: a sample of {asked} {what} is asked for, but only {found} can be drawn", path.display())]
    SampleSize {
        /// The file at fault.
        path: PathBuf,
        /// The size that was asked for, with what is skipped before it.
        asked: usize,
        /// How many could be drawn.
        found: usize,
        /// What is drawn: "pairs" or "documents".
        what: &'static str,
    },

    /// A file or folder is not what a tokeniser is read from.
    #[error("no tokeniser can be read from `{}`: {reason}", path.display())]
    Tokenizer {
        /// The file or folder at fault.
        path: PathBuf,
        /// What is missing or malformed.
        reason: String,
    },

    /// A character was not in the texts that a tokeniser's characters were taken from.
    #[error("`{}` is none of the {known} characters of the tokeniser", character.escape_debug())]
    UnknownCharacter {
        /// The character.
        character: char,
        /// How many characters the tokeniser has.
        known: usize,
    },

    /// No token has this id.
    #[error("no token has the id {id}: ids are below {size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// One more than the highest id.
        size: usize,
    },

    /// A vocabulary cannot be so small.
    #[error("a vocabulary of {asked} is too small: its letters and special tokens alone take {least}")]
    VocabularySize {
        /// The size that was asked for.
        asked: usize,
        /// The least size that is possible.
        least: usize,
    },

    /// A file could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file at fault.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}
