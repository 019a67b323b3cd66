//! Pruned models in llama.cpp: cost in perplexity, and gains in speed, cache and file size.
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::results::percent;
use crate::findings::{Results, experiment};
use charts::chart::{Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style, Ticks};
use charts::palette::{BLUE, GREEN, INK, ORANGE, PURPLE, SILVER, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use records::LlamaCppRow;
use words::{fixed, signed, tenths};

use super::speed::{MEBIBYTE, speedup_cells};
use crate::view::sheet;

const STEM: &str = "llama-cpp";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "llama-cpp", chapter::SPEED],
    "Pruned models in llama.cpp: perplexity over speed and key-value cache",
    Reads::Each(experiment::LLAMA_CPP),
    |file, _, _| {
        let found = Results::read(file)?;
        Ok(vec![sheet(&found.file, STEM, figure(&found), [table(&found)])])
    },
);

const LOOKS: [(Color, Shape); 5] = [
    (BLUE, Shape::Circle),
    (GREEN, Shape::Triangle),
    (PURPLE, Shape::Diamond),
    (ORANGE, Shape::Square),
    (VERMILLION, Shape::Wedge),
];

fn table(found: &Results<LlamaCppRow>) -> Table {
    let row = |row: &LlamaCppRow| {
        let is_pruned = row.removed > 0;
        let [cache, file] = [row.cache_bytes, row.file_bytes].map(|bytes| {
            let size = bytes as f64 / MEBIBYTE;
            Cell::printed(size, |size| fixed(size, 1))
        });
        let lost = || {
            let interval = Cell::interval((row.delta_low, row.delta_high), |end| signed(end, 3));
            [Cell::printed(row.nats_delta, |delta| signed(delta, 3)), interval]
        };
        let gained = |[rate, ratio, low, high]: [f64; 4]| {
            let change = is_pruned.then(|| speedup_cells(ratio, (low, high)));
            [Cell::printed(rate, |rate| fixed(rate, 1))].into_iter().chain(change.unwrap_or_default())
        };
        let cells = [Cell::printed(row.nats.exp(), |perplexity| fixed(perplexity, 1))]
            .into_iter()
            .chain(is_pruned.then(lost).unwrap_or_default())
            .chain(speeds(row).into_iter().flat_map(gained))
            .chain([cache, file]);
        Row::new(name(row), cells)
    };
    let names = ["perplexity", "change (nats)", "95% interval", "prompt", "change (%)", "95% interval"];
    let names =
        names.into_iter().chain(["generation", "change (%)", "95% interval", "cache (MiB)", "file (MiB)"]);
    let first = &found.rows[0];
    Table::new("llama.cpp", found.file.label(STEM), found.file.titled("Pruned models in llama.cpp"))
        .columns(["Removed", "Model"], names)
        .rows(found.rows.iter().map(row))
        .mark("the 95% interval of the change in speed does not contain 0".to_owned())
        .note(format!(
            "prompt: tokens per second, read in one pass; generation: tokens per second, one at a time after the prompt; on two threads, in f16 with flash \
             attention; changes are geometric means over {} rounds, in each of which all models take turns",
            first.rounds
        ))
        .note(format!(
            "perplexity: on {} tokens in windows spread over the text; change: in nats per token, with an interval over windows; \
             published perplexities use longer windows; intervals are percentile bootstraps, which are too narrow for few windows or rounds: \
             with 8 normally distributed values they cover 89% instead of 95%",
            first.predictions
        ))
        .note(format!("cache: keys and values of {} tokens", first.cache_tokens))
        .note(found.file.machine().map(|machine| format!("measured on {machine}")))
}

/// Returns tokens per second of prompt and generation, each with its ratio to the full model and the interval of the ratio.
fn speeds(row: &LlamaCppRow) -> [[f64; 4]; 2] {
    [
        [row.prompt_per_second, row.prompt_ratio, row.prompt_ratio_low, row.prompt_ratio_high],
        [row.generated_per_second, row.generated_ratio, row.generated_ratio_low, row.generated_ratio_high],
    ]
}

fn name(row: &LlamaCppRow) -> String {
    let LlamaCppRow { removal, removed, heads, .. } = row;
    if *removed == 0 {
        return removal.clone();
    }
    format!("{removal}: {removed} of {heads} ({}%)", tenths(percent(row.removed, row.heads)))
}

/// Plots perplexity, on a log axis, over speed and cache size, with intervals; a line joins models pruned by one method.
fn figure(found: &Results<LlamaCppRow>) -> Chart {
    let full = &found.rows[0];
    let ways: Vec<&[LlamaCppRow]> =
        found.rows[1..].chunk_by(|left, right| left.removal == right.removal).collect();
    let looks = || ways.iter().zip(LOOKS.iter().cycle());
    let nats = |row: &LlamaCppRow| [row.nats, full.nats + row.delta_low, full.nats + row.delta_high];
    let y = perplexities(extent(found.rows.iter().flat_map(nats)));
    let panel = |label: &str, x: &dyn Fn(&LlamaCppRow) -> [f64; 3]| {
        let place = |row: &LlamaCppRow| (x(row)[0], row.nats);
        let (low, high) = extent(found.rows.iter().flat_map(x));
        let mut layers = Vec::new();
        for (rows, &(color, shape)) in looks() {
            let thin = Style::line(color, 0.4);
            for row in *rows {
                let ([at, left, right], [height, lower, upper]) = (x(row), nats(row));
                layers.push(Layer::Line(vec![(left, height), (right, height)], thin));
                layers.push(Layer::Line(vec![(at, lower), (at, upper)], thin));
                layers.push(Layer::Points(vec![(at, height)], Mark::new(shape, radius(row), color)));
            }
            // a line through the full model and a single other one would suggest that all models in between were measured
            let places = std::iter::once(full).chain(*rows).map(place).collect();
            layers.extend((rows.len() > 1).then(|| Layer::Line(places, Style::line(color, 0.8))));
        }
        layers.push(Layer::Points(vec![place(full)], FULL));
        Panel::new([Axis::around(label, low, high), y.clone()], 165.0, layers)
    };
    let speed = |which: usize| {
        move |row: &LlamaCppRow| {
            let [rate, ratio, low, high] = speeds(row)[which];
            [rate, rate * low / ratio, rate * high / ratio]
        }
    };
    let panels = [
        panel("prompt (tokens per second)", &speed(0)),
        panel("generation (tokens per second)", &speed(1)),
        panel("key-value cache (MiB)", &|row| [row.cache_bytes as f64 / MEBIBYTE; 3]),
    ];
    let entries = looks().map(|(rows, &(color, shape))| {
        let line = (rows.len() > 1).then_some(Style::line(color, 0.8));
        Entry { line, ..Entry::mark(&rows[0].removal, Mark::new(shape, 1.5, color)) }
    });
    let mut removed: Vec<&LlamaCppRow> = found.rows[1..].iter().collect();
    removed.sort_unstable_by_key(|row| row.removed);
    removed.dedup_by_key(|row| row.removed);
    let sizes = removed.iter().map(|row| {
        Entry::mark(
            format!("{}% removed", tenths(percent(row.removed, row.heads))),
            Mark::new(Shape::Circle, radius(row), SILVER),
        )
    });
    let title = found.file.titled("Perplexity over speed and cache in llama.cpp");
    Chart::new("llama.cpp", found.file.label(STEM), title)
        .wide()
        .note("larger marks: more heads removed")
        .note(
            "thin lines: 95% intervals, of perplexity compared with the full model over windows, of speed over rounds; the cache is exact",
        )
        .entries(entries)
        .entries([Entry::mark("full model", FULL)])
        .entries(sizes)
        .panels(3, (0..).zip(panels).map(|(at, panel)| panel.in_row(at)).collect())
}

const FULL: Mark = Mark::new(Shape::Star, 2.0, INK);

fn radius(row: &LlamaCppRow) -> f64 {
    0.8 + percent(row.removed, row.heads) / 35.0
}

/// Returns an axis of perplexities for a range of nats per token.
fn perplexities((low, high): (f64, f64)) -> Axis {
    let round = (0..9).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(exponent)));
    let ticks = round.filter(|perplexity| (low..=high).contains(&perplexity.ln()));
    let ticks = ticks.map(|perplexity| (perplexity.ln(), vec![fixed(perplexity, 0)])).collect();
    Axis { ticks: Ticks::Names(ticks), ..Axis::around("perplexity (log scale)", low, high) }
}
