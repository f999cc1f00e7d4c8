//! Declaring, purging and deleting of queues.

use std::sync::Arc;

use crosstie_amqp::method::{
    QueueBind, QueueBindOk, QueueDeclare, QueueDeclareOk, QueueDelete, QueueDeleteOk, QueuePurge,
    QueuePurgeOk, QueueUnbind, QueueUnbindOk,
};
use crosstie_amqp::{ReplyCode, Table};
use crosstie_auth::Access;

use super::Vhost;
use super::methods::Context;
use crate::queues::{Queue, is_hidden_name};
use crate::topology::{
    BindingRequest, Caller, NewBinding, QueueArguments, QueueFlags, Resource,
    check_queue_equivalent, check_server_named, strip_line_ends,
};
use crate::{ChannelKey, ConnectionKey, Fault, Outbox, QueueKey, Record, Time};

impl<H> Vhost<H> {
    pub(super) fn handle_declare(
        &mut self,
        now: Time,
        context: &Context,
        method: &QueueDeclare<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let caller = context.caller();
        let name = strip_line_ends(method.queue);
        if let Some(found) = self.find_reply_queue(context, &name) {
            found?;
            let ok = QueueDeclareOk {
                queue: &name,
                message_count: 0,
                consumer_count: 1,
            };
            return self.answer(context.channel, method.no_wait, ok, out);
        }
        self.free_name(&name, out);
        let key = if method.passive {
            self.find_queue(context, &name)?
        } else {
            let owner = method.exclusive.then_some(context.connection);
            let key = self.declare(now, &caller, &name, method, owner)?;
            self.ledger.counts.queues_declared += 1;
            key
        };
        self.touch(now, key);
        self.drop_expired(now, key);
        let Some(queue) = self.queues.find(key) else {
            return Ok(());
        };
        let name = queue.name.clone();
        self.channels.set_last_queue(context.channel, name);
        let ok = QueueDeclareOk {
            queue: &queue.name,
            message_count: self.ready_count(key) as u32,
            consumer_count: self.consumers.count_of_queue(key) as u32,
        };
        self.answer(context.channel, method.no_wait, ok, out)
    }

    /// The queue with that name and kind, created if absent.
    pub(super) fn declare(
        &mut self,
        now: Time,
        caller: &Caller<'_>,
        name: &str,
        method: &QueueDeclare<'_>,
        owner: Option<ConnectionKey>,
    ) -> Result<QueueKey, Fault> {
        let vhost = self.config.name.clone();
        let name = match name {
            "" => {
                check_server_named(caller, method.arguments)?;
                self.random.name("amq.gen-")
            }
            name => {
                caller.check_not_reserved(Resource::queue(name, &vhost))?;
                if is_hidden_name(name) {
                    let text =
                        format!("queue name '{name}' is reserved for queues of the broker's own");
                    return Err(caller.fault(ReplyCode::AccessRefused, text));
                }
                name.into()
            }
        };
        let resource = Resource::queue(&name, &vhost);
        caller.check(Access::Configure, resource)?;
        let flags = QueueFlags {
            durable: method.durable && !method.exclusive,
            exclusive: method.exclusive,
            auto_delete: method.auto_delete,
        };
        if let Some(key) = self.topology.queue(&name)
            && let Some(queue) = self.queues.find(key)
        {
            if queue.owner != owner {
                return Err(locked(caller, resource));
            }
            let current = (queue.flags, queue.arguments.as_table());
            check_queue_equivalent(caller, resource, current, (flags, method.arguments))?;
            return Ok(key);
        }
        let settings = QueueArguments::parse(caller, resource, flags, method.arguments)?;
        let (settings, applied) = self.govern(&name, settings, method.arguments);
        let limits = self.check_streams(caller, resource, &settings)?;
        self.check_room_for_queue(caller, resource, owner, method.arguments)?;
        let id = flags.durable.then(|| self.queues.take_id());
        if let Some(id) = id {
            self.ledger.record(Record::QueueDeclared {
                id,
                name: name.clone(),
                auto_delete: flags.auto_delete,
                arguments: method.arguments.into(),
            });
        }
        let definition = (flags, settings);
        let mut queue = Queue::new(now, name.clone(), id, definition, method.arguments, owner);
        queue.applied = applied;
        let key = self.queues.add(queue);
        self.ledger.counts.queues_created += 1;
        if let Some((id, limits)) = id.zip(limits) {
            self.streams.add(key, (id, &name), limits);
        }
        let argument_bytes = method.arguments.bytes().len();
        self.topology
            .add_queue(name, key, id.is_some(), argument_bytes);
        if let Some(owner) = owner {
            self.channels.own(owner, key);
        }
        Ok(key)
    }

    /// Checks that there may be another queue.
    fn check_room_for_queue(
        &self,
        caller: &Caller<'_>,
        resource: Resource<'_>,
        owner: Option<ConnectionKey>,
        arguments: Table<'_>,
    ) -> Result<(), Fault> {
        let limits = &self.config.limits;
        let limit = self.queues_limit;
        let limit = limit.filter(|max| self.topology.queue_count() >= *max);
        let is_full = self.queues.len() >= limits.queues_max;
        if let Some(max) = limit.or_else(|| is_full.then_some(limits.queues_max)) {
            return Err(caller.precondition_failed(format!(
                "cannot declare queue '{}': queue limit in vhost '{}' ({max}) is reached",
                resource.name, self.config.name
            )));
        }
        let queues_max = limits.connection_queues_max;
        let connection = owner.and_then(|owner| self.channels.connection(owner));
        if connection.is_some_and(|c| c.queues.len() >= queues_max) {
            return Err(caller.precondition_failed(format!(
                "cannot declare {resource}: limit of exclusive queues of a connection \
                 ({queues_max}) is reached"
            )));
        }
        let bytes = resource.name.len() + arguments.bytes().len();
        self.topology
            .check_room(caller, bytes, || format!("declare {resource}"))
    }

    /// Number of a queue's messages that are ready, or that a stream holds.
    pub(super) fn ready_count(&self, key: QueueKey) -> usize {
        match self.streams.find(key) {
            Some(stream) => stream.len() as usize,
            None => self.queues.ready_count(key),
        }
    }

    /// Notes a use of a queue.
    pub(super) fn touch(&mut self, now: Time, key: QueueKey) {
        let is_consumed = self.consumers.count_of_queue(key) > 0;
        self.queues.touch(now, key, is_consumed);
    }

    pub(super) fn handle_bind(
        &mut self,
        now: Time,
        context: &Context,
        method: &QueueBind<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let (queue, key) = (method.queue, method.routing_key);
        let asked = BindingRequest::queue(queue, method.exchange, key, method.arguments);
        let new = self.change_binding(context, &asked, true, out)?;
        self.serve_binding(now, new, out);
        self.answer(context.channel, method.no_wait, QueueBindOk {}, out)
    }

    /// Publishes to a new binding what its source has kept for it, before the binding is confirmed.
    pub(super) fn serve_binding(
        &mut self,
        now: Time,
        binding: Option<NewBinding>,
        out: &mut dyn Outbox<H>,
    ) {
        if let Some(binding) = binding
            && self.histories.messages() > 0
        {
            self.replay_history(now, binding, out);
        }
    }

    /// Adds or removes a binding of a queue, with the queue's name filled in if it is absent. Returns it if it is new.
    fn change_binding(
        &mut self,
        context: &Context,
        asked: &BindingRequest<'_>,
        is_added: bool,
        out: &mut dyn Outbox<H>,
    ) -> Result<Option<NewBinding>, Fault> {
        let (kind, name) = asked.destination;
        let queue = self.queue_name(context, name, out)?;
        let filled = BindingRequest {
            destination: (kind, &queue),
            routing_key: binding_key(name, asked.routing_key, &queue),
            ..*asked
        };
        let (queues, vhost, caller) = (&self.queues, &self.config.name, context.caller());
        let check = |key| check_owner(context, queues.find(key), vhost);
        let journal = &mut self.ledger.journal;
        match is_added {
            true => self.topology.bind(&caller, &filled, check, journal),
            false => {
                self.topology.unbind(&caller, &filled, check, journal)?;
                Ok(None)
            }
        }
    }

    pub(super) fn handle_unbind(
        &mut self,
        context: &Context,
        method: &QueueUnbind<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let (queue, key) = (method.queue, method.routing_key);
        let asked = BindingRequest::queue(queue, method.exchange, key, method.arguments);
        self.change_binding(context, &asked, false, out)?;
        self.answer(context.channel, false, QueueUnbindOk {}, out)
    }

    /// The queue with that name, or the channel's last one if none is given, if its messages may be read.
    pub(super) fn readable_queue(
        &mut self,
        context: &Context,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<QueueKey, Fault> {
        let name = self.queue_name(context, name, out)?;
        let resource = Resource::queue(&name, &self.config.name);
        context.caller().check(Access::Read, resource)?;
        self.find_queue(context, &name)
    }

    pub(super) fn handle_purge(
        &mut self,
        now: Time,
        context: &Context,
        method: &QueuePurge<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let key = self.readable_queue(context, method.queue, out)?;
        self.check_no_stream(context.method, key, "queue.purge")?;
        let message_count = self.purge(now, key, out) as u32;
        let ok = QueuePurgeOk { message_count };
        self.answer(context.channel, method.no_wait, ok, out)
    }

    /// Removes the ready messages, without dead letters; returns how many.
    pub(super) fn purge(&mut self, now: Time, key: QueueKey, out: &mut dyn Outbox<H>) -> usize {
        self.drop_expired(now, key);
        let is_settled = !self.has_backlog();
        let message_count = self.queues.purge(key, is_settled, &mut self.ledger);
        self.clear_remains(out);
        message_count
    }

    pub(super) fn handle_delete(
        &mut self,
        context: &Context,
        method: &QueueDelete<'_>,
        out: &mut dyn Outbox<H>,
    ) -> Result<(), Fault> {
        let stripped = strip_line_ends(method.queue);
        let name = self.queue_name(context, &stripped, out)?;
        let caller = context.caller();
        let vhost = self.config.name.clone();
        let resource = Resource::queue(&name, &vhost);
        caller.check(Access::Configure, resource)?;
        // An absent queue is deleted already.
        let key = match self.topology.queue(&name) {
            Some(_) => Some(self.find_queue(context, &name)?),
            None => None,
        };
        let mut message_count = 0;
        if let Some(queue_key) = key
            && let Some(queue) = self.queues.find(queue_key)
            && !queue.is_stream()
        {
            if method.if_unused && self.consumers.count_of_queue(queue_key) > 0 {
                return Err(caller.precondition_failed(format!("{resource} in use")));
            }
            if method.if_empty && !queue.messages.is_empty() {
                return Err(caller.precondition_failed(format!("{resource} not empty")));
            }
            message_count = queue.messages.len() as u32;
        }
        // The answer first: a consumer on the same channel is told of the end after it.
        let ok = QueueDeleteOk { message_count };
        self.answer(context.channel, method.no_wait, ok, out)?;
        if let Some(key) = key {
            self.remove_queue(key, out);
        }
        Ok(())
    }

    /// Removes a queue with its messages, its bindings and its consumers, which are told if they support that.
    pub(super) fn remove_queue(&mut self, key: QueueKey, out: &mut dyn Outbox<H>) {
        self.topology.remove_queue(key, &mut self.ledger.journal);
        let Some(queue) = self.queues.remove(key, &mut self.ledger) else {
            return;
        };
        self.ledger.counts.queues_deleted += 1;
        if let Some(owner) = queue.owner {
            self.channels.disown(owner, key);
        }
        self.streams.remove(key, &mut self.ledger);
        self.consumers.end_queue(key);
        self.ledger.steps.spend(4);
        self.clear_remains(out);
    }

    /// Frees a name whose queue belongs to a closing connection.
    fn free_name(&mut self, name: &str, out: &mut dyn Outbox<H>) {
        if let Some(key) = self.topology.queue(name)
            && let Some(owner) = self.queues.find(key).and_then(|queue| queue.owner)
            && self.channels.connection(owner).is_none_or(|c| c.is_closing)
        {
            self.remove_queue(key, out);
        }
    }

    /// The queue that a method names: an empty name is the last one that was declared (AMQP 0-9-1).
    pub(super) fn queue_name(
        &mut self,
        context: &Context,
        name: &str,
        out: &mut dyn Outbox<H>,
    ) -> Result<Arc<str>, Fault> {
        let name = match name {
            "" => self.last_queue(context.channel),
            name => Some(name.into()),
        };
        if let Some(name) = &name {
            self.free_name(name, out);
        }
        name.ok_or_else(|| {
            let text = "no previously declared queue";
            context.caller().fault(ReplyCode::NotFound, text)
        })
    }

    pub(super) fn last_queue(&self, channel: ChannelKey) -> Option<Arc<str>> {
        self.channels.find(channel)?.last_queue.clone()
    }

    /// The queue with that name, unless another connection owns it.
    pub(super) fn find_queue(&self, context: &Context, name: &str) -> Result<QueueKey, Fault> {
        let resource = Resource::queue(name, &self.config.name);
        let key = self.topology.queue(name);
        let key = key.ok_or_else(|| context.caller().not_found(resource))?;
        check_owner(context, self.queues.find(key), &self.config.name)?;
        Ok(key)
    }
}

/// The key of a binding. If neither queue nor key is given, it is the name of the channel's last queue (AMQP 0-9-1,
/// queue.bind, "default queue").
fn binding_key<'a>(said_queue: &str, said_key: &'a str, queue: &'a str) -> &'a str {
    match (said_queue, said_key) {
        ("", "") => queue,
        _ => said_key,
    }
}

fn check_owner(context: &Context, queue: Option<&Queue>, vhost: &str) -> Result<(), Fault> {
    match queue {
        Some(queue) if queue.owner.is_some_and(|owner| owner != context.connection) => Err(locked(
            &context.caller(),
            Resource::queue(&queue.name, vhost),
        )),
        _ => Ok(()),
    }
}

fn locked(caller: &Caller<'_>, resource: Resource<'_>) -> Fault {
    let text = format!(
        "cannot obtain exclusive access to locked {resource}. It could be originally declared on \
         another connection or the exclusive property value does not match that of the original \
         declaration."
    );
    caller.fault(ReplyCode::ResourceLocked, text)
}
