# Which attention heads does a model need? `just` alone lists the recipes.

set positional-arguments

# libtorch comes from a Python package index; every recipe that needs it installs it first.
python := env("PYTHON", "python3")

# Run through cargo, which knows the target folder and applies .cargo/config.toml.
headcount := "cargo run --quiet --release --locked --bin headcount --"

# Usage lines and messages name recipes.
export HEADCOUNT_FRONT := "just"

[private]
default:
    @just --list --unsorted

# Programs that need libtorch; they are built before anything is trained
[private]
build +binaries: setup
    cargo build --release --locked --bin headcount {{ prepend("--bin ", binaries) }}

# Programs that do not
[private]
compile +binaries:
    cargo build --release --locked --bin headcount {{ prepend("--bin ", binaries) }}

# Install libtorch in .libtorch/ (550 MB, once); LIBTORCH overrides it
[group('1 set up')]
setup:
    @{{ python }} .setup/libtorch.py

# Install libtorch with CUDA libraries, for a GPU
[group('1 set up')]
setup-cuda:
    @{{ python }} .setup/libtorch.py --cuda

# Describe a model and its data: init NAME MODEL [FILES…]
[group('1 set up')]
init *args: (build "init")
    {{ headcount }} init "$@"

# Fetch data or a small model; --list names them
[group('1 set up')]
fetch *args: (compile "fetch")
    {{ headcount }} fetch "$@"

# Train the model of a setup, or resume its training
[group('1 set up')]
train *args: (build "init" "train-subject")
    {{ headcount }} train "$@"

# Convert a GGUF file to a Hugging Face folder
[group('1 set up')]
import-model *args: (compile "import-model")
    {{ headcount }} import-model "$@"

# Mask each head alone: a table, a map, verdicts
[group('2 which heads does the model need?')]
heads *args: (build "init" "ablate-one" "plotting")
    {{ headcount }} heads "$@"

# Mask all heads of a layer but one
[group('2 which heads does the model need?')]
layers *args: (build "init" "ablate-all-but-one" "plotting")
    {{ headcount }} layers "$@"

# Mask more and more heads: how many are dispensable?
[group('2 which heads does the model need?')]
prune *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} prune "$@"

# Mask more and more heads and retrain each time
[group('2 which heads does the model need?')]
retrain *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} retrain "$@"

# Time the model with half of its heads
[group('2 which heads does the model need?')]
speed *args: (build "init" "speed-bench" "plotting")
    {{ headcount }} speed "$@"

# Mask each head alone on two test sets
[group('3 does that hold elsewhere?')]
domains *args: (build "init" "cross-domain" "plotting")
    {{ headcount }} domains "$@"

# Mask more and more heads at each checkpoint
[group('3 does that hold elsewhere?')]
training *args: (build "init" "training-dynamics" "plotting")
    {{ headcount }} training "$@"

# Mask a list of heads: does it beat random sets?
[group('3 does that hold elsewhere?')]
audit *args: (build "init" "audit" "plotting")
    {{ headcount }} audit "$@"

# Which heads each group of questions needs
[group('3 does that hold elsewhere?')]
groups *args: (build "init" "ablate-one" "plotting")
    {{ headcount }} groups "$@"

# Replace each head with zeros, means, other texts
[group('3 does that hold elsewhere?')]
kinds *args: (build "init" "ablate-one" "plotting")
    {{ headcount }} kinds "$@"

# Replace more and more heads with zeros, means, other texts
[group('3 does that hold elsewhere?')]
pruning-kinds *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} pruning-kinds "$@"

# Find positional, syntactic and rare-token heads
[group('4 what do the heads do?')]
functions *args: (build "init" "head-functions" "plotting")
    {{ headcount }} functions "$@"

# Find induction, previous-token and other known heads
[group('4 what do the heads do?')]
named-heads *args: (build "init" "named-heads" "plotting")
    {{ headcount }} named-heads "$@"

# Trace each prediction back to the heads
[group('4 what do the heads do?')]
relevance *args: (build "init" "relevance" "plotting")
    {{ headcount }} relevance "$@"

# Show the attention of every head on a text
[group('4 what do the heads do?')]
look *args: (build "look")
    {{ headcount }} look "$@"

# Run the model on a text, with and without masking
[group('4 what do the heads do?')]
say *args: (build "say")
    {{ headcount }} say "$@"

# Train gates that choose which heads to keep
[group('5 which heads to remove?')]
gates *args: (build "init" "train-gates" "plotting")
    {{ headcount }} gates "$@"

# Compare rankings, searches and repairs
[group('5 which heads to remove?')]
methods *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} methods "$@"

# Rank all heads in every way and compare rankings
[group('5 which heads to remove?')]
importance *args: (build "init" "importance" "plotting")
    {{ headcount }} importance "$@"

# Search for heads that are dispensable together
[group('5 which heads to remove?')]
joint-search *args: (build "init" "iterative-prune")
    {{ headcount }} joint-search "$@"

# Save the model without dispensable heads
[group('5 which heads to remove?')]
export *args: (build "export-model")
    {{ headcount }} export "$@"

# Convert a model, also a pruned one, for llama.cpp
[group('5 which heads to remove?')]
export-gguf *args: (compile "export-gguf")
    {{ headcount }} export-gguf "$@"

# Run pruned models in llama.cpp: speed, cache, perplexity
[group('5 which heads to remove?')]
llama-cpp *args: (build "init" "llama-cpp" "export-model" "plotting")
    {{ headcount }} llama-cpp "$@"

# Collect all results of a setup in one HTML file
[group('6 results')]
report *args: (compile "report")
    {{ headcount }} report "$@"

# Draw all tables and figures of a setup again
[group('6 results')]
figures *args: (compile "plotting")
    {{ headcount }} figures "$@"

# Print the paper's claims next to all results
[group('6 results')]
summary *args: (compile "plotting")
    {{ headcount }} summary "$@"

# Compare any two runs: worse, no worse or undecided
[group('6 results')]
compare *args: (compile "compare")
    {{ headcount }} compare "$@"

# Repeat all tests from stored statistics, without models
[group('6 results')]
retest *args: (compile "retest")
    {{ headcount }} retest "$@"

# Join the results of runs with --shard
[group('6 results')]
merge *args: (compile "merge")
    {{ headcount }} merge "$@"

# Heads of the encoder, or of models without one
[group('7 Michel et al. (2019)')]
reproduce-table1 *args: (build "init" "ablate-one" "plotting")
    {{ headcount }} table1 "$@"

# Heads of a classifier
[group('7 Michel et al. (2019)')]
reproduce-figure1b *args: (build "init" "ablate-one" "plotting")
    {{ headcount }} figure1b "$@"

# Layers of a translator
[group('7 Michel et al. (2019)')]
reproduce-table2 *args: (build "init" "ablate-all-but-one" "plotting")
    {{ headcount }} table2 "$@"

# Layers of a classifier
[group('7 Michel et al. (2019)')]
reproduce-table3 *args: (build "init" "ablate-all-but-one" "plotting")
    {{ headcount }} table3 "$@"

# Speed of a classifier
[group('7 Michel et al. (2019)')]
reproduce-table4 *args: (build "init" "speed-bench" "plotting")
    {{ headcount }} table4 "$@"

# Table 2 with heads chosen on another split
[group('7 Michel et al. (2019)')]
reproduce-table5 *args: (build "init" "ablate-all-but-one" "plotting")
    {{ headcount }} table5 "$@"

# Table 3 with heads chosen on 5,000 training examples
[group('7 Michel et al. (2019)')]
reproduce-table6 *args: (build "init" "ablate-all-but-one" "plotting")
    {{ headcount }} table6 "$@"

# Domains
[group('7 Michel et al. (2019)')]
reproduce-figure2 *args: (build "init" "cross-domain" "plotting")
    {{ headcount }} figure2 "$@"

# Prune a translator
[group('7 Michel et al. (2019)')]
reproduce-figure3 *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} figure3 "$@"

# Prune one attention type at a time
[group('7 Michel et al. (2019)')]
reproduce-figure4 *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} figure4 "$@"

# Training
[group('7 Michel et al. (2019)')]
reproduce-figure5 *args: (build "init" "training-dynamics" "plotting")
    {{ headcount }} figure5 "$@"

# Prune a classifier
[group('7 Michel et al. (2019)')]
reproduce-figure6 *args: (build "init" "iterative-prune" "plotting")
    {{ headcount }} figure6 "$@"

# The best head for each function
[group('8 Voita et al. (2019)')]
reproduce-v19-table1 *args: (build "init" "head-functions" "plotting")
    {{ headcount }} v19-table1 "$@"

# Relevance of each head
[group('8 Voita et al. (2019)')]
reproduce-v19-figure1a *args: (build "init" "relevance" "plotting")
    {{ headcount }} v19-figure1a "$@"

# Functions by layer
[group('8 Voita et al. (2019)')]
reproduce-v19-figure1c *args: (build "init" "head-functions" "plotting")
    {{ headcount }} v19-figure1c "$@"

# Gates, with controls
[group('8 Voita et al. (2019)')]
reproduce-v19-figure7 *args: (build "init" "train-gates" "plotting")
    {{ headcount }} v19-figure7 "$@"

# Functions of the heads that gates keep
[group('8 Voita et al. (2019)')]
reproduce-v19-figure8 *args: (build "init" "head-functions" "train-gates" "plotting")
    {{ headcount }} v19-figure8 "$@"

# Gates on all attention types
[group('8 Voita et al. (2019)')]
reproduce-v19-figure9 *args: (build "init" "train-gates" "plotting")
    {{ headcount }} v19-figure9 "$@"

# Gates on all heads, and the same heads from scratch
[group('8 Voita et al. (2019)')]
reproduce-v19-table2 *args: (build "init" "train-gates" "plotting")
    {{ headcount }} v19-table2 "$@"

# A small model with induction heads: kinds, then named-heads
[group('4 what do the heads do?')]
reproduce-induction: (kinds "demo-induction") (named-heads "demo-induction")

# Names from before 0.3
[private]
alias ablation-kinds := kinds
[private]
alias compare-methods := methods
[private]
alias export-model := export
[private]
alias prune-and-retrain := retrain

[private]
head-functions *args: (build "head-functions")
    {{ headcount }} head-functions "$@"

[private]
train-gates *args: (build "train-gates")
    {{ headcount }} train-gates "$@"

# Build the Python wheel in target/wheel/
[group('9 check and build')]
wheel: setup
    cargo build --release --locked --bin headcount --bin headcount-programs
    rm -rf target/wheel
    {{ python }} -m pip wheel --disable-pip-version-check --no-deps --wheel-dir target/wheel crates/wheel

# Try the wheel and the notebook outside the repository
[group('9 check and build')]
check-wheel *environment: wheel
    {{ python }} crates/wheel/python/check_wheel.py target/wheel/*.whl "$@"

# Run all tests
[group('9 check and build')]
test *args: setup
    cargo test --release --locked --workspace "$@"

# Open reports in headless Chromium ($CHROMIUM); needs Node
[group('9 check and build')]
test-browser *args:
    cargo run --quiet --release --locked --bin report -- --all
    npm ci --prefix crates/plotting/tests/browser --no-audit --no-fund --engine-strict
    node crates/plotting/tests/browser/check.mjs results "$@"
    LOOK_PAGES="$PWD/target/look-pages" cargo test --quiet --release --locked -p plotting --test look
    node crates/plotting/tests/browser/look.mjs target/look-pages

# Check formatting and lints
[group('9 check and build')]
lint: setup
    cargo fmt --all --check
    cargo clippy --release --locked --workspace --all-targets -- -D warnings

# Check licences and sources of all dependencies
[group('9 check and build')]
deny:
    cargo deny --locked check licenses bans sources
    @if cargo deny fetch db; then cargo deny --locked check --disable-fetch advisories; \
        else echo "ADVISORIES ARE NOT CHECKED: their database cannot be fetched" >&2; fi

# Open exported models in transformers, which $PYTHON needs
[group('9 check and build')]
check-export *args: setup
    {{ if args == "" { "PYTHON=" + quote(python) + " cargo test --release --locked -p export-model --test transformers -- --nocapture" } else { python + " crates/export-model/tests/check_export.py" } }} "$@"

# Check the converter of fairseq archives; needs torch
[group('9 check and build')]
check-fairseq *args:
    {{ python }} crates/core-masking/tests/fairseq_to_fsmt.py "$@"

# Compare GGUF files with their models in llama.cpp
[group('9 check and build')]
check-gguf *args:
    cargo build --release --locked --bin import-model --bin export-gguf
    {{ python }} crates/gguf/tests/check_gguf.py "$@"

# Measure speed as ratios, also to transformers
[group('9 check and build')]
bench *args: setup
    cargo bench --locked -p experiment --bench ratios -- "$@"
    cargo bench --locked -p stats --bench bootstrap
