//! The command `export-gguf`.
use std::path::PathBuf;
use std::process::ExitCode;

use crate::Precision;
use anyhow::ensure;
use clap::Parser;
use words::exit_code;

/// Writes a Llama, Mistral or Qwen2, with or without heads removed by export-model, as a GGUF file for llama.cpp.
#[derive(Debug, Parser)]
#[command(name = "export-gguf", version)]
struct Args {
    /// Hugging Face folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// GGUF file to write
    #[arg(value_name = "FILE.gguf")]
    file: PathBuf,

    /// Data type of the weights
    #[arg(long = "type", value_enum, default_value_t = Precision::F16)]
    precision: Precision,

    /// Replace an existing file
    #[arg(long)]
    replace: bool,
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.file.display();
    ensure!(
        args.replace || !args.file.exists(),
        "`{file}` exists already: choose another, or replace it with --replace"
    );
    let exported = crate::export(&args.folder, &args.file, args.precision)?;
    words::print_line(file)?;
    if let Some(warning) = exported.warning() {
        words::warn(warning);
    }
    Ok(())
}
