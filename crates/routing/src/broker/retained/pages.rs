//! Retained events in pages, for the part of the router that passes them on to clients of another protocol.

use std::ops::Bound;
use std::sync::Arc;

use crosstie_wamp::MatchPolicy;

use super::{Event, Retained};
use crate::overlap::{common_beginning, fits};
use crate::passed_on::{PassedOn, RetainedPage, RetainedQuery};
use crate::session::Session;
use crate::{Realm, SessionKey, Time};

/// Topics that are looked at for one page.
const TOPICS_MAX: usize = 256;

/// Maximum number of bytes of a page, unless its first event has more.
const BYTES_MAX: usize = 256 << 10;

fn passed_on(topic: &Arc<str>, event: &Event, now: Time) -> PassedOn {
    let left_us = event.end.map(|Time(end)| end.saturating_sub(now.0));
    PassedOn {
        topic: Arc::clone(topic),
        is_from_elsewhere: event.is_from_elsewhere,
        left_ms: left_us.map(|us| us.div_ceil(1_000)),
        passthru: event.passthru.clone(),
        serializer: event.serializer,
        payload: event.payload.clone(),
        args_bytes: event.args_bytes,
    }
}

impl Retained {
    fn page<H>(
        &self,
        now: Time,
        session: &Session<H>,
        query: &RetainedQuery<'_>,
    ) -> (RetainedPage, usize) {
        let beginning = common_beginning(query.policy, query.pattern);
        let from = match query.after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(beginning),
        };
        let mut page = RetainedPage::default();
        let (mut looked_at, mut bytes) = (0, 0);
        let mut last: Option<&Arc<str>> = None;
        for (topic, events) in self.topics.range::<str, _>((from, Bound::Unbounded)) {
            let is_near = match query.policy {
                MatchPolicy::Exact => **topic == *query.pattern,
                MatchPolicy::Prefix | MatchPolicy::Wildcard => topic.starts_with(beginning),
            };
            if !is_near {
                break;
            }
            let is_full = page.events.len() >= query.events_max || bytes >= BYTES_MAX;
            if is_full || looked_at >= TOPICS_MAX {
                page.next = last.map(Arc::clone);
                break;
            }
            looked_at += 1;
            last = Some(topic);
            if query.policy == MatchPolicy::Wildcard && !fits(query.pattern, topic) {
                continue;
            }
            let newest = events.iter().rev().find(|event| {
                let is_known = event.number <= query.number_max;
                is_known && event.is_there(now) && event.admits(session)
            });
            if let Some(event) = newest {
                bytes += event.bytes;
                page.events.push(passed_on(topic, event, now));
            }
        }
        (page, looked_at + bytes / BYTES_PER_STEP)
    }
}

/// Bytes copied in the time of one step.
const BYTES_PER_STEP: usize = 512;

impl<H> Realm<H> {
    /// The number of the last retained event.
    pub fn retained_number(&self) -> u64 {
        self.broker.retained.number_last
    }

    /// A page of the retained events that a session may receive.
    pub fn retained_page(
        &mut self,
        now: Time,
        session: SessionKey,
        query: &RetainedQuery<'_>,
    ) -> RetainedPage {
        let Some(index) = self.sessions.find(session) else {
            return RetainedPage::default();
        };
        let (page, steps) = self.broker.retained.page(now, &self.sessions[index], query);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.steps = self.steps.saturating_add(steps);
        page
    }
}
