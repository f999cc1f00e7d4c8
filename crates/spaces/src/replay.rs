//! The realm's retained events for a new subscription: read page by page, and sent as retained messages.
//!
//! The realm keeps them, and the space keeps no copies: what the realm replaces, removes or lets expire is gone here,
//! too. The first page follows SUBACK at once; a task sends the rest as the client has room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crosstie_mqtt::{PropertiesBuf, RetainHandling, topic};
use crosstie_routing::{PassedOn, RetainedQuery};
use crosstie_topics::{ConnectionKey, Content, Space, Wanted};

use crate::client::Client;
use crate::crossing::Encoding;
use crate::event::{Event, content};
use crate::events::Translated;
use crate::figures::{Dropped, Figures};
use crate::names;
use crate::replays::{Replay, Replays};
use crate::space::SharedSpace;

/// The outcome of a page.
enum Paged {
    /// It was the last one.
    Done,
    More,
    /// The client has no room.
    Full,
    /// A procedure converts the next event, whose URI is the last part.
    Encode(Box<Encoding>, Arc<str>),
}

/// A retained event as it is read.
enum Read {
    Message(Found),
    /// It is not for these subscribers.
    Nothing,
    Encode(Box<Encoding>),
}

/// A retained event as a message.
struct Found {
    topic: String,
    properties: PropertiesBuf,
    payload: Vec<u8>,
    expiry_s: Option<u32>,
}

/// Filters with replays that are not done; more are refused.
pub(crate) const REPLAYS_MAX: usize = 1_000;

/// Maximum number of events of a page, and of one for a client that had no room.
const PAGE_MAX: usize = 64;
const FEW: usize = 4;

/// Filters of a packet whose first pages are read with it.
pub(crate) const FILTERS_AT_ONCE: usize = 16;

/// Time between two looks at a client that has not said that it has room.
const ROOM_CHECK: Duration = Duration::from_secs(1);

impl SharedSpace {
    /// Forgets messages that MQTT clients have retained before others retained events of the same topics, as far as the
    /// first pages of a few filters tell.
    pub(crate) fn make_current(&self, filters: &[&str]) -> u32 {
        let mut steps = 0_u32;
        for filter in filters.iter().take(FILTERS_AT_ONCE) {
            let Some(pattern) = names::pattern(filter) else {
                continue;
            };
            let query = RetainedQuery {
                policy: pattern.policy,
                pattern: &pattern.uri,
                after: None,
                events_max: PAGE_MAX,
                number_max: u64::MAX,
            };
            let number = self.bridge.retained_number();
            let (page, spent) = self.bridge.retained(&query);
            steps = steps.saturating_add(spent);
            for event in page.events.iter().filter(|one| !one.is_from_elsewhere) {
                if let Read::Message(found) = self.found(event, filter) {
                    self.enter(|space, _, _| self.supersede(space, &found, number));
                }
            }
        }
        steps
    }

    /// Forgets the message of MQTT clients that an event has replaced. False if the realm has retained another one since
    /// the event was read: that one may be of this topic.
    fn supersede(&self, space: &mut Space<Arc<Client>>, found: &Found, number: u64) -> bool {
        let own = space.retained_payload(&found.topic);
        if own.is_none_or(|own| own == found.payload) {
            return true;
        }
        let is_newest = self.bridge.retained_number() == number;
        if is_newest {
            space.forget_retained(&found.topic);
        }
        is_newest
    }

    /// Whether a new subscription is sent retained messages.
    pub(crate) fn wants_retained(&self, key: ConnectionKey, wanted: &Wanted<'_>) -> bool {
        let is_shared = matches!(topic::split_share(wanted.filter), Ok(Some(_)));
        !is_shared
            && match wanted.options.retain_handling {
                RetainHandling::Always => true,
                RetainHandling::New => {
                    let (has, _) =
                        self.enter(|space, _, _| space.is_subscribed(key, wanted.filter));
                    !has
                }
                RetainHandling::Never => false,
            }
    }

    /// Sends a client the retained events that its new subscriptions match, up to the event of that number: the first pages
    /// of a few filters at once, the rest by a task. Returns the steps of the part that is done.
    pub(crate) fn replay<'f>(
        self: &Arc<Self>,
        client: &Arc<Client>,
        key: ConnectionKey,
        filters: impl Iterator<Item = (&'f str, u64)>,
    ) -> u32 {
        let mut steps = 0_u32;
        let mut rest = VecDeque::new();
        for (at, (filter, number_max)) in filters.enumerate() {
            let Some(pattern) = names::pattern(filter) else {
                continue;
            };
            let mut replay = Replay {
                filter: filter.into(),
                pattern,
                number_max,
                after: None,
            };
            let is_done = at < FILTERS_AT_ONCE && {
                let (paged, spent) = self.send_page(key, &mut replay, PAGE_MAX);
                steps = steps.saturating_add(spent);
                matches!(paged, Paged::Done)
            };
            if !is_done {
                rest.push_back(replay);
            }
        }
        if rest.is_empty() {
            return steps;
        }
        let bytes: usize = rest.iter().map(Replay::bytes).sum();
        client.connection.hold(bytes as isize);
        if let Some(replays) = client.replays.add(rest) {
            let (space, client) = (Arc::clone(self), Arc::clone(client));
            let keeper = self.bridge.realms().door.keeper().clone();
            keeper.spawn(async move { space.replay_rest(&client, key, &replays).await });
        }
        steps
    }

    async fn replay_rest(self: Arc<Self>, client: &Arc<Client>, key: ConnectionKey, all: &Replays) {
        let mut events_max = PAGE_MAX;
        while !client.is_over()
            && let Some(mut replay) = client.replays.next(all)
        {
            let (has_room, _) = self.enter(|space, _, _| space.may_scan(key));
            let paged = match has_room {
                true => self.send_page(key, &mut replay, events_max).0,
                false => Paged::Full,
            };
            crosstie_transport::uncork();
            let mut is_full = false;
            match paged {
                Paged::Done => client.connection.hold(-(replay.bytes() as isize)),
                Paged::More => all.put_back(replay),
                Paged::Full => {
                    is_full = true;
                    all.put_back(replay);
                }
                Paged::Encode(one, uri) => {
                    self.send_encoded(key, &replay, &one).await;
                    replay.after = Some(uri);
                    all.put_back(replay);
                }
            }
            // A client that takes little is read little for.
            events_max = if is_full { FEW } else { PAGE_MAX };
            if is_full {
                let _ = tokio::time::timeout(ROOM_CHECK, all.room()).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Sends an event that a procedure converts.
    async fn send_encoded(&self, key: ConnectionKey, replay: &Replay, one: &Encoding) {
        let (event, topic) = (&one.event, &*one.topic);
        let encoded = self.encoded(event, topic, &one.dynamic).await;
        let Some(octets) = encoded.filter(|octets| !octets.is_empty()) else {
            return Figures::get().count_dropped(Dropped::Payload);
        };
        let content = Content {
            retain: true,
            ..content(topic, &event.properties, &octets)
        };
        let (is_sent, _) = self.enter(|space, now, outbox| {
            let own = space.retained_payload(topic).is_some();
            own || space.send_retained_from_outside(now, key, &replay.filter, &content, outbox)
        });
        if !is_sent {
            Figures::get().count_dropped(Dropped::Payload);
        }
    }

    fn send_page(
        &self,
        key: ConnectionKey,
        replay: &mut Replay,
        events_max: usize,
    ) -> (Paged, u32) {
        let query = RetainedQuery {
            policy: replay.pattern.policy,
            pattern: &replay.pattern.uri,
            after: replay.after.as_deref(),
            events_max,
            number_max: replay.number_max,
        };
        let number = self.bridge.retained_number();
        let (page, mut steps) = self.bridge.retained(&query);
        for event in page.events {
            let found = match self.found(&event, &replay.filter) {
                Read::Message(found) => found,
                Read::Nothing => continue,
                Read::Encode(one) => return (Paged::Encode(one, event.topic), steps),
            };
            let (paged, messages) = self.enter(|space, now, outbox| {
                let own = space.retained_payload(&found.topic);
                // The space sends its own ones.
                if own.is_some_and(|own| event.is_from_elsewhere || own == found.payload) {
                    return None;
                }
                if !self.supersede(space, &found, number) {
                    return Some(Paged::More);
                }
                let (filter, content) = (&*replay.filter, found.as_content());
                let is_sent = space.send_retained_from_outside(now, key, filter, &content, outbox);
                (!is_sent).then_some(Paged::Full)
            });
            steps = steps.saturating_add(messages);
            if let Some(paged) = paged {
                return (paged, steps);
            }
            replay.after = Some(event.topic);
        }
        match page.next {
            Some(next) => {
                replay.after = Some(next);
                (Paged::More, steps)
            }
            None => (Paged::Done, steps),
        }
    }

    /// The message of a retained event, if it is for a filter's subscribers.
    fn found(&self, event: &PassedOn, filter: &str) -> Read {
        let read = Event::new(&event.topic, event.passthru.as_deref(), &event.payload());
        let Some(topic) = read.topic().filter(|found| topic::matches(filter, found)) else {
            return Read::Nothing;
        };
        let (payload, properties) = match self.translate(read) {
            Some(Translated::Octets(payload, properties)) => (payload, properties),
            Some(Translated::Later(event, dynamic)) => {
                return Read::Encode(Box::new(Encoding {
                    event,
                    topic,
                    dynamic,
                }));
            }
            None => return Read::Nothing,
        };
        // An empty retained message is none.
        if payload.is_empty() {
            return Read::Nothing;
        }
        let seconds = |ms: u64| u32::try_from(ms.div_ceil(1_000)).unwrap_or(u32::MAX);
        Read::Message(Found {
            topic,
            properties,
            payload,
            expiry_s: event.left_ms.map(seconds),
        })
    }
}

impl Found {
    fn as_content(&self) -> Content<'_> {
        Content {
            retain: true,
            expiry_s: self.expiry_s,
            ..content(&self.topic, &self.properties, &self.payload)
        }
    }
}
