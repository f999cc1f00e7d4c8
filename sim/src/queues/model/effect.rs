//! The effects of an operation itself, before any message is delivered.

use super::super::operation::{Channel, Operation, QueueKind, Settlement};
use super::super::recorder::Sent;
use super::{
    Binding, Consumer, Entry, Exchange, Held, Model, Open, Queue, ROOM_AFTER_MS, Unconfirmed,
};

impl Model {
    /// Does it; the reply code, if it has to fail.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), u16> {
        self.expected.clear();
        self.returning.clear();
        self.full = self.full_channels();
        self.check_not_committing(operation)?;
        match operation {
            Operation::Connect { connection } => self.connections.push(*connection),
            Operation::Disconnect { connection } => self.disconnect(*connection),
            Operation::OpenChannel(channel) => self.channels.push(Open::new(*channel)),
            Operation::CloseChannel(channel) => self.close_channel(*channel),
            Operation::DeclareExchange {
                from,
                name,
                kind,
                durable,
            } => self.declare_exchange(*from, name, kind, *durable),
            Operation::DeleteExchange { from, name } => self.delete_exchange(*from, name),
            Operation::DeclareQueue { from, name, kind } => self.declare(*from, name, kind),
            Operation::DeleteQueue { from, name } => self.delete_and_count(*from, name),
            Operation::Purge { from, name } => self.purge(*from, name)?,
            Operation::Bind {
                from,
                exchange,
                queue,
                key,
            } => self.bind(*from, exchange, queue, key)?,
            Operation::Unbind {
                from,
                exchange,
                queue,
                key,
            } => self.unbind(*from, exchange, queue, key)?,
            Operation::ConfirmSelect(channel) => self.select_confirms(*channel)?,
            Operation::TxSelect(channel) => self.select(*channel)?,
            // Its effects are checked together with the messages.
            Operation::TxCommit(channel) => self.check_commit(*channel)?,
            Operation::TxRollback(channel) => self.rollback(*channel)?,
            Operation::Publish { .. } => self.publish(operation)?,
            Operation::Qos {
                from,
                count,
                global,
            } => self.limit(*from, *count, *global),
            Operation::Consume { .. } => self.consume(operation)?,
            Operation::Cancel { from, tag } => self.cancel(*from, tag),
            Operation::Get {
                from,
                queue,
                no_ack,
            } => self.take_one(*from, queue, *no_ack)?,
            Operation::Settle {
                from,
                tag,
                multiple,
                settlement,
            } => self.settle(*from, *tag, *multiple, *settlement)?,
            Operation::Recover(channel) => self.recover(*channel),
            Operation::Pass { milliseconds } => self.now_ms += milliseconds,
            Operation::Refuse {
                connection,
                refusing,
            } => self.refuse(*connection, *refusing),
            Operation::Stop => self.stop(),
            Operation::Commit { .. } | Operation::FailCommit { .. } | Operation::Crash => {}
        }
        Ok(())
    }

    /// A channel that waits for a commit may say nothing.
    fn check_not_committing(&self, operation: &Operation) -> Result<(), u16> {
        let channel = operation.channel();
        if !channel.is_some_and(|channel| self.is_committing(channel)) {
            return Ok(());
        }
        if let Operation::Publish { exchange, key, .. } = operation {
            self.route(exchange, key).ok_or(404u16)?;
        }
        Err(504)
    }

    fn declare_exchange(&mut self, from: Channel, name: &str, kind: &'static str, durable: bool) {
        self.answer(from, "exchange.declare-ok");
        if !self.exchanges.iter().any(|known| known.name == name) {
            self.exchanges.push(Exchange {
                name: name.to_owned(),
                kind,
                durable,
            });
        }
    }

    fn delete_exchange(&mut self, from: Channel, name: &str) {
        self.answer(from, "exchange.delete-ok");
        self.exchanges.retain(|known| known.name != name);
        self.bindings.retain(|binding| binding.exchange != name);
    }

    fn delete_and_count(&mut self, from: Channel, name: &str) {
        let messages = self.queue(name).map_or(0, Queue::ready);
        self.count(from, "queue.delete-ok", messages, 0);
        self.delete_queue(name);
    }

    fn purge(&mut self, from: Channel, name: &str) -> Result<(), u16> {
        let queue = self.queue_mut(name).ok_or(404u16)?;
        let messages = queue.ready();
        queue.entries.retain(|entry| entry.held.is_some());
        self.count(from, "queue.purge-ok", messages, 0);
        Ok(())
    }

    fn bind(&mut self, from: Channel, exchange: &str, queue: &str, key: &str) -> Result<(), u16> {
        let binding = self.binding(exchange, queue, key)?;
        if !self.bindings.contains(&binding) {
            self.bindings.push(binding);
        }
        self.answer(from, "queue.bind-ok");
        Ok(())
    }

    fn unbind(&mut self, from: Channel, exchange: &str, queue: &str, key: &str) -> Result<(), u16> {
        let gone = self.binding(exchange, queue, key)?;
        self.bindings.retain(|binding| *binding != gone);
        self.answer(from, "queue.unbind-ok");
        Ok(())
    }

    fn select_confirms(&mut self, channel: Channel) -> Result<(), u16> {
        let open = self.open_mut(channel).ok_or(504u16)?;
        if open.transaction.is_some() {
            return Err(406);
        }
        open.confirms = true;
        self.answer(channel, "confirm.select-ok");
        Ok(())
    }

    fn limit(&mut self, from: Channel, count: u16, global: bool) {
        self.answer(from, "basic.qos-ok");
        let room_at_ms = self.now_ms + ROOM_AFTER_MS;
        let Some(open) = self.open_mut(from) else {
            return;
        };
        open.room_at_ms = room_at_ms;
        let global_before = open.prefetch_global;
        if global {
            open.prefetch_global = count;
        } else {
            open.prefetch = count;
            open.prefetch_global = 0;
        }
        if global_before == 0 && open.prefetch_global != 0 {
            open.limited_at = open.delivery_tag;
        }
    }

    fn consume(&mut self, operation: &Operation) -> Result<(), u16> {
        let Operation::Consume {
            from,
            queue,
            tag,
            no_ack,
            priority,
        } = operation
        else {
            return Ok(());
        };
        let prefetch = self.open(*from).map_or(0, |open| open.prefetch);
        let queue = self.queue_mut(queue).ok_or(404u16)?;
        queue.consumers.push(Consumer {
            channel: *from,
            tag: tag.clone(),
            no_ack: *no_ack,
            priority: priority.unwrap_or(0),
            prefetch,
        });
        self.answer(*from, "basic.consume-ok");
        Ok(())
    }

    fn cancel(&mut self, from: Channel, tag: &str) {
        self.answer(from, "basic.cancel-ok");
        self.remove_consumers(|consumer| consumer.channel == from && consumer.tag == tag);
    }

    fn refuse(&mut self, connection: u32, refusing: bool) {
        match refusing {
            true => self.refusing.insert(connection),
            false => self.refusing.remove(&connection),
        };
    }

    fn recover(&mut self, channel: Channel) {
        self.answer(channel, "basic.recover-ok");
        for held in self.unsaid_by(channel) {
            self.give_back(&held, Settlement::Requeue);
        }
    }

    pub fn close_channel(&mut self, channel: Channel) {
        self.channels.retain(|open| open.channel != channel);
        for held in self.held_by(channel) {
            self.give_back(&held, Settlement::Left);
        }
        self.remove_consumers(|consumer| consumer.channel == channel);
    }

    pub fn disconnect(&mut self, connection: u32) {
        let channels: Vec<Channel> = self.channels.iter().map(|open| open.channel).collect();
        let channels = channels.iter().filter(|c| c.connection == connection);
        for channel in channels.clone() {
            for held in self.held_by(*channel) {
                self.give_back(&held, Settlement::Left);
            }
        }
        for channel in channels {
            self.close_channel(*channel);
        }
        let own: Vec<String> = self
            .queues
            .iter()
            .filter(|queue| queue.kind.exclusive && queue.owner == connection)
            .map(|queue| queue.name.clone())
            .collect();
        for name in own {
            self.delete_queue(&name);
        }
        self.connections.retain(|known| *known != connection);
        self.refusing.remove(&connection);
        // The connection cannot be told any more.
        self.expected.retain(|(to, _)| to.connection != connection);
    }

    /// All channels close; messages that one held go to no other.
    fn stop(&mut self) {
        let channels: Vec<Channel> = self.channels.iter().map(|open| open.channel).collect();
        for channel in channels {
            for held in self.held_by(channel) {
                self.give_back(&held, Settlement::Left);
            }
        }
        while let Some(connection) = self.connections.first().copied() {
            self.disconnect(connection);
        }
    }

    fn declare(&mut self, from: Channel, name: &str, kind: &QueueKind) {
        let is_new = self.queue(name).is_none();
        if is_new {
            self.queues.push(Queue {
                name: name.to_owned(),
                kind: kind.clone(),
                owner: from.connection,
                entries: Vec::new(),
                letters: Vec::new(),
                consumers: Vec::new(),
            });
        }
        let counts = self
            .queue(name)
            .map(|queue| (queue.ready(), queue.consumers.len()));
        let (messages, consumers) = counts.unwrap_or_default();
        self.count(from, "queue.declare-ok", messages, consumers);
        if is_new {
            self.bury_kept(name);
        }
    }

    fn delete_queue(&mut self, name: &str) {
        let Some(place) = self.queues.iter().position(|queue| queue.name == name) else {
            return;
        };
        // The messages returned to it just now may exceed its bounds.
        self.remove_heads_of(place, Queue::is_over);
        let queue = self.queues.remove(place);
        self.bindings.retain(|binding| binding.queue != name);
        self.orphans
            .extend(queue.entries.into_iter().filter_map(|entry| entry.held));
        for consumer in queue.consumers {
            let sent = Sent::Cancel {
                consumer: consumer.tag,
            };
            self.expected.push((consumer.channel, sent));
        }
    }

    fn remove_consumers(&mut self, is_gone: impl Fn(&Consumer) -> bool) {
        let mut without = Vec::new();
        for queue in &mut self.queues {
            let before = queue.consumers.len();
            let is_active_gone = queue.consumers.first().is_some_and(&is_gone);
            queue.consumers.retain(|consumer| !is_gone(consumer));
            if is_active_gone && queue.kind.is_single_active {
                queue.activate_next();
            }
            if queue.consumers.is_empty() && before > 0 && queue.kind.auto_delete {
                without.push(queue.name.clone());
            }
        }
        for name in without {
            self.delete_queue(&name);
        }
    }

    fn binding(&self, exchange: &str, queue: &str, key: &str) -> Result<Binding, u16> {
        self.queue(queue).ok_or(404u16)?;
        let mut exchanges = self.exchanges.iter();
        exchanges
            .find(|known| known.name == exchange)
            .ok_or(404u16)?;
        Ok(Binding {
            exchange: exchange.to_owned(),
            queue: queue.to_owned(),
            key: key.to_owned(),
        })
    }

    fn publish(&mut self, operation: &Operation) -> Result<(), u16> {
        let Operation::Publish {
            from,
            exchange,
            key,
            message,
            ..
        } = operation
        else {
            return Ok(());
        };
        let queues = self.route(exchange, key).ok_or(404u16)?;
        if let Some(transaction) = self.transaction_mut(*from) {
            transaction.publications.push(operation.clone());
            return Ok(());
        }
        let taken = self.distribute(operation, &queues);
        let since = self.input;
        if let Some(open) = self.open_mut(*from).filter(|open| open.confirms) {
            open.published += 1;
            open.unconfirmed.push(Unconfirmed {
                tag: open.published,
                message: *message,
                since,
                is_rejected: taken.is_rejected,
                is_durable: taken.is_durable,
            });
        }
        Ok(())
    }

    /// Puts a publication into queues, or has it returned.
    pub(super) fn distribute(&mut self, publication: &Operation, queues: &[String]) -> Taken {
        let mut taken = Taken::default();
        let Operation::Publish {
            from,
            message,
            persistent,
            mandatory,
            expiration_ms,
            priority,
            ..
        } = publication
        else {
            return taken;
        };
        if queues.is_empty() && *mandatory {
            self.returning.push((*from, *message));
        }
        for name in queues {
            let Some(queue) = self.queue(name) else {
                continue;
            };
            let able = (0..queue.consumers.len()).any(|place| self.is_able(queue, place, false));
            if queue.refuses() && !able {
                taken.is_rejected = true;
                continue;
            }
            taken.is_durable |= queue.keeps(*persistent);
            let ttl = [queue.kind.message_ttl_ms, *expiration_ms];
            let ttl = ttl.into_iter().flatten().min();
            let entry = Entry {
                message: *message,
                persistent: *persistent,
                priority: priority.unwrap_or(0),
                expires_at: ttl.map(|ttl| self.now_ms + ttl),
                redelivered: false,
                deliveries: 0,
                since: self.input,
                held: None,
            };
            if let Some(queue) = self.queue_mut(name) {
                queue.push(entry);
            }
        }
        taken
    }

    fn take_one(&mut self, from: Channel, name: &str, no_ack: bool) -> Result<(), u16> {
        let queue = self.queue(name).ok_or(404u16)?;
        if queue.kind.is_quorum && queue.kind.is_single_active {
            return Err(405);
        }
        let Some(head) = queue.head() else {
            self.expected.push((from, Sent::GetEmpty));
            return Ok(());
        };
        // Those behind it go if they are too old.
        let behind = queue.entries[head + 1..].iter();
        let behind = behind.filter(|entry| entry.held.is_none());
        let is_old = |entry: &&Entry| entry.expires_at.is_some_and(|due| due <= self.now_ms);
        let left = behind.skip_while(is_old).count() as u32;
        let (message, redelivered) = (queue.entries[head].message, queue.entries[head].redelivered);
        let tag = self.next_tag(from);
        let sent = Sent::GetOk {
            tag,
            redelivered,
            message,
            left,
        };
        self.expected.push((from, sent));
        self.give(name, head, from, tag, None, no_ack);
        Ok(())
    }

    /// The next delivery's tag.
    pub(super) fn next_tag(&mut self, channel: Channel) -> u64 {
        self.open_mut(channel).map_or(0, |open| {
            open.delivery_tag += 1;
            open.delivery_tag
        })
    }

    pub(super) fn give(
        &mut self,
        name: &str,
        place: usize,
        channel: Channel,
        tag: u64,
        consumer: Option<String>,
        no_ack: bool,
    ) {
        let Some(queue) = self.queue_mut(name) else {
            return;
        };
        if no_ack {
            queue.entries.remove(place);
        } else {
            queue.entries[place].held = Some(Held {
                channel,
                tag,
                consumer,
            });
        }
    }

    pub(super) fn answer(&mut self, to: Channel, method: &'static str) {
        self.expected.push((to, Sent::Answer { method }));
    }

    fn count(&mut self, to: Channel, method: &'static str, messages: usize, consumers: usize) {
        let sent = Sent::Count {
            method,
            messages: messages as u32,
            consumers: consumers as u32,
        };
        self.expected.push((to, sent));
    }
}

/// The results of a publication in its queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// One of them did not take it.
    pub(super) is_rejected: bool,
    /// The disk has to have it.
    is_durable: bool,
}
