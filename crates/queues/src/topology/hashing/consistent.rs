//! `x-consistent-hash`: each binding takes as many places on a ring as its key says, and a message's hash has a place.

use std::collections::BTreeMap;

use crosstie_amqp::{Properties, Table, Value};
use crosstie_collections::GrowingMap;
use rustc_hash::FxBuildHasher;

use super::super::bindings::BindingKey;
use super::super::destinations::Target;
use super::super::term;
use super::shares::Shares;
use super::{erlang, jump, steps};

/// The bindings have an order, in which they take their places; the first one that leads to a target counts, as in
/// RabbitMQ. When that one is removed, the target's next binding counts, in its place. So the ring follows from the
/// bindings and their order alone, both of which a store keeps.
#[derive(Debug)]
pub(crate) struct ConsistentHash {
    hash_on: HashOn,
    /// By the order of the bindings.
    ring: Shares<u64, Target>,
    bindings: GrowingMap<BindingKey, u64, FxBuildHasher>,
    targets: GrowingMap<Target, Claims, FxBuildHasher>,
    next: u64,
}

/// The part of a message that is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HashOn {
    RoutingKey,
    Header(Box<str>),
    CorrelationId,
    MessageId,
    Timestamp,
}

/// A binding's number of places, at most [`WEIGHT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight(u32);

/// The bindings that lead to one target, with their weights, by their order.
#[derive(Debug)]
enum Claims {
    One(u64, Weight),
    Many(BTreeMap<u64, Weight>),
}

/// RabbitMQ accepts more, and takes memory for each place.
const WEIGHT_MAX: u32 = 1_000_000_000;

const HASH_HEADER: &str = "hash-header";
const HASH_PROPERTY: &str = "hash-property";

impl ConsistentHash {
    pub(crate) fn new(arguments: Table<'_>, seed: u64) -> Self {
        Self {
            // They were checked when the exchange was declared.
            hash_on: HashOn::parse(arguments).unwrap_or(HashOn::RoutingKey),
            ring: Shares::new(seed),
            bindings: GrowingMap::new(),
            targets: GrowingMap::new(),
            next: 1,
        }
    }

    /// Adds a binding behind all others, or, in a restore, at its place in their order, which is returned.
    pub(crate) fn insert(
        &mut self,
        key: BindingKey,
        target: Target,
        weight: Weight,
        order: Option<u64>,
    ) -> u64 {
        let order = order.unwrap_or(self.next);
        self.next = self.next.max(order.saturating_add(1));
        self.bindings.insert(key, order);
        let Some(claims) = self.targets.get_mut(&target) else {
            self.targets.insert(target, Claims::One(order, weight));
            self.ring.insert(order, target, weight.0);
            return order;
        };
        let (before, _) = claims.first();
        claims.insert(order, weight);
        if order < before {
            self.ring.remove(&before);
            self.ring.insert(order, target, weight.0);
        }
        order
    }

    pub(crate) fn remove(&mut self, key: BindingKey, target: Target) {
        let Some(order) = self.bindings.remove(&key) else {
            return;
        };
        let Some(claims) = self.targets.get_mut(&target) else {
            return;
        };
        let (first, _) = claims.first();
        let next = claims.remove(order);
        if next.is_none() {
            self.targets.remove(&target);
        }
        if first == order {
            self.ring.remove(&order);
            if let Some((order, weight)) = next {
                self.ring.insert(order, target, weight.0);
            }
        }
    }

    /// The target of a message, and the steps to find it.
    pub(crate) fn choose(
        &self,
        routing_key: &str,
        headers: Table<'_>,
        properties: Properties<'_>,
    ) -> (Option<Target>, u64) {
        let (hash, bytes) = self.hash_on.hash(routing_key, headers, properties);
        let place = jump::place(hash, self.ring.sum());
        (self.ring.at(place), steps(bytes))
    }
}

impl HashOn {
    /// Parses the arguments of an exchange; the faults are in RabbitMQ's words, but for values that are no text, which
    /// close the connection there (541).
    pub(crate) fn parse(arguments: Table<'_>) -> Result<Self, String> {
        let text = |name| match arguments.find(name) {
            None => Ok(None),
            Some(Value::LongString(bytes)) => Ok(Some(String::from_utf8_lossy(bytes))),
            Some(other) => {
                let kind = term::kind(other);
                Err(format!(
                    "invalid type '{kind}' for arg '{name}': expected longstr"
                ))
            }
        };
        match (text(HASH_HEADER)?, text(HASH_PROPERTY)?) {
            (None, None) => Ok(Self::RoutingKey),
            (Some(header), None) => Ok(Self::Header((&*header).into())),
            (None, Some(property)) => match &*property {
                "correlation_id" => Ok(Self::CorrelationId),
                "message_id" => Ok(Self::MessageId),
                "timestamp" => Ok(Self::Timestamp),
                other => Err(format!("Unsupported property: {other}")),
            },
            (Some(_), Some(_)) => Err(format!(
                "{HASH_HEADER} and {HASH_PROPERTY} are mutually exclusive"
            )),
        }
    }

    /// The hash of a message, and the number of hashed bytes.
    fn hash(
        &self,
        routing_key: &str,
        headers: Table<'_>,
        properties: Properties<'_>,
    ) -> (u32, usize) {
        let timestamp;
        let text = match self {
            Self::RoutingKey => Some(routing_key),
            Self::Header(name) => {
                let found = headers.find(name);
                let hash = found.map_or_else(erlang::undefined, |value| erlang::typed(0, value));
                return (erlang::phash2(hash), headers.bytes().len());
            }
            Self::CorrelationId => properties.parse().correlation_id,
            Self::MessageId => properties.parse().message_id,
            Self::Timestamp => {
                timestamp = properties.parse().timestamp.map(|time| time.to_string());
                timestamp.as_deref()
            }
        };
        let hash = text.map_or_else(erlang::undefined, |text| erlang::bytes(0, text.as_bytes()));
        (erlang::phash2(hash), text.map_or(0, str::len))
    }
}

impl Weight {
    /// Parses a binding's key.
    pub(crate) fn parse(routing_key: &str) -> Result<Self, String> {
        let digits = routing_key.strip_prefix(['+', '-']).unwrap_or(routing_key);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let shown = term::term(Value::LongString(routing_key.as_bytes()));
            return Err(format!("The binding key must be an integer: {shown}"));
        }
        match routing_key.parse() {
            _ if routing_key.starts_with('-') || digits.bytes().all(|byte| byte == b'0') => {
                Err("The binding key must be greater than 0".to_owned())
            }
            Ok(weight @ ..=WEIGHT_MAX) => Ok(Self(weight)),
            _ => Err(format!(
                "The binding key must be at most {WEIGHT_MAX}: <<\"{routing_key}\">>"
            )),
        }
    }
}

impl Claims {
    fn first(&self) -> (u64, Weight) {
        match self {
            Self::One(order, weight) => (*order, *weight),
            Self::Many(claims) => {
                let first = claims.first_key_value();
                first.map_or((0, Weight(0)), |(order, weight)| (*order, *weight))
            }
        }
    }

    fn insert(&mut self, order: u64, weight: Weight) {
        match self {
            Self::One(known, known_weight) => {
                *self = Self::Many([(*known, *known_weight), (order, weight)].into());
            }
            Self::Many(claims) => drop(claims.insert(order, weight)),
        }
    }

    /// Returns the first of the others.
    fn remove(&mut self, order: u64) -> Option<(u64, Weight)> {
        match self {
            Self::One(known, weight) => (*known != order).then_some((*known, *weight)),
            Self::Many(claims) => {
                claims.remove(&order);
                let first = claims.first_key_value()?;
                Some((*first.0, *first.1))
            }
        }
    }
}
