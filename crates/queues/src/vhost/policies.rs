//! Policies: they are applied to queues and exchanges that exist, in turn with other inputs, and to later ones when
//! these are declared.

use std::sync::Arc;

use crosstie_amqp::Table;
use crosstie_auth::Permissions;

use super::Vhost;
use crate::policy::{Applied, Policies, PolicySubject, Walk};
use crate::topology::{Caller, ExchangeKey, QueueArguments, QueueFlags, QueueKind, Resource};
use crate::{Outbox, QueueKey, Time};

impl<H> Vhost<H> {
    /// Replaces the vhost's policies. They hold for all queues and exchanges that are declared from now on. Those that
    /// exist are changed as far as this input's steps allow, and the rest by [`Self::work`].
    pub fn set_policies(&mut self, now: Time, policies: Arc<Policies>, out: &mut dyn Outbox<H>) {
        self.begin();
        if self.policies.set(policies) {
            self.apply_policies(now, out);
        }
        self.end(now, out);
    }

    /// The same before [`Self::restored`], which drops what is beyond the bounds: those of other policies are none of the
    /// vhost's any more.
    pub fn restore_policies(&mut self, policies: Arc<Policies>) {
        if self.policies.set(policies) {
            for place in 0..self.queues.places() {
                let found = self.queues.part(place, 1).next().map(|(key, _)| key);
                if let Some(key) = found {
                    self.govern_again(key);
                }
            }
            self.policies.go_on(None);
        }
    }

    pub fn policies(&self) -> &Arc<Policies> {
        self.policies.policies()
    }

    /// Applies the policies to the next queues and exchanges, as far as the steps allow.
    pub(super) fn apply_policies(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let steps = 1 + self.policies.policies().len();
        while let Some(walk) = self.policies.walk()
            && !self.ledger.steps.is_over()
        {
            self.ledger.steps.spend(steps);
            let next = match walk {
                Walk::Exchanges { from } => {
                    self.apply_to_exchange_at(from);
                    match from + 1 < self.topology.exchange_places() {
                        true => Some(Walk::Exchanges { from: from + 1 }),
                        false => Some(Walk::Queues { from: 0 }),
                    }
                }
                Walk::Queues { from } => {
                    let found = self.queues.part(from, 1).next().map(|(key, _)| key);
                    if let Some(key) = found {
                        self.apply_to_queue(now, key, out);
                    }
                    match from + 1 < self.queues.places() {
                        true => Some(Walk::Queues { from: from + 1 }),
                        false => self
                            .channels
                            .take_shortened()
                            .then_some(Walk::Channels { from: 0 }),
                    }
                }
                Walk::Channels { from } => {
                    let next = self.channels.look_at_age(from);
                    next.map(|from| Walk::Channels { from })
                }
            };
            self.policies.go_on(next);
        }
    }

    /// Applies the policies to a new exchange.
    pub(super) fn apply_to_new_exchange(&mut self, name: &str) {
        if !self.policies.are_none()
            && let Some(key) = self.topology.exchange(name)
        {
            self.apply_to_exchange(key);
        }
    }

    /// The same for all that were restored.
    pub(super) fn apply_to_restored_exchanges(&mut self) {
        if !self.policies.are_none() {
            (0..self.topology.exchange_places()).for_each(|place| self.apply_to_exchange_at(place));
        }
    }

    fn apply_to_exchange_at(&mut self, place: usize) {
        if let Some(key) = self.topology.exchange_at(place) {
            self.apply_to_exchange(key);
        }
    }

    fn apply_to_exchange(&mut self, key: ExchangeKey) {
        if let Some(name) = self.topology.exchange_name(key) {
            let applied = self.policies.apply(PolicySubject::Exchange(&name));
            self.topology.set_policies(key, applied);
        }
    }

    fn apply_to_queue(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) {
        if self.govern_again(key) {
            let is_consumed = self.consumers.count_of_queue(key) > 0;
            self.queues.restart_expiry(now, key, is_consumed);
            self.attend(now, key, out);
        }
    }

    /// Gives a queue the settings that follow from the policies. Returns whether others apply to it now.
    fn govern_again(&mut self, key: QueueKey) -> bool {
        let Some(queue) = self.queues.find(key) else {
            return false;
        };
        let subject = PolicySubject::Queue(&queue.name, queue.settings.kind);
        let applied = self.policies.apply(subject);
        if queue.applied == applied {
            // Equal, and perhaps another one: the former is of no use any more.
            self.queues.set_applied(key, applied);
            return false;
        }
        let (flags, arguments) = (queue.flags, queue.arguments.as_table());
        let mut settings = self
            .own_settings(&queue.name, flags, arguments)
            .under(arguments, applied.as_deref());
        if settings.kind == QueueKind::Classic {
            settings.overflow = settings.overflow.after(queue.settings.overflow);
        }
        let limits = settings.stream_limits();
        self.channels.note_timeout(settings.consumer_timeout_ms);
        self.queues.set_settings(key, settings);
        self.queues.set_applied(key, applied);
        self.streams.set_limits(key, limits, &mut self.ledger);
        true
    }

    /// The settings of a queue under its policies, and these.
    pub(super) fn govern(
        &mut self,
        name: &str,
        own: QueueArguments,
        arguments: Table<'_>,
    ) -> (QueueArguments, Option<Arc<Applied>>) {
        let subject = PolicySubject::Queue(name, own.kind);
        let applied = self.policies.apply(subject);
        let settings = own.under(arguments, applied.as_deref());
        self.channels.note_timeout(settings.consumer_timeout_ms);
        (settings, applied)
    }

    /// The settings that follow from a present queue's arguments alone.
    pub(super) fn own_settings(
        &self,
        name: &str,
        flags: QueueFlags,
        arguments: Table<'_>,
    ) -> QueueArguments {
        let permissions = Permissions::all();
        let caller = Caller {
            user: "",
            permissions: &permissions,
            method: (0, 0),
        };
        let resource = Resource::queue(name, &self.config.name);
        QueueArguments::present(&caller, resource, flags, arguments)
    }
}
