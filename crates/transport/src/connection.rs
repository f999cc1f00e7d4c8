//! A connection as its senders see it: a queue to append to.
//!
//! Appending happens under a realm's lock, so it only copies bytes. Sending happens outside that lock: the first thread
//! to flush takes the queued bytes and sends until none are left (a *combining* flush, in `flush.rs`); other threads
//! leave their bytes to it meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::{fmt, future, io};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::end::{End, Mailbox};
use crate::flags::{Flag, Flags};
use crate::out::{Out, Phase};
use crate::overflow::{Item, Queued};
use crate::queue::SHARED_BYTES_MIN;
use crate::{ConnectionLimits, Meter, PeerAddress, Refused, Socket, Stage, clock, cork};

/// A socket with its queue, shared by all senders; its reader is [`crate::pump`].
pub struct Connection {
    pub(crate) end: End,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) out: Mutex<Out>,
    /// Set before the connection is shared, if at all. Boxed, because most connections have none.
    extras: Option<Box<Extras>>,
    /// The time of the last receipt, in seconds since the workers' start.
    received_at_s: AtomicU32,
    /// The time of the last sending.
    sent_at_s: AtomicU32,
    /// Time for which its input held threads, in microseconds.
    busy_us: AtomicU32,
    reading_paused: AtomicBool,
    pub(crate) flags: Flags,
    note: AtomicU8,
}

/// Parts of a connection over TLS, or one whose bytes are counted.
#[derive(Default)]
struct Extras {
    stage: Option<Box<Mutex<dyn Stage>>>,
    meter: Option<Arc<Meter>>,
}

impl Connection {
    /// A connection over an accepted or connected socket.
    pub fn new(
        socket: Socket,
        stage: Option<Box<Mutex<dyn Stage>>>,
        limits: Arc<ConnectionLimits>,
    ) -> Self {
        Self::of(End::Socket(socket), stage, limits)
    }

    pub(crate) fn of(
        end: End,
        stage: Option<Box<Mutex<dyn Stage>>>,
        limits: Arc<ConnectionLimits>,
    ) -> Self {
        let extras = stage.map(|stage| Extras {
            stage: Some(stage),
            meter: None,
        });
        Self {
            end,
            limits,
            extras: extras.map(Box::new),
            out: Mutex::default(),
            received_at_s: AtomicU32::new(0),
            sent_at_s: AtomicU32::new(0),
            busy_us: AtomicU32::new(0),
            reading_paused: AtomicBool::new(false),
            flags: Flags::default(),
            note: AtomicU8::new(0),
        }
    }

    /// Makes `meter` count the socket's bytes.
    pub fn with_meter(mut self, meter: Arc<Meter>) -> Self {
        self.extras.get_or_insert_default().meter = Some(meter);
        self
    }

    /// Counts the socket's bytes, if it was given.
    pub fn meter(&self) -> Option<&Meter> {
        self.extras.as_ref()?.meter.as_deref()
    }

    /// Queues the bytes that `write` appends, to be sent after the current input has been handled. A caller without an
    /// input, or outside a pump, calls [`crate::uncork`] afterwards.
    pub fn append<E>(
        self: &Arc<Self>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Refused<E>> {
        self.append_below(usize::MAX, write)
    }

    /// The same, unless so many bytes are queued already, or any while the account of all connections is nearly full.
    /// For senders that can keep the bytes until the peer reads again; [`Connection::sent`] tells when.
    pub fn append_below<E>(
        self: &Arc<Self>,
        queued_bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Refused<E>> {
        let mut out = self.out.lock();
        if out.keeps(false, &self.limits) {
            return self.keep_written(&mut out, write);
        }
        out.check(&self.limits)?;
        self.check_items()?;
        if out.queued_bytes() >= queued_bytes_max {
            return Err(Refused::Full);
        }
        let can_wait = queued_bytes_max < usize::MAX && out.blocked;
        if can_wait && self.limits.account.is_short_for(0) {
            return Err(Refused::Full);
        }
        let before = out.queue.len();
        out.queue.append(write).map_err(Refused::Writer)?;
        let appended = out.queue.len() - before;
        if out.admit(&self.limits, appended)? {
            self.note_debt(&mut out);
        }
        if appended > 0 {
            self.note_item();
        }
        cork::note_appended(appended);
        self.cork(&mut out, false);
        Ok(())
    }

    /// Queues an event, whose bytes other connections send too.
    pub fn append_shared(self: &Arc<Self>, bytes: &Bytes) -> Result<Queued, Refused<()>> {
        let mut out = self.out.lock();
        if out.keeps(true, &self.limits) {
            return self.keep(&mut out, Item::Whole(bytes.clone()), true);
        }
        out.check(&self.limits)?;
        self.check_items()?;
        out.queue.append_shared(bytes);
        if out.admit(&self.limits, bytes.len())? {
            self.note_debt(&mut out);
        }
        self.note_item();
        match bytes.len() < SHARED_BYTES_MIN {
            true => cork::note_appended(bytes.len()),
            false => cork::note_appended_shared(bytes.len()),
        }
        self.cork(&mut out, true);
        Ok(out.queued(&self.limits))
    }

    /// Queues one item: `own` bytes, with each of `parts` inserted at its offset, in order. Other connections may send
    /// the parts too. An event waits in a fan-out's line, any other item does not.
    pub fn append_parts(
        self: &Arc<Self>,
        own: &[u8],
        parts: &[(usize, &Bytes)],
        is_event: bool,
    ) -> Result<Queued, Refused<()>> {
        let mut out = self.out.lock();
        if out.keeps(is_event, &self.limits) {
            return self.keep(&mut out, Item::parts(own, parts), is_event);
        }
        out.check(&self.limits)?;
        self.check_items()?;
        let before = out.queue.len();
        out.queue.append_parts(own, parts);
        let appended = out.queue.len() - before;
        if out.admit(&self.limits, appended)? {
            self.note_debt(&mut out);
        }
        self.note_item();
        cork::note_appended(own.len());
        cork::note_appended_shared(appended - own.len());
        self.cork(&mut out, is_event);
        Ok(out.queued(&self.limits))
    }

    /// Puts bytes that this and other connections will send on their account, once
    /// ([`Account::share`](crate::Account::share)).
    pub fn share(&self, bytes: Vec<u8>) -> Bytes {
        cork::note_shared(bytes.len());
        self.limits.account.share(bytes)
    }

    /// Sends the queued bytes, then shuts down the sending side; nothing more can be appended.
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

    /// Sends as much of the queue as the socket takes, shuts down the sending side, and closes the connection.
    pub fn finish_and_close(self: &Arc<Self>) {
        // If nothing waits, closing is enough.
        let is_idle = self.is_idle(&self.out.lock());
        if !is_idle {
            self.finish();
        }
        self.close();
    }

    /// Queues the last bytes, regardless of the queue's bound, and shuts down the sending side after them: a goodbye to
    /// a peer whose queue is full. The sweep that watches the connection limits the time for that
    /// ([`Connection::is_finishing`]).
    pub fn append_last(self: &Arc<Self>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = self.out.lock();
        if out.phase != Phase::Open {
            return;
        }
        out.forget_kept();
        let before = out.queue.len();
        let _ = out.queue.append(|bytes| {
            write(bytes);
            Ok::<(), ()>(())
        });
        out.phase = Phase::Finishing;
        out.note_queued(&self.limits);
        self.note_debt(&mut out);
        cork::note_appended(out.queue.len() - before);
        self.cork(&mut out, false);
    }

    /// Closes the connection now; queued bytes are lost.
    pub fn close(&self) {
        let mut out = self.out.lock();
        if out.phase == Phase::Closed {
            return;
        }
        out.close(&self.limits);
        self.note_debt_paid(&mut out);
        // Wakes a paused reader, which finds the connection closed.
        let reader = out.take_reader();
        drop(out);
        self.end.shut_down();
        reader.into_iter().for_each(|reader| reader.wake());
    }

    /// Stops reading from the next turn on, until it is resumed. Any thread may pause and resume. The end of a peer
    /// that closes its side is read all the same.
    pub fn pause_reading(&self) {
        self.reading_paused.store(true, Ordering::Relaxed);
    }

    /// Resumes a paused reader.
    pub fn resume_reading(&self) {
        // The lock orders this before or after a reader that is about to wait.
        let mut out = self.out.lock();
        self.note_received(clock::now_s());
        out.renew_input(clock::now_s());
        self.reading_paused.store(false, Ordering::Relaxed);
        let reader = out.take_reader();
        drop(out);
        reader.into_iter().for_each(|reader| reader.wake());
        if let Some(owner) = self.as_mailbox().and_then(Mailbox::owner) {
            owner.resumed();
        }
    }

    /// Whether reading is paused.
    pub fn is_reading_paused(&self) -> bool {
        self.reading_paused.load(Ordering::Relaxed)
    }

    /// Ready when the reader may read.
    pub(crate) fn poll_reading(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_reading_paused() {
            return Poll::Ready(());
        }
        let mut out = self.out.lock();
        if !self.is_reading_paused() || out.phase == Phase::Closed {
            return Poll::Ready(());
        }
        out.await_reading(cx.waker());
        Poll::Pending
    }

    /// Records how many bytes the protocol keeps of a message that it has consumed in part.
    pub fn note_partial(self: &Arc<Self>, bytes: usize) {
        let mut out = self.out.lock();
        out.set_partial(bytes, clock::now_s(), &self.limits);
        self.note_debt(&mut out);
    }

    /// Records how many input bytes are kept, and whether they belong to a new message.
    pub(crate) fn note_input(self: &Arc<Self>, bytes: usize, is_another: bool) {
        let mut out = self.out.lock();
        out.set_input(bytes, is_another, clock::now_s(), &self.limits);
        self.note_debt(&mut out);
    }

    /// For how many seconds the peer has taken none of the waiting bytes; 0 if none wait.
    pub fn deaf_for_s(&self) -> u32 {
        let out = self.out.lock();
        match out.blocked {
            true => clock::now_s().saturating_sub(out.taken_at_s),
            false => 0,
        }
    }

    /// The longest time for which the peer may take none of the waiting bytes.
    pub fn stall_max(&self) -> std::time::Duration {
        self.limits.stall_max
    }

    /// Whether the last bytes are queued: these are sent, and nothing more can be appended.
    pub fn is_finishing(&self) -> bool {
        self.out.lock().phase == Phase::Finishing
    }

    /// Whether the system closed the connection because the peer did not acknowledge data (`TCP_USER_TIMEOUT`).
    pub fn was_given_up(&self) -> bool {
        self.flags.has(Flag::GivenUp)
    }

    /// Adds to the time for which its input held threads.
    pub fn note_busy(&self, us: u64) {
        self.busy_us.fetch_add(us as u32, Ordering::Relaxed);
    }

    /// The time for which its input held threads, in microseconds; after 71 minutes it begins at 0 again.
    pub fn busy_us(&self) -> u32 {
        self.busy_us.load(Ordering::Relaxed)
    }

    /// Stores the owner's note about the connection, such as the reason for closing it; the first one stays.
    pub fn set_note(&self, note: u8) {
        let order = Ordering::Relaxed;
        let _ = self.note.compare_exchange(0, note, order, order);
    }

    /// The owner's note; 0: none.
    pub fn note(&self) -> u8 {
        self.note.load(Ordering::Relaxed)
    }

    /// Handles a failure of the socket.
    pub(crate) fn note_failure(&self, e: &io::Error) {
        if e.kind() == io::ErrorKind::TimedOut && self.out.lock().blocked {
            self.flags.set(Flag::GivenUp);
        }
    }

    /// Whether nothing can be appended any more.
    pub fn is_closed(&self) -> bool {
        self.out.lock().phase != Phase::Open
    }

    /// Waits until everything is sent, or the connection is closed. One task may wait.
    pub async fn sent(&self) {
        future::poll_fn(|cx| self.poll_sent(cx)).await;
    }

    /// The same, as a poll function.
    pub(crate) fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        let mut out = self.out.lock();
        // Queued bytes that are not being sent are in a cork.
        let is_sent = !out.sending && out.is_empty();
        if is_sent || out.phase == Phase::Closed {
            return Poll::Ready(());
        }
        out.await_sent(cx.waker());
        Poll::Pending
    }

    /// Bytes that wait to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.out.lock().queued_bytes()
    }

    /// The other end's address.
    pub fn peer(&self) -> PeerAddress {
        self.end.peer()
    }

    /// The peer's verified certificate, in DER.
    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        match self.stage() {
            Some(stage) => stage.lock().peer_certificate(),
            None => self.mailbox_certificate(),
        }
    }

    /// The secret that both ends of a TLS 1.3 channel share: `tls-exporter` (RFC 9266).
    pub fn tls_exporter(&self) -> Option<[u8; 32]> {
        self.stage()?.lock().tls_exporter()
    }

    /// The socket, unless this is a mailbox.
    pub(crate) fn socket(&self) -> io::Result<&Socket> {
        match &self.end {
            End::Socket(socket) => Ok(socket),
            End::Mailbox(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn stage(&self) -> Option<&Mutex<dyn Stage>> {
        self.extras.as_ref()?.stage.as_deref()
    }

    pub(crate) fn note_received(&self, now_s: u32) {
        // Zero means never.
        self.received_at_s.store(now_s.max(1), Ordering::Relaxed);
    }

    /// Records that the protocol has received its first byte.
    pub fn note_spoken(&self) {
        self.flags.set(Flag::Spoken);
    }

    /// Whether the peer has sent nothing yet, or only a complete TLS 1.3 handshake, as browsers do for later use.
    pub fn is_unused(&self) -> bool {
        let is_silent = !self.flags.has(Flag::Spoken);
        is_silent && (self.received_at_s() == 0 || self.tls_exporter().is_some())
    }

    /// The time of the last receipt, by [`crate::now_s`].
    pub fn received_at_s(&self) -> u32 {
        self.received_at_s.load(Ordering::Relaxed)
    }

    pub(crate) fn note_sent_at(&self, now_s: u32) {
        self.sent_at_s.store(now_s, Ordering::Relaxed);
    }

    /// The time of the last sending, by [`crate::now_s`].
    pub fn sent_at_s(&self) -> u32 {
        self.sent_at_s.load(Ordering::Relaxed)
    }

    /// Makes this thread flush the connection. A reply does not wait in the line of a fan-out, this thread's or
    /// another's; an event does.
    pub(crate) fn cork(self: &Arc<Self>, out: &mut Out, is_event: bool) {
        // The thread that is sending takes these bytes too.
        if out.sending {
            return;
        }
        let thread = cork::thread_number();
        let may_wait = is_event || (out.corked_by == thread && !cork::is_deferring());
        if out.corked_by == 0 || !may_wait {
            out.corked_by = thread;
            cork::touch(Arc::clone(self));
        }
    }

    /// Removes the connection from its cork: a later append corks it again. Returns whether there is something to flush
    /// now.
    pub(crate) fn leave_cork(&self) -> bool {
        let mut out = self.out.lock();
        out.corked_by = 0;
        !out.is_empty() || self.is_tls() || out.phase != Phase::Open
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A connection whose tasks ended with their runtime has not been closed.
        let is_debtor = self.out.get_mut().is_debtor();
        self.out.get_mut().settle(&self.limits);
        if is_debtor {
            self.limits.account.forget(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_costs_little() {
        // With its counts 160 bytes, a size that every allocator here has.
        assert!(
            size_of::<Connection>() <= 144,
            "{}",
            size_of::<Connection>()
        );
    }
}
