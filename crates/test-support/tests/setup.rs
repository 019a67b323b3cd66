//! Runs the Python tests of `.setup/libtorch.py` and of the wheel's package.
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

fn run_python_tests(folder: &str, arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let run = Command::new(&python)
        .args(["-B", "-m", "unittest"])
        .args(arguments)
        .env("HEADCOUNT_PLOTTING", cargo_bin("plotting"))
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("the set-up needs Python, but `{python}` does not run: {error}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn the_tests_of_the_set_up_script_pass() {
    run_python_tests(".setup", &["test_libtorch"]);
}

#[test]
fn the_tests_of_the_python_package_pass() {
    run_python_tests("crates/wheel/python", &["discover", "-s", "tests"]);
}
