//! transformers in a Python process of its own, which works when it is told to.
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::Context;

/// `peer.py` at work.
pub struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it with a task, on the device that ours is on.
    ///
    /// # Errors
    /// In words, if there is no such Python, it lacks a package, or does the task on a CPU alone.
    pub fn start(context: &Context, mut task: Value) -> Result<Self, String> {
        let python = &context.args.python;
        task["device"] = context.machine.device_name().into();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ratios/peer.py");
        let mut process = Command::new(python)
            .arg(script)
            .env_remove("LD_LIBRARY_PATH") // torch of Python has libraries of its own
            .env_remove("LD_PRELOAD")
            .env_remove("OMP_WAIT_POLICY") // and waits as it does for its users
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{python}: {error}"))?;
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut peer = Self { process, input, output };
        match peer.ask(&task.to_string()).as_str() {
            "ready" => Ok(peer),
            "" => Err(format!("{python} failed, as it says above")),
            why => Err(why.to_owned()),
        }
    }

    /// Does the task once; returns the seconds that it took.
    pub fn seconds(&mut self) -> f64 {
        self.ask("again").parse().unwrap()
    }

    fn ask(&mut self, line: &str) -> String {
        // what a process that has ended says is nothing
        let _ = writeln!(self.input, "{line}");
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
