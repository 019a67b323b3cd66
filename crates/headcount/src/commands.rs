//! What `headcount` can do, in the order in which people need it.

/// Commands under a heading of the help.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// Programs of the workspace.
    pub programs: &'static [Program],
    /// Recipes.
    pub recipes: &'static [Recipe],
}

impl Group {
    /// The name of each command, and what it does.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let programs = self.programs.iter().map(|program| (program.name, program.about));
        programs.chain(self.recipes.iter().map(|recipe| (recipe.name, recipe.about)))
    }
}

/// A program of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name, which is a command too.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// An experiment, and what is drawn of the file whose path it prints. Programs stand with their arguments, separated by spaces.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Its command.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The subject where none is named.
    pub subject: &'static str,
    /// A program that runs first, with the subject and few options.
    pub before: Option<&'static str>,
    /// The experiment whose file is drawn; the user's arguments follow.
    pub run: &'static str,
    /// Arguments of further runs of it, behind the user's.
    pub again: &'static [&'static str],
    /// Table or figure, with options.
    pub view: &'static str,
    /// An option of the user's that the view takes too.
    pub shared: Option<&'static str>,
}

const TRANSLATOR: &str = "demo-translation";
const CLASSIFIER: &str = "demo-inference";
const LANGUAGE_MODEL: &str = "demo-language";

/// All commands.
pub const GROUPS: &[Group] = &[
    programs(
        "Data and models",
        &[
            program("fetch", "a data set, MiniLM or SmolLM2; --list names them"),
            program("import-model", "a Hugging Face folder of a GGUF file"),
            program("train-subject", "train the model of a subject, or resume its training"),
        ],
    ),
    recipes(
        "Michel et al. (2019): measure, print the table, draw the figure",
        &[
            Recipe {
                shared: Some("--attention"),
                ..recipe(
                    ["table1", "one head masked at a time, of a translator's encoder; Figure 1 too"],
                    TRANSLATOR,
                    ["ablate-one --attention paper", "table1 --with-figure"],
                )
            },
            recipe(
                ["figure1b", "the same of a classifier or a language model"],
                CLASSIFIER,
                ["ablate-one --attention self", "table1 --with-figure"],
            ),
            recipe(
                ["table2", "the best single head of each layer"],
                TRANSLATOR,
                ["ablate-all-but-one", "table2"],
            ),
            recipe(["table3", "the same of a classifier"], CLASSIFIER, ["ablate-all-but-one", "table3"]),
            recipe(
                ["table4", "speed without half of the heads"],
                CLASSIFIER,
                ["speed-bench --limit 512", "table4"],
            ),
            recipe(
                ["table5", "Table 2, heads chosen on another split"],
                TRANSLATOR,
                ["ablate-all-but-one --select-on dev", "table5"],
            ),
            recipe(
                ["table6", "Table 3, heads chosen on 5,000 training examples"],
                CLASSIFIER,
                ["ablate-all-but-one --select-on train --select-limit 5000", "table6"],
            ),
            recipe(
                ["figure2", "one head at a time on two kinds of text"],
                TRANSLATOR,
                ["cross-domain", "figure2"],
            ),
            recipe(
                ["figure3", "more and more heads masked, in three orders"],
                TRANSLATOR,
                ["iterative-prune --order importance,oracle,random", "figure3"],
            ),
            recipe(
                ["figure4", "the same, one attention type at a time"],
                TRANSLATOR,
                ["iterative-prune --attention enc-enc,enc-dec,dec-dec --order importance,random", "figure4"],
            ),
            recipe(
                ["figure5", "the same at each epoch of the training"],
                TRANSLATOR,
                ["training-dynamics", "figure5"],
            ),
            recipe(
                ["figure6", "Figure 3 of a classifier"],
                CLASSIFIER,
                ["iterative-prune --order importance,oracle,random", "figure6"],
            ),
        ],
    ),
    recipes(
        "Voita et al. (2019)",
        &[
            recipe(
                ["v19-table1", "the best head for each function"],
                TRANSLATOR,
                ["head-functions", "v19-table1"],
            ),
            recipe(["v19-figure1a", "relevance of each head"], TRANSLATOR, ["relevance", "v19-figure1a"]),
            recipe(["v19-figure1c", "functions by layer"], TRANSLATOR, ["head-functions", "v19-figure1c"]),
            recipe(
                ["v19-figure7", "the score with the heads that gates keep"],
                TRANSLATOR,
                ["train-gates --epochs 3 --control ungated,chosen,importance,random", "v19-figure7"],
            ),
            Recipe {
                before: Some("head-functions"),
                ..recipe(
                    ["v19-figure8", "functions of these heads"],
                    TRANSLATOR,
                    ["train-gates --epochs 3", "v19-figure8"],
                )
            },
            recipe(
                ["v19-figure9", "gates on all heads, by attention type"],
                TRANSLATOR,
                ["train-gates --epochs 3 --attention all", "v19-figure9"],
            ),
            recipe(
                ["v19-table2", "gates on all heads, and the same heads from scratch"],
                TRANSLATOR,
                ["train-gates --epochs 3 --attention all --control importance,scratch", "v19-table2"],
            ),
        ],
    ),
    recipes(
        "Beyond the papers",
        &[
            recipe(
                ["compare-methods", "methods that choose heads, with repairs"],
                LANGUAGE_MODEL,
                ["compare-methods", "compare-methods"],
            ),
            recipe(
                ["importance", "scores of all heads, and how they agree"],
                TRANSLATOR,
                ["importance", "agreement"],
            ),
            recipe(
                ["prune-and-retrain", "Figure 3 with training after each step"],
                TRANSLATOR,
                ["iterative-prune --retrain 1 --step-percent 25", "prune-and-retrain"],
            ),
            Recipe {
                again: &[
                    "--ablation mean",
                    "--ablation resample --draw 1",
                    "--ablation resample --draw 2",
                    "--ablation resample --draw 3",
                    "--ablation resample --draw 4",
                    "--ablation resample --draw 5",
                ],
                ..recipe(
                    ["ablation-kinds", "one head at a time: zeros, means, other texts"],
                    LANGUAGE_MODEL,
                    ["ablate-one", "ablation-kinds"],
                )
            },
            Recipe {
                again: &["--ablation mean", "--ablation resample"],
                ..recipe(
                    ["pruning-kinds", "more and more heads: zeros, means, other texts"],
                    LANGUAGE_MODEL,
                    ["iterative-prune", "pruning-kinds"],
                )
            },
            recipe(
                ["groups", "accuracy by group of questions"],
                LANGUAGE_MODEL,
                ["ablate-one --split agreement", "groups"],
            ),
            recipe(
                ["named-heads", "induction, previous-token and other known heads"],
                "demo-induction",
                ["named-heads", "named-heads"],
            ),
            recipe(
                ["llama-cpp", "pruned models in llama.cpp: speed, cache, perplexity"],
                "smollm2-135m-instruct",
                ["llama-cpp", "llama-cpp"],
            ),
        ],
    ),
    programs(
        "A model and its heads",
        &[
            program("say", "what a model makes of a text, with heads masked too"),
            program("look", "the attention of every head on a text, as one HTML file"),
            program("export-model", "the model without heads that can go, as a Hugging Face folder"),
            program("export-gguf", "a GGUF file for llama.cpp"),
        ],
    ),
    programs(
        "Results",
        &[
            program("plotting", "tables and figures: all, summary, table1 and more"),
            program("report", "all about a subject, as one HTML file"),
            program("retest", "test again, from stored statistics, without the model"),
            program("merge", "join what runs with --shard have measured"),
        ],
    ),
    programs(
        "Experiments alone, which print the path of their CSV file",
        &[
            program("ablate-one", "one head at a time"),
            program("ablate-all-but-one", "all heads of a layer but one"),
            program("iterative-prune", "more and more heads, the least important first"),
            program("joint-search", "search for heads that can go together"),
            program("cross-domain", "one head at a time, on two splits"),
            program("training-dynamics", "more and more heads, at each epoch of the training"),
            program("speed-bench", "the model with all heads and with half of them, timed"),
            program("head-functions", "positions, dependencies, rare tokens"),
            program("relevance", "layer-wise relevance propagation"),
            program("train-gates", "gates that learn which heads to keep"),
        ],
    ),
];

const fn programs(title: &'static str, programs: &'static [Program]) -> Group {
    Group { title, programs, recipes: &[] }
}

const fn recipes(title: &'static str, recipes: &'static [Recipe]) -> Group {
    Group { title, programs: &[], recipes }
}

const fn program(name: &'static str, about: &'static str) -> Program {
    Program { name, about }
}

const fn recipe(
    [name, about]: [&'static str; 2],
    subject: &'static str,
    [run, view]: [&'static str; 2],
) -> Recipe {
    Recipe { name, about, subject, before: None, run, again: &[], view, shared: None }
}
