//! A vhost that is closed to clients, and the end of one that is deleted.

use std::mem;
use std::thread;

use crosstie_queues::{Position, Record, Vhost, VhostConfig};

use super::vhost::SharedVhost;

/// Bytes of messages from which on a vhost is freed on a thread of its own: a million messages take a second.
const FREED_BYTES_MAX: usize = 1 << 20;

impl SharedVhost {
    /// Whether clients may enter it.
    pub(crate) fn is_open(&self) -> bool {
        self.phase.is_open()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.phase.is_deleted()
    }

    pub(crate) fn open(&self) {
        self.phase.set_open(true);
    }

    pub(crate) fn shut(&self) {
        self.phase.set_open(false);
    }

    /// Submits a record of the broker, after all others; nothing is submitted after the last one. Returns its position.
    pub(crate) fn submit_last(&self, record: Record, is_last: bool) -> Position {
        if is_last {
            self.stop();
        }
        let mut vhost = self.lock();
        let journal = vhost.journal();
        journal.position.0 += 1;
        journal.records.push(record);
        let records = mem::take(&mut journal.records);
        let changes = mem::take(&mut journal.streams);
        let position = journal.position;
        self.submit(records, changes, position);
        if is_last {
            self.phase.set_deleted();
        }
        position
    }

    /// Frees its contents, without making a router's thread wait for that.
    pub(super) fn free(&mut self) {
        if *self.memory_bytes.get_mut() < FREED_BYTES_MAX {
            return;
        }
        let empty = Vhost::new(VhostConfig::named(&self.name), 0);
        let vhost = mem::replace(self.vhost.get_mut(), empty);
        // Without a thread it is freed here.
        let freeing = thread::Builder::new().name("freeing".to_owned());
        let _ = freeing.spawn(move || drop(vhost));
    }
}
