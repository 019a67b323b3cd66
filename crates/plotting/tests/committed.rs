//! Checks what is committed under `results/`: made by code that anyone can check out, and no more than the pages need.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use records::Signature;
use test_support::skipped;

const MAX_FILES: usize = 900;
const MAX_BYTES: u64 = 30_100_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the lines that git prints; `None` outside a repository.
fn git(arguments: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("git").arg("-C").arg(root()).args(arguments).output().ok()?;
    let lines = String::from_utf8(output.stdout).ok()?.lines().map(str::to_owned).collect();
    output.status.success().then_some(lines)
}

/// Returns the files below `results/` that git tracks, and new ones that are not ignored.
fn committed() -> Option<Vec<String>> {
    let mut files = git(&["ls-files", "--cached", "--others", "--exclude-standard", "results"])?;
    files.retain(|file| root().join(file).exists());
    Some(files)
}

#[test]
fn every_result_was_made_by_committed_code() {
    let Some(files) = committed() else {
        return skipped("this is no git repository");
    };
    let signatures = files.iter().filter(|file| file.ends_with(".json"));
    let read = |file: &String| serde_json::from_slice(&fs::read(root().join(file)).unwrap()).unwrap();
    let signatures: Vec<(&String, Signature)> = signatures.map(|file| (file, read(file))).collect();
    assert!(signatures.len() > 100);
    let runs = || signatures.iter().flat_map(|(file, own)| own.runs.iter().map(move |run| (file, run)));
    let modified: Vec<_> = runs().filter(|(_, run)| run.modified != Some(false)).collect();
    assert!(modified.is_empty(), "made with uncommitted changes: {modified:#?}");
    if git(&["rev-parse", "--is-shallow-repository"]) != Some(vec!["false".to_owned()]) {
        return skipped("a shallow clone does not have all commits");
    }
    let commits: BTreeSet<&str> = runs().filter_map(|(_, run)| run.commit.as_deref()).collect();
    let is_unknown = |commit: &&&str| git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_none();
    let unknown: Vec<_> = commits.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "no commits of this repository: {unknown:?}");
}

#[test]
fn results_are_few_and_figures_are_those_of_the_pages() {
    let Some(files) = committed() else {
        return skipped("this is no git repository");
    };
    let bytes: u64 = files.iter().map(|file| fs::metadata(root().join(file)).unwrap().len()).sum();
    assert!(files.len() <= MAX_FILES, "{} files", files.len());
    assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    let pages = ["../README", "README", "voita", "deciding", "summary", "../experiments/README"];
    let read = |page| fs::read_to_string(root().join("results").join(page).with_extension("md")).unwrap();
    let pages = pages.map(read).concat();
    let is_unused = |file: &&String| {
        let Some((folder, name)) = file.rsplit_once('/').filter(|(folder, _)| folder.ends_with("/figures"))
        else {
            return false;
        };
        // a figure comes with its caption
        let stem = name.rsplit_once('.').unwrap().0;
        let subject = folder.split('/').nth(1).unwrap();
        ["svg", "md", "png"].iter().all(|kind| !pages.contains(&format!("{subject}/figures/{stem}.{kind}")))
    };
    let unused: Vec<_> = files.iter().filter(is_unused).collect();
    assert!(unused.is_empty(), "no page shows these; `just figures` makes them: {unused:#?}");
}
