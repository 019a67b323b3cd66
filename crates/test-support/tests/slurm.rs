//! The Slurm script: run as by Slurm, with a program that waits for signals in place of an experiment; and on Slurm itself if available.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;
use test_support::{TRANSLATOR, folder};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/slurm/shards.sh")
}

/// Writes a program into `folder`/bin.
fn install(folder: &Path, name: &str, text: &str) {
    let path = folder.join("bin").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Starts the script as task 2 of the array job 7, with 4 tasks unless `shards` is given.
fn task(folder: &Path, shards: Option<&str>) -> Child {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.arg(script()).args(["ablate-one", "demo", "--limit", "5"]).current_dir(folder).env("PATH", path);
    command.env("PROGRAMS", "bin");
    command.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "2").env("SLURM_ARRAY_TASK_COUNT", "4");
    match shards {
        Some(shards) => command.env("SHARDS", shards),
        None => command.env_remove("SHARDS"),
    };
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Makes a folder in which the experiment runs until it gets a signal and then exits as experiments do; `scontrol` records its arguments.
fn waiting() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = "#!/bin/sh\ntrap 'echo USR1 > signal; exit 75' USR1\ntrap 'echo TERM > signal; exit 75' TERM\n\
                 echo \"$@\" > begun.partial; mv begun.partial begun\nwhile :; do sleep 0.01; done\n";
    install(folder.path(), "ablate-one", program);
    install(folder.path(), "scontrol", "#!/bin/sh\necho \"$@\" > scontrol\n");
    folder
}

fn text(folder: &TempDir, file: &str) -> Option<String> {
    fs::read_to_string(folder.path().join(file)).ok().map(|text| text.trim().to_owned())
}

/// Sends `signal` to the running task and returns its exit code.
fn ended_by(folder: &TempDir, signal: &str) -> Option<i32> {
    let mut task = task(folder.path(), None);
    while text(folder, "begun").is_none() {
        assert!(task.try_wait().unwrap().is_none(), "the task has ended before its program");
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("kill").args(["-s", signal, &task.id().to_string()]).status().unwrap();
    assert!(sent.success());
    task.wait().unwrap().code()
}

#[test]
fn a_task_that_runs_out_of_time_ends_its_program_and_requeues_itself() {
    let folder = waiting();
    assert_eq!(ended_by(&folder, "USR1"), Some(75));
    assert_eq!(text(&folder, "begun").as_deref(), Some("demo --limit 5 --shard 2/4"));
    assert_eq!(text(&folder, "signal").as_deref(), Some("USR1"));
    assert_eq!(text(&folder, "scontrol").as_deref(), Some("requeue 7_2"));
}

/// Slurm itself requeues preempted tasks, and cancelled ones must not come back.
#[test]
fn a_task_that_is_preempted_or_cancelled_ends_its_program_and_no_more() {
    let folder = waiting();
    assert_eq!(ended_by(&folder, "TERM"), Some(75));
    assert_eq!((text(&folder, "signal").as_deref(), text(&folder, "scontrol")), (Some("TERM"), None));
}

#[test]
fn a_task_ends_as_its_program_does() {
    for code in [0, 1, 2, 137] {
        let folder = tempfile::tempdir().unwrap();
        let program = format!("#!/bin/sh\necho \"$@\" > begun\nexit {code}\n");
        install(folder.path(), "ablate-one", &program);
        assert_eq!(task(folder.path(), Some("9")).wait().unwrap().code(), Some(code));
        assert!(text(&folder, "begun").unwrap().ends_with("--shard 2/9"), "some tasks of nine");
    }
}

/// Returns true if jobs can be submitted; otherwise reports that the test is skipped.
fn has_slurm() -> bool {
    let nodes = Command::new("sinfo").args(["--noheader", "--states=idle,mixed"]).output();
    let is_there = nodes.is_ok_and(|nodes| nodes.status.success() && !nodes.stdout.is_empty());
    if !is_there {
        eprintln!("NOT TESTED: there is no Slurm with a node that is idle");
    }
    is_there
}

#[test]
fn an_array_of_jobs_is_merged_into_the_results_of_one_machine() {
    if !has_slurm() {
        return;
    }
    let (whole, array) = (folder(TRANSLATOR), folder(TRANSLATOR));
    for folder in [&whole, &array] {
        let mut train = test_support::command("train-subject", folder.path());
        train.assert().success();
    }
    let options = ["tiny.toml", "--quiet", "--threads", "1", "--resamples", "99"];
    let submitted = Command::new("sbatch")
        .args(["--wait", "--array=1-3"])
        .arg(script())
        .arg("ablate-one")
        .args(options)
        .current_dir(array.path())
        .env("PROGRAMS", cargo_bin("ablate-one").parent().unwrap())
        .output()
        .unwrap();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let run = |program: &str, folder: &TempDir, arguments: &[&str]| {
        let status = Command::new(cargo_bin(program)).current_dir(folder.path()).args(arguments).status();
        assert!(status.unwrap().success(), "{program}");
    };
    run("merge", &array, &["tiny"]);
    run("ablate-one", &whole, &options);
    for file in ["results/tiny/ablate-one.csv", "results/tiny/ablate-one.segments.csv.gz"] {
        assert_eq!(test_support::read(array.path(), file), test_support::read(whole.path(), file), "{file}");
    }
}
