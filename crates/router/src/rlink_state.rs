//! The links of a router: their status for operators, and their counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use crosstie_config as model;
use crosstie_rlinks::{Count, Kind, Side};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The links of a router.
#[derive(Default)]
pub(crate) struct RLinks(Mutex<Vec<Arc<RLink>>>);

/// A link, connected or not.
pub(crate) struct RLink {
    /// Of this router.
    pub(crate) realm: String,
    pub(crate) model: model::RLink,
    pub(crate) started: SystemTime,
    pub(crate) is_connected: AtomicBool,
    pub(crate) counts: Counts,
    pub(crate) running: Mutex<Option<Arc<dyn AtWork>>>,
    /// Why it is not connected.
    pub(crate) trouble: Mutex<Option<String>>,
    pub(crate) stop: watch::Sender<bool>,
}

/// The status of a link for operators.
#[derive(Clone, Debug)]
pub struct RLinkStatus {
    /// Of this router.
    pub realm: String,
    pub link: model::RLink,
    pub started: SystemTime,
    pub is_connected: bool,
    /// Why it is not connected.
    pub trouble: Option<String>,
    /// Number of topics of the other realm that are subscribed to here, and the reverse.
    pub topics: [usize; 2],
    /// Number of procedures of the other realm that are registered here, and the reverse.
    pub procedures: [usize; 2],
    /// Number of open calls from here, and from there.
    pub calls: [usize; 2],
    /// Bytes queued for the other router.
    pub queued_bytes: usize,
}

/// A connected link.
pub(crate) trait AtWork: Send + Sync {
    /// The number that it holds on a side.
    fn held(&self, side: Side, kind: Kind) -> usize;

    /// Number of open calls from that side.
    fn calls(&self, from: Side) -> usize;

    fn queued_bytes(&self) -> usize;

    /// Ends it: both sessions leave.
    fn end(&self, why: &str);
}

/// A link's counters.
#[derive(Default)]
pub(crate) struct Counts {
    counts: [AtomicU64; Count::ALL.len()],
    pub(crate) restarts: AtomicU64,
}

impl Counts {
    pub(crate) fn count(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }
}

impl RLinks {
    /// Adds a link. Returns whether its id is new.
    pub(crate) fn add(&self, link: &Arc<RLink>) -> bool {
        let mut links = self.0.lock();
        if links.iter().any(|known| known.model.id == link.model.id) {
            return false;
        }
        links.push(Arc::clone(link));
        true
    }

    /// Removes the links of a realm, or one of them.
    pub(crate) fn take(&self, realm: &str, id: Option<&str>) -> Vec<Arc<RLink>> {
        let is_meant =
            |link: &Arc<RLink>| link.realm == realm && id.is_none_or(|id| link.model.id == id);
        let mut links = self.0.lock();
        let (taken, left) = links.drain(..).partition(is_meant);
        *links = left;
        taken
    }

    pub(crate) fn all(&self) -> Vec<Arc<RLink>> {
        self.0.lock().clone()
    }
}

impl RLink {
    pub(crate) fn status(&self) -> RLinkStatus {
        let running = self.running.lock().clone();
        let held = |kind| Side::BOTH.map(|side| running.as_ref().map_or(0, |r| r.held(side, kind)));
        RLinkStatus {
            realm: self.realm.clone(),
            link: self.model.clone(),
            started: self.started,
            is_connected: self.is_connected.load(Ordering::Relaxed),
            trouble: self.trouble.lock().clone(),
            topics: held(Kind::Subscription),
            procedures: held(Kind::Registration),
            calls: Side::BOTH.map(|side| running.as_ref().map_or(0, |r| r.calls(side))),
            queued_bytes: running.as_ref().map_or(0, |r| r.queued_bytes()),
        }
    }

    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives as long as this link.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}
