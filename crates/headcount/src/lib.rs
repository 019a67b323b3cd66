//! One command for all programs, for users who have installed them and for the recipes of the justfile. It runs a program and draws what it
//! measured, without libtorch.
mod commands;
mod first_look;
mod run;

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

pub use commands::{Entry, GROUPS, Group, PAPERS, PROGRAMS, find};
pub use run::ENVIRONMENT;

/// Environment variable with the command that users type before a name; defaults to `headcount`.
const FRONT: &str = "HEADCOUNT_FRONT";

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let matches = interface().get_matches();
    let Some((name, rest)) = matches.subcommand() else {
        unreachable!("clap requires a command");
    };
    run(name, rest).unwrap_or_else(|error| words::exit_code(Err(format!("{error:#}"))))
}

fn run(name: &str, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = matches.get_many("arguments").into_iter().flatten().cloned().collect();
    let typed = Typed::new(name, &arguments);
    match find(name) {
        Some(entry) => run::start(entry, &typed, &arguments),
        None => run::replace(name, &typed, &arguments),
    }
}

/// A command as it was typed.
#[derive(Debug)]
struct Typed {
    /// Its name, such as `just heads`.
    name: String,
    /// The name and all arguments, quoted for a shell.
    line: String,
}

impl Typed {
    /// Names the command: the justfile sets the front to `just`, and has recipes with the commands' names.
    fn new(name: &str, arguments: &[OsString]) -> Self {
        let front = std::env::var(FRONT).unwrap_or_else(|_| "headcount".to_owned());
        let is_of = |group: &Group| group.commands.iter().any(|entry| entry.name == name);
        let is_paper = GROUPS.iter().any(|group| PAPERS.contains(&group.title) && is_of(group));
        let reproduce = if is_paper && front == "just" { "reproduce-" } else { "" };
        let name = format!("{front} {reproduce}{name}");
        let arguments = words::quoted(arguments.iter().map(|text| text.to_string_lossy().into_owned()));
        Self { line: format!("{name} {arguments}").trim_end().to_owned(), name }
    }
}

fn interface() -> Command {
    let arguments = Arg::new("arguments")
        .action(ArgAction::Append)
        .num_args(0..)
        .value_parser(clap::value_parser!(OsString));
    // each command answers --help separately
    let command = |name: &'static str, aliases: &'static [&'static str]| {
        let all = arguments.clone().trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(name).aliases(aliases).disable_help_flag(true).arg(all)
    };
    let entries = GROUPS.iter().flat_map(|group| group.commands);
    let aliased = |name: &&&str| find(name).is_none();
    Command::new("headcount")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(entries.map(|entry| command(entry.name, entry.aliases)))
        .subcommands(PROGRAMS.iter().filter(aliased).map(|program| command(program, &[])))
        .override_help(help())
}

fn help() -> String {
    let mut help = "Which attention heads does a model need?\n\nUsage: headcount <COMMAND> [SETUP] [OPTIONS]\n\nA setup is a TOML file \
                    with a model, its data and its metric: the path of one, or the name of one in experiments/ or of a demo.\n\
                    `headcount COMMAND --help` lists options. A first look without a setup:\n\n  \
                    headcount heads --model FOLDER --test FILE [--train FILE]\n"
        .to_owned();
    for group in GROUPS {
        let _ = write!(help, "\n{}\n", group.title);
        for Entry { name, about, .. } in group.commands {
            let _ = writeln!(help, "  {name:13}  {about}");
        }
    }
    let _ = write!(
        help,
        "\nPrograms that only measure, and print the path of their CSV file:\n  {}\n",
        PROGRAMS.join(", ")
    );
    help
}
