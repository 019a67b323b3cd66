//! Experiments without a setup: `--model FOLDER --test FILE` in place of its name.
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The option that names the model.
const MODEL: &str = "--model";

/// Options of `init`, which experiments do not have.
const OF_INIT: [&str; 11] = [
    "--test",
    "--train",
    "--dev",
    "--text",
    "--pair",
    "--label",
    "--labels",
    "--source",
    "--target",
    "--prefix",
    "--languages",
];

/// An option of `init` without a value.
const FINE_TUNE: &str = "--fine-tune";

/// Arguments for `init`, and the rest for the experiment.
#[derive(Debug)]
pub struct FirstLook {
    /// Arguments of `init`.
    pub init: Vec<OsString>,
    /// The other arguments.
    pub rest: Vec<OsString>,
}

/// Splits the arguments for a first look; `None` without `--model`.
pub fn first_look(arguments: &[OsString]) -> Option<FirstLook> {
    let (mut model, mut init, mut rest) = (None, Vec::new(), Vec::new());
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        let text = argument.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((&*text, None), |(name, value)| (name, Some(value)));
        let mut value = || value.map(OsString::from).or_else(|| left.next().cloned());
        match name {
            MODEL => model = value(),
            FINE_TUNE => init.push(FINE_TUNE.into()),
            _ if OF_INIT.contains(&name) => init.extend([Some(name.into()), value()].into_iter().flatten()),
            _ => rest.push(argument.clone()),
        }
    }
    let model = model?;
    let results = value_of(&rest, "--results").unwrap_or_else(|| "results".into());
    let name = folder_name(&model);
    let file = Path::new(&results).join(&name).join(format!("{name}.toml"));
    let output = [OsString::from("--force"), "--output".into(), file.into()];
    Some(FirstLook { init: [name.into(), model].into_iter().chain(output).chain(init).collect(), rest })
}

/// Returns a setup name from the last part of a model's path or name: without `.gguf`, and for a folder in the hub's cache the model's
/// name.
fn folder_name(model: &OsStr) -> String {
    let text = model.to_string_lossy();
    let path = PathBuf::from(text.trim_start_matches("hub:").split('@').next().unwrap_or_default());
    let path = path.canonicalize().unwrap_or(path);
    let cached =
        path.iter().filter_map(|part| part.to_str()?.strip_prefix("models--")?.split("--").last()).next();
    let last = path.file_name().unwrap_or(OsStr::new("model")).to_string_lossy();
    let name = cached.unwrap_or(&last).trim_end_matches(".gguf").trim_start_matches('.');
    name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

/// Returns the last value of an option, given as `--name value` or `--name=value`.
pub fn value_of(options: &[OsString], name: &str) -> Option<OsString> {
    match super::run::values(options, name).as_slice() {
        [_, value] => Some(value.clone()),
        [both] => both.to_str()?.split_once('=').map(|(_, value)| value.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_init_are_told_from_those_of_the_experiment() {
        let typed = ["--limit", "5", "--model", "a/b.c", "--test=x.csv", "--label", "y", "--results", "r"];
        let look = first_look(&typed.map(OsString::from)).unwrap();
        let init =
            ["b.c", "a/b.c", "--force", "--output", "r/b.c/b.c.toml", "--test", "x.csv", "--label", "y"];
        assert_eq!(look.init, init.map(OsString::from));
        assert_eq!(look.rest, ["--limit", "5", "--results", "r"].map(OsString::from));
        assert!(first_look(&["demo".into()]).is_none());
    }

    #[test]
    fn results_are_named_after_the_model() {
        let name = |model: &str| folder_name(OsStr::new(model));
        assert_eq!(name("hub:owner/small@main"), "small");
        assert_eq!(name("models/llama-q4.gguf"), "llama-q4");
        assert_eq!(name("models/my-roberta/"), "my-roberta");
        assert_eq!(name("models/My Model (2)"), "My-Model--2-");
        assert_eq!(name("hub/models--owner--small/snapshots/0123abcd"), "small");
    }
}
