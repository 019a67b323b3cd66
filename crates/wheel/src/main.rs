//! Every program of the workspace in one file: it does what the name says by which it is called.
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        "ablate-all-but-one" => ablate_all_but_one::main(),
        "ablate-one" => ablate_one::main(),
        "cross-domain" => cross_domain::main(),
        "export-gguf" => gguf::export_gguf::main(),
        "export-model" => export_model::main(),
        "fetch" => gguf::fetch::main(),
        "head-functions" => head_functions::main(),
        "import-model" => gguf::import_model::main(),
        "importance" => iterative_prune::importance::main(),
        "init" => train_subject::init::main(),
        "iterative-prune" => iterative_prune::main(),
        "llama-cpp" => gguf::llama_cpp::main(),
        "look" => head_functions::look::main(),
        "merge" => significance::commands::merge::main(),
        "named-heads" => head_functions::named_heads::main(),
        "plotting" => plotting::main(),
        "relevance" => head_functions::relevance::main(),
        "report" => plotting::report::main(),
        "retest" => significance::commands::retest::main(),
        "say" => ablate_one::say::main(),
        "speed-bench" => speed_bench::main(),
        "train-gates" => train_gates::main(),
        "train-subject" => train_subject::main(),
        "training-dynamics" => training_dynamics::main(),
        _ => words::exit_code(Err(format!("`{name}` is no program: `headcount --help` lists them"))),
    }
}
