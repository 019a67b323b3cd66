//! Running programs: one that replaces this process, or several in turn.
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::SIGINT;

use crate::Typed;
use crate::commands::Entry;
use crate::first_look::{FirstLook, first_look};

/// Environment that `.cargo/config.toml` sets for programs run by cargo.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TOP_PAD_", "268435456"),
    ("MALLOC_TRIM_THRESHOLD_", "4294967296"),
    ("OMP_WAIT_POLICY", "passive"),
];

/// Environment variable with a library to preload, by which libtorch finds a GPU.
const PRELOAD: &str = "HEADCOUNT_PRELOAD";

/// Options that all programs have; they are passed on to programs that run before an experiment.
const COMMON: [&str; 5] = ["--data", "--device", "--memory", "--results", "--threads"];

/// Common option without a value.
const QUIET: &str = "--quiet";

/// Program of an installation that contains all programs, and runs the one named by `argv[0]`.
const ALL_IN_ONE: &str = "headcount-programs";

/// Replaces this process with a program.
pub fn replace(line: &str, typed: &Typed, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let error = command(line, typed)?.args(arguments).exec();
    Err(not_run(line, error))
}

/// Runs a command. A failed program has printed its error already, and its exit code becomes the command's.
pub fn start(entry: &Entry, typed: &Typed, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if entry.name == "bench" {
        return bench(arguments);
    }
    let Some(default) = entry.setup else { return replace(&entry.run(), typed, arguments) };
    if arguments.iter().any(|option| option == "--help" || option == "-h") {
        let look = match entry.views {
            [] => String::new(),
            _ => format!(
                "Without a setup: {} --model FOLDER --test FILE [--train FILE], and options of `init`\n",
                typed.name
            ),
        };
        words::print(&format!(
            "{}: {}; the setup is {default} unless named\n{look}\n",
            typed.name, entry.about
        ))?;
        return replace(&entry.run(), typed, &["--help".into()]);
    }
    // Ctrl-C in the terminal also reaches the running program, and this process waits for its end.
    let is_stopped = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, is_stopped.clone())?;
    let run = Run { entry, typed, is_stopped: &is_stopped };
    let done = run.setup(default, arguments).and_then(|(setup, options)| {
        if entry.views.is_empty() {
            let all: Vec<OsString> = [setup].into_iter().chain(options).collect();
            return Ok(replace(&entry.run(), typed, &all)?);
        }
        run.steps(setup, &options).map(|()| ExitCode::SUCCESS)
    });
    match done {
        Ok(code) | Err(Failure::Ended(code)) => Ok(code),
        Err(Failure::NotRun(error)) => Err(error),
    }
}

/// Runs the benches, which only a clone of the repository contains.
fn bench(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    if !Path::new("crates/experiment/benches").is_dir() {
        bail!("benches are built from the source: run `just bench` in a clone of the repository");
    }
    Err(not_run("just bench", Command::new("just").arg("bench").args(arguments).exec()))
}

/// Reason why a command ends early.
enum Failure {
    Ended(ExitCode),
    NotRun(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::NotRun(error.into())
    }
}

/// A running command.
struct Run<'a> {
    entry: &'a Entry,
    typed: &'a Typed,
    is_stopped: &'a AtomicBool,
}

impl Run<'_> {
    /// Returns the setup and the options. The setup is the first argument, is written for a first look, or is the default.
    fn setup(&self, default: &str, arguments: &[OsString]) -> Result<(OsString, Vec<OsString>), Failure> {
        if let Some(FirstLook { init, rest }) = first_look(arguments) {
            let file = self.printed("init", init.into_iter().chain(common(&rest)))?;
            return Ok((file, rest));
        }
        match arguments.split_first() {
            Some((first, options)) if !first.as_encoded_bytes().starts_with(b"-") => {
                Ok((first.clone(), options.to_vec()))
            }
            _ if ["--test", "--train"].iter().any(|option| !values(arguments, option).is_empty()) => Err(
                anyhow::anyhow!("--test and --train describe the data of --model FOLDER, which is missing")
                    .into(),
            ),
            _ => {
                words::say!("no setup given: using {default}");
                Ok((default.into(), arguments.to_vec()))
            }
        }
    }

    fn steps(&self, setup: OsString, options: &[OsString]) -> Result<(), Failure> {
        let Self { entry, typed, is_stopped } = self;
        if let Some(before) = entry.before {
            self.printed(before, [setup.clone()].into_iter().chain(common(options)))?;
        }
        let asked: Vec<&OsStr> = [&setup].into_iter().chain(options).map(OsString::as_os_str).collect();
        let file = self.printed(&entry.run(), asked.iter())?;
        for more in entry.again {
            if is_stopped.load(Ordering::Relaxed) {
                return Err(Failure::Ended(ExitCode::from(128 + 2)));
            }
            self.printed(&entry.run(), asked.iter().copied().chain(more.split(' ').map(OsStr::new)))?;
        }
        // only the first view gets the option; the others show everything
        let mut shared = entry.shared.map_or_else(Vec::new, |option| values(options, option));
        for view in entry.views {
            let mut view = command(&format!("plotting {view}"), typed)?;
            view.arg(&file).args(shared.drain(..));
            ended(view.status().map_err(|error| not_run("plotting", error))?)?;
        }
        Ok(())
    }

    /// Runs a program and returns its output: the path of its file, or one path per run.
    fn printed(
        &self,
        line: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<OsString, Failure> {
        let mut run = command(line, self.typed)?;
        let output = run.args(arguments).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| not_run(line, error))?;
        ended(output.status)?;
        let mut path = output.stdout;
        path.truncate(path.trim_ascii_end().len());
        Ok(std::os::unix::ffi::OsStringExt::from_vec(path))
    }
}

/// Returns the user's options that all programs have.
fn common(options: &[OsString]) -> impl Iterator<Item = OsString> {
    let quiet = options.iter().find(|option| *option == QUIET).cloned();
    COMMON.iter().flat_map(|option| values(options, option)).chain(quiet)
}

fn ended(status: std::process::ExitStatus) -> Result<(), Failure> {
    // by the convention of shells
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    if code == 0 { Ok(()) } else { Err(Failure::Ended(ExitCode::from(u8::try_from(code).unwrap_or(1)))) }
}

/// Returns the last use of an option, with its value.
pub fn values(options: &[OsString], name: &str) -> Vec<OsString> {
    let Some(at) = options
        .iter()
        .rposition(|option| option.to_str().is_some_and(|option| option.split('=').next() == Some(name)))
    else {
        return Vec::new();
    };
    let separate = usize::from(options[at] == *name);
    options[at..].iter().take(1 + separate).cloned().collect()
}

/// Returns a program with its first arguments, which refers to itself as the user typed it.
fn command(line: &str, typed: &Typed) -> anyhow::Result<Command> {
    let mut parts = line.split(' ');
    let mut command = prepared(parts.next().unwrap_or_default())?;
    command.args(parts).env(words::TYPED, &typed.name).env(words::LINE, &typed.line);
    Ok(command)
}

/// Returns a program in the folder of this one, with its environment.
fn prepared(name: &str) -> anyhow::Result<Command> {
    let own = env::current_exe().context("cannot find the folder of the headcount program")?;
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
