//! What a store has kept comes back.

use crosstie_auth::Permissions;

use super::Vhost;
use crate::queue::Entry;
use crate::topology::{Caller, QueueArguments, QueueFlags, Resource};
use crate::{Outbox, QueueId, Record, Time};

impl<H> Vhost<H> {
    /// Takes a record that a store has kept, in its order, before anybody connects. Any journal
    /// whose records were all committed may be given, and what a store made of it.
    pub fn restore(&mut self, now: Time, record: Record) {
        match record {
            Record::QueueDeclared {
                id,
                name,
                auto_delete,
                arguments,
            } => {
                self.next_queue_id = self.next_queue_id.max(QueueId(id.0.saturating_add(1)));
                if self.topology.queue(&name).is_some() {
                    return;
                }
                let flags = QueueFlags {
                    durable: true,
                    exclusive: false,
                    auto_delete,
                };
                let permissions = Permissions::all();
                let caller = Caller {
                    user: "",
                    permissions: &permissions,
                    method: (0, 0),
                };
                let resource = Resource::queue(&name, &self.config.name);
                // They were understood when the queue was declared.
                let settings =
                    QueueArguments::parse(&caller, resource, flags, arguments.as_table())
                        .unwrap_or_default();
                let key = self.add_queue(
                    now,
                    name,
                    Some(id),
                    (flags, settings),
                    arguments.as_table(),
                    None,
                );
                self.restoring.insert(id, key);
            }
            Record::QueueDeleted { id } => {
                let Some(key) = self.restoring.remove(&id) else {
                    return;
                };
                self.topology
                    .remove_queue(key, &mut crate::Journal::default());
                if let Some(queue) = self.queues.remove(key) {
                    self.release_all(queue.messages);
                }
            }
            Record::Enqueued {
                queue,
                place,
                message,
            } => {
                let Some(key) = self.restoring.get(&queue).copied() else {
                    return;
                };
                let properties = message.content.properties();
                let level = self.queues.find(key).map_or(0, |q| q.level(properties));
                let entry = Entry {
                    content: message.content,
                    place,
                    expires_at: message.expires_at,
                    deliveries: message.deliveries,
                    level,
                    // Whoever had it may have had it.
                    is_redelivered: true,
                    is_stored: true,
                };
                self.account(&entry);
                if let Some(queue) = self.queues.find_mut(key) {
                    match queue.next_place <= place {
                        true => queue.push(entry),
                        false => queue.insert(entry),
                    }
                    queue.next_place = queue.next_place.max(place.saturating_add(1));
                }
            }
            Record::Dequeued { queue, place } => {
                let queue = self.restoring.get(&queue).copied();
                let queue = queue.and_then(|key| self.queues.find_mut(key));
                if let Some(entry) = queue.and_then(|queue| queue.take(place)) {
                    self.release(&entry);
                }
            }
            Record::Returned {
                queue,
                place,
                deliveries,
            } => {
                let key = self.restoring.get(&queue).copied();
                if let Some(queue) = key.and_then(|key| self.queues.find_mut(key))
                    && let Some(entry) = queue.messages.find_mut(place)
                {
                    entry.deliveries = deliveries;
                }
            }
            Record::Purged { queue } => {
                let key = self.restoring.get(&queue).copied();
                if let Some(queue) = key.and_then(|key| self.queues.find_mut(key)) {
                    queue.body_bytes = 0;
                    let messages = std::mem::take(&mut queue.messages);
                    self.release_all(messages);
                }
            }
            record => self.topology.restore(&record),
        }
    }

    /// Everything has been given back: what is beyond its queue's bounds or has expired in the
    /// meantime goes, and what will is waited for. The journal may have records after this, as after any input.
    pub fn restored(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        let mut keys: Vec<_> = std::mem::take(&mut self.restoring).into_values().collect();
        // In the order of their keys: what follows from a seed follows from it alone.
        keys.sort_unstable();
        // Nobody waits yet.
        self.steps.begin(u32::MAX);
        for key in keys {
            self.touch(now, key);
            self.attend(now, key, out);
        }
        self.bury(now, out);
    }
}
