//! Recorded publications: `wamp.subscription.get_events`, in Crossbar.io's form and in the specification's.
//!
//! Crossbar.io's has a subscription and a positional limit: it returns the newest events, ten by default, the newest
//! first. The specification's has keyword arguments as filters: it returns all events that pass them, the oldest first.
//! An event is a dictionary with the members of both.

use chrono::DateTime;
use crosstie_wamp::{
    Message, MessageType, Payload, PublicationId, RequestId, ResultDetails, SubscriptionId, Value,
};

use super::arguments::{Arguments, invalid};
use super::{Answer, Procedure};
use crate::broker::{History, LogIndex};
use crate::dealer::{too_long, unrepresentable};
use crate::fault::{Fault, error};
use crate::identity::SessionIndex;
use crate::recall::{BOUNDS, Filter, Recall, Recalled};
use crate::{Outbox, Realm, Refused, Time};

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

/// Crossbar.io's default limit.
const LIMIT: u64 = 10;

/// Events examined, and bytes read, per step.
const EVENTS_PER_STEP: usize = 8;
const BYTES_PER_STEP: usize = 64;

impl<H> Realm<H> {
    pub(super) fn events(
        &mut self,
        now: Time,
        (from, request): (SessionIndex, RequestId),
        arguments: &Arguments,
        out: &mut dyn Outbox<H>,
    ) -> Result<Answer, Fault> {
        let mut filter = filter(arguments)?;
        let subscription = SubscriptionId(arguments.id("subscription_id")?);
        let bytes_max = self.config.limits.history_answer_bytes_max;
        check_topic(&filter, self.config.limits.uri_bytes_max)?;
        let (broker, _, mut context) = self.split(now, out);
        let (history, log) = broker.log(&mut context, from, subscription)?;
        let unix_us = context.unix_us();
        let age_us_max = history.age_us_max(log);
        if age_us_max > 0 {
            let start = unix_us.saturating_sub(age_us_max);
            filter.times.start = filter.times.start.max(start);
        }
        let identity = &context.sessions[from].identity;
        let recall = Recall {
            asker: context.sessions.key(from),
            request,
            serializer: arguments.serializer(),
            authid: identity.authid.clone(),
            authrole: identity.authrole.clone(),
            realm: context.config.name.clone(),
            subscription,
            log: log.place(),
            filter,
            bytes_max,
            found: Vec::new(),
            bytes: 0,
            is_complete: true,
        };
        if context.config.is_stored {
            return match context.out.recall(recall) {
                Ok(()) => Ok(Answer::Later),
                Err(text) => Err(Fault::new(error::HISTORY_UNAVAILABLE, text)),
            };
        }
        let (recalled, steps) = search(history, log, unix_us, recall);
        context.spend(steps);
        Ok(Answer::Recalled(recalled))
    }
}

impl<H> Realm<H> {
    /// Answers a question that was handed out by [`Outbox::recall`].
    pub fn handle_recalled(&mut self, now: Time, recalled: Recalled, out: &mut dyn Outbox<H>) {
        self.answer_recalled(now, recalled, out);
        self.remove_closed(now, out);
    }

    pub(super) fn answer_recalled(
        &mut self,
        now: Time,
        recalled: Recalled,
        out: &mut dyn Outbox<H>,
    ) {
        let Recalled {
            asker,
            request,
            serializer,
            outcome,
        } = recalled;
        let Some(to) = self.sessions.find(asker) else {
            return;
        };
        let (_, _, mut context) = self.split(now, out);
        let sent = outcome.and_then(|(args, kwargs)| {
            let result = Message::Result {
                request,
                details: ResultDetails::default(),
                payload: Payload::new(serializer, &args, &kwargs),
            };
            match context.reply(to, &result) {
                Ok(()) | Err(Refused::Full | Refused::Gone) => Ok(()),
                Err(Refused::TooLong) => Err(too_long("caller")),
                Err(Refused::Unrepresentable(reason)) => Err(unrepresentable(reason)),
            }
        });
        if let Err(fault) = sent {
            context.refuse(to, MessageType::Call, request, &fault);
        }
    }
}

/// Searches the realm's memory for events; returns the steps taken.
fn search(
    history: &mut History,
    log: LogIndex,
    unix_us: u64,
    mut recall: Recall,
) -> (Recalled, u32) {
    let mut found = [None; 4];
    if recall.names_publications() {
        let ids: Vec<_> = history
            .events(log, unix_us)
            .map(|e| e.publication)
            .collect();
        found = recall.publications().map(|id| {
            let place = ids.iter().position(|known| Some(*known) == id)?;
            Some(place as u64)
        });
    }
    let all = 0..history.events(log, unix_us).len() as u64;
    let places = match recall.places(found, all) {
        Ok(places) => places.start as usize..places.end as usize,
        Err(which) => return (recall.fail_without(which), 0),
    };
    let mut seen = 0;
    let part = history.part(log, places).inspect(|_| seen += 1);
    let part: &mut dyn Iterator<Item = _> = match recall.is_newest_first() {
        true => &mut part.rev(),
        false => &mut { part },
    };
    for event in part {
        if recall.offer(event).is_break() {
            break;
        }
    }
    let steps = seen / EVENTS_PER_STEP + recall.bytes / BYTES_PER_STEP;
    (recall.end(), steps as u32)
}

/// Refuses a topic that is too long: a question may wait, and a longer topic is never recorded.
fn check_topic(filter: &Filter, uri_bytes_max: usize) -> Result<(), Fault> {
    let topic = filter.topic.as_deref().unwrap_or_default();
    match topic.len() <= uri_bytes_max {
        true => Ok(()),
        false => Err(invalid(format!(
            "topic: a URI may have {uri_bytes_max} bytes"
        ))),
    }
}

fn filter(arguments: &Arguments) -> Result<Filter, Fault> {
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
    let mut publications = [None; 4];
    for (publication, name) in publications.iter_mut().zip(BOUNDS) {
        *publication = arguments.optional_id(name)?.map(PublicationId);
    }
    Ok(Filter {
        times: first.unwrap_or(0)..end.unwrap_or(u64::MAX),
        publications,
        topic: arguments.optional_text("topic")?.map(Into::into),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        newest_first: match arguments.get("reverse") {
            None => is_crossbars,
            Some(Value::Bool(reverse)) => *reverse,
            Some(_) => return Err(invalid("reverse: expected a boolean")),
        },
    })
}

/// A time in RFC 3339, in microseconds since 1970.
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
