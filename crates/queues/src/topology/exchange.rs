//! An exchange: what it was declared as, and what its bindings match.

use std::collections::HashMap;
use std::sync::Arc;

use ahash::RandomState;
use crosstie_amqp::{Table, TableBuf};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::bindings::BindingKey;
use super::destinations::{Destinations, Target};
use super::headers::{Headers, HeadersPattern};
use super::topic::Topic;
use crate::status::ExchangeStatus;

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) name: Arc<str>,
    pub(super) kind: ExchangeKind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    /// Fed by other exchanges only.
    pub(super) internal: bool,
    pub(super) arguments: TableBuf,
    /// Where a message goes that no binding matches.
    pub(super) alternate: Option<Arc<str>>,
    /// Bindings from here.
    pub(super) outgoing: BindingKeys,
    /// Bindings to here.
    pub(super) incoming: BindingKeys,
    /// The last message that came by.
    pub(super) visit: u64,
    matching: Matching,
}

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
    Direct(HashMap<Arc<str>, Destinations, RandomState>),
    Fanout(Destinations),
    Headers(IndexMap<BindingKey, (HeadersPattern, Target), FxBuildHasher>),
    Topic(Box<Topic>),
}

impl Exchange {
    /// Durable, without arguments.
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
            visit: 0,
            matching: match kind {
                ExchangeKind::Direct => Matching::Direct(HashMap::with_hasher(hasher.clone())),
                ExchangeKind::Fanout => Matching::Fanout(Destinations::None),
                ExchangeKind::Headers => Matching::Headers(IndexMap::default()),
                ExchangeKind::Topic => Matching::Topic(Box::new(Topic::new(hasher))),
            },
        }
    }

    /// `pattern`: of a headers exchange's binding.
    pub(super) fn insert(
        &mut self,
        binding: BindingKey,
        routing_key: &Arc<str>,
        pattern: Option<HeadersPattern>,
        target: Target,
    ) {
        match &mut self.matching {
            Matching::Direct(keys) => keys.entry(routing_key.clone()).or_default().insert(target),
            Matching::Fanout(targets) => targets.insert(target),
            Matching::Headers(patterns) => {
                if let Some(pattern) = pattern {
                    patterns.insert(binding, (pattern, target));
                }
            }
            Matching::Topic(topic) => topic.insert(routing_key, target),
        }
        self.outgoing.insert(binding);
    }

    pub(super) fn remove(&mut self, binding: BindingKey, routing_key: &str, target: Target) {
        match &mut self.matching {
            Matching::Direct(keys) => {
                if let Some(targets) = keys.get_mut(routing_key) {
                    targets.remove(target);
                    if targets.is_empty() {
                        keys.remove(routing_key);
                    }
                }
            }
            Matching::Fanout(targets) => targets.remove(target),
            Matching::Headers(patterns) => {
                patterns.swap_remove(&binding);
            }
            Matching::Topic(topic) => topic.remove(routing_key, target),
        }
        self.outgoing.swap_remove(&binding);
    }

    /// What the bindings match, some of it perhaps more than once.
    pub(super) fn each<'a>(
        &mut self,
        routing_keys: impl Iterator<Item = &'a str>,
        headers: Table<'_>,
        mut found: impl FnMut(Target),
    ) {
        match &mut self.matching {
            Matching::Direct(keys) => {
                for key in routing_keys {
                    if let Some(targets) = keys.get(key) {
                        targets.each(&mut found);
                    }
                }
            }
            Matching::Fanout(targets) => targets.each(&mut found),
            Matching::Headers(patterns) => {
                let headers = Headers::new(headers);
                for (pattern, target) in patterns.values() {
                    if pattern.matches(&headers) {
                        found(*target);
                    }
                }
            }
            Matching::Topic(topic) => routing_keys.for_each(|key| topic.each(key, &mut found)),
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
