//! Stopping between two pieces of work when a cluster sends a signal.
//!
//! While rows are being measured, SIGUSR1 and SIGTERM let the process finish the current group of rows; at all other times they end it at
//! once, as without this module. Ctrl-C always ends it at once.
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// Guard of work that a signal does not interrupt.
#[derive(Debug)]
pub struct Unbroken(());

impl Unbroken {
    /// Starts such work.
    ///
    /// # Errors
    /// If a signal has already arrived, or signals cannot be caught.
    pub fn begin() -> Result<Self, Error> {
        let signals = SIGNALS.get_or_init(Signals::catch).as_ref();
        let signals = signals.map_err(|error| Error::Invalid(format!("cannot wait for signals: {error}")))?;
        signals.is_idle.store(false, Ordering::SeqCst);
        let this = Self(());
        check().map(|()| this)
    }
}

impl Drop for Unbroken {
    fn drop(&mut self) {
        if let Some(Ok(signals)) = SIGNALS.get() {
            signals.is_idle.store(true, Ordering::SeqCst);
        }
    }
}

/// Returns an error if a signal has arrived; called between two pieces of work.
pub fn check() -> Result<(), Error> {
    let is_asked = SIGNALS.get().and_then(|signals| signals.as_ref().ok());
    if is_asked.is_some_and(|signals| signals.has_come.load(Ordering::SeqCst)) {
        HAS_STOPPED.store(true, Ordering::SeqCst);
        let stopped = "stopped by a signal: finished rows are kept, and the same command resumes from them";
        return Err(Error::Invalid(stopped.to_owned()));
    }
    Ok(())
}

/// Returns true if [`check`] has ended the work.
pub fn has_stopped() -> bool {
    HAS_STOPPED.load(Ordering::SeqCst)
}

static SIGNALS: OnceLock<io::Result<Signals>> = OnceLock::new();
static HAS_STOPPED: AtomicBool = AtomicBool::new(false);

/// Flags that signal handlers set and read.
struct Signals {
    has_come: Arc<AtomicBool>,
    is_idle: Arc<AtomicBool>,
}

impl Signals {
    #[cfg(unix)]
    fn catch() -> io::Result<Self> {
        use signal_hook::consts::{SIGTERM, SIGUSR1};
        use signal_hook::flag::{register, register_conditional_default};

        let signals = Self { has_come: Arc::default(), is_idle: Arc::default() };
        for signal in [SIGUSR1, SIGTERM] {
            register_conditional_default(signal, Arc::clone(&signals.is_idle))?;
            register(signal, Arc::clone(&signals.has_come))?;
        }
        Ok(signals)
    }

    /// Does nothing: other systems have no such signals.
    #[cfg(not(unix))]
    fn catch() -> io::Result<Self> {
        Ok(Self { has_come: Arc::default(), is_idle: Arc::default() })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use signal_hook::consts::SIGTERM;
    use signal_hook::low_level::raise;

    /// A single test, because a signal reaches the whole process and would end it if not caught.
    #[test]
    fn work_is_finished_before_a_signal_ends_it() {
        let work = Unbroken::begin().unwrap();
        assert!(check().is_ok() && !has_stopped());
        raise(SIGTERM).unwrap();
        assert!(check().unwrap_err().to_string().starts_with("stopped by a signal"));
        assert!(has_stopped());
        drop(work);
        assert!(Unbroken::begin().is_err(), "no new work starts");
    }
}
