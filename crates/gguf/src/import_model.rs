//! A GGUF file as a Hugging Face folder.
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use words::exit_code;

/// Makes a Hugging Face folder of a GGUF file of architecture `llama` or `gemma3`, which transformers and this project open.
#[derive(Debug, Parser)]
#[command(name = "import-model", version)]
struct Args {
    /// GGUF file
    #[arg(value_name = "FILE.gguf")]
    file: PathBuf,

    /// Folder to write
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// What weights are written as
    #[arg(long = "type", value_enum, default_value_t = Kind::F32)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The numbers that the file stands for
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
