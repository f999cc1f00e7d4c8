//! A query for recorded events, independent of their storage: a state machine that is offered events and tells when it
//! has enough.
//!
//! 1. [`Recall::publications`] are to be found first, if there are any; [`Recall::places`] says which events lie
//!    between them.
//! 2. [`Recall::offer`] those, from the end that [`Recall::is_newest_first`] says, until it breaks or none are left.
//! 3. [`Recall::end`], or [`Recall::fail`]: the answer, for [`crate::Realm::handle_recalled`].

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, PublicationId, RequestId, Serializer, SessionId, SubscriptionId, Value};

use crate::fault::{Fault, error};
use crate::identity::{Identity, SessionKey};
use crate::recorded::Recorded;

/// A query for recorded events, and the events found so far.
#[derive(Debug)]
pub struct Recall {
    pub(crate) asker: SessionKey,
    pub(crate) request: RequestId,
    pub(crate) serializer: Serializer,
    pub(crate) authid: Arc<str>,
    pub(crate) authrole: Arc<str>,
    pub(crate) realm: String,
    pub(crate) subscription: SubscriptionId,
    /// The index of the log among the realm's recordings.
    pub(crate) log: usize,
    pub(crate) filter: Filter,
    pub(crate) bytes_max: usize,
    pub(crate) found: Vec<Value>,
    pub(crate) bytes: usize,
    pub(crate) is_complete: bool,
}

/// The conditions that events must meet.
#[derive(Debug)]
pub(crate) struct Filter {
    /// Publication time in microseconds since 1970; the end is excluded.
    pub(crate) times: Range<u64>,
    pub(crate) publications: [Option<PublicationId>; 4],
    pub(crate) topic: Option<Box<str>>,
    pub(crate) limit: usize,
    pub(crate) newest_first: bool,
}

/// The arguments that name [`Recall::publications`].
pub(crate) const BOUNDS: [&str; 4] = [
    "from_publication",
    "after_publication",
    "until_publication",
    "before_publication",
];

/// The answer of a [`Recall`].
#[derive(Debug)]
pub struct Recalled {
    pub(crate) asker: SessionKey,
    pub(crate) request: RequestId,
    pub(crate) serializer: Serializer,
    /// Arguments and keyword arguments.
    pub(crate) outcome: Result<(Vec<u8>, Vec<u8>), Fault>,
}

impl Recalled {
    /// The caller.
    pub fn asker(&self) -> SessionKey {
        self.asker
    }
}

impl Recall {
    /// The caller.
    pub fn asker(&self) -> SessionKey {
        self.asker
    }

    /// The index of the log in [`crate::RealmConfig::history`].
    pub fn log(&self) -> usize {
        self.log
    }

    /// The end from which events are to be offered.
    pub fn is_newest_first(&self) -> bool {
        self.filter.newest_first
    }

    /// The range of accepted times, in microseconds since 1970.
    pub fn times(&self) -> &Range<u64> {
        &self.filter.times
    }

    /// Publications whose places must be found first.
    pub fn publications(&self) -> [Option<PublicationId>; 4] {
        self.filter.publications
    }

    /// Whether there are any.
    pub fn names_publications(&self) -> bool {
        self.filter.publications.iter().any(Option::is_some)
    }

    /// The range of places to be offered, given the places of the found publications. The error is the argument whose
    /// publication was not found, for [`Recall::fail_without`].
    pub fn places(&self, found: [Option<u64>; 4], all: Range<u64>) -> Result<Range<u64>, usize> {
        let asked = self.filter.publications.iter().zip(&found);
        let mut missing = asked.enumerate();
        if let Some((which, _)) = missing.find(|(_, (id, at))| id.is_some() && at.is_none()) {
            return Err(which);
        }
        let [from, after, until, before] = found;
        let first = [from, after.map(|at| at + 1)].into_iter().flatten().max();
        let end = [until.map(|at| at + 1), before].into_iter().flatten().min();
        let first = first.unwrap_or(all.start).max(all.start);
        let end = end.unwrap_or(all.end).min(all.end);
        Ok(first..end.max(first))
    }

    /// Offers the next event; breaks when no more are needed.
    pub fn offer(&mut self, event: &Recorded) -> ControlFlow<()> {
        if !self.admits(event) {
            return ControlFlow::Continue(());
        }
        self.bytes = self.bytes.saturating_add(event.bytes());
        if self.bytes > self.bytes_max && !self.found.is_empty() {
            self.is_complete = false;
            return ControlFlow::Break(());
        }
        self.found
            .push(described(event, self.subscription, &self.realm));
        match self.found.len() < self.filter.limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Writes the answer in the caller's serializer.
    pub fn end(mut self) -> Recalled {
        let found = Value::List(std::mem::take(&mut self.found));
        let mut arguments = Vec::with_capacity(64);
        // Only NaN and infinities have no form in a serializer, and here are none.
        let list = Value::List(vec![found]);
        let written = codec::encode_value(&list, self.serializer, &mut arguments);
        debug_assert!(written.is_ok(), "a value has no form");
        let mut keywords = Vec::new();
        if !self.is_complete {
            let said = Value::Dict(vec![("incomplete".to_owned(), Value::Bool(true))]);
            let _ = codec::encode_value(&said, self.serializer, &mut keywords);
        }
        self.answered(Ok((arguments, keywords)))
    }

    /// Fails because one of the publications, given by its index, was not found.
    pub fn fail_without(self, which: usize) -> Recalled {
        let (name, id) = (BOUNDS[which], self.filter.publications[which]);
        let id = id.map_or(0, |id| id.0);
        let text = format!("{name}: there is no publication {id} any more");
        self.answered(Err(Fault::new(error::INVALID_ARGUMENT, text)))
    }

    /// Fails because the events cannot be read; `text` says why.
    pub fn fail(self, text: String) -> Recalled {
        self.answered(Err(Fault::new(error::HISTORY_UNAVAILABLE, text)))
    }

    fn answered(self, outcome: Result<(Vec<u8>, Vec<u8>), Fault>) -> Recalled {
        Recalled {
            asker: self.asker,
            request: self.request,
            serializer: self.serializer,
            outcome,
        }
    }

    fn admits(&self, event: &Recorded) -> bool {
        let Filter { times, topic, .. } = &self.filter;
        times.contains(&event.unix_us)
            && topic.as_deref().is_none_or(|topic| *event.topic == *topic)
            && event.admits(&self.authid, &self.authrole)
    }
}

fn described(event: &Recorded, subscription: SubscriptionId, realm: &str) -> Value {
    let unix_us = event.unix_us;
    let time = DateTime::from_timestamp_micros(i64::try_from(unix_us).unwrap_or(i64::MAX));
    let time = time
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, true);
    let (args, kwargs) = event.payload.split_at(event.args_bytes);
    let publisher = event.publisher.as_ref();
    let of = |text: fn(&Identity) -> &str| {
        publisher.map_or(Value::Null, |(_, identity)| Value::from(text(identity)))
    };
    let session = publisher.map_or(Value::Null, |(SessionId(id), _)| Value::from(*id));
    let (authid, authrole) = (of(|who| &who.authid), of(|who| &who.authrole));
    let mut details = vec![("topic".to_owned(), Value::from(&*event.topic))];
    if publisher.is_some() {
        details.push(("publisher".to_owned(), session.clone()));
        details.push(("publisher_authid".to_owned(), authid.clone()));
        details.push(("publisher_authrole".to_owned(), authrole.clone()));
    }
    details.extend(event.passthru.iter().flat_map(|more| more.iter().cloned()));
    let members = [
        ("time_ns", Value::from(unix_us.saturating_mul(1_000))),
        ("timestamp", Value::String(time)),
        ("realm", Value::from(realm)),
        ("subscription", Value::from(subscription.0)),
        ("publication", Value::from(event.publication.0)),
        ("session_id", session),
        ("authid", authid),
        ("authrole", authrole),
        ("topic", Value::from(&*event.topic)),
        ("details", Value::Dict(details)),
        (
            "args",
            value(event.serializer, args, Value::List(Vec::new())),
        ),
        (
            "kwargs",
            value(event.serializer, kwargs, Value::Dict(Dict::new())),
        ),
    ];
    let members = members.into_iter();
    Value::Dict(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// A part of a payload that was validated when it arrived.
fn value(serializer: Serializer, bytes: &[u8], absent: Value) -> Value {
    match bytes {
        [] => absent,
        _ => codec::decode_value(serializer, bytes, &Limits::default()).unwrap_or(absent),
    }
}
