//! What was published before: `wamp.subscription.get_events`, in Crossbar.io's form and in the specification's.
//!
//! Crossbar.io's is a subscription and, by its place, a limit: the newest events, ten of them unless it is said, the
//! newest first. The specification's has keyword arguments: all events that they leave, the oldest first.
//! An event is a dictionary with the members of both.

use std::ops::Range;

use chrono::{DateTime, SecondsFormat};
use crosstie_wamp::codec::{self, Limits};
use crosstie_wamp::{Dict, Serializer, SessionId, SubscriptionId, Value};

use super::arguments::{Arguments, invalid};
use super::{Answer, Procedure};
use crate::broker::{History, LogIndex, Recorded};
use crate::fault::Fault;
use crate::identity::SessionIndex;
use crate::{Outbox, Realm, Time};

pub(super) const GET_EVENTS: &str = "wamp.subscription.get_events";

pub(super) static ROW: super::Row = (
    GET_EVENTS,
    &[
        "subscription_id",
        "limit",
        "reverse",
        "from_time",
        "after_time",
        "before_time",
        "until_time",
        "topic",
        "from_publication",
        "after_publication",
        "before_publication",
        "until_publication",
    ],
    Procedure::Events,
);

/// What Crossbar.io answers where no limit is given.
const LIMIT: u64 = 10;

/// Events that are looked at, and bytes that are read, in the time of a step.
const EVENTS_PER_STEP: usize = 8;
const BYTES_PER_STEP: usize = 64;

/// Which events are asked for.
struct Filter<'a> {
    /// Since 1970, in microseconds; the end is not included.
    times: Range<u64>,
    topic: Option<&'a str>,
    limit: usize,
    newest_first: bool,
}

impl<H> Realm<H> {
    pub(super) fn events(
        &mut self,
        now: Time,
        from: SessionIndex,
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Answer, Fault> {
        let filter = Filter::read(arguments)?;
        let id = SubscriptionId(arguments.id("subscription_id")?);
        let bytes_max = self.config.limits.history_answer_bytes_max;
        let (broker, _, mut context) = self.split(now, out);
        let (history, log) = broker.log(&mut context, from, id)?;
        let places = places(history, log, now, arguments)?;
        let session = &context.sessions[from];
        let epoch_us = context.events.epoch_us();
        let mut seen = 0;
        let part = history.part(log, places).inspect(|_| seen += 1);
        let admitted = |event: &&Recorded| filter.admits(event, epoch_us) && event.admits(session);
        let part: &mut dyn Iterator<Item = &Recorded> = match filter.newest_first {
            true => &mut part.rev().filter(admitted),
            false => &mut part.filter(admitted),
        };
        let (mut found, mut bytes, mut is_complete) = (Vec::new(), 0_usize, true);
        for event in part.take(filter.limit) {
            bytes = bytes.saturating_add(event.bytes);
            if bytes > bytes_max && !found.is_empty() {
                is_complete = false;
                break;
            }
            found.push(described(event, id, &context.config.name, epoch_us));
        }
        context.spend((seen / EVENTS_PER_STEP + bytes / BYTES_PER_STEP) as u32);
        let found = Value::List(found);
        Ok(match is_complete {
            true => Answer::Now(found),
            false => Answer::Incomplete(found),
        })
    }
}

impl<'a> Filter<'a> {
    fn read(arguments: &'a Arguments) -> Result<Self, Fault> {
        let limit = arguments.optional_id("limit")?;
        let is_by_place = arguments.places() > 1 || arguments.count() == 1;
        let is_crossbars = is_by_place && arguments.count() <= 2;
        let limit = match limit {
            None if is_crossbars => LIMIT,
            limit => limit.unwrap_or(u64::MAX),
        };
        if limit == 0 {
            return Err(invalid("limit: expected a number from 1 on"));
        }
        let time = |name| optional_time(arguments, name);
        let (from, until) = (time("from_time")?, time("until_time")?);
        let (after, before) = (time("after_time")?, time("before_time")?);
        let first = from.max(after.map(|after| after.saturating_add(1)));
        let end = [before, until.map(|until| until.saturating_add(1))];
        let end = end.into_iter().flatten().min();
        Ok(Self {
            times: first.unwrap_or(0)..end.unwrap_or(u64::MAX),
            topic: arguments.optional_text("topic")?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            newest_first: match arguments.get("reverse") {
                None => is_crossbars,
                Some(Value::Bool(reverse)) => *reverse,
                Some(_) => return Err(invalid("reverse: expected a boolean")),
            },
        })
    }

    fn admits(&self, event: &Recorded, epoch_us: u64) -> bool {
        let time = epoch_us.saturating_add(event.time.0);
        self.times.contains(&time) && self.topic.is_none_or(|topic| *event.topic == *topic)
    }
}

/// The places of the events that publications are the bounds of.
fn places(
    history: &mut History,
    log: LogIndex,
    now: Time,
    arguments: &Arguments,
) -> Result<Range<usize>, Fault> {
    let events: Vec<u64> = match arguments.names_publication() {
        true => history.events(log, now).map(|e| e.publication.0).collect(),
        false => return Ok(0..history.events(log, now).len()),
    };
    let place = |name: &str| {
        let Some(id) = arguments.optional_id(name)? else {
            return Ok(None);
        };
        let place = events.iter().position(|known| *known == id);
        place
            .map(Some)
            .ok_or_else(|| invalid(format!("{name}: there is no publication {id} any more")))
    };
    let first = [
        place("from_publication")?,
        place("after_publication")?.map(|at| at + 1),
    ];
    let end = [
        place("until_publication")?.map(|at| at + 1),
        place("before_publication")?,
    ];
    let first = first.into_iter().flatten().max().unwrap_or(0);
    let end = end.into_iter().flatten().min().unwrap_or(events.len());
    Ok(first..end.max(first))
}

/// A time of RFC 3339, in microseconds since 1970.
fn optional_time(arguments: &Arguments, name: &str) -> Result<Option<u64>, Fault> {
    let Some(text) = arguments.optional_text(name)? else {
        return Ok(None);
    };
    let time = DateTime::parse_from_rfc3339(text);
    let time = time.map_err(|_| {
        invalid(format!(
            "{name}: expected a time such as 2026-01-31T12:00:00.000Z"
        ))
    })?;
    Ok(Some(u64::try_from(time.timestamp_micros()).unwrap_or(0)))
}

fn described(event: &Recorded, subscription: SubscriptionId, realm: &str, epoch_us: u64) -> Value {
    let unix_us = epoch_us.saturating_add(event.time.0);
    let time = DateTime::from_timestamp_micros(i64::try_from(unix_us).unwrap_or(i64::MAX));
    let time = time
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, true);
    let (args, kwargs) = event.payload.split_at(event.args_bytes);
    let publisher = event.publisher.as_ref();
    let of = |text: fn(&crate::Identity) -> &str| {
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

/// A part of a payload, which was looked through when it came.
fn value(serializer: Serializer, bytes: &[u8], absent: Value) -> Value {
    match bytes {
        [] => absent,
        _ => codec::decode_value(serializer, bytes, &Limits::default()).unwrap_or(absent),
    }
}
