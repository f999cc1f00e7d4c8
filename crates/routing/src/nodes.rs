//! A realm with others of its name on other nodes: what comes from them, and what they know.

use crosstie_wamp::{MatchPolicy, SubscriptionId};

use crate::across::Crossing;
use crate::fault::error;
use crate::sharding::hash;
use crate::{Locality, NeighbourKey, Outbox, Pattern, Position, Publication, Realm, Time};

/// What a session is told that has lost a registration and does not understand UNREGISTERED.
const EVICTED: &str = "a procedure that it had registered is another node's";

impl<H> Realm<H> {
    /// From now on there may be others of the realm's name, which its outbox leads to: it tells that outbox
    /// ([`Outbox::interest`]) what is wanted, and what is published ([`Outbox::publish_across`]).
    /// `own` is what they know this node by.
    pub fn join_fabric(&mut self, own: u64, locality: Locality, out: &mut dyn Outbox<H>) {
        let scope = hash(&self.config.name);
        self.broker.join_fabric(own, scope, out);
        self.dealer.join_fabric(own, scope, locality);
        self.reflection.has_nodes = true;
        if self.config.meta_api {
            self.events.join_fabric();
        }
    }

    /// What is to have one callee has one, whatever becomes of the nodes: what grants it is behind [`Outbox::claim`]. Said after
    /// [`Realm::join_fabric`], and before anybody joins.
    pub fn serve_singles_strictly(&mut self) {
        self.dealer.serve_singles_strictly();
    }

    /// What was granted to this node lasts until then.
    pub fn handle_lease(&mut self, now: Time, until: Time) {
        self.dealer.handle_lease(now, until);
    }

    /// Takes away what was granted, if that is over; to be called some times a second.
    pub fn end_lease(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        self.dealer.end_lease(now);
        if self.has_backlog() {
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// What [`Outbox::claim`] has asked for is granted, or is not.
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

    /// Another node is there: it is told which procedures are served here, and asked to serve calls.
    pub fn join_neighbour(&mut self, now: Time, key: NeighbourKey, out: &mut dyn Outbox<H>) {
        // It is not to be told of what is lost.
        self.dealer.end_lease(now);
        self.sessions.neighbours.join(key);
        self.meet_known(key, out);
        self.meet_holder(now, key, out);
        self.meet_retained(key, out);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Another node has gone, or what was between it and this one is lost: all calls between both end, now or in the
    /// course of [`Realm::work`], and what it serves is found no more.
    pub fn leave_neighbour(&mut self, now: Time, key: NeighbourKey, out: &mut dyn Outbox<H>) {
        let (_, dealer, mut context) = self.split(now, out);
        dealer.leave_neighbour(&mut context, key);
        self.leave_gatherings(now, key, out);
        self.leave_known(key);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Takes what another node has said, in the order in which it did. Of one that has left it is ignored.
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

    /// Ends sessions that have lost a registration and do not understand that.
    pub(crate) fn end_evicted(&mut self, out: &mut dyn Outbox<H>) {
        for session in self.dealer.take_evicted() {
            if self.sessions[session].is_in() {
                let reason = error::UNREGISTERED;
                self.end_with_goodbye(session, reason, Some(EVICTED), out);
            }
        }
    }

    /// Takes an event that was published on another node, of that number; whether a subscription matched it.
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

    /// Other nodes know what was wanted at that position: who waits for it is subscribed, now or in the course of
    /// [`Realm::work`].
    pub fn handle_in_force(&mut self, now: Time, reached: Position, out: &mut dyn Outbox<H>) {
        self.broker.note_in_force(reached);
        self.work(now, self.steps_at_once_max, out);
    }

    /// Who waits for what cannot be heard from other nodes is refused: where `is_denied` says so of a pattern. What was
    /// wanted of it is over, and is asked for again with the next subscription.
    pub fn handle_denied(
        &mut self,
        now: Time,
        is_denied: &mut dyn FnMut(Pattern<'_>) -> bool,
        out: &mut dyn Outbox<H>,
    ) {
        let (broker, _, mut context) = self.split(now, out);
        broker.refuse_waiting(&mut context, is_denied);
    }

    /// What a subscription is for.
    pub fn subscription(&self, id: SubscriptionId) -> Option<(MatchPolicy, &str)> {
        self.broker.pattern(id)
    }

    /// Shows `visit` the handles of those whom an event of another node may be sent to, until it returns `false`
    /// ([`Realm::receivers`]).
    pub fn receivers_from_across(&self, topic: &str, visit: &mut dyn FnMut(&H) -> bool) {
        let mut show = |index| visit(&self.sessions[index].handle);
        self.broker.receivers(topic, &mut show);
    }
}
