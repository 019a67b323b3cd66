//! Memory for batches that turn out to take more than is likely, which threads take turns with.
use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::plan::Growing;

/// Bytes that are there for all threads.
#[derive(Debug)]
pub(crate) struct Growth {
    free: Mutex<u64>,
    freed: Condvar,
}

/// What a batch may take of them, from when it needs it until it is done.
#[derive(Debug)]
pub(crate) struct Loan<'a> {
    growth: &'a Growth,
    growing: Growing,
    is_taken: Cell<bool>,
}

impl Growth {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { free: Mutex::new(bytes), freed: Condvar::new() }
    }

    /// For a batch that takes none of them, or as much as this, not more than there are.
    pub(crate) fn loan(&self, growing: Growing) -> Loan<'_> {
        Loan { growth: self, growing, is_taken: Cell::new(false) }
    }

    fn free(&self) -> MutexGuard<'_, u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loan<'_> {
    /// Waits until the bytes are there, the first time; returns the rows that they are for. A batch that has them waits for no
    /// other, so one goes on always.
    pub(crate) fn take(&self) -> usize {
        if !self.is_taken.replace(true) {
            let too_few = |free: &mut u64| *free < self.growing.bytes;
            let free = self.growth.freed.wait_while(self.growth.free(), too_few);
            *free.unwrap_or_else(PoisonError::into_inner) -= self.growing.bytes;
        }
        self.growing.rows
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if self.is_taken.get() {
            *self.growth.free() += self.growing.bytes;
            self.growth.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn of(bytes: u64) -> Growing {
        Growing { rows: 1, bytes }
    }

    /// Eight threads, each with 20 batches that grow by 30 to 37 of 100 bytes: all are done, and never more are in use.
    #[test]
    fn batches_that_grow_take_turns() {
        let (growth, used) = (Growth::new(100), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (growth, used) = (&growth, &used);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let loan = growth.loan(of(30 + thread));
                        loan.take();
                        loan.take();
                        assert!(used.fetch_add(30 + thread, Ordering::SeqCst) + 30 + thread <= 100);
                        std::thread::yield_now();
                        used.fetch_sub(30 + thread, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(*growth.free(), 100);
    }

    #[test]
    fn a_batch_that_does_not_grow_takes_nothing() {
        let growth = Growth::new(10);
        drop(growth.loan(of(10)));
        growth.loan(of(10)).take();
        assert_eq!(*growth.free(), 10);
    }
}
