//! Commands under the names that users type, and suggestions for unknown names.
use std::env;

use clap::{Command, Parser};

/// Environment variable with the command as typed, `headcount heads` or `just heads`, if another program started this one.
pub const TYPED: &str = "HEADCOUNT_TYPED";

/// Environment variable with the command as typed and its arguments, if another program started this one.
pub const LINE: &str = "HEADCOUNT_LINE";

/// Similarity, 0 to 1, above which a known name is suggested; the threshold of clap's suggestions.
const SIMILAR: f64 = 0.7;

/// Parses the arguments of this process. Usage lines and errors show the command as typed.
pub fn parse<A: Parser>() -> A {
    let mut matches = typed(A::command()).get_matches();
    A::from_arg_matches_mut(&mut matches)
        .unwrap_or_else(|error| error.format(&mut typed(A::command())).exit())
}

fn typed(command: Command) -> Command {
    match env::var(TYPED) {
        Ok(name) => command.bin_name(name),
        Err(_) => command,
    }
}

/// Returns the command line that started this program, quoted for a shell.
pub fn command_line() -> String {
    env::var(LINE).unwrap_or_else(|_| {
        let mut arguments = env::args();
        let program = arguments.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or_default().to_owned();
        quoted(std::iter::once(name).chain(arguments))
    })
}

/// Returns the first word of the command as typed, `headcount` or `just`.
pub fn front() -> String {
    let typed = env::var(TYPED).unwrap_or_default();
    typed.split(' ').next().filter(|front| !front.is_empty()).unwrap_or("headcount").to_owned()
}

/// Joins arguments to a shell command line and quotes those with special characters.
pub fn quoted(arguments: impl IntoIterator<Item = String>) -> String {
    let is_plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./:=,+@%".contains(c))
    };
    let quote = |text: String| match is_plain(&text) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    };
    arguments.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Returns `; did you mean ...?` with the known name closest to `wanted`; empty if no name is similar.
pub fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Returns the known name closest to `wanted` by Jaro similarity; `None` if no name is similar.
fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |name: &'a str| (strsim::jaro(wanted, name), name);
    let similar = known.into_iter().map(similarity).filter(|(similarity, _)| *similarity > SIMILAR);
    similar.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let known = ["heads", "layers", "demo-inference"];
        assert_eq!(nearest("haeds", known), Some("heads"));
        assert_eq!(did_you_mean("demo-inferense", known), "; did you mean `demo-inference`?");
        assert_eq!((nearest("prune", known), did_you_mean("x", [])), (None, String::new()));
    }

    #[test]
    fn a_line_is_read_by_a_shell_as_it_was_typed() {
        let typed = ["say", "my model", "it's", "--mask", "self:1:1+self:2:1", ""].map(str::to_owned);
        assert_eq!(quoted(typed), r"say 'my model' 'it'\''s' --mask self:1:1+self:2:1 ''");
    }
}
