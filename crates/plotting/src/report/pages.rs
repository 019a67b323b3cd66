//! Contents of each page: the values of its template.
use std::collections::BTreeSet;

use crate::artefact::chapter;
use charts::table::{Row, Table};
use charts::write::Sheet;
use minijinja::{Value, context};

use crate::report::gather::{Comparison, Gathered};
use crate::report::tables::{id, of_sheets, of_table};
use crate::report::view::all_heads::{self, Heads};
use crate::report::view::claim;

pub fn subject(gathered: &Gathered) -> Value {
    let Gathered { claim, is_language, subject, described, facts, .. } = gathered;
    let chapters: Vec<_> = chapter::ALL.into_iter().filter_map(|title| of_chapter(gathered, title)).collect();
    let is_installed = durable::front() != "just";
    let absent = gathered.sections.iter().filter(|(_, sheets)| sheets.is_empty());
    let absent = absent.map(|(artefact, _)| {
        let recipe =
            if is_installed { artefact.recipe.trim_start_matches("reproduce-") } else { artefact.recipe };
        let command = format!("{} {recipe} {}", durable::front(), subject.name);
        context! { what => artefact.described(), command }
    });
    let checked = facts.iter().filter(|(name, _)| CHECKED.contains(name));
    let command = facts.iter().find(|(name, _)| *name == "Command");
    let again = |(_, command): &(_, String)| match is_installed {
        true => format!("headcount {command}"),
        false => format!("cargo run --release --bin {}", command.replacen(' ', " -- ", 1)),
    };
    context! {
        claim, is_language, chapters, facts,
        title => gathered.title(),
        name => subject.name,
        signature => checked.collect::<Vec<_>>(),
        command => command.map(again),
        description => described.description,
        toml => described.text,
        training => of_sheets("training", &gathered.training),
        verdicts => gathered.verdicts.as_ref().map(|table| of_table("verdicts", table)),
        heads => gathered.heads.as_ref().map(|heads| of_heads(heads, gathered.texts.as_ref())),
        limits => limits(gathered),
        faults => gathered.faults.iter().chain(&described.fault).collect::<Vec<_>>(),
        absent => absent.collect::<Vec<_>>(),
    }
}

fn of_chapter(gathered: &Gathered, title: &str) -> Option<Value> {
    let own = gathered.sections.iter().filter(|(own, sheets)| own.chapter == title && !sheets.is_empty());
    let sections: Vec<_> = own.map(|(own, sheets)| section(own.name, own.about, sheets)).collect();
    (!sections.is_empty()).then(|| context! { id => id(title), title, sections })
}

fn section<'a>(name: &str, about: &str, sheets: impl IntoIterator<Item = &'a Sheet>) -> Value {
    context! { id => format!("of-{}", id(name)), about, parts => of_sheets(name, sheets) }
}

/// The facts needed to check a claim.
const CHECKED: [&str; 4] = ["Data", "Tests", "Command", "Commit"];

fn of_heads(Heads { table, measures, maps }: &Heads, texts: Option<&Table>) -> Value {
    let is_small = maps.len() == 1 && table.rows.len() <= 100;
    let texts = texts.map(|table| of_table("texts", table));
    context! { measures, maps, is_small, texts, segments => all_heads::SEGMENTS, table => of_table("heads", table) }
}

/// Returns the limits of the numbers, as sentences.
fn limits(gathered: &Gathered) -> Vec<&'static str> {
    let nats =
        "Scores are nats per token: lower is better. A change by d multiplies the perplexity by exp(d).";
    let demo = "The data is a synthetic language: it shows that the pipeline works, not what real models do.";
    let fixed = [
        "Intervals and p-values apply to other segments of the same kind as the test set, not to other data, another run with \
         another seed, or other models.",
        "A head that is dispensable alone need not be dispensable together with others: pruning curves show how many can be \
         masked at once.",
        "The oracle ranks heads on the split that is scored, so its curve is optimistic.",
        "The interval of a share of heads comes from the score at each step separately, not from the whole curve.",
        "A significant change may be small, and on a small test set a large change may not be significant. Verdicts use the interval.",
    ];
    let of_kind = [(gathered.subject.kind.is_demo, demo), (gathered.is_language, nats)];
    of_kind.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).chain(fixed).collect()
}

pub fn index(all: &[Gathered]) -> Value {
    let row = |gathered: &Gathered| {
        let about = gathered.described.description.as_deref().unwrap_or_default();
        Row::new(gathered.title(), [about.into()].into_iter().chain(gathered.key_numbers.clone()))
    };
    let title = "Findings for each setup; its name links to its report";
    let table = Table::new("Setups", "subjects", title)
        .columns(["Setup", ""], ["description"].into_iter().chain(claim::KEY_NUMBERS))
        .rows(all.iter().map(row))
        .note("needed: heads, masked one at a time, whose whole 95% interval of the loss is above the margin; dispensable: below it")
        .note("share of heads: masked by importance with a loss within the margin");
    let names: Vec<_> = all.iter().map(|gathered| &gathered.subject.name).collect();
    let broken = all.iter().filter(|gathered| !gathered.faults.is_empty());
    let broken: BTreeSet<_> = broken.map(Gathered::title).collect();
    context! { table => of_table("index", &table), names, broken }
}

pub fn comparison(comparisons: &[Comparison], faults: &[String]) -> Value {
    let sections = comparisons.iter().map(|(name, about, sheet)| section(name, about, [sheet]));
    context! { sections => sections.collect::<Vec<_>>(), faults }
}
