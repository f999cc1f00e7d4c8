//! One WAMP session after another on one connection: HELLO, everything routed, GOODBYE.

use std::borrow::Cow;
use std::cell::Cell;
use std::mem;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use crosstie_front::end_reason::EndReason;
use crosstie_front::report;
use crosstie_routing::{SessionKey, Violation, error};
use crosstie_transport::Budget;
use crosstie_wamp::codec::{self, DecodeError};
use crosstie_wamp::framing::{Framing, FramingError, batched};
use crosstie_wamp::{Dict, Message, Value};

use crate::entrance::Entrance;
use crate::farewell::{GOING_AWAY, answer_to};
use crate::live_methods::LiveMethods;
use crate::message_counts::{Direction, is_of_sessions};
use crate::payload_encodings::Source;
use crate::peer::Peer;
use crate::pending_handshake::Pending;
use crate::rate::Halt;
use crate::realm::SharedRealm;

/// The state of a session. WAMP basic profile, "Session Establishment" and "Session Closing".
pub struct Session {
    pub(super) entrance: Arc<Entrance>,
    pub(super) auth: Arc<LiveMethods>,
    pub peer: Peer,
    pub(crate) state: State,
    /// Number of HELLOs refused since the last session.
    pub(super) refusals: u8,
    /// Number of log lines about topics without publishers.
    silent_topics: Cell<u8>,
    /// Whether the session waits for an event before it handles more.
    pub(super) halt: Halt,
    pub(super) kind: Kind,
    /// Steps used by its messages in the present turn.
    steps: u32,
}

/// Only routers publish to topics with this prefix; this router publishes none in a realm without the meta API.
const META: &str = "wamp.";
/// Bytes checked and forwarded in the time of one step.
const STEP_BYTES: usize = 128;
/// The reason with which a client has its cookie forgotten.
const LOGOUT: &str = "wamp.close.logout";
/// Maximum number of such lines for one session.
const SILENT_TOPICS_SAID_MAX: u8 = 16;

/// The kind of a session. One octet, so that idle sessions stay small.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// With a rate limit or a message size limit.
    Limited,
    /// The handshake tells who the client is, and joins no realm.
    Check,
}

pub(super) enum State {
    /// No session, or the last one has ended: expects HELLO, or the continuation of a pending handshake.
    Closed(Option<Box<Pending>>),
    Joined {
        realm: Arc<SharedRealm>,
        key: SessionKey,
    },
}

impl State {
    pub(super) fn take_pending(&mut self) -> Option<Box<Pending>> {
        match self {
            Self::Closed(pending) => pending.take(),
            Self::Joined { .. } => None,
        }
    }
}

impl Session {
    pub fn new(entrance: Arc<Entrance>, auth: Arc<LiveMethods>, peer: Peer) -> Self {
        Self {
            entrance,
            auth,
            peer,
            state: State::Closed(None),
            refusals: 0,
            silent_topics: Cell::new(0),
            halt: Halt::No,
            kind: Kind::Plain,
            steps: 0,
        }
    }

    /// One whose handshake tells who the client is, by WELCOME, and joins no realm: for a client of another session that logs
    /// in again.
    pub fn check(entrance: Arc<Entrance>, auth: Arc<LiveMethods>, peer: Peer) -> Self {
        Self {
            kind: Kind::Check,
            ..Self::new(entrance, auth, peer)
        }
    }

    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.kind == Kind::Limited
    }

    /// Handles one message, received at `now`. After a `Break` the output queue is sent, then the connection ends.
    #[inline]
    pub fn handle_message(&mut self, bytes: &[u8], now: Instant) -> ControlFlow<()> {
        self.handle_bytes(bytes, None, now)
    }

    /// The same for a message at `place` in a buffer that receivers may share.
    pub fn handle_shared(
        &mut self,
        source: &Bytes,
        place: Range<usize>,
        now: Instant,
    ) -> ControlFlow<()> {
        self.handle_bytes(&source[place], Some(source), now)
    }

    /// The same for a message in place of a packet of another protocol, whose owner bounds that packet's size. The packet
    /// counts against the session's rate.
    pub fn handle_in_place_of(
        &mut self,
        packet_bytes: usize,
        bytes: &[u8],
        now: Instant,
    ) -> ControlFlow<()> {
        let flow = self.handle_decoded(bytes, None, now);
        if self.is_limited() {
            self.charge(now, packet_bytes);
        }
        flow
    }

    fn handle_bytes(
        &mut self,
        bytes: &[u8],
        source: Option<&Bytes>,
        now: Instant,
    ) -> ControlFlow<()> {
        let is_limited = self.is_limited();
        if self.peer.connection.is_tapped() {
            self.peer.connection.tap_received(bytes);
        }
        if is_limited && let Some(max) = self.message_bytes_max().filter(|&max| bytes.len() > max) {
            return self.abort_too_long(bytes.len(), max);
        }
        let flow = self.handle_decoded(bytes, source, now);
        if is_limited {
            self.charge(now, bytes.len());
        }
        flow
    }

    #[inline]
    fn handle_decoded(
        &mut self,
        bytes: &[u8],
        source: Option<&Bytes>,
        now: Instant,
    ) -> ControlFlow<()> {
        let serializer = self.peer.wire.serializer;
        let mut is_doubtful = false;
        let limits = &self.entrance.decoding;
        match codec::decode_to_pass_on(serializer, bytes, limits, &mut is_doubtful) {
            Ok(message) if is_doubtful => self.handle_doubtful(&message, bytes, source, now),
            Ok(message) => self.handle(&message, bytes, source, now),
            Err(e) if e.is_lone_surrogate() => self.handle_lone_surrogates(bytes, &e, now),
            Err(e) => self.message_fault(bytes, &e),
        }
    }

    pub fn handle(
        &mut self,
        message: &Message<'_>,
        bytes: &[u8],
        source: Option<&Bytes>,
        now: Instant,
    ) -> ControlFlow<()> {
        if !self.is_joined() || is_of_sessions(message.kind()) {
            let messages = &self.entrance.realms.session_messages;
            messages.count(Direction::Received, message.kind());
        }
        match &self.state {
            State::Joined { realm, key } => match message {
                Message::Goodbye { reason, .. } => {
                    if reason == LOGOUT {
                        self.log_out();
                    }
                    self.handle_goodbye(reason)
                }
                Message::Abort { reason, .. } => {
                    let reason = reason.to_string();
                    self.leave(EndReason::Aborted);
                    report::peer_aborted(&self.peer.connection, &reason);
                    self.say_close(1000, "")
                }
                // The realm was stopped, and the peer opens another session instead of answering GOODBYE. Its other
                // messages crossed the GOODBYE, and the realm ignores them.
                Message::Hello {
                    realm: name,
                    details,
                } if !realm.has(*key) => {
                    self.state = State::Closed(None);
                    self.handle_hello(name, details)
                }
                _ => {
                    if let Message::Subscribe { topic, .. } = message
                        && topic.starts_with(META)
                        && !realm.meta_api
                    {
                        self.say_silent(topic);
                    }
                    let place = Source {
                        connection: &self.peer.connection,
                        bytes: source,
                        len: bytes.len(),
                    };
                    let handled = realm.handle(now, *key, message, place);
                    self.handle_routed(handled, bytes, source)
                }
            },
            State::Closed(_) => match message {
                Message::Authenticate { signature, extra } => self
                    .handle_authenticate(signature, extra)
                    .unwrap_or_else(|| self.unexpected(message)),
                Message::Hello { realm, details } if !self.is_pending() => {
                    self.handle_hello(realm, details)
                }
                // The answer to the router's GOODBYE may cross a session that left before.
                Message::Goodbye { .. } if self.entrance.is_stopping() => {
                    self.say_close(GOING_AWAY, "")
                }
                Message::Abort { .. } => self.say_close(1000, ""),
                other => self.unexpected(other),
            },
        }
    }

    /// Rejects a message that is not allowed before a session is open.
    fn unexpected(&mut self, message: &Message<'_>) -> ControlFlow<()> {
        let expected = match self.is_pending() {
            true => "AUTHENTICATE",
            false => "HELLO",
        };
        let text = format!("expected {expected}, got {}", message.kind().name());
        self.abort(error::PROTOCOL_VIOLATION, &text)
    }

    /// Continues after the realm has handled a message.
    pub(super) fn handled(&mut self, handled: Result<(), Violation>) -> ControlFlow<()> {
        match handled {
            Ok(()) => ControlFlow::Continue(()),
            Err(Violation { message }) => self.abort(error::PROTOCOL_VIOLATION, &message),
        }
    }

    /// Logs that a subscription will receive nothing: its user would look for the reason in vain.
    fn say_silent(&self, topic: &str) {
        let said = self.silent_topics.get();
        if said < SILENT_TOPICS_SAID_MAX {
            self.silent_topics.set(said + 1);
            report::silent_topic(&self.peer.connection, topic);
        }
    }

    /// Handles the messages of one batch (WAMP "Batched WebSocket Transport") until the turn is over. Also returns the
    /// rest, which is a batch again.
    pub fn handle_batch<'b>(
        &mut self,
        bytes: &'b [u8],
        now: Instant,
        budget: &mut Budget,
        drop_on_fault: bool,
    ) -> (ControlFlow<()>, &'b [u8]) {
        let serializer = self.peer.wire.serializer;
        if !self.is_joined() && batched::is_autobahn(serializer, bytes) {
            self.peer.wire.framing = self.peer.wire.framing.for_autobahn();
        }
        let mut batch = batched::split(serializer, bytes);
        let mut left = bytes.len();
        while let Some(message) = batch.next() {
            let flow = match message {
                Ok(message) => self.handle_message(message, now),
                Err(e) => self.frame_fault(&e, drop_on_fault),
            };
            if flow.is_break() {
                return (ControlFlow::Break(()), &[]);
            }
            if self.waits() {
                return (flow, batch.rest());
            }
            let bytes = left - batch.rest().len();
            left -= bytes;
            if self.spend(budget, bytes) {
                return (ControlFlow::Continue(()), batch.rest());
            }
        }
        (ControlFlow::Continue(()), &[])
    }

    #[inline]
    pub(super) fn add_steps(&mut self, steps: u32) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// The steps of its messages since the last call, for an owner that charges its turns itself.
    pub fn take_steps(&mut self) -> u32 {
        mem::take(&mut self.steps)
    }

    /// Charges a turn for handled messages of that many bytes. Returns whether the turn is over.
    pub(crate) fn spend(&mut self, budget: &mut Budget, bytes: usize) -> bool {
        let steps = mem::take(&mut self.steps).saturating_add((bytes / STEP_BYTES) as u32);
        // One turn may hold large publications for many subscribers.
        budget.spend(steps) || crosstie_transport::is_line_long()
    }

    /// The input is not a valid frame: aborts the session, and closes a WebSocket with the matching code.
    pub fn frame_fault(&mut self, e: &FramingError, drop_on_fault: bool) -> ControlFlow<()> {
        let text = e.to_string();
        report::peer_fault(&self.peer.connection, error::PROTOCOL_VIOLATION, &text);
        if drop_on_fault {
            self.leave(EndReason::Violation);
            self.peer.connection.close();
            return ControlFlow::Break(());
        }
        self.say_abort(error::PROTOCOL_VIOLATION, &text);
        self.say_close(e.close_code(), &text)
    }

    /// The input is not a valid message. Text that is not UTF-8 has its own close code.
    pub(super) fn message_fault(&mut self, bytes: &[u8], e: &DecodeError) -> ControlFlow<()> {
        let text = e.to_string();
        let is_text = !self.peer.wire.serializer.is_binary();
        if is_text && std::str::from_utf8(bytes).is_err() {
            report::peer_fault(&self.peer.connection, error::PROTOCOL_VIOLATION, &text);
            self.say_abort(error::PROTOCOL_VIOLATION, &text);
            return self.say_close(FramingError::Utf8.close_code(), "invalid UTF-8");
        }
        self.abort(error::PROTOCOL_VIOLATION, &text)
    }

    /// Removes the session from its realm, after its connection has ended. Returns whether it was joined.
    pub fn leave(&mut self, why: EndReason) -> bool {
        match mem::replace(&mut self.state, State::Closed(None)) {
            State::Joined { realm, key } => {
                self.halt = Halt::No;
                if mem::replace(&mut self.kind, Kind::Plain) == Kind::Limited {
                    realm.rates.forget(key);
                }
                if let Some(authids) = &self.entrance.authids {
                    authids.leave((realm.number, key));
                }
                self.forget_judged(&realm, key);
                realm.detach(key, why) || realm.leave(key, why)
            }
            State::Closed(pending) => {
                if let Some(pending) = pending {
                    self.end_pending(&pending);
                }
                false
            }
        }
    }

    /// Ends the session for a fault of the peer: sends ABORT, and logs it.
    pub fn abort(&mut self, reason: &str, text: &str) -> ControlFlow<()> {
        report::peer_fault(&self.peer.connection, reason, text);
        self.say_abort(reason, text);
        self.say_close(1000, "")
    }

    /// Whether a handshake is pending.
    fn is_pending(&self) -> bool {
        matches!(&self.state, State::Closed(Some(_)))
    }

    /// Whether the session waits for an outcome before it handles more.
    #[inline]
    pub fn waits(&self) -> bool {
        self.halt != Halt::No
            || matches!(&self.state, State::Closed(Some(pending)) if pending.waits_elsewhere())
    }

    /// The stage of the handshake.
    #[inline]
    pub fn stage(&self) -> Stage {
        match &self.state {
            State::Joined { .. } => Stage::Joined,
            State::Closed(Some(pending)) if !pending.waits_elsewhere() => Stage::Asked,
            State::Closed(_) => Stage::Opening,
        }
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.state, State::Joined { .. })
    }

    fn handle_goodbye(&mut self, said: &str) -> ControlFlow<()> {
        let was_told = self.entrance.has_said_goodbye();
        let was_in = self.leave(match was_told {
            true => EndReason::Shutdown,
            false => EndReason::Goodbye,
        });
        // The peer has answered the router's GOODBYE, or sent its own at the same moment: no answer is due. After the
        // stop of its realm or its role another session may follow.
        if was_in && !was_told {
            let reason = Cow::Borrowed(answer_to(said));
            self.send(&Message::Goodbye {
                details: Dict::new(),
                reason,
            });
        }
        match self.entrance.is_stopping() {
            true => self.say_close(GOING_AWAY, ""),
            false => ControlFlow::Continue(()),
        }
    }

    /// Closes a client that shall return: its realm, its transport or the router has stopped. After ABORT, JavaScript
    /// clients would stay away.
    pub(super) fn turn_back(&mut self, refused: &report::Refused<'_>) -> ControlFlow<()> {
        if self.entrance.realms.says_goodbye {
            return self.refuse(refused);
        }
        report::session_refused(&self.peer.connection, refused);
        self.leave(EndReason::Shutdown);
        self.say_close(GOING_AWAY, "")
    }

    /// Refuses a session: sends ABORT, and logs it. The peer may retry on the same connection a few times, within the
    /// time limit of a new connection.
    pub(super) fn refuse(&mut self, refused: &report::Refused<'_>) -> ControlFlow<()> {
        report::session_refused(&self.peer.connection, refused);
        self.say_abort(refused.reason, refused.text);
        self.refusals += 1;
        match self.refusals < REFUSALS_MAX && !self.entrance.is_stopping() {
            true => ControlFlow::Continue(()),
            false => self.say_close(1000, ""),
        }
    }

    fn say_abort(&mut self, reason: &str, text: &str) {
        self.leave(EndReason::Violation);
        let details = vec![("message".to_owned(), Value::from(text))];
        self.send(&Message::Abort {
            details,
            reason: Cow::Borrowed(reason),
        });
    }

    /// Queues the Close frame of a WebSocket; a RawSocket has none.
    pub(super) fn say_close(&self, code: u16, reason: &str) -> ControlFlow<()> {
        self.append(|framing, out| framing.close(code, reason, out));
        ControlFlow::Break(())
    }

    /// Queues a control frame, unless the queue is full.
    pub(super) fn append(&self, write: impl FnOnce(Framing, &mut Vec<u8>)) {
        let framing = self.peer.wire.framing;
        let _ = self.peer.connection.append(|out| {
            write(framing, out);
            Ok::<(), ()>(())
        });
    }

    pub(super) fn send(&self, message: &Message<'_>) {
        // If the message cannot be queued, the client finds its connection closed.
        let messages = &self.entrance.realms.session_messages;
        let _ = self.peer.send_counted(messages, message);
    }
}

/// The stage of a connection's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Expects HELLO, or the router performs its part of the handshake.
    Opening,
    /// Expects AUTHENTICATE: a user may have to type a password.
    Asked,
    Joined,
}

/// Maximum number of refused HELLOs in a row before the connection ends.
const REFUSALS_MAX: u8 = 5;
