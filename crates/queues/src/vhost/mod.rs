//! The vhost: everything in one place, and the way to drive it.

mod acknowledge;
mod confirms;
mod connections;
mod consume;
mod dead_letters;
mod deliver;
mod enqueue;
#[cfg(test)]
mod invariants;
mod listings;
mod methods;
mod operators;
mod publish;
mod queues;
mod replies;
mod restore;
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
use crate::{ConnectionKey, Counts, Journal, Outbox, QueueId, QueueKey, Time, VhostConfig};

pub use operators::OperatorError;

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
    /// Messages that died and have not gone where they are to go yet. Empty between inputs.
    dead: VecDeque<DeadLetter>,
    /// Queues by what a store calls them; only until it has given back what it kept.
    restoring: BTreeMap<QueueId, QueueKey>,
    /// Queues with a consumer that has room again. Empty between inputs, and used again.
    unblocked: Vec<QueueKey>,
    /// Where a message goes: emptied, and used again.
    targets: Vec<QueueKey>,
    memory_bytes: usize,
    /// Octets of what was published and not committed, which are not among those.
    uncommitted_bytes: usize,
    /// Channels whose commit a store keeps waiting.
    committing: usize,
    steps: Steps,
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
            counts: Counts::default(),
        }
    }

    /// What a store is to keep. The owner takes `records` after each input (`mem::take`) and hands
    /// them on together with `position`.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Steps since it was asked last, each some 50 to 100 ns: who has had many gives the lock up for
    /// others before its next input.
    pub fn take_steps(&mut self) -> u32 {
        let routed = self.topology.take_steps();
        self.steps.take().saturating_add(routed)
    }

    /// Whether inputs have left something for later: [`Self::work`] is due.
    pub fn has_backlog(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Does some of what inputs have left for later, in about so many steps. It is an input as any
    /// other, and called in turn with those of connections until nothing is left.
    pub fn work(&mut self, now: Time, steps_max: u32, out: &mut dyn Outbox<H>) {
        let _ = steps_max;
        self.bury(now, out);
        self.flush_confirms(out);
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Octets of messages, with what holds them.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Octets of messages that were published in transactions which are open: in no queue yet, and
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
