//! The combining flush: one thread at a time sends for a connection, until nothing is left.
//!
//! `Out::sending` is that duty. The thread that sets it sends the queued bytes, and those queued meanwhile. It passes
//! the duty to a task if the socket is full, or if other threads append as fast as it sends: it has connections of its
//! own to serve.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

use crate::descriptors::{Room, is_shortage};
use crate::out::{Out, Phase};
use crate::pump::is_transient;
use crate::queue::Queue;
use crate::tap::tap_sent;
use crate::{
    Connection, Filter, Filtered, Refused, Socket, Stage, Tap, account, clock, cork, meter,
    readiness, workers,
};

/// Batches that a thread sends for one connection before it serves the others.
const BATCHES_MAX: usize = 16;
/// The same in bytes: 0.3 to 1 ms. One call takes half of that, if the socket has so much room.
const TURN_BYTES_MAX: usize = 1024 * 1024;
const CALL_BYTES_MAX: usize = TURN_BYTES_MAX / 2;
/// More than the system's buffer for a Unix socket holds.
const WIDE_BYTES_MIN: usize = 256 * 1024;

/// How far sending got.
#[derive(Clone, Copy)]
pub(crate) enum Sent {
    /// Nothing is left; the duty to send is released.
    All,
    /// The socket takes no more.
    SocketFull,
    /// More is left, but other connections have their turns first.
    TurnOver,
}

/// Bytes taken from a connection, and their transformations before sending.
struct Batch<'c> {
    queue: Queue,
    filter: Option<Arc<Mutex<dyn Filter>>>,
    tap: Option<Arc<dyn Tap>>,
    stage: Option<&'c Mutex<dyn Stage>>,
    /// The stage says goodbye.
    is_last: bool,
}

impl Connection {
    /// Sends the queued bytes, as far as the socket takes them. Needs a tokio context.
    pub fn flush(self: &Arc<Self>) {
        if let Some(mailbox) = self.as_mailbox() {
            return self.offer(mailbox);
        }
        let batch = {
            let mut out = self.out.lock();
            out.corked_by = 0;
            out.stage_stirred = self.is_tls();
            let is_idle = out.is_empty() && !out.stage_stirred && out.phase == Phase::Open;
            if out.sending || is_idle || out.phase == Phase::Closed {
                return;
            }
            out.sending = true;
            self.batch_of(&mut out)
        };
        self.fulfil_duty(batch);
    }

    /// Sends `bytes` without a copy if nothing waits before them; queues the rest if the socket is full. Needs a tokio
    /// context.
    pub fn send(self: &Arc<Self>, bytes: &[u8]) -> Result<(), Refused<()>> {
        if !self.take_duty_if_idle()? {
            self.append(|out| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
            self.flush();
            return Ok(());
        }
        let sent = match self.socket().and_then(|socket| socket.send(bytes)) {
            Ok(count) => count,
            Err(e) if is_transient(&e) => 0,
            Err(e) => {
                self.fail(&e);
                return Err(Refused::Gone);
            }
        };
        self.note_sent(sent);
        if let Some(rest @ [_, ..]) = bytes.get(sent..) {
            let mut out = self.out.lock();
            if out.phase == Phase::Closed {
                return Err(Refused::Gone);
            }
            out.set_rest(Queue::of(rest));
        }
        self.fulfil_duty(self.next_batch());
        Ok(())
    }

    /// Takes the duty to send if bytes may bypass the queue; returns whether it did.
    fn take_duty_if_idle(&self) -> Result<bool, Refused<()>> {
        let mut out = self.out.lock();
        out.check(&self.limits)?;
        let is_idle = self.is_idle(&out);
        out.sending |= is_idle;
        Ok(is_idle)
    }

    /// Whether all queued bytes are in the socket, untransformed.
    pub(crate) fn is_idle(&self, out: &Out) -> bool {
        let is_transformed = self.is_tls() || out.filter().is_some();
        let is_transformed = is_transformed || self.as_mailbox().is_some();
        !is_transformed && !out.sending && out.is_empty()
    }

    /// Sends `batch` and what is queued, here and then in a task. The caller has the duty to send.
    fn fulfil_duty(self: &Arc<Self>, batch: Option<Batch<'_>>) {
        match self.send_queued(batch) {
            Ok(Sent::All) => {}
            Ok(unfinished) => {
                tokio::spawn(send_on(Arc::clone(self), unfinished));
            }
            Err(e) => self.fail(&e),
        }
    }

    fn fail(&self, e: &io::Error) {
        self.note_failure(e);
        self.close();
    }

    fn note_sent(&self, count: usize) {
        self.note_sent_at(clock::now_s());
        cork::note_sent(count);
        match self.meter() {
            Some(meter) => meter.add_sent(count),
            None => meter::add_sent(count),
        }
    }

    /// Sends `first`, and on until nothing is queued or the socket is full. The caller has the duty to send, and keeps
    /// it unless everything was sent.
    fn send_queued(self: &Arc<Self>, first: Option<Batch<'_>>) -> io::Result<Sent> {
        let (mut next, mut batches, mut taken) = (first, 0, 0);
        while let Some(batch) = next {
            let mut batch = batch.transformed(self)?;
            let before = batch.len();
            let sent = self.send_batch(&mut batch, TURN_BYTES_MAX.saturating_sub(taken))?;
            taken += before - batch.len();
            if let Sent::All = sent {
                batches += 1;
                if batches == BATCHES_MAX {
                    return Ok(Sent::TurnOver);
                }
                next = self.next_batch();
                continue;
            }
            let mut out = self.out.lock();
            if out.phase == Phase::Closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            match sent {
                Sent::SocketFull => out.block(batch, taken, clock::now_s(), &self.limits),
                _ => out.keep_rest(batch, taken, clock::now_s()),
            }
            self.note_debt(&mut out);
            return Ok(sent);
        }
        Ok(Sent::All)
    }

    /// The next bytes to send; without any, releases the duty to send.
    fn next_batch(&self) -> Option<Batch<'_>> {
        self.batch_of(&mut self.out.lock())
    }

    fn batch_of(&self, out: &mut Out) -> Option<Batch<'_>> {
        out.note_in_flight(&Queue::default());
        out.refill(&self.limits);
        let stage = self.stage();
        let mut batch = Batch {
            queue: Queue::default(),
            filter: None,
            tap: None,
            stage,
            is_last: false,
        };
        if let Some(rest) = out.take_rest() {
            batch.queue = rest;
            batch.stage = None;
        } else if let Some(unfiltered) = out.take_unfiltered() {
            batch.queue = unfiltered;
            batch.tap = out.tap().cloned();
        } else if !out.queue.is_empty() || out.stage_stirred {
            batch.queue = mem::take(&mut out.queue);
            // Read under the lock: a filter that is set from now on is for later bytes.
            batch.filter = out.filter().cloned();
            batch.tap = out.tap().cloned();
            out.stage_stirred = false;
        } else if out.phase == Phase::Finishing && stage.is_some() && !out.farewell_said {
            out.farewell_said = true;
            batch.is_last = true;
        } else {
            out.sending = false;
            out.release(&self.limits);
            self.note_debt_paid(out);
            if out.phase == Phase::Finishing {
                self.socket().into_iter().for_each(Socket::shut_down_write);
            }
            return None;
        }
        out.note_in_flight(&batch.queue);
        Some(batch)
    }

    /// Sends some bytes more than `bytes_max` of `batch`, or all of it, or as much as the socket takes.
    fn send_batch(&self, batch: &mut Queue, bytes_max: usize) -> io::Result<Sent> {
        let socket = self.socket()?;
        if batch.len() >= WIDE_BYTES_MIN {
            socket.widen();
        }
        let mut left = bytes_max;
        while !batch.is_empty() {
            if left == 0 {
                return Ok(Sent::TurnOver);
            }
            let sent = match batch.single() {
                Some(bytes) => socket.send(&bytes[..bytes.len().min(CALL_BYTES_MAX)]),
                None => socket.send_slices(&batch.slices(CALL_BYTES_MAX)),
            };
            match sent {
                Ok(count) => {
                    self.note_sent(count);
                    batch.consume(count);
                    left = left.saturating_sub(count);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::SocketFull),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Sent::All)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.out.lock().phase == Phase::Closed
    }
}

impl Batch<'_> {
    /// Applies the filter and the stage, which most connections do not have.
    fn transformed(self, connection: &Arc<Connection>) -> io::Result<Queue> {
        let mut queue = self.queue;
        if let Some(tap) = self.tap {
            tap_sent(&*tap, &queue);
        }
        if let Some(filter) = self.filter
            && !queue.is_empty()
        {
            let mut filter = filter.lock();
            queue = queue
                .filtered(|bytes, queue| filter.send(bytes, &mut Filtered(queue)))
                .map_err(io::Error::other)?;
            let growth = filter.take_growth();
            if growth != 0 {
                connection.hold(growth);
            }
        }
        if let Some(stage) = self.stage {
            let mut stage = stage.lock();
            if self.is_last {
                stage.finish();
            }
            queue = queue
                .transformed(|bytes, out| stage.send(bytes, out))
                .map_err(io::Error::other)?;
        }
        Ok(queue)
    }
}

/// Continues sending when the socket has room or it is this connection's turn again.
async fn send_on(connection: Arc<Connection>, mut sent: Sent) {
    let mut registered = None;
    loop {
        let guard = match sent {
            Sent::All => return,
            Sent::TurnOver => {
                tokio::task::yield_now().await;
                None
            }
            Sent::SocketFull => match writable(&connection, &mut registered).await {
                Ok(guard) => Some(guard),
                // The receiver is not at fault, and is still owed bytes: the socket is tried from time to time, and so
                // is whether there are descriptors again.
                Err(e) if is_shortage(&e) => {
                    workers::pause(LOOK_INTERVAL).await;
                    None
                }
                Err(_) => return connection.close(),
            },
        };
        if connection.is_ended() {
            return;
        }
        sent = match connection.send_queued(connection.next_batch()) {
            Ok(sent) => sent,
            Err(e) => return connection.fail(&e),
        };
        // No uncork follows: there is no input.
        account::choose_if_crossed();
        if let (Sent::SocketFull, Some(mut guard)) = (sent, guard) {
            guard.clear_ready();
        }
    }
}

/// The interval of tries on a full socket that cannot be registered.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Waits for room in the socket. A duplicate of the descriptor is registered for writability alone. The reader's
/// registration stays for readability only, because a socket registered for both wakes its reader each time the peer
/// takes bytes out.
async fn writable<'r>(
    connection: &Connection,
    registered: &'r mut Option<AsyncFd<OwnedFd>>,
) -> io::Result<AsyncFdReadyGuard<'r, OwnedFd>> {
    let writable = match registered.take() {
        Some(writable) => writable,
        None => {
            let duplicate = connection.socket()?.duplicate()?;
            // Waiting works without this descriptor; the last ones are for uses that do not.
            if Room::left_by(&duplicate) == Room::Last {
                return Err(Errno::MFILE.into());
            }
            readiness::register_owned(duplicate, Interest::WRITABLE)?
        }
    };
    registered.insert(writable).writable().await
}
