//! The vhost: its rooms, and the ways through several of them.
//!
//! ```text
//!            methods.rs (dispatch of methods)
//!   publish.rs ─▶ topology ─▶ enqueue.rs ─▶ deliver.rs ─▶ consumers, channels
//!                                │  ▲          ▲
//!                          confirm.rs bury.rs  settle.rs ◀─ acknowledge.rs, commit.rs, close.rs
//! ```

mod acknowledge;
mod backlog;
mod bury;
mod close;
mod commit;
mod confirm;
mod consume;
mod declare;
#[cfg(test)]
mod deep_queues;
mod define;
mod delays;
mod deliver;
mod enqueue;
mod facets;
mod get;
mod histories;
#[cfg(test)]
mod invariants;
mod letters;
mod listings;
mod methods;
mod operators;
mod paging;
mod policies;
mod publish;
#[cfg(test)]
mod random_inputs;
#[cfg(test)]
mod random_methods;
mod replies;
mod rest;
mod restore;
mod settle;
mod stream;
#[cfg(test)]
mod stream_readers;
mod timeouts;
mod trace;
mod views;

use std::sync::Arc;

use crosstie_amqp::ReplyCode;
use crosstie_amqp::method::ChannelOpen;
use crosstie_auth::Permissions;

use crate::channels::{Channels, Client};
use crate::confirms::Confirms;
use crate::consumers::Consumers;
use crate::histories::Histories;
use crate::ledger::Ledger;
use crate::policy::CurrentPolicies;
use crate::queues::Queues;
use crate::random::Random;
use crate::settlements::Settlements;
use crate::streams::Streams;
use crate::topology::Topology;
use crate::transactions::Transactions;
use crate::{
    ChannelKey, ConnectionKey, Fault, Journal, Outbox, QueueKey, Record, Time, VhostConfig,
    VhostLimits,
};

pub use operators::{DeleteIf, OperatorError};

/// One vhost. `H` is the type by which its owner names a connection to the [`crate::Outbox`].
///
/// Inputs, each under the owner's lock: [`Self::open_connection`], [`Self::open_channel`], then [`Self::handle`] for
/// every method of a channel and [`Self::publish`] for every message. After the inputs of one read,
/// [`Self::flush_confirms`]. After a fault the owner closes the channel, or the connection if `fault.code.is_hard()`,
/// and calls [`Self::close_channel`] or [`Self::close_connection`]. A key of a removed entity has no effect.
///
/// After each input the owner takes the records of [`Self::journal`] and hands them to a store, which answers by
/// [`Self::handle_committed`] in the order of positions; an owner without a store calls it at once.
/// [`Self::handle_timeout`] is due at [`Self::next_timeout`], which any input may change.
///
/// No input takes long: a large one (a million messages to be requeued, the end of a connection with a hundred thousand
/// consumers) does a part, and leaves the rest for [`Self::work`]. The owner calls that in turn with other inputs while
/// [`Self::has_backlog`]. The effect is visible at once: a purged queue is empty, a deleted one is gone, a closed
/// channel is sent nothing. Messages that return to a queue are all in their places before it delivers any; `basic.get`
/// returns the first present one. [`Self::take_steps`] returns the cost of an input.
#[derive(Debug)]
pub struct Vhost<H> {
    config: VhostConfig,
    random: Random,
    topology: Topology,
    queues: Queues,
    consumers: Consumers,
    channels: Channels<H>,
    confirms: Confirms,
    transactions: Transactions,
    settlements: Settlements,
    histories: Histories,
    streams: Streams,
    policies: CurrentPolicies,
    ledger: Ledger,
    /// The number of changes of the topology after which refused letters were tried again, and the earliest time of
    /// the next such attempt.
    changes_followed: u64,
    next_follow: Time,
    /// The vhost accepts no connection any more.
    has_ended: bool,
    /// The operator's limit of queues, below that of the configuration.
    queues_limit: Option<usize>,
    /// The targets of a message: emptied, and used again.
    targets: Vec<QueueKey>,
    /// While messages are traced: the node's name.
    tracing: Option<Arc<str>>,
}

impl<H> Vhost<H> {
    /// An empty vhost with the predeclared exchanges. Random values follow from the seed, which must not be known to
    /// peers.
    pub fn new(config: VhostConfig, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let paging = config.paging;
        let topology = Topology::new(config.name.clone(), &config.limits, random.next());
        Self {
            channels: Channels::new(&config),
            transactions: Transactions::new(&config.limits),
            histories: Histories::new(config.limits.history_bytes_max),
            config,
            random,
            topology,
            queues: Queues::new(paging),
            consumers: Consumers::new(),
            confirms: Confirms::new(),
            settlements: Settlements::default(),
            streams: Streams::new(),
            policies: CurrentPolicies::default(),
            ledger: Ledger::default(),
            changes_followed: 0,
            next_follow: Time(0),
            has_ended: false,
            queues_limit: None,
            targets: Vec::new(),
            tracing: None,
        }
    }

    pub fn open_connection(&mut self, handle: H, client: Client) -> ConnectionKey {
        self.channels.open_connection(handle, client)
    }

    /// Changes the permissions of a connection's user, and perhaps whether it may set `user-id` to others.
    pub fn set_permissions(
        &mut self,
        connection: ConnectionKey,
        permissions: Arc<Permissions>,
        is_impersonator: Option<bool>,
    ) {
        self.channels
            .set_permissions(connection, permissions, is_impersonator);
    }

    /// Sets the operator's limit of queues. Present ones stay.
    pub fn limit_queues(&mut self, queues_max: Option<usize>) {
        self.queues_limit = queues_max;
    }

    /// Number 0 is the connection itself, and not a channel.
    pub fn open_channel(
        &mut self,
        connection: ConnectionKey,
        number: u16,
    ) -> Result<ChannelKey, Fault> {
        if self.has_ended {
            let text = "the vhost is closed";
            return Err(Fault::of::<ChannelOpen<'_>>(ReplyCode::ChannelError, text));
        }
        let opened = self.channels.open(connection, number)?;
        self.ledger.counts.channels_opened += 1;
        Ok(opened)
    }

    /// Changes the bounds. What exceeds a lower one stays.
    pub fn set_limits(&mut self, limits: VhostLimits) {
        self.topology.set_limits(&limits);
        self.transactions.set_limits(&limits);
        self.histories.set_bytes_max(limits.history_bytes_max);
        self.config.limits = limits;
    }

    /// Records a setting in the order of all other changes; without a value, it is removed. Only the owner knows its
    /// meaning.
    pub fn put_setting(&mut self, key: Arc<str>, value: Option<Arc<str>>) {
        self.ledger.record(Record::Setting { key, value });
    }

    /// The records for a store. The owner takes `records` after each input (`mem::take`) and hands them on together
    /// with `position`.
    pub fn journal(&mut self) -> &mut Journal {
        &mut self.ledger.journal
    }

    pub fn has_queue(&self, name: &str) -> bool {
        self.topology.queue(name).is_some() || self.queues.has_hidden(name)
    }

    /// Whether an exchange has a binding to a queue with that key, and without arguments.
    pub fn has_binding(&self, exchange: &str, queue: &str, routing_key: &str) -> bool {
        self.topology.has_binding(exchange, queue, routing_key)
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Bytes of messages, with their holders.
    pub fn memory_bytes(&self) -> usize {
        self.ledger.memory_bytes()
    }

    /// Bytes of the messages in memory that have a record, once for each queue: those that the store has as well, or gets. They
    /// are without those that a restart forgets.
    pub fn stored_bytes(&self) -> usize {
        self.ledger.stored_bytes()
    }

    /// Bytes of messages published in open transactions: in no queue yet, and not among [`Self::memory_bytes`].
    pub fn uncommitted_bytes(&self) -> usize {
        self.transactions.bytes()
    }

    /// Those of one connection.
    pub fn uncommitted_bytes_of(&self, connection: ConnectionKey) -> usize {
        self.transactions.bytes_of(connection)
    }

    /// Begins an input.
    #[inline]
    fn begin(&mut self) {
        self.ledger.steps.begin(self.config.input_steps_max);
    }

    /// The last step of each input: publishes its dead letters, and forgets what belonged to deleted exchanges.
    #[inline(always)]
    fn end(&mut self, now: Time, out: &mut dyn Outbox<H>) {
        if self.queues.dead_mut().take_died() {
            self.bury(now, out);
        }
        if self.topology.has_ended() {
            self.forget_kept();
        }
    }
}
