//! Retained events that a part of the router passes on to clients of another protocol.

use std::sync::Arc;

use crosstie_wamp::{Dict, MatchPolicy, Payload, Serializer};

/// The events that a page may have.
#[derive(Clone, Copy, Debug)]
pub struct RetainedQuery<'a> {
    pub policy: MatchPolicy,
    pub pattern: &'a str,
    /// Topics behind this one.
    pub after: Option<&'a str>,
    /// Maximum number of events.
    pub events_max: usize,
    /// Events up to this number: a later one has reached its subscribers.
    pub number_max: u64,
}

/// A part of the retained events of a pattern, in the order of their topics.
#[derive(Debug, Default)]
pub struct RetainedPage {
    pub events: Vec<PassedOn>,
    /// The topic behind which the next page begins, unless this one is the last.
    pub next: Option<Arc<str>>,
}

/// A retained event.
#[derive(Debug)]
pub struct PassedOn {
    pub topic: Arc<str>,
    /// Its publisher is a client of the other protocol, on this node.
    pub is_from_elsewhere: bool,
    pub left_ms: Option<u64>,
    pub passthru: Option<Box<Dict>>,
    pub(crate) serializer: Serializer,
    /// Arguments, then keyword arguments.
    pub(crate) payload: Box<[u8]>,
    pub(crate) args_bytes: usize,
}

impl PassedOn {
    pub fn payload(&self) -> Payload<'_> {
        let (args, kwargs) = self.payload.split_at(self.args_bytes);
        Payload::new(self.serializer, args, kwargs)
    }
}
