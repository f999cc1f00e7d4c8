//! A connected client as its space and its realm see it: packets to its socket, and the realm's answers in a mailbox.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use crosstie_front::cause::Cause;
use crosstie_front::counters::{Counter, counters};
use crosstie_mqtt::{ConnAck, Disconnect, Packet, PacketType, ReasonCode, Version};
use crosstie_topics::{ConnectionKey, Content, Refused};
use crosstie_transport::{
    Bounds, Connection, ConnectionLimits, Overflow, Owner, PeerAddress, Portion, Queued,
    Refused as Unqueued, Taken,
};
use crosstie_wamp::Message;
use crosstie_wamp::Serializer;
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{APART_BYTES_MIN, Item, rawsocket};
use parking_lot::Mutex;

use crate::figures::Figures;
use crate::frames::{BINARY, FRAMING, write_framed};
use crate::own_content::OwnContent;
use crate::replays::Waiting;

/// One connection of a client.
pub(crate) struct Client {
    pub(crate) connection: Arc<Connection>,
    /// Receives the realm's messages for the client's session.
    pub(crate) mailbox: Arc<Connection>,
    pub(crate) version: Version,
    /// Packets are in frames of a WebSocket.
    is_framed: bool,
    flags: AtomicU8,
    /// Set with the session in the space.
    session: OnceLock<(ConnectionKey, Arc<str>)>,
    moment: Mutex<Option<Box<Moment>>>,
    /// Set while retained events of the realm are still to be sent.
    pub(crate) replays: Waiting,
    space: Arc<dyn Resume>,
}

/// The parts of a client that its beginning and its end need.
enum Moment {
    /// CONNACK, until the space asks for it.
    Opening(Opening),
    /// Its will, once the space has ended its connection.
    Will(OwnContent),
}

/// The steps that follow once the space opens a connection.
struct Opening {
    connack: Box<[u8]>,
    /// Begins the keep alive: until then the time for a handshake counts.
    begin: Box<dyn FnOnce() + Send>,
}

/// The space of a client, which may send to it again.
pub(crate) trait Resume: Send + Sync {
    fn resume(&self, key: ConnectionKey);
}

/// Nothing more is read, and nothing more sent.
const OVER: u8 = 1;
/// The space does not want more input for now.
const PAUSED: u8 = 2;
/// A task waits until the output is sent.
const AWAITED: u8 = 4;
/// CONNACK is not sent.
const OPENING: u8 = 8;
/// Too much waits for the store.
const CROWDED: u8 = 16;
/// A receiver of the client's messages is slow: a task waits for it before more input.
const HELD_BACK: u8 = 32;
/// The oldest messages of QoS 0 make room for newer ones.
const DROPS_OLDEST: u8 = 64;
/// A message of QoS 0 without room ends the connection.
const ENDS_SLOW: u8 = 128;

/// Messages of the realm that wait for a client: the answer to its only request, and the end of its session.
const ANSWERS_MAX: usize = 8;

/// The serializer of the realm's answers.
pub(crate) const SERIALIZER: Serializer = Serializer::Cbor;

impl Client {
    pub(crate) fn new(
        connection: &Arc<Connection>,
        limits: &Arc<ConnectionLimits>,
        (version, is_framed): (Version, bool),
        space: Arc<dyn Resume>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| Self {
            mailbox: Arc::new(Connection::owned_mailbox(
                ANSWERS_MAX,
                Arc::clone(limits),
                own.clone(),
            )),
            connection: Arc::clone(connection),
            version,
            is_framed,
            flags: AtomicU8::new(0),
            session: OnceLock::new(),
            moment: Mutex::default(),
            replays: Waiting::default(),
            space,
        })
    }

    /// Another one of the same connection, for a login beside its session.
    pub(crate) fn twin(&self, limits: &Arc<ConnectionLimits>) -> Arc<Self> {
        let form = (self.version, self.is_framed);
        Self::new(&self.connection, limits, form, Arc::clone(&self.space))
    }

    pub(crate) fn set_session(&self, key: ConnectionKey, client_id: &Arc<str>) {
        // A connection has one session.
        let _ = self.session.set((key, Arc::clone(client_id)));
    }

    /// Its identifier in the space.
    pub(crate) fn client_id(&self) -> &str {
        self.session.get().map_or("", |(_, client_id)| client_id)
    }

    /// Leaves the will to this client's conversation, if it is its own.
    pub(crate) fn keep_will(&self, client_id: &str, will: &Content<'_>) -> bool {
        let is_own = |(_, own): &(_, Arc<str>)| **own == *client_id;
        let is_own = self.session.get().is_some_and(is_own);
        if is_own {
            *self.moment.lock() = Some(Box::new(Moment::Will(OwnContent::of(will))));
        }
        is_own
    }

    pub(crate) fn take_will(&self) -> Option<OwnContent> {
        let moment = self.moment.lock().take()?;
        match *moment {
            Moment::Will(will) => Some(will),
            Moment::Opening(_) => None,
        }
    }

    /// Applies the bounds of the client's role, realm or listener to its output.
    pub(crate) fn bound(&self, bounds: Option<Bounds>) {
        match bounds.map(|bounds| bounds.overflow) {
            Some(Overflow::DropOldest) => drop(self.set(DROPS_OLDEST)),
            Some(Overflow::Disconnect) => drop(self.set(ENDS_SLOW)),
            _ => {}
        }
        self.connection.bound(bounds);
    }

    /// Whether a message may be removed from its output.
    pub(crate) fn drops_oldest(&self) -> bool {
        self.has(DROPS_OLDEST)
    }

    /// Keeps CONNACK until the space asks for it. Nothing is read before.
    pub(crate) fn keep_connack(&self, connack: ConnAck<'_>, begin: impl FnOnce() + Send + 'static) {
        let mut octets = Vec::new();
        let _ = Packet::ConnAck(connack).encode(self.version, &mut octets);
        *self.moment.lock() = Some(Box::new(Moment::Opening(Opening {
            connack: octets.into(),
            begin: Box::new(begin),
        })));
        self.set(OPENING);
    }

    pub(crate) fn send_connack(&self) {
        let moment = self
            .moment
            .lock()
            .take_if(|moment| matches!(**moment, Moment::Opening(_)));
        let Some(Moment::Opening(Opening { connack, begin })) = moment.map(|moment| *moment) else {
            return;
        };
        begin();
        self.send_octets(PacketType::ConnAck, |out| out.extend_from_slice(&connack));
        self.flags.fetch_and(!OPENING, Ordering::SeqCst);
        self.connection.resume_reading();
    }

    /// Queues a packet. A client that cannot be answered is closed.
    pub(crate) fn send(&self, packet: &Packet<'_>) {
        self.send_octets(packet.packet_type(), |out| {
            // Packets of the router are well-formed in each version.
            let _ = packet.encode(self.version, out);
        });
    }

    fn send_octets(&self, packet_type: PacketType, write: impl FnOnce(&mut Vec<u8>)) {
        Figures::get().count_sent(packet_type);
        let sent = self.append(write);
        if sent == Err(Refused::Full) && !self.is_over() {
            Cause::AnswerQueueFull.note(&self.connection);
            self.connection.close();
        }
    }

    /// Queues a PUBLISH of two parts; the second is shared by its receivers.
    pub(crate) fn publish(
        &self,
        head: &[u8],
        rest: &[u8],
        shared: &mut Option<Bytes>,
    ) -> Result<Queued, Refused> {
        if self.is_over() {
            return Err(Refused::Gone);
        }
        // Others wait in the session.
        let may_be_lost = is_at_most_once(head, rest);
        let is_event = may_be_lost || !self.has(DROPS_OLDEST);
        let published = match self.is_framed {
            true => self.publish_framed(head, rest, is_event, shared),
            false => {
                let rest = shared.get_or_insert_with(|| self.connection.share(rest.to_vec()));
                let appended = match head {
                    [] => self.connection.append_shared(rest),
                    head => {
                        let parts = [(head.len(), &*rest)];
                        self.connection.append_parts(head, &parts, is_event)
                    }
                };
                appended.map_err(refused)
            }
        };
        if published == Err(Refused::Full) && may_be_lost && self.has(ENDS_SLOW) {
            counters().count(Counter::SessionsClosedForSlowness);
            Cause::EventQueueFull.note(&self.connection);
            self.end(ReasonCode::QuotaExceeded);
        }
        published
    }

    fn publish_framed(
        &self,
        head: &[u8],
        rest: &[u8],
        is_event: bool,
        shared: &mut Option<Bytes>,
    ) -> Result<Queued, Refused> {
        if rest.len() < APART_BYTES_MIN {
            let mut own = Vec::with_capacity(head.len() + rest.len() + 16);
            let _ = write_framed(true, &mut own, |out| {
                out.extend_from_slice(head);
                out.extend_from_slice(rest);
            });
            let appended = self.connection.append_parts(&own, &[], is_event);
            return appended.map_err(refused);
        }
        let mut own = Vec::with_capacity(head.len() + 16);
        let framed = FRAMING.frame_around(BINARY, head.len(), rest.len(), &mut own, |own| {
            own.extend_from_slice(head);
            Ok::<(), ()>(())
        });
        if framed.is_err() {
            return Err(Refused::Gone);
        }
        let rest = shared.get_or_insert_with(|| self.connection.share(rest.to_vec()));
        let appended = self
            .connection
            .append_parts(&own, &[(own.len(), rest)], is_event);
        appended.map_err(refused)
    }

    fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused> {
        let is_framed = self.is_framed;
        let appended = self
            .connection
            .append(|out| write_framed(is_framed, out, write));
        appended.map_err(refused)
    }

    /// Ends the connection: a client of MQTT 5 learns the reason, others see the end.
    pub(crate) fn end(&self, reason: ReasonCode) {
        if self.set(OVER) {
            return;
        }
        // DISCONNECT does not come before CONNACK.
        if !self.version.is_v5() || self.flags.load(Ordering::SeqCst) & OPENING != 0 {
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

    /// Notes that the connection ends.
    pub(crate) fn note_over(&self) {
        self.set(OVER);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.has(OVER)
    }

    /// Reads no more before a slow receiver has taken most of its output.
    pub(crate) fn hold_back(self: &Arc<Self>, slow: Arc<Connection>) {
        if self.set(HELD_BACK) {
            return;
        }
        counters().count(Counter::PublishersHeldBack);
        self.connection.pause_reading();
        let client = Arc::downgrade(self);
        tokio::spawn(async move {
            slow.eased().await;
            if let Some(client) = client.upgrade() {
                client.flags.fetch_and(!HELD_BACK, Ordering::SeqCst);
                client.connection.resume_reading();
            }
        });
    }

    /// Stops or continues reading for the space.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        if is_paused {
            self.set(PAUSED);
        } else {
            self.flags.fetch_and(!PAUSED, Ordering::SeqCst);
            self.connection.resume_reading();
        }
    }

    /// Stops reading until the store has caught up. Returns whether it was read before.
    pub(crate) fn set_crowded(&self) -> bool {
        !self.set(CROWDED)
    }

    /// Continues reading after [`Self::set_crowded`].
    pub(crate) fn go_on(&self) {
        self.flags.fetch_and(!CROWDED, Ordering::SeqCst);
        self.connection.resume_reading();
    }

    pub(crate) fn is_held_back(&self) -> bool {
        self.has(HELD_BACK)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.flags.load(Ordering::SeqCst) & (PAUSED | OPENING | CROWDED | HELD_BACK) != 0
    }

    /// Lets the space continue to send once the output is sent. Needs a runtime.
    pub(crate) fn resume_when_sent(self: &Arc<Self>) {
        if self.set(AWAITED) {
            return;
        }
        let client = Arc::clone(self);
        tokio::spawn(async move {
            client.connection.sent().await;
            client.flags.fetch_and(!AWAITED, Ordering::SeqCst);
            if let (Some((key, _)), false) = (client.session.get(), client.is_over()) {
                client.space.resume(*key);
                client.replays.note_room();
                crosstie_transport::uncork();
            }
        });
    }

    /// Takes the realm's messages that wait, and passes each to `handle`.
    pub(crate) fn take_messages(&self, mut handle: impl FnMut(&Message<'_>)) {
        let Taken::Bytes(mut bytes) = self.mailbox.take(Portion::All) else {
            return;
        };
        let mut frames = rawsocket::Decoder::new(rawsocket::LENGTH_MAX);
        let mut at = 0;
        // Only this router writes there.
        while let Ok(step) = frames.next(&mut bytes[at..])
            && step.consumed > 0
        {
            at += step.consumed;
            if let Some(Item::Message { bytes, .. }) = step.item {
                match codec::decode(SERIALIZER, bytes, &Limits::default()) {
                    Ok(message) => handle(&message),
                    Err(e) => debug_assert!(false, "a message of the realm: {e}"),
                }
            }
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Sets a flag. Returns whether it was set.
    fn set(&self, flag: u8) -> bool {
        self.flags.fetch_or(flag, Ordering::SeqCst) & flag != 0
    }
}

impl Owner for Client {
    fn peer(&self) -> PeerAddress {
        self.connection.peer()
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        self.connection.peer_certificate()
    }

    /// The client's own thread takes the answers to its requests at once: what is offered is the end of its session.
    fn offered(&self) {
        if self.is_over() {
            return;
        }
        let mut end = None;
        self.take_messages(|message| match message {
            Message::Goodbye { reason, .. } => end = Some(is_for_good(reason)),
            Message::Abort { .. } => end = Some(true),
            _ => {}
        });
        match end {
            Some(true) => {
                Cause::Operator.note(&self.connection);
                self.end(ReasonCode::AdministrativeAction);
                crosstie_transport::uncork();
                self.connection.close();
            }
            Some(false) => {
                Cause::Stop.note(&self.connection);
                self.close();
            }
            None if self.mailbox.is_closed() => self.close(),
            None => {}
        }
    }

    fn resumed(&self) {
        self.connection.resume_reading();
    }
}

/// Whether a client shall not come back after that GOODBYE. After DISCONNECT, some clients never do.
fn is_for_good(reason: &str) -> bool {
    !matches!(
        reason,
        "wamp.close.system_shutdown" | "wamp.close.close_realm"
    )
}

/// Whether a PUBLISH of two parts has QoS 0.
fn is_at_most_once(head: &[u8], rest: &[u8]) -> bool {
    let first = head.first().or_else(|| rest.first());
    first.is_none_or(|first| first & 0b110 == 0)
}

fn refused<E>(refused: Unqueued<E>) -> Refused {
    match refused {
        Unqueued::Gone => Refused::Gone,
        Unqueued::Full | Unqueued::Writer(_) => Refused::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_costs_little() {
        assert!(size_of::<Client>() <= 112, "{}", size_of::<Client>());
    }
}
