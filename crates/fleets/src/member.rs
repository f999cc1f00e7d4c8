//! A connected client as its vhost and its fleet see it: packets to its socket, and a mailbox for the vhost's frames.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use crosstie_broker::guest::Guest;
use crosstie_front::cause::Cause;
use crosstie_front::end_reason::EndReason;
use crosstie_mqtt::{Disconnect, Packet, PacketType, ReasonCode, Version};
use crosstie_spaces::{Figures, write_framed};
use crosstie_transport::{Connection, ConnectionLimits, Owner, PeerAddress, Refused};
use parking_lot::{Mutex, MutexGuard};

use crate::session::{RECEIVE_MAX, Session};

/// One connection of a client.
pub(crate) struct Member {
    pub(crate) connection: Arc<Connection>,
    /// Receives the vhost's frames.
    pub(crate) mailbox: Arc<Connection>,
    pub(crate) version: Version,
    /// Packets are in frames of a WebSocket.
    is_framed: bool,
    flags: AtomicU8,
    inner: Mutex<Inner>,
    own: Weak<Self>,
}

/// The part that one thread at a time changes: the client's, or one that brings it deliveries.
#[derive(Default)]
pub(crate) struct Inner {
    /// `None` before the client has entered its vhost, and after it has left.
    pub(crate) guest: Option<Guest>,
    /// Frames that are not handled yet.
    pub(crate) frames: Vec<u8>,
    pub(crate) session: Session,
}

/// Nothing more is read, and nothing more sent.
const OVER: u8 = 1;
/// A task waits until the output is sent.
const AWAITED: u8 = 2;
/// Nothing is read until some of its publications are confirmed.
const UNCONFIRMED: u8 = 4;

impl Member {
    pub(crate) fn new(
        connection: &Arc<Connection>,
        limits: Arc<ConnectionLimits>,
        (version, is_framed): (Version, bool),
    ) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| Self {
            mailbox: Arc::new(Connection::owned_mailbox(usize::MAX, limits, own.clone())),
            connection: Arc::clone(connection),
            version,
            is_framed,
            flags: AtomicU8::new(0),
            inner: Mutex::default(),
            own: own.clone(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Queues a packet. A client that cannot be answered is closed.
    pub(crate) fn send(&self, packet: &Packet<'_>) {
        if self.is_over() {
            return;
        }
        Figures::get().count_sent(packet.packet_type());
        let sent = self.append(|out| {
            // Packets of the router are well-formed in each version.
            let _ = packet.encode(self.version, out);
        });
        if sent == Err(Refused::Full) {
            Cause::AnswerQueueFull.note(&self.connection);
            self.connection.close();
        }
    }

    /// Queues what `write` writes.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused<()>> {
        self.connection
            .append(|out| write_framed(self.is_framed, out, write))
    }

    /// Ends the connection: a client of MQTT 5 learns the reason, others see the end.
    pub(crate) fn end(&self, reason: ReasonCode) {
        if self.set(OVER) {
            return;
        }
        if !self.version.is_v5() {
            return self.connection.close();
        }
        Figures::get().count_sent(PacketType::Disconnect);
        let packet = Packet::Disconnect(Disconnect::new(reason));
        self.connection.append_last(|out| {
            let _ = write_framed(self.is_framed, out, |out| {
                let _ = packet.encode(self.version, out);
            });
        });
    }

    /// Closes the connection without a packet, so that the client comes back.
    pub(crate) fn close(&self) {
        self.set(OVER);
        self.connection.close();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.flags.load(Ordering::SeqCst) & OVER != 0
    }

    /// Notes that the connection ends.
    pub(crate) fn note_over(&self) {
        self.set(OVER);
    }

    /// Another connection has the client's identifier: this one leaves the vhost, without its will.
    pub(crate) fn give_way(&self) {
        self.end(ReasonCode::SessionTakenOver);
        let guest = self.lock().guest.take();
        if let Some(guest) = guest {
            guest.leave(EndReason::Closed, false);
        }
        // The client need not close it first.
        self.connection.finish();
    }

    /// Charges the publications that wait for their confirm, and stops or continues reading at their bound.
    pub(crate) fn note_owed(&self, session: &mut Session) {
        match session.take_owed_bytes() {
            0 => {}
            delta => self.mailbox.hold(delta),
        }
        let max = usize::from(RECEIVE_MAX);
        if session.owed() >= max {
            self.set(UNCONFIRMED);
        } else if session.owed() <= max / 2 && self.is_unconfirmed() {
            self.flags.fetch_and(!UNCONFIRMED, Ordering::SeqCst);
            self.connection.resume_reading();
        }
    }

    /// Whether nothing is read until some of its publications are confirmed.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.flags.load(Ordering::SeqCst) & UNCONFIRMED != 0
    }

    /// Continues with the vhost's frames once the output is sent. Needs a runtime.
    pub(crate) fn receive_when_sent(&self) {
        if self.set(AWAITED) {
            return;
        }
        let own = self.own.clone();
        let connection = Arc::clone(&self.connection);
        tokio::spawn(async move {
            connection.sent().await;
            if let Some(member) = own.upgrade() {
                member.flags.fetch_and(!AWAITED, Ordering::SeqCst);
                member.receive();
                crosstie_transport::uncork();
            }
        });
    }

    /// Handles the vhost's frames in a task of its own, which holds nothing. Needs a runtime.
    pub(crate) fn receive_later(&self) {
        let own = self.own.clone();
        tokio::spawn(async move {
            if let Some(member) = own.upgrade() {
                member.receive();
                crosstie_transport::uncork();
            }
        });
    }

    /// Sets a flag. Returns whether it was set.
    fn set(&self, flag: u8) -> bool {
        self.flags.fetch_or(flag, Ordering::SeqCst) & flag != 0
    }
}

impl Owner for Member {
    fn peer(&self) -> PeerAddress {
        self.connection.peer()
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        self.connection.peer_certificate()
    }

    fn offered(&self) {
        match self.inner.try_lock() {
            Some(inner) => self.receive_in(inner),
            // This thread may hold it, or that of another client which this thread holds up.
            None => self.receive_later(),
        }
    }

    fn resumed(&self) {
        self.connection.resume_reading();
    }
}
