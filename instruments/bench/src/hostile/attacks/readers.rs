//! Sessions that only read: a thread takes whatever arrives, and ignores it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::load::Stream;
use crate::wamp::pipe::Pipe;

const BUFFER_BYTES: usize = 1 << 20;

/// The interval of checks for the end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// After so long nothing more is expected.
const SILENCE: Duration = Duration::from_millis(300);

pub(super) struct Readers {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    finishing: AtomicBool,
    bytes: AtomicU64,
    closed: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) bytes: u64,
    /// Sessions that the router closed.
    pub(super) closed: u64,
}

impl Readers {
    pub(super) fn start(sessions: &[Pipe]) -> io::Result<Self> {
        let streams = sessions.iter().map(|pipe| pipe.stream().try_clone());
        let streams = streams.collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || read(streams, &theirs));
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(super) fn read(&self) -> Read {
        Read {
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            closed: self.shared.closed.load(Ordering::Relaxed),
        }
    }

    /// Waits until nothing more arrives.
    pub(super) fn await_silence(&self, deadline: Instant) {
        let mut last = self.read();
        let mut since = Instant::now();
        while since.elapsed() < SILENCE && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
            let now = self.read();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    pub(super) fn finish(self) -> Read {
        self.read()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.shared.finishing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(mut streams: Vec<Stream>, shared: &Shared) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while !shared.finishing.load(Ordering::Relaxed) && !streams.is_empty() {
        let mut waiting: Vec<_> = streams
            .iter()
            .map(|stream| PollFd::new(stream, PollFlags::IN))
            .collect();
        if poll(&mut waiting, Some(&LOOK)).is_err() {
            continue;
        }
        let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut at = 0;
        streams.retain(|stream| {
            at += 1;
            if !ready[at - 1] {
                return true;
            }
            match stream.try_read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
                Ok(0) | Err(_) => {
                    shared.closed.fetch_add(1, Ordering::Relaxed);
                    false
                }
                Ok(length) => {
                    shared.bytes.fetch_add(length as u64, Ordering::Relaxed);
                    true
                }
            }
        });
    }
}
