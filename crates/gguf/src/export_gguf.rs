//! A Hugging Face folder as a GGUF file.
use std::path::PathBuf;
use std::process::ExitCode;

use crate::Precision;
use anyhow::ensure;
use clap::Parser;
use words::exit_code;

/// Writes a Llama, Mistral or Qwen2, also one whose heads export-model has cut out, as a GGUF file for llama.cpp.
#[derive(Debug, Parser)]
#[command(name = "export-gguf", version)]
struct Args {
    /// Hugging Face folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// GGUF file to write
    #[arg(value_name = "FILE.gguf")]
    file: PathBuf,

    /// What weights are written as
    #[arg(long = "type", value_enum, default_value_t = Precision::F16)]
    precision: Precision,

    /// Replace a file that is there
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
        "`{file}` is there already: choose another, or replace it with --replace"
    );
    let exported = crate::export(&args.folder, &args.file, args.precision)?;
    words::print_line(file)?;
    if let Some(warning) = exported.warning() {
        words::warn(warning);
    }
    Ok(())
}
