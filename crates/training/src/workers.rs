//! Work on several threads, with results in order.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::error::Error;
use crate::full_memory::or_full_memory;

/// Runs `items` jobs on one thread for each of `states`, and passes the results to `each` in the order of the jobs.
///
/// Each thread owns its state, since two threads cannot use a tensor at once. After an error in a job or in `each` no new job starts.
///
/// # Errors
/// If a job or `each` fails, or a thread panics.
pub fn in_order<S: Send, T: Send, E: From<Error> + Send>(
    states: &mut [S],
    items: usize,
    job: impl Fn(&S, usize) -> Result<T, E> + Sync,
    mut each: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = states
            .iter_mut()
            .map(|state| {
                let (sender, job, next, stop) = (sender.clone(), &job, &next, &stop);
                scope.spawn(move || {
                    let _guard = StopOnPanic(stop);
                    while !stop.load(Ordering::Relaxed) {
                        let item = next.fetch_add(1, Ordering::Relaxed);
                        if item >= items || sender.send((item, or_full_memory(|| job(state, item)))).is_err()
                        {
                            return;
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        let outcome = deliver(&receiver, &mut each);
        stop.store(true, Ordering::Relaxed);
        drop(receiver);
        let panicked = threads.into_iter().any(|thread| thread.join().is_err());
        outcome?;
        let fault = || Error::worker("a thread panicked; see its message above");
        if panicked { Err(fault().into()) } else { Ok(()) }
    })
}

/// Stops the other threads as well: results after a panicked job are never delivered.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Delivers results in order, holding back early ones.
fn deliver<T, E>(
    receiver: &mpsc::Receiver<(usize, Result<T, E>)>,
    each: &mut impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let mut early = std::collections::BTreeMap::new();
    let mut due = 0;
    for (item, result) in receiver {
        early.insert(item, result?);
        while let Some(result) = early.remove(&due) {
            each(due, result)?;
            due += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let mut seen = Vec::new();
        let job = |(): &(), item: usize| {
            // the later a job, the sooner it finishes
            std::thread::sleep(std::time::Duration::from_micros(200 * (20 - item as u64)));
            Ok(item * item)
        };
        in_order::<_, _, Error>(&mut [(), (), ()], 20, job, |item, square| {
            seen.push((item, square));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, (0..20).map(|item| (item, item * item)).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_ends_the_work_with_an_error() {
        let begun = AtomicUsize::new(0);
        let job = |(): &(), item: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            assert!(item != 3, "this panic is part of the test");
            std::thread::sleep(std::time::Duration::from_millis(1));
            Ok(item)
        };
        let outcome = in_order::<_, _, Error>(&mut [(), ()], 10_000, job, |_, _| Ok(()));
        assert!(outcome.unwrap_err().to_string().contains("a thread panicked"));
        assert!(begun.into_inner() < 10_000, "no new job is begun");
    }

    #[test]
    fn an_error_ends_the_work_and_comes_back() {
        let fault = || Error::worker("no");
        let failing_job =
            in_order(&mut [(), ()], 50, |(), i| if i == 7 { Err(fault()) } else { Ok(i) }, |_, _| Ok(()));
        assert_eq!(failing_job.unwrap_err().to_string(), "the computation failed: no");
        let mut delivered = 0;
        let failing_receiver = in_order(
            &mut [(), ()],
            50,
            |(), i| Ok(i),
            |item, _| {
                delivered += 1;
                if item == 3 { Err(fault()) } else { Ok(()) }
            },
        );
        assert!(failing_receiver.is_err());
        assert_eq!(delivered, 4);
    }
}
