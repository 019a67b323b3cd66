//! `.setup/libtorch.py`, by its own tests in Python.
use std::path::Path;
use std::process::Command;

#[test]
fn the_tests_of_the_set_up_script_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.setup");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let run = Command::new(&python)
        .args(["-B", "-m", "unittest", "test_libtorch"])
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("the set-up needs Python, but `{python}` does not run: {error}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
