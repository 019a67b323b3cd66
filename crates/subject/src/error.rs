//! What can go wrong between a subject's TOML file and its scores.
use std::path::PathBuf;

/// Why a subject could not be opened, trained or scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant names its fields")]
pub enum Error {
    /// A data set or a tokeniser is at fault.
    #[error(transparent)]
    Corpus(#[from] corpus::Error),

    /// A data file is not there, and a command would bring it.
    #[error("`{}` is missing: run `just fetch {fetch}`", path.display())]
    NotFetched { path: PathBuf, fetch: String },

    /// Zeros in the place of weights that are not there.
    #[error(
        "`{}` has {removed} heads cut out of its weights: a dense model can only be made of one with all its heads",
        folder.display()
    )]
    NotDense { folder: PathBuf, removed: usize },

    /// A split without a sentence.
    #[error("split `{split}` is empty: it must hold at least one segment")]
    EmptySplit { split: String },

    /// Less memory than one text takes.
    #[error(
        "{memory} bytes of memory are too few for a text of {tokens} tokens: give at least --memory {}K", needed.div_ceil(1 << 10)
    )]
    Memory { memory: u64, needed: u64, tokens: u64 },

    /// A checkpoint or a head is at fault.
    #[error(transparent)]
    Model(#[from] core_masking::Error),

    /// A name of heads, or a head that the model does not have.
    #[error(transparent)]
    Heads(#[from] heads::Error),

    /// A checkpoint folder that is not there.
    #[error("no model in `{}`: it must be a Hugging Face folder with a config.json", folder.display())]
    NoCheckpoint { folder: PathBuf },

    /// A split to train on that is of questions.
    #[error("split `{split}` holds questions, but a language model is trained on documents")]
    NoDocuments { split: String },

    /// A choice of which nothing can be predicted.
    #[error("split `{split}`, question {number}: a choice has no token that something comes before")]
    EmptyChoice { split: String, number: usize },

    /// Documents of which nothing can be predicted.
    #[error("split `{split}` has no token to predict: documents need two, or a symbol that they begin with")]
    NothingToPredict { split: String },

    /// Windows that leave tokens out.
    #[error("windows.stride is {stride}, but windows have {length} tokens: the stride must be at most that")]
    Stride { stride: usize, length: usize },

    /// A split whose file nobody has described.
    #[error("split `{split}` has no format: [data.format] says how its file is to be read")]
    NoFormat { split: String },

    /// A class that is none of the model's.
    #[error("no class `{label}`: there are {}", quoted(known))]
    NoSuchLabel { label: String, known: Vec<String> },

    /// A model through which relevance cannot be followed.
    #[error(
        "relevance is followed through translators and classifiers alone: for language models, with norms before each block, \
         rotary positions and products of gates, its source has no rules"
    )]
    NoRelevance,

    /// No subject of that name.
    #[error("no subject `{name}`: `{}` is not a file{}", path.display(), listed(known))]
    NoSuchSubject { name: String, path: PathBuf, known: Vec<String> },

    /// No split of that name.
    #[error("no split `{split}`: this subject has {}", known.join(", "))]
    NoSuchSplit { split: String, known: Vec<String> },

    /// A holdout that would leave nothing.
    #[error(
        "data.holdout takes {asked} examples out of split `{split}`, which has {found}: none would be left"
    )]
    Holdout { split: String, asked: usize, found: usize },

    /// A model that cannot be asked for this many tokens.
    #[error("a text cannot be continued by {tokens} tokens: the model has {positions} positions")]
    NoRoom { tokens: usize, positions: usize },

    /// Nothing to continue, and no symbol that texts begin with.
    #[error("an empty text cannot be continued: this model has no symbol that texts begin with")]
    NoPrompt,

    /// A subject that does not continue texts.
    #[error("only language models continue texts")]
    NoContinuation,

    /// A training that has left no epoch.
    #[error("`{}` has no epoch that counts: remove it and the folder of its model", path.display())]
    NoEpoch { path: PathBuf },

    /// A subject that does not translate.
    #[error("subject `{name}` is not a translator")]
    NoTranslator { name: String },

    /// A subject that is nothing to train.
    #[error("subject `{name}` is not trained: its model is a checkpoint that is taken as it is")]
    NotTrained { name: String },

    /// A subject whose model cannot be trained again from scratch.
    #[error(
        "subject `{name}` is fine-tuned on top of a checkpoint: its heads can be trained from scratch only where the whole model is"
    )]
    NotFromNothing { name: String },

    /// A longer text than the model has positions for.
    #[error(
        "tokenizer.max_length is {length}, but the model in `{}` has {positions} positions",
        folder.display()
    )]
    MaxLength { folder: PathBuf, length: usize, positions: i64 },

    /// Classes that are others than the model's.
    #[error(
        "data.labels are {}, but the model in `{}` knows {}: data.rename must give the names of the data the model's",
        quoted(named), folder.display(), quoted(known)
    )]
    OtherLabels { folder: PathBuf, named: Vec<String>, known: Vec<String> },

    /// A model folder with another architecture or vocabulary than the subject's.
    #[error(
        "the model in `{}` is not the one that subject `{name}` describes: its config.json or tokenizer.json differs",
        folder.display()
    )]
    OtherModel { folder: PathBuf, name: String },

    /// A tokeniser that pads with another token than the model.
    #[error(
        "`{}`: the tokeniser pads with token {found}, but the model with {expected}: they do not belong together",
        folder.display()
    )]
    Padding { folder: PathBuf, found: u32, expected: u32 },

    /// A model that would be fine-tuned into its own folder.
    #[error("`{}` is both the checkpoint and the folder of the trained model: copy it elsewhere", folder.display())]
    OwnBase { folder: PathBuf },

    /// A tokeniser that only knows ids.
    #[error(
        "the tokeniser in `{}` does not say where in a text its tokens stand, so that words cannot be told from pieces: this \
         takes byte-level BPE, WordPiece or another `tokenizer.json`",
        folder.display()
    )]
    NoPlaces { folder: PathBuf },

    /// A text that is shorter than one stretch to train on.
    #[error("split `{split}` has {found} tokens, but training.blocks needs at least {least}")]
    TooShort { split: String, found: usize, least: usize },

    /// Logits, or derivatives, beyond the range of numbers.
    #[error(
        "the model's logits or their derivatives are not finite: the weights or bf16 overflow on this data"
    )]
    NotFinite,

    /// A split none of whose pairs fits the model.
    #[error("split `{split}`: every pair is longer than the {positions} positions of the model")]
    AllTooLong { split: String, positions: i64 },

    /// A file of a training run could not be read.
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },

    /// A result file is at fault.
    #[error(transparent)]
    Records(#[from] records::Error),

    /// A sentence that the model has no positions for.
    #[error("split `{split}`, sentence {line}: {length} tokens, but the model has {positions} positions")]
    SentenceTooLong { split: String, line: usize, length: usize, positions: usize },

    /// A subject's TOML file that cannot be understood.
    #[error("`{}`: {fault}", path.display())]
    Spec { path: PathBuf, fault: String },

    /// The model could not be trained, or the machine is at fault.
    #[error(transparent)]
    Training(#[from] training::Error),

    /// A significance test could not be made.
    #[error(transparent)]
    Statistics(#[from] stats::Error),

    /// A measure of two classes, asked of more.
    #[error("score.metric {metric} is for two classes, but there are {}: {}", labels.len(), quoted(labels))]
    TwoClasses { metric: &'static str, labels: Vec<String> },

    /// A label in the data that the model does not know.
    #[error("split `{split}`, example {number}: label `{label}` is not one of {}", quoted(known))]
    UnknownLabel { split: String, number: usize, label: String, known: Vec<String> },

    /// A checkpoint whose classes nobody has named.
    #[error(
        "the {classes} classes of the model in `{}` have no names: data.labels must give them, in its order",
        folder.display()
    )]
    UnnamedLabels { folder: PathBuf, classes: usize },

    /// A tokeniser that does not belong to the model.
    #[error(
        "`{}`: the tokeniser has {tokens} tokens, but the model embeds {embeddings}: they do not belong together",
        folder.display()
    )]
    Vocabulary { folder: PathBuf, tokens: usize, embeddings: i64 },

    /// A file of a training run could not be written.
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

impl From<durable::Error> for Error {
    fn from(durable::Error { path, source }: durable::Error) -> Self {
        Self::Write { path, source }
    }
}

impl Error {
    /// A split that a demo grammar does not have.
    pub(crate) fn no_such_split(split: &str, known: &[&str]) -> Self {
        let known = known.iter().map(|&name| name.to_owned()).collect();
        Self::NoSuchSplit { split: split.to_owned(), known }
    }
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) }
}

/// Names as messages show them.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
