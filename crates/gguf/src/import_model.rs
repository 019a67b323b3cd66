//! The command `import-model`.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use words::exit_code;

/// Converts a GGUF file of architecture `llama` or `gemma3` to a Hugging Face folder for transformers and this project.
#[derive(Debug, Parser)]
#[command(name = "import-model", version)]
struct Args {
    /// GGUF file
    #[arg(value_name = "FILE.gguf")]
    file: PathBuf,

    /// Folder to write
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Data type of the weights
    #[arg(long = "type", value_enum, default_value_t = Kind::F32)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Single precision, exact
    F32,
    /// Half the size, rounded
    Bf16,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let args = words::parse::<Args>();
    let written = crate::import(&args.file, &args.folder, args.kind == Kind::Bf16);
    exit_code(
        written.map_err(anyhow::Error::from).and_then(|()| Ok(words::print_line(args.folder.display())?)),
    )
}
