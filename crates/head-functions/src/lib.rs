//! Functions of heads: Voita et al. (2019), <https://aclanthology.org/P19-1580>, Section 5, Table 1 and Figures 1b, 1c and 2b.
//!
//! Measures how confident each head is, and whether it attends to one relative position, follows a dependency, or attends to rare tokens.
//! Each is a share of queries, arcs or sentences with an interval, compared with chance and with position alone. For translators the
//! encoder is analysed, whose words have trees; for classifiers and language models all heads.
//!
//! The decoder's self-attention and encoder-decoder attention are left out, since the paper defines these functions for the encoder only.
//! The "semantic" function that one survey ascribes to the paper is not defined there.
mod attention;
mod function;
pub mod look;
pub mod named_heads;
mod positional;
mod rare;
pub mod relevance;
mod rows;
mod sentence;
mod summary;
mod syntactic;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use core_masking::HeadId;
use experiment::{OpenRows, SharedArgs};
use heads::experiment::HEAD_FUNCTIONS;
use records::{HeadFunctionRow, Identity, Signature};
use subject::{Description, Scored, Subject};

use attention::SentenceAttention;
use function::{Function, View};
use sentence::Sentence;
use texts::{Frequencies, Readable, TREES, Texts};

/// Measures what heads do: positions, dependencies, rare tokens (Voita et al. 2019).
///
/// Writes a row for each head and function. Sentences come from --trees or --split, otherwise from the files that the setup's TOML names,
/// otherwise from its test split. Sentences of a split have trees only if the demo grammar generates them; without trees there are no rows
/// for dependencies. Everything is computed in one pass, so a killed run starts over. --limit takes the first sentences, even of questions
/// that have groups.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
struct Args {
    /// File of sentences with trees in CoNLL-U, plain or .gz, instead of those that the setup's TOML names; repeat the option to join files
    #[arg(long, value_name = "FILE.conllu", conflicts_with = "split")]
    trees: Vec<PathBuf>,

    /// Represent a word by its first piece instead of its last
    #[arg(long)]
    first_piece: bool,

    /// Split on which tokens are counted to find rare ones; `none` leaves out rare tokens [default: the training split]
    #[arg(long, value_name = "SPLIT")]
    frequencies: Option<String>,

    /// Number of most frequent tokens, which do not count as rare [default: `frequent` in the setup's TOML, otherwise 500]
    #[arg(long, value_name = "N")]
    frequent: Option<usize>,

    /// Resamples of the sentences for intervals, up to 99,999; fewer than 39 give no intervals
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = significance::resamples)]
    resamples: usize,

    // Last, because the heading of a flattened struct also covers the fields after it.
    #[command(flatten)]
    shared: SharedArgs,
}

/// Number of most frequent tokens that are not rare in Voita et al. (2019), Section 5.3.
const FREQUENT: usize = 500;

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    experiment::run_each(words::parse::<Args>(), |args| &mut args.shared.subject, run)
}

fn run(args: &Args) -> anyhow::Result<()> {
    args.shared.refuse_shard(
        "all heads are measured in the same pass over the sentences, so rows cannot be measured separately",
    )?;
    let machine = args.shared.machine()?;
    let description = args.shared.subject.read()?;
    // Opening the setup may train its model for an hour, so everything else that can fail is tried first.
    let mut texts = Texts::read(&args.trees, args.shared.split.as_deref(), &description, &machine)?;
    let places = args.scored(&texts, &description).places(&[texts.trees.len()]);
    texts.trees = places.iter().map(|&place| texts.trees[place].clone()).collect();
    let counted = texts::frequencies(args.frequencies.as_deref(), &description, &machine)?;
    let frequent = args.frequent.or(description.frequent_tokens()).unwrap_or(FREQUENT);
    let path = args.shared.output_path(HEAD_FUNCTIONS.name, &description, &args.scored(&texts, &description));
    args.shared.check_writable(&path)?;
    let subject = description.open(&machine, &args.shared.results)?;

    let input = subject.text_input();
    let readable = texts::cut(&texts.trees, &subject, &input)?;
    let frequencies = counted.map(|(split, counted)| texts::count(split, &counted, &subject)).transpose()?;
    let identity = args.identity(&subject, &texts, frequencies.as_ref().map(|known| (known, frequent)));
    let OpenRows { path, mut writer, .. } =
        args.shared.open_rows::<HeadFunctionRow>(&path, &Signature::new(identity, machine.provenance()))?;
    let heads = subject.layout().heads_of(input.attention)?;
    let ranks = frequencies.as_ref().map(|frequencies| &frequencies.ranks);
    let view = View {
        sentences: &readable.sentences,
        attention: &[],
        ranks,
        frequent,
        is_first: args.first_piece,
        seed: args.shared.seed(),
    };
    let functions = Function::all(&view);
    if writer.rows().len() < heads.len() * functions.len() {
        if !machine.quiet {
            say(&texts, &readable);
            if ranks.is_some() {
                say_of_rare(&functions, frequent);
            }
        }
        let attention = look(&subject, view.sentences, &heads, args.first_piece)?;
        let view = View { attention: &attention, ..view };
        for function in functions {
            let rows = rows::rows(function, &heads, &view, args.resamples);
            rows.context("functions of heads")?.into_iter().try_for_each(|row| writer.append(row, None))?;
        }
    }
    if !machine.quiet {
        summary::lines(writer.rows()).iter().for_each(|line| words::say!("{line}"));
    }
    writer.finish()?;
    words::print_line(path.display())?;
    Ok(())
}

/// Returns the attention of each head in each sentence.
fn look(
    subject: &Subject,
    sentences: &[Sentence],
    heads: &[HeadId],
    is_first: bool,
) -> anyhow::Result<Vec<Vec<SentenceAttention>>> {
    let tokens: Vec<&[u32]> = sentences.iter().map(|sentence| sentence.tokens.as_slice()).collect();
    let mut found: Vec<Vec<Option<SentenceAttention>>> = vec![vec![None; sentences.len()]; heads.len()];
    subject.look(&tokens, &mut |place, attention| {
        for (of_head, &id) in found.iter_mut().zip(heads) {
            of_head[place] = Some(SentenceAttention::new(&sentences[place], &attention, id, is_first));
        }
        Ok(())
    })?;
    let all = |of_head: Vec<Option<SentenceAttention>>| {
        of_head.into_iter().map(|attention| attention.expect("of each text")).collect()
    };
    Ok(found.into_iter().map(all).collect())
}

impl Args {
    /// Returns the split that names the result file: the test split if the sentences come from files.
    fn scored(&self, texts: &Texts, description: &Description) -> Scored {
        let split = if texts.source == TREES { description.test_split() } else { &texts.source };
        self.shared.scored(split.to_owned(), false)
    }

    /// - `frequencies`: token frequencies, and the number of tokens that are not rare
    fn identity(
        &self,
        subject: &Subject,
        texts: &Texts,
        frequencies: Option<(&Frequencies, usize)>,
    ) -> Identity {
        let mut identity = subject.identity_of_model(HEAD_FUNCTIONS.name);
        identity.split.clone_from(&texts.source);
        self.shared.scored(texts.source.clone(), false).describe_limit(&mut identity);
        identity.seed = Some(self.shared.seed());
        identity.metric = "share".to_owned();
        identity.data.insert(texts.source.clone(), texts.sha256());
        let arguments = &mut identity.arguments;
        arguments.insert("first_piece".to_owned(), self.first_piece.into());
        arguments.insert("resamples".to_owned(), self.resamples.into());
        if let Some((Frequencies { split, sha256, .. }, frequent)) = frequencies {
            arguments.insert("frequent".to_owned(), frequent.into());
            arguments.insert("frequencies".to_owned(), split.clone().into());
            identity.data.insert(format!("frequencies of {split}"), sha256.clone());
        }
        identity
    }
}

/// Reports if rare tokens are left out.
fn say_of_rare(functions: &[Function], frequent: usize) {
    if !functions.contains(&Function::Rare { rarest: 1 }) {
        words::say!(
            "rare tokens are left out: no sentence contains a token outside the {frequent} most frequent; lower --frequent"
        );
    }
}

/// Reports which sentences are analysed and which are left out.
fn say(texts: &Texts, Readable { sentences, empty, too_long, truncated }: &Readable) {
    words::say!("{} sentences of `{}`", sentences.len(), texts.source);
    if !texts.has_trees {
        words::say!(
            "dependencies are left out: these sentences have no trees; --trees names a file with trees"
        );
    }
    let left_out = [
        (*empty, "sentences are left out: they have no tokens"),
        (*too_long, "sentences are left out: they are longer than the model allows"),
        (*truncated, "sentences are truncated: they are longer than the tokenizer's maximum length"),
        (
            sentences.iter().map(|sentence| sentence.lost_arcs).sum(),
            "dependencies are left out: one of the two words has no token because it was truncated or merged with its neighbour",
        ),
    ];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        words::say!("{count} {what}");
    }
}
