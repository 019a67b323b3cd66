//! Table of experiments: names of result files, programs that measure them, commands that users type, and types of rows. Everything that
//! needs one of these names reads it here.

/// Type of the rows in a result file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Effects of masking one head or all but one, tested; one row per head.
    Ablation,
    /// Steps of pruning curves, tested.
    Curve,
    /// Steps of pruning curves of checkpoints, tested.
    Dynamics,
    /// Models trained further with gates, tested.
    Gates,
    /// A list of heads and random sets, tested.
    Audit,
    /// Agreement between two sweeps, computed from their rows.
    Correlation,
    /// Rows of other types, which are not tested.
    Untested,
}

/// An experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Name in signatures, and prefix of the names of its result files.
    pub name: &'static str,
    /// Program that measures it.
    pub program: &'static str,
    /// Command of `headcount` and `just` that runs the program.
    pub command: &'static str,
    /// Type of the rows in its files.
    pub rows: Rows,
}

/// Returns an experiment whose program has the name of the experiment.
const fn own(name: &'static str, command: &'static str, rows: Rows) -> Experiment {
    Experiment { name, program: name, command, rows }
}

macro_rules! experiments {
    ($($(#[$meta:meta])* $name:ident = $entry:expr;)*) => {
        $($(#[$meta])* pub const $name: Experiment = $entry;)*
        /// All experiments, by name.
        pub const ALL: &[Experiment] = &[$($name),*];
    };
}

experiments! {
    /// One head of a layer is kept.
    ABLATE_ALL_BUT_ONE = own("ablate-all-but-one", "layers", Rows::Ablation);
    /// Each head is masked alone.
    ABLATE_ONE = own("ablate-one", "heads", Rows::Ablation);
    /// A list of heads compared with random sets.
    AUDIT = own("audit", "audit", Rows::Audit);
    /// Rankings and searches at equal numbers of heads, with repairs.
    COMPARE_METHODS =
        Experiment { name: "compare-methods", command: "methods", ..ITERATIVE_PRUNE };
    /// Two sweeps of single heads are compared.
    CROSS_DOMAIN = own("cross-domain", "domains", Rows::Correlation);
    /// What heads attend to.
    HEAD_FUNCTIONS = own("head-functions", "functions", Rows::Untested);
    /// Criteria that rank heads.
    IMPORTANCE = own("importance", "importance", Rows::Untested);
    /// Pruning curves.
    ITERATIVE_PRUNE = own("iterative-prune", "prune", Rows::Curve);
    /// Search for heads that can be masked together.
    JOINT_SEARCH = Experiment { name: "joint-search", command: "joint-search", ..ITERATIVE_PRUNE };
    /// Pruned models in llama.cpp.
    LLAMA_CPP = own("llama-cpp", "llama-cpp", Rows::Untested);
    /// Induction heads and other named types of heads.
    NAMED_HEADS = own("named-heads", "named-heads", Rows::Untested);
    /// Pruning curves with the model of each step retrained.
    PRUNE_AND_RETRAIN =
        Experiment { name: "prune-and-retrain", command: "retrain", ..ITERATIVE_PRUNE };
    /// Relevance of heads for predictions.
    RELEVANCE = own("relevance", "relevance", Rows::Untested);
    /// Speed with and without some heads.
    SPEED_BENCH = own("speed-bench", "speed", Rows::Untested);
    /// Models trained further with gates, and baselines.
    TRAIN_GATES = own("train-gates", "gates", Rows::Gates);
    /// Training of a setup's model.
    TRAIN_SUBJECT = own("train-subject", "train", Rows::Untested);
    /// Pruning curves of checkpoints.
    TRAINING_DYNAMICS = own("training-dynamics", "training", Rows::Dynamics);
}

impl Experiment {
    /// Returns the experiment with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|experiment| experiment.name == name)
    }
}
