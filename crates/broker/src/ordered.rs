//! Bounds and alarms of a running broker, by an operator's order. They last until the broker stops, or until a reload
//! changes the key of the bound.

use crosstie_store::FreeMin;

use crate::broker::Broker;
use crate::flow::Resource;

impl Broker {
    /// Changes the maximum number of channels of new connections, on all listeners. 0 sets no bound.
    pub fn order_channels_max(&self, channels_max: u16) {
        self.shared.channels_max.order(channels_max);
    }

    /// Notes the open listeners of clients, in the order of their starts: their ids, and `channels_max` of each.
    pub fn note_listeners<'l>(&self, open: impl Iterator<Item = (&'l str, u16)>) {
        self.shared.channels_max.note_listeners(open);
    }

    /// Changes the bytes of messages above which publishers are blocked. Partly received messages keep their bound.
    pub fn order_memory_bytes_max(&self, bytes: usize) {
        self.shared.flow.set_memory_bytes_max(bytes);
    }

    /// Changes the free space below which publishers are blocked, whatever the size of the disk. `on_looked` is called once
    /// the disk is judged by it.
    pub fn order_disk_free_bytes_min(&self, bytes: u64, on_looked: impl FnOnce() + Send + 'static) {
        let free_min = FreeMin::exactly(bytes);
        self.shared.flow.note_free_min(free_min);
        self.shared.set_disk_free_min(free_min, on_looked);
    }

    /// Raises an alarm, or withdraws one that was raised so.
    pub fn order_alarm(&self, resource: Resource, is_raised: bool) {
        self.shared.flow.order_alarm(resource, is_raised);
    }
}
