//! Heat maps of heads, layer x head, for what masking each does and for every score (no such figure is in the paper).
use std::collections::BTreeMap;

use records::{Attention, Head};

use super::Context;
use super::agreement::{HeadScore, Importance};
use crate::chart::{Axis, COLUMN, Cell, Chart, ColorBar, Entry, Layer, Mark, Panel, Shape, TEXT};
use crate::data::sweep::Sweep;
use crate::palette::INK;
use crate::source::ResultFile;
use crate::words::{decimals, typeset};

/// Name of the files of what masking does.
pub const EFFECTS: &str = "heads";
/// Name of the files of the scores.
pub const SCORES: &str = "heads-by-score";

/// Height of a layer, in points.
const ROW: f64 = 9.0;

/// Numbers of heads, and which of these stand out.
type Values = BTreeMap<Head, (f64, bool)>;

/// What masking each head does to the score: red where it gets worse, whichever way the metric points; dots are significant.
pub fn effects(sweep: &Sweep, context: Context<'_>) -> Chart {
    let direction = sweep.metric.direction();
    let value = |row: &records::AblationRow| (-direction.gain(row.score_delta), context.criterion.holds(row));
    let values: Values = sweep.rows.iter().map(|row| (row.head_id(), value(row))).collect();
    let end = most(&values);
    let attentions = sweep.attentions();
    let name = |attention: Attention| {
        if attentions.len() > 1 { attention.to_string() } else { String::new() }
    };
    let panels = attentions.iter().map(|&attention| {
        let is_first = attentions.first() == Some(&attention);
        panel(&sweep.file, (attention, name(attention)), (&values, end), is_first)
    });
    let worse = direction.gain(-1.0);
    let number = |share: f64| sweep.metric.change(share * end * worse).replace('-', "\u{2212}");
    let unit = sweep.metric.axis_label();
    let dot = Entry::text("significant").mark(Mark::new(Shape::Circle, 1.2, INK));
    Chart {
        name: "Heads",
        label: format!("{EFFECTS}-{}", sweep.file.subject),
        title: format!("What masking one head does to the {}; {}", sweep.metric.label(), sweep.title()),
        notes: vec![
            sweep.base_line(),
            "red: the score gets worse without the head, so that it was useful; blue: it gets better".to_owned(),
            format!("dot: {}", sweep.judge(context.criterion).description("heads")),
            "crossed out: not measured".to_owned(),
        ]
        .into_iter()
        .chain(sweep.file.remark())
        .collect(),
        width: if attentions.len() > 1 { TEXT } else { COLUMN },
        columns: attentions.len(),
        legend: vec![dot],
        panels: panels.collect(),
        color_bar: Some(ColorBar {
            label: format!("change of the {unit} with the head masked"),
            ends: [-1.0, 0.0, 1.0].map(number),
        }),
    }
}

/// One row of panels for each score that all heads have; the colours of each end at its greatest value.
pub fn scores(importance: &Importance) -> Chart {
    let rows = &importance.rows;
    let has_rows = |attention: &Attention| rows.iter().any(|row| row.attention == *attention);
    let attentions: Vec<_> = Attention::ALL.into_iter().filter(has_rows).collect();
    let mut panels = Vec::new();
    for (score, found) in importance.known() {
        let heads = rows.iter().map(|row| Head { attention: row.attention, layer: row.layer, head: row.head });
        let values: Values = heads.zip(found).map(|(head, value)| (head, (value, false))).collect();
        let end = most(&values);
        for &attention in &attentions {
            let is_first = attentions.first() == Some(&attention);
            let range = format!(", to \u{b1}{}", typeset(end, decimals(end).min(3)));
            let name = if is_first { format!("{}{range}", score.label()) } else { String::new() };
            panels.push(panel(&importance.file, (attention, name), (&values, end), is_first));
        }
    }
    let is_single = attentions.len() == 1;
    let types = attentions.iter().map(Attention::to_string).collect::<Vec<_>>().join(", ");
    Chart {
        name: "Heads by score",
        label: format!("{SCORES}-{}", importance.file.subject),
        title: format!("What heads can be ordered by; {}", importance.title()),
        notes: [format!("columns of panels: {types}")]
            .into_iter()
            .filter(|_| !is_single)
            .chain(["red is above 0, blue below; the name of a row says where its colours end".to_owned()])
            .chain(importance.notes())
            .chain(importance.unknown())
            .collect(),
        width: TEXT,
        columns: if is_single { 2 } else { attentions.len() },
        legend: Vec::new(),
        panels,
        color_bar: Some(ColorBar {
            label: "score of a head, as a share of the greatest in its row".to_owned(),
            ends: ["\u{2212}1", "0", "1"].map(str::to_owned),
        }),
    }
}

/// The greatest distance from 0; 1 if all are 0.
fn most(values: &Values) -> f64 {
    let most = values.values().fold(0.0_f64, |most, (value, _)| most.max(value.abs()));
    if most > 0.0 { most } else { 1.0 }
}

/// One attention type; heads that share keys and values stand below a bracket.
fn panel(
    file: &ResultFile,
    (attention, name): (Attention, String),
    (values, end): (&Values, f64),
    is_first: bool,
) -> Panel {
    let of_type: Vec<_> = values.iter().filter(|(head, _)| head.attention == attention).collect();
    let layers = of_type.iter().map(|(head, _)| head.layer).max().unwrap_or(0);
    let heads = of_type.iter().map(|(head, _)| head.head).max().unwrap_or(0);
    let cell = |layer: usize, head: usize| {
        let found = values.get(&Head { attention, layer, head });
        Cell {
            place: (head - 1, layer - 1),
            value: found.map(|(value, _)| value / end),
            text: String::new(),
            is_marked: found.is_some_and(|(_, is_marked)| *is_marked),
        }
    };
    let cells = (1..=layers).flat_map(|layer| (1..=heads).map(move |head| (layer, head)));
    let mut content = vec![Layer::Cells(cells.map(|(layer, head)| cell(layer, head)).collect())];
    if let Some(key_values) = file.key_value_heads(heads) {
        let size = (heads / key_values) as f64;
        let bracket = |number: usize| {
            let left = size * number as f64;
            (left, left + size, format!("kv {}", number + 1))
        };
        content.push(Layer::Brackets((0..key_values).map(bracket).collect()));
    }
    let numbers = |most: usize| (1..=most).map(|number| vec![number.to_string()]).collect();
    let y = Axis::named("layer", numbers(layers)).downwards();
    Panel {
        name,
        x: Axis::named("head", numbers(heads)),
        y: if is_first { y } else { y.silent() },
        height: ROW * layers as f64,
        share: 1.0,
        layers: content,
    }
}
