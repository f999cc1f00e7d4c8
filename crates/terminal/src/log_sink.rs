//! One output of the log, with a thread of its own that writes to it.
//!
//! A thread that logs never waits: a stopped terminal, an unread pipe or a hanging disk would stop the node otherwise.
//! Lines that do not fit into the buffer are dropped, and counted in the log.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Some thousand lines.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Buffer size that is kept when nothing waits.
const KEPT_BYTES: usize = 16 << 10;
/// For a descriptor that another process made non-blocking, and that has no room now.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Lines are added at once and written in their order.
pub(crate) struct Sink {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write.
    more: Condvar,
    /// All is written.
    done: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    left_out: u64,
    is_renewing: bool,
    is_writing: bool,
}

/// An input of the writing thread.
pub(crate) enum Input<'l> {
    /// Whole lines, many at a time.
    Lines(&'l [u8]),
    /// The file of that name may be a new one.
    Renew,
}

impl Sink {
    /// `write` handles the inputs. `tell_left_out` is called, on the writing thread, where lines are missing, and may
    /// log.
    pub(crate) fn start(
        mut write: impl FnMut(Input<'_>) + Send + 'static,
        tell_left_out: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                let mut lines = Vec::new();
                loop {
                    let (left_out, is_renewing) = own.take(&mut lines);
                    if left_out > 0 {
                        tell_left_out(left_out);
                    }
                    if is_renewing {
                        write(Input::Renew);
                    }
                    write(Input::Lines(&lines));
                    lines.clear();
                    lines.shrink_to(KEPT_BYTES);
                }
            })?;
        Ok(Self { shared })
    }

    pub(crate) fn push(&self, line: &[u8]) {
        let mut state = self.shared.state();
        if state.waiting.len() + line.len() > WAITING_BYTES_MAX {
            state.left_out += 1;
            return;
        }
        state.waiting.extend_from_slice(line);
        drop(state);
        self.shared.more.notify_one();
    }

    /// Makes the writing thread reopen its file; waiting lines go to the new one.
    pub(crate) fn renew(&self) {
        self.shared.state().is_renewing = true;
        self.shared.more.notify_one();
    }

    /// Waits until all is written, with a time limit; returns whether it is.
    pub(crate) fn drain(&self, until: Instant) -> bool {
        let patience = until.saturating_duration_since(Instant::now());
        let is_busy = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        let waited = self
            .shared
            .done
            .wait_timeout_while(self.shared.state(), patience, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Shared {
    /// Waits for lines, and swaps the empty `lines` for them. Returns how many are missing after them, and whether to
    /// reopen.
    fn take(&self, lines: &mut Vec<u8>) -> (u64, bool) {
        let mut state = self.state();
        state.is_writing = false;
        if state.waiting.is_empty() {
            self.done.notify_all();
        }
        let mut state = self
            .more
            .wait_while(state, |state| {
                state.waiting.is_empty() && !state.is_renewing
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.is_writing = true;
        std::mem::swap(&mut state.waiting, lines);
        let left_out = std::mem::take(&mut state.left_out);
        (left_out, std::mem::take(&mut state.is_renewing))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Like `write_all`, also for non-blocking descriptors.
pub(crate) fn write_all(mut to: impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(TRY_AGAIN_AFTER),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn logging_never_blocks() {
        let (written, lines) = mpsc::sync_channel::<Vec<u8>>(0);
        let (told, left_out) = mpsc::channel();
        let write = move |input: Input<'_>| {
            if let Input::Lines(bytes) = input {
                drop(written.send(bytes.to_vec()));
            }
        };
        let tell = move |n| {
            let _ = told.send(n);
        };
        let sink = Sink::start(write, tell).expect("a thread");
        let line = [b'x'; 1023];
        let pushed = 5000;
        for _ in 0..pushed {
            sink.push(&[&line[..], b"\n"].concat());
        }
        assert!(!sink.drain(Instant::now()), "nothing was read");
        let mut bytes = 0;
        while !sink.drain(Instant::now()) {
            let more = lines.recv_timeout(TRY_AGAIN_AFTER);
            bytes += more.map_or(0, |more| more.len());
        }
        let left_out: u64 = left_out.try_iter().sum();
        assert!(left_out > 0);
        assert_eq!(bytes as u64 / 1024 + left_out, pushed);
        assert!(bytes <= 2 * WAITING_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn lines_keep_their_order() {
        let (written, lines) = mpsc::channel();
        let write = move |input: Input<'_>| {
            if let Input::Lines(bytes) = input {
                drop(written.send(bytes.to_vec()));
            }
        };
        let sink = Sink::start(write, |_| ()).expect("a thread");
        let all: Vec<_> = (0..1000).map(|n| format!("{n}\n")).collect();
        for line in &all {
            sink.push(line.as_bytes());
        }
        assert!(sink.drain(Instant::now() + Duration::from_secs(60)));
        let written: Vec<u8> = lines.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(written), Ok(all.concat()));
    }
}
