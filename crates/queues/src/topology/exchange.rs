//! An exchange: its declaration, and the index of its bindings.

use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::TableBuf;
use crosstie_collections::GrowingMap;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::bindings::{Binding, BindingKey};
use super::destinations::{Destinations, Target};
use super::headers::{Headers, HeadersPattern};
use super::headers_index::HeadersIndex;
use super::route::Copies;
use super::topic::Topic;
use crate::status::ExchangeStatus;

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) name: Arc<str>,
    pub(super) kind: ExchangeKind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    /// Only other exchanges may publish to it.
    pub(super) internal: bool,
    pub(super) arguments: TableBuf,
    /// The alternate exchange, for messages that no binding matches.
    pub(super) alternate: Option<Arc<str>>,
    /// Bindings from here.
    pub(super) outgoing: BindingKeys,
    /// Bindings to here.
    pub(super) incoming: BindingKeys,
    /// Number of exchanges that name it as their alternate.
    pub(super) alternate_of: u32,
    /// The number of the last message that passed.
    pub(super) visit: u64,
    matching: Matching,
}

/// Passing an exchange costs a message about this much without any pattern.
const STEPS_FREE: u64 = 16;

pub(super) type BindingKeys = IndexSet<BindingKey, FxBuildHasher>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    Direct,
    Fanout,
    Headers,
    Topic,
}

#[derive(Debug)]
enum Matching {
    Direct(GrowingMap<Arc<str>, Destinations, RandomState>),
    Fanout(Destinations),
    Headers(Box<HeadersIndex>),
    Topic(Box<Topic>),
}

impl Exchange {
    /// A durable exchange without arguments.
    pub(super) fn new(name: Arc<str>, kind: ExchangeKind, hasher: &RandomState) -> Self {
        Self {
            name,
            kind,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: TableBuf::new(),
            alternate: None,
            outgoing: BindingKeys::default(),
            incoming: BindingKeys::default(),
            alternate_of: 0,
            visit: 0,
            matching: match kind {
                ExchangeKind::Direct => Matching::Direct(GrowingMap::with_hasher(hasher.clone())),
                ExchangeKind::Fanout => Matching::Fanout(Destinations::None),
                ExchangeKind::Headers => Matching::Headers(Box::new(HeadersIndex::new(hasher))),
                ExchangeKind::Topic => Matching::Topic(Box::new(Topic::new(hasher))),
            },
        }
    }

    /// `pattern`: set for a headers exchange.
    pub(super) fn insert(
        &mut self,
        key: BindingKey,
        binding: &Binding,
        pattern: Option<HeadersPattern>,
    ) {
        let target = binding.target;
        match &mut self.matching {
            Matching::Direct(keys) => {
                let routing_key = binding.routing_key.clone();
                keys.get_or_insert_with(routing_key, Destinations::default)
                    .insert(target);
            }
            Matching::Fanout(targets) => targets.insert(target),
            Matching::Headers(index) => {
                if let Some(pattern) = pattern {
                    index.insert(pattern, target);
                }
            }
            Matching::Topic(topic) => topic.insert(&binding.routing_key, target),
        }
        self.outgoing.insert(key);
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
        }
        self.outgoing.swap_remove(&key);
    }

    /// Finds the queues that the bindings match, some perhaps more than once. Returns the steps taken; beyond
    /// `steps_max` no further key is looked up.
    #[inline(always)]
    pub(super) fn each<'h, const HAS_HEADERS: bool>(
        &mut self,
        routing_key: &str,
        copies: &Copies<'_>,
        headers: impl FnOnce() -> &'h Headers<'h>,
        steps_max: u64,
        mut found: impl FnMut(Target),
    ) -> u64 {
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
            Matching::Direct(_) | Matching::Fanout(_) => 0,
            Matching::Headers(index) => index.steps(),
            Matching::Topic(topic) => topic.steps(),
        }
    }

    /// The number of words and fields that the patterns are kept as.
    pub(super) fn node_count(&self) -> usize {
        match &self.matching {
            Matching::Direct(_) | Matching::Fanout(_) => 0,
            Matching::Headers(index) => index.node_count(),
            Matching::Topic(topic) => topic.node_count(),
        }
    }

    pub(super) fn status(&self) -> ExchangeStatus {
        ExchangeStatus {
            name: self.name.clone(),
            kind: self.kind.name().into(),
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: self.arguments.clone(),
        }
    }
}

impl ExchangeKind {
    const ALL: [Self; 4] = [Self::Direct, Self::Fanout, Self::Headers, Self::Topic];

    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Headers => "headers",
            Self::Topic => "topic",
        }
    }
}
