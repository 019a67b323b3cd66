//! What the signature beside a result file says of it: data, machine, and whether its last run came to an end.
use std::path::Path;

use records::{Identity, Provenance, Signature};

use crate::Error;
use crate::estimate::Estimate;
use crate::number::count;
use crate::sweep::title_of;

/// Where the rows of a file come from, as far as there is a signature.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<Signature>);

impl Origin {
    /// Of the rows in the CSV file `path`.
    ///
    /// # Errors
    /// If there is a signature that cannot be read.
    pub fn beside(path: &Path) -> Result<Self, Error> {
        Ok(Self(Signature::read(&Signature::path_beside(path))?))
    }

    /// What the numbers depend on; absent without a signature.
    pub fn identity(&self) -> Option<&Identity> {
        self.0.as_ref().map(|signature| &signature.identity)
    }

    /// Subject and split as a reader should see them: `demo-translation (demo language), test`.
    pub fn title(&self, subject: &str) -> String {
        title_of(subject, self.identity())
    }

    /// On what data and how importance was estimated.
    pub fn estimate(&self) -> Estimate {
        self.identity().map_or(Estimate::default(), Estimate::of)
    }

    /// Whether the last run that added rows was killed, or is going on still.
    pub fn is_unfinished(&self) -> bool {
        self.runs().last().is_some_and(|run| run.duration_seconds.is_none())
    }

    /// The machines of all runs and the number format: `cpu with 2 threads (linux x86_64), f32`.
    pub fn machine(&self) -> Option<String> {
        let mut machines: Vec<String> = Vec::new();
        for run in self.runs() {
            let threads = count(run.threads, "thread");
            let machine = format!("{} with {threads} ({})", run.device, run.platform);
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
        let precision = self.identity().map(|identity| identity.precision.as_str());
        let precision = precision.filter(|precision| !precision.is_empty());
        let precision = precision.map_or(String::new(), |precision| format!(", {precision}"));
        (!machines.is_empty()).then(|| machines.join(" and ") + &precision)
    }

    fn runs(&self) -> &[Provenance] {
        self.0.as_ref().map_or(&[], |signature| &signature.runs)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The origin of rows with this identity, by one run with 2 threads that took a second, or was killed.
    pub(crate) fn origin(identity: Identity, is_finished: bool) -> Origin {
        let run = Provenance {
            platform: "linux x86_64".to_owned(),
            duration_seconds: is_finished.then_some(1.0),
            ..Provenance::collect("cpu", 2, Default::default())
        };
        Origin(Some(Signature::new(identity, run)))
    }

    #[test]
    fn each_machine_is_named_once() {
        let identity = Identity { precision: "f32".to_owned(), ..Identity::new("any", "demo-x") };
        let Origin(signature) = origin(identity, true);
        let mut signature = signature.unwrap();
        let other = Provenance { device: "cuda:0".to_owned(), threads: 1, ..signature.runs[0].clone() };
        signature.runs.extend([signature.runs[0].clone(), other]);
        let expected = "cpu with 2 threads (linux x86_64) and cuda:0 with 1 thread (linux x86_64), f32";
        assert_eq!(Origin(Some(signature)).machine().unwrap(), expected);
        assert_eq!(Origin::default().machine(), None);
    }

    /// The run before was killed too, but that one has gone on where it stopped.
    #[test]
    fn only_the_last_run_must_have_come_to_its_end() {
        let of = |runs: &[bool]| {
            let run = |&is_finished: &bool| origin(Identity::new("any", "x"), is_finished).0.unwrap();
            let mut signature = run(&true);
            signature.runs = runs.iter().flat_map(|is_finished| run(is_finished).runs).collect();
            Origin(Some(signature)).is_unfinished()
        };
        assert!(of(&[true, false]) && !of(&[false, true]) && !of(&[]));
        assert!(!Origin::default().is_unfinished());
    }
}
