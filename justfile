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

# Speed of beam search, of one evaluation of a classifier, and of the paired bootstrap
[group('check')]
bench: setup
    cargo bench --locked -p subject --bench translation
    cargo bench --locked -p subject --bench classification
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

# Draw all tables and figures of a subject again from results/
[group('paper')]
figures subject="demo-translation": setup
    cargo run --release --locked --bin plotting -- all "$1"
