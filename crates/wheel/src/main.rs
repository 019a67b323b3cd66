//! All programs of the workspace in one file, which runs the program by whose name it is called.
use std::path::Path;
use std::process::ExitCode;

use heads::experiment::{
    ABLATE_ALL_BUT_ONE, ABLATE_ONE, AUDIT, CROSS_DOMAIN, HEAD_FUNCTIONS, IMPORTANCE, ITERATIVE_PRUNE,
    LLAMA_CPP, NAMED_HEADS, RELEVANCE, SPEED_BENCH, TRAIN_GATES, TRAIN_SUBJECT, TRAINING_DYNAMICS,
};

/// A program and its name.
type Program = (&'static str, fn() -> ExitCode);

/// All programs.
const PROGRAMS: &[Program] = &[
    (ABLATE_ALL_BUT_ONE.program, ablate_all_but_one::main),
    (ABLATE_ONE.program, ablate_one::main),
    (AUDIT.program, ablate_one::audit::main),
    ("compare", compare::main),
    (CROSS_DOMAIN.program, cross_domain::main),
    ("export-gguf", gguf::export_gguf::main),
    ("export-model", export_model::main),
    ("fetch", gguf::fetch::main),
    (HEAD_FUNCTIONS.program, head_functions::main),
    ("import-model", gguf::import_model::main),
    (IMPORTANCE.program, iterative_prune::importance::main),
    ("init", train_subject::init::main),
    (ITERATIVE_PRUNE.program, iterative_prune::main),
    (LLAMA_CPP.program, gguf::llama_cpp::main),
    ("look", head_functions::look::main),
    ("merge", significance::commands::merge::main),
    (NAMED_HEADS.program, head_functions::named_heads::main),
    ("plotting", plotting::main),
    (RELEVANCE.program, head_functions::relevance::main),
    ("report", plotting::report::main),
    ("retest", significance::commands::retest::main),
    ("say", ablate_one::say::main),
    (SPEED_BENCH.program, speed_bench::main),
    (TRAIN_GATES.program, train_gates::main),
    (TRAIN_SUBJECT.program, train_subject::main),
    (TRAINING_DYNAMICS.program, training_dynamics::main),
];

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default().to_string_lossy();
    match PROGRAMS.iter().find(|(program, _)| *program == name) {
        Some((_, main)) => main(),
        None => words::exit_code(Err(format!("`{name}` is not a program: `headcount --help` lists them"))),
    }
}
