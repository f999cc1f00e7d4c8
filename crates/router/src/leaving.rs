//! The clients that leave during a drain.

use std::sync::{Arc, Weak};

use crosstie_front::connections::Connections;
use crosstie_transport::Connection;

/// The clients of a drain.
#[derive(Default)]
pub(crate) struct Leaving {
    /// Those that were there when the listeners closed, and have not been told to leave.
    waiting: Vec<Weak<Connection>>,
    /// Those that have been told, and have not gone.
    told: Vec<Weak<Connection>>,
    /// Number of those that were there.
    count: usize,
}

impl Leaving {
    pub(crate) fn new(clients: &[Arc<Connection>]) -> Self {
        Self {
            waiting: clients.iter().map(Arc::downgrade).collect(),
            told: Vec::new(),
            count: clients.len(),
        }
    }

    /// The clients that are to be told next, so that this share of all has been told.
    pub(crate) fn slice(&mut self, share: f64) -> Vec<Arc<Connection>> {
        let told = self.count - self.waiting.len();
        // At most the count, as the share is.
        let due = (self.count as f64 * share.clamp(0.0, 1.0)).ceil() as usize;
        let rest = self.waiting.len().saturating_sub(due.saturating_sub(told));
        let slice = self.waiting.split_off(rest);
        self.tell(slice.iter().filter_map(is_there).collect())
    }

    /// Adds the clients among these that have not been told.
    pub(crate) fn late(&mut self, clients: Vec<Arc<Connection>>) -> Vec<Arc<Connection>> {
        let known = self.told.iter().chain(&self.waiting);
        let known: Vec<_> = known.filter_map(Weak::upgrade).collect();
        let known: Connections = known.iter().collect();
        let late = clients.into_iter().filter(|client| !known.has(client));
        self.tell(late.collect())
    }

    /// Number of clients that are still there.
    pub(crate) fn remaining(&mut self) -> usize {
        self.told.retain(|client| is_there(client).is_some());
        self.waiting.len() + self.told.len()
    }

    fn tell(&mut self, clients: Vec<Arc<Connection>>) -> Vec<Arc<Connection>> {
        self.told.extend(clients.iter().map(Arc::downgrade));
        clients
    }
}

fn is_there(client: &Weak<Connection>) -> Option<Arc<Connection>> {
    let client = client.upgrade();
    client.filter(|client| !client.is_closed() || client.is_finishing())
}
