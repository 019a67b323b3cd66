//! Reads result rows, which `records` has checked, and answers questions about them. Nothing is drawn here.
//!
//! [`source`] finds result files, [`Results`] holds the rows of one file, and a module per experiment interprets them. [`judge`] decides
//! which heads are needed or dispensable, [`paper`] holds all published numbers, and [`SubjectResults`] everything measured on one setup. A
//! fault in one file does not prevent others from being shown: [`LeftOut`].
pub mod ablation_kinds;
pub mod ablations;
pub mod best_heads;
pub mod contrasts;
pub mod dynamics;
pub mod error;
pub mod functions;
pub mod gates;
pub mod importance;
pub mod judge;
pub mod method_comparison;
pub mod metric;
pub mod origin;
pub mod pair;
pub mod paper;
pub mod pruning;
pub mod replicates;
pub mod results;
pub mod retrained;
pub mod same_model;
pub mod segments;
pub mod source;
pub mod speed;
pub mod subject_file;
pub mod subject_results;
pub mod tasks;
pub mod time;

pub use ablation_kinds::{Kinds, KindsOfCurves};
pub use ablations::Ablations;
pub use best_heads::BestHeads;
pub use contrasts::{Contrasts, Draws};
pub use dynamics::{Checkpoint, Dynamics};
pub use error::{Error, LeftOut, Result};
pub use functions::{Functions, Relevance};
pub use gates::Gates;
pub use importance::{HeadScore, Importance};
pub use judge::{Adjustment, Criterion, Judge, RuleKind, parse_alpha};
pub use method_comparison::Methods;
pub use metric::Metric;
pub use pair::Pair;
pub use paper::PAPER;
pub use pruning::{Pruning, Removable, Series, ShareWithinMargin};
pub use records::Verdicts;
pub use replicates::Replicates;
pub use results::Results;
pub use retrained::Retrained;
pub use segments::SegmentChange;
pub use source::{Folders, ResultFile, Source, experiment};
pub use speed::Speed;
pub use subject_file::SubjectFile;
pub use subject_results::SubjectResults;
pub use tasks::Pairing;

#[cfg(test)]
pub(crate) fn tiny() -> source::Folders {
    let folder = |name| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-support").join(name);
    source::Folders { results: folder("results"), experiments: folder("experiments") }
}

/// Edits the identity in a signature.
#[cfg(test)]
type Change<'a> = &'a dyn Fn(&mut serde_json::Value);

/// Copies files of a synthetic setup into a temporary folder: source file, new name, and an edit of the signature.
#[cfg(test)]
fn copied(subject: &str, files: &[(&str, &str, Change<'_>)]) -> (tempfile::TempDir, source::Folders) {
    let folder = tempfile::tempdir().unwrap();
    for (from, name, change) in files {
        let from = tiny().results.join(subject).join(from).with_extension("csv");
        let path = folder.path().join(subject).join(name).with_extension("csv");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(&from, &path).unwrap();
        let text = std::fs::read_to_string(from.with_extension("json")).unwrap();
        let mut signature: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(&mut signature["identity"]);
        std::fs::write(path.with_extension("json"), signature.to_string()).unwrap();
    }
    let folders = source::Folders { results: folder.path().to_owned(), ..tiny() };
    (folder, folders)
}
