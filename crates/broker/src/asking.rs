//! Clients that wait for an answer about their rights or their new secret: the method that needs it is handled again.

use std::sync::Arc;

use crate::backends::{HttpRights, TokenRights};
use crate::broker::Broker;
use crate::handled::{End, Handled};
use crate::peer::Peer;

impl Peer {
    /// Whether the last method lacked a right that is not known.
    pub(crate) fn wants_right(&self) -> bool {
        self.asked_rights().is_some_and(|rights| rights.wants())
    }

    /// The same; then the right is asked for, and the client is not read until the answer is there.
    pub(crate) fn awaits_right(self: &Arc<Self>, broker: &Broker) -> bool {
        let rights = self.asked_rights();
        let Some(rights) = rights.filter(|rights| rights.begins_to_ask()) else {
            return false;
        };
        let rights = Arc::clone(rights);
        self.pause_until(broker, async move { rights.ask().await });
        true
    }

    /// A new secret is checked, and the client is not read until that is done.
    pub(crate) fn awaits_secret(
        self: &Arc<Self>,
        broker: &Broker,
        rights: Arc<TokenRights>,
        secret: Vec<u8>,
    ) {
        let connection = Arc::clone(&self.connection);
        self.pause_until(broker, async move {
            rights.renew(&secret).await;
            rights.charge(&connection);
        });
    }

    fn pause_until(
        self: &Arc<Self>,
        broker: &Broker,
        answered: impl Future<Output = ()> + Send + 'static,
    ) {
        self.connection.pause_reading();
        let peer = Arc::downgrade(self);
        let task = broker.logins.keeper.spawn(async move {
            answered.await;
            if let Some(peer) = peer.upgrade() {
                peer.resume_answered();
            }
        });
        *self.question.lock() = Some(task.abort_handle());
    }

    /// The client has left: nobody waits for an answer.
    pub(crate) fn stop_asking(&self) {
        let task = self.question.lock().take();
        if let Some(task) = task {
            task.abort();
        }
    }

    fn asked_rights(&self) -> Option<&Arc<HttpRights>> {
        self.rights.as_ref()?.http()
    }

    /// A frame was handled, or waits for the answer that it has asked for.
    pub(crate) fn note_handled(&self) {
        if let Some(rights) = self.asked_rights() {
            rights.note_handled(&self.connection);
        }
    }

    /// What is done with input that comes before the answer.
    pub(crate) fn keeps_asking(&self) -> Option<Handled> {
        let rights = self.rights.as_ref().filter(|rights| rights.is_asking())?;
        if self.connection.has_peer_closed() {
            // Such a client waits for no answer.
            return Some(Handled::End(End::Answered));
        }
        // Resumed for another reason, such as free memory.
        self.connection.pause_reading();
        if !rights.is_asking() {
            self.connection.resume_reading();
        }
        Some(Handled::Yield { consumed: 0 })
    }

    /// Resumes reading, unless publishers are blocked: then their end resumes it.
    fn resume_answered(&self) {
        if self.is_blocked() {
            return;
        }
        self.connection.resume_reading();
        if self.is_blocked() {
            self.connection.pause_reading();
        }
    }
}
