//! transformers in a separate Python process, which runs its task on request.
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::Context;

/// A running `peer.py`.
pub struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the process with a task, on our device.
    ///
    /// # Errors
    /// A message if Python or a package is missing, or the task runs on CPUs only.
    pub fn start(context: &Context, mut task: Value) -> Result<Self, String> {
        let python = &context.args.python;
        task["device"] = context.machine.device_name().into();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ratios/peer.py");
        let mut process = Command::new(python)
            .arg(script)
            .env_remove("LD_LIBRARY_PATH") // Python's torch brings its own libraries
            .env_remove("LD_PRELOAD")
            .env_remove("OMP_WAIT_POLICY") // keeps the default that its users have
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{python}: {error}"))?;
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut peer = Self { process, input, output };
        match peer.ask(&task.to_string()).as_str() {
            "ready" => Ok(peer),
            "" => Err(format!("{python} failed, see its message above")),
            why => Err(why.to_owned()),
        }
    }

    /// Does the task once; returns the seconds that it took.
    pub fn seconds(&mut self) -> f64 {
        self.ask("again").parse().unwrap()
    }

    fn ask(&mut self, line: &str) -> String {
        // a process that has ended yields an empty answer below
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
