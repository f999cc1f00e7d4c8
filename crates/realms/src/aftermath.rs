//! Log lines and counters that follow an input to a realm, outside its lock.

use std::sync::Arc;

use crosstie_front::counters::counters;
use crosstie_front::end_reason::EndReason;
use crosstie_routing::Denial;

use crate::outbox::{Left, RealmOutbox};
use crate::peer::Peer;
use crate::realm::SharedRealm;
use crate::spans;

impl SharedRealm {
    /// Logs and counts sessions that have left, denied requests, and events that a serializer cannot represent. Cookies
    /// are forgotten before anything is sent.
    #[cold]
    pub(super) fn tell(&self, outbox: RealmOutbox<'_, '_>, why: EndReason) {
        if let Some(whose) = &outbox.logged_out
            && let Some(router) = self.router()
        {
            router.jars.forget(self.name(), whose);
        }
        if let Some((reason, into)) = outbox.unwritable {
            self.log.event_unwritable(reason, into);
        }
        let mut killed = Vec::new();
        let has_judged = !outbox.left.is_empty() && self.judged.pending() > 0;
        for left in &outbox.left {
            let Left {
                peer,
                id,
                identity,
                is_killed,
            } = left;
            let is_same = |closed: &Peer| Arc::ptr_eq(&closed.connection, &peer.connection);
            let is_full = outbox.closed.iter().any(is_same);
            let why = match (is_full, is_killed) {
                (true, _) => EndReason::QueueFull,
                (false, true) => {
                    killed.push(Arc::downgrade(&peer.connection));
                    EndReason::Killed
                }
                (false, false) => why,
            };
            counters().left(why);
            spans::end_all(&self.spans, peer);
            // A session that waits for a verdict must continue to answer.
            if has_judged {
                peer.connection.resume_reading();
            }
            self.log.session_left(peer, *id, identity, why);
        }
        if let Some(denied) = outbox.denied
            && let Some(router) = self.router()
        {
            let denial = Denial {
                handle: &(),
                session: denied.session,
                identity: &denied.identity,
                action: denied.action,
                uri: &denied.uri,
                cause: denied.cause,
            };
            let peer = denied.peer.connection.peer();
            router.denials.note(self.name(), peer, &denial);
            self.log.request_denied(&denied);
        }
        if !killed.is_empty() {
            self.killed.lock().append(&mut killed);
            self.timer.arm(0);
        }
    }
}
