//! Progress on stderr: a bar on a terminal, otherwise a line at intervals.
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// Time until the first line without a terminal: by then the rate is known.
const FIRST_LINE_AFTER: Duration = Duration::from_secs(10);

/// Time between two lines after that.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Counts finished work in units of equal duration.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    message: String,
    started: Instant,
    next_line: Instant,
}

impl Progress {
    /// Counts up to `total`; prints nothing if `quiet`.
    pub fn new(total: usize, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(total as u64) };
        bar.set_length(total as u64);
        let template = "[{elapsed}] {wide_bar} {percent:>3}%, {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let started = Instant::now();
        Self { bar, quiet, message: String::new(), started, next_line: started + FIRST_LINE_AFTER }
    }

    /// Sets the text next to the bar.
    pub fn message(&mut self, message: String) {
        self.bar.set_message(message.clone());
        self.message = message;
    }

    /// Adds finished units.
    pub fn advance(&mut self, units: usize) {
        self.bar.inc(units as u64);
        let now = Instant::now();
        if self.bar.is_hidden() && !self.quiet && now >= self.next_line {
            self.next_line = now + LINE_EVERY;
            let elapsed = self.started.elapsed();
            let (done, left) = (self.bar.position().max(1) as f64, self.left() as f64);
            let share = 100.0 * done / (done + left);
            let (elapsed, left) = (HumanDuration(elapsed), HumanDuration(elapsed.mul_f64(left / done)));
            words::say!("{share:.0}% after {elapsed}, about {left} left  {}", self.message);
        }
    }

    /// Returns the number of unfinished units.
    pub fn left(&self) -> u64 {
        self.bar.length().unwrap_or(0).saturating_sub(self.bar.position())
    }

    /// Prints a permanent line.
    pub fn line(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| words::say!("{text}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
