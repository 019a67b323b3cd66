//! Pruned models in llama.cpp: what they cost in perplexity, and what they gain in speed, cache and file size.
use charts::chart::{Axis, Chart, Color, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, GREEN, INK, ORANGE, PURPLE, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use findings::Results;
use records::LlamaCppRow;
use words::{fixed, signed, tenths};

use super::speed::{MEBIBYTE, speedup_cells};

pub(crate) const STEM: &str = "llama-cpp";

const LOOKS: [(Color, Shape); 5] = [
    (BLUE, Shape::Circle),
    (GREEN, Shape::Triangle),
    (PURPLE, Shape::Diamond),
    (ORANGE, Shape::Square),
    (VERMILLION, Shape::Wedge),
];

pub(crate) fn sheet(found: &Results<LlamaCppRow>) -> Sheet {
    super::sheet(&found.file, STEM, Some(figure(found)), [table(found)])
}

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
        let gained = |rate: f64, ratio: f64, ends: (f64, f64)| {
            let change = is_pruned.then(|| speedup_cells(ratio, ends));
            [Cell::printed(rate, |rate| fixed(rate, 1))].into_iter().chain(change.unwrap_or_default())
        };
        let cells = [Cell::printed(row.nats.exp(), |perplexity| fixed(perplexity, 1))]
            .into_iter()
            .chain(is_pruned.then(lost).unwrap_or_default())
            .chain(gained(
                row.prompt_per_second,
                row.prompt_ratio,
                (row.prompt_ratio_low, row.prompt_ratio_high),
            ))
            .chain(gained(
                row.generated_per_second,
                row.generated_ratio,
                (row.generated_ratio_low, row.generated_ratio_high),
            ))
            .chain([cache, file]);
        Row::new(name(row), cells)
    };
    let names = ["perplexity", "change (nats)", "95 % interval", "prompt", "change (%)", "95 % interval"];
    let names =
        names.into_iter().chain(["generation", "change (%)", "95 % interval", "cache (MiB)", "file (MiB)"]);
    let first = &found.rows[0];
    Table::new("llama.cpp", found.file.label(STEM), found.file.titled("Pruned models in llama.cpp"))
        .columns(["Removed", "Model"], names)
        .rows(found.rows.iter().map(row))
        .mark("the 95 % interval of the change of speed does not hold 0".to_owned())
        .note(format!(
            "prompt, generation: tokens a second that are read at once, and one by one behind them, on two threads, in f16 with flash \
             attention; changes are geometric means over {} rounds, in each of which all models take turns",
            first.rounds
        ))
        .note(format!(
            "perplexity: of {} tokens in windows spread over the text, and its change in nats a token with its interval over windows; \
             windows are shorter than those of published perplexities",
            first.predictions
        ))
        .note(format!("cache: keys and values of {} tokens", first.cache_tokens))
        .note(found.file.machine().map(|machine| format!("measured on {machine}")))
}

/// `modules: 27 of 270 (10 %)`
fn name(row: &LlamaCppRow) -> String {
    let LlamaCppRow { removal, removed, heads, .. } = row;
    if *removed == 0 {
        return removal.clone();
    }
    format!("{removal}: {removed} of {heads} ({} %)", tenths(100.0 * *removed as f64 / *heads as f64))
}

/// Nats a token over what was measured of speed and of the cache; a line joins the models of one way of choosing heads.
fn figure(found: &Results<LlamaCppRow>) -> Chart {
    let intact = &found.rows[0];
    let ways: Vec<&[LlamaCppRow]> =
        found.rows[1..].chunk_by(|left, right| left.removal == right.removal).collect();
    let panel = |label: &str, x: &dyn Fn(&LlamaCppRow) -> f64| {
        let place = |row: &LlamaCppRow| (x(row), row.nats);
        let (low, high) = extent(found.rows.iter().map(x));
        let (best, worst) = extent(found.rows.iter().map(|row| row.nats));
        let ways = ways.iter().zip(LOOKS.iter().cycle()).flat_map(|(rows, &(color, shape))| {
            let places: Vec<_> = std::iter::once(intact).chain(*rows).map(place).collect();
            let marks = places[1..].to_vec();
            [Layer::Line(places, Style::line(color, 0.8)), Layer::Points(marks, Mark::new(shape, 1.5, color))]
        });
        let own = Layer::Points(vec![place(intact)], Mark::new(Shape::Star, 2.0, INK));
        Panel::new(
            [Axis::around(label, low, high), Axis::around("nats per token", best, worst)],
            150.0,
            ways.chain([own]).collect(),
        )
    };
    let panels = [
        panel("prompt (tokens a second)", &|row| row.prompt_per_second),
        panel("generation (tokens a second)", &|row| row.generated_per_second),
        panel("key-value cache (MiB)", &|row| row.cache_bytes as f64 / MEBIBYTE),
    ];
    let entries = ways.iter().zip(LOOKS.iter().cycle()).map(|(rows, &(color, shape))| {
        let line = Entry::line(&rows[0].removal, Style::line(color, 0.8));
        Entry { mark: Some(Mark::new(shape, 1.5, color)), ..line }
    });
    let mut removed: Vec<usize> = found.rows[1..].iter().map(|row| row.removed).collect();
    removed.sort_unstable();
    removed.dedup();
    let shares: Vec<_> =
        removed.into_iter().map(|count| tenths(100.0 * count as f64 / intact.heads as f64)).collect();
    let title = found.file.titled("Nats a token over speed and cache in llama.cpp");
    Chart::new("llama.cpp", found.file.label(STEM), title)
        .wide()
        .note(format!(
            "marks: models without {} % of the heads, as far as they were measured",
            shares.join(", ")
        ))
        .entries(entries)
        .entries([Entry::mark("all heads", Mark::new(Shape::Star, 2.0, INK))])
        .panels(3, (0..).zip(panels).map(|(at, panel)| panel.in_row(at)).collect())
}
