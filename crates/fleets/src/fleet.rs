//! The MQTT clients of one vhost.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crosstie_broker::RetainedMax;
use crosstie_broker::vhost::SharedVhost;
use parking_lot::Mutex;

use crate::member::Member;

/// Clients with their users, by identifier.
type Clients = BTreeMap<String, (Arc<str>, Arc<Member>)>;

/// The MQTT clients of one vhost, by identifier.
pub(crate) struct Fleet {
    /// One of the same name that is opened later has clients of its own.
    vhost: Weak<SharedVhost>,
    clients: Mutex<Clients>,
    pub(crate) retained_max: RetainedMax,
}

/// The contents of a fleet, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetCounts {
    pub connections: usize,
    pub retained_messages: usize,
    pub retained_bytes: usize,
}

/// A client of another user is connected with that identifier.
pub(crate) struct OfAnother;

impl Fleet {
    pub(crate) fn new(vhost: &Arc<SharedVhost>, retained_max: RetainedMax) -> Self {
        Self {
            vhost: Arc::downgrade(vhost),
            clients: Mutex::default(),
            retained_max,
        }
    }

    pub(crate) fn is_of(&self, vhost: &Arc<SharedVhost>) -> bool {
        Weak::ptr_eq(&self.vhost, &Arc::downgrade(vhost))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.vhost.strong_count() == 0
    }

    /// Puts a client in the place of the one with its identifier, and returns that one. Fails if that is another user's.
    pub(crate) fn put(
        &self,
        client_id: &str,
        user: &Arc<str>,
        member: &Arc<Member>,
    ) -> Result<Option<Arc<Member>>, OfAnother> {
        let mut clients = self.clients.lock();
        if clients
            .get(client_id)
            .is_some_and(|(owner, _)| owner != user)
        {
            return Err(OfAnother);
        }
        let entry = (Arc::clone(user), Arc::clone(member));
        let former = clients.insert(client_id.to_owned(), entry);
        Ok(former.map(|(_, member)| member))
    }

    /// Removes a client, unless another one has its place.
    pub(crate) fn remove(&self, client_id: &str, member: &Arc<Member>) {
        let mut clients = self.clients.lock();
        if clients
            .get(client_id)
            .is_some_and(|(_, found)| Arc::ptr_eq(found, member))
        {
            clients.remove(client_id);
        }
    }

    pub(crate) fn counts(&self) -> FleetCounts {
        let connections = self.clients.lock().len();
        let vhost = self.vhost.upgrade();
        let (retained_messages, retained_bytes) =
            vhost.map_or((0, 0), |vhost| vhost.retained_counts());
        FleetCounts {
            connections,
            retained_messages,
            retained_bytes,
        }
    }
}
