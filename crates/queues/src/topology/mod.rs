//! Exchanges and bindings: the routing of a message.
//!
//! ```text
//! declare_exchange, bind, …        (methods, with the permissions they ask for) ─▶ Journal
//! add_queue, remove_queue          (the vhost says which queues there are)      ─▶ Journal
//! exchange_to_publish ─▶ route     (an exchange, a key, headers)                ─▶ queues
//! restore                          (what a store has kept, in order, before anything else)
//! ```
//!
//! A queue is only a name and a key here; its contents belong to another room. The texts of faults, and the order in
//! which things are checked, are RabbitMQ 3.10's, found by asking it.

mod age;
mod arguments;
mod bind;
mod bindings;
mod caller;
mod cost;
mod declare;
mod delays;
mod destinations;
mod equivalence;
mod exchange;
mod exchange_key;
mod hashing;
mod headers;
mod headers_index;
mod heaviest;
mod histories;
mod kind;
mod overflow;
mod policies;
mod queues;
mod remains;
mod resource;
mod restore;
mod room;
mod route;
mod routed;
mod settings;
mod term;
#[cfg(test)]
mod tests;
mod topic;
mod topics;
mod trie;

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::Table;
use crosstie_collections::Slab;

pub(crate) use age::age_ms;
pub(crate) use arguments::{
    QueueArguments, QueueFlags, check_queue_equivalent, check_server_named, integer,
};
pub(crate) use bind::{BindingRequest, NewBinding};
pub(crate) use caller::{Caller, OPERATOR};
pub(crate) use delays::{X_DELAY, delay_ms};
pub(crate) use destinations::Target;
pub(crate) use exchange_key::{ExchangeKey, OfExchange};
pub use hashing::arguments_hash;
pub use kind::QueueKind;
pub(crate) use overflow::Overflow;
pub(crate) use resource::{Resource, strip_line_ends};
pub(crate) use routed::{Routed, header_keys};
pub(crate) use term::{kind, term as erlang_term};

use bindings::Bindings;
use exchange::{Exchange, ExchangeKind};
use queues::Queues;
use remains::Remains;
use room::DefinitionBytes;

use crate::status::{BindingStatus, ExchangeStatus};
use crate::{ExchangeTally, Journal, Record, VhostLimits};

/// A vhost's exchanges and bindings, and the names of its queues.
#[derive(Debug)]
pub(crate) struct Topology {
    vhost: Arc<str>,
    exchanges_max: usize,
    bindings_max: usize,
    /// Maximum steps of a message in an exchange, and in all exchanges with incoming bindings together.
    steps_max: u64,
    /// Steps of all exchanges with incoming bindings.
    steps_behind: u64,
    pattern_nodes_max: usize,
    /// Number of words and fields that the patterns of all exchanges are kept as.
    pattern_nodes: usize,
    bytes: DefinitionBytes,
    hasher: RandomState,
    exchanges: Slab<OfExchange, Exchange>,
    exchange_keys: HashMap<Arc<str>, ExchangeKey, RandomState>,
    default_exchange: ExchangeKey,
    /// Its counters: apart, because most messages change them.
    default_tally: ExchangeTally,
    /// Names of alternate exchanges, existing or not, with the number of exchanges that name them.
    alternates: HashMap<Arc<str>, u32, RandomState>,
    queues: Queues,
    bindings: Bindings,
    /// Remains of deletions, the latest last.
    remains: Vec<Remains>,
    /// Number of messages routed: marks the exchanges and queues that a message has passed.
    visit: u64,
    /// Exchanges that a message has still to pass; empty between messages.
    ahead: Vec<ExchangeKey>,
    /// Exchanges that the last message passed and that keep it, and whether they delay it.
    passed: Vec<(ExchangeKey, bool)>,
    /// Exchanges with a history that were deleted since the last look.
    ended: Vec<ExchangeKey>,
    history_messages_max: usize,
    /// The steps since they were last taken.
    steps: u32,
    /// Number of changes that may lead a message to another queue.
    changes: u64,
}

/// Exchanges that every vhost has: name, kind, internal.
const PREDECLARED: [(&str, ExchangeKind, bool); 7] = [
    ("", ExchangeKind::Direct, false),
    ("amq.direct", ExchangeKind::Direct, false),
    ("amq.fanout", ExchangeKind::Fanout, false),
    ("amq.headers", ExchangeKind::Headers, false),
    ("amq.match", ExchangeKind::Headers, false),
    ("amq.rabbitmq.trace", ExchangeKind::Topic, true),
    ("amq.topic", ExchangeKind::Topic, false),
];

impl Topology {
    /// `exchanges_max` includes the predeclared ones.
    pub(crate) fn new(vhost: Arc<str>, limits: &VhostLimits, seed: u64) -> Self {
        // The seeds are digits of π, and different from each other.
        let hasher = RandomState::with_seeds(
            seed,
            seed.rotate_left(32) ^ 0x243f_6a88_85a3_08d3,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
        );
        let mut exchanges = Slab::new();
        let mut exchange_keys = HashMap::with_hasher(hasher.clone());
        let keys = PREDECLARED.map(|(name, kind, internal)| {
            let name: Arc<str> = name.into();
            let mut exchange = Exchange::new(name.clone(), kind, Table::default(), &hasher);
            exchange.internal = internal;
            let key = exchanges.insert(exchange);
            exchange_keys.insert(name, key);
            key
        });
        Self {
            vhost,
            exchanges_max: limits.exchanges_max,
            bindings_max: limits.bindings_max,
            steps_max: limits.exchange_steps_max as u64,
            steps_behind: 0,
            pattern_nodes_max: limits.pattern_nodes_max,
            pattern_nodes: 0,
            bytes: DefinitionBytes {
                held: 0,
                max: limits.definition_bytes_max,
            },
            exchanges,
            exchange_keys,
            default_exchange: keys[0],
            default_tally: ExchangeTally::default(),
            alternates: HashMap::with_hasher(hasher.clone()),
            queues: Queues::new(&hasher),
            bindings: Bindings::new(&hasher),
            remains: Vec::new(),
            hasher,
            visit: 0,
            ahead: Vec::new(),
            passed: Vec::new(),
            ended: Vec::new(),
            history_messages_max: limits.history_messages_max,
            steps: 0,
            changes: 0,
        }
    }

    pub(crate) fn set_limits(&mut self, limits: &VhostLimits) {
        self.exchanges_max = limits.exchanges_max;
        self.bindings_max = limits.bindings_max;
        self.steps_max = limits.exchange_steps_max as u64;
        self.pattern_nodes_max = limits.pattern_nodes_max;
        self.bytes.max = limits.definition_bytes_max;
        self.history_messages_max = limits.history_messages_max;
    }

    /// The exchange with that name, without a check of permissions.
    pub(crate) fn exchange(&self, name: &str) -> Option<ExchangeKey> {
        match name {
            "" => Some(self.default_exchange),
            name => self.exchange_keys.get(name).copied(),
        }
    }

    /// Number of changes that may lead a message to another queue.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    /// The default exchange's implicit bindings are not counted.
    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (ExchangeKey, ExchangeStatus)> {
        let exchanges = self.exchanges.iter();
        exchanges.map(|(key, exchange)| (key, self.status_of(key, exchange)))
    }

    /// The default exchange's implicit bindings first: one to each queue, by its name.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = BindingStatus> {
        let default = self.queues.names().map(|name| BindingStatus {
            source: "".into(),
            destination: crate::Destination::Queue(name.clone()),
            routing_key: name.clone(),
            arguments: crosstie_amqp::TableBuf::new(),
        });
        default.chain(self.bindings_part(0, usize::MAX))
    }

    pub(crate) fn exchange_status(&self, key: ExchangeKey) -> Option<ExchangeStatus> {
        let exchange = self.exchanges.find(key)?;
        Some(self.status_of(key, exchange))
    }

    /// Size of the table of exchanges, free places included.
    pub(crate) fn exchange_places(&self) -> usize {
        self.exchanges.places()
    }

    /// The exchanges at that many places, from `place` on.
    pub(crate) fn exchanges_part(
        &self,
        place: usize,
        places_max: usize,
    ) -> impl Iterator<Item = (ExchangeKey, ExchangeStatus)> {
        let part = self.exchanges.part(place, places_max);
        part.map(|(key, exchange)| (key, self.status_of(key, exchange)))
    }

    /// Those of these exchanges with messages that reached no queue, and the number of these messages.
    pub(crate) fn unroutable_part(
        &self,
        place: usize,
        places_max: usize,
    ) -> impl Iterator<Item = (Arc<str>, u64)> {
        let part = self.exchanges.part(place, places_max);
        let counted = part.map(|(key, exchange)| {
            let tally = match key == self.default_exchange {
                true => &self.default_tally,
                false => &exchange.tally,
            };
            (exchange, tally.unroutable)
        });
        let counted = counted.filter(|(_, messages)| *messages > 0);
        counted.map(|(exchange, messages)| (exchange.name.clone(), messages))
    }

    fn status_of(&self, key: ExchangeKey, exchange: &Exchange) -> ExchangeStatus {
        let status = exchange.status();
        match key == self.default_exchange {
            true => ExchangeStatus {
                tally: self.default_tally,
                ..status
            },
            false => status,
        }
    }

    /// Size of the table of bindings, free places included.
    pub(crate) fn binding_places(&self) -> usize {
        self.bindings.places()
    }

    /// The bindings at that many places, from `place` on; without the default exchange's implicit ones.
    pub(crate) fn bindings_part(
        &self,
        place: usize,
        places_max: usize,
    ) -> impl Iterator<Item = BindingStatus> {
        let part = self.bindings.part(place, places_max);
        part.filter_map(|binding| {
            let source = self.exchanges.find(binding.source)?;
            Some(BindingStatus {
                source: source.name.clone(),
                destination: self.destination(binding.target)?,
                routing_key: binding.routing_key.clone(),
                arguments: binding.arguments.clone(),
            })
        })
    }
}

/// Adds a record to the journal.
fn record(journal: &mut Journal, record: Record) {
    journal.records.push(record);
    journal.position.0 += 1;
}
