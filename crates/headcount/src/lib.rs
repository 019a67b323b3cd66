//! One command in front of all programs, for those who have installed them, and for the recipes of the justfile.
//!
//! A program's name runs it; a recipe runs an experiment and draws its file. Nothing here needs libtorch.
mod commands;
mod run;

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

pub use commands::{GROUPS, Group, Program, Recipe};
pub use run::ENVIRONMENT;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    let matches = interface().get_matches();
    let Some((name, rest)) = matches.subcommand() else {
        unreachable!("clap wants a command");
    };
    run(name, rest).unwrap_or_else(|error| words::exit_code(Err(format!("{error:#}"))))
}

fn run(name: &str, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = matches.get_many("arguments").into_iter().flatten().cloned().collect();
    let recipe = GROUPS.iter().flat_map(|group| group.recipes).find(|recipe| recipe.name == name);
    recipe.map_or_else(|| run::replace(name, &arguments), |recipe| run::cook(recipe, &arguments))
}

fn interface() -> Command {
    let arguments = Arg::new("arguments")
        .action(ArgAction::Append)
        .num_args(0..)
        .value_parser(clap::value_parser!(OsString));
    // each has an answer of its own to --help
    let commands = GROUPS.iter().flat_map(Group::commands).map(|(name, _)| {
        let all = arguments.clone().trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(name).disable_help_flag(true).arg(all)
    });
    Command::new("headcount")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands)
        .override_help(help())
}

fn help() -> String {
    let mut help = "Which attention heads does a model need?\n\nUsage: headcount <COMMAND> [SUBJECT] [OPTIONS]\n\nA subject is a \
                    TOML file, or the name of one in experiments/ or of a demo; `headcount COMMAND --help` lists options.\n"
        .to_owned();
    for group in GROUPS {
        let _ = write!(help, "\n{}:\n", group.title);
        for (name, about) in group.commands() {
            let _ = writeln!(help, "  {name:18}  {about}");
        }
    }
    help
}
