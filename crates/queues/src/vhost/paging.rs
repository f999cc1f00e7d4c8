//! Pages of deep queues, which the vhost's owner reads from the store.

use std::sync::Arc;

use super::Vhost;
use crate::queues::{Page, Want};
use crate::{ChannelKey, Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    /// Takes the next page to be read. The owner reads it from the store, which has committed all of it, and hands it to
    /// [`Self::handle_page`]. If the read fails, the owner repeats it.
    pub fn take_want(&mut self) -> Option<Want> {
        self.queues.take_want()
    }

    /// The name of a page's queue, if the queue still exists.
    pub fn queue_of(&self, want: &Want) -> Option<Arc<str>> {
        self.name_of(want.queue)
    }

    /// The name of a queue, if it still exists.
    pub fn name_of(&self, queue: QueueKey) -> Option<Arc<str>> {
        let queue = self.queues.find(queue);
        queue.map(|queue| Arc::clone(&queue.name))
    }

    /// Whether a page would still be put into its queue, which may have been purged or deleted since.
    pub fn is_awaiting(&self, want: &Want) -> bool {
        self.queues.is_awaiting(want)
    }

    /// The memory of the owner is nearly full, or is not any more: meanwhile only the first messages of any queue stay in
    /// memory. The vhost's backlog brings that about.
    pub fn set_crowded(&mut self, is_crowded: bool) {
        self.queues.set_crowded(is_crowded);
    }

    pub fn is_crowded(&self) -> bool {
        self.queues.is_crowded()
    }

    /// Whether pages are to be read.
    pub fn has_wants(&self) -> bool {
        self.queues.has_wants()
    }

    /// Whether the next message of that queue is on the disk: a `basic.get` of the channel has to wait for a page.
    pub fn is_waiting_for_page(&self, channel: ChannelKey, queue: &str) -> bool {
        let key = match queue {
            "" => self
                .last_queue(channel)
                .and_then(|name| self.topology.queue(&name)),
            name => self.topology.queue(name),
        };
        let queue = key.and_then(|key| self.queues.find(key));
        queue.is_some_and(|queue| queue.is_waiting())
    }

    /// Puts a page into its queue, and sends its messages to consumers with room. Returns the number of messages that the
    /// store should have had and did not have.
    pub fn handle_page(
        &mut self,
        now: Time,
        want: &Want,
        page: Page,
        out: &mut dyn Outbox<H>,
    ) -> usize {
        self.begin();
        let (ledger, confirms) = (&mut self.ledger, &mut self.confirms);
        let missing = self.queues.add_page(want, page, ledger, confirms);
        if missing.is_some() {
            self.attend(now, want.queue, out);
        }
        self.end(now, out);
        self.flush_confirms(out);
        missing.unwrap_or(0)
    }
}
