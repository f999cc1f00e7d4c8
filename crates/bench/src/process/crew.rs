//! Worker processes seen from the bench: started, told, listened to, and never left behind.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use serde::Serialize;

use crate::process::place::Place;
use crate::process::worker::{SUBCOMMAND, Said};

/// A number of workers with one stream of reports.
pub(crate) struct Crew<R> {
    workers: Vec<Worker>,
    sender: Sender<(usize, R)>,
    reports: Receiver<(usize, R)>,
}

struct Worker {
    child: Child,
    input: Option<ChildStdin>,
}

impl<R> Default for Crew<R> {
    fn default() -> Self {
        let (sender, reports) = mpsc::channel();
        Self {
            workers: Vec::new(),
            sender,
            reports,
        }
    }
}

impl<R: Said> Crew<R> {
    /// Starts one more worker in `role` and says which it is in this crew.
    pub(crate) fn hire(
        &mut self,
        executable: &Path,
        role: &str,
        place: &Place,
        order: &impl Serialize,
    ) -> io::Result<usize> {
        let mut child = Command::new(executable)
            .args([SUBCOMMAND, role])
            .arg(serde_json::to_string(place)?)
            .arg(serde_json::to_string(order)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let at = self.workers.len();
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            let sender = self.sender.clone();
            thread::spawn(move || {
                let mut done = false;
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let report = serde_json::from_str(&line)
                        .unwrap_or_else(|_| R::failed(format!("it said `{line}`")));
                    done |= report.is_last();
                    if sender.send((at, report)).is_err() {
                        return;
                    }
                }
                if !done {
                    let why = "it ended without a word".to_owned();
                    let _ = sender.send((at, R::failed(why)));
                }
            });
        }
        self.workers.push(Worker { child, input });
        Ok(at)
    }

    /// The next report of any worker; `None` when there is none until `deadline`.
    pub(crate) fn next(&self, deadline: Instant) -> Option<(usize, R)> {
        let patience = deadline.saturating_duration_since(Instant::now());
        self.reports.recv_timeout(patience).ok()
    }

    /// Tells one worker something. That it is gone shows in its reports.
    pub(crate) fn tell(&mut self, at: usize, instruction: &impl Serialize) {
        if let Some(input) = &mut self.workers[at].input
            && let Ok(mut line) = serde_json::to_string(instruction)
        {
            line.push('\n');
            let _ = input.write_all(line.as_bytes());
        }
    }

    /// Lets one worker finish.
    pub(crate) fn finish(&mut self, at: usize) {
        self.workers[at].input = None;
    }

    /// The processes of the workers, in the order in which they were hired.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.workers
            .iter()
            .map(|worker| worker.child.id())
            .collect()
    }
}

impl<R> Drop for Crew<R> {
    fn drop(&mut self) {
        // All before any is waited for: while the others keep a core busy, the kernel may take as long
        // as they do to let one go (seen with a caller that went on calling for its whole window).
        for worker in &mut self.workers {
            // One that has finished is only collected by this.
            let _ = worker.child.kill();
        }
        for worker in &mut self.workers {
            let _ = worker.child.wait();
        }
    }
}
