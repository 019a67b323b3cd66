//! Named head scores of language models next to the cost of masking each head.
use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablation_kinds::Kind;
use crate::findings::replicates::HeadAcrossRuns;
use crate::findings::{Ablations, Judge, Kinds, LeftOut, Result, ResultFile, Results, experiment};
use charts::chart::{At, Chart, Entry, Layer, Mark, Panel, Shape, Style};
use charts::palette::{BLUE, INK, SILVER, VERMILLION};
use charts::scale::extent;
use charts::table::{Cell, Row, Table};
use records::rows::functions::FunctionName;
use records::{Attention, HeadFunctionRow};
use words::fixed;

use super::ablation_kinds::{KINDS, draws};
use crate::view::{MARGIN, SIGNS, changes, judged, limits, sheet};

const STEM: &str = "named-heads";

pub(super) const ARTEFACT: Artefact = Artefact::new(
    [STEM, "named-heads", chapter::FUNCTIONS],
    "What heads of language models attend to: induction, duplicate token, previous token, sink; and what masking them costs",
    Reads::Each(experiment::NAMED),
    |file, request, left_out| {
        let found = NamedHeads::read(file, left_out)?;
        let judge = found.kinds.first().map(|zero| zero.draws[0].judge(request.criterion));
        let chart = judge.map(|judge| figure(&found, judge));
        Ok(vec![sheet(&found.scores.file, STEM, chart, [table(&found, judge)])])
    },
);

/// Rows of `named-heads`, and sweeps of the model.
struct NamedHeads {
    scores: Results<HeadFunctionRow>,
    /// Effects of masking each head under each kind of ablation; empty without a sweep.
    kinds: Vec<Kind>,
}

impl NamedHeads {
    /// Reads the scores and the sweeps in the folder; leaves out sweeps that are unreadable or of different weights.
    fn read(file: ResultFile, left_out: &mut LeftOut) -> Result<Self> {
        let scores: Results<HeadFunctionRow> = Results::read(file)?;
        let zero = Ablations::beside_model(&scores.file, experiment::SWEEP);
        let kinds = left_out.keep(zero).flatten().map_or_else(Vec::new, |zero| {
            let found = left_out.keep(Kinds::read(zero.file.clone())).flatten();
            // kinds of another run belong to another model
            let own = found.filter(|found| found.zero().file.path == zero.file.path);
            own.map_or_else(|| vec![Kind { name: "zero", draws: vec![zero] }], |own| own.all)
        });
        Ok(Self { scores, kinds })
    }

    /// Returns the rows of a score, highest first.
    fn of(&self, score: FunctionName) -> Vec<&HeadFunctionRow> {
        let mut rows: Vec<_> = self.scores.rows.iter().filter(|row| row.function == score).collect();
        rows.sort_by(|one, other| other.share.total_cmp(&one.share));
        rows
    }
}

/// Number of heads in the table for each score.
const MOST: usize = 5;

const SCORES: &str = "a score is a mean attention weight; induction: on the token after the earlier occurrence of the same token, \
     duplicate-token: on that occurrence, both in the second of two equal blocks of random tokens; previous-token: on the position \
     before, sink: on the first position, both in texts";

/// Returns the effect of masking the head of a row under each kind; `None` if it was not measured.
fn costs(found: &NamedHeads, judge: Judge) -> impl Fn(&HeadFunctionRow) -> Vec<Option<HeadAcrossRuns>> {
    let kinds = found.kinds.iter().map(|kind| kind.heads(Attention::SelfAttention, judge));
    let kinds: Vec<Vec<HeadAcrossRuns>> = kinds.collect();
    move |row| kinds.iter().map(|all| all.iter().find(|one| one.head == row.head_id()).cloned()).collect()
}

/// Tabulates the heads with the highest scores.
fn table(found: &NamedHeads, judge: Option<Judge>) -> Table {
    let file = &found.scores.file;
    let costs = judge.map(|judge| costs(found, judge));
    let metric = found.kinds.first().map(|zero| zero.draws[0].metric());
    let share = |share: f64| Cell::printed(share, |share| fixed(share, 2));
    let row = |row: &HeadFunctionRow| {
        let ends = row.share_low.zip(row.share_high);
        let scores = [
            share(row.share),
            ends.map(|ends| Cell::interval(ends, |end| fixed(end, 2))).into(),
            row.baseline.map(share).into(),
        ];
        let cost = |cost: Option<HeadAcrossRuns>| {
            let cell = cost.zip(metric).map(|(cost, metric)| {
                judged(Cell::printed(cost.mean(), |change| metric.change(change)), cost.agreed())
            });
            Cell::from(cell)
        };
        let costs = costs.as_ref().map(|costs| costs(row)).unwrap_or_default().into_iter().map(cost);
        Row::new(format!("{}: {}", row.function, row.head_id()), scores.into_iter().chain(costs))
    };
    let rows = FunctionName::NAMED.iter().flat_map(|&score| found.of(score).into_iter().take(MOST).map(row));
    let kinds = found.kinds.iter().map(|kind| format!("change: {}", kind.name));
    let columns = ["score", "95% interval", "spread evenly"].map(str::to_owned);
    let what = "The heads with the highest scores";
    let what = metric.map_or(what.to_owned(), |metric| {
        format!("{what}, and the change in {} by masking each", metric.label())
    });
    Table::new("Named heads", file.label(STEM), file.titled(what))
        .columns(["Score: head", "Weight"], columns.into_iter().chain(kinds))
        .rows(rows)
        .note(SCORES)
        .note("spread evenly: the score of a head that spreads its attention evenly over all visible positions")
        .note("heads are chosen on the sequences that their intervals are computed from, so these are too narrow")
        .note(judge.map(|_| SIGNS))
        .note((found.kinds.len() > 1).then_some(KINDS))
        .note(draws(&found.kinds))
        .note(judge.map(Judge::of_verdicts))
}

fn mark(name: &str) -> Mark {
    match name {
        "zero" => Mark::new(Shape::Circle, 2.0, INK).faint(0.5),
        "mean" => Mark::new(Shape::Triangle, 2.0, BLUE).hollow(),
        _ => Mark::new(Shape::Square, 1.7, VERMILLION).hollow(),
    }
}

const JOINED: Style = Style::line(SILVER, 0.6);

/// Draws a panel per score, with the effects under each kind of masking the heads with the highest scores.
fn figure(found: &NamedHeads, judge: Judge) -> Chart {
    let file = &found.scores.file;
    let zero = &found.kinds[0].draws[0];
    let metric = zero.metric();
    let costs = costs(found, judge);
    let all = found.kinds.iter().flat_map(|kind| kind.changes(Attention::SelfAttention));
    let x = changes(metric, extent(all.chain([0.0])));
    let panel = |&score: &FunctionName| {
        let rows: Vec<_> = found.of(score).into_iter().take(MOST).collect();
        let mut layers = limits(zero, judge, At::X).to_vec();
        for (height, row) in (0..).map(|height| f64::from(height) + 0.5).zip(&rows) {
            let own =
                found.kinds.iter().zip(costs(row)).filter_map(|(kind, cost)| Some((kind, cost?.mean())));
            let own: Vec<_> = own.collect();
            let (left, right) = extent(own.iter().map(|(_, change)| *change));
            layers.push(Layer::Line(vec![(left, height), (right, height)], JOINED));
            let points =
                own.into_iter().map(|(kind, change)| Layer::Points(vec![(change, height)], mark(kind.name)));
            layers.extend(points);
        }
        let names = rows.iter().map(|row| format!("{}: {}", row.head_id().in_words(), fixed(row.share, 2)));
        let even = rows
            .first()
            .and_then(|row| row.baseline)
            .map(|even| format!(" (spread evenly: {})", fixed(even, 2)));
        Panel::rows(x.clone(), names.collect(), layers).named(format!("{score}{}", even.unwrap_or_default()))
    };
    let kinds = found
        .kinds
        .iter()
        .map(|kind| Entry { line: Some(JOINED), ..Entry::mark(kind.name, mark(kind.name)) });
    let what = format!("The {MOST} heads with the highest scores, and the effect of masking each");
    Chart::new("Named heads", file.label(STEM), file.titled(what))
        .note("after the name of a head: its score")
        .note(SCORES)
        .note((found.kinds.len() > 1).then_some(KINDS))
        .note(draws(&found.kinds))
        .entries(kinds)
        .entries([Entry::line("margin", MARGIN)])
        .panels(2, FunctionName::NAMED.iter().map(panel).collect())
}
