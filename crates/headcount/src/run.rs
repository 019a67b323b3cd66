//! Programs that are run, one in the place of this process, or several one after another.
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::SIGINT;

use crate::commands::Recipe;

/// What `.cargo/config.toml` sets for programs that cargo runs.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TOP_PAD_", "268435456"),
    ("MALLOC_TRIM_THRESHOLD_", "4294967296"),
    ("OMP_WAIT_POLICY", "passive"),
];

/// Names a library that programs load first: that by which libtorch finds a GPU.
const PRELOAD: &str = "HEADCOUNT_PRELOAD";

/// Options that all experiments have, so that what comes before a recipe's gets them too.
const COMMON: [&str; 4] = ["--data", "--device", "--results", "--threads"];

/// The program of an installed `headcount` that does what any program of the workspace does, under that one's name.
const ALL_IN_ONE: &str = "headcount-programs";

/// Runs a program in the place of this process.
///
/// # Errors
/// If it cannot be run.
pub fn replace(program: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let error = prepared(program)?.args(arguments).exec();
    Err(not_run(program, error))
}

/// Runs a recipe; a program that fails has said why, and its exit code is that of the recipe.
///
/// # Errors
/// If a program cannot be run.
pub fn cook(recipe: &Recipe, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    // The terminal tells the program that runs too, and this process waits until it has ended.
    let is_stopped = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, is_stopped.clone())?;
    let is_named = arguments.first().is_some_and(|first| !first.as_encoded_bytes().starts_with(b"-"));
    let subject = if is_named { arguments[0].clone() } else { recipe.subject.into() };
    let options = &arguments[usize::from(is_named)..];
    if options.iter().any(|option| option == "--help" || option == "-h") {
        let Recipe { name, about, subject, run, view, .. } = recipe;
        let then =
            format!("`{run}` and then `plotting {view}`; the subject is {subject} unless named. Options:");
        words::print(&format!("{name}: {about}\n\n{then}\n\n"))?;
        return replace(run.split(' ').next().unwrap_or(run), &["--help".into()]);
    }
    if !is_named {
        words::say!("no subject is named: taking {}", recipe.subject);
    }
    match steps(recipe, subject, options, &is_stopped) {
        Err(Failure::Ended(code)) => Ok(code),
        Err(Failure::NotRun(error)) => Err(error),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Why a recipe ends early.
enum Failure {
    Ended(ExitCode),
    NotRun(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::NotRun(error.into())
    }
}

fn steps(
    recipe: &Recipe,
    subject: OsString,
    options: &[OsString],
    is_stopped: &AtomicBool,
) -> Result<(), Failure> {
    if let Some(before) = recipe.before {
        let common = COMMON.iter().flat_map(|option| values(options, option));
        printed(before, [subject.clone()].into_iter().chain(common))?;
    }
    let asked: Vec<&OsStr> = [&subject].into_iter().chain(options).map(OsString::as_os_str).collect();
    let file = printed(recipe.run, asked.iter())?;
    for more in recipe.again {
        if is_stopped.load(Ordering::Relaxed) {
            return Err(Failure::Ended(ExitCode::from(128 + 2)));
        }
        printed(recipe.run, asked.iter().copied().chain(more.split(' ').map(OsStr::new)))?;
    }
    let view = format!("plotting {}", recipe.view);
    let shared = recipe.shared.map_or_else(Vec::new, |option| values(options, option));
    let status =
        command(&view)?.arg(file).args(shared).status().map_err(|error| not_run("plotting", error))?;
    ended(status)
}

/// What a program prints: the path of its file, or of that of each replicate.
fn printed(line: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<OsString, Failure> {
    let mut run = command(line)?;
    let output = run.args(arguments).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| not_run(line, error))?;
    ended(output.status)?;
    let mut path = output.stdout;
    path.truncate(path.trim_ascii_end().len());
    Ok(std::os::unix::ffi::OsStringExt::from_vec(path))
}

fn ended(status: std::process::ExitStatus) -> Result<(), Failure> {
    // as a shell says it
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    if code == 0 { Ok(()) } else { Err(Failure::Ended(ExitCode::from(u8::try_from(code).unwrap_or(1)))) }
}

/// The option of this name among those of the user, with its value.
fn values(options: &[OsString], name: &str) -> Vec<OsString> {
    let Some(at) = options
        .iter()
        .rposition(|option| option.to_str().is_some_and(|option| option.split('=').next() == Some(name)))
    else {
        return Vec::new();
    };
    let separate = usize::from(options[at] == *name);
    options[at..].iter().take(1 + separate).cloned().collect()
}

fn command(line: &str) -> anyhow::Result<Command> {
    let mut words = line.split(' ');
    let mut command = prepared(words.next().unwrap_or_default())?;
    command.args(words);
    Ok(command)
}

/// A program beside this one, with its environment.
fn prepared(name: &str) -> anyhow::Result<Command> {
    let own = env::current_exe().context("cannot tell where headcount is")?;
    let (program, all) = (own.with_file_name(name), own.with_file_name(ALL_IN_ONE));
    let path = match [&program, &all].into_iter().find(|path| path.is_file()) {
        Some(path) => path,
        None => bail!("`{}` is missing: `cargo build --release` builds it", program.display()),
    };
    let mut command = Command::new(path);
    command.arg0(name);
    if let Some(mut library) = env::var_os(PRELOAD) {
        if let Some(own) = env::var_os("LD_PRELOAD") {
            library.push(":");
            library.push(own);
        }
        command.env("LD_PRELOAD", library);
    }
    command.envs(ENVIRONMENT.into_iter().filter(|(variable, _)| env::var_os(variable).is_none()));
    Ok(command)
}

fn not_run(line: &str, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot run `{line}`"))
}
