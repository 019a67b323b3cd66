//! Tests of stored measurements. Measuring runs the model and stores the statistics of every segment; all p-values, intervals and
//! adjustments are computed from these, and can be computed again for other resamples or margins.
//!
//! Needs neither the model nor libtorch. The commands are `retest`, and `merge`, which joins shards before testing.

use std::collections::{BTreeMap, BTreeSet};

use heads::experiment::{Experiment, Rows};
use records::signature::Measured;
use records::{
    Block, Blocks, Identity, Signature, TestedRow, Testing, UntilDecided, first_order_name, row_of,
};
use stats::blocks::block_length;
use stats::classification::ClassificationMetric;
use stats::deciding::{Looked, test_clusters};
use stats::family::Comparison;
use stats::predictions::Predictions;
use stats::sequential::sampling_order;
use stats::text::TextMetric;
use stats::{Cells, Metric, Segments};

mod agreement;
mod args;
pub mod commands;
mod error;
mod file;
mod groups;
mod merge;
mod power;
mod replay;

pub use agreement::{Sweep, agreement};
pub use args::{SEED, TestArgs, margin, resamples};
pub use error::Error;
pub use file::{AGAINST_ARGUMENTS, Retested, Share, retest};
pub use groups::{Change, Group, groups};
pub use merge::{Merged, merge};
pub use replay::{Look, Replayed, replay};

/// Returns the experiments whose results are tested; the names of their files begin with these names.
pub fn tested() -> impl Iterator<Item = &'static str> {
    let all = heads::experiment::ALL.iter();
    all.filter(|experiment| experiment.rows != Rows::Untested).map(|experiment| experiment.name)
}

/// Returns the type of rows of an experiment; unknown experiments are read as sweeps.
pub(crate) fn rows_of(experiment: &str) -> Rows {
    Experiment::named(experiment).map_or(Rows::Ablation, |experiment| experiment.rows)
}

/// Returns the metric for a signature.
///
/// - `families`: number of rows of each complete family, by name; 0 if any number is complete
pub fn measured(metric: Metric, families: BTreeMap<String, usize>) -> Measured {
    let positive = match metric {
        Metric::Classes(ClassificationMetric::F1 { positive }) => Some(positive),
        _ => None,
    };
    Measured { metric: metric.name(), positive, families }
}

/// Returns the metric in a signature.
///
/// # Errors
/// If a positive class is missing or not needed.
pub fn metric_of(measured: &Measured) -> Result<Metric, Error> {
    let metric = measured.metric;
    Metric::of(metric, measured.positive).ok_or_else(|| {
        Error::Invalid(format!(
            "the signature has `{metric}` with a wrong `positive`: f1 requires a positive class, no other metric allows one"
        ))
    })
}

/// Returns the statistics of a model's segments to store; with a base, only those that differ from it.
pub fn block(name: String, segments: &Segments, base: Option<&Segments>) -> Block {
    let cells = |segments: &Segments| (0..segments.len()).map(|n| segments.cells(n)).collect::<Vec<Cells>>();
    Block::new(name, &cells(segments), base.map(cells).as_deref())
}

/// Segments of models, restored from their stored statistics.
#[derive(Debug)]
pub struct Store<'a> {
    blocks: &'a Blocks,
    metric: Metric,
    bases: BTreeMap<String, Vec<Cells>>,
}

impl<'a> Store<'a> {
    /// Restores segments from these blocks.
    pub fn new(blocks: &'a Blocks, metric: Metric) -> Self {
        Self { blocks, metric, bases: BTreeMap::new() }
    }

    /// Returns the segments of a base.
    pub fn base(&mut self, name: &str) -> Result<Segments, Error> {
        Ok(Segments::from_cells(self.metric, self.base_cells(name)?)?)
    }

    fn base_cells(&mut self, name: &str) -> Result<&[Cells], Error> {
        if !self.bases.contains_key(name) {
            let cells = self.block(name)?.cells(None).map_err(|fault| Error::of_row(name, fault))?;
            self.bases.insert(name.to_owned(), cells);
        }
        Ok(&self.bases[name])
    }

    /// Returns the segments of a model that is stored as differences from a base.
    ///
    /// # Errors
    /// If the block is missing or broken, or has different segments from the base.
    pub fn variant(&mut self, name: &str, base: &str) -> Result<Segments, Error> {
        let (block, metric) = (self.block(name)?, self.metric);
        let base = self.base_cells(base)?;
        let cells = block.cells(Some(base)).map_err(|fault| Error::of_row(name, fault))?;
        if let Some(fault) = unpaired_cells(metric, &cells, base) {
            return Err(Error::of_row(name, fault));
        }
        Ok(Segments::from_cells(metric, &cells)?)
    }

    /// Returns first-order predictions for a row; `None` if none are stored.
    pub fn first_order(&mut self, row: &str, base: &str) -> Result<Option<Predictions>, Error> {
        let Some(block) = self.blocks.get(&first_order_name(row)) else { return Ok(None) };
        let metric = self.metric;
        let base = self.base_cells(base)?;
        let cells = block.cells(Some(base)).map_err(|fault| Error::of_row(row, fault))?;
        Ok(Some(Predictions::from_cells(metric, base, &cells)?))
    }

    fn block(&self, name: &str) -> Result<&'a Block, Error> {
        self.blocks.get(name).ok_or_else(|| Error::of_row(name, "there are no statistics of its segments"))
    }
}

/// Returns the reason why the segments of two models cannot be compared; `None` if they can.
pub fn unpaired(own: &Segments, base: &Segments) -> Option<&'static str> {
    if own.len() != base.len() || own.metric() != base.metric() {
        return Some("its number of segments or its metric differs from the base's");
    }
    let cells = |all: &Segments| (0..all.len()).map(|n| all.cells(n)).collect::<Vec<Cells>>();
    unpaired_cells(base.metric(), &cells(own), &cells(base))
}

/// Returns the reason why a model's segments cannot be compared with its base's: a value differs that masking cannot change.
fn unpaired_cells(metric: Metric, cells: &[Cells], base: &[Cells]) -> Option<&'static str> {
    let (columns, fault) = match metric {
        Metric::Classes(_) => (0..1, "its true classes differ from the base's"),
        Metric::Nats => (1..3, "its numbers of tokens or words differ from the base's"),
        Metric::Texts(metric) if metric != TextMetric::ExactMatch => {
            (1..2, "its references differ from the base's")
        }
        Metric::Estimates(_) => (0..1, "its true values differ from the base's"),
        _ => return None,
    };
    let is_other = |(cells, base): (&Cells, &Cells)| cells.get(columns.clone()) != base.get(columns.clone());
    cells.iter().zip(base).any(is_other).then_some(fault)
}

/// Records the results of tests on the statistics of segments in each row, family by family, and removes statistics without a row.
///
/// Rows that are their own base are not tested. P-values of incomplete families are not adjusted. The signature contains the settings of
/// the tests, and receives the number of segments that are drawn and swapped together; without settings nothing is tested.
///
/// # Errors
/// If statistics are missing or broken, or do not give the rows' scores.
pub fn test_rows<R: TestedRow>(
    rows: &mut [R],
    blocks: &mut Blocks,
    signature: &mut Signature,
) -> Result<(), Error> {
    let (Some(measured), Some(testing)) = (&signature.measured, &mut signature.testing) else {
        return Ok(());
    };
    let names: BTreeSet<String> = rows.iter().flat_map(|row| [row.name(), row.base()]).collect();
    blocks.retain(|name| names.contains(row_of(name)));
    let mut store = Store::new(blocks, metric_of(measured)?);
    let mut families: BTreeMap<(String, String), Vec<&mut R>> = BTreeMap::new();
    for row in rows.iter_mut() {
        families.entry((row.family(), row.base())).or_default().push(row);
    }
    testing.block = 1;
    let clusters = signature.identity.clusters();
    if has_windows(&signature.identity) {
        for ((_, base), rows) in &families {
            let (base, variants) = segments_of(rows, &mut store, base)?;
            testing.block = testing.block.max(block_length(&base, &variants));
        }
    }
    let rules = signature.identity.until_decided();
    for ((family, base), mut rows) in families {
        if let Some(rules) = rules {
            let base_segments = store.base(&base)?;
            for row in &mut rows {
                let name = row.name();
                let (variant, predicted) = (store.variant(&name, &base)?, store.first_order(&name, &base)?);
                look(*row, (&base_segments, &variant), (predicted.as_ref(), &clusters), (rules, *testing))?;
            }
            continue;
        }
        let whole = measured.families.get(&family).copied();
        test_one_family(rows, &mut store, &base, (whole, &clusters, *testing))?;
    }
    R::compare(rows);
    Ok(())
}

/// Records the estimate of a row that is measured on a growing sample, at its last look.
///
/// - `predicted`: the row as predicted from the gradient, for the control variate
/// - `clusters`: numbers of neighbouring segments that belong to one text; empty if segments are independent
pub fn look<R: TestedRow>(
    row: &mut R,
    (base, variant): (&Segments, &Segments),
    (predicted, clusters): (Option<&Predictions>, &[usize]),
    (rules, testing): (UntilDecided, Testing),
) -> Result<(), Error> {
    let looks = row.looks().ok_or_else(|| Error::of_row(&row.name(), "it has no looks"))?;
    let order = sampling_order(base.len(), rules.seed);
    let looked = Looked { base, variant, predicted, order: &order, looks: &looks, clusters };
    let margin = records::verdicts::margin(base.metric().name(), base.score()?, testing.margin_percent);
    let found = looked.estimate(rules.bounds, testing.of_segments(), margin)?;
    row.record(&found.comparison);
    row.record_correlation(found.correlation);
    Ok(())
}

/// Returns true if texts were cut into windows, according to the arguments of a run; neighbouring segments are then not independent.
pub fn has_windows(identity: &Identity) -> bool {
    let windows = identity.arguments.get("windows").and_then(|windows| windows.get("segments"));
    windows.is_some_and(|segments| segments == "windows") || !identity.clusters().is_empty()
}

fn segments_of<R: TestedRow>(
    rows: &[&mut R],
    store: &mut Store<'_>,
    base: &str,
) -> Result<(Segments, Vec<Segments>), Error> {
    let variants = rows.iter().map(|row| store.variant(&row.name(), base));
    let variants = variants.collect::<Result<_, _>>()?;
    Ok((store.base(base)?, variants))
}

fn test_one_family<R: TestedRow>(
    mut rows: Vec<&mut R>,
    store: &mut Store<'_>,
    base: &str,
    (whole, clusters, testing): (Option<usize>, &[usize], Testing),
) -> Result<(), Error> {
    let is_whole = whole.is_some_and(|whole| whole == 0 || whole == rows.len());
    let (base_segments, variants) = segments_of(&rows, store, base)?;
    let (tested, full): (Vec<usize>, Vec<usize>) =
        (0..rows.len()).partition(|&place| !rows[place].is_full_model());
    for place in full {
        let untested = Comparison::untested(base_segments.score()?, variants[place].score()?);
        record(rows[place], &untested, false)?;
    }
    let of_family: Vec<&Segments> = tested.iter().map(|&place| &variants[place]).collect();
    let mut curve = Vec::new();
    let margin = records::verdicts::margin(
        base_segments.metric().name(),
        base_segments.score()?,
        testing.margin_percent,
    );
    let compared = test_clusters(&base_segments, &of_family, clusters, (testing.of_segments(), margin))?;
    for (place, comparison) in tested.into_iter().zip(compared) {
        let sides = [&base_segments, &variants[place]];
        let (comparison, step) = power::with_power(comparison, sides, testing)?;
        record(rows[place], &comparison, is_whole)?;
        curve.extend(rows[place].step().and(step).map(|step| (place, step)));
    }
    if curve.is_empty() {
        return Ok(());
    }
    Ok(power::walk(&mut rows, curve, &base_segments, testing)?)
}

fn record<R: TestedRow>(row: &mut R, comparison: &Comparison, is_whole: bool) -> Result<(), Error> {
    let stored = row.tests().variant;
    if stored != comparison.variant {
        let (row, found) = (row.name(), comparison.variant);
        return Err(Error::Invalid(format!(
            "row `{row}` has the score {stored}, but its segments give {found}"
        )));
    }
    row.record(&Comparison {
        simultaneous: comparison.simultaneous.filter(|_| is_whole),
        p_adjusted: comparison.p_adjusted.filter(|_| is_whole),
        p_benjamini_hochberg: comparison.p_benjamini_hochberg.filter(|_| is_whole),
        ..*comparison
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{AblationRow, BASE, MetricName};
    use stats::classification::Outcome;
    use stats::nats::NatsStatistics;

    fn outcomes(predicted: [usize; 4]) -> Segments {
        let outcome = |predicted| Outcome { gold: 1, predicted };
        Segments::Classes(predicted.map(outcome).to_vec(), ClassificationMetric::Accuracy)
    }

    const TESTING: Testing = Testing { resamples: 9, seed: 1, margin_percent: 2.0, block: 1 };

    /// Returns the signature of a run that is tested with [`TESTING`].
    fn signed(metric: Metric, families: BTreeMap<String, usize>) -> Signature {
        let run = records::Provenance::collect("cpu", 1, BTreeMap::new());
        Signature::new(Identity::new("ablate-one", "demo"), run).tested(measured(metric, families), TESTING)
    }

    fn row(head: usize, base: &Segments, variant: &Segments) -> AblationRow {
        let [base, variant] = [base, variant].map(|segments| segments.score().unwrap());
        AblationRow::untested(format!("self:1:{head}").parse().unwrap(), MetricName::Accuracy, base, variant)
    }

    fn stored(base: &Segments, variants: &[&Segments]) -> Blocks {
        let mut blocks = Blocks::default();
        blocks.insert(block(BASE.to_owned(), base, None));
        for (head, variant) in variants.iter().enumerate() {
            blocks.insert(block(format!("self:1:{}", head + 1), variant, Some(base)));
        }
        blocks
    }

    /// The first variant loses two of four: p = 1/2 - 1/π by the t-test (see `stats`), doubled by Holm; the second equals the base.
    #[test]
    fn rows_are_tested_as_a_family() {
        let (base, worse) = (outcomes([1; 4]), outcomes([1, 1, 0, 0]));
        let mut blocks = stored(&base, &[&worse, &base]);
        let mut rows = [row(1, &base, &worse), row(2, &base, &base)];
        let mut whole = signed(base.metric(), BTreeMap::from([("self".to_owned(), 2)]));
        test_rows(&mut rows, &mut blocks, &mut whole).unwrap();
        let p = 0.5 - std::f64::consts::FRAC_1_PI;
        assert!((rows[0].p_value.unwrap() - p).abs() < 1e-12);
        assert!((rows[0].p_adjusted.unwrap() - 2.0 * p).abs() < 1e-12);
        assert_eq!((rows[1].p_value, rows[1].p_koehn), (Some(1.0), None));
        assert!(rows[0].delta_low.unwrap() < -50.0 && rows[0].p_mcnemar.is_some());

        let mut part = signed(base.metric(), BTreeMap::from([("self".to_owned(), 3)]));
        test_rows(&mut rows, &mut blocks, &mut part).unwrap();
        assert!(rows[0].p_value.is_some() && rows[0].p_adjusted.is_none());
        assert_eq!(rows[0].p_benjamini_hochberg, None);
        test_rows(&mut rows[..1], &mut blocks, &mut part).unwrap(); // statistics without a row are left out
        assert!(blocks.get("self:1:1").is_some() && blocks.get("self:1:2").is_none());
    }

    /// Without statistics, with a score other than theirs, or with true classes, lengths or references that differ from the base's.
    #[test]
    fn rows_that_contradict_their_segments_are_refused() {
        let classes = |gold| {
            Segments::Classes(vec![Outcome { gold, predicted: gold }; 4], ClassificationMetric::Accuracy)
        };
        let documents = |tokens| Segments::Nats(vec![NatsStatistics::new(1.0, tokens, 5).unwrap(); 4]);
        let texts = |words| Segments::Texts(vec![vec![5, words, 3, 2, 3]; 4], TextMetric::RougeL);
        let (right, worse) = (outcomes([1; 4]), outcomes([1, 1, 0, 0]));
        for (head, base, stored_variant, variant, expected) in [
            (3, &right, &right, &right, "row `self:1:3` cannot be tested: there are no statistics of"),
            (1, &right, &right, &worse, "row `self:1:1` has the score 50, but its segments give 100"),
            (1, &classes(1), &classes(0), &classes(0), "its true classes differ"),
            (1, &documents(3), &documents(4), &documents(4), "its numbers of tokens or words differ"),
            (1, &texts(4), &texts(5), &texts(5), "its references differ"),
        ] {
            let mut blocks = stored(base, &[stored_variant]);
            let mut whole = signed(base.metric(), BTreeMap::new());
            let error = test_rows(&mut [row(head, base, variant)], &mut blocks, &mut whole).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    /// 640 windows in which the cost of a head persists over eight; documents with equal numbers are independent by definition.
    #[test]
    fn windows_of_one_text_are_drawn_in_blocks() {
        let document = |nats| NatsStatistics::new(nats, 3, 5).unwrap();
        let segments = |cost: fn(usize) -> f64| {
            Segments::Nats((0..640).map(|n| document(9.0 + cost(n / 8 * 7 % 11))).collect())
        };
        let (base, worse) = (segments(|_| 0.0), segments(|place| place as f64 - 4.5));
        let test = |windows: &str| {
            let mut signature = signed(base.metric(), BTreeMap::from([("self".to_owned(), 1)]));
            let windows = serde_json::json!({ "segments": windows, "length": 3 });
            signature.identity.arguments.insert("windows".to_owned(), windows);
            let mut rows = [AblationRow { metric: MetricName::Nats, ..row(1, &base, &worse) }];
            test_rows(&mut rows, &mut stored(&base, &[&worse]), &mut signature).unwrap();
            (signature.testing.unwrap().block, rows[0].p_value.unwrap())
        };
        let (windows, documents) = (test("windows"), test("documents"));
        assert_eq!((windows.0, documents.0), (8, 1));
        assert!(windows.1 > documents.1);
    }

    #[test]
    fn metrics_survive_the_signature() {
        let f1 = Metric::Classes(ClassificationMetric::F1 { positive: 1 });
        for metric in MetricName::ALL.into_iter().filter_map(|name| Metric::of(name, None)).chain([f1]) {
            assert_eq!(metric_of(&measured(metric, BTreeMap::new())).unwrap(), metric);
        }
        for (metric, positive) in [(MetricName::F1, None), (MetricName::Accuracy, Some(1))] {
            let wrong = Measured { metric, positive, families: BTreeMap::new() };
            let message = metric_of(&wrong).unwrap_err().to_string();
            assert!(message.contains("with a wrong `positive`"), "{message}");
        }
    }
}
