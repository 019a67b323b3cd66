//! Table 1 and Figures 1c and 2b of Voita et al. (2019): functions of heads, and how many heads in each layer have them.
use std::collections::BTreeMap;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::results::distinct;
use crate::findings::{
    Ablations, Criterion, Functions, Importance, LeftOut, PAPER, Relevance, ResultFile, experiment,
};
use charts::chart::Chart;
use charts::table::{Cell, Row, Table};
use records::rows::functions::{FunctionName, POSITIONAL_PERCENT, SYNTACTIC_POINTS, leaders};
use records::{AblationRow, Attention, HeadFunctionRow, HeadId, Measure, StandsFor, TestedRow as _};
use words::{tenths, typeset, with_minus};

use super::heat_map::counts;
use crate::view::{SIGNS, by_name, figure, judged, ranked, sheet};

const BEST: &str = "v19-table1";
const LAYERS: &str = "v19-figure1c";

pub(super) const TABLE: Artefact = Artefact::new(
    [BEST, "functions", chapter::FUNCTIONS],
    "The best head for each function, compared with its position alone and shuffled targets (Voita et al. 2019)",
    Reads::Each(experiment::FUNCTIONS),
    |file, request, left_out| {
        let found = Functions::read(file)?;
        let others = Others::beside(&found.file, left_out);
        let tables = [Some(table1(&found)), same_heads(&found, &others, request.criterion)];
        Ok(vec![sheet(&found.file, BEST, None, tables.into_iter().flatten())])
    },
);

pub(super) const CENSUS: Artefact = Artefact::new(
    [LAYERS, "functions", chapter::FUNCTIONS],
    "Functions of the heads of each layer (Voita et al. 2019)",
    Reads::Each(experiment::FUNCTIONS),
    |file, _, _| figure(file, LAYERS, figure1c),
)
.also("v19-figure2b");

/// Other measurements of the heads, if they exist.
struct Others {
    sweep: Option<Ablations>,
    importance: Option<Importance>,
    relevance: Option<Relevance>,
}

impl Others {
    /// Reads other result files of the same weights from the folder.
    fn beside(file: &ResultFile, left_out: &mut LeftOut) -> Self {
        let sweep = Ablations::beside_model(file, experiment::SWEEP);
        let importance = Importance::beside_model(file, experiment::IMPORTANCE);
        let relevance = Relevance::beside_model(file, experiment::RELEVANCE);
        Self {
            sweep: left_out.keep(sweep).flatten(),
            importance: left_out.keep(importance).flatten(),
            relevance: left_out.keep(relevance).flatten(),
        }
    }
}

/// Describes the threshold of each function.
fn thresholds() -> String {
    format!(
        "reaches the paper's threshold: {POSITIONAL_PERCENT}% for a position, {SYNTACTIC_POINTS} points above the most frequent \
         position for a relation; for the two rarest tokens more than half of the sentences, and more than with shuffled targets"
    )
}

/// Tabulates the best head for each function, its position alone, shuffled targets and, for a translator's encoder, published shares.
fn table1(functions: &Functions) -> Table {
    let leaders = leaders(&functions.rows);
    let is_translator = functions.file.kind.stands_for.is_some_and(StandsFor::translates);
    let published = |row: &HeadFunctionRow| {
        let is_comparable = is_translator && row.attention == Attention::EncEnc;
        PAPER.dependency(&row.detail).filter(|_| is_comparable)
    };
    let has_published = leaders.iter().any(|row| published(row).is_some());
    let share = |share: f64| Cell::printed(100.0 * share, tenths);
    let row = |row: &&HeadFunctionRow| {
        let ends = row.share_low.zip(row.share_high).map(|(low, high)| (100.0 * low, 100.0 * high));
        let position = row.baseline_position.zip(row.baseline).map(|(at, share)| {
            let percent = 100.0 * share;
            Cell::number(format!("{} ({at:+})", tenths(percent)), percent)
        });
        let published = published(row);
        let beside = |best: f64, position: f64| Cell::number(format!("{best}; {position}"), best);
        let mut cells = vec![
            ("best head", row.head_id().to_string().into()),
            ("share (%)", share(row.share).marked(row.holds == Some(true))),
            ("95% interval", ends.map(|ends| Cell::interval(ends, tenths)).into()),
            ("best in (% of resamples)", row.best.map(share).into()),
            ("position alone (%)", position.into()),
            ("shuffled (%)", row.shuffled.map(share).into()),
            ("V19: WMT (%)", published.map(|own| beside(own.wmt, own.wmt_position)).into()),
            (
                "V19: OpenSubtitles (%)",
                published.map(|own| beside(own.subtitles, own.subtitles_position)).into(),
            ),
        ];
        cells.truncate(if has_published { 8 } else { 6 });
        (format!("{} {}", row.function, row.detail).trim_end().into(), cells)
    };
    let title = "The best head for each function (Voita et al. 2019)";
    let table = Table::new("Table 1", functions.file.label(BEST), functions.file.titled(title));
    by_name(table, ["Function", "of all heads"], leaders.iter().map(row))
        .mark(thresholds())
        .note("position alone: how often the partner is at its most frequent relative position")
        .note(relative_margin(functions))
        .note(has_published.then_some(
            "V19: share of the best of 48 encoder heads; share of position alone. Its translators read English, parsed by CoreNLP",
        ))
}

/// Applies the other reading of V19's threshold for relations: "10%" of the positional share instead of 10 points.
fn relative_margin(functions: &Functions) -> Option<String> {
    let heads = |holds: fn(&HeadFunctionRow) -> Option<bool>| {
        let rows = functions
            .rows
            .iter()
            .filter(|row| row.function == FunctionName::Syntactic && holds(row) == Some(true));
        distinct(rows.map(HeadFunctionRow::head_id)).len()
    };
    functions.rows.iter().find(|row| row.function == FunctionName::Syntactic)?;
    let (points, relative) = (heads(|row| row.holds), heads(|row| row.holds_relative));
    Some(format!(
        "heads that reach the threshold for a relation: {points}, or {relative} if it is {SYNTACTIC_POINTS}% of the positional \
         share instead of points"
    ))
}

/// Tabulates everything else measured for the heads of Table 1; `None` if there is nothing else.
fn same_heads(functions: &Functions, others: &Others, criterion: Criterion) -> Option<Table> {
    let Others { sweep, importance, relevance } = others;
    let mut columns: Vec<(String, BTreeMap<HeadId, Cell>)> = Vec::new();
    let confidence = functions.rows.iter().filter(|row| row.function == FunctionName::Confidence);
    let confidence =
        confidence.map(|row| (row.head_id(), Cell::printed(row.share, |share| typeset(share, 2))));
    columns.push(("confidence".to_owned(), confidence.collect()));
    columns.extend(sweep.as_ref().map(|sweep| {
        let (metric, judge) = (sweep.metric(), sweep.judge(criterion));
        let change = |row: &AblationRow| {
            let text = with_minus(&(metric.change(row.score_delta) + &metric.brackets(row.delta_interval())));
            judged(Cell::number(text, row.score_delta), judge.verdict(row))
        };
        let cells = sweep.rows.iter().map(|row| (row.head_id(), change(row)));
        (format!("change in {} if masked", metric.label()), cells.collect())
    }));
    columns.extend(importance.as_ref().map(|found| {
        let numbers = found.of(Measure::ExampleNormalised);
        ("importance (rank)".to_owned(), ranked(numbers))
    }));
    columns.extend(relevance.as_ref().map(|found| {
        let numbers = found.rows.iter().map(|row| (row.head_id(), row.relevance));
        ("relevance (rank)".to_owned(), ranked(numbers))
    }));
    if columns.len() == 1 {
        return None;
    }
    let mut best: BTreeMap<HeadId, Vec<String>> = BTreeMap::new();
    for row in leaders(&functions.rows) {
        best.entry(row.head_id()).or_default().push(format!("{} {}", row.function, row.detail));
    }
    let row = |(head, best): (HeadId, Vec<String>)| {
        let cells = columns.iter().map(|(_, cells)| Cell::from(cells.get(&head).cloned()));
        Row::new(head.to_string(), [Cell::from(best.join("; "))].into_iter().chain(cells))
    };
    let data = [
        sweep.as_ref().and_then(|sweep| Some(format!("masked on {}", sweep.file.scored()?))),
        importance.as_ref().and_then(|found| Some(format!("importance on {}", found.file.estimated_on()?))),
        relevance.as_ref().and_then(|found| Some(format!("relevance on {}", found.file.scored()?))),
    ];
    let data: Vec<String> = data.into_iter().flatten().collect();
    let names = std::iter::once("best at").chain(columns.iter().map(|(name, _)| name.as_str()));
    let title = "Other measurements of the best heads";
    let table =
        Table::new("Table 1: heads", functions.file.label("v19-table1-heads"), functions.file.titled(title))
            .columns(["Head", "Measured"], names)
            .rows(best.into_iter().map(row))
            .note("ranks are among all measured heads, 1 for the highest")
            .note((!data.is_empty()).then(|| data.join(", ")));
    let verdicts = sweep.as_ref().map(|sweep| format!("{} ({SIGNS})", sweep.judge(criterion).of_verdicts()));
    Some(table.note(verdicts))
}

/// Counts heads per function and layer, with a panel per attention type: Figures 1c and 2b.
fn figure1c(functions: &Functions) -> Chart {
    let (all, kinds) = (functions.heads(), functions.kinds());
    let attentions = distinct(all.iter().map(|head| head.attention()));
    let panel = |&attention: &Attention| {
        let of_type = || all.iter().filter(|head| head.attention() == attention);
        let layers = distinct(of_type().map(|head| head.layer_number()));
        let count = |row: usize, column: usize| {
            let in_layer = || of_type().filter(|head| head.layer_number() == layers[column]);
            (in_layer().filter(|head| kinds[row].1.contains(head)).count(), in_layer().count())
        };
        let names = kinds.iter().map(|(name, _)| name);
        counts(("layer", &layers), ("", names), count)
    };
    let title = "Functions of the heads of each layer (Voita et al. 2019)";
    Chart::new("Figures 1c and 2b", functions.file.label(LAYERS), functions.file.titled(title))
        .note("numbers: heads in a layer; darker cells are a larger share of the layer")
        .note(format!("a head counts if it {}; it may have several functions", thresholds()))
        .beside(&attentions, Attention::in_words, panel)
}
