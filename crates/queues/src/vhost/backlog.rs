//! Postponed work of inputs. A large input does as much of it as an ordinary one would; each room keeps the rest, and
//! [`Vhost::work`] continues with it in turn with other inputs.

use super::Vhost;
use crate::{Outbox, Time};

/// Maximum steps of each kind per turn.
const PART_STEPS_MAX: u64 = 256;

type Part<H> = fn(&mut Vhost<H>, Time, &mut dyn Outbox<H>);

impl<H> Vhost<H> {
    /// Takes the steps since the last call, each about 50 to 100 ns. An owner whose client has used many releases the
    /// lock for others before that client's next input.
    pub fn take_steps(&mut self) -> u32 {
        let routed = self.topology.take_steps();
        self.ledger.steps.take().saturating_add(routed)
    }

    /// Whether inputs have postponed work: [`Self::work`] is due.
    pub fn has_backlog(&self) -> bool {
        self.queues.has_backlog()
            || self.channels.has_backlog()
            || self.confirms.has_backlog()
            || self.consumers.has_orphans()
            || self.topology.has_remains()
            || self.policies.is_applying()
            || !self.settlements.is_empty()
    }

    /// Does some of the postponed work, in about that many steps. It is an input like any other, and is called in turn
    /// with those of connections until nothing is left.
    pub fn work(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        // Without any step nothing would ever be done.
        self.ledger.steps.begin(steps_max.max(1));
        let end = self.ledger.steps.end();
        while self.has_backlog() && !self.ledger.steps.is_at(end) {
            for part in Self::PARTS {
                self.ledger.steps.begin_part(PART_STEPS_MAX, end);
                part(self, now, out);
            }
        }
        self.queues.dead_mut().take_died();
        if self.topology.has_ended() {
            self.forget_kept();
        }
        self.flush_confirms(out);
    }

    /// The kinds of work; each continues up to its share of steps.
    const PARTS: [Part<H>; 10] = [
        Self::handle_outcomes,
        Self::settle_next,
        Self::close_next_channel,
        Self::close_next_connection,
        Self::resume_next,
        |vhost, _, out| vhost.clear_remains(out),
        |vhost, _, _| vhost.clear_bindings(),
        Self::apply_policies,
        Self::attend_next,
        Self::bury,
    ];

    fn settle_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.settlements.next_channel() {
            self.go_on_settling(now, key, out);
        }
    }

    fn close_next_channel(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.channels.next_closing() {
            self.go_on_closing_channel(now, key, out);
        }
    }

    fn close_next_connection(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.channels.next_closing_connection() {
            self.go_on_closing(now, key, out);
        }
    }

    fn resume_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.channels.next_resuming() {
            self.go_on_resuming(now, key, out);
        }
    }

    /// Attends to as many queues as there are steps for.
    fn attend_next(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        while !self.ledger.steps.is_over()
            && let Some(key) = self.queues.next_postponed()
        {
            self.ledger.steps.spend(1);
            self.attend(now, key, out);
        }
    }

    /// Clears the remains of deleted queues, as far as the steps allow: their messages, and their consumers, which are
    /// told if they support that.
    pub(super) fn clear_remains(&mut self, out: &mut dyn Outbox<H>) {
        while !self.ledger.steps.is_over() && self.clear_one(out) {
            self.ledger.steps.spend(1);
        }
    }

    /// Clears the bindings of deleted exchanges and queues.
    fn clear_bindings(&mut self) {
        let ledger = &mut self.ledger;
        while !ledger.steps.is_over() && self.topology.clear_one(&mut ledger.journal) {
            // They also count for this part's end, not only for the lock's owner.
            ledger.steps.spend(self.topology.take_steps() as usize);
        }
    }

    /// Clears one; returns whether there was one.
    fn clear_one(&mut self, out: &mut dyn Outbox<H>) -> bool {
        if let Some(lost) = self.consumers.lose_next() {
            if let Some(mut consumer) = lost {
                self.tell_cancelled(&mut consumer, out);
            }
            return true;
        }
        self.queues.clear_one(&mut self.ledger)
    }
}
