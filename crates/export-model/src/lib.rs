//! Export of a smaller model: the heads that a step of a pruning curve masks are removed from the weights.
mod curve;
mod onnx;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use core_masking::{HeadSet, Removal};
use experiment::{Export, MachineArgs, SubjectArgs};
use gguf::Precision;
use records::{CurveRow, Signature};
use serde_json::{Map, Value};
use subject::{Ablation, Scored};

use curve::MeasuredCurve;

/// Writes a model without the heads that a step of a pruning curve masks, as a Hugging Face folder.
///
/// The curve must come from iterative-prune or joint-search. The step is the largest whose heads are dispensable, or the step at --percent.
/// pruning.json, next to the weights, records which heads were removed and the effect on the score.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    #[command(flatten)]
    subject: SubjectArgs,

    /// Folder to write
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// How heads are removed
    #[arg(long, value_enum, default_value_t = Form::Cut)]
    form: Form,

    /// Fold the mean outputs of the removed heads into the bias of the output projection; required if the curve was measured with
    /// --ablation mean
    #[arg(long)]
    fold: bool,

    /// Results of iterative-prune or joint-search [default: `<results>/<setup>/iterative-prune.csv`, with --fold
    /// `iterative-prune-mean.csv`]
    #[arg(long, value_name = "FILE.csv")]
    from: Option<PathBuf>,

    /// Curve, such as all/importance [default: the only one in the file, or all/importance]
    #[arg(long, value_name = "NAME")]
    curve: Option<String>,

    /// Share of the curve's heads to remove, in percent; must be a step of the curve, or 0 to write the model with all its heads [default:
    /// the largest whose heads are dispensable]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    percent: Option<u64>,

    /// Margin: tolerated loss, in percent of the full model's score; for nats per token, of the perplexity [default: margin of the results]
    #[arg(long, value_name = "PERCENT", value_parser = significance::margin, conflicts_with = "percent")]
    margin: Option<f64>,

    /// GGUF file to write in addition, for llama.cpp; supports Llama, Mistral without sliding windows, and Qwen2, also if layers lose
    /// different numbers of heads
    #[arg(long, value_name = "FILE.gguf")]
    export_gguf: Option<PathBuf>,

    /// Data type of the weights in the GGUF file
    #[arg(long = "type", value_enum, default_value_t = Precision::F16, requires = "export_gguf")]
    precision: Precision,

    /// Replace an existing export
    #[arg(long)]
    replace: bool,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,

    #[command(flatten)]
    machine: MachineArgs,
}

/// Ways to remove heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Remove them from the weights, and list them in config.json. transformers 4.57 and 5 load the model with the included
    /// modeling_headcount.py and trust_remote_code=True; the manual lists the families
    Cut,
    /// Set their weights to zero, which any tool can read
    Zeros,
    /// Cut, with a file `model.onnx` for ONNX Runtime and others, without a key-value cache. PYTHON must name a Python with torch,
    /// transformers, onnx and onnxruntime
    Onnx,
    /// Remove them and renumber the others: a smaller Llama, Mistral or Qwen, which transformers loads. Every layer must lose an equal
    /// number of heads, as with iterative-prune --uniform
    Uniform,
}

impl Form {
    fn removal(self) -> Removal {
        match self {
            Self::Cut | Self::Onnx => Removal::Cut,
            Self::Zeros => Removal::Zeros,
            Self::Uniform => Removal::Uniform,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cut | Self::Onnx => "cut",
            Self::Zeros => "zeros",
            Self::Uniform => "uniform",
        }
    }
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::exit_code(run(&words::parse::<Args>()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let export = Export::new(&args.folder, args.replace)?;
    args.export_gguf.as_deref().map_or(Ok(()), |file| check_free(file, args.replace))?;
    let machine = args.machine.build()?;
    let description = args.subject.read()?;
    let scored = Scored::first(description.test_split().to_owned(), None, false);
    let experiment = if args.fold { "iterative-prune-mean" } else { "iterative-prune" };
    let default = || description.result_path(&args.results, experiment, &scored);
    let curve = MeasuredCurve::read(&args.from.clone().unwrap_or_else(default), args.curve.as_deref())?;
    let heads = description.layout(&machine)?.heads().len();
    let step = match args.percent {
        Some(percent) => curve.step_at(percent, heads)?,
        None => curve.largest_dispensable(args.margin, heads)?,
    };
    let ablation = curve.ablation(args.fold)?;
    let subject = description.open(&machine, &args.results)?;
    curve.check_model(&subject, &ablation)?;
    if args.export_gguf.is_some() {
        gguf::check(subject.folder())?;
    }

    let masked: HeadSet = step.masked_heads.parse()?;
    let (form, ablation) =
        if masked.is_empty() { (Form::Cut, Ablation::Zero) } else { (args.form, ablation) };
    let about = about(step, form, curve.signature(args.margin));
    export.about(about).write(&subject, &masked, form.removal(), &ablation)?;
    words::print_line(args.folder.display())?;
    if args.form == Form::Onnx {
        onnx::write(&args.folder)?;
    }
    args.export_gguf.as_deref().map_or(Ok(()), |file| write_gguf(&args.folder, file, args.precision))?;
    if !machine.quiet {
        words::say!("{}", described(step));
        if args.form.removal() == Removal::Cut && !masked.is_empty() {
            words::say!("{}", for_transformers(&args.folder));
        }
    }
    Ok(())
}

/// Refuses an existing file, unless it may be replaced, and a file that cannot be written.
fn check_free(file: &Path, may_replace: bool) -> anyhow::Result<()> {
    let shown = file.display();
    ensure!(
        may_replace || !file.exists(),
        "`{shown}` exists already: choose another file, or replace it with --replace"
    );
    Ok(durable::check_writable(file)?)
}

/// Writes the exported folder as a GGUF file.
fn write_gguf(folder: &Path, file: &Path, precision: Precision) -> anyhow::Result<()> {
    let exported = gguf::export(folder, file, precision)?;
    words::print_line(file.display())?;
    exported.warning().into_iter().for_each(words::warn);
    Ok(())
}

/// Returns the signature of the curve with the details of the export.
fn about(step: &CurveRow, form: Form, mut signature: Signature) -> Signature {
    signature.identity.arguments.extend([
        ("removed_heads".to_owned(), step.masked_heads.clone().into()),
        ("removed".to_owned(), form.name().into()),
        ("order".to_owned(), step.order.name().into()),
        ("base_score".to_owned(), step.base_score.into()),
        ("score".to_owned(), step.score.into()),
    ]);
    signature
}

fn described(step: &CurveRow) -> String {
    let digits = step.metric.digits();
    format!(
        "{} of {} heads removed: {} {:.digits$} ({:+.digits$})",
        step.masked, step.heads, step.metric, step.score, step.score_delta,
    )
}

/// Returns the transformers call that loads the exported model in `folder`, or what to do if transformers cannot load it.
fn for_transformers(folder: &Path) -> String {
    let config = fs::read_to_string(folder.join("config.json")).unwrap_or_default();
    let config: Map<String, Value> = serde_json::from_str(&config).unwrap_or_default();
    match config.get("auto_map").and_then(|map| map.as_object()?.keys().next()) {
        Some(auto) => format!(
            "transformers: {auto}.from_pretrained({folder:?}, trust_remote_code=True), or after `import headcount`"
        ),
        None if config.contains_key("pruned_heads") => {
            "transformers 4 loads it, but transformers 5 loads models of this family only with --form zeros"
                .to_owned()
        }
        None => "transformers loads models of this family only with --form zeros".to_owned(),
    }
}
