//! The vhost: everything in one place, and the way to drive it.

mod acknowledge;
mod backlog;
mod charges;
mod confirms;
mod connections;
mod consume;
mod dead_letters;
mod deaths;
mod deliver;
mod enqueue;
#[cfg(test)]
mod invariants;
mod listings;
mod methods;
mod operators;
mod publish;
mod queues;
#[cfg(test)]
mod random_inputs;
mod replies;
mod restore;
mod settle;
mod timeouts;
mod transactions;
mod turns;

use std::collections::{BTreeMap, VecDeque};

use crate::channel::{Channel, Connection, Consumer};
use crate::group::Group;
use crate::keys::{OfChannel, OfConnection, OfConsumer, OfGroup, OfQueue};
use crate::queue::Queue;
use crate::random::Random;
use crate::slab::Slab;
use crate::steps::Steps;
use crate::timers::Timers;
use crate::topology::Topology;
use crate::{ConnectionKey, Counts, Journal, QueueId, QueueKey, VhostConfig};

pub use operators::OperatorError;

use backlog::Backlog;
use confirms::Line;
use dead_letters::DeadLetter;

/// One vhost. `H` is how its owner names a connection to the [`crate::Outbox`].
///
/// Inputs, each under the owner's lock: [`Self::open_connection`], [`Self::open_channel`], then
/// [`Self::handle`] for every method of a channel and [`Self::publish`] for every message. After
/// what one read brought, [`Self::flush_confirms`]. After a fault the owner closes what
/// `fault.code.is_hard()` says, and calls [`Self::close_channel`] or [`Self::close_connection`].
/// A key of something that has gone does nothing.
///
/// After each input the owner takes what [`Self::journal`] holds and hands it to a store, which
/// answers by [`Self::handle_committed`] in the order of positions; who has no store calls it at
/// once. [`Self::handle_timeout`] is due at [`Self::next_timeout`], which any input may change.
///
/// No input takes long: one that is about much (a million messages to be requeued, a connection with
/// a hundred thousand consumers that ends) does a part, and leaves the rest for [`Self::work`], which
/// the owner calls in turn with other inputs while [`Self::has_backlog`]. What was said is true at
/// once: a purged queue is empty, a deleted one is gone, a closed channel is sent nothing. Messages
/// that go back to a queue are all in their places before anybody is sent one of it; `basic.get` is
/// given the first that is there. [`Self::take_steps`] says what an input took.
#[derive(Debug)]
pub struct Vhost<H> {
    config: VhostConfig,
    random: Random,
    topology: Topology,
    connections: Slab<OfConnection, Connection<H>>,
    channels: Slab<OfChannel, Channel>,
    consumers: Slab<OfConsumer, Consumer>,
    groups: Slab<OfGroup, Group>,
    queues: Slab<OfQueue, Queue>,
    timers: Timers,
    journal: Journal,
    next_queue_id: QueueId,
    /// Confirms and commits that a store keeps waiting.
    line: Line,
    /// Channels with confirms to be told.
    to_flush: Vec<crate::ChannelKey>,
    /// Messages that died and have not gone where they are to go yet.
    dead: VecDeque<DeadLetter>,
    /// Queues by what a store calls them; only until it has given back what it kept.
    restoring: BTreeMap<QueueId, QueueKey>,
    /// Queues with a consumer that has room again. Empty between inputs, and used again.
    unblocked: Vec<QueueKey>,
    /// Where a message goes: emptied, and used again.
    targets: Vec<QueueKey>,
    memory_bytes: usize,
    /// Bytes of what was published and not committed, which are not among those.
    uncommitted_bytes: usize,
    /// Channels whose commit a store keeps waiting.
    committing: usize,
    steps: Steps,
    /// What inputs have left for later, but the dead.
    backlog: Backlog,
    /// Messages that have died in this input.
    died: usize,
    /// Connections whose charge has changed.
    to_charge: Vec<ConnectionKey>,
    /// The sums; how many there are is counted when asked for.
    counts: Counts,
}

impl<H> Vhost<H> {
    /// An empty one with the exchanges that every vhost has. What is random in it follows from
    /// the seed, which must not be known to peers.
    pub fn new(config: VhostConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let topology = Topology::new(config.name.clone(), &config.limits, random.next());
        Self {
            config,
            random,
            topology,
            connections: Slab::new(),
            channels: Slab::new(),
            consumers: Slab::new(),
            groups: Slab::new(),
            queues: Slab::new(),
            timers: Timers::default(),
            journal: Journal::default(),
            next_queue_id: QueueId(1),
            line: Line::new(),
            to_flush: Vec::new(),
            dead: VecDeque::new(),
            restoring: BTreeMap::new(),
            unblocked: Vec::new(),
            targets: Vec::new(),
            memory_bytes: 0,
            uncommitted_bytes: 0,
            committing: 0,
            steps: Steps::default(),
            backlog: Backlog::default(),
            died: 0,
            to_charge: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// What a store is to keep. The owner takes `records` after each input (`mem::take`) and hands
    /// them on together with `position`.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// An input begins.
    #[inline]
    fn begin(&mut self) {
        self.steps.begin(self.config.input_steps_max);
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Bytes of messages, with what holds them.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Bytes of messages that were published in transactions which are open: in no queue yet, and
    /// not among [`Self::memory_bytes`].
    pub fn uncommitted_bytes(&self) -> usize {
        self.uncommitted_bytes
    }

    /// Those of one connection.
    pub fn uncommitted_bytes_of(&self, connection: ConnectionKey) -> usize {
        let connection = self.connections.find(connection);
        connection.map_or(0, |connection| connection.uncommitted_bytes)
    }
}
