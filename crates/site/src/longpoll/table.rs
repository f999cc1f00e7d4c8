//! The transports of a service by id, and recently ended ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crosstie_transport::now_s;
use crosstie_web::longpoll::TransportId;
use hyper::{Response, StatusCode};
use parking_lot::Mutex;

use super::transport::Transport;
use crate::{Body, answer};

#[derive(Default)]
pub(super) struct Table {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    open: HashMap<TransportId, Arc<Transport>>,
    /// The oldest comes first.
    ended: VecDeque<(TransportId, u32)>,
}

/// The state of an id.
pub(super) enum Found {
    Open(Arc<Transport>),
    Ended,
    Never,
}

/// Time for which an end is remembered, in seconds: until every client has sent another request.
const ENDED_KEPT_S: u32 = 60;
/// Maximum number of remembered ends, the latest ones: 32 KiB.
const ENDED_MAX: usize = 1024;

impl Table {
    pub(super) fn add(&self, id: TransportId, transport: Arc<Transport>) {
        self.entries.lock().open.insert(id, transport);
    }

    pub(super) fn end(&self, id: TransportId) {
        let now_s = now_s();
        let mut entries = self.entries.lock();
        let ended = entries.open.remove(&id);
        if entries.open.len() * 4 < entries.open.capacity() {
            let few = entries.open.len() * 2;
            entries.open.shrink_to(few);
        }
        entries.ended.push_back((id, now_s));
        let is_over = |(_, at_s): &(TransportId, u32)| now_s.saturating_sub(*at_s) > ENDED_KEPT_S;
        while entries.ended.len() > ENDED_MAX || entries.ended.front().is_some_and(is_over) {
            entries.ended.pop_front();
        }
        drop(entries);
        drop(ended);
    }

    pub(super) fn find(&self, id: TransportId) -> Found {
        let entries = self.entries.lock();
        if let Some(transport) = entries.open.get(&id) {
            return Found::Open(Arc::clone(transport));
        }
        match entries.ended.iter().any(|(ended, _)| *ended == id) {
            true => Found::Ended,
            false => Found::Never,
        }
    }
}

impl Found {
    /// The answer for a request whose transport is not open.
    pub(super) fn answer(&self) -> Response<Body> {
        match self {
            Self::Open(_) | Self::Ended => gone(),
            Self::Never => answer::text(StatusCode::NOT_FOUND, "no such WAMP transport"),
        }
    }
}

/// The answer for a transport that has ended.
pub(super) fn gone() -> Response<Body> {
    answer::text(StatusCode::GONE, "this WAMP transport has ended")
}
