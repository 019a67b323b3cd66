//! The commands of `headcount`, in the order of use.
//!
//! A command runs a program; an experiment's command then draws what the program measured. For each command the justfile has a recipe of
//! that name, or `reproduce-<name>` for the papers' tables and figures.

use heads::experiment::{
    ABLATE_ALL_BUT_ONE, ABLATE_ONE, AUDIT, COMPARE_METHODS, CROSS_DOMAIN, HEAD_FUNCTIONS, IMPORTANCE,
    ITERATIVE_PRUNE, LLAMA_CPP, NAMED_HEADS, PRUNE_AND_RETRAIN, RELEVANCE, SPEED_BENCH, TRAIN_GATES,
    TRAIN_SUBJECT, TRAINING_DYNAMICS,
};

/// Commands under one heading of the help.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The commands, in the order of use.
    pub commands: &'static [Entry],
}

/// A command.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it does, in at most ten words.
    pub about: &'static str,
    /// Former names, which still work.
    pub aliases: &'static [&'static str],
    /// The program that it runs.
    pub program: &'static str,
    /// The first arguments of the program, separated by spaces; the user's arguments follow.
    pub arguments: &'static str,
    /// Default setup; `None` if the program has its own default, or needs no setup.
    pub setup: Option<&'static str>,
    /// Program that runs first, with the setup and the common options.
    pub before: Option<&'static str>,
    /// Further runs of the program, each with arguments that follow the user's.
    pub again: &'static [&'static str],
    /// Tables and figures to draw from the file whose path the program prints, with options; if empty, the program replaces this process.
    pub views: &'static [&'static str],
    /// Option that is passed to the first view as well.
    pub shared: Option<&'static str>,
}

impl Entry {
    /// Returns the program with its first arguments.
    pub fn run(&self) -> String {
        format!("{} {}", self.program, self.arguments).trim_end().to_owned()
    }

    /// Returns true if the command has, or had, this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// Returns the command with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    GROUPS.iter().flat_map(|group| group.commands).find(|entry| entry.is_called(name))
}

/// Titles of the groups for the papers' tables and figures; their recipes start with `reproduce-`.
pub const PAPERS: [&str; 2] =
    ["Tables and figures of Michel et al. (2019):", "Tables and figures of Voita et al. (2019):"];

const TRANSLATOR: &str = "demo-translation";
const CLASSIFIER: &str = "demo-inference";
const LANGUAGE_MODEL: &str = "demo-language";

/// Kinds of ablation in addition to zero ablation.
const DRAWS: &[&str] = &[
    "--ablation mean",
    "--ablation resample --draw 1",
    "--ablation resample --draw 2",
    "--ablation resample --draw 3",
    "--ablation resample --draw 4",
    "--ablation resample --draw 5",
];

/// All commands.
pub const GROUPS: &[Group] = &[
    Group {
        title: "Set up:",
        commands: &[
            program("init", "describe a model and its data: init NAME MODEL [FILES…]", "init", ""),
            program("fetch", "fetch data or a small model; --list names them", "fetch", ""),
            experiment(
                "train",
                "train the model of a setup, or resume its training",
                TRANSLATOR,
                TRAIN_SUBJECT.program,
                "",
            )
            .also(&[TRAIN_SUBJECT.name]),
            program("import-model", "convert a GGUF file to a Hugging Face folder", "import-model", ""),
        ],
    },
    Group {
        title: "Which heads does the model need?",
        commands: &[
            experiment(
                "heads",
                "mask each head alone: a table, a map, verdicts",
                "demo-induction",
                ABLATE_ONE.program,
                "",
            )
            .draws(&["table1 --attention all --with-figure", "heads"])
            .shares("--attention"),
            experiment(
                "layers",
                "mask all heads of a layer but one",
                CLASSIFIER,
                ABLATE_ALL_BUT_ONE.program,
                "",
            )
            .draws(&["table2"]),
            experiment(
                "prune",
                "mask more and more heads: how many are dispensable?",
                CLASSIFIER,
                ITERATIVE_PRUNE.program,
                "--order importance,oracle,random",
            )
            .draws(&["figure3"]),
            experiment(
                "retrain",
                "mask more and more heads and retrain each time",
                TRANSLATOR,
                ITERATIVE_PRUNE.program,
                "--retrain 1 --step-percent 25",
            )
            .draws(&["prune-and-retrain"])
            .also(&[PRUNE_AND_RETRAIN.name]),
            experiment(
                "speed",
                "time the model with half of its heads",
                CLASSIFIER,
                SPEED_BENCH.program,
                "--limit first:512",
            )
            .draws(&["table4"]),
        ],
    },
    Group {
        title: "Does that hold elsewhere?",
        commands: &[
            experiment(
                "domains",
                "mask each head alone on two test sets",
                TRANSLATOR,
                CROSS_DOMAIN.program,
                "",
            )
            .draws(&["figure2"]),
            experiment(
                "training",
                "mask more and more heads at each checkpoint",
                TRANSLATOR,
                TRAINING_DYNAMICS.program,
                "",
            )
            .draws(&["figure5"]),
            experiment(
                "audit",
                "mask a list of heads: does it beat random sets?",
                "demo-induction",
                AUDIT.program,
                "",
            )
            .draws(&["audit"]),
            experiment(
                "groups",
                "which heads each group of questions needs",
                LANGUAGE_MODEL,
                ABLATE_ONE.program,
                "--split agreement",
            )
            .draws(&["groups"]),
            experiment(
                "kinds",
                "replace each head with zeros, means, other texts",
                LANGUAGE_MODEL,
                ABLATE_ONE.program,
                "",
            )
            .repeats(DRAWS)
            .draws(&["ablation-kinds"])
            .also(&["ablation-kinds"]),
            experiment(
                "pruning-kinds",
                "replace more and more heads with zeros, means, other texts",
                LANGUAGE_MODEL,
                ITERATIVE_PRUNE.program,
                "",
            )
            .repeats(&["--ablation mean", "--ablation resample"])
            .draws(&["pruning-kinds"]),
        ],
    },
    Group {
        title: "What do the heads do?",
        commands: &[
            experiment(
                "functions",
                "find positional, syntactic and rare-token heads",
                TRANSLATOR,
                HEAD_FUNCTIONS.program,
                "",
            )
            .draws(&["v19-table1", "v19-figure1c"]),
            experiment(
                "named-heads",
                "find induction, previous-token and other known heads",
                "demo-induction",
                NAMED_HEADS.program,
                "",
            )
            .draws(&["named-heads"]),
            experiment(
                "relevance",
                "trace each prediction back to the heads",
                TRANSLATOR,
                RELEVANCE.program,
                "",
            )
            .draws(&["v19-figure1a"]),
            program("look", "show the attention of every head on a text", "look", ""),
            program("say", "run the model on a text, with and without masking", "say", ""),
        ],
    },
    Group {
        title: "Which heads to remove?",
        commands: &[
            experiment(
                "gates",
                "train gates that choose which heads to keep",
                TRANSLATOR,
                TRAIN_GATES.program,
                "--epochs 3 --control ungated,chosen,importance,random",
            )
            .draws(&["v19-figure7"]),
            experiment(
                "methods",
                "compare rankings, searches and repairs",
                LANGUAGE_MODEL,
                ITERATIVE_PRUNE.program,
                "--preset compare-methods",
            )
            .draws(&["compare-methods"])
            .also(&[COMPARE_METHODS.name]),
            experiment(
                "importance",
                "rank all heads in every way and compare rankings",
                TRANSLATOR,
                IMPORTANCE.program,
                "",
            )
            .draws(&["agreement"]),
            experiment(
                "joint-search",
                "search for heads that are dispensable together",
                CLASSIFIER,
                ITERATIVE_PRUNE.program,
                "--preset joint-search",
            ),
            program("export", "save the model without dispensable heads", "export-model", "")
                .also(&["export-model"]),
            program("export-gguf", "convert a model, also a pruned one, for llama.cpp", "export-gguf", ""),
            experiment(
                "llama-cpp",
                "run pruned models in llama.cpp: speed, cache, perplexity",
                "smollm2-135m-instruct",
                LLAMA_CPP.program,
                "",
            )
            .draws(&["llama-cpp"]),
        ],
    },
    Group {
        title: "Results:",
        commands: &[
            program("report", "collect all results of a setup in one HTML file", "report", ""),
            experiment(
                "figures",
                "draw all tables and figures of a setup again",
                TRANSLATOR,
                "plotting",
                "all",
            ),
            program("summary", "print the paper's claims next to all results", "plotting", "summary"),
            program("compare", "compare any two runs: worse, no worse or undecided", "compare", ""),
            program("retest", "repeat all tests from stored statistics, without models", "retest", ""),
            experiment("merge", "join the results of runs with --shard", TRANSLATOR, "merge", ""),
            program("bench", "measure speed as ratios (in a clone of the repository)", "bench", ""),
        ],
    },
    Group {
        title: PAPERS[0],
        commands: &[
            experiment(
                "table1",
                "heads of the encoder, or of models without one",
                TRANSLATOR,
                ABLATE_ONE.program,
                "--attention paper",
            )
            .draws(&["table1 --with-figure"])
            .shares("--attention"),
            experiment(
                "figure1b",
                "heads of a classifier",
                CLASSIFIER,
                ABLATE_ONE.program,
                "--attention self",
            )
            .draws(&["table1 --with-figure"]),
            experiment("table2", "layers of a translator", TRANSLATOR, ABLATE_ALL_BUT_ONE.program, "")
                .draws(&["table2"]),
            experiment("table3", "layers of a classifier", CLASSIFIER, ABLATE_ALL_BUT_ONE.program, "")
                .draws(&["table3"]),
            experiment(
                "table4",
                "speed of a classifier",
                CLASSIFIER,
                SPEED_BENCH.program,
                "--limit first:512",
            )
            .draws(&["table4"]),
            experiment(
                "table5",
                "Table 2 with heads chosen on another split",
                TRANSLATOR,
                ABLATE_ALL_BUT_ONE.program,
                "--select-on dev",
            )
            .draws(&["table5"]),
            experiment(
                "table6",
                "Table 3 with heads chosen on 5,000 training examples",
                CLASSIFIER,
                ABLATE_ALL_BUT_ONE.program,
                "--select-on train --select-limit 5000",
            )
            .draws(&["table6"]),
            experiment("figure2", "domains", TRANSLATOR, CROSS_DOMAIN.program, "").draws(&["figure2"]),
            experiment(
                "figure3",
                "prune a translator",
                TRANSLATOR,
                ITERATIVE_PRUNE.program,
                "--order importance,oracle,random",
            )
            .draws(&["figure3"]),
            experiment(
                "figure4",
                "prune one attention type at a time",
                TRANSLATOR,
                ITERATIVE_PRUNE.program,
                "--attention enc-enc,enc-dec,dec-dec --order importance,random",
            )
            .draws(&["figure4"]),
            experiment("figure5", "training", TRANSLATOR, TRAINING_DYNAMICS.program, "").draws(&["figure5"]),
            experiment(
                "figure6",
                "prune a classifier",
                CLASSIFIER,
                ITERATIVE_PRUNE.program,
                "--order importance,oracle,random",
            )
            .draws(&["figure6"]),
        ],
    },
    Group {
        title: PAPERS[1],
        commands: &[
            experiment(
                "v19-table1",
                "the best head for each function",
                TRANSLATOR,
                HEAD_FUNCTIONS.program,
                "",
            )
            .draws(&["v19-table1"]),
            experiment("v19-figure1a", "relevance of each head", TRANSLATOR, RELEVANCE.program, "")
                .draws(&["v19-figure1a"]),
            experiment("v19-figure1c", "functions by layer", TRANSLATOR, HEAD_FUNCTIONS.program, "")
                .draws(&["v19-figure1c"]),
            experiment(
                "v19-figure7",
                "gates, with controls",
                TRANSLATOR,
                TRAIN_GATES.program,
                "--epochs 3 --control ungated,chosen,importance,random",
            )
            .draws(&["v19-figure7"]),
            experiment(
                "v19-figure8",
                "functions of the heads that gates keep",
                TRANSLATOR,
                TRAIN_GATES.program,
                "--epochs 3",
            )
            .after(HEAD_FUNCTIONS.program)
            .draws(&["v19-figure8"]),
            experiment(
                "v19-figure9",
                "gates on all attention types",
                TRANSLATOR,
                TRAIN_GATES.program,
                "--epochs 3 --attention all",
            )
            .draws(&["v19-figure9"]),
            experiment(
                "v19-table2",
                "gates on all heads, and the same heads from scratch",
                TRANSLATOR,
                TRAIN_GATES.program,
                "--epochs 3 --attention all --control importance,scratch",
            )
            .draws(&["v19-table2"]),
        ],
    },
];

/// Programs that can also be called by their own names: they measure, print the path of their CSV file, and draw nothing.
pub const PROGRAMS: [&str; 9] = [
    ABLATE_ONE.program,
    ABLATE_ALL_BUT_ONE.program,
    ITERATIVE_PRUNE.program,
    CROSS_DOMAIN.program,
    TRAINING_DYNAMICS.program,
    SPEED_BENCH.program,
    HEAD_FUNCTIONS.program,
    TRAIN_GATES.program,
    "plotting",
];

const fn program(
    name: &'static str,
    about: &'static str,
    program: &'static str,
    arguments: &'static str,
) -> Entry {
    Entry {
        name,
        about,
        aliases: &[],
        program,
        arguments,
        setup: None,
        before: None,
        again: &[],
        views: &[],
        shared: None,
    }
}

const fn experiment(
    name: &'static str,
    about: &'static str,
    setup: &'static str,
    run: &'static str,
    arguments: &'static str,
) -> Entry {
    Entry { setup: Some(setup), ..program(name, about, run, arguments) }
}

impl Entry {
    const fn draws(self, views: &'static [&'static str]) -> Self {
        Self { views, ..self }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn repeats(self, again: &'static [&'static str]) -> Self {
        Self { again, ..self }
    }

    const fn after(self, program: &'static str) -> Self {
        Self { before: Some(program), ..self }
    }

    const fn shares(self, option: &'static str) -> Self {
        Self { shared: Some(option), ..self }
    }
}
