//! What each page says: the parts of the templates that are not fixed.
use std::collections::BTreeSet;
use std::path::Path;

use charts::table::{Row, Table};
use charts::write::Sheet;
use findings::described::Described;
use minijinja::{Value, context};
use plotting::artefact::Chapter;
use words::with_minus;

use crate::gather::{Comparison, Facts, Gathered, Heads, Reader};
use crate::samples;
use crate::tables::{id, of_sheets, of_table};
use crate::view::all_heads::{HeadMap, MapCell};
use crate::view::claim;

/// The report of one subject.
pub fn subject(gathered: &Gathered, described: &Described, data: Option<&Path>) -> Value {
    let Gathered { title, claim, is_language, subject, .. } = gathered;
    let chapters: Vec<_> = Chapter::ALL.into_iter().filter_map(|known| chapter(gathered, known)).collect();
    let absent = gathered.sections.iter().filter(|(_, sheets)| sheets.is_empty());
    let absent = absent.map(|(artefact, _)| {
        let command = format!("just {} {}", artefact.recipe, subject.name);
        context! { what => artefact.described(), command }
    });
    let facts = gathered.facts.as_ref();
    context! {
        title, claim, is_language, chapters,
        name => subject.name,
        facts => facts.map(Facts::all),
        signature => facts.map(Facts::checked),
        command => facts.and_then(Facts::again),
        description => described.description,
        toml => described.text,
        training => of_sheets("training", &gathered.training),
        verdicts => gathered.verdicts.as_ref().map(|table| of_table("verdicts", table)),
        heads => gathered.heads.as_ref().map(|heads| of_heads(heads, texts(gathered, heads, described, data).as_ref())),
        limits => limits(gathered),
        faults => gathered.faults.iter().chain(&described.fault).collect::<Vec<_>>(),
        absent => absent.collect::<Vec<_>>(),
    }
}

/// The artefacts of a chapter; nothing where none has results.
fn chapter(gathered: &Gathered, (chapter, title): (Chapter, &str)) -> Option<Value> {
    let own = gathered.sections.iter().filter(|(own, sheets)| own.chapter == chapter && !sheets.is_empty());
    let sections: Vec<_> = own.map(|(own, sheets)| section(own.name, own.about, sheets)).collect();
    (!sections.is_empty()).then(|| context! { id => id(title), title, sections })
}

fn section<'a>(name: &str, about: &str, sheets: impl IntoIterator<Item = &'a Sheet>) -> Value {
    context! { id => format!("of-{}", id(name)), about, parts => of_sheets(name, sheets) }
}

/// A name and what stands beside it.
type Fact<'a> = (&'static str, &'a str);

impl Facts {
    fn all(&self) -> Vec<Fact<'_>> {
        let facts = [
            ("Signature", &self.signature),
            ("File", &self.file),
            ("Data", &self.data),
            ("Score", &self.score),
            ("Tests", &self.tests),
            ("Seed", &self.seed),
            ("Weights", &self.weights),
            ("Command", &self.command),
            ("Commit", &self.commit),
            ("Machine", &self.machine),
        ];
        known(&facts)
    }

    /// What a claim needs to be checked.
    fn checked(&self) -> Vec<Fact<'_>> {
        let Self { data, tests, command, commit, .. } = self;
        known(&[("Data", data), ("Tests", tests), ("Command", command), ("Commit", commit)])
    }

    /// The command that makes the numbers again.
    fn again(&self) -> Option<String> {
        let command = self.command.as_ref()?;
        Some(format!("cargo run --release --bin {}", command.replacen(' ', " -- ", 1)))
    }
}

fn known<'a>(facts: &[(&'static str, &'a Option<String>)]) -> Vec<Fact<'a>> {
    facts.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect()
}

fn of_heads(heads: &Heads, texts: Option<&Table>) -> Value {
    let table = &heads.table;
    let label = |head: &str| {
        let row = table.rows.iter().find(|row| row.label.text == head);
        let first = row.and_then(|row| row.cells.first()).map_or("", |cell| &cell.text);
        format!("{head}: {} {}", table.columns.first().map_or("", |name| name), with_minus(first))
    };
    let is_small = heads.maps.len() == 1 && heads.table.rows.len() <= 100;
    let map = |map: &HeadMap| {
        let layers = map.layers.iter().map(|layer| {
            let cell = |cell: &Option<MapCell>| {
                cell.as_ref().map(|cell| context! { label => label(&cell.head), cell })
            };
            layer.iter().map(cell).collect::<Vec<_>>()
        });
        let layers: Vec<_> = layers.collect();
        context! { attention => map.attention, description => map.description, is_small, layers }
    };
    let maps: Vec<_> = heads.maps.iter().map(map).collect();
    let texts = texts.map(|table| of_table("texts", table));
    context! { measures => heads.measures, maps, texts, table => of_table("heads", table) }
}

/// The texts of the segments that cards name, where they may be shown.
fn texts(gathered: &Gathered, heads: &Heads, described: &Described, data: Option<&Path>) -> Option<Table> {
    let split = heads.split.as_ref()?;
    let texts = samples::texts(described.text.as_ref()?, data, split, heads.data.as_ref()?)?;
    let named = heads.segments.iter().filter_map(|place| Some((place, texts.get(place.checked_sub(1)?)?)));
    let row = |(place, text): (&usize, &String)| Row::new(*place, [text.as_str()]);
    let whose = if gathered.subject.kind.is_demo { "a made-up language" } else { "the subject's own files" };
    let title = format!("The segments of {split} that change most with a head masked; {whose}");
    Some(Table::new("Texts", "texts", title).columns(["Segment", ""], ["text"]).rows(named.map(row)))
}

/// What the numbers do not say.
fn limits(gathered: &Gathered) -> Vec<&'static str> {
    let nats =
        "Scores are nats per token: lower is better. A change by d multiplies the perplexity by exp(d).";
    let demo = "The data is a made-up language: it shows that the pipeline works, not what real models do.";
    let fixed = [
        "Intervals and p-values are about other segments of the same kind as those of the test set. They say nothing of other \
         data, of another training run with another seed, or of other models.",
        "A head that can go alone need not be one that can go with others: the curves of masked heads say how many can go at once.",
        "The oracle's order is made on the very split that is scored, so that its curve flatters itself.",
        "The interval of a share of heads is that of the score at each step by itself, not of the whole curve.",
        "That a test sees no significant loss does not show that there is none; a small test set sees little.",
    ];
    let of_kind = [(gathered.subject.kind.is_demo, demo), (gathered.is_language, nats)];
    of_kind.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).chain(fixed).collect()
}

/// The page that leads to the reports of all subjects.
pub fn index(reader: &Reader, all: &[Gathered], descriptions: &[Described]) -> Value {
    let row = |(gathered, described): (&Gathered, &Described)| {
        let about = described.description.as_deref().unwrap_or_default();
        let numbers = reader.key_numbers(gathered);
        Row::new(&gathered.title[..], [about.into()].into_iter().chain(numbers))
    };
    let title = "What was found on each subject; its name leads to its report";
    let table = Table::new("Subjects", "subjects", title)
        .columns(["Subject", ""], ["what it is"].into_iter().chain(claim::KEY_NUMBERS))
        .rows(all.iter().zip(descriptions).map(row))
        .note("adjusted: a single false alarm among the heads of an attention type has the chance of the level at most")
        .note("the share is masked by importance, with a loss within the margin");
    let links = all.iter().map(|gathered| format!("{}/report.html", encoded(&gathered.subject.name)));
    let broken: BTreeSet<_> =
        all.iter().filter(|gathered| !gathered.faults.is_empty()).map(|gathered| &gathered.title).collect();
    context! { table => of_table("index", &table), links => links.collect::<Vec<_>>(), broken }
}

/// The page with all subjects beside each other.
pub fn comparison(comparisons: &[Comparison], faults: &[String]) -> Value {
    let sections = comparisons.iter().map(|(name, about, sheet)| section(name, about, [sheet]));
    context! { sections => sections.collect::<Vec<_>>(), faults }
}

/// A name as one part of an address.
fn encoded(name: &str) -> String {
    let part = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    name.bytes().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_addresses() {
        assert_eq!(encoded("a-b_c.1~"), "a-b_c.1~");
        assert_eq!(encoded("<é \"%"), "%3C%C3%A9%20%22%25");
    }
}
