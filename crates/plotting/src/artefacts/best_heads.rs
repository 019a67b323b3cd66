//! Tables 2, 3, 5 and 6: the best head of each layer (Michel et al. 2019, Section 3.3 and Appendix A).
use std::collections::BTreeMap;

use crate::artefact::{Artefact, Reads, chapter};
use crate::findings::ablations::Model;
use crate::findings::best_heads::Layers;
use crate::findings::judge::CAUTION;
use crate::findings::origin::OPEN_QUESTION;
use crate::findings::paper::Masked;
use crate::findings::{BestHeads, Criterion, Judge, LeftOut, Result, ResultFile, experiment};
use charts::table::{Cell, Row, Table};
use charts::write::Sheet;
use records::{AblationRow, Attention};
use words::{count, signed};

use crate::view::{Request, SIGNS, judged, sheet};

pub(super) const SAME_SPLIT: Artefact = Artefact::new(
    ["table2", "layers", chapter::BEST_HEADS],
    "Best single head of each layer, chosen and reported on one split",
    Reads::Files(|source, request| {
        let one = || Ok(vec![source.one(experiment::BEST_HEADS)?]);
        if request.is_all { BestHeads::files(source, false) } else { one() }
    }),
    draw,
)
.also("table3")
.detail("for BERT, Table 3");

pub(super) const OTHER_SPLIT: Artefact = Artefact::new(
    ["table5", "reproduce-table5", chapter::BEST_HEADS],
    "Best single head of each layer, chosen on a split other than the reported one",
    Reads::Files(|source, request| {
        if request.is_all { BestHeads::files(source, true) } else { BestHeads::largest_files(source) }
    }),
    draw,
)
.also("table6")
.detail("for BERT, Table 6");

fn draw(file: ResultFile, request: &Request<'_>, _: &mut LeftOut) -> Result<Vec<Sheet>> {
    let best = BestHeads::read(file)?;
    let [stem, ..] = published(&best);
    Ok(vec![sheet(&best.sweep.file, stem, None, [table(&best, request.criterion)])])
}

/// Returns the published table for the type of model and choice of heads: file name, table name, and model, test set and unit.
pub fn published(best: &BestHeads) -> [&'static str; 3] {
    const OWN: &str = "Best head of each layer";
    match (best.sweep.model(), best.selected_on.is_some()) {
        (Model::Translator, false) => {
            ["table2", "Table 2", "WMT model on newstest2013, BLEU, marked at p < 0.01"]
        }
        (Model::Translator, true) => [
            "table5",
            "Table 5",
            "WMT model on newstest2014, chosen on newstest2013, BLEU, marked at p < 0.01",
        ],
        (Model::Classifier, false) => {
            ["table3", "Table 3", "BERT on MNLI matched, percentage points of accuracy, marked at p < 0.01"]
        }
        (Model::Classifier, true) => [
            "table6",
            "Table 6",
            "BERT on MNLI matched, chosen on 5,000 training examples, percentage points of accuracy, marked at p < 0.01",
        ],
        (Model::Language, false) => ["table2-self", OWN, ""],
        (Model::Language, true) => ["table5-self", OWN, ""],
    }
}

/// Tabulates a row per layer, with a column per attention type and one with the paper's cells if they are comparable.
fn table(best: &BestHeads, criterion: Criterion) -> Table {
    let sweep = &best.sweep;
    let [stem, name, what] = published(best);
    let columns = columns(best, criterion);
    let layers = columns.iter().flat_map(|(_, cells)| cells.keys()).max().copied().unwrap_or(0);
    let row = |layer: usize| {
        Row::new(layer, columns.iter().map(|(_, cells)| Cell::from(cells.get(&layer).cloned())))
    };
    let judge = sweep.judge(criterion);
    let is_tested = criterion.tally(&sweep.rows).tested > 0;
    let split = best.selected_on.as_ref().map_or(String::new(), |split| format!("-{split}"));
    let metric = sweep.metric();
    let verdicts = verdicts(best, judge);
    let of_verdicts = (!verdicts.is_empty()).then(|| {
        let counts = format!("verdicts on the other heads of each layer: {}", verdicts.join("; "));
        vec![counts, judge.of_verdicts(), SIGNS.to_owned()]
    });
    let ours = in_words(best, |attention| Layers::ours(&best.of(attention), judge));
    let published = in_words(best, |attention| Layers::published(best.published(), attention));
    let title = format!(
        "Best head alone in its layer (its number in brackets): {0} minus {0} of the full model{1}",
        metric.label(),
        metric.in_unit(", in")
    );
    Table::new(name, sweep.file.label(stem) + &split, sweep.file.titled(title))
        .columns(["Layer", "Attention"], columns.iter().map(|(name, _)| *name))
        .rows((1..=layers).map(row))
        .mark(is_tested.then(|| judge.description("heads")))
        .note(sweep.base_line())
        .note(verdicts.is_empty().then_some("no layer was tested"))
        .note(of_verdicts)
        .note(ours.map(|sentence| format!("the paper's reading: {sentence}; {CAUTION}")))
        .note(judge.out_of_reach())
        .note(choice(best))
        .note(
            sweep
                .file
                .is_language()
                .then(|| format!("laid out as a table of Michel et al. (2019), {OPEN_QUESTION}")),
        )
        .remark(best.missing_heads())
        .remark(published.map(|sentence| format!("paper: Michel et al. (2019), {name}, {what}; {sentence}")))
}

/// Describes the verdicts on all but the best head of each layer, by attention type.
fn verdicts(best: &BestHeads, judge: Judge) -> Vec<String> {
    let of = |attention: Attention| {
        let counts = best.verdicts(attention, judge)?;
        Some(format!("{attention}: {} of {}", counts.in_words(), count(counts.all(), "layer")))
    };
    best.sweep.attentions().into_iter().filter_map(of).collect()
}

/// Returns the columns; leaves out the paper's layers beyond ours, since models of different depth are not comparable layer by layer.
fn columns(best: &BestHeads, criterion: Criterion) -> Vec<(&'static str, BTreeMap<usize, Cell>)> {
    let (mut columns, metric, judge) = (Vec::new(), best.sweep.metric(), best.sweep.judge(criterion));
    for attention in best.sweep.attentions() {
        let rows = best.of(attention);
        let cell = |row: &AblationRow| {
            let text = format!("{} ({})", metric.change(row.score_delta), row.head);
            judged(Cell::number(text, row.score_delta), judge.verdict(row)).marked(criterion.holds(row))
        };
        columns.push((attention.name(), rows.iter().map(|(&layer, row)| (layer, cell(row))).collect()));
        let is_ours = |cell: &&Masked| cell.attention == attention && rows.contains_key(&cell.layer);
        let theirs = |cell: &Masked| {
            (cell.layer, Cell::number(signed(cell.delta, 2), cell.delta).marked(cell.significant))
        };
        let theirs: BTreeMap<_, _> = best.published().iter().filter(is_ours).map(theirs).collect();
        columns.extend((!theirs.is_empty()).then_some(("paper", theirs)));
    }
    columns
}

/// Describes for how many layers one head is enough by the paper's rule, by attention type.
fn in_words(best: &BestHeads, enough: impl Fn(Attention) -> Option<Layers>) -> Option<String> {
    let of = |attention: Attention| Some(format!("{} of {attention}", enough(attention)?));
    let tested: Vec<_> = best.sweep.attentions().into_iter().filter_map(of).collect();
    (!tested.is_empty()).then(|| format!("one head is enough (no significant loss) in {}", tested.join(", ")))
}

/// Describes the split that heads were chosen on, and how that affects the numbers.
fn choice(best: &BestHeads) -> String {
    let file = &best.sweep.file;
    let split = |before: &str| file.split().map_or(String::new(), |split| format!(", {before}{split}"));
    let segments = file.number("select_limit").map_or(String::new(), |limit| format!("{limit} segments of "));
    match &best.selected_on {
        Some(selected_on) => format!("chosen on {segments}{selected_on}{}", split("reported on ")),
        None => format!(
            "chosen and reported on the same split{}: the best of {} is optimistic, and its p-value is not corrected for \
             the choice",
            split(""),
            count(best.sweep.heads(), "head")
        ),
    }
}
