//! Testaments: publications of a session after it has left, for whatever reason (WAMP advanced profile, "Session
//! Testament").
//!
//! A testament is kept as the PUBLISH that its session could have sent itself, so that its options mean the same and
//! are checked by the same code: when it is added, so that the session learns of errors, and when it is published.

use std::collections::VecDeque;

use crosstie_wamp::codec::{self, DecodeError, Limits};
use crosstie_wamp::{Dict, Message, MessageType, PublicationId, Serializer, Value};

/// Approximate memory of a testament beside its bytes.
const TESTAMENT_BYTES: usize = 192;

/// One message to be published.
#[derive(Clone, Debug)]
pub(crate) struct Testament {
    pub(crate) id: PublicationId,
    /// Other nodes hold it, too, and publish it if this one dies.
    pub(crate) is_entrusted: bool,
    serializer: Serializer,
    /// A PUBLISH whose request is the id of the publication.
    bytes: Box<[u8]>,
}

/// The end that a testament waits for: of the transport or of the session, which are one moment here. Testaments for
/// the former are published first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Detached,
    Destroyed,
}

/// All testaments of a session. Without any, it holds one word.
#[derive(Debug, Default)]
pub(crate) struct Testaments(Option<Box<All>>);

/// The testaments in each scope in the order in which they were added.
#[derive(Debug, Default)]
struct All {
    detached: VecDeque<Testament>,
    destroyed: VecDeque<Testament>,
    /// Memory of all of them.
    bytes: usize,
    /// Its session has left, and its role is kept until they are published.
    keeps_role: bool,
    /// Other nodes have been told that they hold none of them any more.
    is_released: bool,
}

impl Scope {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "detached" => Some(Self::Detached),
            "destroyed" => Some(Self::Destroyed),
            _ => None,
        }
    }
}

impl Testament {
    /// Encodes a testament; `arguments` are the elements of the PUBLISH from its list of arguments on.
    pub(crate) fn new(
        id: PublicationId,
        options: Dict,
        topic: &str,
        arguments: Vec<Value>,
        serializer: Serializer,
    ) -> Result<Self, String> {
        let mut message = vec![
            Value::from(MessageType::Publish.code()),
            Value::from(id.0),
            Value::Dict(options),
            Value::from(topic),
        ];
        message.extend(arguments);
        let mut bytes = Vec::new();
        codec::encode_value(&Value::List(message), serializer, &mut bytes)
            .map_err(|error| error.to_string())?;
        let testament = Self {
            id,
            is_entrusted: false,
            serializer,
            bytes: bytes.into(),
        };
        testament.message().map_err(|error| error.to_string())?;
        Ok(testament)
    }

    /// The PUBLISH; fails only while it is created.
    pub(crate) fn message(&self) -> Result<Message<'_>, DecodeError> {
        codec::decode(self.serializer, &self.bytes, &Limits::default())
    }

    /// Memory of the testament.
    pub(crate) fn bytes(&self) -> usize {
        TESTAMENT_BYTES + self.bytes.len()
    }
}

impl Testaments {
    pub(crate) fn add(&mut self, scope: Scope, testament: Testament) {
        let all = self.0.get_or_insert_default();
        all.bytes += testament.bytes();
        all.of(scope).push_back(testament);
    }

    /// Removes the next one to be published.
    pub(crate) fn take(&mut self) -> Option<Testament> {
        let all = self.0.as_mut()?;
        let first = all.detached.pop_front();
        let testament = first.or_else(|| all.destroyed.pop_front())?;
        all.bytes -= testament.bytes();
        Some(testament)
    }

    /// Removes all of one scope; returns their publications and their bytes.
    pub(crate) fn flush(&mut self, scope: Scope) -> (Vec<u64>, usize) {
        let Some(all) = &mut self.0 else {
            return (Vec::new(), 0);
        };
        let flushed = std::mem::take(all.of(scope));
        let bytes = flushed.iter().map(Testament::bytes).sum();
        all.bytes -= bytes;
        (flushed.iter().map(|flushed| flushed.id.0).collect(), bytes)
    }

    /// Marks the testaments as about to be published. The first call returns those that other nodes hold.
    pub(crate) fn release(&mut self) -> Vec<u64> {
        let Some(all) = &mut self.0 else {
            return Vec::new();
        };
        if std::mem::replace(&mut all.is_released, true) {
            return Vec::new();
        }
        let entrusted = all.iter().filter(|testament| testament.is_entrusted);
        entrusted.map(|testament| testament.id.0).collect()
    }

    /// Removes one; returns its bytes.
    pub(crate) fn forget(&mut self, publication: u64) -> usize {
        let Some(all) = &mut self.0 else {
            return 0;
        };
        let mut forgotten = 0;
        for of in [&mut all.detached, &mut all.destroyed] {
            if let Some(place) = of.iter().position(|known| known.id.0 == publication) {
                forgotten += of.remove(place).map_or(0, |testament| testament.bytes());
            }
        }
        all.bytes -= forgotten;
        forgotten
    }

    /// One of them, by its place among all.
    pub(crate) fn nth(&mut self, place: usize) -> Option<(Scope, &mut Testament)> {
        let all = self.0.as_mut()?;
        let detached = all.detached.len();
        match place.checked_sub(detached) {
            None => Some((Scope::Detached, all.detached.get_mut(place)?)),
            Some(place) => Some((Scope::Destroyed, all.destroyed.get_mut(place)?)),
        }
    }

    /// The place of the last one of a scope.
    pub(crate) fn last_of(&self, scope: Scope) -> Option<usize> {
        let all = self.0.as_ref()?;
        match scope {
            Scope::Detached => all.detached.len().checked_sub(1),
            Scope::Destroyed if all.destroyed.is_empty() => None,
            Scope::Destroyed => self.len().checked_sub(1),
        }
    }

    pub(crate) fn len(&self) -> usize {
        let all = self.0.as_ref();
        all.map_or(0, |all| all.detached.len() + all.destroyed.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.bytes)
    }

    /// Marks those of a leaving session; returns whether there are any, which need its role until they are published.
    pub(crate) fn keep_role(&mut self) -> bool {
        let is_kept = !self.is_empty();
        if let Some(all) = &mut self.0 {
            all.keeps_role = is_kept;
        }
        is_kept
    }

    /// Whether that was returned.
    pub(crate) fn keeps_role(&self) -> bool {
        self.0.as_ref().is_some_and(|all| all.keeps_role)
    }

    /// Asserts the invariants of the fields.
    pub(crate) fn check_invariants(&self) {
        if let Some(all) = &self.0 {
            assert_eq!(all.bytes, all.iter().map(Testament::bytes).sum::<usize>());
        }
    }
}

impl All {
    fn iter(&self) -> impl Iterator<Item = &Testament> {
        self.detached.iter().chain(&self.destroyed)
    }

    fn of(&mut self, scope: Scope) -> &mut VecDeque<Testament> {
        match scope {
            Scope::Detached => &mut self.detached,
            Scope::Destroyed => &mut self.destroyed,
        }
    }
}
