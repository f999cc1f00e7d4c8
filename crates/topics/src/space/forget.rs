//! The home of a space stops: it forgets all.

use std::mem;

use super::Space;
use crate::Counts;
use crate::ledger::Ledger;

impl<H> Space<H> {
    /// Forgets sessions, subscriptions, retained messages and wills, as the end of a process does: without packets, and
    /// without records. Keys of earlier connections have no effect. Returns what was there, whose drop may take long.
    pub fn forget_all(&mut self, seed: u64) -> Self {
        let mut empty = Self::new(self.config.clone(), seed);
        let counts = &self.ledger.counts;
        empty.connections_made = self.connections_made;
        empty.published = self.published;
        empty.ledger = Ledger {
            is_stored: self.ledger.is_stored,
            journal: mem::take(&mut self.ledger.journal),
            counts: Counts {
                connected: 0,
                subscriptions: 0,
                queued: 0,
                ..*counts
            },
            kept_bytes: 0,
            ..self.ledger
        };
        mem::replace(self, empty)
    }

    /// The connections of clients.
    pub fn links(&self) -> impl Iterator<Item = &H> {
        let places = 0..self.clients.places();
        places.filter_map(|place| self.clients.at(place as u32)?.link.as_ref())
    }
}
