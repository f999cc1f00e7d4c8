//! Limits of vhosts and of users.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value as Json};

use crate::Refusal;
use crate::body::erlang;

/// The kind of a limit, with RabbitMQ's name.
pub trait LimitKind: Copy + Ord + fmt::Debug + 'static {
    const ALL: &'static [Self];
    /// The word in RabbitMQ's refusal of unknown ones.
    const TERMS: &'static str;
    /// RabbitMQ begins the refusal of a vhost's limit with a line of its own, and ends it with a line's end.
    const IS_VALIDATED: bool;
    fn name(self) -> &'static str;
}

/// A limit of a vhost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VhostLimit {
    Connections,
    Queues,
}

/// A limit of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserLimit {
    Channels,
    Connections,
}

/// Limits by kind. A negative one limits nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits<L>(BTreeMap<L, i64>);

impl LimitKind for VhostLimit {
    const ALL: &'static [Self] = &[Self::Connections, Self::Queues];
    const TERMS: &'static str = "limits";
    const IS_VALIDATED: bool = true;

    fn name(self) -> &'static str {
        match self {
            Self::Connections => "max-connections",
            Self::Queues => "max-queues",
        }
    }
}

impl LimitKind for UserLimit {
    const ALL: &'static [Self] = &[Self::Channels, Self::Connections];
    const TERMS: &'static str = "user-limits";
    const IS_VALIDATED: bool = false;

    fn name(self) -> &'static str {
        match self {
            Self::Channels => "max-channels",
            Self::Connections => "max-connections",
        }
    }
}

impl<L: LimitKind> Limits<L> {
    pub(crate) fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Limits as an object of numbers.
    pub(crate) fn parse(json: &Json) -> Result<Self, Refusal> {
        let Json::Object(entries) = json else {
            return Err(refused::<L>(format!(
                "expected an object of {}, got {json}",
                L::TERMS
            )));
        };
        let mut limits = Self::none();
        for (name, value) in entries {
            let (kind, limit) = limit(name, value)?;
            limits.0.insert(kind, limit);
        }
        Ok(limits)
    }

    /// The limit, if there is one.
    pub fn max(&self, kind: L) -> Option<usize> {
        let limit = self.0.get(&kind)?;
        usize::try_from(*limit).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn set(&mut self, kind: L, limit: i64) {
        self.0.insert(kind, limit);
    }

    pub(crate) fn clear(&mut self, kind: L) -> bool {
        self.0.remove(&kind).is_some()
    }

    /// An object of numbers.
    pub fn to_json(&self) -> Json {
        let entries = self
            .0
            .iter()
            .map(|(kind, limit)| (kind.name().to_owned(), Json::from(*limit)));
        Json::Object(entries.collect::<Map<_, _>>())
    }
}

/// The limit of a name and its value.
pub(crate) fn limit<L: LimitKind>(name: &str, value: &Json) -> Result<(L, i64), Refusal> {
    let Some(kind) = kind(name) else {
        return Err(refused::<L>(format!(
            "Unrecognised terms [{{<<\"{name}\">>,{}}}] in {}",
            erlang(value),
            L::TERMS
        )));
    };
    match value.as_i64() {
        Some(limit) => Ok((kind, limit)),
        None => Err(refused::<L>(format!(
            "{name} should be a number, actually was {}",
            erlang(value)
        ))),
    }
}

/// The kind of that name.
pub(crate) fn kind<L: LimitKind>(name: &str) -> Option<L> {
    L::ALL.iter().copied().find(|kind| kind.name() == name)
}

fn refused<L: LimitKind>(text: String) -> Refusal {
    Refusal::invalid(match L::IS_VALIDATED {
        true => format!("Validation failed\n\n{text}\n"),
        false => text,
    })
}
