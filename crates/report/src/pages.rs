//! What each page says: the parts of the templates that are not fixed.
use std::collections::BTreeSet;

use charts::table::{Cell, Row, Table};
use minijinja::{Value, context};
use words::visible;

use crate::gather::{Fact, Gathered, Heads, Reader, Section};
use crate::samples;
use crate::tables::{PartView, TableView, id, sentence};
use crate::view::all_heads::{HeadMap, MapCell};

/// The chapters of a report: a heading, and the artefacts of the registry that belong below it.
const CHAPTERS: [(&str, &[&str]); 9] = [
    ("Single heads", &["table1", "figure1", "heads", "scores"]),
    ("One head of a layer", &["table2", "table5"]),
    ("More and more heads", &["figure3", "figure4", "prune-and-retrain"]),
    ("Agreement of orders", &["agreement"]),
    ("What heads do", &["v19-table1", "v19-figure1c", "v19-figure1a"]),
    (
        "Gates that learn to close",
        &["v19-figure7", "v19-figure8", "v19-figure9", "v19-table2", "gate-contrasts", "gate-film"],
    ),
    ("Other data", &["figure2", "groups"]),
    ("Speed", &["table4"]),
    ("During training", &["figure5"]),
];

/// The name of the chapter that takes what no other does.
const FURTHER: &str = "Further results";

/// The file that describes a subject: its text, and what it says of it.
#[derive(Debug, Default)]
pub struct Described {
    pub text: Option<String>,
    pub description: Option<String>,
    /// Why there is no description.
    pub fault: Option<String>,
}

/// The report of one subject.
pub fn subject(gathered: &Gathered, described: &Described) -> Value {
    let known = |section: &Section| CHAPTERS.iter().any(|(_, names)| names.contains(&section.name));
    let (named, others): (Vec<_>, Vec<_>) = gathered.sections.iter().partition(|section| known(section));
    let chapters = CHAPTERS.iter().map(|(title, names)| {
        chapter(title, named.iter().copied().filter(|section| names.contains(&section.name)))
    });
    let chapters: Vec<_> = chapters.chain([chapter(FURTHER, others.into_iter())]).flatten().collect();
    let absent = gathered.sections.iter().filter(|section| section.parts.is_empty());
    let absent = absent.filter_map(|section| {
        let command = visible(&format!("just {} {}", section.recipe?, gathered.name));
        Some(context! { what => sentence(section.about), command => command })
    });
    context! {
        title => gathered.title.clone(),
        name => gathered.name.clone(),
        claim => gathered.claim.iter().map(|sentence_| sentence(sentence_)).collect::<Vec<_>>(),
        facts => Value::from_serialize(&gathered.facts),
        signature => Value::from_serialize(signature(gathered)),
        command => command(gathered),
        description => described.description.clone(),
        toml => described.text.as_deref().map(visible),
        training => Value::from_serialize(PartView::all("training", &gathered.training)),
        verdicts => gathered.verdicts.as_ref().map(|table| Value::from_serialize(TableView::new("verdicts", table))),
        is_language => gathered.is_language,
        heads => gathered.heads.as_ref().map(|heads| of_heads(heads, described)),
        chapters => chapters,
        limits => limits(gathered),
        faults => gathered.faults.iter().chain(&described.fault).map(|fault| visible(fault)).collect::<Vec<_>>(),
        absent => absent.collect::<Vec<_>>(),
    }
}

fn chapter<'a>(title: &str, sections: impl Iterator<Item = &'a Section>) -> Option<Value> {
    let sections: Vec<_> = sections.filter(|section| !section.parts.is_empty()).map(of_section).collect();
    (!sections.is_empty()).then(|| context! { id => id(title), title => title, sections => sections })
}

fn of_section(section: &Section) -> Value {
    let parts = Value::from_serialize(PartView::all(section.name, &section.parts));
    context! { id => format!("of-{}", id(section.name)), about => heading(section.about), parts => parts }
}

/// The first part of what an artefact shows.
fn heading(about: &str) -> &str {
    about.split(';').next().unwrap_or(about)
}

/// The command that made the numbers, as the signature has it.
fn command(gathered: &Gathered) -> Option<String> {
    let fact = gathered.facts.iter().find(|fact| fact.name == "Command")?;
    Some(format!("cargo run --release --bin {}", fact.value.replacen(' ', " -- ", 1)))
}

/// What a claim needs to be checked.
fn signature(gathered: &Gathered) -> Vec<&Fact> {
    const NAMES: [&str; 4] = ["Data", "Tests", "Command", "Commit"];
    gathered.facts.iter().filter(|fact| NAMES.contains(&fact.name)).collect()
}

fn of_heads(heads: &Heads, described: &Described) -> Value {
    let table = TableView::new("heads", &heads.table);
    let label = |head: &str| format!("{head}: {} {}", table.first_column(), table.first_cell(head));
    let is_small = heads.maps.len() == 1 && heads.table.rows.len() <= 100;
    let map = |map: &HeadMap| {
        let layers = map.layers.iter().map(|layer| {
            let cell = |cell: &Option<MapCell>| {
                cell.as_ref()
                    .map(|cell| context! { label => label(&cell.head), cell => Value::from_serialize(cell) })
            };
            layer.iter().map(cell).collect::<Vec<_>>()
        });
        context! { attention => map.attention, description => map.description, is_small => is_small, layers => layers.collect::<Vec<_>>() }
    };
    let maps: Vec<_> = heads.maps.iter().map(map).collect();
    let texts = texts(heads, described).map(|table| Value::from_serialize(TableView::new("texts", &table)));
    context! { measures => Value::from_serialize(&heads.measures), maps => maps, texts => texts, table => Value::from_serialize(table) }
}

/// The texts of the segments that cards name, of a demo.
fn texts(heads: &Heads, described: &Described) -> Option<Table> {
    let split = heads.split.as_ref()?;
    let texts = samples::texts(described.text.as_ref()?, split, heads.data.as_ref()?)?;
    let named = heads.segments.iter().filter_map(|place| Some((place, texts.get(place.checked_sub(1)?)?)));
    let row = |(place, text): (&usize, &String)| {
        let cell = Cell { text: text.clone(), value: None, marked: false };
        Row { label: place.to_string(), cells: vec![cell] }
    };
    Some(Table {
        name: "Texts",
        label: "texts".to_owned(),
        title: format!("The segments of {split} that change most with a head masked; a made-up language"),
        headings: ["Segment", ""],
        columns: vec!["text".to_owned()],
        rows: named.map(row).collect(),
        ..Table::default()
    })
}

/// What the numbers do not say.
fn limits(gathered: &Gathered) -> Vec<&'static str> {
    let is_demo = gathered.title != gathered.name;
    let nats =
        "Scores are nats a token: the less the better. A change by d multiplies the perplexity with exp(d).";
    let demo = "The data is a made-up language: it shows that the pipeline works, not what real models do.";
    let fixed = [
        "Intervals and p-values are about other segments of the same kind as those of the test set. They say nothing of other \
         data, of another training run with another seed, or of other models.",
        "A head that can go alone need not be one that can go with others: the curves of masked heads say how many can go at once.",
        "The oracle's order is made on the very split that is scored, so that its curve flatters itself.",
        "The interval of a share of heads is that of the score at each step by itself, not of the whole curve.",
        "That a test sees no significant loss does not show that there is none; a small test set sees little.",
    ];
    let of_kind = [(is_demo, demo), (gathered.is_language, nats)];
    of_kind.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).chain(fixed).collect()
}

/// The page that leads to the reports of all subjects.
pub fn index(reader: &Reader, all: &[Gathered], descriptions: &[Described]) -> Value {
    let row = |(gathered, described): (&Gathered, &Described)| {
        let about = described.description.clone().unwrap_or_default();
        let about = Cell { text: about, value: None, marked: false };
        let numbers = reader.key_numbers(gathered).into_iter();
        Row { label: gathered.title.clone(), cells: std::iter::once(about).chain(numbers).collect() }
    };
    let table = Table {
        name: "Subjects",
        label: "subjects".to_owned(),
        title: "What was found on each subject; its name leads to its report".to_owned(),
        headings: ["Subject", ""],
        columns: std::iter::once("what it is").chain(Reader::key_names()).map(str::to_owned).collect(),
        rows: all.iter().zip(descriptions).map(row).collect(),
        summary: vec![
            "adjusted: a single false alarm among the heads of an attention type has the chance of the level at most".to_owned(),
            "the share is masked by importance, with a loss within the margin".to_owned(),
        ],
        ..Table::default()
    };
    let hrefs = all.iter().map(|gathered| format!("{}/report.html", encoded(&gathered.name)));
    let broken: BTreeSet<_> =
        all.iter().filter(|gathered| !gathered.faults.is_empty()).map(|gathered| &gathered.title).collect();
    context! {
        table => Value::from_serialize(TableView::new("index", &table).linked(hrefs)),
        broken => broken.into_iter().collect::<Vec<_>>(),
    }
}

/// The page with all subjects beside each other.
pub fn comparison(sections: &[Section], faults: &[String]) -> Value {
    let sections: Vec<_> = sections.iter().map(of_section).collect();
    context! { sections => sections, faults => faults.iter().map(|fault| visible(fault)).collect::<Vec<_>>() }
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
