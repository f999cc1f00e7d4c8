//! One task per child: all of its events, in one loop.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;
use tokio::signal::unix::Signal;
use tokio::time::sleep_until;

use super::children::Process;
use super::command::Stdin;
use super::ended::Ended;
use super::guard::Guard;
use super::lines::{Line, Rate, Splitter};
use super::orphans;

/// Per child. A child that writes more blocks until the second is over: a flood costs the node little time and no
/// memory.
const BYTES_PER_SECOND_MAX: usize = 4 << 20;
const READ_BYTES_MAX: usize = 16 << 10;
const SECOND: Duration = Duration::from_secs(1);

/// A running process with its owner's duty to end and reap it; dropping it kills the process.
pub(super) struct Supervised {
    process: Arc<Process>,
    started: Child,
    /// The mark that its descendants inherit.
    mark: String,
    /// Some child has ended.
    ends: Signal,
    guard: Arc<Guard>,
    is_reaped: bool,
}

/// Remaining input for the child.
pub(super) struct Input {
    pipe: pipe::Sender,
    bytes: Vec<u8>,
    close: bool,
}

type Outputs = [Option<pipe::Receiver>; 2];

impl Supervised {
    /// `ends` has listened for SIGCHLD since before the process was started.
    pub(super) fn new(started: Child, mark: String, ends: Signal, guard: Arc<Guard>) -> Self {
        Self {
            process: Arc::new(Process::of(&started)),
            started,
            mark,
            ends,
            guard,
            is_reaped: false,
        }
    }

    pub(super) fn process(&self) -> Arc<Process> {
        Arc::clone(&self.process)
    }

    /// The node's ends of its pipes.
    pub(super) fn pipes(&mut self, stdin: &Stdin) -> io::Result<(Option<Input>, Outputs)> {
        let input = match (stdin, self.started.stdin.take()) {
            (Stdin::Text { bytes, close }, Some(pipe)) => Some(Input {
                pipe: pipe::Sender::from_owned_fd(pipe.into())?,
                bytes: bytes.clone(),
                close: *close,
            }),
            _ => None,
        };
        let stdout = self.started.stdout.take().map(OwnedFd::from);
        let stderr = self.started.stderr.take().map(OwnedFd::from);
        let outputs = [
            stdout.map(pipe::Receiver::from_owned_fd).transpose()?,
            stderr.map(pipe::Receiver::from_owned_fd).transpose()?,
        ];
        Ok((input, outputs))
    }

    pub(super) async fn run(
        mut self,
        mut input: Option<Input>,
        outputs: Outputs,
        mut lines: impl FnMut(Line),
    ) -> Ended {
        let [mut stdout, mut stderr] = outputs.map(Stream::new);
        let mut throttle = Throttle::default();
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut ended = None;
        // Remaining output in its pipes is read; other processes may hold these open.
        let mut patience = None;
        while ended.is_none() || stdout.pipe.is_some() || stderr.pipe.is_some() {
            let is_flowing = throttle.paused_until(Instant::now()).is_none();
            tokio::select! {
                _ = self.ends.recv(), if ended.is_none() => {
                    self.guard.renew();
                    orphans::reap();
                    if self.process.has_ended() {
                        ended = Some(self.reap());
                        orphans::end(self.process.id, &self.mark).await;
                        patience = Some(Instant::now() + SECOND);
                    }
                }
                () = at(patience) => break,
                () = stdout.readable(), if is_flowing => {
                    stdout.relay(&mut buffer, &mut throttle, &mut lines);
                }
                () = stderr.readable(), if is_flowing => {
                    stderr.relay(&mut buffer, &mut throttle, &mut lines);
                }
                () = writable(input.as_ref()) => input = input.and_then(Input::write),
                () = at(throttle.paused_until(Instant::now())) => {}
                () = at(throttle.rate.report_due()) => throttle.rate.next_report().into_iter().for_each(&mut lines),
            }
        }
        for stream in [&mut stdout, &mut stderr] {
            stream.finish(&mut throttle, &mut lines);
        }
        throttle.rate.next_report().into_iter().for_each(&mut lines);
        // The loop ends only with a status.
        ended.unwrap_or(Ended::UNKNOWN)
    }

    fn reap(&mut self) -> Ended {
        let ended = self.process.reap(&mut self.started);
        self.is_reaped = true;
        // If the guard cannot be informed now, the next call replaces and informs it.
        let _ = self.guard.remove(self.process.id);
        ended
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.process.kill_group();
            self.reap();
        }
    }
}

/// A child's standard output or error.
struct Stream {
    pipe: Option<pipe::Receiver>,
    splitter: Splitter,
}

impl Stream {
    fn new(pipe: Option<pipe::Receiver>) -> Self {
        Self {
            pipe,
            splitter: Splitter::default(),
        }
    }

    /// Passes on the lines of one read.
    fn relay(&mut self, buffer: &mut [u8], throttle: &mut Throttle, lines: &mut impl FnMut(Line)) {
        let read = self
            .pipe
            .as_ref()
            .map_or(Ok(0), |pipe| pipe.try_read(buffer));
        match read {
            Ok(0) => self.pipe = None,
            Ok(bytes) => {
                let now = Instant::now();
                throttle.count(bytes, now);
                self.splitter.handle(&buffer[..bytes], |line| {
                    if throttle.rate.admit(now) {
                        lines(line.read());
                    }
                });
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
    }

    fn finish(&mut self, throttle: &mut Throttle, lines: &mut impl FnMut(Line)) {
        self.splitter.finish(|line| {
            if throttle.rate.admit(Instant::now()) {
                lines(line.read());
            }
        });
    }

    async fn readable(&self) {
        match &self.pipe {
            // An error of waiting shows in the next read.
            Some(pipe) => drop(pipe.readable().await),
            None => pending().await,
        }
    }
}

impl Input {
    /// Writes as much as the pipe takes. Returns the rest, if any.
    fn write(mut self) -> Option<Self> {
        match self.pipe.try_write(&self.bytes) {
            Ok(written) => drop(self.bytes.drain(..written)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // The child has closed its input.
            Err(_) => return None,
        }
        (!self.bytes.is_empty() || !self.close).then_some(self)
    }
}

async fn writable(input: Option<&Input>) {
    match input {
        Some(input) if !input.bytes.is_empty() || input.close => {
            drop(input.pipe.writable().await);
        }
        _ => pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}

/// Limits the bytes per second read from both output streams together.
#[derive(Default)]
struct Throttle {
    rate: Rate,
    bytes: usize,
    window_ends: Option<Instant>,
}

impl Throttle {
    fn count(&mut self, bytes: usize, now: Instant) {
        if self.window_ends.is_none_or(|end| now >= end) {
            self.window_ends = Some(now + SECOND);
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.window_ends
            .filter(|&end| self.bytes >= BYTES_PER_SECOND_MAX && now < end)
    }
}
