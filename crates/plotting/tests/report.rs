//! Tests the binary on the synthetic results of `test-support`, and on copies with hostile names and texts.
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]

use std::fs;
use std::path::{Path, PathBuf};

use records::AblationRow;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;
use tempfile::TempDir;
use test_support::{copy_files, program, synthetic_results};

const HOSTILE: &str = "<img src=x onerror=alert(1)>&\"'";

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Edits a signature.
fn sign(path: &Path, change: impl Fn(&mut Value)) {
    let mut signature: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut signature);
    fs::write(path, signature.to_string()).unwrap();
}

/// Returns exit code and stderr of a command in the folder that contains `results`.
fn run(folder: &TempDir, arguments: &[&str]) -> (i32, String) {
    let output = program("report", folder.path()).args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn page(folder: &TempDir, name: &str) -> Html {
    Html::parse_document(&fs::read_to_string(folder.path().join("results").join(name)).unwrap())
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn text(page: &Html, selector: &str) -> String {
    all(page, selector).into_iter().flat_map(|element| element.text()).collect()
}

/// Checks what every page must satisfy, with an HTML parser.
fn check(page: &Html, name: &str) {
    assert!(page.errors.is_empty(), "{name}: {:?}", page.errors);
    let levels =
        all(page, "h1, h2, h3").into_iter().map(|heading| heading.value().name()[1..].parse::<u8>().unwrap());
    let levels: Vec<_> = levels.collect();
    assert!(levels[0] == 1 && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
    assert_eq!(all(page, "h1").len(), 1, "{name}");
    for landmark in ["header", "main", "footer"] {
        assert_eq!(all(page, landmark).len(), 1, "{name}: {landmark}");
    }
    let mut ids: Vec<_> = all(page, "[id]").into_iter().map(|element| element.attr("id").unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{name}: an id occurs twice");
    for table in all(page, ".table table") {
        let inside = |selector: &str| table.select(&Selector::parse(selector).unwrap()).count();
        let columns = inside(".columns th");
        assert!(inside("caption") == 1 && inside("th:not([scope])") == 0, "{name}: {}", table.html());
        for row in table.select(&Selector::parse("tbody tr").unwrap()) {
            assert_eq!(row.child_elements().count(), columns, "{name}: {}", row.html());
        }
    }
    let pictures = all(page, "svg").len();
    assert_eq!(all(page, "figure svg[role=img] > title").len(), pictures, "{name}: a figure without a title");
    for link in all(page, "a[href^='#']") {
        let target = &link.attr("href").unwrap()[1..];
        assert!(ids.contains(&target), "{name}: no #{target}");
    }
    let outside = all(page, "[src], link, iframe, object, a[href^=http]");
    assert!(outside.is_empty(), "{name}: needs a network");
    let policy = all(page, "meta[http-equiv=Content-Security-Policy]")[0].attr("content").unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("http"), "{policy}");
}

#[test]
fn all_setups_have_a_report_and_an_index_links_to_them() {
    let folder = synthetic_results();
    let (code, stderr) = run(&folder, &["--all"]);
    assert_eq!(code, 0, "{stderr}");
    let index = page(&folder, "report.html");
    check(&index, "index");
    let links: Vec<_> =
        all(&index, "tbody a").into_iter().map(|link| link.attr("href").unwrap().to_owned()).collect();
    assert_eq!(
        links,
        ["tiny-inference", "tiny-language", "tiny-translation"].map(|name| format!("{name}/report.html"))
    );
    for link in &links {
        let report = page(&folder, link);
        check(&report, link);
        assert!(all(&report, "figure").len() > 2, "{link}");
        assert!(all(&report, "#heads .map button").len() > 4, "{link}");
    }
    let comparison = page(&folder, "comparison.html");
    check(&comparison, "comparison");
    assert_eq!(all(&comparison, "figure").len(), 2);
}

/// The report shows the contents of the files: the table of all heads has a row for each, with its numbers.
#[test]
fn every_head_has_a_button_and_a_row_with_its_numbers() {
    let folder = synthetic_results();
    assert_eq!(run(&folder, &["tiny-translation"]).0, 0);
    let report = page(&folder, "tiny-translation/report.html");
    let buttons: Vec<_> = all(&report, ".map button")
        .into_iter()
        .map(|head| head.attr("data-head").unwrap().to_owned())
        .collect();
    let table = all(&report, "#heads .table table")[0];
    let select = |selector: &str| Selector::parse(selector).unwrap();
    let rows: Vec<_> = table.select(&select("tbody tr")).collect();
    assert_eq!(buttons.len(), rows.len());
    let csv = folder.path().join("results/tiny-translation/ablate-one.csv");
    let measured: Vec<AblationRow> = records::read_complete(&csv).unwrap();
    assert_eq!(measured.len(), rows.len());
    for own in measured {
        let name = own.head_id().to_string();
        let row =
            rows.iter().find(|row| row.select(&select("th")).next().unwrap().text().eq([name.as_str()]));
        let cell = row.unwrap().select(&select("td")).next().unwrap();
        let shown: f64 = cell.attr("data-value").unwrap().parse().unwrap();
        assert!((shown - own.score_delta).abs() < 1e-12, "{name}: {shown}");
        assert!(buttons.contains(&name), "{name} has no button");
    }
}

#[test]
fn names_and_texts_with_markup_are_escaped() {
    let folder = synthetic_results();
    let results = folder.path().join("results");
    copy_files(&results.join("tiny-language"), &results.join(HOSTILE));
    for file in fs::read_dir(results.join(HOSTILE)).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "json") {
            sign(&file.path(), |own| own["identity"]["subject"] = HOSTILE.into());
        }
    }
    let script = "</script><script>alert(2)</script>\u{1b}[31m\u{202e}";
    let toml = format!("description = '''{HOSTILE} {{{{ 7 * 7 }}}}'''\n# {script}\n")
        .replace(['\u{1b}', '\u{202e}'], "");
    fs::write(folder.path().join("experiments").join(format!("{HOSTILE}.toml")), &toml).unwrap();
    sign(&results.join(HOSTILE).join("ablate-one-questions.json"), |own| {
        own["identity"]["arguments"]["groups"][0]["name"] = script.into();
        own["runs"][0]["command"] = serde_json::json!(["ablate-one", script]);
    });
    let (code, stderr) = run(&folder, &["--all"]);
    assert_eq!(code, 0, "{stderr}");
    let name = format!("{HOSTILE}/report.html");
    let report = page(&folder, &name);
    check(&report, "hostile");
    assert_eq!(text(&report, "h1"), HOSTILE);
    assert!(text(&report, "header p").contains(&format!("{HOSTILE} {{{{ 7 * 7 }}}}")));
    assert!(text(&report, "#made pre").contains("</script><script>alert(2)"));
    let everything = text(&report, "main");
    assert!(everything.contains("</script><script>alert(2)") && !everything.contains(['\u{1b}', '\u{202e}']));
    assert_eq!((all(&report, "img").len(), all(&report, "script").len()), (0, 1));
    let index = page(&folder, "report.html");
    check(&index, "hostile index");
    assert!(text(&index, "tbody").contains(HOSTILE));
    let link = all(&index, "tbody a")[0].attr("href").unwrap().to_owned();
    assert_eq!(link, "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%26%22%27/report.html");
}

#[test]
fn torn_and_invalid_files_are_named_and_never_shown_as_zero() {
    let folder = synthetic_results();
    let file = |name: &str| folder.path().join("results/tiny-inference").join(name);
    // a run in progress: no checksum yet, and a torn last line
    let unfinished = |name: &str| sign(&file(name), |own| own["complete"] = Value::Null);
    unfinished("ablate-one.json");
    let sweep = fs::read_to_string(file("ablate-one.csv")).unwrap();
    fs::write(file("ablate-one.csv"), &sweep[..sweep.len() - 9]).unwrap();
    // an edited file, a missing column, and the signature of another file
    let curve = fs::read_to_string(file("iterative-prune.csv")).unwrap();
    fs::write(file("iterative-prune.csv"), curve.replacen("91", "19", 1)).unwrap();
    unfinished("speed-bench.json");
    let speed = fs::read_to_string(file("speed-bench.csv")).unwrap();
    fs::write(file("speed-bench.csv"), speed.replacen("batch_size", "batch", 1)).unwrap();
    fs::copy(file("speed-bench.json"), file("ablate-all-but-one.json")).unwrap();
    fs::remove_file(file("compare-methods.csv")).unwrap(); // in the same chapter as the curve
    let (code, stderr) = run(&folder, &["tiny-inference"]);
    assert_eq!(code, 0, "{stderr}");
    let report = page(&folder, "tiny-inference/report.html");
    check(&report, "torn");
    let faults = text(&report, ".warning");
    for part in [
        "the last line of `ablate-one.csv` is torn",
        "iterative-prune.csv`",
        "its checksum differs from the signature's",
        "speed-bench.csv`",
        "ablate-all-but-one.csv` has results of `speed-bench`",
    ] {
        assert!(faults.contains(part) && stderr.contains(part), "{part}: {faults}{stderr}");
    }
    let (heads, rows) = (sweep.lines().count() - 1, all(&report, "#heads .table tbody tr").len());
    assert_eq!(rows, heads - 1, "the torn head has no row");
    assert!(all(&report, "#speed, #many-heads-at-once").is_empty(), "unreadable results are not drawn");
}

#[test]
fn the_exit_code_is_1_if_nothing_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("results/empty")).unwrap();
    for (argument, expected) in [
        ("empty", "no results of `empty` can be read: there are no results"),
        ("--all", "has no results that can be read"),
    ] {
        let (code, stderr) = run(&folder, &[argument]);
        assert!(code == 1 && stderr.contains(expected), "{argument}: {stderr}");
    }
    let (code, stderr) = run(&folder, &["empty", "--all"]);
    assert!(code == 2 && stderr.contains("cannot be used with"), "{stderr}");
}

/// A typo must not cost results.
#[test]
fn only_an_html_file_can_be_replaced() {
    let folder = synthetic_results();
    let csv = folder.path().join("results/tiny-inference/ablate-one.csv");
    let before = fs::read(&csv).unwrap();
    let (code, stderr) = run(&folder, &["tiny-inference", "--out", csv.to_str().unwrap()]);
    assert!(code == 2 && stderr.contains("name of an HTML file must end in `.html`"), "{stderr}");
    assert_eq!(fs::read(&csv).unwrap(), before);
    let taken = folder.path().join("taken.html");
    fs::create_dir(&taken).unwrap();
    let (code, stderr) = run(&folder, &["tiny-inference", "--out", taken.to_str().unwrap()]);
    assert!(code == 1 && stderr.contains("not a regular file"), "{stderr}");
}

/// Each report on the committed results is a valid page of less than 4 MB.
#[test]
fn reports_of_the_committed_results_are_valid_and_small() {
    let out = tempfile::tempdir().unwrap();
    let subjects =
        fs::read_dir(repository("results")).unwrap().flatten().filter(|entry| entry.path().is_dir());
    for subject in subjects.map(|entry| entry.file_name().into_string().unwrap()) {
        let file = out.path().join("page.html");
        program("report", &repository("")).args([subject.as_str(), "--out"]).arg(&file).assert().success();
        let size = fs::metadata(&file).unwrap().len();
        assert!(size < 4 << 20, "{subject}: {size} bytes");
        check(&Html::parse_document(&fs::read_to_string(&file).unwrap()), &subject);
    }
}
