# Which attention heads does a model need? `just` alone lists the recipes.

set positional-arguments

# libtorch comes from a Python package index; every recipe that builds asks for it first.
python := env("PYTHON", "python3")

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

# Fetch a data set or MiniLM, `just fetch --list` names them; --mirror takes a folder or an address
[group('set-up')]
fetch *args:
    cargo run --release --locked --bin fetch -- "$@"

# All tests
[group('check')]
test *args: setup
    cargo test --release --locked --workspace "$@"

# Formatting and lints, warnings as errors
[group('check')]
lint: setup
    cargo fmt --all --check
    cargo clippy --release --locked --workspace --all-targets -- -D warnings

# Compare exported models with the original in transformers, which must be installed; `just check-export --help`
[group('check')]
check-export *args:
    {{ python }} crates/iterative-prune/tests/check_export.py "$@"

# Speed as ratios, one table: sweeps, bf16, removed heads, decoding and training beside transformers; `just bench --help`
[group('check')]
bench *args: setup
    cargo bench --locked -p subject --bench ratios -- "$@"
    cargo bench --locked -p stats --bench bootstrap

# Train the model of a subject, or go on with it
[group('experiments')]
train subject="demo-translation" *args: setup
    cargo run --release --locked --bin train-subject -- "$@"

# Table 1 and Figure 1: train if need be, mask each head in turn, print and draw; after the subject, `--attention all` for all types
[group('paper')]
reproduce-table1 subject="demo-translation" *args: setup
    cargo run --release --locked --bin ablate-one -- --restart --attention enc-enc "$@"
    cargo run --release --locked --bin plotting -- all "$1"

# Figure 1b and the layer x head table of a BERT classifier: train or fine-tune if need be, mask each head in turn, print and draw
[group('paper')]
reproduce-figure1b subject="demo-inference" *args: setup
    cargo run --release --locked --bin ablate-one -- --restart --attention self "$@"
    cargo run --release --locked --bin plotting -- all "$1"

# Table 2, for BERT Table 3: mask all heads of a layer but one, and print the best of each layer
[group('paper')]
reproduce-table2 subject="demo-translation" *args: setup
    cargo run --release --locked --bin ablate-all-but-one -- --restart "$@"
    cargo run --release --locked --bin plotting -- table2 "$1"

# Table 3: the same for a BERT classifier
[group('paper')]
reproduce-table3 subject="demo-inference" *args: setup
    cargo run --release --locked --bin ablate-all-but-one -- --restart "$@"
    cargo run --release --locked --bin plotting -- table3 "$1"

# Table 5, for BERT Table 6: the best head of each layer is chosen on another split (dev, or name it by `--select-on`)
[group('paper')]
reproduce-table5 subject="demo-translation" *args: setup
    cargo run --release --locked --bin ablate-all-but-one -- --select-on dev --restart "$@"
    cargo run --release --locked --bin plotting -- table5 "$1"

# Table 6: the same for a BERT classifier, chosen on 5,000 training examples
[group('paper')]
reproduce-table6 subject="demo-inference" *args: setup
    cargo run --release --locked --bin ablate-all-but-one -- --select-on train --select-limit 5000 --restart "$@"
    cargo run --release --locked --bin plotting -- table6 "$1"

# Figure 2: mask each head in turn on the test split and on another domain (or name it by `--against`), and correlate
[group('paper')]
reproduce-figure2 subject="demo-translation" *args: setup
    cargo run --release --locked --bin cross-domain -- --restart "$@"
    cargo run --release --locked --bin plotting -- figure2 "$1"

# Figure 3, for BERT classifiers other than MNLI Figure 6: mask more and more heads by importance, by oracle, at random
[group('paper')]
reproduce-figure3 subject="demo-translation" *args: setup
    cargo run --release --locked --bin iterative-prune -- --order importance,oracle,random --restart "$@"
    cargo run --release --locked --bin plotting -- figure3 "$1"

# Table 4: the original and a pruned model timed in turn, half of the heads removed for real
[group('paper')]
reproduce-table4 subject="demo-inference" *args: setup
    cargo run --release --locked --bin speed-bench -- --limit 512 --restart "$@"
    cargo run --release --locked --bin plotting -- table4 "$1"

# Figure 4: the same by importance, one attention type at a time; for translators
[group('paper')]
reproduce-figure4 subject="demo-translation" *args: setup
    cargo run --release --locked --bin iterative-prune -- --attention enc-enc,enc-dec,dec-dec --restart "$@"
    cargo run --release --locked --bin plotting -- figure4 "$1"

# Figure 5: the pruning curve on each checkpoint that training keeps
[group('paper')]
reproduce-figure5 subject="demo-translation" *args: setup
    cargo run --release --locked --bin training-dynamics -- --restart "$@"
    cargo run --release --locked --bin plotting -- figure5 "$1"

# Figure 6: Figure 3 for SST-2, CoLA and MRPC
[group('paper')]
reproduce-figure6 subject="demo-inference" *args: setup
    @just reproduce-figure3 "$@"

# Beyond the paper: all scores of all heads, and how the orders that they give agree; after Table 1 the oracle too
[group('beyond the paper')]
importance subject="demo-translation" *args: setup
    cargo run --release --locked --bin importance -- --restart "$@"
    cargo run --release --locked --bin plotting -- agreement "$1"

# Beyond the paper: search for better sets of heads than importance gives; `--search swap` exchanges heads
[group('beyond the paper')]
joint-search subject="demo-inference" *args: setup
    cargo run --release --locked --bin iterative-prune -- --search greedy-forward --restart "$@"
    cargo run --release --locked --bin plotting -- figure3 "$1"

# The paper's claims beside the results of all subjects, from results/
[group('paper')]
summary: setup
    cargo run --release --locked --bin plotting -- summary

# Draw all tables and figures of a subject again from results/
[group('paper')]
figures subject="demo-translation": setup
    cargo run --release --locked --bin plotting -- all "$1"
