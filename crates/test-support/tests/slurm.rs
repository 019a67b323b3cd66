//! The Slurm script: run as by Slurm, with a program that waits for signals in place of an experiment; and on Slurm itself if available.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a step that fails should fail the test")]
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;
use test_support::{TRANSLATOR, program, read, skipped, with_model};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/slurm/shards.sh");

fn install(folder: &Path, name: &str, text: &str) {
    let path = folder.join("bin").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Starts the script as task 2 of the array job 7, with 4 tasks unless `shards` has another number.
fn task(folder: &Path, shards: &str) -> Child {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.arg(SCRIPT).args(["ablate-one", "demo", "--limit", "5"]).current_dir(folder).env("PATH", path);
    command.env("PROGRAMS", "bin").env("SHARDS", shards);
    command.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_ARRAY_TASK_ID", "2").env("SLURM_ARRAY_TASK_COUNT", "4");
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

/// Slurm itself requeues preempted tasks, and cancelled ones must not come back.
#[test]
fn a_task_that_must_stop_ends_its_program_and_requeues_itself_only_if_its_time_is_up() {
    for (signal, requeued) in [("USR1", Some("requeue 7_2")), ("TERM", None)] {
        let folder = waiting();
        let mut task = task(folder.path(), "");
        while text(&folder, "begun").is_none() {
            assert!(task.try_wait().unwrap().is_none(), "the task has ended before its program");
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill").args(["-s", signal, &task.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(task.wait().unwrap().code(), Some(75));
        assert_eq!(text(&folder, "begun").as_deref(), Some("demo --limit 5 --shard 2/4"));
        assert_eq!(text(&folder, "signal").as_deref(), Some(signal));
        assert_eq!(text(&folder, "scontrol").as_deref(), requeued);
    }
}

#[test]
fn a_task_ends_as_its_program_does() {
    for code in [0, 1, 2, 137] {
        let folder = tempfile::tempdir().unwrap();
        let program = format!("#!/bin/sh\necho \"$@\" > begun\nexit {code}\n");
        install(folder.path(), "ablate-one", &program);
        assert_eq!(task(folder.path(), "9").wait().unwrap().code(), Some(code));
        assert!(text(&folder, "begun").unwrap().ends_with("--shard 2/9"), "some tasks of nine");
    }
}

/// Runs on Slurm itself if jobs can be submitted.
#[test]
fn an_array_of_jobs_is_merged_into_the_results_of_one_machine() {
    let nodes = Command::new("sinfo").args(["--noheader", "--states=idle,mixed"]).output();
    if !nodes.is_ok_and(|nodes| nodes.status.success() && !nodes.stdout.is_empty()) {
        return skipped("there is no Slurm with a node that is idle");
    }
    let (whole, array) = (with_model(TRANSLATOR), with_model(TRANSLATOR));
    let options = ["tiny.toml", "--quiet", "--threads", "1", "--resamples", "99"];
    let mut submit = Command::new("sbatch");
    submit.args(["--wait", "--array=1-3"]).arg(SCRIPT).arg("ablate-one").args(options);
    submit.current_dir(array.path()).env("PROGRAMS", cargo_bin("ablate-one").parent().unwrap());
    let submitted = submit.output().unwrap();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    program("merge", array.path()).arg("tiny").assert().success();
    program("ablate-one", whole.path()).args(options).assert().success();
    for file in ["results/tiny/ablate-one.csv", "results/tiny/ablate-one.segments.csv.gz"] {
        assert_eq!(read(array.path(), file), read(whole.path(), file), "{file}");
    }
}
