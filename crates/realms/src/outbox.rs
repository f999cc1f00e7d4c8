//! A realm's outbox, which encodes messages into the receivers' queues.

use std::sync::Arc;

use crosstie_front::cause::Cause;
use crosstie_front::counters::{Counter, Counters, counters};
use crosstie_routing::{
    Acknowledgement, Action, CloseReason, Crossing, Denial, Identity, LoggedOut, NeighbourKey,
    Note, Outbox, Pattern, Position, Publication, Question, Recall, Recorded, RefusalCause,
    Refused, RetainedEvent, RoleLimit, Uncrossed, Unrecorded,
};
use crosstie_spans::OpenSpans;
use crosstie_store::EventKeeper;
use crosstie_transport::{Connection, Kept, Overflow, Queued};
use crosstie_wamp::{Dict, Message, Serializer, SessionId, Value};

use crate::cookies::Whose;
use crate::fabric::port::{FabricPort, Wish};
use crate::message_counts::{Direction, Messages};
use crate::origin;
use crate::payload_encodings::PayloadEncodings;
use crate::peer::{Frame, Peer, Wire};
use crate::spans;

/// The outbox of one call into a realm. Under the realm's lock it only encodes heads and copies bytes; the sockets are
/// written after the input is handled.
pub(crate) struct RealmOutbox<'a, 'p> {
    encodings: &'a mut PayloadEncodings<'p>,
    counters: &'a Counters,
    pub messages: &'a Messages,
    /// The router's counters, for all its realms.
    session_messages: &'a Messages,
    /// Session details include the client's address.
    discloses_address: bool,
    /// Peers that were closed because a required message could not be queued.
    pub closed: Vec<Peer>,
    /// Sessions that have left the realm.
    pub left: Vec<Left>,
    /// A request that the sender of the present message lacks the permission for.
    pub denied: Option<Box<Denied>>,
    /// The port to other nodes.
    port: Option<&'a FabricPort>,
    kept: &'a Kept,
    /// The store of the realm's events.
    store: Option<&'a EventKeeper>,
    /// The spans of open calls, if there are any.
    pub(crate) spans: Option<&'a OpenSpans>,
    /// The question for an authorizer about the present message.
    pub asked: Option<Box<Question>>,
    /// Principals whose cookie logins are forgotten.
    pub(crate) logged_out: Option<Box<Whose>>,
    /// A receiver of the present message that is slow and applies back-pressure to publishers.
    pub slow: Option<Arc<Connection>>,
    /// The first reason why an event was dropped for receivers of a serializer.
    pub(crate) unwritable: Option<(&'static str, Serializer)>,
}

/// A session that has left the realm.
pub(crate) struct Left {
    pub peer: Peer,
    pub id: SessionId,
    pub identity: Identity,
    /// Another session has ended it.
    pub(crate) is_killed: bool,
}

/// A request that the role does not allow.
pub(crate) struct Denied {
    pub peer: Peer,
    pub session: SessionId,
    pub identity: Identity,
    pub action: Action,
    pub uri: String,
    pub cause: RefusalCause,
}

impl<'a, 'p> RealmOutbox<'a, 'p> {
    pub(crate) fn new(
        encodings: &'a mut PayloadEncodings<'p>,
        messages: &'a Messages,
        (session_messages, discloses_address): (&'a Messages, bool),
        port: Option<&'a FabricPort>,
        (kept, store): (&'a Kept, Option<&'a EventKeeper>),
    ) -> Self {
        Self {
            encodings,
            counters: counters(),
            messages,
            session_messages,
            discloses_address,
            closed: Vec::new(),
            left: Vec::new(),
            denied: None,
            port,
            kept,
            store,
            spans: None,
            asked: None,
            logged_out: None,
            slow: None,
            unwritable: None,
        }
    }
}

impl Outbox<Peer> for RealmOutbox<'_, '_> {
    fn send(&mut self, to: &Peer, message: &Message<'_>) -> Result<(), Refused> {
        let sent = to.send(message, self.encodings);
        if let Some(spans) = self.spans {
            spans::end_answered(spans, to, message, sent);
        }
        match sent {
            Ok(()) => self.messages.count_alone(Direction::Sent, message.kind()),
            Err(_) => self.counters.count(Counter::MessagesRefused),
        }
        sent
    }

    fn publish(&mut self, event: &Message<'_>, receivers: &mut dyn Iterator<Item = &Peer>) {
        let mut encoded: [Option<Result<Frame, Refused>>; Wire::COUNT] =
            [const { None }; Wire::COUNT];
        for peer in receivers {
            let frame = encoded[peer.wire.index()].get_or_insert_with(|| {
                // The length is checked per receiver below, as their maxima differ.
                let wire = Wire {
                    message_bytes_max: u32::MAX,
                    ..peer.wire
                };
                wire.event(event, self.encodings, &peer.connection)
            });
            let sent = match frame {
                Err(refused) => Err(*refused),
                Ok(frame) if frame.len() > peer.wire.message_bytes_max as usize + 4 => {
                    Err(Refused::TooLong)
                }
                Ok(frame) => frame.append_to(&peer.connection),
            };
            match sent {
                Ok(queued) => {
                    self.messages.count_alone(Direction::Sent, event.kind());
                    if queued == Queued::Slowly {
                        self.slow = Some(Arc::clone(&peer.connection));
                    }
                }
                Err(refused) => {
                    self.counters.count(dropped(refused));
                    match refused {
                        Refused::Full => end_if_slow(peer),
                        Refused::Unrepresentable(reason) => {
                            let into = peer.wire.serializer;
                            self.unwritable.get_or_insert((reason, into));
                        }
                        Refused::Gone | Refused::TooLong => {}
                    }
                }
            }
        }
    }

    fn note(&mut self, what: Note, count: usize) {
        let counter = match what {
            Note::RetainedEvicted => Counter::RetainedEventsEvicted,
            Note::RetainedNotSent => Counter::RetainedEventsNotSent,
            Note::HistoryEvicted => Counter::RecordedEventsEvicted,
            Note::HistoryNotKept => Counter::EventsNotRecorded,
            Note::RoleLimit(RoleLimit::Subscriptions) => Counter::RoleSubscriptionsRefused,
            Note::RoleLimit(RoleLimit::Registrations) => Counter::RoleRegistrationsRefused,
            Note::RoleLimit(RoleLimit::Calls) => Counter::RoleCallsRefused,
            Note::OfferRefused => {
                if let Some(port) = self.port {
                    port.note_offer_refused();
                }
                return;
            }
            Note::RetainedRefused => {
                if let Some(port) = self.port {
                    port.note_retained_refused();
                }
                return;
            }
            Note::TestamentRefused => {
                if let Some(port) = self.port {
                    port.note_testament_refused();
                }
                return;
            }
            Note::EndUnknown => {
                if let Some(port) = self.port {
                    port.note_end_unknown();
                }
                return;
            }
            Note::AnswerPartial => {
                if let Some(port) = self.port {
                    port.note_answer_partial();
                }
                return;
            }
            _ => return,
        };
        self.counters.add(counter, count as u64);
    }

    fn close(&mut self, session: &Peer, reason: CloseReason) {
        match reason {
            CloseReason::Unacknowledged => {
                self.counters.count(Counter::SessionsClosedUnacknowledged);
                Cause::Unacknowledged.note(&session.connection);
                session.say_last(
                    UNACKNOWLEDGED_MAX,
                    "you have too many events to acknowledge",
                );
            }
            _ => {
                self.counters.count(Counter::SessionsClosedForRefusal);
                Cause::AnswerQueueFull.note(&session.connection);
                session.say_last(QUEUE_FULL, "an answer found your queue full");
            }
        }
        self.closed.push(session.clone());
    }

    fn hold(&mut self, session: &Peer, delta: isize) {
        session.connection.hold(delta);
    }

    fn keep(&mut self, bytes: usize) {
        self.kept.set(bytes);
    }

    fn left(&mut self, session: &Peer, id: SessionId, identity: &Identity) {
        self.left.push(Left {
            peer: session.clone(),
            id,
            identity: identity.clone(),
            is_killed: false,
        });
    }

    fn goodbye(&mut self, session: &Peer, reason: &str, message: Option<&str>) {
        let is_same = |left: &&mut Left| Arc::ptr_eq(&left.peer.connection, &session.connection);
        if let Some(left) = self.left.last_mut().filter(is_same) {
            left.is_killed = true;
        }
        let message = message.map(|text| ("message".to_owned(), Value::from(text)));
        let goodbye = Message::Goodbye {
            details: message.into_iter().collect(),
            reason: reason.into(),
        };
        // If GOODBYE cannot be queued, the client finds its connection closed.
        match session.send(&goodbye, self.encodings) {
            Ok(()) => self.session_messages.count(Direction::Sent, goodbye.kind()),
            Err(_) => self.counters.count(Counter::MessagesRefused),
        }
    }

    fn logged_out(&mut self, whose: LoggedOut<'_>) {
        self.logged_out = Some(Box::new(match whose {
            LoggedOut::Authid(authid) => Whose::Authid(authid.to_owned()),
            LoggedOut::Authrole(role) => Whose::Authrole(role.to_owned()),
            LoggedOut::All => Whose::All,
        }));
    }

    fn resumed(&mut self, before: &Peer, now: &Peer) {
        if let Some(spans) = self.spans {
            spans::rename(spans, before, now);
        }
        before.connection.close();
        let held = before.connection.debt().state_bytes as isize;
        before.connection.hold(-held);
        now.connection.hold(held);
    }

    fn is_short(&self) -> bool {
        self.kept.is_account_full()
    }

    /// Describes a session in Crossbar.io's terms, as far as known.
    fn describe(&self, session: &Peer, details: &mut Dict) {
        let text = |key: &str, value: &str| (key.to_owned(), Value::from(value));
        let address = origin::address(session.connection.peer());
        let serializer = session.wire.serializer.name();
        let mut transport = vec![
            text(
                "channel_type",
                if address == "unix" { "unix" } else { "tcp" },
            ),
            text("channel_framing", session.wire.framing.name()),
            text("channel_serializer", serializer),
        ];
        if self.discloses_address {
            transport.push(text("peer", &address));
        }
        details.push(text("serializer", serializer));
        details.push(("transport".to_owned(), Value::Dict(transport)));
        // Fields about resumption are omitted: Crossbar.io resumes no sessions.
    }

    fn ask(&mut self, _: &Peer, question: Question) {
        self.asked = Some(Box::new(question));
    }

    fn publish_across(&mut self, publication: &Publication<'_>) -> Result<(), Uncrossed> {
        self.port.map_or(Ok(()), |port| port.publish(publication))
    }

    fn interest(&mut self, pattern: Pattern<'_>, begins: bool) -> Position {
        let port = self.port.map(|port| port.interest(pattern, begins));
        port.unwrap_or_default()
    }

    fn cross(&mut self, to: NeighbourKey, crossing: &Crossing<'_>) -> Result<(), Refused> {
        let port = self.port.ok_or(Refused::Gone)?;
        port.cross(to, crossing)
    }

    fn is_local(&self, topic: &str) -> bool {
        let prefixes = self.port.map(|port| &port.settings.local_prefixes);
        let mut prefixes = prefixes.into_iter().flatten();
        prefixes.any(|prefix| topic.starts_with(&**prefix))
    }

    fn claim(&mut self, claim: u64, pattern: Pattern<'_>) {
        if let Some(port) = self.port {
            // A pattern that is too long is refused when its claim is made.
            let key = port.with(|member, _, _| member.claim(pattern));
            port.wish(Wish::Claim(claim, key.unwrap_or_default()));
        }
    }

    fn give_up(&mut self, pattern: Pattern<'_>) {
        if let Some(port) = self.port
            && let Some(key) = port.with(|member, _, _| member.claim(pattern))
        {
            port.wish(Wish::GiveUp(key));
        }
    }

    fn hold_across(&mut self, delta: isize) {
        if let Some(port) = self.port {
            port.hold(delta);
        }
    }

    fn record(&mut self, log: usize, event: Recorded) -> Result<(), Unrecorded> {
        self.store
            .map_or(Err(Unrecorded), |store| store.record(log, event))
    }

    fn retain(&mut self, event: RetainedEvent) {
        if let Some(store) = self.store {
            store.retain(event);
        }
    }

    fn forget_retained(&mut self, number: u64) {
        if let Some(store) = self.store {
            store.forget_retained(number);
        }
    }

    fn acknowledge(&mut self, acknowledgement: Acknowledgement) {
        if let Some(store) = self.store {
            store.acknowledge(acknowledgement);
        }
    }

    fn recall(&mut self, recall: Recall) -> Result<(), &'static str> {
        let store = self.store.ok_or("there is no store")?;
        store.recall(recall)
    }

    fn denied(&mut self, denial: &Denial<'_, Peer>) {
        self.counters.count(Counter::RequestsDenied);
        self.denied = Some(Box::new(Denied {
            peer: denial.handle.clone(),
            session: denial.session,
            identity: denial.identity.clone(),
            action: denial.action,
            uri: denial.uri.to_owned(),
            cause: denial.cause,
        }));
    }
}

/// Reason of the ABORT for a session whose answer could not be queued.
const QUEUE_FULL: &str = "crosstie.error.queue_bytes_max";

/// Reason of the ABORT for a session with too many unacknowledged events.
const UNACKNOWLEDGED_MAX: &str = "crosstie.error.unacknowledged_max";

/// Ends a session that was too slow for an event, if its limits demand that. The realm learns of it when the connection
/// has ended.
#[cold]
fn end_if_slow(peer: &Peer) {
    if peer.connection.overflow() == Overflow::Disconnect && !peer.connection.is_closed() {
        counters().count(Counter::SessionsClosedForSlowness);
        Cause::EventQueueFull.note(&peer.connection);
        peer.say_last(SLOW_CONSUMER, "an event found your queue full");
    }
}

/// Reason of the ABORT for a session that receives events too slowly.
const SLOW_CONSUMER: &str = "crosstie.error.slow_consumer";

fn dropped(refused: Refused) -> Counter {
    match refused {
        Refused::Full => Counter::EventsDroppedFull,
        Refused::Unrepresentable(_) => Counter::EventsDroppedUnrepresentable,
        Refused::Gone | Refused::TooLong => Counter::EventsDroppedOther,
    }
}
