//! The loop that keeps messages in flight on many connections: one thread, one epoll, one write for all messages that
//! one read allows.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::{Deserialize, Serialize};

use super::message::{Found, Messages, Shape};
use crate::handshake::{Target, open};
use crate::load::{Faults, Latencies, Recorded, Traffic, Window, monotonic_ns};
use crate::process::WorkerError;

/// A driver's load; its window comes later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(super) target: Target,
    pub(super) connections: usize,
    /// Messages in flight on each connection.
    pub(super) outstanding: usize,
    pub(super) shape: Shape,
    /// How long the server may take for an answer.
    pub(super) patience_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Findings {
    /// Correct echoes within the window, and their round trips.
    pub(super) recorded: Recorded,
    pub(super) faults: Faults,
    /// Within the window.
    pub(super) traffic: Traffic,
}

pub(super) struct Driver {
    load: Load,
    epoll: std::os::fd::OwnedFd,
    connections: Vec<Connection>,
    buffer: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    messages: Messages,
    /// Half a frame.
    input: Vec<u8>,
    /// The bytes that the socket has not taken yet.
    output: Vec<u8>,
    /// Times at which numbers of messages were sent, in order.
    sent: VecDeque<(u64, usize)>,
    is_closed: bool,
}

const READ_BYTES: usize = 256 * 1024;

/// The driver's position in time.
struct Progress {
    window: Window,
    latencies: Latencies,
    faults: Faults,
    traffic: Traffic,
    in_flight: usize,
}

impl Driver {
    pub(super) fn connect(load: Load) -> Result<Self, WorkerError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io)?;
        let patience = Duration::from_millis(load.patience_ms);
        let mut connections = Vec::with_capacity(load.connections);
        for at in 0..load.connections {
            let (stream, input) = open(&load.target, patience).map_err(WorkerError::handshake)?;
            stream.set_nonblocking(true)?;
            let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&epoll, &stream, EventData::new_u64(at as u64), interest).map_err(io)?;
            connections.push(Connection {
                stream,
                messages: Messages::new(load.shape),
                input,
                output: Vec::new(),
                sent: VecDeque::with_capacity(load.outstanding + 1),
                is_closed: false,
            });
        }
        Ok(Self {
            load,
            epoll,
            connections,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Keeps messages in flight until the window ends, then waits for the outstanding ones.
    pub(super) fn drive(mut self, window: Window) -> Result<Findings, WorkerError> {
        let mut progress = Progress {
            window,
            latencies: Latencies::default(),
            faults: Faults::default(),
            traffic: Traffic::default(),
            in_flight: 0,
        };
        for connection in &mut self.connections {
            connection.push(self.load.outstanding, &mut progress);
            connection.flush().map_err(io)?;
        }
        let patience = Duration::from_millis(self.load.patience_ms);
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        let mut events = Vec::with_capacity(256);
        let mut heard = Instant::now();
        while progress.in_flight > 0 {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(io(error)),
            }
            if !events.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() >= patience {
                break;
            }
            for event in events.drain(..) {
                let at = event.data.u64() as usize;
                if let Some(connection) = self.connections.get_mut(at) {
                    connection.advance(event.flags, &mut self.buffer, &mut progress)?;
                }
            }
        }
        // Echoes that never came, or were lost with their connection.
        for connection in &self.connections {
            let missing: usize = connection.sent.iter().map(|(_, count)| count).sum();
            progress.faults.lost += missing as u64;
        }
        Ok(Findings {
            recorded: progress.latencies.recorded(),
            faults: progress.faults,
            traffic: progress.traffic,
        })
    }
}

impl Connection {
    fn push(&mut self, count: usize, progress: &mut Progress) {
        for _ in 0..count {
            self.messages.push(&mut self.output);
        }
        progress.in_flight += count;
        self.sent.push_back((monotonic_ns(), count));
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let mut taken = 0;
        while taken < self.output.len() {
            match send(&self.stream, &self.output[taken..], SendFlags::NOSIGNAL) {
                Ok(length) => taken += length,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        if taken == self.output.len() {
            self.output.clear();
        } else {
            self.output.drain(..taken);
        }
        Ok(())
    }

    /// Reads until the socket is empty, and sends as many messages as came back.
    fn advance(
        &mut self,
        flags: EventFlags,
        buffer: &mut [u8],
        progress: &mut Progress,
    ) -> Result<(), WorkerError> {
        if self.is_closed {
            return Ok(());
        }
        if flags.contains(EventFlags::OUT) && !self.output.is_empty() {
            self.flush().map_err(io)?;
        }
        loop {
            let length = match recv(&self.stream, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => {
                    self.close(progress);
                    return Ok(());
                }
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(Errno::CONNRESET) => {
                    self.close(progress);
                    return Ok(());
                }
                Err(error) => return Err(io(error)),
            };
            let now_ns = monotonic_ns();
            let (echoed, goes_on) = self.take_in(&buffer[..length], progress);
            self.count(echoed, now_ns, progress);
            if !goes_on {
                self.close(progress);
                return Ok(());
            }
            if echoed > 0 && now_ns < progress.window.end_ns {
                self.push(echoed, progress);
                self.flush().map_err(io)?;
            }
            // A read that did not fill the buffer has emptied the socket: more is a new event.
            if length < buffer.len() && !flags.contains(EventFlags::RDHUP) {
                return Ok(());
            }
        }
    }

    /// The number of echoes in these bytes and those before them, and whether more may follow.
    fn take_in(&mut self, bytes: &[u8], progress: &mut Progress) -> (usize, bool) {
        let mut earlier = std::mem::take(&mut self.input);
        if earlier.is_empty() {
            let (used, echoed, goes_on) = self.look(bytes, progress);
            self.input.extend_from_slice(&bytes[used..]);
            return (echoed, goes_on);
        }
        earlier.extend_from_slice(bytes);
        let (used, echoed, goes_on) = self.look(&earlier, progress);
        earlier.drain(..used);
        self.input = earlier;
        (echoed, goes_on)
    }

    fn look(&mut self, bytes: &[u8], progress: &mut Progress) -> (usize, usize, bool) {
        let (mut used, mut echoed) = (0, 0);
        while used < bytes.len() {
            match self.messages.look(&bytes[used..], &mut progress.faults) {
                Found::Message(length) => {
                    used += length;
                    echoed += 1;
                }
                Found::Other(length) => used += length,
                Found::Partly => break,
                Found::Close => return (used, echoed, false),
            }
        }
        (used, echoed, true)
    }

    /// Records the times of `echoed` messages of one read.
    fn count(&mut self, echoed: usize, now_ns: u64, progress: &mut Progress) {
        let measuring = (progress.window.start_ns..progress.window.end_ns).contains(&now_ns);
        if measuring {
            progress.traffic.reads += 1;
            progress.traffic.messages += echoed as u64;
        }
        let mut left = echoed;
        while left > 0 {
            let Some((sent_ns, waiting)) = self.sent.front_mut() else {
                // More came back than was sent; the check of their numbers has counted them.
                return;
            };
            let answered = left.min(*waiting);
            if measuring {
                let nanoseconds = now_ns.saturating_sub(*sent_ns);
                for _ in 0..answered {
                    progress.latencies.record(nanoseconds);
                }
            }
            left -= answered;
            *waiting -= answered;
            progress.in_flight -= answered;
            if *waiting == 0 {
                self.sent.pop_front();
            }
        }
    }

    /// Its messages in flight do not come back.
    fn close(&mut self, progress: &mut Progress) {
        if !self.is_closed {
            self.is_closed = true;
            let missing: usize = self.sent.iter().map(|(_, count)| count).sum();
            progress.in_flight -= missing;
            progress.faults.failed += 1;
        }
    }
}

fn io(error: Errno) -> WorkerError {
    WorkerError::Io(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_back() {
        #[track_caller]
        fn check(connections: usize, outstanding: usize, payload_bytes: usize) {
            let address = crate::floor::websocket::in_background();
            let load = Load {
                target: Target {
                    address,
                    host: address.to_string(),
                    resource: "/".into(),
                },
                connections,
                outstanding,
                shape: Shape {
                    payload_bytes,
                    is_text: false,
                },
                patience_ms: 10_000,
            };
            let start_ns = monotonic_ns();
            let window = Window {
                start_ns,
                end_ns: start_ns + 50_000_000,
            };
            let findings = Driver::connect(load).unwrap().drive(window).unwrap();
            assert_eq!(findings.faults.describe(), None);
            let counted: u64 = findings
                .recorded
                .counts
                .iter()
                .map(|(_, count)| count)
                .sum();
            assert_eq!(counted, findings.traffic.messages);
        }
        check(1, 1, 0);
        check(3, 16, 64);
        // More than both sockets buffer, so that both sides must wait for the other to read.
        check(2, 64, 300_000);
    }
}
