//! A realm with others of its name on other nodes: what comes from them, and what they know.

use crosstie_wamp::{MatchPolicy, SubscriptionId};

use crate::{Outbox, Position, Publication, Realm, Time};

impl<H> Realm<H> {
    /// From now on there may be others of the realm's name, which its outbox leads to: it tells that outbox
    /// ([`Outbox::interest`]) what is wanted, and what is published ([`Outbox::publish_across`]).
    pub fn join_fabric(&mut self, out: &mut dyn Outbox<H>) {
        self.broker.join_fabric(out);
    }

    /// Takes an event that was published on another node; whether a subscription matched it.
    pub fn handle_publication(
        &mut self,
        now: Time,
        publication: &Publication<'_>,
        out: &mut dyn Outbox<H>,
    ) -> bool {
        let (broker, _, mut context) = self.split(now, out);
        broker.publish_from_across(&mut context, publication)
    }

    /// Other nodes know what was wanted at that position: who waits for it is subscribed, now or in the course of
    /// [`Realm::work`].
    pub fn handle_in_force(&mut self, now: Time, reached: Position, out: &mut dyn Outbox<H>) {
        self.broker.note_in_force(reached);
        self.work(now, self.steps_at_once_max, out);
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
