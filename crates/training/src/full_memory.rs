//! Out-of-memory errors of the machine or a GPU: libtorch throws, the bindings panic, and this module returns an error.
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::error::Error;

/// Runs work with tensors, and returns an error if libtorch runs out of memory. Other panics are passed on.
pub fn or_full_memory<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    keep_quiet();
    // What the work leaves half done is never used, since the error ends the run.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match Full::of(payload.as_ref()) {
        Some(Full { place }) => Err(Error::Invalid(format!(
            "the memory of the {place} is full: free some of it, or use fewer --threads or less --memory; finished \
             work is kept, and the same command resumes from there"
        ))
        .into()),
        None => panic::resume_unwind(payload),
    })
}

/// Memory that is full.
struct Full {
    place: &'static str,
}

impl Full {
    /// Recognises the message of a panic.
    fn of(payload: &(dyn Any + Send)) -> Option<Self> {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied())?;
        let is_of = |what: &str| text.contains(what);
        if is_of("CUDA out of memory") || is_of("CUDA error: out of memory") || is_of("ALLOC_FAILED") {
            return Some(Self { place: "GPU" });
        }
        is_of("DefaultCPUAllocator").then_some(Self { place: "machine" })
    }
}

/// Silences the messages of panics that become errors.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if Full::of(panic.payload()).is_none() {
                before(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind, Tensor};

    /// 2^48 bytes exceed the address space of a process.
    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let work = || Ok::<_, Error>(Tensor::ones([1 << 46], (Kind::Float, Device::Cpu)));
        let message = or_full_memory(work).unwrap_err().to_string();
        assert!(message.starts_with("the memory of the machine is full"), "{message}");
        let work = || -> Result<(), Error> {
            panic!(
                "called `Result::unwrap()` on an `Err` value: Torch(\"CUDA out of memory. Tried to allocate\")"
            )
        };
        let message = or_full_memory(work).unwrap_err().to_string();
        assert!(message.starts_with("the memory of the GPU is full"), "{message}");
    }

    #[test]
    fn any_other_panic_stays_one() {
        let work = || or_full_memory(|| -> Result<(), Error> { panic!("this panic is part of the test") });
        assert!(panic::catch_unwind(work).is_err());
        assert_eq!(or_full_memory(|| Ok::<_, Error>(7)).unwrap(), 7);
    }
}
