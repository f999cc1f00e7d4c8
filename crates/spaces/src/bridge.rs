//! A space's own session in its realm: receives the events of WAMP clients and of other nodes, and publishes wills.
//!
//! The session subscribes, counted, to the patterns that cover the filters of MQTT clients; the space matches again. One
//! publication that comes by several subscriptions comes in a row, and counts once. Each SUBSCRIBE of a client asks for
//! the realm's retained events again, so that the realm remains the one place that keeps them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crosstie_front::report::FAULTS;
use crosstie_front::seed::seed;
use crosstie_realms::peer::{Peer, Wire};
use crosstie_realms::realms::Realms;
use crosstie_realms::resident::{Room, Rooms};
use crosstie_routing::{ClientFeature, ClientFeatures, Identity, Role, SessionKey};
use crosstie_transport::{Connection, ConnectionLimits, PeerAddress, Portion, Taken};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Framing, Item, rawsocket};
use crosstie_wamp::{
    Dict, Message, MessageType, PublicationId, PublishOptions, Receivers, RequestId, SessionId,
    SubscribeOptions, SubscriptionId, Value,
};
use parking_lot::Mutex;

use crate::client::SERIALIZER;
use crate::event::Event;
use crate::figures::{Dropped, Figures};
use crate::names::{self, Pattern};
use crate::outbox::OwnContent;
use crate::payloads::Arguments;

/// The space's side of a realm.
pub(crate) struct Bridge {
    realms: Arc<Realms>,
    realm: String,
    /// Marks what this space has retained in the realm.
    stamp: u64,
    /// The session's id; 0: none.
    session: AtomicU64,
    line: Mutex<Line>,
    unread: Mutex<Unread>,
}

#[derive(Default)]
struct Line {
    joined: Option<Joined>,
    /// Number of filters of MQTT clients, by the pattern that covers them.
    wanted: HashMap<Pattern, usize>,
    ids: HashMap<Pattern, SubscriptionId>,
    by_id: HashMap<SubscriptionId, Pattern>,
}

struct Joined {
    room: Arc<dyn Room>,
    key: SessionKey,
    peer: Peer,
    request_last: u64,
    asked: HashMap<u64, Pattern>,
}

/// Bytes that were taken and are no complete message yet.
struct Unread {
    frames: rawsocket::Decoder,
    bytes: Vec<u8>,
    last: Option<PublicationId>,
}

/// The attribute of a publication that names the space which retains it.
const STAMP: &str = "_mqtt_space";

/// Minimum size of the session's queue: many subscriptions share it.
const QUEUE_BYTES_MIN: usize = 64 << 20;

/// Bytes taken at once.
const TAKEN_BYTES_MAX: usize = 64 * 1024;

impl Bridge {
    pub(crate) fn new(realms: &Arc<Realms>, realm: &str) -> Self {
        Self {
            realms: Arc::clone(realms),
            realm: realm.to_owned(),
            stamp: seed(),
            session: AtomicU64::new(0),
            line: Mutex::default(),
            unread: Mutex::new(Unread {
                frames: rawsocket::Decoder::new(rawsocket::LENGTH_MAX),
                bytes: Vec::new(),
                last: None,
            }),
        }
    }

    pub(crate) fn realm(&self) -> &str {
        &self.realm
    }

    pub(crate) fn realms(&self) -> &Arc<Realms> {
        &self.realms
    }

    /// The options of a client's publication, or of a will.
    pub(crate) fn options(
        &self,
        retain: bool,
        expiry_s: Option<u32>,
        is_empty: bool,
    ) -> PublishOptions {
        let mut options = PublishOptions {
            retain,
            ..PublishOptions::default()
        };
        if retain {
            // The realm has no word for clearing: the event without arguments expires at once.
            let left_ms = expiry_s.map(|seconds| u64::from(seconds) * 1_000);
            options.retain_ms = if is_empty { Some(1) } else { left_ms };
            let stamp = Value::from(self.stamp_text().as_str());
            options.passthru = Some(Box::new(vec![(STAMP.to_owned(), stamp)]));
        } else {
            let own = self.session.load(Ordering::Relaxed);
            options.receivers = (own > 0).then(|| {
                Box::new(Receivers {
                    exclude: Some(vec![SessionId(own)]),
                    ..Receivers::default()
                })
            });
        }
        options
    }

    /// Whether attributes are those of a publication that this space has retained.
    fn is_own(&self, attributes: &Dict) -> bool {
        let stamp = attributes.iter().find(|(key, _)| key == STAMP);
        let stamp = stamp.and_then(|(_, value)| value.as_str());
        stamp.is_some_and(|stamp| stamp == self.stamp_text())
    }

    fn stamp_text(&self) -> String {
        format!("{:016x}", self.stamp)
    }

    /// Subscribes to what covers a filter that a client is about to subscribe to, and asks for retained events.
    pub(crate) fn ask_for(&self, filter: &str) {
        let Some(pattern) = names::pattern(filter) else {
            return;
        };
        self.line.lock().subscribe(pattern);
    }

    /// A filter was subscribed to for the first time, or is no more.
    pub(crate) fn note_interest(&self, filter: &str, begins: bool) {
        let Some(pattern) = names::pattern(filter) else {
            return;
        };
        let mut line = self.line.lock();
        if begins {
            *line.wanted.entry(pattern.clone()).or_default() += 1;
            let is_asked = line.ids.contains_key(&pattern)
                || line
                    .joined
                    .as_ref()
                    .is_some_and(|j| j.asked.values().any(|p| *p == pattern));
            if !is_asked {
                line.subscribe(pattern);
            }
        } else {
            if let Some(filters) = line.wanted.get_mut(&pattern) {
                *filters = filters.saturating_sub(1);
            }
            line.forget_unwanted(&pattern);
        }
    }

    /// Ends subscriptions for filters that were refused.
    pub(crate) fn forget_unwanted(&self, filter: &str) {
        if let Some(pattern) = names::pattern(filter) {
            self.line.lock().forget_unwanted(&pattern);
        }
    }

    /// Publishes a will.
    pub(crate) fn publish(&self, will: &OwnContent) {
        let Some(uri) = names::uri(&will.topic).filter(|uri| !names::is_own_uri(uri)) else {
            return Figures::get().count_dropped(Dropped::NoUri);
        };
        let limits = &self.realms.decoding;
        let arguments = Arguments::natural(&will.payload, limits);
        let options = self.options(will.retain, will.expiry_s, will.payload.is_empty());
        self.line.lock().say(|request| Message::Publish {
            request,
            options,
            topic: uri.as_str().into(),
            payload: arguments.as_payload(),
        });
    }

    /// Joins the realm, unless the session is there. Returns the mailbox, or nothing without a realm.
    pub(crate) fn join(&self) -> Option<Arc<Connection>> {
        let mut line = self.line.lock();
        if let Some(joined) = &line.joined
            && !joined.peer.connection.is_closed()
        {
            return Some(Arc::clone(&joined.peer.connection));
        }
        let room = self.realms.room(&self.realm)?;
        let peer = self.peer();
        let identity = Identity::new("crosstie.mqtt", Role::TRUSTED, "internal", "static");
        let features = ClientFeatures::from_iter([
            ClientFeature::SubscriberSubscriptionRevocation,
            ClientFeature::PublisherPayloadPassthruMode,
        ]);
        let (key, session) = room
            .let_in(peer.clone(), identity, features.for_others(), false)
            .ok()?;
        self.session.store(session.0, Ordering::Relaxed);
        let connection = Arc::clone(&peer.connection);
        line.joined = Some(Joined {
            room,
            key,
            peer,
            request_last: 0,
            asked: HashMap::new(),
        });
        line.by_id.clear();
        line.ids.clear();
        let patterns: Vec<_> = line.wanted.keys().cloned().collect();
        for pattern in patterns {
            line.subscribe(pattern);
        }
        Some(connection)
    }

    fn peer(&self) -> Peer {
        let limits = &self.realms.bounds.limits;
        let limits = Arc::new(ConnectionLimits {
            queue_bytes_max: limits.queue_bytes_max.max(QUEUE_BYTES_MIN),
            account: Arc::clone(&limits.account),
            ..**limits
        });
        let here = PeerAddress::Unix(None);
        Peer {
            connection: Arc::new(Connection::mailbox(here, None, usize::MAX, limits)),
            wire: Wire {
                serializer: SERIALIZER,
                framing: Framing::Mqtt,
                message_bytes_max: u32::MAX,
            },
        }
    }

    /// Reads the realm's messages that wait, and passes the events to `handle`, in their order. Returns whether more may
    /// wait, or nothing at the end of the session.
    pub(crate) fn read(&self, mut handle: impl FnMut(Event)) -> Option<bool> {
        let mut unread = self.unread.lock();
        let connection = {
            let line = self.line.lock();
            Arc::clone(&line.joined.as_ref()?.peer.connection)
        };
        let taken = match connection.take(Portion::Bytes(TAKEN_BYTES_MAX)) {
            Taken::Bytes(taken) => taken,
            Taken::Nothing => return Some(false),
            Taken::Over => {
                unread.bytes.clear();
                self.leave();
                return None;
            }
        };
        let is_full = taken.len() == TAKEN_BYTES_MAX;
        let Unread {
            frames,
            bytes,
            last,
        } = &mut *unread;
        bytes.extend_from_slice(&taken);
        let mut at = 0;
        let mut is_over = false;
        // Only this router writes there.
        while let Ok(step) = frames.next(&mut bytes[at..])
            && step.consumed > 0
        {
            at += step.consumed;
            if let Some(Item::Message { bytes, .. }) = step.item
                && let Ok(message) = codec::decode(SERIALIZER, bytes, &Limits { depth_max: 512 })
            {
                match self.handle(message, last) {
                    Handled::Event(event) => handle(event),
                    Handled::Over => is_over = true,
                    Handled::Nothing => {}
                }
            }
        }
        match at == bytes.len() {
            true => *bytes = Vec::new(),
            false => drop(bytes.drain(..at)),
        }
        if is_over {
            bytes.clear();
            self.leave();
            return None;
        }
        Some(is_full)
    }

    fn handle(&self, message: Message<'_>, last: &mut Option<PublicationId>) -> Handled {
        match message {
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => {
                let is_own = details
                    .passthru
                    .as_ref()
                    .is_some_and(|all| self.is_own(all));
                // A replay of what came before is for a new subscriber.
                let is_repeated =
                    last.replace(publication) == Some(publication) && !details.retained;
                if is_repeated || is_own {
                    return Handled::Nothing;
                }
                let line = self.line.lock();
                let exact = || Some(line.by_id.get(&subscription)?.uri.as_str());
                let Some(uri) = details.topic.as_deref().or_else(exact) else {
                    return Handled::Nothing;
                };
                Handled::Event(Event::new(
                    uri,
                    details.retained,
                    details.passthru.as_deref(),
                    &payload,
                ))
            }
            Message::Subscribed {
                request,
                subscription,
            } => {
                self.line.lock().subscribed(request, subscription);
                Handled::Nothing
            }
            Message::Error {
                request_type: MessageType::Subscribe,
                request,
                error,
                ..
            } => {
                self.line.lock().refused(request, &error);
                Handled::Nothing
            }
            Message::Unsubscribed {
                revoked: Some(revoked),
                ..
            } => {
                self.line.lock().revoked(revoked.id);
                Handled::Nothing
            }
            Message::Goodbye { .. } | Message::Abort { .. } => Handled::Over,
            _ => Handled::Nothing,
        }
    }

    /// Ends the session, if there is one.
    pub(crate) fn leave(&self) {
        let mut line = self.line.lock();
        let joined = line.joined.take();
        line.by_id.clear();
        line.ids.clear();
        drop(line);
        self.session.store(0, Ordering::Relaxed);
        if let Some(joined) = joined {
            joined.room.let_out(joined.key);
            joined.peer.connection.close();
        }
    }
}

/// The meaning of a message of the realm.
enum Handled {
    Event(Event),
    Over,
    Nothing,
}

impl Line {
    /// Subscribes to a pattern, or again to one: its retained events are sent then.
    fn subscribe(&mut self, pattern: Pattern) {
        let policy = pattern.policy;
        let options = SubscribeOptions {
            match_policy: policy,
            get_retained: true,
            ..SubscribeOptions::default()
        };
        let asked = self.say(|request| Message::Subscribe {
            request,
            options,
            topic: pattern.uri.as_str().into(),
        });
        if let (Some(request), Some(joined)) = (asked, &mut self.joined) {
            joined.asked.insert(request, pattern);
        }
    }

    /// Ends the subscription to a pattern that covers no filter any more.
    fn forget_unwanted(&mut self, pattern: &Pattern) {
        if self.wanted.get(pattern).is_some_and(|filters| *filters > 0) {
            return;
        }
        self.wanted.remove(pattern);
        let Some(subscription) = self.ids.remove(pattern) else {
            return;
        };
        self.by_id.remove(&subscription);
        self.say(|request| Message::Unsubscribe {
            request,
            subscription,
        });
    }

    fn subscribed(&mut self, request: RequestId, id: SubscriptionId) {
        let asked = self
            .joined
            .as_mut()
            .and_then(|joined| joined.asked.remove(&request.0));
        let Some(pattern) = asked else {
            return;
        };
        self.by_id.insert(id, pattern.clone());
        self.ids.insert(pattern, id);
    }

    fn refused(&mut self, request: RequestId, error: &str) {
        let asked = self
            .joined
            .as_mut()
            .and_then(|joined| joined.asked.remove(&request.0));
        if let Some(pattern) = asked
            && FAULTS.may_log()
        {
            tracing::warn!(
                "MQTT clients do not receive events of {}: {error}",
                pattern.uri
            );
        }
    }

    fn revoked(&mut self, id: SubscriptionId) {
        if let Some(pattern) = self.by_id.remove(&id) {
            self.ids.remove(&pattern);
        }
    }

    /// Sends a request of the session. Returns its id.
    fn say<'m>(&mut self, message: impl FnOnce(RequestId) -> Message<'m>) -> Option<u64> {
        let joined = self.joined.as_mut()?;
        joined.request_last += 1;
        let message = message(RequestId(joined.request_last));
        joined
            .room
            .route(joined.key, &message, &joined.peer.connection);
        Some(joined.request_last)
    }
}
