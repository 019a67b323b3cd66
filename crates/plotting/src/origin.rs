//! What the signature beside a result file says of it: data, tests, machine, and whether it was completed.
use std::path::Path;

use records::rules::MARGIN_PERCENT;
use records::{Complete, Identity, Measured, Provenance, Signature};

use crate::Error;
use crate::attention::Attention;
use crate::estimate::Estimate;
use crate::number::count;

/// Neighbouring segments of a split that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentGroup {
    /// Such as `adjunct_island`.
    pub name: String,
    /// How many there are, at least one.
    pub segments: usize,
}

/// Which models results are of, as far as tables and figures differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A decoder-only language model: its `self` attention is causal, and the paper has no numbers of such models.
    Language,
    /// A translator, or a classifier like BERT.
    Other,
}

/// What stands in the place of numbers from the paper, which has none of language models.
pub const OPEN_QUESTION: &str = "who name language models as an open question";

impl Model {
    /// What an attention type attends from and to, for captions.
    pub fn description(self, attention: Attention) -> &'static str {
        match (self, attention) {
            (Self::Language, Attention::SelfAttention) => "causal self-attention",
            _ => attention.description(),
        }
    }
}

/// Where the rows of a file come from, as far as there is a signature.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<Signature>);

impl Origin {
    /// Of the rows in the CSV file `path`.
    ///
    /// # Errors
    /// If there is a signature that cannot be read, or it says that these are the rows of one shard.
    pub fn beside(path: &Path) -> Result<Self, Error> {
        let signature = Signature::read(&Signature::path_beside(path))?;
        match signature.as_ref().and_then(|signature| signature.part.as_ref()) {
            Some(part) => Err(Error::Shard { path: path.to_owned(), shard: part.shard }),
            None => Ok(Self(signature)),
        }
    }

    /// What the numbers depend on; absent without a signature.
    pub fn identity(&self) -> Option<&Identity> {
        self.0.as_ref().map(|signature| &signature.identity)
    }

    /// Split that was scored, if it is known.
    pub fn split(&self) -> Option<&str> {
        self.identity().map(|identity| identity.split.as_str()).filter(|split| !split.is_empty())
    }

    /// Which model the rows are of; without a signature, none of language.
    pub fn model(&self) -> Model {
        let task = self.identity().and_then(|identity| identity.arguments.get("task")?.as_str());
        if task == Some("language-modelling") { Model::Language } else { Model::Other }
    }

    /// Number of key-value heads of a layer, where several heads share one.
    pub fn key_value_heads(&self) -> Option<usize> {
        let argument = self.identity()?.arguments.get("key_value_heads")?;
        argument.as_u64()?.try_into().ok().filter(|&heads| heads > 0)
    }

    /// The groups of the segments, in the order of the split; absent unless all have a name and segments.
    pub fn groups(&self) -> Option<Vec<SegmentGroup>> {
        let groups = self.identity()?.arguments.get("groups")?.as_array()?.iter().map(|group| {
            let name = group.get("name")?.as_str()?.to_owned();
            let segments = group.get("segments")?.as_u64()?.try_into().ok()?;
            (segments > 0).then_some(SegmentGroup { name, segments })
        });
        groups.collect::<Option<Vec<_>>>().filter(|groups| !groups.is_empty())
    }

    /// What the statistics of segments are, if any are stored.
    pub fn measured(&self) -> Option<&Measured> {
        self.0.as_ref()?.measured.as_ref()
    }

    /// Segments scored from the start of the split; all if absent.
    pub fn limit(&self) -> Option<usize> {
        self.identity().and_then(|identity| identity.limit)
    }

    /// Resamples of the bootstrap, if they are known.
    pub fn resamples(&self) -> Option<usize> {
        Some(self.0.as_ref()?.testing?.resamples)
    }

    /// The loss that counts as safe, in percent of the score with all heads.
    pub fn margin_percent(&self) -> f64 {
        let testing = self.0.as_ref().and_then(|signature| signature.testing);
        testing.map_or(MARGIN_PERCENT, |testing| testing.margin_percent)
    }

    /// What the file held when it was complete.
    pub fn complete(&self) -> Option<&Complete> {
        self.0.as_ref()?.complete.as_ref()
    }

    /// Subject and split as a reader should see them: `demo-translation (demo language), test`.
    pub fn title(&self, subject: &str) -> String {
        let parts = [name(subject)].into_iter().chain(data_parts(self.split(), self.limit()));
        let state = self.is_unfinished().then(|| "not finished".to_owned());
        parts.chain(state).collect::<Vec<_>>().join(", ")
    }

    /// Split and number of segments that were scored, as a reader should see them; absent if the split is not named.
    pub fn data(&self) -> Option<String> {
        let split = self.split()?;
        Some(data_parts(Some(split), self.limit()).collect::<Vec<_>>().join(", "))
    }

    /// A sentence where the signature cannot vouch for the rows of the CSV file with this name.
    pub fn remark(&self, file: &str) -> Option<String> {
        match &self.0 {
            None => Some(format!("split unknown: no signature beside `{file}`")),
            Some(_) if self.is_unfinished() => {
                Some(format!("`{file}` is not finished: the run was killed or is still going"))
            }
            Some(Signature { complete: None, .. }) => {
                Some(format!("`{file}` is not checked: it is older than checksums of complete files"))
            }
            Some(_) => None,
        }
    }

    /// On what data and how importance was estimated.
    pub fn estimate(&self) -> Estimate {
        self.identity().map_or(Estimate::default(), Estimate::of)
    }

    /// Whether the last run that added rows was killed, or is going on still.
    pub fn is_unfinished(&self) -> bool {
        self.complete().is_none() && self.runs().last().is_some_and(|run| run.duration_seconds.is_none())
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

/// Whether a subject's data is the synthetic language of this project.
pub(crate) fn is_demo(subject: &str) -> bool {
    subject.starts_with("demo-")
}

/// Subject as a reader should see it.
pub(crate) fn name(subject: &str) -> String {
    let demo = if is_demo(subject) { " (demo language)" } else { "" };
    format!("{subject}{demo}")
}

/// Splits and number of segments as a reader should see them.
pub(crate) fn data_parts(split: Option<&str>, limit: Option<usize>) -> impl Iterator<Item = String> {
    let limit = limit.map(|limit| format!("first {limit} segments"));
    split.map(str::to_owned).into_iter().chain(limit)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use records::Testing;

    /// The origin of rows that were tested with so many resamples.
    pub(crate) fn tested(resamples: usize) -> Origin {
        let Origin(signature) =
            origin(Identity { split: "test".to_owned(), ..Identity::new("any", "demo-x") }, true);
        let testing = Testing { resamples, seed: 1, margin_percent: 2.0 };
        Origin(signature.map(|signature| Signature { testing: Some(testing), ..signature }))
    }

    /// The origin of rows of a language model with so many key-value heads.
    pub(crate) fn of_language_model(key_value_heads: u64) -> Origin {
        let arguments = [
            ("task".to_owned(), "language-modelling".into()),
            ("key_value_heads".to_owned(), key_value_heads.into()),
        ];
        let identity = Identity { split: "test".to_owned(), ..Identity::new("any", "tiny-lm") };
        origin(Identity { arguments: arguments.into(), ..identity }, true)
    }

    /// The origin of rows with this identity, by one run with 2 threads that took a second, or was killed.
    pub(crate) fn origin(identity: Identity, is_finished: bool) -> Origin {
        let run = Provenance {
            platform: "linux x86_64".to_owned(),
            duration_seconds: is_finished.then_some(1.0),
            ..Provenance::collect("cpu", 2, Default::default())
        };
        let complete = Complete { rows: 1, sha256: "ab12".to_owned(), segments_sha256: None };
        Origin(Some(Signature { complete: is_finished.then_some(complete), ..Signature::new(identity, run) }))
    }

    #[test]
    fn a_file_that_cannot_be_checked_is_named() {
        let remark = |origin: &Origin| origin.remark("a.csv").unwrap_or_default();
        let Origin(signature) = origin(Identity::new("any", "demo-x"), true);
        let older = Origin(signature.clone().map(|signature| Signature { complete: None, ..signature }));
        assert_eq!(remark(&Origin(signature)), "");
        assert!(remark(&older).contains("`a.csv` is not checked"), "{}", remark(&older));
        let running = origin(Identity::new("any", "demo-x"), false);
        assert!(remark(&running).contains("`a.csv` is not finished"));
        assert_eq!(running.title("x"), "x, not finished");
        assert!(remark(&Origin::default()).contains("no signature"));
    }

    #[test]
    fn a_language_model_is_known_by_its_task() {
        let origin = of_language_model(2);
        assert_eq!((origin.model(), origin.key_value_heads()), (Model::Language, Some(2)));
        assert_eq!(of_language_model(0).key_value_heads(), None);
        assert_eq!((Origin::default().model(), Origin::default().key_value_heads()), (Model::Other, None));
        let descriptions =
            [Model::Language, Model::Other].map(|model| model.description(Attention::SelfAttention));
        assert_eq!(descriptions, ["causal self-attention", "self-attention"]);
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
            signature.complete = None;
            signature.runs = runs.iter().flat_map(|is_finished| run(is_finished).runs).collect();
            Origin(Some(signature)).is_unfinished()
        };
        assert!(of(&[true, false]) && !of(&[false, true]) && !of(&[]));
        assert!(!Origin::default().is_unfinished());
    }
}
