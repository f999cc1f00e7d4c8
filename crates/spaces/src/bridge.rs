//! A space's own session in its realm: receives the events of WAMP clients and of other nodes, and publishes wills.
//!
//! The session subscribes, counted, to the patterns that cover the filters of MQTT clients; the space matches again. One
//! publication that comes by several subscriptions comes in a row, and counts once. The realm sends the session no
//! publication of MQTT clients, which have passed through the space.

use std::sync::Arc;
use std::time::Instant;

use crosstie_realms::peer::{Peer, Wire};
use crosstie_realms::realms::Realms;
use crosstie_realms::resident::{Room, Rooms};
use crosstie_routing::{
    ClientFeature, ClientFeatures, Identity, RetainedPage, RetainedQuery, Role, SessionKey,
};
use crosstie_topics::Content;
use crosstie_transport::{Budget, Connection, ConnectionLimits, Kept, PeerAddress, Portion, Taken};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::framing::{Framing, Item, rawsocket};
use crosstie_wamp::{Message, MessageType, PublicationId, PublishOptions, Value};
use parking_lot::Mutex;

use crate::client::SERIALIZER;
use crate::event::Event;
use crate::interest::{Joined, Line};
use crate::names;
use crate::own_content::OwnContent;
use crate::payloads::{ALGORITHM, Arguments};
use crate::trace;

/// The space's side of a realm.
pub(crate) struct Bridge {
    realms: Arc<Realms>,
    realm: String,
    line: Mutex<Line>,
    unread: Mutex<Unread>,
    /// Unread bytes on the account, and patterns.
    kept: Kept,
    kept_patterns: Kept,
}

/// The session in a realm, from one start of the realm to its stop.
pub(crate) struct Home {
    pub(crate) mailbox: Arc<Connection>,
    /// Increases with each start of the realm.
    pub(crate) number: u32,
}

/// Bytes that were taken and are no complete message yet.
struct Unread {
    frames: rawsocket::Decoder,
    bytes: Vec<u8>,
    /// They begin with whole messages: the last turn was over before.
    has_messages: bool,
    last: Option<PublicationId>,
}

/// Minimum size of the session's queue: many subscriptions share it.
const QUEUE_BYTES_MIN: usize = 64 << 20;

/// Bytes taken at once.
const TAKEN_BYTES_MAX: usize = 64 * 1024;

/// Bytes decoded and converted in the time of one step.
const STEP_BYTES: usize = 128;

impl Bridge {
    pub(crate) fn new(realms: &Arc<Realms>, realm: &str) -> Self {
        Self {
            realms: Arc::clone(realms),
            realm: realm.to_owned(),
            line: Mutex::default(),
            unread: Mutex::new(Unread {
                frames: rawsocket::Decoder::new(rawsocket::LENGTH_MAX),
                bytes: Vec::new(),
                has_messages: false,
                last: None,
            }),
            kept: Kept::new(&realms.bounds.limits.account),
            kept_patterns: Kept::new(&realms.bounds.limits.account),
        }
    }

    pub(crate) fn realm(&self) -> &str {
        &self.realm
    }

    pub(crate) fn realms(&self) -> &Arc<Realms> {
        &self.realms
    }

    /// A page of the realm's retained events, and its steps; none without a realm.
    pub(crate) fn retained(&self, query: &RetainedQuery<'_>) -> (RetainedPage, u32) {
        let joined = self.room();
        joined.map_or_else(Default::default, |(room, key)| {
            room.retained_page(key, query)
        })
    }

    /// The number of the realm's last retained event.
    pub(crate) fn retained_number(&self) -> u64 {
        self.room().map_or(0, |(room, _)| room.retained_number())
    }

    fn room(&self) -> Option<(Arc<dyn Room>, SessionKey)> {
        let line = self.line.lock();
        let joined = line.joined.as_ref()?;
        Some((Arc::clone(&joined.room), joined.key))
    }

    /// Subscribes to what covers a filter, or no more.
    pub(crate) fn note_interest(&self, filter: &str, begins: bool) {
        let Some(pattern) = names::pattern(filter) else {
            return;
        };
        let mut line = self.line.lock();
        match begins {
            true => line.add(pattern),
            false => line.remove(&pattern),
        }
        self.kept_patterns.set(line.bytes());
    }

    /// Publishes a will.
    pub(crate) fn publish(&self, uri: &str, will: &OwnContent, arguments: &Arguments) {
        let mut options = options(&will.as_content());
        if arguments.is_encoded {
            let encoded = ("enc_algo".to_owned(), Value::from(ALGORITHM));
            options.passthru.get_or_insert_default().push(encoded);
        }
        self.line.lock().say(|request| Message::Publish {
            request,
            options,
            topic: uri.into(),
            payload: arguments.as_payload(),
        });
    }

    /// Whether the router has the realm.
    pub(crate) fn has_realm(&self) -> bool {
        self.realms.room(&self.realm).is_some()
    }

    /// Joins the realm, unless the session is there. Nothing without a realm.
    pub(crate) fn join(&self) -> Option<Home> {
        let mut line = self.line.lock();
        if let Some(joined) = &line.joined
            && !joined.peer.connection.is_closed()
        {
            return Some(Home::of(joined));
        }
        let room = self.realms.room(&self.realm)?;
        let peer = self.peer();
        let identity = Identity::new("crosstie.mqtt", Role::TRUSTED, "internal", "static");
        let features = ClientFeatures::from_iter([
            ClientFeature::SubscriberSubscriptionRevocation,
            ClientFeature::PublisherPayloadPassthruMode,
        ]);
        let (key, _) = room
            .let_in(peer.clone(), identity, features.for_others(), false)
            .ok()?;
        let joined = Joined::new(room, key, peer);
        let home = Home::of(&joined);
        line.begin(joined);
        Some(home)
    }

    /// Forgets the filters of clients: their sessions have ended.
    pub(crate) fn forget_filters(&self) {
        self.line.lock().clear();
        self.kept_patterns.set(0);
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

    /// Reads the realm's messages that wait, and passes the events to `handle` in their order, for one turn. `handle`
    /// returns its steps. Returns whether more may wait, or nothing at the end of the session.
    pub(crate) fn read(&self, mut handle: impl FnMut(Event) -> u32) -> Option<bool> {
        let mut unread = self.unread.lock();
        if !unread.has_messages {
            let connection = {
                let line = self.line.lock();
                Arc::clone(&line.joined.as_ref()?.peer.connection)
            };
            match connection.take(Portion::Bytes(TAKEN_BYTES_MAX)) {
                Taken::Bytes(taken) => unread.bytes.extend_from_slice(&taken),
                Taken::Nothing => return Some(false),
                Taken::Over => {
                    self.end(&mut unread);
                    return None;
                }
            }
        }
        let Unread {
            frames,
            bytes,
            last,
            ..
        } = &mut *unread;
        let (mut at, mut is_over, mut has_more) = (0, false, false);
        let mut budget = Budget::begin(Instant::now());
        // Only this router writes there.
        while let Ok(step) = frames.next(&mut bytes[at..])
            && step.consumed > 0
        {
            at += step.consumed;
            let mut steps = (step.consumed / STEP_BYTES) as u32;
            if let Some(Item::Message { bytes, .. }) = step.item
                && let Ok(message) = codec::decode(SERIALIZER, bytes, &Limits { depth_max: 512 })
            {
                match self.handle(message, last) {
                    Handled::Event(event) => steps = steps.saturating_add(handle(event)),
                    Handled::Over => is_over = true,
                    Handled::Nothing => {}
                }
            }
            has_more = budget.spend(steps) || crosstie_transport::is_line_long();
            if has_more || is_over {
                break;
            }
        }
        if is_over {
            self.end(&mut unread);
            return None;
        }
        match at == bytes.len() {
            true => *bytes = Vec::new(),
            false => drop(bytes.drain(..at)),
        }
        unread.has_messages = has_more && !unread.bytes.is_empty();
        self.kept.set(unread.bytes.capacity());
        // After a turn that has emptied the portion, another one may wait.
        Some(at > 0)
    }

    fn end(&self, unread: &mut Unread) {
        unread.bytes = Vec::new();
        unread.has_messages = false;
        self.kept.set(0);
        self.leave();
    }

    fn handle(&self, message: Message<'_>, last: &mut Option<PublicationId>) -> Handled {
        match message {
            Message::Event {
                subscription,
                publication,
                details,
                payload,
            } => {
                if last.replace(publication) == Some(publication) {
                    return Handled::Nothing;
                }
                let line = self.line.lock();
                let exact = || Some(line.by_id.get(&subscription)?.uri.as_str());
                let Some(uri) = details.topic.as_deref().or_else(exact) else {
                    return Handled::Nothing;
                };
                Handled::Event(Event::new(uri, details.passthru.as_deref(), &payload))
            }
            Message::Subscribed {
                request,
                subscription,
            } => {
                self.line.lock().handle_subscribed(request, subscription);
                Handled::Nothing
            }
            Message::Error {
                request_type: MessageType::Subscribe,
                request,
                error,
                ..
            } => {
                self.line.lock().handle_refused(request, &error);
                Handled::Nothing
            }
            Message::Unsubscribed {
                revoked: Some(revoked),
                ..
            } => {
                self.line.lock().handle_revoked(revoked.id);
                Handled::Nothing
            }
            Message::Goodbye { .. } | Message::Abort { .. } => Handled::Over,
            _ => Handled::Nothing,
        }
    }

    /// Ends the session, if there is one.
    pub(crate) fn leave(&self) {
        let joined = self.line.lock().end();
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

/// The options of a client's publication, or of a will. An empty payload removes the retained event.
pub(crate) fn options(content: &Content<'_>) -> PublishOptions {
    let Content {
        retain, payload, ..
    } = *content;
    let left_ms = content.expiry_s.map(|seconds| u64::from(seconds) * 1_000);
    let left_ms = if payload.is_empty() { Some(0) } else { left_ms };
    PublishOptions {
        retain,
        retain_ms: left_ms.filter(|_| retain),
        passthru: trace::options(content.properties),
        ..PublishOptions::default()
    }
}

impl Home {
    fn of(joined: &Joined) -> Self {
        Self {
            mailbox: Arc::clone(&joined.peer.connection),
            number: joined.room.number(),
        }
    }
}
