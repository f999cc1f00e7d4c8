//! A realm in a cluster: inputs from the realm's other nodes.

use crosstie_wamp::{MatchPolicy, SubscriptionId};

use crate::across::Crossing;
use crate::fault::error;
use crate::rendezvous::hash;
use crate::{Lease, Locality, NeighbourKey, Outbox, Pattern, Position, Publication, Realm, Time};

/// The message to a session that has lost a registration and does not understand UNREGISTERED.
const EVICTED: &str = "a procedure that it had registered is another node's";

impl<H> Realm<H> {
    /// Joins the cluster: from now on the realm announces its interest ([`Outbox::interest`]) and its publications
    /// ([`Outbox::publish_across`]) to other nodes. `own` is the number by which they know this node.
    pub fn join_fabric(&mut self, own: u64, locality: Locality, out: &mut dyn Outbox<H>) {
        let scope = hash(&self.config.name);
        self.broker.join_fabric(own, scope, out);
        self.dealer.join_fabric(own, scope, locality);
        self.reflection.has_nodes = true;
        if self.config.meta_api {
            self.events.join_fabric();
        }
    }

    /// Enforces `single` registrations across node failures by grants ([`Outbox::claim`]). To be called after
    /// [`Realm::join_fabric`], and before any session joins.
    pub fn serve_singles_strictly(&mut self) {
        self.dealer.serve_singles_strictly();
    }

    /// Extends the lease of this node's grants.
    pub fn handle_lease(&mut self, now: Time, lease: Lease) {
        self.dealer.handle_lease(now, lease);
    }

    /// Removes granted registrations if the lease has expired; to be called some times a second.
    pub fn end_lease(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.dealer.end_lease(now);
        if self.has_backlog() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Answers a claim of [`Outbox::claim`]: it is granted, or refused.
    pub fn handle_claimed(
        &mut self,
        now: Time,
        claim: u64,
        is_granted: bool,
        out: &mut dyn Outbox<H>,
    ) {
        let (_, dealer, mut context) = self.split(now, out);
        dealer.handle_claimed(&mut context, claim, is_granted);
        self.remove_closed(now, out);
        self.settle(now, out);
    }

    /// Handles a node that has joined: it is told which procedures are served here, and may serve calls.
    pub fn join_neighbour(&mut self, now: Time, key: NeighbourKey, out: &mut dyn Outbox<H>) {
        // The node is not told of registrations that the expired lease removes.
        self.dealer.end_lease(now);
        self.sessions.neighbours.join(key);
        self.meet_known(key, out);
        self.meet_holder(now, key, out);
        self.meet_retained(key, out);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Handles a node that has gone, or whose connection lost a message. All calls between both end, now or in
    /// [`Realm::work`], and its callees are not found any more.
    pub fn leave_neighbour(&mut self, now: Time, key: NeighbourKey, out: &mut dyn Outbox<H>) {
        let (_, dealer, mut context) = self.split(now, out);
        dealer.leave_neighbour(&mut context, key);
        self.leave_queries(now, key, out);
        self.leave_known(key);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Handles a message of another node, in the order of sending. After the node has left, messages are ignored.
    pub fn handle_crossing(
        &mut self,
        now: Time,
        from: NeighbourKey,
        crossing: &Crossing<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let key = from;
        let Some(from) = self.sessions.neighbours.find(key) else {
            return;
        };
        match crossing {
            Crossing::Question(asked) => {
                self.handle_question(now, key, asked, out);
                return self.remove_closed(now, out);
            }
            Crossing::Answer(answer) => {
                self.handle_answer(now, key, answer, out);
                return self.remove_closed(now, out);
            }
            _ => {}
        }
        let (_, dealer, mut context) = self.split(now, out);
        dealer.handle_crossing(&mut context, from, crossing);
        self.end_evicted(out);
        if self.has_backlog() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Ends sessions that have lost a registration and do not understand UNREGISTERED.
    pub(crate) fn end_evicted(&mut self, out: &mut dyn Outbox<H>) {
        for session in self.dealer.take_evicted() {
            if self.sessions[session].is_in() {
                let reason = error::UNREGISTERED;
                self.end_with_goodbye(session, reason, Some(EVICTED), out);
            }
        }
    }

    /// Handles an event that was published on another node; returns whether a subscription matched it.
    pub fn handle_publication(
        &mut self,
        now: Time,
        from: u64,
        publication: &Publication<'_>,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        if self.note_known(from, publication, out) {
            return true;
        }
        let (broker, _, mut context) = self.split(now, out);
        broker.publish_from_across(&mut context, publication)
    }

    /// Handles the notice that other nodes know the interest at that position: sessions that wait for it are
    /// subscribed, now or in [`Realm::work`].
    pub fn handle_in_force(&mut self, now: Time, reached: Position, out: &mut dyn Outbox<H>) {
        self.broker.note_in_force(reached);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Refuses sessions that wait for a pattern that this node may not receive from others, which `is_denied` tells.
    /// The interest has ended, and is announced again with the next subscription.
    pub fn handle_denied(
        &mut self,
        now: Time,
        is_denied: &mut dyn FnMut(Pattern<'_>) -> bool,
        out: &mut dyn Outbox<H>,
    ) {
        let (broker, _, mut context) = self.split(now, out);
        broker.refuse_waiting(&mut context, is_denied);
    }

    /// The topic or pattern of a subscription.
    pub fn subscription(&self, id: SubscriptionId) -> Option<(MatchPolicy, &str)> {
        self.broker.pattern(id)
    }

    /// Shows `visit` the handles of the sessions that may receive another node's event, until it returns `false`
    /// ([`Realm::receivers`]).
    pub fn receivers_from_across(&self, topic: &str, visit: &mut dyn FnMut(&H) -> bool) {
        let mut show = |index| visit(&self.sessions[index].handle);
        self.broker.receivers(topic, &mut show);
    }
}
