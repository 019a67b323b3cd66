//! Progress on stderr: a bar on a terminal, a line now and then elsewhere.
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Counts work that is done.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    message: String,
    started: Instant,
    printed: Instant,
}

impl Progress {
    /// Counts up to `total`; says nothing if `quiet`.
    pub fn new(total: usize, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(total as u64) };
        bar.set_length(total as u64);
        let template = "[{elapsed}] {wide_bar} {percent:>3} %, {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let now = Instant::now();
        Self { bar, quiet, message: String::new(), started: now, printed: now }
    }

    /// Sets the text beside the bar.
    pub fn message(&mut self, message: String) {
        self.bar.set_message(message.clone());
        self.message = message;
    }

    /// This many more units are done.
    pub fn advance(&mut self, units: usize) {
        self.bar.inc(units as u64);
        if self.bar.is_hidden() && !self.quiet && self.printed.elapsed() >= LINE_EVERY {
            self.printed = Instant::now();
            let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let left = self.bar.eta().as_secs();
            let seconds = self.started.elapsed().as_secs();
            words::say!("[{seconds} s] {done} of {total}, {left} s left  {}", self.message);
        }
    }

    /// A line that stays.
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
