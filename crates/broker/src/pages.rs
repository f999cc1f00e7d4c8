//! Pages of deep queues: read by the store's thread, and put into their queue in a turn of its own.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use crosstie_amqp::Method;
use crosstie_queues::{ChannelKey, Page, Want};
use crosstie_store::StoreError;
use tokio::runtime::Handle;

use super::peer::Peer;
use super::replicated::Wanted;
use super::turn::Turn;
use super::vhost::{Keeper, SharedVhost};

impl Turn<'_> {
    /// Whether a method is a `basic.get` that has to wait because the queue's next message is on the disk. Then the peer
    /// is not read until a page has come.
    pub(super) fn must_wait(
        &mut self,
        channel: ChannelKey,
        method: &Method<'_>,
        peer: &Arc<Peer>,
    ) -> bool {
        let Method::BasicGet(get) = method else {
            return false;
        };
        let (vhost, ..) = self.enter();
        if !vhost.is_waiting_for_page(channel, get.queue) {
            return false;
        }
        // Under the vhost's lock, which the page needs too.
        peer.block(None);
        let mut waiting = peer.vhost.waiting_for_pages.lock();
        waiting.push(Arc::downgrade(peer));
        true
    }
}

impl SharedVhost {
    /// Has a page read.
    pub(super) fn read_page(self: &Arc<Self>, want: Want) {
        if self.is_deleted() {
            return;
        }
        let of_page = Arc::downgrade(self);
        let context = Handle::current();
        let on_read = move |page: Result<Page, String>| {
            let Some(vhost) = of_page.upgrade() else {
                return;
            };
            let entered = context.enter();
            match page {
                Ok(page) => vhost.handle_page(&want, page),
                Err(error) => vhost.note_unreadable(want, &error),
            }
            crosstie_transport::uncork_all();
            drop(entered);
        };
        let shared = &self.shared;
        match &self.keeper {
            // A stopping router reads no more.
            Keeper::Local => {
                let on_read = move |page: Result<Page, StoreError>| {
                    on_read(page.map_err(|error| error.to_string()));
                };
                shared.read_page(&self.name, want, on_read);
            }
            Keeper::Replicated { journal, .. } => {
                journal.request(Wanted::new(want, Box::new(on_read)));
            }
        }
    }

    /// Whether the retained messages are being read: not if that has failed, however often it is tried again.
    pub(super) fn is_reading_retained(&self) -> bool {
        let vhost = self.lock();
        let unreadable = self.unreadable.lock();
        let has_failed = unreadable.keys().any(|key| vhost.has_retained(*key));
        !vhost.has_read_retained() && !has_failed
    }

    fn handle_page(self: &Arc<Self>, want: &Want, page: Page) {
        let mut turn = self.turn(Instant::now());
        let (vhost, now, outbox) = turn.enter();
        let queue = vhost.queue_of(want);
        let missing = vhost.handle_page(now, want, page, outbox);
        if let Some(queue) = &queue {
            self.unreadable.lock().note_read(queue);
        }
        // Those whose queue has no message yet wait again.
        let waiting = mem::take(&mut *self.waiting_for_pages.lock());
        for peer in waiting {
            if let Some(peer) = peer.upgrade() {
                peer.unblock(false);
            }
        }
        turn.finish();
        if missing > 0 && !self.is_deleted() {
            let (vhost, queue) = (&self.name, queue.unwrap_or_default());
            tracing::error!(
                "vhost '{vhost}': the store lacks {missing} messages of queue '{queue}'"
            );
        }
    }

    /// The page cannot be read now. Its queue waits, and the others are served; an alarm names it.
    fn note_unreadable(self: &Arc<Self>, want: Want, error: &str) {
        let vhost = self.lock();
        let mut unreadable = self.unreadable.lock();
        let Some(queue) = vhost.queue_of(&want) else {
            return;
        };
        if !vhost.is_awaiting(&want) {
            return unreadable.note_read(&queue);
        }
        drop(vhost);
        if unreadable.add((Arc::clone(&queue), want.queue), want, error) {
            let vhost = &self.name;
            tracing::error!(
                "vhost '{vhost}': cannot read messages of queue '{queue}', retrying: {error}"
            );
        }
    }

    /// Reads the pages again that could not be read, and forgets those that are no longer needed. To be called once a
    /// second.
    pub(crate) fn read_again(self: &Arc<Self>) {
        if self.unreadable.lock().is_empty() {
            return;
        }
        let vhost = self.lock();
        let mut unreadable = self.unreadable.lock();
        unreadable.retain(
            |key| vhost.name_of(*key).is_some(),
            |want| vhost.is_awaiting(want),
        );
        let failed = unreadable.take_wants();
        drop((vhost, unreadable));
        for want in failed {
            self.read_page(want);
        }
    }
}
