//! Worker processes seen from the bench: started, instructed, read, and never left behind.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;
use crate::process::{LastWord, Listening, Place, SUBCOMMAND, Stop};
use crate::subject::Endpoint;

/// A number of workers with one stream of reports.
pub(crate) struct Workers<R> {
    started: Vec<Worker>,
    sender: Sender<Heard<R>>,
    reports: Receiver<Heard<R>>,
}

/// A worker's index and report; or the reason why it cannot go on.
type Heard<R> = Result<(usize, R), Failed>;

#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) at: usize,
    pub(crate) why: String,
}

impl From<Failed> for String {
    fn from(failed: Failed) -> Self {
        failed.why
    }
}

/// How soon a stop request is noticed.
pub(crate) const STOP_AFTER: Duration = Duration::from_millis(50);

struct Worker {
    child: Child,
    input: Option<ChildStdin>,
}

impl<R> Default for Workers<R> {
    fn default() -> Self {
        let (sender, reports) = mpsc::channel();
        Self {
            started: Vec::new(),
            sender,
            reports,
        }
    }
}

impl<R: DeserializeOwned + fmt::Debug + Send + 'static> Workers<R> {
    /// Starts one more worker in `role` and returns its index.
    pub(crate) fn start(
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
        let at = self.started.len();
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            let sender = self.sender.clone();
            thread::spawn(move || listen(at, output, &sender));
        }
        self.started.push(Worker { child, input });
        Ok(at)
    }

    /// The next report of any worker; `None` if none arrives until `deadline`.
    pub(crate) fn next(&self, deadline: Instant) -> Result<Option<(usize, R)>, Failed> {
        let patience = deadline.saturating_duration_since(Instant::now());
        self.reports.recv_timeout(patience).ok().transpose()
    }

    /// The same, but a stop request is a failure.
    pub(crate) fn next_unless(
        &self,
        stop: &Stop,
        deadline: Instant,
    ) -> Result<Option<(usize, R)>, Failed> {
        loop {
            if stop.is_wished() {
                let why = INTERRUPTED.to_owned();
                return Err(Failed { at: 0, why });
            }
            let look = deadline.min(Instant::now() + STOP_AFTER);
            match self.next(look)? {
                None if look < deadline => {}
                report => return Ok(report),
            }
        }
    }

    /// The only report that can come next; `what` is the expected action, for errors.
    pub(crate) fn expect<T>(
        &self,
        patience: Duration,
        what: &str,
        expected: impl FnOnce(R) -> Result<T, R>,
    ) -> Result<T, String> {
        match self.next(Instant::now() + patience)? {
            Some((_, report)) => {
                expected(report).map_err(|other| format!("{what}, but it reported {other:?}"))
            }
            None => Err(format!("no report within {} s: {what}", patience.as_secs())),
        }
    }

    /// Sends an instruction to one worker. An ended worker shows in its reports.
    pub(crate) fn tell(&mut self, at: usize, instruction: &impl Serialize) {
        if let Some(input) = &mut self.started[at].input
            && let Ok(mut line) = serde_json::to_string(instruction)
        {
            line.push('\n');
            let _ = input.write_all(line.as_bytes());
        }
    }

    pub(crate) fn finish(&mut self, at: usize) {
        self.started[at].input = None;
    }

    /// The processes of the workers, in the order of their start.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.started
            .iter()
            .map(|worker| worker.child.id())
            .collect()
    }
}

impl Workers<Listening> {
    /// Starts a server of the bench's own, called `name` in errors, and waits until it listens.
    pub(crate) fn start_server(
        &mut self,
        name: &str,
        executable: &Path,
        role: &str,
        place: &Place,
        order: &impl Serialize,
    ) -> Result<Endpoint, BenchError> {
        self.start(executable, role, place, order)?;
        self.expect(SERVER_PATIENCE, "it should listen", Ok)
            .map(|Listening { endpoint }| endpoint)
            .map_err(|why| BenchError::Server {
                name: name.to_owned(),
                why,
            })
    }
}

/// How long a server of the bench's own may take to listen: milliseconds on an idle machine.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);

/// The reason why a round that a user ended does not count.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Passes on one worker's output, line by line.
fn listen<R: DeserializeOwned>(at: usize, output: ChildStdout, sender: &Sender<Heard<R>>) {
    let mut last = Err("it ended without a word".to_owned());
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Ok(word) = serde_json::from_str(&line) {
            last = match word {
                LastWord::Finished => Ok(()),
                LastWord::Failed { why } => Err(why),
            };
            break;
        }
        let heard = serde_json::from_str(&line).map_err(|_| Failed {
            at,
            why: format!("it printed `{line}`"),
        });
        let heard = heard.map(|report| (at, report));
        if sender.send(heard).is_err() {
            return;
        }
    }
    if let Err(why) = last {
        let _ = sender.send(Err(Failed { at, why }));
    }
}

impl<R> Drop for Workers<R> {
    fn drop(&mut self) {
        // All before any is waited for: while the others keep a core busy, the kernel may take as long as they run to
        // reap one (seen with a caller that went on calling for its whole window).
        for worker in &mut self.started {
            // One that has finished is only reaped by this.
            let _ = worker.child.kill();
        }
        for worker in &mut self.started {
            let _ = worker.child.wait();
        }
    }
}
