//! Synchronizes retained events with all nodes: two nodes that meet exchange what they retain.

use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Payload, Value};

use crate::across::NeighbourKey;
use crate::handover::{self, RETAINED, UNANSWERED};
use crate::{Outbox, Realm, Time};

/// Maximum number of nodes that are being sent all events.
const SHARINGS_MAX: usize = 1_024;

const STEPS_PER_EVENT: u32 = 20;

impl<H> Realm<H> {
    /// Handles a node that has joined, or whose connection lost a message.
    pub(crate) fn meet_retained(&mut self, node: NeighbourKey, out: &mut dyn Outbox<H>) {
        let digest = self.broker.retained().digest();
        let said = vec![("digest".to_owned(), Value::from(digest))];
        self.say_retained(node, said, out);
    }

    /// Handles a message about retained events from another node.
    pub(super) fn take_retained(
        &mut self,
        now: Time,
        from: NeighbourKey,
        payload: &Payload<'_>,
        out: &mut dyn Outbox<H>,
    ) {
        let said = codec::decode_value(payload.serializer, payload.kwargs, &Limits::default());
        let Ok(said) = said else {
            return;
        };
        self.steps = self.steps.saturating_add(STEPS_PER_EVENT);
        if let Some(event) = said.get("event") {
            let (broker, _, mut context) = self.split(now, out);
            broker.take_retained(&mut context, event);
        }
        let digest = said.get("digest").and_then(Value::as_u64);
        if digest.is_some_and(|digest| digest != self.broker.retained().digest())
            && self.sharing.len() < SHARINGS_MAX
        {
            self.sharing.retain(|(node, _)| *node != from);
            self.sharing.push_back((from, None));
            self.work(now, self.steps_at_once_max, out);
        }
    }

    /// Sends nodes the events that they may lack, for that many steps; returns whether there was such a node.
    pub(crate) fn share_some(&mut self, steps_max: u32, out: &mut dyn Outbox<H>) -> bool {
        let Some((node, behind)) = self.sharing.pop_front() else {
            return false;
        };
        let count_max = steps_max.div_ceil(STEPS_PER_EVENT) as usize;
        let epoch_us = self.events.epoch_us();
        let retained = self.broker.retained();
        let (events, last) = retained.some_behind(behind.as_deref(), count_max, epoch_us);
        let steps = 1 + events.len() as u32 * STEPS_PER_EVENT;
        self.steps = self.steps.saturating_add(steps);
        let mut is_said = true;
        for event in events {
            let said = vec![("event".to_owned(), event)];
            is_said &= self.say_retained(node, said, out);
        }
        // A loss ends the connection, and the exchange begins anew when they meet again.
        if is_said && last.is_some() {
            self.sharing.push_back((node, last));
        }
        true
    }

    fn say_retained(&mut self, node: NeighbourKey, said: Dict, out: &mut dyn Outbox<H>) -> bool {
        let said = handover::said(said);
        self.send_question(node, UNANSWERED, (RETAINED, &said), out)
    }
}
