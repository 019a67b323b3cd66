//! ONNX export by Python: `PYTHON` names one that has torch, transformers, onnx and onnxruntime.
use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The module `headcount.onnx` of the wheel, which also runs outside its package.
const SCRIPT: &str = include_str!("../../wheel/python/headcount/onnx.py");

/// Writes `model.onnx` into a folder that this program has exported.
///
/// # Errors
/// If Python fails; the message adds that the folder itself is complete.
pub fn write(folder: &Path) -> Result<()> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let mut command = Command::new(&python);
    command.args(["-c", SCRIPT]).arg(folder).stdout(Stdio::null());
    let output = command
        .output()
        .with_context(|| format!("cannot run `{}` (set PYTHON to use another Python)", python.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let fault = said.lines().last().unwrap_or("Python was stopped").trim_start_matches("error: ");
        bail!("`{}` is written, but without `model.onnx`: {fault}", folder.display());
    }
    Ok(())
}
