//! A readable vhost: the places of messages, permitted deliveries, and required ones.

mod check;
mod effect;
mod settle;
mod transactions;

use std::collections::BTreeSet;

use super::operation::{Channel, QueueKind};
use super::recorder::Sent;

use transactions::Transaction;

/// Delay of the deliveries that a higher limit allows, after its answer.
pub(super) const ROOM_AFTER_MS: u64 = 5;

/// Everything, in flat lists.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub exchanges: Vec<Exchange>,
    pub bindings: Vec<Binding>,
    pub queues: Vec<Queue>,
    pub connections: Vec<u32>,
    pub channels: Vec<Open>,
    /// Connections that take no messages.
    pub refusing: BTreeSet<u32>,
    /// Deliveries whose queue was deleted: their tags are still valid.
    pub orphans: Vec<Held>,
    pub now_ms: u64,
    /// The number of the input that is being looked at.
    pub input: usize,
    /// Inputs up to this one are on the disk.
    pub committed: usize,
    /// Answers that the input must have.
    expected: Vec<(Channel, Sent)>,
    /// Messages that must be returned, before they are confirmed.
    returning: Vec<(Channel, u64)>,
    /// Channels that had no room for another delivery when the input came: their consumers need not
    /// go before others until the input is over.
    full: Vec<Channel>,
    /// In a commit: the dead letters to be published at its end, and their targets.
    dying: Option<Vec<(Grave, Entry)>>,
}

/// Where a message that dies goes.
#[derive(Clone, Debug)]
pub(super) struct Grave {
    target: Option<String>,
    /// The queue that keeps it until the target exists.
    keeper: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub name: String,
    pub kind: &'static str,
    pub durable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub exchange: String,
    pub queue: String,
    pub key: String,
}

#[derive(Clone, Debug)]
pub struct Queue {
    pub name: String,
    pub kind: QueueKind,
    /// Of an exclusive one.
    pub owner: u32,
    /// In their order, the highest priority first; one that is delivered keeps its place until it
    /// is acknowledged.
    pub entries: Vec<Entry>,
    /// Dead letters whose target does not exist.
    pub letters: Vec<Entry>,
    /// As they came; a single active one is the first.
    pub consumers: Vec<Consumer>,
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub struct Entry {
    pub message: u64,
    pub persistent: bool,
    /// None is 0.
    pub priority: u8,
    pub expires_at: Option<u64>,
    pub redelivered: bool,
    /// Number of returns, if the queue counts them.
    pub deliveries: u32,
    /// The input that put it there.
    pub since: usize,
    pub held: Option<Held>,
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub channel: Channel,
    pub tag: u64,
    /// None: by `basic.get`.
    pub consumer: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Consumer {
    pub channel: Channel,
    pub tag: String,
    pub no_ack: bool,
    pub priority: i32,
    /// 0: without limit.
    pub prefetch: u16,
}

/// An open channel.
#[derive(Clone, Debug)]
pub struct Open {
    pub channel: Channel,
    pub confirms: bool,
    pub published: u64,
    pub delivery_tag: u64,
    /// Of consumers to come.
    pub prefetch: u16,
    /// Of all of them.
    pub prefetch_global: u16,
    /// The last delivery before that limit was set: earlier messages of `basic.get` count.
    pub limited_at: u64,
    /// Until then, consumers that wait for that limit may lack messages that a higher one allows.
    pub room_at_ms: u64,
    pub unconfirmed: Vec<Unconfirmed>,
    pub transaction: Option<Transaction>,
}

impl Open {
    fn new(channel: Channel) -> Self {
        Self {
            channel,
            confirms: false,
            published: 0,
            delivery_tag: 0,
            prefetch: 0,
            prefetch_global: 0,
            limited_at: 0,
            room_at_ms: 0,
            unconfirmed: Vec::new(),
            transaction: None,
        }
    }
}

/// A message that is neither confirmed nor refused.
#[derive(Clone, Debug)]
pub struct Unconfirmed {
    pub tag: u64,
    pub message: u64,
    pub since: usize,
    pub is_rejected: bool,
    /// It is persistent and in a durable queue: the disk has to have it first.
    pub is_durable: bool,
}

impl Queue {
    pub fn ready(&self) -> usize {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.held.is_none()).count()
    }

    /// The next to be delivered.
    pub fn head(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.held.is_none())
    }

    /// The place of that message, if it may be the next: a message that an input publishes or returns may be delivered
    /// before a more urgent one of the same input is present.
    pub fn head_that_is(&self, message: u64, input: usize) -> Option<usize> {
        let may_be_next = |place: usize| {
            let entry = &self.entries[place];
            let mut before = self.entries[..place].iter().filter(|e| e.held.is_none());
            let is_later =
                |other: &Entry| other.since == input && self.urgency(other) > self.urgency(entry);
            entry.message == message && entry.held.is_none() && before.all(is_later)
        };
        (0..self.entries.len()).find(|place| may_be_next(*place))
    }

    /// Of a message, as far as this queue tells them apart.
    fn urgency(&self, entry: &Entry) -> u8 {
        entry.priority.min(self.kind.priority_max)
    }

    /// Puts it behind all that are as urgent as it is.
    pub fn push(&mut self, entry: Entry) {
        let mut entries = self.entries.iter();
        let behind = entries.position(|other| self.urgency(other) < self.urgency(&entry));
        self.entries
            .insert(behind.unwrap_or(self.entries.len()), entry);
    }

    /// Whether the active consumer waits for deliveries of a former one that has left.
    pub fn is_awaiting(&self) -> bool {
        if !self.kind.is_single_active || self.kind.is_quorum {
            return false;
        }
        let is_here = |held: &Held| {
            let mut consumers = self.consumers.iter();
            consumers.any(|known| {
                known.channel == held.channel && Some(&known.tag) == held.consumer.as_ref()
            })
        };
        let mut held = self.entries.iter().filter_map(|entry| entry.held.as_ref());
        held.any(|held| held.consumer.is_some() && !is_here(held))
    }

    /// The first of the most urgent consumers becomes the active one; of a quorum queue the first.
    pub fn activate_next(&mut self) {
        if self.kind.is_quorum {
            return;
        }
        let highest = self
            .consumers
            .iter()
            .map(|consumer| consumer.priority)
            .max();
        let mut consumers = self.consumers.iter();
        if let Some(place) = consumers.position(|consumer| Some(consumer.priority) == highest) {
            self.consumers[..=place].rotate_right(1);
        }
    }

    /// Whether its first message has to go.
    pub fn is_over(&self) -> bool {
        let max = self.kind.length_max.filter(|_| !self.kind.rejects_publish);
        max.is_some_and(|max| self.ready() > max)
    }

    pub(super) fn grave(&self) -> Grave {
        Grave {
            target: self.kind.dead_letter_queue.clone(),
            keeper: self.kind.keeps_letters.then(|| self.name.clone()),
        }
    }

    /// Whether it refuses another message. A quorum queue does so once it is over its bound.
    pub fn refuses(&self) -> bool {
        let max = self.kind.length_max.filter(|_| self.kind.rejects_publish);
        let count = self.ready() + self.letters.len();
        max.is_some_and(|max| count >= max + usize::from(self.kind.is_quorum))
    }

    /// Whether a crash leaves a message in it.
    pub fn keeps(&self, persistent: bool) -> bool {
        self.kind.durable && !self.kind.exclusive && (persistent || self.kind.is_quorum)
    }
}

impl Model {
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    pub fn queue_mut(&mut self, name: &str) -> Option<&mut Queue> {
        self.queues.iter_mut().find(|queue| queue.name == name)
    }

    pub fn open(&self, channel: Channel) -> Option<&Open> {
        self.channels.iter().find(|open| open.channel == channel)
    }

    pub fn open_mut(&mut self, channel: Channel) -> Option<&mut Open> {
        let mut channels = self.channels.iter_mut();
        channels.find(|open| open.channel == channel)
    }

    /// Deliveries of which a channel has not said anything, by tag.
    pub fn unsaid_by(&self, channel: Channel) -> Vec<Held> {
        let mut held = self.held_by(channel);
        held.retain(|held| !self.is_said(channel, held.tag));
        held
    }

    /// Deliveries that a channel has not settled, by tag. Answers in an open transaction settle nothing.
    pub fn held_by(&self, channel: Channel) -> Vec<Held> {
        let entries = self.queues.iter().flat_map(|queue| &queue.entries);
        let held = entries.filter_map(|entry| entry.held.as_ref());
        let mut held: Vec<Held> = held
            .chain(&self.orphans)
            .filter(|held| held.channel == channel)
            .cloned()
            .collect();
        held.sort_by_key(|held| held.tag);
        held
    }

    /// The queues and messages that survive a crash once all is on the disk; or an end in good order, after
    /// which the deliveries are known.
    pub fn durable(&self, is_rested: bool) -> Self {
        let is_durable = |queue: &&Queue| queue.kind.durable && !queue.kind.exclusive;
        let mut queues: Vec<Queue> = self.queues.iter().filter(is_durable).cloned().collect();
        for queue in &mut queues {
            queue.consumers.clear();
            let kind = queue.kind.clone();
            queue
                .entries
                .retain(|entry| entry.persistent || kind.is_quorum);
            for entry in &mut queue.entries {
                // Messages that channels hold at a crash have been delivered; so may have been any other.
                let is_out = entry.held.take().is_some();
                entry.deliveries += u32::from(kind.is_quorum && is_out);
                entry.redelivered |= !is_rested;
            }
        }
        let mut exchanges = self.exchanges.clone();
        exchanges.retain(|exchange| exchange.durable);
        let mut bindings = self.bindings.clone();
        bindings.retain(|binding| {
            queues.iter().any(|queue| queue.name == binding.queue)
                && exchanges.iter().any(|kept| kept.name == binding.exchange)
        });
        Self {
            exchanges,
            bindings,
            queues,
            now_ms: self.now_ms,
            input: self.input,
            ..Self::default()
        }
    }

    /// The queues that a message reaches, each once; `None`: the exchange does not exist.
    pub fn route(&self, exchange: &str, key: &str) -> Option<Vec<String>> {
        let exists = |name: &str| self.queue(name).is_some();
        if exchange.is_empty() {
            return Some(if exists(key) {
                vec![key.to_owned()]
            } else {
                vec![]
            });
        }
        let found = self.exchanges.iter().find(|found| found.name == exchange)?;
        let bindings = self.bindings.iter();
        let matching = bindings.filter(|binding| {
            binding.exchange == exchange
                && match found.kind {
                    "direct" => binding.key == key,
                    "fanout" => true,
                    _ => matches_topic(&words(&binding.key), &words(key)),
                }
        });
        let mut queues: Vec<String> = matching.map(|binding| binding.queue.clone()).collect();
        queues.sort();
        queues.dedup();
        Some(queues)
    }

    /// Number of dead letters that queues keep.
    pub fn letters(&self) -> usize {
        self.queues.iter().map(|queue| queue.letters.len()).sum()
    }

    /// Channels that have as much as they may have, or had a moment ago.
    fn full_channels(&self) -> Vec<Channel> {
        let is_full = |open: &&Open| {
            if open.room_at_ms > self.now_ms {
                return true;
            }
            let held = self.held_by(open.channel);
            let counts = |held: &&Held| held.consumer.is_some() || held.tag <= open.limited_at;
            let limit = usize::from(open.prefetch_global);
            limit > 0 && held.iter().filter(counts).count() >= limit
        };
        let full = self.channels.iter().filter(is_full);
        full.map(|open| open.channel).collect()
    }

    /// Whether a consumer may be sent a message now; `is_sure` leaves out those that need not be.
    pub fn is_able(&self, queue: &Queue, place: usize, is_sure: bool) -> bool {
        let consumer = &queue.consumers[place];
        let channel = consumer.channel;
        if self.refusing.contains(&channel.connection) {
            return false;
        }
        if queue.kind.is_single_active && (place > 0 || queue.is_awaiting()) {
            return false;
        }
        let held = self.held_by(channel);
        if is_sure && self.orphans.iter().any(|held| held.channel == channel) {
            return false;
        }
        let of_consumers = held.iter().filter(|held| held.consumer.is_some());
        let is_own = |held: &&Held| held.consumer.as_ref() == Some(&consumer.tag);
        let own = of_consumers.filter(is_own).count();
        let open = self.open(channel);
        if is_sure && open.is_some_and(|open| open.room_at_ms > self.now_ms) {
            return false;
        }
        let (global, limited_at) =
            open.map_or((0, 0), |open| (open.prefetch_global, open.limited_at));
        let counts = |held: &&Held| held.consumer.is_some() || held.tag <= limited_at;
        let has_room = |limit: u16, count: usize| limit == 0 || count < usize::from(limit);
        (consumer.no_ack || has_room(consumer.prefetch, own))
            && has_room(global, held.iter().filter(counts).count())
    }
}

fn words(key: &str) -> Vec<&str> {
    key.split('.').collect()
}

/// Topic matching, by trying.
fn matches_topic(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => {
            matches_topic(rest, key) || (!key.is_empty() && matches_topic(pattern, &key[1..]))
        }
        (Some((first, patterns)), Some((word, words))) => {
            (*first == "*" || first == word) && matches_topic(patterns, words)
        }
        _ => false,
    }
}
