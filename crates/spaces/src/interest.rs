//! The patterns to which a space's session subscribes, counted by the filters that they cover.

use std::collections::HashMap;
use std::sync::Arc;

use crosstie_front::report::FAULTS;
use crosstie_realms::peer::Peer;
use crosstie_realms::resident::Room;
use crosstie_routing::SessionKey;
use crosstie_wamp::{Message, RequestId, SubscribeOptions, SubscriptionId};

use crate::names::Pattern;

/// The session's requests, and its subscriptions.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) joined: Option<Joined>,
    wanted: HashMap<Pattern, Wanted>,
    ids: HashMap<Pattern, SubscriptionId>,
    pub(crate) by_id: HashMap<SubscriptionId, Pattern>,
    /// Bytes of the URIs of needed patterns.
    uri_bytes: usize,
}

/// Approximate memory of a needed pattern in the three maps, beside three copies of its URI.
const PATTERN_BYTES: usize = 320;

/// The session in a realm.
pub(crate) struct Joined {
    pub(crate) room: Arc<dyn Room>,
    pub(crate) key: SessionKey,
    pub(crate) peer: Peer,
    request_last: u64,
    asked: HashMap<u64, Pattern>,
}

/// A pattern that is needed.
#[derive(Default)]
struct Wanted {
    /// Number of filters that it covers, and of those that are being subscribed to.
    filters: usize,
    /// The realm has been asked for it, and has not answered.
    is_asked: bool,
    /// The pattern in place of it: the realm has refused this one.
    wider: Option<Pattern>,
}

impl Joined {
    pub(crate) fn new(room: Arc<dyn Room>, key: SessionKey, peer: Peer) -> Self {
        Self {
            room,
            key,
            peer,
            request_last: 0,
            asked: HashMap::new(),
        }
    }
}

impl Line {
    /// A session has begun: it subscribes to all that is needed.
    pub(crate) fn begin(&mut self, joined: Joined) {
        self.end();
        self.joined = Some(joined);
        let refused = |wanted: &Wanted| wanted.wider.is_some();
        let needed = self.wanted.iter().filter(|(_, wanted)| !refused(wanted));
        let needed: Vec<_> = needed.map(|(pattern, _)| pattern.clone()).collect();
        for pattern in needed {
            self.subscribe(pattern);
        }
    }

    /// Forgets the session, which is returned.
    pub(crate) fn end(&mut self) -> Option<Joined> {
        self.by_id.clear();
        self.ids.clear();
        for wanted in self.wanted.values_mut() {
            wanted.is_asked = false;
        }
        self.joined.take()
    }

    /// One more filter needs a pattern.
    pub(crate) fn add(&mut self, pattern: Pattern) {
        let wanted = self.wanted.entry(pattern.clone()).or_default();
        if wanted.filters == 0 {
            self.uri_bytes += pattern.uri.len();
        }
        wanted.filters += 1;
        let is_asked = wanted.is_asked || wanted.wider.is_some();
        if !is_asked && !self.ids.contains_key(&pattern) {
            self.subscribe(pattern);
        }
    }

    /// One filter less needs a pattern.
    pub(crate) fn remove(&mut self, pattern: &Pattern) {
        let Some(wanted) = self.wanted.get_mut(pattern) else {
            return;
        };
        wanted.filters = wanted.filters.saturating_sub(1);
        if wanted.filters > 0 {
            return;
        }
        let removed = self.wanted.remove(pattern);
        self.uri_bytes -= pattern.uri.len();
        if let Some(id) = self.ids.remove(pattern) {
            self.unsubscribe(id);
        }
        if let Some(wider) = removed.and_then(|removed| removed.wider) {
            self.remove(&wider);
        }
    }

    /// No filter is left.
    pub(crate) fn clear(&mut self) {
        self.wanted.clear();
        self.uri_bytes = 0;
        for (_, id) in std::mem::take(&mut self.ids) {
            self.unsubscribe(id);
        }
    }

    /// Approximate memory.
    pub(crate) fn bytes(&self) -> usize {
        self.wanted.len() * PATTERN_BYTES + 3 * self.uri_bytes
    }

    pub(crate) fn handle_subscribed(&mut self, request: RequestId, id: SubscriptionId) {
        let Some(pattern) = self.answered(request) else {
            return;
        };
        match self.wanted.contains_key(&pattern) {
            true => {
                self.by_id.insert(id, pattern.clone());
                self.ids.insert(pattern, id);
            }
            // Its last filter has gone before the answer.
            false => self.unsubscribe(id),
        }
    }

    /// The realm refuses a pattern: a wider one covers its filters, too.
    pub(crate) fn handle_refused(&mut self, request: RequestId, error: &str) {
        let Some(pattern) = self.answered(request) else {
            return;
        };
        let Some(wanted) = self.wanted.get_mut(&pattern) else {
            return;
        };
        match pattern.wider() {
            Some(wider) => {
                wanted.wider = Some(wider.clone());
                self.add(wider);
            }
            None if FAULTS.may_log() => {
                let uri = &pattern.uri;
                tracing::warn!("MQTT clients do not receive events of \"{uri}\": {error}");
            }
            None => {}
        }
    }

    pub(crate) fn handle_revoked(&mut self, id: SubscriptionId) {
        if let Some(pattern) = self.by_id.remove(&id) {
            self.ids.remove(&pattern);
        }
    }

    /// Sends a request of the session. Returns its id.
    pub(crate) fn say<'m>(
        &mut self,
        message: impl FnOnce(RequestId) -> Message<'m>,
    ) -> Option<u64> {
        let joined = self.joined.as_mut()?;
        joined.request_last += 1;
        let message = message(RequestId(joined.request_last));
        joined
            .room
            .route(joined.key, &message, &joined.peer.connection);
        Some(joined.request_last)
    }

    fn answered(&mut self, request: RequestId) -> Option<Pattern> {
        let pattern = self.joined.as_mut()?.asked.remove(&request.0)?;
        if let Some(wanted) = self.wanted.get_mut(&pattern) {
            wanted.is_asked = false;
        }
        Some(pattern)
    }

    fn subscribe(&mut self, pattern: Pattern) {
        let options = SubscribeOptions::matching(pattern.policy);
        let asked = self.say(|request| Message::Subscribe {
            request,
            options,
            topic: pattern.uri.as_str().into(),
        });
        if let (Some(request), Some(joined)) = (asked, &mut self.joined) {
            if let Some(wanted) = self.wanted.get_mut(&pattern) {
                wanted.is_asked = true;
            }
            joined.asked.insert(request, pattern);
        }
    }

    fn unsubscribe(&mut self, subscription: SubscriptionId) {
        self.by_id.remove(&subscription);
        self.say(|request| Message::Unsubscribe {
            request,
            subscription,
        });
    }
}
