//! Rows that are measured on a growing sample of the segments until their verdicts are known.
mod args;
mod stored;

use std::time::{Duration, Instant};

use core_masking::HeadSet;
use records::{
    BASE, Block, Signature, TestedRow, Testing, UntilDecided, Verdict, Verdicts, first_order_name,
};
use significance::{Store, block, look};
use stats::Segments;
use stats::deciding::look_sizes;
use stats::predictions::{Predictions, passes};
use stats::sequential::sampling_order;
use subject::{Scored, Subject};
use training::stop::Unbroken;

use self::args::Budget;
pub use self::args::{Deciding, DecidingArgs};
use self::stored::Stored;
use crate::error::Error;
use crate::measured::{MeasuredRows, RowSet};

/// Smallest growth of the sample for which another look is worthwhile.
const MIN_GROWTH: f64 = 1.25;

/// A row whose verdict is not known yet.
struct Growing<R> {
    masked: HeadSet,
    row: R,
    /// Measured segments in the sample; elsewhere the full model's segments.
    segments: Segments,
    /// First-order prediction of the row.
    predicted: Option<Predictions>,
}

impl<R: TestedRow + Clone> Growing<R> {
    fn is_open(&self, margin_percent: f64, segments: usize) -> bool {
        self.row.sample() < segments && !is_decided(&self.row, margin_percent)
    }
}

/// Returns true if the interval of a row is on one side of the margin.
fn is_decided<R: TestedRow>(row: &R, margin_percent: f64) -> bool {
    row.looks().is_some() && row.verdict(margin_percent).is_some_and(|verdict| verdict != Verdict::Undecided)
}

/// Time between progress reports within a look.
const REPORT_EVERY: Duration = Duration::from_secs(45);

/// Passes and time of a sweep.
struct Meter {
    started: Instant,
    passes: u64,
    budget: Option<Budget>,
    /// Seconds per pass over one segment; an estimate until heads have been masked.
    seconds_per_pass: f64,
}

impl Meter {
    /// Returns the passes that the budget still allows; `None` without a budget.
    fn passes_left(&self) -> Option<u64> {
        Some(match self.budget? {
            Budget::Passes(passes) => passes.saturating_sub(self.passes),
            Budget::Time(time) => {
                let left = time.saturating_sub(self.started.elapsed()).as_secs_f64();
                (left / self.seconds_per_pass.max(1e-9)) as u64
            }
        })
    }

    /// Counts passes that started at `began`.
    fn count(&mut self, passes: usize, began: Instant) {
        self.passes += passes as u64;
        self.seconds_per_pass = began.elapsed().as_secs_f64() / passes.max(1) as f64;
    }
}

impl<R: TestedRow + Clone> MeasuredRows<R> {
    /// Scores the subject under each of `sets` on a growing sample, until the verdicts are known, the sample has all segments or the budget
    /// is spent. Rows are stored at each look, so that a killed run can resume there.
    ///
    /// - `sets`: each with one row
    ///
    /// # Errors
    /// As for [`measure`](Self::measure), or if the budget is too small for the first look.
    pub fn measure_until_decided(
        &mut self,
        subject: &Subject,
        scored: &Scored,
        sets: Vec<RowSet<R>>,
        deciding: Deciding,
    ) -> Result<(), Error> {
        let testing = self.testing();
        let open = self.undecided(sets, testing.margin_percent);
        if open.is_empty() {
            return Ok(());
        }
        let mut meter =
            Meter { started: Instant::now(), passes: 0, budget: deciding.budget, seconds_per_pass: 0.0 };
        self.measure_on(&mut subject.evaluator(scored, 0)?, BASE, Vec::new())?;
        let base = self.bases[BASE].clone();
        meter.count(base.len(), meter.started);
        // masking a head reuses the layers before it, on average half of all
        meter.seconds_per_pass /= 2.0;
        if deciding.rules.control_variate && self.predict(subject, scored, &open, &base)? {
            meter.passes += (passes(base.metric()) * base.len()) as u64;
        }
        let mut rows = open.into_iter().map(|set| self.growing(set, &base)).collect::<Result<Vec<_>, _>>()?;
        let order = sampling_order(base.len(), deciding.rules.seed);
        let sizes = look_sizes(&base, deciding.looks);
        self.announce_deciding(scored, (rows.len(), &sizes), deciding.rules.control_variate);
        for size in sizes {
            let open: Vec<&mut Growing<R>> = rows
                .iter_mut()
                .filter(|row| row.is_open(testing.margin_percent, base.len()) && row.row.sample() < size)
                .collect();
            if open.is_empty() {
                continue;
            }
            let Some(size) = affordable(size, &open, &meter)? else { break };
            self.look_at(
                subject,
                scored,
                open,
                (&base, &order[..size]),
                (deciding.rules, testing),
                &mut meter,
            )?;
            self.summarise(&rows, (size, base.len()), testing.margin_percent, &meter);
        }
        Ok(())
    }

    /// Returns the sets of this shard whose verdicts are not known, each with its row as measured so far.
    fn undecided(&self, sets: Vec<RowSet<R>>, margin_percent: f64) -> Vec<RowSet<R>> {
        let all = self.writer.block(BASE).map(|base| base.segments.len());
        let continued = |RowSet { masked, rows }: RowSet<R>| {
            let row = rows.into_iter().next()?;
            let is_own = self.part.as_ref().is_none_or(|part| part.holds(&row.name()));
            let stored = self.rows().find(|stored| stored.key() == row.key()).cloned();
            let row = stored.unwrap_or(row);
            let is_whole = row.looks().is_some_and(|looks| looks.last().copied() == all);
            (is_own && !is_whole && !is_decided(&row, margin_percent))
                .then(|| RowSet { masked, rows: vec![row] })
        };
        sets.into_iter().filter_map(continued).collect()
    }

    fn testing(&self) -> Testing {
        self.writer.signature().testing.expect("measured rows are tested")
    }

    /// Stores first-order predictions for rows that have none; returns false if none had to be computed.
    fn predict(
        &mut self,
        subject: &Subject,
        scored: &Scored,
        sets: &[RowSet<R>],
        base: &Segments,
    ) -> Result<bool, Error> {
        let is_missing =
            |set: &&RowSet<R>| self.writer.block(&first_order_name(&set.rows[0].name())).is_none();
        let missing: Vec<&RowSet<R>> = sets.iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let masked: Vec<HeadSet> = missing.iter().map(|set| set.masked.clone()).collect();
        let Signature { identity, again, .. } = self.writer.signature();
        let known = if *again { None } else { stored::predictions(&self.path, identity, base, &masked)? };
        let is_known = known.is_some();
        let predicted = match known {
            Some(Stored { path, predicted }) => {
                if !self.quiet {
                    words::say!("first-order effects: summed from `{}`", path.display());
                }
                predicted
            }
            None => subject.first_order(scored, base, &masked)?.ok_or_else(|| {
                Error::input("--control-variate: the gradient does not predict the metric of this split")
            })?,
        };
        let base: Vec<_> = (0..base.len()).map(|place| base.cells(place)).collect();
        for (RowSet { rows, .. }, cells) in missing.into_iter().zip(predicted) {
            self.writer.store(Block::new(first_order_name(&rows[0].name()), &cells, Some(&base)))?;
        }
        Ok(!is_known)
    }

    /// Returns a row with everything that is stored about it.
    fn growing(&self, RowSet { masked, mut rows }: RowSet<R>, base: &Segments) -> Result<Growing<R>, Error> {
        let row = rows.remove(0);
        let name = row.name();
        let mut blocks = records::Blocks::default();
        for name in [BASE.to_owned(), name.clone(), first_order_name(&name)] {
            self.writer.block(&name).into_iter().for_each(|block| blocks.insert(block.clone()));
        }
        let mut store = Store::new(&blocks, base.metric());
        let predicted = store.first_order(&name, BASE)?;
        let segments = if row.looks().is_some() { store.variant(&name, BASE)? } else { base.clone() };
        Ok(Growing { masked, row, segments, predicted })
    }

    /// Measures rows on the segments that their samples lack, and stores them.
    fn look_at(
        &mut self,
        subject: &Subject,
        scored: &Scored,
        mut open: Vec<&mut Growing<R>>,
        (base, sample): (&Segments, &[usize]),
        (rules, testing): (UntilDecided, Testing),
        meter: &mut Meter,
    ) -> Result<(), Error> {
        let _unbroken = Unbroken::begin()?;
        let clusters = self.writer.signature().identity.clusters();
        open.sort_by_key(|row| row.row.sample()); // rows that a killed run did not reach come first
        for group in open.chunk_by_mut(|one, next| one.row.sample() == next.row.sample()) {
            let mut places = sample[group[0].row.sample()..].to_vec();
            places.sort_unstable();
            let sets: Vec<HeadSet> = group.iter().map(|row| row.masked.clone()).collect();
            let began = Instant::now();
            let (mut verdicts, mut reported) = (Verdicts::default(), Instant::now());
            let mut evaluator = subject.evaluator(&scored.among(places.clone()), 0)?;
            evaluator.evaluate(&sets, &mut |index, evaluation| {
                let Growing { row, segments, predicted, .. } = &mut *group[index];
                *segments = segments.clone().with(&places, &evaluation.segments);
                row.add_look(sample.len());
                look(row, (base, segments), (predicted.as_ref(), &clusters), (rules, testing))
                    .map_err(|fault| subject::Error::Invalid(fault.to_string()))?;
                verdicts.add(row.verdict(testing.margin_percent).unwrap_or(Verdict::Undecided));
                if !self.quiet && reported.elapsed() >= REPORT_EVERY {
                    words::say!("{} of {} head sets: {}", verdicts.all(), sets.len(), verdicts.in_words());
                    reported = Instant::now();
                }
                let stored = block(row.name(), segments, Some(base));
                Ok(self.writer.append(row.clone(), Some(stored))?)
            })?;
            meter.count(sets.len() * places.len(), began);
        }
        Ok(())
    }

    fn announce_deciding(&self, scored: &Scored, (heads, sizes): (usize, &[usize]), is_predicted: bool) {
        if self.quiet {
            return;
        }
        let shown: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        let helped =
            if is_predicted { " and first-order effects of all" } else { " without a control variate" };
        words::say!(
            "masking {} on a growing sample of split `{}` until each is decided, by looks at {} segments{helped}; if stopped, resume \
             with `{}`",
            words::count(heads, "head set"),
            scored.split,
            shown.join(", "),
            words::command_line()
        );
        if sizes.len() == 1 {
            words::say!("too few segments for an early look: all are measured");
        }
    }

    /// Prints how many rows are decided, and how long the rest would take.
    fn summarise(
        &self,
        rows: &[Growing<R>],
        (sample, segments): (usize, usize),
        margin_percent: f64,
        meter: &Meter,
    ) {
        if self.quiet {
            return;
        }
        let mut verdicts = Verdicts::default();
        for own in rows {
            verdicts.add(own.row.verdict(margin_percent).unwrap_or(Verdict::Undecided));
        }
        let left: usize = rows
            .iter()
            .filter(|row| row.is_open(margin_percent, segments))
            .map(|row| segments - row.row.sample())
            .sum();
        let rest = if left == 0 {
            String::new()
        } else {
            format!(
                "; all segments for the others: {}",
                words::duration(left as f64 * meter.seconds_per_pass)
            )
        };
        words::say!(
            "{sample} of {segments} segments: {}, after {} passes{rest}",
            verdicts.in_words(),
            meter.passes
        );
    }
}

/// Returns the size of the next look that the budget allows; `None` if that is too small to be worthwhile.
fn affordable<R: TestedRow + Clone>(
    size: usize,
    open: &[&mut Growing<R>],
    meter: &Meter,
) -> Result<Option<usize>, Error> {
    let Some(left) = meter.passes_left() else { return Ok(Some(size)) };
    let cost = |size: usize| open.iter().map(|row| size.saturating_sub(row.row.sample()) as u64).sum::<u64>();
    if cost(size) <= left {
        return Ok(Some(size));
    }
    let before = open.iter().map(|row| row.row.sample()).max().unwrap_or(0);
    if before == 0 {
        return Err(Error::input(format!(
            "--budget is too small for the first look: {} on {size} segments take {} passes, about {}",
            words::count(open.len(), "head set"),
            cost(size),
            words::duration(cost(size) as f64 * meter.seconds_per_pass)
        )));
    }
    let fits = before + (left / open.len().max(1) as u64) as usize;
    Ok((fits as f64 >= MIN_GROWTH * before as f64).then_some(fits.min(size)))
}
