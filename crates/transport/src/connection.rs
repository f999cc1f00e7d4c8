//! A connection as everybody but its reader sees it: something to append to.
//!
//! Appending happens under a realm's lock, so it only copies octets. Sending happens outside it,
//! by whichever thread comes first: that thread takes what is queued and sends until nothing is
//! left (a *combining* flush), and whoever comes meanwhile leaves its octets to it. When the
//! socket takes no more, the duty to send passes to a task that waits for room.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fmt, io, mem};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::Interest;

use crate::queue::Queue;
use crate::{Filter, PeerAddress, Socket, Stage, clock, cork, readiness};

/// The bounds of every connection of a listener.
#[derive(Debug)]
pub struct ConnectionLimits {
    /// Octets queued for one connection; beyond it, appending is refused.
    pub queue_bytes_max: usize,
    /// A connection that takes nothing for so long while octets wait for it is closed, by whoever
    /// asks for [`Connection::is_stalled`].
    pub stall_max: Duration,
    /// What all connections together may have queued behind full sockets.
    pub budget: Arc<QueueBudget>,
}

/// A bound on the octets that wait for receivers which do not read, over all connections.
#[derive(Debug)]
pub struct QueueBudget {
    used_bytes: AtomicUsize,
    bytes_max: usize,
}

/// Why a connection did not take what was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// Its queue, or all queues together, hold as much as they may.
    Full,
    /// It is closed.
    Gone,
    /// The writer itself failed.
    Writer(E),
}

/// A socket with its queue. Shared by all who send to it; its reader is [`crate::pump`].
pub struct Connection {
    socket: Socket,
    limits: Arc<ConnectionLimits>,
    out: Mutex<Out>,
    /// Set before the connection is shared, if at all; boxed because most have none.
    stage: Option<Box<Mutex<dyn Stage>>>,
    filter: OnceLock<Box<Mutex<dyn Filter>>>,
    /// Seconds since the worker's start at which something was last received.
    received_at_s: AtomicU32,
}

#[derive(Default)]
struct Out {
    /// What was appended and nobody has taken yet.
    queue: Queue,
    /// What the socket did not take, in the form it is sent in; goes before `queue`.
    /// Boxed, because an idle connection has none.
    rest: Option<Box<Queue>>,
    /// Octets of a flush in progress, which are in neither.
    in_flight_bytes: usize,
    /// Octets charged to the budget of all connections.
    charged_bytes: usize,
    /// Somebody has the duty to send until nothing is left.
    sending: bool,
    /// Whoever has that duty waits for room in the socket, which last took something then, by
    /// [`crate::now_s`].
    blocked: bool,
    taken_at_s: u32,
    /// The thread whose cork this connection was put into last; 0: none.
    corked_by: u32,
    /// The stage has been told that nothing more is sent.
    farewell_said: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// What is queued is still sent, then the sending side is shut down.
    Finishing,
    Closed,
}

enum Sent {
    All,
    SocketFull,
}

impl Connection {
    /// A connection over a socket just accepted or connected.
    pub fn new(
        socket: Socket,
        stage: Option<Box<Mutex<dyn Stage>>>,
        limits: Arc<ConnectionLimits>,
    ) -> Self {
        Self {
            socket,
            limits,
            stage,
            filter: OnceLock::new(),
            out: Mutex::default(),
            received_at_s: AtomicU32::new(0),
        }
    }

    /// Queues what `write` appends, to be sent when the current input has been handled.
    pub fn append<E>(
        self: &Arc<Self>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Refused<E>> {
        let mut out = self.out.lock();
        out.check(&self.limits)?;
        let before = out.queue.len();
        out.queue.append(write).map_err(Refused::Writer)?;
        let appended = out.queue.len() - before;
        out.admit(&self.limits, appended)?;
        self.cork(&mut out, false);
        Ok(())
    }

    /// Queues octets that other connections send too.
    pub fn append_shared(self: &Arc<Self>, octets: &Bytes) -> Result<(), Refused<()>> {
        let mut out = self.out.lock();
        out.check(&self.limits)?;
        out.queue.append_shared(octets);
        out.admit(&self.limits, octets.len())?;
        self.cork(&mut out, true);
        Ok(())
    }

    /// Sends what is queued, as far as the socket takes it. Needs a tokio context.
    pub fn flush(self: &Arc<Self>) {
        {
            let mut out = self.out.lock();
            out.corked_by = 0;
            let is_idle = out.queue.is_empty() && out.rest.is_none() && self.stage.is_none();
            if out.sending || out.phase == Phase::Closed || (is_idle && out.phase == Phase::Open) {
                return;
            }
            out.sending = true;
        }
        match self.send_queued() {
            Ok(Sent::All) => {}
            Ok(Sent::SocketFull) => {
                tokio::spawn(send_when_writable(Arc::clone(self)));
            }
            Err(_) => self.close(),
        }
    }

    /// Sends everything that is appended from now on through `filter`. What was appended before
    /// goes as it is; a second filter is not taken.
    pub fn set_filter(self: &Arc<Self>, filter: Box<Mutex<dyn Filter>>) {
        // What waits in the queue would be filtered; what a full socket left over is not.
        self.flush();
        let _ = self.filter.set(filter);
    }

    /// Sends what is queued, then shuts the sending side down; nothing more can be appended.
    pub fn finish(self: &Arc<Self>) {
        {
            let mut out = self.out.lock();
            if out.phase != Phase::Open {
                return;
            }
            out.phase = Phase::Finishing;
        }
        self.flush();
    }

    /// Ends the connection now; what is queued is lost.
    pub fn close(&self) {
        let mut out = self.out.lock();
        if out.phase == Phase::Closed {
            return;
        }
        out.phase = Phase::Closed;
        out.queue.clear();
        out.rest = None;
        out.release(&self.limits);
        drop(out);
        self.socket.shut_down();
    }

    /// Whether the peer has taken nothing for too long of what waits for it.
    pub fn is_stalled(&self) -> bool {
        let out = self.out.lock();
        let stalled_s = clock::now_s().saturating_sub(out.taken_at_s);
        out.blocked && u64::from(stalled_s) > self.limits.stall_max.as_secs()
    }

    /// Whether nothing can be appended any more.
    pub fn is_closed(&self) -> bool {
        self.out.lock().phase != Phase::Open
    }

    /// Octets that wait to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.out.lock().queued_bytes()
    }

    /// Who is at the other end.
    pub fn peer(&self) -> PeerAddress {
        self.socket.peer()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn stage(&self) -> Option<&Mutex<dyn Stage>> {
        self.stage.as_deref()
    }

    pub(crate) fn note_received(&self, now_s: u32) {
        self.received_at_s.store(now_s, Ordering::Relaxed);
    }

    /// When something was last received, by [`crate::now_s`].
    pub fn received_at_s(&self) -> u32 {
        self.received_at_s.load(Ordering::Relaxed)
    }

    fn is_ended(&self) -> bool {
        self.out.lock().phase == Phase::Closed
    }

    /// Sees to it that this thread flushes the connection. A reply does not wait in the cork of
    /// another thread, which may be behind a large fan-out; an event does.
    fn cork(self: &Arc<Self>, out: &mut Out, is_event: bool) {
        // While somebody is sending, that somebody takes these octets too.
        if out.sending {
            return;
        }
        let thread = cork::thread_number();
        if out.corked_by == 0 || (out.corked_by != thread && !is_event) {
            out.corked_by = thread;
            cork::touch(Arc::clone(self));
        }
    }

    /// Sends until nothing is queued or the socket is full. The caller has set `sending`, and
    /// keeps that duty when the socket is full.
    fn send_queued(&self) -> io::Result<Sent> {
        loop {
            let (mut batch, is_staged) = {
                let mut out = self.out.lock();
                out.in_flight_bytes = 0;
                if let Some(rest) = out.rest.take() {
                    out.in_flight_bytes = rest.len();
                    (*rest, true)
                } else if !out.queue.is_empty() || self.stage_has_output() {
                    let queue = mem::take(&mut out.queue);
                    out.in_flight_bytes = queue.len();
                    (queue, false)
                } else if let (Phase::Finishing, Some(stage), false) =
                    (out.phase, &self.stage, out.farewell_said)
                {
                    out.farewell_said = true;
                    stage.lock().finish();
                    continue;
                } else {
                    out.sending = false;
                    out.release(&self.limits);
                    if out.phase == Phase::Finishing {
                        self.socket.shut_down_write();
                    }
                    return Ok(Sent::All);
                }
            };
            if !is_staged {
                batch = self.staged(batch)?;
            }
            if let Sent::SocketFull = self.send_batch(&mut batch)? {
                let mut out = self.out.lock();
                out.in_flight_bytes = 0;
                if out.phase == Phase::Closed {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                out.rest = Some(Box::new(batch));
                out.blocked = true;
                out.taken_at_s = clock::now_s();
                out.charge(&self.limits);
                return Ok(Sent::SocketFull);
            }
        }
    }

    /// What the filter and the stage make of `batch`; most connections have neither.
    fn staged(&self, mut batch: Queue) -> io::Result<Queue> {
        if let Some(filter) = self.filter.get() {
            let mut filter = filter.lock();
            batch = batch
                .transformed(|octets, out| filter.send(octets, out))
                .map_err(io::Error::other)?;
        }
        if let Some(stage) = &self.stage {
            let mut stage = stage.lock();
            batch = batch
                .transformed(|octets, out| stage.send(octets, out))
                .map_err(io::Error::other)?;
        }
        Ok(batch)
    }

    fn send_batch(&self, batch: &mut Queue) -> io::Result<Sent> {
        while !batch.is_empty() {
            let sent = match batch.single() {
                Some(octets) => self.socket.send(octets),
                None => self.socket.send_slices(&batch.slices()),
            };
            match sent {
                Ok(count) => batch.consume(count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::SocketFull),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Sent::All)
    }

    fn stage_has_output(&self) -> bool {
        self.stage
            .as_ref()
            .is_some_and(|stage| stage.lock().has_output())
    }
}

/// Sends the rest whenever the socket has room. A duplicate of the descriptor is registered for
/// writability alone: the reader's registration stays for readability only, because a socket
/// registered for both wakes its reader each time the peer takes octets out.
async fn send_when_writable(connection: Arc<Connection>) {
    let registered = connection
        .socket
        .duplicate()
        .and_then(|fd| readiness::register_owned(fd, Interest::WRITABLE));
    let Ok(writable) = registered else {
        // Out of descriptors: the receiver would wait for ever for octets it was promised.
        connection.close();
        return;
    };
    loop {
        let Ok(mut guard) = writable.writable().await else {
            connection.close();
            return;
        };
        if connection.is_ended() {
            return;
        }
        match connection.send_queued() {
            Ok(Sent::All) => return,
            Ok(Sent::SocketFull) => guard.clear_ready(),
            Err(_) => {
                connection.close();
                return;
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Out {
    fn queued_bytes(&self) -> usize {
        let rest_bytes = self.rest.as_ref().map_or(0, |rest| rest.len());
        self.queue.len() + rest_bytes + self.in_flight_bytes
    }

    fn check<E>(&self, limits: &ConnectionLimits) -> Result<(), Refused<E>> {
        if self.phase != Phase::Open {
            return Err(Refused::Gone);
        }
        if self.queued_bytes() >= limits.queue_bytes_max
            || (self.blocked && limits.budget.is_spent())
        {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// Accounts for octets just appended; takes them back if they are too many. A message that
    /// finds the queue empty is never too many: its size has a bound of its own.
    fn admit<E>(&mut self, limits: &ConnectionLimits, appended: usize) -> Result<(), Refused<E>> {
        let queued = self.queued_bytes();
        if queued > limits.queue_bytes_max && queued > appended {
            self.queue.truncate(appended);
            return Err(Refused::Full);
        }
        if self.blocked {
            self.charge(limits);
        }
        Ok(())
    }

    fn charge(&mut self, limits: &ConnectionLimits) {
        let queued = self.queued_bytes();
        if queued >= self.charged_bytes {
            let more = queued - self.charged_bytes;
            limits.budget.used_bytes.fetch_add(more, Ordering::Relaxed);
        } else {
            let less = self.charged_bytes - queued;
            limits.budget.used_bytes.fetch_sub(less, Ordering::Relaxed);
        }
        self.charged_bytes = queued;
    }

    fn release(&mut self, limits: &ConnectionLimits) {
        self.blocked = false;
        if self.charged_bytes > 0 {
            limits
                .budget
                .used_bytes
                .fetch_sub(self.charged_bytes, Ordering::Relaxed);
            self.charged_bytes = 0;
        }
    }
}

impl QueueBudget {
    /// A budget of so many octets.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            used_bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Octets that wait for receivers which do not read.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    fn is_spent(&self) -> bool {
        self.used_bytes() >= self.bytes_max
    }
}
