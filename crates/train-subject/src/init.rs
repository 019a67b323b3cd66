//! A setup for a new model and new data, and a first score.
mod first_score;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use experiment::MachineArgs;
use subject::init::{Draft, FileArgs, InitialModel, Known, describe};
use training::Machine;

use first_score::FirstScore;

/// First line of a setup whose model could not be scored; the next `init` replaces such a setup.
const NOT_SCORED: &str = "# The model could not be scored yet.";

/// Describes a model and its data in a setup, `experiments/NAME.toml`, and scores 20 segments.
///
/// The task, classes, columns and formats are read from the files of the model and the data. Comments in the setup state what was found and
/// what was assumed. Split names are taken from file names: train, dev or valid, test.
#[derive(Debug, clap::Parser)]
#[command(name = "init", version, args_override_self = true)]
struct Args {
    /// Name of the setup
    #[arg(value_name = "NAME")]
    name: String,

    /// Model: a Hugging Face folder, a GGUF file, or hub:owner/name
    #[arg(value_name = "MODEL")]
    model: String,

    /// Data: CSV, TSV, JSON lines, plain text, line-parallel files (source first), or a folder of these
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,

    /// Test set; line-parallel files are named one by one
    #[arg(long, value_name = "FILE")]
    test: Vec<PathBuf>,

    /// Training set, on which heads are ranked
    #[arg(long, value_name = "FILE")]
    train: Vec<PathBuf>,

    /// Development set
    #[arg(long, value_name = "FILE")]
    dev: Vec<PathBuf>,

    /// Column of the text, or of the first of two
    #[arg(long, value_name = "COLUMN")]
    text: Option<String>,

    /// Column of the second of two texts
    #[arg(long, value_name = "COLUMN")]
    pair: Option<String>,

    /// Column of the class
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// Classes in the order of the model's outputs, as the data spell them
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    labels: Option<Vec<String>>,

    /// Column of the source, or ending of the file with the source
    #[arg(long, value_name = "COLUMN|ENDING")]
    source: Option<String>,

    /// Column of the target, or ending of the file with the target
    #[arg(long, value_name = "COLUMN|ENDING")]
    target: Option<String>,

    /// Text to put before each source, such as "summarize: "
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Codes of the source and target languages, as the tokenizer writes them
    #[arg(long, value_name = "SOURCE,TARGET", value_parser = two)]
    languages: Option<Languages>,

    /// Add a classification head to a model without one, and fine-tune it on first use
    #[arg(long)]
    fine_tune: bool,

    /// Replace an existing setup of this name
    #[arg(long)]
    force: bool,

    /// Setup to write [default: `experiments/NAME.toml`]
    #[arg(long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// Folder of the results, for the training curve of a fine-tuned model
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    #[command(flatten)]
    machine: MachineArgs,
}

#[derive(Debug, Clone)]
struct Languages([String; 2]);

fn two(text: &str) -> Result<Languages, String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [source, target] => Ok(Languages([source.to_owned(), target.to_owned()])),
        _ => Err("must be two codes, such as en_XX,de_DE".to_owned()),
    }
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> Result<()> {
    let path = args.path()?;
    // Only messages of this command are shown.
    let machine = Machine { quiet: true, ..args.machine.build()? };
    let model = InitialModel::find(&args.model(&machine)?, &machine)?;
    let command = words::command_line();
    let mut draft = describe(&command, &model, &args.known(), &machine)?;
    args.write(&path, &format!("{NOT_SCORED}\n{}", draft.text))?;
    let say = |line: &str| {
        if !args.machine.quiet {
            words::say!("{line}");
        }
    };
    if args.fine_tune {
        args.write(&path, &draft.text)?;
        say(&told(&path, &draft));
        say("the model is fine-tuned on first use");
        words::print_line(path.display())?;
        return Ok(());
    }
    let measure = |needs_order| {
        FirstScore::measure(&path, needs_order, &machine, &args.results)
            .with_context(|| format!("`{}` is written, but the model cannot be scored", path.display()))
    };
    let mut score = measure(draft.unordered.is_some())?;
    if let Some((labels, why)) = draft.unordered.as_deref().and_then(|labels| score.better_order(labels)) {
        let known = Known { labels: Some(labels), order_by_score: Some(why), ..args.known() };
        draft = describe(&command, &model, &known, &machine)?;
        args.write(&path, &draft.text)?;
        score = measure(true)?;
    }
    args.write(&path, &draft.text)?;
    say(&told(&path, &draft));
    let name = if args.output.is_some() { path.display().to_string() } else { args.name.clone() };
    score.lines(&name).iter().for_each(|line| say(line));
    if args.machine.quiet || !std::io::stdout().is_terminal() {
        words::print_line(path.display())?;
    }
    Ok(())
}

/// Describes what was written and what was assumed.
fn told(path: &Path, draft: &Draft) -> String {
    let assumed: Vec<String> = draft.assumed.iter().map(|line| format!("assumed: {line}")).collect();
    [vec![format!("wrote {}", path.display())], assumed].concat().join("\n")
}

impl Args {
    /// Returns the file to write.
    fn path(&self) -> Result<PathBuf> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        ensure!(
            self.name.chars().all(is_plain) && !self.name.starts_with('.'),
            "`{}` cannot be the name of a setup: it must consist of letters, digits, dots, - and _",
            self.name
        );
        let path = self.output.clone().unwrap_or_else(|| format!("experiments/{}.toml", self.name).into());
        let is_scored = || !std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with(NOT_SCORED));
        if path.exists() && !self.force && is_scored() {
            bail!("`{}` exists already: choose another name, or replace it with --force", path.display());
        }
        Ok(path)
    }

    /// Returns the model; a GGUF file is converted to a folder in the data folder.
    fn model(&self, machine: &Machine) -> Result<String> {
        let is_gguf = Path::new(&self.model).extension().is_some_and(|ending| ending == "gguf");
        if !is_gguf {
            return Ok(self.model.clone());
        }
        let folder = machine.data.join("models").join(format!("{}-gguf", self.name));
        let file = std::fs::metadata(&self.model).with_context(|| format!("cannot read `{}`", self.model))?;
        let origin = format!("{} {} {:?}", self.model, file.len(), file.modified()?);
        let note = folder.join("imported-from.txt");
        if std::fs::read_to_string(&note).is_ok_and(|known| known == origin) {
            return Ok(folder.to_string_lossy().into_owned());
        }
        if folder.exists() {
            let shown = folder.display();
            std::fs::remove_dir_all(&folder).with_context(|| format!("cannot replace `{shown}`"))?;
        }
        gguf::import(Path::new(&self.model), &folder, false)?;
        durable::write(&note, origin)?;
        Ok(folder.to_string_lossy().into_owned())
    }

    fn known(&self) -> Known {
        let splits = [("train", &self.train), ("dev", &self.dev), ("test", &self.test)];
        let named = splits.into_iter().filter(|(_, files)| !files.is_empty());
        let named: BTreeMap<_, _> = named.map(|(split, files)| (split, files.clone())).collect();
        Known {
            files: FileArgs { files: self.files.clone(), named },
            text: self.text.clone(),
            pair: self.pair.clone(),
            label: self.label.clone(),
            labels: self.labels.clone(),
            order_by_score: None,
            source: self.source.clone(),
            target: self.target.clone(),
            prefix: self.prefix.clone(),
            languages: self.languages.clone().map(|Languages(codes)| codes),
            fine_tune: self.fine_tune,
        }
    }

    fn write(&self, path: &Path, text: &str) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        Ok(durable::write(path, text)?)
    }
}
