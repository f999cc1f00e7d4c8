//! An exchange: its declaration, and the index of its bindings.

use std::borrow::Cow;
use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::{Table, TableBuf};
use crosstie_collections::{GrowingMap, SplitMix};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::bindings::{Binding, BindingKey};
use super::delays::delayed_type;
use super::destinations::{Destinations, Target};
use super::hashing::{ConsistentHash, ModulusHash, Weight};
use super::headers::{Headers, HeadersPattern};
use super::headers_index::HeadersIndex;
use super::routed::{Copies, Routed};
use super::topic::Topic;
use crate::policy::Applied;
use crate::status::ExchangeStatus;
use crate::{Destination, ExchangeTally};

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) name: Arc<str>,
    pub(super) kind: ExchangeKind,
    /// The same, or the type that a delayed exchange has beside.
    pub(super) routes_as: ExchangeKind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    /// Only other exchanges may publish to it.
    pub(super) internal: bool,
    pub(super) arguments: TableBuf,
    /// The alternate exchange, for messages that no binding matches.
    pub(super) alternate: Option<Arc<str>>,
    /// The policies that apply to it.
    pub(super) applied: Option<Arc<Applied>>,
    /// Bindings from here.
    pub(super) outgoing: BindingKeys,
    /// Bindings to here.
    pub(super) incoming: BindingKeys,
    /// Number of exchanges that name it as their alternate.
    pub(super) alternate_of: u32,
    /// The number of the last message that passed.
    pub(super) visit: u64,
    /// Messages are kept for later bindings (`x-recent-history`), or until they are due (`x-delayed-message`).
    pub(super) keeps_messages: bool,
    pub(super) tally: ExchangeTally,
    matching: Matching,
}

/// Passing an exchange costs a message about this much without any pattern.
const STEPS_FREE: u64 = 16;

pub(super) type BindingKeys = IndexSet<BindingKey, FxBuildHasher>;

crosstie_collections::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum ExchangeKind {
        Direct = "direct",
        Fanout = "fanout",
        Headers = "headers",
        Topic = "topic",
        ConsistentHash = "x-consistent-hash",
        ModulusHash = "x-modulus-hash",
        Random = "x-random",
        RecentHistory = "x-recent-history",
        Delayed = "x-delayed-message",
    }
}

#[derive(Debug)]
enum Matching {
    Direct(GrowingMap<Arc<str>, Destinations, RandomState>),
    Fanout(Destinations),
    Headers(Box<HeadersIndex>),
    Topic(Box<Topic>),
    ConsistentHash(Box<ConsistentHash>),
    ModulusHash(Box<ModulusHash>),
    Random(Box<Draw>),
}

/// Bindings of which each message draws one.
#[derive(Debug)]
struct Draw {
    bindings: IndexMap<BindingKey, Target, FxBuildHasher>,
    numbers: SplitMix,
}

/// The parts of a checked binding that its source's index needs besides its key.
#[derive(Debug)]
pub(super) enum Details {
    None,
    Pattern(HeadersPattern),
    Weight {
        weight: Weight,
        /// Its place in the order of the source's bindings; `None`: behind all others.
        order: Option<u64>,
    },
    Destination(Destination),
}

impl Exchange {
    /// A durable exchange. The arguments have been checked.
    pub(super) fn new(
        name: Arc<str>,
        kind: ExchangeKind,
        arguments: Table<'_>,
        hasher: &RandomState,
    ) -> Self {
        let seed = hasher.hash_one(&name);
        // The arguments have been checked.
        let routes_as = match kind {
            ExchangeKind::Delayed => delayed_type(arguments).unwrap_or(ExchangeKind::Direct),
            kind => kind,
        };
        Self {
            name,
            kind,
            routes_as,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: arguments.into(),
            alternate: None,
            applied: None,
            outgoing: BindingKeys::default(),
            incoming: BindingKeys::default(),
            alternate_of: 0,
            visit: 0,
            keeps_messages: matches!(kind, ExchangeKind::RecentHistory | ExchangeKind::Delayed),
            tally: ExchangeTally::default(),
            matching: match routes_as {
                ExchangeKind::Direct | ExchangeKind::Delayed => {
                    Matching::Direct(GrowingMap::with_hasher(hasher.clone()))
                }
                ExchangeKind::Fanout | ExchangeKind::RecentHistory => {
                    Matching::Fanout(Destinations::None)
                }
                ExchangeKind::Headers => Matching::Headers(Box::new(HeadersIndex::new(hasher))),
                ExchangeKind::Topic => Matching::Topic(Box::new(Topic::new(hasher))),
                ExchangeKind::ConsistentHash => {
                    Matching::ConsistentHash(Box::new(ConsistentHash::new(arguments, seed)))
                }
                ExchangeKind::ModulusHash => {
                    Matching::ModulusHash(Box::new(ModulusHash::new(seed)))
                }
                ExchangeKind::Random => Matching::Random(Box::new(Draw {
                    bindings: IndexMap::default(),
                    numbers: SplitMix(seed),
                })),
            },
        }
    }

    /// Adds a binding. Returns its place in the order of the bindings, if routing depends on that.
    pub(super) fn insert(
        &mut self,
        key: BindingKey,
        binding: &Binding,
        details: Details,
    ) -> Option<u64> {
        let target = binding.target;
        let mut order = None;
        match &mut self.matching {
            Matching::Direct(keys) => {
                let routing_key = binding.routing_key.clone();
                keys.get_or_insert_with(routing_key, Destinations::default)
                    .insert(target);
            }
            Matching::Fanout(targets) => targets.insert(target),
            Matching::Headers(index) => {
                if let Details::Pattern(pattern) = details {
                    index.insert(pattern, target);
                }
            }
            Matching::Topic(topic) => topic.insert(&binding.routing_key, target),
            Matching::ConsistentHash(ring) => {
                if let Details::Weight { weight, order: at } = details {
                    order = Some(ring.insert(key, target, weight, at));
                }
            }
            Matching::ModulusHash(bindings) => {
                if let Details::Destination(destination) = details {
                    bindings.insert(key, &binding.routing_key, &destination, target);
                }
            }
            Matching::Random(draw) => drop(draw.bindings.insert(key, target)),
        }
        self.outgoing.insert(key);
        order
    }

    pub(super) fn remove(&mut self, key: BindingKey, binding: &Binding) {
        let target = binding.target;
        match &mut self.matching {
            Matching::Direct(keys) => {
                if let Some(targets) = keys.get_mut(&binding.routing_key) {
                    targets.remove(target);
                    if targets.is_empty() {
                        keys.remove(&binding.routing_key);
                    }
                }
            }
            Matching::Fanout(targets) => targets.remove(target),
            Matching::Headers(index) => {
                if let Ok(pattern) = HeadersPattern::parse(&binding.arguments) {
                    index.remove(&pattern, target);
                }
            }
            Matching::Topic(topic) => topic.remove(&binding.routing_key, target),
            Matching::ConsistentHash(ring) => ring.remove(key, target),
            Matching::ModulusHash(bindings) => bindings.remove(key),
            Matching::Random(draw) => drop(draw.bindings.swap_remove(&key)),
        }
        self.outgoing.swap_remove(&key);
    }

    /// Finds the queues that the bindings match, some perhaps more than once. Returns the steps taken; beyond
    /// `steps_max` no further key is looked up.
    #[inline(always)]
    pub(super) fn each<'h, const HAS_HEADERS: bool>(
        &mut self,
        message: Routed<'_>,
        copies: &Copies<'_>,
        headers: impl FnOnce() -> &'h Headers<'h>,
        steps_max: u64,
        mut found: impl FnMut(Target),
    ) -> u64 {
        let routing_key = message.routing_key;
        let mut steps = 1;
        match &mut self.matching {
            Matching::Direct(keys) => {
                if let Some(targets) = keys.get(routing_key) {
                    targets.each(&mut found);
                }
                if HAS_HEADERS && !copies.is_empty() {
                    steps += copies.each(u64::MAX, |key| {
                        if let Some(targets) = keys.get(key) {
                            targets.each(&mut found);
                        }
                        0
                    });
                }
            }
            Matching::Fanout(targets) => targets.each(&mut found),
            Matching::Headers(index) => steps += index.each(headers(), &mut found),
            Matching::Topic(topic) => {
                steps += topic.each(routing_key, &mut found);
                if HAS_HEADERS && !copies.is_empty() {
                    steps += copies.each(steps_max, |key| topic.each(key, &mut found));
                }
            }
            choosing => {
                let (target, chosen) = choosing.choose(message, copies);
                steps += chosen;
                target.into_iter().for_each(found);
            }
        }
        steps
    }

    /// The steps that this exchange adds to those of a message published to another exchange: none if no exchange leads
    /// here, or if its patterns are few.
    pub(super) fn steps_behind(&self) -> u64 {
        match self.incoming.is_empty() && self.alternate_of == 0 {
            true => 0,
            false => self.steps_if_behind(),
        }
    }

    pub(super) fn steps_if_behind(&self) -> u64 {
        self.steps().saturating_sub(STEPS_FREE)
    }

    /// The maximum steps that the patterns cost a message.
    pub(super) fn steps(&self) -> u64 {
        match &self.matching {
            Matching::Headers(index) => index.steps(),
            Matching::Topic(topic) => topic.steps(),
            _ => 0,
        }
    }

    /// The number of words and fields that the patterns are kept as.
    pub(super) fn node_count(&self) -> usize {
        match &self.matching {
            Matching::Headers(index) => index.node_count(),
            Matching::Topic(topic) => topic.node_count(),
            _ => 0,
        }
    }

    pub(super) fn has_history(&self) -> bool {
        self.routes_as == ExchangeKind::RecentHistory
    }

    pub(super) fn is_delayed(&self) -> bool {
        self.kind == ExchangeKind::Delayed
    }

    pub(super) fn status(&self) -> ExchangeStatus {
        ExchangeStatus {
            name: self.name.clone(),
            kind: self.kind.name().into(),
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: self.arguments.clone(),
            bindings: self.outgoing.len(),
            messages_delayed: 0,
            applied: self.applied.clone(),
            tally: self.tally,
        }
    }
}

impl Matching {
    /// The target that a message gets of an exchange that chooses one of its bindings, and the steps of the choice.
    #[inline(never)]
    fn choose(&mut self, message: Routed<'_>, copies: &Copies<'_>) -> (Option<Target>, u64) {
        let Routed {
            routing_key,
            headers,
            properties,
        } = message;
        match self {
            Self::ConsistentHash(ring) => ring.choose(routing_key, headers, properties),
            Self::ModulusHash(bindings) => bindings.choose(routing_key, copies),
            Self::Random(draw) => (draw.next(), 1),
            _ => (None, 0),
        }
    }
}

impl Draw {
    fn next(&mut self) -> Option<Target> {
        // The bias is one in 2^64, per binding.
        let at = self
            .numbers
            .number()
            .checked_rem(self.bindings.len() as u64)?;
        let (_, target) = self.bindings.get_index(at as usize)?;
        Some(*target)
    }
}

impl ExchangeKind {
    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in RabbitMQ's faults, where a name with a dash has quotes of its own.
    pub(super) fn shown(self) -> Cow<'static, str> {
        match self.name() {
            name if name.contains('-') => format!("'{name}'").into(),
            name => name.into(),
        }
    }
}
