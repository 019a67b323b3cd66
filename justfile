# Which attention heads does a model need? `just` alone lists the recipes.

set positional-arguments

# libtorch comes from a Python package index; every recipe that builds asks for it first.
python := env("PYTHON", "python3")

# Not target/release/ itself: cargo knows where that is, and sets what .cargo/config.toml says.
run := "cargo run --quiet --release --locked --bin"

# The same for recipes that build nothing before: without --quiet, so that cargo names what it compiles.
build_and_run := "cargo run --release --locked --bin"

[private]
default:
    @just --list --unsorted

# Prepare libtorch in .libtorch/ (550 MB, once); does nothing when LIBTORCH is set
[group('set-up')]
setup:
    @{{ python }} .setup/libtorch.py

# The same with CUDA libraries, for a machine with a GPU
[group('set-up')]
setup-cuda:
    @{{ python }} .setup/libtorch.py --cuda

# What a recipe runs is built before anything is trained
[private]
build +binaries: setup
    cargo build --release --locked --bin headcount {{ prepend("--bin ", binaries) }}

# Fetch a data set, MiniLM or SmolLM2, `just fetch --list` names them; --mirror takes a folder or an address
[group('set-up')]
fetch *args:
    {{ build_and_run }} fetch -- "$@"

# A Hugging Face folder of a GGUF file of architecture `llama` or `gemma3`: `just import-model FILE.gguf FOLDER`
[group('set-up')]
import-model *args:
    {{ build_and_run }} import-model -- "$@"

# A GGUF file for llama.cpp of a Llama, Mistral or Qwen2, also of one that export-model has cut heads out of; `--type f32|f16|q8_0`
[group('set-up')]
export-gguf *args:
    {{ build_and_run }} export-gguf -- "$@"

# The Python wheel, in target/wheel/: all programs, on the libtorch inside the package torch
[group('set-up')]
wheel: setup
    cargo build --release --locked --bin headcount --bin headcount-programs
    rm -rf target/wheel
    {{ python }} -m pip wheel --disable-pip-version-check --no-deps --wheel-dir target/wheel crates/wheel

# The wheel outside the repository, without a compiler: a demo's table, and the notebook; in an environment of its own, or one that is prepared
[group('check')]
check-wheel *environment: wheel
    {{ python }} crates/wheel/python/check_wheel.py target/wheel/*.whl "$@"

# All tests
[group('check')]
test *args: setup
    cargo test --release --locked --workspace "$@"

# The reports of all committed results, and pages of `look`, in headless Chromium; `CHROMIUM` names it where it is not in /usr/bin; needs Node 18 and npm
[group('check')]
test-browser *args:
    cargo run --quiet --release --locked --bin report -- --all
    npm ci --prefix crates/report/tests/browser --no-audit --no-fund --engine-strict
    node crates/report/tests/browser/check.mjs results "$@"
    LOOK_PAGES="$PWD/target/look-pages" cargo test --quiet --release --locked -p report --test look
    node crates/report/tests/browser/look.mjs target/look-pages

# Formatting and lints, warnings as errors
[group('check')]
lint: setup
    cargo fmt --all --check
    cargo clippy --release --locked --workspace --all-targets -- -D warnings

# Licences, bans and sources of all dependencies, as deny.toml says, and advisories where their database can be fetched
[group('check')]
deny:
    cargo deny --locked check licenses bans sources
    @if cargo deny fetch db; then cargo deny --locked check --disable-fetch advisories; \
        else echo "ADVISORIES ARE NOT CHECKED: their database cannot be fetched" >&2; fi

# Try exports of all families in transformers, which `PYTHON` must have, and print what it reads; or those of a model of yours: `just check-export --help`
[group('check')]
check-export *args: setup
    {{ if args == "" { "PYTHON=" + quote(python) + " cargo test --release --locked -p export-model --test transformers -- --nocapture" } else { python + " crates/export-model/tests/check_export.py" } }} "$@"

# Check the converter of fairseq's archives on tiny ones; needs torch, and compares logits if transformers 4 with sacremoses is there too
[group('check')]
check-fairseq *args:
    {{ python }} crates/core-masking/tests/fairseq_to_fsmt.py "$@"

# Compare GGUF files with the models that they are made of, in llama.cpp; needs llama-cpp-python and transformers; `just check-gguf --help`
[group('check')]
check-gguf *args:
    cargo build --release --locked --bin import-model --bin export-gguf
    {{ python }} crates/gguf/tests/check_gguf.py "$@"

# Speed ratios in one table: sweeps, kinds of ablation, bf16, removed heads; language models, decoding and training against transformers; `just bench --help`
[group('check')]
bench *args: setup
    cargo bench --locked -p experiment --bench ratios -- "$@"
    cargo bench --locked -p stats --bench bootstrap

# Train the model of a subject, or resume its training
[group('experiments')]
train subject="demo-translation" *args: (build "train-subject")
    {{ run }} train-subject -- "$@"

# Experiments train the model if needed, reuse existing results with the same settings, compute what is missing, and print the
# path of the result file, which `headcount` then draws; `--again` after the subject computes everything again.

# Table 1 and Figure 1: mask each head in turn, of a translator's encoder or of a model with one attention type; `--attention all` after the subject for all types
[group('paper')]
reproduce-table1 subject="demo-translation" *args: (build "ablate-one" "plotting")
    {{ run }} headcount -- table1 "$@"

# Figure 1b and the layer x head table of a BERT classifier or a language model: mask each head in turn
[group('paper')]
reproduce-figure1b subject="demo-inference" *args: (build "ablate-one" "plotting")
    {{ run }} headcount -- figure1b "$@"

# Table 2: mask all heads of a layer but one, and print the best of each layer; for language models too
[group('paper')]
reproduce-table2 subject="demo-translation" *args: (build "ablate-all-but-one" "plotting")
    {{ run }} headcount -- table2 "$@"

# Table 3: the same for a BERT classifier
[group('paper')]
reproduce-table3 subject="demo-inference" *args: (build "ablate-all-but-one" "plotting")
    {{ run }} headcount -- table3 "$@"

# Table 4: the intact model and one with half of its heads removed, timed in turn; for language models the prefill
[group('paper')]
reproduce-table4 subject="demo-inference" *args: (build "speed-bench" "plotting")
    {{ run }} headcount -- table4 "$@"

# Table 5: Table 2 with the best heads chosen on another split, dev or that of `--select-on`; for language models too
[group('paper')]
reproduce-table5 subject="demo-translation" *args: (build "ablate-all-but-one" "plotting")
    {{ run }} headcount -- table5 "$@"

# Table 6: the same for a BERT classifier, chosen on 5,000 training examples
[group('paper')]
reproduce-table6 subject="demo-inference" *args: (build "ablate-all-but-one" "plotting")
    {{ run }} headcount -- table6 "$@"

# Figure 2: mask each head in turn on the test split and on another domain (or name it by `--against`), and correlate; for language models two splits of texts, or two of questions
[group('paper')]
reproduce-figure2 subject="demo-translation" *args: (build "cross-domain" "plotting")
    {{ run }} headcount -- figure2 "$@"

# Figure 3: mask more and more heads by importance, by oracle, at random; `--unit group` masks heads that share keys and values together
[group('paper')]
reproduce-figure3 subject="demo-translation" *args: (build "iterative-prune" "plotting")
    {{ run }} headcount -- figure3 "$@"

# Figure 4: the same by importance and at random, one attention type at a time; for translators
[group('paper')]
reproduce-figure4 subject="demo-translation" *args: (build "iterative-prune" "plotting")
    {{ run }} headcount -- figure4 "$@"

# Figure 5: the pruning curve on each checkpoint that training keeps, of any model that is trained here or names `revisions`
[group('paper')]
reproduce-figure5 subject="demo-translation" *args: (build "training-dynamics" "plotting")
    {{ run }} headcount -- figure5 "$@"

# Figure 6: Figure 3 for BERT classifiers other than MNLI
[group('paper')]
reproduce-figure6 subject="demo-inference" *args: (build "iterative-prune" "plotting")
    {{ run }} headcount -- figure6 "$@"

# Beyond the paper: one head at a time under each kind of ablation: zeros, its mean context, its context in other texts (five draws)
[group('beyond the paper')]
ablation-kinds subject="demo-language" *args: (build "ablate-one" "plotting")
    {{ run }} headcount -- ablation-kinds "$@"

# Beyond the paper: more and more heads under each kind of ablation, and how many more can go than with zeros
[group('beyond the paper')]
pruning-kinds subject="demo-language" *args: (build "iterative-prune" "plotting")
    {{ run }} headcount -- pruning-kinds "$@"

# Beyond the paper: all importance scores of all heads, and their rank correlations; after Table 1 the oracle too
[group('beyond the paper')]
importance subject="demo-translation" *args: (build "importance" "plotting")
    {{ run }} headcount -- importance "$@"

# What heads do (Voita et al. 2019): positions, dependencies, rare tokens, each with an interval; `--trees FILE` for gold trees in CoNLL-U
[group('beyond the paper')]
head-functions subject="demo-translation" *args: (build "head-functions")
    {{ run }} head-functions -- "$@"

# Named scores of the heads of a language model: induction, duplicate token, previous token, sink; beside the cost of masking each, where that was measured
[group('beyond the paper')]
named-heads subject="demo-induction" *args: (build "named-heads" "plotting")
    {{ run }} headcount -- named-heads "$@"

# Speed, key-value cache, file size and perplexity in llama.cpp of the models that pruning curves give; needs llama-cpp-python
[group('beyond the paper')]
llama-cpp subject="smollm2-135m-instruct" *args: (build "llama-cpp" "export-model" "plotting")
    {{ run }} headcount -- llama-cpp "$@"

# The demo of induction: two layers trained on blocks said twice; the cost of each head under each kind of ablation, and what it attends to
[group('beyond the paper')]
reproduce-induction: (ablation-kinds "demo-induction") (named-heads "demo-induction")

# How much each head contributes to the output, by layer-wise relevance propagation (Voita et al. 2019): `--lrp paper` or `alpha-beta`; translators and classifiers
[group('beyond the paper')]
relevance subject="demo-translation" *args: (build "relevance")
    {{ run }} relevance -- "$@"

# Learned gates that prune heads (Voita et al. 2019): `--heads N` keeps N heads, `--lambda` sets the penalty; `--control` for what they are compared with
[group('beyond the paper')]
train-gates subject="demo-translation" *args: (build "train-gates")
    {{ run }} train-gates -- "$@"

# Table 1 of Voita et al. (2019): the best head for each function, such as a dependency, with its baselines
[group('beyond the paper')]
reproduce-v19-table1 subject="demo-translation" *args: (build "head-functions" "plotting")
    {{ run }} headcount -- v19-table1 "$@"

# Figures 1a and 2a of Voita et al. (2019): the relevance of each head for what a translator or a classifier says
[group('beyond the paper')]
reproduce-v19-figure1a subject="demo-translation" *args: (build "relevance" "plotting")
    {{ run }} headcount -- v19-figure1a "$@"

# Figures 1c and 2b of Voita et al. (2019): how many heads of each layer look at positions, dependencies or rare tokens
[group('beyond the paper')]
reproduce-v19-figure1c subject="demo-translation" *args: (build "head-functions" "plotting")
    {{ run }} headcount -- v19-figure1c "$@"

# Figure 7 of Voita et al. (2019): the score with the heads that the gates keep; controls: all heads, the same heads without gates, the most important, random ones
[group('beyond the paper')]
reproduce-v19-figure7 subject="demo-translation" *args: (build "train-gates" "plotting")
    {{ run }} headcount -- v19-figure7 "$@"

# Figure 8 of Voita et al. (2019): functions of the heads that the gates keep
[group('beyond the paper')]
reproduce-v19-figure8 subject="demo-translation" *args: (build "head-functions" "train-gates" "plotting")
    {{ run }} headcount -- v19-figure8 "$@"

# Figures 9 and 10 of Voita et al. (2019): the heads that the gates keep, by attention type and layer, with gates on all heads
[group('beyond the paper')]
reproduce-v19-figure9 subject="demo-translation" *args: (build "train-gates" "plotting")
    {{ run }} headcount -- v19-figure9 "$@"

# Table 2 of Voita et al. (2019): gates on all heads, all weights trained further, and the same heads from scratch
[group('beyond the paper')]
reproduce-v19-table2 subject="demo-translation" *args: (build "train-gates" "plotting")
    {{ run }} headcount -- v19-table2 "$@"

# Beyond the paper: Figure 3 with retraining: at each step the model is trained further without the masked heads (`--retrain EPOCHS`, default 1; steps of 25 %)
[group('beyond the paper')]
prune-and-retrain subject="demo-translation" *args: (build "iterative-prune" "plotting")
    {{ run }} headcount -- prune-and-retrain "$@"

# Beyond the paper: methods that choose heads, side by side at 25, 50 and 75 % of the heads, each with repairs (`--repair none,mean,least-squares`)
[group('beyond the paper')]
compare-methods subject="demo-language" *args: (build "compare-methods" "plotting")
    {{ run }} headcount -- compare-methods "$@"

# Beyond the paper: search for better sets of heads than importance gives; Figure 3 then shows them; `--method swap` exchanges heads
[group('beyond the paper')]
joint-search subject="demo-inference" *args: (build "joint-search")
    {{ run }} joint-search -- "$@"

# Beyond the paper: the model without the heads that a curve of Figure 3 shows to be dispensable, as a Hugging Face folder; `--form zeros` for any tool, `--percent` for another step
[group('beyond the paper')]
export-model subject="demo-inference" folder="data/smaller" *args: (build "export-model")
    {{ run }} export-model -- "$@"

# Beyond the paper: accuracy by group of questions, such as BLiMP's paradigms, and the heads that each needs; a split of questions by `--split`
[group('beyond the paper')]
groups subject="demo-language" *args: (build "ablate-one" "plotting")
    {{ run }} headcount -- groups "$@"

# Beyond the paper: what a model makes of a text, with all heads and without some: `just say demo-language "The dog" --mask self:1:1`
[group('beyond the paper')]
say subject="demo-language" text="The" *args: (build "say")
    {{ run }} say -- "$@"

# Beyond the paper: the attention of every head on a text, as one HTML file: `just look demo-language "The dog sees the cat"`
[group('beyond the paper')]
look subject="demo-language" text="The" *args: (build "look")
    {{ run }} look -- "$@"

# Recompute p-values, intervals and numbers of removable heads from stored statistics, without models: `--resamples`, `--margin`, `--seed`
[group('results')]
retest *args:
    {{ build_and_run }} retest -- "$@"

# Join what runs with --shard have measured into the results of one run, and test them: `--experiment ablate-one`
[group('results')]
merge subject="demo-translation" *args:
    {{ build_and_run }} merge -- "$@"

# The report of a subject: one HTML file with everything, and a card for each head; `--all` for all subjects, with an index
[group('results')]
report *args:
    {{ run }} report -- "$@"

# The paper's claims and the results of all subjects, side by side
[group('results')]
summary *args:
    {{ build_and_run }} plotting -- summary "$@"

# Draw all tables and figures of a subject again from its results
[group('results')]
figures subject="demo-translation" *args:
    {{ build_and_run }} plotting -- all "$@"
