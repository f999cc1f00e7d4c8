//! A store in memory, from which tests read pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Kept, LEVELED, MessageContent, Page, Paged, QueueId, Record, StoredMessage, Want, level_end,
};

#[derive(Default)]
pub(crate) struct Disk {
    messages: BTreeMap<(QueueId, i64), StoredMessage>,
}

impl Disk {
    pub(crate) fn write(&mut self, record: Record) {
        let all = |queue: QueueId| (queue, i64::MIN, i64::MAX);
        let gone = match record {
            Record::Enqueued {
                queue,
                place,
                message,
            } => return drop(self.messages.insert((queue, place), message)),
            Record::Delivered {
                queue,
                place,
                deliveries,
            } => {
                if let Some(message) = self.messages.get_mut(&(queue, place)) {
                    message.deliveries = deliveries;
                }
                return;
            }
            Record::Dequeued { queue, place } => (queue, place, place),
            Record::Cleared { queue, from, to } => (queue, from, to),
            Record::Purged { queue } | Record::QueueDeleted { id: queue } => all(queue),
            _ => return,
        };
        let (queue, from, to) = gone;
        let gone = self.messages.range((queue, from)..=(queue, to));
        let gone: Vec<_> = gone.map(|(key, _)| *key).collect();
        gone.iter().for_each(|key| drop(self.messages.remove(key)));
    }

    /// Reads that many messages of a page at most.
    pub(crate) fn read(&self, want: &Want, messages_max: usize) -> Page {
        let mut messages: Vec<Paged> = Vec::new();
        for (id, is_spilled) in [(want.stored, false), (want.spilled, true)] {
            let Some(id) = id else {
                continue;
            };
            let found = self.messages.range((id, want.from)..=(id, want.to));
            messages.extend(found.map(|((_, place), message)| Paged {
                place: *place,
                message: copy(message),
                is_spilled,
            }));
        }
        messages.sort_by_key(|paged| paged.place);
        let is_whole = messages.len() <= messages_max;
        messages.truncate(messages_max);
        let last = messages.last().map_or(want.to, |paged| paged.place);
        Page {
            messages,
            upto: if is_whole { want.to } else { last },
        }
    }
}

impl Disk {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Forgets all but the messages of that queue, as a restart does. Returns what is left of each priority, and the first
    /// four bytes of their bodies as numbers.
    pub(crate) fn keep(&mut self, queue: QueueId) -> (Vec<Kept>, Vec<u32>) {
        self.messages.retain(|(of, _), _| *of == queue);
        let mut kept: Vec<Kept> = Vec::new();
        let mut numbers = Vec::new();
        for ((_, place), message) in &self.messages {
            let body = message.content.body();
            numbers.extend(body.first_chunk().copied().map(u32::from_be_bytes));
            let level = kept.last().map(|last| last.from.max(LEVELED));
            let end = level.map_or(i64::MIN, level_end);
            if *place > end {
                kept.push(Kept {
                    queue,
                    from: *place,
                    ..Kept::default()
                });
            }
            if let Some(last) = kept.last_mut() {
                last.to = *place;
                last.messages += 1;
                last.body_bytes += body.len() as u64;
            }
        }
        (kept, numbers)
    }

    /// Puts the messages with an age up to that one at the places that an earlier version gave them.
    pub(crate) fn forget_levels(&mut self, age_max: i64) {
        let all = std::mem::take(&mut self.messages).into_iter();
        self.messages = all
            .map(|((queue, place), message)| match place % LEVELED {
                age if age <= age_max => ((queue, age), message),
                _ => ((queue, place), message),
            })
            .collect();
    }
}

/// As it is read: bytes of its own.
fn copy(message: &StoredMessage) -> StoredMessage {
    let (exchange, routing_key, properties, body) = message.content.parts();
    let content = MessageContent::of(exchange, routing_key, properties, body);
    StoredMessage {
        content: Arc::new(content),
        ..message.clone()
    }
}
