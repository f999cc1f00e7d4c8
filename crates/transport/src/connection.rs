//! A connection as everybody but its reader sees it: something to append to.
//!
//! Appending happens under a realm's lock, so it only copies bytes. Sending happens outside it,
//! by whichever thread comes first: that thread takes what is queued and sends until nothing is
//! left (a *combining* flush, in `flush.rs`), and a thread that comes meanwhile leaves its bytes to it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::{fmt, future, io, mem};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::end::End;
use crate::out::{Out, Phase};
use crate::overflow::{Item, Queued};
use crate::queue::SHARED_BYTES_MIN;
use crate::{ConnectionLimits, Filter, Meter, PeerAddress, Refused, Socket, Stage, clock, cork};

/// A socket with its queue. Shared by all who send to it; its reader is [`crate::pump`].
pub struct Connection {
    pub(crate) end: End,
    pub(crate) limits: Arc<ConnectionLimits>,
    pub(crate) out: Mutex<Out>,
    /// Set before the connection is shared, if at all; boxed because most have none.
    pub(crate) stage: Option<Box<Mutex<dyn Stage>>>,
    /// Boxed twice, because most have none: so an idle connection holds one word for it.
    pub(crate) filter: OnceLock<Box<Box<Mutex<dyn Filter>>>>,
    pub(crate) meter: Option<Arc<Meter>>,
    /// Seconds since the worker's start at which something was last received.
    received_at_s: AtomicU32,
    /// The same of what was last sent.
    sent_at_s: AtomicU32,
    reading_paused: AtomicBool,
    /// The system gave the peer up while bytes waited for it.
    given_up: AtomicBool,
    /// The peer has said something, under TLS if there is any.
    has_spoken: AtomicBool,
    note: AtomicU8,
}

impl Connection {
    /// A connection over a socket just accepted or connected.
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
        Self {
            end,
            limits,
            stage,
            filter: OnceLock::new(),
            meter: None,
            out: Mutex::default(),
            received_at_s: AtomicU32::new(0),
            sent_at_s: AtomicU32::new(0),
            reading_paused: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            has_spoken: AtomicBool::new(false),
            note: AtomicU8::new(0),
        }
    }

    /// Has `meter` count what goes through the socket.
    pub fn with_meter(mut self, meter: Arc<Meter>) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Queues what `write` appends, to be sent when the current input has been handled. A caller
    /// that appends without an input, or outside a pump, calls [`crate::uncork`] then.
    pub fn append<E>(
        self: &Arc<Self>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), Refused<E>> {
        self.append_below(usize::MAX, write)
    }

    /// The same, unless so many bytes are queued already, or any while the account of all
    /// connections is nearly spent: for what its sender can keep until the peer reads again, which
    /// [`Connection::sent`] tells.
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

    /// Queues one item: `own` bytes, into which each of `parts` belongs at its place, in order; other
    /// connections may send the parts too. An event waits in a fan-out's line, anything else does not.
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

    /// Puts bytes that this and other connections are going to send on their account, once
    /// ([`Account::share`](crate::Account::share)).
    pub fn share(&self, bytes: Vec<u8>) -> Bytes {
        cork::note_shared(bytes.len());
        self.limits.account.share(bytes)
    }

    /// Sends everything that is appended from now on through `filter`. What was appended before
    /// goes as it is; a second filter is not taken.
    pub fn set_filter(&self, filter: Box<Mutex<dyn Filter>>) {
        let mut out = self.out.lock();
        if self.filter.set(Box::new(filter)).is_ok() && !out.queue.is_empty() {
            out.unfiltered = Some(Box::new(mem::take(&mut out.queue)));
        }
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

    /// Sends what the socket takes of what is queued, says the end of our side, and ends the connection.
    pub fn finish_and_close(self: &Arc<Self>) {
        // Where nothing waits, closing says as much.
        let is_idle = self.is_idle(&self.out.lock());
        if !is_idle {
            self.finish();
        }
        self.close();
    }

    /// Queues the last bytes, however much waits before them, and shuts the sending side down when
    /// they are sent: a goodbye to a peer whose queue is full. How long it has to take all that is for
    /// the sweep that watches the connection to say ([`Connection::is_finishing`]).
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

    /// Ends the connection now; what is queued is lost.
    pub fn close(&self) {
        let mut out = self.out.lock();
        if out.phase == Phase::Closed {
            return;
        }
        out.close(&self.limits);
        self.note_debt_paid(&mut out);
        // A paused reader learns of the end.
        let reader = out.take_reader();
        drop(out);
        self.end.shut_down();
        reader.into_iter().for_each(|reader| reader.wake());
    }

    /// Has the reader read nothing more, from its next turn on, until it is resumed. Any thread
    /// may pause and resume it. A peer that closes its side is read to its end all the same.
    pub fn pause_reading(&self) {
        self.reading_paused.store(true, Ordering::Relaxed);
    }

    /// Has a paused reader go on.
    pub fn resume_reading(&self) {
        // The lock orders this before or after a reader that is about to wait.
        let mut out = self.out.lock();
        self.note_received(clock::now_s());
        out.renew_input(clock::now_s());
        self.reading_paused.store(false, Ordering::Relaxed);
        let reader = out.take_reader();
        drop(out);
        reader.into_iter().for_each(|reader| reader.wake());
    }

    /// Whether the reader is paused.
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

    /// Whether the peer has taken nothing of what waits for it for too long, or so little that it
    /// is not going to have all of it. To be asked now and then; each time is a judgement.
    pub fn is_stalled(&self) -> bool {
        self.out.lock().is_stalled(clock::now_s(), &self.limits)
    }

    /// Whether a message of the peer's has been coming too slowly for too long.
    pub fn is_input_overdue(&self) -> bool {
        if self.is_reading_paused() {
            return false;
        }
        let out = self.out.lock();
        out.is_input_overdue(clock::now_s(), &self.limits)
    }

    /// Notes how much the protocol keeps of a message that it has consumed a part of.
    pub fn note_partial(self: &Arc<Self>, bytes: usize) {
        let mut out = self.out.lock();
        out.set_partial(bytes, clock::now_s(), &self.limits);
        self.note_debt(&mut out);
    }

    /// Notes how much of the input is kept, and whether that is of another message than before.
    pub(crate) fn note_input(self: &Arc<Self>, bytes: usize, is_another: bool) {
        let mut out = self.out.lock();
        out.set_input(bytes, is_another, clock::now_s(), &self.limits);
        self.note_debt(&mut out);
    }

    /// For how many seconds the peer has taken nothing of what waits for it; 0 where nothing waits.
    pub fn deaf_for_s(&self) -> u32 {
        let out = self.out.lock();
        match out.blocked {
            true => clock::now_s().saturating_sub(out.taken_at_s),
            false => 0,
        }
    }

    /// How long the peer may take nothing of what waits for it.
    pub fn stall_max(&self) -> std::time::Duration {
        self.limits.stall_max
    }

    /// Whether the last bytes are on their way: what is queued is sent, and nothing more.
    pub fn is_finishing(&self) -> bool {
        self.out.lock().phase == Phase::Finishing
    }

    /// Whether the system ended the connection because the peer took nothing of what waited for it
    /// (`TCP_USER_TIMEOUT`).
    pub fn was_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Keeps a word of the owner's about the connection, as why it is being closed; the first one stays.
    pub fn set_note(&self, note: u8) {
        let order = Ordering::Relaxed;
        let _ = self.note.compare_exchange(0, note, order, order);
    }

    /// The owner's word; 0: none.
    pub fn note(&self) -> u8 {
        self.note.load(Ordering::Relaxed)
    }

    /// The socket has failed.
    pub(crate) fn note_failure(&self, e: &io::Error) {
        if e.kind() == io::ErrorKind::TimedOut && self.out.lock().blocked {
            self.given_up.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing can be appended any more.
    pub fn is_closed(&self) -> bool {
        self.out.lock().phase != Phase::Open
    }

    /// Waits until nothing is left to send, or the connection is closed. One task may wait.
    pub async fn sent(&self) {
        future::poll_fn(|cx| self.poll_sent(cx)).await;
    }

    /// The same, by hand.
    pub(crate) fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        let mut out = self.out.lock();
        // What is queued and not being sent is in a cork.
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

    /// The certificate that the peer has shown, checked, in DER.
    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        match self.stage() {
            Some(stage) => stage.lock().peer_certificate(),
            None => self.mailbox_certificate(),
        }
    }

    /// What both ends know of a TLS 1.3 channel and nobody else does: `tls-exporter` (RFC 9266).
    pub fn tls_exporter(&self) -> Option<[u8; 32]> {
        self.stage()?.lock().tls_exporter()
    }

    /// The socket, where there is one.
    pub(crate) fn socket(&self) -> io::Result<&Socket> {
        match &self.end {
            End::Socket(socket) => Ok(socket),
            End::Mailbox(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn stage(&self) -> Option<&Mutex<dyn Stage>> {
        self.stage.as_deref()
    }

    pub(crate) fn note_received(&self, now_s: u32) {
        // Zero is never.
        self.received_at_s.store(now_s.max(1), Ordering::Relaxed);
    }

    /// Notes that the protocol has got its first byte.
    pub fn note_spoken(&self) {
        self.has_spoken.store(true, Ordering::Relaxed);
    }

    /// Whether the peer has sent nothing yet, or no more than a whole handshake of TLS 1.3, as browsers do for later.
    pub fn is_unused(&self) -> bool {
        let is_silent = !self.has_spoken.load(Ordering::Relaxed);
        is_silent && (self.received_at_s() == 0 || self.tls_exporter().is_some())
    }

    /// When something was last received, by [`crate::now_s`].
    pub fn received_at_s(&self) -> u32 {
        self.received_at_s.load(Ordering::Relaxed)
    }

    pub(crate) fn note_sent_at(&self, now_s: u32) {
        self.sent_at_s.store(now_s, Ordering::Relaxed);
    }

    /// When something was last sent, by [`crate::now_s`].
    pub fn sent_at_s(&self) -> u32 {
        self.sent_at_s.load(Ordering::Relaxed)
    }

    /// Sees to it that this thread flushes the connection. A reply does not stand in the line of
    /// a fan-out, this thread's or another's; an event does.
    pub(crate) fn cork(self: &Arc<Self>, out: &mut Out, is_event: bool) {
        // While somebody is sending, that somebody takes these bytes too.
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

    /// Whoever appends from now on sees to it that the connection is flushed; whether there is something to flush now.
    pub(crate) fn leave_cork(&self) -> bool {
        let mut out = self.out.lock();
        out.corked_by = 0;
        !out.is_empty() || self.stage.is_some() || out.phase != Phase::Open
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
        // A connection whose tasks ended with their runtime was not closed by anybody.
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
        // With its counts and the allocator's word, a multiple of 16.
        assert!(size_of::<Connection>() <= 232);
    }
}
